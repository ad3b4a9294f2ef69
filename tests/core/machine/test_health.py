"""What `dld doctor` and the self-test say: health.txt."""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from dld_tui import __version__
from dld_tui.core.machine.health import (
    BROKEN,
    FAILED,
    GOOD,
    MISSING,
    PASSED,
    SKIPPED,
    UNAVAILABLE,
    WEAK,
    Check,
    HealthStep,
    SelfTest,
    check_lines,
    check_table,
    checks_here,
    folder_checks,
    python_checks,
    selftest_lines,
    step_table,
    terminal_checks,
)
from dld_tui.core.process.installation import in_environment, install_command
from tests.support.recorded import Recorded, table_text

TERMINALS: dict[str, tuple[dict[str, str], str, tuple[int, int], str | None]] = {
    "good": ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, "UTF8", (80, 24), None),
    "24 bits": ({"TERM": "xterm", "COLORTERM": "24bit"}, "utf-8", (200, 50), None),
    "direct": ({"TERM": "xterm-direct"}, "utf-8", (79, 24), None),
    "256": ({"TERM": "xterm-256color"}, "utf-8", (80, 23), None),
    "none": ({}, "ANSI_X3.4-1968", (79, 23), None),
    "dumb": ({"TERM": "dumb", "NO_COLOR": "1"}, "utf-8", (80, 24), None),
    "tmux": ({"TERM": "tmux-256color", "TMUX": "x"}, "utf-8", (80, 24), "on"),
    "tmux that keeps": ({"TERM": "tmux", "TMUX": "x"}, "utf-8", (80, 24), "external"),
    "tmux that is silent": ({"TERM": "tmux", "TMUX": "x"}, "utf-8", (80, 24), ""),
    "tmux that is not there": ({"TERM": "tmux", "TMUX": "x"}, "utf-8", (80, 24), None),
}
CHECKS = [
    Check("A", "fine", GOOD, "1.0", "not said"), Check("A", "absent", MISSING, "none", "not said"),
    Check("B", "weak", WEAK, "slow", "speed\x1b up"), Check("B", "broken", BROKEN, "bad", "mend"),
    Check("B", "lost", BROKEN, "bad"), Check("C", "odd", GOOD, ""),
]  # fmt: skip
STEPS = (
    HealthStep("cpu", "one", PASSED, 1.25, "fine", "not said"),
    HealthStep("cuda", "two", FAILED, 0.0, "bad", "do\x1b[31m this"),
    HealthStep("cuda", "three", SKIPPED, 0.0, "after two"),
    HealthStep("dla", "four", UNAVAILABLE, 0.0, "no DLA", "buy one"),
)


def shown(checks: Iterable[Check]) -> str:
    return "\n".join(" | ".join([c.group, c.name, c.state, c.found, c.fix]) for c in checks)


def test_all_that_is_said(
    recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = {}
    for name, (environment, encoding, (columns, lines), tmux) in TERMINALS.items():
        folder = tmp_path / name
        folder.mkdir()
        if tmux is not None:
            (folder / "tmux").write_text(f"#!/bin/sh\necho '{tmux}'\n")
            (folder / "tmux").chmod(0o755)
        for variable, value in (("PATH", folder), ("COLUMNS", columns), ("LINES", lines)):
            monkeypatch.setenv(variable, str(value))
        said[f"terminal: {name}"] = shown(terminal_checks(environment, encoding))
    assert os.access(tmp_path, os.W_OK)
    (tmp_path / "file").touch()
    (tmp_path / "there").mkdir()
    for variable, place in (("CONFIG", "file"), ("STATE", "new/one"), ("CACHE", "there")):
        monkeypatch.setenv(f"XDG_{variable}_HOME", str(tmp_path / place))
    said["folders"] = shown(folder_checks()).replace(str(tmp_path), "FOLDER")
    said["checks"] = "\n".join(
        [table_text(check_table(CHECKS)).replace("\x1b", "ESC"), *check_lines(CHECKS)]
    )
    result = SelfTest(STEPS, {"cpu": "A CPU\x1b"}, [])
    said["self-test"] = "\n".join([
        table_text(step_table(result)), *selftest_lines(result),
        *selftest_lines(replace(result, machine={}, rows=STEPS[:1])),
    ]).replace("\x1b", "ESC")  # fmt: skip
    recorded("health", said)


def test_python_and_its_libraries_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {check.name: check for check in python_checks()}
    assert [*found] == ["dld-tui", "Python", "machine", "onnx", "numpy", "textual", "protobuf"]
    assert {check.state for check in found.values()} == {GOOD}, "not the slow protobuf"
    assert found["dld-tui"].found == __version__

    def absent(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", absent)
    assert next(check for check in python_checks() if check.name == "numpy") == Check(
        "Python", "numpy", MISSING, "not installed", "pip install numpy"
    )
    broken = Check("G", "g", BROKEN, "", "pip install g")
    here = checks_here([broken])
    assert here[0] == replace(broken, fix=in_environment(broken.fix))
    agents = Check("Agents", "mcp", MISSING, "not installed", install_command("agents"))
    assert agents in here
    assert {"TERM", "size"} < {check.name for check in here}
