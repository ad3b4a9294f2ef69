"""Long work: everything that a screen or widget does beside the event loop goes through here.

A task is a coroutine. It awaits work on threads (:func:`on_thread`), batches of a job's events
(:class:`JobRun`) and dialogs (:meth:`Tasks.ask`), and shows what they gave. What it raises is shown
by the app. A task ends with the screen or widget that began it.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
import threading
import time
from collections.abc import (
    AsyncIterator,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Mapping,
    Sequence,
)
from enum import Enum
from time import monotonic
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar, cast

from textual.css.query import NoMatches

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import DldError
from dld_tui.core.types import JSON, CancelCheck, ProgressCallback

if TYPE_CHECKING:
    from textual.dom import DOMNode
    from textual.screen import Screen

    from dld_tui.core.events import Event

P = ParamSpec("P")
T = TypeVar("T")

_TELL_S = 0.1
"""Progress goes through the event loop at most so often."""
_BATCH_S = 0.05
"""Events of a job come at most so often."""


class Keys(Enum):
    """What keys do while a task runs (:mod:`dld_tui.widgets.shell.key_queue`)."""

    WAIT = "wait"
    """Without its result there is nothing that a key could be meant for."""
    WAIT_SHORTLY = "wait shortly"
    """They wait a moment, whatever has the focus."""
    WAIT_NEARBY = "wait nearby"
    """They wait a moment when the widget that began it, or one in it, has the focus."""
    GO_ON = "go on"
    """They do not wait. Use it only for tasks that no key begins, or that show their progress."""


GROUPS = {
    "await answer": Keys.GO_ON,
    "await findings": Keys.WAIT,
    "await types": Keys.WAIT,
    "browse": Keys.GO_ON,
    "canvas": Keys.WAIT_NEARBY,
    "chart": Keys.GO_ON,
    "check": Keys.GO_ON,
    "clean up": Keys.GO_ON,
    "collect": Keys.WAIT_NEARBY,
    "count": Keys.GO_ON,
    "demo": Keys.WAIT,
    "dialog": Keys.WAIT,
    "disk": Keys.GO_ON,
    "filter": Keys.WAIT_SHORTLY,
    "forget": Keys.GO_ON,
    "graph": Keys.GO_ON,
    "guess": Keys.WAIT_NEARBY,
    "infer": Keys.GO_ON,
    "job": Keys.GO_ON,
    "jobs": Keys.GO_ON,
    "libraries": Keys.GO_ON,
    "list": Keys.WAIT_NEARBY,
    "load": Keys.WAIT,
    "mark": Keys.WAIT_SHORTLY,
    "open": Keys.WAIT,
    "opened": Keys.WAIT,
    "operators": Keys.WAIT_SHORTLY,
    "overlays": Keys.GO_ON,
    "pass": Keys.WAIT_NEARBY,
    "path": Keys.WAIT_NEARBY,
    "pick": Keys.WAIT_NEARBY,
    "preview": Keys.GO_ON,
    "providers": Keys.GO_ON,
    "recent": Keys.WAIT_NEARBY,
    "recolour": Keys.WAIT_NEARBY,
    "rows": Keys.WAIT_NEARBY,
    "save": Keys.WAIT_NEARBY,
    "schemas": Keys.GO_ON,
    "search": Keys.WAIT_SHORTLY,
    "snapshot": Keys.WAIT_NEARBY,
    "statistics": Keys.GO_ON,
    "tensor": Keys.WAIT_NEARBY,
    "test": Keys.GO_ON,
    "times": Keys.GO_ON,
    "tool": Keys.WAIT_NEARBY,
    "work": Keys.WAIT_SHORTLY,
}
"""The groups of tasks. A task may run beside those of other groups, and beside those of its own
unless it replaces them. While a dialog that a task asked with :meth:`Tasks.ask` is open, keys do
not wait for the task, whatever its group: they answer the dialog."""


class Tasks:
    """The tasks of one screen, widget or app.

    Args:
        owner: Begins them; they end with it.
    """

    def __init__(self, owner: DOMNode) -> None:
        self._owner = owner
        self._cancel: threading.Event | None = None

    def start(
        self, task: Coroutine[Any, Any, None], group: str, *, name: str = "", replace: bool = False
    ) -> None:
        """Begin a task. It runs at once up to its first wait: a dialog is there for the next key.

        Args:
            task: What to do.
            group: One of :data:`GROUPS`.
            name: Said where tasks are listed.
            replace: Cancel the running tasks of the group.

        Raises:
            KeyError: There is no such group.
        """
        GROUPS[group]
        try:
            awaited = task.send(None)
        except StopIteration:
            return
        self._owner.run_worker(
            RestOfTask(task, awaited, self._owner),
            group=group,
            name=name or group,
            exclusive=replace,
        )

    def cancel(self, group: str) -> None:
        """Cancel the running tasks of a group."""
        self._owner.workers.cancel_group(self._owner, group)

    async def ask(self, dialog: Screen[T]) -> T | None:
        """Show a dialog or a page and return what it was left with."""
        answer: _DialogAnswer[T | None] = _DialogAnswer(loop=asyncio.get_running_loop())

        def left(value: T | None) -> None:
            if not answer.done():  # nobody waits when the task was cancelled
                answer.set_result(value)

        self._owner.app.push_screen(dialog, left)
        return await answer

    @property
    def is_working(self) -> bool:
        """Whether :meth:`work` goes on."""
        return self._cancel is not None

    async def work(
        self,
        function: Callable[[ProgressCallback, CancelCheck], T],
        report: ProgressCallback = lambda done, total: None,
    ) -> T:
        """Run something long that Esc stops, and return its result; one at a time.

        Args:
            function: Called on a thread with what tells its progress, and whether to stop.
            report: Told the progress, on the event loop.

        Raises:
            DldError: Other work goes on.
        """
        if self._cancel is not None:
            raise DldError("wait for the running task to end")
        self._cancel = threading.Event()
        try:
            return await with_progress(function, report, self._cancel)
        finally:
            self._cancel = None

    def cancel_work(self) -> bool:
        """Ask :meth:`work` to stop; False when there is none."""
        if self._cancel is None:
            return False
        self._cancel.set()
        return True


class HasTasks(Protocol):
    """What methods made by :func:`task` belong to."""

    @property
    def tasks(self) -> Tasks:
        """The service."""


S = TypeVar("S", bound=HasTasks)


def task(
    group: str = "dialog", *, replace: bool = False
) -> Callable[
    [Callable[Concatenate[S, P], Coroutine[Any, Any, None]]], Callable[Concatenate[S, P], None]
]:
    """Make a method begin a task: ``@task("load")`` before ``async def``.

    Args:
        group: One of :data:`GROUPS`; that of methods that only wait for dialogs by default.
        replace: Cancel the running tasks of the group.
    """

    def decorate(
        method: Callable[Concatenate[S, P], Coroutine[Any, Any, None]],
    ) -> Callable[Concatenate[S, P], None]:
        def begin(self: S, /, *args: P.args, **kwargs: P.kwargs) -> None:
            coroutine = method(self, *args, **kwargs)
            self.tasks.start(coroutine, group, name=method.__name__, replace=replace)

        functools.update_wrapper(begin, method)
        return begin

    return decorate


async def on_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a function on a thread and return its result.

    The thread goes on when the task is cancelled; its result is dropped then.
    """
    return await asyncio.to_thread(function, *args, **kwargs)


