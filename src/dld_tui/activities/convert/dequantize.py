"""A model whose weights in few bits are in floating point again."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from dld_tui.core.conversion.request import ConversionRequest, ValueVerification
from dld_tui.core.events import Event, Progress


@dataclass(frozen=True)
class Request(ValueVerification, ConversionRequest):
    """Which model, and where to."""


def run(request: Request) -> Iterator[Event]:
    """Dequantize.

    Raises:
        InputError: The model, a weight or an input cannot be read, or does not fit.
        ActivityError: ONNX Runtime cannot use the result.
        SaveError: The result cannot be written.
    """
    from dld_tui.backends.conversion.verification import verified
    from dld_tui.core.conversion.agreement import QUANTIZED
    from dld_tui.core.conversion.copies import open_model
    from dld_tui.core.conversion.dequantize import dequantize
    from dld_tui.core.conversion.result import DequantizedModel, write_result

    request.require()
    yield Progress(0, None, stage="Opening the model")
    with contextlib.closing(open_model(request.model)) as document, contextlib.ExitStack() as stack:
        steps = dequantize(document)
        made = next(steps)
        stack.callback(made.document.close)
        for made in steps:
            yield Progress(made.count, None, "weights", "Dequantizing")
        nothing = "no weight is stored in few bits"
        # The kernels for few bits may quantize what they multiply by as well.
        verdict, notes = yield from verified(
            request, document, made.document, request.output, QUANTIZED,
            unchanged="" if made.count else nothing,
        )  # fmt: skip
        result = partial(
            DequantizedModel, values=verdict.values, latency_ms=verdict.latency_ms,
            weights=made.count, weight_bytes=made.bytes,
        )  # fmt: skip
        notes = [*made.notes, *notes]
        yield from write_result(document, made.document, request.output, result, notes)
