"""Sizes: numbers, polynomials over named dimensions, one number a candidate, or unknown."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias, overload

import numpy as np

from dld_tui.core import fmt
from dld_tui.core.model.tensors.value_types import dim_of

if TYPE_CHECKING:
    import onnx

Size: TypeAlias = Any
"""An int, a :class:`Polynomial`, :data:`UNKNOWN`, or a NumPy array with one int a candidate.

Elements of small tensors are sizes, too, or a float or bool in place of the int.
"""


class Unknown:
    """A size of which nothing is known; what is computed with it is not known either."""

    __slots__ = ()
    __array_ufunc__ = None

    def __repr__(self) -> str:
        return "UNKNOWN"

    def _same(self, _: object = None) -> Unknown:
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _same
    __floordiv__ = __rfloordiv__ = __truediv__ = __rtruediv__ = __mod__ = __rmod__ = _same
    __pow__ = __rpow__ = _same
    __neg__ = __abs__ = _same


UNKNOWN = Unknown()


class Atom(str):
    """The name of what is no polynomial of names, such as ``floor(N/2)``.

    Args:
        name: Its text, which is the same for the same function of the same sizes.
        function: Returns its value for those of the arguments.
        arguments: The sizes that it is a function of.
    """

    __slots__ = ("arguments", "function")

    function: Callable[..., Any]
    arguments: tuple[Size, ...]

    def __new__(cls, name: str, function: Callable[..., Any], arguments: tuple[Size, ...]) -> Atom:
        """Make a text with the function that it names."""
        atom = super().__new__(cls, name)
        atom.function, atom.arguments = function, arguments
        return atom


class Polynomial:
    """A sum of products of symbolic dimensions, such as ``3·N² + 1024·N·S``; never changed.

    Args:
        terms: The factor of each product of names, sorted; none is 0.
    """

    __slots__ = ("terms",)
    __array_ufunc__ = None

    def __init__(self, terms: Mapping[tuple[str, ...], int]) -> None:
        self.terms = terms

    @overload
    def __add__(self, other: Count) -> Count: ...
    @overload
    def __add__(self, other: Size) -> Size: ...

    def __add__(self, other: Size) -> Size:
        if not isinstance(other, (int, float, Polynomial)):
            return _mixed(other)
        return add_up((self, other))

    __radd__ = __add__

    def __neg__(self) -> Size:
        return self * -1

    def __sub__(self, other: Size) -> Size:
        return self + -1 * other

    def __rsub__(self, other: Size) -> Size:
        return -self + other

    @overload
    def __mul__(self, other: Count) -> Count: ...
    @overload
    def __mul__(self, other: Size) -> Size: ...

    def __mul__(self, other: Size) -> Size:
        if not isinstance(other, (int, float, Polynomial)):
            return _mixed(other)
        terms: dict[tuple[str, ...], int] = {}
        for names, factor in self.terms.items():
            for more, times in _terms(other).items():
                key = tuple(sorted((*names, *more)))
                terms[key] = terms.get(key, 0) + factor * times
        return _plain(terms)

    __rmul__ = __mul__

    def __floordiv__(self, other: Size) -> Size:
        return _floor_of_ratio(self, other)

    def __rfloordiv__(self, other: Size) -> Size:
        return _floor_of_ratio(other, self)

    def __mod__(self, other: Size) -> Size:
        return self - other * (self // other)

    def __truediv__(self, other: Size) -> Size:
        if isinstance(other, (int, float)) and other:
            return self * (1.0 / other)
        exact = _ratio(self, other)
        return UNKNOWN if exact is None else exact * 1.0

    def __rtruediv__(self, other: Size) -> Size:
        return UNKNOWN

    def __pow__(self, other: Size) -> Size:
        if isinstance(other, int) and 0 <= other <= 4:
            return math.prod([self] * other)
        return UNKNOWN

    def __rpow__(self, other: Size) -> Size:
        return UNKNOWN

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Polynomial) and self.terms == other.terms

    def __hash__(self) -> int:
        return hash(frozenset(self.terms.items()))

    def __repr__(self) -> str:
        return f"Polynomial({self})"

    def __str__(self) -> str:
        return self.text(str)

    @property
    def is_whole(self) -> bool:
        """Whether its factors are integers, so that it is no floating point number."""
        return all(isinstance(factor, int) for factor in self.terms.values())

    @property
    def names(self) -> set[str]:
        """The dimensions that it depends on, also in what is no polynomial. Untrusted text."""
        found: set[str] = set()
        for product_ in self.terms:
            for name in product_:
                if isinstance(name, Atom):
                    found.update(*(names_in(argument) for argument in name.arguments))
                else:
                    found.add(name)
        return found

    def text(self, number: Callable[[int], str], most: int | None = None) -> str:
        """Return it for people, highest powers first. Untrusted text: names are of the model.

        Args:
            number: Returns the text of a factor.
            most: How many terms to write; of more, only their number is given. None for all.
        """
        ordered = sorted(self.terms.items(), key=lambda term: (-len(term[0]), term[0]))
        if most is not None and len(ordered) > most:
            ordered, more = ordered[:most], f" + {fmt.plural(len(ordered) - most, 'more term')}"
        else:
            more = ""
        return " + ".join(_product(names, factor, number) for names, factor in ordered) + more

    def at(self, size: int) -> int:
        """Return its value with all dimensions of one size."""
        return int(self.value(lambda _: size))

    def value(self, size: Callable[[str], Any]) -> Any:
        """Return its value.

        Args:
            size: Returns the size of a dimension by its name: a number or a polynomial.
        """
        total: Any = 0
        for names, factor in self.terms.items():
            part: Any = factor
            for name in names:
                if isinstance(name, Atom):
                    part = part * name.function(*(value_at(a, size) for a in name.arguments))
                else:
                    part = part * size(name)
            total = total + part
        return total


Count: TypeAlias = "int | Polynomial"

_POWERS = {1: "", 2: "²", 3: "³"}


def _mixed(other: object) -> Size:
    """Return what is computed of a polynomial and of something else: candidates, unknown."""
    return UNKNOWN if isinstance(other, (Unknown, np.ndarray)) else NotImplemented


def _product(names: tuple[str, ...], factor: int, number: Callable[[int], str]) -> str:
    parts = [] if factor == 1 and names else [number(factor)]
    for name in dict.fromkeys(names):
        power = names.count(name)
        plain = name if name.isidentifier() or isinstance(name, Atom) else f"({name})"
        parts.append(plain + _POWERS.get(power, f"^{power}"))
    return "·".join(parts)


def _terms(count: Size) -> Mapping[tuple[str, ...], int]:
    return count.terms if isinstance(count, Polynomial) else {(): count}


def _plain(terms: dict[tuple[str, ...], int]) -> Count:
    kept = {names: factor for names, factor in terms.items() if factor}
    return Polynomial(kept) if any(kept) else kept.get((), 0)


def add_up(counts: Iterable[Size]) -> Count:
    """Return the sum of counts; fast for many."""
    plain = 0
    terms: dict[tuple[str, ...], int] = {}
    for count in counts:
        if isinstance(count, Polynomial):
            for names, factor in count.terms.items():
                terms[names] = terms.get(names, 0) + factor
        else:
            plain += count
    if not terms:
        return plain
    terms[()] = terms.get((), 0) + plain
    return _plain(terms)


def symbol(name: str) -> Polynomial:
    """Return a dimension of which only the name is known. Untrusted text."""
    return Polynomial({(name,): 1})


@overload
def size_at(count: Count, size: int) -> int: ...
@overload
def size_at(count: None, size: int) -> None: ...


def size_at(count: Count | None, size: int) -> int | None:
    """Return a count with all its symbolic dimensions of one size, for sorting."""
    return count.at(size) if isinstance(count, Polynomial) else count


def size_of(dim: onnx.TensorShapeProto.Dimension | int | str | None) -> Size:
    """Return the size of a dimension, as a file or a value type declares it.

    A negative size and an empty name are unknown, as onnx and ONNX Runtime take them; 0 is 0.
    """
    if dim is not None and not isinstance(dim, (int, str)):
        dim = dim_of(dim)
    if isinstance(dim, int):
        return dim if dim >= 0 else UNKNOWN
    return symbol(dim) if dim else UNKNOWN


def name_of(size: Size) -> str | None:
    """Return the name of a size that has one alone; None for any other. Untrusted text."""
    if not isinstance(size, Polynomial) or len(size.terms) != 1:
        return None
    ((names, factor),) = size.terms.items()
    return names[0] if len(names) == 1 and factor == 1 else None


def names_in(size: Size) -> set[str]:
    """Return the names of the dimensions that a size depends on. Untrusted text."""
    return size.names if isinstance(size, Polynomial) else set()


def value_at(size: Size, sizes: Callable[[str], Any]) -> Any:
    """Return a size with those of its dimensions."""
    return size.value(sizes) if isinstance(size, Polynomial) else size


def product(sizes: Iterable[Size]) -> Size:
    """Return the product of sizes; one that is 0 makes it 0."""
    total: Size = 1
    for size in sizes:
        if size is UNKNOWN:
            total = UNKNOWN
        elif isinstance(size, int) and size == 0:
            return 0
        else:
            total = total * size
    return total


def plain(size: Size) -> Size:
    """Return Python's number for one of NumPy, so that it counts as the same for all."""
    return size.item() if isinstance(size, np.generic) else size


