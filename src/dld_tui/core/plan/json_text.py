"""JSON of engine files: read whole, in the states of repair that it is found in."""

from __future__ import annotations

import codecs
import json
import re
from pathlib import Path

from dld_tui.core.errors import CorruptFileError, InputError
from dld_tui.core.files.source import Source
from dld_tui.core.types import JSON

_LARGEST = 512 << 20
_MOST_DOCUMENTS = 1_000_000
_DIVIDER = re.compile(r"^-{2,} *Layer +\d+ *-{2,}[ \t]*$", re.MULTILINE)

# Metadata holds U+001E, which some versions write unescaped; NaN becomes "unknown".
_DECODER = json.JSONDecoder(strict=False, parse_constant=lambda _: None)


def read_text(path: Path) -> str:
    """Return the text of a file, UTF-8 or UTF-16.

    Raises:
        InputError: The file cannot be read or is too large for layer information.
        CorruptFileError: It is empty.
    """
    source = Source.open(path)
    try:
        if source.size > _LARGEST:
            raise InputError("too large for a file about an engine", where=str(path))
        return decoded(source.read(0, source.size), str(path))
    finally:
        source.close()


def decoded(data: bytes, where: str) -> str:
    """Return bytes as text.

    Raises:
        CorruptFileError: There is nothing in them.
    """
    if not data.strip():
        raise CorruptFileError("File is empty (0 bytes)", where=where)
    utf16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return data.decode("utf-16" if utf16 else "utf-8-sig", "replace")


def parsed(text: str, where: str) -> JSON:
    """Return one JSON document.

    Raises:
        CorruptFileError: It is none, ends early, or is nested too deep.
    """
    try:
        value: JSON
        value, end = _DECODER.raw_decode(text, _blank(text, 0))
        if text[end:].strip():
            raise json.JSONDecodeError("something follows the document", text, end)
    except json.JSONDecodeError as error:
        raise CorruptFileError(_described(text, error), where=where) from None
    except RecursionError:
        raise CorruptFileError("JSON is nested too deep", where=where) from None
    except ValueError:
        raise CorruptFileError("JSON has a number of too many digits", where=where) from None
    return value


def documents(text: str, where: str) -> tuple[list[JSON], list[str]]:
    """Return the JSON documents of a text that holds one, or several one after another.

    ``--- Layer N ---`` lines may stand between them. Also returned are notes on pieces that were
    left out.

    Raises:
        CorruptFileError: There is no whole document.
    """
    if not _DIVIDER.search(text):
        try:
            return [parsed(text, where)], []
        except CorruptFileError:
            several = _one_after_another(text)
            if len(several) < 2:
                raise
            return several, []
    found: list[JSON] = []
    damaged = 0
    for piece in _DIVIDER.split(text):
        if not piece.strip():
            continue
        try:
            found.append(parsed(piece, where))
        except CorruptFileError:
            damaged += 1
    if not found:
        raise CorruptFileError("no layer of it is whole JSON", where=where)
    return found, [f"{damaged} of the layers are not whole JSON and left out"] if damaged else []


def _one_after_another(text: str) -> list[JSON]:
    """Return the documents of a text in which nothing else stands; empty when something does."""
    found: list[JSON] = []
    position = _blank(text, 0)
    while position < len(text) and len(found) < _MOST_DOCUMENTS:
        try:
            value, position = _DECODER.raw_decode(text, position)
        except (ValueError, RecursionError):
            return []
        found.append(value)
        position = _blank(text, position)
    return found


def _blank(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t\r\n":
        position += 1
    return position


def _described(text: str, error: json.JSONDecodeError) -> str:
    cut = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string")
    place = f"at line {error.lineno} column {error.colno}"
    return f"JSON ends early {place}" if cut else f"Not JSON: {error.msg} {place}"
