"""``--json`` prints one document whatever becomes of the command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dld_tui import __main__ as entry
from dld_tui.cli import main
from dld_tui.core.errors import ExitStatus, UnavailableError
from tests.support.cli import Dld


@pytest.mark.parametrize(
    "words",
    [
        ("inspect", "gone.onnx"), ("check", "gone.onnx"), ("report", "gone.dldprof"),
        ("plan", "gone.trt.json"), ("diff", "gone.onnx", "b.onnx"), ("compare", "a", "b"),
        ("accuracy", "gone.onnx", "--round", "fp16"), ("target", "show", "gone"),
        ("profile", "onnxruntime", "gone.onnx"), ("convert", "fp16", "gone.onnx", "-o", "b.onnx"),
        ("tool", "run", "gone", "m.onnx"), ("profile", "onnxruntime", "m.onnx", "--target", "gone"),
        ("build", "gone.onnx"), ("extract", "gone.onnx", "-o", "b.onnx", "--outputs", "y"),
    ],
)  # fmt: skip
def test_a_failure_gives_a_document(
    words: tuple[str, ...], dld: Dld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = dld(*words, "--json")
    assert done.status not in (ExitStatus.DONE, ExitStatus.FOUND)
    assert done.json["error"]["message"]
    assert done.json["status"] == done.status


def test_a_file_that_is_no_model_is_named(dld: Dld, tmp_path: Path) -> None:
    path = tmp_path / "m\x1b[31m.onnx"
    path.write_text("no model")
    done = dld("inspect", path, "--json")
    assert done.json["error"]["where"] == str(path)
    assert "\x1b" not in done.out


def test_a_bug_gives_a_document(dld: Dld, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(argv: object) -> int:
        raise ValueError("a bug")

    monkeypatch.setattr(main, "_invoke", broken)
    assert "bug" in dld("doctor", "--json").json["error"]["message"]


def test_ctrl_c_gives_a_document(dld: Dld, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(argv: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(main, "_invoke", interrupted)
    assert dld("doctor", "--json").json["status"] == ExitStatus.CANCELLED


def test_ctrl_c_before_all_is_imported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(argv: list[str]) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(main, "run", interrupt)
    for option, written in (("--json", {"message": "cancelled", "where": None, "hint": None}),
                            ("--nodes", None)):  # fmt: skip
        monkeypatch.setattr("sys.argv", ["dld", "inspect", option, "m.onnx"])
        assert entry.main() == ExitStatus.CANCELLED
        out = capsys.readouterr().out
        assert (json.loads(out)["error"] if out else None) == written


def test_there_is_never_a_second_document(dld: Dld, monkeypatch: pytest.MonkeyPatch) -> None:
    def half(argv: object) -> int:
        from dld_tui.cli.output import write_json

        write_json({"a": 1})
        raise UnavailableError("too late")

    monkeypatch.setattr(main, "_invoke", half)
    done = dld("doctor", "--json")
    assert json.loads(done.out) == {"a": 1}
    assert done.status == ExitStatus.UNAVAILABLE


def test_without_it_standard_output_stays_empty(dld: Dld) -> None:
    dld.fails(ExitStatus.USAGE, "tool", "run", "--", "gone", "--json")
