from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from dld_tui.backends.machine import nvml
from dld_tui.backends.machine.capture import (
    Meter,
    PollingSampler,
    during_passes,
    gpm_meter,
    nvml_meter,
)
from dld_tui.backends.machine.nvml import Nvml
from dld_tui.core.errors import UnavailableError
from dld_tui.core.process.installation import install_hint
from dld_tui.core.report.gpu_kernels import CounterSpec, Series
from dld_tui.core.types import JSON
from tests.support import fake_pynvml


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[Nvml]:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    found = Nvml(0, fake_pynvml)
    yield found
    found.close()


def refuse(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    def refused(*arguments: Any) -> Any:
        raise fake_pynvml.NVMLError("Not Supported")

    for name in names:
        monkeypatch.setattr(fake_pynvml, name, refused)


def told(gpu: Nvml) -> list[Any]:
    return [gpu.environment(), gpu.state(), gpu.throttling(), gpu.used_memory(),
            gpu.device_memory(), gpu.energy_mj(), gpu.base_mhz(), gpu.utilisation()]  # fmt: skip


ENVIRONMENT = {
    "gpu": "NVIDIA Fake", "gpu_driver": "580.1", "gpu_cuda_driver": "13.1",
    "gpu_bus": "00000000:01:00.0", "gpu_memory_bytes": 1 << 34, "gpu_sm_mhz_max": 1980,
    "gpu_memory_mhz_max": 3201, "gpu_power_limit_w": 700.0,
}  # fmt: skip
STATE = {
    "gpu_sm_mhz": 1590, "gpu_memory_mhz": 3201, "gpu_temperature_c": 41, "gpu_power_w": 123.456,
    "gpu_performance_state": "P0", "gpu_throttling": "power limit, temperature (software)",
}  # fmt: skip


def test_what_the_driver_tells(gpu: Nvml, monkeypatch: pytest.MonkeyPatch) -> None:
    reasons = ["power limit", "temperature (software)"]
    busy = {"gpu": 77.0, "memory": 12.0}
    assert told(gpu) == [ENVIRONMENT, STATE, reasons, 5 << 20, 1 << 30, None, 1590, busy]
    for name, value in (
        ("PersistenceMode", 0), ("TotalEnergyConsumption", 7.0),
        ("CurrentClocksEventReasons", 0x1), ("ComputeRunningProcesses", []),
        ("DefaultApplicationsClock", 0),
    ):  # fmt: skip
        monkeypatch.setattr(
            fake_pynvml, f"nvmlDeviceGet{name}", lambda *_, value=value: value, raising=False
        )
    fixed, state = {**ENVIRONMENT, "gpu_persistence": False}, {**STATE, "gpu_throttling": "none"}
    assert told(gpu) == [fixed, state, [], None, 1 << 30, 7, None, busy]
    refuse(monkeypatch, "nvmlDeviceGetCurrentClocksEventReasons")
    older = lambda handle: 0x1F8  # noqa: E731
    monkeypatch.setattr(
        fake_pynvml, "nvmlDeviceGetCurrentClocksThrottleReasons", older, raising=False
    )
    assert gpu.throttling() == [
        "hardware slowdown", "synchronised with other GPUs", "temperature (software)",
        "temperature (hardware)", "power brake", "display clocks",
    ]  # fmt: skip
    every = [name for name in dir(fake_pynvml) if name.startswith(("nvmlDevice", "nvmlSystem"))]
    refuse(monkeypatch, *every)
    bus = {"gpu_bus": "00000000:01:00.0"}
    assert told(gpu) == [bus, {}, None, None, None, None, None, {}]
    for name in every:
        monkeypatch.delattr(fake_pynvml, name)
    assert told(gpu) == [bus, {}, None, None, None, None, None, {}]


def test_which_gpu_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(device: int | str, address: str | None = None) -> tuple[Any, str | None, list[str]]:
        monkeypatch.setattr(nvml, "_bus_id", lambda number: address and f"{address}.{number}")
        fake_pynvml.CALLS.clear()
        gpu = Nvml(device, fake_pynvml)
        gpu.close()
        gpu.close()
        return gpu.handle, gpu.bus_id, [*fake_pynvml.CALLS]

    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert opened(2) == ("GPU 2", "00000000:01:00.0", ["Init", "Handle", "Shutdown"])
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    at = "GPU at 00000000:02:00.0"
    assert opened("00000000:02:00.0") == (at, "00000000:02:00.0", ["Init", "Shutdown"])
    assert opened(0, "00000000:02:00") == (at, "00000000:02:00.0", ["Init", "Shutdown"])
    # Numbers of CUDA are not those of the driver.
    with pytest.raises(UnavailableError, match="CUDA_VISIBLE_DEVICES"):
        opened(0)
    assert fake_pynvml.CALLS == ["Init", "Shutdown"]
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    refuse(monkeypatch, "nvmlDeviceGetHandleByIndex")
    with pytest.raises(UnavailableError, match="NVML: Not Supported"):
        opened(0)
    assert fake_pynvml.CALLS == ["Init", "Shutdown"]
    refuse(monkeypatch, "nvmlInit")
    with pytest.raises(UnavailableError, match="NVML: Not Supported"):
        opened(0)
    assert fake_pynvml.CALLS == []


@pytest.mark.parametrize("fails", ["", "cuInit", "cuDeviceGet", "cuDeviceGetPCIBusId", "no name"])
def test_the_address_is_that_of_the_cuda_driver(
    monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    class Cuda:
        def __init__(self, name: str) -> None:
            assert name == "libcuda.so.1"

        def cuInit(self, flags: int) -> int:
            assert flags == 0
            return int(fails == "cuInit")

        def cuDeviceGet(self, handle: Any, number: int) -> int:
            handle._obj.value = 10 + number
            return int(fails == "cuDeviceGet")

        def cuDeviceGetPCIBusId(self, text: Any, size: int, handle: Any) -> int:
            assert size == len(text) >= 13
            text.value = b"" if fails == "no name" else b"0000:%d" % handle.value
            return int(fails == "cuDeviceGetPCIBusId")

    monkeypatch.setattr(ctypes, "CDLL", Cuda)
    assert nvml._bus_id(3) == (None if fails else "0000:13")
    monkeypatch.setattr(ctypes, "CDLL", Mock(side_effect=OSError))
    assert nvml._bus_id(3) is None


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ModuleNotFoundError(name="pynvml"), "nvidia-ml-py is not installed"),
        (ModuleNotFoundError("none", name="other"), "nvidia-ml-py cannot be loaded: none"),
        (ImportError("no symbol", name="pynvml"), "nvidia-ml-py cannot be loaded: no symbol"),
    ],
)
def test_without_the_library_it_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, error: ImportError, said: str
) -> None:
    monkeypatch.setattr("importlib.import_module", Mock(side_effect=error))
    with pytest.raises(UnavailableError) as caught:
        nvml.load.__wrapped__()
    assert (caught.value.message, caught.value.hint) == (said, install_hint("gpu"))


