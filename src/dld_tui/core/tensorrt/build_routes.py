"""Build routes of TensorRT 11.1 and later: knobs of its compiler, and the values to try.

A route is a text such as ``-copy_ppg=off -peep:max=2``; other knobs have their default. An
expression gives several values to try, ``-copy_ppg=[on|off] -peep:max=[1|2|3]``. Both are those of
trtexec's Global Performance Tuner.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import UsageError
from dld_tui.core.text import clip, visible

_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
_TOKEN = re.compile(r"(-[^\s=\[\]]+)=(?:\[([^\[\]]*)\]|([^\s\[\]]+))(?:\s+|$)")


@dataclass(frozen=True)
class Knob:
    """An option of the compiler. Texts are foreign."""

    name: str
    """With its dash, such as ``-kgen:tiling``."""
    values: tuple[str, ...]
    """Empty where any value may be given."""
    default: str
    help: str


@dataclass(frozen=True)
class Knobs:
    """All knobs of a library."""

    version: str
    """Of the tuner; routes of another version may name other knobs."""
    knobs: Mapping[str, Knob]


def read_knobs(text: str) -> Knobs:
    """Return what ``IBuilderConfig.all_build_routes`` says; without knobs where it says nothing."""
    try:
        data = json.loads(text or "{}")
    except ValueError:
        data = {}
    options = data.get("tuner_options") if isinstance(data, dict) else None
    knobs = {}
    for option in options if isinstance(options, list) else ():
        name = option.get("option") if isinstance(option, dict) else None
        if isinstance(name, str) and name:
            keys = ("allowed_values", "default_value", "help")
            allowed, default, help = (_text(option.get(key)) for key in keys)
            knobs[name] = Knob(name, _allowed(allowed), default, help)
    version = data.get("tuner_version", "") if isinstance(data, dict) else ""
    return Knobs(str(version), knobs)


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _allowed(text: str) -> tuple[str, ...]:
    """Return the values of ``-knob=[a|b]``; none of ``=int32_t`` or ``=[0|...|9]``."""
    match = _BRACKETS.search(text)
    return () if match is None or "..." in match[1] else _listed(match[1])


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split("|") if part.strip())


def parse_routes(expression: str, knobs: Knobs) -> dict[str, tuple[str, ...]]:
    """Return the values to try by knob; a single value is fixed.

    Args:
        expression: Words such as ``-knob=[a|b]`` and ``-knob=value``, possibly one per line.
        knobs: Of the library.

    Raises:
        UsageError: It is malformed, or names an unknown knob or value.
    """
    routes: dict[str, tuple[str, ...]] = {}
    text, at = expression.strip(), 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise UsageError(
                f"{clip(visible(text[at:]), 40)!r} is not part of a build route",
                hint="Write -knob=value or -knob=[a|b|c], separated by spaces",
            )
        name, at = match[1], match.end()
        if name in routes:
            raise UsageError(f"the knob {visible(name)} is given twice")
        routes[name] = _listed(match[2]) if match[2] is not None else (match[3],)
        _check(name, routes[name], knobs)
    if not routes:
        raise UsageError("no knob is given", hint="dld routes MODEL lists them")
    return routes


def _check(name: str, values: Sequence[str], knobs: Knobs) -> None:
    knob = knobs.knobs.get(name)
    if knob is None:
        matches = [other for other in knobs.knobs if name.strip("-").lower() in other.lower()]
        hint = (
            f"There is {', '.join(map(visible, matches[:5]))}"
            if matches
            else "dld routes lists them"
        )
        raise UsageError(f"unknown knob {clip(visible(name), 60)}", hint=hint)
    if not values:
        raise UsageError(f"the knob {visible(name)} has no value")
    wrong = [value for value in values if knob.values and value not in knob.values]
    if wrong:
        raise UsageError(
            f"{visible(name)} cannot be {clip(visible(wrong[0]), 40)}",
            hint=f"It can be {', '.join(map(visible, knob.values))}",
        )


def route_text(values: Mapping[str, str]) -> str:
    """Return a route as the library takes it; unknown defaults are left to the library."""
    return " ".join(f"{name}={value}" for name, value in values.items() if value)
