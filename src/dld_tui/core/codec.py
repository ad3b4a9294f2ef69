"""Conversion of dataclasses to and from JSON: requests, events, results, documents of commands.

It needs only the standard library: workers read requests and journals on targets without any
packages. (msgspec decodes faster, which no job notices; importing it takes 20 ms, as long as a
command takes to start, and a bare target does not have it.) Decoded data are checked against the
types of the fields; unknown fields, of newer programs, are ignored. A field whose name is a keyword
of Python ends in an underscore, which the JSON data lack: ``from_``.
"""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import MISSING, field, fields, is_dataclass
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from dld_tui.core.errors import ActivityError
from dld_tui.core.types import JSON

_OPTIONAL = "dld_optional"
_SEQUENCES: Mapping[Any, type] = {
    list: list, tuple: tuple, set: set, frozenset: frozenset, Sequence: list
}  # fmt: skip
T = TypeVar("T")
Decoder: TypeAlias = Callable[[Any], Any]


def optional(default: Any = None, *, factory: Any = MISSING) -> Any:
    """Declare a field that is left out of the JSON data while it is empty."""
    metadata = {_OPTIONAL: True}
    if factory is not MISSING:
        return field(default_factory=factory, metadata=metadata)
    return field(default=default, metadata=metadata)


def encode(value: Any) -> Any:
    """Return a value as JSON data: dataclasses as objects, paths as text, sets as sorted lists.

    Members of an enumeration are their values.

    Raises:
        TypeError: It contains another type.
    """
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return {
            item.name.rstrip("_"): encode(content)
            for item in fields(value)
            if (content := getattr(value, item.name)) or not item.metadata.get(_OPTIONAL)
        }
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted(map(encode, value))
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} is not JSON data: {value!r:.100}")


def finite(data: JSON) -> JSON:
    """Return JSON data in which numbers that JSON cannot hold are null."""
    if isinstance(data, float):
        return data if math.isfinite(data) else None
    if isinstance(data, list):
        return [finite(item) for item in data]
    if isinstance(data, dict):
        return {key: finite(item) for key, item in data.items()}
    return data


def decode(kind: type[T], data: Any) -> T:
    """Return JSON data as a dataclass or any other type that can be encoded.

    Raises:
        ActivityError: The data do not match the type; says where.
    """
    try:
        decoded: T = _decoder(typing.cast("Hashable", kind))(data)
    except _MismatchError as error:
        where = "".join(error.steps).lstrip(".")
        at = f" at {where}" if where else ""
        raise ActivityError(f"the data do not have the expected form{at}: {error}") from None
    return decoded


class _MismatchError(Exception):
    """A value is of another type; `steps` lead to it, the last one first."""

    def __init__(self, wanted: str, value: Any) -> None:
        super().__init__(f"{wanted} is expected, not {type(value).__name__}")
        self.steps: list[str] = []

    def within(self, step: str) -> _MismatchError:
        """Return it with the step to the value that holds it."""
        self.steps.insert(0, step)
        return self


@lru_cache(maxsize=512)
def _decoder(kind: Any) -> Decoder:
    """Return the decoder of a type."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return lambda value: value
    if origin in (typing.Union, types.UnionType):
        return _any_of(arguments)
    if origin is typing.Literal:
        return _one_of(arguments)
    if origin in _SEQUENCES:
        return _sequence(_SEQUENCES[origin], arguments)
    if origin is not None and issubclass(origin, Mapping):
        return _mapping(arguments[1])
    if is_dataclass(kind):
        return _record(kind)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _member(kind)
    return _plain(kind)


def _plain(kind: Any) -> Decoder:
    taken: Mapping[Any, tuple[tuple[type, ...], str]] = {
        bool: ((bool,), "true or false"), int: ((int,), "a whole number"),
        float: ((int, float), "a number"), str: ((str,), "text"), Path: ((str,), "a path"),
        type(None): ((type(None),), "null"),
    }  # fmt: skip
    if kind not in taken:
        raise TypeError(f"JSON data cannot be decoded as {kind!r}")
    classes, wanted = taken[kind]

    def decoded(value: Any) -> Any:
        if not isinstance(value, classes) or (isinstance(value, bool) and kind is not bool):
            raise _MismatchError(wanted, value)
        try:
            return value if value is None else kind(value)
        except OverflowError:  # an integer that no float holds
            raise _MismatchError(wanted, value) from None

    return decoded


def _one_of(words: tuple[Any, ...]) -> Decoder:
    def decoded(value: Any) -> Any:
        if value not in words:
            raise _MismatchError(f"one of {', '.join(map(str, words))}", value)
        return value

    return decoded


def _member(kind: type[Enum]) -> Decoder:
    members = {member.value: member for member in kind}
    one_of = _one_of(tuple(members))
    return lambda value: members[one_of(value)]


def _any_of(kinds: tuple[Any, ...]) -> Decoder:
    decoders = [_decoder(kind) for kind in kinds if kind is not type(None)]
    with_none = type(None) in kinds

    def decoded(value: Any) -> Any:
        if value is None and with_none:
            return None
        for decoder in decoders[:-1]:
            try:
                return decoder(value)
            except _MismatchError:
                continue
        return decoders[-1](value)

    return decoded


def _sequence(make: type, kinds: tuple[Any, ...]) -> Decoder:
    is_fixed = make is tuple and kinds[-1:] != (...,)
    decoders = [_decoder(kind) for kind in kinds if kind is not ...]

    def decoded(value: Any) -> Any:
        if not isinstance(value, list) or (is_fixed and len(value) != len(decoders)):
            raise _MismatchError(f"a list of {len(decoders)}" if is_fixed else "a list", value)
        items = []
        for at, item in enumerate(value):
            try:
                items.append(decoders[at if is_fixed else 0](item))
            except _MismatchError as error:
                raise error.within(f"[{at}]") from None
        return make(items)

    return decoded


def _mapping(kind: Any) -> Decoder:
    decoder = _decoder(kind)

    def decoded(value: Any) -> Any:
        if not isinstance(value, dict):
            raise _MismatchError("an object", value)
        items = {}
        for key, item in value.items():
            try:
                items[key] = decoder(item)
            except _MismatchError as error:
                raise error.within(f".{key}") from None
        return items

    return decoded


def _record(kind: Any) -> Decoder:
    hints = typing.get_type_hints(kind)
    decoders = {
        item.name.rstrip("_"): (item.name, _decoder(hints[item.name]))
        for item in fields(kind)
        if item.init
    }
    needed = {
        item.name.rstrip("_") for item in fields(kind)
        if item.init and item.default is MISSING and item.default_factory is MISSING
    }  # fmt: skip

    def decoded(value: Any) -> Any:
        if not isinstance(value, dict):
            raise _MismatchError("an object", value)
        values = {}
        for name, (field_name, decoder) in decoders.items():
            if name in value:
                try:
                    values[field_name] = decoder(value[name])
                except _MismatchError as error:
                    raise error.within(f".{name}") from None
            elif name in needed:
                raise _MismatchError("a value", None).within(f".{name}")
        return kind(**values)

    return decoded
