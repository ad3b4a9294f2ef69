"""Controllers of a workspace without an app: what they are told, what they do."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import onnx
import pytest
from onnx import helper

import dld_tui.screens.workspace as room
from dld_tui.commands import in_scope
from dld_tui.core.model import edits
from dld_tui.core.model.document import Document
from dld_tui.core.model.document.operator_listing import operator_palette
from dld_tui.screens.workspace.controller import listeners
from dld_tui.screens.workspace.conversion import Conversion
from dld_tui.screens.workspace.editing import Editing, outside_uses
from dld_tui.screens.workspace.history import MANY
from dld_tui.screens.workspace.navigation import Navigation
from dld_tui.screens.workspace.node_list import recall_arrangement
from dld_tui.screens.workspace.page import CONTROLLERS, WorkspaceScreen
from dld_tui.screens.workspace.state import Cursor, EditableKind
from dld_tui.screens.workspace.wiring import Wiring
from dld_tui.widgets.explorer.branches import Branch
from dld_tui.widgets.explorer.state import ExplorerModel
from dld_tui.widgets.parameters.descriptions import ParameterRow
from dld_tui.widgets.parameters.terminals import Terminal
from tests.support import models
from tests.support.desk import Desk
from tests.support.workspace import write_long


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    document = Document.open(models.write(tmp_path, models.CHAIN))
    yield Desk(document)
    document.close()


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        (ParameterRow(("attribute", "axis"), attribute="axis"), EditableKind.ATTRIBUTE),
        (ParameterRow(("metadata", "key")), EditableKind.TEXT),
        (ParameterRow(("fact", "size")), EditableKind.OTHER),
    ],
)
def test_each_row_has_its_kind(desk: Desk, row: ParameterRow, kind: EditableKind) -> None:
    first = desk.node("first")
    cursor = Cursor(subject=first, node=first, in_parameters=True, row=row)
    assert cursor.target is kind
    of_graph = Cursor(subject=desk.document.main, in_parameters=True, row=row).conditions()
    assert not {"nodes", "deletable"} & of_graph


def test_nodes_are_pasted_where_the_cursor_is(desk: Desk) -> None:
    scope = desk.document.main
    branch = Branch.of_scope(scope, 4)
    assert Cursor(node=desk.node("first")).target_scope is scope
    assert Cursor(branch=branch).target_scope is scope
    assert Cursor(branch=branch, in_parameters=True).target_scope is None


def test_undo_goes_to_what_it_changed_and_redo_says_so(desk: Desk) -> None:
    redone: list[str] = []
    desk.model.redone.listeners = (lambda transaction: redone.append(transaction.edit),)
    assert desk.history.conditions(Cursor()) == set()
    assert desk.history.try_edit(edits.renaming.rename_node(scope=[], node="third", name="cube"))
    assert desk.history.conditions(Cursor()) == {"can_undo"}
    desk.history.undo()
    assert desk.gone_to == [desk.node("third")]
    assert desk.history.conditions(Cursor()) == {"can_redo"}
    desk.history.redo()
    assert redone == ["rename_node"]
    assert [text.partition(":")[0] for text in desk.said] == ["Undone", "Done again"]


def test_what_does_not_fit_is_said_and_changes_nothing(desk: Desk) -> None:
    assert not desk.history.try_edit(edits.renaming.rename_node(scope=[], node="nowhere", name="x"))
    assert len(desk.said) == 1
    desk.work.is_running = True
    assert not desk.history.try_edit(
        edits.renaming.rename_node(scope=[], node="first", name="stem")
    )
    desk.history.change("Renaming", [], large=False)
    assert desk.said[1:] == [
        "wait until the file is saved", "wait for the running task to end"
    ]  # fmt: skip
    assert desk.document.history.done == []


@pytest.fixture
def editing(desk: Desk) -> Editing:
    none = cast("Any", None)
    return Editing(
        *desk.base, none, desk.navigation, desk.history, none, cast("Any", SimpleNamespace())
    )


def test_a_node_is_deleted_at_once_where_nothing_uses_it(desk: Desk, editing: Editing) -> None:
    desk.history.edit(edits.links.disconnect_value(scope=[], value="a"))
    desk.look(Cursor(node=desk.node("first")))
    editing.delete()
    assert len(desk.document.main.nodes) == 3
    desk.history.undo()
    desk.history.undo()
    desk.look(Cursor(node=desk.node("first")))
    editing.delete()
    assert len(desk.document.main.nodes) == 4
    assert "1 place" in desk.dialogs[0].message
    editing.delete_nodes(list(desk.document.main.nodes) * MANY, reconnect=False)
    assert desk.started == [f"Deleting {4 * MANY:,} nodes"]


async def _known(*, always: bool) -> None: ...


TYPED = cast("Any", SimpleNamespace(typed=_known))
"""Inference that knows the types of the model."""


def on_link(desk: Desk, name: str, index: int = 0) -> Cursor:
    """Return the cursor on the link that leads to an input of a node."""
    node = desk.node(name)
    terminal = Terminal(node.scope, "input", node.inputs[index], node, index)
    return Cursor(subject=node, node=node, in_graph=True, link=terminal)


def test_a_link_is_the_end_that_it_leads_to(desk: Desk) -> None:
    cursor = on_link(desk, "second")
    assert (cursor.target, cursor.value, cursor.place[0]) == (EditableKind.LINK, "a", "input")
    assert cursor.scope is desk.document.main
    assert {"end", "input", "wired", "value", "node", "cursor"} <= cursor.conditions()
    result = Cursor(in_graph=True, link=Terminal(desk.document.main, "output", "y"))
    assert (result.target, result.value, result.place[0]) == (EditableKind.LINK, "y", "boundary")
    assert "boundary" in result.conditions()


def test_links_are_cut_given_another_value_and_an_operator(desk: Desk) -> None:
    added: list[Any] = []
    wiring = Wiring(*desk.base, cast("Any", None), cast("Any", None), desk.history, TYPED)

    async def add(wanted: Any, *, asks: bool) -> None:
        added.append(wanted)

    wiring.add_wired = add  # type: ignore[method-assign, assignment]
    desk.look(on_link(desk, "second"))
    wiring.disconnect()
    assert "needs its input A" in desk.dialogs[0].message
    wiring.connect()
    assert desk.dialogs[1].TITLE_TEXT == "Connect to input A of Add second"
    palette = operator_palette(desk.document.main, {})
    desk.answers.append(next(item for item in palette.operators if item.name == "Relu"))
    relu = desk.answers[-1]
    wiring.insert_on_link()
    assert added[0].users_of == [["second", 0]]
    # The same link, from where it begins.
    first, second = desk.node("first"), desk.node("second")
    terminal = Terminal(first.scope, "output", "a", first, 0, user=second)
    desk.look(Cursor(subject=first, node=first, in_graph=True, link=terminal))
    desk.answers.append(relu)
    wiring.insert_on_link()
    assert added[1].users_of == [["second", 0]]


class NavigationOfDesk(Navigation):
    cursor = property(lambda self: self.model.cursor)


def test_from_a_link_one_goes_to_both_ends(desk: Desk) -> None:
    shown: list[Any] = []
    navigation = NavigationOfDesk(*desk.base, cast("Any", None))
    navigation.go_to = shown.append  # type: ignore[method-assign, assignment]
    desk.look(on_link(desk, "second"))
    navigation.go_source()
    navigation.go_destination()
    assert shown == [desk.node("first"), desk.node("second")]
    desk.look(Cursor(in_graph=True, link=Terminal(desk.document.main, "output", "y")))
    navigation.go_destination()
    assert desk.said == ["Nothing is connected here"]


def test_back_and_forward_skip_what_is_gone(desk: Desk) -> None:
    here = SimpleNamespace(node=desk.node("first"))
    navigation = NavigationOfDesk(*desk.base, cast("Any", SimpleNamespace(explorer=here)))
    navigation.go_to = lambda node, remember: vars(here).update(node=node)  # type: ignore[method-assign, assignment, misc]
    desk.page.conditions_changed = lambda: None
    second, third, last = (desk.node(name) for name in ("second", "third", "last"))
    for node in (second, third, last):
        navigation.remember()
        here.node = node
    desk.document.apply("delete_nodes", scope=[], nodes=["third"])
    navigation.go_back()
    assert here.node is second
    navigation.go_forward()
    assert here.node is last


def test_uses_outside_of_few_nodes_are_counted(tmp_path: Path) -> None:
    model = onnx.load(path := write_long(tmp_path, MANY + 1))
    model.graph.node[0].output.insert(0, "")  # one that is left out, before one that is used
    onnx.save(model, path)
    document = Document.open(path)
    nodes = list(document.main.nodes)
    assert [outside_uses(nodes[:count]) for count in (1, MANY, MANY + 1)] == [1, 1, 1000]
    document.close()


def test_every_command_of_a_controller_is_there() -> None:
    page = WorkspaceScreen()
    named = [row.action.partition(".") for row in in_scope("workspace") if "." in row.action]
    assert len(named) > 90
    for controller, _, method in named:
        assert callable(getattr(getattr(page, controller), method)), (controller, method)


def test_the_page_hears_what_its_controllers_hear() -> None:
    heard = {kind for kind, _ in getattr(WorkspaceScreen.pane_message, "_textual_on", ())}
    assert heard == set(listeners(CONTROLLERS))
    assert len(heard) > 15
    assert {type(part) for part in WorkspaceScreen().controllers} == set(CONTROLLERS)


def test_controllers_do_not_know_the_page() -> None:
    for path in Path(room.__path__[0]).glob("*.py"):
        if path.stem == "page":
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for_typing = {
            inner
            for node in ast.walk(tree)
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
            for inner in ast.walk(node)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node not in for_typing:
                assert node.module != "dld_tui.screens.workspace.page", path


def test_what_a_provider_compiled_is_extracted(tmp_path: Path) -> None:
    engine = b"blob of a provider" * 100
    node = helper.make_node(
        "EPContext", ["x"], ["y"], name="part", domain="com.microsoft", ep_cache_context=engine
    )
    ends = [helper.make_tensor_value_info(name, 1, [1]) for name in "xy"]
    graph = helper.make_graph([node], "g", ends[:1], ends[1:])
    onnx.save(helper.make_model(graph), tmp_path / "m.onnx")
    document = Document.open(tmp_path / "m.onnx")
    desk = Desk(document)
    desk.answers += [tmp_path / "out.engine", "1"]  # the file, and to stay here
    desk.look(Cursor(node=document.main.nodes[0]))
    none = cast("Any", None)
    Conversion(*desk.base, desk.history, none, none, none).extract()
    assert (tmp_path / "out.engine").read_bytes() == engine
    assert len(desk.dialogs) == 2
    assert desk.started == ["Extracting"]
    document.close()


def test_how_a_model_was_listed_is_recalled_for_it_alone(desk: Desk) -> None:
    for wanted in (False, True):
        for path, view in (
            ("/a/m.onnx", "FILE"),
            ("/a/n.onnx", ExplorerModel(desk.document).view.name),
        ):
            listing = ExplorerModel(desk.document)
            kept = {"view": "FILE", "model": "/a/m.onnx", "descending": wanted}
            recall_arrangement(kept, wanted, listing, Path(path))
            assert (listing.show_constants, listing.view.name) == (wanted, view)
            assert listing.descending == (wanted and path == "/a/m.onnx")
