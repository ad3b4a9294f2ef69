from __future__ import annotations

import pytest

from dld_tui.cli.jobs import progress
from dld_tui.cli.jobs.progress import ProgressReporter, progress_text
from dld_tui.core.events import Log, Metric, Progress
from dld_tui.core.notes import NoteKind


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (Progress(40, 100, "passes", "latency"), "latency  40 of 100 passes  40 %"),
        (Progress(1_500_000, 3_000_000, "bytes"), "1.5 MB of 3 MB  50 %"),
        (Progress(7), "7"),
        (Progress(0, 0, "nodes", "odd\x1b"), r"odd\x1b  0 nodes"),
    ],
)
def test_progress_text(event: Progress, text: str) -> None:
    assert progress_text(event) == text


def test_without_a_terminal_only_warnings_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressReporter() as shown:
        for event in (
            Progress(1, 2),
            Log("plain"),
            Log("odd\x1b[1m", NoteKind.WARNING),
            Metric("m", 1),
        ):
            shown.event(event)
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "odd\\x1b[1m\n")


def test_in_a_terminal_progress_is_one_line_that_goes_away(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "is_terminal", lambda stream: True)
    monkeypatch.setenv("COLUMNS", "12")
    with ProgressReporter() as shown:
        shown.event(Progress(1, 4, "steps", "a long stage"))
        shown.event(Log("note"))
        shown.event(Log("quiet", NoteKind.DEBUG))
    line = "\r\x1b[Ka long sta…"
    assert capsys.readouterr().err == f"{line}\r\x1b[Knote\n{line}\r\x1b[K"


def test_a_long_read_tells_its_rate(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter((100.0, 100.1, 102.0))
    monkeypatch.setattr(progress, "is_terminal", lambda stream: True)
    monkeypatch.setattr("dld_tui.cli.jobs.progress.time.monotonic", lambda: next(clock))
    monkeypatch.setenv("COLUMNS", "80")
    shown = ProgressReporter()
    for done in (1_000_000, 2_000_000, 50_000_000):
        shown.bytes_read(done, 100_000_000)
    lines = capsys.readouterr().err.split("\r\x1b[K")
    assert lines[-2:] == ["reading  2 MB of 100 MB  2 %", "reading  50 MB of 100 MB  50 %  25 MB/s"]


def test_raw_lines_of_a_runtime_become_one_with_a_count(capsys: pytest.CaptureFixture[str]) -> None:
    line = "2026-01-02 03:04:05.6 [W:onnxruntime:, graph.cc:4437 CleanUnused] Removing {}\x1b[1m"
    with ProgressReporter() as shown:
        for name in ("a", "b", "c"):
            shown.event(Log(line.format(name), NoteKind.WARNING))
        shown.event(Log(line.replace("graph.cc", "other.cc").format("d"), NoteKind.WARNING))
        shown.event(Log(line.replace("[W", "[I").format("e"), NoteKind.INFO))
    assert capsys.readouterr().err.splitlines() == [
        "ONNX Runtime: Removing a\\x1b[1m (and 2 lines like it)",
        "ONNX Runtime: Removing d\\x1b[1m",
    ]
