"""Choosing a value by fuzzy search among all that are visible in a scope."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from itertools import islice

from dld_tui.core import fmt
from dld_tui.core.document.scope import Definition, Scope
from dld_tui.core.document.values import ValueType
from dld_tui.core.document.visible import visible_values
from dld_tui.core.fuzzy import FuzzyIndex
from dld_tui.core.text import fit, visible
from dld_tui.widgets import glyphs
from dld_tui.widgets.line_source import Piece
from dld_tui.widgets.operator_style import operator_style
from dld_tui.widgets.search_dialog import CollectingDialog

Wanted = Callable[["ValueType | None"], "str | None"]
"""Returns why a value of a type does not fit, or None when it does."""

_AT_ONCE = 1000
"""Values that are there when the dialog opens."""
_SORTED_BY_FIT = 100
"""Rows at the top among which those that fit stand first."""
_LEAVE_EMPTY: tuple[str, Definition | None] = ("", None)


class ValuePicker(CollectingDialog[str]):
    """Gives the name of the chosen value, ``""`` for the row `empty_label`, or None.

    Values are collected in slices between key presses, so that a model with 50,000 of them opens
    the dialog at once.

    Args:
        scope: Where the value is to be used; the values of the scopes around it are offered too.
        title: What is asked: foreign text.
        wanted: Returns why a type does not fit, None when it does. Such values are greyed and come
            last, but can be chosen.
        exclude: Names that are not offered.
        first: Names that stand first until something is typed, such as those near the cursor.
        empty_label: A first row that gives ``""``, e.g. ``leave empty``.
    """

    KEYS = "Enter choose  Esc close"
    PLACEHOLDER = "name, type or producer"
    EMPTY = "no value fits"
    WIDTH = 120

    def __init__(
        self,
        scope: Scope,
        *,
        title: str,
        wanted: Wanted | None = None,
        exclude: Collection[str] = (),
        first: Sequence[str] = (),
        empty_label: str = "",
    ) -> None:
        super().__init__()
        self.TITLE_TEXT = visible(title)
        self.scope = scope
        self.wanted = wanted
        self.empty_label = empty_label
        self.complete = False
        """Whether all values have been collected."""
        self._exclude = exclude
        self._values: list[tuple[str, Definition | None]] = []
        self._index = FuzzyIndex()
        self._waiting = self._offered(first)
        if empty_label:
            self._add([_LEAVE_EMPTY])
        self.collect(_AT_ONCE)

    # --- collecting -----------------------------------------------------------------------------

    def _offered(self, first: Sequence[str]) -> Iterator[tuple[str, Definition | None]]:
        leading = {name: self.scope.resolve(name) for name in first if name not in self._exclude}
        yield from ((name, found) for name, found in leading.items() if found is not None)
        for name, definition in visible_values(self.scope):
            if name not in self._exclude and leading.get(name) is None:
                yield name, definition

    def collect(self, most: int) -> None:
        """Take up to `most` more in."""
        found = list(islice(self._waiting, most))
        self.complete = len(found) < most
        self._add(found)

    def _add(self, values: Sequence[tuple[str, Definition | None]]) -> None:
        self._values += values
        self._index.extend(self._searched(name, about) for name, about in values)

    def _searched(self, name: str, definition: Definition | None) -> str:
        if definition is None:
            return self.empty_label
        known = definition.scope.value_type(name)
        dtype = known.dtype if known is not None and known.dtype else ""
        return f"{name} {_maker(definition)} {dtype}"

    # --- listing --------------------------------------------------------------------------------

    def found(self, text: str) -> ValueRows:
        """Return the values that fit a text, the best first."""
        order = self._index.search(text)
        if self.wanted is not None:
            top = list(order[:_SORTED_BY_FIT])
            top.sort(key=lambda at: self.why_not(at) is not None)
            order = [*top, *order[_SORTED_BY_FIT:]]
        return ValueRows(self, order)

    def value(self, at: int) -> tuple[str, Definition | None]:
        """Return the name and the definition of a value, by its place among those collected."""
        return self._values[at]

    def why_not(self, at: int) -> str | None:
        """Return why a value does not fit, or None."""
        name, definition = self._values[at]
        if definition is None or self.wanted is None:
            return None
        return self.wanted(definition.scope.value_type(name))

    def choose(self, index: int) -> None:
        """Give the name of the value."""
        self.dismiss(self.value(self.rows.order[index])[0])

    @property
    def rows(self) -> ValueRows:
        """What is listed."""
        lines = self.view.lines
        assert isinstance(lines, ValueRows)
        return lines


class ValueRows:
    """The rows of a picker, made when they are seen."""

    def __init__(self, picker: ValuePicker, order: Sequence[int]) -> None:
        self.picker = picker
        self.order = order

    def __len__(self) -> int:
        return len(self.order)

    def key(self, index: int) -> Hashable:
        """Return the value's name."""
        return self.picker.value(self.order[index])[0]

    def text(self, index: int) -> str:
        """Return the row's text."""
        return "".join(text for text, _ in self.line(index, 120))

    def line(self, index: int, width: int) -> list[Piece]:
        """Return name, type and maker, or why the value does not fit."""
        at = self.order[index]
        name, definition = self.picker.value(at)
        if definition is None:
            return [(self.picker.empty_label, "accent")]
        known = definition.scope.value_type(name)
        kind = visible(known.short) if known is not None else fmt.UNKNOWN
        why_not = self.picker.why_not(at)
        kind_cells = min(28, max(14, width // 4))
        tail_cells = min(34, max(14, width // 4))
        room = max(8, width - kind_cells - tail_cells - 2)
        place = fit(visible(name), room, keep="middle")
        shape = f" {fit(kind, kind_cells)} "
        if why_not:
            mark = glyphs.current().error
            return [(place + shape, "faint"), (fit(f"{mark} {why_not}", tail_cells), "faint")]
        tail = fit(visible(_maker(definition)), tail_cells)
        return [(place, ""), (shape, "type"), (tail, _style(definition))]


def _maker(definition: Definition) -> str:
    return definition.node.op_type if definition.node is not None else definition.kind


def _style(definition: Definition) -> str:
    node = definition.node
    if node is not None:
        return operator_style(node.op_type, node.domain)
    return "io" if definition.kind == "input" else "op-data"
