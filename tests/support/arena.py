"""What ONNX Runtime's arena hands out in a run, from its own profile."""

from __future__ import annotations

import ctypes
import functools
import json
import multiprocessing
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from dld_tui.backends.onnxruntime.runtime import load


@functools.cache
def exact_arena() -> None:
    """Have sessions that ask for it share an arena that hands out what is asked for, once."""
    runtime = load()
    place = runtime.OrtMemoryInfo(
        "Cpu", runtime.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, runtime.OrtMemType.DEFAULT
    )
    exact = {
        "max_mem": 0, "arena_extend_strategy": 1, "initial_chunk_size_bytes": 256,
        "max_dead_bytes_per_chunk": 1,
    }  # fmt: skip
    runtime.create_and_register_allocator(place, runtime.OrtArenaCfg(exact))


class Peak(NamedTuple):
    """The most bytes of activations in use."""

    after_nodes: int
    with_scratch: int
    """Within nodes, too: with what kernels ask for while they run."""
    before: int
    """In use before the first node: weights."""


def measured(path: Path, feed: Mapping[str, Any], threads: int = 1, *, reuse: bool = True) -> Peak:
    """Return what a session that runs once has in use."""
    rows = _rows(str(path), feed, "ORT_ENABLE_ALL", threads, reuse=reuse)
    first = min(rows, key=lambda row: row.begin)
    before = first.used - first.grown
    return Peak(
        max(row.used for row in rows) - before, max(row.most for row in rows) - before, before
    )


def measured_apart(path: Path, feed: Mapping[str, Any], threads: int = 1) -> Peak:
    """Return the same of a process of its own: the peak of an arena is that of all its sessions."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["numpy", "dld_tui.backends.onnxruntime.session"])
    with context.Pool(1) as pool:
        return pool.apply(measured, (path, feed, threads))


def session_bytes(path: Path) -> int:
    """Return by how much a session makes a new process grow, without what malloc keeps."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["numpy", "dld_tui.backends.onnxruntime.session"])
    with context.Pool(1) as pool:
        return pool.apply(_session_bytes, (path,))


def _session_bytes(path: Path) -> int:
    runtime, trim = load(), ctypes.CDLL(None).malloc_trim
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    trim(0)
    before = own_bytes()
    session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    trim(0)
    grown = own_bytes() - before
    del session
    return grown


def own_bytes() -> int:
    """Return the memory of this process that no file backs."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    line = next(line for line in status.splitlines() if line.startswith("RssAnon"))
    return 1024 * int(line.split()[1])


def deltas(model: bytes, feed: Mapping[str, Any]) -> dict[str, int]:
    """Return by how many bytes each node of a model as it is adds to what is in use."""
    return {row.node: row.grown for row in _rows(model, feed, "ORT_DISABLE_ALL")}


class _Row(NamedTuple):
    begin: float
    node: str
    used: int
    grown: int
    most: int
    """In use at any time so far."""


def _rows(
    model: str | bytes, feed: Mapping[str, Any], level: str, threads: int = 1, *, reuse: bool = True
) -> list[_Row]:
    exact_arena()
    runtime = load()
    with tempfile.TemporaryDirectory() as folder:
        options = runtime.SessionOptions()
        options.enable_profiling, options.profile_file_prefix = True, f"{folder}/run"
        options.intra_op_num_threads, options.log_severity_level = threads, 3
        options.enable_mem_pattern, options.enable_mem_reuse = False, reuse
        options.graph_optimization_level = getattr(runtime.GraphOptimizationLevel, level)
        options.add_session_config_entry("session.use_env_allocators", "1")
        session = runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        session.run(None, dict(feed))
        events = json.loads(Path(session.end_profiling()).read_text())
    return [
        _Row(
            event["ts"], event["name"].removesuffix("_kernel_time"),
            int(event["args"]["mem_bytes_in_use"]), int(event["args"]["mem_in_use_delta"]),
            int(event["args"]["mem_in_use_peak"]),
        )
        for event in events
        if event["cat"] == "Node" and event["name"].endswith("_kernel_time")
    ]  # fmt: skip
