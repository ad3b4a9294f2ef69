"""Models that are made of others, compared with running these in turn: convert_in_turn.txt."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from dld_tui.core.errors import DldError
from tests.support import conversions, models
from tests.support.model_lines import model_text
from tests.support.recorded import Recorded, settled

pytest.importorskip("onnxruntime")

HEAD = '<ir_version: 10, opset_import: ["" : 18, "own" : 1]>'
FIRST = HEAD + " first (float[N, 4] x) => (float[N, 4] a, float[N, 4] b) { a = Neg(x) b = Abs(x) }"
NEXT = HEAD + " next (float[N, 4] a, float[4] c) => (float[N, 4] y) { y = Add(a, c) }"
LAST = HEAD + " last (float[N, 4] y) => (float[N, 4] z) { y2 = Mul(y, y) z = Add(y2, y2) }"
ODD = HEAD + " odd (float[N, 4] y) => (float[N, 4] z) { z = own.Odd(y) }"
NOISE = HEAD + " noise (float[N, 4] a) => (float[N, 4] y) { r = RandomNormalLike(a) y = Add(a, r) }"
PARTS = (
    HEAD
    + """ parts (float[N, 4] a) => (seq(float[N, 4]) s, float[N, 4] y)
{ y = Neg(a) s = SequenceConstruct(y, a) }"""
)
NARROW = HEAD + " narrow (bfloat16[2] x) => (bfloat16[2] y) { y = Identity(x) }"
IMAGE = (
    HEAD
    + """ image (float[1, 3, 4, 4] x, int64[2] i) => (float[1, 3, 4, 4] y, int64[2] j)
{ y = Relu(x) j = Neg(i) }"""
)
SCORES = HEAD + " scores (float[2, 4] x) => (float[2, 4] y) { y = Mul(x, x) }"
CASES: dict[str, tuple[str, tuple[str, ...], dict[str, Any]]] = {
    "two": ("merge", (FIRST, NEXT), {}),
    "three, an output kept under another name": (
        "merge", (FIRST, NEXT, LAST), {"keep": ("a=kept", "y"), "map": ("b=a",)}),
    "one twice": ("merge", (LAST, LAST, LAST), {"map": ("z=y",), "prefix": ("again_",)}),
    "given shapes": ("merge", (FIRST, LAST), {"map": ("a=y",), "shape": ("x:3x4",)}),
    "given inputs": ("merge", (FIRST, LAST), {"map": ("a=y",), "inputs": Path("data")}),
    "a tolerance": ("merge", (FIRST, LAST), {"map": ("a=y",), "tolerance": ("atol=1",)}),
    "not verified": ("merge", (FIRST, LAST), {"map": ("a=y",), "verify": False}),
    "not compared": ("merge", (FIRST, LAST), {"map": ("a=y",), "values": "never"}),
    "what cannot be loaded": ("merge", (FIRST, ODD), {"map": ("a=y",)}),
    "random numbers": ("merge", (FIRST, NOISE), {}),
    "random numbers of one output": ("merge", (FIRST, NOISE), {"keep": ("b",)}),
    "random numbers alone": ("merge", (LAST, NOISE), {"map": ("z=a",)}),
    "sequences": ("merge", (FIRST, PARTS), {}),
    "a type that NumPy lacks": ("merge", (NARROW, NARROW), {"map": ("y=x",)}),
    "a link of nothing": ("merge", (FIRST, NEXT), {"map": ("ghost=a",)}),
    "no other model": ("merge", (FIRST,), {}),
    "integers": ("io", (IMAGE,), {"integers": "int32", "side": "both"}),
    "layouts": ("io", (IMAGE,), {"images": "nhwc", "side": "both", "floats": "float16"}),
    "a layout and a type by name": (
        "io", (IMAGE,), {"layout": ("x=0,2,3,1",), "type": ("y=float64",)}),
    "nothing to change": ("io", (IMAGE,), {}),
    "pixels": ("prepend", (IMAGE,), {"dtype": "uint8", "scale": "1/255", "mean": "0.5",
                                     "std": "0.25", "layout": "nhwc", "bgr": True}),
    "an image of any size": ("prepend", (IMAGE,), {"resize": "6x6", "crop": "4x4",
                                                   "antialias": True}),
    "softmax": ("append", (SCORES,), {"step": "softmax"}),
    "argmax of a kept output": ("append", (SCORES,), {"step": "argmax", "keep": True}),
    "top-k": ("append", (SCORES,), {"step": "top-k", "k": 2, "axis": 0}),
}  # fmt: skip


@pytest.mark.broad
@pytest.mark.usefixtures("replaces_all")
def test_all_that_is_told(
    recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {}
    (tmp_path / "data").mkdir()
    np.save(tmp_path / "data" / "x.npy", np.array([[-1, 2, -3, 4]], np.float32))
    monkeypatch.chdir(tmp_path)

    def add(name: str, kind: str, texts: tuple[str, ...], settings: dict[str, Any]) -> None:
        paths = [models.write(tmp_path, text, f"m{at}.onnx") for at, text in enumerate(texts)]
        out = tmp_path / "out.onnx"
        out.unlink(missing_ok=True)
        others = {"others": tuple(paths[1:])} if kind == "merge" else {}
        try:
            lines = [
                *conversions.told(conversions.convert(kind, paths[0], out, **others, **settings))
            ]
            lines.append(model_text(onnx.load(out)))
        except DldError as error:
            lines = [f"! {type(error).__name__} {error.message}", f"! {error.where} | {error.hint}"]
            assert not out.exists()
        text = settled("\n".join(lines), tmp_path)
        found[name] = re.sub(r"ONNX Runtime [\d.]+ cannot load it: .*", "it is not loaded", text)

    for name, case in CASES.items():
        add(name, *case)
    recorded("convert_in_turn", found)
