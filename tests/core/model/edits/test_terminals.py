"""Types and layouts of inputs and outputs: values as of the original."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from dld_tui.core.conversion.copies import infer
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.serialise import save
from tests.support.drawn_models import drawn_model
from tests.support.runtime import session_of

DTYPES = {
    f"tensor({name})": np.dtype(dtype)
    for name, dtype in (
        ("float", "float32"), ("float16", "float16"), ("double", "float64"), ("uint8", "uint8"),
        ("bool", "bool"), ("int64", "int64"), ("int32", "int32"),
    )
}  # fmt: skip


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
