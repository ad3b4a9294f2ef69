"""Saving what the graph pane shows as a picture."""

from __future__ import annotations

from pathlib import Path

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import CancelledError, DldError
from dld_tui.core.files.writer import write_bytes
from dld_tui.core.model.document import Document
from dld_tui.core.model.graph.pictures import style
from dld_tui.core.model.graph.pictures.content import Content, folded_content, part_content
from dld_tui.core.model.graph.pictures.drawing import (
    Picture,
    kind_of,
    picture_of,
    rows_text,
    text_picture,
)
from dld_tui.core.text import clip, visible
from dld_tui.core.types import CancelCheck, ProgressCallback
from dld_tui.widgets.dialogs.dialogs import FieldsDialog, FieldSpec, OpenPathDialog
from dld_tui.widgets.dialogs.overwrite import may_write
from dld_tui.widgets.graph.pane import GraphPane
from dld_tui.widgets.graph.state import GraphView
from dld_tui.widgets.shell.page import Page, host
from dld_tui.widgets.shell.progress import Work

_GRID = ("no", "yes")
_ENDINGS = (".svg", ".html", ".png", ".jpg", ".jpeg", ".txt")


@dataclass(frozen=True)
class PictureWriter:
    """Asks for a file and writes what the graph pane of a page shows to it."""

    page: Page
    document: Document
    pane: GraphPane
    work: Work

    def save(self) -> None:
        """Ask for a file and write."""
        if self.pane.model is None:
            self.page.notify("The graph is being arranged", timeout=3)
            return

        self.page.tasks.start(self._save(self._start()), "dialog")

    async def _save(self, start: str) -> None:
        ask = self.page.tasks.ask
        hint = "path of the picture: .svg, .html, .png, .jpg or .txt"
        while path := await ask(
            OpenPathDialog("Save picture", start, hint, endings=_ENDINGS, is_new=True)
        ):
            path = path if path.suffix else path.with_suffix(".svg")
            start = str(path)
            try:
                kind = kind_of(path)
            except DldError as error:
                self._warn(str(error))
                continue
            answer = await may_write(self.page.tasks, [path])
            if answer.allowed:
                look = style.Look() if kind == "text" else await self._ask_look()
                if look is not None:
                    self._write(path, kind, look, overwrite=bool(answer.replaces))
            if not answer.wants_other:
                return

    async def _ask_look(self) -> style.Look | None:
        """Ask for colours, background and grid; None if the dialog was closed."""
        looks: list[style.Look] = []

        def accept(texts: list[str]) -> None:
            background, scheme, grid = texts
            paper = style.read_background(background) if background.strip() else None
            looks.append(style.Look(style.SCHEMES[scheme], paper, grid == _GRID[1]))

        dark = self.page.app.current_theme.dark
        fields = [
            FieldSpec("background", "", "that of the colours; none, or such as #ffffff"),
            FieldSpec("colours", "dark" if dark else "light", choices=tuple(style.SCHEMES)),
            FieldSpec("grid", _GRID[self.pane.canvas.grid], choices=_GRID),
        ]
        await self.page.tasks.ask(FieldsDialog("Picture", "", fields, accept))
        return looks[0] if looks else None

    def _warn(self, text: str) -> None:
        self.page.notify(visible(text), severity="warning", timeout=8, markup=False)

    def _start(self) -> str:
        path = self.document.path
        return str(path.with_suffix(".svg") if path is not None else Path.cwd() / "graph.svg")

    def _write(self, path: Path, kind: str, look: style.Look, *, overwrite: bool) -> None:
        remarks: list[str] = []
        try:
            content = shown_in(self.pane, self.page.tab_title, as_rows=kind == "text")
        except DldError as error:
            host(self.page).show_error(error, "Not written")
            return

        def task(progress: ProgressCallback, cancelled: CancelCheck) -> None:
            picture = content if isinstance(content, Picture) else picture_of(content, kind, look)
            if cancelled():
                raise CancelledError
            remarks.extend(write_bytes(path, picture.data, overwrite=overwrite))
            if picture.is_oversized:
                size = f"{picture.width:,} x {picture.height:,} pixels"
                remarks.append(f"{size} are more than viewers open: draw the folded view instead")

        def ended(error: DldError | None) -> None:
            if isinstance(error, CancelledError):
                self.page.notify("Not written: stopped", timeout=3)
            elif error is not None:
                host(self.page).show_error(error, "Not written")
            else:
                for remark in remarks:
                    self._warn(remark)
                self.page.notify(f"Wrote {visible(str(path))}", timeout=4, markup=False)

        self.work.run(f"Drawing {clip(visible(str(path)), 60, keep='end')}", task, ended)


def shown_in(pane: GraphPane, title: str, *, as_rows: bool) -> Content | Picture:
    """Return what the graph pane shows.

    Args:
        pane: The pane; it shows a graph.
        title: What the picture is called: untrusted text.
        as_rows: Whether rows are wanted as text, where the pane shows rows.

    Raises:
        UsageError: It is too much for a picture.
    """
    model = pane.model
    assert model is not None  # the caller has looked
    types = model.named_type
    title = " › ".join([title, *model.steps])
    if model.view is GraphView.FOCUS:
        fold = pane.fold
        vertex = fold.vertices[0] if fold is not None else pane.vertex
        vertex = pane.first_vertex() if vertex is None else vertex
        content = part_content(model.focus(vertex), title, vertex)
    elif as_rows and model.view is not GraphView.CANVAS:
        return text_picture(rows_text(model.overview, types), False, len(model.rows))
    elif model.view is GraphView.RAIL:
        content = model.content(title)
    else:
        content = folded_content(model.overview, title)
    content.types, content.aliases = types, model.aliases
    return content
