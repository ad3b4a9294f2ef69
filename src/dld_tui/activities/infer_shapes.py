"""Types and shapes of all values of a model, as the onnx package infers them.

The model file may be one that the caller wrote for this: the unsaved state of a document as a view
that leaves the payloads where they are (:mod:`dld_tui.core.files.external`). Payloads are not read.

Result: ``{"scopes": {PATH: {VALUE: TYPE}}}``. PATH is ``Scope.path`` as a JSON list, TYPE is
``[dtype or null, dims or null]``, with the container (``sequence``, ``optional``, …) as a third
element where there is one.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from dld_tui.core.errors import ActivityError
from dld_tui.core.events import Event, Finished, Progress
from dld_tui.core.params import param
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    import onnx

    from dld_tui.core.document.document import Document
    from dld_tui.core.document.scope import Scope

_LONGEST_MESSAGE = 500
"""The texts of onnx may hold a whole model."""


@dataclass(frozen=True)
class Request:
    """Which model."""

    model: Path = param(
        label="Model", help="The ONNX model, or a view of it.", kind="file", positional=True
    )


def run(request: Request) -> Iterator[Event]:
    """Infer and collect.

    Raises:
        InputError: The model cannot be opened.
        ActivityError: Inference refuses the model; it says where.
    """
    from dld_tui.core.document.document import Document

    yield Progress(0, None, stage="Opening the model")
    with contextlib.closing(Document.open(request.model)) as document:
        yield Progress(0, None, stage="Inferring shapes")
        inferred = _infer(document, request.model)
        scopes: dict[str, JSON] = {}
        _collect(document.main, inferred.graph, scopes)
    yield Finished({"scopes": scopes})


def _infer(document: Document, path: Path) -> onnx.ModelProto:
    import onnx

    from dld_tui.core.document.serialise import skeleton_bytes

    model = onnx.ModelProto.FromString(skeleton_bytes(document))
    used = {node.domain for scope in document.scopes() for node in scope.nodes}
    try:
        # One node of a domain that is not imported would end it for all the others.
        for domain in sorted(used - {"", "ai.onnx"} - document.opset_imports.keys()):
            model.opset_import.add(domain=domain, version=1)
        return onnx.shape_inference.infer_shapes(
            model, check_type=False, strict_mode=False, data_prop=True
        )
    # The seam: C++ errors of several classes without a common base.
    except Exception as error:  # noqa: BLE001
        message = " ".join(str(error).split())[:_LONGEST_MESSAGE]
        raise ActivityError(f"shape inference stopped: {message}", where=str(path)) from None


def _collect(scope: Scope, graph: onnx.GraphProto, scopes: dict[str, JSON]) -> None:
    """Note the types of one graph and of its subgraphs, whose own value_info onnx fills, too."""
    from dld_tui.core.document.values import value_type_of
    from dld_tui.core.document.wiretext import text_of

    types: dict[str, JSON] = {}
    for infos in (graph.value_info, graph.output):
        for info in infos:
            kind = value_type_of(info.type)
            if kind is not None:
                dims = None if kind.dims is None else list(kind.dims)
                container = [kind.container] if kind.container else []
                types[text_of(info.name)] = cast("JSON", [kind.dtype, dims, *container])
    if types:
        scopes[json.dumps(list(scope.path))] = types
    children = scope.children()
    places = {id(node): place for place, node in enumerate(scope.nodes)} if children else {}
    for child in children:
        node = graph.node[places[id(child.owner)]]
        (attribute,) = (found for found in node.attribute if found.name == child.attribute)
        body = attribute.g if child.position is None else attribute.graphs[child.position]
        _collect(child, body, scopes)
