from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.backends.tensorrt import log as tensorrt_log
from dld_tui.backends.tensorrt.library import using
from dld_tui.backends.tensorrt.log import BuildLog, logger_of
from dld_tui.core.errors import SaveError
from dld_tui.core.events import Log
from dld_tui.core.notes import NoteKind
from tests.support.fake_tensorrt import fake_tensorrt

pytestmark = pytest.mark.usefixtures("replaces_all")


def said_by(take: list[tuple[str, str]], *, verbose: bool = False) -> list[Log]:
    said: list[Log] = []
    log = BuildLog(None, said.append, verbose)
    for severity, text in take:
        log.take(severity, text)
    log.close()
    return said


def test_the_file_has_every_line(tmp_path: Path) -> None:
    path = tmp_path / "b.log"
    said: list[Log] = []
    log = BuildLog(path, said.append)
    for severity in ("VERBOSE", "INFO", "INFO", "ERROR"):
        log.take(severity, "text")
    log.note("cast 3 layers")
    log.close()
    log.take("INFO", "after the end")  # a thread of the library that is late
    assert path.read_text().splitlines() == [
        "[V] text", "[I] text", "[I] text", "[E] text", "[dld] cast 3 layers",
    ]  # fmt: skip
    assert list(log.errors) == ["text"]
    assert list(log.tail)[:3] == ["[I] text", "[I] text", "[E] text"]


def test_the_file_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensorrt_log, "_MOST_BYTES", 30)
    path = tmp_path / "b.log"
    log = BuildLog(path, lambda _: None)
    for number in range(9):
        log.take("VERBOSE", f"line {number}")
    log.close()
    assert path.read_text().splitlines()[-1] == "[dld] The log is cut here: it is too long"
    assert len(path.read_text()) < 100


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(SaveError, match="the log cannot be written: Is a directory"):
        BuildLog(tmp_path, lambda _: None)


def test_the_logger_of_the_library() -> None:
    said: list[Log] = []
    trt = fake_tensorrt()
    with using(trt):
        logger = logger_of(BuildLog(None, said.append))
        logger.log(trt.ILogger.Severity.INTERNAL_ERROR, "bad")
        logger.log(trt.ILogger.Severity.VERBOSE, "detail")
    assert said == [Log("bad", NoteKind.ERROR)]


DETAILS = [("VERBOSE", "tactic 1"), ("INFO", "done")]
BANNER = [
    "ModelImporter.cpp:142: --- Begin node ---\nname: x", "-" * 64, "Input filename:   m.onnx",
    "Opset version:    15", "Doc string:  ", "",
]  # fmt: skip


@pytest.mark.parametrize(
    ("taken", "verbose", "said"),
    [
        ([("INFO", "begin\x1b[1m\n  and go"), ("WARNING", "slow"), ("ERROR", "bad")], False,
         [Log("begin\\x1b[1m and go"), Log("slow", NoteKind.WARNING), Log("bad", NoteKind.ERROR)]),
        (DETAILS, False, [Log("done")]),
        (DETAILS, True, [Log("tactic 1", NoteKind.DEBUG), Log("done")]),
        ([("WARNING", "again"), ("INFO", "other"), *[("WARNING", "again")] * 3], False,
         [Log("again", NoteKind.WARNING), Log("other"),
          Log("said 4 times: again", NoteKind.WARNING)]),
        ([("INFO", text) for text in (*BANNER, "Detected 1 inputs")], False,
         [Log("Detected 1 inputs")]),
    ],
    ids=["levels and foreign text", "no details", "details", "repeated", "banner of the parser"],
)  # fmt: skip
def test_what_is_said_of_lines(
    taken: list[tuple[str, str]], verbose: bool, said: list[Log]
) -> None:
    assert said_by(taken, verbose=verbose) == said
