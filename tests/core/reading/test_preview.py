from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import time
from contextlib import closing
from pathlib import Path
from select import select
from threading import Thread
from typing import Any

import pytest

from dld_tui.core import fmt
from dld_tui.core.errors import CancelledError
from dld_tui.core.reading import preview as previews
from dld_tui.core.reading.preview import Preview, preview
from dld_tui.core.report.report import Report
from dld_tui.core.types import CancelCheck
from tests.support import models
from tests.support.known import known
from tests.support.report_files import make_report


def never() -> bool:
    return False


def said(found: Preview) -> list[object]:
    return [list(found.lines), list(found.parts), found.problem]


@pytest.mark.parametrize(("is_whole", "is_measured"), [(True, True), (True, False), (False, True)])
def test_a_report_is_told_alone_and_beside_its_model(
    is_whole: bool, is_measured: bool, tmp_path: Path
) -> None:
    model = models.write(tmp_path, models.CHAIN)
    path, other = tmp_path / "r.dldprof", tmp_path / "absent.dldprof"
    count = 20 if is_measured else 0
    make_report(path, passes=0, latencies=count, finish=is_whole, model=model)
    with Report.open(path) as report:
        assert (report.latency is not None) is is_measured
        figure = "nothing was measured"
        if report.latency is not None:
            figure = f"{fmt.three_digits(report.latency.median)} ms median on CPU"
    lines = preview(str(path), "REPORT", never).lines
    assert ("takes", figure) in lines
    assert (("", "stopped before its end") in lines) is not is_whole
    spoiled = tmp_path / "spoiled.dldprof"  # the newest of the model, and damaged since
    make_report(spoiled, model=model)
    with closing(sqlite3.connect(spoiled)) as connection, connection:
        connection.execute("UPDATE layers SET name = x'ff'")
    reports = [str(other), str(spoiled), str(path)]
    beside = dict(preview(str(model), "ONNX", never, reports).lines)
    assert beside["profile"] == f"{figure}, just now: r.dldprof"


@pytest.mark.parametrize(
    ("weights", "told"),
    [
        ("float[4] w = {1, 2, 3, 4}, float[2] v = {5, 6}", "6 parameters, 24 B, float32"),
        ("float[4] w = {1, 2, 3, 4}, int64[1] v = {5}, int64[1] u = {6}",
         "6 parameters, 32 B, float32 50 %, int64 50 %"),
    ],
)  # fmt: skip
def test_weights_are_told_by_their_types(tmp_path: Path, weights: str, told: str) -> None:
    text = models.CHAIN.replace("float[4] w = {1, 2, 3, 4}, float[2] unused = {5, 6}", weights)
    found = preview(str(models.write(tmp_path, text)), "ONNX", never)
    assert dict(found.lines)["weights"] == told


def test_the_newest_question_is_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the child does: half a question waits for the rest, and one gives way to the next."""
    (source, ask), (answers, sink) = os.pipe(), os.pipe()
    path = str(models.write(tmp_path, models.CHAIN))
    looked: list[bool] = []

    def slow(path: str, kind: str, cancelled: CancelCheck, reports: list[str]) -> Preview:
        looked.append(cancelled())
        if kind == "SLOW":
            os.write(ask, line(4, "ONNX"))
            looked.append(cancelled())
            raise CancelledError
        return preview(path, kind, cancelled, reports)

    def line(number: int, kind: str) -> bytes:
        return json.dumps([number, path, kind, []]).encode() + b"\n"

    monkeypatch.setattr(previews, "preview", slow)
    os.write(ask, line(1, "ONNX") + line(2, "ONNX") + line(3, "SLOW")[:5])
    thread = Thread(target=previews.main, args=(source, sink))
    thread.start()
    while select([source], [], [], 0)[0]:  # half of it is taken alone
        time.sleep(0)
    os.write(ask, line(3, "SLOW")[5:])
    number, *found = json.loads(os.read(answers, 1 << 16))
    assert (number, found) == (4, json.loads(json.dumps(said(preview(path, "ONNX", never)))))
    assert looked == [False, True, False]
    os.write(ask, line(5, "NONE"))
    assert os.read(answers, 1 << 16) == b'[5, [], [], ""]\n'
    os.close(ask)
    thread.join(30)
    monkeypatch.setattr(previews, "_IDLE_S", 0.01)
    idle, _ = pipe = os.pipe()
    previews.main(idle, sink)  # nothing is asked: it ends
    for end in (source, answers, sink, *pipe):
        os.close(end)


class BrokenChild:
    """A child that has just ended when it is asked."""

    def __init__(self) -> None:
        self.stdin = self

    def write(self, data: bytes) -> int:
        raise BrokenPipeError

    def poll(self) -> int | None:
        return None

    def close(self) -> None:
        pass


def test_another_child_takes_a_question_of_one_that_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(models.write(tmp_path, models.CHAIN))
    started = previews._started
    children: list[Any] = [BrokenChild, started, BrokenChild, BrokenChild]
    monkeypatch.setattr(previews, "_started", lambda: children.pop(0)())
    asked = previews.Previewer()
    try:
        assert said(asked.preview(path, "ONNX", never)) == said(preview(path, "ONNX", never))
        child = asked._process
        asked._asked_at = time.monotonic() - 1
        assert asked.preview(path, "ONNX", never).lines
        assert (asked._process, asked._asked_at) == (child, 0.0)
        asked._asked_at = time.monotonic() - 60  # it hangs: two new ones have ended as well
        assert said(asked.preview(path, "ONNX", never)) == said(preview(path, "ONNX", never))
        assert (children, asked._number) == ([], 3)
        looks = iter([False, True])
        with asked._lock, pytest.raises(CancelledError):
            asked.preview(path, "ONNX", lambda: next(looks))
    finally:
        asked.close()


def test_a_child_that_has_ended_leaves_no_zombie(tmp_path: Path) -> None:
    asked = previews.Previewer()
    asked.preview(str(tmp_path), "ONNX", never)
    child = known(asked._process)
    asked.preview(str(tmp_path), "ONNX", never)
    assert asked._process is child
    assert child.stdin is not None
    child.stdin.close()  # as when nothing was asked for a while
    limit = time.monotonic() + 30
    while child.returncode is None and time.monotonic() < limit:
        time.sleep(0.01)
    assert child.returncode == 0
    asked.close()


def test_a_file_that_ends_the_child_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(previews, "_START", "import sys; sys.stdin.readline()")
    found = previews.Previewer().preview(str(tmp_path), "ONNX", never)
    assert found.problem == "it cannot be read"


def test_a_child_that_starts_while_the_previewer_is_closed_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = previews._started
    children: list[subprocess.Popen[bytes]] = []

    def start_late() -> subprocess.Popen[bytes]:
        asked.close()
        children.append(start())
        return children[0]

    asked = previews.Previewer()
    monkeypatch.setattr(previews, "_started", start_late)
    with pytest.raises(CancelledError):
        asked.preview(str(tmp_path), "ONNX", never)
    (child,) = children
    assert child.wait(30)
    assert child.stdout is not None
    assert child.stdout.closed


def test_without_a_child_this_process_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> None:
        raise OSError

    monkeypatch.setattr(previews, "_started", refuse)
    path = str(models.write(tmp_path, models.CHAIN))
    found = previews.Previewer().preview(path, "ONNX", never)
    assert said(found) == said(preview(path, "ONNX", never))
