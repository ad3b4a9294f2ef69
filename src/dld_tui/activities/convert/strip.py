"""A model without the values of its weights, with their hashes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import partial

from dld_tui.core.conversion.request import ConversionRequest
from dld_tui.core.dataclass import dataclass
from dld_tui.core.events import Event, Progress
from dld_tui.core.params import param


@dataclass(frozen=True)
class Request(ConversionRequest):
    """Which weights lose their values."""

    threshold: int = param(
        1024,
        label="Threshold",
        help="Keep weights smaller than this.",
        unit="B",
        minimum=1,
        spellings=("--threshold",),
        metavar="BYTES",
    )


def run(request: Request) -> Iterator[Event]:
    """Take out the weights.

    Raises:
        InputError: The model cannot be opened.
        SaveError: The result cannot be written.
    """
    from dld_tui.backends.conversion.soundness import write_sound
    from dld_tui.core.conversion.copies import open_model
    from dld_tui.core.conversion.result import StrippedModel
    from dld_tui.core.conversion.storage import strip_weights

    yield Progress(0, None, stage="Opening the model")
    with contextlib.closing(open_model(request.model)) as document, contextlib.ExitStack() as stack:
        yield Progress(0, None, stage="Hashing the weights")
        moved = strip_weights(document, request.threshold)
        stack.callback(moved.document.close)
        result = partial(StrippedModel, moved=moved.count, moved_bytes=moved.bytes)
        yield from write_sound(
            request, document, moved.document, request.output, result, moved.notes,
            is_for_runtime=False,  # which has no use for it until the weights are back
        )  # fmt: skip
