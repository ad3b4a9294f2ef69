"""Types and shapes of all values of a model, as the onnx package infers them, and what is wrong.

The model file may be one that the caller wrote for this: the unsaved state of a document without
its payloads (:mod:`dld_tui.core.document.serialise`). Payloads are not read, but for small ones in
files of external data: sizes are computed from them.

The types come as parts, ``{"place": PLACE, "kinds": [TYPE, …], "types": {VALUE: NUMBER}}``, where
NUMBER is that of a kind. PLACE is as in :mod:`dld_tui.core.document.locations`, TYPE is ``[dtype or
null, dims or null]`` with the container (``sequence``, ``optional``, …) as a third element where
there is one. Result: ``{"errors": [{"rule", "message", "place", "index"}]}``, what no runtime will
take (:mod:`dld_tui.core.checks.prediction`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from dld_tui.core.errors import InputError
from dld_tui.core.events import Event, Finished, Part, Progress
from dld_tui.core.params import param
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    import onnx

    from dld_tui.core.document.locations import Place
    from dld_tui.core.document.value_types import ValueType

_PART = 1000
"""Values of one event: they are read in a millisecond."""


@dataclass(frozen=True)
class Request:
    """Which model."""

    model: Path = param(
        label="Model", help="The ONNX model, or a snapshot of one.", kind="file", positional=True
    )
    snapshot: bool = param(
        False, label="Snapshot", help="The file is a snapshot of a document, without payloads."
    )
    home: Path | None = param(
        None, label="Home", help="The model file whose folder holds the external data."
    )


def run(request: Request) -> Iterator[Event]:
    """Infer and collect.

    Raises:
        InputError: The model cannot be opened.
    """
    from dld_tui.core.checks.prediction import predict
    from dld_tui.core.document.locations import bodies
    from dld_tui.core.document.type_inference import function_types, take_in_small_data

    yield Progress(0, None, stage="Opening the model")
    model = _read(request)
    home = request.home or (None if request.snapshot else request.model)
    if home is not None:
        take_in_small_data(model, home)
    yield Progress(0, None, stage="Inferring shapes")
    inferred, predictions = predict(model)
    for place, body in bodies(inferred):
        if not isinstance(body, type(inferred.graph)):
            break
        yield from _parts(place, body)
    for place, graph in function_types(inferred):  # they have no types of their own
        yield from _parts(place, graph)
    yield Finished({"errors": [entry.to_json() for entry in predictions]})


def _read(request: Request) -> onnx.ModelProto:
    import onnx
    from google.protobuf.message import DecodeError

    if not request.snapshot:
        from dld_tui.core.document.document import Document
        from dld_tui.core.document.serialise import skeleton_bytes

        with contextlib.closing(Document.open(request.model)) as document:
            return onnx.ModelProto.FromString(skeleton_bytes(document))
    try:
        return onnx.ModelProto.FromString(request.model.read_bytes())
    except (OSError, DecodeError) as error:
        raise InputError(f"cannot be read: {error}", where=str(request.model)) from None


def _parts(place: Place, graph: onnx.GraphProto) -> Iterator[Part]:
    from dld_tui.core.document.proto_text import text_of
    from dld_tui.core.document.value_types import value_type_of

    types: dict[str, JSON] = {}
    kinds: dict[ValueType, int] = {}
    for infos in (graph.value_info, graph.output):
        for info in infos:
            kind = value_type_of(info.type)
            if kind is None:
                continue
            types[text_of(info.name)] = kinds.setdefault(kind, len(kinds))
            if len(types) == _PART:
                yield _part(place, kinds, types)
                types, kinds = {}, {}
    if types:
        yield _part(place, kinds, types)


def _part(place: Place, kinds: dict[ValueType, int], types: dict[str, JSON]) -> Part:
    """Return a part; equal types are told once: whoever reads it makes few objects."""
    told: list[JSON] = []
    for kind in kinds:
        dims = None if kind.dims is None else list(kind.dims)
        container = [kind.container] if kind.container else []
        told.append(cast("JSON", [kind.dtype, dims, *container]))
    return Part({"place": place, "kinds": told, "types": types})
