"""The sensors of Jetson boards as sysfs shows them; each layout with its source.

Values are made up where a source gives none; names of folders, files, zones, rails and cooling
devices are as published.
"""

from __future__ import annotations

from collections.abc import Mapping

Files = dict[str, str]


def zones(names: Mapping[str, str]) -> Files:
    found = {}
    for number, (name, value) in enumerate(names.items()):
        found[f"sys/class/thermal/thermal_zone{number}/type"] = name
        found[f"sys/class/thermal/thermal_zone{number}/temp"] = value
    return found


def cooling(names: Mapping[str, str]) -> Files:
    found = {}
    for number, (name, state) in enumerate(names.items()):
        found[f"sys/class/thermal/cooling_device{number}/type"] = name
        found[f"sys/class/thermal/cooling_device{number}/cur_state"] = state
    return found


def ina3221(hwmon: int, rails: Mapping[str, tuple[int, int]]) -> Files:
    """Rails by name with millivolts and milliamperes; the driver lists sums of shunts, too."""
    folder = f"sys/class/hwmon/hwmon{hwmon}"
    found = {f"{folder}/name": "ina3221", f"{folder}/in7_label": "Sum of shunt voltages"}
    found[f"{folder}/in7_input"] = "12"
    for number, (name, (millivolts, milliamperes)) in enumerate(rails.items(), 1):
        found[f"{folder}/in{number}_label"] = name
        found[f"{folder}/in{number}_input"] = str(millivolts)
        found[f"{folder}/curr{number}_input"] = str(milliamperes)
    return found


def clusters(cores: Mapping[str, str]) -> Files:
    found = {}
    for names, kilohertz in cores.items():
        folder = f"sys/devices/system/cpu/cpufreq/policy{names.split()[0]}"
        found[f"{folder}/related_cpus"] = names
        found[f"{folder}/scaling_cur_freq"] = kilohertz
    return found


def over_current(hwmon: int, *counts: int) -> Files:
    folder = f"sys/class/hwmon/hwmon{hwmon}"
    found = {f"{folder}/name": "soctherm_oc"}
    return found | {f"{folder}/oc{n}_event_cnt": str(count) for n, count in enumerate(counts, 1)}


ORIN_NANO: Files = {
    # Jetson Linux Developer Guide R36.3, Jetson Orin Nano Series, "INA3221 hardware monitors",
    # "Thermal zones", "Software-based power consumption modeling".
    **clusters({"0 1 2 3": "1344000", "4 5": "729600"}),
    **zones(
        {"cpu-thermal": "48281", "gpu-thermal": "47343", "cv0-thermal": "", "soc0-thermal": "46000",
         "tj-thermal": "48281"}
    ),
    **cooling(
        {"pwm-fan": "2", "cpu-throttle-alert": "0", "gpu-throttle-alert": "0",
         "hot-surface-alert": "0"}
    ),
    **ina3221(1, {"VDD_IN": (5000, 1400), "VDD_CPU_GPU_CV": (5000, 400), "VDD_SOC": (5000, 300)}),
    **over_current(3, 0, 0, 2),
    "sys/devices/platform/bus@0/17000000.gpu/load": "456",
    "sys/class/devfreq/17000000.gpu/cur_freq": "624750000",
    "sys/kernel/debug/bpmp/debug/clk/emc/rate": "2133000000",
}  # fmt: skip
AGX_ORIN: Files = {
    # The same guide, Jetson AGX Orin Series: two chips, the third rail of the first is not used.
    **clusters({"0 1 2 3": "2201600", "4 5 6 7": "2201600", "8 9 10 11": "729600"}),
    **ina3221(3, {"VDD_GPU_SOC": (20000, 300), "VDD_CPU_CV": (20000, 100),
                  "VIN_SYS_5V0": (5000, 800)}),
    **ina3221(4, {"NC": (0, 0), "VDDQ_VDD2_1V8AO": (5000, 200)}),
}  # fmt: skip
XAVIER_JETPACK_4: Files = {
    # Jetson Linux Developer Guide R32.7.5, Jetson AGX Xavier Series: the driver ina3221x under iio.
    **zones({"AO-therm": "30000", "PMIC-Die": "100000", "thermal-fan-est": "31000"}),
    "sys/bus/i2c/drivers/ina3221x/1-0040/iio:device0/rail_name_0": "GPU",
    "sys/bus/i2c/drivers/ina3221x/1-0040/iio:device0/in_power0_input": "1500",
    "sys/bus/i2c/drivers/ina3221x/1-0041/iio:device1/rail_name_0": "SYS5V",
    "sys/bus/i2c/drivers/ina3221x/1-0041/iio:device1/in_power0_input": "2000",
}
THOR: Files = {
    # Jetson Linux Developer Guide R38.2, Jetson Thor: INA238 for VIN, INA3221 for the rails;
    # ina238 of the kernel gives microwatts.
    "sys/class/hwmon/hwmon4/name": "ina238",
    "sys/class/hwmon/hwmon4/power1_input": "31000000",
    "sys/class/devfreq/gpu-gpc-0/cur_freq": "1575000000",
    **ina3221(5, {"VDD_GPU": (12000, 500), "VDD_CPU_SOC_MSS": (12000, 700)}),
}
