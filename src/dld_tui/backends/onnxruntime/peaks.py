"""What a processor can do at most, as ONNX Runtime does it: a short test, once a machine."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import time
from typing import Any

import numpy as np
import onnx

from dld_tui.core import paths
from dld_tui.core.codec import decode, encode
from dld_tui.core.cost.roofline import Roof
from dld_tui.core.errors import DldError
from dld_tui.core.files.writer import write_text
from dld_tui.core.machine.environment import usable_threads

_SIDE = 512
_FAR, _NEAR, _TINY = 1 << 23, 1 << 16, 1
"""Elements of a sum: far beyond a cache, well within one, and next to nothing."""
_CHAIN = 4
_SECONDS = 0.05
_FILE = "peaks.json"
_BUSY = "on a busy machine"
"""Such figures are not kept for good."""


def cpu_roof(cpu: str, threads: int, version: str) -> Roof | None:
    """Return the peaks of this processor with a number of threads; None where they cannot be had.

    They are measured once and kept in the folder for caches.

    Args:
        cpu: Its name.
        threads: Of a session, 0 for as many as ONNX Runtime takes.
        version: Of ONNX Runtime.
    """
    path = paths.cache_dir() / _FILE
    key = f"{cpu}, {threads} threads, ONNX Runtime {version}"
    known: dict[str, Any] = {}
    with contextlib.suppress(OSError, ValueError, DldError):
        loaded = json.loads(path.read_text(encoding="utf-8"))
        known = loaded if isinstance(loaded, dict) else {}
        if key in known:
            roof = decode(Roof, known[key])
            if _BUSY not in roof.source or _is_busy():
                return roof
    try:
        roof = measure_roof(cpu, threads)
    # The seam: a build of ONNX Runtime that cannot run these is no reason to fail.
    except Exception:  # noqa: BLE001
        return None
    with contextlib.suppress(OSError, DldError):
        paths.ensure(path.parent)
        write_text(path, json.dumps({**known, key: encode(roof)}), overwrite=True)
    return roof


def measure_roof(cpu: str, threads: int) -> Roof:
    """Run products and sums of several sizes and return the best rates; takes half a second."""
    busy = _is_busy()
    square = np.random.default_rng(0).standard_normal((_SIDE, _SIDE)).astype(np.float32)
    whole = (square * 16).clip(-100, 100)
    work = 2 * _SIDE**3
    fp32 = _best_s(_product("MatMul", "float", "float"), {"x": square, "w": square}, threads)
    feeds = {"x": np.abs(whole).astype(np.uint8), "w": whole.astype(np.int8)}
    int8 = _best_s(_product("MatMulInteger", "uint8", "int8", "int32"), feeds, threads)
    far, near, tiny = (
        _best_s(_chain(size), {"x": np.ones(size, np.float32)}, threads)
        for size in (_FAR, _NEAR, _TINY)
    )
    return Roof(
        cpu,
        {"fp32": work / fp32, "int8": work / int8},
        bandwidth=_moved(_FAR) / far,
        near_bandwidth=_moved(_NEAR) / near,
        near_bytes=4 * 4 * _NEAR,
        launch_ms=1000 * tiny / (_CHAIN + 1),
        source=f"measured with ONNX Runtime{f' {_BUSY}' if busy else ''}",
    )


def _is_busy() -> bool:
    return os.getloadavg()[0] > usable_threads() / 2


def _product(operator: str, first: str, second: str, result: str = "float") -> str:
    shape = f"[{_SIDE}, {_SIDE}]"
    return (
        f"({first}{shape} x, {second}{shape} w) => ({result}{shape} y) {{ y = {operator} (x, w) }}"
    )


def _chain(size: int) -> str:
    """Return nodes that hand a tensor on; the result is small, so that none is made anew."""
    names = ["x", *(f"v{at}" for at in range(_CHAIN))]
    nodes = " ".join(f"{b} = Neg ({a})" for a, b in itertools.pairwise(names))
    last = f"y = ReduceMax <keepdims = 0> ({names[-1]})"
    return f"(float[{size}] x) => (float y) {{ {nodes} {last} }}"


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
