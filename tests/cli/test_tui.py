"""Whether ``dld PATH`` opens the user interface or prints."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pytest

from dld_tui.cli import tui
from tests.support import models
from tests.support.cli import Dld
from tests.support.report_files import make_report
from tests.support.tuned_results import found


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Return what a stand-in for the app was asked to open."""
    calls: list[list[str]] = []

    def run(paths: Sequence[str]) -> int:
        calls.append(list(paths))
        return 7

    app = ModuleType("dld_tui.app")
    app.run = run  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "dld_tui.app", app)
    return calls


def test_terminal_opens_the_app(
    dld: Dld, opened: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tui, "has_terminal", lambda: True)
    assert dld().status == 7
    assert dld("a.onnx", "/b").status == 7
    assert opened == [[], ["a.onnx", "/b"]]


def test_without_a_terminal_models_are_printed(
    dld: Dld, opened: list[list[str]], tmp_path: Path
) -> None:
    first = models.write(tmp_path, models.CHAIN, "first.onnx")
    second = models.write(tmp_path, models.BRANCHES, "second.onnx")
    outcome = dld(first, second)
    assert outcome.status == 0
    assert outcome.out.count("model      ") == 2
    assert opened == []


def test_without_a_terminal_results_are_printed(dld: Dld, tmp_path: Path) -> None:
    report = make_report(tmp_path / "net.dldprof")
    assert dld(report).out == dld("report", report).out
    result = found(tmp_path)
    outcome = dld(result.report)
    assert outcome.status == 0
    assert "1 thread" in outcome.out
    assert "Why: Weights take a quarter of the bytes" in outcome.out


def test_without_a_terminal_and_without_paths_help_is_printed(
    dld: Dld, opened: list[list[str]]
) -> None:
    outcome = dld()
    assert (outcome.status, opened) == (0, [])
    assert outcome.out.startswith("Usage: dld ")


def test_what_nothing_prints_is_refused(dld: Dld, tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("hello")
    assert str(path) in dld.fails(3, path)


def test_dumb_terminal_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tui, "is_terminal", lambda stream: stream is sys.stdout)
    assert not tui.has_terminal()
    monkeypatch.setattr(tui, "is_terminal", lambda stream: True)
    assert tui.has_terminal()
