"""The trials of a search are the same for the same content, settings and inputs."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from dld_tui.core.conversion.search_key import search_facts
from dld_tui.core.model.document import Document
from dld_tui.core.types import JSON
from tests.support import models


def facts(path: Path, settings: dict[str, JSON], inputs: Path | None = None) -> Mapping[str, JSON]:
    with closing(Document.open(path)) as document:
        return search_facts(settings, document, [inputs])


def test_a_model_counts_by_its_content_and_not_by_its_file(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    one = facts(models.write(first, models.CHAIN), {"model": "first", "tries": 2})
    other = facts(models.write(second, models.CHAIN), {"model": "second", "tries": 2})
    assert one == other
    assert facts(models.write(first, models.CHAIN), {"tries": 3}) != one


def test_an_edit_and_another_input_make_other_trials(tmp_path: Path) -> None:
    path = models.write(tmp_path, models.CHAIN)
    inputs = tmp_path / "inputs"
    inputs.mkdir()
    (inputs / "x.npy").write_bytes(b"1")
    before = facts(path, {}, inputs)
    (inputs / "x.npy").write_bytes(b"12")
    assert facts(path, {}, inputs)["files"] != before["files"]
    with closing(Document.open(path)) as document:
        node = document.main.nodes[0]
        document.apply("rename_node", scope=[], node=node.ref, name="renamed")
        edited = search_facts({}, document)
    assert edited["model"] != before["model"]
