"""Session creation in ONNX Runtime: the time of each stage, and the provider of each node."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from dld_tui.backends.onnxruntime.session import Session
from dld_tui.backends.onnxruntime.session_options import SessionSettings
from dld_tui.core.report.startup import NodePlacement, Stage

_NO_PACKING = {"session.disable_prepacking": "1"}
_RECORD = {"session.record_ep_graph_assignment_info": "1"}
_LEVELS = (
    ("disabled", "parsing, checks, placement, kernels"),
    ("basic", "basic optimisation"),
    ("extended", "extended optimisation"),
    ("all", "layout optimisation"),
)
_NAMES = ("reading the file", *(name for _, name in _LEVELS), "packing of weights")
_NO_KERNEL = re.compile(r"(\w+) kernel not found in registries for Op type: (\S+) node name: (.*)")
_ON_CPU = re.compile(r"Force ?[fF]allback to CPU execution for node: (.*?) because (.*?)\.?$", re.M)


def time_session(model: Path, settings: SessionSettings) -> float:
    """Return the milliseconds that it takes to create a session, but not to destroy it.

    Raises:
        DldError: It cannot be created.
    """
    release_memory()
    begin = time.perf_counter()
    session = Session(model, settings)
    session_ms = 1000 * (time.perf_counter() - begin)
    del session
    return session_ms


def release_memory() -> None:
    """Return the memory of earlier sessions to the system.

    Otherwise a session is faster after another that needed as much: in a new process, the system
    has to clear each page first.
    """
    if not sys.platform.startswith("linux"):
        return
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:  # of the GNU C library
        trim(0)


def stages(
    model: Path, settings: SessionSettings, repeats: int
) -> Iterator[tuple[int, int, list[Stage], float]]:
    """Time the stages with alternating sessions, each of which does one thing more.

    Args:
        settings: Of the session; its optimization level is ignored.
        repeats: The number of repeats.

    Yields:
        The number of sessions created, of all, the stages so far, and a whole session.

    Raises:
        DldError: A session cannot be created.
    """
    kinds = [
        replace(settings, optimization_level=level, config={**settings.config, **_NO_PACKING})
        for level, _ in _LEVELS
    ]
    kinds.append(replace(settings, optimization_level="all"))
    times: list[list[float]] = [[] for _ in kinds]
    files: list[float] = []
    for repeat in range(repeats):
        begin = time.perf_counter()
        with model.open("rb") as file:
            while file.read(1 << 22):
                pass
        files.append(1000 * (time.perf_counter() - begin))
        for at, kind in enumerate(kinds):
            times[at].append(time_session(model, kind))
            known = [session_times for session_times in times if session_times]
            medians = [statistics.median(each) for each in known]
            steps = _steps([statistics.median(files), *medians])
            by_repeat = [_steps(each) for each in zip(files, *known, strict=False)]
            found = [
                Stage(name, ms, each)
                for name, ms, each in zip(_NAMES, steps, zip(*by_repeat, strict=True), strict=False)
            ]
            yield repeat * len(kinds) + at + 1, repeats * len(kinds), found, medians[-1]


def _steps(sums_ms: Sequence[float]) -> list[float]:
    """Return what each does more than the one before."""
    return [b - a for a, b in zip([0.0, *sums_ms], sums_ms, strict=False)]


def node_placements(model: Path, settings: SessionSettings) -> list[NodePlacement]:
    """Return the provider that ONNX Runtime assigns to each node, without a run; empty if unknown.

    Raises:
        DldError: The session cannot be created.
    """
    probe = replace(settings, config={**settings.config, **_RECORD}, verbose=True)
    with tempfile.TemporaryFile() as log:
        with _errors_to(log.fileno()):
            session = Session(model, probe)
            parts = session.assigned()
        log.seek(0)
        text = log.read().decode("utf-8", "replace")
    if parts is None:
        return []
    first = settings.providers[0]
    reasons = why_elsewhere(text)
    nodes = []
    for provider, name, op_type in parts:
        is_first = provider == first
        reason = "" if is_first else reasons.get(name, f"{first} does not take it")
        nodes.append(NodePlacement(name, op_type, provider, reason))
    return nodes


def why_elsewhere(log: str) -> dict[str, str]:
    """Return why nodes are not on a provider that was preferred, by name, from the log."""
    reasons = {}
    for provider, op_type, name in _NO_KERNEL.findall(log):
        reasons[name.strip()] = f"{provider} has no kernel of {op_type} for these types"
    for name, why in _ON_CPU.findall(log):
        reasons[name.strip()] = why.strip()
    return reasons


@contextlib.contextmanager
def _errors_to(descriptor: int) -> Iterator[None]:
    """Redirect the error stream of native libraries to an open file."""
    before = os.dup(2)
    try:
        os.dup2(descriptor, 2)
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)
