"""Names of layers, nodes and reports in a list: cut last, and where they are equal."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from dld_tui.core.text import cell_width, clip, common_prefix

UNNAMED = "node_of_"
"""Prefix of the names that quantization gives to unnamed nodes, before that of their output."""


def disambiguated(names: Sequence[str], longer: Sequence[str]) -> list[str]:
    """Return names, or the longer ones of those that have the same name."""
    shown = [*names]
    while True:
        counts = Counter(shown)
        again = [at for at, name in enumerate(shown) if counts[name] > 1 and name != longer[at]]
        if not again:
            return shown
        for at in again:
            shown[at] = longer[at]


def cut_names(names: Sequence[str], cells: int) -> list[str]:
    """Cut visible names to at most `cells` cells: the part in which they differ stays.

    Names that fit stay. Different names stay different from 12 cells on; those that no part of so
    many cells tells apart get a number.
    """
    if all(len(name) <= cells and cell_width(name) <= cells for name in names):
        return [*names]
    shown: dict[str, str] = {}
    taken = set()
    alike: list[str] = []
    for name in dict.fromkeys(names):
        if len(name) <= cells and cell_width(name) <= cells:
            shown[name] = name
            taken.add(name)
        else:
            alike.append(name)
    groups = [alike]
    rest: list[str] = []
    while groups:
        group = groups.pop()
        front = len(common_prefix(group)) if len(group) > 1 else 0
        cut: dict[str, list[str]] = {}
        for name in group:
            cut.setdefault(_cut(name, front, cells), []).append(name)
        for text, same in cut.items():
            if len(same) == 1 and text not in taken:
                shown[same[0]] = text
                taken.add(text)
            elif len(same) == 1 or len(cut) == 1:
                rest += same
            else:
                groups.append(same)
    for name in rest:
        shown[name] = _other(name, cells, taken)
        taken.add(shown[name])
    return [shown[name] for name in names]


class ListedNames:
    """The visible names of a list, which are cut together at each width that is asked for.

    Args:
        names: All of them; not looked at while each fits.
        step: Widths are rounded down to multiples of it, where the room differs by row.
    """

    def __init__(self, names: Iterable[str], step: int = 1) -> None:
        self._names = names
        self._step = step
        self._cut: dict[int, dict[str, str]] = {}

    @cached_property
    def _known(self) -> list[str]:
        taken = list(islice(self._names, _MOST_TOGETHER + 1))
        return [] if len(taken) > _MOST_TOGETHER else list(dict.fromkeys(taken))

    def cut(self, name: str, cells: int, *, keep: str = "end") -> str:
        """Return a name in at most `cells` cells; of a very long list, cut alone."""
        if len(name) <= cells and cell_width(name) <= cells:
            return name
        if len(self._known) < 2:
            return clip(name, cells, keep=keep)
        width = max(cells - cells % self._step, min(cells, _DIFFERENT))
        if width not in self._cut:
            shown = cut_names(self._known, width)
            self._cut[width] = dict(zip(self._known, shown, strict=True))
        return self._cut[width].get(name) or clip(name, cells, keep=keep)


_MOST_TOGETHER = 2_000
_DIFFERENT = 12
"""Cells in which different names stay different."""


def _cut(name: str, front: int, cells: int) -> str:
    """Omit as much of `front` as needed, or all of it and the middle of the rest."""
    if front < 2:
        return clip(name, cells, keep="middle")
    if len(name) - cells < front:
        return clip(name, cells, keep="end")
    return "…" + clip(name[front:], cells - 1, keep="middle")


def _other(name: str, cells: int, taken: Collection[str]) -> str:
    for keep in ("end", "start", "middle"):
        text = clip(name, cells, keep=keep)
        if text not in taken:
            return text
    number = 2
    while cells > len(mark := f"…{number}"):
        text = clip(name, cells - len(mark)).removesuffix("…") + mark
        if text not in taken:
            return text
        number += 1
    return clip(name, cells)


_SEPARATORS = "/._:"
MOST_SHARE = 0.8
"""The share of the names in a list that must have the omitted prefix and suffix."""
_FEW = 5
"""A list of so few names has room for them."""
_LEAST = 13
"""The fewest characters to leave out."""
_LETTER = re.compile(r"[^\W\d_]")
"""What is left of a name has one: ``2`` of ``QuantizeLinear_2`` says nothing."""


class SharedEnds(NamedTuple):
    """The prefix and suffix that all names of a list have."""

    front: str = ""
    back: str = ""

    def without(self, name: str) -> str:
        """Return a name without them; one without both is unchanged."""
        if not (name.startswith(self.front) and name.endswith(self.back)):
            return name
        left = name[len(self.front) : len(name) - len(self.back)]
        return left if _LETTER.search(left) else name

    @property
    def gapped(self) -> str:
        """Both with a gap between them, for a title; empty when there are none."""
        return f"{self.front}…{self.back}" if self.front or self.back else ""


def shared_ends(names: Iterable[str], most: float = 1.0) -> SharedEnds:
    """Return the shared prefix and suffix of non-empty names, in whole parts.

    Two different names stay different without it.

    Args:
        names: The names.
        most: The share of them that must have it, more than a half; the others stay whole.
    """
    known = {*names} - {""}
    if len(known) <= _FEW:
        return SharedEnds()
    if most < 1:
        front, having = _middle(known, most)[0] + _SEPARATORS[0], set[str]()
        while len(having) < most * len(known):  # a shorter front, which more names have
            front = _front([front[:-1], *_middle(known, most)])
            having = {name for name in known if name.startswith(front)}
        ends, others = shared_ends(having), known - having
        return SharedEnds() if others & {*map(ends.without, having)} else ends
    front = _front(known)
    back = _front([name[len(front) :][::-1] for name in known])
    return SharedEnds(front, back[::-1])


def _middle(names: Iterable[str], most: float) -> tuple[str, str]:
    """Return two names that belong to every group of so large a share of the names."""
    ranked = sorted(names)
    others = int((1 - most) * len(ranked))
    return ranked[others], ranked[-1 - others]


def _front(names: Collection[str]) -> str:
    """Return the shared prefix of all names, in whole parts; empty where it is too short.

    Each name keeps a part with a letter.
    """
    front = common_prefix(names)
    while len(front := front[: max(map(front.rfind, _SEPARATORS)) + 1]) >= _LEAST:
        if all(_LETTER.search(name, len(front)) for name in names):
            return front
        front = front[:-1]
    return ""
