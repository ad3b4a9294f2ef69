from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.activities.convert import opset
from dld_tui.activities.profile.onnxruntime import Request
from dld_tui.core.errors import UsageError
from dld_tui.core.events import Cancelled, Log, Progress
from dld_tui.core.notes import NoteKind
from dld_tui.targets.registry import named, requests_for


def test_each_target_gets_a_report_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net-box.dldprof").touch()
    plain = requests_for("p", Request(Path("sub/net.onnx")), ["box", "local"])
    assert [request.output for request in plain] == [
        Path("net-box-2.dldprof"), Path("net-local.dldprof"),
    ]  # fmt: skip
    given = Request(Path("net.onnx"), Path("out/r.dldprof"))
    assert [request.output for request in requests_for("p", given, ["a"])] == [
        Path("out/r-a.dldprof")
    ]


def test_what_cannot_run_on_several_targets() -> None:
    with pytest.raises(UsageError, match="twice"):
        requests_for("p", Request(Path("net.onnx")), ["a", "a"])
    convert = opset.Request(Path("a.onnx"), Path("b.onnx"), 20)
    with pytest.raises(UsageError, match="only one --target"):
        requests_for("convert_opset", convert, ["a", "b"])


def test_events_say_which_target_they_are_of() -> None:
    assert named(Log("x", NoteKind.ERROR), "box") == Log("box: x", NoteKind.ERROR)
    assert named(Progress(1, 2, "", "Measuring"), "box").stage == "box: Measuring"  # type: ignore[union-attr]
    assert named(Cancelled(), "box") == Cancelled()
