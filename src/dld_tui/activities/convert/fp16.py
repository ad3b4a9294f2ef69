"""A model in float16, verified with ONNX Runtime before it is written."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator
from functools import partial
from typing import TYPE_CHECKING

from dld_tui.core.conversion.request import HalfRequest
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import ActivityError, DldError, UsageError
from dld_tui.core.events import Event, Log, Progress
from dld_tui.core.notes import texts
from dld_tui.core.params import param
from dld_tui.core.text import comma_separated

if TYPE_CHECKING:
    from dld_tui.backends.conversion.verification import Verifier
    from dld_tui.core.model.document.document import Document


@dataclass(frozen=True)
class Request(HalfRequest):
    """Which model, where to, what stays in float32, and by which converter."""

    library: str = param(
        "dld",
        label="Converter",
        help=(
            "dld preserves the whole model and needs little memory; the others load the model "
            "into memory."
        ),
        choices=("dld", "onnxruntime", "polygraphy"),
        words=(("own", "dld"),),
        spellings=("--library",),
    )

    def require(self) -> None:
        """Refuse a repair of what another converter makes.

        Raises:
            UsageError: Settings do not go together.
        """
        super().require()
        if self.repair and self.library != "dld":
            raise UsageError("--repair needs --library dld")


def run(request: Request) -> Iterator[Event]:
    """Convert.

    Raises:
        InputError: The model cannot be opened, or a weight or an input not be read.
        UsageError: A blocked node is not there, or settings do not go together.
        UnavailableError: The library is not installed.
        ActivityError: ONNX Runtime cannot use the result; names the node where it does.
        SaveError: The result cannot be written.
    """
    from dld_tui.backends.conversion.verification import Verifier
    from dld_tui.backends.conversion.verified_fp16 import HINT, convert
    from dld_tui.core.conversion.accuracy_criteria import FLOAT16
    from dld_tui.core.conversion.copies import open_model

    request.require()
    yield Progress(0, None, stage="Opening the model")
    with contextlib.closing(open_model(request.model)) as document, contextlib.ExitStack() as stack:
        if request.library == "dld":
            yield from convert(request, document, FLOAT16)
            return
        verifier = Verifier(request, document, request.output, FLOAT16, hint=HINT)
        yield from _library(request, document, stack.enter_context(verifier), stack)


def _library(
    request: Request, document: Document, verifier: Verifier, stack: contextlib.ExitStack
) -> Iterator[Event]:
    from dld_tui.backends.conversion.library_file import convert_fp16
    from dld_tui.backends.conversion.soundness import write_sound
    from dld_tui.backends.conversion.verified_fp16 import library_advice
    from dld_tui.core.conversion.accuracy_criteria import FP16
    from dld_tui.core.conversion.result import HalfModel

    ops = comma_separated(*request.op_block)
    try:
        result = yield from convert_fp16(
            document, request.library, stack,
            {"keep_io_types": request.keep_io_types, "op_block": [*ops],
             "node_block": [*request.node_block]},
        )  # fmt: skip
        checked = yield from verifier.check(result)
    except ActivityError as error:
        fallback_hint = yield from _fallback_hint(request, document, verifier)
        raise ActivityError(
            error.message, where=error.where, hint=fallback_hint, details=error.details
        ) from error
    advice = library_advice(request.library, FP16)
    verified = yield from verifier.figures(result, checked, advice=advice)
    half = partial(
        HalfModel, values=verified.values, latency_ms=verified.latency_ms, losses=[],
        library=request.library, range_check=request.range_check,
    )  # fmt: skip
    yield from write_sound(request, document, result, request.output, half, texts(checked.notes))


def _fallback_hint(
    request: Request, document: Document, verifier: Verifier
) -> Generator[Event, None, str]:
    """Return advice for a failed library, after trying the own converter."""
    from dld_tui.backends.conversion.verified_fp16 import HINT, converted
    from dld_tui.core.conversion.accuracy_criteria import FP16

    yield Log("it failed; trying dld's own converter, to see whether that can do it")
    try:
        model = yield from converted(request, document, FP16)
        with contextlib.closing(model.document):
            yield from verifier.check(model.document)
    except DldError:
        return HINT
    return f"--library own converts it to a model that ONNX Runtime takes. {HINT}"
