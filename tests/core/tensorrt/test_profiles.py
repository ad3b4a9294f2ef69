"""Profiles of a build: from the command, the model, the batch; and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dld_tui.core.errors import UsageError
from dld_tui.core.model.document import Document
from dld_tui.core.model.document.metadata import Profile, Range
from dld_tui.core.tensorrt.profiles import profiles_for, profiles_from, shape_inputs
from dld_tui.core.tensorrt.settings import BuildSettings
from tests.support import models

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


def settings(**values: object) -> BuildSettings:
    return BuildSettings(model=Path("m.onnx"), **values)  # type: ignore[arg-type]


def ranges_for(document: Document, wanted: BuildSettings) -> list[Profile]:
    return profiles_for(document, wanted).ranges


def same(*shape: int) -> Range:
    return Range(shape, shape, shape)


def test_fixed_inputs_need_no_profile(tmp_path: Path) -> None:
    text = TWO.replace("N, 3, H, H", "1, 3, 8, 8").replace("N, 4", "1, 4")
    document = opened(text, tmp_path)
    assert ranges_for(document, settings()) == []
    assert ranges_for(document, settings(opt_shapes=("fixed:2",))) == []


def test_ranges_by_trtexec_and_polygraphy_spellings(tmp_path: Path) -> None:
    found = ranges_for(
        opened(TWO, tmp_path),
        settings(
            min_shapes=("image:1x3x8x8,other:1x4",),
            opt_shapes=("image:[2,3,8,8]", "other:[2,4]"),
            max_shapes=("image:4x3x8x8,'other':4x4",),
        ),
    )
    assert found == [
        {
            "image": Range((1, 3, 8, 8), (2, 3, 8, 8), (4, 3, 8, 8)),
            "other": Range((1, 4), (2, 4), (4, 4)),
        }
    ]


def test_usual_shapes_stand_for_all_that_their_names_tell(tmp_path: Path) -> None:
    found = ranges_for(opened(TWO, tmp_path), settings(opt_shapes=("image:2x3x8x8",)))
    assert found == [{"image": same(2, 3, 8, 8), "other": same(2, 4)}]
    found = ranges_for(opened(TWO, tmp_path), settings(opt_shapes=("im*e:1x3x8x8",)))
    assert found[0]["image"] == same(1, 3, 8, 8)
    texts = ("image:1x3x8x8", "image:2x3x9x9")
    found = ranges_for(opened(TWO, tmp_path), settings(opt_shapes=texts))
    assert [profile["image"] for profile in found] == [same(1, 3, 8, 8), same(2, 3, 9, 9)]


def test_profiles_by_number(tmp_path: Path) -> None:
    found = ranges_for(
        opened(TWO, tmp_path),
        settings(
            min_shapes=("profile=1;image:1x3x8x8",),
            opt_shapes=("profile=0;image:1x3x4x4", "profile=1;image:2x3x8x8"),
        ),
    )
    assert found[0]["image"] == same(1, 3, 4, 4)
    assert found[1]["image"] == Range((1, 3, 8, 8), (2, 3, 8, 8), (2, 3, 8, 8))


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


def test_inferred_batch(tmp_path: Path) -> None:
    document = opened(TWO.replace("H, H", "8, 8"), tmp_path)
    assert ranges_for(document, settings(batch=7)) == [
        {"image": same(7, 3, 8, 8), "other": same(7, 4)}
    ]


def test_what_has_no_range_is_guessed_and_told(tmp_path: Path) -> None:
    found = profiles_for(opened(TWO, tmp_path), settings(batch=2))
    assert found.ranges == [{"image": same(2, 3, 224, 224), "other": same(2, 4)}]
    (remark,) = (one for one in found.remarks if one.startswith("Input image"))
    assert "image → 2x3x224x224 (guessed: height and width 224" in remark
    assert "--opt-shapes image:2x3x224x224" in remark
    # What is given, or has no range, stands before what is guessed.
    text = TWO.replace("float[N, 4] other", "float[N, 4] other, float[M, 4] last")
    given = settings(opt_shapes=("image:4x3x8x8",))
    assert ranges_for(opened(text, tmp_path), given) == [
        {"image": same(4, 3, 8, 8), "other": same(4, 4), "last": same(8, 4)}
    ]
    told = profiles_for(opened(TWO, tmp_path), settings(opt_shapes=("image:4x3x8x8",)))
    assert (told.guess, told.remarks) == (None, [])


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        (("image:1x3x8",), "3 dimensions|4 dimensions"),
        (("image:1x3x8x9",), "both 8 and 9"),
        (("image:1x5x8x8",), "fixed to 3"),
        (("image:1x3x8x-8",), "negative"),
        (("nobody:1",), "not an input"),
        (("image:axb",), "not a shape"),
        (("image:[1,a]",), "not a number"),
        ((f"image:{10**30}x1x1x1",), "not a number"),
        (("profile=9999;image:1x3x8x8",), "too much"),
        (("profile=0;image:1x3x8x8", "profile=0;image:1x3x8x8"), "twice"),
    ],
)
def test_what_does_not_fit_is_refused(texts: tuple[str, ...], reason: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=reason):
        ranges_for(opened(TWO, tmp_path), settings(opt_shapes=texts))


def test_wrong_order_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not hold"):
        ranges_for(
            opened(TWO, tmp_path),
            settings(min_shapes=("image:4x3x8x8",), opt_shapes=("image:2x3x8x8",)),
        )


def test_inputs_that_hold_a_shape_take_values(tmp_path: Path) -> None:
    document = opened(SHAPED, tmp_path)
    assert shape_inputs(document) == {"size": 2}
    found = ranges_for(document, settings(opt_shapes=("size:3x4",)))
    assert found == [{"size": same(3, 4)}]
    more = opened(SHAPED.replace("size)", "size, float[N] more)"), tmp_path)
    for unguessed in (document, more):
        with pytest.raises(UsageError, match=r": size \(2 values of a shape\)\. Give"):
            ranges_for(unguessed, settings())
    with pytest.raises(UsageError, match="holds 2 values"):
        ranges_for(document, settings(opt_shapes=("size:2",)))


@pytest.mark.parametrize(
    ("given", "nodes", "holds"),
    [
        ("int64[1] v", "y = Expand(x, v)", True),
        ("int64[1] v", "m = Max(v, v) c = Cast <to = 6> (m) d = Cast <to = 7> (c)"
                       " y = ConstantOfShape(d)", True),
        ("int64 v", "y = Range(v, v, v)", True),
        ("int64[1] v", "y, i = TopK(x, v)", True),
        ("int64[1] v", "y = Slice(x, v, v)", True),
        ("int64[1] v", "y = Unsqueeze(x, v)", True),
        ("int64[4] v", "y = Pad(x, v)", True),
        ("int64[1] v", "s = Shape(x) t = Mul(s, v) y = Reshape(x, t)", True),
        ("int64[2] v", "y = Gather(x, v)", False),
        ("int64[2] v", "s = Shape(v) y = Tile(x, s)", False),
        ("int64[2] v", "y = Add(v, v)", False),
        ("int64[n] v", "y = Reshape(x, v)", False),  # how many values it has is open
    ],
)  # fmt: skip
def test_which_inputs_hold_a_shape(given: str, nodes: str, holds: bool, tmp_path: Path) -> None:
    header = '<ir_version: 8, opset_import: ["" : 17]>'
    text = f"{header} g (float[2, 6] x, {given}) => (y) {{ {nodes} }}"
    assert ("v" in shape_inputs(opened(text, tmp_path))) is holds


def test_a_profile_from_the_inputs_that_are_fed(tmp_path: Path) -> None:
    document = opened(TWO, tmp_path)
    fixed = np.zeros(2)
    feeds = [
        {"image": np.zeros((2, 3, 8, 8)), "other": np.zeros((5, 4)), "fixed": fixed},
        {"image": np.zeros((4, 3, 6, 6)), "other": np.zeros((1, 4)), "fixed": fixed},
    ]
    assert profiles_from(document, feeds) == [
        {
            "image": Range((2, 3, 6, 6), (2, 3, 8, 8), (4, 3, 8, 8)),
            "other": Range((1, 4), (5, 4), (5, 4)),
        }
    ]
    with pytest.raises(UsageError, match="different number of dimensions in each set"):
        profiles_from(document, [feeds[0], {**feeds[1], "other": fixed}])
    shaped = opened(SHAPED, tmp_path)
    feed = {"x": np.zeros((2, 6)), "size": np.array([3, 4])}
    assert profiles_from(shaped, [feed]) == [{"size": same(3, 4)}]
    text = TWO.replace("N, 3, H, H", "1, 3, 8, 8").replace("N, 4", "1, 4")
    assert profiles_from(opened(text, tmp_path), feeds) == []
