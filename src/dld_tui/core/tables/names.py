"""Shared prefixes and suffixes of the names in a list, and short names of dimensions."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

from dld_tui.core.text import visible

if TYPE_CHECKING:
    from dld_tui.core.document.types.value_types import ValueType

_SEPARATORS = "/._:"
MOST_SHARE = 0.8
"""The share of the names in a list that must have the omitted prefix and suffix."""
_LEAST = 3
"""The fewest characters to leave out."""


class SharedEnds(NamedTuple):
    """The prefix and suffix that all names of a list have."""

    front: str = ""
    back: str = ""

    def without(self, name: str) -> str:
        """Return a name without them; one without both is unchanged."""
        mark, bare, more = _parts(name)
        if not (bare.startswith(self.front) and bare.endswith(self.back)):
            return name
        return mark + (bare[len(self.front) : len(bare) - len(self.back)] or bare) + more

    @property
    def gapped(self) -> str:
        """Both with a gap between them, for a title; empty when there are none."""
        return f"{self.front}…{self.back}" if self.front or self.back else ""


_PARTS = re.compile(r"(~?)(.*?)((?:  \+\d+)?)", re.DOTALL)


def _parts(name: str) -> tuple[str, str, str]:
    """Return the mark of a guess, the bare name, and the number of further names."""
    match = _PARTS.fullmatch(name)
    assert match is not None  # each part may be empty
    return match[1], match[2], match[3]


def shared_ends(names: Iterable[str], most: float = 1.0) -> SharedEnds:
    """Return the shared prefix and suffix of non-empty names, in whole parts.

    Two different names stay different without it.

    Args:
        names: As they are shown: with a ``~`` before those that are a guess, and ``+N`` behind.
        most: The share of them that must have it, more than a half; the others stay whole.
    """
    known = {bare for name in names if (bare := _parts(name)[1])}
    if len(known) < 2:
        return SharedEnds()
    if most < 1:
        front, having = _middle(known, most)[0] + _SEPARATORS[0], set[str]()
        while len(having) < most * len(known):  # a shorter front, which more names have
            front = _front([front[:-1], *_middle(known, most)])
            having = {name for name in known if name.startswith(front)}
        ends, others = shared_ends(having), known - having
        return SharedEnds() if others & {*map(ends.without, having)} else ends
    front = _front(known)
    rest = [name[len(front) :][::-1] for name in known]
    back = _common(rest)
    back = back[: max(map(back.rfind, _SEPARATORS)) + 1]
    if len(back) < _LEAST or any(len(name) <= len(back) for name in rest):
        back = ""
    return SharedEnds(front, back[::-1])


def _middle(names: Iterable[str], most: float) -> tuple[str, str]:
    """Return two names that belong to every group of so large a share of the names."""
    ranked = sorted(names)
    others = int((1 - most) * len(ranked))
    return ranked[others], ranked[-1 - others]


def _front(names: Collection[str]) -> str:
    """Return the shared prefix of all names, in whole parts; empty where it is too short."""
    front = _common(names)
    front = front[: max(map(front.rfind, _SEPARATORS)) + 1]
    return front if len(front) >= _LEAST else ""


def _common(texts: Collection[str]) -> str:
    low, high = min(texts), max(texts)  # what these begin with all begin with
    for at, (first, second) in enumerate(zip(low, high, strict=False)):
        if first != second:
            return low[:at]
    return low


_LONGEST_DIMENSION = 4
"""The longest name of a dimension that needs no alias."""
_LEAST_COMMON = 6
"""The longest shared prefix of names in a legend that is repeated."""
_UNKNOWN = re.compile(r"unk__\d+")
"""Names that shape inference gives to unknown dimensions."""
_WORD = re.compile(r"[A-Za-z_][\w.]*")


def dimension_aliases(names: Iterable[str]) -> dict[str, str]:
    """Return short names of dimensions with long ones: ``S`` for ``sequence_length``.

    Names of one letter, with a number where letters are taken; sums such as ``past + 1`` have the
    aliases of what is in them.
    """
    words = dict.fromkeys(word for name in names for word in _WORD.findall(name))
    taken = {word for word in words if len(word) <= _LONGEST_DIMENSION}
    aliases: dict[str, str] = {}
    for word in words:
        if len(word) <= _LONGEST_DIMENSION:
            continue
        letter = next(iter(word.lstrip("_")), "D").upper()
        numbers = (f"{letter}{number}" if number > 1 else letter for number in range(1, 1000))
        alias = next((number for number in numbers if number not in taken), word)
        taken.add(alias)
        aliases[word] = alias
    return aliases


class _Typed(Protocol):
    """A scope."""

    @property
    def inputs(self) -> Iterable[str]: ...

    @property
    def outputs(self) -> Iterable[str]: ...

    def value_type(self, name: str) -> ValueType | None: ...


def aliases_in(scope: _Typed) -> dict[str, str]:
    """Return the short names of the long dimensions of a graph's inputs and outputs.

    Both are foreign text.
    """
    known = (scope.value_type(name) for name in (*scope.inputs, *scope.outputs))
    dims = (dim for value_type in known if value_type is not None for dim in value_type.dims or ())
    return dimension_aliases(dim for dim in dims if isinstance(dim, str))


def alias_legend(aliases: Mapping[str, str]) -> str:
    """Return the legend of aliases, as ``B batch  S sequence``; fit for a terminal.

    A long prefix shared with the name before, up to a separator, is abbreviated.
    """
    parts, before = [], ""
    for name, alias in aliases.items():
        common = _common((before, name))
        cut = 1 + max(map(common.rfind, "._/"))
        rest = f"…{name[cut:]}" if cut > _LEAST_COMMON else name
        parts.append(f"{alias} {rest}")
        before = name
    return visible("  ".join(parts))


def with_aliases(shape: str, aliases: Mapping[str, str]) -> str:
    """Return the text of a type with aliases of its dimensions, and ``?`` for unknown ones."""
    start = shape.find("[")
    if start < 0:
        return shape

    def alias(match: re.Match[str]) -> str:
        word = match[0]
        return "?" if _UNKNOWN.fullmatch(word) else aliases.get(word, word)

    return shape[:start] + _WORD.sub(alias, shape[start:])
