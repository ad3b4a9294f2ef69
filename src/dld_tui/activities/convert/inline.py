"""Weights of data files in the model itself, as far as 2 GiB go."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import partial

from dld_tui.core.conversion.request import ConversionRequest, ValueVerification
from dld_tui.core.dataclass import dataclass
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
    from dld_tui.backends.conversion.soundness import write_sound
    from dld_tui.backends.conversion.verification import verified
    from dld_tui.core.conversion.accuracy_criteria import EXACT
    from dld_tui.core.conversion.copies import open_model
    from dld_tui.core.conversion.result import MovedWeights
    from dld_tui.core.conversion.storage import move_inline

    yield Progress(0, None, stage="Opening the model")
    with contextlib.closing(open_model(request.model)) as document, contextlib.ExitStack() as stack:
        yield Progress(0, None, stage="Taking in the weights")
        moved = move_inline(document)
        stack.callback(moved.document.close)
        verdict, notes = yield from verified(
            request, document, moved.document, request.output, EXACT,
            unchanged="" if moved.count else "no weight was moved",
        )  # fmt: skip
        result = partial(
            MovedWeights, values=verdict.values, latency_ms=verdict.latency_ms,
            moved=moved.count, moved_bytes=moved.bytes,
        )  # fmt: skip
        notes = [*moved.notes, *notes]
        yield from write_sound(request, document, moved.document, request.output, result, notes)
