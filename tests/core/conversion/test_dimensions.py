"""Dimensions made dynamic: the result computes for each item what it is alone.

What is changed, named and refused is in ``tests/core/model/transcripts/dimensions.txt``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from dld_tui.core.conversion.freed_dimensions import free_dimensions
from dld_tui.core.conversion.regrouping import Factor, regrouped
from dld_tui.core.model.shapes.size import Size, product, symbol
from tests.support import models
from tests.support.runtime import session_of

N, T = symbol("N"), symbol("T")

HEAD = '<ir_version: 10, opset_import: ["" : 18]>'
FIXED = {
    "Reshape": ("[B, 2, 3] x", "[B, 6] y", "s = Ints [B, 6] y = Reshape (x, s)"),
    "Reshape with -1": ("[B, 2, 3] x", "[B, 6] y", "s = Ints [B, -1] y = Reshape (x, s)"),
    "Reshape with -1 elsewhere": (
        "[B, 4, 6] x", "[4, B, 6] y",
        "t = Transpose <perm = [1, 0, 2]> (x) s = Ints [-1, B, 6] y = Reshape (t, s)",
    ),
    "Reshape that merges and splits": (
        "[B, 4, 6] x", "[B, 4, 6] y",
        "s = Ints [M, 6] a = Reshape (x, s) r = Relu (a) q = Ints [B, 4, -1] y = Reshape (r, q)",
    ),
    "Reshape of a computed shape": (
        "[B, 4, 6] x", "[B, 24] y",
        "h = Shape (x) i = Ints [1] j = Ints [2] b = Gather (h, i) c = Gather (h, j)"
        " m = Mul (b, c) n = Ints [B] s = Concat <axis = 0> (n, m) y = Reshape (x, s)",
    ),
    "Expand": ("[B, 1, 3] x", "[B, 4, 3] y", "s = Ints [B, 4, 3] y = Expand (x, s)"),
    "Slice": ("[B, 5] x", "[B, 3] y", "a = Ints [0, 1] e = Ints [B, 4] y = Slice (x, a, e)"),
    "Concat": (
        "[B, 2, 3] x", "[B, 3, 3] y",
        "s = Ints [B, 1, 3] c = ConstantOfShape <value = float[1] {2}> (s)"
        " y = Concat <axis = 1> (c, x)",
    ),
    **{
        f"Concat with {operator}": (
            "[B, 2, 3] x", "[B, 3, 3] y",
            "o = Constant <value = float[1, 1, 3] {1, 2, 3}> ()"
            f" s = Ints {shape} c = {operator} (o, s) y = Concat <axis = 1> (c, x)",
        )
        for operator, shape in (("Tile", "[B, 1, 1]"), ("Expand", "[B, 1, 3]"))
    },
    "ConstantOfShape": (
        "[B, 3] x", "[B, 3] y",
        "s = Ints [B, 3] c = ConstantOfShape <value = float[1] {2}> (s) y = Add (c, x)",
    ),
    "Resize": (
        "[B, 1, 2, 2] x", "[B, 1, 4, 4] y",
        "s = Ints [B, 1, 4, 4] y = Resize <mode = \"nearest\"> (x, , , s)",
    ),
    "MatMul": (
        "[B, 2, 3] x", "[B, 2, 2] y", "t = Transpose <perm = [0, 2, 1]> (x) y = MatMul (x, t)",
    ),
}  # fmt: skip
"""B is the batch, M is four of it, and Ints a constant."""


def model_of(given: str, made: str, nodes: str) -> onnx.ModelProto:
    nodes = re.sub(r"Ints (\[[^]]*\])", r"Constant <value_ints = \1> ()", nodes)
    return models.parse(f"{HEAD} g (float{given}) => (float{made}) {{{nodes}}}")


def copied(model: onnx.ModelProto) -> onnx.ModelProto:
    return onnx.ModelProto.FromString(model.SerializeToString())


def freed(
    model: onnx.ModelProto, axes: dict[tuple[str, int], str], batches: str = "N"
) -> list[str]:
    """Free dimensions of the inputs in place; ``batches`` are the names of those of a batch."""
    sizes = {
        info.name: tuple(dim.dim_value for dim in info.type.tensor_type.shape.dim)
        for info in model.graph.input
    }
    weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    return free_dimensions(
        model, axes, sizes, batches=list(batches), read=weights.get, small=copied(model)
    )


def run(model: onnx.ModelProto, **feeds: Any) -> Any:
    return session_of(model).run(None, feeds)[0]


def sizes_of(info: onnx.ValueInfoProto) -> list[Any]:
    return [dim.dim_param or dim.dim_value for dim in info.type.tensor_type.shape.dim]


@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize("name", FIXED)
def test_items_of_any_batch_are_what_they_are_alone(name: str, size: int) -> None:
    given, made, nodes = (
        re.sub(r"\bM\b", str(4 * size), re.sub(r"\bB\b", str(size), part)) for part in FIXED[name]
    )
    model = model_of(given, made, nodes)
    original = copied(model)
    freed(model, {("x", 0): "N"})
    onnx.checker.check_model(model, full_check=True)
    (info,) = original.graph.input
    x = np.random.default_rng(0).standard_normal([3 * size, *sizes_of(info)[1:]]).astype(np.float32)
    axis = 1 if name == "Reshape with -1 elsewhere" else 0

    alone = [run(original, x=part) for part in np.split(x, 3)]
    assert (run(model, x=x[:size]) == alone[0]).all()
    assert (run(model, x=x) == np.concatenate(alone, axis)).all()
    assert sizes_of(model.graph.output[0])[axis] == "N"


COMPUTED: dict[str, tuple[tuple[int, ...], Callable[..., list[list[int]]]]] = {
    "sizes of the data": ((3, 0, 1, 2), lambda m, n, t: [[2, 4, m, n, t]]),
    "in another order": ((3, 2, 1, 0), lambda m, n, t: [[4, 2, t, n, m]]),
    "a product of sizes": ((3, 0, 1, 2), lambda m, n, t: [[2, 4, m, n * t]]),
    "multiples": ((0, 1, 2, 3), lambda m, n, t: [[m, n, t, 2, 4], [m, n, 2 * t, 4]]),
    "multiples and products": (
        (0, 1, 3, 2), lambda m, n, t: [[m, 2 * n, 4, t], [m, n, 8, t], [m * n, 2, 4 * t]]
    ),
    "parts of multiples": (
        (3, 0, 1, 2), lambda m, n, t: [[2, 4 * m, n, t], [2, 2, 2, m, n, t], [4, 2 * m, n * t]]
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "target", "expected"),
    [
        ((1, 64, 7, 7), (N, 64, 7, 7), (1, 3136), (N, 3136)),
        ((4, 49, 64), (N, 49, 64), (196, 64), (49 * N, 64)),
        ((196, 64), (49 * N, 64), (4, 49, 64), (N, 49, 64)),
        ((196, 64), (49 * N, 64), (28, 7, 64), (7 * N, 7, 64)),
        ((6, 1, 1, 8), (6, 1, N, 8), (6, 1, 8), (6, N, 8)),
        ((1, 2, 8, 8), (1, 2, N, T), (2, 8, 8), (2, N, T)),
        ((4, 6, 8), (N, T, 8), (24, 8), (N * T, 8)),
        ((4, 6, 8), (N, 6, T), (4, 2, 3, 8), (N, 2, 3, T)),
        ((1, 1, 8), (N, T, 8), (1, 1, 2, 4), (N, T, 2, 4)),
    ],
)
def test_where_a_reshape_puts_the_dimensions(
    old: tuple[int, ...], new: tuple[Size, ...], target: tuple[int, ...], expected: tuple[Size, ...]
) -> None:
    made = regrouped([[Factor(*pair)] for pair in zip(old, new, strict=True)], target)
    assert made is not None
    assert tuple(product(part.size for part in group) for group in made) == expected


def test_dimensions_that_were_merged_come_apart_as_they_went_in() -> None:
    merged = [[Factor(4, N), Factor(6, T)], [Factor(8, 8)]]
    assert regrouped(merged, (4, 6, 8)) == [[Factor(4, N)], [Factor(6, T)], [Factor(8, 8)]]
    assert regrouped(merged, (6, 4, 8)) is None
    assert regrouped([[Factor(4, N)], [Factor(6, 6)]], (3, 8)) is None, "N is mixed into both"
