"""Other element types and layouts of the inputs and outputs of a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dld_tui.core.conversion.request import EditRequest
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import UsageError
from dld_tui.core.events import Event
from dld_tui.core.params import param, put_once
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document
    from dld_tui.core.model.document.transactions import Edit, Transaction
    from dld_tui.core.model.edits.terminals import ChangedTerminal

_KEEP = "keep"
_FROM = {
    "int32": ("int64",),
    "int64": ("int32",),
    "float16": ("float32",),
    "bfloat16": ("float32",),
    "uint8": ("float32",),
    "float32": ("float16", "bfloat16", "float64"),
}
"""The types that become a type."""


@dataclass(frozen=True, kw_only=True)
class Request(EditRequest):
    """Which inputs and outputs get which type and layout."""

    integers: str = param(
        _KEEP,
        label="Integers",
        help="int32: all int64 ones become int32; int64: all int32 ones become int64.",
        choices=(_KEEP, "int32", "int64"),
        spellings=("--integers",),
    )
    floats: str = param(
        _KEEP,
        label="Floats",
        help="Type for all float32 ones; float32 for all float16, bfloat16 and float64 ones.",
        choices=(_KEEP, "float16", "bfloat16", "float32", "uint8"),
        spellings=("--floats",),
    )
    images: str = param(
        _KEEP,
        label="Images",
        help="Layout for all with four dimensions.",
        choices=(_KEEP, "nhwc", "nchw"),
        spellings=("--images",),
    )
    side: str = param(
        "inputs",
        label="Of",
        help="Which ones the three above mean.",
        choices=("inputs", "outputs", "both"),
        spellings=("--of",),
    )
    type: tuple[str, ...] = param(
        (),
        label="Types",
        help="The input or output NAME gets this element type.",
        spellings=("--type",),
        metavar="NAME=TYPE",
    )
    layout: tuple[str, ...] = param(
        (),
        label="Layouts",
        help=(
            "The input or output NAME gets this layout: nhwc, nchw, hwc, chw, or which of its axes "
            "each axis becomes (0,2,3,1)."
        ),
        spellings=("--layout",),
        metavar="NAME=LAYOUT",
    )

    def require(self) -> None:
        """Refuse to change nothing.

        Raises:
            UsageError: Nothing is asked for, or something is no pair.
        """
        super().require()
        arguments = self.as_edit(str).arguments
        if not arguments["types"] and not arguments["layouts"]:
            raise UsageError(
                "a type or layout is needed: --integers, --floats, --images, --type or --layout"
            )

    def as_edit(self, keep: Callable[[Path], JSON]) -> Edit:
        """Return the edit that does it.

        Raises:
            UsageError: Something is no pair.
        """
        from dld_tui.core.model.edits.terminals import convert_terminals

        types: dict[str, str] = {}
        for to in (self.integers, self.floats):
            types.update(dict.fromkeys(_FROM.get(to, ()), to))
        types.update(_pairs("--type", self.type))
        layouts: dict[str, JSON] = {} if self.images == _KEEP else {"images": self.images}
        for name, text in _pairs("--layout", self.layout).items():
            axes = text.split(",")
            is_list = all(axis.strip().isdecimal() for axis in axes)
            layouts[name] = [int(axis) for axis in axes] if is_list else text
        return convert_terminals(types=types, layouts=layouts, side=self.side)


def _pairs(flag: str, texts: tuple[str, ...]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in texts:
        name, sign, value = text.rpartition("=")
        if not sign or not name or not value:
            raise UsageError(f"{flag} is {text!r}, and not NAME=VALUE")
        put_once(pairs, name, value, flag)
    return pairs


def run(request: Request) -> Iterator[Event]:
    """Change types and layouts.

    Raises:
        UsageError: Nothing is asked for.
        InputError: The model cannot be opened, or an input cannot be read.
        EditError: There is no such input or output, or it cannot have the type or layout.
        ActivityError: The result is not sound.
        SaveError: The result cannot be written.
    """
    from dld_tui.backends.conversion.in_turn import Changed, write_changed
    from dld_tui.core.conversion.copies import infer
    from dld_tui.core.model.edits.terminals import changed_values, convert_into

    def change(
        document: Document, result: Document, transaction: Transaction, arguments: dict[str, Any]
    ) -> Changed:
        result.ask_types = partial(infer, result, document.path)
        changed = convert_into(result, transaction, **arguments)
        return Changed([*changed_values(changed)], _stage(document, changed))

    yield from write_changed(request, change, "Changing types and layouts")


def _stage(document: Any, changed: list[ChangedTerminal]) -> Any:
    """Return the original, fed with the values that it would have got."""
    from dataclasses import replace

    import numpy as np

    from dld_tui.backends.conversion.in_turn import Stage
    from dld_tui.core.model.inputs.shapes import numpy_dtype

    by_name = {one.name: one for one in changed}

    def of_input(name: str, value: Any) -> Any:
        one = by_name.get(name)
        if one is None:
            return value
        if one.axes:
            value = np.transpose(value, np.argsort(one.axes))
        return np.asarray(value.astype(numpy_dtype(one.before.dtype or "")), order="C")

    def of_output(name: str, value: Any) -> Any:
        one = by_name.get(name)
        if one is None:
            return value
        if one.axes:
            value = np.transpose(value, one.axes)
        return value.astype(numpy_dtype(one.after.dtype or ""))

    return replace(Stage.of(document), adapt=of_input, adapt_output=of_output)
