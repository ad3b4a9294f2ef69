"""The list of functions, and what is done with functions in the workspace, by keys alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.errors import UsageError
from dld_tui.core.model.document.local_functions import function_attributes, key_of
from dld_tui.screens.model.functions import FunctionsScreen, attribute_values, parse_declaration
from dld_tui.widgets.dialogs.dialogs import FieldsDialog
from tests.support import body_models, models
from tests.support.workspace import NARROW, SIZES, Session, opened


@pytest.fixture
def shapes(tmp_path: Path) -> Path:
    return models.write(tmp_path, body_models.SHAPES)


async def list_functions(session: Session) -> FunctionsScreen:
    await session.press("F")
    page = session.app.screen
    assert isinstance(page, FunctionsScreen)
    await session.until(lambda: page.focused is page.view)
    return page


async def retype(session: Session, text: str) -> None:
    await session.press("ctrl+a", "ctrl+u", "ctrl+k")
    await session.type(text)


@SIZES
async def test_the_list_and_opening_a_function(shapes: Path, size: tuple[int, int]) -> None:
    async with opened(shapes, size) as session:
        await list_functions(session)
        assert "local.leaky (x, y) → (r)" in session.text
        assert "slope: float = 0.25" in session.text
        await session.press("down")
        assert "local.outer (v) → (r)" in session.text
        await session.press("enter")
        assert session.app.screen is session.screen
        assert session.screen.explorer.model.root is session.screen.document.functions[1]


async def the_list_begins_on_the_function_of_the_cursor(session: Session) -> None:
    for name, title in (("third", "outer"), ("first", "leaky"), ("neg", "outer")):
        await session.go(name)
        page = await list_functions(session)
        assert str(page.view.lines.text(page.view.cursor)).startswith(title)
        await session.press("escape")


async def going_to_an_instance(session: Session) -> None:
    await list_functions(session)
    await session.press("right_square_bracket")
    await session.type("inner")
    await session.until(lambda: "1" in session.text)
    await session.press("enter")
    node = session.screen.explorer.node
    assert node is not None
    assert node.name == "inner"


async def create_refuses_a_name_that_is_there_and_then_makes_another(session: Session) -> None:
    page = await list_functions(session)
    await session.press("a")
    await session.type("leaky")
    await session.press("enter")
    assert "already a function 'local.leaky'" in session.text
    await retype(session, "Fresh")
    await session.press("tab", "tab")
    await session.type("a, b")
    await session.press("enter")
    assert session.app.screen is page
    made = session.screen.document.functions[-1]
    assert (key_of(made), made.inputs) == (("local", "Fresh", ""), ("a", "b"))
    await session.press("u")
    assert len(page.view.lines) == 2


async def rename_duplicate_delete_and_inline(session: Session) -> None:
    page = await list_functions(session)
    document = session.screen.document
    await session.press("r")
    await retype(session, "soft")
    await session.press("enter")
    assert document.main.find("first").op_type == "soft"  # type: ignore[union-attr]
    await session.press("y")
    await retype(session, "soft2")
    await session.press("enter")
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
    await session.type("axes")
    await session.press("enter")
    await session.press("enter")
    await retype(session, "axes = 3")
    await session.press("enter")
    assert "type a name, or a name with a default" in session.text
    await session.press("escape", "home", "d")
    assert [row.name for row in function_attributes(function)] == ["slope"]
    await session.press("d")
    assert [row.name for row in function_attributes(function)] == ["slope"], "it is used"


@pytest.mark.broad
async def test_functions_in_a_small_terminal(shapes: Path) -> None:
    async with opened(shapes, NARROW) as session:
        for check in (
            create_refuses_a_name_that_is_there_and_then_makes_another,
            attributes_of_a_function,
        ):
            await check(session)
            await session.reset()


def test_declarations() -> None:
    assert parse_declaration(" slope ") == ("slope", None, None)
    assert parse_declaration("slope: float = 0.5") == ("slope", "float", 0.5)
    assert parse_declaration("axes:ints=[1, 2]") == ("axes", "ints", [1, 2])
    assert parse_declaration("s: string = 'a = b: c'") == ("s", "string", "a = b: c")
    for text in ("", "a b", "a: int", "a: int = x", "a: nothing = 1"):
        with pytest.raises(UsageError):
            parse_declaration(text)


@SIZES
@pytest.mark.broad
async def test_make_a_function_of_marked_nodes_and_inline_it(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    async with opened(models.write(tmp_path, models.CHAIN), size) as session:
        await session.go("second")
        second = session.screen.document.main.find("second")
        third = session.screen.document.main.find("third")
        session.screen.explorer.list.set_marks({second, third})
        await session.press("O")
        assert isinstance(session.app.screen, FieldsDialog)
        await retype(session, "Square")
        await session.press("enter")
        main = session.screen.document.main
        assert [node.op_type for node in main.nodes] == ["Relu", "Square", "Sigmoid"]
        node = session.screen.model.cursor.node
        assert node is not None
        assert node.op_type == "Square"
        await session.press("U")
        assert [node.op_type for node in main.nodes] == ["Relu", "Add", "Mul", "Sigmoid"]


@pytest.mark.broad
async def test_replace_by_a_custom_node(tmp_path: Path) -> None:
    async with opened(models.write(tmp_path, models.CHAIN)) as session:
        await session.go("third")
        session.screen.functions.replace_by_custom()
        await session.pilot.pause()
        await session.type("mine.Plug")
        await session.press("tab", "tab", "tab")
        await session.type("scale=0.5")
        await session.press("enter")
        node = session.screen.document.main.nodes[2]
        assert (node.op_type, node.domain, node.inputs) == ("Plug", "mine", ("b",))
        assert node.name == "third"
        assert [one.name for one in node.attributes()] == ["scale"]


async def an_attribute_refers_to_one_of_the_function(session: Session) -> None:
    await session.go("zero")
    assert "inside_function" not in session.screen.conditions()
    await session.row("value_float")
    assert "inside_function" in session.screen.conditions()
    await session.press("A")
    await session.type("scale")
    await session.until(lambda: "scale: float" in session.text)
    await session.press("enter")
    function = session.screen.document.functions[1]
    attribute = function.find("zero").attribute("value_float")  # type: ignore[union-attr]
    assert attribute is not None
    assert attribute.reference == "scale"
    await session.row("value_float")
    await session.press("A")
    await session.type("declare")
    await session.until(lambda: "declare a new attribute" in session.text)
    await session.press("enter")
    await retype(session, "bias: float = 1.5")
    await session.press("enter")
    attribute = function.find("zero").attribute("value_float")  # type: ignore[union-attr]
    assert attribute is not None
    assert attribute.reference == "bias"
    assert "bias: float = 1.5" in [row.text for row in function_attributes(function)]


async def an_attribute_that_refers_gets_a_value_again(session: Session) -> None:
    await session.go("act")
    await session.row("alpha")
    await session.press("e")
    assert "a value instead of slope" in session.text
    await session.type("0.5")
    await session.press("enter")
    attribute = session.screen.document.functions[0].find("act").attribute("alpha")  # type: ignore[union-attr]
    assert attribute is not None
    assert (attribute.reference, attribute.value) == (None, 0.5)


async def the_details_of_a_function_list_its_attributes(session: Session) -> None:
    await list_functions(session)
    await session.press("enter")
    session.screen.navigation.show_subject(session.screen.document.functions[0])
    await session.pilot.pause()
    row = next(row for row in session.details if row.strip().startswith("slope"))
    assert "float = 0.25" in row
    assert "1 use" in row


@pytest.mark.broad
async def test_functions_and_their_attributes(shapes: Path) -> None:
    async with opened(shapes) as session:
        for check in (
            the_list_begins_on_the_function_of_the_cursor,
            the_details_of_a_function_list_its_attributes,
            going_to_an_instance,
            an_attribute_refers_to_one_of_the_function,
            an_attribute_that_refers_gets_a_value_again,
            rename_duplicate_delete_and_inline,
        ):
            await check(session)
            await session.reset()


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
