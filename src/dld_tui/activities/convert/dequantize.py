"""A model whose weights in few bits are in floating point again."""

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
    """Dequantize.

    Raises:
        InputError: The model, a weight or an input cannot be read, or does not fit.
        ActivityError: ONNX Runtime cannot use the result.
        SaveError: The result cannot be written.
    """
    from dld_tui.backends.conversion.soundness import write_sound
    from dld_tui.backends.conversion.verification import verified
    from dld_tui.core.checks.decoders import SCALED_EXPERTS, scales_experts
    from dld_tui.core.conversion.accuracy_criteria import QUANTIZED
    from dld_tui.core.conversion.copies import open_model
    from dld_tui.core.conversion.dequantize import dequantize
    from dld_tui.core.conversion.result import DequantizedModel

    request.require()
    yield Progress(0, None, stage="Opening the model")
    with contextlib.closing(open_model(request.model)) as document, contextlib.ExitStack() as stack:
        steps = dequantize(document)
        dequantized_model = next(steps)
        stack.callback(dequantized_model.document.close)
        for dequantized_model in steps:
            yield Progress(dequantized_model.count, None, "weights", "Dequantizing")
        nothing = "no weight is stored in few bits"
        if dequantized_model.left:
            nothing = "no weight was dequantized"
        mixtures = (one for scope in document.scopes() for one in scope.nodes_of_type("QMoE"))
        doubts = [SCALED_EXPERTS] if any(map(scales_experts, mixtures)) else []
        # The kernels for few bits may quantize what they multiply by as well.
        verdict, notes = yield from verified(
            request, document, dequantized_model.document, request.output, QUANTIZED,
            unchanged="" if dequantized_model.count else nothing,
        )  # fmt: skip
        result = partial(
            DequantizedModel, values=verdict.values, latency_ms=verdict.latency_ms,
            weights=dequantized_model.count, weight_bytes=dequantized_model.bytes,
        )  # fmt: skip
        notes = [*doubts, *dequantized_model.notes, *notes]
        yield from write_sound(
            request, document, dequantized_model.document, request.output, result, notes
        )
