"""Another version of the ai.onnx operators, node by node.

Weights stay in their files, except of sparse initializers, which become dense.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from dld_tui.core.conversion.request import ConversionRequest, Verification
from dld_tui.core.dataclass import dataclass
from dld_tui.core.events import Event, Progress
from dld_tui.core.params import param

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document

_HINT = "--no-verify writes it without verification"


@dataclass(frozen=True)
class _Version(ConversionRequest):
    to: int = param(
        label="Version",
        help="Target version of the ai.onnx opset.",
        minimum=1,
        spellings=("--to",),
        metavar="N",
    )


@dataclass(frozen=True)
class Request(Verification, _Version):
    """Which model, where to, and to which version."""


def run(request: Request) -> Iterator[Event]:
    """Convert.

    Raises:
        InputError: The model cannot be opened, or an input cannot be read.
        ConversionError: It cannot be converted; says why.
        ActivityError: The result is not valid, or ONNX Runtime cannot use it; names the node if
            ONNX Runtime does.
        SaveError: The result cannot be written.
    """
    from dld_tui.core.conversion.copies import open_model

    yield Progress(0, None, stage="Opening the model")
    with contextlib.closing(open_model(request.model)) as document:
        yield from _converted(request, document)


def _converted(request: Request, document: Document) -> Iterator[Event]:
    import onnx

    from dld_tui.backends.conversion.soundness import write_sound
    from dld_tui.backends.conversion.verification import same_arithmetic, verified
    from dld_tui.core.conversion.copies import copy_of, make_dense
    from dld_tui.core.conversion.opset import ConversionError, convert_opset
    from dld_tui.core.conversion.result import ConvertedOpset
    from dld_tui.core.model.document.document import Document
    from dld_tui.core.model.document.serialise import skeleton_bytes

    yield Progress(0, None, stage="Converting")
    source = document
    if document.main.records["sparse_initializer"]:  # constants that rules may need
        source = copy_of(document)
        make_dense(source)
    model = onnx.ModelProto.FromString(skeleton_bytes(source))
    try:
        changes = convert_opset(model, request.to)
    except ConversionError as error:
        raise ConversionError(error.message, where=str(request.model)) from None
    result = Document(model, blobs=source.blobs.reopened(), external=source.external.reopened())
    if source is not document:
        source.close()
    with contextlib.closing(result):
        verdict, notes = yield from verified(
            request, document, result, request.output, same_arithmetic(document), hint=_HINT
        )
        converted = partial(
            ConvertedOpset, values=verdict.values, latency_ms=verdict.latency_ms,
            from_=changes.from_, to=changes.to, changed=dict(changes.changed.most_common()),
            added=dict(changes.added.most_common()),
            removed=dict(changes.removed.most_common()), initializers=changes.initializers,
            unconverted=changes.unconverted,
        )  # fmt: skip
        yield from write_sound(request, document, result, request.output, converted, notes)
