"""A job on an SSH target: prepared, sent, started, followed, fetched; it survives a lost line.

Its request is translated first: files to send, paths there, results to fetch.
Paths are chosen here. Nothing that a target sends becomes a path on this machine.

All of it is one coroutine on the loop of :mod:`.loop`, which fills the queue of events.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import functools
import json
import os
import threading
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any

import onnx
from google.protobuf.message import DecodeError

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import DldError, InputError, UnavailableError, UsageError
from dld_tui.core.events import Cancelled, Event, Failed, Finished, Log, Progress
from dld_tui.core.files import permission
from dld_tui.core.files.blobs import BlobTable
from dld_tui.core.files.external import (
    ExternalDataError,
    ExternalFiles,
    dense_tensors,
    entries_of,
    has_external,
    is_external,
)
from dld_tui.core.files.recognise import FileKind, recognise
from dld_tui.core.files.source import Source
from dld_tui.core.files.text_model import open_text
from dld_tui.core.files.wire import cut
from dld_tui.core.llm.folder import CONFIG, contents_of, model_in
from dld_tui.core.notes import NoteKind
from dld_tui.core.params import RequestData, Setting, companion_files, output_path
from dld_tui.core.report.schema import moved_paths
from dld_tui.core.text import clip, visible
from dld_tui.core.types import JSON
from dld_tui.targets.base import Job
from dld_tui.targets.ssh import loop
from dld_tui.targets.ssh.channel import Agent, AgentError
from dld_tui.targets.ssh.deploy import Deployment, Needs, Prepared, needs_of
from dld_tui.targets.ssh.errors import ConnectionLostError, LinkError
from dld_tui.targets.ssh.link import RetryPolicy, with_retries
from dld_tui.targets.ssh.results import (
    End,
    JobsStore,
    Listener,
    Records,
    StoredJob,
    StoredOutput,
    fetch,
    fetch_what_is_there,
    new_id,
)
from dld_tui.targets.ssh.transfer import Amount, LocalFile, Upload, lost_note

# Not `-m`, and nothing of the current folder: see dld_tui.targets.process.
_BOOTSTRAP = (
    "import sys; sys.path[0:1] = sys.argv.pop().split('\\n'); from {module} import main; main()"
)


@dataclass(frozen=True)
class Setup:
    """How jobs of a target are run."""

    retries: RetryPolicy = field(default_factory=RetryPolicy)
    worker: str = "dld_tui.activities.worker"
    """The module on the target that serves a request."""
    paths: tuple[str, ...] = ()
    """More folders of modules there."""
    route: str = "auto"
    """What downloads packages, see :class:`.deploy.Deployment`."""
    pip_options: tuple[str, ...] = ()

    def command(self, python: str, package: str) -> list[str]:
        """Return the command of a worker.

        Args:
            python: The Python that runs it.
            package: The folder of our package there.
        """
        code = _BOOTSTRAP.format(module=self.worker)
        return [python, "-c", code, "\n".join([*self.paths, package])]


_TICK_S = 0.2
_MOST_UNREAD = 2000
_MOST_UNREAD_BYTES = 32 << 20
"""Of unread events: the target waits above that."""
_STOP_S = 30.0
"""From the request to stop until the target is no longer waited for."""
_CLOSE_S = 5.0
_REMOVE_TRIES = 15
_MOST_SENDINGS = 3


class SshJob(Job):
    """One activity on a target.

    Args:
        agent: On the target; its line is closed at the end.
        setup: How it is run.
        store: Where it is remembered.
        activity: What to start, with its request; None when a job is taken up again.
        stored: The job that is taken up again.
    """

    def __init__(
        self,
        agent: Agent,
        setup: Setup,
        store: JobsStore,
        activity: tuple[str, Mapping[str, JSON]] | None = None,
        stored: StoredJob | None = None,
    ) -> None:
        assert (activity is None) != (stored is None)
        self.id = stored.id if stored is not None else new_id()
        self._agent = agent
        self._setup = setup
        self._store = store
        self._target = agent.link.connection.name
        self._activity = activity
        self._stored = stored
        self._amount = Amount(stage=f"Connecting to {self._target}")
        self._ready: collections.deque[tuple[Event, int]] = collections.deque()
        self._unread = 0
        """Bytes of the records of the events in `_ready`."""
        self._news = threading.Condition()
        self._over = False
        self._cancelled = False
        self._closing = self._left = False
        self._is_there = stored is not None
        """Whether the job may be on the target, so that a cancel has to go there."""
        self._agent_is_there = asyncio.Event()
        self._upload: Upload | None = None
        self._stopping: asyncio.Task[None] | None = None
        self._task: asyncio.Task[Any] | None = None
        self._future = loop.submit(self._run())

    @property
    def bytes_sent(self) -> int:
        """How much was sent to the target for this job: our package, packages and files."""
        return self._amount.sent

    def events(self) -> Iterator[Event]:
        """Yield events until the terminal one, which is always the last."""
        while True:
            with self._news:
                while not self._ready and not self._over:
                    self._news.wait()
                if not self._ready:
                    return
                event, size = self._ready.popleft()
                self._unread -= size
            yield event

    def cancel(self) -> None:
        """Ask the job to stop, on the target when it is there."""
        if not self._over and not self._cancelled:
            self._cancelled = True
            loop.running().call_soon_threadsafe(self._begin_to_stop, "cancel")

    def close(self) -> None:
        """End the job now."""
        if self._over:
            return
        self._cancelled = self._closing = True
        loop.running().call_soon_threadsafe(self._begin_to_stop, "kill")
        with self._news:
            self._news.wait_for(lambda: self._over, _CLOSE_S)
        self._future.cancel()
        with self._news:
            self._news.wait_for(lambda: self._over, _CLOSE_S)

    @property
    def can_leave(self) -> bool:
        """Whether it runs on the target, and so continues without this program."""
        return self._agent_is_there.is_set() and not (self._cancelled or self._over)

    def leave(self) -> bool:
        """Let go of the job; :meth:`.target.SshTarget.attach` takes it up again."""
        if not self.can_leave or self._task is None:
            return False
        self._left = True
        loop.running().call_soon_threadsafe(self._task.cancel)
        with self._news:
            return self._news.wait_for(lambda: self._over, _CLOSE_S)

    @property
    def _attach(self) -> str:
        """The command that takes the job up again."""
        return f"dld target attach {self.id}"

    def _say(self, event: Event, size: int = 0) -> None:
        with self._news:
            self._ready.append((event, size))
            self._unread += size
            self._news.notify_all()

    async def _run(self) -> None:
        terminal: Event
        self._task = asyncio.current_task()
        try:
            if self._cancelled and not self._is_there:
                raise asyncio.CancelledError
            async with self._ticking():
                terminal = await self._work()
        except asyncio.CancelledError:
            terminal = Cancelled()
            with contextlib.suppress(asyncio.CancelledError, DldError):
                if not self._left:
                    await loop.within(_CLOSE_S, self._leave_nothing())
        except DldError as error:
            terminal = Failed.from_error(error)
        except OSError as error:
            terminal = Failed(error.strerror or str(error), error.filename)
        # The seam: whatever a library raises must reach the user as one event.
        except Exception as error:  # noqa: BLE001
            terminal = Failed(f"unexpected {type(error).__name__}: {error}"[:500], self._target)
        if self._stopping is not None:
            self._stopping.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await loop.within(_CLOSE_S, self._agent.link.close())
        with self._news:
            self._ready.append((Cancelled() if self._is_cancel(terminal) else terminal, 0))
            self._over = True
            self._news.notify_all()

    def _is_cancel(self, terminal: Event) -> bool:
        # While it may still exist, a failure reports that it could not be stopped.
        return self._cancelled and isinstance(terminal, Failed) and not self._is_there

    async def _work(self) -> Finished | Failed | Cancelled:
        if self._activity is not None:
            stored = await self._start(*self._activity)
        else:
            assert self._stored is not None
            stored = self._stored
            await with_retries(self._agent.make_ready, self._setup.retries, lost_note(self._amount))
        self._agent_is_there.set()
        folder = f"{self._agent.root}/jobs/{self.id}"
        listener = Listener(self._target, folder, stored.renames)
        self._amount.step("")
        end = await self._follow(listener)
        terminal = listener.end(end)
        work = (self._agent, stored, self._setup.retries, self._amount, self._say, self._store.put)
        if isinstance(terminal, Finished):
            try:
                await fetch(*work)
            except DldError as error:  # it stays there
                again = f"The result is there still; fetch it with: {self._attach}"
                error.hint = f"{error.hint}. {again}" if error.hint else again
                raise
        elif not self._closing and not await fetch_what_is_there(*work):
            self._say(Log(f"it is on {self._target} still; fetch it with: {self._attach}"))
            return terminal
        if isinstance(terminal, Failed) and self._activity is not None:
            await self._look_again(terminal, needs_of(*self._activity))
        await self._forget()
        return terminal

    async def _start(self, activity: str, request: Mapping[str, JSON]) -> StoredJob:
        token = f"@{self.id}@"
        plan = await asyncio.to_thread(plan_inputs, activity, request, token)
        needs = needs_of(activity, request)
        prepared = await self._prepare(needs)
        folder = f"{self._agent.root}/jobs/{self.id}"
        self._upload = Upload(self._agent, self._setup.retries, amount=self._amount)
        names = await self._upload.send([file for _, file in plan.files])
        self._amount.step("Starting")
        order = {
            "id": self.id,
            "request": {
                "activity": activity,
                "request": placed(plan.request, token, folder),
            },
            "files": [[place, names[file], file.mtime_ns] for place, file in plan.files],
            "folders": plan.folders,
            "worker": self._setup.command(prepared.python, self._agent.package),
            "launcher": list(self._agent.link.connection.launcher),
            "environment": dict(self._agent.link.connection.environment),
        }
        stored = StoredJob(
            self.id, self._target, activity, time.time(),
            tuple(StoredOutput(o.place, str(o.path), o.needed, o.replaces) for o in plan.outputs),
            {there.replace(token, folder, 1): here for there, here in plan.renames.items()},
        )  # fmt: skip
        for _ in range(_MOST_SENDINGS):
            if self._cancelled:  # the library may have lost it: from here on it has to go there
                raise asyncio.CancelledError
            self._store.put(stored)
            self._is_there = is_started = True
            try:
                is_started = await self._send_order(order)
            except AgentError:
                is_started = False
                raise
            finally:
                if not is_started:
                    self._is_there = False
                    self._store.forget(self.id)
            if is_started:
                return stored
            self._amount.notes.append("files were lost there: they are sent again")
            await self._upload.send([file for _, file in plan.files])
        raise AgentError(
            "the files that were sent are gone at once", kind="missing",
            where=self._agent.where, hint="Its clock or disk may fail",
        )  # fmt: skip

    async def _prepare(self, needs: Needs) -> Prepared:
        setup = self._setup
        way = (setup.retries, setup.route, setup.pip_options)
        deployment = Deployment(self._agent, self._amount, *way)
        lost = lost_note(self._amount)
        return await with_retries(lambda: deployment.prepare(needs), setup.retries, lost)

    async def _send_order(self, order: dict[str, Any]) -> bool:
        """Start the job; return False where files have to be sent first."""
        line = json.dumps(order).encode() + b"\n"
        lost = lost_note(self._amount)
        start = functools.partial(self._agent.call, "start", input=line)
        answer = await with_retries(start, self._setup.retries, lost)
        self._amount.sent += len(line)
        return answer.get("id") == self.id

    async def _follow(self, listener: Listener) -> End:
        records = Records(self._agent.where)

        async def attempt() -> End:
            records.restart()
            async with self._agent.stream("follow", job=self.id, offset=records.offset) as stream:
                await self._in_time(stream.next_answer())
                while data := await self._in_time(stream.read()):
                    for tag, text in records.feed(data):
                        if tag == "x":
                            return End.parse(text)
                        event = listener.event(tag, text)
                        if event is not None:
                            self._say(event, len(text))
                        while len(self._ready) > _MOST_UNREAD or self._unread > _MOST_UNREAD_BYTES:
                            await asyncio.sleep(_TICK_S)
            raise ConnectionLostError(self._agent.where)

        try:
            return await with_retries(attempt, self._setup.retries, self._tell_lost)
        except LinkError as error:
            hint = f"The job continues there; fetch its result with: {self._attach}"
            raise UnavailableError(error.message, where=error.where, hint=hint) from None

    async def _in_time(self, work: Any) -> Any:
        """Wait for a sign of life; without one the line counts as lost."""
        try:
            return await loop.within(self._setup.retries.silence, work)
        except asyncio.TimeoutError:
            await self._agent.link.close()
            raise ConnectionLostError(self._agent.where) from None

    def _tell_lost(self, error: LinkError, wait: float) -> None:
        text = f"{error.message}: the job continues there; the next attempt is in {wait:g} s"
        self._say(Log(text, NoteKind.WARNING))

    async def _look_again(self, failed: Failed, needs: Needs) -> None:
        if failed.status == int(UnavailableError.status) and needs.modules:
            with contextlib.suppress(DldError):
                name = needs.key(self._agent.python)
                await self._agent.call("ready", name=name, value=None)

    async def _forget(self) -> None:
        # Its supervisor may take a moment to end; later the target's own clean-up takes it.
        for _ in range(_REMOVE_TRIES):
            try:
                await self._agent.call("remove", job=self.id)
            except AgentError as error:
                if error.kind == "running":
                    await asyncio.sleep(_TICK_S)
                    continue
            except DldError:
                pass
            break
        self._is_there = False
        self._store.forget(self.id)

    def _begin_to_stop(self, word: str) -> None:
        if not self._is_there:
            if self._task is not None:
                self._task.cancel()
        else:
            self._stopping = asyncio.ensure_future(self._stop(word))

    async def _stop(self, word: str) -> None:
        """Tell the job on the target to stop; its last record then ends the iteration."""
        with contextlib.suppress(DldError, asyncio.TimeoutError):
            work = with_retries(lambda: self._tell(word), self._setup.retries, self._tell_lost)
            await loop.within(_STOP_S, work)
        await asyncio.sleep(_STOP_S)
        self._say(
            Log(f"{self._target} does not answer: the job may continue there", NoteKind.WARNING)
        )
        if self._task is not None:
            self._task.cancel()

    async def _tell(self, word: str) -> None:
        await self._agent_is_there.wait()
        await self._agent.call("stop", job=self.id, word=word)

    async def _leave_nothing(self) -> None:
        if self._is_there:
            await self._tell("kill")
            await self._forget()
        elif self._upload is not None:
            await self._upload.drop()

    @contextlib.asynccontextmanager
    async def _ticking(self) -> AsyncIterator[None]:
        """Say how far transfers are, while the block runs."""
        ticker = asyncio.ensure_future(self._tick())
        try:
            yield
        finally:
            ticker.cancel()
            self._say_notes()

    async def _tick(self) -> None:
        last: Progress | None = None
        while True:
            self._say_notes()
            now = self._amount.progress()
            if now.stage and now != last:
                self._say(now)
                last = now
            await asyncio.sleep(_TICK_S)

    def _say_notes(self) -> None:
        notes, self._amount.notes[:] = list(self._amount.notes), []
        for note in notes:
            self._say(Log(note, NoteKind.WARNING))


_MOST_FILES = 100_000


@dataclass(frozen=True)
class Output:
    """A file that a job may write."""

    place: str
    """On the target, below the job's folder of outputs."""
    path: Path
    """Where it shall be here."""
    needed: bool = True
    """False for one that is only sometimes written."""
    replaces: bool = False
    """Whether a file that is there may be replaced."""


