"""``dld rename``: preview, files, scripts and what it refuses."""

from __future__ import annotations

from pathlib import Path

import onnx

from tests.support import models
from tests.support.cli import Dld


def test_the_command_previews_writes_and_scripts(dld: Dld, tmp_path: Path) -> None:
    path, out = models.write(tmp_path, models.CHAIN), tmp_path / "out.onnx"
    options = ("--nodes", "--pattern", "^(f|l)", "--to", r"node_\1")
    shown = dld("rename", path, *options, "--preview", "--json").json
    assert shown["renamed"][0] == {"kind": "node", "scope": [], "old": "first", "new": "node_first"}
    assert not out.exists()
    script = tmp_path / "edits.jsonl"
    done = dld("rename", path, *options, "-o", out, "--script", script)
    assert (done.status, done.err) == (0, "")
    assert "2 names changed" in done.out
    again = tmp_path / "again.onnx"
    assert dld("edit", path, script, "-o", again).status == 0
    assert out.read_bytes() == again.read_bytes()
    assert onnx.load(out).graph.node[0].name == "node_first"
    assert "Add -o OUT" in dld.fails(2, "rename", path, "--prefix", "a")
    assert "--pattern" in dld.fails(2, "rename", path, "--to", "a", "-o", tmp_path / "no.onnx")
    other = tmp_path / "no.onnx"
    assert "both be called 'a'" in dld.fails(
        3, "rename", path, "--tensors", "--pattern", ".*", "--to", "a", "-o", other
    )
    assert not other.exists()
