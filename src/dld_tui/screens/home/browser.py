"""The files of this folder, and what is in the one under the cursor."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.binding import BindingType
from textual.containers import VerticalScroll

from dld_tui.core.files.folder import FoundFile
from dld_tui.core.files.preview import Preview, ago
from dld_tui.core.tables.table import BYTES, NOTE, Column, Table, Unit
from dld_tui.core.text import cell_width, fit
from dld_tui.widgets.charts.bars import bar, bar_ramp
from dld_tui.widgets.lists.line_source import Piece
from dld_tui.widgets.lists.search import FilterBar
from dld_tui.widgets.lists.styled import Rows, wrap
from dld_tui.widgets.lists.table_view import TablePane, TableView
from dld_tui.widgets.shell.commands import shown_too
from dld_tui.widgets.shell.frame import Framed

KINDS = {
    "ONNX": "model",
    "ONNX_TEXT": "model text",
    "REPORT": "report",
    "ORT_PROFILE": "profile",
    "ENGINE_PROFILE": "layers",
    "ENGINE_TIMES": "times",
    "TRACE": "trace",
    "ENGINE_LAYERS": "engine",
    "ENGINE_ARCHIVE": "engine",
    "ENGINE_METADATA": "engine",
    "TRTEXEC_LOG": "log",
}
SECONDS = Unit("s", ago)
"""How long ago."""
_TITLE = 8
_PART_BAR = 32
_MOST_ROWS = 3
"""Of one line of a preview."""


class HereTable(TableView):
    """The files of this folder."""

    BINDINGS: ClassVar[list[BindingType]] = shown_too("list.activate")
    HELP = (
        "Models, engines and reports of this folder and of those below it, the newest first. "
        "{list.activate} opens one, {list.search} filters, {start.path} goes to any path."
    )


class HerePane(TablePane):
    """The files of this folder and of those below it."""

    VIEW = HereTable
    VIEW_ID = "here-table"
    FILTER_HELP = "a part of a name or folder, or a kind"

    def __init__(self, folder: str, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.folder = folder
        self.files: Sequence[FoundFile] = ()

    def show_files(self, files: Sequence[FoundFile], note: str) -> None:
        """Show files; `note` says what was left out."""
        self.files = files
        self.frame.show("Here", note or "{list.search} filter")
        self.fill()

    def fill(self) -> None:
        """Show the files that the filter lets through."""
        words = self.filter.casefold().split()
        shown = [
            number
            for number, file in enumerate(self.files)
            if all(word in self._searched(file) for word in words)
        ]
        self.table.set_table(files_table(self.files, self.folder), shown)

    def _searched(self, file: FoundFile) -> str:
        name = os.path.relpath(file.path, self.folder)
        return f"{name} {KINDS.get(file.kind, '')}".casefold()

    @on(FilterBar.Left)
    def open_the_only_one(self, event: FilterBar.Left) -> None:
        """Open what the filter has left, if it is one file."""
        if not event.clear and len(self.table.shown_rows()) == 1:
            # From its own queue: what its parent sends would not go past the parent.
            self.table.call_later(self.table.activate)


def files_table(files: Sequence[FoundFile], folder: str) -> Table[FoundFile]:
    """Return files as a table, named from a folder."""
    now = time.time()

    def age(file: FoundFile) -> str:
        return ago(now - file.modified).removesuffix(" ago").replace("just now", "now")

    return Table(
        (
            Column("name", "Name", lambda file: os.path.relpath(file.path, folder), least=18,
                   keep="middle"),
            Column("kind", "Kind", lambda file: KINDS.get(file.kind, file.kind), NOTE, 10,
                   priority=2, style="dim"),
            Column("size", "Size", lambda file: file.size, BYTES, 8, style="dim"),
            Column("age", "Age", lambda file: max(now - file.modified, 0.0), SECONDS, 6,
                   text=age, style="dim"),
        ),
        files,
        row_key=lambda file: file.path,
    )  # fmt: skip


class PreviewRows(Rows):
    """What is in a file."""

    def __init__(self) -> None:
        super().__init__()
        self.preview: Preview | None = None

    def show(self, preview: Preview | None) -> None:
        """Show what is in a file; None while it is read."""
        self.preview = preview
        self.refresh(layout=True)

    def content(self, width: int) -> list[list[Piece]]:
        if self.preview is None:
            return [[("reading", "dim")]]
        if self.preview.problem:
            return [[(row, "warn")] for row in wrap(self.preview.problem, width)]
        rows = [row for title, text in self.preview.lines for row in _rows(title, text, width)]
        if self.preview.parts:
            rows += [[], *_part_rows(self.preview.parts, width)]
        return rows


def _rows(title: str, text: str, width: int) -> list[list[Piece]]:
    style = "strong" if title == "profile" else ""
    parts = wrap(text, max(width - _TITLE, 8))[:_MOST_ROWS]
    return [
        [(fit("" if number else title, _TITLE), "dim"), (part, style)]
        for number, part in enumerate(parts)
    ]


def _part_rows(parts: Sequence[tuple[str, str, float]], width: int) -> list[list[Piece]]:
    figure = max(cell_width(text) for _, text, _ in parts) + 2
    longest = max(cell_width(title) for title, *_ in parts)
    name = min(longest, max(width - min(_PART_BAR, width // 3) - figure - 1, 8))
    cells = max(min(_PART_BAR, width - name - figure - 1), 0)
    return [
        [
            (fit(title, name), ""),
            (fit(text, figure, align="right") + " ", "dim"),
            (bar(share, cells, bar_ramp()), "bar"),
        ]
        for title, text, share in parts
    ]


class PreviewPane(Framed, VerticalScroll):
    """What is in the file under the cursor."""

    can_focus = False

    def compose(self) -> list[PreviewRows]:
        return [PreviewRows()]

    def show(self, path: str, preview: Preview | None) -> None:
        """Show what is in a file; None while it is read."""
        self.frame.show(os.path.basename(path))
        self.query_one(PreviewRows).show(preview)
