"""Counts that may depend on dimensions without a number: sums of products of their names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import ceil
from typing import TypeAlias, overload

from dld_tui.core import fmt


class Polynomial:
    """A sum of products of symbolic dimensions, such as ``3·N² + 1024·N·S``; never changed.

    Args:
        terms: The factor of each product of names, sorted; none is 0.
    """

    __slots__ = ("terms",)

    def __init__(self, terms: Mapping[tuple[str, ...], int]) -> None:
        self.terms = terms

    def __add__(self, other: Count) -> Count:
        return add_up((self, other))

    __radd__ = __add__

    def __mul__(self, other: Count) -> Count:
        terms: dict[tuple[str, ...], int] = {}
        for names, factor in self.terms.items():
            for more, times in _terms(other).items():
                key = tuple(sorted((*names, *more)))
                terms[key] = terms.get(key, 0) + factor * times
        return _plain(terms)

    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Polynomial) and self.terms == other.terms

    def __hash__(self) -> int:
        return hash(frozenset(self.terms.items()))

    def __repr__(self) -> str:
        return f"Polynomial({self})"

    def __str__(self) -> str:
        return self.text(str)

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
        return sum(factor * size ** len(names) for names, factor in self.terms.items())


Count: TypeAlias = "int | Polynomial"

_MOST_TERMS = 3
"""More are hard to read."""
_POWERS = {1: "", 2: "²", 3: "³"}


def _product(names: tuple[str, ...], factor: int, number: Callable[[int], str]) -> str:
    parts = [] if factor == 1 and names else [number(factor)]
    for name in dict.fromkeys(names):
        power = names.count(name)
        plain = name if name.isidentifier() else f"({name})"
        parts.append(plain + _POWERS.get(power, f"^{power}"))
    return "·".join(parts)


def _terms(count: Count) -> Mapping[tuple[str, ...], int]:
    return count.terms if isinstance(count, Polynomial) else {(): count}


def _plain(terms: dict[tuple[str, ...], int]) -> Count:
    kept = {names: factor for names, factor in terms.items() if factor}
    return Polynomial(kept) if any(kept) else kept.get((), 0)


def add_up(counts: Iterable[Count]) -> Count:
    """Return the sum of counts; fast for many."""
    plain = 0
    terms: dict[tuple[str, ...], int] = {}
    for count in counts:
        if isinstance(count, int):
            plain += count
        else:
            for names, factor in count.terms.items():
                terms[names] = terms.get(names, 0) + factor
    terms[()] = terms.get((), 0) + plain
    return _plain(terms) if len(terms) > 1 else plain


def symbol(name: str) -> Polynomial:
    """Return a dimension of which only the name is known. Untrusted text."""
    return Polynomial({(name,): 1})


def byte_count(elements: Count, bits: int) -> Count:
    """Return the bytes of elements with this many bits; symbolic counts are rounded up by term."""
    if isinstance(elements, Polynomial):
        return Polynomial({n: ceil(factor * bits / 8) for n, factor in elements.terms.items()})
    return (elements * bits + 7) // 8


@overload
def size_at(count: Count, size: int) -> int: ...
@overload
def size_at(count: None, size: int) -> None: ...


def size_at(count: Count | None, size: int) -> int | None:
    """Return a count with all its symbolic dimensions of one size, for sorting."""
    return count.at(size) if isinstance(count, Polynomial) else count


def count_text(count: Count) -> str:
    """Return a count for people, in three digits. Untrusted text where it is symbolic."""
    if isinstance(count, Polynomial):
        return count.text(fmt.short_count, _MOST_TERMS)
    return fmt.short_count(count)


def size_text(count: Count) -> str:
    """Return bytes for people. Untrusted text where they are symbolic."""
    if isinstance(count, Polynomial):
        text = count.text(fmt.short_count, _MOST_TERMS)
        return f"({text}) B" if len(count.terms) > 1 else f"{text} B"
    return fmt.size(count)
