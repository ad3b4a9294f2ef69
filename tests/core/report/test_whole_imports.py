"""All that files of other programs become in a report, compared with ``whole_imports.txt``."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dld_tui.core.codec import encode
from dld_tui.core.errors import DldError
from dld_tui.core.report.records import Layer
from dld_tui.core.report.report import Report, open_report
from tests.support.recorded import Recorded, fields_of, settled
from tests.support.transcript_files import FILES

NAMES = (
    "ort.json", "silero.json", "shufflenet.json", "cuda.json", "midway.json", "chrome.json",
    "twice.profile.json", "runs.profile.json", "unsound.profile.json", "cut.profile.json",
    "layers.profile.json", "enqueue.json", "times.json", "twice.timing.json", "warm.timing.json",
    "runs.timing.json", "gpu.dldprof", "nested.dldprof", "rich.dldprof", "killed.dldprof",
    "text.dldprof", "chain.onnx",
)  # fmt: skip
MOST = 7


def some(records: Any) -> Iterator[str]:
    """Yield the first records and the last one."""
    records = [*records]
    chosen = records if len(records) <= MOST else [*records[: MOST - 1], records[-1]]
    yield f"{len(records)} of them"
    yield from map(fields_of, chosen)


def content(report: Report) -> Iterator[str]:
    yield f"{report.network} | {report.backend} | {report.execution_provider} | {report.device}"
    yield f"{report.status} {report.is_order_certain} {report.joined_percent} {report.has_phases}"
    for name in ("model", "settings", "environment", "properties"):
        yield f"{name}: {json.dumps(getattr(report, name))}"
    yield from (f"{note.kind.value}: {note.text}" for note in report.notes)
    yield f"problems: {[*report.problems]}"
    yield f"latency: {encode(report.latency)}"
    yield f"profiled: {encode(report.profiled_latency)} {report.is_undistorted}"
    samples = report.latency_samples
    yield f"{len(samples)} samples {samples[:5]} typical {report.typical_pass}"
    yield from some(report.passes)
    layers: list[Layer] = [*report.layers]
    yield from some(layers)
    yield from (f"track {track}" for track in report.tracks)
    for pass_ in report.passes[:2]:
        yield from some(report.pass_events(pass_.index))
        yield from some(report.gpu_events(pass_.index))
    yield from some(report.counters)
    measured = report.measurement
    yield (
        f"total {measured.total_ms} cost {measured.cost_ms} covered {measured.covered_percent}"
        f" between {measured.between_percent}"
    )
    yield f"ranges {[measured.range_ms(layer) for layer in layers[:3]]}"
    for by in ("type", "provider", "scope"):
        yield from some(report.groups(by))


@pytest.mark.broad
def test_whole_imports(tmp_path: Path, recorded: Recorded) -> None:
    texts = {}
    for name in NAMES:
        path = tmp_path / name
        FILES[name](path)
        try:
            with open_report(path) as report:
                texts[name] = settled("\n".join(content(report)), tmp_path)
        except DldError as error:
            texts[name] = settled(str(error), tmp_path)
        for other in tmp_path.iterdir():  # what lies beside would be read with the next one
            shutil.rmtree(other) if other.is_dir() else other.unlink()
    recorded("whole_imports", texts)
