"""Converting the element type of tensors: choosing it, what is lost, and the edits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, ClassVar

from textual.binding import Binding, BindingType
from textual.widget import Widget

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import CancelledError, DldError, UsageError
from dld_tui.core.files.external import element_bits
from dld_tui.core.model.document import Node, Scope
from dld_tui.core.model.document.node import LIST_DTYPES
from dld_tui.core.model.tensors.elements import (
    ConversionReport,
    prepare_conversion,
    require_convertible,
    require_dtype,
)
from dld_tui.core.model.tensors.tensor import Tensor
from dld_tui.core.statistics import share_percent
from dld_tui.core.text import clip, fit, visible
from dld_tui.core.types import JSON, CancelCheck, ProgressCallback
from dld_tui.screens.workspace.history import PageEdits
from dld_tui.screens.workspace.state import is_alive
from dld_tui.widgets.dialogs.dialogs import Dialog, FieldsDialog, FieldSpec
from dld_tui.widgets.dialogs.search import PickDialog, PickItem
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.lists.styled import ListSource, Piece, Rows
from dld_tui.widgets.parameters.edit_bar import name_editor
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.shell.page import Page
from dld_tui.widgets.tasks import task


@dataclass(frozen=True)
class TensorPlace:
    """An initializer by name, or an attribute of a node: a tensor or a list."""

    scope: Scope
    name: str = ""
    """The initializer's name. Untrusted text."""
    node: Node | None = None
    attribute: str = ""

    @property
    def tensor(self) -> Tensor | None:
        """The current tensor; None if it was deleted."""
        if self.node is None:
            return self.scope.initializer(self.name) if is_alive(self.scope) else None
        if not is_alive(self.node):
            return None
        attribute = self.node.attribute(self.attribute)
        return attribute.tensor if attribute is not None else None

    @property
    def is_list(self) -> bool:
        """Whether it is an attribute that is a list of numbers or strings."""
        attribute = self.node.attribute(self.attribute) if self.node is not None else None
        return attribute is not None and attribute.kind in LIST_DTYPES

    @property
    def address(self) -> JSON:
        """How edits name it."""
        if self.node is None:
            return {"initializer": self.name}
        return {"node": self.node.ref, "attribute": self.attribute}

    @property
    def path(self) -> tuple[str, ...]:
        """The path of its scope, for edits."""
        return self.scope.path

    @property
    def title(self) -> str:
        """Its name for people."""
        if self.node is None:
            return visible(self.name) or "(no name)"
        return visible(f"{self.node.name or self.node.ref} · {self.attribute}")


DTYPES = (
    "float32", "float16", "bfloat16", "float64", "int8", "uint8", "int32", "int64", "int16",
    "uint16", "uint32", "uint64", "bool", "int4", "uint4", "float8e4m3fn", "float8e5m2",
    "float8e4m3fnuz", "float8e5m2fnuz", "float8e8m0", "float4e2m1", "int2", "uint2",
)  # fmt: skip
"""Element types in the order they are offered."""
_NAME_CELLS = 30


@dataclass(frozen=True)
class Planned:
    """What converting one tensor would do."""

    place: TensorPlace
    tensor: Tensor
    report: ConversionReport | None
    problem: str = ""

    @property
    def lossless(self) -> bool:
        """Whether every value stays."""
        return self.report is not None and self.report.lossless


