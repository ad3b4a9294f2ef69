"""Casts that give layers the precisions that they are set to, and what that costs and loses.

Result: ``{"lines": [...], "figures": {...}, "losses": [{"name", "dtype", "overflow", "underflow",
"rounded", "max_error"}]}``, see :class:`dld_tui.core.tensorrt.retyping.Retyping`; unless it is a
preview with that of :func:`dld_tui.core.conversion.request.written` and what
:mod:`dld_tui.backends.conversion.verification` says.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from dld_tui.core.conversion.request import PreviewedRequest, Verification
from dld_tui.core.errors import UsageError
from dld_tui.core.events import Event, Finished, Progress
from dld_tui.core.params import param
from dld_tui.core.types import JSON

_HINT = "Let the node stay as it is: give its layer no precision, or fp32"


@dataclass(frozen=True)
class Request(Verification, PreviewedRequest):
    """Which layers get which precision."""

    layer_precision: tuple[str, ...] = param(
        (),
        label="Layer precisions",
        help="Precision of a layer besides those in the model; * stands for any characters.",
        spellings=("--layer-precision", "--layerPrecisions"),
        metavar="NAME:PRECISION",
        empty="as the model says",
    )
    preview: bool = param(
        False,
        label="Preview",
        help="Only say what would be done and lost.",
        spellings=("--preview",),
    )

    def require(self) -> None:
        """Refuse to write nothing.

        Raises:
            UsageError: There is no output.
        """
        super().require()
        if self.output is None and not self.preview:
            raise UsageError("an output is needed: -o OUT, or --preview")


def run(request: Request) -> Iterator[Event]:
    """Add the casts, or say which.

    Raises:
        UsageError: A precision names no layer, or there is no output.
        InputError: The model or an input cannot be read, or does not fit.
        ActivityError: ONNX Runtime cannot use the result.
        SaveError: The result cannot be written.
    """
    from dld_tui.backends.conversion.verification import verified
    from dld_tui.core.conversion.agreement import of_types
    from dld_tui.core.conversion.copies import open_model
    from dld_tui.core.conversion.request import written
    from dld_tui.core.tensorrt.retyping import losses, retyped

    request.require()
    yield Progress(0, None, stage="Opening the model")
    with contextlib.closing(open_model(request.model)) as document:
        yield Progress(0, None, stage="Inferring types")
        retyping = retyped(document, request.layer_precision)
        with contextlib.closing(retyping.document):
            yield Progress(0, None, stage="Reading weights")
            lost: list[JSON] = [
                {"name": loss.name, "dtype": loss.dtype, "overflow": loss.report.overflow,
                 "underflow": loss.report.underflow, "rounded": loss.report.rounded,
                 "max_error": loss.report.max_error}
                for loss in losses(retyping)
            ]  # fmt: skip
            more: dict[str, JSON] = {
                "lines": [*retyping.lines()], "figures": retyping.to_json(), "losses": lost,
            }  # fmt: skip
            if request.preview or request.output is None:
                yield Finished(more)
                return
            dtypes = {cast.dtype for cast in retyping.plan.casts}
            figures, notes = yield from verified(
                request, document, retyping.document, request.output, of_types(dtypes),
                hint=_HINT, unchanged="" if retyping.plan.casts else "no cast was added",
            )  # fmt: skip
            yield from written(
                document, retyping.document, request.output, notes=notes, more=more | figures
            )
