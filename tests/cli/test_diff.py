"""``dld diff``: its text, its JSON, its exit status, and what git asks of it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.support import models
from tests.support.cli import Dld, process


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """Return the files of a model and of one that differs by a node and a name."""
    text = models.CHAIN.replace("Relu(x)", "Abs(x)").replace("[last]", "[end]")
    return models.write(tmp_path, models.CHAIN, "old.onnx"), models.write(
        tmp_path, text, "new.onnx"
    )


def test_colours_only_where_they_are_wanted(
    dld: Dld, pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "\x1b" not in dld("diff", *pair).out
    coloured = dld("diff", *pair, "--color", "always").out
    assert "\x1b[33m  ~ node first\x1b[0m" in coloured
    monkeypatch.setattr("dld_tui.cli.models.diff.is_terminal", lambda stream: True)
    assert "\x1b" in dld("diff", *pair).out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in dld("diff", *pair).out


def test_weights_that_are_missing_are_not_the_same(dld: Dld, tmp_path: Path) -> None:
    model = models.parse(models.CHAIN)
    values = np.arange(4000, dtype=np.float32)
    model.graph.initializer.append(numpy_helper.from_array(values, "big"))
    old = tmp_path / "old.onnx"
    onnx.save(model, old, save_as_external_data=True, location="big.data", size_threshold=100)
    new = tmp_path / "new" / "old.onnx"
    new.parent.mkdir()
    shutil.copy(old, new)
    outcome = dld("diff", old, new)
    assert (outcome.status, outcome.out) == (3, "")
    assert "big cannot be compared" in outcome.err
    assert "--no-weights" in outcome.err
    assert dld("diff", old, new, "--no-weights").status == 0
    assert dld("diff", old, new, "--json").json["notes"]


@pytest.mark.broad
@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_in_git(pair: tuple[Path, Path], tmp_path: Path) -> None:
    folder = tmp_path / "repository"
    folder.mkdir()
    dld = f"'{sys.executable}' -m dld_tui diff"

    def git(*arguments: str) -> str:
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=True, timeout=60
        )
        return done.stdout

    git("init", "--quiet")
    (folder / ".gitattributes").write_text("*.onnx diff=onnx\n")
    shutil.copy(pair[0], folder / "m.onnx")
    git("add", ".")
    git("commit", "--quiet", "-m", "one")
    shutil.copy(pair[1], folder / "m.onnx")
    git("config", "diff.onnx.textconv", f"{dld} --textconv")
    shown = git("diff")
    assert "-  node first: Relu(x) -> a\n+  node first: Abs(x) -> a\n" in shown
    git("config", "diff.onnx.command", f"{dld} --git")
    assert "  ~ node first  Abs(x) -> a\n      op_type: Relu -> Abs\n" in git("diff")


def test_a_process_of_its_own_has_no_user_interface(pair: tuple[Path, Path]) -> None:
    done = process("diff", *pair, "--tui")
    assert done.returncode == 1
    assert "node first" in done.stdout
