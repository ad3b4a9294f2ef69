"""Links are made, cut and moved by keys alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import Input

from dld_tui.core.model.document import Node
from dld_tui.core.model.tensors.value_types import ValueType
from dld_tui.widgets.dialogs.dialogs import ChoiceDialog
from dld_tui.widgets.dialogs.wiring import AddNode, NodePicker, TerminalPicker, ValuePicker
from dld_tui.widgets.parameters.edit_bar import EditBar
from tests.support import models
from tests.support.workspace import SIZES, Session, opened

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


def found(session: Session, name: str) -> Node:
    node = session.screen.document.main.find(name)
    assert node is not None
    return node


def told(session: Session) -> str:
    """Return the last notice."""
    notices = list(session.app._notifications)
    return notices[-1].message if notices else ""


def uncovered(session: Session) -> bool:
    """Return whether no dialog or page is over the workspace."""
    return session.app.screen is session.screen


async def at_boundary(session: Session, title: str, index: int) -> None:
    """Put the cursor on an input or output of the main graph."""
    session.screen.navigation.show_subject(session.screen.document.main)
    session.screen.panes.focus("parameters")
    assert session.screen.parameters.list.go_to_key((title, index))
    await session.pilot.pause()


async def choose(session: Session, kind: type[object], text: str) -> None:
    """Type into the picker that is open and take the first row."""
    await session.until(lambda: isinstance(session.app.screen, kind))
    await session.type(text)
    await session.press("enter")


@SIZES
async def test_connect_an_input_row_by_search(join: Path, size: tuple[int, int]) -> None:
    async with opened(join, size) as session:
        node = await session.go("join")
        await session.row("inputs 1")
        await session.press("c")
        await choose(session, ValuePicker, "low")
        assert (*node.inputs,) == ("part", "low", "z")
        await session.press("u")
        assert (*node.inputs,) == ("part", "x", "z")


async def an_input_that_was_left_out_has_a_row_to_connect(session: Session) -> None:
    node = await session.go("limit")
    await session.row("max")
    await session.press("c")
    await choose(session, ValuePicker, "x")
    assert (*node.inputs,) == ("z", "", "x")
    await session.press("K")
    assert (*node.inputs,) == ("z",)


async def a_value_of_another_type_is_connected_with_a_warning(session: Session) -> None:
    node = await session.go("limit")
    await session.row("min")
    await session.press("c")
    await session.until(lambda: isinstance(session.app.screen, ValuePicker))
    assert "int64, but input" in session.text
    await session.type("shape")
    await session.press("enter")
    assert (*node.inputs,) == ("z", "shape")
    assert "the types differ" in told(session)


@SIZES
async def test_connect_from_the_explorer_asks_which_end(join: Path, size: tuple[int, int]) -> None:
    async with opened(join, size) as session:
        await session.go("left")
        await session.press("c")
        await choose(session, TerminalPicker, "output")
        await choose(session, NodePicker, "join")
        await session.until(lambda: isinstance(session.app.screen, TerminalPicker))
        await session.type("3")
        await session.press("enter")
        assert found(session, "join").inputs == ("part", "x", "z", "part")


async def a_cycle_is_refused(session: Session) -> None:
    await session.go("left")
    await session.row("X x")
    await session.press("c")
    await choose(session, ValuePicker, "y Concat")
    assert "cycle" in told(session)
    assert found(session, "left").inputs == ("x",)
    await session.go("join")
    session.screen.panes.focus("parameters")
    assert session.screen.parameters.list.go_to_key(("output", 0))
    await session.pilot.pause()
    await session.press("c")
    await choose(session, NodePicker, "left")
    assert "cycle" in told(session)
    assert uncovered(session)


async def one_more_input_and_one_less(session: Session) -> None:
    node = await session.go("join")
    session.screen.wiring.add_terminal()
    await choose(session, ValuePicker, "low")
    assert (*node.inputs,) == ("part", "x", "z", "low")
    await session.row("inputs 0")
    session.screen.wiring.remove_terminal()
    await session.settle()
    assert (*node.inputs,) == ("x", "z", "low")


async def a_needed_input_is_cut_only_after_asking(session: Session) -> None:
    node = await session.go("left")
    await session.row("X x")
    await session.press("K")
    assert isinstance(session.app.screen, ChoiceDialog)
    await session.press("k")
    assert (*node.inputs,) == ("x",)
    await session.press("K", "d")
    assert (*node.inputs,) == ()
    assert any("nothing connected" in row for row in session.details)


async def all_users_of_an_output_are_cut(session: Session) -> None:
    await session.go("left")
    await session.row("Y part")
    await session.press("K", "d")
    assert found(session, "join").inputs == ("", "x", "z")


async def replace_uses_and_bypass(session: Session) -> None:
    await session.go("left")
    await session.press("R")
    await choose(session, ValuePicker, "low")
    assert found(session, "join").inputs == ("low", "x", "z")
    await session.go("limit")
    session.screen.wiring.bypass()
    await session.settle()
    assert found(session, "join").inputs == ("z", "x", "z")


@pytest.mark.parametrize("row", ["inputs 1", ""])
async def test_insert_on_one_link_or_behind_a_value(join: Path, row: str) -> None:
    async with opened(join) as session:
        node = await session.go("join" if row else "left")
        if row:
            await session.row(row)
        await session.press("I")
        await choose(session, AddNode, "Neg")
        inserted = next(n for n in session.screen.document.main.nodes if n.op_type == "Neg")
        if row:
            assert inserted.inputs == ("x",)
            assert (*node.inputs,) == ("part", inserted.outputs[0], "z")
        else:
            # The output keeps its name, and is what the new node makes.
            assert (inserted.inputs, inserted.outputs) == (("part_inner",), ("part",))
            assert found(session, "join").inputs == ("part", "x", "z")
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


@SIZES
async def test_a_graph_input_gets_another_type_and_place(join: Path, size: tuple[int, int]) -> None:
    async with opened(join, size) as session:
        main = session.screen.document.main
        await at_boundary(session, "Inputs", 1)
        await session.press("e", "ctrl+u")
        await session.type("float16[N")
        await session.press("enter")
        assert session.screen.query(EditBar), "it is no type, so the bar stays"
        await session.type(", 8]")
        await session.press("enter")
        known = main.value_type("z")
        assert known is not None
        assert known.text == "float16[N, 8]"
        await session.press("shift+down")
        assert (*main.inputs,) == ("x", "shape", "z")
        await session.press("shift+up", "shift+up", "shift+up")
        assert (*main.inputs,) == ("z", "x", "shape")


async def an_output_gives_another_value(session: Session) -> None:
    main = session.screen.document.main
    await at_boundary(session, "Outputs", 1)
    await session.press("c")
    await choose(session, ValuePicker, "low")
    assert (*main.outputs,) == ("y", "low")


async def the_type_of_an_inner_value_is_declared(session: Session) -> None:
    await session.go("limit")
    await session.press("T")
    await session.type("f32[N, 4]")
    await session.press("enter")
    known = session.screen.document.main.value_type("low")
    assert known is not None
    assert known.text == "float32[N, 4]"


@pytest.mark.broad
async def test_links_are_made_and_cut(join: Path) -> None:
    async with opened(join) as session:
        for check in (
            an_input_that_was_left_out_has_a_row_to_connect,
            a_value_of_another_type_is_connected_with_a_warning,
            a_cycle_is_refused,
            one_more_input_and_one_less,
            a_needed_input_is_cut_only_after_asking,
            all_users_of_an_output_are_cut,
            replace_uses_and_bypass,
            graph_inputs_and_outputs_are_made_and_removed,
            an_output_gives_another_value,
            the_type_of_an_inner_value_is_declared,
        ):
            await check(session)
            await session.reset()


@pytest.mark.broad
async def test_an_input_of_unknown_rank_asks_for_its_type(tmp_path: Path) -> None:
    model = models.parse(
        '<ir_version: 10, opset_import: ["" : 18]>\n'
        "net (float x) => (float y) { [r] t = Relu (x) [n] y = Neg (t) }"
    )
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
