from __future__ import annotations

import json
from pathlib import Path

import pytest

from dld_tui.backends.tools import polygraphy_lint
from dld_tui.backends.tools.polygraphy_lint import LintEntry, read_report


def test_a_report(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    entries = [
        {"level": "exception", "source": "onnxruntime", "message": "no", "nodes": ["n"]},
        {"level": "warning", "source": "onnx_checker", "message": "odd"},
    ]
    path.write_text(json.dumps({"summary": {}, "lint_entries": entries}))

    assert read_report(path) == [
        LintEntry("exception", "onnxruntime", "no", ("n",)),
        LintEntry("warning", "onnx_checker", "odd", ()),
    ]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"lint_entries": [1]}', "{"])
def test_no_whole_report(tmp_path: Path, text: str) -> None:
    path = tmp_path / "report.json"
    assert read_report(path) is None
    path.write_text(text)
    assert read_report(path) is None


def test_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(polygraphy_lint, "_NEEDED", ("json", "surely_absent"))
    assert polygraphy_lint.missing() == ["surely_absent"]
