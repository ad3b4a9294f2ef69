"""Operator sets: their list, conversions to another version, and what these did."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widget import Widget

from dld_tui.core import fmt
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.operator_listing import domain_title
from dld_tui.core.model.document.summary import OpsetImport, opset_imports
from dld_tui.core.model.operators.registry import (
    importable_version,
    known_domains,
    known_versions,
)
from dld_tui.core.notes import Claim, Note, NoteKind
from dld_tui.core.text import cell_width, clip, fit, visible
from dld_tui.screens.home.new_model import runtimes_text
from dld_tui.widgets.dialogs.dialogs import (
    Choice,
    ChoiceDialog,
    Dialog,
    DialogBox,
    DialogText,
    PromptDialog,
)
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.lists.styled import ListSource, Piece, Rows, wrap
from dld_tui.widgets.shell import glyphs

_OTHER_ROWS = 10
"""Rows of the screen that a list leaves to the rest of a dialog."""
_TITLE = 40
"""Cells of what an edit is called, in a border that has keys, too."""
_BESIDE = 40
"""Cells of text from which it stands beside its claim."""
_DONE = {"cut": "cut", "make": "made", "put": "put", "set": "set", "strip": "stripped"}
"""Participles that are not regular."""


class VersionDialog(Dialog[int]):
    """A list of the known versions, the newest first; gives the chosen one."""

    TITLE_TEXT = "Convert to which opset?"
    KEYS = "Enter choose  Esc close"

    def __init__(self, present: int, newest: int) -> None:
        super().__init__()
        self.present = present
        self.versions = list(range(newest, 0, -1))

    def body(self) -> Iterable[Widget]:
        yield Rows([[(f"The model has version {self.present} of ai.onnx.", "dim")], []])
        rows: list[list[Piece]] = [
            [(f"{version:>4}", "strong"), (self._note(version), "dim")] for version in self.versions
        ]
        view = LineView(ListSource(rows, self.versions))
        view.styles.height = min(len(rows), max(3, self.app.size.height - _OTHER_ROWS))
        yield view

    def _note(self, version: int) -> str:
        if version == self.present:
            return "  as it is"
        return "  the newest known version" if version == self.versions[0] else ""

    def on_mount(self) -> None:
        """Begin at the present version."""
        if self.present in self.versions:
            self.query_one(LineView).cursor = self.versions.index(self.present)

    def on_line_view_activated(self, event: LineView.Activated) -> None:
        """Give the version at the cursor."""
        event.stop()
        self.dismiss(int(str(event.key)))


def _past_tense(title: str) -> str:
    """Return what an edit is called, such as ``convert to fp16``, as something that was done."""
    verb, _, rest = title.partition(" ")
    done = _DONE.get(verb.lower()) or f"{verb}{'d' if verb.endswith('e') else 'ed'}"
    return f"{done[:1].upper()}{done[1:]} {rest}".strip()


class ConversionDialog(Dialog[bool]):
    """The report of a conversion; Enter gives True: open the result."""

    NEEDS_TO_BE_SEEN = True
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "enter", "open", show=False)]
    ANSWER: ClassVar[bool | None] = True
    """What Enter gives."""
    TITLE_TEXT = "Converted"
    KEYS = "Enter open the result  Esc close"
    WIDTH = 96

    def __init__(self, notes: Sequence[Note], name: str, title: str = "") -> None:
        """Show notes.

        Args:
            notes: What was done, fit for a terminal.
            name: Of the file. Untrusted text.
            title: Of the edit, such as ``convert to fp16``. Untrusted text.
        """
        super().__init__()
        self.notes = notes
        self.name_of_file = name
        if title:
            self.TITLE_TEXT = clip(visible(_past_tense(title)), _TITLE)

    def body(self) -> Iterable[Widget]:
        yield DialogText(self._lines, _OTHER_ROWS)
        ending = self.end()
        if ending:
            yield Rows([[], ending])

    def _lines(self, width: int) -> list[list[Piece]]:
        """Return what was done, for a width in cells."""
        rows: list[list[Piece]] = []
        shown = glyphs.current()
        marks = {NoteKind.GOOD: (shown.good, "good"), NoteKind.WARNING: (shown.warning, "warn")}
        claims = [note for note in self.notes if isinstance(note, Claim)]
        room = max((cell_width(note.claim) for note in claims), default=0)
        for number, note in enumerate(self.notes):
            warns = note.kind is NoteKind.WARNING
            style = "strong" if number == 0 else "warn" if warns else "dim" if claims else ""
            if isinstance(note, Claim):
                mark, tone = marks.get(note.kind, (shown.info, "dim"))
                head: list[Piece] = [(f"{mark} ", tone), (f"{note.claim:<{room}}  ", "strong")]
                indent = room + 4
                if width - indent < _BESIDE:
                    rows.append(head)
                    indent, head = 2, [("  ", "")]
                for row in wrap(note.text, width - indent):
                    rows.append([*head, (row, "")])
                    head = [(" " * indent, "")]
            else:
                margin = "  " if claims else ""  # below the claims
                rows += [[(f"{margin}{row}", style)] for row in wrap(note.text, width - 2)]
        return rows

    def on_mount(self) -> None:
        """Make the box as wide as its text."""
        super().on_mount()
        self.query_one(DialogBox).styles.width = self.WIDTH + 4

    def end(self) -> list[Piece]:
        """Return the row below the lines."""
        if not self.name_of_file:
            return []
        return [("written to ", "dim"), (visible(self.name_of_file), "")]

    def on_line_view_activated(self, event: LineView.Activated) -> None:
        """Do what Enter does, wherever the cursor is."""
        event.stop()
        self.action_enter()

    def action_enter(self) -> None:
        self.dismiss(self.ANSWER)


class AppliedDialog(ConversionDialog):
    """What was done to the open model; u gives True: undo it; Ctrl+S False: save the model."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("u", "undo", "undo", show=False, id="edit.undo"),
        Binding("ctrl+s", "save", "save", show=False, id="model.save"),
        Binding("enter", "enter", "close", show=False),
    ]
    ANSWER = None
    KEYS = "{edit.undo} undo  {model.save} save  Esc close"

    def __init__(self, notes: Sequence[Note], title: str) -> None:
        """Show notes; `title` is that of the edit in the history."""
        super().__init__(notes, "", title)

    def end(self) -> list[Piece]:
        """Return what the history has."""
        return [("one edit, not saved yet", "dim")]

    def action_undo(self) -> None:
        self.dismiss(True)

    def action_save(self) -> None:
        self.dismiss(False)