async def on_loose_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a function that may never return, as a drive in the network lets one wait.

    Other than with :func:`on_thread`, the program can end before it has.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[T] = loop.create_future()

    def tell(result: T | None, error: BaseException | None) -> None:
        if ended.done():  # cancelled meanwhile
            return
        if error is not None:
            ended.set_exception(error)
        else:
            ended.set_result(cast("T", result))

    def run() -> None:
        result, error = None, None
        try:
            result = function(*args, **kwargs)
        except Exception as raised:  # noqa: BLE001 - it is raised where somebody waits
            error = raised
        with contextlib.suppress(RuntimeError):  # the program has ended
            loop.call_soon_threadsafe(tell, result, error)

    begin_thread(run)
    return await ended


def begin_thread(function: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
    """Begin a thread where nothing can be awaited, as on a thread; it ends with the program."""
    work = functools.partial(function, *args, **kwargs)
    threading.Thread(target=work, daemon=True, name=function.__name__).start()


async def with_progress(
    function: Callable[[ProgressCallback, CancelCheck], T],
    report: ProgressCallback = lambda done, total: None,
    stop: threading.Event | None = None,
) -> T:
    """Run a function on a thread; it is told to stop when the task is cancelled.

    Args:
        function: Called with what tells its progress, and whether to stop.
        report: Told the progress on the event loop, a few times a second.
        stop: Set by whoever wants it to stop.
    """
    stop = stop or threading.Event()
    loop = asyncio.get_running_loop()
    last = monotonic()

    def progress(done: int, total: int) -> None:
        nonlocal last
        if monotonic() - last >= _TELL_S and not loop.is_closed():
            last = monotonic()
            loop.call_soon_threadsafe(report, done, total)

    try:
        return await on_thread(function, progress, stop.is_set)
    except asyncio.CancelledError:
        stop.set()
        raise


class _DialogAnswer(asyncio.Future[T]):
    """What a dialog was left with."""


def has_gone(node: DOMNode) -> bool:
    """Return whether a screen or widget has been removed, or will be in a moment."""
    return node._closing or node._closed or node._pruning or not node.is_attached


class RestOfTask:
    """The part of a task behind its first wait, for a worker to run.

    Args:
        task: The coroutine.
        awaited: What its first ``await`` waits for.
        owner: Began it.
    """

    def __init__(self, task: Coroutine[Any, Any, None], awaited: object, owner: DOMNode) -> None:
        self._task, self._awaited, self._owner = task, awaited, owner
        self.busy_since = monotonic()
        """When the task began, or when its last dialog was answered."""

    @property
    def is_asking(self) -> bool:
        """Whether the task waits for the answer to a dialog that is open."""
        return isinstance(self._awaited, _DialogAnswer) and not self._awaited.done()

    def __await__(self) -> Generator[object, Any, None]:
        """Run the rest of the coroutine."""
        try:
            while True:
                try:
                    value = yield self._awaited
                except GeneratorExit:
                    self._task.close()
                    raise
                except BaseException as error:  # noqa: BLE001 - of the awaited, or a cancellation
                    self._awaited = self._task.throw(error)
                else:
                    if isinstance(self._awaited, _DialogAnswer):
                        self.busy_since = monotonic()
                    self._awaited = self._task.send(value)
        except StopIteration:
            return
        except NoMatches:
            # What it was to fill may have gone just before it is cancelled.
            if not has_gone(self._owner):
                raise


class Job(Protocol):
    """A running activity (:class:`dld_tui.targets.base.Job`)."""

    def __enter__(self) -> object:
        """Begin to use it."""

    def __exit__(self, kind: Any, error: Any, trace: Any, /) -> None:
        """Leave nothing of it."""

    @property
    def can_leave(self) -> bool:
        """Whether it goes on without this program."""

    def events(self) -> Iterable[Event]:
        """Return its events, as they come."""

    def cancel(self) -> None:
        """Ask it to stop."""

    def leave(self) -> bool:
        """Let it go on elsewhere."""

    def close(self) -> None:
        """End it."""


class JobRun:
    """A job and its events, in order and in batches, at most 20 a second.

    Taking each event on its own would stall the event loop for half a second in a burst of 4,000.
    """

    def __init__(self, start: Callable[[], Job]) -> None:
        self._start = start
        self._job: Job | None = None
        self._lock = threading.Lock()
        self._pending: list[Event] = []
        self._is_cancelled = False

    async def batches(self) -> AsyncIterator[Sequence[Event]]:
        """Run the job to its end, on a thread, and give its events."""
        loop = asyncio.get_running_loop()
        news = asyncio.Event()

        def add(event: Event) -> None:
            with self._lock:
                self._pending.append(event)
                is_first = len(self._pending) == 1
            if is_first and not loop.is_closed():
                loop.call_soon_threadsafe(news.set)

        def run() -> None:
            try:
                self._run(add)
            finally:
                loop.is_closed() or loop.call_soon_threadsafe(news.set)

        running = asyncio.ensure_future(on_thread(run))
        while not running.done() or self._pending:
            await news.wait()
            news.clear()
            with self._lock:
                events, self._pending = self._pending, []
            if events:
                yield events
                await asyncio.sleep(_BATCH_S)
        await running

    def _run(self, add: Callable[[Event], None]) -> None:
        try:
            job = self._start()
        except DldError as error:
            from dld_tui.core.events import Failed

            return add(Failed.from_error(error))
        with self._lock:
            self._job = job
            cancelled = self._is_cancelled
        if cancelled:
            job.cancel()
        with job:
            for event in job.events():
                add(event)
        return None

    def cancel(self) -> None:
        """Ask the job to stop; returns at once."""
        with self._lock:
            self._is_cancelled = True
            job = self._job
        if job is not None:
            job.cancel()

    @property
    def can_leave(self) -> bool:
        """Whether the job goes on when the program ends."""
        with self._lock:
            return self._job is not None and self._job.can_leave

    def leave(self) -> None:
        """Let the job go on elsewhere, or end it now where it cannot."""
        with self._lock:
            self._is_cancelled = self._job is None  # it starts just now
            job = self._job
        if job is not None and not job.leave():
            job.close()


_RESULT_FILES = ("report", "engine", "output", "path", "script")
"""Keys of results that are files, the one to open first."""
_MOST_LOG = 2000


@dataclass(frozen=True)
class EndedJob:
    """What stays of a job when its page has closed."""

    number: int
    title: str
    """Untrusted text, as all texts here."""
    end: str
    """``done``, ``stopped`` or ``failed``."""
    time: str
    """Of the day, when it ended."""
    result: tuple[tuple[str, str], ...]
    """Names and values; of tables the number of rows."""
    files: tuple[str, ...]
    log: tuple[str, ...]

    @classmethod
    def of(cls, title: str, end: str, result: Mapping[str, JSON], log: Sequence[str]) -> EndedJob:
        """Return what stays of a job."""
        shown = [
            (name.replace("_", " "), _shown(value))
            for name, value in result.items()
            if value not in (None, "", [], {})
        ]
        files = [value for name in _RESULT_FILES if isinstance(value := result.get(name), str)]
        clock = time.strftime("%H:%M:%S")
        number = next(_NUMBERS)
        return cls(number, title, end, clock, tuple(shown), tuple(files), tuple(log[-_MOST_LOG:]))


_NUMBERS = itertools.count(1)


def _shown(value: JSON) -> str:
    if isinstance(value, list) and any(isinstance(item, (list, dict)) for item in value):
        return fmt.plural(len(value), "row")
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_shown(item)}" for name, item in value.items())
    return f"{value:,.6g}" if isinstance(value, float) else str(value)
