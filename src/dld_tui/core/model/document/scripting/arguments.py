"""The arguments of edits, held against the types that the edit's function declares.

Edits come from scripts and journals too, which anybody may have written: what an edit declares is
checked here, in one place for all of them, before its function sees an argument. What a type cannot
say, such as which names exist, the functions check themselves.
"""

from __future__ import annotations

import inspect
import json
import os
import types
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias, Union, get_args, get_origin, get_type_hints

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import EditError
from dld_tui.core.text import clip, visible
from dld_tui.core.types import JSON

REFUSED = "refused"
"""The key of an entry that stands for a line which is no edit, and says why."""
_SCOPE = "scope"
MOST_DEPTH = 64
"""The deepest nesting of lists and objects in the arguments of an edit."""
_INT64 = range(-(2**63), 2**63)
_SCALARS = {str: "text", int: "a whole number", bool: "true or false", float: "a number"}


def check_arguments(name: str, function: Callable[..., str], arguments: Mapping[str, Any]) -> None:
    """Refuse arguments that are missing, unknown, or not of the type that an edit declares.

    Args:
        name: The edit.
        function: Its function; arguments are those behind the document and the transaction.
        arguments: The arguments, JSON data.

    Raises:
        EditError: The message names the edit, the argument and the expected type.
    """
    declared, required = _declared(function)
    required = tuple(name for name in required if name != _SCOPE)
    for key in arguments:
        if key not in declared:
            known = ", ".join(declared)
            raise EditError(f"edit {name} has no argument {_shown(key)}", hint=f"Known: {known}")
    for key in required:
        if key not in arguments:
            raise EditError(f"edit {name}: the argument {key} is missing")
    for key, value in arguments.items():
        problem = unfit(value) or _mismatch(value, declared[key])
        if problem:
            raise EditError(f"edit {name}: {key} {problem}, not {_misfit(value, declared[key])}")


def completed(function: Callable[..., str], arguments: Entry) -> Entry:
    """Return the arguments with the path of the main graph where none is given."""
    is_missing = _SCOPE in _declared(function)[1] and _SCOPE not in arguments
    return {_SCOPE: [], **arguments} if is_missing else arguments


def unfit(value: object) -> str | None:
    """Return why a value cannot be in an edit at all, whatever its type, or None.

    Text must be UTF-8 or bytes in the form of surrogates (``surrogateescape``), whole numbers must
    fit in 64 bits, and nothing is nested deeper than :data:`MOST_DEPTH`.
    """
    waiting: list[tuple[object, int]] = [(value, 0)]
    while waiting:
        item, depth = waiting.pop()
        if depth > MOST_DEPTH:
            return f"must not be nested deeper than {MOST_DEPTH}"
        if isinstance(item, str):
            if not _is_encodable(item):
                return "must be text that UTF-8 can write"
        elif isinstance(item, int) and item not in _INT64 and item not in range(2**64):
            return "must be a number of 64 bits"
        elif isinstance(item, Mapping):
            for key, inner in item.items():
                waiting += ((key, depth + 1), (inner, depth + 1))
        elif isinstance(item, (list, tuple)):
            waiting += ((inner, depth + 1) for inner in item)
    return None


