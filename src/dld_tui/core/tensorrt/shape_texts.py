"""Texts of input shapes for optimization profiles: ``x:1x3x224x224,y:[1,3]``, several profiles."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import TypeAlias

from dld_tui.core.errors import UsageError
from dld_tui.core.text import clip, visible

Shape: TypeAlias = "tuple[int, ...]"
"""Dimensions, or the values of an input that holds a shape."""

MOST_PROFILES = 256
_PROFILE = re.compile(r"profile=(\d{1,4});")
# As few characters as possible for the name, then dimensions that something can follow.
_ONE = re.compile(
    r"(?P<name>.+?):(?:\[(?P<list>[^\[\]]*)\]|(?P<dims>-?\d+(?:[xX]-?\d+)*)|(?P<none>scalar|))(?:,|$)"
)
_MOST = 2**31


def with_profile(number: int, text: str) -> str:
    """Return a text of shapes that says which profile it is of, from 0."""
    return f"profile={number};{text}"


def split_profile(text: str) -> tuple[int | None, str]:
    """Return (profile or None, the shapes) of a text."""
    match = _PROFILE.match(text)
    return (int(match[1]), text[match.end() :]) if match else (None, text)


def parse_profile_shapes(
    texts: Iterable[str], names: Collection[str] | None, flag: str
) -> list[dict[str, Shape]]:
    """Return the shapes by input name, one dictionary a profile.

    An input that comes again begins the next profile. Names may hold one ``*``.

    Args:
        texts: What the user gave.
        names: The inputs of the model; None when they are not known.
        flag: The option, for errors.

    Raises:
        UsageError: A text is not a shape, or a name is not one of `names`.
    """
    profiles: list[dict[str, Shape]] = []
    current = 0
    for text in texts:
        number, shapes = split_profile(text)
        if number is not None:
            current = number
        if current >= MOST_PROFILES:
            raise UsageError(f"{flag}: profile {current} is too much; 0 to {MOST_PROFILES - 1}")
        for name, shape in _entries(shapes, flag):
            for known in _known(name, names, flag):
                if current < len(profiles) and known in profiles[current]:
                    if number is not None:
                        raise UsageError(
                            f"{flag} gives input {_shown(known)} twice in profile {current}"
                        )
                    current += 1
                profiles += [{} for _ in range(current + 1 - len(profiles))]
                profiles[current][known] = shape
    return profiles


def plain_texts(texts: Iterable[str], flag: str) -> tuple[str, ...]:
    """Return texts of shapes in the one plain form: one input a text, as trtexec takes it.

    Raises:
        UsageError: A text is not a shape.
    """
    profiles = parse_profile_shapes(texts, None, flag)
    if len(profiles) == 1:
        return _texts(profiles[0])
    found = enumerate(map(_texts, profiles))
    return tuple(with_profile(number, text) for number, shapes in found for text in shapes)


def _texts(shapes: Mapping[str, Shape]) -> tuple[str, ...]:
    return tuple(
        f"{_quoted(name)}:{'x'.join(map(str, shape)) or 'scalar'}" for name, shape in shapes.items()
    )


def _quoted(name: str) -> str:
    return f"'{name}'" if ":" in name or "," in name else name


def _entries(text: str, flag: str) -> Iterable[tuple[str, Shape]]:
    at = 0
    while at < len(text):
        match = _ONE.match(text, at)
        if match is None:
            shown = clip(visible(text), 80)
            raise UsageError(f"{flag} {shown!r} is not a shape", hint="Write NAME:1x3x224x224")
        yield match["name"].strip(), _shape(match, flag)
        at = match.end()


def _shape(match: re.Match[str], flag: str) -> Shape:
    if match["list"] is not None:
        parts = [part.strip() for part in match["list"].split(",") if part.strip()]
    else:
        parts = re.split("[xX]", match["dims"]) if match["dims"] else []
    try:
        shape = tuple(map(int, parts))
    except ValueError:
        shape = (_MOST,)
    if any(not -_MOST < size < _MOST for size in shape):
        shown = clip(visible(match.group()), 80)
        raise UsageError(f"{flag} {shown!r} has a dimension that is not a number")
    return shape


def _known(name: str, names: Collection[str] | None, flag: str) -> list[str]:
    bare = name[1:-1] if len(name) > 2 and name[0] == name[-1] and name[0] in "'\"" else name
    if names is None:
        return [bare]
    for candidate in (name, bare):
        if candidate in names:
            return [candidate]
    if bare.count("*") == 1:
        start, _, end = bare.partition("*")
        found = [n for n in names if len(n) >= len(start + end) and n.startswith(start)]
        if matching := [n for n in found if n.endswith(end)]:
            return matching
    listed = ", ".join(map(_shown, list(names)[:20])) or "none"
    raise UsageError(
        f"{flag} names {clip(visible(name), 60)!r}, which is not an input of the model",
        hint=f"Its inputs: {listed}",
    )


def _shown(name: str) -> str:
    return clip(visible(name), 60, keep="middle")
