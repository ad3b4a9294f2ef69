"""The two columns of a comparison, and the full text of the row under the cursor."""

from __future__ import annotations

from dld_tui.core.diff.model import Change
from dld_tui.core.diff.text import field_text, title
from dld_tui.core.text import visible
from dld_tui.widgets.blocks import Line
from dld_tui.widgets.diff_rows import (
    MARK_CELLS,
    STATUS_STYLES,
    DiffLines,
    DiffRow,
    columns,
    sides,
)
from dld_tui.widgets.frame import Frame
from dld_tui.widgets.line_source import ListSource, Piece
from dld_tui.widgets.line_view import LineView
from dld_tui.widgets.wrap import wrap


class DiffView(Frame, LineView):
    """The rows."""

    HELP = (
        "The old model is at the left, the new one at the right. Enter goes to a node in the new "
        "model, or in the old one when it is gone. [ and ] go from change to change, f shows only "
        "what was added, removed, changed or renamed, a shows the nodes that are the same, too."
    )

    def __init__(self, old: str, new: str, *, empty: str = "") -> None:
        """Make the view of two models; `old` and `new` name them and are foreign text."""
        super().__init__(empty=empty)
        self.models = visible(old), visible(new)
        self.header_rows = 1

    def header_line(self, width: int) -> list[Piece]:
        """Return the row that says which model is where."""
        return columns(" " * MARK_CELLS, self.models, ("header-sort", "header-sort"), width)

    def row_at_cursor(self) -> DiffRow | None:
        """Return the row under the cursor."""
        lines = self.lines
        if isinstance(lines, DiffLines) and self.cursor < len(lines):
            return lines.rows[self.cursor]
        return None

    def go_to_change(self, step: int) -> bool:
        """Move to the next change (1) or the one before (-1); False when there is none."""
        lines = self.lines
        if not isinstance(lines, DiffLines):
            return False
        index = self.cursor + step
        while 0 <= index < len(lines.rows):
            if lines.rows[index].kind == "change":
                self.cursor = index
                return True
            index += step
        return False


class DiffDetail(Frame, LineView):
    """Everything about the row under the cursor, wrapped."""

    HELP = "The whole text of the row under the cursor."

    def show(self, row: DiffRow | None) -> None:
        """Show a row."""
        cells = max(10, self.view_size.width - 2)
        rows: list[Line] = []
        if row is not None and row.change is not None:
            rows = _change_rows(row.change, row, cells)
        elif row is not None:
            left, right = sides(row)
            rows = [
                [(text, "")] for text in wrap(left if left == right else f"{left}\n{right}", cells)
            ]
        self.frame("Difference", "")
        self.set_lines(ListSource(rows), keep=False)


def _change_rows(change: Change, row: DiffRow, cells: int) -> list[Line]:
    style = STATUS_STYLES[change.status]
    head = f"{change.status} {change.kind if change.kind != 'value' else 'type of'} {title(change)}"
    rows: list[Line] = [[(text, style)] for text in wrap(head, cells)]
    if change.new_place is not None:
        rows.append([(f"to {visible(' › '.join(change.new_place)) or 'main'}", "")])
    fields = [row.field] if row.field is not None else change.fields
    for field in fields:
        rows += [[(text, "")] for text in wrap(f"  {field_text(field)}", cells)]
    left, right = sides(DiffRow("change", None, row.scope, change))
    for mark, text, look in (("- ", left, "bad"), ("+ ", right, "good")):
        if text and row.field is None:
            rows += [[(part, look)] for part in wrap(f"{mark}{text}", cells)]
    return rows
