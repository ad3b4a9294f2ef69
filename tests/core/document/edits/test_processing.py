"""Pre- and post-processing as nodes: values as NumPy computes them."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from dld_tui.core.document.document import Document
from dld_tui.core.document.serialise import save
from dld_tui.core.errors import EditError
from tests.support import models
from tests.support.runtime import session_of

IMAGE = """
<ir_version: 8, opset_import: ["" : OPSET]>
image (float[batch, 3, 8, 6] x, float[3] other) => (float[batch, 3, 8, 6] y)
{ y = Neg(x) }
"""
SCORES = """
<ir_version: 8, opset_import: ["" : 17]>
scores (float[batch, 4, 3] x) => (float[batch, 4, 3] y)
{ y = Neg(x) }
"""
DETECTOR = """
<ir_version: 8, opset_import: ["" : 17]>
detector (float[2, 6, 40] x) => (float[2, 6, 40] y)
{ y = Identity(x) }
"""


def changed(folder: Path, text: str, edit: str, **wanted: Any) -> onnx.ModelProto:
    path = models.write(folder, text)
    with contextlib.closing(Document.open(path)) as document:
        document.apply(edit, **wanted)
        save(document, folder / "out.onnx", overwrite=True)
    result = onnx.load(folder / "out.onnx")
    onnx.checker.check_model(result, full_check=True)
    return result


def run(model: onnx.ModelProto, **feed: Any) -> dict[str, Any]:
    session = session_of(model)
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, feed), strict=True))


def resized(image: Any, height: int, width: int) -> Any:
    """Resize [batch, channels, height, width] bilinearly: pixels are squares, edges repeat."""
    for axis, size in ((2, height), (3, width)):
        have = image.shape[axis]
        at = np.clip((np.arange(size) + 0.5) * have / size - 0.5, 0, have - 1)
        low = np.floor(at).astype(int)
        weight = (at - low).reshape([-1 if one == axis else 1 for one in range(4)])
        high = np.minimum(low + 1, have - 1)
        image = np.take(image, low, axis) * (1 - weight) + np.take(image, high, axis) * weight
    return image


def centre(image: Any, height: int, width: int) -> Any:
    top, left = (image.shape[2] - height) // 2, (image.shape[3] - width) // 2
    return image[:, :, top : top + height, left : left + width]


@pytest.mark.parametrize("opset", [13, 18])
@pytest.mark.parametrize("size", [(8, 6), (20, 9)])
def test_an_image_becomes_what_the_model_takes(
    tmp_path: Path, opset: int, size: tuple[int, int]
) -> None:
    result = changed(
        tmp_path, IMAGE.replace("OPSET", str(opset)), "prepend_processing", input="x",
        dtype="uint8", layout="nhwc", reverse=True, resize=[12, 10], crop=[8, 6],
        normalize="imagenet",
    )  # fmt: skip
    image = np.random.default_rng(0).integers(0, 256, (2, *size, 3)).astype(np.uint8)
    found = run(result, x=image, other=np.zeros(3, np.float32))["y"]
    rgb = np.transpose(image[..., ::-1].astype(np.float64), (0, 3, 1, 2))
    rgb = centre(resized(rgb, 12, 10), 8, 6)
    mean, deviation = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    expected = [(rgb[:, c] / 255 - mean[c]) / deviation[c] for c in range(3)]
    np.testing.assert_allclose(found, -np.stack(expected, 1), rtol=1e-4, atol=1e-4)
    assert all(node.name for node in result.graph.node if node.op_type != "Neg")
    [x, _] = result.graph.input
    assert [dim.dim_value or dim.dim_param for dim in x.type.tensor_type.shape.dim] == [
        "batch", "x_height", "x_width", 3
    ]  # fmt: skip


def test_the_shorter_side_and_numbers(tmp_path: Path) -> None:
    result = changed(
        tmp_path, IMAGE.replace("OPSET", "18"), "prepend_processing", input="x", resize=[10],
        crop=[8, 6], scale=0.5, mean=[1], deviation=[2, 4, 8],
    )  # fmt: skip
    image = np.random.default_rng(0).random((1, 3, 30, 20)).astype(np.float32)
    found = run(result, x=image, other=np.zeros(3, np.float32))["y"]
    expected = centre(resized(image, 15, 10), 8, 6) * 0.5 - 1
    expected = -expected / np.array([2, 4, 8]).reshape(3, 1, 1)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_softmax_argmax_and_the_largest(tmp_path: Path) -> None:
    x = np.random.default_rng(1).standard_normal((2, 4, 3)).astype(np.float32)
    powers = np.exp(-x.astype(np.float64))
    found = run(changed(tmp_path, SCORES, "append_processing", step="softmax", axis=1), x=x)
    assert found.keys() == {"y"}
    np.testing.assert_allclose(found["y"], powers / powers.sum(1, keepdims=True), rtol=1e-5)
    found = run(changed(tmp_path, SCORES, "append_processing", step="argmax", keep=True), x=x)
    np.testing.assert_array_equal(found["y"], -x)
    np.testing.assert_array_equal(found["y_argmax"], np.argmax(-x, -1))
    found = run(changed(tmp_path, SCORES, "append_processing", step="top-k", axis=-2, k=3), x=x)
    assert found.keys() == {"y_values", "y_indices"}
    order = np.argsort(x, 1)[:, :3]
    np.testing.assert_array_equal(found["y_indices"], order)
    np.testing.assert_array_equal(found["y_values"], np.take_along_axis(-x, order, 1))


def overlap(first: Any, second: Any) -> float:
    """Return intersection over union of boxes of centre, width and height."""
    sides = []
    for axis in (0, 1):
        low = max(box[axis] - box[axis + 2] / 2 for box in (first, second))
        high = min(box[axis] + box[axis + 2] / 2 for box in (first, second))
        sides.append(max(high - low, 0))
    shared = sides[0] * sides[1]
    return float(shared / (first[2] * first[3] + second[2] * second[3] - shared))


@pytest.mark.parametrize("is_apart", [False, True])
def test_boxes_of_a_detector(tmp_path: Path, is_apart: bool) -> None:
    rng = np.random.default_rng(2)
    rows = np.concatenate([rng.random((2, 40, 2)) * 4, 1 + rng.random((2, 40, 2)),
                           rng.random((2, 40, 2))], 2).astype(np.float32)  # fmt: skip
    text, feed, wanted = DETECTOR, {"x": np.transpose(rows, (0, 2, 1))}, {"output": "y"}
    if is_apart:
        text = DETECTOR.replace("(float[2, 6, 40] x)", "(float[2, 40, 4] b, float[2, 40, 2] s)")
        text = text.replace("(float[2, 6, 40] y)", "(float[2, 40, 4] boxes_out, float[2, 40, 2] z)")
        text = text.replace("y = Identity(x)", "boxes_out = Identity(b)\n z = Identity(s)")
        feed = {"b": rows[..., :4], "s": rows[..., 4:]}
        wanted = {"output": "boxes_out", "scores": "z"}
    result = changed(
        tmp_path, text, "append_processing", step="nms", iou=0.4, threshold=0.3, most=4, **wanted
    )
    found = run(result, **feed)
    expected = []
    for batch in range(2):
        for kind in range(2):
            kept: list[int] = []
            for at in np.argsort(-rows[batch, :, 4 + kind]):
                near = (overlap(rows[batch, at], rows[batch, other]) > 0.4 for other in kept)
                if rows[batch, at, 4 + kind] > 0.3 and len(kept) < 4 and not any(near):
                    kept.append(int(at))
            expected += [(batch, kind, at) for at in kept]
    assert list(zip(found["batches"], found["classes"], strict=True)) == [e[:2] for e in expected]
    np.testing.assert_array_equal(found["boxes"], [rows[b, at, :4] for b, _, at in expected])
    np.testing.assert_array_equal(found["scores"], [rows[b, at, 4 + c] for b, c, at in expected])


@pytest.mark.parametrize(
    ("edit", "wanted", "says"),
    [
        ("prepend_processing", {"dtype": "uint8"}, "which input? Floating point numbers have: 'x'"),
        ("prepend_processing", {"input": "q"}, "there is no input 'q'. There are 'x', 'other'"),
        ("prepend_processing", {"input": "x"}, "nothing is to be done"),
        ("prepend_processing", {"input": "x", "mean": [1, 2]}, "mean has 2 numbers for 3 channels"),
        ("prepend_processing", {"input": "x", "resize": [9, 9]}, "9x9 does not fit input 'x'"),
        (
            "prepend_processing",
            {"input": "x", "resize": [9]},
            "needs opset 18, and the model has 13",
        ),
        ("prepend_processing", {"input": "other", "reverse": True}, "is no image: it needs four"),
        ("append_processing", {"step": "sort"}, "step is 'sort'"),
        ("append_processing", {"step": "softmax", "output": "x"}, "there is no output 'x'"),
        ("append_processing", {"step": "argmax", "axis": 4}, "output 'y' has no axis 4"),
        ("append_processing", {"step": "top-k", "k": 7}, "k is 7, and axis -1 of output 'y' has 6"),
        ("append_processing", {"step": "nms"}, "nms takes float32 of 3 axes"),
    ],
)
def test_refused_and_nothing_changed(
    tmp_path: Path, edit: str, wanted: dict[str, Any], says: str
) -> None:
    path = models.write(tmp_path, IMAGE.replace("OPSET", "13"))
    with contextlib.closing(Document.open(path)) as document:
        with pytest.raises(EditError) as caught:
            document.apply(edit, **wanted)
        assert says in str(caught.value)
        assert (len(document.main.nodes), len(document.main.initializers)) == (1, 0)
        assert not document.history.done
