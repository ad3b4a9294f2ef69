"""Whole commands on small models that stand for much: they end soon, with little memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.bombs import NAMES, run_command, write_bomb
from tests.support.typist import Programs
from tests.support.workspace import opened

pytestmark = pytest.mark.real_workers
_MOST_SECONDS = 25.0 + 0.5 * (os.cpu_count() or 1)
"""Of processor time; the trials get a quarter of what they get by default, on all processors."""
_ANSWER_S = 20.0
"""Within which a key is answered, on a machine that does much else."""
_MOST_MEMORY = 1_800_000_000
COMMANDS = {
    "memory": ("memory", "FILE"),
    "fp16": ("convert", "fp16", "FILE", "-o", "OUT.onnx"),
    "sanitize": ("convert", "sanitize", "FILE", "-o", "OUT.onnx"),
    "check": ("check", "FILE"),
    "check --run": ("check", "--run", "FILE"),
    "opset": ("convert", "opset", "FILE", "-o", "OUT.onnx", "--to", "21"),
    "rewrite": ("rewrite", "FILE", "identity", "expands", "shapes", "-o", "OUT.onnx"),
    "startup": ("startup", "FILE"),
    "tune": ("tune", "FILE", "--budget", "30", "-o", "OUT.tune.json"),
    "llm": ("profile", "llm", "FILE", "-o", "OUT.dldprof"),
    "search": ("accuracy", "FILE", "--search", "fp16"),
    "cost": ("inspect", "--cost", "FILE"),
    "draw": ("draw", "FILE", "-o", "OUT.svg"),
    "diff": ("diff", "FILE", "FILE"),
    "profile": ("profile", "onnxruntime", "FILE", "-o", "OUT.dldprof"),
    "accuracy": ("accuracy", "FILE", "--against-optimization", "disabled"),
}
_RUNNING = ("memory", "profile", "startup", "accuracy", "search", "tune", "llm", "sanitize")
KNOWN: dict[str, tuple[str, ...]] = {
    "loop that doubles": (">z (Loop)",), "endless loop": (">z (Loop)",), "Tile": (">z (Tile)",),
    "Expand": (">z (Expand)",), "Pad": (">z (Pad)",), "Resize": (">z (Resize)",),
    "broadcast": (">c (Add)",),
    "RandomNormal": (">z (RandomNormal)",), "long Scan": (">a (ConstantOfShape)", ">z (Scan)"),
    "MatMul of made constants": (">a (ConstantOfShape)", ">b (MatMul)"),
    "chain of MatMul": (">a (ConstantOfShape)", ">t0 (MatMul)"),
}  # fmt: skip
"""Nodes one of which every command names that would run the model: any of them may be too large."""
_TOO_LARGE = ("external data",)
"""Models whose weights alone are more than a machine has: another target is advised (status 2)."""
QUICK = {
    ("memory", "loop that doubles"), ("fp16", "loop that doubles"), ("tune", "endless loop"),
    ("llm", "Expand"),
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
    assert ran.status in ((0, 1, 2, 3, 5) if name in _TOO_LARGE else (0, 1, 3, 5)), ran
    assert ran.seconds < _MOST_SECONDS, ran
    assert ran.memory < _MOST_MEMORY, ran
    assert "unexpected" not in ran.said, ran
    assert "Traceback" not in ran.said, ran
    if command in _RUNNING and name in KNOWN:
        assert any(f"node {node}" in ran.said for node in KNOWN[name]), ran


@pytest.fixture(scope="module")
def programs() -> Iterator[Programs]:
    with Programs() as running:
        yield running


@pytest.mark.broad
async def test_a_deep_model_opens_in_the_workspace(tmp_path: Path) -> None:
    async with opened(write_bomb(tmp_path, "deep branches")) as session:
        await session.press("j", "j", "enter", "k")
        deepest = max(session.screen.document.scopes(), key=lambda scope: len(scope.path))
        session.screen.navigation.open_scope(deepest)
        await session.settle()
        assert len(deepest.path) == 25
        assert session.details[0].startswith("Relu")


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", NAMES)
def test_a_bomb_opens_in_the_workspace(programs: Programs, name: str, tmp_path: Path) -> None:
    path = write_bomb(tmp_path, name)
    with programs.start(tmp_path, path.name) as typist:
        typist.wait_for_screen()
        typist.settle()
        for key in ("\t", "j", "j", "\r", "k"):
            typist.write(key)
            assert typist.answer(_ANSWER_S, all_keys=True) < _ANSWER_S
        assert "WorkspaceScreen" in typist.pages
        assert not typist.state()["faults"]
        typist.write("\x11")
        typist.wait_for_end()
