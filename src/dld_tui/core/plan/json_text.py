"""JSON of engine files: read whole, in the states of repair that it is found in.

orjson reads it where it is installed (``pip install dld-tui[fast]``); what it refuses, such as NaN,
is read by Python's own reader, so the result is the same.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

from dld_tui.core import fmt
from dld_tui.core.errors import CorruptFileError, InputError
from dld_tui.core.files.source import Source
from dld_tui.core.types import JSON

LARGEST_BYTES = 256 << 20
"""Layer information of a real engine has about 1 kB a layer."""
_MOST_VALUES = 16_000_000
"""Values of the JSON in one file: each takes up to 100 bytes in memory."""
_MOST_DOCUMENTS = 1_000_000
_DIVIDER = re.compile(r"^-{2,} Layer +\d+ *-{2,}[ \t]*$", re.MULTILINE)

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
        require_size(source.size, str(path))
        return decoded(source.read(0, source.size), str(path))
    finally:
        source.close()


def require_size(size: int, where: str) -> None:
    """Refuse what no file about an engine can be.

    Raises:
        InputError: It has too many bytes.
    """
    if size > LARGEST_BYTES:
        most = fmt.size(LARGEST_BYTES)
        raise InputError(f"more than {most}: too large for a file about an engine", where=where)


def decoded(data: bytes, where: str) -> str:
    """Return bytes as text.

    Raises:
        CorruptFileError: There is nothing in them.
    """
    if not data.strip():
        raise CorruptFileError("File is empty (0 bytes)", where=where)
    utf16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return data.decode("utf-16" if utf16 else "utf-8-sig", "replace")


def require_few_values(text: str, where: str) -> None:
    """Refuse JSON of so many values that they would fill the memory.

    Raises:
        InputError: It has more than a file about an engine can have.
    """
    if len(text) <= _MOST_VALUES:
        return  # a value takes a character and a comma at least
    if text.count(",") + text.count("[") + text.count("{") > _MOST_VALUES:
        raise InputError(
            f"more than {_MOST_VALUES:,} values: too large for a file about an engine", where=where
        )


@cache
def _orjson_loads() -> Callable[[str], JSON] | None:
    """Return orjson's reader; None where it is not installed."""
    try:
        import orjson
    except ImportError:
        return None
    loads: Callable[[str], JSON] = orjson.loads
    return loads


def parsed(text: str, where: str) -> JSON:
    """Return one JSON document.

    Raises:
        CorruptFileError: It is none, ends early, or is nested too deep.
    """
    require_few_values(text, where)
    loads = _orjson_loads()
    if loads is not None:
        try:
            return loads(text)
        except ValueError:
            pass  # stricter than this program: the other reader says what is wrong
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
    if "- Layer" not in text or not _DIVIDER.search(text):
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


def lists_of(text: str) -> tuple[list[JSON], bool]:
    """Return the lists that stand one after another, and whether another one begins and is cut."""
    found: list[JSON] = []
    position = _blank(text, 0)
    while text.startswith("[", position) and len(found) < _MOST_DOCUMENTS:
        try:
            value, position = _DECODER.raw_decode(text, position)
        except (ValueError, RecursionError):
            return found, True
        found.append(value)
        position = _blank(text, position)
    return found, False


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
