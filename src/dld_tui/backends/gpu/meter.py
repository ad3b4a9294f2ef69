"""Values of a GPU that are asked for again and again: NVML's, and the files of a Jetson.

Coarser than hardware counters, and without their privileges: the fallback for a timeline, and the
meter that is shown while a job runs.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dld_tui.backends.gpu.jetson import Jetson
from dld_tui.backends.gpu.nvml import Nvml
from dld_tui.core.errors import UnavailableError
from dld_tui.core.gpu.records import CounterSpec, Series
from dld_tui.core.report.records import CounterSource

GPM_ROWS: Mapping[str, CounterSpec] = {
    "sm": CounterSpec("SM_UTIL", "SM active"),
    "dram": CounterSpec("DRAM_BW_UTIL", "DRAM"),
    "tensor": CounterSpec("ANY_TENSOR_UTIL", "Tensor Core"),
    "pcie": CounterSpec("PCIE_TX_PER_SEC+PCIE_RX_PER_SEC", "PCIe", "bytes/s", None),
}
NVML_ROWS: Mapping[str, CounterSpec] = {
    "gpu": CounterSpec("utilization.gpu", "GPU busy"),
    "memory": CounterSpec("utilization.memory", "Memory busy"),
}
JETSON_ROWS: Mapping[str, CounterSpec] = {
    "gpu": CounterSpec("load", "GPU load"),
    "gpu_mhz": CounterSpec("cur_freq", "GPU clock", "MHz", None),
    "memory": CounterSpec("mc_all", "Memory traffic"),
}


@dataclass(frozen=True)
class Meter:
    """Something to ask for values."""

    source: CounterSource
    rows: Mapping[str, CounterSpec]
    read: Callable[[], Mapping[str, float]]
    """Returns values by the keys of `rows`; what cannot be told is left out."""
    close: Callable[[], None]
    interval_s: float
    """How often new values are there."""


def gpm_meter(gpu: Nvml) -> Meter:
    """Return the meter of NVML's GPM.

    Raises:
        UnavailableError: The GPU has none.
    """
    gpm = gpu.gpm()
    return Meter("nvml-gpm", GPM_ROWS, gpm.read, gpm.close, 0.05)


def nvml_meter(gpu: Nvml) -> Meter:
    """Return the meter of NVML's utilisation.

    Raises:
        UnavailableError: The driver does not tell it.
    """
    if not gpu.utilisation():
        raise UnavailableError("NVML does not tell the utilisation of this GPU")
    return Meter("nvml", NVML_ROWS, gpu.utilisation, _nothing, 0.1)


def jetson_meter(board: Jetson) -> Meter:
    """Return the meter of a Jetson's files.

    Raises:
        UnavailableError: This is no Jetson, or none of its files can be read.
    """
    if not board.read():
        raise UnavailableError("there is no file that tells the load of the GPU")
    return Meter("sysfs", JETSON_ROWS, board.read, _nothing, 0.05)


def _nothing() -> None:
    """Do nothing: there is nothing to close."""


class PollingSampler:
    """Asks a meter again and again on a thread of its own, between start and stop.

    Args:
        meter: Whom to ask; closed at the end.
        clock_ns: The time of a sample, in nanoseconds of the Unix epoch.
    """

    def __init__(self, meter: Meter, clock_ns: Callable[[], int] = time.time_ns) -> None:
        self._meter, self._clock_ns = meter, clock_ns
        self._series = {key: Series(spec, meter.source) for key, spec in meter.rows.items()}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="gpu-meter", daemon=True)
        self.absent: list[Series] = []
        """As for hardware counters; here it is known at the end only."""

    def start(self) -> None:
        """Begin."""
        self._meter.read()  # for a meter that tells of the time since it was asked last
        self._thread.start()

    def stop(self) -> list[Series]:
        """Stop and return all rows; one without samples says why."""
        self.close()
        self.poll()
        self._meter.close()
        for one in self._series.values():
            if not one.samples:
                one.absent = "the driver does not tell it"
        return list(self._series.values())

    def close(self) -> None:
        """Stop asking."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    def poll(self) -> None:
        """Ask once."""
        values = self._meter.read()
        now = self._clock_ns()
        for key, value in values.items():
            if key in self._series:
                self._series[key].samples.append((now, value))

    def _run(self) -> None:
        while not self._over.wait(self._meter.interval_s):
            self.poll()
