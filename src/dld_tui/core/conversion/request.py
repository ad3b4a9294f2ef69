"""What every conversion is asked: which model, and where the result goes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dld_tui.core.params import param


@dataclass(frozen=True)
class ConversionRequest:
    """The settings that all conversions have."""

    model: Path = param(label="Model", help="The ONNX model.", kind="file", positional=True)
    output: Path = param(
        label="Output",
        help="The file to write.",
        kind="output",
        beside=("{name}.data",),
        spellings=("-o", "--output"),
        metavar="OUT",
    )