class ConversionDialog(Dialog[bool]):
    """Shows what is lost, and asks whether to go on."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "convert", "convert", show=False, priority=True)
    ]

    def __init__(self, dtype: str, planned: Sequence[Planned]) -> None:
        super().__init__()
        self.TITLE_TEXT = f"Convert to {dtype}"
        self.planned = planned
        self.possible = any(plan.report is not None for plan in planned)
        self.KEYS = "Enter convert  Esc keep" if self.possible else "Esc close"

    def body(self) -> Iterable[Widget]:
        width = self.text_width
        lossy = sum(not plan.lossless for plan in self.planned)
        mark = glyphs.current()
        if not lossy:
            yield Rows([[(f"{mark.good} ", "good"), ("No value changes.", "")], []])
        else:
            of = f"{lossy:,} of {fmt.plural(len(self.planned), 'tensor')}"
            summary = of if len(self.planned) > 1 else "Some values"
            yield Rows([[(f"{mark.warning} ", "warn"), (f"{summary} would change.", "")], []])
        rows = [line for plan in self.planned for line in planned_lines(plan, width - 1)]
        view = LineView(ListSource(rows), gutter=False)
        view.styles.height = max(1, min(len(rows), self.app.size.height - 9))
        yield view

    def action_convert(self) -> None:
        self.dismiss(self.possible)


def planned_lines(plan: Planned, width: int) -> list[list[Piece]]:
    """Return the row of one tensor: its name, and how its values change."""
    name = fit(visible(plan.place.title), min(_NAME_CELLS, width // 2), keep="middle")
    shown = glyphs.current()
    if plan.report is None:
        return [[(name, "strong"), (f" {shown.error} {visible(plan.problem)}", "bad")]]
    size = f" {fmt.short_count(plan.report.count)} values"
    if plan.lossless:
        return [[(name, "strong"), (size, "dim"), ("  exact", "good")]]
    lines: list[list[Piece]] = [[(name, "strong"), (size, "dim")]]
    for text, style in report_parts(plan.report):
        lines.append([("  ", ""), (text, style)])
    return lines


def report_parts(report: ConversionReport) -> Iterator[tuple[str, str]]:
    """Yield what becomes of the values, with its style, the worst first."""
    counts = (
        (report.overflow, "out of range", "bad"),
        (report.infinite_lost, "infinities lost", "bad"),
        (report.nan_lost, "NaN lost", "bad"),
        (report.underflow, "become zero", "warn"),
        (report.rounded, "rounded", ""),
    )
    for count, problem, style in counts:
        if count:
            share = share_percent(count, report.count) or 0.0
            shown = f"{fmt.percent(share)} %" if share >= 0.1 else "< 0.1 %"
            yield f"{count:>13,} {problem} ({shown})", style
    if report.max_error:
        yield f"{report.max_error:>13.4g} largest difference", "dim"


class TensorConversion:
    """The conversion of some tensors of a page: asked for, planned, and made."""

    def __init__(self, page: Page, edits: PageEdits) -> None:
        self.page, self.edits = page, edits
        self.tasks = page.tasks

    @task()
    async def ask(self, places: Sequence[TensorPlace]) -> None:
        """Ask for the type, show what is lost, and convert."""
        tensors = [place.tensor for place in places]
        known = {tensor.dtype for tensor in tensors if tensor is not None}
        if known <= {"string"}:
            self.page.notify("Strings cannot be converted", timeout=3)
            return

        items = [_dtype_item(name) for name in DTYPES if {name} != known and _known(name)]
        key = await self.tasks.ask(PickDialog("Convert to", lambda: items, placeholder="type"))
        if isinstance(key, str):
            self._plan(list(places), key)

    def _plan(self, places: Sequence[TensorPlace], dtype: str) -> None:
        planned: list[Planned] = []

        def task(progress: ProgressCallback, cancelled: CancelCheck) -> None:
            total = sum(place.tensor.element_count for place in places if place.tensor is not None)
            done = 0
            for place in places:
                tensor = place.tensor
                if tensor is None or tensor.dtype == dtype:
                    continue
                part = _shifted(progress, done, total)
                planned.append(_planned(place, tensor, dtype, part, cancelled))
                done += tensor.element_count

        def ended(error: DldError | None) -> None:
            if error is not None:
                if not isinstance(error, CancelledError):
                    self.edits.complain(error)
                return
            if planned:
                self._confirm(dtype, planned)

        self.edits.work(f"Checking what {dtype} would lose", task, ended)

    @task()
    async def _confirm(self, dtype: str, planned: Sequence[Planned]) -> None:
        if await self.tasks.ask(ConversionDialog(dtype, planned)):
            self._convert([plan.place for plan in planned if plan.report is not None], dtype)

    def _convert(self, places: Sequence[TensorPlace], dtype: str) -> None:
        from dld_tui.core.model.edits import tensors

        steps = [
            partial(
                self.edits.document.apply,
                tensors.convert_tensor(
                    scope=place.path,
                    tensor=place.address,
                    dtype=dtype,
                ),
            )
            for place in places
        ]

        def done() -> None:
            self.page.notify(f"Converted {fmt.plural(len(places), 'tensor')} to {dtype}", timeout=3)

        self.edits.edit_on_thread(f"Converting to {dtype}", steps, done)


def _planned(
    place: TensorPlace,
    tensor: Tensor,
    dtype: str,
    progress: ProgressCallback,
    cancelled: CancelCheck,
) -> Planned:
    try:
        require_convertible(tensor.dtype, dtype)
        report = prepare_conversion(tensor, dtype, progress=progress, cancelled=cancelled)
    except CancelledError:
        raise
    except DldError as error:
        return Planned(place, tensor, None, error.message)
    return Planned(place, tensor, report)


def _shifted(progress: ProgressCallback, begun: int, total: int) -> ProgressCallback:
    """Return what reports the work on one of several tensors as a part of all of it."""
    return lambda done, _: progress(begun + done, total)


def _known(dtype: str) -> bool:
    """Return whether the onnx package that is installed has an element type."""
    try:
        return element_bits(require_dtype(dtype)) is not None
    except DldError:
        return False


def _dtype_item(name: str) -> PickItem:
    bits = element_bits(require_dtype(name))
    size = f"{bits} bits" if bits and bits % 8 else fmt.plural((bits or 0) // 8, "byte")
    return PickItem(name, [(clip(name, 18).ljust(18), ""), (size, "dim")], name)


def external_entries_dialog(place: TensorPlace, edit: Callable[..., Any]) -> FieldsDialog | None:
    """Return the dialog, None where a tensor's values are in no data file.

    Args:
        place: The initializer.
        edit: Makes an edit; what is wrong with the entries it raises.
    """
    from dld_tui.core.model.edits import initializers

    tensor = place.tensor
    if tensor is None or place.node is not None or not tensor.is_external:
        return None
    entries = tensor.external_entries
    location, read = name_editor(entries.get("location", ""))
    needed = tensor.nbytes
    length = entries.get("length", "" if needed is None else str(needed))

    def accept(texts: list[str]) -> None:
        edit(
            initializers.set_external_entries(
                scope=place.path,
                name=place.name,
                location=read(texts[0].strip()),
                offset=_bytes("offset", texts[1]),
                length=_bytes("length", texts[2]),
            )
        )

    about = f"Where the values of {place.title} are read from. No data file is changed."
    fields = [
        FieldSpec("path", location, "relative to the model"),
        FieldSpec("offset", visible(entries.get("offset", "0")), "bytes"),
        FieldSpec("length", visible(length), "bytes"),
    ]
    return FieldsDialog("Data file", about, fields, accept)


def _bytes(name: str, text: str) -> int:
    digits = text.strip().replace(",", "")
    if not digits.isascii() or not digits.isdecimal():
        raise UsageError(f"{name} is a number of bytes, 0 or more")
    return int(digits)
