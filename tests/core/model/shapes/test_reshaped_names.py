"""Dimensions that a Reshape keeps have their names behind it, held against NumPy's reshape."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from dld_tui.core.model.shapes.inference import infer

SIZES = {"batch": 3, "seq": 5, "past": 7}


def dims_behind(source: list[str | int], *targets: list[int]) -> list[str | int]:
    """Return the dimensions behind Reshapes that follow one another."""
    nodes, weights, name = [], [], "x"
    for at, target in enumerate(targets):
        weights.append(helper.make_tensor(f"s{at}", TensorProto.INT64, [len(target)], target))
        nodes.append(helper.make_node("Reshape", [name, f"s{at}"], [f"y{at}"]))
        name = f"y{at}"
    graph = helper.make_graph(
        [*nodes, helper.make_node("Relu", [name], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, source)],
        [helper.make_empty_tensor_value_info("y")], weights,
    )  # fmt: skip
    found = infer(helper.make_model(graph)).model
    dims = found.graph.output[0].type.tensor_type.shape.dim
    return [dim.dim_param or dim.dim_value for dim in dims]


DIMS = st.lists(st.sampled_from([*SIZES, 1, 2, 4, 6]), min_size=1, max_size=4)


@given(DIMS, st.data())
@settings(deadline=None)
def test_a_name_stands_for_the_size_that_numpy_finds(
    source: list[str | int], data: st.DataObject
) -> None:
    sizes = [dim if isinstance(dim, int) else SIZES[dim] for dim in source]
    numbers = st.sampled_from([0, 0, 1, 2, 4, 6, -1])
    target = data.draw(st.lists(numbers, min_size=1, max_size=4))
    wanted = [
        sizes[at] if size == 0 and at < len(sizes) else size for at, size in enumerate(target)
    ]
    try:
        shape: tuple[int, ...] = np.zeros(np.array(sizes, int)).reshape(wanted).shape
    except ValueError:
        return
    if 0 in target[len(sizes) :]:
        return
    for dim, real in zip(dims_behind(source, target), shape, strict=True):
        if isinstance(dim, int) or not dim.startswith("unk__"):
            assert (dim if isinstance(dim, int) else SIZES[dim]) == real


@pytest.mark.parametrize("version", [10, 11, 13])
@pytest.mark.parametrize(
    ("axis", "begin", "end"), [(0, 0, 1), (0, 0, 2**62), (1, 1, 3), (1, 0, 2**62), (0, -2, -1)]
)
def test_what_is_cut_loses_its_name(version: int, axis: int, begin: int, end: int) -> None:
    numbers = {"s": [begin], "e": [end], "a": [axis]}
    graph = helper.make_graph(
        [helper.make_node("Slice", ["x", "s", "e", "a"], ["c"]),
         helper.make_node("Neg", ["c"], ["n"]), helper.make_node("Relu", ["n"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", "seq"])],
        [helper.make_empty_tensor_value_info("y")],
        [helper.make_tensor(key, TensorProto.INT64, [1], value) for key, value in numbers.items()],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)])
    x = np.zeros((SIZES["batch"], SIZES["seq"]), np.float32)
    (result,) = ReferenceEvaluator(model).run(None, {"x": x})
    found = np.asarray(result)
    types = {info.name: info.type.tensor_type.shape for info in infer(model).model.graph.value_info}
    for name in ("c", "n"):
        for dim, size in zip(types[name].dim, found.shape, strict=True):
            assert SIZES.get(dim.dim_param, size) == size
            assert not dim.dim_value or dim.dim_value == size
        assert types[name].dim[1 - axis].dim_param == ("seq", "batch")[axis]
