r"""Attribute values as people type and read them, on one line or a value a line.

::

    int      3   -7   0x10   true            ints     [1, 2, 3]   []
    float    0.5   1e-05   inf   nan         floats   [0.5, 1.0]
    string   'same'   "it's"   'it\'s'        strings  ['a', 'b']
    tensor   float32 [[1.0, 2.0], [3.0, 4.0]]   int64 7   float32[0, 3] []

Strings are bytes in a model and need not be UTF-8: ``\xNN`` is one byte, ``\uNNNN`` one
character. What :func:`format_literal` prints, :func:`parse_literal` reads back to the same value.

The parser accepts more than is written: numbers may be separated by commas and blanks and be in
brackets, as other programs print them. A text needs quotes only where it begins with one, is
empty, or has characters that no line can hold.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from dld_tui.core.errors import UsageError
from dld_tui.core.model.tensors.numpy_types import EXTENDED, numpy_type
from dld_tui.core.text import visible
from dld_tui.core.types import DTYPES, dtype_spelled

if TYPE_CHECKING:
    import numpy as np

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
    """Read a single value; a list gets a separate message."""
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


def scan_bare_list(scanner: Scanner, element: Callable[[Scanner], T]) -> list[T]:
    """Read ``a, b, c`` or ``a b c``, up to the end."""
    if not scanner.peek():
        raise scanner.error("a list is expected, such as [1, 2]; [] is the empty one")
    values: list[T] = []
    while scanner.peek():
        values.append(scan_one(scanner, element))
        scanner.take(",")
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


# ::
#
#     float32 [[1.0, 2.0], [3.0, 4.0]]     int64 7     string ['a', 'b']     float32[0, 3] []
#     int64[2, 2] [1, 2, 3, 4]             the values in row order, folded to the shape

TENSOR_LITERAL_LIMIT = 10_000
"""Elements of the largest tensor that is printed; larger ones belong in a file."""

_DEPTH_LIMIT = 32
_HEAD = re.compile(r"\s*([A-Za-z][A-Za-z0-9_]*)")


def scan_tensor(scanner: Scanner, dtype: str | None) -> np.ndarray[Any, Any]:
    """Read a whole tensor literal; `dtype` is used where the text names none.

    Raises:
        LiteralError: The text is no tensor, its lists are ragged, or a value does not fit.
    """
    import numpy as np

    name, shape = _scan_head(scanner, dtype)
    start = scanner.position
    flat: list[Any] = []
    dims = _scan_nested(scanner, _element_reader(name), flat, 0)
    scanner.end()
    if shape is not None and math.prod(shape) != len(flat):
        raise scanner.error(f"{len(flat)} values do not fill the shape {list(shape)}", start)
    array = np.empty(len(flat), dtype=_numpy_type(name))
    for index, value in enumerate(flat):
        array[index] = value
    return array.reshape(dims if shape is None else shape)


def format_tensor(array: np.ndarray[Any, Any]) -> str:
    """Return the literal of a small tensor.

    Raises:
        LiteralError: The tensor has more than :data:`TENSOR_LITERAL_LIMIT` elements, or an
            element type that no literal has.
    """
    if array.size > TENSOR_LITERAL_LIMIT:
        raise LiteralError(f"a tensor of {array.size:,} elements is too large for a literal")
    name = "string" if array.dtype.kind in "OSU" else _literal_type(array.dtype.name)
    if name is None:
        raise LiteralError(f"elements of type {array.dtype.name} have no literal")
    if array.size == 0:
        return f"{name}[{', '.join(map(str, array.shape))}] []"
    return f"{name} {_nested(array.tolist(), array.ndim, element_printer(name))}"


def parse_element(text: str, dtype: str) -> Any:
    """Return the value of one element that was typed: a string in quotes, else a number.

    Args:
        text: What was typed.
        dtype: The element type, such as ``float16``.

    Raises:
        LiteralError: It is none, or the element type cannot hold it.
    """
    name = _literal_type(dtype)
    if name is None:
        raise LiteralError(f"elements of type {dtype} have no literal")
    scanner = Scanner(text)
    value = _element_reader(name)(scanner)
    scanner.end()
    return value


def element_text(value: Any, dtype: str) -> str:
    """Return the literal of one element.

    Args:
        value: A number, or bytes for a string.

    Raises:
        LiteralError: The element type has no literals.
    """
    name = _literal_type(dtype)
    if name is None:
        raise LiteralError(f"elements of type {dtype} have no literal")
    return element_printer(name)(value)


def _literal_type(name: str) -> str | None:
    """Return the element type that a name spells; None where tensors of it have no literals."""
    return DTYPES.get(dtype_spelled(name))


def _scan_head(scanner: Scanner, dtype: str | None) -> tuple[str, tuple[int, ...] | None]:
    match = _HEAD.match(scanner.text)
    word = match.group(1) if match else ""
    known, wanted = _literal_type(word), _literal_type(dtype or "")
    is_text = wanted == "string" and word == scanner.text.strip()  # a word such as short
    if known is None or is_text:
        if wanted is None:
            raise scanner.error("a tensor begins with its element type, such as float32")
        return wanted, None
    assert match is not None
    scanner.position = match.end()
    # A bracket right after the type is the shape; after a space it is the value.
    if scanner.text[scanner.position : scanner.position + 1] != "[":
        return known, None
    start = scanner.position
    shape = tuple(scan_list(scanner, scan_integer))
    if len(shape) > _DEPTH_LIMIT or any(dim < 0 for dim in shape):
        raise scanner.error("this is not a shape", start)
    return known, shape


def _scan_nested(
    scanner: Scanner, element: Callable[[Scanner], Any], flat: list[Any], depth: int
) -> tuple[int, ...]:
    """Append the values to `flat`, row by row, and return their shape."""
    if scanner.peek() != "[":
        flat.append(element(scanner))
        return ()
    start = scanner.position
    if depth == _DEPTH_LIMIT:
        raise scanner.error(f"a tensor has at most {_DEPTH_LIMIT} dimensions", start)
    scanner.take("[")
    inner: tuple[int, ...] | None = None
    length = 0
    while not scanner.take("]"):
        if not scanner.peek():
            raise scanner.error("this list is not closed", start)
        item_start = scanner.position
        shape = _scan_nested(scanner, element, flat, depth + 1)
        if inner is not None and shape != inner:
            raise scanner.error("this row has another shape than the first one", item_start)
        inner = shape
        length += 1
        if not scanner.take(",") and scanner.peek() not in ("]", ""):
            raise scanner.error("a comma or ] is expected here")
    return (length, *(inner or ()))


def _nested(value: Any, depth: int, printer: Callable[[Any], str]) -> str:
    if depth == 0:
        return printer(value)
    return "[" + ", ".join(_nested(item, depth - 1, printer) for item in value) + "]"


def _numpy_type(name: str) -> Any:
    kind = numpy_type(name)
    if kind is None:
        raise LiteralError(f"elements of type {name} need a newer ml_dtypes")
    return kind


def _limits(name: str) -> Any:
    """Return numpy's ``iinfo`` or ``finfo`` of an element type, or ml_dtypes' form of it."""
    import numpy as np

    module: Any = np
    if name in EXTENDED:
        import ml_dtypes as module
    return (module.finfo if "float" in name else module.iinfo)(_numpy_type(name))


@lru_cache(maxsize=64)
def _element_reader(name: str) -> Callable[[Scanner], Any]:
    if name == "string":
        return scan_string
    if name == "complex64":
        return _scan_complex64
    if name == "complex128":
        return _scan_complex
    if "float" in name:
        return _float_reader(name)
    return _integer_reader(name)


def _integer_reader(name: str) -> Callable[[Scanner], Any]:
    low, high = 0, 1
    if name != "bool":
        limits = _limits(name)
        low, high = int(limits.min), int(limits.max)

    def read(scanner: Scanner) -> int:
        scanner.peek()
        start = scanner.position
        value = scan_integer(scanner)
        if not low <= value <= high:
            raise scanner.range_error(f"{name} holds {low} to {high}", start)
        return value

    return read


def _float_reader(name: str) -> Callable[[Scanner], Any]:
    kind = _numpy_type(name)
    limits = _limits(name)
    largest = float(limits.max)
    # The shortest decimal of the largest number may lie above it, by less than half a step.
    ceiling = largest + largest * float(limits.eps) / 2

    def read(scanner: Scanner) -> Any:
        scanner.peek()
        start = scanner.position
        value = scan_number(scanner)
        if math.isfinite(value) and abs(value) > ceiling:
            raise scanner.range_error(f"{name} holds at most {largest:g}", start)
        rounded = _cast(kind, value)
        result = float(rounded)
        if math.isnan(value) != math.isnan(result) or math.isinf(value) != math.isinf(result):
            raise scanner.range_error(f"{name} cannot hold {value:g}", start)
        if (value == 0) != (result == 0) or (value < 0) != (result < 0):
            raise scanner.range_error(f"{name} cannot hold {value:g}", start)
        return rounded

    return read


def _cast(kind: np.dtype[Any], value: float) -> Any:
    import numpy as np

    with np.errstate(all="ignore"):
        return kind.type(value)


def _scan_complex(scanner: Scanner) -> complex:
    word = scanner.word("a number such as 1+2j")
    try:
        return complex(word)
    except ValueError:
        start = scanner.position - len(word)
        raise scanner.error(f"{shown(word)} is not a complex number", start) from None


def _scan_complex64(scanner: Scanner) -> complex:
    scanner.peek()
    start = scanner.position
    value = _scan_complex(scanner)
    try:
        return complex(round_to_float32(value.real), round_to_float32(value.imag))
    except OverflowError:
        raise scanner.range_error("the number is too large for complex64", start) from None


def _complex_printer(part: Callable[[float], str]) -> Callable[[complex], str]:
    def show(value: complex) -> str:
        imaginary = part(value.imag)
        sign = "" if imaginary.startswith("-") else "+"
        return f"{part(value.real)}{sign}{imaginary}j"

    return show


@lru_cache(maxsize=64)
def element_printer(name: str) -> Callable[[Any], str]:
    """Return what prints elements of a type; by the name that literals have."""
    if name == "string":
        return format_string
    if name == "bool":
        return lambda value: "true" if value else "false"
    if name == "float32":
        return format_float
    if name.startswith("complex"):
        return _complex_printer(format_float if name == "complex64" else repr)
    if name == "float64" or "float" not in name:
        return str
    kind = _numpy_type(name)
    if kind.itemsize == 1:  # the exact decimals are short, and rounded ones mislead: 450 for 448
        return lambda value: repr(float(value))

    def shortest(value: Any) -> str:
        exact = float(value)
        for digits in range(1, 9):
            text = f"{exact:.{digits}g}"
            if float(_cast(kind, float(text))) == exact:
                return repr(float(text))
        return repr(exact)

    return shortest


LiteralValue: TypeAlias = (
    "int | float | bytes | list[int] | list[float] | list[bytes] | np.ndarray[Any, Any]"
)

KINDS = ("int", "float", "string", "ints", "floats", "strings", "tensor")
"""Attribute kinds that have a literal; graphs, types and sparse tensors have none."""


def parse_literal(text: str, kind: str, *, dtype: str | None = None) -> LiteralValue:
    """Return the value that a literal stands for.

    Args:
        text: What was typed.
        kind: One of :data:`KINDS`.
        dtype: The element type of a tensor literal that does not begin with one.

    Raises:
        LiteralError: The text is no literal of this kind, or the value is out of range.
    """
    scanner = Scanner(text)
    if kind == "tensor":
        return scan_tensor(scanner, dtype)
    if kind not in _ELEMENTS:
        raise LiteralError(f"an attribute of kind {visible(kind)!r} cannot be typed as text")
    element = _ELEMENTS[kind]
    value: LiteralValue
    if not kind.endswith("s"):
        value = scan_one(scanner, element)
    elif scanner.peek() == "[":
        value = scan_list(scanner, element)
    else:
        value = scan_bare_list(scanner, element)
    scanner.end()
    return value


def infer_kind(text: str) -> str:
    """Return the kind that a literal has by its own look, for an attribute of unknown kind.

    Raises:
        LiteralError: The text fits no kind, or is an empty list, which fits several.
    """
    scanner = Scanner(text)
    is_list = scanner.take("[")
    if is_list and scanner.take("]"):
        raise LiteralError("an empty list could be of several kinds; choose one")
    errors: list[LiteralError] = []
    for kind in ("ints", "floats", "strings") if is_list else ("int", "float", "string", "tensor"):
        try:
            parse_literal(text, kind)
        except LiteralRangeError:
            raise
        except LiteralError as error:
            errors.append(error)
        else:
            return kind
    raise max(reversed(errors), key=lambda error: error.column)


def split_list(text: str) -> list[str]:
    """Split a text at commas that are in no brackets and no quotes; without blanks and empty ends.

    Raises:
        LiteralError: A bracket or a string is not closed.
    """
    scanner, depth, parts, start = Scanner(text), 0, list[str](), 0
    opened = 0
    while scanner.position < len(text):
        char = text[scanner.position]
        if char in _RUNS:
            scan_string(scanner)
            continue
        if char == "[":
            opened = opened if depth else scanner.position
            depth += 1
        elif char == "]":
            depth = max(0, depth - 1)
        elif char == "," and not depth:
            parts.append(text[start : scanner.position])
            start = scanner.position + 1
        scanner.position += 1
    if depth:
        raise scanner.error("this list is not closed", opened)
    return [part.strip() for part in (*parts, text[start:]) if part.strip()]


def format_literal(value: Any, kind: str) -> str:
    """Return the literal of a value, on one line and without any control character.

    Args:
        value: An int, a float, bytes or str, a sequence of these, or a numpy array.
        kind: One of :data:`KINDS`.

    Raises:
        LiteralError: This kind has no literal, or the tensor is too large for one.
    """
    if kind == "tensor":
        return format_tensor(value)
    if kind not in _PRINTERS:
        raise LiteralError(f"an attribute of kind {visible(kind)!r} has no literal")
    printer = _PRINTERS[kind]
    if kind.endswith("s"):
        return "[" + ", ".join(printer(item) for item in value) + "]"
    return printer(value)


def escaped(text: str) -> str:
    r"""Return one line of text as a terminal can show it, with escapes such as ``\x1b``."""
    return format_literal(text.encode("utf-8", "surrogateescape"), "string")[1:-1]


def unescaped(text: str) -> str:
    """Return what :func:`escaped` was given.

    Raises:
        UsageError: An escape is malformed.
    """
    try:
        value = parse_literal(f"'{text}'", "string")
    except UsageError as error:
        raise UsageError(error.message, hint="Write \\\\ for a backslash") from None
    assert isinstance(value, bytes)
    return value.decode("utf-8", "surrogateescape")


_ELEMENTS: dict[str, Callable[[Scanner], Any]] = {
    "int": scan_int64,
    "ints": scan_int64,
    "float": scan_float32,
    "floats": scan_float32,
    "string": scan_string,
    "strings": scan_string,
}

_PRINTERS: dict[str, Callable[[Any], str]] = {
    "int": lambda value: str(int(value)),
    "ints": lambda value: str(int(value)),
    "float": format_float,
    "floats": format_float,
    "string": format_string,
    "strings": format_string,
}


LISTS = {"ints": "int", "floats": "float", "strings": "string"}
"""The kinds of attributes that are lists, and the kind of one item."""
_BETWEEN = re.compile(r"[\s,;]+")


def list_lines(value: LiteralValue, kind: str) -> str:
    """Return the values of a list, one a line."""
    assert isinstance(value, list)
    return "\n".join(format_literal(item, LISTS[kind]) for item in value)


def lines_literal(text: str, kind: str) -> str:
    """Return the literal of the list that lines of text describe.

    Raises:
        UsageError: A line has no value of this kind; says which.
    """
    item_kind = LISTS[kind]
    items: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        for word in _words(line, item_kind):
            try:
                items.append(format_literal(parse_literal(word, item_kind), item_kind))
            except UsageError as error:
                raise UsageError(f"line {number}: {error.message}") from None
    return f"[{', '.join(items)}]"


def _words(line: str, kind: str) -> list[str]:
    stripped = line.strip()
    if kind != "string":
        return [word for word in _BETWEEN.split(stripped.strip("[](),; \t")) if word]
    if not stripped:
        return []
    if stripped[0] in "'\"":
        return [stripped.rstrip(",").rstrip()]
    return [format_literal(line.encode("utf-8", "surrogateescape"), "string")]


__all__ = [
    "KINDS",
    "LiteralError",
    "LiteralRangeError",
    "LiteralValue",
    "format_literal",
    "infer_kind",
    "parse_literal",
]
