"""The form that makes an initializer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from textual.widget import Widget

from dld_tui.commands.command import table
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import CancelledError, DldError, UsageError
from dld_tui.core.model.document import Document, Scope
from dld_tui.core.model.inputs.shape_texts import shape_of
from dld_tui.core.model.tensors.elements import payload_bytes, to_json
from dld_tui.core.model.tensors.generate import uniform_range
from dld_tui.core.model.tensors.literals import parse_literal
from dld_tui.core.model.tensors.npy import import_npy
from dld_tui.core.params import from_json, param, when
from dld_tui.core.text import visible
from dld_tui.core.types import JSON, CancelCheck, ProgressCallback
from dld_tui.screens.base_pages import FormPage
from dld_tui.screens.tensors.conversion import DTYPES
from dld_tui.screens.workspace.history import PageEdits
from dld_tui.widgets.forms.param_form import ParamForm
from dld_tui.widgets.lists.styled import Rows
from dld_tui.widgets.shell import glyphs

if TYPE_CHECKING:
    from dld_tui.screens.workspace.history import EditHistory

RANDOM = ("normal", "uniform", "positive", "negative")
FILLS = ("zeros", "values", *RANDOM, "npy", "external")


@dataclass(frozen=True)
class NewTensor:
    """A new initializer."""

    name: str = param(label="Name", help="The name of the value; nodes use it by this name.")
    dtype: str = param(
        "float32",
        label="Element type",
        choices=(*DTYPES, "string"),
        help="Left and right change it.",
    )
    dims: str = param(
        "", label="Dimensions", metavar="64, 3, 3",
        help="Whole numbers, such as 64, 3, 3. Nothing is a scalar, or what the values or the"
        " .npy file have.",
        empty="a scalar",
    )  # fmt: skip
    fill: str = param(
        "zeros", label="Values", choices=FILLS,
        help="zeros; values as typed below; normal or uniform random numbers, or uniform ones from"
        " 0 to 1 (positive) or -1 to 0 (negative); a .npy file; a place in a data file.",
    )  # fmt: skip
    values: str = param(
        "",
        label="As typed",
        applies=when("fill", "values"),
        help="A literal, such as [[1, 2], [3, 4]], 0.5 or ['a', 'b'].",
        empty="zeros",
    )
    mean: float = param(
        0.0, label="Mean", applies=when("fill", "normal"), help="Of the normal distribution."
    )
    deviation: float = param(
        1.0,
        label="Deviation",
        applies=when("fill", "normal"),
        minimum=0,
        help="The standard deviation of the normal distribution.",
    )
    low: float = param(
        0.0,
        label="From",
        applies=when("fill", "uniform"),
        help="The least number of the uniform distribution.",
    )
    high: float = param(
        1.0,
        label="To",
        applies=when("fill", "uniform"),
        help="The largest number of the uniform distribution.",
    )
    seed: int = param(
        0,
        label="Seed",
        applies=when("fill", *RANDOM),
        minimum=0,
        help="The same seed gives the same numbers everywhere.",
    )
    file: Path | None = param(
        None, label="File", applies=when("fill", "npy", "external"), kind="file", metavar="FILE",
        help="The .npy file, or the data file that the values are in already.",
    )  # fmt: skip
    offset: int = param(
        0,
        label="Offset",
        applies=when("fill", "external"),
        unit="B",
        minimum=0,
        help="Where the values begin in the data file.",
    )
    length: int | None = param(
        None, label="Length", applies=when("fill", "external"), unit="B", minimum=0,
        help="The bytes of the values; by default what type and dimensions need.",
        empty="what type and dimensions need",
    )  # fmt: skip
    sparse: bool = param(
        False,
        label="Sparse",
        applies=when("fill", *FILLS[:-1]),
        help="Keep only the elements that are not zero, with their places."
        " They can be edited in the list of initializers.",
    )


@dataclass(frozen=True)
class NewValues:
    """The arguments of ``add_initializer`` beyond the name."""

    dtype: str
    dims: list[JSON]
    fill: dict[str, JSON]


def values_of(
    document: Document,
    asked: NewTensor,
    progress: ProgressCallback | None = None,
    cancelled: CancelCheck | None = None,
) -> NewValues:
    """Return the arguments of the edit. Reads the .npy file: call it on a thread.

    Raises:
        UsageError: Dimensions or values are malformed.
        InputError: The file is refused.
        CancelledError: `cancelled` returned True.
    """
    dims = list(shape_of(asked.dims))
    if asked.fill == "npy":
        if asked.file is None:
            raise UsageError("choose the .npy file")
        wanted = dims if asked.dims.strip() else None
        payload = import_npy(
            document, asked.file, dims=wanted, progress=progress, cancelled=cancelled
        )
        fill: dict[str, JSON] = {"kind": "payload", "payload": payload.payload}
        if payload.dtype == "string" and isinstance(payload.payload, dict):
            fill = {"kind": "values", "values": payload.payload.get("values")}
        return NewValues(payload.dtype, list(payload.dims), fill)
    if asked.fill == "values":
        return _typed(asked, dims)
    return NewValues(asked.dtype, list(dims), _fill(document, asked, dims))


def _typed(asked: NewTensor, dims: list[int]) -> NewValues:
    array = parse_literal(asked.values, "tensor", dtype=asked.dtype)
    assert isinstance(array, np.ndarray)
    shape = dims if asked.dims.strip() else list(array.shape)
    if math.prod(shape) != array.size:
        raise UsageError(f"{array.size} values do not fill the dimensions {shape}")
    values = to_json(array.reshape(-1), asked.dtype)
    return NewValues(asked.dtype, list(shape), {"kind": "values", "values": values})


def _fill(document: Document, asked: NewTensor, dims: list[int]) -> dict[str, JSON]:
    if asked.fill == "normal":
        mean, deviation = asked.mean, asked.deviation
        return {"kind": "normal", "mean": mean, "deviation": deviation, "seed": asked.seed}
    if asked.fill == "uniform":
        return {"kind": "uniform", "low": asked.low, "high": asked.high, "seed": asked.seed}
    if asked.fill in ("positive", "negative"):
        low, high = uniform_range(asked.dtype, 1 if asked.fill == "positive" else -1)
        return {"kind": "uniform", "low": low, "high": high, "seed": asked.seed}
    if asked.fill == "external":
        return _external(document, asked, dims)
    if asked.dtype == "string":
        return {"kind": "values", "values": [""] * math.prod(dims)}
    return {"kind": "zeros"}


def _external(document: Document, asked: NewTensor, dims: list[int]) -> dict[str, JSON]:
    if asked.file is None:
        raise UsageError("choose the data file")
    folder = (document.path or document.external.model_path).resolve().parent
    path = asked.file if asked.file.is_absolute() else folder / asked.file
    try:
        location = path.resolve().relative_to(folder)
    except ValueError:
        raise UsageError("the data file must be in the model's folder") from None
    length = asked.length
    if length is None:
        length = payload_bytes(asked.dtype, math.prod(dims))
    return {
        "kind": "external",
        "location": location.as_posix(),
        "offset": asked.offset,
        "length": length,
    }


class CreateInitializer(FormPage):
    """The page: F5 makes the initializer.

    Args:
        workspace: The workspace of the document.
        scope: The graph that it is added to.
        created: Called with its name when it is there.
    """

    SCOPE = "create"
    COMMAND_TABLE = table(
        "create",
        ("create.run", "create", "f5,ctrl+s", "valid", "create", "Create the initializer."),
        priority=True, footer="create.run",
    )  # fmt: skip
    MORE_SCOPES: ClassVar[tuple[str, ...]] = ("model_page", "page")
    tab_title = "new initializer"
    HELP = (
        "A new initializer: name, element type, dimensions and values. Tab goes to the next field, "
        "left and right choose, {create.run} creates the initializer. The fields depend on the "
        "kind of values."
    )

    def __init__(
        self, workspace: EditHistory, scope: Scope, created: Callable[[str], None]
    ) -> None:
        super().__init__()
        self.edits = PageEdits(self, workspace, self._failed)
        self.scope = scope
        self.created = created

    def body(self) -> Iterable[Widget]:
        title = f"New initializer · {visible(' › '.join(self.scope.path)) or 'main'}"
        problem = Rows([[]], id="problem")
        yield self.boxed(
            title, "{create.run} create  {page.close} close", ParamForm(NewTensor, {}), problem
        )

    def on_unmount(self) -> None:
        """Stop what runs for this page."""
        self.edits.cancel_work()

    def on_param_form_edited(self, event: ParamForm.Edited) -> None:
        """Take back what was wrong."""
        self._show_problem("")

    def _show_problem(self, problem: str) -> None:
        mark = glyphs.current().error
        rows = [[(f"{mark} {visible(problem)}", "bad")]] if problem else [[("", "")]]
        self.query_one("#problem", Rows).set_rows(rows)

    def action_create(self) -> None:
        try:
            asked = from_json(NewTensor, self.form.values())
        except DldError as error:
            self._show_problem(error.message)
            return
        values: list[NewValues] = []

        def task(progress: ProgressCallback, cancelled: CancelCheck) -> None:
            values.append(values_of(self.edits.document, asked, progress, cancelled))

        def ended(error: DldError | None) -> None:
            if error is None:
                self._add(asked, values[0])
            elif not isinstance(error, CancelledError):
                self._failed(error)

        self.edits.work("Reading the values", task, ended)

    def _add(self, asked: NewTensor, values: NewValues) -> None:
        from dld_tui.core.model.edits import initializers

        path = self.scope.path
        arguments: dict[str, Any] = {"dtype": values.dtype, "dims": values.dims}
        steps = [
            partial(
                self.edits.document.apply,
                initializers.add_initializer(
                    scope=path,
                    name=asked.name,
                    fill=values.fill,
                    **arguments,
                ),
            )
        ]
        if asked.sparse:
            steps.append(
                partial(
                    self.edits.document.apply,
                    initializers.to_sparse(scope=path, names=[asked.name]),
                )
            )

        def done() -> None:
            self.created(asked.name)
            self.dismiss(None)

        self.edits.edit_on_thread("Making the initializer", steps, done)

    def _failed(self, error: DldError) -> None:
        self._show_problem(f"{error.message}. {error.hint}" if error.hint else error.message)

    def go_back(self) -> None:
        """Stop what runs, or go back."""
        if not self.edits.cancel_work():
            self.dismiss(None)
