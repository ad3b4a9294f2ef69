"""Elements that are followed through a model are those that the definition of ONNX computes."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from dld_tui.core.model.shapes.call import Call
from dld_tui.core.model.shapes.rules import rule_of
from dld_tui.core.model.shapes.size import UNKNOWN
from dld_tui.core.model.shapes.value import Value, of_array
from tests.support.backend_cases import fits, less_known

Array: TypeAlias = "np.ndarray[Any, Any]"
_OPSET = 18
_WHOLE = [0, 1, -1, 2, 3, -4, 7, 224]
_BROKEN = [0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 6.0, 1e9]
_SHAPES = [((), ()), ((4,), ()), ((), (4,)), ((4,), (4,)), ((2, 1), (3,)), ((1,), (2, 2))]
_ANY = ("Add", "Sub", "Mul", "Div", "Max", "Min", "Pow", "Equal", "Greater", "GreaterOrEqual",
        "Less", "LessOrEqual")  # fmt: skip
_OF_ONE = ("Neg", "Abs", "Relu", "Identity")
_ROUNDING = ("Floor", "Ceil", "Round", "Sqrt")


def drawn(shape: tuple[int, ...], kind: type, dice: random.Random) -> Array:
    if kind is np.bool_:
        numbers: list[Any] = [False, True]
    else:
        numbers = _WHOLE if kind is np.int64 else _BROKEN
    count = math.prod(shape)
    return np.array([dice.choice(numbers) for _ in range(count)], kind).reshape(shape)


def computed(node: onnx.NodeProto, feeds: Sequence[Array]) -> Array:
    with np.errstate(all="ignore"):
        graph = helper.make_graph(
            [node], "g",
            [helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(one.dtype), one.shape)
             for name, one in zip(node.input, feeds, strict=True)],
            [onnx.ValueInfoProto(name="y")],
        )  # fmt: skip
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)])
        (made,) = ReferenceEvaluator(model).run(None, dict(zip(node.input, feeds, strict=True)))
    return np.asarray(made)


def holds(claim: Value, wanted: Array) -> int:
    """Require that what is known of a result is so; return how many elements are known."""
    assert fits(claim.dims, wanted.shape)
    told = claim.values()
    if told is None:
        return 0
    for one, number in zip(told, wanted.reshape(-1).tolist(), strict=True):
        assert one is UNKNOWN or np.isclose(one, number, rtol=1e-12, equal_nan=True)
    return sum(one is not UNKNOWN for one in told)


def agree(node: onnx.NodeProto, feeds: Sequence[Array]) -> int:
    """Hold what a rule claims against the definition, also where it knows less of one operand.

    Returns:
        How many elements it claims where it knows all.
    """
    rule = rule_of("", node.op_type)
    assert rule is not None
    given = [of_array(one) for one in feeds]
    wanted = computed(node, feeds)
    with np.errstate(all="ignore"):
        (claimed,) = rule(Call(node, given, None, _OPSET))
        assert claimed.dims == wanted.shape
        for place, value in enumerate(given):
            for less in less_known(value):
                known = [*given[:place], less, *given[place + 1 :]]
                (claim,) = rule(Call(node, known, None, _OPSET))
                holds(claim, wanted)
        return holds(claimed, wanted)


def _is_defined(operator: str, kind: type, second: Array) -> bool:
    """Return whether ONNX says what comes out: not of whole numbers divided by zero."""
    return kind is not np.int64 or not (
        (operator == "Pow" and (second < 0).any())
        or (operator in ("Div", "Mod") and (second == 0).any())
    )


@pytest.mark.parametrize(
    ("operator", "kind"),
    [*((name, kind) for name in _ANY for kind in (np.int64, np.float64)), ("Mod", np.int64),
     ("And", np.bool_), ("Or", np.bool_)],
)  # fmt: skip
def test_two_operands(operator: str, kind: type) -> None:
    dice = random.Random(operator)
    node = helper.make_node(operator, ["a", "b"], ["y"])
    known = 0
    for first, second in _SHAPES * 6:
        feeds = [drawn(first, kind, dice), drawn(second, kind, dice)]
        if _is_defined(operator, kind, feeds[1]):
            known += agree(node, feeds)
    assert known > 20


@pytest.mark.parametrize(
    ("operator", "kind"),
    [*((name, kind) for name in _OF_ONE for kind in (np.int64, np.float64)),
     *((name, np.float64) for name in _ROUNDING), ("Not", np.bool_)],
)  # fmt: skip
def test_one_operand(operator: str, kind: type) -> None:
    dice = random.Random(operator)
    node = helper.make_node(operator, ["a"], ["y"])
    assert sum(agree(node, [drawn(shape, kind, dice)]) for shape in ((), (4,), (2, 3))) > 5


@pytest.mark.parametrize("kind", [np.int64, np.float64])
def test_a_choice_of_two(kind: type) -> None:
    dice = random.Random("Where")
    node = helper.make_node("Where", ["c", "a", "b"], ["y"])
    for first, second in _SHAPES * 3:
        feeds = [drawn(first, kind, dice), drawn(second, kind, dice)]
        assert agree(node, [drawn(second, np.bool_, dice), *feeds])


def whole(*numbers: int) -> Array:
    return np.array(numbers, np.int64)


def at(number: int) -> Array:
    return np.array(number, np.int64)


SHAPE = whole(2, 3, 16, 224)
"""What Shape makes, and exporters compute with."""
STEPS: dict[str, tuple[list[Array], dict[str, Any]]] = {
    "ReduceProd": ([SHAPE], {}),
    "ReduceProd, a scalar": ([SHAPE], {"keepdims": 0}),
    "ReduceSum": ([SHAPE, whole(0)], {}),
    "ReduceSum, a scalar": ([SHAPE], {"keepdims": 0}),
    "ReduceMax": ([SHAPE], {"keepdims": 0}),
    "ReduceMin": ([SHAPE], {"axes": [0]}),
    "Gather": ([SHAPE, at(-1)], {}),
    "Gather, some": ([SHAPE, whole(0, 2)], {}),
    "Slice": ([SHAPE, whole(1), whole(-1)], {}),
    "Slice, back": ([SHAPE, whole(-1), whole(-9), whole(0), whole(-2)], {}),
    "Concat": ([SHAPE, whole(7), whole(0, 1)], {"axis": 0}),
    "Squeeze": ([whole(5)], {}),
    "Unsqueeze": ([at(5), whole(0)], {}),
    "Reshape": ([SHAPE, whole(2, 2)], {}),
    "Transpose": ([SHAPE.reshape(2, 2)], {}),
    "Flatten": ([SHAPE], {"axis": 0}),
    "Expand": ([at(3), whole(4)], {}),
    "Tile": ([whole(3, 4), whole(2)], {}),
    "Shape": ([np.zeros((2, 5, 7))], {}),
    "Shape, a part": ([np.zeros((2, 5, 7))], {"start": 1, "end": -1}),
    "Size": ([np.zeros((2, 5, 7))], {}),
    "ConstantOfShape": ([whole(2, 3)], {}),
    "Range": ([at(1), at(9), at(3)], {}),
    "Range, down": ([at(9), at(-2), at(-4)], {}),
    "Range, nothing": ([at(4), at(1), at(2)], {}),
    "CumSum": ([SHAPE, at(0)], {}),
    "Clip": ([SHAPE, at(3), at(100)], {}),
    "Cast": ([np.array([2.7, -2.7, 16.0])], {"to": onnx.TensorProto.INT64}),
    "Cast, to a truth": ([np.array([2.7, 0.0, -1.0])], {"to": onnx.TensorProto.BOOL}),
    "Cast, to a float": ([SHAPE], {"to": onnx.TensorProto.FLOAT}),
}


@pytest.mark.parametrize("name", STEPS)
def test_steps_of_a_computed_shape(name: str) -> None:
    feeds, attributes = STEPS[name]
    operator = name.partition(",")[0]
    names = [f"x{place}" for place in range(len(feeds))]
    node = helper.make_node(operator, names, ["y"], **attributes)
    assert agree(node, feeds) == computed(node, feeds).size


@pytest.mark.parametrize("operator", ["Div", "Mod", "Pow"])
def test_what_is_not_defined_is_not_known(operator: str) -> None:
    rule = rule_of("", operator)
    assert rule is not None
    given = [of_array(np.array([6, 5])), of_array(np.array([-1 if operator == "Pow" else 0, 2]))]
    (claimed,) = rule(Call(helper.make_node(operator, ["a", "b"], ["y"]), given, None, _OPSET))
    assert claimed.dims == (2,)
    told = claimed.values()
    assert told is not None
    assert (told[0] is UNKNOWN, told[1] is UNKNOWN) == (True, False)
