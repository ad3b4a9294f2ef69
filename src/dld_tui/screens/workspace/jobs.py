"""Background jobs on the edited model; Esc stops them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from threading import Event
from time import perf_counter, sleep
from typing import TYPE_CHECKING, Any, TypeAlias

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import CancelledError, DldError
from dld_tui.core.files.temporary import discard, hold_folder
from dld_tui.core.model.document.serialise import snapshot
from dld_tui.core.types import JSON, CancelCheck
from dld_tui.screens.workspace.controller import Controller
from dld_tui.widgets.shell.command_dispatch import hint
from dld_tui.widgets.shell.page import host
from dld_tui.widgets.shell.progress import JobLine
from dld_tui.widgets.tasks import begin_thread, on_thread

if TYPE_CHECKING:
    from dld_tui.core.events import Event as JobEvent
    from dld_tui.core.model.document import Document

SLICE_S = 0.004
"""How long the event loop works on one thing before it looks at the keys."""
_AGAIN_S = 0.1
_LOOK_S = 0.05

Prepare: TypeAlias = "Callable[[Path, CancelCheck], AbstractContextManager[Mapping[str, JSON]]]"
"""Makes the request of a job from a snapshot, and tidies up after the job; runs on a thread."""
Done: TypeAlias = Callable[[Any, bool], None]
"""Takes the result, and whether the model is still as the job saw it."""


@contextmanager
def model_view(
    document: Document,
    snapshot: Path,
    cancelled: CancelCheck,
    *,
    values: bool = True,
    loadable: bool = False,
) -> Iterator[Path]:
    """Yield a model file for a job made of a snapshot, and remove it afterwards.

    Args:
        document: The document that the snapshot is of.
        snapshot: Its structure, as :meth:`Jobs.write_snapshot` wrote it.
        cancelled: Asked while weights are copied.
        values: Whether the job reads the values of weights.
        loadable: Whether a runtime loads the model without them.
    """
    from dld_tui.core.files.model_set import discard_view, external_view

    view = external_view(
        snapshot.read_bytes(),
        document.blobs,
        document.path.parent if document.path is not None else None,
        external=document.external,
        values=values,
        loadable=loadable,
        cancelled=cancelled,
    )
    try:
        yield view
    finally:
        discard_view(view)


class Watch:
    """Stops a job from a separate thread once `cancelled` returns True.

    Args:
        stop: ``cancel`` of the job; ``close`` where it only reads, and nobody waits for its end.
        cancelled: Asked now and then.
    """

    def __init__(self, stop: Callable[[], None], cancelled: CancelCheck) -> None:
        self._stop = stop
        self._cancelled = cancelled
        self._over = False

    def _look(self) -> None:
        while not self._over:
            if self._cancelled():
                self._stop()
                return
            sleep(_LOOK_S)

    def __enter__(self) -> Watch:
        """Begin to ask."""
        begin_thread(self._look)
        return self

    def __exit__(self, *_: object) -> None:
        """Stop asking."""
        self._over = True


def require_sound(before: Path, after: Path, cancelled: CancelCheck) -> list[str]:
    """Refuse a model with errors that the one it was made of lacks; a child process checks it.

    Returns:
        Notes on what cannot be told. Untrusted text.

    Raises:
        ActivityError: There are new errors.
        CancelledError: `cancelled` said so.
    """
    from dld_tui.activities.check.sound import Result
    from dld_tui.targets import registry

    request: dict[str, JSON] = {"before": str(before), "after": str(after)}
    with registry.get().start("check_sound", request) as job, Watch(job.close, cancelled):
        return job.result(lambda event: None, kind=Result).notes


@dataclass(eq=False)
class Jobs(Controller):
    """Runs jobs beside the work."""

    _job: Event | None = None
    """Set to stop the job that runs; None when none does."""

    @property
    def is_running(self) -> bool:
        """Whether a job runs."""
        return self._job is not None

    def close(self) -> None:
        """Leave no job behind."""
        if self._job is not None:
            self._job.set()

    def cancel(self) -> bool:
        """Ask the job to stop; False when none runs."""
        if self._job is None:
            return False
        self._job.set()
        for line in self.page.query(JobLine):
            line.stopping()
        return True

    async def write_snapshot(self, path: Path, *, doubtful: bool = False) -> bool:
        """Write the model without payloads to a file, in slices; False when it changed meanwhile.

        Raises:
            OSError: The file cannot be written.
        """
        version = self.model.version
        with open(path, "wb") as file:
            began = perf_counter()
            for part in snapshot(self.document, doubtful=doubtful):
                file.write(part)
                if perf_counter() - began > SLICE_S:
                    await asyncio.sleep(0)
                    # Work on a thread may edit the model without saying so before its end.
                    if (
                        self.model.is_closed
                        or version != self.model.version
                        or self.work.is_running
                    ):
                        return False
                    began = perf_counter()
        return True

    async def snapshot_when_still(self, path: Path, stopped: CancelCheck = lambda: False) -> bool:
        """Write a snapshot once nothing else is at work on the model; False when it was stopped.

        Raises:
            OSError: The file cannot be written.
        """
        while self.work.is_running or not await self.write_snapshot(path, doubtful=True):
            if self.model.is_closed or stopped():
                return False
            await asyncio.sleep(_AGAIN_S)
        return True

    def run_beside(self, title: str, activity: str, prepare: Prepare, done: Done) -> None:
        """Run an activity on a snapshot of the model, with one row of progress.

        Args:
            title: What it is.
            activity: As in the registry of activities.
            prepare: See :data:`Prepare`.
            done: Called on the event loop when it has ended well; other ends are said here.
        """
        if self._job is not None:
            self.complain(
                DldError(hint("wait for the running job to end, or stop it with {work.stop}"))
            )
            return
        self._job = cancel = Event()
        line = JobLine(title)
        self.page.mount(line, before="KeyBar")
        running = self._run_beside(title, activity, prepare, done, cancel, line)
        self.page.tasks.start(running, "job", name=title)

    async def _run_beside(
        self,
        title: str,
        activity: str,
        prepare: Prepare,
        done: Done,
        cancel: Event,
        line: JobLine,
    ) -> None:
        folder = hold_folder("snapshot")
        path = folder / "snapshot.onnx"

        def run() -> Any:
            try:
                with prepare(path, cancel.is_set) as request:
                    return self._job_result(activity, request, cancel, line)
            finally:
                discard(folder)

        result: Any = None
        failure: DldError = CancelledError()
        version = self.model.version
        try:
            if await self._snapshot_for(path, cancel):
                version = self.model.version
                result = await on_thread(run)
        except DldError as error:
            failure = error
        finally:
            if result is None:
                discard(folder)
            self._job = None
            if line.is_attached:
                line.remove()
            if self.page.is_attached:
                self.page.refresh_bindings()
        if result is not None:
            done(result, version == self.model.version)
        elif self.page.is_attached:
            self._say_failed(title, failure)

    async def _snapshot_for(self, path: Path, cancel: Event) -> bool:
        try:
            return await self.snapshot_when_still(path, cancel.is_set)
        except OSError as error:
            raise DldError(f"no snapshot can be written: {error}") from None

    def _job_result(
        self, activity: str, request: Mapping[str, JSON], cancel: Event, line: JobLine
    ) -> Any:
        from dld_tui.activities.registry import decode_result
        from dld_tui.core.events import Progress
        from dld_tui.targets import registry

        stage = ""

        def heard(event: JobEvent) -> None:
            nonlocal stage
            if isinstance(event, Progress) and event.stage != stage:
                stage = event.stage
                self.page.call_later(line.show_progress, event)

        with registry.get().start(activity, request) as job, Watch(job.cancel, cancel.is_set):
            return decode_result(activity, job.result(heard))

    def _say_failed(self, title: str, error: DldError) -> None:
        if isinstance(error, CancelledError):
            self.say(f"{title}: stopped")
        else:
            host(self.page).show_error(error, title)
