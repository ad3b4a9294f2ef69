"""The editor of one tensor: a grid of any size, its slices, its statistics."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events, on
from textual.containers import Container
from textual.widget import Widget

from dld_tui.commands.command import table
from dld_tui.core import fmt
from dld_tui.core.errors import CancelledError, DldError, UsageError
from dld_tui.core.model.document import DocumentChange
from dld_tui.core.model.document.packed_weights import (
    BlockedWeight,
    WeightPart,
    WeightView,
    weight_views,
)
from dld_tui.core.model.inputs.shape_texts import shape_of
from dld_tui.core.model.tensors.elements import to_json
from dld_tui.core.model.tensors.inspection import Histogram, TensorWindow
from dld_tui.core.model.tensors.literals import parse_element
from dld_tui.core.model.tensors.npy import NpyPayload, export_npy, import_npy, read_npy_header
from dld_tui.core.model.tensors.tensor import Tensor, TensorStatistics, tensor_statistics
from dld_tui.core.text import clip, visible
from dld_tui.core.types import JSON, CancelCheck, ProgressCallback
from dld_tui.screens.tensors.conversion import (
    TensorConversion,
    TensorPlace,
    external_entries_dialog,
)
from dld_tui.screens.workspace.history import PageEdits
from dld_tui.styles import STYLES
from dld_tui.widgets.dialogs.dialogs import Choice, ChoiceDialog, OpenPathDialog, PromptDialog
from dld_tui.widgets.dialogs.overwrite import ask_file
from dld_tui.widgets.lists.styled import Piece
from dld_tui.widgets.parameters.edit_bar import EditBar
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.shell.command_dispatch import holding
from dld_tui.widgets.shell.page import Page, host
from dld_tui.widgets.tasks import task, with_progress
from dld_tui.widgets.tensors.grid import GridPane, SliceBar, TensorGrid
from dld_tui.widgets.tensors.grid_layout import (
    MOST_DIGITS,
    Elements,
    GridLayout,
    exact_text,
    parse_index,
)
from dld_tui.widgets.tensors.side import SideState, TensorSide, read_histogram

if TYPE_CHECKING:
    from dld_tui.screens.workspace.history import EditHistory

EXCHANGED = frozenset({
    "bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "float8e8m0",
    "float4e2m1", "int4", "uint4", "int2", "uint2",
})  # fmt: skip
"""Types that a .npy file holds as plain numbers: such a file is taken for the tensor's own type."""
MOST_SPAN = 1 << 16
"""Elements between the corners of the largest range that is changed in one go."""


def _arithmetic(text: str, dtype: str, *, add: bool) -> Callable[[JSON], JSON]:
    """Return what adds or multiplies by the number that was typed."""
    is_whole = "float" not in dtype and not dtype.startswith("complex")
    kind = "int64" if is_whole else "complex128" if dtype.startswith("complex") else "float64"
    operand = _plain(parse_element(text, kind))

    def change(value: JSON) -> JSON:
        number = _plain(parse_element(value, kind)) if isinstance(value, str) else value
        result = number + operand if add else number * operand
        if isinstance(result, complex):
            return str(result).strip("()")
        return result if is_whole or abs(result) < float("inf") else str(result)

    return change


def _plain(number: Any) -> Any:
    """Return a Python number."""
    return number.item() if hasattr(number, "item") else number


_WIDE = 100
"""Columns from which the statistics are beside the grid."""
_NAME_CELLS = 40
_TELL_S = 0.1