def common(size: Size) -> Size:
    """Return the number that all candidates have, or UNKNOWN; other sizes as they are."""
    if isinstance(size, np.ndarray):
        return size[0].item() if size.size and (size == size[0]).all() else UNKNOWN
    return size


def number_of(size: Size) -> Any:
    """Return a plain number, the same for all candidates; None for any other size."""
    size = common(size)
    return size if isinstance(size, (int, float)) else None


def _sign(size: Polynomial) -> tuple[bool, bool]:
    """Return whether a size cannot be negative, and cannot be positive: names are 0 or more."""
    factors = size.terms.values()
    is_free = not any(isinstance(name, Atom) for names in size.terms for name in names)
    return is_free and all(f >= 0 for f in factors), is_free and all(f <= 0 for f in factors)


def equal(first: Size, second: Size) -> Any:
    """Return whether two sizes are equal."""
    if first is UNKNOWN or second is UNKNOWN:
        return None
    if not isinstance(first, Polynomial) and not isinstance(second, Polynomial):
        return first == second
    rest = first - second
    if rest is UNKNOWN:
        return None
    if not isinstance(rest, Polynomial):
        return rest == 0
    constant = rest.terms.get((), 0)
    above, below = _sign(rest)
    return False if (above and constant > 0) or (below and constant < 0) else None


