"""What the benchmark of checks measures, each in a process of its own."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from pathlib import Path

PEER_LIMIT_S = 60.0
"""Seconds after which Polygraphy is stopped: it runs the model, too."""


def document_lint(path: str) -> dict[str, float]:
    """Check an open model with our own rules, all at once, and in slices."""
    from dld_tui.core.checks import check
    from dld_tui.core.checks.checker import Checker
    from dld_tui.core.document import Document
    from dld_tui.core.operators.registry import known_domains

    document = Document.open(path)
    document.main.producer("")
    document.main.find("")
    known_domains()
    start = time.perf_counter()
    found = check(document)
    whole = time.perf_counter() - start
    checker = Checker(document)
    slices = []
    steps, last = checker.steps(), time.perf_counter()
    for _ in steps:
        now = time.perf_counter()
        slices.append(now - last)
        last = time.perf_counter()
    return {
        "ms": whole * 1000,
        "worst_slice_ms": max(slices) * 1000,
        "findings": len(found),
    }


def onnx_lint(path: str) -> dict[str, float]:
    """Check a loaded model with onnx's checker."""
    import onnx

    model = onnx.load(path)
    start = time.perf_counter()
    onnx.checker.check_model(model)
    return {"ms": (time.perf_counter() - start) * 1000}


def polygraphy_lint(path: str) -> dict[str, float]:
    """Lint a model with Polygraphy, its start included; no figure where it is not installed."""
    script = Path(sys.executable).with_name("polygraphy")
    if not script.exists():
        return {"ms": 0.0}
    command = [str(script), "check", "lint", path]
    start = time.perf_counter()
    # Where it takes longer, the figure is the limit.
    with contextlib.suppress(subprocess.TimeoutExpired):
        subprocess.run(command, capture_output=True, check=False, timeout=PEER_LIMIT_S)
    return {"ms": (time.perf_counter() - start) * 1000}
