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


def test_text_and_status(dld: Dld, pair: tuple[Path, Path]) -> None:
    outcome = dld("diff", *pair)
    assert (outcome.status, outcome.err) == (1, "")
    assert (
        outcome.out
        == f"""\
--- {pair[0]}
+++ {pair[1]}
main
  ~ node first  Abs(x) -> a
      op_type: Relu -> Abs
  > node last -> end  Sigmoid(c) -> y

nodes: 1 changed, 1 renamed
"""
    )


def test_the_same_model(dld: Dld, pair: tuple[Path, Path]) -> None:
    outcome = dld("diff", pair[0], pair[0])
    assert (outcome.status, outcome.out, outcome.err) == (0, "", "no differences\n")
    found = dld("diff", pair[0], pair[0], "--json")
    assert (found.status, found.json["same"], found.json["changes"]) == (0, True, [])


def test_json(dld: Dld, pair: tuple[Path, Path]) -> None:
    outcome = dld("diff", *pair, "--json")
    assert outcome.status == 1
    document = outcome.json
    assert document["counts"] == {"node": {"changed": 1, "renamed": 1}}
    assert document["changes"][0] == {
        "kind": "node",
        "status": "changed",
        "scope": [],
        "old": "first",
        "new": "first",
        "about": "Abs(x) -> a",
        "fields": [{"field": "op_type", "old": "Relu", "new": "Abs"}],
    }


def test_differences_of_weights_are_numbers(dld: Dld, tmp_path: Path) -> None:
    old = models.write(tmp_path, models.CHAIN, "old.onnx")
    new = models.write(tmp_path, models.CHAIN.replace("3, 4}", "3, 6}"), "new.onnx")
    change = dld("diff", old, new, "--json").json["changes"][0]
    assert change["difference"] == {
        "count": 4,
        "different": 1,
        "max_abs": 2.0,
        "mean_abs": 0.5,
        "not_finite": 0,
    }
    assert dld("diff", old, new, "--no-weights").status == 0


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


def test_inputs_that_cannot_be_read(dld: Dld, pair: tuple[Path, Path], tmp_path: Path) -> None:
    assert "File not found" in dld.fails(3, "diff", pair[0], tmp_path / "none.onnx")
    (tmp_path / "bad.onnx").write_bytes(b"PK\x03\x04 and so on")
    assert "ZIP" in dld.fails(3, "diff", tmp_path / "bad.onnx", pair[0])


def test_wrong_command_lines(dld: Dld, pair: tuple[Path, Path]) -> None:
    assert "two models" in dld.fails(2, "diff", pair[0])
    assert "two models" in dld.fails(2, "diff", *pair, pair[0])
    assert "one model" in dld.fails(2, "diff", *pair, "--textconv")
    assert "choose one" in dld.fails(2, "diff", *pair, "--json", "--tui")
    assert "old-file" in dld.fails(2, "diff", "--git", *pair)


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


def test_textconv(dld: Dld, pair: tuple[Path, Path]) -> None:
    outcome = dld("diff", "--textconv", pair[0])
    assert outcome.status == 0
    assert "  node first: Relu(x) -> a\n" in outcome.out
    assert "  initializer w: float32 [1.0, 2.0, 3.0, 4.0]\n" in outcome.out
    assert outcome.out == dld("diff", "--textconv", pair[0]).out


def test_arguments_of_a_diff_driver(dld: Dld, pair: tuple[Path, Path]) -> None:
    old, new = pair
    call = ["m.onnx", old, "aaa", "100644", new, "bbb", "100644"]
    outcome = dld("diff", "--git", *call)
    assert outcome.status == 0  # git gives up when its driver does not succeed
    assert outcome.out.startswith("dld diff m.onnx\n--- a/m.onnx\n+++ b/m.onnx\nmain\n")
    moved = dld("diff", "--git", *call, "n.onnx", "similarity index 90%").out
    assert "+++ b/n.onnx\n" in moved
    added = dld("diff", "--git", "m.onnx", "/dev/null", ".", ".", new, "bbb", "100644")
    assert added.out.splitlines()[1] == ("+ new model: 4 nodes, 2 initializers, 24 B of weights")
    assert dld("diff", "--git", "m.onnx").out == "* unmerged m.onnx\n"
    new.write_bytes(b"nonsense")
    broken = dld("diff", "--git", *call)
    assert broken.status == 0
    assert "! cannot be compared" in broken.out


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
