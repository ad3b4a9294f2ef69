"""Edits of a session as a script that does the same to the file as it was."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest

from dld_tui.core.model.document import Document
from dld_tui.core.model.document.parts.fragment import fragment_of
from dld_tui.core.model.document.scripting.scripts import (
    export_script,
    locate_files,
    map_payload_files,
    parse_script,
    replay,
)
from dld_tui.core.types import JSON
from tests.support import models
from tests.support.sessions import bytes_of


def replayed(model: Path, script: Path) -> bytes:
    document = Document.open(model)
    result = replay(document, locate_files(parse_script(script.read_text()), script.parent))
    assert not result.refused
    return bytes_of(document)


def test_edits_that_were_taken_back_are_left_out(tmp_path: Path) -> None:
    model = models.write(tmp_path, models.CHAIN)
    document = Document.open(model)
    document.apply("rename_node", scope=[], node="first", name="begin")
    document.apply("delete_many", nodes=[[[], "second"]], reconnect=True)
    document.apply("rename_node", scope=[], node="last", name="end")
    document.undo()
    script = tmp_path / "edits.jsonl"
    assert export_script(document, script) == 2
    assert [json.loads(line)["edit"] for line in script.read_text().splitlines()] == [
        "rename_node", "delete_many",
    ]  # fmt: skip
    assert replayed(model, script) == bytes_of(document)


def test_large_payloads_lie_beside_the_script(tmp_path: Path) -> None:
    weights = np.random.default_rng(0).standard_normal(40_000).astype(np.float32)
    proto = models.parse(models.CHAIN)
    proto.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(weights, "w"))
    onnx.save(proto, tmp_path / "large.onnx")
    source = Document.open(tmp_path / "large.onnx")
    model = models.write(tmp_path, models.FUNCTIONS)
    document = Document.open(model)
    fragment = fragment_of([source.main.nodes[1]])
    document.apply("paste_nodes", scope=[], fragment=fragment.to_json(document, document.main))
    (tmp_path / "scripts").mkdir()
    script = tmp_path / "scripts/edits.jsonl"
    export_script(document, script)
    after = bytes_of(document)
    source.close()
    document.close()  # its payload files go
    assert [path.name for path in script.parent.iterdir()] != ["edits.jsonl"]
    moved = tmp_path / "moved"
    script.parent.rename(moved)
    assert replayed(model, moved / "edits.jsonl") == after


def test_only_payloads_are_renamed() -> None:
    payload: dict[str, JSON] = {"file": "a", "offset": 0, "length": 3, "sha256": "0"}
    found = map_payload_files({"file": "a", "deep": [payload]}, str.upper)
    assert found == {"file": "a", "deep": [{**payload, "file": "A"}]}


@pytest.mark.parametrize("name", ["/abs/p", "rel/p"])
def test_names_are_relative_to_the_script(name: str) -> None:
    payload: dict[str, JSON] = {"file": name, "length": 1, "sha256": "0"}
    found = locate_files({7: {"edit": "x", "p": payload}}, Path("/home"))[7]
    expected = "/abs/p" if name[0] == "/" else "/home/rel/p"
    assert found["p"] == {**payload, "file": expected}