@dataclass
class UploadPlan:
    """A request, made ready for a folder on a target."""

    request: dict[str, JSON]
    """The settings with the places of the target."""
    files: list[tuple[str, LocalFile]] = field(default_factory=list)
    """What to send, by its place below the job's folder."""
    folders: list[str] = field(default_factory=list)
    outputs: list[Output] = field(default_factory=list)
    renames: dict[str, str] = field(default_factory=dict)
    """Paths on the target, and what the user calls them."""

    def here(self, value: JSON) -> JSON:
        """Return JSON data from the target with the paths of this machine."""
        return moved_paths(value, self.renames)


def plan_inputs(activity_id: str, request: Mapping[str, JSON], folder: str) -> UploadPlan:
    """Return the request translated for a job's folder on a target.

    Args:
        activity_id: For messages.
        request: From :func:`dld_tui.core.params.to_json`.
        folder: The job's folder there, as an absolute path.

    Raises:
        UsageError: The request does not declare which of its settings are files.
        InputError: A file cannot be read.
        SaveError: A result could not be written here.
    """
    if not isinstance(request, RequestData):
        raise UsageError("this activity only runs on this machine", where=activity_id)
    planner = _Planner(request, folder)
    for setting in request.settings:
        planner.take(setting)
    return planner.plan


