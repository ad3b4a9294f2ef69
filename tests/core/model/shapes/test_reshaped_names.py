"""Dimensions that a Reshape keeps have their names behind it, held against NumPy's reshape."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

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
