"""Limits of time and memory for what ONNX Runtime loads and runs in this process.

A limit of time stops all that is done until then; those of trials hold for each session and each
single run. An error of a trial that went beyond them names the node.
"""

from __future__ import annotations

import contextlib
import math
import re
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

from dld_tui.backends.onnxruntime.runtime import FATAL, RAISE_LIMITS, load
from dld_tui.backends.processes import MOST_LOAD
from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import ActivityError, CancelledError, DldError, TimeLimitError
from dld_tui.core.model.inputs.shapes import parse_shapes
from dld_tui.core.process.child import (
    CrashError,
    LimitError,
    Limits,
    RefusedError,
    compute,
    free_memory,
    is_child,
    limit_memory,
    says_no_memory,
)
from dld_tui.core.text import visible

if TYPE_CHECKING:
    from dld_tui.core.model.cost.forecast import Excess
    from dld_tui.core.model.document.document import Document
    from dld_tui.core.model.document.node import Node
    from dld_tui.core.model.inputs.shape_texts import Shape

_T = TypeVar("_T")


class _TimeLimit:
    """Stops what ONNX Runtime loads and runs in this process at a time."""

    def __init__(self, end: float, seconds: float | None = None) -> None:
        self.end = end
        """On the monotonic clock."""
        self.seconds = seconds
        """How long a trial may take; None for a limit of something else."""
        self._began, self._used = time.monotonic(), time.process_time()
        self._ended = threading.Event()
        self.run_options: Any = None
        """Of all runs, so that one flag stops them; created by the first."""
        self.loading: list[Any] = []
        """Options of the sessions that are being created."""
        self.has_stopped = False

    def is_prolonged(self) -> bool:
        """Return whether a trial goes on at its end, as a loaded machine did not let it compute."""
        if self.seconds is None or self.has_stopped:
            return False
        missing = self.seconds - (time.process_time() - self._used)
        if missing <= _STOP_S or time.monotonic() > self._began + MOST_LOAD * self.seconds:
            return False
        self.end = time.monotonic() + missing
        return True

    def start(self) -> None:
        """Stop at the end what loads or runs then; what begins later does not start."""
        threading.Thread(target=self._watch, daemon=True).start()

    def finish(self) -> None:
        """Stop nothing any more."""
        self._ended.set()

    def _watch(self) -> None:
        """Wait in one thread: at a limit of memory there is no other one later."""
        while not self._ended.wait(max(0.0, self.end - time.monotonic())):
            if not self.is_prolonged():
                self._stop()
                return

    def _stop(self) -> None:
        self.has_stopped = True
        if self.run_options is not None:
            self.run_options.terminate = True
        for options in list(self.loading):
            options.set_load_cancellation_flag(True)

    @property
    def is_over(self) -> bool:
        """Whether the time is up."""
        return self.has_stopped or time.monotonic() >= self.end

    def error(self, stopped: Exception | None = None) -> TimeLimitError:
        """Return what is raised when the time is up, given what ONNX Runtime raised then."""
        where = stopped.where if isinstance(stopped, DldError) else None
        if self.seconds is None:
            return TimeLimitError("stopped at the time limit", where=where)
        return TimeLimitError(
            f"it takes over {fmt.duration(self.seconds)}", where=where, hint=RAISE_LIMITS
        )


_STOP_S = 0.5
"""How long ONNX Runtime has to stop."""
_HANGS_S = 60.0
"""How long one that does not stop is waited for."""
_abandoned: list[threading.Thread] = []
"""Threads that still create a session that nobody waits for."""
_limits: list[_TimeLimit] = []
"""The limits of the blocks that are being executed, the innermost and shortest last."""


@contextlib.contextmanager
def time_limit(end: float) -> Generator[None]:
    """Stop ONNX Runtime at a time, in all threads of this process.

    A session that is being created or run at that time, or is to be created or run later inside the
    block, raises TimeLimitError. ONNX Runtime looks at its flags between two nodes of a run and two
    optimizations of a graph. What it does after these while it creates a session goes on in a
    thread; the next block waits for that, so that it disturbs no measurement.

    Args:
        end: On the clock of ``time.monotonic``.
    """
    with _limited(_TimeLimit(min([end, *(outer.end for outer in _limits)]))):
        yield


