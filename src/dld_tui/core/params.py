"""One declaration for a setting of an activity, and the command line that a filled form equals.

An activity's request is a frozen dataclass whose fields are made with :func:`param`. The command
line flags, the wizard's form, the JSON request that the worker reads and the settings stored in a
report all come from it.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import os
import re
import shlex
import types
import typing
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import DldError, UsageError
from dld_tui.core.process.confinement import is_confined
from dld_tui.core.text import comma_separated, visible
from dld_tui.core.types import JSON

_KEY = "dld_param"
FIRST_PAGE = "Common"
FORMER_IDS = {
    "build_tensorrt": "build",
    "critical_path": "path",
    "isolate_tactic": "tactics",
    "reduce_model": "reduce",
    "refit_engine": "refit",
    "run_tool": "tool",
    "start_up": "startup",
    "tune_routes": "routes",
}
"""Today's id of an activity by the one it had: in requests, jobs of targets, remembered forms and
entry points, that files and other packages may still have."""
R = TypeVar("R")
V = TypeVar("V")


def current_id(name: str) -> str:
    """Return today's id of an activity."""
    return FORMER_IDS.get(name, name)


@dataclass(frozen=True)
class OneOf:
    """A question of a form that several flags answer, of which one at most may be set."""

    label: str
    help: str
    otherwise: str
    """The answer with none of the flags."""
    first: str
    """The answer of a new form: this one, or the label of a flag."""


@dataclass(frozen=True)
class Param:
    """What people need to know of one setting."""

    label: str
    """Two or three words, for the form."""
    help: str
    """One sentence."""
    unit: str = ""
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    spellings: tuple[str, ...] = ()
    """Command line flags; the first is ours, the others are trtexec's and Polygraphy's."""
    flags: tuple[tuple[str, JSON], ...] = ()
    """Flags without a value, and what each sets, such as ``("--noTF32", False)``. One flag may be
    declared by several settings: it then sets them all."""
    bare: str | None = None
    """The value of the option when it is given without one; by default one is needed."""
    words: tuple[tuple[str, str], ...] = ()
    """Other spellings of choices, such as ``("ampere+", "ampere_plus")``."""
    page: str = FIRST_PAGE
    """The page of the form."""
    kind: str = ""
    """How to ask for it, beyond the type: ``file``, ``folder``, ``output`` or ``shapes``;
    of a name that is saved, ``place``, ``target``, ``tool`` or ``job``."""
    metavar: str = ""
    positional: bool = False
    suffix: str = ""
    """Of an output that is named after the model when it is not given, e.g. ``.dldprof``."""
    default_path: Callable[[Any], Path | None] | None = None
    """Where an output goes that the request does not name; a function of the request."""
    read_here: Callable[[Any], Any] | None = None
    """What an empty value stands for where the user is, such as what a file beside the model says:
    a function of the request, called before a job begins, which may run on another machine."""
    beside: tuple[str, ...] = ()
    """Files that may be written beside an output, e.g. ``{stem}.trt.json`` or ``{name}.data``;
    ``{root}`` is its name without ``.json``, ``.trt`` and ``.graph``."""
    internal: bool = False
    """Whether only the program sets it: neither forms nor commands have it."""
    runs_code: bool = False
    """Whether a value is code, or may name some: a command, a library. No agent may give it."""
    empty: str | Callable[[Mapping[str, JSON]], str] = ""
    """The effect of an empty field in a few words, or a function of the other values."""
    means: Callable[[JSON, Mapping[str, JSON], bool], str] | None = None
    """A function that explains a value in a few words, such as the 0 for all cores: of the value,
    all values, and whether the job runs on this machine; empty text if the value is
    self-explanatory."""
    applies: Callable[[Mapping[str, JSON]], bool] | None = None
    """Whether it has an effect, given the other values; a form has no row for it otherwise."""
    one_of: OneOf | None = None
    """The question that this flag answers, with its label as the answer."""
    decides: bool | None = None
    """Whether trials of a search can have another outcome with another value, so that an
    interrupted search resumes only with the same one. By default, all but outputs decide."""
    of_model: bool | None = None
    """Whether a value belongs to its model and never fills the form of another one. By default,
    this holds for files, shapes and lists, which name tensors, nodes, layers and data; other values
    are habits of the user."""


