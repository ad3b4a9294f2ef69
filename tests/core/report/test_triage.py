from __future__ import annotations

from pathlib import Path

from dld_tui.core.report.records import Layer
from dld_tui.core.report.report import Report
from dld_tui.core.report.triage import notes_of
from tests.support.gpu_reports import make_gpu_report
from tests.support.profiles import told, write_report


def test_hostile_names_are_harmless(tmp_path: Path) -> None:
    layers = [(Layer("x" * 100_000 + "\x1b]0;t\x07[/b]", "Con\nv"), [1.0])]
    for line in text_of(write_report(tmp_path / "r", layers)).splitlines():
        assert line.isprintable()
        assert len(line) < 300


def text_of(path: Path) -> str:
    with Report.open(path) as report:
        return "\n".join(told(report))


def test_what_was_not_measured_is_said_once_with_its_reason(tmp_path: Path) -> None:
    why = "needs the group debug\x1b[2J"
    path = make_gpu_report(tmp_path / "g.dldprof", no_counters=why, absent="no driver")
    text = text_of(path)
    assert "GPU not measured: no driver" in text
    assert text.count("needs the group debug\\x1b[2J") == 1
    with Report.open(path) as report:
        levels = {note.text: note.kind for note in notes_of(report)}
    assert {kind for text, kind in levels.items() if why[:5] in text} == {"warning"}
