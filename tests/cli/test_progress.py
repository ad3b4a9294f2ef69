"""What a terminal shows of a running job, and where there is none: progress.txt."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

from dld_tui.activities.convert.fp16 import Request
from dld_tui.activities.machine.doctor import Request as Doctor
from dld_tui.cli.jobs import progress
from dld_tui.cli.jobs.progress import AS_EVENTS, ProgressReporter, naming_cancels
from dld_tui.core.errors import CancelledError
from dld_tui.core.events import Event, Log, Metric, Phase, Progress, RateMeter
from dld_tui.core.notes import NoteKind
from dld_tui.core.params import param
from tests.support.recorded import Recorded

RAW = "2026-01-02 03:04:05.6 [{}:onnxruntime:, {}.cc:4437 CleanUnused] Removing {}\x1b[1m"
EVENTS: list[Event] = [
    Progress(7), Progress(0, 0, "nodes", "odd\x1b"), Progress(0, 0, "nodes", "odd\x1b"),
    Progress(40, 100, "passes", "latency"), Log("note"), Log("quiet", NoteKind.DEBUG),
    Log("odd\x1b[1m", NoteKind.WARNING), Log("wrong", NoteKind.ERROR), Metric("m", 1),
    Progress(1_500_000, 90_000_000, "bytes"), Progress(4_500_000, 90_000_000, "bytes"),
    Progress(5_000_000, None, "bytes"),
    Progress(1, 3, "steps", "stage", [Phase("outer", 1, 2), Phase("in\x1b", 0, 5)]),
    Progress(2.5, 3, "steps", "a stage that is longer than the terminal " + 4 * "is wide "),
    *(Log(RAW.format("W", "graph", name), NoteKind.WARNING) for name in "abc"),
    Log(RAW.format("E", "other", 300 * "d"), NoteKind.ERROR), Log(RAW.format("I", "graph", "e")),
]  # fmt: skip


def test_all_that_is_shown(
    recorded: Recorded, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    clock = SimpleNamespace(monotonic=lambda: now)
    monkeypatch.setattr(progress, "time", clock)
    monkeypatch.setattr(progress, "RateMeter", lambda: RateMeter(clock.monotonic))
    monkeypatch.setenv("COLUMNS", "80")
    texts = {}
    for where, is_live in (("a file", False), ("a terminal", True), ("a program", True)):
        monkeypatch.setattr(progress, "is_terminal", lambda stream, is_live=is_live: is_live)
        if where == "a program":
            monkeypatch.setenv(AS_EVENTS, "1")
        lines: list[str] = []
        with ProgressReporter() as shown:
            for event in EVENTS:
                now += 0.5
                shown.event(event)
                lines.append(f"{type(event).__name__}: {capsys.readouterr().err!r}")
            for megabytes, took in ((1, 9), (2, 0.25), (50, 0.25), (60, 1)):
                now += took
                shown.bytes_read(megabytes * 10**6, 10**8)
                lines.append(f"read: {capsys.readouterr().err!r}")
        end = capsys.readouterr()
        texts[where] = "\n".join([*lines, f"at the end: {end.err!r}{end.out}"])
    recorded("progress", texts)


def cancel(written: list[Path], hint: str) -> None:
    for path in written:
        path.write_text("new")
    raise CancelledError("cancelled", hint=hint)


@dataclass
class Both:
    """A request of two files."""

    report: Path = param(label="", help="The first.", kind="output")
    table: Path = param(label="", help="The second.", kind="output")


def cancelled(folder: Path) -> Iterator[str]:
    model, output = folder / "m\x1b.onnx", folder / "out.onnx"
    cases: list[tuple[str, object, list[Path], tuple[str, ...], str]] = [
        ("convert_fp16", Request(model, output), [], (), ""),
        ("convert_fp16", Request(model, output), [output], ("one", "two\x1b"), ""),
        ("convert_fp16", Request(model, output), [output], (), "Do this"),
        ("doctor", Doctor(), [folder / "other"], ("here",), ""),
        ("build_tensorrt", Request(model, folder / "none"), [], (), ""),
        ("doctor", Both(folder / "none", folder / "other"), [folder / "other"], (), ""),
    ]
    for activity, request, written, targets, hint in cases:
        for path in (output, folder / "other"):
            path.unlink(missing_ok=True)
        with pytest.raises(CancelledError) as caught, naming_cancels(activity, request, targets):
            cancel(written, hint)
        yield f"{caught.value.message} | {caught.value.hint}"


def test_what_a_cancelled_job_has_done(
    recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=iter(range(20)).__next__))
    recorded("cancelled", {"": "\n".join(cancelled(tmp_path)).replace(str(tmp_path), "FOLDER")})
