"""The trials of a search are the same for the same content, settings and inputs."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from dld_tui.core.conversion.search_key import search_conditions
from dld_tui.core.model.document import Document
from dld_tui.core.types import JSON
from tests.support import models


def facts(path: Path, settings: dict[str, JSON], inputs: Path | None = None) -> Mapping[str, JSON]:
    with closing(Document.open(path)) as document:
        return search_conditions(settings, document, [inputs])


def test_a_model_counts_by_its_content_and_not_by_its_file(tmp_path: Path) -> None:
    first, second = (models.write(tmp_path, models.CHAIN, f"{name}.onnx") for name in "ab")
    one = facts(first, {"model": "first", "tries": 2})
    assert one == facts(second, {"model": "second", "tries": 2})
    assert one != facts(first, {"tries": 3})
    with closing(Document.open(second)) as document:
        node = document.main.nodes[0]
        document.apply("rename_node", scope=[], node=node.ref, name="renamed")
        assert search_conditions({}, document)["model"] != one["model"]
    inputs = tmp_path / "inputs"
    inputs.mkdir()
    (inputs / "x.npy").write_bytes(b"1")
    before = facts(first, {}, inputs)
    (inputs / "x.npy").write_bytes(b"12")
    assert facts(first, {}, inputs)["files"] != before["files"]
