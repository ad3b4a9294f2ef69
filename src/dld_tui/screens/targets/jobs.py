"""The jobs that were started on targets and whose results were not fetched yet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual.binding import BindingType

from dld_tui.activities import registry as activities
from dld_tui.core.errors import DldError
from dld_tui.core.settings import saved_targets
from dld_tui.core.tables.table import Table
from dld_tui.core.text import visible
from dld_tui.screens.activity.job import JobScreen
from dld_tui.screens.list_page import ListPage
from dld_tui.styles import STYLES
from dld_tui.targets.ssh.results import JobsStore, StoredJob, job_table
from dld_tui.widgets.dialogs.dialogs import Choice, ChoiceDialog
from dld_tui.widgets.shell.commands import bindings_for
from dld_tui.widgets.shell.host import host
from dld_tui.widgets.tasks import on_thread, task

if TYPE_CHECKING:
    from dld_tui.targets.ssh.target import SshTarget

_ASKING = "asking …"
_GONE = "gone"

_KEYS = "{target_jobs.attach} go on  {target_jobs.stop} stop  {target_jobs.again} look again"


class TargetJobsScreen(ListPage[StoredJob]):
    """A list of jobs, each with how it is."""

    SCOPE = "target_jobs"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for("page", "target_jobs")
    MORE_SCOPES: ClassVar[tuple[str, ...]] = ("page",)
    CSS_PATH = STYLES / "lists.tcss"
    tab_title = "jobs on targets"
    LIST_TITLE, LIST_KEYS = "Jobs on targets", _KEYS
    LIST_EMPTY = "No job on a target waits to be fetched."
    ROW_FACT = "job"
    HELP = (
        "Jobs on targets that dld was closed or cut off from. {target_jobs.attach} goes on with "
        "one and fetches its result, {target_jobs.stop} stops it."
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

    return SshTarget(saved_targets.find(name))


def _title(job: StoredJob) -> str:
    try:
        return activities.find(job.activity).title
    except DldError:
        return visible(job.activity)
