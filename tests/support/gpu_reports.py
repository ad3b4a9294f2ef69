"""Reports of a GPU made by code: launches on a thread, kernels on streams, counters over time."""

from __future__ import annotations

import math
import sqlite3
from pathlib import Path

from dld_tui.core.report import schema
from dld_tui.core.report.records import GpuEvent, Layer, PassState
from dld_tui.core.report.store import ReportWriter
from dld_tui.core.types import JSON
from tests.support.report_files import layer

CUDA = "CUDAExecutionProvider"
KERNELS = (
    "sm90_xmma_fprop_implicit_gemm_f32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize64x64x32",
    "void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true, (cudnnKernelDataType_t)2>",
    "_ReluElementWiseKernel(float const*, float*, int)",
)
LAUNCH_US = 12.0
"""The processor's time for each layer."""
SAMPLE_US = 5.0
_KERNEL_US = (30.0, 6.0, 3.0)
_COUNTERS = (
    ("sm__cycles_active.avg.pct_of_peak_sustained_elapsed", "SM active", "%", 100.0),
    ("sm__pipe_tensor_cycles_active.avg", "Tensor", "%", 100.0),
    ("dram__throughput.avg", "DRAM", "%", 100.0),
    ("pcie__read_bytes.sum.per_second", "PCIe read", "GB/s", None),
)


def gpu_writer(path: Path, provider: str = "CUDA") -> ReportWriter:
    """Start a report of a run on a GPU."""
    return ReportWriter.create(
        path,
        network="resnet.onnx",
        backend="ONNX Runtime 1.31.1",
        execution_provider=provider,
        device="NVIDIA H200",
        model={},
        settings={"iterations": 20, "provider": provider},
        environment={
            "python": "3.11",
            "gpu": "NVIDIA H200",
            "gpu_driver": "580.95.05",
            "gpu_memory_bytes": 150_754_820_096,
            "gpu_sm_mhz": 1980,
            "gpu_sm_mhz_after": 1755,
            "gpu_temperature_c": 31,
            "gpu_clocks_locked": False,
            "gpu_throttling": "none",
            "gpu_throttling_after": "power cap",
        },
    )


def make_gpu_report(
    path: Path,
    layers: int = 12,
    passes: int = 3,
    *,
    absent: str | None = None,
    no_counters: str | None = None,
    fallback: int = 1,
    finish: bool = True,
    alone: int = 0,
) -> Path:
    """Write a report whose layers launch one to three kernels each, and return its path.

    The first `fallback` layers ran on the CPU. `alone` passes of kernels alone follow the profiled
    ones; they take 1 % longer than the latency, the profiled ones then twice as long as without.
    """
    made = gpu_writer(path)
    for index in range(layers):
        provider = "CPUExecutionProvider" if index < fallback else CUDA
        made.add_layer(_layer(index, provider))
    length = layers * LAUNCH_US + 60
    made.add_latencies(length / 1000 * (1 + 0.01 * (n % 3)) for n in range(20))
    every = (2 if alone else 1) * length + 200
    for number in range(passes):
        start, stretch = number * every, 2.0 if alone else 1.0
        _add_pass(made, number, start, layers, fallback, absent is None, stretch)
    for number in range(passes, passes + alone):
        made.add_pass(number, number * every, 1.02 * length, PassState.KERNELS_ALONE)
        made.add_gpu_events(number, _events(layers, fallback, 1.0))
    if absent is not None:
        made.set_gpu_absent(absent)
    _add_counters(made, (passes + alone) * every, no_counters)
    if finish:
        made.finish()
    else:
        made.flush()
        made.abort("the GPU is lost")
    return path


def _layer(index: int, provider: str) -> Layer:
    return layer(index, provider=provider)


def _add_pass(
    made: ReportWriter,
    number: int,
    start: float,
    layers: int,
    fallback: int,
    events: bool,
    stretch: float,
) -> None:
    made.add_pass(number, start, stretch * (layers * LAUNCH_US + 60))
    rows: list[tuple[int, float, float, float, int | str]] = [
        (n, start + n * LAUNCH_US, LAUNCH_US - 2, LAUNCH_US - 2, 4711) for n in range(layers)
    ]
    made.add_samples(number, rows)
    if events:
        made.add_gpu_events(number, _events(layers, fallback, stretch))


def _events(layers: int, fallback: int, stretch: float) -> list[GpuEvent]:
    """Return what the GPU does in a pass; gaps are `stretch` times as long as they need be."""
    found = [GpuEvent("stream 7", "memcpy", "HtoD", 1.0, 8.0, None, 602_112)]
    at = 12.0
    for index in range(fallback, layers):
        for kernel in range(1 + index % 3):
            took = _KERNEL_US[kernel] * (0.2 + index % 5 / 4)
            at = max(at, stretch * (index * LAUNCH_US + 4))
            details: dict[str, JSON] = {"grid": [64, 1, 1], "block": [256, 1, 1], "registers": 90}
            name = KERNELS[kernel]
            found.append(GpuEvent("stream 7", "kernel", name, at, took, index, None, details))
            at += took + 0.5
    found.append(GpuEvent("stream 13", "memset", "memset", 20.0, 2.0, None, 4096))
    found.append(GpuEvent("stream 7", "memcpy", "DtoH", at + 1, 3.0, None, 4000))
    found.append(GpuEvent("overhead", "overhead", "activity buffer", 40.0, 5.0))
    return found


def _add_counters(made: ReportWriter, length: float, why: str | None) -> None:
    for place, (name, title, unit, maximum) in enumerate(_COUNTERS):
        if why is not None:
            made.add_absent_counter(title, why, name=name)
            continue
        counter = made.add_counter(name, title, unit, maximum, "cupti-pm")
        count = int(length / SAMPLE_US)
        made.add_counter_samples(
            counter,
            (
                (n * SAMPLE_US, 50 + 45 * math.sin(n / (3 + place)) * (1 - 0.2 * place))
                for n in range(count)
            ),
        )


def as_version_1(path: Path) -> Path:
    """Make a report one of version 1: what version 2 added is taken away."""
    database = sqlite3.connect(path)
    for table in set(schema.TABLES) - set(schema.table_names(1)):
        database.execute(f"DROP TABLE {table}")
    for table in schema.table_names(1):
        for column in set(schema.column_names(table)) - set(schema.column_names(table, 1)):
            database.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
    database.execute("PRAGMA user_version = 1")
    database.commit()
    database.close()
    return path