class _Planner:
    def __init__(self, request: RequestData, folder: str) -> None:
        self._folder = folder
        self._given = request
        self.plan = UploadPlan(dict(request))

    def take(self, setting: Setting) -> None:
        value = self._given.get(setting.name)
        kind = setting.param.kind
        if kind == "output":
            self._output(setting, value)
        elif kind in ("file", "folder") and value:
            values = value if isinstance(value, list) else [value]
            places = [
                self._input(f"in/{setting.name}{number or ''}", str(text), kind)
                for number, text in enumerate(values)
            ]
            self.plan.request[setting.name] = [*places] if isinstance(value, list) else places[0]

    def _input(self, parent: str, text: str, kind: str) -> str:
        path = Path(text)
        place = f"{parent}/{_name(path)}"
        if path.is_dir():
            self.plan.folders.append(place)
            # Where a model is asked for, its folder stands for its decoder; that may be one of
            # several, each of many gigabytes.
            wanted = _of_decoder(path, place) if kind == "file" else None
            self._add(_in_folder(path, place) if wanted is None else wanted)
        else:
            self.plan.files.append((place, LocalFile.at(path)))
            self._add(_data_of(path, parent))
        return self._remember(place, text)

    def _add(self, files: Iterator[tuple[str, LocalFile]]) -> None:
        for place, file in files:
            self.plan.files.append((place, file))
            if len(self.plan.files) > _MOST_FILES:
                raise InputError(f"more than {_MOST_FILES} files", where=str(file.path.parent))

    def _output(self, setting: Setting, value: JSON) -> None:
        text = str(value) if value else ""
        if not text and setting.param.suffix:
            path = output_path(self._given.request, setting.name)
            text = "" if path is None else str(path.absolute())
        if not text:
            return
        path = Path(text)
        place = f"{setting.name}/{_name(path)}"
        permission.require_folder(path)
        self.plan.folders.append(f"out/{setting.name}")
        self.plan.outputs.append(Output(place, path.absolute(), replaces=self._may_replace(path)))
        for other in companion_files(setting.param, path):
            part = f"{setting.name}/{other.name}"
            replaces = self._may_replace(other)
            self.plan.outputs.append(Output(part, other.absolute(), False, replaces))
            self._remember(f"out/{part}", str(other))
        self.plan.request[setting.name] = self._remember(f"out/{place}", text)

    def _may_replace(self, path: Path) -> bool:
        return permission.may_replace(path) or str(path.absolute()) in self._given.replaces

    def _remember(self, place: str, text: str) -> str:
        there = f"{self._folder}/{place}"
        self.plan.renames[there] = text
        # A longer path first: it may begin with a shorter one.
        ordered = sorted(self.plan.renames.items(), key=lambda item: -len(item[0]))
        self.plan.renames = dict(ordered)
        return there