@contextlib.contextmanager
def _limited(limit: _TimeLimit) -> Generator[None]:
    _limits.append(limit)
    for thread in list(_abandoned):
        thread.join(min(max(0.0, limit.end - time.monotonic()), _HANGS_S))
        if not thread.is_alive() or math.isinf(limit.end):  # what hangs is waited for once
            _abandoned.remove(thread)
    if not math.isinf(limit.end):
        limit.start()
    try:
        yield
    finally:
        limit.finish()
        _limits.remove(limit)


@contextlib.contextmanager
def stoppable(options: Any = None) -> Generator[None]:
    """Raise TimeLimitError in the place of what ONNX Runtime raises when it is stopped.

    Args:
        options: Of a session that is created inside.
    """
    limit = _limits[-1] if _limits else None
    if limit is None:
        yield
        return
    if limit.is_over:
        raise limit.error()
    can_stop = hasattr(options, "set_load_cancellation_flag")  # ONNX Runtime 1.21
    if can_stop:
        limit.loading.append(options)
    try:
        yield
    except CancelledError:
        raise
    except Exception as error:
        if limit.has_stopped and not isinstance(error, TimeLimitError):
            raise limit.error(error) from error
        raise
    finally:
        if can_stop:
            limit.loading.remove(options)


def within_limit(call: Callable[[], _T]) -> _T:
    """Create or run a session; at the time limit, leave its thread to itself.

    Raises:
        TimeLimitError: The time is up, and ONNX Runtime did not stop at once.
    """
    limit = _limits[-1] if _limits else None
    if limit is None or math.isinf(limit.end):
        return call()
    future: Future[_T] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001 - raised by the thread that waits
            future.set_exception(error)

    thread = threading.Thread(target=run, name="within-limit", daemon=True)
    thread.start()
    while not future.done():
        wait([future], max(0.0, limit.end - time.monotonic()) + _STOP_S)
        if time.monotonic() >= limit.end and not limit.is_prolonged():
            break
    if not future.done():
        _abandoned.append(thread)
        raise limit.error()
    return future.result()


@dataclass(frozen=True)
class _Trials:
    """How trials are limited in this process."""

    limits: Limits
    """Of each session that is created, and of each single run."""
    shapes: Mapping[str, Shape]
    """Of inputs, as far as they are given."""
    files: Sequence[Path]
    """Of the models."""
    known: WeakKeyDictionary[Document, Excess | None] = field(default_factory=WeakKeyDictionary)
    """Whether models go beyond them."""

    def text(self, what: str) -> str:
        """Return what to say of ``time`` or ``memory`` that is over its limit."""
        limits = self.limits
        most = fmt.duration(limits.seconds) if what == "time" else fmt.size(limits.memory)
        return f"it takes over {most}"


_trials: list[_Trials] = []
"""The last counts."""


