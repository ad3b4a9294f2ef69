"""Numbers and strings of literals: read with errors that point at the column, and printed."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from typing import TypeVar

from dld_tui.core.errors import UsageError
from dld_tui.core.text import visible

T = TypeVar("T")

_INT64_MIN, _INT64_MAX = -(1 << 63), (1 << 63) - 1
_WORD = re.compile(r"[^\s,\[\]'\"]+")
_BARE_STRING = re.compile(r"[A-Za-z_][\w.-]*\Z", re.ASCII)
_INTEGER = re.compile(r"[+-]?(0[xX][0-9a-fA-F]+|[0-9]+)\Z")
_NUMBER = re.compile(
    r"[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|inf|infinity|nan)\Z", re.I
)
_RUNS = {"'": re.compile(r"[^\\']+"), '"': re.compile(r'[^\\"]+')}
_TRUTH = {"true": 1, "false": 0}
_ESCAPES = {"n": b"\n", "t": b"\t", "r": b"\r", "\\": b"\\", "'": b"'", '"': b'"'}
_HEX_DIGITS = {"x": 2, "u": 4, "U": 8}


class LiteralError(UsageError):
    """A literal is malformed or its value does not fit.

    Args:
        message: What is wrong.
        column: Where in the text, counted from 1.
    """

    def __init__(self, message: str, column: int = 1) -> None:
        super().__init__(message, where=f"column {column}")
        self.column = column


class LiteralRangeError(LiteralError):
    """A literal is well formed, and its value does not fit the type."""


class Scanner:
    """A position in the text of a literal."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0

    def peek(self) -> str:
        """Return the next character that is not a space, '' at the end."""
        while self.position < len(self.text) and self.text[self.position].isspace():
            self.position += 1
        return self.text[self.position : self.position + 1]

    def take(self, char: str) -> bool:
        """Step over `char` when it is next."""
        if self.peek() != char:
            return False
        self.position += 1
        return True

    def word(self, wanted: str) -> str:
        """Step over everything up to a space, comma, bracket or quote."""
        self.peek()
        match = _WORD.match(self.text, self.position)
        if match is None:
            raise self.error(f"{wanted} is expected here")
        self.position = match.end()
        return match.group()

    def end(self) -> None:
        """Check that nothing is left."""
        if self.peek():
            raise self.error("the literal should end here")

    def error(self, message: str, position: int | None = None) -> LiteralError:
        """Return an error that points at `position`, or at the next character."""
        return LiteralError(message, (self.position if position is None else position) + 1)

    def range_error(self, message: str, position: int) -> LiteralRangeError:
        """Return an error about a value that does not fit, read from `position` on."""
        return LiteralRangeError(message, position + 1)


def scan_one(scanner: Scanner, element: Callable[[Scanner], T]) -> T:
    """Read a single value; a list in its place gets a message of its own."""
    if scanner.peek() == "[":
        raise scanner.error("one value is expected, not a list")
    return element(scanner)


def scan_list(scanner: Scanner, element: Callable[[Scanner], T]) -> list[T]:
    """Read ``[a, b, c]``; a comma after the last value is allowed."""
    start = scanner.position
    if not scanner.take("["):
        raise scanner.error("a list in brackets is expected, such as [1, 2]")
    values: list[T] = []
    while not scanner.take("]"):
        if not scanner.peek():
            raise scanner.error("this list is not closed", start)
        values.append(scan_one(scanner, element))
        if not scanner.take(",") and scanner.peek() not in ("]", ""):
            raise scanner.error("a comma or ] is expected here")
    return values


def scan_integer(scanner: Scanner) -> int:
    """Read an integer of any size, or a truth word."""
    word = scanner.word("a whole number")
    start = scanner.position - len(word)
    if word.lower() in _TRUTH:
        return _TRUTH[word.lower()]
    if not _INTEGER.match(word):
        raise scanner.error(f"{shown(word)} is not a whole number", start)
    if len(word) > 80:  # int() of thousands of digits is refused by Python itself
        raise scanner.range_error(f"{shown(word)} is out of range", start)
    return int(word, 16 if "x" in word.lower() else 10)


def scan_number(scanner: Scanner) -> float:
    """Read a decimal number, ``inf`` or ``nan``."""
    word = scanner.word("a number")
    if not _NUMBER.match(word):
        raise scanner.error(f"{shown(word)} is not a number", scanner.position - len(word))
    value = float(word)
    if math.isinf(value) and "i" not in word.lower():
        raise scanner.range_error(f"{shown(word)} is too large", scanner.position - len(word))
    return value


