"""The start page: files of this folder and recent ones, opening by path, activities, samples."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import events, on
from textual.binding import BindingType
from textual.containers import Container, Vertical, VerticalScroll
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Input

from dld_tui import __version__
from dld_tui.activities import registry
from dld_tui.commands.command import table
from dld_tui.commands.key_names import with_keys
from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.files.folder import FolderScan, FoundFile, in_order
from dld_tui.core.process.paths import cache_dir, ensure, short
from dld_tui.core.reading.preview import Preview, age_text, ago
from dld_tui.core.settings.state import RecentFile
from dld_tui.core.tables.table import BYTES, NOTE, Column, Table, Unit
from dld_tui.core.text import cell_width, clip, fit
from dld_tui.styles import STYLES
from dld_tui.widgets.charts.bars import bar, bar_ramp
from dld_tui.widgets.forms.path_input import PathInput
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.lists.search import FilterBar
from dld_tui.widgets.lists.styled import Piece, Rows, wrap
from dld_tui.widgets.lists.table_view import TablePane, TableView
from dld_tui.widgets.shell.command_dispatch import shown_too
from dld_tui.widgets.shell.frame import Framed
from dld_tui.widgets.shell.page import Page, host
from dld_tui.widgets.tasks import on_loose_thread, on_thread, task

if TYPE_CHECKING:
    from dld_tui.core.reading.preview import Previewer


def this_folder() -> str:
    """Return the folder that is browsed."""
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return os.path.expanduser("~")


_REST_S = 0.12
"""The cursor rests so long on a file before that is read."""

_BEFORE = 29
"""Cells of a title and its key."""
_SENTENCE = 60
"""Cells that most sentences fit in."""
_FIRST_STEPS = (
    ("{file.open}", "open a model or a report"),
    ("↑ ↓ ← →  hjkl", "move, unfold and fold"),
    ("{list.search}  {list.search_next}  {list.search_previous}", "search, next, previous"),
    ("{go.body}", "open a subgraph or a function"),
    ("{edit.change}  {edit.undo}", "edit the value under the cursor, undo"),
    ("{model.save}", "save"),
    ("{model.profile}", "profile the model; the report opens by itself"),
    ("Tab  {pane.1} to {pane.4}", "go to the next pane, or to one by its number"),
    ("{app.palette}", "search all commands"),
    ("{app.help}", "help for the focused pane"),
)


def _first_steps(keymap: Mapping[str, str]) -> list[list[Piece]]:
    return [
        [(fit(with_keys(keys, keymap), 14), "key"), (text, "dim")] for keys, text in _FIRST_STEPS
    ]


class OpenBox(Framed, Vertical):
    """The frame of the path field."""


class RecentList(TableView):
    """Files that were opened before."""

    BINDINGS: ClassVar[list[BindingType]] = shown_too("list.activate")
    HELP = (
        "Recently opened files, newest first. {list.activate} opens a file, {recent.forget} "
        "removes it from the list, {list.search} searches. Missing files are greyed out."
    )


class StartSource:
    """The rows of the start list: (key, title, shortcut, help)."""

    def __init__(self, keymap: Mapping[str, str]) -> None:
        offered = [activity for activity in registry.activities() if activity.offered]
        rows = [
            ("demo", "Demo models", "", "Open a small classifier and a small transformer."),
            *((f"run:{activity.id}", activity.title, "", activity.help) for activity in offered),
            ("new_model", "New model", "{model.new}", "Start an empty model."),
            ("operators", "Operators", "{app.operators}", "What each operator does, by opset."),
            ("targets", "Targets", "", "Machines reached over SSH."),
            ("settings", "Settings", "{app.settings}", "Theme, glyphs, mouse, keys."),
            ("help", "Help", "{app.help}", "Keys, commands, first steps."),
        ]
        self.rows = [
            (name, title, with_keys(keys, keymap), help) for name, title, keys, help in rows
        ]

    def __len__(self) -> int:
        return len(self.rows)

    def key(self, index: int) -> str:
        return self.rows[index][0]

    def text(self, index: int) -> str:
        return "  ".join(self.rows[index][1:])

    def line(self, index: int, width: int) -> Sequence[Piece]:
        """Return the row, with its help where there is room for a sentence."""
        _, title, shortcut, help = self.rows[index]
        room = width - _BEFORE
        return [
            (fit(title, _BEFORE - 3), "strong"),
            (fit(shortcut, 3), "key"),
            (clip(help, room) if room >= _SENTENCE else "", "dim"),
        ]


class FirstSteps(Framed, Rows):
    """The first keys to know, where there is room."""


class StartList(LineView):
    """The things to start."""

    BINDINGS: ClassVar[list[BindingType]] = shown_too("list.activate")
    HELP = (
        "{list.activate} starts the item at the cursor. {app.activities} lists all activities, "
        "{app.palette} all commands."
    )

    def watch_cursor(self, old: int, new: int) -> None:
        """Say below what the cursor is on, too."""
        super().watch_cursor(old, new)
        self._say()

    def on_resize(self) -> None:
        """Say it below where the rows have no room for it."""
        super().on_resize()
        self._say()

    def _say(self) -> None:
        lines, width = self.lines, self.view_size.width
        if isinstance(lines, StartSource) and len(lines):
            help = lines.rows[self.cursor][-1]
            is_there = width - self._gutter_cells - _BEFORE >= _SENTENCE
            fits = cell_width(help) <= self.outer_size.width - 6
            self.border_subtitle = Content(help if fits and not is_there else "")


@dataclass(frozen=True)
class _Entry:
    """A recent file with what the disk says of it."""

    file: RecentFile
    size: int | None
    """Bytes; None when the file is gone, 0 while that is not known."""


class WelcomeScreen(Page):
    """The page that is there when nothing is open."""

    SCOPE = "start"
    COMMAND_TABLE = table(
        "start",
        ("start.profile", "profile", "f5", "model_file", "profile",
         "Profile the model at the cursor with ONNX Runtime."),
        ("recent.forget", "forget", "d,delete", "", "forget", "Remove the file from this list."),
        ("start.path", "path", "colon", "", "type a path", "Focus the path field."),
        footer="start.profile start.path",
    )  # fmt: skip
    CSS_PATH = STYLES / "welcome.tcss"
    AUTO_FOCUS = ""
    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012 - as Textual has it
        (0, "-narrow"), (72, "-middle"), (120, "-wide"),
    ]  # fmt: skip
    HELP = "Open a file of this folder or a recent file, type a path, or start an activity."
    VERTICAL_BREAKPOINTS = [(0, "-low"), (32, "-high")]  # noqa: RUF012 - as Textual has it
    tab_title = "start"

    def __init__(self) -> None:
        super().__init__()
        self.tab_status = f"dld-tui {__version__}"
        self.folder = this_folder()
        """What is listed, with the folders below it."""
        self.tab_place = short(self.folder)
        self._scan: FolderScan | None = None
        self._previewer: Previewer | None = None

    def body(self) -> Iterable[Widget]:
        """Return the path field, the files here, the recent ones and the things to start."""
        # Else Textual would give every widget its styles once more before the first paint.
        for breakpoints, cells in (
            (self.HORIZONTAL_BREAKPOINTS, self.size.width),
            (self.VERTICAL_BREAKPOINTS, self.size.height),
        ):
            fitting = [name for least, name in breakpoints if least <= cells]
            self.add_class(*fitting[-1:], update=False)
        box = OpenBox(PathInput(), id="open")
        box.frame.show("Open", "Tab complete  {list.activate} open")
        recent = RecentList(
            recent_table(()),
            empty="No file has been opened yet. Type a path above, or try the demo models below.",
            id="recent",
        )
        recent.frame.show("Recent", "{recent.forget} forget  {list.search} search")
        keymap = host(self).config.keys
        start = StartList(StartSource(keymap), id="start")
        start.frame.show("Start")
        steps = FirstSteps(_first_steps(keymap), id="steps")
        steps.frame.show("First steps")
        here = HerePane(self.folder, id="here")
        left = Vertical(here, recent, id="left")
        right = Vertical(PreviewPane(id="preview", classes="frame"), start, steps, id="right")
        return box, Container(left, right, id="lists")

    def on_mount(self) -> None:
        """Begin where the next key is useful: the newest file, or what to start."""
        has_recent = bool(host(self).state.recent())
        self.query_one("#recent" if has_recent else "#start").focus()
        self.query_one("#here").display = False

    def on_unmount(self) -> None:
        """End the process that reads files."""
        if self._previewer is not None:
            self._previewer.close()

    def on_screen_resume(self, event: object) -> None:
        """Read the recent files again."""
        super().on_screen_resume(event)
        files = host(self).state.recent()
        self._show([_Entry(file, 0) for file in files])
        self._look(files)
        self.call_after_refresh(self._browse)

    def show_folder(self, folder: str) -> None:
        """List the files of another folder."""
        self.folder, self.tab_place = folder, short(folder)
        for pane in self.query(HerePane):
            pane.folder, self._scan = folder, None
            self._browse()

    @task("list", replace=True)
    async def _browse(self) -> None:
        """Look for files of this folder, the nearest first, on a thread that may be left behind."""
        is_first = self._scan is None
        if self._scan is not None:
            self._scan.stop()
        pane = self.query_one(HerePane)
        scan = self._scan = FolderScan(pane.folder)
        steps = scan.steps()
        await on_loose_thread(next, steps, None)
        self._show_here(scan)
        if is_first:
            self._begin_here()
        self.tasks.start(self._browse_on(scan, steps, is_first), "browse", replace=True)

    async def _browse_on(
        self, scan: FolderScan, steps: Iterator[list[FoundFile]], is_first: bool
    ) -> None:
        await on_loose_thread(list, steps)
        if scan is self._scan:
            self._show_here(scan, is_whole=True)
            if is_first:
                self._begin_here()

    def _begin_here(self) -> None:
        """Focus the files of this folder where the user has not moved anything yet."""
        pane = self.query_one(HerePane)
        begins = [
            view for view in self.query("#recent, #start").results(LineView) if not view.cursor
        ]
        if pane.files and self.focused in (None, *begins):
            pane.table.focus()

    def _show_here(self, scan: FolderScan, *, is_whole: bool = False) -> None:
        pane = self.query_one(HerePane)
        pane.show_files(in_order(scan.files), scan.note)
        pane.display = bool(scan.files)
        if is_whole and not scan.files and self.folder != this_folder():
            self.notify(f"No model, engine or report in {self.tab_place}", markup=False)
        recent = self.query_one(RecentList)
        recent.display = bool(recent.table.rows or not scan.files)
        if recent.has_focus and not recent.display:
            pane.table.focus()
        self.set_class(bool(scan.files), "-files")
        self.tab_status = _counted(scan.files) or f"dld-tui {__version__}"
        self.tab_changed()

    @property
    def _model(self) -> str | None:
        """The path of the model under the cursor."""
        item = self.focused.item_at_cursor() if isinstance(self.focused, TableView) else None
        file = item.file if isinstance(item, _Entry) else item
        return file.path if file is not None and file.kind in ("ONNX", "ONNX_TEXT") else None

    def conditions(self) -> set[str]:
        """Return whether a model is under the cursor."""
        return super().conditions() | ({"model_file"} if self._model else set())

    def action_profile(self) -> None:
        host(self).start_activity("profile_onnxruntime", {"model": self._model})

    def on_line_view_cursor_moved(self, event: LineView.CursorMoved) -> None:
        """Preview the file under the cursor."""
        self.conditions_changed()
        if isinstance(event.view, TableView) and event.view.has_focus and event.key is not None:
            self._preview(str(event.key))

    def on_descendant_focus(self) -> None:
        """Preview the file under the cursor of the focused list."""
        self.conditions_changed()
        view = self.focused
        if isinstance(view, TableView) and view.key_at_cursor() is not None:
            self._preview(str(view.key_at_cursor()))

    @task("preview", replace=True)
    async def _preview(self, path: str) -> None:
        from dld_tui.core.reading.preview import Previewer

        await asyncio.sleep(_REST_S)
        self._previewer = self._previewer or Previewer()
        here, recent = self.query_one(HerePane).files, host(self).state.recent()
        kinds = {file.path: file.kind for file in recent} | {file.path: file.kind for file in here}
        reports = [file.path for file in here if file.kind == "REPORT"]
        reports += [file.path for file in recent if file.kind == "REPORT"]
        self.query_one(PreviewPane).show(path, None)
        stop = threading.Event()
        try:
            preview = await on_loose_thread(
                self._previewer.preview,
                path,
                kinds.get(path, ""),
                stop.is_set,
                dict.fromkeys(reports),
            )
        finally:
            stop.set()
        self.query_one(PreviewPane).show(path, preview)

    @task("recent", replace=True)
    async def _look(self, files: Sequence[RecentFile]) -> None:
        """Leave out the files that are gone: they may be back when a drive is."""
        self._show(await on_thread(lambda: [_Entry(file, _size(file)) for file in files]))

    def _show(self, entries: list[_Entry]) -> None:
        view = self.query_one(RecentList)
        there = [entry for entry in entries if entry.size is not None]
        view.set_table(recent_table(there))
        gone = f"{len(entries) - len(there):,} gone  " if len(there) < len(entries) else ""
        keys = "{recent.forget} forget  {list.search} search" if there else ""
        view.frame.show("Recent", f"{gone}{keys}".rstrip())

    def on_path_input_chosen(self, event: PathInput.Chosen) -> None:
        """Open the path that was typed."""
        host(self).open_path(event.path)

    async def on_line_view_activated(self, event: LineView.Activated) -> None:
        """Open the recent file, or start the thing under the cursor."""
        key = str(event.key)
        if isinstance(event.view, TableView):
            host(self).open_path(key)
        elif key == "demo":
            self._open_demo()
        elif key.startswith("run:"):
            host(self).start_activity(key[4:], {})
        else:
            await self.app.run_action(f"app.{key}")

    @task("demo", replace=True)
    async def _open_demo(self) -> None:
        host(self).open_all(await on_thread(_write_demo))

    def action_forget(self) -> None:
        view = self.query_one(RecentList)
        key = view.key_at_cursor()
        if view.has_focus and key is not None:
            host(self).state.forget(str(key))
            self.on_screen_resume(None)

    def action_path(self) -> None:
        self.add_class("-asked")  # where there are few rows it is there only while it is used
        self.query_one(Input).focus()

    def key_escape(self) -> None:
        """Go from the path field back to the lists."""
        if isinstance(self.focused, Input):
            pane = self.query_one(HerePane)
            (pane.table if pane.display else self.query_one("#start")).focus()

    def on_descendant_blur(self, event: events.DescendantBlur) -> None:
        """Take the path field away again where there is no room for it."""
        if isinstance(event.widget, Input):
            self.remove_class("-asked")


def _counted(files: Sequence[FoundFile]) -> str:
    """Return how many models, engines and reports there are; empty without any."""
    kinds = Counter(KINDS.get(file.kind, "file") for file in files)
    shown = {
        kind: kinds.pop(kind) for kind in ("model", "engine", "report", "tuning") if kind in kinds
    }
    others = {"other": kinds.total()} if kinds.total() else {}
    return "  ".join(f"{count:,} {kind}" if kind == "other" else fmt.plural(count, kind)
                     for kind, count in {**shown, **others}.items())  # fmt: skip


def _write_demo() -> list[Path]:
    from dld_tui.core.model.document.samples import write_demo_models

    return write_demo_models(ensure(cache_dir() / "demo"))


def _size(file: RecentFile) -> int | None:
    try:
        return os.stat(file.path).st_size
    except (OSError, ValueError):
        return None


def recent_table(entries: Sequence[_Entry]) -> Table[_Entry]:
    """Return recent files as a table."""

    def size(entry: _Entry) -> str:
        return fmt.size(entry.size) if entry.size else ""

    return Table(
        (
            Column("name", "Name", lambda entry: os.path.basename(entry.file.path), least=24,
                   keep="middle"),
            Column("kind", "Kind", lambda entry: KINDS.get(entry.file.kind, entry.file.kind),
                   NOTE, 10, style="dim"),
            Column("size", "Size", lambda entry: entry.size, BYTES, 8, priority=2, text=size,
                   style="dim"),
            Column("age", "Opened", lambda entry: time.time() - entry.file.opened, SECONDS, 10,
                   priority=1, style="dim"),
            Column("folder", "Folder", lambda entry: short(os.path.dirname(entry.file.path)), NOTE,
                   least=16, priority=3, keep="end", style="dim"),
        ),
        entries,
        row_key=lambda entry: entry.file.path,
    )  # fmt: skip


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
    "TUNING": "tuning",
    "SWEEP": "sweep",
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
        "Models, engines and reports in this folder and its subfolders, newest first. "
        "{list.activate} opens a file, {list.search} filters, {start.path} opens any path."
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
        """Show files; `note` names what was omitted."""
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
        return age_text(now - file.modified)

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
    """The preview of a file."""

    def __init__(self) -> None:
        super().__init__()
        self.preview: Preview | None = Preview()

    def show(self, preview: Preview | None) -> None:
        """Show the preview of a file; None while it is read."""
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
    """The preview of the file under the cursor."""

    can_focus = False

    def compose(self) -> list[PreviewRows]:
        return [PreviewRows()]

    def show(self, path: str, preview: Preview | None) -> None:
        """Show the preview of a file; None while it is read."""
        self.frame.show(os.path.basename(path))
        self.query_one(PreviewRows).show(preview)
