"""Constants folded and what is unused removed, by Polygraphy, weights loaded only to be folded.

Result: that of :func:`dld_tui.core.conversion.result.written`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from dld_tui.core.conversion.request import ConversionRequest
from dld_tui.core.errors import UnavailableError
from dld_tui.core.events import Event, Progress
from dld_tui.core.inputs.params import VERIFIED_HELP, about_shape
from dld_tui.core.params import param


@dataclass(frozen=True)
class Request(ConversionRequest):
    """Which model, where to, and what to do."""

    fold: bool = param(
        True,
        label="Fold constants",
        help="Replace nodes that always give the same by what they give.",
        spellings=("--fold-constants",),
    )
    threshold: float = param(
        16.0,
        label="Size threshold",
        help="Fold no constant that would be larger.",
        unit="MiB",
        minimum=0,
        spellings=("--fold-size-threshold",),
        metavar="MIB",
    )
    passes: int | None = param(
        None,
        label="Passes",
        help="How often to fold; by default until nothing changes.",
        minimum=1,
        spellings=("--num-passes",),
        metavar="N",
    )
    shapes: bool = param(
        True,
        label="Fold shapes",
        help="Fold Shape nodes and what computes with shapes.",
        spellings=("--fold-shapes",),
    )
    inference: bool = param(
        True,
        label="Infer shapes",
        help="Infer shapes between two passes.",
        spellings=("--per-pass-shape-inference",),
    )
    partitioning: str = param(
        "none",
        label="Partitioning",
        help="How to go on where ONNX Runtime cannot compute a constant.",
        choices=("none", "basic", "recursive"),
        spellings=("--partitioning",),
    )
    cleanup: bool = param(
        True,
        label="Remove unused",
        help="Remove nodes that no output depends on.",
        spellings=("--cleanup",),
    )
    toposort: bool = param(
        False,
        label="Sort nodes",
        help="Put nodes into an order in which each comes after its inputs.",
        spellings=("--toposort",),
    )
    verify: bool = param(
        True,
        label="Verify",
        help="Load and run the result with ONNX Runtime before it is written.",
        spellings=("--verify",),
    )
    shape: tuple[str, ...] = param((), **about_shape(help=VERIFIED_HELP))


def run(request: Request) -> Iterator[Event]:
    """Sanitize.

    Raises:
        InputError: The model cannot be opened.
        UnavailableError: Polygraphy is not installed.
        ActivityError: It failed, or ONNX Runtime cannot use the result.
        SaveError: The result cannot be written.
    """
    from dld_tui.backends import polygraphy_sanitize
    from dld_tui.backends.library_file import by_library
    from dld_tui.core.conversion.copies import open_model
    from dld_tui.core.conversion.result import written

    absent = polygraphy_sanitize.missing()
    if absent:
        raise UnavailableError(
            f"{' and '.join(absent)} not installed",
            hint=f"Install it with: {polygraphy_sanitize.INSTALL}",
        )
    yield Progress(0, None, stage="Opening the model")
    with contextlib.closing(open_model(request.model)) as document, contextlib.ExitStack() as stack:
        result = yield from by_library(
            document,
            polygraphy_sanitize.__name__,
            {
                "fold": request.fold, "threshold": int(request.threshold * 2**20),
                "passes": request.passes, "shapes": request.shapes,
                "inference": request.inference, "partitioning": request.partitioning,
                "cleanup": request.cleanup, "toposort": request.toposort,
            },
            "Polygraphy sanitize",
            stack,
        )  # fmt: skip
        notes: list[str] = []
        if request.verify:
            from dld_tui.backends.converted import verify

            notes = yield from verify(document, result, request.output, request.shape)
        yield from written(document, result, request.output, notes=notes)
