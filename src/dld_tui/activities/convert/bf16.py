"""A model in bfloat16, whose values are verified with ONNX Runtime before it is written."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from dld_tui.core.conversion.request import HalfRequest
from dld_tui.core.dataclass import dataclass
from dld_tui.core.events import Event, Progress


@dataclass(frozen=True)
class Request(HalfRequest):
    """Which model, where to, and what stays in float32."""


def run(request: Request) -> Iterator[Event]:
    """Convert.

    Raises:
        InputError: The model cannot be opened, or a weight or an input not be read.
        UsageError: A blocked node is not there, or settings do not go together.
        SaveError: The result cannot be written.
    """
    from dld_tui.backends.conversion.verified_fp16 import convert
    from dld_tui.core.conversion.accuracy_criteria import BFLOAT16
    from dld_tui.core.conversion.copies import open_model

    request.require()
    yield Progress(0, None, stage="Opening the model")
    with contextlib.closing(open_model(request.model)) as document:
        yield from convert(request, document, BFLOAT16)
