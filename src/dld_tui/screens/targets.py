"""The machines that are reached over SSH: their list, the form of one, and their unfetched jobs."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual.message import Message
from textual.widget import Widget

from dld_tui.activities import registry as activities
from dld_tui.commands.command import table
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import DldError, UsageError
from dld_tui.core.params import from_json
from dld_tui.core.reading.preview import ago
from dld_tui.core.settings import saved_targets
from dld_tui.core.settings.saved_targets import (
    Connection,
    ConnectionForm,
    connection_of,
    form_values,
    settings_shown,
    target_table,
)
from dld_tui.core.settings.secrets import BAD, GOOD, ConnectionStep
from dld_tui.core.tables.table import NOTE, Column, Table
from dld_tui.core.text import fit, visible
from dld_tui.core.types import JSON
from dld_tui.screens.activity.jobs import JobScreen
from dld_tui.screens.base_pages import LABEL, AboutRow, FormPage, ListPage, labelled
from dld_tui.screens.home.tabs import DialogAsker
from dld_tui.styles import STYLES
from dld_tui.targets.ssh.results import JobsStore, StoredJob, job_table
from dld_tui.widgets.charts.bars import Line
from dld_tui.widgets.dialogs.dialogs import Choice, Dialog, QuestionDialog
from dld_tui.widgets.forms.param_form import ParamForm
from dld_tui.widgets.lists.line_view import LineView, MarksChanged
from dld_tui.widgets.lists.styled import ListSource, Piece, Rows, wrap
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.shell.page import host
from dld_tui.widgets.tasks import on_thread, task

if TYPE_CHECKING:
    from dld_tui.targets.ssh.target import SshTarget


class TargetsDialog(Dialog[list[str]]):
    """Gives the names that were marked, in the order of the list; None when it was closed.

    Args:
        names: Of all targets.
        marked: Those that are marked at first.
    """

    TITLE_TEXT = "Run on"
    KEYS = "Space mark  Enter choose  Esc close"

    def __init__(self, names: Sequence[str], marked: Collection[str]) -> None:
        super().__init__()
        self.names = list(names)
        self.marked = set(marked)

    def body(self) -> Iterable[Widget]:
        text = "All targets run at once; their reports are compared."
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


class TargetFormScreen(FormPage):
    """Adds a connection, or changes one.

    Args:
        connection: What to change; None adds one.
    """

    SCOPE = "target_form"
    COMMAND_TABLE = table(
        "target_form",
        ("target_form.save", "save", "f5,ctrl+s", "valid", "save", "Save the connection."),
        ("target_form.next_page", "next_page", "ctrl+pagedown", "", "next page",
         "Show the next page."),
        ("target_form.previous_page", "previous_page", "ctrl+pageup", "", "previous page",
         "Show the previous page."),
        priority=True, footer="target_form.save target_form.next_page",
    )  # fmt: skip
    tab_title = "target"
    HELP = (
        "If ssh HOST works in a shell, a name and a host are enough: the rest comes from "
        "~/.ssh/config. Passwords are not saved here; dld asks for them when needed. "
        "{target_form.save} saves, {page.close} closes."
    )

    def __init__(self, connection: Connection | None = None) -> None:
        super().__init__()
        self.connection = connection

    def body(self) -> Iterable[Widget]:
        values = form_values(self.connection) if self.connection else {}
        title = f"Target {self.connection.name}" if self.connection else "New target"
        form = ParamForm(ConnectionForm, values)
        yield self.boxed(title, _KEYS, form)

    def save(self) -> str:
        """Save the connection and return its name."""
        values = self.form.values()
        connection = connection_of(from_json(ConnectionForm, values))
        before = self.connection.name if self.connection else ""
        if connection.name != before and connection.name in saved_targets.load():
            raise UsageError(f"there is a target {connection.name!r} already")
        saved_targets.save(connection)
        if before and connection.name != before:
            saved_targets.remove(before)
        return connection.name


_SECTION = "targets"
"""Where the state keeps how the last test of each went."""


class TargetsScreen(ListPage[Connection]):
    """A list, and below it the details of one."""

    SCOPE = "targets"
    COMMAND_TABLE = table(
        "targets",
        ("targets.add", "add", "a", "", "add", "Add a connection to another machine."),
        ("targets.edit", "edit", "e", "target", "edit", "Edit the connection."),
        ("targets.test", "test", "f5", "target", "test",
         "Test the connection step by step, with a remedy for each failure."),
        ("targets.remove", "remove", "d,delete", "target", "remove",
         "Remove the connection; ask first."),
        ("targets.jobs", "jobs", "J", "", "jobs",
         "List jobs on targets whose results have not been fetched."),
        ("targets.copy", "copy", "y", "target", "copy",
         "Copy the name, or the output of the test."),
        footer="targets.add targets.edit targets.test targets.jobs targets.remove",
    )  # fmt: skip
    MORE_SCOPES: ClassVar[tuple[str, ...]] = ("page",)
    CSS_PATH = STYLES / "lists.tcss"
    VERTICAL_BREAKPOINTS = [(0, "-low"), (36, "-tall")]  # noqa: RUF012 - as Textual has it
    tab_title = "targets"
    LIST_TITLE = "Targets"
    LIST_KEYS = (
        "{targets.add} add  {targets.edit} edit  {targets.test} test  {targets.jobs} jobs  "
        "{targets.remove} remove"
    )
    LIST_EMPTY = "No targets yet. {targets.add} adds a machine reached over SSH."
    ABOUT_TITLE = "Settings"
    ROW_CONDITION = "target"
    HELP = (
        "Machines that run jobs over SSH. {targets.add} adds a target, {targets.edit} or "
        "{list.activate} edits it, {targets.test} tests it, {targets.remove} removes it, "
        "{targets.jobs} lists its jobs. Choose it as Target in the form of an activity. Below are "
        "the settings of the target, or the steps of its last test."
    )

    @dataclass
    class Tested(Message):
        """A step of a test is done, or the test is over."""

        name: str
        step: ConnectionStep | None
        error: str = ""

    def __init__(self) -> None:
        super().__init__()
        self._connections: dict[str, Connection] = {}
        self._steps: dict[str, list[ConnectionStep]] = {}
        self._testing: set[str] = set()
        self._asker: DialogAsker | None = None

    def on_mount(self) -> None:
        """Read the targets."""
        self._asker = DialogAsker(self.app)
        self._read()

    def on_resize(self) -> None:
        """Break the lines of a test again."""
        if self._connections:
            self.row_changed()

    def on_unmount(self) -> None:
        """Let a test that still runs ask no more."""
        if self._asker is not None:
            self._asker.stop()

    # The list

    def _read(self, select: str | None = None) -> None:
        try:
            self._connections = saved_targets.load()
        except DldError as error:
            self._connections = {}
            host(self).show_error(error, "Targets")
        self.show_rows(select)

    def table(self) -> Table[Connection]:
        """Return the targets, and how the last test of each went."""
        table = target_table(list(self._connections.values()))
        table = table.pick(("name", "address", "way", "launcher"))
        last: Column[Connection] = Column(
            "state", "last test", lambda connection: self._last_test(connection)[0], NOTE, 24,
            priority=1, style=lambda connection: self._last_test(connection)[1],
        )  # fmt: skip
        return replace(table, columns=(*table.columns, last))

    def _last_test(self, connection: Connection) -> tuple[str, str]:
        """Return the outcome of the last test, and its style."""
        shown = glyphs.current()
        if connection.name in self._testing:
            return "testing…", "accent"
        tested = host(self).state.get(_SECTION, connection.name)
        at = tested.get("at")
        if not isinstance(at, (int, float)):
            return "not tested", "faint"
        text = f"{tested.get('found', '')}, {ago(time.time() - at)}"
        good = bool(tested.get("usable"))
        return f"{shown.good if good else shown.error} {text}", "good" if good else "bad"

    def activate(self) -> None:
        """Change the target."""
        self.action_edit()

    def about(self) -> list[Line]:
        """Return the settings of the target, or the steps of its test."""
        pane, row = self.query_one(AboutRow), self.row
        if row is None:
            pane.frame.show("Settings")
            return []
        if row.name not in self._steps:
            pane.frame.show(f"Settings of {row.name}", "{targets.test} test")
            return labelled(settings_shown(row))
        pane.frame.show(f"Test of {row.name}", "{targets.copy} copy")
        room = max(20, pane.size.width - LABEL - 5)
        lines = [line for step in self._steps[row.name] for line in _step_lines(step, room)]
        return [*lines, [("…", "accent")]] if row.name in self._testing else lines

    # What can be done

    def action_add(self) -> None:
        self._open_form(TargetFormScreen())

    def action_edit(self) -> None:
        if self.row is not None:
            self._open_form(TargetFormScreen(self.row))

    @task()
    async def _open_form(self, form: TargetFormScreen) -> None:
        await self.tasks.ask(form)
        if form.saved:
            self._steps.pop(form.saved, None)
            self._read(form.saved)

    @task()
    async def action_remove(self) -> None:
        connection = self.row
        if connection is None:
            return
        name = connection.name
        there = visible(f"{connection.directory} on {connection.address} is not touched.")
        choices = [Choice("k", "keep it", ""), Choice("r", "remove it", "remove")]
        if await self.tasks.ask(QuestionDialog(f"Remove {name}?", there, choices)) != "remove":
            return
        try:
            saved_targets.remove(name)
        except DldError as error:
            host(self).show_error(error)
        host(self).state.put(_SECTION, name, {})
        self.tasks.start(on_thread(_forget, connection), "forget")
        self._read()

    def action_jobs(self) -> None:
        self.app.push_screen(TargetJobsScreen())

    def action_copy(self) -> None:
        if self.row is None:
            return
        name = self.row.name
        steps = self._steps.get(name)
        lines = [f"{step.name}: {step.found} {step.fix}".strip() for step in steps or ()]
        self.app.copy_to_clipboard("\n".join(map(visible, lines)) if lines else name)

    @task("test")
    async def action_test(self) -> None:
        connection = self.row
        if connection is None or connection.name in self._testing:
            return
        name = connection.name
        self._steps[name] = []
        self._testing.add(name)
        self.show_rows()
        problem = ""
        try:
            await on_thread(self._test, connection)
        except DldError as error:
            problem = str(error)
        self.post_message(self.Tested(name, None, problem))

    def _test(self, connection: Connection) -> None:
        from dld_tui.targets.ssh.target import examine

        assert self._asker is not None
        examine(connection, self._asker, lambda step: self._tell(connection.name, step))

    def _tell(self, name: str, step: ConnectionStep) -> None:
        self.post_message(self.Tested(name, step))

    def on_targets_screen_tested(self, event: Tested) -> None:
        """Show the step; note the outcome when the test is over."""
        steps = self._steps.setdefault(event.name, [])
        if event.step is not None:
            steps.append(event.step)
            self.row_changed()
            return
        self._testing.discard(event.name)
        if event.error:
            steps.append(ConnectionStep("test", BAD, event.error))
        usable = bool(steps) and all(step.state != BAD for step in steps)
        outcome_text = "ready" if usable else steps[-1].name if steps else "cancelled"
        if event.name in self._connections:
            outcome: dict[str, JSON] = {"usable": usable, "found": outcome_text, "at": time.time()}
            host(self).state.put(_SECTION, event.name, outcome)
        self.show_rows()


def _forget(connection: Connection) -> None:
    from dld_tui.targets.ssh.target import forget_secrets

    forget_secrets(connection)


def _step_lines(step: ConnectionStep, room: int) -> list[list[Piece]]:
    shown = glyphs.current()
    mark, style = (shown.good, "good") if step.state == GOOD else (shown.warning, "warn")
    if step.state == BAD:
        mark, style = shown.error, "bad"
    blank: Piece = (" " * (LABEL + 2), "")
    rows = wrap(visible(step.found), room) or [""]
    lines: list[list[Piece]] = [
        [(f"{mark} ", style), (fit(step.name, LABEL), "strong"), (rows[0], "")],
        *([blank, (row, "")] for row in rows[1:]),
    ]
    for number, row in enumerate(wrap(visible(step.fix), room - 2) if step.fix else ()):
        lines.append([blank, (f"{' ' if number else shown.right} {row}", "dim")])
    return lines


_ASKING = "asking …"
_GONE = "gone"

_JOB_KEYS = "{target_jobs.attach} go on  {target_jobs.stop} stop  {target_jobs.again} look again"


class TargetJobsScreen(ListPage[StoredJob]):
    """A list of jobs, each with how it is."""

    SCOPE = "target_jobs"
    COMMAND_TABLE = table(
        "target_jobs",
        ("target_jobs.attach", "attach", "enter", "job", "attach",
         "Show the progress of the job and fetch its result."),
        ("target_jobs.stop", "stop", "d,delete", "job", "stop",
         "Stop the job and delete its files on the target; ask first."),
        ("target_jobs.again", "again", "f5", "", "refresh", "Refresh the state of the jobs."),
        footer="target_jobs.attach target_jobs.stop target_jobs.again",
    )  # fmt: skip
    MORE_SCOPES: ClassVar[tuple[str, ...]] = ("page",)
    CSS_PATH = STYLES / "lists.tcss"
    tab_title = "jobs on targets"
    LIST_TITLE, LIST_KEYS = "Jobs on targets", _JOB_KEYS
    LIST_EMPTY = "No job on a target is waiting to be fetched."
    ROW_CONDITION = "job"
    HELP = (
        "Jobs on targets that lost their connection or outlived dld. {target_jobs.attach} "
        "reattaches to a job and fetches its result, {target_jobs.stop} stops it."
    )

    def __init__(self) -> None:
        super().__init__()
        self._jobs: dict[str, StoredJob] = {}
        self._states: dict[str, str] = {}

    def on_mount(self) -> None:
        """List the jobs, and ask their targets."""
        self.action_again()

    def on_screen_resume(self, event: Any) -> None:
        """Leave out what was fetched meanwhile."""
        super().on_screen_resume(event)
        self.show_rows()

    def table(self) -> Table[StoredJob]:
        """Return the jobs, the newest first."""
        self._jobs = {job.id: job for job in reversed(JobsStore().all())}

        table = job_table(
            list(self._jobs.values()), lambda job: self._states.get(job.id, _ASKING), _title
        )
        return table.pick(table.keys[1:])

    def activate(self) -> None:
        """Go on with the job."""
        self.action_attach()

    def action_again(self) -> None:
        self._states.clear()
        self.show_rows()
        self.tasks.cancel("jobs")
        for name in dict.fromkeys(job.target for job in self._jobs.values()):
            self._ask(name)

    @task("jobs")
    async def _ask(self, name: str) -> None:
        states, problem = {}, ""
        try:
            jobs = await on_thread(lambda: _target(name).jobs())
            states = {job.id: job.state for job in jobs}
        except DldError as error:
            problem = error.message
        for job in self._jobs.values():
            if job.target == name:
                self._states[job.id] = problem or states.get(job.id, _GONE)
        self.show_rows()

    def action_attach(self) -> None:
        job = self.row
        if job is not None:
            self.app.push_screen(self._screen(job))

    @task()
    async def action_stop(self) -> None:
        job = self.row
        if job is None:
            return
        text = f"{_title(job)} on {visible(job.target)}; its files there are removed."
        choices = [Choice("g", "let it go on", "go"), Choice("s", "stop it", "stop")]
        if await self.tasks.ask(QuestionDialog("Stop the job?", text, choices)) == "stop":
            screen = self._screen(job)
            screen.runner.cancel()
            self.app.push_screen(screen)

    def _screen(self, job: StoredJob) -> JobScreen:
        title = f"{_title(job)} on {visible(job.target)}"
        return JobScreen(
            job.activity,
            {},
            lambda result: self._open(job),
            title=title,
            target=job.target,
            start=lambda: _target(job.target).attach(job),
        )

    def _open(self, job: StoredJob) -> None:
        if job.outputs and Path(job.outputs[0].path).is_file():
            host(self).open_path(job.outputs[0].path)


def _target(name: str) -> SshTarget:
    from dld_tui.targets.ssh.target import SshTarget

    return SshTarget(saved_targets.find(name))


def _title(job: StoredJob) -> str:
    try:
        return activities.find(job.activity).title
    except DldError:
        return visible(job.activity)