def _is_encodable(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


@cache
def _declared(function: Callable[..., str]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the types of the arguments of an edit by name, and which have no default."""
    # JSON is recursive: as a declared type it takes any value that `unfit` lets through.
    hints = get_type_hints(function, localns={"Document": object, "JSON": Any})
    parameters = list(inspect.signature(function).parameters.values())[2:]
    required = tuple(p.name for p in parameters if p.default is p.empty)
    return {p.name: hints[p.name] for p in parameters}, required


def _mismatch(value: object, wanted: Any) -> str | None:
    """Return the expected type of a value that does not have it, or None."""
    if _fits(value, wanted):
        return None
    return f"must be {_described(wanted)}"


def _fits(value: object, wanted: Any) -> bool:
    if wanted is Any:
        return True
    origin, inner = get_origin(wanted), get_args(wanted)
    if origin in (Union, types.UnionType):
        return any(_fits(value, option) for option in inner)
    if origin in (list, Sequence):
        return isinstance(value, (list, tuple)) and all(_fits(item, inner[0]) for item in value)
    if origin in (dict, Mapping):
        return isinstance(value, Mapping) and all(
            isinstance(key, str) and _fits(item, inner[1]) for key, item in value.items()
        )
    if wanted is type(None):
        return value is None
    if wanted is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if wanted is int:
        return isinstance(value, int) and not isinstance(value, bool) and value in _INT64
    return isinstance(value, wanted)


def _misfit(value: object, wanted: Any) -> str:
    """Return what of a value does not fit: an item of a list or object, with its place, or all."""
    for option in (wanted, *get_args(wanted)):
        origin, inner = get_origin(option), get_args(option)
        items: Iterable[tuple[object, object]] = ()
        if origin in (list, Sequence) and isinstance(value, (list, tuple)):
            items = enumerate(value)
        elif origin in (dict, Mapping) and isinstance(value, Mapping):
            items = value.items()
        for place, item in items:
            if not _fits(item, inner[-1]):
                return f"{_shown(_json(item))} at {_shown(repr(place))}"
    return _shown(_json(value))


def _described(wanted: Any) -> str:
    """Return a type in words, e.g. ``a list of text``."""
    origin, inner = get_origin(wanted), get_args(wanted)
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(" or ".join(map(_described, inner)).split(" or ")))
    if origin in (list, Sequence):
        return "a list" + ("" if inner[0] is Any else f" of {_described(inner[0])}")
    if origin in (dict, Mapping):
        return "an object" + ("" if inner[1] is Any else f" of {_described(inner[1])}")
    return "null" if wanted is type(None) else _SCALARS.get(wanted, "JSON")


def _json(value: object) -> str:
    words = {None: "null", True: "true", False: "false"}
    if value is None or isinstance(value, bool):
        return words[value]
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, (list, tuple)):
        return "a list" if len(value) != 1 else f"[{_json(value[0])}]"[:40]
    return f"{value!r:.60}"


def _shown(text: str) -> str:
    return clip(visible(str(text)), 60, keep="middle")


Entry: TypeAlias = "dict[str, JSON]"
"""An edit as data, ``{"edit": NAME, ARGUMENT: VALUE, …}``: a line of a script or journal."""


@dataclass(frozen=True)
class FileState:
    """How a file is, or was when edits were made on it; None where it cannot be looked at."""

    size: int | None = None
    mtime_ns: int | None = None

    @classmethod
    def of(cls, path: Path) -> FileState:
        """Return how a file is now."""
        try:
            status = os.stat(path)
        except (OSError, ValueError):
            return cls()
        return cls(status.st_size, status.st_mtime_ns)

    @classmethod
    def said_by(cls, entry: Mapping[str, Any]) -> FileState:
        """Return the state of a file that a line records."""
        return cls(entry.get("size"), entry.get("mtime_ns"))


def parse_line(line: str) -> JSON:
    """Return the JSON of one line of a script or journal.

    A line that no edit can be, such as one that is nested too deep, becomes an entry that only says
    so when it is replayed: the lines around it are as good as before.

    Raises:
        ValueError: It is not JSON.
    """
    repeated: list[str] = []

    def read(pairs: list[tuple[str, JSON]]) -> Entry:
        entry = dict(pairs)
        if len(entry) < len(pairs):  # the last would silently count
            counts = Counter(name for name, _ in pairs)
            repeated.extend(name for name, count in counts.items() if count > 1)
        return entry

    try:
        entry: JSON = json.loads(line, object_pairs_hook=read)
    except RecursionError:
        return {REFUSED: "is nested too deep"}
    if repeated:
        return {REFUSED: f"has {_shown(repeated[0])} twice"}
    problem = unfit(entry)
    return entry if problem is None else {REFUSED: problem}


def entry_of(edit: str, arguments: Entry) -> Entry:
    """Return the entry that replays an edit."""
    return {"edit": edit, **arguments}
