from __future__ import annotations

import json
from pathlib import Path

import pytest

from dld_tui.backends import model_checkers
from dld_tui.backends.model_checkers import LintEntry, read_lint_report


def test_a_report(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    entries = [
        {"level": "exception", "source": "onnxruntime", "message": "no", "nodes": ["n"]},
        {"level": "warning", "source": "onnx_checker", "message": "odd"},
    ]
    path.write_text(json.dumps({"summary": {}, "lint_entries": entries}))

    assert read_lint_report(path) == [
        LintEntry("exception", "onnxruntime", "no", ("n",)),
        LintEntry("warning", "onnx_checker", "odd", ()),
    ]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"lint_entries": [1]}', "{"])
def test_no_whole_report(tmp_path: Path, text: str) -> None:
    path = tmp_path / "report.json"
    assert read_lint_report(path) is None
    path.write_text(text)
    assert read_lint_report(path) is None


def test_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_checkers, "_LINT_NEEDS", ("json", "surely_absent"))
    assert model_checkers.missing_for_lint() == ["surely_absent"]
