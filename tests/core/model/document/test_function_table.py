"""The rows of the list of functions."""

from __future__ import annotations

from pathlib import Path

from dld_tui.core.model.document import Document
from dld_tui.core.model.document.local_functions import function_attributes, function_rows
from dld_tui.core.types import JSON
from tests.support import body_models, models


def test_rows(tmp_path: Path) -> None:
    document = Document.open(models.write(tmp_path, body_models.SHAPES))
    leaky, outer = function_rows(document)
    assert leaky.signature == "local.leaky (x, y) → (r)"
    assert (leaky.nodes, len(leaky.instances), leaky.problem) == (2, 3, "")
    assert [attribute.text for attribute in leaky.attributes] == ["slope: float = 0.25"]
    assert [(a.text, a.uses) for a in outer.attributes] == [("scale: float", 2)]
    assert outer.nodes == 9, "those of the branches count"


def test_defaults_of_every_kind(tmp_path: Path) -> None:
    document = Document.open(models.write(tmp_path, body_models.SHAPES))
    leaky = document.functions[0]
    cases: list[tuple[str, str | None, JSON]] = [
        ("a", "ints", [1, 2]),
        ("b", "string", "it's"),
        ("c", "tensor", {"dtype": "float32", "dims": [0], "raw": ""}),
        ("d", "ints", list(range(9))),
        ("e", None, None),
    ]
    for name, kind, value in cases:
        document.apply(
            "set_function_attribute", scope=list(leaky.path), attribute=name, kind=kind, value=value
        )
    assert [attribute.text for attribute in function_attributes(leaky)] == [
        "e", "slope: float = 0.25", "a: ints = [1, 2]", "b: string = 'it\\'s'", "c: tensor = …",
        "d: ints = 9 values",
    ]  # fmt: skip


def test_problems(tmp_path: Path) -> None:
    document = Document.open(models.write(tmp_path, body_models.RECURSIVE))
    assert {row.problem for row in function_rows(document)} == {
        "calls itself, directly or through others"
    }
    document = Document.open(models.write(tmp_path, models.FUNCTIONS))
    document.apply("delete_nodes", scope=["function local:twice"], nodes=["sum"])
    assert [row.problem for row in function_rows(document)] == ["no node produces its output r"]
