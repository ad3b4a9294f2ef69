"""ONNX Runtime profiles and reports for tests, made by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dld_tui.core.reading.first_lines import doubts
from dld_tui.core.report.formats.import_ort import add_ort_profile
from dld_tui.core.report.records import Layer
from dld_tui.core.report.report import Report
from dld_tui.core.report.store import ReportWriter
from dld_tui.core.report.triage import notes_of
from dld_tui.core.text import visible

Event = dict[str, Any]


def told(report: Report) -> list[str]:
    """Return all sentences on a report: what its first lines doubt, and the notes."""
    notes = (visible(note.text) for note in notes_of(report))
    return [*(text for sentences in doubts(report) for text in sentences), *notes]


def kernel(
    name: str, op_type: str, ts: int, dur: int, *, index: int = 0, tid: int = 1, **more: Any
) -> Event:
    """Return a kernel event as ONNX Runtime 1.22 and later write it."""
    arguments: dict[str, Any] = {
        "op_name": op_type,
        "provider": "CPUExecutionProvider",
        "node_index": str(index),
        "input_type_shape": [{"float": [1, 4]}],
        "output_type_shape": [{"float": [1, 4]}],
        "thread_scheduling_stats": "",
        **more,
    }
    return event("Node", f"{name}_kernel_time", ts, dur, tid, arguments)


def run(ts: int, dur: int, tid: int = 1) -> Event:
    """Return the event that ends a run of the model."""
    return event("Session", "model_run", ts, dur, tid, {})


def event(category: str, name: str, ts: int, dur: int, tid: int, arguments: Any) -> Event:
    return {
        "cat": category, "pid": 7, "tid": tid, "dur": dur, "ts": ts, "ph": "X",
        "name": name, "args": arguments,
    }  # fmt: skip


def write_profile(path: Path, events: Sequence[Event]) -> Path:
    """Write events the way ONNX Runtime does: one a line, with its odd spaces."""
    lines = [json.dumps(e, separators=(",", " :")) for e in events]
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")
    return path


def start_report(path: Path, **changes: Any) -> ReportWriter:
    """Start a report with everything that it must say."""
    facts: dict[str, Any] = {
        "network": "net",
        "backend": "ONNX Runtime 1.31.1",
        "execution_provider": "CPU",
        "device": "a processor",
        "model": {},
        "settings": {"iterations": 3},
        "environment": {"onnxruntime": "1.31.1"},
        **changes,
    }
    return ReportWriter.create(path, **facts)


def write_report(path: Path, layers: Sequence[tuple[Layer, Sequence[float]]]) -> Path:
    """Write a finished report of layers with their milliseconds in each pass."""
    with start_report(path) as report:
        numbers = [report.add_layer(layer) for layer, _ in layers]
        passes = max((len(times) for _, times in layers), default=0)
        for index in range(passes):
            start = index * 1e6
            report.add_pass(index, start, 1000 * sum(times[index] for _, times in layers))
            rows = []
            at = start
            for number, (_, times) in zip(numbers, layers, strict=True):
                took = 1000 * times[index]
                rows.append((number, at, took, took, 1))
                at += took
            report.add_samples(index, rows)
    return path


def ort_report(path: Path, source: Path) -> Path:
    """Write the report of a profile of ONNX Runtime, without its model."""
    with start_report(path) as report:
        add_ort_profile(report, source, None)
    return path
