from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.machine import health
from dld_tui.core.machine.health import (
    BROKEN,
    FAILED,
    GOOD,
    PASSED,
    WEAK,
    HealthStep,
    SelfTest,
    selftest_lines,
)


def states(**environment: str) -> dict[str, str]:
    encoding = environment.pop("encoding", "utf-8")
    return {c.name: c.state for c in health.terminal_checks(environment, encoding)}


def test_good_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("LINES", "30")
    found = states(TERM="xterm-256color", COLORTERM="truecolor")
    assert found == {"TERM": GOOD, "colours": GOOD, "text": GOOD, "size": GOOD}
    monkeypatch.setenv("COLUMNS", "79")
    assert states(TERM="xterm")["size"] == WEAK


@pytest.mark.parametrize(
    ("environment", "name", "state"),
    [
        ({"TERM": "dumb"}, "TERM", WEAK),
        ({}, "TERM", WEAK),
        ({"TERM": "xterm"}, "colours", WEAK),
        ({"TERM": "xterm-256color"}, "colours", GOOD),
        ({"TERM": "xterm", "NO_COLOR": "1"}, "colours", GOOD),
        ({"TERM": "xterm", "encoding": "ANSI_X3.4-1968"}, "text", WEAK),
    ],
)
def test_terminals(environment: dict[str, str], name: str, state: str) -> None:
    assert states(**environment)[name] == state


@pytest.mark.parametrize(("answer", "state"), [("on", GOOD), ("external", WEAK), ("", WEAK)])
def test_clipboard_of_tmux(
    answer: str, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "tmux"
    tool.write_text(f"#!/bin/sh\necho '{answer}'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert states(TERM="tmux-256color", TMUX="x")["clipboard"] == state


def test_without_tmux_nothing_is_said_of_its_clipboard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "clipboard" not in states(TERM="xterm")
    assert "clipboard" not in states(TERM="xterm", TMUX="x")


def test_python_and_its_libraries_are_named() -> None:
    found = {check.name: check for check in health.python_checks()}
    assert found["protobuf"].state == GOOD, "the tests must not run with the slow protobuf"
    assert {"dld-tui", "Python", "machine", "onnx", "numpy", "textual"} < set(found)


def test_folder_that_cannot_be_made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(file))
    found = {check.name: check for check in health.folder_checks()}
    assert {name: check.state for name, check in found.items()} == {
        "settings": BROKEN,
        "journals": GOOD,
        "caches": GOOD,
    }
    assert str(file) in found["settings"].fix


def test_lines_for_people() -> None:
    steps = (HealthStep("cpu", "one", PASSED, 1.0, "fine", "not said"),
             HealthStep("cuda", "two", FAILED, 1.0, "bad", "do\x1b[31m this"))  # fmt: skip
    lines = selftest_lines(SelfTest(steps, {"cpu": "A CPU"}, []))
    assert lines[0] == "2 steps on A CPU: 1 passed, 1 failed."
    assert "not said" not in "".join(lines)
    assert "\x1b" not in "".join(lines)
