from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from dld_tui.backends.machine import nvml
from dld_tui.backends.machine.capture import PollingSampler, during_passes, gpm_meter, nvml_meter
from dld_tui.backends.machine.nvml import Nvml
from dld_tui.core.errors import UnavailableError
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


def test_what_is_not_supported_is_left_out(gpu: Nvml, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(
        monkeypatch,
        "nvmlDeviceGetPowerUsage",
        "nvmlDeviceGetTemperature",
        "nvmlDeviceGetCurrentClocksEventReasons",
        "nvmlDeviceGetMemoryInfo",
    )
    assert gpu.state().keys() == {"gpu_sm_mhz", "gpu_memory_mhz", "gpu_performance_state"}
    assert "gpu_memory_bytes" not in gpu.environment()
    assert gpu.throttling() is None
    assert gpu.device_memory() is None


def test_numbers_of_cuda_are_not_taken_for_those_of_the_driver(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    monkeypatch.setattr(nvml, "_bus_id", lambda device: None)
    with pytest.raises(UnavailableError, match="CUDA_VISIBLE_DEVICES"):
        Nvml(0, fake_pynvml)


def test_without_the_library_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    nvml.load.cache_clear()
    try:
        with pytest.raises(UnavailableError, match=r"nvidia-ml-py>="):
            Nvml(0)
    finally:
        nvml.load.cache_clear()


def test_gpm_leaves_out_what_is_no_number(gpu: Nvml) -> None:
    gpm = gpu.gpm()

    assert gpm.read() == {"sm": 81.0, "tensor": 40.0, "dram": 30.0, "pcie": 100.0 * (1 << 20)}
    gpm.close()
    assert gpm.read() == {}


def test_polling_makes_rows_of_a_meter(gpu: Nvml) -> None:
    times = iter(range(100, 200))
    sampler = PollingSampler(nvml_meter(gpu), clock_ns=lambda: next(times))
    sampler.poll()
    sampler.poll()
    rows = {one.spec.title: one.samples for one in sampler.stop()}

    assert rows["GPU busy"][:2] == [(100, 77.0), (101, 77.0)]
    assert rows["Memory busy"][0] == (100, 12.0)


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


def test_what_is_fixed_and_what_varies(gpu: Nvml, monkeypatch: pytest.MonkeyPatch) -> None:
    assert gpu.environment() == {
        "gpu": "NVIDIA Fake", "gpu_driver": "580.1", "gpu_cuda_driver": "13.1",
        "gpu_bus": "00000000:01:00.0", "gpu_memory_bytes": 1 << 34, "gpu_sm_mhz_max": 1980,
        "gpu_memory_mhz_max": 3201, "gpu_power_limit_w": 700.0,
    }  # fmt: skip
    assert gpu.state() == {
        "gpu_sm_mhz": 1590, "gpu_memory_mhz": 3201, "gpu_temperature_c": 41,
        "gpu_power_w": 123.456, "gpu_performance_state": "P0",
        "gpu_throttling": "power limit, temperature (software)",
    }  # fmt: skip
    assert gpu.used_memory() == 5 << 20
    monkeypatch.setattr(fake_pynvml, "nvmlDeviceGetComputeRunningProcesses", lambda handle: [])
    assert gpu.used_memory() is None
    assert Nvml("00000000:02:00.0", fake_pynvml).handle == "GPU at 00000000:02:00.0"


def test_a_missing_driver_and_an_older_gpu_say_so(
    gpu: Nvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse(monkeypatch, "nvmlInit", "nvmlGpmQueryDeviceSupport")
    with pytest.raises(UnavailableError, match="NVML: Not Supported"):
        Nvml(0, fake_pynvml)
    with pytest.raises(UnavailableError, match="GPM does not work here: Not Supported"):
        gpu.gpm()
