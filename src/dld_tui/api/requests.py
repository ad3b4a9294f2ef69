"""Requests from Python values, jobs that run them, and errors in Python's words.

>>> from dld_tui.activities.profile.onnxruntime import Request
>>> with request_of(Request, {"model": path, "shape": {"x": (1, 4)}, "iterations": 3}) as request:
...     request.shape, request.iterations
(('x:1x4',), 3)
"""

from __future__ import annotations

import contextlib
import os
import re
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from dld_tui.activities import registry
from dld_tui.api.reports import Report
from dld_tui.core.errors import DldError, UsageError
from dld_tui.core.events import Event, Log
from dld_tui.core.events import Progress as ProgressEvent
from dld_tui.core.files.permission import require_free
from dld_tui.core.files.temporary import temporary_folder
from dld_tui.core.llm.folder import open_document
from dld_tui.core.model.document import Document
from dld_tui.core.params import Setting, settings_of, to_json, validate, written_files
from dld_tui.targets import registry as targets

Progress = Callable[[str], None]
"""Called with what a job is doing."""

_REPORT = ".dldprof"
_FLAG = re.compile(r"(?<![\w`-])(--?[A-Za-z][\w-]*)(?:[ =]([A-Z][\w:=.]*(?![a-z])|[a-z0-9_]+))?")
_SHELL = re.compile(r"(`[^`]*`)")


