"""Expressions of conditions and computed constants, and the functions that they call.

::

    group > 1 and out.shape[1] % 8 != 0        x is constant and x.rank = 2
    strides contains 2                         not has dilations
    compose(p, q) = [0, 1, 2]                  sqrt(variance.value + epsilon)

What is not known stays unknown: a comparison with it is neither true nor false, so that no node is
listed, and nothing is rewritten, because of it. A condition compares a list with a number as the
filter of nodes does: ``strides > 1`` when any of them is, ``strides = 1`` when all are.
"""

from __future__ import annotations

import math
import operator
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import UsageError
from dld_tui.core.model.operators.attribute_words import Coded
from dld_tui.core.text import clip, visible

MOST_ELEMENTS = 1 << 26
"""Of a tensor that an expression makes."""
_MOST_AXES = 64

TYPED = frozenset(("shape", "dtype", "rank", "split", "joined", "repeated", "sizes", "folded"))
"""Fields of a value that shape inference may have to find."""


class Unknown:
    """What the model does not say."""

    def __repr__(self) -> str:
        return "unknown"


UNKNOWN = Unknown()


@dataclass(frozen=True)
class Function:
    """A function by its usage, which shows its arguments: ``?`` marks optional ones."""

    usage: str
    help: str
    work: Callable[..., Any]
    takes_unknown: bool = False
    """Whether it is asked even where a value is not known."""

    @property
    def most(self) -> int:
        """The most values that it takes."""
        inner = self.usage[self.usage.index("(") + 1 : -1]
        return 100 if "…" in inner else inner.count(",") + 1

    @property
    def least(self) -> int:
        """The fewest values that it takes."""
        return 1 if "…" in self.usage else self.most - self.usage.count("?")


def is_number(value: Any) -> bool:
    """Return whether a value is one number."""
    return isinstance(value, (int, float, np.number))


def _numbers(value: Any) -> np.ndarray[Any, Any]:
    return np.asarray(value)


