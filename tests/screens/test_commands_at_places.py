"""What each command of a model's page does at each place: `commands_at_places.txt`, beside this.

No app runs: commands that show or move panes are left out, and dialogs are answered at once.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from textual._context import NoActiveAppError

from dld_tui.commands import Command, in_scope
from dld_tui.core.model.document import Document
from dld_tui.screens.workspace.page import WorkspaceScreen
from dld_tui.screens.workspace.state import Cursor
from dld_tui.widgets.dialogs.dialogs import ChoiceDialog, PromptDialog
from dld_tui.widgets.explorer.branches import Branch
from dld_tui.widgets.parameters.descriptions import ParameterRow
from dld_tui.widgets.parameters.terminals import Terminal
from tests.support import models
from tests.support.desk import Desk
from tests.support.recorded import hold

_SLOW = {"accuracy.compare", "accuracy.search", "accuracy.tactics", "pane.4"}
"""They import what judges accuracy, or wait for checks."""
_NOT_HERE = "not here"
FILE = Path(__file__).with_name("commands_at_places.txt")
MODEL = """
<ir_version: 10, opset_import: ["" : 18, "local" : 1]>
calls (float[N, 4] x, bool c) => (float[N, 4] y) <float[4] w = {1, 2, 3, 4}>
{
    [pre] h = Relu(x)
    [call] a = local.leaky <slope: float = 0.5> (h, w)
    [choose] b = If (c) <
        then_branch = yes () => (t) { [neg] t = Neg(a) },
        else_branch = no () => (e) { [abs] e = Abs(a) }
    >
    [act] d = LeakyRelu <alpha: float = 0.2> (b)
    [last] y = Add(d, h)
}
<domain: "local", opset_import: ["" : 18]>
leaky <slope: float = 0.25> (x, y) => (r)
{
    [inner] g = LeakyRelu <alpha: float = @slope> (x)
    [sub] r = Sub(g, y)
}
"""


def node(name: str) -> Callable[[Desk], Cursor]:
    """Return what puts the cursor on a node of any graph of the model."""

    def place(desk: Desk) -> Cursor:
        found = (scope.find(name) for scope in desk.document.scopes())
        return Cursor(node=next(filter(None, found)))

    return place


def a_fact(desk: Desk) -> Cursor:
    act = desk.node("act")
    return Cursor(subject=act, node=act, in_parameters=True, row=ParameterRow(("fact", "size")))


def link(desk: Desk) -> Cursor:
    last = desk.node("last")
    terminal = Terminal(desk.document.main, "input", "h", last, 1)
    return Cursor(subject=last, node=last, in_graph=True, link=terminal)


PLACES: dict[str, Callable[[Desk], Cursor]] = {
    "nothing": lambda desk: Cursor(),
    "a graph": lambda desk: Cursor(branch=Branch.of_scope(desk.document.main, 5)),
    "a node": node("act"),
    "a call": node("call"),
    "a node with subgraphs": node("choose"),
    "a node of a subgraph": node("neg"),
    "a node of a function": node("inner"),
    "a node, two others marked": lambda desk: Cursor(
        node=desk.node("last"), marks={desk.node("pre"), desk.node("act")}
    ),
    "an input of the model": lambda desk: desk.cursor_on_scope("x"),
    "an output of the model": lambda desk: desk.cursor_on_scope("y"),
    "the name of a node": lambda desk: desk.cursor_on("pre", "node"),
    "an attribute": lambda desk: desk.cursor_on("act", "alpha"),
    "a weight": lambda desk: desk.cursor_on("call", "w"),
    "an input of a node": lambda desk: desk.cursor_on("last", "d"),
    "a link": link,
    "a fact of a node": a_fact,
}


def title_of(dialog: Any) -> str:
    title = f"“{dialog.TITLE_TEXT}”" if hasattr(dialog, "TITLE_TEXT") else type(dialog).__name__
    if isinstance(dialog, ChoiceDialog):
        title += f" {dialog.message} [{'; '.join(choice.label for choice in dialog.choices)}]"
    if isinstance(dialog, PromptDialog):
        title += f" {dialog.message} [{dialog.value}]"
    return " ".join(title.split())


def answer_of(dialog: Any) -> str | None:
    """The first of some choices, the text that is there."""
    if isinstance(dialog, ChoiceDialog):
        return dialog.choices[0].value
    return dialog.value if isinstance(dialog, PromptDialog) else None


def done_by(page: WorkspaceScreen, desk: Desk, command: Command) -> list[str] | None:
    """Run a command and take it back; return what it said, asked, opened and changed."""
    did: list[str] = []

    async def ask(dialog: Any) -> Any:
        did.append(f"asks {title_of(dialog)}")
        return answer_of(dialog)

    desk.page.notify = lambda text, **_: did.append(f"says “{text}”")
    desk.page.tasks.ask = ask
    desk.page.app = SimpleNamespace(
        push_screen=lambda screen, *_: did.append(f"opens {title_of(screen)}"),
        copy_to_clipboard=lambda text: did.append(f"copies “{text}”"),
        start_activity=lambda activity, *_: did.append(f"shows the form of {activity}"),
    )
    controller, _, method = command.action.partition(".")
    arguments = [int(command.parameter)] if command.parameter.lstrip("-").isdigit() else []
    try:
        getattr(getattr(page, controller), method)(*arguments)
    except (AttributeError, NoActiveAppError):
        return None  # it asks panes, or the app
    finally:
        did += [f"edits: {transaction.title}" for transaction in desk.document.history.done]
        while desk.document.history.done:
            desk.document.undo()
    return did


async def _known(*, always: bool) -> None:
    """Find the types of the model known."""


def done_at(desk: Desk, cursor: Cursor) -> dict[str, str]:
    """Return what each command that can run at a place does; the others say that it is none."""
    page = WorkspaceScreen(desk.document.path)
    for controller in page.controllers:
        controller.page, controller.model, controller.work = desk.base
    page.inference.typed = _known  # type: ignore[method-assign]
    done = {}
    for command in in_scope("workspace"):
        if "." not in command.action or command.id in _SLOW:
            continue
        desk.look(cursor)
        conditions = {"document"} | cursor.conditions()
        for controller in page.controllers:
            with suppress(AttributeError, NoActiveAppError):
                conditions |= controller.conditions(cursor)
        if command.unavailable(conditions):
            done[command.id] = _NOT_HERE
        elif (did := done_by(page, desk, command)) is not None:
            done[command.id] = "; ".join(did) or "nothing"
    return done


def table(model: Path) -> str:
    lines: list[str] = []
    usual: dict[str, str] = {}
    for place in PLACES:
        with closing(Document.open(model)) as document:
            desk = Desk(document)
            cursor = PLACES[place](desk)
            title = f"{place}: {': '.join(filter(None, cursor.place))}".removesuffix(": ")
            done = done_at(desk, cursor)
        lines.append(f"\n{title}\n" if usual else f"{title}\n")
        held = textwrap.fill(f"true here: {' '.join(sorted(cursor.conditions()))}", 96)
        lines.append(textwrap.indent(f"{held}\n", "    "))
        lines += [
            f"    {command}: {did}\n"
            for command, did in done.items()
            if did not in (_NOT_HERE, usual.get(command))
        ]
        absent = [command for command, did in done.items() if did == _NOT_HERE]
        text = textwrap.fill(f"not here: {' '.join(absent)}", 96, subsequent_indent="    ")
        lines.append(textwrap.indent(f"{text}\n", "    "))
        usual = usual or done
    return "".join(lines)


def test_each_command_does_what_the_table_says(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """After the first place, only what is done there otherwise is listed."""
    made = table(models.write(tmp_path, MODEL))
    assert ": nothing" not in made, "a command that can do nothing is grey, or says why"
    hold(FILE, made, pytestconfig)
