"""The driver's own view of an NVIDIA GPU (NVML, through nvidia-ml-py): state, memory, utilisation.

Values that a driver or a board does not report are None or left out, never zero.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
import os
from collections.abc import Callable
from typing import Any

from dld_tui.core.errors import UnavailableError
from dld_tui.core.process.installation import install_hint
from dld_tui.core.types import PlainValues

_MIB = 1 << 20
_REASONS = (
    (0x004, "power limit"),
    (0x008, "hardware slowdown"),
    (0x010, "synchronised with other GPUs"),
    (0x020, "temperature (software)"),
    (0x040, "temperature (hardware)"),
    (0x080, "power brake"),
    (0x100, "display clocks"),
)
"""Bits of NVML for why clocks are lower than they could be; being idle is no such reason."""
SLOWDOWNS = frozenset(name for bit, name in _REASONS if bit != 0x100)


@functools.cache
def load() -> Any:
    """Import nvidia-ml-py and return its module.

    Raises:
        UnavailableError: It is not installed.
    """
    try:
        return importlib.import_module("pynvml")
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) and error.name == "pynvml":
            raise UnavailableError(
                "nvidia-ml-py is not installed", hint=install_hint("gpu")
            ) from None
        raise UnavailableError(
            f"nvidia-ml-py cannot be loaded: {error}", hint=install_hint("gpu")
        ) from error


class Nvml:
    """One GPU as the driver sees it. Close it at the end.

    Args:
        device: Number of the CUDA device, or its PCI bus address.
        module: ``pynvml`` or a stand-in for it.

    Raises:
        UnavailableError: The library, the driver or the device is not there.
    """

    def __init__(self, device: int | str = 0, module: Any = None) -> None:
        self._nvml = module if module is not None else load()
        self._open = False
        try:
            self._nvml.nvmlInit()
            self._open = True
            self.bus_id = device if isinstance(device, str) else _bus_id(device)
            self.handle = self._find(device)
            """What NVML's own functions take."""
        except self._nvml.NVMLError as error:
            self.close()
            raise UnavailableError(f"NVML: {error}") from error
        except UnavailableError:
            self.close()
            raise
        self.bus_id = self.bus_id or self._text("nvmlDeviceGetPciInfo", "busId")

    def _find(self, device: int | str) -> Any:
        if self.bus_id is not None:
            return self._nvml.nvmlDeviceGetHandleByPciBusId(self.bus_id.encode())
        if os.environ.get("CUDA_VISIBLE_DEVICES"):
            # The numbers of CUDA are then not those of the driver.
            raise UnavailableError("CUDA_VISIBLE_DEVICES does not identify the GPU")
        return self._nvml.nvmlDeviceGetHandleByIndex(int(device))

    def close(self) -> None:
        """Let go of the driver."""
        if self._open:
            self._open = False
            with contextlib.suppress(self._nvml.NVMLError):
                self._nvml.nvmlShutdown()

    def ask(self, name: str, *arguments: Any) -> Any:
        """Call a query of NVML for this GPU; None where it is not supported, or the GPU is gone."""
        function = getattr(self._nvml, name, None)
        if function is None:
            return None
        try:
            return function(self.handle, *arguments)
        except (self._nvml.NVMLError, TypeError, ValueError):
            return None

    def environment(self) -> PlainValues:
        """Return what is constant: name, driver, limits; unknown ones are left out."""
        nvml = self._nvml
        memory = self.ask("nvmlDeviceGetMemoryInfo")
        limit = self.ask("nvmlDeviceGetEnforcedPowerLimit")
        persistence = self.ask("nvmlDeviceGetPersistenceMode")
        machine: PlainValues = {
            "gpu": self._text("nvmlDeviceGetName"),
            "gpu_driver": self._system_text("nvmlSystemGetDriverVersion"),
            "gpu_cuda_driver": self._cuda_version(),
            "gpu_bus": self.bus_id,
            "gpu_memory_bytes": None if memory is None else int(memory.total),
            "gpu_sm_mhz_max": self.ask("nvmlDeviceGetMaxClockInfo", nvml.NVML_CLOCK_SM),
            "gpu_memory_mhz_max": self.ask("nvmlDeviceGetMaxClockInfo", nvml.NVML_CLOCK_MEM),
            "gpu_power_limit_w": None if limit is None else limit / 1000,
            "gpu_persistence": None if persistence is None else bool(persistence),
        }
        return {name: value for name, value in machine.items() if value is not None}

    def state(self) -> PlainValues:
        """Return clocks, temperature, power and throttling now; unknown ones are left out."""
        nvml = self._nvml
        power = self.ask("nvmlDeviceGetPowerUsage")
        performance = self.ask("nvmlDeviceGetPerformanceState")
        reasons = self.throttling()
        state: PlainValues = {
            "gpu_sm_mhz": self.ask("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_SM),
            "gpu_memory_mhz": self.ask("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_MEM),
            "gpu_temperature_c": self.ask("nvmlDeviceGetTemperature", nvml.NVML_TEMPERATURE_GPU),
            "gpu_power_w": None if power is None else power / 1000,
            "gpu_performance_state": None if performance is None else f"P{performance}",
            "gpu_throttling": None if reasons is None else ", ".join(reasons) or "none",
        }
        return {name: value for name, value in state.items() if value is not None}

    def throttling(self) -> list[str] | None:
        """Return the reasons of lowered clocks; None if unknown."""
        bits = self.ask("nvmlDeviceGetCurrentClocksEventReasons")
        if bits is None:
            bits = self.ask("nvmlDeviceGetCurrentClocksThrottleReasons")
        return None if bits is None else [name for bit, name in _REASONS if bits & bit]

    def used_memory(self) -> int | None:
        """Return the bytes that this process uses on the GPU; None if unknown."""
        for process in self.ask("nvmlDeviceGetComputeRunningProcesses") or ():
            if process.pid == os.getpid() and process.usedGpuMemory is not None:
                return int(process.usedGpuMemory)
        return None

    def device_memory(self) -> int | None:
        """Return the bytes in use on the GPU by all processes, or None."""
        memory = self.ask("nvmlDeviceGetMemoryInfo")
        return None if memory is None else int(memory.used)

    def energy_mj(self) -> int | None:
        """Return the millijoules used since the driver was loaded, or None (before Volta)."""
        millijoules = self.ask("nvmlDeviceGetTotalEnergyConsumption")
        return None if millijoules is None else int(millijoules)

    def base_mhz(self) -> int | None:
        """Return the clock of the processors that the driver calls the default one, or None."""
        mhz = self.ask("nvmlDeviceGetDefaultApplicationsClock", self._nvml.NVML_CLOCK_GRAPHICS)
        return None if not mhz else int(mhz)

    def utilisation(self) -> dict[str, float]:
        """Return the percentages of time that the GPU and its memory were busy lately."""
        rates = self.ask("nvmlDeviceGetUtilizationRates")
        return {} if rates is None else {"gpu": float(rates.gpu), "memory": float(rates.memory)}

    def gpm(self) -> Gpm:
        """Return the meter of utilisation between two moments.

        Raises:
            UnavailableError: The GPU has none; Hopper and later do.
        """
        return Gpm(self._nvml, self.handle)

    def _text(self, name: str, attribute: str = "") -> str | None:
        value = self.ask(name)
        return _as_text(getattr(value, attribute) if attribute and value is not None else value)

    def _system_text(self, name: str) -> str | None:
        try:
            return _as_text(getattr(self._nvml, name)())
        except (self._nvml.NVMLError, AttributeError):
            return None

    def _cuda_version(self) -> str | None:
        try:
            number = int(self._nvml.nvmlSystemGetCudaDriverVersion())
        except (self._nvml.NVMLError, AttributeError):
            return None
        return f"{number // 1000}.{number % 1000 // 10}"


class Gpm:
    """Utilisation between two snapshots, of the units that counters measure in more detail."""

    def __init__(self, nvml: Any, handle: Any) -> None:
        self._nvml, self._handle = nvml, handle
        self._samples: list[Any] = []
        self._primed = False
        try:
            if not nvml.nvmlGpmQueryDeviceSupport(handle).isSupportedDevice:
                raise UnavailableError("NVML's GPM needs a Hopper GPU or a later one")
            self._samples = [nvml.nvmlGpmSampleAlloc(), nvml.nvmlGpmSampleAlloc()]
            nvml.nvmlGpmSampleGet(handle, self._samples[0])
            self._primed = True
        except (nvml.NVMLError, AttributeError) as error:
            self.close()
            raise UnavailableError(f"NVML's GPM does not work here: {error}") from error

    def read(self) -> dict[str, float]:
        """Return the values since the last call; unknown ones are left out.

        ``sm``, ``tensor`` and ``dram`` are percentages of the peak, ``pcie`` is bytes per second.
        """
        nvml = self._nvml
        if not self._primed:
            return {}
        before, after = self._samples
        wanted = {
            nvml.NVML_GPM_METRIC_SM_UTIL: ("sm", 1.0),
            nvml.NVML_GPM_METRIC_ANY_TENSOR_UTIL: ("tensor", 1.0),
            nvml.NVML_GPM_METRIC_DRAM_BW_UTIL: ("dram", 1.0),
            nvml.NVML_GPM_METRIC_PCIE_TX_PER_SEC: ("pcie", float(_MIB)),
            nvml.NVML_GPM_METRIC_PCIE_RX_PER_SEC: ("pcie", float(_MIB)),
        }
        try:
            nvml.nvmlGpmSampleGet(self._handle, after)
            query = nvml.c_nvmlGpmMetricsGet_t()
            query.version = nvml.NVML_GPM_METRICS_GET_VERSION
            query.numMetrics = len(wanted)
            query.sample1, query.sample2 = before, after
            for slot, number in enumerate(wanted):
                query.metrics[slot].metricId = number
            nvml.nvmlGpmMetricsGet(query)
        except nvml.NVMLError:
            return {}
        self._samples.reverse()
        readings: dict[str, float] = {}
        for slot, (name, factor) in enumerate(wanted.values()):
            metric = query.metrics[slot]
            if metric.nvmlReturn == nvml.NVML_SUCCESS and metric.value == metric.value:
                readings[name] = readings.get(name, 0.0) + metric.value * factor
        return readings

    def close(self) -> None:
        """Free the snapshots."""
        for sample in self._samples:
            with contextlib.suppress(self._nvml.NVMLError):
                self._nvml.nvmlGpmSampleFree(sample)
        self._samples, self._primed = [], False


def _as_text(value: Any) -> str | None:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return None if value is None else str(value)


def _bus_id(device: int) -> str | None:
    """Return the PCI address of a CUDA device from the CUDA driver, or None."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    handle, text = ctypes.c_int(), ctypes.create_string_buffer(32)
    steps: tuple[Callable[[], int], ...] = (
        lambda: int(cuda.cuInit(0)),
        lambda: int(cuda.cuDeviceGet(ctypes.byref(handle), device)),
        lambda: int(cuda.cuDeviceGetPCIBusId(text, len(text), handle)),
    )
    if any(step() for step in steps):
        return None
    return text.value.decode("ascii", "replace") or None
