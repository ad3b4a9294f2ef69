"""Weights in a data file beside the model."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from dld_tui.core.conversion.request import ConversionRequest, ValueVerification
from dld_tui.core.dataclass import dataclass
from dld_tui.core.events import Event, Progress
from dld_tui.core.params import param
from dld_tui.core.types import JSON


def _data_file(values: Mapping[str, JSON]) -> str:
    output = values.get("output") or values.get("model")
    return f"{Path(output).name}.data" if isinstance(output, str) else "NAME.onnx.data"


@dataclass(frozen=True)
class Request(ValueVerification, ConversionRequest):
    """Which weights go where."""

    location: str = param(
        "",
        label="Data file",
        help=(
            "Name of the data file, relative to the model. By default it is derived from the "
            "model's name."
        ),
        spellings=("--location",),
        metavar="NAME",
        of_model=True,
        empty=_data_file,
    )
    threshold: int = param(
        1024,
        label="Threshold",
        help=(
            "Keep weights smaller than this in the model. Lists of less than 1024 bytes always "
            "stay."
        ),
        unit="B",
        minimum=0,
        spellings=("--threshold",),
        metavar="BYTES",
    )


def run(request: Request) -> Iterator[Event]:
    """Move weights to a data file.

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
    from dld_tui.core.conversion.storage import move_to_external

    yield Progress(0, None, stage="Opening the model")
    with contextlib.closing(open_model(request.model)) as document, contextlib.ExitStack() as stack:
        yield Progress(0, None, stage="Moving weights to a data file")
        moved = move_to_external(document, request.location, request.threshold)
        stack.callback(moved.document.close)
        verdict, notes = yield from verified(
            request, document, moved.document, request.output, EXACT,
            unchanged="" if moved.count else "no weight was moved",
        )  # fmt: skip
        result = partial(
            MovedWeights, values=verdict.values, latency_ms=verdict.latency_ms,
            moved=moved.count, moved_bytes=moved.bytes,
            data_file=request.location or f"{request.output.name}.data",
        )  # fmt: skip
        notes = [*moved.notes, *notes]
        yield from write_sound(request, document, moved.document, request.output, result, notes)
