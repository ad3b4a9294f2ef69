"""Which tensors are quantized for a choice of nodes, by the rules of a quantizer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest

from dld_tui.core.conversion.quantization_plan import (
    QdqInsertion,
    QuantizationPlan,
    Scale,
    point_lines,
    quantized_nodes,
)
from dld_tui.core.conversion.quantization_switches import quantization_switches
from dld_tui.core.model.document import Document
from tests.support import models
from tests.support.sessions import run

Values: TypeAlias = "np.ndarray[Any, np.dtype[np.float32]]"


def scale(value: float, axis: int | None = None) -> dict[str, object]:
    count = 1 if axis is None else 2
    return {"scale": [value] * count, "zero_point": [0] * count, "dtype": "int8", "axis": axis}


PLAN = QuantizationPlan.from_json({
    "rules": [
        {"node": "conv", "needs": [], "when_quantized": [],
         "otherwise": [["activation", "x"], ["activation", "a"], ["weight", "w"],
                       ["bias", "c", "x", "w"]]},
        {"node": "relu", "needs": ["a"], "when_quantized": [["activation", "a"],
         ["activation", "b"]], "otherwise": []},
        {"node": "rows", "needs": ["b"], "when_quantized": [["same", "y", "b"]], "otherwise": []},
    ],
    "scales": {"range:x": scale(0.5), "range:a": scale(1.0), "range:b": scale(0.25),
               "weight:w": scale(0.125, 0), "weight:whole": scale(0.5), "range:y": scale(2.0)},
    "narrowed": [["a", "relu", "range:b"]],
})  # fmt: skip


def test_the_scale_depends_on_the_nodes_around() -> None:
    all_of_it = {"x": "range:x", "a": "range:b", "w": "weight:w", "c": "range:x*weight:w",
                 "b": "range:b", "y": "range:b"}  # fmt: skip
    assert PLAN.scale_keys() == all_of_it
    without_relu = PLAN.scale_keys({"relu"})
    assert without_relu["a"] == "range:a", "its negative numbers count then"
    assert PLAN.scale_keys({"rows"}) == {name: all_of_it[name] for name in "xawcb"}
    assert PLAN.scale("range:x*weight:w") == Scale((0.0625, 0.0625), (0,), "int32", 0)
    assert PLAN.scale("range:x*weight:whole") == Scale((0.25,), (0,), "int32", None)
    assert PLAN.scale("range:x*weight:unknown") is None
    assert PLAN.possible_scale_keys()["a"] == ["range:a", "range:b"]
    assert PLAN.possible_scale_keys()["y"] == ["range:y", "range:b"]


NET = """
<ir_version: 8, opset_import: ["" : 17]>
net (float[1, 1, 2, 2] x) => (float[1, 8] y)
<float[2, 1, 1, 1] w = {0.3, -0.7}, float[2] c = {0.03, -0.2}, int64[2] flat = {1, 8}>
{
    [conv] a = Conv(x, w, c)
    [relu] b = Relu(a)
    [rows] y = Reshape(b, flat)
}
"""


def test_nodes_around_which_tensors_are_quantized(tmp_path: Path) -> None:
    main = Document.open(models.write(tmp_path, NET)).main
    would = quantized_nodes(main, PLAN.points())
    assert {node.name: count for node, count in would.items()} == {
        "conv": 4.0, "relu": 2.0, "rows": 1.0
    }  # fmt: skip
    assert quantized_nodes(main) == {}
    assert point_lines(PLAN.points())[0] == (
        "6 tensors quantized for 3 nodes: 4 activations, 1 weights, 1 biases"
    )


QUANTIZED = """
<ir_version: 8, opset_import: ["" : 17]>
net (float[2] x) => (float[2] y) <float s = {0.5}, uint8 z = {3}>
{
    [first] a = Relu(x)
    [q] b = QuantizeLinear(a, s, z)
    [dq] c = DequantizeLinear(b, s, z)
    [second] d = Add(c, c)
    [third] e = Mul(c, d)
    [qq] f = QuantizeLinear(e, s, z)
    [of_input] g = QuantizeLinear(x, s, z)
    [dqq] y = DequantizeLinear(f, s, z)
}
"""


def test_nodes_around_which_tensors_are_quantized_already(tmp_path: Path) -> None:
    main = Document.open(models.write(tmp_path, QUANTIZED)).main
    found = {node.name: count for node, count in quantized_nodes(main).items()}
    assert found == {"first": 1.0, "second": 2.0, "third": 2.0}


def test_a_long_name_of_a_node_is_cut_in_the_middle() -> None:
    points = [QdqInsertion("t", "activation", ("a" * 20 + "b" * 20, "c" * 20 + "." + "d" * 20))]
    assert point_lines(points) == [
        "1 tensor quantized for 2 nodes: 1 activations",
        f"  activation t  for {'a' * 20}{'b' * 20}, {'c' * 20}…{'d' * 19}",
    ]


@pytest.mark.parametrize("kept", [[], ["rows"], ["relu"], ["conv"], ["conv", "relu", "rows"]])
def test_switches_give_what_the_arithmetic_of_the_plan_gives(
    tmp_path: Path, kept: list[str]
) -> None:
    pytest.importorskip("onnxruntime")
    document = Document.open(models.write(tmp_path, NET))
    switched = quantization_switches(document, PLAN)
    assert [node.name for node in switched.nodes] == ["conv", "relu", "rows"]
    x = np.array([0.2, -0.9, 1.3, 70.0], np.float32).reshape(1, 1, 2, 2)
    on = switched.on([node for node in switched.nodes if node.name in kept])
    (made,) = run(switched.document, x=x, **{one: np.array(one in on) for one in switched.names})

    chosen = PLAN.scale_keys(kept)

    def fake(tensor: str, value: Values) -> Values:
        found = PLAN.scale(chosen[tensor]) if tensor in chosen else None
        if found is None:
            return value
        step, wide = np.float32(found.scale[0]), found.dtype == "int32"
        whole = np.rint(value / step)
        result: Values = (whole if wide else np.clip(whole, -128, 127)) * step
        return result

    w, c = np.array([0.3, -0.7], np.float32), np.array([0.03, -0.2], np.float32)
    a = fake("x", x) * fake("w", w).reshape(1, 2, 1, 1) + fake("c", c).reshape(1, 2, 1, 1)
    b = fake("b", np.maximum(fake("a", a), 0))
    np.testing.assert_allclose(made, fake("y", b.reshape(1, 8)), rtol=0, atol=1e-6)


def test_the_scale_of_a_bias_is_the_product_of_two() -> None:
    assert PLAN.scale("range:x") == Scale((0.5,), (0,), "int8", None)
    assert PLAN.scale("range:x*weight:w") == Scale((0.0625, 0.0625), (0,), "int32", 0)
    assert PLAN.scale("range:x*weight:whole") == Scale((0.25,), (0,), "int32", None)
    for unknown in ("range:none", "range:none*weight:w", "range:x*weight:none"):
        assert PLAN.scale(unknown) is None
    calibrated = Scale((3.0,), (0,), "int32", None)
    own = replace(PLAN, scales={**PLAN.scales, "range:x*weight:w": calibrated})
    assert own.scale("range:x*weight:w") == calibrated