def test_gpm_leaves_out_what_is_no_number(gpu: Nvml, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_pynvml.CALLS.clear()
    gpm = gpu.gpm()
    for _ in range(2):
        assert gpm.read() == {"sm": 81.0, "tensor": 40.0, "dram": 30.0, "pcie": 100.0 * (1 << 20)}
    gpm.close()
    assert gpm.read() == {}
    assert fake_pynvml.CALLS == ["Alloc", "Alloc", "Sample", "Sample", "Sample", "Free", "Free"]
    refuse(monkeypatch, "nvmlGpmSampleGet")
    with pytest.raises(UnavailableError, match="GPM does not work here: Not Supported"):
        gpu.gpm()
    assert fake_pynvml.CALLS[7:] == ["Alloc", "Alloc", "Free", "Free"]
    for answer, said in ((0, "needs a Hopper GPU or a later one"), (None, "does not work here")):
        support = answer if answer is None else SimpleNamespace(isSupportedDevice=answer)
        monkeypatch.setattr(
            fake_pynvml, "nvmlGpmQueryDeviceSupport", lambda handle, support=support: support
        )
        with pytest.raises(UnavailableError, match=said):
            gpu.gpm()


def test_polling_makes_rows_of_a_meter(gpu: Nvml) -> None:
    times = iter(range(100, 200))
    sampler = PollingSampler(nvml_meter(gpu), clock_ns=lambda: next(times))
    sampler.poll()
    sampler.poll()
    rows = {one.spec.title: one.samples for one in sampler.stop()}

    assert rows["GPU busy"][:2] == [(100, 77.0), (101, 77.0)]
    assert rows["Memory busy"][0] == (100, 12.0)


def test_a_meter_tells_of_the_time_since_it_was_asked_last() -> None:
    """So it is asked before the first pass, too."""
    asked: list[str] = []

    def read() -> dict[str, float]:
        asked.append(threading.current_thread().name)
        return {"sm": float(len(asked))}

    def close() -> None:
        asked.append("closed")

    spec = CounterSpec("sm", "SM active")
    sampler = PollingSampler(Meter("nvml", {"sm": spec}, read, close, 60), lambda: 5)
    sampler.start()
    assert asked == ["MainThread"]
    (row,) = sampler.stop()
    assert row == Series(spec, "nvml", [(5, 2.0)])
    assert asked == ["MainThread", "gpu-meter", "closed"]


def test_a_row_that_the_driver_does_not_tell_says_so(
    gpu: Nvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    sampler = PollingSampler(gpm_meter(gpu))
    sampler.start()
    refuse(monkeypatch, "nvmlGpmMetricsGet")  # the GPU has gone meanwhile
    rows = sampler.stop()

    assert {one.absent for one in rows} <= {None, "the driver does not report it"}
    assert all(one.samples or one.absent for one in rows)


def test_what_varied_during_the_passes_is_told_with_its_range() -> None:
    states: list[dict[str, JSON]] = [
        {"sm_mhz": 1500, "mem_mhz": 900, "power_w": 3, "limit": "none", "mode": "A", "on": True},
        {"sm_mhz": 1700, "mem_mhz": 900, "power_w": 5, "limit": "heat", "mode": "A", "on": True},
        {"sm_mhz": 1600, "mem_mhz": 900, "power_w": 9, "limit": "power", "idle": "none"},
    ]
    assert during_passes(states) == {
        "sm_mhz": 1600, "sm_mhz_lowest": 1500, "sm_mhz_highest": 1700, "mem_mhz": 900,
        "power_w": 5, "limit": "heat, power", "mode": "A", "on": "True", "idle": "none",
    }  # fmt: skip
