"""The jobs that were started on targets and whose results were not fetched yet."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual.binding import BindingType
from textual.widget import Widget

from dld_tui.activities import registry as activities
from dld_tui.core.connections import store
from dld_tui.core.errors import DldError
from dld_tui.core.text import visible
from dld_tui.screens.activity.job import JobScreen
from dld_tui.screens.home.welcome import ago
from dld_tui.styles import STYLES
from dld_tui.targets.ssh.results import JobsStore, StoredJob
from dld_tui.widgets.dialogs.dialogs import Choice, ChoiceDialog
from dld_tui.widgets.lists.row_table import RowTable
from dld_tui.widgets.lists.table_view import Cell, Column, TableView
from dld_tui.widgets.shell.commands import bindings_for
from dld_tui.widgets.shell.frame import Frame
from dld_tui.widgets.shell.host import host
from dld_tui.widgets.shell.page import SubPage
from dld_tui.widgets.tasks import on_thread, task

if TYPE_CHECKING:
    from dld_tui.targets.ssh.target import SshTarget

_ASKING = "asking …"
_GONE = "gone"
_STYLES = {"running": "accent", "finished": "good", "failed": "bad", "lost": "bad"}

_KEYS = "{target_jobs.attach} go on  {target_jobs.stop} stop  {target_jobs.again} look again"


class JobList(Frame, TableView):
    """The jobs."""

    HELP = (
        "Jobs on targets that dld was closed or cut off from. {target_jobs.attach} goes on with "
        "one and fetches its result, {target_jobs.stop} stops it."
    )


class TargetJobsScreen(SubPage):
    """A list of jobs, each with how it is."""

    SCOPE = "target_jobs"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for("target_jobs")
    CSS_PATH = STYLES / "targets.tcss"
    tab_title = "jobs on targets"
    HELP = JobList.HELP

    def __init__(self) -> None:
        super().__init__()
        self._jobs: dict[str, StoredJob] = {}
        self._states: dict[str, str] = {}

    def body(self) -> Iterable[Widget]:
        """Return the list."""
        view = JobList(
            [
                Column("target", "Target", 14),
                Column("activity", "Activity", 26, priority=1),
                Column("started", "Started", 12),
                Column("state", "State", 14),
                Column("result", "Result", keep="end", min_width=28),
            ],
            empty="No job on a target waits to be fetched.",
            id="jobs",
        )
        view.frame("Jobs on targets", _KEYS)
        yield view

    def on_mount(self) -> None:
        """List the jobs, and ask their targets."""
        self.query_one(JobList).focus()
        self.action_again()

    def on_screen_resume(self, event: Any) -> None:
        """Leave out what was fetched meanwhile."""
        super().on_screen_resume(event)
        self._show()

    def facts(self) -> set[str]:
        """Return whether there is a job under the cursor."""
        views = self.query(JobList)
        found = bool(views) and views.first().key_at_cursor() is not None
        return super().facts() | ({"job"} if found else set())

    def _show(self) -> None:
        self._jobs = {job.id: job for job in reversed(JobsStore().all())}
        self.query_one(JobList).set_table(
            RowTable(
                list(self._jobs.values()),
                {
                    "target": lambda job: (visible(job.target), "strong"),
                    "activity": _title,
                    "started": lambda job: (ago(time.time() - job.started), "dim"),
                    "state": self._state_cell,
                    "result": lambda job: (visible(_result(job)), "dim"),
                },
                key=lambda job: job.id,
            )
        )
        self.refresh_bindings()

    def _state_cell(self, job: StoredJob) -> Cell:
        state = self._states.get(job.id, _ASKING)
        return (visible(state), _STYLES.get(state, "dim"))

    def on_line_view_cursor_moved(self) -> None:
        """Grey what cannot be done."""
        self.refresh_bindings()

    def on_line_view_activated(self) -> None:
        """Go on with the job."""
        self.action_attach()

    def action_again(self) -> None:
        """Ask every target that has jobs how they are."""
        self._states.clear()
        self._show()
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
        self._show()

    def _selected(self) -> StoredJob | None:
        return self._jobs.get(str(self.query_one(JobList).key_at_cursor()))

    def action_attach(self) -> None:
        """Show how far the job is, and fetch its result."""
        job = self._selected()
        if job is not None:
            self.app.push_screen(self._screen(job))

    @task()
    async def action_stop(self) -> None:
        """Stop the job, after asking."""
        job = self._selected()
        if job is None:
            return
        text = f"{_title(job)} on {visible(job.target)}; nothing of it is left there."
        choices = [Choice("s", "stop it", "stop"), Choice("g", "let it go on", "go")]
        if await self.tasks.ask(ChoiceDialog("Stop the job?", text, choices)) == "stop":
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

    return SshTarget(store.find(name))


def _title(job: StoredJob) -> str:
    try:
        return activities.find(job.activity).title
    except DldError:
        return visible(job.activity)


def _result(job: StoredJob) -> str:
    return job.outputs[0].path if job.outputs else ""
