"""Costs after an edit are those of the saved and reopened model."""

from __future__ import annotations

import random
from functools import lru_cache
from pathlib import Path
from typing import Any

import onnx
import pytest

from dld_tui.core.errors import EditError
from dld_tui.core.model.cost.nodes import ModelCosts
from dld_tui.core.model.document import DocumentChange
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.serialise import snapshot
from dld_tui.core.model.shapes.inference import infer, store_types
from dld_tui.core.model.shapes.staleness import Staleness
from tests.core.model.edits.properties import PROPERTIES, Property
from tests.support import body_models
from tests.support.models import parse
from tests.support.sessions import bytes_of

EDITS = [prop for prop in PROPERTIES if prop.edit not in ("restore", "set_external_entries")]


@lru_cache(maxsize=64)
def inferred(data: bytes) -> onnx.ModelProto:
    return infer(onnx.ModelProto.FromString(data)).model


def typed(document: Document) -> Document:
    """Return a document with the types that inference finds, as the workspace does it."""
    store_types(document, inferred(b"".join(snapshot(document))))
    return document


def watched(document: Document) -> Document:
    """Return a document whose edits mark the types that they invalidate."""
    staleness = Staleness(document)

    def mark(change: DocumentChange) -> None:
        staleness.changed(change)
        while not staleness.advance():
            pass

    document.on_change.append(mark)
    return document


def costs_of(document: Document) -> tuple[Any, ...]:
    costs = ModelCosts(document)
    nodes = sorted(
        (scope.path, node.ref, node.op_type, *map(str, costs.of(node)))
        for scope in document.scopes()
        for node in scope.nodes
    )
    return nodes, costs.total, costs.known


def is_valid(document: Document) -> bool:
    """Return whether onnx accepts the model; of others, what was known before is kept."""
    model = onnx.ModelProto.FromString(bytes_of(document))
    functions = {(function.domain, function.name) for function in model.functions}
    kinds = {(n.domain, n.op_type) for scope in document.scopes() for n in scope.nodes if n.domain}
    if kinds != functions:  # custom operators, and functions that nothing calls any more
        return False
    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
        return False
    return True


def reopened(document: Document) -> Document:
    return typed(Document(onnx.ModelProto.FromString(bytes_of(document))))


@pytest.mark.parametrize("prop", EDITS, ids=lambda prop: prop.edit)
def test_costs_after_an_edit(prop: Property, tmp_path: Path) -> None:
    for text in ("CHAIN", "PLAIN_BRANCHES", "SHAPES", "LOOP", "TRANSPOSES"):
        document = typed(watched(Document.open(body_models.write(tmp_path, text))))
        arguments = prop.draw(document, random.Random(prop.edit), 3)
        if arguments is None:
            continue
        try:
            document.apply(prop.edit, **arguments)
        except EditError:
            continue
        if is_valid(document):
            assert costs_of(typed(document)) == costs_of(reopened(document))
        document.undo()
        assert costs_of(typed(document)) == costs_of(reopened(document))
        if text == "PLAIN_BRANCHES":
            return


def test_sizes_that_the_file_declares_are_not_those_after_an_edit() -> None:
    text = """
    <ir_version: 10, opset_import: ["" : 18, "own" : 1]>
    g (float[1, 3, 16, 16] x, float[4, 3, 3, 3] w) => (float[1, 4, N, M] y, z)
    <float[1, 4, 14, 14] h>
    {
        [conv] h = Conv (x, w)  [relu] y = Relu (h)
        z = own.Magic (x)  n = Neg (z)  m = own.Magic (x)  k = Neg (m)
    }
    """
    document = typed(watched(Document(parse(text))))
    before = costs_of(document)
    document.apply(
        "set_attribute", scope=[], node="conv", attribute="strides", kind="ints", value=[2, 2]
    )
    after = costs_of(typed(document))
    assert after == costs_of(reopened(document)) != before
    made, window = 4 * 7 * 7, 3 * 3 * 3
    assert after[2].flops == 2 * made * window + made  # the convolution, and Relu
    for value, size in (("z", 5), ("m", 6)):
        document.apply("set_value_type", scope=[], value=value, dtype="float32", dims=[size])
    assert costs_of(document)[2].flops == after[2].flops + 5 + 6, "of Neg, before inference"
