"""What changes a tensor in its editor: cells, ranges, files, the element type."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dld_tui.core import fmt
from dld_tui.core.document.literals import parse_element
from dld_tui.core.document.tensor import Tensor
from dld_tui.core.errors import CancelledError, DldError, UsageError
from dld_tui.core.tensors.elements import to_json
from dld_tui.core.tensors.npy import NpyPayload, export_npy, import_npy, read_npy_header
from dld_tui.core.tensors.window import TensorWindow
from dld_tui.core.text import visible
from dld_tui.core.types import JSON, CancelCheck, ProgressCallback
from dld_tui.screens.home.welcome import OpenPathDialog
from dld_tui.screens.tensors.conversion import Converting, external_entries_dialog
from dld_tui.widgets.dialogs.dialogs import Choice, ChoiceDialog
from dld_tui.widgets.parameters.edit_bar import EditBar
from dld_tui.widgets.shell.host import host
from dld_tui.widgets.tasks import task
from dld_tui.widgets.tensors.grid import Elements, TensorGrid, exact_text
from dld_tui.widgets.tensors.pane import GridPane

if TYPE_CHECKING:
    from dld_tui.screens.tensors.conversion import TensorPlace

    class _Base(Converting):
        place: TensorPlace

        @property
        def pane(self) -> GridPane: ...
        @property
        def grid(self) -> TensorGrid: ...
        @property
        def tensor(self) -> Tensor: ...
else:
    _Base = Converting

EXCHANGED = frozenset({
    "bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "float8e8m0",
    "float4e2m1", "int4", "uint4", "int2", "uint2",
})  # fmt: skip
"""Types that a .npy file holds as plain numbers: such a file is taken for the tensor's own type."""
MOST_SPAN = 1 << 16
"""Elements between the corners of the largest range that is changed in one go."""


class TensorChanges(_Base):
    """A mixin for the page of a tensor."""

    def _set(self, start: int, values: list[JSON]) -> None:
        self.edit(
            "set_elements",
            scope=self.place.path,
            tensor=self.place.address,
            start=start,
            values=values,
        )

    # --- one cell -------------------------------------------------------------------------------

    def action_edit(self) -> None:
        """Edit the cell at the cursor, in place."""
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
            self.complain(error)
            return
        self.pane.ask(before, take)

    def _take_cell(self, flat: int, text: str) -> None:
        typed = TensorWindow(self.tensor).parse(text)
        self._set(flat, [typed.value])
        if typed.rounded:
            said = f"{self.tensor.dtype} holds {typed.text} instead"
            self.notify(visible(said), timeout=4, markup=False)

    # --- ranges ---------------------------------------------------------------------------------

    def action_fill(self) -> None:
        """Give all marked cells one value."""
        window = TensorWindow(self.tensor)

        def change(text: str) -> Callable[[JSON], JSON]:
            value = window.parse(text).value
            return lambda _: value

        self._ask_range("value for", change)

    def action_add(self) -> None:
        """Add a number to the marked cells."""
        self._ask_range("add to", lambda text: _arithmetic(text, self.tensor.dtype, add=True))

    def action_multiply(self) -> None:
        """Multiply the marked cells by a number."""
        self._ask_range("multiply", lambda text: _arithmetic(text, self.tensor.dtype, add=False))

    def _ask_range(self, verb: str, change: Callable[[str], Callable[[JSON], JSON]]) -> None:
        rows, columns = self.grid.marked
        count = len(rows) * len(columns)
        label = f"{verb} {'the cell' if count == 1 else f'{count:,} cells'}"

        def accept(text: str) -> None:
            self._change_range(change(text))

        self.pane.mount(EditBar(label, "", accept))

    def _change_range(self, change: Callable[[JSON], JSON]) -> None:
        """Change the marked cells by one edit: a run that begins and ends with the range."""
        view, (rows, columns) = self.grid.view, self.grid.marked
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
            values[index - first] = change(values[index - first])
        self._set(first, values)

    # --- files ----------------------------------------------------------------------------------

    def action_data_file(self) -> None:
        """Change where the values are read from."""
        dialog = external_entries_dialog(self.place, self.edit)
        if dialog is None:
            self.notify("The values of the tensor are in no data file", timeout=4)
        else:
            self.app.push_screen(dialog)

    @task()
    async def action_import_npy(self) -> None:
        """Replace the tensor by the array of a .npy file."""
        dialog = OpenPathDialog("Import .npy", placeholder="path of a .npy file")
        path = await self.tasks.ask(dialog)
        if path is not None:
            self._import(path)

    def _import(self, path: Path) -> None:
        found: list[NpyPayload] = []

        def task(progress: ProgressCallback, cancelled: CancelCheck) -> None:
            dtype = self.tensor.dtype
            try:
                header = read_npy_header(path)
                same = header.dtype == dtype
                wanted = None if same or dtype not in EXCHANGED else dtype
            except DldError:
                wanted = None  # the import says why
            found.append(import_npy(
                self.document, path, dtype=wanted, progress=progress, cancelled=cancelled
            ))  # fmt: skip

        def ended(error: DldError | None) -> None:
            if error is None:
                self.tasks.start(self._ask_replace(found[0]), "dialog")
            elif not isinstance(error, CancelledError):
                host(self).show_error(error, "Not imported")

        self.work("Reading the array", task, ended)

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
        step = partial(
            self.document.apply,
            "replace_tensor",
            scope=self.place.path,
            tensor=self.place.address,
            dtype=new.dtype,
            dims=list(new.dims),
            payload=new.payload,
        )
        self.edit_on_thread("Replacing the tensor", [step])

    @task()
    async def action_export_npy(self) -> None:
        """Write the tensor as a .npy file."""
        name = "".join(c if c.isalnum() or c in "._-" else "_" for c in self.place.title)[:80]
        dialog = OpenPathDialog("Export .npy", f"{name or 'tensor'}.npy", "path of the new file")
        path = await self.tasks.ask(dialog)
        if path is None:
            return
        if path.exists():
            choices = [Choice("r", "replace it", "replace"), Choice("k", "keep it", "")]
            question = f"{visible(str(path))} is there already."
            if not await self.tasks.ask(ChoiceDialog("Replace the file?", question, choices)):
                return
        self._export(path)

    def _export(self, path: Path) -> None:
        tensor = self.tensor
        remarks: list[str] = []

        def task(progress: ProgressCallback, cancelled: CancelCheck) -> None:
            remarks.extend(export_npy(tensor, path, progress=progress, cancelled=cancelled))

        def ended(error: DldError | None) -> None:
            if error is None:
                said = ". ".join([f"Wrote {visible(str(path))}", *map(visible, remarks)])
                self.notify(said, timeout=5, markup=False)
            elif not isinstance(error, CancelledError):
                host(self).show_error(error, "Not exported")

        self.work("Writing the array", task, ended)

    # --- type and history -----------------------------------------------------------------------

    def action_convert(self) -> None:
        """Convert the element type, after showing what is lost."""
        self.ask_conversion([self.place])

    def elements(self, tensor: Tensor) -> Elements:
        """Return what the grid reads."""
        return tensor


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
