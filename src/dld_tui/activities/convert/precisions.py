"""Casts that give layers the precisions that they are set to, and what that costs and loses."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import partial

from dld_tui.core.conversion.request import PreviewedRequest, Verification
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import UsageError
from dld_tui.core.events import Event, Finished, Progress
from dld_tui.core.params import param

_HINT = "Leave the node unchanged: give its layer no precision, or fp32"


@dataclass(frozen=True)
class Request(Verification, PreviewedRequest):
    """Which layers get which precision."""

    layer_precision: tuple[str, ...] = param(
        (),
        label="Layer precisions",
        help="Precision of a layer, in addition to those in the model; * matches any characters.",
        spellings=("--layer-precision", "--layerPrecisions"),
        metavar="NAME:PRECISION",
        empty="from the model",
    )
    preview: bool = param(
        False,
        label="Preview",
        help="Only show the changes and the loss.",
        spellings=("--preview",),
    )

    def require(self) -> None:
        """Refuse a request without an output.

        Raises:
            UsageError: There is no output.
        """
        super().require()
        if self.output is None and not self.preview:
            raise UsageError("an output is needed: -o OUT, or --preview")


def run(request: Request) -> Iterator[Event]:
    """Add the casts, or list them.

    Raises:
        UsageError: A precision names no layer, or there is no output.
        InputError: The model or an input cannot be read, or does not match.
        ActivityError: ONNX Runtime cannot use the result.
        SaveError: The result cannot be written.
    """
    from dld_tui.backends.conversion.soundness import write_sound
    from dld_tui.backends.conversion.verification import verified
    from dld_tui.core.conversion.accuracy_criteria import criteria_for
    from dld_tui.core.conversion.copies import open_model
    from dld_tui.core.conversion.result import PrecisionCasts, PrecisionModel
    from dld_tui.core.conversion.retyping import losses, retyped

    request.require()
    yield Progress(0, None, stage="Opening the model")
    with contextlib.closing(open_model(request.model)) as document:
        yield Progress(0, None, stage="Inferring types")
        retyping = retyped(document, request.layer_precision)
        with contextlib.closing(retyping.document):
            yield Progress(0, None, stage="Reading weights")
            casts = PrecisionCasts(
                lines=[*retyping.lines()], figures=retyping.figures(), losses=[*losses(retyping)]
            )
            if request.preview or request.output is None:
                yield Finished(casts)
                return
            dtypes = {cast.dtype for cast in retyping.plan.casts}
            verdict, notes = yield from verified(
                request, document, retyping.document, request.output, criteria_for(dtypes),
                hint=_HINT, unchanged="" if retyping.plan.casts else "no cast was added",
            )  # fmt: skip
            result = partial(
                PrecisionModel, values=verdict.values, latency_ms=verdict.latency_ms,
                lines=casts.lines, figures=casts.figures, losses=casts.losses,
            )  # fmt: skip
            yield from write_sound(
                request, document, retyping.document, request.output, result, notes
            )
