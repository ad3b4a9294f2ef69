"""How pictures look: sizes in pixels, and the colours of each scheme."""

from __future__ import annotations

import re
from collections.abc import Mapping

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import UsageError
from dld_tui.core.model.operators.categories import COLOUR_CLASSES
from dld_tui.core.types import precision_style

CELL = 8
"""Pixels of a column of the layout."""
ROW = 16
"""Pixels by which a box is moved down that was moved down a row by hand."""
MARGIN = 28
TRACK = 9
"""Pixels between two lines that run sideways."""
HEAD, TAIL = 18, 14
"""Pixels below and above boxes before a line may turn; the types of tensors stand below."""
GRID = 24
RADIUS = 7
"""Of the corners of lines."""

LABEL, NAME, SMALL, TITLE = 13.0, 10.5, 9.5, 17.0
"""Sizes of text in pixels."""
EM = 0.62
"""Width of a cell of text, as a share of its size: enough for common sans-serif fonts."""

LEGEND = {
    "conv": "convolution, pooling",
    "matmul": "matrix product, attention",
    "norm": "normalization",
    "act": "activation",
    "elem": "arithmetic",
    "shape": "shape, indexing",
    "data": "data",
    "control": "control flow",
    "quant": "quantization",
    "other": "other",
    "io": "input, output",
    "group": "folded",
    "fp32": "fp32",
    "fp16": "fp16",
    "bf16": "bf16",
    "int8": "int8",
    "fp8": "fp8",
    "int4": "int4, fp4",
    "prec-other": "another precision",
}
"""What the legend calls each class, in its order."""


PRECISIONS = ("fp32", "fp16", "bf16", "int8", "fp8", "int4", "prec-other")
"""Classes of vertices that are coloured by their precision."""


def precision_class(precision: str) -> str:
    """Return the class of a precision: one of :data:`PRECISIONS`."""
    name = precision_style(precision).removeprefix("prec-")
    return name if name in PRECISIONS else "prec-other"


@dataclass(frozen=True)
class Scheme:
    """Colours as ``#rrggbb``."""

    name: str
    background: str
    ink: str
    quiet: str
    line: str
    """Of links and arrows."""
    grid: str
    edges: Mapping[str, str]
    """The border and label of each class of :data:`LEGEND`."""
    fills: Mapping[str, str]

    @property
    def is_coloured(self) -> bool:
        """Whether classes differ in colour."""
        return len(set(self.edges.values())) > 1


def mixed(colour: str, base: str, share: float) -> str:
    """Return a colour laid over another one.

    Args:
        colour: As ``#rrggbb``, like the others.
        base: What is below it.
        share: How much of it is seen, up to 1.
    """
    parts = (
        round(int(colour[at : at + 2], 16) * share + int(base[at : at + 2], 16) * (1 - share))
        for at in (1, 3, 5)
    )
    return "#" + "".join(f"{part:02x}" for part in parts)


def _scheme(
    name: str, base: tuple[str, str, str, str, str], operators: tuple[str, ...], io: str,
    group: str, tint: float, precisions: tuple[str, ...],
) -> Scheme:  # fmt: skip
    background, ink, quiet, line, grid = base
    edges = dict(zip(COLOUR_CLASSES, operators, strict=True)) | {"io": io, "group": group}
    edges |= dict(zip(PRECISIONS, precisions, strict=True))
    fills = {key: mixed(edge, background, tint) for key, edge in edges.items()}
    return Scheme(name, background, ink, quiet, line, grid, edges, fills)


_LIGHT = ("#ffffff", "#23282e", "#68727d", "#9aa3ac", "#f0f1f2")
_DARK = ("#0e1116", "#dce1e7", "#8b959f", "#5b6672", "#171c22")

SCHEMES: Mapping[str, Scheme] = {
    scheme.name: scheme
    for scheme in (
        _scheme(
            "light", _LIGHT,
            ("#1f62a3", "#4338b5", "#7b3fa0", "#a85b08", "#4a5561", "#7b858f", "#1f7a5c", "#b02a6b",
             "#6f6a10", "#3b4148"), "#12795a", "#23282e", 0.11,
            ("#5f6a75", "#1f6cab", "#4055b5", "#a85b08", "#a03a6f", "#6f6a10", "#23282e"),
        ),
        _scheme(
            "dark", _DARK,
            ("#7fb4ee", "#9aa4f5", "#c39be0", "#e0ac68", "#b9c1ca", "#8b959f", "#7fc4aa", "#e48fb8",
             "#d0ca72", "#c8ced6"), "#86d0ab", "#dce1e7", 0.17,
            ("#8b959f", "#7cc0f5", "#9fb4f2", "#d9aa6d", "#d693b4", "#c6c275", "#c8ced6"),
        ),
        # The colours of Okabe and Ito, darkened where text on white needs it.
        _scheme(
            "colour-blind", _LIGHT,
            ("#0072b2", "#004c78", "#a8558a", "#b06f00", "#4a5561", "#7b858f", "#007a5a", "#c04e00",
             "#857b00", "#23282e"), "#2182b8", "#23282e", 0.16,
            ("#5f6a75", "#0072b2", "#004c78", "#b06f00", "#a8558a", "#857b00", "#23282e"),
        ),
        _scheme(
            "mono", ("#ffffff", "#000000", "#4d4d4d", "#707070", "#eeeeee"),
            ("#000000",) * len(COLOUR_CLASSES), "#000000", "#000000", 0.0,
            ("#000000",) * len(PRECISIONS),
        ),
    )
}  # fmt: skip
"""All schemes; the first is the default."""


_COLOUR = re.compile("#[0-9a-fA-F]{6}")


def read_background(text: str) -> str:
    """Return a colour, or ``none``.

    Raises:
        UsageError: It is neither.
    """
    plain = text.strip()
    if plain != "none" and not _COLOUR.fullmatch(plain):
        raise UsageError(f"{text!r} is no colour", hint="Use one such as '#ffffff', or none")
    return plain


@dataclass(frozen=True)
class Look:
    """What the user chose."""

    scheme: Scheme = SCHEMES["light"]
    background: str | None = None
    """A colour, ``none`` for no background, or None for that of the scheme."""
    grid: bool = False

    @property
    def paper(self) -> str | None:
        """The colour behind everything; None without one."""
        return None if self.background == "none" else self.background or self.scheme.background
