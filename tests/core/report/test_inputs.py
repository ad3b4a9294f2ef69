"""What a report says of the inputs."""

from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.codec import encode
from dld_tui.core.model.inputs.guess import guess_inputs
from dld_tui.core.model.inputs.guessed_input import INPUTS
from dld_tui.core.model.inputs.shapes import InputSpec
from dld_tui.core.reading.export import report_json, report_page
from dld_tui.core.report.measured_figures import input_lines, report_inputs
from dld_tui.core.report.report import Report
from dld_tui.core.report.store import ReportWriter
from dld_tui.core.types import JSON

HOSTILE = "\x1b[2J<script>[bold]"


def written(path: Path, inputs: JSON, settings: dict[str, JSON] | None = None) -> Path:
    writer = ReportWriter.create(
        path, network="n", backend="b", execution_provider="CPU", device="d", model={},
        settings=settings or {}, environment={},
    )  # fmt: skip
    writer.add_latencies([1.0])
    if inputs is not None:
        writer.set_property(INPUTS, inputs)
    return writer.finish()


def test_what_was_guessed_is_in_lines_json_and_html(tmp_path: Path) -> None:
    specs = [
        InputSpec("ids", "int64", ("batch", "seq")),
        InputSpec("attention_mask", "int64", ("batch", "seq")),
        InputSpec(HOSTILE, "float32", ("batch", 3)),
        InputSpec("sr", "int64", ()),
    ]
    path = written(tmp_path / "r.dldprof", encode(guess_inputs(specs).recorded))
    with Report.open(str(path)) as report:
        lines = list(input_lines(report))
        page = report_page(report)
        data = report_json(report)["inputs"]
    assert lines[0] == (
        "ids and 1 more 1x128 (guessed: batch 1 by its name batch, sequence length 128 by its name"
        " seq)"
    )
    assert lines[2] == "sr scalar (16000)"
    assert all(line.isprintable() for line in lines)
    assert isinstance(data, list)
    assert data[1] == {
        "name": "attention_mask", "dtype": "int64", "shape": [1, 128], "guessed": True,
        "values": "ones", "why": "batch 1 by its name batch, sequence length 128 by its name seq",
        "reason": "batch 1 by its name batch, sequence length 128 by its name seq",
        "values_reason": "a mask by the name attention_mask",
    }  # fmt: skip
    assert "sequence length 128 by its name seq" in page
    assert "<script>[bold]" not in page


def test_a_report_without_reasons_has_its_shapes(tmp_path: Path) -> None:
    shapes: JSON = {"x": [1, 3], "y": []}
    path = written(tmp_path / "r.dldprof", None, {"input_shapes": shapes})
    with Report.open(str(path)) as report:
        assert list(input_lines(report)) == ["x 1x3", "y scalar"]


@pytest.mark.parametrize(
    "stored",
    [5, ["x"], [{"name": 3}], [{"name": "x", "shape": "1x3"}], [{"name": "x", "shape": [None]}]],
)
def test_what_is_damaged_is_left_out(stored: JSON, tmp_path: Path) -> None:
    with Report.open(str(written(tmp_path / "r.dldprof", stored))) as report:
        assert report_inputs(report) == []
