"""Weights, constants and lists of numbers in another element type, and what that loses."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.core.conversion.request import PreviewedRequest, Verification
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import UsageError
from dld_tui.core.events import Event, Finished, Progress
from dld_tui.core.params import param

if TYPE_CHECKING:
    from dld_tui.core.conversion.tensor_casting import CastSelection
    from dld_tui.core.model.document.document import Document

_HINT = "Leave out what causes it: --filter takes names, --from types, --least-bytes sizes"


@dataclass(frozen=True)
class Request(Verification, PreviewedRequest):
    """Which tensors, and to which type."""

    to: str = param(
        "float16",
        label="Type",
        help="The element type to convert to.",
        spellings=("--to",),
        metavar="TYPE",
    )
    filter: tuple[str, ...] = param(
        (),
        label="Names",
        help="Only tensors with this name; * matches any characters.",
        spellings=("--filter",),
        metavar="PATTERN",
        empty="all tensors",
    )
    types: tuple[str, ...] = param(
        (),
        label="From types",
        help="Only tensors of this element type; by default all floating point types.",
        spellings=("--from",),
        metavar="TYPE",
        empty="floating point",
    )
    kinds: tuple[str, ...] = param(
        (),
        label="Kinds",
        help=(
            "Only initializer, constant (tensor of a Constant node) or list (numbers of a "
            "Constant node)."
        ),
        spellings=("--kind",),
        metavar="KIND",
        empty="all",
    )
    least_bytes: int = param(
        0,
        label="Minimum size",
        help="Only tensors of at least this many bytes.",
        unit="B",
        minimum=0,
        spellings=("--least-bytes",),
        metavar="BYTES",
    )
    casts: bool = param(
        True,
        label="Casts",
        help="Insert Cast nodes before the consumers, so that the model stays valid.",
        spellings=("--casts",),
    )
    list_only: bool = param(
        False,
        label="List",
        help="Only list the tensors and the loss of each.",
        spellings=("--list",),
    )

    def require(self) -> None:
        """Refuse a request without an output, and unknown kinds and types.

        Raises:
            UsageError: There is no output, or an unknown kind.
            InputError: The type is unknown.
        """
        from dld_tui.core.conversion.tensor_casting import KINDS
        from dld_tui.core.model.tensors.elements import element_type

        super().require()
        if unknown := sorted(set(self.kinds) - set(KINDS)):
            raise UsageError(f"--kind is {unknown[0]!r}; choose one of {', '.join(KINDS)}")
        for name in (self.to, *self.types):
            element_type(name)
        if self.output is None and not self.list_only:
            raise UsageError("an output is needed: -o OUT, or --list")


def run(request: Request) -> Iterator[Event]:
    """Convert, or list.

    Raises:
        UsageError: There is no output, or an unknown kind.
        InputError: The model cannot be opened, the type is unknown, or an input cannot be read.
        ActivityError: ONNX Runtime cannot use the result.
        SaveError: The result cannot be written.
    """
    from dld_tui.core.conversion.copies import open_model
    from dld_tui.core.conversion.result import TensorLosses
    from dld_tui.core.conversion.tensor_casting import KINDS, CastSelection, losses
    from dld_tui.core.model.tensors.elements import element_type

    request.require()
    dtype = element_type(request.to)
    types = tuple(element_type(name) for name in request.types)
    chosen = CastSelection(request.filter, types, request.least_bytes, request.kinds or KINDS)
    yield Progress(0, None, stage="Opening the model")
    with contextlib.closing(open_model(request.model)) as document:
        if request.list_only:
            yield Progress(0, None, stage="Reading tensors")
            yield Finished(TensorLosses(dtype, [*losses(document, dtype, chosen)]))
            return
        assert request.output is not None
        yield from _convert(request, dtype, request.output, document, chosen)


def _convert(
    request: Request, dtype: str, output: Path, document: Document, chosen: CastSelection
) -> Iterator[Event]:
    from dld_tui.backends.conversion.soundness import write_sound
    from dld_tui.backends.conversion.verification import verified
    from dld_tui.core.conversion.accuracy_criteria import criteria_for
    from dld_tui.core.conversion.result import ConvertedWeights
    from dld_tui.core.conversion.tensor_casting import convert_tensors

    with contextlib.ExitStack() as stack:
        converted = None
        for converted in convert_tensors(document, dtype, chosen, casts=request.casts):
            yield Progress(converted.count, None, "tensors", "Converting tensors")
        assert converted is not None
        stack.callback(converted.document.close)
        notes = converted.notes
        if not converted.count and not notes:
            notes = [f"there is nothing to convert: no chosen tensor has a type other than {dtype}"]
        criteria = criteria_for([dtype])
        verdict, remarks = yield from verified(
            request, document, converted.document, output,
            replace(criteria, has_kernels=criteria.has_kernels or request.casts),
            hint=_HINT, unchanged="" if converted.count else "nothing was converted",
        )  # fmt: skip
        result = partial(
            ConvertedWeights, values=verdict.values, latency_ms=verdict.latency_ms,
            converted=converted.count, casts=converted.casts,
        )  # fmt: skip
        yield from write_sound(
            request, document, converted.document, output, result, [*notes, *remarks]
        )
