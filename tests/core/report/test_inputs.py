"""What a report says of the inputs."""

from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.model.inputs.guessed_input import INPUTS
from dld_tui.core.report.measured_figures import input_lines, report_inputs
from dld_tui.core.report.report import Report
from dld_tui.core.report.store import ReportWriter
from dld_tui.core.types import JSON


def written(path: Path, inputs: JSON, settings: dict[str, JSON] | None = None) -> Path:
    writer = ReportWriter.create(
        path, network="n", backend="b", execution_provider="CPU", device="d", model={},
        settings=settings or {}, environment={},
    )  # fmt: skip
    writer.add_latencies([1.0])
    if inputs is not None:
        writer.set_property(INPUTS, inputs)
    return writer.finish()


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