def limit_trials(
    *documents: Document, shapes: Sequence[str] = (), more: int = 0, is_asked: bool = False
) -> None:
    """Limit the memory of this process, and the time of each session and of each single run.

    For a worker that tries out models on a CPU: a model of 2 kB can stand for a run that never
    ends, or that takes all memory. Measured passes have no limit of time: a single run was before.

    Args:
        documents: The models.
        shapes: Of inputs, ``NAME:1x3``.
        more: Bytes that are needed besides what one trial takes.
        is_asked: A user asked for sizes that may take whatever memory is free.

    Raises:
        UsageError: A shape is malformed.
    """
    from dld_tui.core.model.document.serialise import skeleton_bytes
    from dld_tui.core.model.document.summary import summarise
    from dld_tui.core.model.operators.native import trial_limits

    if not is_child():
        return
    given: dict[str, Shape] = {}
    for document in documents:
        given |= parse_shapes(shapes, document.main.inputs)
    limits = trial_limits(
        sum(len(skeleton_bytes(document)) for document in documents),
        sum(summarise(document).weight_bytes for document in documents),
        sum(_input_bytes(document, given) for document in documents),
    )
    free = free_memory() if is_asked else None
    if free is not None:
        limits = replace(limits, memory=free * 9 // 10)
    limit_memory(limits.memory + more)
    files = [document.path for document in documents if document.path is not None]
    _trials[:] = [_Trials(limits, given, files)]


def are_limited() -> bool:
    """Return whether trials are limited in this process."""
    return bool(_trials)


def _input_bytes(document: Document, given: Mapping[str, Shape]) -> int:
    """Return the size of inputs; unknown dimensions count as 1."""
    total = 0
    for name in document.main.inputs:
        known = document.main.value_type(name)
        dims = given.get(name) or (known.dims if known is not None else None) or ()
        total += 4 * math.prod(size for size in dims if isinstance(size, int) and size > 0)
    return total


_NO_NAME = re.compile(r"(?P<file>.*: )a node \((?P<op>\w+)\)", re.DOTALL)


@contextlib.contextmanager
def naming(document: Document | None) -> Generator[None]:
    """Name the node in an error of what is loaded and run inside, if it has no name in the model.

    A model that certainly goes beyond the limits of trials is not loaded at all, and one that may
    do so is loaded and run in a fork before: what it computes there ends with the fork.

    Args:
        document: The model; None if there is none, as of an engine.

    Raises:
        ActivityError: What was raised inside.
        TimeLimitError: It takes more time than a trial may.
    """
    try:
        if document is not None and (excess := excess_of(document)) is not None:
            kind = TimeLimitError if excess.what == "time" else ActivityError
            raise kind(excess.text, where=_place(document.path, excess.node), hint=RAISE_LIMITS)
        yield
    except ActivityError as error:
        if error.where is None and document is not None and document.path is not None:
            error.where = str(document.path)
        match = _NO_NAME.fullmatch(error.where or "")
        if match and document is not None:
            nameless = [
                node
                for scope in document.scopes()
                for node in scope.nodes_of_type(match["op"])
                if not node.name
            ]
            if len(nameless) == 1:
                error.where = f"{match['file']}node {_node_text(nameless[0])}"
        elif document is not None and _trials and _lacks_node(error):
            _find_node(document, error)
        raise


def _node_text(node: Node) -> str:
    return f"{visible(node.ref)} ({visible(node.op_type)})"


def excess_of(document: Document) -> Excess | None:
    """Return what of a model goes beyond the limits of trials; None also where there are none."""
    if not _trials:
        return None
    trials = _trials[-1]
    if document not in trials.known:
        trials.known[document] = _excess(document, trials)
    return trials.known[document]


def folding_excess(document: Document) -> str:
    """Return at which node the constants of a model go beyond the limits of trials, and why.

    Empty if they do not: they can be folded.
    """
    from dld_tui.core.model.cost.forecast import TYPICAL, Forecast

    if excess_of(document) is None:
        return ""
    trials = _trials[-1]
    excess = Forecast(document, trials.shapes).beyond(trials.limits, TYPICAL, loading=True)
    return "" if excess is None else f"{_place(None, excess.node)}: {excess.text}"


def _place(path: Path | str | None, node: Node | None) -> str | None:
    parts = [path, None if node is None else f"node {_node_text(node)}"]
    return ": ".join(str(part) for part in parts if part is not None) or None


def _excess(document: Document, trials: _Trials) -> Excess | None:
    """Return what of a model goes beyond the limits of trials."""
    from dld_tui.core.model.cost.forecast import TYPICAL, Forecast

    forecast = Forecast(document, trials.shapes)
    excess = forecast.beyond(trials.limits)
    if excess is None:
        likely = forecast.beyond(trials.limits, TYPICAL)
        if likely is not None and (what := _limit_of_fork(document, trials)):
            return replace(likely, what=what, text=trials.text(what))
    return excess


def _limit_of_fork(document: Document, trials: _Trials) -> str:
    """Load and run a model in a fork; return which limit it exceeds, empty if none."""
    from dld_tui.backends.onnxruntime.session import Session
    from dld_tui.backends.onnxruntime.session_options import SessionSettings
    from dld_tui.core.model.document.serialise import loadable_view
    from dld_tui.core.model.inputs.guess import candidate_guesses, first_that_runs, specs_for

    def tried(view: Path) -> bytes:
        try:
            session = Session(view, SessionSettings(quiet=True))
            guesses = candidate_guesses(
                specs_for(session.inputs, document), document, dict(trials.shapes)
            )
            first_that_runs(guesses, 0, lambda feed: session.run_unread(session.feed(feed)))
        except TimeLimitError:
            return b"time"
        except DldError as error:
            return b"memory" if says_no_memory(f"{error.message} {error.details}") else b""
        return b""

    limits = trials.limits
    try:
        with loadable_view(document) as view:
            answer = compute(lambda: tried(view), replace(limits, seconds=_FORK * limits.seconds))
            return answer.decode()
    except LimitError as error:
        return error.what
    except (CrashError, RefusedError, OSError):  # another one tells
        return ""


_FORK = 20
"""How much more processor time than a trial the fork of one may take: it limits itself."""


def is_of_limit(error: ActivityError) -> bool:
    """Return whether an error is that of a limit of time or memory."""
    return isinstance(error, TimeLimitError) or says_no_memory(f"{error.message} {error.details}")


def _lacks_node(error: ActivityError) -> bool:
    """Return whether a trial went beyond its limits, and the error does not say at which node."""
    return is_of_limit(error) and ": node " not in f": {error.where}"


_LARGE = 4
"""The part of the limit of memory from which on a result is large."""
_SEARCH = 2.0
"""How much more time than a trial the search for a node may take."""


def _find_node(document: Document, error: ActivityError) -> None:
    """Say in an error at which node a trial went beyond its limits, if it is found soon."""
    from dld_tui.backends.onnxruntime.verdict import node_at_limit
    from dld_tui.core.model.cost.forecast import TYPICAL, Forecast

    limits = _trials[-1].limits
    with contextlib.suppress(DldError, OSError):
        forecast = Forecast(document, _trials[-1].shapes)
        likely = forecast.beyond(limits, TYPICAL)
        node = likely.node if likely is not None else None
        if node is None:
            node = node_at_limit(document, _SEARCH * limits.seconds)
        if node is None and not isinstance(error, TimeLimitError):
            node = forecast.largest(limits.memory // _LARGE)
        if node is not None:
            error.where = _place(error.where, node)


def memory_error(where: str) -> ActivityError:
    """Return the error of a job that got no more memory; it names the node that shapes tell of.

    Args:
        where: What to name where there is none.
    """
    from dld_tui.core.model.cost.forecast import TYPICAL, Forecast
    from dld_tui.core.model.document.document import Document

    if not _trials:
        return ActivityError("out of memory", where=where, hint=RAISE_LIMITS)
    trials = _trials[-1]
    for file in trials.files:
        with (
            contextlib.suppress(DldError, OSError, MemoryError),
            contextlib.closing(Document.open(file)) as document,
        ):
            excess = Forecast(document, trials.shapes).beyond(trials.limits, TYPICAL)
            if excess is not None and excess.node is not None:
                where = _place(file, excess.node) or where
                break
    return ActivityError(trials.text("memory"), where=where, hint=RAISE_LIMITS)


_NODE = re.compile(r"(?:^|: )((?:a )?node .*)", re.DOTALL)


def with_node(error: DldError) -> str:
    """Return the message of an error of a session, with the node that it is about."""
    match = _NODE.search(error.where or "")
    return f"{match[1]}: {error.message}" if match else error.message


@contextlib.contextmanager
def trial() -> Generator[None]:
    """Limit the time of what is done inside, where nothing else does."""
    if not _trials or _limits:
        yield
        return
    seconds = _trials[-1].limits.seconds
    with _limited(_TimeLimit(time.monotonic() + seconds, seconds)):
        yield


def limited_options() -> Any:
    """Return the options of runs that a time limit stops; None without a limit."""
    if not _limits:
        return None
    limit = _limits[-1]
    if limit.run_options is None:
        options = load().RunOptions()
        options.log_severity_level = FATAL
        options.terminate = limit.has_stopped
        limit.run_options = options
    return limit.run_options


def run_options() -> Any:
    """Return the options of a single run, which a time limit stops if there is one."""
    if (limited := limited_options()) is not None:
        return limited
    options = load().RunOptions()
    options.log_severity_level = FATAL  # errors are raised as well
    return options
