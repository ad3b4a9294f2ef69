"""The page of optimization profiles: the smallest, usual and largest shape of each input."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import Input

from dld_tui.core import fmt
from dld_tui.core.document import Document
from dld_tui.core.document.metadata import (
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
from dld_tui.core.document.types.value_types import Dims
from dld_tui.core.errors import InputError
from dld_tui.core.tables.table import COUNT, NOTE, Column, Table
from dld_tui.core.text import visible
from dld_tui.screens.list_page import ListPage
from dld_tui.screens.workspace.history import History, PageEdits
from dld_tui.widgets.dialogs.dialogs import Dialog
from dld_tui.widgets.forms.text_field import text_field
from dld_tui.widgets.lists.line_source import Piece
from dld_tui.widgets.lists.styled import Rows
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.shell.command_dispatch import bindings_for, hint

if TYPE_CHECKING:
    from dld_tui.core.document import Change

_TITLES = {"min": "smallest (min)", "opt": "most usual (opt)", "max": "largest (max)"}
_NO_DYNAMIC = "All inputs have fixed shapes: no profile is needed."


@dataclass(frozen=True)
class RangeRow:
    """One input of one profile; `range` is None when the profile has none for it."""

    profile: int
    name: str
    """Foreign text."""
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
    BINDINGS: ClassVar[list[BindingType]] = bindings_for("page", "model_page", "profiles")
    MORE_SCOPES: ClassVar[tuple[str, ...]] = ("model_page", "page")
    tab_title = "shape profiles"
    ROW_FACT = "range"
    HELP = (
        "An engine is built for ranges of input shapes. Each optimization profile gives the "
        "minimum, optimum and maximum shape of every input with a dynamic dimension. "
        "{profiles.add} adds a profile, {profiles.edit} edits the shapes at the cursor, "
        "{profiles.delete} removes the profile. The model stores the profiles."
    )

    def __init__(self, workspace: History) -> None:
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

    def _changed(self, change: Change) -> None:
        self.show_rows()

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

    def facts(self) -> set[str]:
        """Return whether there is a profile, and whether one makes sense."""
        facts = super().facts()
        document = self.edits.document
        known = {
            "dynamic": bool(new_profile(document)),
            "can_undo": bool(document.history.done),
            "can_redo": bool(document.history.undone),
        }
        return facts | {name for name, holds in known.items() if holds}

    def activate(self) -> None:
        """Edit the row."""
        self.action_edit()

    # --- editing --------------------------------------------------------------------------------

    def _set(self, profiles: list[Profile]) -> None:
        self.edits.workspace.try_edit("set_profiles", profiles=profiles_json(profiles))

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
            yield Rows([[(_TITLES[kind], "key")]])
            yield text_field(shape_text(present.shape(kind)), id=f"shape-{kind}")
        yield Rows([[], []], id="problem")

    def on_input_changed(self, event: Input.Changed) -> None:
        """Say what is wrong with the shapes."""
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
            limits = Range(*map(shape_of, texts))
            problem = problem_of(self.row.dims, limits)
        except InputError as error:
            problem = visible(error.message)
        mark = glyphs.current().error
        row: list[Piece] = [(f"{mark} {problem}", "bad")] if problem else []
        self.query_one("#problem", Rows).set_rows([[], row])
        return None if problem else limits


def shape_text(shape: Iterable[int]) -> str:
    """Return a shape as trtexec writes it: ``1x3x224x224``; ``scalar`` without dimensions."""
    return "x".join(map(str, shape)) or "scalar"


def shape_of(text: str) -> tuple[int, ...]:
    """Return the shape that a text means; ``x``, commas and blanks separate.

    Raises:
        InputError: It is no shape.
    """
    if text.strip() in ("", "scalar"):
        return ()
    parts = text.lower().replace("x", " ").replace(",", " ").strip("[ ]").split()
    if not all(part.isascii() and part.isdigit() and int(part) < 2**31 for part in parts):
        raise InputError("a shape is written as 1x3x224x224")
    return tuple(map(int, parts))
