"""Weights of data files in the model itself, as far as 2 GiB go.

Result: that of :func:`dld_tui.core.conversion.request.written` with ``"moved", "moved_bytes"``
and what :mod:`dld_tui.backends.conversion.verification` says.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from dld_tui.core.conversion.request import ConversionRequest, ValueVerification
from dld_tui.core.events import Event, Progress


@dataclass(frozen=True)
class Request(ValueVerification, ConversionRequest):
    """Which model, and where to."""


def run(request: Request) -> Iterator[Event]:
    """Take in the weights.

    Raises:
        InputError: The model or an input cannot be read, or does not fit.
        ActivityError: ONNX Runtime cannot use the result.
        SaveError: The result cannot be written.
    """
    from dld_tui.backends.conversion.verification import verified
    from dld_tui.core.conversion.agreement import EXACT
    from dld_tui.core.conversion.copies import open_model
    from dld_tui.core.conversion.request import written
    from dld_tui.core.conversion.storage import to_inline

    yield Progress(0, None, stage="Opening the model")
    with contextlib.closing(open_model(request.model)) as document, contextlib.ExitStack() as stack:
        yield Progress(0, None, stage="Taking in the weights")
        moved = to_inline(document)
        stack.callback(moved.document.close)
        figures, notes = yield from verified(
            request, document, moved.document, request.output, EXACT,
            unchanged="" if moved.count else "no weight was moved",
        )  # fmt: skip
        yield from written(
            document, moved.document, request.output, notes=[*moved.notes, *notes],
            more={"moved": moved.count, "moved_bytes": moved.bytes, **figures},
        )  # fmt: skip