@dataclass(frozen=True)
class Setting:
    """A parameter together with its place in the request."""

    name: str
    type: Any
    """The field's type without None, e.g. ``int`` or ``tuple[str, ...]``."""
    optional: bool
    default: Any
    param: Param

    @property
    def flag(self) -> str:
        """The main spelling of its option; the name of an argument."""
        if self.param.positional:
            return self.name
        return next(iter(self.param.spellings), f"--{self.name.replace('_', '-')}")

    @property
    def of_model(self) -> bool:
        """Whether a value belongs to its model only; see :attr:`Param.of_model`."""
        if self.param.of_model is not None:
            return self.param.of_model
        is_path = self.type is Path or bool(self.param.kind)
        return is_path or typing.get_origin(self.type) is tuple

    @property
    def decides(self) -> bool:
        """Whether outcomes of trials depend on it; see :attr:`Param.decides`."""
        decides = self.param.decides
        return self.param.kind != "output" if decides is None else decides

    @property
    def required(self) -> bool:
        """True when there is no default."""
        return self.default is dataclasses.MISSING


def param(default: Any = dataclasses.MISSING, /, **about: Any) -> Any:
    """Declare a dataclass field that is a setting; `about` are the fields of :class:`Param`."""
    metadata = {_KEY: Param(**about)}
    if default is dataclasses.MISSING:
        return dataclasses.field(metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def when(name: str, *answers: JSON) -> Callable[[Mapping[str, JSON]], bool]:
    """Return whether another setting has one of some values; for :attr:`Param.applies`."""
    return lambda values: values.get(name) in answers


def like(
    request: type[Any],
    name: str,
    /,
    default: Any = dataclasses.MISSING,
    *,
    required: bool = False,
    **about: Any,
) -> Any:
    """Declare a field like that of another class, but for `default` and `about`, where given.

    Args:
        request: The other class.
        name: Of its field.
        default: Another default.
        required: There is no default here.
        about: What differs of its :class:`Param`.
    """
    other = next(field for field in dataclasses.fields(request) if field.name == name)
    metadata = {_KEY: dataclasses.replace(other.metadata[_KEY], **about)}
    if required:
        return dataclasses.field(metadata=metadata)
    if default is dataclasses.MISSING:
        default = other.default
    return dataclasses.field(default=default, metadata=metadata)


def settings_of(request: type[Any]) -> tuple[Setting, ...]:
    """Return the settings of a request class, in order, those of the first page before others."""
    return _settings_of(typing.cast("Hashable", request))


@functools.lru_cache(maxsize=64)
def _settings_of(request: Any) -> tuple[Setting, ...]:
    hints = typing.get_type_hints(request)
    settings = []
    for field in dataclasses.fields(request):
        about = field.metadata.get(_KEY)
        if about is None:
            continue
        kind = hints[field.name]
        options = typing.get_args(kind)
        is_union = typing.get_origin(kind) in (typing.Union, types.UnionType)
        optional = is_union and type(None) in options
        if optional:
            kind = next(option for option in options if option is not type(None))
        settings.append(Setting(field.name, kind, optional, field.default, about))
    return tuple(sorted(settings, key=lambda setting: setting.param.page != FIRST_PAGE))


def companion_files(about: Param, output: Path) -> list[Path]:
    """Return the files that may be written beside an output."""
    names = {"{stem}": output.stem, "{name}": output.name, "{root}": root_name(output)}
    return [
        output.with_name(functools.reduce(lambda text, key: text.replace(key, names[key]), names,
                                          pattern))
        for pattern in about.beside
    ]  # fmt: skip


def root_name(path: Path) -> str:
    """Return what the names of the files of an engine plan have in common."""
    return path.name.removesuffix(".json").removesuffix(".trt").removesuffix(".graph")


def output_path(request: Any, name: str) -> Path | None:
    """Return where an output of a request goes: as it says, or by default; None for nowhere."""
    given: Path | None = getattr(request, name)
    about = next(s.param for s in settings_of(type(request)) if s.name == name)
    return given if given is not None or about.default_path is None else about.default_path(request)


def written_files(request: Any) -> list[Path]:
    """Return all files that an activity may write: outputs, named or not, and what is beside them.

    The model is none of them where it is to be replaced, nor is a log without the output that it is
    of: the next one gets another name.
    """
    files: list[Path] = []
    for setting in settings_of(type(request)):
        path = output_path(request, setting.name) if setting.param.kind == "output" else None
        if path is None:
            continue
        if getattr(request, "in_place", False) and is_same_file(path, request.model):
            continue
        beside = companion_files(setting.param, path)
        if not os.path.lexists(path):
            beside = [file for file in beside if file.suffix != ".log"]
        files += [path, *beside]
    return list(dict.fromkeys(files))


def problem_with(setting: Setting, value: Any) -> str | None:
    """Return the violation of choices or limits by a value; None if there is none."""
    about = setting.param
    if value is None:
        return None
    items = value if isinstance(value, (tuple, list)) else (value,)
    for item in items if about.choices else ():
        if item not in about.choices:
            return f"{item!r}; choose one of {', '.join(about.choices)}"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        unit = f" {about.unit}" if about.unit else ""
        if isinstance(value, float) and not math.isfinite(value):
            return f"{value}; write a number{unit and ' of'}{unit}"
        if about.minimum is not None and value < about.minimum:
            return f"{value}; the least is {about.minimum:g}{unit}"
        if about.maximum is not None and value > about.maximum:
            return f"{value}; the most is {about.maximum:g}{unit}"
    return None


def validate(request: Any) -> None:
    """Check choices and limits, and that no output replaces its input.

    Raises:
        UsageError: A value violates its declaration, or is code that an agent gives; names the
            first flag.
    """
    settings = settings_of(type(request))
    inputs = list[object]()
    for given in (getattr(request, s.name) for s in settings if s.param.kind == "file"):
        inputs += given if isinstance(given, tuple) else [given]
    for setting in settings:
        problem = problem_with(setting, getattr(request, setting.name))
        if problem:
            raise UsageError(f"{setting.flag} is {problem}")
        value = getattr(request, setting.name)
        if setting.param.runs_code and value != setting.default and is_confined():
            raise UsageError(f"{setting.flag} runs code, which no agent may do")
        is_result = setting.param.kind == "output" and bool(setting.param.suffix)
        if setting.param.kind != "output" or not isinstance(value, Path):
            continue
        _require_no_weights(value, getattr(request, "model", None))
        if not any(is_same_file(value, path) for path in inputs if isinstance(path, Path)):
            continue
        if is_result:
            raise UsageError(
                f"the result ({setting.param.suffix}) would replace the file that it is made from",
                where=str(value),
                hint="Give another path",
            )
        in_place = getattr(request, "in_place", None)
        model = getattr(request, "model", None)
        is_model = isinstance(model, Path) and is_same_file(value, model)
        if in_place is None or (in_place and is_model):
            continue
        raise UsageError(
            "the result would replace the file that it is made from",
            where=str(value),
            hint="Give another path, or add --in-place to replace the model in one step",
        )


def _require_no_weights(output: Path, model: object) -> None:
    """Refuse a result in the place of a data file of the model, wherever the job runs."""
    if not isinstance(model, Path) or not output.is_file():
        return
    from dld_tui.core.files.external import is_data_file

    if is_data_file(output, model):
        raise UsageError(
            f"it holds weights of {visible(model.name)}", where=str(output),
            hint="Give another path",
        )  # fmt: skip


def whole_numbers(text: str, flag: str) -> list[int]:
    """Return numbers from 1 to 99,999,999 that are separated by commas, each once.

    Raises:
        UsageError: The text contains something else.
    """
    parts = comma_separated(text)
    if not all(part.isdecimal() and 0 < int(part) < 10**8 for part in parts):
        raise UsageError(
            f"{flag} is {text!r}", hint=f"Write whole numbers from 1 to 99,999,999, as {flag} 1,8"
        )
    return list(dict.fromkeys(map(int, parts)))


def put_once(found: dict[str, V], name: str, value: V, flag: str) -> None:
    """Enter a value of an option that may be repeated for other names only.

    Raises:
        UsageError: The name has a value.
    """
    if name in found:
        raise UsageError(f"{flag} names {name!r} twice")
    found[name] = value


def split_pair(text: str, known: Callable[[str], object]) -> tuple[str, str]:
    """Return the sides of ``NAME=NEW``; the second one is empty where there is none.

    Args:
        text: What was typed.
        known: Tells whether there is something of a name: names may contain equals signs, and the
            longest one that is known counts.
    """
    if known(text):
        return text, ""
    places = [place for place, char in enumerate(text) if char == "="]
    place = next((at for at in reversed(places) if known(text[:at])), places[0] if places else -1)
    return (text, "") if place < 0 else (text[:place], text[place + 1 :])


def is_same_file(path: Path, other: Path) -> bool:
    """Return whether two paths are of one file: by another spelling, or a link of either kind."""
    if os.path.realpath(path) == os.path.realpath(other):
        return True
    try:
        return os.path.samefile(path, other)
    except OSError:
        return False


_FLAG = r"(?<![\w-])(--?[a-z][a-z0-9-]*)( [A-Z]+(?![\w:=]))?"


def problem_of_form(request: type[Any], values: Mapping[str, JSON]) -> str:
    """Return why the settings of a form do not go together, in its words; empty where they do.

    That is what the request itself says, by a method ``require``.
    """
    known = {setting.name: setting for setting in settings_of(request)}
    if any(setting.required and values.get(name) is None for name, setting in known.items()):
        return ""  # the field says so
    try:
        built = request(**{name: _typed(known[name], value) for name, value in values.items()})
        getattr(built, "require", lambda: None)()
    except DldError as error:
        labels = {
            flag: setting.param.label
            for setting in known.values()
            for flag in (setting.flag, *setting.param.spellings)
        }
        message = ". ".join(filter(None, (error.message, error.hint)))
        return re.sub(_FLAG, lambda match: labels.get(match[1], match[0]), message)
    return ""


class RequestData(dict[str, JSON]):
    """Settings as JSON data that still know their declarations: which of them are files, say.

    A target on another machine needs that, to send the files and to bring back the results.
    """

    settings: tuple[Setting, ...] = ()
    request: Any = None
    """What it is the data of."""
    replaces: tuple[str, ...] = ()
    """The files that may be replaced, which the user has agreed to."""


def to_json(request: Any, replaces: Iterable[str] = ()) -> RequestData:
    """Return the settings of a request as JSON data (paths as strings, tuples as lists).

    Args:
        request: The request.
        replaces: See :class:`RequestData`.

    Raises:
        DldError: What an empty value stands for (:attr:`Param.read_here`) cannot be read.
    """
    settings = settings_of(type(request))
    data = RequestData({s.name: _plain(_value_here(request, s)) for s in settings})
    data.settings, data.request, data.replaces = settings, request, tuple(replaces)
    return data


def deciding(request: Any, without: Collection[str] = ()) -> Mapping[str, JSON]:
    """Return the settings, as JSON data, that the outcomes of trials depend on.

    Args:
        request: The request.
        without: Further settings that do not decide in this search.
    """
    data = to_json(request)
    names = (setting.name for setting in data.settings if setting.decides)
    return {name: data[name] for name in names if name not in without}


def _value_here(request: Any, setting: Setting) -> Any:
    value, read = getattr(request, setting.name), setting.param.read_here
    return read(request) if value in (None, ()) and read is not None else value


def from_json(request: type[R], data: Mapping[str, JSON]) -> R:
    """Build a request from JSON data.

    Raises:
        UsageError: An unknown or a missing setting, or a value outside its limits.
    """
    known = {setting.name: setting for setting in settings_of(request)}
    unknown = sorted(set(data) - set(known))
    if unknown:
        raise UsageError(f"unknown setting {unknown[0]!r}", where=request.__name__)
    missing = [name for name, s in known.items() if s.required and name not in data]
    if missing:
        raise UsageError(f"setting {missing[0]!r} is missing", where=request.__name__)
    built = request(**{name: _typed(known[name], value) for name, value in data.items()})
    validate(built)
    return built


def _plain(value: Any) -> JSON:
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    plain: JSON = value
    return plain


def _typed(setting: Setting, value: JSON) -> Any:
    if value is None:
        return None
    try:
        if setting.type is Path and isinstance(value, str):
            return Path(value)
        if typing.get_origin(setting.type) is tuple and isinstance(value, list):
            kind = typing.get_args(setting.type)[0]
            return tuple(Path(str(item)) if kind is Path else item for item in value)
        if setting.type in (int, float, str) and not isinstance(value, bool):
            return setting.type(value)
    except (TypeError, ValueError):
        flag = setting.flag
        kind = "whole number" if setting.type is int else "number"
        raise UsageError(f"{flag} is {value!r}, which is not a {kind}") from None
    return value


_MOST_QUOTED = 10_000


def text_of(setting: Setting, value: JSON) -> str:
    """Return a value as a user types it; empty for None and for no values."""
    if value is None:
        return ""
    if isinstance(value, list):
        return " ".join(shlex.quote(str(item)) for item in value)
    if isinstance(value, float):
        return str(value).removesuffix(".0")
    return str(value)


def value_of(setting: Setting, text: str) -> tuple[JSON, str | None]:
    """Return (value, problem of the text or None) of a typed setting."""
    text = text.strip()
    if not text and typing.get_origin(setting.type) is tuple:
        return [], "needed" if setting.required else None
    if not text:
        if setting.required:
            return None, "needed"
        default = setting.default
        return (None if setting.optional else _plain_word(default)), None
    try:
        value = _parsed(setting, text)
    except ValueError as error:
        return None, str(error)
    return value, problem_with(setting, value)


def placeholder_text(setting: Setting, values: Mapping[str, JSON]) -> str:
    """Return the effect of an empty field as text; never empty.

    Args:
        values: Those of the form.
    """
    about = setting.param
    if setting.required:
        return about.metavar or "needed"
    if about.empty:
        return about.empty if isinstance(about.empty, str) else about.empty(values)
    if setting.default not in (None, (), ""):
        return text_of(setting, _plain_word(setting.default))
    model = values.get("model")
    if about.kind == "output" and about.suffix and isinstance(model, str):
        return f"{Path(model).stem or 'model'}{about.suffix}"
    return "not written" if about.kind == "output" else "none"


def plain_default(setting: Setting) -> JSON:
    """Return the default of a setting as JSON data; None if there is none."""
    return _plain_word(setting.default)


def _parsed(setting: Setting, text: str) -> JSON:
    kind = setting.type
    if typing.get_origin(kind) is tuple:
        # Parsing quotes takes a tenth of a second for a very long text; nobody quotes there.
        return list(shlex.split(text) if len(text) < _MOST_QUOTED else text.split())
    if kind is int:
        try:
            return int(text.replace(",", "").replace("_", ""))
        except ValueError:
            raise ValueError(f"{text} is not a whole number") from None
    if kind is float:
        try:
            return float(text)
        except ValueError:
            raise ValueError(f"{text} is not a number") from None
    if kind is Path:
        return str(Path(text).expanduser())
    return text


def _plain_word(value: Any) -> JSON:
    if value is dataclasses.MISSING:
        return None
    if isinstance(value, tuple):
        return list(value)
    return str(value) if isinstance(value, Path) else value


def command_line(words: Sequence[str], request: type[Any], values: Mapping[str, JSON]) -> str:
    """Return the shell command with these settings; those at their default are left out."""
    return shlex.join(command_words(words, request, values))


def rerun_command(words: Sequence[str], request: Any) -> list[str]:
    """Return the words of the command that does the same again from any folder.

    Files that the request names for results are left out: nothing is to be overwritten.
    """
    values = {**to_json(request), "model": str(request.model.absolute())}
    for setting in settings_of(type(request)):
        if setting.param.kind == "output":
            values[setting.name] = None
    return command_words(words, type(request), values)


def command_words(
    words: Sequence[str], request: type[Any], values: Mapping[str, JSON]
) -> list[str]:
    """Return the words of :func:`command_line`, as a program gets them: nothing is quoted."""
    parts = list(words)
    options: list[str] = []
    for setting in settings_of(request):
        value = values.get(setting.name)
        if value is None or value == _plain_word(setting.default):
            continue
        if setting.param.positional:
            parts += map(str, value if isinstance(value, list) else [value])
            continue
        flag = setting.flag
        if isinstance(value, bool):
            options.append(flag if value else f"--no-{flag.removeprefix('--')}")
        else:
            items = value if isinstance(value, list) else [value]
            options += [word for item in items for word in (flag, str(item))]
    return [*parts, *options]
