"""Pages about a model: its metadata, and its optimization profiles."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import Input

from dld_tui.commands.command import table
from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import DldError, InputError, UsageError
from dld_tui.core.files.proto_fields import text_of
from dld_tui.core.model.document import Document, Node, Scope
from dld_tui.core.model.document.metadata import (
    KINDS,
    Profile,
    Range,
    declared_inputs,
    default_range,
    is_dynamic,
    new_profile,
    problem_of,
    profiles_json,
    profiles_of,
)
from dld_tui.core.model.edits.metadata import MODEL_NUMBERS, MODEL_TEXTS
from dld_tui.core.model.inputs.shape_texts import MOST, shape_of, shape_text
from dld_tui.core.model.tensors.value_types import Dims, format_type, parse_type, value_type_of
from dld_tui.core.tables.table import COUNT, NOTE, Column, Table
from dld_tui.core.text import cell_width, clip, fit, visible
from dld_tui.screens.base_pages import ListPage
from dld_tui.screens.workspace.history import EditHistory, PageEdits
from dld_tui.screens.workspace.state import is_alive
from dld_tui.widgets.dialogs.dialogs import Dialog, PromptDialog, TextDialog
from dld_tui.widgets.forms.text_field import text_field
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.lists.styled import Piece, Rows
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.shell.command_dispatch import hint, holding
from dld_tui.widgets.shell.page import Page
from dld_tui.widgets.tasks import task

if TYPE_CHECKING:
    import onnx

    from dld_tui.core.model.document import DocumentChange


_LABEL_CELLS = 26
_LEAST_LABEL = 12
_FIELDS = ("producer_name", "producer_version", "domain", "model_version", "ir_version")
_TITLES = {
    "producer_name": "producer", "producer_version": "producer version", "domain": "domain",
    "model_version": "model version", "ir_version": "IR version",
}  # fmt: skip


@dataclass(frozen=True)
class MetadataPart:
    """What entries belong to: the model (`scope` is None), a graph or function, or a node."""

    title: str
    """Visible text."""
    scope: Scope | None = None
    node: Node | None = None

    @property
    def where(self) -> dict[str, Any]:
        """Return the arguments that name it in an edit."""
        if self.scope is None:
            return {}
        path = self.scope.path
        return {"scope": path} if self.node is None else {"scope": path, "nodes": [self.node.ref]}

    @property
    def message(self) -> Any:
        """Return the message that holds its entries."""
        if self.node is not None:
            return self.node.proto
        return self.scope.proto if self.scope is not None else None


@dataclass(frozen=True)
class MetadataRow:
    """One row; `kind` says what it is."""

    kind: str
    """``part``, ``field``, ``doc``, ``entry``, ``type`` or ``annotation``; ``note``."""
    label: str
    value: str
    """Untrusted text; of an entry or doc string all of it."""
    part: MetadataPart
    key: str = ""
    """The entry's key, the field, or the value's name. Untrusted text."""

    @property
    def is_text(self) -> bool:
        """Whether there is something to edit."""
        return self.kind in ("field", "doc", "entry", "type")


class MetadataLines:
    """The line source: parts from top to bottom; types of values are read when they are seen."""

    def __init__(self, document: Document, subject: Node | Scope | None) -> None:
        self.document = document
        node = subject if isinstance(subject, Node) else None
        scope = subject.scope if isinstance(subject, Node) else subject
        self.scope = scope or document.main
        self._values_part = MetadataPart(visible(self.scope.title), self.scope)
        self.rows = list(self._fixed(node))
        self._types: Sequence[Any] = self.scope.records.get("value_info", ())
        self._annotations: Sequence[Any] = self.scope.records.get("quantization_annotation", ())

    def _fixed(self, node: Node | None) -> Iterator[MetadataRow]:
        if node is not None:
            name = visible(node.name or next(filter(None, node.outputs), ""))
            yield from _part(MetadataPart(f"Node {visible(node.op_type)} {name}", node.scope, node))
        scope = self.scope
        kind = {"graph": "Graph", "function": "Function", "subgraph": "Subgraph"}[scope.kind]
        yield from _part(MetadataPart(f"{kind} {visible(text_of(scope.proto.name))}", scope))
        yield from self._model()

    def _model(self) -> Iterator[MetadataRow]:
        model = self.document.model
        part = MetadataPart("Model")
        yield MetadataRow("part", part.title, "", part)
        for field in _FIELDS:
            value = getattr(model, field) if model.HasField(field) else ""
            text = text_of(value) if field in MODEL_TEXTS else str(value)
            yield MetadataRow("field", _TITLES[field], text, part, field)
        yield from _texts(part, model)

    def __len__(self) -> int:
        return len(self.rows) + _section(self._types) + _section(self._annotations)

    def row(self, index: int) -> MetadataRow:
        """Return one row."""
        if index < len(self.rows):
            return self.rows[index]
        index -= len(self.rows)
        part = self._values_part
        if index < _section(self._types):
            if index == 0:
                return MetadataRow("part", f"Declared types in {part.title}", "", part)
            record = self._types[index - 1]
            known = value_type_of(record.type)
            text = format_type(known) or (known.text if known is not None else "")
            name = text_of(record.name)
            return MetadataRow("type", visible(name), text, part, name)
        index -= _section(self._types)
        if index == 0:
            return MetadataRow("part", f"Quantization annotations in {part.title}", "", part)
        return _annotation(self._annotations[index - 1], part)

    def key(self, index: int) -> Hashable:
        row = self.row(index)
        return (row.kind, row.part.title, row.key or row.label)

    def text(self, index: int) -> str:
        row = self.row(index)
        return f"{row.label}  {visible(row.value)}".rstrip()

    def line(self, index: int, width: int) -> Sequence[Piece]:
        row = self.row(index)
        if row.kind == "part":
            return [(clip(row.label, width), "strong")]
        wide = row.kind in ("type", "annotation")
        label_cells = width // 2 if wide else max(_LEAST_LABEL, min(_LABEL_CELLS, width // 3))
        label = fit(row.label, label_cells, keep="middle")
        first, _, rest = row.value.partition("\n")
        lines = rest.count("\n") + 1 if rest else 0
        more = f"  and {lines} more {'line' if lines == 1 else 'lines'}" if lines else ""
        room = width - 4 - cell_width(label)
        style = {"type": "type", "annotation": "dim"}.get(row.kind, "")
        if not row.value:
            return [("  ", ""), (label, "dim"), (f"  {glyphs.current().missing}", "faint")]
        return [
            ("  ", ""),
            (label, "key" if row.kind == "entry" else "dim"),
            ("  " + clip(visible(first), max(0, room - cell_width(more))), style),
            (more, "faint"),
        ]


def _section(records: Sequence[Any]) -> int:
    """Return how many rows records take, with their heading."""
    return len(records) + bool(len(records))


def _part(part: MetadataPart) -> Iterator[MetadataRow]:
    yield MetadataRow("part", part.title, "", part)
    yield from _texts(part, part.message)


def _texts(part: MetadataPart, message: Any) -> Iterator[MetadataRow]:
    yield MetadataRow("doc", "doc string", text_of(message.doc_string), part, "doc_string")
    for entry in message.metadata_props:
        key = text_of(entry.key)
        yield MetadataRow("entry", visible(key) or "(no key)", text_of(entry.value), part, key)


def _annotation(record: onnx.TensorAnnotation, part: MetadataPart) -> MetadataRow:
    entries = record.quant_parameter_tensor_names
    text = "  ".join(f"{text_of(e.key)} = {text_of(e.value)}" for e in entries)
    name = text_of(record.tensor_name)
    return MetadataRow("annotation", visible(name), text, part, name)


class MetadataList(LineView):
    """The rows."""


class MetadataScreen(Page):
    """Everything that can be written about a model and its parts; each change is an edit.

    Args:
        workspace: The screen of the model; edits go through it.
        subject: The node or graph to begin with.
    """

    SCOPE = "metadata"
    COMMAND_TABLE = table(
        "metadata",
        ("metadata.edit", "edit", "e,enter", "entry", "edit",
         "Edit the text or type at the cursor."),
        ("metadata.add", "add", "a", "", "add entry", "Add a metadata entry here."),
        ("metadata.delete", "delete", "d,delete", "entry", "delete",
         "Remove the entry, the text or the declared type."),
        ("metadata.undo", "edits.undo", "u,ctrl+z", "can_undo", "undo", "Undo the last edit."),
        ("metadata.redo", "edits.redo", "ctrl+y,ctrl+r", "can_redo", "redo",
         "Redo the last undone edit."),
        footer="metadata.edit metadata.add metadata.delete metadata.undo",
    )  # fmt: skip
    MORE_SCOPES: ClassVar[tuple[str, ...]] = ("model_page", "page")
    tab_title = "metadata"
    HELP = (
        "The metadata of the node, its graph and the model. {metadata.edit} edits the text at the "
        "cursor (a doc string in several lines), {metadata.add} adds an entry to this part, "
        "{metadata.delete} removes one. Each change is an edit that {metadata.undo} undoes."
    )

    def __init__(self, workspace: EditHistory, subject: Node | Scope | None) -> None:
        super().__init__()
        self.edits = PageEdits(self, workspace)
        self.subject = subject

    def body(self) -> Iterable[Widget]:
        view = MetadataList(MetadataLines(self.edits.document, self.subject))
        view.frame.show(
            "Metadata",
            "{metadata.edit} edit  {metadata.add} add  {metadata.delete} delete  {page.close} "
            "close",
        )
        yield view

    def on_mount(self) -> None:
        """Follow the model; begin at the first text."""
        self.edits.document.on_change.append(self._changed)
        self.view.cursor = 1
        self.view.focus()

    def on_unmount(self) -> None:
        """Follow it no longer."""
        if self._changed in self.edits.document.on_change:
            self.edits.document.on_change.remove(self._changed)

    def _changed(self, change: DocumentChange) -> None:
        if self.subject is not None and not is_alive(self.subject):
            self.subject = self.edits.document.main
        place = self.edits.returning(change, lambda: self.view.place)
        self.view.set_lines(MetadataLines(self.edits.document, self.subject))
        if place is not None:
            self.view.return_to(place)
        self.refresh_bindings()

    @property
    def view(self) -> MetadataList:
        """The list."""
        return self.query_one(MetadataList)

    @property
    def row(self) -> MetadataRow | None:
        """The row under the cursor."""
        lines = self.view.lines
        at = self.view.cursor
        return lines.row(at) if isinstance(lines, MetadataLines) and at < len(lines) else None

    def conditions(self) -> set[str]:
        conditions = super().conditions()
        row = self.row if self.is_mounted and self.query(MetadataList) else None
        history = self.edits.document.history
        return conditions | holding(
            entry=row is not None and row.is_text,
            can_undo=bool(history.done),
            can_redo=bool(history.undone),
        )

    def on_line_view_cursor_moved(self, event: LineView.CursorMoved) -> None:
        """Draw the keys that work on this row."""
        event.stop()
        self.refresh_bindings()

    def on_line_view_activated(self, event: LineView.Activated) -> None:
        """Edit the row."""
        event.stop()
        self.action_edit()

    @task()
    async def action_edit(self) -> None:
        row = self.row
        if row is None or not row.is_text:
            return
        title = f"{row.label} of {row.part.title}" if row.kind != "type" else "Type"
        dialog: Dialog[str] = PromptDialog(
            "Edit", title, visible(row.value), check=lambda text: _problem(row, text)
        )
        if row.kind == "doc" or (row.kind == "entry" and "\n" in row.value):
            dialog = TextDialog(title, row.value)
        text = await self.tasks.ask(dialog)
        # Text that cannot be shown as it is, and was not edited, is not changed.
        if text is not None and text not in (row.value, visible(row.value)):
            self._write(row, text)

    def _write(self, row: MetadataRow, text: str | None) -> None:
        from dld_tui.core.model.edits import metadata

        where = row.part.where
        if row.kind == "doc" and row.part.scope is not None:
            self.edits.workspace.try_edit(metadata.set_doc_string(text=text or "", **where))
        elif row.kind in ("doc", "field"):
            value = int(text) if row.key in MODEL_NUMBERS and text else text or None
            self.edits.workspace.try_edit(metadata.set_model_field(field=row.key, value=value))
        elif row.kind == "entry":
            self.edits.workspace.try_edit(metadata.set_metadata(key=row.key, value=text, **where))
        else:
            self._write_type(row, text or "")

    def _write_type(self, row: MetadataRow, text: str) -> None:
        from dld_tui.core.model.edits import inputs_outputs

        wanted = parse_type(text)
        dims = wanted.dims if wanted is not None else None
        dtype = wanted.dtype if wanted is not None else None
        self.edits.workspace.try_edit(
            inputs_outputs.set_value_type(value=row.key, dtype=dtype, dims=dims, **row.part.where)
        )

    def action_delete(self) -> None:
        row = self.row
        if row is not None and row.is_text:
            self._write(row, None)

    @task()
    async def action_add(self) -> None:
        """Ask for a key and a text, and add them to the part that the cursor is in."""
        row = self.row
        if row is None:
            return
        part = row.part
        message = part.message if part.scope is not None else self.edits.document.model
        present_keys = {entry.key for entry in message.metadata_props}

        def check(key: str) -> str | None:
            if not key.strip():
                return "type a key"
            return "there is an entry with this key" if key.strip() in present_keys else None

        prompt = PromptDialog("Add entry", f"The key of a new entry of {part.title}.", check=check)
        key = await self.tasks.ask(prompt)
        if not key:
            return
        entry = MetadataRow("entry", visible(key.strip()), "", part, key.strip())
        about = f"The text of {visible(key.strip())}."
        text = await self.tasks.ask(PromptDialog("Add entry", about))
        if text is not None:
            self._write(entry, text)


def _problem(row: MetadataRow, text: str) -> str | None:
    """Return what is wrong with a text for a row, or None."""
    if row.key in MODEL_NUMBERS and row.kind == "field" and text:
        good = text.isascii() and text.isdigit() and int(text) < 2**63
        return None if good else "a whole number is needed"
    if row.kind == "type":
        try:
            parse_type(text)
        except DldError as error:
            return visible(str(error))
    return None


_SIDES = {"min": "smallest (min)", "opt": "most typical (opt)", "max": "largest (max)"}
_NO_DYNAMIC = "All inputs have fixed shapes: no profile is needed."


@dataclass(frozen=True)
class RangeRow:
    """One input of one profile; `range` is None when the profile has none for it."""

    profile: int
    name: str
    """Untrusted text."""
    dims: Dims | None
    range: Range | None

    @property
    def problem(self) -> str | None:
        """What is wrong with it, or None."""
        if self.range is None:
            return "has no range"
        return problem_of(self.dims, self.range)


def range_table(document: Document, profiles: Sequence[Profile]) -> Table[RangeRow]:
    """Return the rows of all profiles."""
    inputs = declared_inputs(document)
    dynamic = [name for name, dims in inputs.items() if is_dynamic(dims)]
    rows = [
        RangeRow(at, name, inputs.get(name), profile.get(name))
        for at, profile in enumerate(profiles)
        for name in dict.fromkeys((*dynamic, *profile))
    ]
    first = {row.profile: row for row in reversed(rows)}

    def shape(kind: str) -> Column[RangeRow]:
        return Column(
            kind, kind,
            lambda row: None if row.range is None else shape_text(row.range.shape(kind)), width=14,
            style=lambda row: "faint" if row.range is None else "bad" if row.problem else "",
            order=lambda row: (row.profile, row.name),
        )  # fmt: skip

    return Table(
        (
            Column("profile", "#", lambda row: row.profile + 1, COUNT, 3, pinned=True,
                   descending=False, style="strong",
                   text=lambda row: str(row.profile + 1) if first[row.profile] is row else ""),
            Column("input", "input", lambda row: row.name, least=12, keep="middle", pinned=True,
                   style="io"),
            Column("declared", "declared", lambda row: fmt.shape(row.dims), width=20, priority=2,
                   style="dim"),
            *map(shape, KINDS),
            Column("problem", "", lambda row: row.problem, NOTE, 34, priority=1, style="bad",
                   text=lambda row: f"{glyphs.current().error} {row.problem}" if row.problem
                   else ""),
        ),
        rows,
        row_key=lambda row: (row.profile, row.name),
    )  # fmt: skip


class ProfilesScreen(ListPage[RangeRow]):
    """The optimization profiles of a model; each change is an edit of the model."""

    SCOPE = "profiles"
    COMMAND_TABLE = table(
        "profiles",
        ("profiles.edit", "edit", "e,enter", "range", "edit", "Edit the shapes of this input."),
        ("profiles.add", "add", "a", "dynamic", "add profile", "Add an optimization profile."),
        ("profiles.delete", "delete", "d,delete", "range", "delete",
         "Remove the optimization profile at the cursor."),
        ("profiles.undo", "edits.undo", "u,ctrl+z", "can_undo", "undo", "Undo the last edit."),
        ("profiles.redo", "edits.redo", "ctrl+y,ctrl+r", "can_redo", "redo",
         "Redo the last undone edit."),
        footer="profiles.edit profiles.add profiles.delete profiles.undo",
    )  # fmt: skip
    MORE_SCOPES: ClassVar[tuple[str, ...]] = ("model_page", "page")
    tab_title = "shape profiles"
    ROW_CONDITION = "range"
    HELP = (
        "An engine is built for ranges of input shapes. Each optimization profile gives the "
        "minimum, optimum and maximum shape of every input with a dynamic dimension. "
        "{profiles.add} adds a profile, {profiles.edit} edits the shapes at the cursor, "
        "{profiles.delete} removes the profile. The model stores the profiles."
    )

    def __init__(self, workspace: EditHistory) -> None:
        super().__init__()
        self.edits = PageEdits(self, workspace)
        self.problem = ""
        """Why the profiles that are there cannot be shown."""

    def on_mount(self) -> None:
        """Follow the model."""
        self.edits.document.on_change.append(self._changed)
        self.show_rows()

    def on_unmount(self) -> None:
        """Follow it no longer."""
        if self._changed in self.edits.document.on_change:
            self.edits.document.on_change.remove(self._changed)

    def _changed(self, change: DocumentChange) -> None:
        place = self.edits.returning(change, lambda: self.view.place)
        self.show_rows()
        if place is not None:
            self.view.return_to(place)

    @property
    def profiles(self) -> list[Profile]:
        """The profiles of the model; none when they are damaged."""
        try:
            return profiles_of(self.edits.document)
        except InputError:
            return []

    def table(self) -> Table[RangeRow]:
        """Return the ranges of all profiles."""
        document = self.edits.document
        try:
            self.problem = ""
            profiles = profiles_of(document)
        except InputError as error:
            self.problem, profiles = visible(error.message), []
        self.view.empty = self.problem or (
            hint("No profile yet. Press {profiles.add} to add one.")
            if new_profile(document)
            else _NO_DYNAMIC
        )
        count = fmt.plural(len(profiles), "profile")
        self.view.frame.show(
            "Shape profiles",
            f"{count}   {{profiles.add}} add  {{profiles.edit}} edit  {{profiles.delete}} delete"
            "  {page.close} close",
        )
        return range_table(document, profiles)

    def conditions(self) -> set[str]:
        """Return whether there is a profile, and whether one makes sense."""
        conditions = super().conditions()
        document = self.edits.document
        return conditions | holding(
            dynamic=bool(new_profile(document)),
            can_undo=bool(document.history.done),
            can_redo=bool(document.history.undone),
        )

    def activate(self) -> None:
        """Edit the row."""
        self.action_edit()

    def _set(self, profiles: list[Profile]) -> None:
        from dld_tui.core.model.edits import metadata

        self.edits.workspace.try_edit(metadata.set_profiles(profiles=profiles_json(profiles)))

    def action_add(self) -> None:
        """Add a profile: a copy of the one under the cursor, or one with every dimension 1."""
        profiles, row = self.profiles, self.row
        copied = profiles[row.profile] if row is not None else new_profile(self.edits.document)
        self._set([*profiles, copied])
        self.view.go_to_key((len(profiles), next(iter(copied), "")))

    def action_delete(self) -> None:
        row = self.row
        if row is not None:
            self._set([p for at, p in enumerate(self.profiles) if at != row.profile])

    def action_edit(self) -> None:
        row = self.row
        if row is None:
            return

        def edited(limits: Range | None) -> None:
            if limits is not None and limits != row.range:
                profiles = self.profiles
                changed = dict(profiles[row.profile]) | {row.name: limits}
                self._set([*profiles[: row.profile], changed, *profiles[row.profile + 1 :]])

        self.app.push_screen(RangeDialog(row), edited)


class RangeDialog(Dialog[Range]):
    """Three shapes of one input; gives them, or None."""

    KEYS = "Tab next  Enter accept  Esc close"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down", "app.focus_next", show=False),
        Binding("up", "app.focus_previous", show=False),
    ]

    def __init__(self, row: RangeRow) -> None:
        super().__init__()
        self.row = row
        self.TITLE_TEXT = f"Profile {row.profile + 1}: {visible(row.name)}"

    def body(self) -> Iterable[Widget]:
        present = self.row.range or default_range(self.row.dims or ())
        declared = visible(fmt.shape(self.row.dims))
        yield Rows([[("declared ", "dim"), (declared, "io"), ("   write 1x3x224x224", "dim")], []])
        for kind in KINDS:
            yield Rows([[(_SIDES[kind], "key")]])
            yield text_field(shape_text(present.shape(kind)), id=f"shape-{kind}")
        yield Rows([[], []], id="problem")

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show what is wrong with the shapes."""
        event.stop()
        self._range()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Give the shapes when nothing is wrong with them."""
        event.stop()
        limits = self._range()
        if limits is not None:
            self.dismiss(limits)

    def _range(self) -> Range | None:
        """Return the shapes as they stand, or None after saying what is wrong with them."""
        problem: str | None = None
        limits = None
        try:
            texts = [self.query_one(f"#shape-{kind}", Input).value for kind in KINDS]
            limits = Range(*(shape_of(text, most=MOST) for text in texts))
            problem = problem_of(self.row.dims, limits)
        except UsageError as error:
            problem = visible(str(error))
        mark = glyphs.current().error
        row: list[Piece] = [(f"{mark} {problem}", "bad")] if problem else []
        self.query_one("#problem", Rows).set_rows([[], row])
        return None if problem else limits