class PreviewDialog(ConversionDialog):
    """The effect of casts; Enter gives True: write the copy."""

    TITLE_TEXT = "Casts for the layers' precisions"
    KEYS = "Enter write a copy  Esc close"

    def __init__(self, notes: list[Note]) -> None:
        super().__init__(notes, "")


class ListDialog(ConversionDialog):
    """What a conversion would convert; nothing has been written."""

    TITLE_TEXT = "Would be quantized"
    KEYS = "Esc close"

    def __init__(self, notes: list[Note], end: str) -> None:
        """Show notes; `end` stands below them."""
        super().__init__(notes, "")
        self._end = end

    def end(self) -> list[Piece]:
        """Return the row below the lines."""
        return [(self._end, "dim")] if self._end else []


_MOST_ROWS = 12
_OTHER = "another"


class OpsetDialog(Dialog[None]):
    """Changes the imports of a document by `edit`, which reports errors."""

    TITLE_TEXT = "Operator sets"
    KEYS = "Enter change  a import  d remove  Esc close"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a,plus", "import", show=False),
        Binding("d,delete", "remove", show=False),
    ]

    def __init__(self, document: Document, edit: Callable[..., bool]) -> None:
        super().__init__()
        self.document = document
        self.edit = edit
        self._imports: list[OpsetImport] = []

    def body(self) -> Iterable[Widget]:
        head = fit("Domain", 30) + fit("Version", 9) + fit("Newest", 8) + "Used by"
        yield Rows([[(f" {head}", "dim")]])
        view = LineView(empty="No operator set is imported; a imports one")
        yield view
        yield Rows([[], []], id="opset-note")

    def on_mount(self) -> None:
        """List the imports."""
        self.show_imports()
        self.view.focus()

    @property
    def view(self) -> LineView:
        """The list."""
        return self.query_one(LineView)

    def show_imports(self) -> None:
        """List the imports as they are now."""
        self._imports = opset_imports(self.document)
        rows = [_row(entry) for entry in self._imports]
        most = min(_MOST_ROWS, max(4, self.app.size.height - 12))
        self.view.styles.height = max(1, min(len(rows), most))
        self.view.set_lines(ListSource(rows, [entry.domain for entry in self._imports]))
        self._explain()

    def on_line_view_cursor_moved(self, event: LineView.CursorMoved) -> None:
        """Say which runtimes take the version."""
        event.stop()
        self._explain()

    def _explain(self) -> None:
        entry = self._entry
        rows: list[list[Piece]] = [[], []]
        if entry is not None and entry.version is None:
            rows[1] = [("Nodes use it, but the model does not import it.", "warn")]
        elif entry is not None and entry.domain == "" and entry.version is not None:
            names = runtimes_text(entry.version)
            rows[1] = [(clip(f"Documented support: {names}", self.text_width), "dim")]
        self.query_one("#opset-note", Rows).set_rows(rows)

    @property
    def _entry(self) -> OpsetImport | None:
        at = self.view.cursor
        return self._imports[at] if at < len(self._imports) else None

    def on_line_view_activated(self, event: LineView.Activated) -> None:
        """Ask for another version."""
        event.stop()
        if (entry := self._entry) is not None:
            present = "" if entry.version is None else str(entry.version)
            self._ask_version(entry.domain, present, changes=entry.version is not None)

    def action_import(self) -> None:
        present = {entry.domain for entry in self._imports if entry.version is not None}
        offered = [domain for domain in known_domains() if domain not in present]
        choices = [
            Choice(str(at + 1), domain_title(domain), domain or "ai.onnx")
            for at, domain in enumerate(offered)
        ]
        choices.append(Choice("o", "another one, by name", _OTHER))

        def answered(answer: str | None) -> None:
            if answer == _OTHER:
                self._ask_domain()
            elif answer is not None:
                self._ask_version("" if answer == "ai.onnx" else answer, "", changes=False)

        question = ChoiceDialog("Import", "Which operator set?", choices)
        self.app.push_screen(question, answered)

    def _ask_domain(self) -> None:
        def answered(name: str | None) -> None:
            if name is not None:
                self._ask_version(name.strip(), "", changes=False)

        self.app.push_screen(
            PromptDialog("Import", "The domain, such as com.example", check=_domain_problem),
            answered,
        )

    def _ask_version(self, domain: str, present: str, *, changes: bool) -> None:
        from dld_tui.core.model.edits import metadata

        known = known_versions(domain)
        message = f"Known versions: 1 to {known[-1]}." if known else "This operator set is unknown."
        if changes:
            message += " Nodes are not converted: this only changes how they are interpreted."
        version = str(importable_version(domain, int(self.document.model.ir_version)))

        def answered(text: str | None) -> None:
            if text is not None and self.edit(metadata.set_opset(domain=domain, version=int(text))):
                self.show_imports()
                self.view.go_to_key(domain)

        title = f"Version of {visible(domain_title(domain))}"
        self.app.push_screen(
            PromptDialog(title, message, present or version, check=_version_problem), answered
        )

    def action_remove(self) -> None:
        from dld_tui.core.model.edits import metadata

        entry = self._entry
        if entry is None or entry.version is None:
            return
        if entry.used_by:
            nodes = fmt.plural(entry.used_by, "node")
            self.notify(f"It cannot be removed: {nodes} use it", severity="warning", timeout=4)
        elif self.edit(metadata.set_opset(domain=entry.domain, version=None)):
            self.show_imports()


def _row(entry: OpsetImport) -> list[Piece]:
    version = "missing" if entry.version is None else str(entry.version)
    newest = fmt.UNKNOWN if entry.newest is None else str(entry.newest)
    used = fmt.plural(entry.used_by, "node") if entry.used_by else "unused"
    name = fit(visible(domain_title(entry.domain)), 29, keep="end")
    return [
        (f"{name} ", ""),
        (fit(version, 9), "warn" if entry.version is None else "number"),
        (fit(newest, 8), "dim"),
        (used, "" if entry.used_by else "faint"),
    ]


def _domain_problem(text: str) -> str | None:
    name = text.strip()
    return None if name and " " not in name else "a name without spaces"


def _version_problem(text: str) -> str | None:
    number = text.strip()
    fits = number.isdecimal() and 1 <= int(number) < 2**31
    return None if fits else "a whole number from 1"
