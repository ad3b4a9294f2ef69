"""Operators to search and to read: a list, and the documentation of the one under the cursor."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.message import Message
from textual.widgets import Input

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.model.document.operator_listing import (
    Grouping,
    OperatorPalette,
    Origin,
    PaletteOperator,
    operator_page,
)
from dld_tui.core.model.operators.registry import schema_for, versions_of
from dld_tui.core.model.operators.schema import OperatorSchema
from dld_tui.core.text import clip, fit, visible
from dld_tui.widgets.forms.text_field import text_field
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.lists.styled import ListSource, Piece, Rows, operator_style

WIDE = 96
"""Cells from which the documentation stands at the right of the list."""
_LIST_CELLS = 46
_NARROW_ROWS = 0.45
"""Part of the height that the list takes over the documentation."""
_ROLES = {
    "title": "accent strong",
    "note": "dim",
    "head": "accent",
    "term": "strong",
    "warning": "warn",
}


class OperatorDocs(LineView):
    """The documentation of one operator, wrapped to the width."""

    def __init__(self) -> None:
        super().__init__(gutter=False)
        self.can_focus = False
        self._schema: OperatorSchema | None = None
        self._width = 0

    @property
    def schema(self) -> OperatorSchema | None:
        """The operator that is shown."""
        return self._schema

    def show(self, schema: OperatorSchema | None) -> None:
        """Show another operator, from its first line."""
        self._schema = schema
        self._write()

    def on_resize(self) -> None:
        """Wrap again."""
        if self.view_size.width != self._width:
            self._write()

    def _write(self) -> None:
        self._width = self.view_size.width
        rows: list[list[Piece]] = []
        if self._schema is not None and self._width > 0:
            page = operator_page(self._schema, max(20, self._width - 2))
            rows = [[(text, _ROLES.get(role, ""))] for role, text in page]
        self.set_lines(ListSource(rows), keep=False)
        self.scroll_to(y=0, animate=False, force=True, immediate=True)

    def scroll_rows(self, rows: int) -> None:
        """Show later rows, or earlier ones when negative."""
        self._scroll_rows(self.scroll_offset.y + rows)


class OperatorRows:
    """The rows of the list: titles of groups, and operators."""

    def __init__(self, groups: Sequence[tuple[str, Sequence[PaletteOperator]]]) -> None:
        self.rows: list[str | PaletteOperator] = []
        for title, items in groups:
            if title:
                self.rows.append(f"{title} ({len(items)})")
            self.rows += items

    def __len__(self) -> int:
        return len(self.rows)

    def operator(self, index: int) -> PaletteOperator | None:
        """Return the operator of a row, None for a title."""
        row = self.rows[index] if 0 <= index < len(self.rows) else ""
        return row if isinstance(row, PaletteOperator) else None

    def key(self, index: int) -> Hashable:
        row = self.rows[index]
        return row.key if isinstance(row, PaletteOperator) else row

    def text(self, index: int) -> str:
        row = self.rows[index]
        return visible(row.name if isinstance(row, PaletteOperator) else row)

    def line(self, index: int, width: int) -> list[Piece]:
        row = self.rows[index]
        if not isinstance(row, PaletteOperator):
            return [(clip(visible(row), width), "dim")]
        notes = [f"×{row.uses:,}"] if row.uses else []
        notes += ["deprecated"] if row.deprecated else []
        notes += [f"opset {row.too_new}"] if row.too_new is not None else []
        notes.append(row.category if row.domain == "" else visible(row.collection))
        note = clip(" ".join(notes), width // 2)
        name = fit(visible(row.name), max(1, width - len(note) - 2))
        if not row.available:
            return [(f" {name} {note}", "faint")]
        return [(f" {name}", operator_style(row.name, row.domain)), (f" {note}", "dim")]


class OperatorBrowser(Vertical):
    """A search field, the list and the documentation. The field has the keys all the time.

    Args:
        palette: The operators.
        grouping: How they are listed at first.
        start: Domain and name of the operator to begin with.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down", "move(1)", show=False),
        Binding("up", "move(-1)", show=False),
        Binding("pagedown", "move(10)", show=False),
        Binding("pageup", "move(-10)", show=False),
        Binding("tab", "group", show=False),
        Binding("shift+down,ctrl+pagedown", "read(6)", show=False),
        Binding("shift+up,ctrl+pageup", "read(-6)", show=False),
        Binding("ctrl+down", "version(-1)", show=False),
        Binding("ctrl+up", "version(1)", show=False),
    ]

    @dataclass
    class Chosen(Message):
        """Enter on an operator."""

        operator: PaletteOperator

    @dataclass
    class Grouped(Message):
        """The operators are listed in another way."""

        grouping: Grouping

    def __init__(
        self,
        palette: OperatorPalette,
        grouping: Grouping = Grouping.CATEGORY,
        start: tuple[str, str] | None = None,
    ) -> None:
        super().__init__()
        self.palette = palette
        self.grouping = grouping
        self._start = start

    def compose(self) -> ComposeResult:
        yield text_field("", "name, category or domain")
        yield Rows([[]])
        view = LineView(empty="No such operator", classes="-chosen")
        view.can_focus = False
        yield Container(view, OperatorDocs())

    def on_mount(self) -> None:
        """List everything."""
        self.query_one(Input).focus()
        self.search_again()
        if self._start is not None:
            self.view.go_to_key(self._start)

    def on_resize(self, event: events.Resize) -> None:
        """Put the documentation where there is room."""
        wide = event.size.width >= WIDE
        body, docs = self.query_one(Container), self.docs
        body.styles.layout = "horizontal" if wide else "vertical"
        rows = max(4, int((event.size.height - 2) * _NARROW_ROWS))
        self.view.styles.width = _LIST_CELLS if wide else "1fr"
        self.view.styles.height = "1fr" if wide else rows
        docs.styles.width = docs.styles.height = "1fr"
        docs.styles.margin = (0, 0, 0, 2) if wide else (1, 0, 0, 1)

    @property
    def view(self) -> LineView:
        """The list."""
        return self.query(LineView).exclude("OperatorDocs").first()

    @property
    def docs(self) -> OperatorDocs:
        """The documentation."""
        return self.query_one(OperatorDocs)

    @property
    def operator(self) -> PaletteOperator | None:
        """The operator under the cursor."""
        lines = self.view.lines
        return lines.operator(self.view.cursor) if isinstance(lines, OperatorRows) else None

    def search_again(self) -> None:
        """List what fits the text: the best first, or in groups while nothing is typed."""
        text = self.query_one(Input).value
        operators = self.palette.search(text)
        best_first = Grouping.NAME if text.strip() else self.grouping
        groups = self.palette.grouped(best_first, operators)
        self.view.set_lines(OperatorRows(groups), keep=False)
        note = fmt.plural(len(operators), "operator")
        note += ", best match first" if text.strip() else f" by {self.grouping.value}"
        self.query_one(Rows).set_rows([[(note, "dim")]])
        self._skip_title(1)
        self._read()

    def _skip_title(self, step: int) -> None:
        if self.operator is None and len(self.view.lines):
            self.view.cursor += step if self.view.cursor > 0 or step > 0 else 1

    def _read(self) -> None:
        item = self.operator
        self.docs.show(item.schema if item is not None else None)

    @on(Input.Changed)
    def text_changed(self, event: Input.Changed) -> None:
        """List what fits."""
        event.stop()
        self.search_again()

    @on(Input.Submitted)
    def submitted(self, event: Input.Submitted) -> None:
        """Take the operator under the cursor."""
        event.stop()
        self._choose()

    @on(LineView.Activated)
    def activated(self, event: LineView.Activated) -> None:
        """Take the operator that was clicked twice."""
        event.stop()
        self._choose()

    @on(LineView.CursorMoved)
    def moved(self, event: LineView.CursorMoved) -> None:
        """Show the documentation of the operator under the cursor."""
        event.stop()
        item = self.operator
        if event.view is self.view and item is not None and item.schema is not self.docs.schema:
            self._read()

    def _choose(self) -> None:
        if (item := self.operator) is not None:
            self.post_message(self.Chosen(item))

    def action_move(self, rows: int) -> None:
        self.view.cursor += rows
        self._skip_title(1 if rows > 0 else -1)
        if self.operator is None:
            self._skip_title(1)

    def action_group(self) -> None:
        """List the operators in the next way; what was typed goes."""
        item = self.operator
        self.grouping = self.grouping.following
        field = self.query_one(Input)
        with field.prevent(Input.Changed):
            field.value = ""
        self.search_again()
        if item is not None:
            self.view.go_to_key(item.key)
        self.post_message(self.Grouped(self.grouping))

    def action_read(self, rows: int) -> None:
        self.docs.scroll_rows(rows)

    def action_version(self, step: int) -> None:
        schema = self.docs.schema
        if schema is None or self.operator is None or self.operator.origin is not Origin.SCHEMA:
            return
        versions = versions_of(schema.name, schema.domain)
        at = versions.index(schema.since_version) + step
        if 0 <= at < len(versions):
            self.docs.show(schema_for(schema.name, schema.domain, versions[at]))
