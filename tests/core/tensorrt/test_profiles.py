"""Profiles of a build: from the command, the model, the batch; and what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dld_tui.core.errors import UsageError
from dld_tui.core.model.document import Document
from dld_tui.core.model.document.metadata import KINDS, Profile, Range
from dld_tui.core.tensorrt.profiles import profiles_for, profiles_from, shape_inputs
from dld_tui.core.tensorrt.settings import BuildSettings
from tests.support import models
from tests.support.recorded import Recorded

TWO = """
<ir_version: 8, opset_import: ["" : 17]>
two (float[N, 3, H, H] image, float[N, 4] other, float[2] fixed) => (float[N, 3, H, H] y)
{ y = Relu(image) }
"""
SHAPED = """
<ir_version: 8, opset_import: ["" : 17]>
shaped (float[2, 6] x, int64[2] size) => (float[A, B] y)
<int64[2] one = {1, 1}>
{ scaled = Mul(size, one)
  y = Reshape(x, scaled) }
"""


def opened(text: str, tmp_path: Path) -> Document:
    return Document.open(models.write(tmp_path, text))


@dataclass(frozen=True)
class Measured(BuildSettings):
    shape: tuple[str, ...] = ()
    """Shapes to measure with."""


def settings(**values: object) -> BuildSettings:
    return Measured(model=Path("m.onnx"), **values)  # type: ignore[arg-type]


def ranges_for(document: Document, wanted: BuildSettings) -> list[Profile]:
    return profiles_for(document, wanted).ranges


def same(*shape: int) -> Range:
    return Range(shape, shape, shape)


def test_profiles_of_the_model(tmp_path: Path) -> None:
    document = opened(TWO, tmp_path)
    stored = {"image": same(5, 3, 8, 8), "other": same(5, 4)}
    document.apply(
        "set_profiles",
        profiles=[
            {n: {k: list(r.shape(k)) for k in ("min", "opt", "max")} for n, r in stored.items()}
        ],
    )
    assert ranges_for(document, settings()) == [stored]
    assert ranges_for(document, settings(opt_shapes=("image:1x3x8x8",)))[0]["image"] == same(
        1, 3, 8, 8
    )


FIXED = TWO.replace("N, 3, H, H", "1, 3, 8, 8").replace("N, 4", "1, 4")
MODELS = {
    "two": TWO, "fixed": FIXED, "one open": TWO.replace("H, H", "8, 8"),
    "another": TWO.replace("float[N, 4] other", "float[N, 4] other, float[M, 4] last"),
    "unknown": TWO.replace("float[N, 4] other", "float other, float[K] last"),
    "no shape": TWO.replace("float[N, 4] other", "float other_one"),
    "many": TWO.replace("float[N, 4] other", ", ".join(f"float[N{n}, ?] i{n}" for n in range(11))),
    "shaped": SHAPED, "more": SHAPED.replace("size)", "size, float[N] more)"),
    "hostile": TWO.replace("image", "i" * 90),
}  # fmt: skip
TRIALS: dict[str, dict[str, dict[str, Any]]] = {
    "two": {
        "nothing": {}, "a batch": {"batch": 2},
        "all shapes": {"min_shapes": ("image:1x3x8x8,other:1x4",),
                       "opt_shapes": ("image:[2,3,8,8]", "other:[2,4]"),
                       "max_shapes": ("image:4x3x8x8,'other':4x4",)},
        "measured": {"shape": ("image:2x3x8x8",)}, "wrongly measured": {"shape": ("image:axb",)},
        "the usual": {"opt_shapes": ("image:2x3x8x8",)},
        "a pattern": {"opt_shapes": ("im*e:1x3x8x8",)},
        "the least": {"min_shapes": ("image:2x3x8x8",)},
        "the most": {"max_shapes": ("image:2x3x8x8",), "min_shapes": ("image:1x3x4x4",)},
        "two profiles": {"opt_shapes": ("image:1x3x8x8", "image:2x3x9x9")},
        "by number": {"min_shapes": ("profile=1;image:1x3x8x8",),
                      "opt_shapes": ("profile=0;image:1x3x4x4", "profile=1;image:2x3x8x8")},
        "one of the other": {"opt_shapes": ("other:5x4",), "batch": 3},
        "a fixed one": {"opt_shapes": ("image:1x3x8x8,fixed:2",)},
        "a wrong fixed one": {"opt_shapes": ("image:1x3x8x8,fixed:3",)},
        "wrong in the second": {"opt_shapes": ("image:1x3x8x8", "image:1x3x8x9")},
        "wrong order": {"min_shapes": ("image:4x3x8x8",), "opt_shapes": ("image:2x3x8x8",)},
        **{text: {"opt_shapes": (text,)} for text in (
            "image:1x3x8", "image:0x3x8x8", "image:1x3x8x9", "image:1x5x8x8", "image:1x3x8x-8",
            "nobody:1", "image:axb", "image:[1,a]", f"image:{10**30}x1x1x1",
            "profile=9999;image:1x3x8x8",
        )},
        "twice": {"opt_shapes": ("profile=0;image:1x3x8x8", "profile=0;image:1x3x8x8")},
    },
    "fixed": {"nothing": {}, "a batch": {"batch": 2}, "shapes": {"opt_shapes": ("fixed:2",)},
              "wrong": {"opt_shapes": ("fixed:3",)}},
    "one open": {"nothing": {}, "a batch": {"batch": 7}},
    "another": {"some": {"opt_shapes": ("image:4x3x8x8",)}, "two, some": {
        "opt_shapes": ("image:4x3x8x8", "image:5x3x8x8,last:6x4")}},
    "unknown": {"nothing": {}, "some": {"opt_shapes": ("image:4x3x8x8,other:",)}},
    "no shape": {"nothing": {}},
    "many": {"nothing": {}, "a batch": {"batch": 2}},
    "hostile": {"nothing": {}, "wrong": {"opt_shapes": ("i*:1",)}},
    "shaped": {"nothing": {}, "values": {"opt_shapes": ("size:3x4",)},
               "a value": {"opt_shapes": ("size:2",)}, "negative": {"opt_shapes": ("size:3x-4",)},
               "wrong order": {"min_shapes": ("size:3x5",), "opt_shapes": ("size:3x4",)},
               "a batch": {"batch": 3}},
    "more": {"nothing": {}, "values": {"opt_shapes": ("size:3x4",)}},
}  # fmt: skip


def shown(profile: Mapping[str, Range]) -> str:
    return ", ".join(
        f"{name} {' '.join('x'.join(map(str, range_.shape(kind))) for kind in KINDS)}"
        for name, range_ in profile.items()
    )


def test_whole_profiles(tmp_path: Path, recorded: Recorded) -> None:
    """The profiles of settings, what is guessed, and what is refused."""
    texts = {}
    for name, trials in TRIALS.items():
        document, lines = opened(MODELS[name], tmp_path), []
        for title, values in trials.items():
            try:
                found = profiles_for(document, settings(**values))
            except UsageError as error:
                lines.append(f"{title}: {error}")
                continue
            lines.append(f"{title}: {' | '.join(map(shown, found.ranges)) or 'none'}")
            lines += [f"  {remark}" for remark in found.remarks]
        texts[name] = "\n".join(lines)
    recorded("whole_profiles", texts)


def test_whole_profiles_of_inputs(tmp_path: Path, recorded: Recorded) -> None:
    """The profile of the inputs that are fed."""
    fixed = np.zeros(2)
    first = {"image": np.zeros((2, 3, 8, 8)), "other": np.zeros((5, 4)), "fixed": fixed}
    second = {"image": np.zeros((4, 3, 6, 6)), "other": np.zeros((1, 4)), "fixed": fixed}
    shaped = {"x": np.zeros((2, 6)), "size": np.array([3, 4])}
    cases: dict[str, tuple[str, list[dict[str, Any]]]] = {
        "one set": (TWO, [first]), "two sets": (TWO, [first, second]), "none": (TWO, []),
        "some in each": (TWO, [{"image": first["image"]}, second]),
        "other ranks": (TWO, [first, {**second, "other": fixed}]),
        "wrong": (TWO, [{**first, "image": np.zeros((2, 5, 8, 8))}]),
        "fixed": (FIXED, [first, second]), "values": (SHAPED, [shaped]),
        "two values": (SHAPED, [shaped, {**shaped, "size": np.array([[2, 6]])}]),
    }  # fmt: skip
    lines = []
    for title, (text, feeds) in cases.items():
        try:
            found = profiles_from(opened(text, tmp_path), feeds)
        except UsageError as error:
            lines.append(f"{title}: {error}")
        else:
            lines.append(f"{title}: {' | '.join(map(shown, found)) or 'none'}")
    recorded("whole_profiles_of_inputs", {"inputs": "\n".join(lines)})


def test_which_inputs_hold_a_shape(tmp_path: Path, recorded: Recorded) -> None:
    header, told = '<ir_version: 8, opset_import: ["" : 17]> g (float[2, 6] x,', []
    for inputs in (
        "int64[1] v) => (y) { y = Expand(x, v) }",
        "int64[1] v) => (y) { m = Max(v, v) c = Cast <to = 6> (m) d = Cast <to = 7> (c)"
        " y = ConstantOfShape(d) }",
        "int64 v) => (y) { y = Range(v, v, v) }",
        "int64 v, int64 w, int64[2] no) => (y) { y = Range(v, w, w) z = Gather(x, no) }",
        "int64[1] v) => (y) { y, i = TopK(x, v) }",
        "int64[1] v, int64[1] w) => (y) { y = Slice(x, v, w) }",
        "int64[1] v) => (y) { y = Unsqueeze(x, v) }",
        "int64[4] v) => (y) { y = Pad(x, v) }",
        "int64[1] v, int64[2] w) => (y) { s = Shape(x) t = Mul(s, v) y = Reshape(x, t)"
        " z = Tile(y, w) }",
        "int64[2] v) => (y) { y = Gather(x, v) }",
        "int64[2] v) => (y) { s = Shape(v) y = Tile(x, s) }",
        "int64[2] v) => (y) { y = Add(v, v) }",
        "int64[n] v) => (y) { y = Reshape(x, v) }",  # how many values it has is open
    ):
        document = opened(f"{header} {inputs}", tmp_path)
        told.append(f"{inputs}: {shape_inputs(document)}")
        try:
            told += [f"  {shown(one)}" for one in ranges_for(document, settings(batch=2))]
        except UsageError as error:
            told.append(f"  {error}")
    recorded("whole_shape_inputs", {"inputs": "\n".join(told)})
