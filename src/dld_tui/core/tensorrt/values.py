"""Values in the ways of trtexec and Polygraphy: lists with commas, sizes with suffixes."""

from __future__ import annotations

import re

from dld_tui.core.errors import UsageError

_SIZE = re.compile(
    r"(?P<number>\d+(?:\.\d*)?(?:E[+-]?\d+)?|\.\d+)\s*(?P<suffix>[KMG]|)(?P<bytes>I?B)?"
)
_UUID = re.compile(r"(?:MIG|GPU)-[\w/-]+")
_MEBIBYTES = {"": 1.0, "K": 2.0**-10, "M": 1.0, "G": 2.0**10}


def split_items(text: str) -> list[str]:
    """Return the items of a list whose commas outside of brackets and quotes separate.

    Single quotes are how trtexec takes names that hold a comma or a colon; they stay.
    """
    items, item, depth, quoted = [], "", 0, False
    for char in text:
        quoted ^= char == "'"
        depth += (char == "[") - (char == "]")
        if char == "," and depth <= 0 and not quoted:
            items.append(item.strip())
            item = ""
        else:
            item += char
    items.append(item.strip())
    return [item for item in items if item]


def named_value(item: str) -> tuple[str, str]:
    """Return name and value of ``NAME:VALUE``; names may hold colons, and be in single quotes.

    Raises:
        UsageError: There is no colon, or no name before it.
    """
    name, colon, value = item.rpartition(":")
    name = name.strip()
    if len(name) > 1 and name[0] == name[-1] == "'":
        name = name[1:-1]
    if not colon or not name:
        raise UsageError(f"{item!r} has not the form NAME:VALUE")
    return name, value.strip()


def mebibytes(text: str) -> float:
    """Return a size in MiB, as trtexec takes it: ``1024``, ``1G``, ``512K``, ``65536B``.

    Raises:
        UsageError: It is no size.
    """
    match = _SIZE.fullmatch(text.strip().upper())
    if match is None:
        raise UsageError(f"{text!r} is not a size", hint="Write 1024M, 1G or 0.5G")
    unit = 2.0**-20 if match["bytes"] and not match["suffix"] else _MEBIBYTES[match["suffix"]]
    return float(match["number"]) * unit


def device_text(device: str | int) -> str:
    """Return a device as it is given: a number, or the UUID of a GPU or a part of one.

    Raises:
        UsageError: It is neither.
    """
    text = str(device).strip()
    if text.isdecimal():
        return str(int(text))
    if _UUID.fullmatch(text):
        return text
    raise UsageError(
        f"--device {text!r} is not a number", hint="Write 0, 1, …, MIG-UUID or GPU-UUID"
    )
