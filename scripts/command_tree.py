"""The commands of ``dld`` with their options, as the generated references show them."""

from __future__ import annotations

import dataclasses
import inspect
import re
import types
import typing
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import click

from dld_tui.cli.command import Context
from dld_tui.cli.group import LazyGroup, dld
from dld_tui.cli.options import setting_of

_HELP = "--help"
_OF_OTHERS = ("dld", "run")
"""The group whose commands other packages add."""


_UNIONS = (typing.Union, types.UnionType)


class Row(NamedTuple):
    """An argument or option."""

    names: str
    """As the help shows it, such as ``-o, --output OUT``."""
    meaning: str


class Entry(NamedTuple):
    """A command."""

    words: tuple[str, ...]
    """``dld`` and the words after it."""
    usage: str
    about: tuple[str, ...]
    """The paragraphs of its help."""
    rows: tuple[Row, ...]
    example: str
    below: tuple[tuple[str, str], ...]
    """Name and summary of the commands of a group."""
    activity: str
    """Id of the activity that it runs; empty for the others."""

    @property
    def name(self) -> str:
        """All words."""
        return " ".join(self.words)


def entries() -> Iterator[Entry]:
    """Yield all visible commands, each group before its commands, in the order of the help.

    Activities of other packages are left out.
    """
    for row in (one for one in dld.visible if one.package in ("", "dld-tui")):
        yield from _entries(dld, row.name, Context(dld, info_name="dld"), row.activity)


def _entries(
    group: click.Group, name: str, parent: click.Context, activity: str
) -> Iterator[Entry]:
    command = group.get_command(parent, name)
    assert command is not None
    context = Context(command, info_name=name, parent=parent)
    words = tuple(context.command_path.split())
    below = command.visible if isinstance(command, LazyGroup) and words != _OF_OTHERS else []
    yield Entry(
        words,
        " ".join((context.command_path, *command.collect_usage_pieces(context))),
        _paragraphs(command.help or ""),
        tuple(_rows(command, context)),
        (command.epilog or "").removeprefix("Example: "),
        tuple((row.name, row.summary) for row in below),
        activity,
    )
    for row in below:
        assert isinstance(command, click.Group)
        yield from _entries(command, row.name, context, row.activity)


def _paragraphs(text: str) -> tuple[str, ...]:
    cut = inspect.cleandoc(text).replace("\b\n", "").partition("\f")[0]
    return tuple(re.sub(r"\s+", " ", one).strip() for one in cut.split("\n\n") if one.strip())


def _rows(command: click.Command, context: click.Context) -> Iterator[Row]:
    for parameter in _in_order(command.params):
        if isinstance(parameter, click.Argument):
            setting = setting_of(parameter)
            if setting is not None and setting.param.help:
                yield Row(parameter.make_metavar(context), setting.param.help)
            continue
        record = parameter.get_help_record(context)
        if record is not None and _HELP not in parameter.opts:
            yield Row(*(re.sub(r"\s+", " ", one) for one in record))


def _in_order(parameters: Sequence[click.Parameter]) -> list[click.Parameter]:
    return sorted(parameters, key=lambda one: not isinstance(one, click.Argument))


def parts(kind: Any) -> tuple[Any, ...]:
    """Return the kinds that a union is made of, or the kind alone; None is left out."""
    found = typing.get_args(kind) if typing.get_origin(kind) in _UNIONS else (kind,)
    return tuple(one for one in found if one is not type(None))


def records_in(kind: Any) -> Iterator[type]:
    """Yield the dataclasses among the parts of a kind and of its items."""
    for one in parts(kind):
        if typing.get_origin(one) is not None:
            for argument in typing.get_args(one):
                yield from records_in(argument)
        elif dataclasses.is_dataclass(one) and isinstance(one, type):
            yield one


def fields_of(record: type) -> dict[str, Any]:
    """Return names in JSON, and types, of the fields of a dataclass."""
    hints = typing.get_type_hints(record)
    return {field.name.rstrip("_"): hints[field.name] for field in dataclasses.fields(record)}


def document(kind: Any, named: Collection[type] = ()) -> str:
    """Return the form of the JSON document of a kind: ``{path, points: [{at, ms}]}``.

    Args:
        kind: A type that :func:`dld_tui.core.codec.encode` takes.
        named: Dataclasses that are shown by their names.
    """
    found = dict.fromkeys(_document(one, named) for one in parts(kind))
    return " or ".join(text for text in found if text)


def _document(kind: Any, named: Collection[type]) -> str:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (tuple, list, set, frozenset):
        items = {one for one in arguments if one is not ...}
        return f"[{document(items.pop(), named) if len(items) == 1 else ''}]".replace("[]", "[…]")
    if origin in (dict, Mapping):
        return f"{{NAME: {document(arguments[1], named) or '…'}}}"
    if not dataclasses.is_dataclass(kind) or not isinstance(kind, type):
        return ""
    if kind in named:
        return kind.__name__
    return record(kind, named)


def record(kind: type, named: Collection[type] = ()) -> str:
    """Return the form of a dataclass as JSON."""
    shown = []
    for name, of in fields_of(kind).items():
        inner = document(of, {*named, kind})
        shown.append(f"{name}: {inner}" if inner else name)
    return f"{{{', '.join(shown)}}}"
