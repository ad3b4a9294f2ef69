"""Power modes, clocks and releases of boards; those published are in machine_probe.txt."""

from __future__ import annotations

import math

import pytest

from dld_tui.core.machine.jetson import (
    fastest,
    gpu_clocks,
    lacks_gpu_wheels,
    last_jetpack,
    power_modes,
    present_mode,
    release,
)
from tests.support.jetson_boards import modes


@pytest.mark.parametrize(
    ("version", "machine", "lacks"),
    [((3, 10), "aarch64", True), ((3, 11), "aarch64", False), ((3, 10), "x86_64", False)],
)
def test_python_of_jetpack_6_has_no_wheels_of_the_gpu(
    monkeypatch: pytest.MonkeyPatch, version: tuple[int, int], machine: str, lacks: bool
) -> None:
    monkeypatch.setattr("sys.version_info", version)
    monkeypatch.setattr("platform.machine", lambda: machine)
    assert lacks_gpu_wheels() is lacks


def test_caps_of_release_28_are_paths_of_files() -> None:
    cpus = "/sys/devices/system/cpu/cpu"
    text = (
        "< POWER_MODEL NAME=MAXN ID=0 >\n"
        f"{cpus}1/online 1\n{cpus}2/online 0\n{cpus}4/online 1\n{cpus}x/online 1\n"
        f"{cpus}0/cpufreq/scaling_max_freq 2035200\n{cpus}0/cpufreq/scaling_min_freq 7\n"
        "/sys/devices/17000000.gp10b/devfreq/17000000.gp10b/max_freq 1300500000\n"
        "/sys/kernel/nvpmodel_emc_cap/emc_iso_cap 0\none two three four\n"
    )
    (mode,) = power_modes(text)
    assert (mode.gpu_cap, mode.memory_cap, mode.cores) == (1300500000, math.inf, 2)
    assert mode.cpu_caps == {f"CPU {cpus}0/cpufreq/scaling_max_freq": 2035200}


def names(text: str) -> list[str]:
    return [mode.name for mode in fastest(power_modes(text))]


def test_what_orders_modes() -> None:
    assert names(modes("MAXN", "15W", "MAXN_SUPER", "40W")) == ["MAXN_SUPER"]
    assert names(modes("MAXQ", "10W", "9.5W")) == ["10W"]
    assert names(modes("MODE_30W_2CORE", "MODE_30W_ALL", "MODE_30W_6CORE")) == ["MODE_30W_ALL"]
    # Modes that a user added, without a budget in the name.
    own = "< POWER_MODEL ID={} NAME={} >\nGPU MAX_FREQ {}\n"
    text = own.format(0, "15W", 600) + own.format(7, "GPU_FREQ_100", 900)
    assert names(text) == ["GPU_FREQ_100"]
    assert names(text + "< POWER_MODEL ID=8 NAME=7W >\n") == ["15W"]  # one has no cap: by budget
    assert names(modes("quiet", "loud")) == ["quiet", "loud"]  # nothing tells them apart


@pytest.mark.parametrize(
    "text", ["", "\0\xff<<>>", "< POWER_MODEL >", "< POWER_MODEL ID=x NAME=MAXN >", "< PM_CONFIG"]
)
def test_what_is_no_list_of_modes(text: str) -> None:
    assert power_modes(text) == []
    assert fastest([]) == []


def test_odd_outputs_are_unknown() -> None:
    assert present_mode("NV Power Mode: \n") is None
    assert present_mode("NV Power Mode: MAXN\n") == ("MAXN", None)
    assert gpu_clocks("Active GPU TPCs: 4\ngpu-nvd-0 MinFreq=1 MaxFreq=1\nEMC MinFreq=1\n") == []
    (clock,) = gpu_clocks("GPU MinFreq= MaxFreq=918000000 CurrentFreq=x\n")
    assert (clock.highest, clock.is_fixed, clock.now) == (918, None, None)
    assert release("something else") is None
    long = "9" * 5000  # more digits than Python makes a number of
    assert present_mode(f"NV Power Mode: MAXN\n{long}\n") == ("MAXN", None)
    assert gpu_clocks(f"GPU MinFreq={long} MaxFreq={long}\n")[0].is_fixed is None
    assert power_modes(f"< POWER_MODEL ID={long} NAME=MAXN >\n") == []
    (mode,) = power_modes(f"< POWER_MODEL ID=1 NAME=A >\nGPU MAX_FREQ {'9' * 400}\n")
    assert mode.gpu_cap is None
    assert release(f"# R{long} (release)") is None
    assert last_jetpack("A board of tomorrow") is None
