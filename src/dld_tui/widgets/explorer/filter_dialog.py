"""The explorer's filter: the line that is typed, and the dialog with types and conditions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from time import monotonic
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import Input

from dld_tui.core.document.rewrite.query import Completion
from dld_tui.core.errors import UsageError
from dld_tui.core.text import cell_width, clip, fit, visible
from dld_tui.widgets.dialogs.dialogs import Dialog
from dld_tui.widgets.explorer.node_filter import NodeFilter, parse_conditions
from dld_tui.widgets.forms.text_field import query_field
from dld_tui.widgets.lists.line_source import Piece
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.lists.styled import Rows, operator_style
from dld_tui.widgets.parameters.descriptions import default_of
from dld_tui.widgets.shell import glyphs

if TYPE_CHECKING:
    from dld_tui.core.document.node import Node

_SLICE_S = 0.015
_EXAMPLES = "group > 1 and name contains attn   or   Mul(x, Sigmoid(x))"


class TypeList(LineView):
    """Operator types with counts; marking one chooses it."""

    HELP = "Space selects an operator type, Tab goes to the conditions, Enter filters."

    def __init__(
        self, counts: Sequence[tuple[tuple[str, str], int]], chosen: Iterable[Hashable]
    ) -> None:
        super().__init__(gutter=False, id="filter-types")
        self.counts = counts
        self.lines = _TypeLines(self)
        self.marks = set(chosen)


class _TypeLines:
    """One line a type: a box, the type, its domain, how many nodes."""

    def __init__(self, view: TypeList) -> None:
        self._view = view

    def __len__(self) -> int:
        return len(self._view.counts)

    def key(self, index: int) -> tuple[str, str]:
        return self._view.counts[index][0]

    def text(self, index: int) -> str:
        return visible(self.key(index)[1])

    def line(self, index: int, width: int) -> Sequence[Piece]:
        (domain, op_type), count = self._view.counts[index]
        shown = glyphs.current()
        box = shown.on if (domain, op_type) in self._view.marks else shown.off
        number = f"{count:,}"
        room = max(0, width - len(box) - len(number) - 3)
        name = clip(visible(op_type), room)
        room -= cell_width(name)
        return [
            (f"{box} ", "key"),
            (name, operator_style(op_type, domain)),
            (fit(f"  {visible(domain)}", room), "faint"),
            (f" {number} ", "dim"),
        ]


class FilterDialog(Dialog[NodeFilter]):
    """Gives the filter that was put together, or None when nothing is to change.

    Args:
        nodes: All nodes that could be shown.
        counts: How many there are of each (domain, operator type).
        present: The filter that is on.
        live: Is told the filter as it stands, while it is typed.
    """

    TITLE_TEXT = "Filter"
    KEYS = "Enter filter  Space choose  Tab next  ^X clear  Esc close"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "apply", "filter", show=False),
        Binding("ctrl+x", "clear", "clear", show=False, priority=True),
    ]

    def __init__(
        self,
        nodes: Sequence[Node],
        counts: Mapping[tuple[str, str], int],
        present: NodeFilter | None,
        live: Callable[[NodeFilter], None] | None = None,
    ) -> None:
        super().__init__()
        self.live = live
        self.nodes = nodes
        self.present = present or NodeFilter()
        self._counts = sorted(counts.items(), key=lambda item: (-item[1], item[0][1].lower()))

    def body(self) -> Iterable[Widget]:
        """Return the list of types, the conditions, and how many nodes fit."""
        yield Rows([[("Operator types", "strong"), ("  none chosen: all", "dim")]])
        types = TypeList(self._counts, self.present.types)
        types.styles.height = max(3, min(len(self._counts), self.app.size.height - 17))
        yield types
        yield Rows([[("Conditions", "strong"), ("  joined by and", "dim")]])
        yield query_field(self.present.text, _EXAMPLES, Completion(self.nodes))
        yield Rows([[], []], id="filter-answer")

    def on_mount(self) -> None:
        """Show how many nodes match."""
        self.query_one(TypeList).focus()
        self._count()

    @property
    def types(self) -> frozenset[tuple[str, str]]:
        """The types that are chosen."""
        return frozenset(self.query_one(TypeList).marks)  # type: ignore[arg-type]

    def chosen(self) -> NodeFilter:
        """Return the filter as it stands.

        Raises:
            UsageError: A condition is malformed.
        """
        conditions = parse_conditions(self.query_one(Input).value)
        return NodeFilter(self.types, conditions, default_of)

    @on(LineView.MarksChanged)
    @on(Input.Changed)
    def something_changed(self) -> None:
        """Count again."""
        self._count()

    def _count(self) -> None:
        try:
            chosen = self.chosen()
        except UsageError as error:
            self._answer(error)
            return

        self.tasks.start(self._count_fitting(chosen), "count", replace=True)

    async def _count_fitting(self, chosen: NodeFilter) -> None:
        """Count in slices between which keys are answered."""
        await asyncio.sleep(0.05)
        fitting, deadline = 0, monotonic() + _SLICE_S
        for _ in chosen.prepare(self.nodes[0].scope.document) if self.nodes else ():
            if monotonic() > deadline:
                await asyncio.sleep(0)
                deadline = monotonic() + _SLICE_S
        for node in self.nodes:
            fitting += chosen(node)
            if monotonic() > deadline:
                await asyncio.sleep(0)
                deadline = monotonic() + _SLICE_S
        shown = f"{fitting:,} of {len(self.nodes):,} nodes"
        answer = self.query_one("#filter-answer", Rows)
        answer.set_rows([[(shown, "strong" if fitting else "warn")], []])
        if self.live is not None:
            self.live(chosen)

    def _answer(self, error: UsageError) -> None:
        mark = glyphs.current().error
        hint = [[(f"  {visible(error.hint)}", "dim")]] if error.hint else [[]]
        rows = [[(f"{mark} {visible(error.message)}", "bad")], *hint]
        self.query_one("#filter-answer", Rows).set_rows(rows)

    @on(Input.Submitted)
    def submitted(self, event: Input.Submitted) -> None:
        """Filter."""
        event.stop()
        self.action_apply()

    @on(LineView.Activated)
    def type_activated(self, event: LineView.Activated) -> None:
        """Filter."""
        event.stop()
        self.action_apply()

    def action_apply(self) -> None:
        try:
            self.dismiss(self.chosen())
        except UsageError as error:
            self._answer(error)

    def action_clear(self) -> None:
        self.query_one(TypeList).set_marks(set())
        self.query_one(Input).value = ""
