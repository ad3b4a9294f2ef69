"""What the benchmark of checks measures, each in a process of its own."""

from __future__ import annotations

import contextlib
import gc
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

PEER_LIMIT_S = 60.0
"""Seconds after which Polygraphy is stopped: it runs the model, too."""

_ROUNDS = 20
"""How often each kind of edit is made."""


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


def document_updates(path: str) -> dict[str, float]:
    """Make single-node edits and undo them, and check after each what it may have changed."""
    from dld_tui.core.checks.checker import Checker
    from dld_tui.core.document import Change, Document

    document = Document.open(path)
    checker = Checker(document)
    checker.run()
    gc.freeze()  # as the user interface does: collections would be measured instead
    times: dict[str, list[float]] = {}
    kind = ""

    def changed(change: Change) -> None:
        start = time.perf_counter()
        checker.update(change)
        times.setdefault(kind, []).append((time.perf_counter() - start) * 1000)

    document.on_change.append(changed)
    middle = len(document.main.nodes) // 2
    for turn in range(_ROUNDS):
        node = document.main.nodes[middle + turn]
        value = node.outputs[0]
        edits: tuple[tuple[str, dict[str, Any]], ...] = (
            ("rename_node", {"node": node.ref, "name": f"renamed_{turn}"}),
            ("rename_value", {"value": value, "name": f"value_{turn}"}),
            ("set_attribute", {"node": node.ref, "attribute": "a", "kind": "int", "value": 1}),
            ("insert_node", {"value": value, "op_type": "Abs"}),
            ("delete_nodes", {"nodes": [node.ref], "reconnect": True}),
        )
        for kind, arguments in edits:
            document.apply(kind, scope=[], **arguments)
            document.undo()
            if not checker.done:
                checker.run()
    return {kind: statistics.quantiles(found, n=20)[-1] for kind, found in times.items()}


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