def _elementwise(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def work(value: Any) -> Any:
        with np.errstate(all="ignore"):
            result = function(_numbers(value))
        return result if isinstance(value, np.ndarray) else result.item()

    return work


def _close(first: Any, second: Any, tolerance: float = 1e-4) -> bool:
    a, b = _numbers(first).astype(float), _numbers(second).astype(float)
    return bool(np.all(np.abs(a - b) <= tolerance * np.maximum(np.abs(b), 1e-30)))


def _axes(axes: Any) -> list[int]:
    return [int(axis) for axis in np.atleast_1d(_numbers(axes))]


def _is_last(axes: Any, rank: Any) -> Any:
    """Return whether axes are the last ones; a rank that is not known is no trouble for -1."""
    chosen = _axes(axes)
    if all(axis < 0 for axis in chosen):
        return sorted(chosen) == list(range(-len(chosen), 0))
    return sorted(axis % rank for axis in chosen) == list(range(rank - len(chosen), rank))


def _compose(outer: list[int], inner: list[int]) -> list[int]:
    return [inner[axis] for axis in outer]


def _invert(order: list[int]) -> list[int]:
    return [order.index(axis) for axis in range(len(order))]


def _bounded(dims: Any) -> tuple[int, ...]:
    shape = tuple(int(dim) for dim in np.atleast_1d(_numbers(dims)))
    if math.prod(max(dim, 1) for dim in shape) > MOST_ELEMENTS:
        raise ValueError("too many elements")
    return shape


def _cast(value: Any, dtype: str) -> np.ndarray[Any, Any]:
    from dld_tui.core.model.tensors.value_types import dtype_number

    number = dtype_number(dtype)
    if not number:
        raise ValueError(dtype)
    from onnx import helper

    return _numbers(value).astype(helper.tensor_dtype_to_np_dtype(number))


def _dtype_name(number: int) -> str:
    from dld_tui.core.model.tensors.value_types import dtype_name

    return dtype_name(number)


def in_bounds(first: Any, second: Any) -> bool:
    """Return whether what two values give when they are broadcast is not too large."""
    shape = np.broadcast_shapes(np.shape(first), np.shape(second))
    return math.prod(shape) <= MOST_ELEMENTS


def _of_each_two(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda x, y: function(x, y) if in_bounds(x, y) else UNKNOWN


def _either(first: Any, second: Any) -> Any:
    return second if first is UNKNOWN or first is None else first


def _joined(*tensors: Any) -> Any:
    return np.concatenate([_numbers(tensor) for tensor in tensors], axis=-1)


def _half(tensor: Any) -> Any:
    return tensor[..., : tensor.shape[-1] // 2]


def _repeats(tensor: Any) -> bool:
    size = tensor.shape[-1] // 2
    return bool(np.array_equal(tensor[..., :size], tensor[..., size:]))


def _quantized(x: Any, scale: Any) -> Any:
    return np.clip(np.rint(_numbers(x) / scale), -128, 127).astype(np.int8)


def _maxima(x: Any, axis: int) -> Any:
    """Return the largest sizes along an axis; never 0, so that they can divide."""
    others = tuple(other for other in range(x.ndim) if other != axis % x.ndim)
    peaks = np.abs(x).max(axis=others)
    return np.where(peaks == 0, np.ones_like(peaks), peaks)


def _sums(x: Any) -> Any:
    return x.reshape(x.shape[0], -1).sum(axis=1, dtype=np.float64).astype(x.dtype)


def _clamped(x: Any) -> Any:
    limits = np.iinfo(np.int32)
    return np.clip(_numbers(x), limits.min, limits.max).astype(np.int32)


def _known(x: Any) -> bool:
    return x is not UNKNOWN and x is not None


def _broadcast(first: Any, second: Any) -> Any:
    """Return the broadcast of two shapes; named dimensions are equal only to themselves."""
    longer, shorter = sorted((list(first), list(second)), key=len, reverse=True)
    shorter = [1] * (len(longer) - len(shorter)) + shorter
    result = []
    for long, short in zip(longer, shorter, strict=True):
        if long is UNKNOWN or short is UNKNOWN or (long != short and 1 not in (long, short)):
            return UNKNOWN
        result.append(short if long == 1 else long)
    return result


def _merged_axes(inner: Any, outer: Any) -> Any:
    """Return the axes that one Unsqueeze adds for two: the outer ones are of the last result."""
    first, last = _axes(inner), _axes(outer)
    if min([*first, *last]) < 0 or max([*first, *last]) > _MOST_AXES:
        return UNKNOWN
    rest = [
        axis for axis in range(len(first) + len(last) + max([*first, *last])) if axis not in last
    ]
    return sorted([*last, *(rest[axis] for axis in first)])


def _padded(pads: Any, more: Any) -> Any:
    """Return the pads of a Conv with those of a Pad before it: of spatial axes, none taken away."""
    spatial, batch = [int(pad) for pad in more], len(more) // 2
    first, last = spatial[2:batch], spatial[batch + 2 :]
    if any([*spatial[:2], *spatial[batch : batch + 2]]) or min([*first, *last]) < 0:
        return UNKNOWN
    zero = [0] * (len(spatial) - 4)
    return [int(a) + b for a, b in zip(pads or zero, [*first, *last], strict=True)]


def _grown(x: Any, axis: int, multiple: int) -> Any:
    """Return a tensor padded with zeros along an axis, up to a multiple of a size."""
    tensor = _numbers(x)
    pads = [(0, 0)] * tensor.ndim
    pads[axis] = (0, -tensor.shape[axis] % multiple)
    _bounded([size + after for size, (_, after) in zip(tensor.shape, pads, strict=True)])
    return np.pad(tensor, pads)


def _functions(*functions: Function) -> dict[str, Function]:
    return {function.usage.partition("(")[0]: function for function in functions}


FUNCTIONS = _functions(
    Function("len(list)", "how many items", len),
    Function("abs(x)", "without the sign", _elementwise(np.abs)),
    Function("sqrt(x)", "the square root", _elementwise(np.sqrt)),
    Function("exp(x)", "e to the power of x", _elementwise(np.exp)),
    Function("log(x)", "the natural logarithm", _elementwise(np.log)),
    Function("min(list)", "the smallest item", lambda x: _numbers(x).min().item()),
    Function("max(list)", "the largest item", lambda x: _numbers(x).max().item()),
    Function("sum(list)", "all items together", lambda x: _numbers(x).sum().item()),
    Function("prod(list)", "the product of the items", lambda x: _numbers(x).prod().item()),
    Function("close(a, b, tolerance?)", "equal within 1e-4 of b, or so much", _close),
    Function("is_last(axes, rank)", "whether axes are the last ones of a rank", _is_last),
    Function("compose(p, q)", "the order of axes of Transpose<p> after Transpose<q>", _compose),
    Function("invert(p)", "the order of axes that takes p back", _invert),
    Function("range(n)", "0 to n - 1", lambda n: list(range(*_bounded(n)))),
    Function("dtype(number)", "the name of an element type, as Cast has it in `to`", _dtype_name),
    Function("cast(x, dtype)", "x in another element type", _cast),
    Function("reshape(x, dims)", "x in another shape", lambda x, d: np.reshape(x, _bounded(d))),
    Function("leading(dims)", "a shape without its last dimension", lambda x: list(x)[:-1]),
    Function("batch(dims)", "a shape without its last two dimensions", lambda x: list(x)[:-2]),
    Function("transpose(x, order?)", "x with its axes in another order", np.transpose),
    Function("either(x, y)", "x, or y where x is not known", _either, takes_unknown=True),
    Function("known(x)", "whether the model says what x is", _known, takes_unknown=True),
    Function("clamped(x)", "x as int32, clamped to its range", _clamped),
    Function("larger(x, y)", "the larger one of each two elements", _of_each_two(np.maximum)),
    Function("smaller(x, y)", "the smaller one of each two elements", _of_each_two(np.minimum)),
    Function("zeros(x)", "a tensor of 0 like x", np.zeros_like),
    Function("broadcast(a, b)", "the broadcast of two shapes", _broadcast),
    Function("merged(a, b)", "axes of one Unsqueeze for Unsqueeze<b> after <a>", _merged_axes),
    Function("padded(pads, p)", "pads of a Conv with those of a Pad before it", _padded),
    Function("concat(x, …)", "tensors one behind the other in their last axis", _joined),
    Function("half(x)", "the first half of the last axis", _half),
    Function("repeats(x)", "whether the last axis is its first half twice", _repeats),
    Function("maxima(x, axis)", "the largest absolute values along an axis", _maxima),
    Function("sums(x)", "the sum of each item of the first axis", _sums),
    Function("quantized(x, scale)", "x / scale as int8", _quantized),
    Function("grown(x, axis, multiple)", "x with zeros behind it along an axis", _grown),
    Function("full(dims, x)", "a tensor of one number", lambda d, x: np.full(_bounded(d), x)),
)  # fmt: skip
"""By name."""


_SPACE = re.compile(r"(?:\s+|#[^\n]*)*")
_WORD = re.compile(r"[A-Za-z_]\w*")
_NUMBER = re.compile(r"(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?")
_STRING = re.compile(r"'(?:\\.|[^\\'])*'|\"(?:\\.|[^\\\"])*\"")
MOST_CHARACTERS = 200_000
MOST_DEPTH = 60
"""Of brackets in brackets."""


class Reader:
    """A text and the place up to which it was read. Comments begin with ``#``."""

    def __init__(self, text: str) -> None:
        if len(text) > MOST_CHARACTERS:
            raise UsageError(f"the text has more than {MOST_CHARACTERS:,} characters")
        self.text = text
        self.at = 0
        self._depth = 0

    def space(self) -> None:
        """Go on to the next character that says something."""
        match = _SPACE.match(self.text, self.at)
        if match is not None:
            self.at = match.end()

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Return the match of a pattern at this position, without consuming it."""
        self.space()
        return pattern.match(self.text, self.at)

    def sees(self, sign: str) -> bool:
        """Return whether a sign, or a whole word, comes next."""
        self.space()
        if not self.text.startswith(sign, self.at):
            return False
        following = self.text[self.at + len(sign) : self.at + len(sign) + 1]
        return not (sign[-1].isalnum() and (following.isalnum() or following == "_"))

    def take(self, sign: str) -> bool:
        """Take a sign, or a whole word, if it comes next."""
        if not self.sees(sign):
            return False
        self.at += len(sign)
        return True

    def expect(self, sign: str) -> None:
        """Take a sign.

        Raises:
            UsageError: Something else comes next.
        """
        if not self.take(sign):
            raise self.error(f"{sign!r} is expected")

    def word(self, label: str = "a name") -> str:
        """Take a word.

        Raises:
            UsageError: Something else comes next.
        """
        match = self.match(_WORD)
        if match is None:
            raise self.error(f"{label} is expected")
        self.at = match.end()
        return match.group()

    def number(self) -> int | float | None:
        """Take a number without a sign, if one comes next."""
        match = self.match(_NUMBER)
        if match is None:
            return None
        self.at = match.end()
        text = match.group()
        try:
            return int(text) if text.isdecimal() else float(text)
        except ValueError:  # thousands of digits
            raise self.error("this number is too long") from None

    def string(self) -> str | None:
        """Take a string in quotes, if one comes next."""
        match = self.match(_STRING)
        if match is None:
            return None
        self.at = match.end()
        return re.sub(r"\\(.)", r"\1", match.group()[1:-1])

    @property
    def is_done(self) -> bool:
        """Whether nothing is left."""
        self.space()
        return self.at >= len(self.text)

    def end(self) -> None:
        """Refuse anything that is left.

        Raises:
            UsageError: There is something.
        """
        if not self.is_done:
            raise self.error("this is not expected")

    @contextmanager
    def deeper(self) -> Iterator[None]:
        """Read what is in a bracket, or behind a sign that may follow itself."""
        self._depth += 1
        if self._depth > MOST_DEPTH:
            raise self.error(f"brackets are nested more than {MOST_DEPTH} deep")
        yield
        self._depth -= 1

    def error(self, message: str) -> UsageError:
        """Return an error that says where in the text it is."""
        self.space()
        line = self.text.count("\n", 0, self.at) + 1
        rest = self.text[self.at :].split("\n", 1)[0]
        place = f"before {clip(visible(rest), 30)!r}" if rest else "at the end"
        if line > 1:
            place = f"in line {line} {place}"
        return UsageError(f"{message} {place}")


Names: TypeAlias = "Callable[[str], Any]"
"""Returns the value of a name."""
Work: TypeAlias = "Callable[[Names], Any]"


class Subject(ABC):
    """What has fields: a node or a value."""

    @abstractmethod
    def field(self, name: str) -> Any:
        """Return a field, UNKNOWN where the model does not say."""


@dataclass(frozen=True)
class Expression:
    """An expression that was read."""

    text: str
    work: Work
    names: frozenset[str]
    """The names that it uses."""

    def value(self, names: Names) -> Any:
        """Work it out."""
        return self.work(names)

    def holds(self, names: Names) -> bool:
        """Return whether it is known to be true."""
        return truth(self.work(names)) is True


def truth(value: Any) -> Any:
    """Return True, False or UNKNOWN."""
    if value is UNKNOWN:
        return UNKNOWN
    if isinstance(value, np.ndarray):
        return bool(value.all())
    return bool(value)


_SIGNS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq, "!=": operator.ne, "<=": operator.le, ">=": operator.ge,
    "=": operator.eq, "<": operator.lt, ">": operator.gt,
}  # fmt: skip
_COMPARISON = re.compile(r"==|!=|<=|>=|=(?!>)|<|>|(?:contains|not\s+in|in|is)\b", re.IGNORECASE)
_PLAIN_WORD = re.compile(r"[A-Za-z_][\w.:/-]*(?=\s*(?:\)|\Z|=>|and\b|or\b|\n))", re.IGNORECASE)
_ARITHMETIC = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
    "//": operator.floordiv, "%": operator.mod,
}  # fmt: skip
_SUM, _TERM = re.compile(r"[+-]"), re.compile(r"//|[*/%]")
_CONSTANTS = {"true": True, "false": False, "none": None}


def read_expression(reader: Reader, known: Container[str] = ()) -> Expression:
    """Take an expression from a text.

    Args:
        reader: The text.
        known: Names that mean something. Another word to the right of ``=``, ``!=`` and
            ``contains`` is a string: ``mode = linear``.

    Raises:
        UsageError: It is none.
    """
    return _read(reader, known, _Parser.either)


def read_sum(reader: Reader, known: Container[str] = ()) -> Expression:
    """Take an expression without comparisons: ``>`` ends the list of attributes that it is in."""
    return _read(reader, known, _Parser.sum)


def _read(reader: Reader, known: Container[str], part: Callable[[_Parser], Work]) -> Expression:
    reader.space()
    start = reader.at
    parser = _Parser(reader, known)
    work = part(parser)
    return Expression(reader.text[start : reader.at].strip(), work, frozenset(parser.names))


class _Parser:
    def __init__(self, reader: Reader, known: Container[str]) -> None:
        self._reader = reader
        self._known = known
        self.names: set[str] = set()

    def either(self) -> Work:
        parts = [self._both()]
        while self._keyword("or"):
            parts.append(self._both())
        return parts[0] if len(parts) == 1 else _combined(parts, decides=True)

    def _both(self) -> Work:
        parts = [self._negated()]
        while self._keyword("and"):
            parts.append(self._negated())
        return parts[0] if len(parts) == 1 else _combined(parts, decides=False)

    def _keyword(self, word: str) -> bool:
        return self._reader.take(word) or self._reader.take(word.upper())

    def _negated(self) -> Work:
        if not self._keyword("not"):
            return self._comparison()
        with self._reader.deeper():
            inner = self._negated()

        def negated(names: Names) -> Any:
            value = truth(inner(names))
            return UNKNOWN if value is UNKNOWN else not value

        return negated

    def _comparison(self) -> Work:
        reader = self._reader
        left = self.sum()
        parts: list[Work] = []
        while (match := reader.match(_COMPARISON)) is not None:
            reader.at = match.end()
            sign = re.sub(r"\s+", " ", match.group().lower())
            if sign == "is":
                parts.append(self._is(left))
                break
            right = self._right(sign)
            parts.append(_compared(sign, left, right))
            left = right
        if not parts:
            return left
        return parts[0] if len(parts) == 1 else _combined(parts, decides=False)

    def _is(self, subject: Work) -> Work:
        negated = self._keyword("not")
        word = self._reader.word("what it is to be, such as constant,")

        def check(names: Names) -> Any:
            value = _field(subject(names), word)
            known = truth(value)
            return UNKNOWN if known is UNKNOWN else known is not negated

        return check

    def _right(self, sign: str) -> Work:
        """Return the right side of a comparison: a plain word may be a string."""
        reader = self._reader
        match = reader.match(_PLAIN_WORD) if sign in ("=", "==", "!=", "contains") else None
        if match is not None:
            word = match.group()
            first = re.split(r"[.:/-]", word, maxsplit=1)[0]
            if first not in self._known and first.lower() not in _CONSTANTS:
                reader.at = match.end()
                return lambda names: word
        return self.sum()

    def sum(self) -> Work:
        return self._chain(_SUM, self._term)

    def _term(self) -> Work:
        return self._chain(_TERM, self._signed)

    def _chain(self, signs: re.Pattern[str], part: Callable[[], Work]) -> Work:
        work = part()
        while (match := self._reader.match(signs)) is not None:
            self._reader.at = match.end()
            work = _calculated(_ARITHMETIC[match.group()], work, part())
        return work

    def _signed(self) -> Work:
        if self._reader.take("-"):
            with self._reader.deeper():
                inner = self._signed()
            return _calculated(operator.sub, lambda names: 0, inner)
        return self._with_fields(self._atom())

    def _with_fields(self, work: Work) -> Work:
        reader = self._reader
        while True:
            if reader.take("."):
                name = reader.word("a field")
                work = _of_field(work, name)
            elif reader.text[reader.at : reader.at + 1] == "[":
                reader.expect("[")
                place = self._nested("]")
                work = _of_item(work, place)
            else:
                return work

    def _nested(self, end: str) -> Work:
        with self._reader.deeper():
            work = self.either()
        self._reader.expect(end)
        return work

    def _list(self, end: str) -> list[Work]:
        items: list[Work] = []
        with self._reader.deeper():
            while not self._reader.take(end):
                items.append(self.either())
                if not self._reader.take(",") and not self._reader.sees(end):
                    raise self._reader.error(f"',' or {end!r} is expected")
        return items

    def _atom(self) -> Work:
        reader = self._reader
        if (number := reader.number()) is not None:
            return lambda names: number
        if (text := reader.string()) is not None:
            return lambda names: text
        if reader.take("("):
            return self._nested(")")
        if reader.take("["):
            items = self._list("]")
            return lambda names: [item(names) for item in items]
        if self._keyword("has"):
            reader.take("@")
            wanted = reader.word("an attribute")
            self.names.add("has")
            return lambda names: names("has")(wanted)
        as_attribute = reader.take("@")
        word = reader.word("a name, a number or a string")
        if not as_attribute and reader.text[reader.at : reader.at + 1] == "(":
            return self._call(word)
        if not as_attribute and word.lower() in _CONSTANTS:
            constant = _CONSTANTS[word.lower()]
            return lambda names: constant
        name = f"@{word}" if as_attribute else word
        self.names.add(name)
        return lambda names: names(name)

    def _call(self, word: str) -> Work:
        reader = self._reader
        function = FUNCTIONS.get(word)
        if function is None:
            known = ", ".join(sorted(FUNCTIONS))
            raise UsageError(f"there is no function {word!r:.40}", hint=f"Known: {known}")
        reader.expect("(")
        arguments = self._list(")")
        if not function.least <= len(arguments) <= function.most:
            raise reader.error(f"{word} takes another number of values: it is {function.usage}")

        def called(names: Names) -> Any:
            values = [plain(argument(names)) for argument in arguments]
            if any(value is UNKNOWN for value in values) and not function.takes_unknown:
                return UNKNOWN
            try:
                return function.work(*values)
            except (TypeError, ValueError, ArithmeticError, IndexError, AttributeError):
                return UNKNOWN

        return called


def _combined(parts: list[Work], *, decides: bool) -> Work:
    """Return ``or`` (a true part decides) or ``and`` (a false one does)."""

    def joined(names: Names) -> Any:
        result: Any = not decides
        for part in parts:
            value = truth(part(names))
            if value is decides:
                return decides
            if value is UNKNOWN:
                result = UNKNOWN
        return result

    return joined


def plain(value: Any) -> Any:
    """Return an operand for a calculation: the elements of a value, other operands unchanged."""
    return value.field("value") if isinstance(value, Subject) else value


def _field(value: Any, name: str) -> Any:
    if value is UNKNOWN or value is None:
        return UNKNOWN
    if isinstance(value, Subject):
        return value.field(name)
    raise UsageError(f"a {type(value).__name__} has no field {name!r:.40}")


def _of_field(work: Work, name: str) -> Work:
    return lambda names: _field(work(names), name)


def _of_item(work: Work, place: Work) -> Work:
    def item(names: Names) -> Any:
        value, at = work(names), place(names)
        if value is UNKNOWN or at is UNKNOWN or value is None:
            return UNKNOWN
        if not isinstance(value, (list, tuple, np.ndarray)) and not hasattr(value, "__getitem__"):
            return UNKNOWN
        if not isinstance(at, int) or isinstance(at, bool):
            return UNKNOWN
        try:
            element = value[at]
        except (IndexError, KeyError, TypeError):
            return UNKNOWN
        return element.item() if isinstance(element, np.generic) else element

    return item


def _calculated(function: Callable[[Any, Any], Any], left: Work, right: Work) -> Work:
    def calculated(names: Names) -> Any:
        first, second = plain(left(names)), plain(right(names))
        if isinstance(first, list) and isinstance(second, list) and function is operator.add:
            return first + second
        for value in (first, second):
            if not is_number(value) and not isinstance(value, np.ndarray):
                return UNKNOWN
        try:
            if not in_bounds(first, second):
                return UNKNOWN
            with np.errstate(all="ignore"):
                return function(first, second)
        except (ArithmeticError, ValueError, TypeError):
            return UNKNOWN

    return calculated


def _compared(sign: str, left: Work, right: Work) -> Work:
    def compared(names: Names) -> Any:
        first, second = left(names), right(names)
        if sign in ("=", "==", "!=") and isinstance(first, Subject) and isinstance(second, Subject):
            same = first.field("name") == second.field("name")
            return same is not (sign == "!=")
        return compare(sign, plain(first), plain(second))

    return compared


def compare(sign: str, value: Any, wanted: Any) -> Any:
    """Return True, False or UNKNOWN for one comparison of two plain values."""
    if value is UNKNOWN or wanted is UNKNOWN:
        return UNKNOWN
    if sign in ("in", "not in"):
        inside = contains(wanted, value)
        return UNKNOWN if inside is UNKNOWN else inside is not (sign == "not in")
    if sign == "contains":
        return contains(value, wanted)
    value, wanted = _listed(value), _listed(wanted)
    if sign == "!=":
        same = compare("=", value, wanted)
        return UNKNOWN if same is UNKNOWN else not same
    test = _SIGNS[sign]
    if isinstance(value, list) and not isinstance(wanted, list):
        results = [compare(sign, item, wanted) for item in value]
        is_equal = test is operator.eq
        return _of_all(results) if is_equal else _of_any(results)
    if test is operator.eq:
        return equal(value, wanted)
    if not is_number(value) or not is_number(wanted):
        return UNKNOWN if isinstance(value, str) or value is None else False
    return bool(test(value, wanted))


def _listed(value: Any) -> Any:
    """Return a tensor as lists, one of a single element as a number."""
    if not isinstance(value, np.ndarray):
        return value
    return value.tolist() if value.ndim else value.item()


def _of_all(results: list[Any]) -> Any:
    if not results or any(result is False for result in results):
        return False
    return UNKNOWN if UNKNOWN in results else True


def _of_any(results: list[Any]) -> Any:
    if any(result is True for result in results):
        return True
    return UNKNOWN if UNKNOWN in results else False


def equal(value: Any, wanted: Any) -> Any:
    """Return whether two plain values are the same; numbers as float32 has them."""
    if value is UNKNOWN or wanted is UNKNOWN:
        return UNKNOWN
    if isinstance(value, list) and isinstance(wanted, list):
        if len(value) != len(wanted):
            return False
        return not value or _of_all(list(map(equal, value, wanted)))
    if isinstance(value, str) and isinstance(wanted, str):
        return value == wanted
    if isinstance(value, Coded) and isinstance(wanted, str):
        return value.means(wanted)
    if isinstance(wanted, Coded) and isinstance(value, str):
        return wanted.means(value)
    if is_number(value) and is_number(wanted):
        return bool(value == wanted) or _same_float32(value, wanted)
    is_named = isinstance(value, str) or isinstance(wanted, str)
    if is_named and (is_number(value) or is_number(wanted)):
        return UNKNOWN  # a dimension that has a name may be of any size
    if value is None or wanted is None:
        return value is wanted
    return False


def _same_float32(value: Any, wanted: Any) -> bool:
    if isinstance(value, int) and isinstance(wanted, int):
        return False
    with np.errstate(all="ignore"):
        return bool(np.float32(value) == np.float32(wanted)) and math.isfinite(wanted)


def contains(value: Any, wanted: Any) -> Any:
    """Return whether a list has items, or a text another one, in any case."""
    if value is UNKNOWN or wanted is UNKNOWN:
        return UNKNOWN
    value = _listed(value)
    if isinstance(value, list):
        items = wanted if isinstance(wanted, list) else [wanted]
        return all(any(equal(item, wanted_item) is True for item in value) for wanted_item in items)
    return isinstance(value, str) and str(wanted).lower() in value.lower()
