"""Types and shapes of all values of a model, as the onnx package infers them, and errors.

ONNX Runtime infers the outputs of its own operators, if it is installed.

The model file may be a temporary one: the unsaved state of a document without its
payloads (:mod:`dld_tui.core.model.document.serialise`). Payloads are not read, except for small
ones in external data, from which sizes are computed.

The types are sent as parts (:class:`InferredPart`); the result holds what the onnx package refuses.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.core.checks.findings import ToolFinding, complaints_of
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import InputError
from dld_tui.core.events import Event, Finished, Part, Progress
from dld_tui.core.model.document.locations import Place
from dld_tui.core.model.tensors.value_types import ValueType
from dld_tui.core.params import param

if TYPE_CHECKING:
    import onnx

_PART = 1000
"""Values of one event: they are read in a millisecond."""


@dataclass(frozen=True)
class Request:
    """Which model."""

    model: Path = param(
        label="Model", help="The ONNX model, or a snapshot of one.", kind="file", positional=True
    )
    snapshot: bool = param(
        False, label="Snapshot", help="The file is a snapshot of a document without weights."
    )
    home: Path | None = param(
        None, label="Home", help="The model file whose folder holds the external data."
    )


@dataclass(frozen=True)
class InferredPart:
    """Types of values of one graph; equal types are there once."""

    place: Place
    """As in :mod:`dld_tui.core.model.document.locations`."""
    kinds: list[ValueType]
    types: dict[str, int]
    """The number of its kind, from 0, by the name of a value."""
    variant: int | None = None
    """For which calls of the function around the graph; None for all of them."""
    called: dict[str, int] = field(default_factory=dict)
    """As in :class:`~dld_tui.core.model.shapes.inference.BodyTypes`."""


@dataclass(frozen=True)
class Result:
    """What inference complains of, and which inputs of nodes do not fit each other."""

    errors: list[ToolFinding]


def run(request: Request) -> Iterator[Event]:
    """Infer and collect.

    Raises:
        InputError: The model cannot be opened.
    """
    from dld_tui.backends.onnxruntime.types import contrib_types
    from dld_tui.core.model.document.locations import bodies
    from dld_tui.core.model.shapes.inference import (
        function_types,
        in_file_order,
        infer,
        inline_small_data,
    )

    yield Progress(0, None, stage="Opening the model")
    model = _read(request)
    home = request.home or (None if request.snapshot else request.model)
    if home is not None:
        inline_small_data(model, home)
    demands = _broken_demands(model)
    yield Progress(0, None, stage="Inferring shapes")
    inference = infer(model, extra_types=contrib_types)
    inferred = inference.model
    in_file_order(inferred)
    for place, body in bodies(inferred):
        if not isinstance(body, type(inferred.graph)):
            break
        yield from _parts(place, body)
    for function_type in function_types(inferred):  # they have no types of their own
        if function_type.called:
            yield Part(
                InferredPart(
                    function_type.place, [], {}, function_type.variant, function_type.called
                )
            )
        yield from _parts(function_type.place, function_type.graph, function_type.variant)
    yield Finished(Result([*complaints_of(inference), *demands]))


def _broken_demands(model: onnx.ModelProto) -> list[ToolFinding]:
    import onnx

    from dld_tui.core.checks.demands import broken_demands
    from dld_tui.core.model.document.document import Document

    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    with contextlib.closing(Document(copy)) as document:
        return broken_demands(document)


def _read(request: Request) -> onnx.ModelProto:
    import onnx
    from google.protobuf.message import DecodeError

    if not request.snapshot:
        from dld_tui.core.llm.folder import open_document
        from dld_tui.core.model.document.serialise import skeleton_bytes

        with contextlib.closing(open_document(request.model)) as document:
            return onnx.ModelProto.FromString(skeleton_bytes(document))
    try:
        return onnx.ModelProto.FromString(request.model.read_bytes())
    except (OSError, DecodeError) as error:
        raise InputError(f"cannot be read: {error}", where=str(request.model)) from None


def _parts(place: Place, graph: onnx.GraphProto, variant: int | None = None) -> Iterator[Part]:
    from dld_tui.core.files.proto_fields import text_of
    from dld_tui.core.model.tensors.value_types import value_type_of

    types: dict[str, int] = {}
    kinds: dict[ValueType, int] = {}
    for infos in (graph.value_info, graph.output):
        for info in infos:
            kind = value_type_of(info.type)
            if kind is None:
                continue
            types[text_of(info.name)] = kinds.setdefault(kind, len(kinds))
            if len(types) == _PART:
                yield Part(InferredPart(place, [*kinds], types, variant))
                types, kinds = {}, {}
    if types:
        yield Part(InferredPart(place, [*kinds], types, variant))
