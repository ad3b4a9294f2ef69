"""Functions and subgraphs: listed, made, changed and inlined in the workspace, by keys alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.errors import UsageError
from dld_tui.core.model.document import Attribute, Document
from dld_tui.core.model.document.local_functions import function_attributes, key_of
from dld_tui.screens.model.functions import FunctionsScreen, attribute_values, parse_declaration
from dld_tui.screens.workspace.functions import Slot, body_slots
from dld_tui.widgets.dialogs.dialogs import FieldsDialog
from tests.support import body_models, models
from tests.support.workspace import Session, opened


@pytest.fixture
def shapes(tmp_path: Path) -> Path:
    return models.write(tmp_path, body_models.SHAPES)


async def list_functions(session: Session) -> FunctionsScreen:
    await session.press("F")
    page = session.in_front(FunctionsScreen)
    await session.until(lambda: page.focused is page.view)
    return page


async def a_function_is_opened_from_the_list(session: Session) -> None:
    page = await list_functions(session)
    assert "local.leaky (x, y) → (r)" in session.text
    assert "slope: float = 0.25" in session.text
    await session.press("down")
    assert "local.outer (v) → (r)" in session.text
    await session.press("enter")
    assert session.app.screen is session.screen
    outer = session.screen.document.functions[1]
    assert session.screen.explorer.model.root is outer
    session.screen.navigation.show_subject(session.screen.document.functions[0])
    await session.pilot.pause()
    (row,) = (row for row in session.details if row.strip().startswith("slope"))
    assert "float = 0.25" in row
    assert "1 use" in row
    page = await list_functions(session)
    page.view.cursor = 0
    await session.press("]")  # to an instance
    await session.type("inner", "enter")
    assert session.at == "inner"


async def the_list_begins_on_the_function_of_the_cursor(session: Session) -> None:
    for name, title in (("third", "outer"), ("first", "leaky"), ("neg", "outer")):
        await session.go(name)
        page = await list_functions(session)
        assert str(page.view.lines.text(page.view.cursor)).startswith(title)
        await session.press("escape")


async def create_refuses_a_name_that_is_there_and_then_makes_another(session: Session) -> None:
    page = await list_functions(session)
    await session.press("a")
    await session.type("leaky", "enter")
    assert "already a function 'local.leaky'" in session.text
    await session.retype("Fresh", "tab", "tab")
    await session.type("a, b", "enter")
    assert session.app.screen is page
    made = session.screen.document.functions[-1]
    assert (key_of(made), made.inputs) == (("local", "Fresh", ""), ("a", "b"))
    await session.press("u")
    assert len(page.view.lines) == 2


async def rename_duplicate_delete_and_inline(session: Session) -> None:
    page = await list_functions(session)
    document = session.screen.document
    await session.press("r")
    await session.retype("soft", "enter")
    assert document.main.find("first").op_type == "soft"  # type: ignore[union-attr]
    await session.press("y")
    await session.retype("soft2", "enter")
    assert [key_of(f)[1] for f in document.functions] == ["soft", "outer", "soft2"]
    await session.press("U")
    assert document.main.find("first") is None
    assert page.row is not None
    assert page.row.instances == []
    await session.press("d")
    assert [key_of(f)[1] for f in document.functions] == ["outer", "soft2"]
    while document.history.done:
        await session.press("u")
    assert not document.dirty


async def attributes_of_a_function(session: Session) -> None:
    await list_functions(session)
    function = session.screen.document.functions[0]
    await session.press("e")
    assert "slope: float = 0.25  used 1x" in session.text
    await session.press("a")
    await session.type("axes", "enter", "enter")
    await session.retype("axes = 3", "enter")
    assert "type a name, or a name with a default" in session.text
    await session.press("escape", "home", "d")
    assert [row.name for row in function_attributes(function)] == ["slope"]
    await session.press("d")
    assert [row.name for row in function_attributes(function)] == ["slope"], "it is used"


def test_declarations() -> None:
    assert parse_declaration(" slope ") == ("slope", None, None)
    assert parse_declaration("slope: float = 0.5") == ("slope", "float", 0.5)
    assert parse_declaration("axes:ints=[1, 2]") == ("axes", "ints", [1, 2])
    assert parse_declaration("s: string = 'a = b: c'") == ("s", "string", "a = b: c")
    for text in ("", "a b", "a: int", "a: int = x", "a: nothing = 1"):
        with pytest.raises(UsageError):
            parse_declaration(text)


@pytest.mark.broad
async def test_make_a_function_of_marked_nodes_and_inline_it(chain: Path) -> None:
    async with opened(chain) as session:
        main = session.screen.document.main
        await session.go("second")
        session.screen.explorer.list.set_marks({*main.nodes[1:3]})
        await session.press("O")
        session.in_front(FieldsDialog)
        await session.retype("Square", "enter")
        assert [node.op_type for node in main.nodes] == ["Relu", "Square", "Sigmoid"]
        assert session.screen.model.cursor.node is main.nodes[1]
        await session.press("U")
        assert [node.op_type for node in main.nodes] == ["Relu", "Add", "Mul", "Sigmoid"]


def attribute_of(session: Session, function: int, node: str, name: str) -> Attribute:
    found = session.screen.document.functions[function].find(node)
    assert found is not None
    attribute = found.attribute(name)
    assert attribute is not None
    return attribute


async def an_attribute_refers_to_one_of_the_function(session: Session) -> None:
    await session.go("zero")
    assert "inside_function" not in session.screen.conditions()
    await session.row("value_float")
    assert "inside_function" in session.screen.conditions()
    await session.press("A")
    await session.type("scale")
    await session.shows("scale: float")
    await session.press("enter")
    assert attribute_of(session, 1, "zero", "value_float").reference == "scale"
    await session.row("value_float", "A")
    await session.type("declare")
    await session.shows("declare a new attribute")
    await session.press("enter")
    await session.retype("bias: float = 1.5", "enter")
    assert attribute_of(session, 1, "zero", "value_float").reference == "bias"
    declared = function_attributes(session.screen.document.functions[1])
    assert "bias: float = 1.5" in [row.text for row in declared]


async def an_attribute_that_refers_gets_a_value_again(session: Session) -> None:
    await session.go("act")
    await session.row("alpha", "e")
    assert "a value instead of slope" in session.text
    await session.type("0.5", "enter")
    attribute = attribute_of(session, 0, "act", "alpha")
    assert (attribute.reference, attribute.value) == (None, 0.5)


@pytest.mark.broad
async def test_functions_and_their_attributes(shapes: Path) -> None:
    async with opened(shapes) as session:
        await session.in_turn(
            the_list_begins_on_the_function_of_the_cursor,
            an_attribute_refers_to_one_of_the_function,
            an_attribute_that_refers_gets_a_value_again,
            rename_duplicate_delete_and_inline,
        )


def test_attributes_are_typed_as_a_list() -> None:
    text = "iou=0.5, most=100, v='1', mode=fast, s=[1, 2], f: floats=[1], t=float32 [1, 2]"
    found = attribute_values(text)
    assert {name: about["kind"] for name, about in found.items() if isinstance(about, dict)} == {
        "iou": "float", "most": "int", "v": "string", "mode": "string", "s": "ints", "f": "floats",
        "t": "tensor",
    }  # fmt: skip
    assert found["v"] == {"kind": "string", "value": "1"}
    assert found["f"] == {"kind": "floats", "value": [1.0]}
    for text, message in (("iou", "'iou' is no attribute"), ("s=[]", "several kinds")):
        with pytest.raises(UsageError, match=message):
            attribute_values(text)


async def a_subgraph_is_deleted_and_the_other_copied_in_its_place(session: Session) -> None:
    node = await session.go("choose", "L")
    assert "choose has 2 subgraphs" in session.text
    await session.press("d")
    await session.type("else")
    await session.until(lambda: "then_branch" not in session.text.partition("which")[2])
    await session.press("enter")
    assert list(node.children) == ["then_branch"]
    await session.press("L", "c", "1")
    await session.shows("1 captured")
    await session.press("enter")
    copied = node.children["else_branch"][0]
    assert session.screen.explorer.model.root is copied
    assert len(copied.nodes) == 2


async def a_new_subgraph_is_opened(session: Session) -> None:
    node = await session.go("pre", "L", "a")
    await session.type("body", "enter")
    assert session.screen.explorer.model.root is node.children["body"][0]
    assert session.screen.explorer.model.root.path == ("pre:body",)


async def a_refused_copy_says_why(session: Session) -> None:
    await session.go("pre", "L", "c")
    await session.type("body", "enter")
    await session.shows("1 captured")
    await session.press("enter")
    assert not session.screen.document.history.done
    assert "computed from 'pre'" in session.told[-1]


@pytest.mark.broad
async def test_subgraphs_of_nodes(branches: Path) -> None:
    async with opened(branches) as session:
        await session.in_turn(
            a_subgraph_is_deleted_and_the_other_copied_in_its_place,
            a_new_subgraph_is_opened,
            a_refused_copy_says_why,
        )


@pytest.mark.broad
async def test_subgraphs_in_a_list(tmp_path: Path) -> None:
    async with opened(body_models.write(tmp_path, "SWITCH")) as session:
        node = await session.go("pick")
        first, second, third = node.children["cases"]
        await session.press("L", "m")
        await session.shows("cases[2]")
        await session.press("down", "down", "enter")
        assert node.children["cases"] == [third, first, second]
        await session.press("L", "a")
        await session.settle()
        assert len(node.children["cases"]) == 4


def test_where_a_subgraph_can_go(tmp_path: Path) -> None:
    document = Document.open(models.write(tmp_path, models.BRANCHES))
    choose = document.main.find("choose")
    assert choose is not None
    assert [slot.label for slot in body_slots(choose)] == [
        "else_branch, replacing the present one",
        "then_branch, replacing the present one",
    ]
    document.apply("delete_subgraph", scope=[], node="choose", attribute="else_branch")
    assert body_slots(choose) == [
        Slot("else_branch", many=False),
        Slot("then_branch", many=False, replaces=True),
    ]
    switch = Document.open(body_models.write(tmp_path, "SWITCH")).main.find("pick")
    assert switch is not None
    assert body_slots(switch) == [Slot("cases", many=True)]
