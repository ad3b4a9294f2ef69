"""Terminals are named as operators name them, and found from the rows that show them."""

from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.model.document import Document, Node
from dld_tui.widgets.dialogs.dialogs import text_editor
from dld_tui.widgets.parameters.descriptions import ParameterRow
from dld_tui.widgets.parameters.terminals import takes_more, terminal_at, terminals_of
from tests.support import models

MODEL = """
<ir_version: 10, opset_import: ["" : 18, "far" : 1]>
g (float[4] x) => (float[4] y)
{
    [clip] a = Clip(x)
    [join] b = Concat<axis = 0>(a, x)
    [relu] y = Relu(b)
    [far] f = far.Thing(x)
}
"""


@pytest.fixture
def nodes(tmp_path: Path) -> dict[str, Node]:
    document = Document.open(models.write(tmp_path, MODEL))
    return {node.name: node for node in document.main.nodes}


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("clip", ["input input", "input min", "input max", "output output"]),
        ("join", ["input inputs 0", "input inputs 1", "input inputs 2", "output concat_result"]),
        ("relu", ["input X", "output Y"]),
        ("far", ["input #0", "input #1", "output #0"]),
    ],
)
def test_terminals_of_a_node(nodes: dict[str, Node], name: str, labels: list[str]) -> None:
    assert [terminal.label for terminal in terminals_of(nodes[name])] == labels


def test_what_takes_more(nodes: dict[str, Node]) -> None:
    assert {name: takes_more(node) for name, node in nodes.items()} == {
        "clip": True, "join": True, "relu": False, "far": True,
    }  # fmt: skip


def test_rows_lead_to_terminals(nodes: dict[str, Node]) -> None:
    join, relu = nodes["join"], nodes["relu"]
    second = terminal_at(join, ParameterRow(("input", 1)))
    assert second is not None
    assert (second.side, second.value, second.is_required) == ("input", "x", False)
    missing = terminal_at(nodes["clip"], ParameterRow(("input", 2)))
    assert missing is not None
    assert missing.value == ""
    use = terminal_at(join, ParameterRow(("output", 0, relu)))
    assert use is not None
    assert use.user is relu
    boundary = terminal_at(join.scope, ParameterRow(("Outputs", 0), copied="y"))
    assert boundary is not None
    assert (boundary.node, boundary.label) == (None, "output y")
    assert terminal_at(join, ParameterRow(("attribute", "axis"))) is None
    assert terminal_at(join.scope, ParameterRow(("fact", "nodes"))) is None
    assert terminal_at(None, None) is None


@pytest.mark.parametrize(
    "text", ["plain\ttext\nof lines", "", "\x1b]0;x\x07\n\\n 'q' \udcff", "é\r"]
)
def test_text_is_edited_without_loss(text: str) -> None:
    shown, read = text_editor(text)
    assert read(shown) == text
    assert not set(shown) & set("\x1b\x07\r\udcff")