def _name(path: Path) -> str:
    name = path.absolute().name
    if name in ("", ".", ".."):
        raise InputError("is not a file name", where=str(path))
    return name


def _in_folder(path: Path, place: str) -> Iterator[tuple[str, LocalFile]]:
    for folder, _, names in os.walk(path):
        for name in sorted(names):
            file = Path(folder, name)
            if file.is_file():
                inside = file.relative_to(path).as_posix()
                yield f"{place}/{inside}", LocalFile.at(file)


def _of_decoder(path: Path, place: str) -> Iterator[tuple[str, LocalFile]] | None:
    """Return the files of a language model's folder that a job needs; None for other folders."""
    try:
        model = model_in(path)
        contents = contents_of(path) if model != path else None
    except InputError:
        return None  # the activity has its own words for that
    if contents is None:
        return None
    inside = PurePosixPath(place, contents.decoder)
    small = dict.fromkeys((*contents.configuration, *contents.tokenizer))
    return chain(
        ((f"{place}/{name}", LocalFile.at(path / name)) for name in small),
        [(str(inside), LocalFile.at(model))],
        (
            (where, file)
            for where, file in _data_of(model, str(inside.parent))
            if where != f"{place}/{CONFIG}"
        ),
    )


def _data_of(path: Path, parent: str) -> Iterator[tuple[str, LocalFile]]:
    """Yield the files of external data of a model, and what says how a decoder is used.

    Nothing for other files.
    """
    config = path.parent / CONFIG
    if path.suffix == ".onnx" and config.is_file():
        yield f"{parent}/{CONFIG}", LocalFile.at(config)
    for location, file in external_files(path):
        inside = PurePosixPath(location)
        yield f"{parent}/{inside}", LocalFile.at(file)


