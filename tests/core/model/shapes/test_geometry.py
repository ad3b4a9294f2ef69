"""Windows, paddings, slices and resizes in one, two and three dimensions, against ONNX Runtime."""

from __future__ import annotations

import itertools
from typing import Any, TypeAlias

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from dld_tui.core.model.shapes.call import Call, Demands
from dld_tui.core.model.shapes.rules import rule_of
from dld_tui.core.model.shapes.size import symbol, value_at
from dld_tui.core.model.shapes.value import NOTHING, Dims, Value
from tests.support.backend_cases import known, less_known

ort = pytest.importorskip("onnxruntime")

Array: TypeAlias = "np.ndarray[Any, Any]"
_OPSET = 18


def floats(*dims: int) -> Array:
    return np.full(dims, 0.5, np.float32)


def ran(node: onnx.NodeProto, feeds: dict[str, Array], opset: int = _OPSET) -> list[Array] | None:
    """Return the results of ONNX Runtime; None where it refuses the node."""
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(one.dtype), one.shape)
        for name, one in feeds.items()
        if one.dtype == np.float32
    ]
    constants = [
        numpy_helper.from_array(one, name) for name, one in feeds.items() if one.dtype != np.float32
    ]
    results = [onnx.ValueInfoProto(name=name) for name in node.output]
    graph = helper.make_graph([node], "g", infos, results, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    options = ort.SessionOptions()
    options.log_severity_level = 4
    try:
        session = ort.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        fed = {name: one for name, one in feeds.items() if one.dtype == np.float32}
        made: list[Array] = session.run(None, fed)
    except Exception:  # noqa: BLE001 - it has classes of its own
        return None
    return made


def made(
    node: onnx.NodeProto, given: list[Value], opset: int = _OPSET
) -> tuple[list[Value], Demands]:
    """Return what a rule says, and what it demands."""
    rule = rule_of("", node.op_type)
    assert rule is not None
    demands = Demands()
    return list(rule(Call(node, given, demands, opset))), demands


def agree(
    node: onnx.NodeProto, feeds: dict[str, Array], opset: int = _OPSET, *, is_vague: bool = False
) -> bool:
    """Hold a rule against a run, with numbers and with names; return whether there was a run.

    Args:
        node: One node.
        feeds: Its inputs.
        opset: Of the operators.
        is_vague: Whether the rule may also say that it does not know.
    """
    actual = ran(node, feeds, opset)
    given = [known(feeds[name]) if name else NOTHING for name in node.input]
    claimed, demands = made(node, given, opset)
    if actual is None:
        return False
    assert not demands.failed, (node, demands.failed[0].text)
    shapes = [one.shape for one in actual]
    for value, shape in zip(claimed, shapes, strict=False):
        assert value.dims == shape or (is_vague and not value.is_known), (node, shape, value.dims)
    data = given[0].dims or ()
    names: Dims = tuple(symbol(f"d{axis}") for axis in range(len(data)))
    named, _ = made(node, [Value(names), *given[1:]], opset)
    for value, shape in zip(named, shapes, strict=False):
        assert value.dims is not None
        sizes = {f"d{axis}": size for axis, size in enumerate(data)}
        read = tuple(value_at(size, sizes.__getitem__) for size in value.dims)
        assert all(not isinstance(a, int) or a == b for a, b in zip(read, shape, strict=True)), node
    for less in less_known(given[0]):
        made(node, [less, *given[1:]], opset)
    return True


_SIZES = {1: (11,), 2: (11, 8), 3: (7, 8, 6)}
_PADS = {1: (1, 0), 2: (1, 0, 2, 1), 3: (1, 0, 1, 0, 1, 1)}


def _varied(rank: int, **of_axes: tuple[int, ...]) -> dict[str, list[int]]:
    return {name: list((values * 3)[:rank]) for name, values in of_axes.items()}


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("operator", ["Conv", "ConvTranspose", "MaxPool", "AveragePool", "LpPool"])
def test_windows(operator: str, rank: int) -> None:
    compared = 0
    for stride, dilation, how, ceil in itertools.product(
        ((1,), (2, 3, 1)), ((1,), (2, 1)), ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"), (0, 1)
    ):
        about: dict[str, Any] = _varied(rank, strides=stride, kernel_shape=(3, 2, 2))
        about["auto_pad"] = how
        if how == "NOTSET":
            about["pads"] = list(_PADS[rank])
        if operator not in ("LpPool", "AveragePool") or dilation == (1,):
            about |= _varied(rank, dilations=dilation)
        is_conv = operator.startswith("Conv")
        if ceil and is_conv:
            continue
        if not is_conv:
            about["ceil_mode"] = ceil
        feeds = {"x": floats(2, 4, *_SIZES[rank])}
        if is_conv:
            about["group"] = 2
            feeds["w"] = floats(4, 2, *about["kernel_shape"])
        node = helper.make_node(operator, list(feeds), ["y"], **about)
        is_vague = not is_conv and how.startswith("SAME") and dilation != (1,)
        compared += agree(node, feeds, is_vague=is_vague)
    assert compared >= (8 if operator.startswith("Conv") else 12)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_a_transposed_window_with_all_its_attributes(rank: int) -> None:
    compared = 0
    for output_padding, fixed in itertools.product((0, 1), (False, True)):
        about: dict[str, Any] = _varied(rank, strides=(2, 3, 2), kernel_shape=(3,))
        if output_padding:
            about["output_padding"] = [1] * rank
        if fixed:
            about["output_shape"] = [2 * size + 1 for size in _SIZES[rank]]
        else:
            about["pads"] = list(_PADS[rank])
        feeds = {"x": floats(1, 4, *_SIZES[rank]), "w": floats(4, 3, *about["kernel_shape"])}
        compared += agree(helper.make_node("ConvTranspose", list(feeds), ["y"], **about), feeds)
    assert compared >= 2


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_paddings_of_all_axes_and_of_some(rank: int) -> None:
    data = {"x": floats(2, *_SIZES[rank])}
    pads = np.array([0, *_PADS[rank][:rank], 1, *_PADS[rank][rank:]], np.int64)
    some = np.array([2, -1], np.int64)
    for mode in ("constant", "edge", "reflect"):
        node = helper.make_node("Pad", ["x", "p"], ["y"], mode=mode)
        assert agree(node, data | {"p": pads})
        node = helper.make_node("Pad", ["x", "p", "", "a"], ["y"], mode=mode)
        assert agree(node, data | {"p": some, "a": np.array([-1], np.int64)})


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("opset", [10, 13, 18])
def test_resizes_by_scales_and_by_sizes(rank: int, opset: int) -> None:
    compared = 0
    data = {"x": floats(1, 2, *_SIZES[rank])}
    for scale in (0.5, 0.6, 1.0, 1.5, 2.0, 2.3):
        scales = np.array([1, 1, *(scale + at / 8 for at in range(rank))], np.float32)
        names = ["x", "s"] if opset == 10 else ["x", "", "s"]
        node = helper.make_node("Resize", names, ["y"], mode="nearest")
        feeds = data | {"s": scales.astype(np.float64)}
        wanted = ran(node, feeds | {"s": scales}, opset)
        claimed, _ = made(node, [known(feeds[n]) if n else NOTHING for n in names], opset)
        # Scales are of 32 bits, and fed as an input here.
        if wanted is not None:
            assert claimed[0].dims == wanted[0].shape
            compared += 1
    if opset > 10:
        sizes = np.array([1, 2, *(size + 3 for size in _SIZES[rank])], np.int64)
        node = helper.make_node("Resize", ["x", "", "", "n"], ["y"], mode="nearest")
        compared += agree(node, data | {"n": sizes}, opset)
    if opset >= 18:
        for policy in ("stretch", "not_larger", "not_smaller"):
            sizes = np.array([20 - at for at in range(rank)], np.int64)
            node = helper.make_node(
                "Resize", ["x", "", "", "n"], ["y"], mode="nearest", axes=list(range(2, 2 + rank)),
                keep_aspect_ratio_policy=policy,
            )  # fmt: skip
            compared += agree(node, data | {"n": sizes}, opset)
    assert compared >= 6


def test_slices_of_any_kind() -> None:
    ends = 2**63 - 1
    for begin, end, step in (
        (0, 3, 1), (1, ends, 1), (-2, ends, 1), (0, -1, 1), (1, 5, 2), (-1, -ends, -1),
        (4, 0, -2), (9, 20, 1), (3, 1, 1), (-20, 4, 3), (ends, -ends, -1),
    ):  # fmt: skip
        lists = {
            "b": np.array([begin, 0], np.int64), "e": np.array([end, 2], np.int64),
            "a": np.array([-1, 0], np.int64), "s": np.array([step, 1], np.int64),
        }  # fmt: skip
        node = helper.make_node("Slice", ["x", *lists], ["y"])
        assert agree(node, {"x": floats(2, 3, 6), **lists})


@pytest.mark.parametrize(
    ("opset", "sizes", "outputs"), [(13, None, 3), (18, None, 4), (13, [1, 2, 5], 3)]
)
def test_splits(opset: int, sizes: list[int] | None, outputs: int) -> None:
    feeds = {"x": floats(2, 8 if sizes else 9 if opset < 18 else 10)}
    names = ["x"]
    about: dict[str, Any] = {"axis": 1}
    if sizes is not None:
        feeds["s"] = np.array(sizes, np.int64)
        names.append("s")
    elif opset >= 18:
        about["num_outputs"] = outputs
    node = helper.make_node("Split", names, [f"y{at}" for at in range(outputs)], **about)
    assert agree(node, feeds, opset)


def test_space_and_depth() -> None:
    assert agree(helper.make_node("SpaceToDepth", ["x"], ["y"], blocksize=2),
                 {"x": floats(1, 3, 4, 6)})  # fmt: skip
    assert agree(helper.make_node("DepthToSpace", ["x"], ["y"], blocksize=2),
                 {"x": floats(1, 12, 2, 3)})  # fmt: skip
