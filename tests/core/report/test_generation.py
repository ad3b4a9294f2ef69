"""The figures of a decoder."""

from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.reading.first_lines import latency_title
from dld_tui.core.report.generation import (
    GENERATION,
    GenerationFigures,
)
from dld_tui.core.report.report import Report
from tests.support.profiles import start_report


@pytest.mark.parametrize("repeats", [(2.0, 3.0, 9.0), ()])
def test_single_steps_of_a_file_are_no_repetitions(
    repeats: tuple[float, ...], tmp_path: Path
) -> None:
    row = GenerationFigures(1, 8, 2, 10.0, 12.0, 3.0, (1.0, 2.0), 64, repeats_ms=repeats)
    with start_report(tmp_path / "r.dldprof") as made:
        made.add_latencies([0.5, 1.5, 1.0, 2.0, 0.7, 8.3])
        made.set_property(GENERATION, [row])
    with Report.open(tmp_path / "r.dldprof") as report:
        assert report.latency is not None
        titles = {3: "time of a token over the repetitions", 6: "time of a token over the tokens"}
        assert latency_title(report) == titles[report.latency.count]
        assert report.latency.median == (row.token_ms if repeats else 1.25)
