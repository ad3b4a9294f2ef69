"""Small reports made by code, for screens and widgets."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from dld_tui.core.report.records import Layer, NodeLink
from dld_tui.core.report.store import ReportWriter
from dld_tui.core.types import JSON

HOSTILE = "/blk[0]/Conv [/weight]\x1b[31m\u202e畳み込み"
"""Markup, a terminal escape, a bidirectional override and wide characters in one name."""
_TYPES = ("Conv", "Relu", "MatMul", "Add", "Softmax")


def writer(
    path: Path,
    network: str = "tiny.onnx",
    device: str = "a processor",
    model: Path | None = None,
    **settings: JSON,
) -> ReportWriter:
    """Start a report of `model`, by default of one that is not there."""
    facts: dict[str, JSON] = {"path": str(model or path.parent / "tiny.onnx")}
    if model is not None:
        status = model.stat()
        facts |= {"bytes": status.st_size, "mtime_ns": status.st_mtime_ns}
    return ReportWriter.create(
        path,
        network=network,
        backend="ONNX Runtime 1.31.1",
        execution_provider="CPU",
        device=device,
        model=facts,
        settings={"iterations": 20, "provider": "CPU", "shape": ["x:1x3x8x8"], **settings},
        environment={"python": "3.11", "clocks": {"locked": False}},
    )


def layer(index: int, name: str = "", **more: object) -> Layer:
    """Return a layer to write, linked to one node."""
    kind = _TYPES[index % len(_TYPES)]
    text = name or f"/block.{index // 5}/{kind.lower()}_{index}"
    facts: dict[str, object] = {
        "input_dims": ((1, 8, 16, 16),),
        "output_dims": ((1, 8, 16, 16),),
        "provider": "CPUExecutionProvider",
        "precision": "float32",
        "nodes": (NodeLink((), text, text, kind),),
        "confidence": "name",
        **more,
    }
    return Layer(text, kind, **facts)  # type: ignore[arg-type]


def make_report(
    path: Path,
    layers: int = 10,
    passes: int = 5,
    *,
    names: Sequence[str] = (),
    latencies: int = 20,
    finish: bool = True,
    seed: int = 1,
    zero: bool = False,
    network: str = "tiny.onnx",
    device: str = "a processor",
    model: Path | None = None,
) -> Path:
    """Write a report whose layers run one after another, and return its path.

    Times are drawn, or all 0; without `finish` it is left as a killed run does.
    """
    dice = random.Random(seed)
    lengths = [0.0 if zero else dice.expovariate(1 / 40) + 1 for _ in range(layers)]
    made = writer(path, network, device, model)
    total = sum(lengths) + 10
    made.add_latencies(total / 1000 * dice.uniform(0.98, 1.1) for _ in range(latencies))
    for index in range(layers):
        made.add_layer(layer(index, names[index] if index < len(names) else ""))
    for number in range(passes):
        rows: list[tuple[int, float, float, float, int | str]] = []
        start = at = number * (total + 100)
        for index, length in enumerate(lengths):
            took = length * (1 + 0.02 * number)
            rows.append((index, at, took, took, 4711))
            at += took
        made.add_pass(number, start, at - start + 5)
        made.add_samples(number, rows)
    made.note("made by a test")
    if finish:
        made.finish()
    else:
        made.flush()
        made.abort("killed by a test")
    return path


def make_nested_report(path: Path) -> Path:
    """Write a report of one pass with an If whose body has three layers, and a second thread."""
    made = writer(path)
    for index, name in enumerate(("start", "If_0", "a", "b", "c", "end", "other")):
        made.add_layer(layer(index, name))
    made.add_pass(0, 0, 1000)
    made.add_samples(
        0,
        [
            (0, 0, 100, 100, 1),
            (1, 100, 700, 100, 1),
            (2, 110, 200, 200, 1),
            (3, 320, 300, 300, 1),
            (4, 650, 100, 100, 1),
            (5, 800, 200, 200, 1),
            (6, 300, 400, 400, 2),
        ],
    )
    made.finish()
    return path
