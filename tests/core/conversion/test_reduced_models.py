"""Nodes that go out of bodies and functions: what they made comes in, what they used comes out."""

from __future__ import annotations

import onnx

from dld_tui.core.conversion.reduction import extract_kept, reached
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.serialise import skeleton_bytes
from dld_tui.core.model.shapes.inference import infer_types, store_types
from tests.support.body_models import LOOP, SHAPES
from tests.support.models import parse


def without(text: str, *names: str) -> onnx.ModelProto:
    document = Document(parse(text), path=None)
    store_types(
        document, infer_types(onnx.ModelProto.FromString(skeleton_bytes(document)), None)[0]
    )
    kept = {node for node in reached(document, document.main.nodes) if node.name not in names}
    part = extract_kept(document, kept)
    assert part is not None
    model = onnx.ModelProto.FromString(skeleton_bytes(part.document))
    onnx.checker.check_model(model, full_check=True)
    return model


def names(values: object) -> list[str]:
    return [value.name for value in values]  # type: ignore[attr-defined]


def test_a_value_in_a_body_comes_from_outside_and_another_goes_there() -> None:
    model = without(LOOP, "times")
    scan = model.graph.node[2]
    assert "out_1" in names(model.graph.input)
    body = scan.attribute[1].g if scan.attribute[1].HasField("g") else scan.attribute[0].g
    assert [node.op_type for node in body.node] == ["Identity", "Add"]
    model = without(LOOP, "twice", "total")
    assert {"d", "a2_1"} < set(names(model.graph.input))


def test_calls_hand_in_what_their_function_lost_and_hand_out_what_it_left() -> None:
    model = without(SHAPES, "sub")
    (leaky,) = (function for function in model.functions if function.name == "leaky")
    assert list(leaky.input) == ["x", "y", "r_1"]
    assert list(leaky.output) == ["r", "h"]
    calls = [node for node in model.graph.node if node.op_type == "leaky"]
    assert [call.input[2] for call in calls] == ["r_1", "r_1"]
    assert all(call.output[1] in names(model.graph.output) for call in calls)