def at_least(first: Size, second: Size) -> Any:
    """Return whether a size is as large as another, or larger."""
    if first is UNKNOWN or second is UNKNOWN:
        return None
    if not isinstance(first, Polynomial) and not isinstance(second, Polynomial):
        return first >= second
    rest = first - second
    if rest is UNKNOWN:
        return None
    if not isinstance(rest, Polynomial):
        return rest >= 0
    above, below = _sign(rest)
    if above:
        return True
    return False if below and rest.terms.get((), 0) < 0 else None


def both(first: Any, second: Any) -> Any:
    """Return whether two comparisons hold."""
    if first is None or second is None:
        return False if first is False or second is False else None
    return first & second


def either(first: Any, second: Any) -> Any:
    """Return whether one of two comparisons holds."""
    if first is None or second is None:
        return True if first is True or second is True else None
    return first | second


def chosen(condition: Any, first: Size, second: Size) -> Size:
    """Return one of two sizes: the first one where a condition holds."""
    if isinstance(condition, (bool, np.bool_)):
        return first if condition else second
    if condition is None or condition is UNKNOWN:
        return first if equal(first, second) is True else UNKNOWN
    if first is UNKNOWN or second is UNKNOWN:
        return UNKNOWN
    if isinstance(condition, Polynomial) or isinstance(first, Polynomial) or (
        isinstance(second, Polynomial)
    ):  # fmt: skip
        return UNKNOWN
    return plain(np.asarray(np.where(condition, first, second))[()])


def _largest(*sizes: Any) -> Any:
    return plain(np.maximum.reduce(sizes))


def _least(*sizes: Any) -> Any:
    return plain(np.minimum.reduce(sizes))


def maximum(first: Size, second: Size) -> Size:
    """Return the greater one of two sizes."""
    order = at_least(first, second)
    if order is None:
        if first is UNKNOWN or second is UNKNOWN:
            return UNKNOWN
        return _atom("max", (first, second), _largest)
    return chosen(order, first, second)


_ENDLESS = 2**31 - 1
"""Ends of slices from there on stand for the end, whatever the size is."""


def minimum(first: Size, second: Size) -> Size:
    """Return the smaller one of two sizes; every size is smaller than an end without a limit."""
    for size, other in ((first, second), (second, first)):
        if isinstance(size, int) and size >= _ENDLESS and isinstance(other, Polynomial):
            return other
    order = at_least(second, first)
    if order is None:
        if first is UNKNOWN or second is UNKNOWN:
            return UNKNOWN
        return _atom("min", (first, second), _least)
    return chosen(order, first, second)


def _atom(name: str, sizes: tuple[Size, ...], function: Callable[..., Any]) -> Size:
    if any(isinstance(size, np.ndarray) for size in sizes):
        return UNKNOWN
    if name in ("max", "min"):
        sizes = tuple(sorted(sizes, key=str))
    texts = [f"({size})" if getattr(size, "terms", ()) and len(size.terms) > 1 else str(size)
             for size in sizes]  # fmt: skip
    text = f"{name}({('/' if name == 'floor' else ', ').join(texts)})"
    return UNKNOWN if len(text) > _LONGEST else Polynomial({(Atom(text, function, sizes),): 1})


_LONGEST = 400
"""Characters of a function of sizes that is followed further."""


