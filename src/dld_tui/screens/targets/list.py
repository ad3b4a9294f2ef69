"""The machines that are reached over SSH: list, add, change, test, remove.

A dialog to mark the targets that an activity runs on at once.

The form of one connection.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.binding import BindingType
from textual.message import Message
from textual.widget import Widget

from dld_tui.core.connections import store
from dld_tui.core.connections.form import ConnectionForm, connection_of, form_values, settings_shown
from dld_tui.core.connections.prompts import BAD, GOOD, Step
from dld_tui.core.connections.store import Connection
from dld_tui.core.errors import DldError, UsageError
from dld_tui.core.params import from_json
from dld_tui.core.text import fit, visible
from dld_tui.core.types import JSON
from dld_tui.screens.asking import DialogAsker
from dld_tui.screens.form_page import SavingForm
from dld_tui.screens.home.welcome import ago
from dld_tui.screens.targets.jobs import TargetJobsScreen
from dld_tui.styles import STYLES
from dld_tui.widgets.dialogs.dialogs import Choice, ChoiceDialog, Dialog
from dld_tui.widgets.forms.param_form import ParamForm
from dld_tui.widgets.hints import hint
from dld_tui.widgets.lists.line_source import ListSource, Piece
from dld_tui.widgets.lists.line_view import LineView, MarksChanged
from dld_tui.widgets.lists.row_table import RowTable
from dld_tui.widgets.lists.styled import Rows, wrap
from dld_tui.widgets.lists.table_view import Cell, Column, TableView
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.shell.commands import bindings_for
from dld_tui.widgets.shell.frame import Frame
from dld_tui.widgets.shell.host import host
from dld_tui.widgets.shell.page import SubPage
from dld_tui.widgets.tasks import on_thread, task


class TargetsDialog(Dialog[list[str]]):
    """Gives the names that were marked, in the order of the list; None when it was closed.

    Args:
        names: Of all targets.
        marked: Those that are marked at first.
    """

    TITLE_TEXT = "Run on"
    KEYS = "Space mark  Enter take  Esc close"

    def __init__(self, names: Sequence[str], marked: Collection[str]) -> None:
        super().__init__()
        self.names = list(names)
        self.marked = set(marked)

    def body(self) -> Iterable[Widget]:
        """Return the list."""
        text = "All of them run at once; their reports are compared."
        yield Rows([[(text, "dim")], []])
        view = LineView(ListSource(self._rows(), self.names))
        view.marks = set(self.marked)
        view.styles.height = max(2, min(len(self.names), self.app.size.height - 9))
        yield view

    def _rows(self) -> list[list[Piece]]:
        shown = glyphs.current()
        marks = [(shown.on, "accent") if n in self.marked else (shown.off, "dim")
                 for n in self.names]  # fmt: skip
        return [[mark, (f" {name}", "")] for mark, name in zip(marks, self.names, strict=True)]

    def on_line_view_marks_changed(self, event: MarksChanged) -> None:
        """Fill the boxes."""
        event.stop()
        self.marked = {str(key) for key in event.marks}
        event.view.set_lines(ListSource(self._rows(), self.names))

    def on_line_view_activated(self, event: LineView.Activated) -> None:
        """Give the marked ones; without a mark, the one under the cursor."""
        event.stop()
        marked = [name for name in self.names if name in self.marked]
        self.dismiss(marked or [str(event.key)])


_KEYS = "{target_form.save} save  {target_form.next_page} page  {page.close} close"


class TargetFormScreen(SavingForm):
    """Adds a connection, or changes one.

    Args:
        connection: What to change; None adds one.
    """

    SCOPE = "target_form"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for("target_form")
    tab_title = "target"
    HELP = (
        "A name and a host are enough when ssh HOST works in a shell: the rest is what"
        " ~/.ssh/config says. No password is saved here; it is asked for when it is needed."
        " {target_form.save} saves, {page.close} closes."
    )

    def __init__(self, connection: Connection | None = None) -> None:
        super().__init__()
        self.connection = connection

    def body(self) -> Iterable[Widget]:
        """Return the form."""
        values = form_values(self.connection) if self.connection else {}
        title = f"Target {self.connection.name}" if self.connection else "New target"
        form = ParamForm(ConnectionForm, values)
        yield self.boxed(title, _KEYS, form)

    def save(self) -> str:
        """Save the connection and return its name."""
        values = self.form.values()
        connection = connection_of(from_json(ConnectionForm, values))
        before = self.connection.name if self.connection else ""
        if connection.name != before and connection.name in store.load():
            raise UsageError(f"there is a target {connection.name!r} already")
        store.save(connection)
        if before and connection.name != before:
            store.remove(before)
        return connection.name


_LABEL = 18
_SECTION = "targets"
"""Where the state keeps how the last test of each went."""


class TargetList(Frame, TableView):
    """The targets."""

    HELP = (
        "Machines that activities run on over SSH. {targets.add} adds one, {targets.edit} or "
        "{list.activate} changes it, {targets.test} tests it, {targets.remove} forgets it, "
        "{targets.jobs} lists jobs. Choose it as Target in the form of an activity."
    )


class AboutTarget(Frame, LineView):
    """The settings of the target under the cursor, or what its test says."""

    HELP = "The settings of the target, or the steps of its last test in this run."


@dataclass(frozen=True)
class _Row:
    connection: Connection
    tested: dict[str, JSON]


class TargetsScreen(SubPage):
    """A list, and below it what is known of one."""

    SCOPE = "targets"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for("targets")
    CSS_PATH = STYLES / "targets.tcss"
    VERTICAL_BREAKPOINTS = [(0, "-low"), (36, "-tall")]  # noqa: RUF012 - as Textual has it
    tab_title = "targets"
    HELP = TargetList.HELP

    @dataclass
    class Tested(Message):
        """A step of a test is done, or the test is over."""

        name: str
        step: Step | None
        error: str = ""

    def __init__(self) -> None:
        super().__init__()
        self._connections: dict[str, Connection] = {}
        self._steps: dict[str, list[Step]] = {}
        self._testing: set[str] = set()
        self._asker: DialogAsker | None = None

    def body(self) -> Iterable[Widget]:
        """Return the list and the pane below it."""
        view = TargetList(
            [
                Column("name", "Name", 16),
                Column("address", "Address", keep="end", min_width=20),
                Column("way", "Way", 18, priority=2),
                Column("launcher", "Launcher", 20, priority=3),
                Column("state", "Last test", 24, priority=1),
            ],
            empty=hint(
                "There is no target yet. {targets.add} adds a machine that is reached over SSH."
            ),
            id="targets",
        )
        view.frame(
            "Targets",
            "{targets.add} add  {targets.edit} edit  {targets.test} test  {targets.jobs} jobs  "
            "{targets.remove} remove",
        )
        about = AboutTarget(ListSource([]), gutter=False, id="about")
        about.frame("Settings")
        return view, about

    def on_mount(self) -> None:
        """Read the targets."""
        self._asker = DialogAsker(self.app)
        self._read()
        self.query_one(TargetList).focus()

    def on_resize(self) -> None:
        """Break the lines of a test again."""
        if self._connections:
            self._show_about()

    def on_unmount(self) -> None:
        """Let a test that still runs ask no more."""
        if self._asker is not None:
            self._asker.stop()

    def facts(self) -> set[str]:
        """Return whether there is a target under the cursor."""
        views = self.query(TargetList)
        found = bool(views) and views.first().key_at_cursor() is not None
        return super().facts() | ({"target"} if found else set())

    # The list

    def _read(self, select: str = "") -> None:
        try:
            self._connections = store.load()
        except DldError as error:
            self._connections = {}
            host(self).show_error(error, "Targets")
        self._show(select)

    def _show(self, select: str = "") -> None:
        state = host(self).state
        rows = [_Row(each, state.get(_SECTION, name)) for name, each in self._connections.items()]
        view = self.query_one(TargetList)
        at = next((n for n, name in enumerate(self._connections) if name == select), view.cursor)
        view.set_table(
            RowTable(
                rows,
                {
                    "name": lambda row: (row.connection.name, "strong"),
                    "address": lambda row: visible(row.connection.address),
                    "way": lambda row: (_way(row.connection), "dim"),
                    "launcher": lambda row: (visible(" ".join(row.connection.launcher)), "dim"),
                    "state": self._state_cell,
                },
                key=lambda row: row.connection.name,
            )
        )
        view.cursor = at
        self._show_about()
        self.refresh_bindings()

    def _state_cell(self, row: _Row) -> Cell:
        shown = glyphs.current()
        if row.connection.name in self._testing:
            return ("testing…", "accent")
        at = row.tested.get("at")
        if not isinstance(at, (int, float)):
            return ("not tested", "faint")
        text = f"{visible(str(row.tested.get('found', '')))}, {ago(time.time() - at)}"
        if row.tested.get("usable"):
            return (f"{shown.good} {text}", "good")
        return (f"{shown.error} {text}", "bad")

    def _selected(self) -> str | None:
        key = self.query_one(TargetList).key_at_cursor()
        return None if key is None else str(key)

    def on_line_view_cursor_moved(self, event: LineView.CursorMoved) -> None:
        """Show what is known of the target."""
        if isinstance(event.view, TargetList):
            self._show_about()
            self.refresh_bindings()

    def on_line_view_activated(self, event: LineView.Activated) -> None:
        """Change the target."""
        if isinstance(event.view, TargetList):
            self.action_edit()

    # The pane below

    def _show_about(self) -> None:
        name = self._selected()
        about = self.query_one(AboutTarget)
        lines: list[list[Piece]] = []
        if name is not None and name in self._steps:
            about.frame(f"Test of {name}", "{targets.copy} copy")
            room = max(20, about.size.width - _LABEL - 5)
            for step in self._steps[name]:
                lines += _step_lines(step, room)
            if name in self._testing:
                lines.append([("…", "accent")])
        elif name is not None:
            about.frame(f"Settings of {name}", "{targets.test} test")
            lines = _setting_lines(self._connections[name])
        else:
            about.frame("Settings")
        about.set_lines(ListSource(lines))

    # What can be done

    def action_add(self) -> None:
        """Ask for a new connection."""
        self._open_form(TargetFormScreen())

    def action_edit(self) -> None:
        """Change the connection under the cursor."""
        name = self._selected()
        if name is not None:
            self._open_form(TargetFormScreen(self._connections[name]))

    @task()
    async def _open_form(self, form: TargetFormScreen) -> None:
        await self.tasks.ask(form)
        if form.saved:
            self._steps.pop(form.saved, None)
            self._read(form.saved)

    @task()
    async def action_remove(self) -> None:
        """Forget the connection under the cursor, after asking."""
        name = self._selected()
        if name is None:
            return
        connection = self._connections[name]
        there = visible(f"{connection.directory} on {connection.address} stays as it is.")
        choices = [Choice("r", "remove it", "remove")]
        if await self.tasks.ask(ChoiceDialog(f"Remove {name}?", there, choices)) != "remove":
            return
        try:
            store.remove(name)
        except DldError as error:
            host(self).show_error(error)
        host(self).state.put(_SECTION, name, {})
        self.tasks.start(on_thread(_forget, connection), "forget")
        self._read()

    def action_jobs(self) -> None:
        """Show the jobs on targets."""
        self.app.push_screen(TargetJobsScreen())

    def action_copy(self) -> None:
        """Copy the name, or what the test said."""
        name = self._selected()
        if name is None:
            return
        steps = self._steps.get(name)
        lines = [f"{step.name}: {step.found} {step.fix}".strip() for step in steps or ()]
        self.app.copy_to_clipboard("\n".join(map(visible, lines)) if lines else name)

    @task("test")
    async def action_test(self) -> None:
        """Connect to the target under the cursor, on a thread."""
        name = self._selected()
        if name is None or name in self._testing:
            return
        self._steps[name] = []
        self._testing.add(name)
        self._show(name)
        problem = ""
        try:
            await on_thread(self._test, self._connections[name])
        except DldError as error:
            problem = str(error)
        self.post_message(self.Tested(name, None, problem))

    def _test(self, connection: Connection) -> None:
        from dld_tui.targets.ssh.probe import examine

        assert self._asker is not None
        examine(connection, self._asker, lambda step: self._tell(connection.name, step))

    def _tell(self, name: str, step: Step) -> None:
        self.post_message(self.Tested(name, step))

    def on_targets_screen_tested(self, event: Tested) -> None:
        """Show the step; note the outcome when the test is over."""
        steps = self._steps.setdefault(event.name, [])
        if event.step is not None:
            steps.append(event.step)
            self._show_about()
            return
        self._testing.discard(event.name)
        if event.error:
            steps.append(Step("test", BAD, event.error))
        usable = bool(steps) and all(step.state != BAD for step in steps)
        found = "ready" if usable else steps[-1].name if steps else "cancelled"
        if event.name in self._connections:
            outcome: dict[str, JSON] = {"usable": usable, "found": found, "at": time.time()}
            host(self).state.put(_SECTION, event.name, outcome)
        self._show(self._selected() or "")


def _forget(connection: Connection) -> None:
    from dld_tui.targets.ssh.clear_secrets import forget_secrets

    forget_secrets(connection)


def _way(connection: Connection) -> str:
    if connection.jump:
        return visible(f"over {connection.jump}")
    return "proxy command" if connection.proxy_command else ""


def _step_lines(step: Step, room: int) -> list[list[Piece]]:
    shown = glyphs.current()
    mark, style = (shown.good, "good") if step.state == GOOD else (shown.warning, "warn")
    if step.state == BAD:
        mark, style = shown.error, "bad"
    blank: Piece = (" " * (_LABEL + 2), "")
    found = wrap(visible(step.found), room) or [""]
    lines: list[list[Piece]] = [
        [(f"{mark} ", style), (fit(step.name, _LABEL), "strong"), (found[0], "")],
        *([blank, (row, "")] for row in found[1:]),
    ]
    for number, row in enumerate(wrap(visible(step.fix), room - 2) if step.fix else ()):
        lines.append([blank, (f"{' ' if number else shown.right} {row}", "dim")])
    return lines


def _setting_lines(connection: Connection) -> list[list[Piece]]:
    return [
        [(fit(label, _LABEL), "dim"), (visible(text), "")]
        for label, text in settings_shown(connection)
    ]
