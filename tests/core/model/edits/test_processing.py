"""Pre- and post-processing as nodes: values as NumPy computes them."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.serialise import save
from tests.support import models
from tests.support.conversions import IMAGE
from tests.support.runtime import session_of

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


def smoothed(image: Any, height: int, width: int) -> Any:
    """Resize [batch, channels, height, width] with a triangle as wide as the scale, in float64."""
    for axis, size in ((2, height), (3, width)):
        have = image.shape[axis]
        scale = max(have / size, 1)
        centres = (np.arange(size) + 0.5) * have / size
        weights = np.maximum(1 - np.abs((np.arange(have) + 0.5) - centres[:, None]) / scale, 0)
        weights /= weights.sum(1, keepdims=True)
        image = np.moveaxis(np.tensordot(weights, image, (1, axis)), 0, axis)
    return image


SCALES = {"keep": (1, 0, 1), "unit": (1 / 255, 0, 1), "signed": (1 / 127.5, 1, 1),
          "imagenet": (1 / 255, [0.485, 0.456, 0.406], [0.229, 0.224, 0.225])}  # fmt: skip
"""Scale, mean and deviation of 0 to 255."""


def prepared(
    image: Any, wanted: dict[str, Any], *, model_last: bool, dtype: str = "float64"
) -> Any:
    """Return what a model gets of an image, by NumPy."""
    if (wanted["layout"] or ("nhwc" if model_last else "nchw")) == "nhwc":
        image = np.transpose(image, (0, 3, 1, 2))
    image = image.astype(dtype).astype(np.float64)
    if size := wanted["resize"]:
        if len(size) == 1:
            factor = size[0] / min(image.shape[2:])
            size = [round(side * factor) for side in image.shape[2:]]
        image = resized(image, *size)
    if crop := wanted["crop"]:
        image = centre(image, *(crop * 2)[:2])
    if wanted["reverse"]:
        image = image[:, ::-1]
    defaults = SCALES[wanted["normalize"]]
    scale, mean, deviation = (
        np.array(default if given in (None, []) else given, np.float64).reshape(1, -1, 1, 1)
        for default, given in zip(
            defaults, (wanted["scale"], wanted["mean"], wanted["deviation"]), strict=True
        )
    )
    image = (image * scale - mean) / deviation
    return np.transpose(image, (0, 2, 3, 1)) if model_last else image


def drawn(seed: int) -> tuple[str, dict[str, Any], tuple[int, ...], bool]:
    """Return a model of an image, how it is to be processed, the new shape, and its layout."""
    dice = random.Random(seed)
    last, channels, opset = dice.random() < 0.5, dice.choice([1, 3, 4]), dice.choice([11, 13, 18])
    sizes = dice.choice([None, None, [12, 10], [10]] if opset >= 18 else [None, [12, 10]])
    crop = dice.choice([[], [8, 6], [7]]) if sizes else []
    kind = "float" if sizes else dice.choice(["float", "float16", "double"])
    normal = dice.choice([name for name in SCALES if name != "imagenet" or channels == 3])
    wanted = {
        "dtype": dice.choice(["uint8", "int32", "float32", "float16", ""]),
        "layout": dice.choice(["", "nhwc", "nchw"]), "resize": sizes or [], "crop": crop,
        "reverse": dice.random() < 0.5, "normalize": normal,
        "scale": dice.choice([None, 1 / 64]) if normal != "keep" else 1 / 64,
        "mean": dice.choice([[], [0.5], [0.25] * channels]),
        "deviation": dice.choice([[], [2.0], [0.5] * channels]),
    }  # fmt: skip
    height, width = ("h", "w") if dice.random() < 0.5 or len(sizes or []) == 1 else (
        (crop * 2)[:2] if crop else sizes or [9, 11]
    )  # fmt: skip
    given = dice.choice([(20, 30), (30, 20), (5, 15)]) if sizes else (9, 11)
    shape = [height, width, channels] if last else [channels, height, width]
    dims = ", ".join(map(str, ["n", *shape]))
    text = f"""<ir_version: 8, opset_import: ["" : {opset}]>
    image ({kind}[{dims}] x) => ({kind}[{dims}] y) {{ y = Neg(x) }}"""
    comes_last = (wanted["layout"] or ("nhwc" if last else "nchw")) == "nhwc"
    return text, wanted, (2, *given, channels) if comes_last else (2, channels, *given), last


@pytest.mark.parametrize("seed", range(24))
def test_drawn_images_as_numpy_prepares_them(tmp_path: Path, seed: int) -> None:
    text, wanted, shape, last = drawn(seed)
    result = changed(tmp_path, text, "prepend_processing", input="x", **wanted)
    dtype = onnx.helper.tensor_dtype_to_np_dtype(result.graph.input[0].type.tensor_type.elem_type)
    inner = onnx.helper.tensor_dtype_to_np_dtype(result.graph.output[0].type.tensor_type.elem_type)
    image = np.random.default_rng(seed).integers(0, 256, shape).astype(dtype)
    expected = prepared(image, wanted, model_last=last, dtype=inner.name)
    room = 0.02 if inner == np.float16 else 1e-4
    found = run(result, x=image)["y"]
    np.testing.assert_allclose(found, -expected, rtol=room, atol=room * np.abs(expected).max())


def overlap(first: Any, second: Any) -> float:
    """Return intersection over union of boxes of centre, width and height."""
    sides = []
    for axis in (0, 1):
        low = max(box[axis] - box[axis + 2] / 2 for box in (first, second))
        high = min(box[axis] + box[axis + 2] / 2 for box in (first, second))
        sides.append(max(high - low, 0))
    shared = sides[0] * sides[1]
    return float(shared / (first[2] * first[3] + second[2] * second[3] - shared))


@pytest.mark.parametrize("seed", range(12))
def test_drawn_outputs_as_numpy_processes_them(tmp_path: Path, seed: int) -> None:
    dice, rng = random.Random(seed), np.random.default_rng(seed)
    shape = [dice.randint(2, 6) for _ in range(dice.randint(1, 4))]
    axis = dice.randrange(-len(shape), len(shape))
    kind = dice.choice(["float", "double", "float"])
    text = f"""<ir_version: 8, opset_import: ["" : {dice.choice([13, 17, 18])}]>
    scores ({kind}[{", ".join(map(str, shape))}] x) => ({kind}[{", ".join(map(str, shape))}] y)
    {{ y = Neg(x) }}"""
    x = rng.standard_normal(shape).astype(np.float64 if kind == "double" else np.float32)
    step, keep, k = dice.choice(["softmax", "argmax", "top-k"]), dice.random() < 0.5, shape[axis]
    wanted: dict[str, Any] = {"step": step, "axis": axis, "keep": keep}
    found = run(changed(tmp_path, text, "append_processing", **wanted, k=k), x=x)
    powers = np.exp(-x) / np.exp(-x).sum(axis, keepdims=True)
    made = {
        "softmax": {"y_softmax" if keep else "y": powers},
        "argmax": {"y_argmax" if keep else "y": np.argmax(-x, axis)},
        "top-k": {"y_values": -np.sort(x, axis), "y_indices": np.argsort(x, axis)},
    }[step]
    expected = {**({"y": -x} if keep else {}), **made}
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-5)


@pytest.mark.parametrize(
    "form", ["columns", "rows", "apart", "named", "classes first", "objectness", "corners"]
)
def test_boxes_of_a_detector(tmp_path: Path, form: str) -> None:
    rng = np.random.default_rng(2)
    rows = np.concatenate([rng.random((2, 40, 2)) * 4, 1 + rng.random((2, 40, 2)),
                           rng.random((2, 40, 2))], 2).astype(np.float32)  # fmt: skip
    given, scores = rows, rows[..., 4:]
    if form == "objectness":
        sure = rng.random((2, 40, 1)).astype(np.float32)
        given, scores = np.concatenate([rows[..., :4], sure, scores], 2), scores * sure
    if form == "corners":
        half = rows[..., 2:4] / 2
        given = np.concatenate([rows[..., :2] - half, rows[..., :2] + half, scores], 2)
    shape = (2, 40, given.shape[2]) if form == "rows" else (2, given.shape[2], 40)
    text = DETECTOR.replace("2, 6, 40", ", ".join(map(str, shape)))
    feed = {"x": given if form == "rows" else np.transpose(given, (0, 2, 1))}
    wanted: dict[str, Any] = {"output": "y"}
    if form in ("apart", "named", "classes first"):
        text = DETECTOR.replace("(float[2, 6, 40] x)", "(float[2, 40, 4] b, float[2, 40, 2] s)")
        text = text.replace("(float[2, 6, 40] y)", "(float[2, 40, 4] boxes_out, float[2, 40, 2] z)")
        text = text.replace("y = Identity(x)", "boxes_out = Identity(b)\n z = Identity(s)")
        feed = {"b": rows[..., :4], "s": rows[..., 4:]}
        wanted = {"output": "boxes_out", "scores": "z"}
    if form == "classes first":
        text, feed["s"] = text.replace("[2, 40, 2]", "[2, 2, 40]"), np.swapaxes(feed["s"], 1, 2)
    if form == "named":  # as the outputs of the step
        text = text.replace("boxes_out", "boxes").replace(" z", " scores")
        wanted = {"output": "boxes", "scores": "scores"}
    result = changed(
        tmp_path, text, "append_processing", step="nms", iou=0.4, threshold=0.3, most=4,
        objectness=form == "objectness", centres=form != "corners", **wanted,
    )  # fmt: skip
    found = run(result, **feed)
    expected = []
    for batch in range(2):
        for kind in range(2):
            kept: list[int] = []
            for at in np.argsort(-scores[batch, :, kind]):
                near = (overlap(rows[batch, at], rows[batch, other]) > 0.4 for other in kept)
                if scores[batch, at, kind] > 0.3 and len(kept) < 4 and not any(near):
                    kept.append(int(at))
            expected += [(batch, kind, at) for at in kept]
    assert list(zip(found["batches"], found["classes"], strict=True)) == [e[:2] for e in expected]
    np.testing.assert_array_equal(found["boxes"], [given[b, at, :4] for b, _, at in expected])
    np.testing.assert_array_equal(found["scores"], [scores[b, at, c] for b, c, at in expected])


def test_integers_stay_integers(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 18]>
    image (uint8[1, 8, 6, 3] x) => (uint8[1, 8, 6, 3] y) { y = Identity(x) }"""
    image = np.random.default_rng(1).integers(0, 255, (1, 8, 6, 3), np.uint8)
    found = run(changed(tmp_path, text, "prepend_processing", reverse=True), x=image)
    np.testing.assert_array_equal(found["y"], image[..., ::-1])
    turned = changed(tmp_path, text, "prepend_processing", layout="nchw")
    found = run(turned, x=np.transpose(image, (0, 3, 1, 2)))
    np.testing.assert_array_equal(found["y"], image)


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize("size", [(30, 20), (41, 5)])
def test_a_resized_image_is_smoothed(tmp_path: Path, layout: str, size: tuple[int, int]) -> None:
    result = changed(
        tmp_path, IMAGE.replace("OPSET", "18"), "prepend_processing", input="x", dtype="uint8",
        layout=layout, resize=[8, 6], antialias=True,
    )  # fmt: skip
    image = np.random.default_rng(0).integers(0, 256, (1, 3, *size)).astype(np.uint8)
    given = np.transpose(image, (0, 2, 3, 1)) if layout == "nhwc" else image
    found = run(result, x=given, other=np.zeros(3, np.float32))["y"]
    np.testing.assert_allclose(found, -smoothed(image, 8, 6), rtol=1e-4, atol=1e-3)
