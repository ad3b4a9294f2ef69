"""Pre-processing before an input: type, layout, size, channels and values of images."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dld_tui.core.conversion.request import EditRequest
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import UsageError
from dld_tui.core.events import Event
from dld_tui.core.params import param
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document
    from dld_tui.core.model.document.transactions import Edit, Transaction

_KEEP = "keep"


@dataclass(frozen=True, kw_only=True)
class Request(EditRequest):
    """Which input, and what happens to its values."""

    normalize: str = param(
        _KEEP,
        label="Normalize",
        help="0 to 255 become 0 to 1 (unit), -1 to 1 (signed), or as for ImageNet.",
        choices=(_KEEP, "unit", "signed", "imagenet"),
        spellings=("--normalize",),
    )
    dtype: str = param(
        "uint8",
        label="Type",
        help="New element type of the input.",
        choices=(_KEEP, "uint8", "float32", "float16", "int32"),
        spellings=("--dtype",),
    )
    layout: str = param(
        _KEEP,
        label="Layout",
        help="New layout of the input, where the graph has another one.",
        choices=(_KEEP, "nhwc", "nchw"),
        spellings=("--layout",),
    )
    bgr: bool = param(
        False, label="BGR", help="Reverse the channels: BGR to RGB and back.", spellings=("--bgr",)
    )
    resize: str = param(
        "",
        label="Resize",
        help=("Resize images of any size to this, bilinear; one number is the shorter side."),
        spellings=("--resize",),
        metavar="HxW",
        empty="none",
    )
    antialias: bool = param(
        False,
        label="Antialias",
        help="Smooth where that shrinks, as Pillow and torchvision do; OpenCV does not.",
        spellings=("--antialias",),
    )
    crop: str = param(
        "",
        label="Crop",
        help="Then crop the centre to this size.",
        spellings=("--crop",),
        metavar="HxW",
        empty="none",
    )
    scale: str = param(
        "",
        label="Scale",
        help="Factor, such as 1/255.",
        spellings=("--scale",),
        metavar="NUMBER",
        empty="of Normalize",
    )
    mean: str = param(
        "",
        label="Mean",
        help="Subtracted after scaling: one number, or one for each channel.",
        spellings=("--mean",),
        metavar="A,B,C",
        empty="of Normalize",
    )
    std: str = param(
        "",
        label="Deviation",
        help="Divides after that: one number, or one for each channel.",
        spellings=("--std",),
        metavar="A,B,C",
        empty="of Normalize",
    )
    input: str = param(
        "",
        label="Input",
        help="Which input is processed.",
        spellings=("--input",),
        metavar="NAME",
        empty="the only one of floats",
    )

    def require(self) -> None:
        """Refuse what is no number.

        Raises:
            UsageError: Says which.
        """
        super().require()
        self.as_edit(str)

    def as_edit(self, keep: Callable[[Path], JSON]) -> Edit:
        """Return the edit that does it.

        Raises:
            UsageError: Something is no number.
        """
        from dld_tui.core.model.edits.processing import prepend_processing

        return prepend_processing(
            input=self.input,
            dtype="" if self.dtype == _KEEP else self.dtype,
            layout="" if self.layout == _KEEP else self.layout,
            resize=[int(number) for number in _numbers("--resize", self.resize, "x")],
            antialias=self.antialias,
            crop=[int(number) for number in _numbers("--crop", self.crop, "x")],
            reverse=self.bgr,
            normalize=self.normalize,
            scale=next(iter(_numbers("--scale", self.scale)), None),
            mean=[*_numbers("--mean", self.mean)],
            deviation=[*_numbers("--std", self.std)],
        )


def _numbers(flag: str, text: str, separator: str = ",") -> list[float]:
    try:
        parts = text.lower().replace(",", separator).split(separator) if text.strip() else []
        numbers = [float(Fraction(part.strip())) for part in parts]
        if separator == "x" and any(number != int(number) for number in numbers):
            raise ValueError
    except (ValueError, ZeroDivisionError, OverflowError):
        what = "size" if separator == "x" else "number"
        raise UsageError(f"{flag} is {text!r}, which is no {what}") from None
    return numbers


def run(request: Request) -> Iterator[Event]:
    """Add the nodes.

    Raises:
        UsageError: Something is no number.
        InputError: The model cannot be opened, or an input cannot be read.
        EditError: There is no such input, or it cannot be processed so.
        ActivityError: The result is not sound.
        SaveError: The result cannot be written.
    """
    from dld_tui.backends.conversion.in_turn import Changed, Stage, write_changed
    from dld_tui.core.model.edits.processing import prepend_into

    def change(
        document: Document, result: Document, transaction: Transaction, arguments: dict[str, Any]
    ) -> Changed:
        prepended = prepend_into(result, transaction, **arguments)
        stage = Stage.of(document)
        stage = replace(stage, inputs={**stage.inputs, prepended.name: prepended.inner})
        return Changed([prepended.line], stage, [prepended.inner])

    yield from write_changed(request, change)
