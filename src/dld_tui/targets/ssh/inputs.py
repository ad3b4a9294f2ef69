"""What a request means for another machine: files to send, places there, results to bring back.

Places are chosen here. Nothing that a target says becomes a path on this machine.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path, PurePosixPath

import onnx
from google.protobuf.message import DecodeError

from dld_tui.core.errors import DldError, InputError, SaveError, UsageError
from dld_tui.core.files.blobs import BlobTable
from dld_tui.core.files.external import ExternalDataError, ExternalFiles
from dld_tui.core.files.recognise import FileKind, recognise
from dld_tui.core.files.source import Source
from dld_tui.core.files.tensors import dense_tensors, entries_of, has_external, is_external
from dld_tui.core.files.wire import cut
from dld_tui.core.llm.folder import CONFIG, contents_of, model_in
from dld_tui.core.params import RequestData, Setting
from dld_tui.core.report.schema import moved_paths
from dld_tui.core.settings.paths import unused
from dld_tui.core.types import JSON
from dld_tui.targets.ssh.transfer import LocalFile

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


@dataclass
class Plan:
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


def plan(activity_id: str, request: Mapping[str, JSON], folder: str) -> Plan:
    """Return what a request means for a job's folder on a target.

    Args:
        activity_id: For messages.
        request: From :func:`dld_tui.core.params.to_json`.
        folder: The job's folder there, as an absolute path.

    Raises:
        UsageError: The request does not say which of its settings are files.
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
        self.plan = Plan(dict(request))

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
            name = f"{self._model_name()}{setting.param.suffix}"
            text = str(unused(Path(name)).absolute())
        if not text:
            return
        path = Path(text)
        place = f"{setting.name}/{_name(path)}"
        _require_writable(path)
        self.plan.folders.append(f"out/{setting.name}")
        self.plan.outputs.append(Output(place, path.absolute()))
        for pattern in setting.param.beside:
            name = pattern.replace("{stem}", path.stem).replace("{name}", path.name)
            beside = path.absolute().with_name(name)
            self.plan.outputs.append(Output(f"{setting.name}/{name}", beside, needed=False))
            self._remember(f"out/{setting.name}/{name}", str(path.with_name(name)))
        self.plan.request[setting.name] = self._remember(f"out/{place}", text)

    def _remember(self, place: str, text: str) -> str:
        there = f"{self._folder}/{place}"
        self.plan.renames[there] = text
        # A longer path first: it may begin with a shorter one.
        ordered = sorted(self.plan.renames.items(), key=lambda item: -len(item[0]))
        self.plan.renames = dict(ordered)
        return there

    def _model_name(self) -> str:
        for setting in self._given.settings:
            value = self._given.get(setting.name)
            if setting.param.kind == "file" and isinstance(value, str):
                return Path(value).stem or "model"
        return "result"


def _name(path: Path) -> str:
    name = path.absolute().name
    if name in ("", ".", ".."):
        raise InputError("this is no name of a file", where=str(path))
    return name


def _require_writable(path: Path) -> None:
    folder = path.absolute().parent
    if not folder.is_dir():
        raise SaveError(f"the folder {folder} does not exist", where=str(path))
    if not os.access(folder, os.W_OK | os.X_OK):
        raise SaveError("the folder may not be written to", where=str(path))


def _in_folder(path: Path, place: str) -> Iterator[tuple[str, LocalFile]]:
    for folder, _, names in os.walk(path):
        for name in sorted(names):
            file = Path(folder, name)
            if file.is_file():
                inside = file.relative_to(path).as_posix()
                yield f"{place}/{inside}", LocalFile.at(file)


def _of_decoder(path: Path, place: str) -> Iterator[tuple[str, LocalFile]] | None:
    """Return what a job needs of the folder of a language model; None for another folder."""
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

    What is missing is left out: the activity says so if it needs it.

    Raises:
        ExternalDataError: The model leads out of its folder by a link.
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
    found = []
    for location in sorted(locations):
        try:
            found.append((location, files.resolve(location)))
        except ExternalDataError as error:
            if error.link:
                raise
    return found


def _skeleton(path: Path) -> onnx.ModelProto | None:
    """Return a model without its weights, or None when it has no external data or is no model."""
    if recognise(path) is not FileKind.ONNX:
        return None
    with contextlib.closing(Source.open(path)) as source:
        skeleton = cut(source, BlobTable())
    return onnx.ModelProto.FromString(skeleton) if has_external(skeleton) else None


def placed(value: JSON, token: str, folder: str) -> JSON:
    """Return a request with the job's folder where a token stands for it."""
    if isinstance(value, str):
        return value.replace(token, folder, 1) if value.startswith(token) else value
    if isinstance(value, list):
        return [placed(item, token, folder) for item in value]
    if isinstance(value, dict):
        return {key: placed(item, token, folder) for key, item in value.items()}
    return value