def scan_string(scanner: Scanner) -> bytes:
    """Read a quoted string, or a bare word such as ``SAME_UPPER``."""
    quote = scanner.peek()
    start = scanner.position
    if quote not in _RUNS:
        word = scanner.word("a string in quotes, such as 'text',")
        if not _BARE_STRING.match(word):
            raise scanner.error("a string stands in quotes, such as 'text'", start)
        return word.encode()
    scanner.position += 1
    parts: list[bytes] = []
    text = scanner.text
    while scanner.position < len(text):
        char = text[scanner.position]
        if char == quote:
            scanner.position += 1
            return b"".join(parts)
        if char == "\\":
            parts.append(_scan_escape(scanner))
            continue
        run = _RUNS[quote].match(text, scanner.position)
        assert run is not None
        parts.append(_encoded(scanner, run.group()))
        scanner.position = run.end()
    raise scanner.error("this string is not closed", start)


def shown(word: str) -> str:
    """Return a piece of the text for a message, short and safe."""
    return visible(word) if len(word) <= 40 else visible(word[:39]) + "…"


def _scan_escape(scanner: Scanner) -> bytes:
    start = scanner.position
    code = scanner.text[start + 1 : start + 2]
    if code in _ESCAPES:
        scanner.position += 2
        return _ESCAPES[code]
    digits = _HEX_DIGITS.get(code, 0)
    number = scanner.text[start + 2 : start + 2 + digits]
    if not digits or not re.fullmatch(f"[0-9a-fA-F]{{{digits}}}", number):
        raise scanner.error("unknown escape; write \\\\ for a backslash", start)
    value = int(number, 16)
    scanner.position += 2 + digits
    if code == "x":
        return bytes([value])
    if value > 0x10FFFF or 0xD800 <= value <= 0xDFFF:
        raise scanner.error(f"\\{code}{number} is not a character", start)
    return chr(value).encode()


def _encoded(scanner: Scanner, run: str) -> bytes:
    try:
        return run.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise scanner.error("this is not a character", scanner.position + error.start) from None


def scan_int64(scanner: Scanner) -> int:
    """Read an integer of 64 bits, or a truth word."""
    scanner.peek()
    start = scanner.position
    value = scan_integer(scanner)
    if not _INT64_MIN <= value <= _INT64_MAX:
        raise scanner.range_error("the number does not fit in 64 bits", start)
    return value


def scan_float32(scanner: Scanner) -> float:
    """Read a number and round it to float32."""
    scanner.peek()
    start = scanner.position
    value = scan_number(scanner)
    try:
        rounded = round_to_float32(value)
    except OverflowError:
        raise scanner.range_error("the number is too large for float32; write inf", start) from None
    if value and not rounded:
        raise scanner.range_error("the number is too small for float32; write 0", start)
    return rounded


def round_to_float32(value: float) -> float:
    """Return the nearest float32 as a float.

    Raises:
        OverflowError: The value is finite and beyond the largest float32.
    """
    rounded: float = struct.unpack("<f", struct.pack("<f", value))[0]
    return rounded


_FLOAT32_LIMIT = 3.4028235677973364e38
"""Values from here on round to infinity."""


def format_float(value: float) -> str:
    """Return the shortest decimal that reads back as the same float32."""
    if not math.isfinite(value) or value == 0:
        return repr(float(value))
    try:
        exact = round_to_float32(value)
    except OverflowError:
        return repr(float(value))
    for digits in range(1, 9):
        # Rounding up the largest float32 overflows; more digits then help.
        text = f"{exact:.{digits}g}"
        if abs(float(text)) <= _FLOAT32_LIMIT and round_to_float32(float(text)) == exact:
            return repr(float(text))
    return repr(float(f"{exact:.9g}"))


def format_string(value: bytes | str) -> str:
    """Return a string in single quotes."""
    text = value if isinstance(value, str) else value.decode("utf-8", "surrogateescape")
    text = text.replace("\\", "\\\\").replace("'", "\\'")
    if visible(text) != text:
        text = "".join(map(_escaped, text))
    return f"'{text}'"


def _escaped(char: str) -> str:
    # \xNN is a byte here, so the characters U+0080 to U+00FF need the other form.
    shown_as = visible(char)
    return f"\\u{ord(char):04x}" if shown_as != char and 0x80 <= ord(char) <= 0xFF else shown_as
