"""Types and layouts of inputs and outputs: values as of the original, nodes only where needed."""

from __future__ import annotations

import contextlib
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from dld_tui.core.conversion.copies import infer
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.metadata import profiles_of
from dld_tui.core.model.document.serialise import save
from dld_tui.core.types import JSON
from tests.support import models
from tests.support.drawn_models import drawn_model
from tests.support.runtime import session_of

DTYPES = {
    f"tensor({name})": np.dtype(dtype)
    for name, dtype in (
        ("float", "float32"), ("float16", "float16"), ("double", "float64"), ("uint8", "uint8"),
        ("bool", "bool"), ("int64", "int64"), ("int32", "int32"),
    )
}  # fmt: skip


def converted(folder: Path, text: str, **wanted: Any) -> onnx.ModelProto:
    path = models.write(folder, text)
    with contextlib.closing(Document.open(path)) as document:
        document.apply("convert_terminals", **wanted)
        save(document, folder / "out.onnx", overwrite=True)
    result = onnx.load(folder / "out.onnx")
    onnx.checker.check_model(result, full_check=True)
    return result


def run(model: onnx.ModelProto, **feed: Any) -> dict[str, Any]:
    session = session_of(model)
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, feed), strict=True))


def added(model: onnx.ModelProto, text: str) -> Counter[str]:
    """Return how many more nodes of each operator a model has than that of a text."""
    counts = Counter(node.op_type for node in model.graph.node)
    counts.subtract(node.op_type for node in models.parse(text).graph.node)
    return Counter({op_type: count for op_type, count in counts.items() if count})


def test_integers_need_a_cast_only_where_nothing_takes_them(tmp_path: Path) -> None:
    tokens = {name: np.array([[1, 0, 3]]) for name in ("ids", "mask", "kinds")}
    tokens["kinds"] = np.array([[0, 0, 1]])
    expected = run(models.parse(models.TOKENS), **tokens)
    result = converted(tmp_path, models.TOKENS, types={"int64": "int32"}, side="both")
    found = run(result, **{name: value.astype(np.int32) for name, value in tokens.items()})
    np.testing.assert_array_equal(found["y"], expected["y"])
    np.testing.assert_array_equal(found["top"], expected["top"].astype(np.int32))
    assert found["top"].dtype == np.int32
    assert added(result, models.TOKENS) == {"Cast": 1}  # behind ArgMax, which gives int64 only


def test_indices_take_the_wider_type_too(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
    net (int32[2] i, int32[2] j) => (float[2] y, int32[2] z)
    <float[4] table = {1, 2, 3, 4}> { y = Gather(table, i)
    z = Add(i, j) }"""
    result = converted(tmp_path, text, types={"int32": "int64"})
    assert added(result, text) == {"Cast": 2}  # before Add, which gives what it takes
    found = run(result, i=np.array([3, 1]), j=np.array([1, 1]))
    np.testing.assert_array_equal(found["y"], np.array([4, 2], np.float32))
    assert found["z"].dtype == np.int32
    gather = next(node for node in result.graph.node if node.op_type == "Gather")
    assert gather.input[1] == "i"


@pytest.mark.parametrize("seed", range(5))  # negative numbers are no uint8 of any machine
def test_drawn_models_of_other_types(tmp_path: Path, seed: int) -> None:
    dtype, side = ["float16", "float64", "uint8"][seed % 3], ["inputs", "both"][seed // 3]
    path, dice = tmp_path / "drawn.onnx", np.random.default_rng(seed)
    onnx.save(drawn_model(seed), path)
    with contextlib.closing(Document.open(path)) as document:
        infer(document, path)
        document.apply("convert_terminals", types={"float32": dtype}, side=side)
        save(document, tmp_path / "out.onnx")
    before, after = session_of(path), session_of(tmp_path / "out.onnx")
    fed: dict[str, Any] = {}
    for info in before.get_inputs():
        shape = [size if isinstance(size, int) else 2 for size in info.shape]
        is_float = info.type == "tensor(float)"
        fed[info.name] = dice.integers(0, 3, shape).astype(np.float32 if is_float else bool)
    kinds = {one.name: DTYPES[one.type] for one in (*after.get_inputs(), *after.get_outputs())}
    expected = before.run(None, fed)
    found = after.run(None, {name: value.astype(kinds[name]) for name, value in fed.items()})
    for info, mine, theirs in zip(before.get_outputs(), found, expected, strict=True):
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(mine, theirs.astype(kinds[info.name]))


def test_profiles_follow(tmp_path: Path) -> None:
    with contextlib.closing(Document.open(models.write(tmp_path, models.IMAGE))) as document:
        sizes = (("min", 1), ("opt", 2), ("max", 4))
        shape: dict[str, JSON] = {kind: [size, 3, 4, 5] for kind, size in sizes}
        document.apply("set_profiles", profiles=[{"x": shape}])
        document.apply("convert_terminals", layouts={"x": "nhwc"})
        [profile] = profiles_of(document)
        assert [profile["x"].shape(kind)[0] for kind in shape] == [1, 2, 4]
        assert [*profile["x"].shape("max")] == [4, 4, 5, 3]
