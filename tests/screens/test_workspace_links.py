"""Links are made, cut and moved by keys alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.screen import Screen
from textual.widgets import Input

from dld_tui.core.model.tensors.value_types import ValueType
from dld_tui.widgets.dialogs.dialogs import ChoiceDialog
from dld_tui.widgets.dialogs.wiring import AddNode, NodePicker, TerminalPicker, ValuePicker
from dld_tui.widgets.parameters.edit_bar import EditBar
from tests.support import models
from tests.support.workspace import Session, opened

JOIN = """
<ir_version: 10, opset_import: ["" : 18]>
join (float[N, 4] x, float[N, 4] z, int64[2] shape) => (float[N, 12] y, float[N, 4] part)
{
    [left] part = Relu(x)
    [limit] low = Clip(z)
    [join] y = Concat<axis = 1>(part, x, z)
}
"""


@pytest.fixture
def join(tmp_path: Path) -> Path:
    return models.write(tmp_path, JOIN)


def inputs(session: Session, name: str) -> tuple[str, ...]:
    node = session.screen.document.main.find(name)
    assert node is not None
    return (*node.inputs,)


async def at_boundary(session: Session, title: str, index: int) -> None:
    """Put the cursor on an input or output of the main graph."""
    session.screen.navigation.show_subject(session.screen.document.main)
    session.screen.panes.focus("parameters")
    assert session.screen.parameters.list.go_to_key((title, index))
    await session.pilot.pause()


async def choose(session: Session, kind: type[Screen[Any]], text: str) -> None:
    """Type into the picker that is open and take the first row."""
    await session.front(kind)
    await session.type(text, "enter")


async def an_input_is_connected_by_search(session: Session) -> None:
    for node, row, value, expected in (
        ("join", "inputs 1", "low", ("part", "low", "z")),
        ("limit", "max", "x", ("z", "", "x")),  # a row for what was left out
    ):
        before = inputs(session, node)
        await session.go(node)
        await session.row(row, "c")
        await choose(session, ValuePicker, value)
        assert inputs(session, node) == expected
        await session.press("u")
        assert inputs(session, node) == before


async def inputs_are_added_and_removed(session: Session) -> None:
    await session.go("join")
    session.screen.wiring.add_terminal()
    await choose(session, ValuePicker, "low")
    assert inputs(session, "join") == ("part", "x", "z", "low")
    await session.row("inputs 0")
    session.screen.wiring.remove_terminal()
    await session.settle()
    assert inputs(session, "join") == ("x", "z", "low")


async def a_value_of_another_type_is_connected_with_a_warning(session: Session) -> None:
    await session.go("limit")
    await session.row("min", "c")
    await session.front(ValuePicker)
    assert "int64, but input" in session.text
    await session.type("shape", "enter")
    assert inputs(session, "limit") == ("z", "shape")
    assert "the types differ" in session.told[-1]


async def from_the_explorer_both_ends_are_asked_for(session: Session) -> None:
    await session.go("left", "c")
    await choose(session, TerminalPicker, "output")
    await choose(session, NodePicker, "join")
    await choose(session, TerminalPicker, "3")
    assert inputs(session, "join") == ("part", "x", "z", "part")


async def a_cycle_is_refused(session: Session) -> None:
    await session.go("left")
    await session.row("X x", "c")
    await choose(session, ValuePicker, "y Concat")
    assert "cycle" in session.told[-1]
    assert inputs(session, "left") == ("x",)
    await session.go("join")
    session.screen.panes.focus("parameters")
    assert session.screen.parameters.list.go_to_key(("output", 0))
    await session.pilot.pause()
    await session.press("c")
    await choose(session, NodePicker, "left")
    assert "cycle" in session.told[-1]
    assert session.app.screen is session.screen


async def a_needed_input_is_cut_only_after_asking(session: Session) -> None:
    await session.go("left")
    await session.row("X x", "K")
    session.in_front(ChoiceDialog)
    await session.press("k")
    assert inputs(session, "left") == ("x",)
    await session.press("K", "d")
    assert inputs(session, "left") == ()
    assert any("nothing connected" in row for row in session.details)
    await session.row("Y part", "K", "d")  # all users of an output
    assert inputs(session, "join") == ("", "x", "z")


async def replace_uses_and_bypass(session: Session) -> None:
    await session.go("left", "R")
    await choose(session, ValuePicker, "low")
    assert inputs(session, "join") == ("low", "x", "z")
    await session.go("limit")
    session.screen.wiring.bypass()
    await session.settle()
    assert inputs(session, "join") == ("z", "x", "z")


async def a_node_is_inserted_on_one_link_or_behind_a_value(session: Session) -> None:
    await session.go("join")
    await session.row("inputs 1", "I")
    await choose(session, AddNode, "Neg")
    inserted = next(n for n in session.screen.document.main.nodes if n.op_type == "Neg")
    assert inserted.inputs == ("x",)
    assert inputs(session, "join") == ("part", inserted.outputs[0], "z")
    await session.go("left", "I")
    await choose(session, AddNode, "Abs")
    inserted = next(n for n in session.screen.document.main.nodes if n.op_type == "Abs")
    # The output keeps its name, and is what the new node makes.
    assert (inserted.inputs, inserted.outputs) == (("part_inner",), ("part",))
    assert inputs(session, "join")[0] == "part"
    assert session.screen.model.cursor.node is inserted


async def graph_inputs_and_outputs_are_made_and_removed(session: Session) -> None:
    main = session.screen.document.main
    await session.go("join")
    await session.row("inputs 2")
    session.screen.wiring.make_input()
    await session.go("limit")
    session.screen.wiring.make_output()
    await session.settle()
    assert main.inputs[-1] == "z_input"
    assert (*main.outputs,) == ("y", "part", "low")
    await at_boundary(session, "Outputs", 2)
    await session.press("d")
    assert (*main.outputs,) == ("y", "part")
    await at_boundary(session, "Outputs", 1)
    await session.press("c")
    await choose(session, ValuePicker, "low")
    assert (*main.outputs,) == ("y", "low")


async def a_graph_input_gets_another_type_and_place(session: Session) -> None:
    main = session.screen.document.main
    await at_boundary(session, "Inputs", 1)
    await session.press("e", "ctrl+u")
    await session.type("float16[N", "enter")
    assert session.screen.query(EditBar), "it is no type, so the bar stays"
    await session.type(", 8]", "enter")
    assert main.value_type("z") == ValueType("float16", ("N", 8))
    await session.press("shift+down")
    assert (*main.inputs,) == ("x", "shape", "z")
    await session.press("shift+up", "shift+up", "shift+up")
    assert (*main.inputs,) == ("z", "x", "shape")


async def the_type_of_an_inner_value_is_declared(session: Session) -> None:
    await session.go("limit", "T")
    await session.type("f32[N, 4]", "enter")
    assert session.screen.document.main.value_type("low") == ValueType("float32", ("N", 4))


@pytest.mark.broad
async def test_links_are_made_and_cut(join: Path) -> None:
    async with opened(join) as session:
        await session.in_turn(
            an_input_is_connected_by_search,
            inputs_are_added_and_removed,
            a_value_of_another_type_is_connected_with_a_warning,
            from_the_explorer_both_ends_are_asked_for,
            a_cycle_is_refused,
            a_needed_input_is_cut_only_after_asking,
            replace_uses_and_bypass,
            a_node_is_inserted_on_one_link_or_behind_a_value,
            graph_inputs_and_outputs_are_made_and_removed,
            a_graph_input_gets_another_type_and_place,
            the_type_of_an_inner_value_is_declared,
        )


@pytest.mark.broad
async def test_an_input_of_unknown_rank_asks_for_its_type(tmp_path: Path) -> None:
    text = '<ir_version: 10, opset_import: ["" : 18]> net (float x) => (float y) {%s}'
    model = models.parse(text % "[r] t = Relu (x) [n] y = Neg (t)")
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.ClearField("shape")
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    async with opened(path) as session:
        main = session.screen.document.main
        await session.go("n")
        await session.row("X Relu")
        session.screen.wiring.make_input()
        await session.until(lambda: bool(session.screen.query(EditBar)))
        assert "float32[...]" in session.text
        await session.press("enter")
        assert "dimensions are needed" in session.text
        assert [*main.inputs] == ["x"]
        session.screen.query_one(EditBar).query_one(Input).value = "f32[2, ?]"
        await session.press("enter")
        assert [*main.inputs] == ["x", "t_input"]
        assert main.value_type("t_input") == ValueType("float32", (2, None))
        assert main.nodes[1].inputs == ("t_input",)
