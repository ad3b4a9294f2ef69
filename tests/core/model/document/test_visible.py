"""The values that nodes of a scope may use."""

from __future__ import annotations

from pathlib import Path

from dld_tui.core.model.document import Document
from dld_tui.core.model.document.scope import visible_values
from tests.support import models


def of(tmp_path: Path, text: str, *path: str) -> list[tuple[str, str]]:
    document = Document.open(models.write(tmp_path, text))
    found = [(name, at.kind) for name, at in visible_values(document.scope_at(path))]
    document.close()
    return found


def test_inputs_outputs_of_nodes_and_initializers(tmp_path: Path) -> None:
    assert of(tmp_path, models.CHAIN) == [
        ("x", "input"), ("a", "node"), ("b", "node"), ("c", "node"), ("y", "node"),
        ("w", "initializer"), ("unused", "initializer"),
    ]  # fmt: skip


def test_a_subgraph_sees_what_is_around_it_but_not_what_it_shadows(tmp_path: Path) -> None:
    inside = of(tmp_path, models.BRANCHES, "choose:else_branch")
    assert inside == [
        ("x", "node"), ("e", "node"), ("choice", "input"), ("a", "node"), ("y", "node")
    ]  # fmt: skip


def test_a_function_sees_only_its_own(tmp_path: Path) -> None:
    inside = of(tmp_path, models.FUNCTIONS, "function local:twice")
    assert inside == [("v", "input"), ("r", "node")]


def test_an_initializer_that_is_also_an_input_is_told_once(tmp_path: Path) -> None:
    text = """
    <ir_version: 3, opset_import: ["" : 9]>
    old (float[2] x, float[2] w) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }
    """
    assert of(tmp_path, text) == [("x", "input"), ("y", "node"), ("w", "initializer")]
