"""Help: keys and commands of the page that asked for it, and the documentation of operators."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, TypeAlias

from textual.containers import Vertical
from textual.screen import Screen
from textual.widget import Widget

from dld_tui.commands import in_scope
from dld_tui.commands.key_names import key_name, with_keys
from dld_tui.core.model.document.operator_listing import OperatorPalette, newest_opsets
from dld_tui.core.text import fit
from dld_tui.screens.home.palette import PaletteEntry
from dld_tui.styles import STYLES
from dld_tui.widgets.dialogs.operator_browser import OperatorBrowser
from dld_tui.widgets.dialogs.wiring import remember_grouping, remembered_grouping
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.lists.styled import ListSource, Piece, wrap
from dld_tui.widgets.shell.command_dispatch import HasCommands, hint, scopes_of
from dld_tui.widgets.shell.frame import Framed
from dld_tui.widgets.shell.page import Page

_FIRST_STEPS = (
    "Open a model with {file.open}. Move with the arrows or h j k l, open a subgraph or function"
    " with {go.body}, search with {list.search}. {edit.change} edits the value at the cursor,"
    " {edit.undo} undoes, {model.save} saves. {model.profile} profiles the model and opens the"
    " report, where {report.node} goes to the node in the model. {app.palette} lists every"
    " command."
)
_SCOPES = {
    "app": "Everywhere",
    "list": "In lists",
    "table": "In tables",
    "workspace": "Model",
    "explorer": "Layers",
    "findings": "Findings",
    "functions": "Functions",
    "initializers": "Initializers",
    "create": "New initializer",
    "tensor": "Tensor",
    "grid": "Tensor grid",
    "report": "Report",
    "job": "Job",
    "activity": "Activity",
    "settings": "Settings",
    "new_model": "New model",
    "start": "Start page",
    "page": "Pages",
    "parameters": "Parameters",
    "graph": "Graph",
    "canvas": "Boxes of the graph",
    "advice": "What may help",
    "timeline": "Timeline",
    "plan": "Engine plan",
    "log": "Log",
    "compare": "Comparison",
    "diff": "Comparison of models",
    "metadata": "Metadata",
    "profiles": "Shape profiles",
    "many_jobs": "Jobs",
    "targets": "Targets",
    "target_jobs": "Jobs on targets",
    "target_form": "Target",
    "tools": "Custom tools",
    "tool_form": "Custom tool",
    "accuracy": "Accuracy",
    "precision": "Precision",
    "tactics": "Tactics",
    "tuned": "Tuning result",
    "result": "Result",
    "ended_jobs": "Ended jobs",
    "beside": "Models side by side",
    "model_page": "Pages of a model",
}


_NOTE = 36
"""Cells before what a command does."""


class HelpList(LineView):
    """The lines of the help."""


class HelpScreen(Page):
    """Help for the screen that was shown when it was asked for."""

    MORE_SCOPES: ClassVar[tuple[str, ...]] = ("page",)
    tab_title = "help"

    def __init__(self, about: Screen[object]) -> None:
        super().__init__()
        self.about = about
        self._entries: dict[int, PaletteEntry] = {}
        """The commands by their rows."""

    def body(self) -> Iterable[Widget]:
        view = HelpList(gutter=False)
        view.frame.show("Help", "{list.activate} run  {list.search} search  {page.close} close")
        yield view

    def on_mount(self) -> None:
        """Write the help for the width there is."""
        self._write()

    def on_resize(self) -> None:
        """Break the lines again."""
        self._write()

    def _write(self) -> None:
        width = max(30, min(self.app.size.width - 4, 110))
        keymap = getattr(self.app, "_keymap", {})
        rows = help_rows(self.about, width, keymap)
        self._entries = {at: entry for at, (_, entry) in enumerate(rows) if entry is not None}
        self.query_one(HelpList).set_lines(ListSource([row for row, _ in rows]))

    def on_line_view_activated(self, event: LineView.Activated) -> None:
        """Run the command at the cursor on the page below, or show why it cannot run."""
        event.stop()
        entry = self._entries.get(event.index)
        if entry is None:
            return
        if entry.why_not:
            self.notify(f"{entry.command.title}: {entry.why_not}", timeout=3, markup=False)
            return
        app = self.app
        self.dismiss(None)
        app.call_later(entry.run, app)


HelpRow: TypeAlias = "tuple[list[Piece], PaletteEntry | None]"
"""A line, and the command that it describes."""


def help_rows(screen: Screen[object], width: int, keymap: dict[str, str]) -> list[HelpRow]:
    """Return the help of a screen: of its focused widget, its keys, and the first steps."""
    inner = screen.focused or screen
    chain = list(inner.ancestors_with_self)
    rows: list[HelpRow] = []
    for text in dict.fromkeys(str(getattr(node, "HELP", "") or "") for node in chain):
        if text:
            rows += [([(line, "")], None) for line in wrap(with_keys(text, keymap), width)]
            rows.append(([], None))
    scopes: dict[str, HasCommands] = {}
    for node in chain:
        if isinstance(node, HasCommands):
            for scope in scopes_of(node):
                scopes.setdefault(scope, node)
    # What all lists have in common comes last.
    for scope, owner in sorted(scopes.items(), key=lambda item: item[0] in ("table", "list")):
        rows += _scope_rows(scope, owner, width, keymap)
    rows.append(([("First steps", "strong accent")], None))
    steps = wrap(with_keys(_FIRST_STEPS, keymap), width - 2)
    return rows + [([(f"  {line}", "")], None) for line in steps]


def _scope_rows(scope: str, node: HasCommands, width: int, keymap: dict[str, str]) -> list[HelpRow]:
    used_keys = _taken(node, scope)
    commands = [
        command
        for command in in_scope(scope)
        if not command.keys or not set(command.keys.split(",")) <= used_keys
    ]
    if not commands:
        return []
    conditions = node.conditions()
    rows: list[HelpRow] = [([(_SCOPES.get(scope, scope), "strong accent")], None)]
    for command in commands:
        entry = PaletteEntry(command, node, hint(command.unavailable(conditions) or "") or None)
        rows += [(row, entry) for row in _command_rows(entry, width, keymap)]
    return [*rows, ([], None)]


def _taken(node: HasCommands, scope: str) -> set[str]:
    """Return the keys that a kind of list uses otherwise than the lists that it is made from."""
    keys: set[str] = set()
    for own in scopes_of(node):
        if own == scope:
            break
        keys |= {key for command in in_scope(own) for key in command.keys.split(",")}
    return keys


def _command_rows(entry: PaletteEntry, width: int, keymap: dict[str, str]) -> list[list[Piece]]:
    command, why_not = entry.command, entry.why_not
    keys = keymap.get(command.id, command.keys)
    names = "  ".join(key_name(key) for key in keys.split(",") if key)
    pieces: list[Piece] = [
        ("  ", ""),
        (f"{fit(names, 13)} ", "faint" if why_not else "key"),
        (f"{fit(command.title, 19)} ", "faint" if why_not else ""),
    ]
    note = f"not now: {why_not}" if why_not else command.help
    first, *others = wrap(note, max(10, width - _NOTE)) or [""]
    return [[*pieces, (first, "dim")], *([(" " * _NOTE, ""), (row, "dim")] for row in others)]


class OperatorsBox(Framed, Vertical):
    """The frame of the browser."""


class OperatorsScreen(Page):
    """Browse operators by name, domain, category or version and read what they do.

    Args:
        palette: The operators; see :func:`everything`.
        start: Domain and name of the operator to begin with.
    """

    MORE_SCOPES: ClassVar[tuple[str, ...]] = ("page",)
    CSS_PATH = STYLES / "form.tcss"
    tab_title = "operators"
    HELP = (
        "Type to search by name, category or domain. Tab changes the grouping, Shift with ↑ ↓ "
        "scrolls the documentation, Ctrl with ↑ ↓ shows a newer or older version of the "
        "operator, Enter copies its name."
    )

    def __init__(self, palette: OperatorPalette, start: tuple[str, str] | None = None) -> None:
        super().__init__()
        self.palette = palette
        self.start = start

    def body(self) -> Iterable[Widget]:
        browser = OperatorBrowser(self.palette, remembered_grouping(self), self.start)
        box = OperatorsBox(browser)
        box.frame.show("Operators", "Tab group  Shift ↑↓ read  Ctrl ↑↓ version  {page.close} close")
        yield box

    def on_operator_browser_grouped(self, event: OperatorBrowser.Grouped) -> None:
        """Keep how operators are listed."""
        event.stop()
        remember_grouping(self, event.grouping)

    def on_operator_browser_chosen(self, event: OperatorBrowser.Chosen) -> None:
        """Copy the operator's name."""
        event.stop()
        self.app.copy_to_clipboard(event.operator.name)


def everything() -> OperatorPalette:
    """Return all known operators in their newest versions. Imports onnx: call it on a thread."""
    return OperatorPalette(newest_opsets())
