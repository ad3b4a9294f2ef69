"""The command line that is equal to a filled form, and the text of single settings."""

from __future__ import annotations

import dataclasses
import shlex
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dld_tui.core.params import Setting, problem_with, settings_of
from dld_tui.core.types import JSON

_MOST_QUOTED = 10_000


def text_of(setting: Setting, value: JSON) -> str:
    """Return a value as a user types it; empty for None and for no values."""
    if value is None:
        return ""
    if isinstance(value, list):
        return " ".join(shlex.quote(str(item)) for item in value)
    return str(value)


def value_of(setting: Setting, text: str) -> tuple[JSON, str | None]:
    """Return (value, what is wrong with the text or None) of a typed setting."""
    text = text.strip()
    if not text and typing.get_origin(setting.type) is tuple:
        return [], None
    if not text:
        if setting.required:
            return None, "needed"
        default = setting.default
        return (None if setting.optional else _plain(default)), None
    try:
        value = _parsed(setting, text)
    except ValueError as error:
        return None, str(error)
    return value, problem_with(setting, value)


def plain_default(setting: Setting) -> JSON:
    """Return the default of a setting as JSON data; None when there is none."""
    return _plain(setting.default)


def _parsed(setting: Setting, text: str) -> JSON:
    kind = setting.type
    if typing.get_origin(kind) is tuple:
        # The quoting rules take a tenth of a second for a very long text; nobody quotes there.
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


def _plain(value: Any) -> JSON:
    if value is dataclasses.MISSING:
        return None
    if isinstance(value, tuple):
        return list(value)
    return str(value) if isinstance(value, Path) else value


def command_line(words: Sequence[str], request: type[Any], values: Mapping[str, JSON]) -> str:
    """Return the shell command with these settings; those at their default are left out."""
    parts = list(words)
    options: list[str] = []
    for setting in settings_of(request):
        value = values.get(setting.name)
        if value is None or value == _plain(setting.default):
            continue
        if setting.param.positional:
            parts.append(shlex.quote(str(value)))
            continue
        flag = next(iter(setting.param.spellings), "--" + setting.name.replace("_", "-"))
        if isinstance(value, bool):
            options.append(flag if value else f"--no-{flag.removeprefix('--')}")
        else:
            items = value if isinstance(value, list) else [value]
            options += [f"{flag} {shlex.quote(str(item))}" for item in items]
    return " ".join([*parts, *options])