def external_files(path: Path) -> Sequence[tuple[str, Path]]:
    """Return location and file of the external data of a model; nothing for other files.

    Missing files are left out: the activity reports them if it needs them.

    Raises:
        ExternalDataError: The model leads out of its folder by a link, or through one of its
            folders that need not be on the target.
    """
    try:
        model = _skeleton(path)
    except (DldError, DecodeError):
        return []  # no model, or a broken one: the activity has its own words for that
    locations = {
        entries_of(tensor).get("location", "")
        for tensor in (dense_tensors(model) if model is not None else ())
        if is_external(tensor)
    }
    files = ExternalFiles(path)
    pairs = []
    for location in sorted(locations):
        try:
            file = files.resolve(location)
        except ExternalDataError as error:
            if error.link:
                raise
            continue
        if ".." in PurePosixPath(location).parts:
            raise ExternalDataError(
                f"External data {clip(visible(location), 200)}: a location with .. cannot be sent",
                where=str(path),
                hint="Save the model in another folder: its data gets a plain name there",
            )
        pairs.append((location, file))
    return pairs


def _skeleton(path: Path) -> onnx.ModelProto | None:
    """Return a model without its weights, or None when it has no external data or is no model."""
    kind = recognise(path)
    if not kind.is_model:
        return None
    opened = open_text(path)[0] if kind is FileKind.ONNX_TEXT else Source.open(path)
    with contextlib.closing(opened) as source:
        skeleton = cut(source, BlobTable()).model
    return onnx.ModelProto.FromString(skeleton) if has_external(skeleton) else None


def placed(value: JSON, token: str, folder: str) -> JSON:
    """Return a request with the job's folder in place of its token."""
    if isinstance(value, str):
        return value.replace(token, folder, 1) if value.startswith(token) else value
    if isinstance(value, list):
        return [placed(item, token, folder) for item in value]
    if isinstance(value, dict):
        return {key: placed(item, token, folder) for key, item in value.items()}
    return value
