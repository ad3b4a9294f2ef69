"""What texts, pages and the screen call the rows of a report and their times."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dld_tui.core.reading.export import report_json, report_page
from dld_tui.core.report.layer_table import summarise_selection
from dld_tui.core.report.report import open_report
from dld_tui.widgets.results.layers import screen_table, sums_text
from tests.support.profiles import told


def _words_of(path: Path) -> tuple[Any, str, str, str]:
    """Return JSON, text, HTML, and the screen's title of the names and line of marked rows."""
    with open_report(path) as report:
        table = screen_table(report.layers, report.measurement, report.wording)
        names = next(column.title for column in table.columns if column.key == "name")
        marked = summarise_selection(report.layers)
        assert marked is not None
        line = f"{names}: {sums_text(marked, report.wording)}"
        return report_json(report), "\n".join(told(report)), report_page(report), line


def test_texts_say_what_the_rows_and_their_times_are(tmp_path: Path) -> None:
    phases = tmp_path / "net.timing.json"
    phases.write_text(json.dumps([
        {"startH2dMs": at, "endH2dMs": at + 1, "startComputeMs": at + 1, "endComputeMs": at + 3,
         "startD2hMs": at + 3, "endD2hMs": at + 4, "h2dMs": 1, "computeMs": 2, "d2hMs": 1,
         "latencyMs": 4, "startEnqMs": at, "endEnqMs": at + 0.5}
        for at in range(1000, 1100, 10)
    ]))  # fmt: skip
    document, text, html, line = _words_of(phases)
    assert (document["rows_are"], document["times_are"]) == (
        "phases",
        "means of the fastest quarter of passes",
    )
    assert "Times of phases are means of the fastest quarter of passes." in text
    assert ">phase</button>" in html
    assert ">layer</button>" not in html
    assert line.startswith("phase: ")

    means = tmp_path / "net.profile.json"
    means.write_text(json.dumps([
        {"count": 10}, {"name": "a", "timeMs": 20.0, "averageMs": 2.0, "medianMs": 1.0},
        {"name": "b", "timeMs": 20.0, "averageMs": 2.0, "medianMs": 2.0},
    ]))  # fmt: skip
    document, text, html, line = _words_of(means)
    assert (document["rows_are"], document["times_are"]) == ("layers", "means")
    assert "Times of layers are means." in text
    assert "median" not in text
    assert ">layer</button>" in html
    assert "100 % of all layers" in line
