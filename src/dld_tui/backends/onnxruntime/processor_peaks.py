"""The peaks of this machine's processors, by execution provider; those of its CPU are measured."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import onnx

from dld_tui.backends.onnxruntime.runtime import CUDA_PROVIDERS, SUFFIX, version
from dld_tui.backends.onnxruntime.session_options import SessionSettings
from dld_tui.core.machine.environment import CpuWatch, usable_threads
from dld_tui.core.machine.peaks import (
    MemoryLevel,
    Peaks,
    PeakSource,
    Setup,
    gpu_peaks,
    measured_peaks,
)
from dld_tui.core.types import JSON

_SIDE = 512
_FAR, _TINY = 1 << 23, 1
"""Elements of a sum: far beyond a cache, and next to nothing."""
_CACHES = (1 << 16, 1 << 18, 1 << 20)
"""Those that caches hold."""
_CHAIN = 4
_SECONDS = 0.05
_BUSY = 0.1
"""The share of the hardware threads that others use, above which peaks are not the highest."""


def machine_peaks(environment: Mapping[str, JSON], settings: SessionSettings) -> dict[str, Peaks]:
    """Return what the devices of a machine can do at most, by execution provider."""
    peaks: dict[str, Peaks] = {}
    cpu = _cpu_peaks(str(environment.get("cpu", "")), settings.threads)
    if cpu is not None:
        peaks[f"CPU{SUFFIX}"] = cpu
    sheet = gpu_peaks(str(environment.get("gpu") or ""))
    if sheet is not None:
        cores = replace(sheet, flops={k: rate for k, rate in sheet.flops.items() if k != "tf32"})
        for name in CUDA_PROVIDERS:
            options = settings.provider_options.get(name, {})
            peaks[f"{name}{SUFFIX}"] = cores if options.get("use_tf32") == "0" else sheet
    return peaks


def _cpu_peaks(cpu: str, threads: int) -> Peaks | None:
    """Return the peaks of this processor with a number of threads; None where they cannot be had.

    Args:
        cpu: Its name.
        threads: Of a session, 0 for as many as ONNX Runtime takes.
    """
    try:
        return measured_peaks(Setup(cpu, threads, version()), lambda: measure_peaks(cpu, threads))
    # The seam: a build of ONNX Runtime that cannot run these is no reason to fail.
    except Exception:  # noqa: BLE001
        return None


def measure_peaks(cpu: str, threads: int) -> Peaks:
    """Run products and sums of several sizes and return the best rates; takes half a second."""
    watch = CpuWatch()
    square = np.random.default_rng(0).standard_normal((_SIDE, _SIDE)).astype(np.float32)
    whole = (square * 16).clip(-100, 100)
    work = 2 * _SIDE**3
    fp32 = _best_s(_product("MatMul", "float", "float"), {"x": square, "w": square}, threads)
    feeds = {"x": np.abs(whole).astype(np.uint8), "w": whole.astype(np.int8)}
    int8 = _best_s(_product("MatMulInteger", "uint8", "int8", "int32"), feeds, threads)
    far, tiny, *caches = (
        _best_s(_chain(size), {"x": np.ones(size, np.float32)}, threads)
        for size in (_FAR, _TINY, *_CACHES)
    )
    others = watch.environment().get("other_busy_threads")
    return Peaks(
        cpu,
        {"fp32": work / fp32, "int8": work / int8},
        bandwidth=_moved(_FAR) / far,
        caches=tuple(
            MemoryLevel(_moved_each(size), _moved(size) / s)
            for size, s in zip(_CACHES, caches, strict=True)
        ),
        far_bytes=_moved_each(_FAR),
        launch_ms=1000 * tiny / (_CHAIN + 1),
        source=PeakSource.MEASURED,
        measured_s=time.time(),
        busy=isinstance(others, float) and others > _BUSY * usable_threads(),
    )


def _product(operator: str, first: str, second: str, result: str = "float") -> str:
    shape = f"[{_SIDE}, {_SIDE}]"
    return (
        f"({first}{shape} x, {second}{shape} w) => ({result}{shape} y) {{ y = {operator} (x, w) }}"
    )


def _chain(size: int) -> str:
    """Return nodes that pass a tensor on; their small result avoids allocations."""
    names = ["x", *(f"v{at}" for at in range(_CHAIN))]
    nodes = " ".join(f"{b} = Neg ({a})" for a, b in itertools.pairwise(names))
    last = f"y = ReduceMax <keepdims = 0> ({names[-1]})"
    return f"(float[{size}] x) => (float y) {{ {nodes} {last} }}"


def _moved_each(size: int) -> int:
    """Return how many bytes each node of a chain reads and writes."""
    return 2 * 4 * size


def _moved(size: int) -> int:
    return (2 * _CHAIN + 1) * 4 * size


def _best_s(graph: str, feeds: dict[str, Any], threads: int) -> float:
    import onnxruntime as ort

    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> peaks {graph}')
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = ort.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    session.run(None, feeds)
    times: list[float] = []
    end = time.perf_counter() + _SECONDS
    while len(times) < 2 or time.perf_counter() < end:
        start = time.perf_counter()
        session.run(None, feeds)
        times.append(time.perf_counter() - start)
    return min(times)
