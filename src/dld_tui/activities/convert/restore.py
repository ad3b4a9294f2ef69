"""A stripped model with its weights again.

For the verification, the original is the model with the weights.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from dld_tui.core.conversion.request import ConversionRequest, ValueVerification
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import UsageError
from dld_tui.core.events import Event, Progress
from dld_tui.core.params import param


@dataclass(frozen=True)
class Request(ValueVerification, ConversionRequest):
    """Which model, and where the weights are."""

    weights: Path | None = param(
        None,
        label="Weights",
        help="The model with the weights.",
        kind="file",
        spellings=("--weights",),
        metavar="MODEL",
    )
    any_values: bool = param(
        False,
        label="Any values",
        help="Also accept weights whose values differ from the stripped ones.",
        spellings=("--any-values",),
    )

    def require(self) -> None:
        """Refuse to restore from nowhere.

        Raises:
            UsageError: No model with weights is given.
        """
        super().require()
        if self.weights is None:
            raise UsageError("--weights must name the model that has them")


def run(request: Request) -> Iterator[Event]:
    """Restore the weights.

    Raises:
        UsageError: No model with weights is given.
        InputError: The model cannot be opened, a weight is missing or another one, or an input
            cannot be read or does not fit.
        ActivityError: ONNX Runtime cannot use the result.
        SaveError: The result cannot be written.
    """
    from dld_tui.backends.conversion.soundness import write_sound
    from dld_tui.backends.conversion.verification import verified
    from dld_tui.core.conversion.accuracy_criteria import EXACT
    from dld_tui.core.conversion.copies import open_model
    from dld_tui.core.conversion.result import MovedWeights
    from dld_tui.core.conversion.storage import has_same_nodes, restore_weights

    request.require()
    assert request.weights is not None
    yield Progress(0, None, stage="Opening the model")
    with contextlib.closing(open_model(request.model)) as document, contextlib.ExitStack() as stack:
        yield Progress(0, None, stage="Restoring the weights")
        source = stack.enter_context(contextlib.closing(open_model(request.weights)))
        moved = restore_weights(document, source, any_values=request.any_values)
        stack.callback(moved.document.close)
        alike = has_same_nodes(moved.document, source)
        verdict, notes = yield from verified(
            request, source, moved.document, request.output, EXACT,
            unchanged="" if alike else f"{request.weights.name} differs in more than the weights",
        )  # fmt: skip
        result = partial(
            MovedWeights, values=verdict.values, latency_ms=verdict.latency_ms,
            moved=moved.count, moved_bytes=moved.bytes,
        )  # fmt: skip
        notes = [*moved.notes, *notes]
        yield from write_sound(request, document, moved.document, request.output, result, notes)