class TensorScreen(Page):
    """The page of one tensor."""

    SCOPE = "tensor"
    COMMAND_TABLE = table(
        "tensor",
        ("tensor.cell", "edit", "e", "cell stored", "edit", "Edit the element at the cursor."),
        ("tensor.fill", "fill", "E", "cell stored", "fill",
         "Set all marked elements to one value."),
        ("tensor.add", "add", "plus", "figure stored", "add",
         "Add a number to the marked elements."),
        ("tensor.multiply", "multiply", "asterisk", "figure stored", "multiply",
         "Multiply the marked elements by a number."),
        ("tensor.insert_rows", "insert_rows", "insert,a", "rows stored", "insert rows",
         "Insert as many rows as are marked, with zeros, before them; in a list, elements."),
        ("tensor.delete_rows", "delete_rows", "delete,d", "cell rows stored", "delete rows",
         "Delete the marked rows; in a list, the marked elements."),
        ("tensor.index", "go_to_index", "colon", "cell", "to index", "Go to an index."),
        ("tensor.previous_slice", "previous_slice", "left_square_bracket", "slices",
         "previous slice", "Go to the previous slice."),
        ("tensor.next_slice", "next_slice", "right_square_bracket", "slices", "next slice",
         "Go to the next slice."),
        ("tensor.axis", "next_axis", "semicolon", "slices", "next axis",
         "Step along the next axis."),
        ("tensor.row_axis", "row_axis", "underscore", "slices", "row axis",
         "Show the next axis as rows."),
        ("tensor.column_axis", "column_axis", "vertical_line", "slices", "column axis",
         "Show the next axis as columns."),
        ("tensor.transpose", "transpose", "backslash", "matrix", "transpose",
         "Swap rows and columns in the view."),
        ("tensor.statistics", "toggle_side", "i", "", "statistics",
         "Show or hide the statistics and the histogram."),
        ("tensor.more_digits", "more_digits", "greater_than_sign", "", "more digits",
         "Show one more digit."),
        ("tensor.fewer_digits", "fewer_digits", "less_than_sign", "", "fewer digits",
         "Show one digit fewer."),
        ("tensor.hexadecimal", "toggle_hexadecimal", "number_sign", "", "hexadecimal",
         "Show integers in hexadecimal, or as numbers again."),
        ("tensor.face", "next_face", "v", "faces", "dequantized",
         "Switch a low-bit weight between levels, scales, zero points and dequantized values."),
        ("tensor.convert", "convert", "T", "typed", "convert type",
         "Convert the element type; preview the loss."),
        ("tensor.dims", "dims", "", "stored", "dimensions",
         "Change the dimensions: other ones for the same elements, or larger or smaller ones."),
        ("tensor.data_file", "data_file", "", "external", "data file",
         "Change the path, offset and length of external data."),
        ("tensor.import", "import_npy", "I", "", "import .npy",
         "Replace the tensor with the array of a .npy file."),
        ("tensor.export", "export_npy", "w", "cell", "export .npy",
         "Write the tensor as a .npy file."),
        ("tensor.undo", "edits.undo", "u,ctrl+z", "can_undo", "undo", "Undo the last edit."),
        ("tensor.redo", "edits.redo", "ctrl+y,ctrl+r", "can_redo", "redo",
         "Redo the last undone edit."),
        footer="tensor.cell tensor.fill tensor.index tensor.next_slice tensor.statistics "
        "tensor.convert tensor.export",
    )  # fmt: skip
    MORE_SCOPES: ClassVar[tuple[str, ...]] = ("model_page", "page")
    CSS_PATH = STYLES / "tensor.tcss"
    AUTO_FOCUS = "TensorGrid"
    tab_title = "tensor"
    HELP = TensorGrid.HELP

    def __init__(self, workspace: EditHistory, place: TensorPlace) -> None:
        super().__init__()
        self.edits = PageEdits(self, workspace)
        self.place = place
        self.axis: int | None = None
        """The axis that the slice keys step along."""
        self.side = SideState()
        self._side_wanted: bool | None = None
        """Whether the statistics are shown; by the room there is when None."""
        self._reading: Event | None = None
        self._shown: Tensor | None = None
        self._face: WeightPart | None = None
        """One of FACES, what is shown of a weight in few bits; empty for what is stored."""
        self._weight: BlockedWeight | None = None

    def body(self) -> Iterable[Widget]:
        yield Container(GridPane(id="grid-pane"), TensorSide(id="side"), id="tensor")

    def on_mount(self) -> None:
        """Show the tensor and read its statistics."""
        self.edits.document.on_change.append(self._document_changed)
        self._arrange()
        self.show_tensor()

    def on_unmount(self) -> None:
        """Stop what runs for this page."""
        if self._document_changed in self.edits.document.on_change:
            self.edits.document.on_change.remove(self._document_changed)
        self.edits.cancel_work()
        self._stop_reading()

    @property
    def pane(self) -> GridPane:
        """The pane of the grid."""
        return self.query_one(GridPane)

    @property
    def grid(self) -> TensorGrid:
        """The grid."""
        return self.pane.grid

    @property
    def tensor(self) -> Tensor:
        """The tensor that is shown."""
        assert self._shown is not None
        return self._shown

    def show_tensor(self) -> None:
        """Show the current tensor; leave the page if it was deleted."""
        tensor = self.place.tensor
        if tensor is None:
            self.notify("The tensor is no longer in the model", timeout=4)
            self.dismiss(None)
            return
        self._shown = tensor
        self._weight = None if self.place.node else weight_views(self.place.scope, self.place.name)
        shown = self.face
        dtype, shape = (shown or tensor).dtype, (shown or tensor).shape
        self.grid.show(self.elements(tensor), dtype, shape, tensor.problem or "")
        if self.axis not in self.grid.view.free_axes:
            self.axis = _stepped_axis(self.grid.view)
        self._say_title()
        self.read_side(anyway=False)
        self.refresh_bindings()

    def _say_title(self) -> None:
        tensor, dot = self.tensor, f" {glyphs.current().dot} "
        shape = visible(fmt.shape(tensor.shape))
        name = clip(self.place.title, _NAME_CELLS, keep="middle")
        parts = [name, f"{tensor.dtype}{shape}", fmt.size(tensor.nbytes)]
        if self._weight is not None:
            dims = visible(fmt.shape(self._weight.shape))
            parts.append(self._weight.format)
            parts.append(f"{self._face} {dims}" if self._face else "as stored")
        if tensor.is_external:
            parts.append(f"in {visible(tensor.external_entries.get('location', ''))}")
        self.pane.frame.show(dot.join(parts))
        self.crumb(visible(" › ".join(self.place.scope.path)) or "main")

    def _document_changed(self, change: DocumentChange) -> None:
        place = self.edits.returning(change, lambda: self.grid.place) if self.is_attached else None
        transaction = change.transaction
        if transaction is None or transaction.is_whole:
            touched = True
        else:
            touched = self.place.scope in transaction.scopes
        if touched and self.is_attached:
            self.show_tensor()
        if place is not None and self.is_attached:
            self.grid.return_to(place)

    def conditions(self) -> set[str]:
        conditions = super().conditions()
        if self._shown is None or not self.is_mounted:
            return conditions
        tensor, view = self._shown, self.grid.view
        is_number = tensor.dtype not in ("string", "bool")
        return conditions | holding(
            can_undo=bool(self.edits.document.history.done),
            can_redo=bool(self.edits.document.history.undone),
            cell=not self.grid.is_empty,
            figure=not self.grid.is_empty and is_number,
            slices=bool(view.free_axes),
            matrix=len(view.shape) > 1,
            rows=bool(tensor.shape),
            typed=not self.place.is_list,
            stored=not self._face,
            faces=self._weight is not None,
            external=self.place.node is None and tensor.is_external,
        )

    @on(TensorGrid.CursorMoved)
    def cursor_moved(self) -> None:
        """Show the details of the cell."""
        if self._shown is None:
            return
        view = self.grid.view
        self.pane.query_one(SliceBar).show(view, self.axis)
        self.refresh_bindings()
        if not self.pane.is_editing:
            self.pane.say(self._cell_pieces())

    @on(TensorGrid.Activated)
    @on(GridPane.Next)
    def cell_chosen(self) -> None:
        """Edit the cell, where it is stored."""
        if not self._face:
            self.action_edit()

    def _cell_pieces(self) -> list[Piece]:
        grid = self.grid
        if grid.is_empty:
            return []
        rows, columns = grid.marked
        indexes = grid.view.indexes(grid.row, grid.column)
        flat = grid.view.flat(grid.row, grid.column) or 0
        pieces: list[Piece] = [(f" {list(indexes)} ", "accent")]
        shown = self.face or self.tensor
        try:
            value = exact_text(grid.blocks.elements.read(flat, 1), shown.dtype)  # type: ignore[union-attr]
        except DldError as error:
            return [*pieces, (visible(error.message), "bad")]
        pieces.append((f"= {visible(value[:200])}", "strong"))
        if grid.corner is not None:
            count = len(rows) * len(columns)
            text = f"{len(rows):,} × {len(columns):,} = {count:,} cells marked  Esc clears"
            pieces.append((f"   {text}", "accent"))
        elif len(indexes) > 1:
            pieces.append((f"   flat {flat:,}", "dim"))
        return pieces

    def action_previous_slice(self) -> None:
        self._step_slice(-1)

    def action_next_slice(self) -> None:
        self._step_slice(1)

    def _step_slice(self, step: int) -> None:
        if self.axis is not None and not self.grid.is_empty:
            self.grid.set_layout(self.grid.view.stepped(self.axis, step))

    def action_next_axis(self) -> None:
        axes = self.grid.view.free_axes
        if axes:
            at = axes.index(self.axis) if self.axis in axes else -1
            self._choose_axis(axes[(at + 1) % len(axes)])

    @on(SliceBar.Clicked)
    def axis_clicked(self, event: SliceBar.Clicked) -> None:
        """Step along the axis that was clicked."""
        event.stop()
        if event.axis in self.grid.view.free_axes:
            self._choose_axis(event.axis)

    def _choose_axis(self, axis: int) -> None:
        self.axis = axis
        self.cursor_moved()

    def action_row_axis(self) -> None:
        view = self.grid.view
        self._set_view(view.with_axis(rows=(view.row_axis + 1) % len(view.shape)))

    def action_column_axis(self) -> None:
        view = self.grid.view
        self._set_view(view.with_axis(columns=(view.column_axis + 1) % len(view.shape)))

    def action_transpose(self) -> None:
        self._set_view(self.grid.view.turned())

    def _set_view(self, view: GridLayout) -> None:
        if self.axis not in view.free_axes:
            self.axis = _stepped_axis(view)
        self.grid.set_layout(view)

    @task()
    async def action_go_to_index(self) -> None:
        shape = self.grid.view.shape

        def check(text: str) -> str | None:
            index = parse_index(text, shape) if text.strip() else None
            return index if isinstance(index, str) else None

        about = f"An index of {visible(fmt.shape(shape))}, or one flat index; -1 is the last."
        example = ", ".join("0" for _ in shape)
        dialog = PromptDialog("Go to index", about, check=check, placeholder=example)
        text = await self.tasks.ask(dialog)
        index = parse_index(text, shape) if text and text.strip() else ""
        if not isinstance(index, str):
            view, row, column = self.grid.view.at(index)
            self.grid.set_layout(view, row, column)

    @task()
    async def action_dims(self) -> None:
        from dld_tui.core.model.edits import tensors

        shape = self.tensor.shape

        def dims_of(text: str) -> list[int] | str:
            try:
                dims = list(shape_of(text))
            except UsageError as error:
                return visible(str(error))
            if len(dims) != len(shape) and math.prod(dims) != math.prod(shape):
                return f"{math.prod(dims):,} elements; the tensor has {math.prod(shape):,}"
            return dims

        def check(text: str) -> str | None:
            dims = dims_of(text)
            return dims if isinstance(dims, str) else None

        about = (
            "As many elements stay in their order. Otherwise elements are cut off at the end of an"
            " axis, or zeros are added there."
        )
        value = ", ".join(map(str, shape))
        text = await self.tasks.ask(PromptDialog("Dimensions", about, value, check=check))
        dims = dims_of(text) if text is not None else ""
        if isinstance(dims, str):
            return
        edit = tensors.replace_tensor(
            scope=self.place.path,
            tensor=self.place.address,
            dtype=self.tensor.dtype,
            dims=dims,
            resize=math.prod(dims) != math.prod(shape),
        )
        step = partial(self.edits.document.apply, edit)
        self.edits.edit_on_thread("Changing the dimensions", [step])

    def action_more_digits(self) -> None:
        self._set_digits(1)

    def action_fewer_digits(self) -> None:
        self._set_digits(-1)

    def _set_digits(self, step: int) -> None:
        numbers = self.grid.numbers
        digits = max(1, min(MOST_DIGITS, numbers.digits + step))
        self.grid.set_numbers(replace(numbers, digits=digits))

    def action_toggle_hexadecimal(self) -> None:
        numbers = self.grid.numbers
        self.grid.set_numbers(replace(numbers, hexadecimal=not numbers.hexadecimal))

    def on_resize(self, event: events.Resize) -> None:
        """Put the statistics beside or below the grid."""
        self._arrange()

    def _arrange(self) -> None:
        is_wide = self.app.size.width >= _WIDE
        self.set_class(not is_wide, "-narrow")
        wanted = is_wide if self._side_wanted is None else self._side_wanted
        self.query_one(TensorSide).display = wanted

    def action_toggle_side(self) -> None:
        """Show or hide the statistics; reads them when that waits to be asked for."""
        side = self.query_one(TensorSide)
        if side.display and self.side.state == "ask":
            self.read_side(anyway=True)
            return
        self._side_wanted = not side.display
        self._arrange()
        if side.display:
            self.read_side(anyway=self.side.state == "ask")

    def read_side(self, *, anyway: bool) -> None:
        """Read the statistics on a thread; of a large tensor only when they are asked for."""
        self._stop_reading()
        tensor = self.tensor
        self.side = state = SideState(size=tensor.nbytes, is_asked_for=anyway)
        limit = host(self).config.preview_bytes
        if tensor.problem is not None:
            state.state, state.problem = "failed", tensor.problem
        elif not anyway and (tensor.nbytes or 0) > limit:
            state.state = "ask"
        elif self.query_one(TensorSide).display:
            state.state = "reading"
            self._read_side(tensor, state)
        self.query_one(TensorSide).show(state)

    @task("statistics")
    async def _read_side(self, tensor: Tensor, state: SideState) -> None:
        self._reading = stop = Event()
        begin = 0.0

        def report(done: int, total: int) -> None:
            state.fraction = begin + done / total / 2 if total else 0.0
            self._side_changed(state)

        try:
            state.statistics = statistics = await with_progress(
                partial(_statistics, tensor), report, stop
            )
            if statistics is not None:
                begin = 0.5
                state.histogram = await with_progress(
                    partial(_histogram, tensor, statistics), report, stop
                )
            state.state = "done"
        except CancelledError:
            state.state = "ask"
        except DldError as error:
            state.state, state.problem = "failed", error.message
        self._side_changed(state)

    def _side_changed(self, state: SideState) -> None:
        if state is self.side and self.is_mounted:
            if state.state != "reading":
                self._reading = None
            self.query_one(TensorSide).show(state)

    def _stop_reading(self) -> bool:
        if self._reading is None:
            return False
        self._reading.set()
        self._reading = None
        return True

    def go_back(self) -> None:
        """Stop what was asked for and runs, clear the range, or go back."""
        if self.edits.cancel_work() or (self.side.is_asked_for and self._stop_reading()):
            return
        if not self.grid.clear_range():
            self.dismiss(None)

    def _set(self, start: int, values: list[JSON]) -> None:
        from dld_tui.core.model.edits import tensors

        self.edits.edit(
            tensors.set_elements(
                scope=self.place.path,
                tensor=self.place.address,
                start=start,
                values=values,
            )
        )

    def action_edit(self) -> None:
        grid, dtype = self.grid, self.tensor.dtype
        flat = grid.view.flat(grid.row, grid.column)
        if grid.is_empty or flat is None or grid.blocks is None:
            return

        def take(text: str) -> None:
            if text.strip() != before:
                self._take_cell(flat, text)

        try:
            before = exact_text(grid.blocks.elements.read(flat, 1), dtype)
        except DldError as error:
            self.edits.complain(error)
            return
        self.pane.ask(before, take)

    def _take_cell(self, flat: int, text: str) -> None:
        typed = TensorWindow(self.tensor).parse(text)
        self._set(flat, [typed.value])
        if typed.rounded:
            message = f"{self.tensor.dtype} holds {typed.text} instead"
            self.notify(visible(message), timeout=4, markup=False)

    def action_fill(self) -> None:
        window = TensorWindow(self.tensor)

        def change(text: str) -> Callable[[JSON], JSON]:
            value = window.parse(text).value
            return lambda _: value

        self._ask_range("value for", change)

    def action_add(self) -> None:
        self._ask_range("add to", lambda text: _arithmetic(text, self.tensor.dtype, add=True))

    def action_multiply(self) -> None:
        self._ask_range("multiply", lambda text: _arithmetic(text, self.tensor.dtype, add=False))

    def action_insert_rows(self) -> None:
        self._splice_marked("insert")

    def action_delete_rows(self) -> None:
        self._splice_marked("delete")

    def _splice_marked(self, change: str) -> None:
        try:
            start, count = self._marked_rows
        except UsageError as error:
            self.edits.complain(error)
            return
        self._splice(start, **{change: count})

    @property
    def _marked_rows(self) -> tuple[int, int]:
        """Where the marked rows begin, and how many: elements of a tensor of one dimension."""
        view, (rows, columns) = self.grid.view, self.grid.marked
        if not view.is_wrapped:
            return rows.start, len(rows)
        if len(rows) > 1 and len(columns) < view.columns:
            raise UsageError("mark elements of one line, or whole lines")
        first = rows.start * view.wrap + columns.start
        last = (rows.stop - 1) * view.wrap + columns.stop
        return first, max(1, min(last, view.count) - first)

    def _splice(self, start: int, **counts: Any) -> None:
        from dld_tui.core.model.edits import tensors

        step = partial(
            self.edits.document.apply,
            tensors.splice_tensor(
                scope=self.place.path,
                tensor=self.place.address,
                axis=self.grid.view.row_axis,
                start=start,
                **counts,
            ),
        )
        self.edits.edit_on_thread("Changing the rows", [step])

    def on_paste(self, event: events.Paste) -> None:
        """Put lines of elements into the cells from the cursor on; a list gets longer for them."""
        event.stop()
        if "stored" not in self.conditions() or self.pane.is_editing:
            return
        try:
            self._paste(event.text)
        except DldError as error:
            self.edits.complain(error)

    def _paste(self, text: str) -> None:
        parse, grid, view = TensorWindow(self.tensor).parse, self.grid, self.grid.view
        between = "\t" if "\t" in text or self.tensor.dtype == "string" else None
        lines = [line.replace(",", " " if between is None else ",").split(between)
                 for line in text.strip("\r\n").splitlines()]  # fmt: skip
        cells = [[parse(word).value for word in line] for line in lines]
        if view.is_wrapped:
            values = [value for line in cells for value in line]
            start = view.flat(grid.row, grid.column) or 0
            kept = min(len(values), view.count - start)
            self._splice(start, delete=kept, insert=len(values), values=values)
            return
        if len({len(line) for line in cells}) > 1:
            raise UsageError("the pasted lines have different numbers of elements")
        width = len(cells[0]) if cells else 0
        if grid.row + len(cells) > view.rows or grid.column + width > view.columns:
            raise UsageError(
                f"{len(cells):,} × {width:,} pasted elements do not fit from the cursor on",
                hint="Insert rows first",
            )
        rows = range(grid.row, grid.row + len(cells))
        columns = range(grid.column, grid.column + width)
        new = {view.flat(row, column): value for row, line in zip(rows, cells, strict=True)
               for column, value in zip(columns, line, strict=True)}  # fmt: skip
        self._change_cells(rows, columns, lambda flat, value: new[flat])

    def _ask_range(self, verb: str, change: Callable[[str], Callable[[JSON], JSON]]) -> None:
        rows, columns = self.grid.marked
        count = len(rows) * len(columns)
        label = f"{verb} {'the cell' if count == 1 else f'{count:,} cells'}"

        def accept(text: str) -> None:
            replaced = change(text)
            self._change_cells(*self.grid.marked, lambda flat, value: replaced(value))

        self.pane.mount(EditBar(label, "", accept))

    def _change_cells(
        self, rows: range, columns: range, change: Callable[[int, JSON], JSON]
    ) -> None:
        """Change some cells by one edit: a run that begins and ends with them."""
        view = self.grid.view
        corners = [view.flat(row, column) for row in rows[:: len(rows) - 1 or 1]
                   for column in columns[:: len(columns) - 1 or 1]]  # fmt: skip
        known = [view.count - 1 if index is None else index for index in corners]
        first, last = min(known), max(known)
        if last - first >= MOST_SPAN:
            raise UsageError(
                f"more than {MOST_SPAN:,} elements lie between the corners",
                hint="Mark fewer cells at a time",
            )
        cells = (view.flat(row, column) for row in rows for column in columns)
        marked = [index for index in cells if index is not None]
        assert self.grid.blocks is not None
        elements: Elements = self.grid.blocks.elements
        values = to_json(elements.read(first, last - first + 1), self.tensor.dtype)
        for index in marked:
            values[index - first] = change(index, values[index - first])
        self._set(first, values)

    def action_data_file(self) -> None:
        dialog = external_entries_dialog(self.place, self.edits.edit)
        if dialog is None:
            self.notify("The values of the tensor are not in a data file", timeout=4)
        else:
            self.app.push_screen(dialog)

    @task()
    async def action_import_npy(self) -> None:
        dialog = OpenPathDialog("Import .npy", placeholder="path of a .npy file", endings=(".npy",))
        path = await self.tasks.ask(dialog)
        if path is not None:
            self._import(path)

    def _import(self, path: Path) -> None:
        payloads: list[NpyPayload] = []

        def task(progress: ProgressCallback, cancelled: CancelCheck) -> None:
            dtype = self.tensor.dtype
            try:
                header = read_npy_header(path)
                same = header.dtype == dtype
                wanted = None if same or dtype not in EXCHANGED else dtype
            except DldError:
                wanted = None  # the import says why
            payloads.append(
                import_npy(
                    self.edits.document, path, dtype=wanted, progress=progress, cancelled=cancelled
                )
            )

        def ended(error: DldError | None) -> None:
            if error is None:
                self.tasks.start(self._ask_replace(payloads[0]), "dialog")
            elif not isinstance(error, CancelledError):
                host(self).show_error(error, "Not imported")

        self.edits.work("Reading the array", task, ended)

    async def _ask_replace(self, new: NpyPayload) -> None:
        tensor = self.tensor
        before = f"{tensor.dtype}{visible(fmt.shape(tensor.shape))}"
        after = f"{new.dtype}{fmt.shape(new.dims)}"
        if before != after:
            choices = [Choice("r", f"replace it, as {after}", "replace"), Choice("k", "keep", "")]
            message = f"The tensor is {before}, the file has {after}."
            if not await self.tasks.ask(ChoiceDialog("Another type or shape", message, choices)):
                return
        self._replace(new)

    def _replace(self, new: NpyPayload) -> None:
        from dld_tui.core.model.edits import tensors

        step = partial(
            self.edits.document.apply,
            tensors.replace_tensor(
                scope=self.place.path,
                tensor=self.place.address,
                dtype=new.dtype,
                dims=list(new.dims),
                payload=new.payload,
            ),
        )
        self.edits.edit_on_thread("Replacing the tensor", [step])

    @task()
    async def action_export_npy(self) -> None:
        name = "".join(c if c.isalnum() or c in "._-" else "_" for c in self.place.title)[:80]

        def dialog(start: str) -> OpenPathDialog:
            return OpenPathDialog(
                "Export .npy", start, "path of the new file", endings=(".npy",), is_new=True
            )

        chosen = await ask_file(self.tasks, dialog, f"{name or 'tensor'}.npy")
        if chosen is not None:
            path, replaced = chosen
            self._export(path, bool(replaced))

    def _export(self, path: Path, overwrite: bool) -> None:
        tensor = self.tensor
        remarks: list[str] = []

        def task(progress: ProgressCallback, cancelled: CancelCheck) -> None:
            remarks.extend(
                export_npy(
                    tensor, path, overwrite=overwrite, progress=progress, cancelled=cancelled
                )
            )

        def ended(error: DldError | None) -> None:
            if error is None:
                message = ". ".join([f"Wrote {visible(str(path))}", *map(visible, remarks)])
                self.notify(message, timeout=5, markup=False)
            elif not isinstance(error, CancelledError):
                host(self).show_error(error, "Not exported")

        self.edits.work("Writing the array", task, ended)

    def action_convert(self) -> None:
        TensorConversion(self, self.edits).ask([self.place])

    def elements(self, tensor: Tensor) -> Elements:
        """Return what the grid reads."""
        return self.face or tensor

    @property
    def face(self) -> WeightView | None:
        """The view of a low-bit weight; None for the stored values."""
        return (
            WeightView(self._weight, self._face)
            if self._weight is not None and self._face
            else None
        )

    def action_next_face(self) -> None:
        kinds = [None, *WeightPart]
        self._face = kinds[(kinds.index(self._face) + 1) % len(kinds)]
        self.show_tensor()


def _stepped_axis(view: GridLayout) -> int | None:
    """Return the axis to step along first: the last that has more than one slice."""
    axes = view.free_axes[::-1]
    return next((axis for axis in axes if view.shape[axis] > 1), next(iter(axes), None))


def _statistics(
    tensor: Tensor, progress: ProgressCallback, cancelled: CancelCheck
) -> TensorStatistics | None:
    return tensor_statistics(tensor, progress=progress, cancelled=cancelled)


def _histogram(
    tensor: Tensor, statistics: TensorStatistics, progress: ProgressCallback, cancelled: CancelCheck
) -> Histogram | None:
    return read_histogram(tensor, statistics, progress=progress, cancelled=cancelled)
