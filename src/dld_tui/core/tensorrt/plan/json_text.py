"""JSON of engine files, even damaged ones, and values of the expected type.

orjson reads it if installed (``pip install dld-tui[fast]``); what it rejects, such as
NaN, is read by Python's own reader, so the result is the same.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable
from functools import cache, lru_cache
from pathlib import Path

from dld_tui.core import fmt
from dld_tui.core.errors import CorruptFileError, InputError
from dld_tui.core.files.source import Source
from dld_tui.core.types import DTYPES, JSON, PRECISION_DTYPES

_PROSE = frozenset({"byte", "int", "long", "short", "single"})
_PRECISIONS = {dtype: precision for precision, dtype in PRECISION_DTYPES.items()}
_TYPES = {
    word: _PRECISIONS[dtype]
    for word, dtype in DTYPES.items()
    if dtype in _PRECISIONS and word not in _PROSE
}
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9]*")


@lru_cache(maxsize=1024)
def dtype_of(phrase: str) -> str:
    """Return the type in a phrase, e.g. ``fp16`` of ``Channel major FP16 format where …``.

    Empty if it has no known type, as in ``N/A due to dynamic shapes``.
    """
    for word in _WORD.findall(phrase[:400]):
        lower = word.lower()
        dtype = _TYPES.get(lower) or (_TYPES.get(lower[1:]) if lower.startswith("k") else None)
        if dtype:
            return dtype
    return ""


_WIDE = {"two": 2, "four": 4, "eight": 8, "sixteen": 16, "thirty-two": 32}
_VECTOR = re.compile(r"\b(two|four|eight|sixteen|thirty-two) wide channel", re.IGNORECASE)
_ROW_MAJOR, _CHANNEL_MAJOR = "row major linear", "channel major"
_MULTIPLE = re.compile(r"channel % (\d{1,3}) == 0")


@lru_cache(maxsize=1024)
def layout_of(phrase: str) -> str:
    """Return the memory format in a phrase as TensorRT's enumeration names it, e.g. ``CHW32``.

    Empty if the phrase contains only a type, as in TensorRT 10.
    """
    small = phrase[:400].lower()
    if _ROW_MAJOR in small or small.startswith("linear"):
        return "LINEAR"
    vector = _VECTOR.search(phrase[:400])
    if vector:
        deep = "CDHW" if "3d" in small or "cdhw" in small else "CHW"
        return f"{deep}{_WIDE[vector[1].lower()]}"
    if "dla" in small:
        return "DLA_HWC4" if "image" in small else "DLA_LINEAR"
    if _CHANNEL_MAJOR in small:
        multiple = _MULTIPLE.search(phrase[:400])
        return f"HWC{multiple[1]}" if multiple and multiple[1] != "1" else "HWC"
    return ""


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
    """Refuse files that are too large to be of an engine.

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
    """Refuse JSON with so many values that they would fill the memory.

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
        CorruptFileError: It is not JSON, ends early, or is nested too deep.
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
            raise json.JSONDecodeError("there is data after the document", text, end)
    except json.JSONDecodeError as error:
        raise CorruptFileError(_described(text, error), where=where) from None
    except RecursionError:
        raise CorruptFileError("JSON is nested too deep", where=where) from None
    except ValueError:
        raise CorruptFileError("JSON has a number with too many digits", where=where) from None
    return value


def documents(text: str, where: str) -> tuple[list[JSON], list[str]]:
    """Return the JSON documents of a text with one or several of them.

    ``--- Layer N ---`` lines may separate them. Also returned are notes on pieces that were
    left out.

    Raises:
        CorruptFileError: There is no complete document.
    """
    if "- Layer" not in text or not _DIVIDER.search(text):
        try:
            return [parsed(text, where)], []
        except CorruptFileError:
            several = _one_after_another(text)
            if len(several) < 2:
                raise
            return several, []
    values: list[JSON] = []
    damaged = 0
    for piece in _DIVIDER.split(text):
        if not piece.strip():
            continue
        try:
            values.append(parsed(piece, where))
        except CorruptFileError:
            damaged += 1
    if not values:
        raise CorruptFileError("none of its layers is complete JSON", where=where)
    return values, [
        f"{damaged} of the layers are not complete JSON and left out"
    ] if damaged else []


def lists_of(text: str) -> tuple[list[JSON], bool]:
    """Return consecutive lists, and whether a further one begins and is cut off."""
    lists: list[JSON] = []
    position = _blank(text, 0)
    while text.startswith("[", position) and len(lists) < _MOST_DOCUMENTS:
        try:
            value, position = _DECODER.raw_decode(text, position)
        except (ValueError, RecursionError):
            return lists, True
        lists.append(value)
        position = _blank(text, position)
    return lists, False


def _one_after_another(text: str) -> list[JSON]:
    """Return the documents of a text without anything else; empty if there is other text."""
    values: list[JSON] = []
    position = _blank(text, 0)
    while position < len(text) and len(values) < _MOST_DOCUMENTS:
        try:
            value, position = _DECODER.raw_decode(text, position)
        except (ValueError, RecursionError):
            return []
        values.append(value)
        position = _blank(text, position)
    return values


def _blank(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t\r\n":
        position += 1
    return position


_CUT_STRING = "Unterminated string"
"""What Python says of a text that ends within a string."""


def _described(text: str, error: json.JSONDecodeError) -> str:
    cut = error.pos >= len(text.rstrip()) or error.msg.startswith(_CUT_STRING)
    place = f"at line {error.lineno} column {error.colno}"
    return f"JSON ends early {place}" if cut else f"Not JSON: {error.msg} {place}"