def run_activity(
    activity_id: str,
    settings: Mapping[str, Any],
    *,
    target: str | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Any:
    """Run an activity as a job and return its result; a report is opened.

    Args:
        activity_id: As in :data:`dld_tui.activities.registry.ACTIVITIES`.
        settings: Python values by the names of the request's settings.
        target: Where to run it, as ``dld target list`` names it; this machine by default.
        force: Replace files that exist.
        progress: Called with each stage of the job and each line of its log.

    Raises:
        DldError: A setting is wrong, a file exists, or the job failed.
        TypeError: There is no such setting, or one is missing.
    """
    activity = registry.load(activity_id)
    with in_python_words(activity.request), ExitStack() as stack:
        settings = dict(settings)
        report = report_setting(activity.request)
        if report is not None and settings.get(report) is None:
            # The open report outlives the name of its file.
            folder = stack.enter_context(temporary_folder("report"))
            settings[report] = folder / f"report{_REPORT}"
        request = stack.enter_context(request_of(activity.request, settings))
        files = written_files(request)
        require_free(files, force)
        data = to_json(request, map(str, files) if force else ())
        with targets.get(target).start(activity_id, data) as job:
            done = (
                job.result(_telling(progress, activity.request))
                if progress is not None
                else job.result()
            )
        result = registry.decode_result(activity_id, done)
        return result if report is None else Report.open(result.report)


def report_setting(request: type[Any]) -> str | None:
    """Return the setting with the path of the profile report that an activity writes, if any."""
    for setting in settings_of(request):
        if setting.param.kind == "output" and setting.param.suffix == _REPORT:
            return setting.name
    return None


def _telling(progress: Progress, request: type[Any]) -> Callable[[Event], None]:
    last, settings = "", settings_of(request)

    def tell(event: Event) -> None:
        nonlocal last
        text = event.stage if isinstance(event, ProgressEvent) else ""
        text = event.text if isinstance(event, Log) else text
        if text and text != last:
            progress(python_words(text, settings))
            last = text

    return tell


@contextlib.contextmanager
def request_of(request: type[Any], values: Mapping[str, Any]) -> Iterator[Any]:
    """Yield a request with settings as Python has them; it is valid inside of the block.

    Args:
        request: The class.
        values: A setting of several texts takes one, a sequence, or a mapping (``{"x": (1, 3)}`` is
            ``x:1x3``); input data are a folder or arrays by name; a model may be a document.

    Raises:
        TypeError: There is no such setting, or one is missing.
        UsageError: A value is of the wrong type, or outside its limits.
    """
    known = _settings_of(request)
    for name, setting in known.items():
        if setting.required and values.get(name) is None:
            raise TypeError(f"{name} is missing")
    with ExitStack() as stack:
        instance = request(**settings_from(request, values, stack))
        validate(instance)
        getattr(instance, "require", lambda: None)()
        yield instance


def settings_from(
    request: type[Any], values: Mapping[str, Any], stack: ExitStack
) -> dict[str, Any]:
    """Return settings of a request from Python values, see :func:`request_of`.

    Args:
        request: The class.
        values: By the names of its settings.
        stack: Removes files that were made for them.

    Raises:
        TypeError: There is no such setting.
        UsageError: A value is of the wrong type.
    """
    known = _settings_of(request)
    for name in values:
        if name not in known:
            raise TypeError(f"there is no setting {name!r}; there are {', '.join(known)}")
    return {name: _value(known[name], value, values, stack) for name, value in values.items()}


def _settings_of(request: type[Any]) -> dict[str, Setting]:
    return {s.name: s for s in settings_of(request) if not s.param.internal}


def _value(setting: Setting, value: Any, values: Mapping[str, Any], stack: ExitStack) -> Any:
    if value is None:
        return setting.default
    several = typing.get_origin(setting.type) is tuple
    if several:
        kind = typing.get_args(setting.type)[0]
        return tuple(_item(setting, kind, item) for item in _items(setting, value))
    if setting.type is Path and isinstance(value, Document):
        return stack.enter_context(file_of(value))
    if setting.param.kind == "folder" and isinstance(value, Mapping):
        return stack.enter_context(_folder_of(setting.name, value, values.get("model")))
    return _item(setting, setting.type, value)


@contextlib.contextmanager
def file_of(document: Document) -> Iterator[Path]:
    """Yield a file with the present state of a document: its own, where nothing was edited."""
    from dld_tui.core.model.document.serialise import loadable_view

    if document.path is not None and not document.dirty:
        yield document.path
        return
    with loadable_view(document) as view:
        yield view


def _items(setting: Setting, value: Any) -> list[Any]:
    if isinstance(value, (str, os.PathLike, int, float)):
        return [value]
    if not isinstance(value, Mapping):
        return list(value)
    between = ":" if ":" in setting.param.metavar else "="
    join = "x" if setting.param.kind == "shapes" else ","
    return [f"{name}{between}{_joined(part, join)}" for name, part in value.items()]


def _joined(part: Any, join: str) -> str:
    is_list = isinstance(part, Sequence) and not isinstance(part, str)
    return join.join(map(str, part)) if is_list or hasattr(part, "tolist") else str(part)


def _item(setting: Setting, kind: Any, value: Any) -> Any:
    """Return a value as a request has it.

    Raises:
        UsageError: It is of another type.
    """
    is_number = hasattr(value, "__index__") and not isinstance(value, bool)
    if kind is Path and isinstance(value, (str, os.PathLike)):
        return Path(value)
    if kind is bool and isinstance(value, bool):
        return value
    if kind is int and is_number:
        return int(value)
    if kind is float and (is_number or isinstance(value, float)):
        return float(value)
    if kind is str and isinstance(value, str):
        return dict(setting.param.words).get(value, value)
    if kind is str and is_number and typing.get_origin(setting.type) is tuple:
        return str(int(value))
    if kind is str and not setting.param.choices and not isinstance(value, (bool, Mapping)):
        is_measure = is_number or isinstance(value, (float, list, tuple))
        if is_measure or hasattr(value, "tolist"):  # sizes and factors, which the text lists
            return _joined(value, ",")
    wanted = {Path: "a path", bool: "True or False", int: "a whole number", float: "a number",
              str: "text"}  # fmt: skip
    raise UsageError(f"{setting.name} is {value!r:.80}, which is not {wanted.get(kind, kind)}")


@contextlib.contextmanager
def _folder_of(name: str, arrays: Mapping[str, Any], model: Any) -> Iterator[Path]:
    """Yield a folder with arrays as one set of inputs.

    Raises:
        UsageError: A name is none of the model's inputs, or a value is no array.
    """
    import numpy as np
    from onnx import numpy_helper

    with opened(model) as document:
        main = document.main
        inputs = [key for key in main.inputs if main.initializer(key) is None]
    for key in arrays:
        if key not in inputs:
            raise UsageError(
                f"{name} has {key!r}, which is no input of the model",
                hint=f"The inputs are {', '.join(map(repr, inputs))}",
            )
    with temporary_folder("inputs") as folder:
        for key, value in arrays.items():
            array = np.asarray(value)
            if array.dtype == object:
                raise UsageError(f"{name}[{key!r}] is no array of numbers or texts")
            tensor = numpy_helper.from_array(np.ascontiguousarray(array), key)
            (folder / f"input_{inputs.index(key)}.pb").write_bytes(tensor.SerializeToString())
        yield folder


@contextlib.contextmanager
def opened(model: Document | str | os.PathLike[str]) -> Iterator[Document]:
    """Yield a model; one that was given by its file is closed again."""
    if isinstance(model, Document):
        yield model
        return
    with contextlib.closing(open_document(Path(model))) as document:
        yield document


@contextlib.contextmanager
def in_python_words(request: type[Any] | None = None) -> Iterator[None]:
    """Name keyword arguments in place of options in errors: ``shape``, not ``--shape``.

    Args:
        request: Whose options they are.
    """
    try:
        yield
    except DldError as error:
        settings = () if request is None else settings_of(request)
        error.message = python_words(error.message, settings)
        error.hint = error.hint and python_words(error.hint, settings)
        error.args = (error.message,)
        raise


def python_words(text: str, settings: Sequence[Setting]) -> str:
    """Return a sentence with keyword arguments in place of options; commands in ` ` stay."""
    known = {flag: one for one in settings for flag in (one.flag, *one.param.spellings)}
    meanings = {flag: (s.name, value) for s in settings for flag, value in s.param.flags}

    def argument(match: re.Match[str]) -> str:
        flag, after = match[1], match[2]
        rest = match[0].removeprefix(flag)
        if flag == "--force":
            return f"force=True{rest}"
        if flag in meanings:
            name, value = meanings[flag]
            return f"{name}={value!r}{rest}"
        setting = known.get(flag)
        if setting is None and flag.startswith("--no-"):
            setting = known.get(f"--{flag.removeprefix('--no-')}")
        if setting is None:
            return match[0]
        if setting.type is bool:
            return f"{setting.name}={flag in known}{rest}"
        is_placeholder = after is not None and after.isupper()
        if after and (is_placeholder or after in setting.param.choices):
            return f"{setting.name}={'…' if is_placeholder else repr(after)}"
        return f"{setting.name}{rest}"

    parts = _SHELL.split(text)
    return "".join(part if part.startswith("`") else _FLAG.sub(argument, part) for part in parts)
