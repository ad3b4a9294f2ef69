"""A stand-in for ``pynvml``: a GPU of one state, which writes down what is done to it.

Also run as a module of that name in a child process: the file named by ``FAKE_NVML_LOG`` gets a
line for each change of the clocks, and ``FAKE_NVML_REFUSES`` names the calls that are refused.
"""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

NVML_CLOCK_GRAPHICS, NVML_CLOCK_SM, NVML_CLOCK_MEM = 0, 1, 2
NVML_TEMPERATURE_GPU = 0
NVML_CLOCK_LIMIT_ID_TDP = 0xFFFFFF01
NVML_SUCCESS = 0
NVML_GPM_METRICS_GET_VERSION = 1
NVML_GPM_METRIC_SM_UTIL = 2
NVML_GPM_METRIC_ANY_TENSOR_UTIL = 5
NVML_GPM_METRIC_DRAM_BW_UTIL = 10
NVML_GPM_METRIC_PCIE_TX_PER_SEC = 20
NVML_GPM_METRIC_PCIE_RX_PER_SEC = 21
CALLS: list[str] = []
"""What was done, in this process."""
_READ = itertools.count()
GPM = {2: 81.0, 5: 40.0, 10: 30.0, 20: 100.0, 21: float("nan")}


class NVMLError(Exception):
    pass


def _did(what: str) -> None:
    if what.split()[0] in os.environ.get("FAKE_NVML_REFUSES", "").split(","):
        raise NVMLError("Insufficient Permissions" if "Set" in what else "Not Supported")
    CALLS.append(what)
    if path := os.environ.get("FAKE_NVML_LOG"):
        with Path(path).open("a") as file:
            file.write(f"{what}\n")


def nvmlInit() -> None:
    _did("Init")


def nvmlShutdown() -> None:
    _did("Shutdown")


def nvmlDeviceGetHandleByIndex(index: int) -> str:
    _did("Handle")
    return f"GPU {index}"


def nvmlDeviceGetHandleByPciBusId(bus_id: bytes) -> str:
    return f"GPU at {bus_id.decode()}"


def nvmlDeviceGetPciInfo(handle: Any) -> Any:
    return SimpleNamespace(busId=b"00000000:01:00.0")


def nvmlDeviceGetName(handle: Any) -> str:
    return "NVIDIA Fake"


def nvmlSystemGetDriverVersion() -> bytes:
    return b"580.1"


def nvmlSystemGetCudaDriverVersion() -> int:
    return 13010


def nvmlDeviceGetMemoryInfo(handle: Any) -> Any:
    return SimpleNamespace(total=1 << 34, used=1 << 30)


def nvmlDeviceGetMaxClockInfo(handle: Any, kind: int) -> int:
    return 1980 if kind == NVML_CLOCK_SM else 3201


def nvmlDeviceGetClockInfo(handle: Any, kind: int) -> int:
    return 1590 if kind == NVML_CLOCK_SM else 3201


def nvmlDeviceGetDefaultApplicationsClock(handle: Any, kind: int) -> int:
    return 1590


def nvmlDeviceGetPowerUsage(handle: Any) -> int:
    _did("Power")
    return 123_456


def nvmlDeviceGetEnforcedPowerLimit(handle: Any) -> int:
    return 700_000


def nvmlDeviceGetTemperature(handle: Any, kind: int) -> int:
    return 41


def nvmlDeviceGetPerformanceState(handle: Any) -> int:
    return 0


def nvmlDeviceGetCurrentClocksEventReasons(handle: Any) -> int:
    return 0x1 | 0x4 | 0x20


def nvmlDeviceGetUtilizationRates(handle: Any) -> Any:
    return SimpleNamespace(gpu=77, memory=12)


def nvmlDeviceGetComputeRunningProcesses(handle: Any) -> list[Any]:
    pids = ((1, 9 << 20), (os.getpid(), None), (os.getpid(), 5 << 20))
    return [SimpleNamespace(pid=pid, usedGpuMemory=used) for pid, used in pids]


def nvmlDeviceSetGpuLockedClocks(handle: Any, low: int, high: int) -> None:
    _did(f"Set {low} {high}")


def nvmlDeviceResetGpuLockedClocks(handle: Any) -> None:
    _did("Reset")


def nvmlGpmQueryDeviceSupport(handle: Any) -> Any:
    return SimpleNamespace(isSupportedDevice=1)


def nvmlGpmSampleAlloc() -> list[int]:
    _did("Alloc")
    return []


def nvmlGpmSampleFree(sample: list[int]) -> None:
    assert sample is not None
    _did("Free")


def nvmlGpmSampleGet(handle: Any, sample: list[int]) -> None:
    _did("Sample")
    sample[:] = [next(_READ)]


class c_nvmlGpmMetricsGet_t:
    def __init__(self) -> None:
        self.metrics = [SimpleNamespace(metricId=0, nvmlReturn=0, value=0.0) for _ in range(8)]
        self.sample1: Any = None
        self.sample2: Any = None
        self.numMetrics = self.version = 0


def nvmlGpmMetricsGet(query: c_nvmlGpmMetricsGet_t) -> None:
    assert query.sample1 < query.sample2
    assert query.version == NVML_GPM_METRICS_GET_VERSION
    for metric in query.metrics[: query.numMetrics]:
        metric.value = GPM[metric.metricId]