def _ratio(above: Count, below: Count) -> Count | None:
    """Return the exact quotient of two polynomials with integer factors; None if there is none."""
    rest = dict(_terms(above))
    divisor = _terms(below)
    if not divisor or not any(divisor.values()):
        return None
    lead = max(divisor, key=_order)
    quotient: dict[tuple[str, ...], int] = {}
    for _ in range(64):
        rest = {names: factor for names, factor in rest.items() if factor}
        if not rest:
            return _plain(quotient)
        top = max(rest, key=_order)
        names = _without(top, lead)
        if names is None or rest[top] % divisor[lead]:
            return None
        factor = rest[top] // divisor[lead]
        quotient[names] = quotient.get(names, 0) + factor
        for more, times in divisor.items():
            key = tuple(sorted((*names, *more)))
            rest[key] = rest.get(key, 0) - factor * times
    return None


def _order(names: tuple[str, ...]) -> tuple[int, tuple[str, ...]]:
    return len(names), names


def _without(names: tuple[str, ...], taken: tuple[str, ...]) -> tuple[str, ...] | None:
    left = list(names)
    for name in taken:
        if name not in left:
            return None
        left.remove(name)
    return tuple(left)


def _floor_of_ratio(above: Size, below: Size) -> Size:
    """Return a quotient, rounded down: what is divisible is a polynomial."""
    if not isinstance(above, (int, Polynomial)) or not isinstance(below, (int, Polynomial)):
        return UNKNOWN
    if isinstance(below, int) and below == 0:
        raise ZeroDivisionError
    exact = _ratio(above, below)
    if exact is not None:
        return exact
    whole: Count = 0
    if isinstance(below, int) and isinstance(above, Polynomial):
        split = {names: divmod(factor, below) for names, factor in above.terms.items()}
        whole = _plain({names: times for names, (times, _) in split.items()})
        above = _plain({names: rest for names, (_, rest) in split.items()})
        if isinstance(above, int):
            return whole + above // below
        divisor = math.gcd(below, *above.terms.values())
        if divisor > 1:  # floor(2·N/4)
            above = _plain({names: rest // divisor for names, rest in above.terms.items()})
            below //= divisor
    return whole + _atom("floor", (above, below), _floored)


def _floored(above: Any, below: Any) -> Any:
    return above // below


def truncated(first: Size, second: Size) -> Size:
    """Return a quotient of integers, rounded towards 0, as Div does."""
    if isinstance(first, Polynomial) or isinstance(second, Polynomial):
        return _floor_of_ratio(first, second)
    if not isinstance(second, np.ndarray) and second == 0:
        return UNKNOWN
    return plain(np.sign(first) * np.sign(second) * (abs(first) // np.maximum(abs(second), 1)))


def rounded(size: Size, how: str) -> Size:
    """Return a floating point number of sizes as an integer: ``Floor``, ``Ceil`` or ``Trunc``."""
    if not isinstance(size, Polynomial):
        return UNKNOWN
    if size.is_whole:
        return size
    exact = {names: Fraction(factor).limit_denominator(1 << 16)
             for names, factor in size.terms.items()}  # fmt: skip
    if any(abs(float(exact[names]) - factor) > 1e-12 for names, factor in size.terms.items()):
        return UNKNOWN
    below = math.lcm(*(factor.denominator for factor in exact.values()))
    above = _plain({names: int(factor * below) for names, factor in exact.items()})
    if how == "Ceil":
        return -_floor_of_ratio(-1 * above, below)
    return _floor_of_ratio(above, below)


def sizes_text(sizes: Sequence[Size] | None) -> str:
    """Return sizes as people write them. Untrusted text."""
    if sizes is None:
        return "–"
    return "[" + ", ".join("?" if size is UNKNOWN else str(common(size)) for size in sizes) + "]"


_SHOWN_TERMS = 3
"""Of a count, at most: more are hard to read."""


def byte_count(elements: Count, bits: int) -> Count:
    """Return the bytes of elements with this many bits; symbolic counts are rounded up by term."""
    if isinstance(elements, Polynomial):
        return Polynomial({n: math.ceil(factor * bits / 8) for n, factor in elements.terms.items()})
    return (elements * bits + 7) // 8


def count_text(count: Count) -> str:
    """Return a count for people, in three digits. Untrusted text where it is symbolic."""
    if isinstance(count, Polynomial):
        return count.text(fmt.short_count, _SHOWN_TERMS)
    return fmt.short_count(count)


def size_text(count: Count) -> str:
    """Return bytes for people. Untrusted text where they are symbolic."""
    if isinstance(count, Polynomial):
        text = count.text(fmt.short_count, _SHOWN_TERMS)
        return f"({text}) B" if len(count.terms) > 1 else f"{text} B"
    return fmt.size(count)
