"""The rows of the list of functions."""

from __future__ import annotations

from pathlib import Path

from dld_tui.core.model.document import Document
from dld_tui.core.model.document.local_functions import function_rows
from tests.support import body_models, models


def test_rows(tmp_path: Path) -> None:
    document = Document.open(models.write(tmp_path, body_models.SHAPES))
    leaky, outer = function_rows(document)
    assert leaky.signature == "local.leaky (x, y) → (r)"
    assert (leaky.nodes, len(leaky.instances), leaky.problem) == (2, 3, "")
    assert [attribute.text for attribute in leaky.attributes] == ["slope: float = 0.25"]
    assert [(a.text, a.uses) for a in outer.attributes] == [("scale: float", 2)]
    assert outer.nodes == 9, "those of the branches count"


def test_problems(tmp_path: Path) -> None:
    document = Document.open(models.write(tmp_path, body_models.RECURSIVE))
    assert {row.problem for row in function_rows(document)} == {
        "calls itself, directly or through others"
    }
    document = Document.open(models.write(tmp_path, models.FUNCTIONS))
    document.apply("delete_nodes", scope=["function local:twice"], nodes=["sum"])
    assert [row.problem for row in function_rows(document)] == ["no node produces its output r"]
