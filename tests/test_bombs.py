"""Whole commands on small models that stand for much: they end soon, with little memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.bombs import NAMES, run_command, write_bomb

pytestmark = pytest.mark.real_workers
_MOST_SECONDS = 25.0
"""Of processor time; the trials get a quarter of what they get by default."""
_MOST_MEMORY = 1_800_000_000
COMMANDS = {
    "memory": ("memory", "FILE"),
    "fp16": ("convert", "fp16", "FILE", "-o", "OUT.onnx"),
    "sanitize": ("convert", "sanitize", "FILE", "-o", "OUT.onnx"),
    "check": ("check", "FILE"),
    "cost": ("inspect", "--cost", "FILE"),
    "draw": ("draw", "FILE", "-o", "OUT.svg"),
    "diff": ("diff", "FILE", "FILE"),
    "profile": ("profile", "onnxruntime", "FILE", "-o", "OUT.dldprof"),
    "accuracy": ("accuracy", "FILE", "--against-optimization", "disabled"),
}
QUICK = {
    ("memory", "loop that doubles"), ("memory", "endless loop"), ("fp16", "loop that doubles"),
    ("profile", "endless loop"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("command", "name"),
    [
        pytest.param(
            command, name, marks=() if (command, name) in QUICK else pytest.mark.exhaustive
        )
        for command in COMMANDS
        for name in NAMES
    ],
)
def test_a_bomb_ends_soon(command: str, name: str, tmp_path: Path) -> None:
    path = write_bomb(tmp_path, name)
    words = [
        word.replace("FILE", str(path)).replace("OUT", str(tmp_path / "out"))
        for word in COMMANDS[command]
    ]
    ran = run_command(*words)
    assert ran.status in (0, 1, 3, 5), ran
    assert ran.seconds < _MOST_SECONDS, ran
    assert ran.memory < _MOST_MEMORY, ran
    assert "unexpected" not in ran.said, ran
    assert "Traceback" not in ran.said, ran
    if (command in ("memory", "profile") and "loop" in name) or (
        command == "sanitize" and name == "loop that doubles"
    ):
        assert ">z (Loop)" in ran.said, ran
