"""New tensors: the values that were asked for, the same ones for the same seed."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from dld_tui.core.errors import EditError
from dld_tui.core.model.document import Document
from dld_tui.core.model.tensors.elements import is_float, payload_bytes
from dld_tui.core.model.tensors.generate import random_kinds, uniform_range
from dld_tui.core.model.tensors.payloads import reference
from dld_tui.core.model.tensors.tensor import Tensor
from dld_tui.core.types import JSON
from tests.support import models
from tests.support.elements import DTYPES
from tests.support.sessions import tensor_in


@pytest.fixture
def document(tmp_path: Path) -> Document:
    return Document.open(models.write(tmp_path, models.CHAIN))


def added(document: Document, dtype: str, dims: list[int], **fill: JSON) -> Tensor:
    document.apply("add_initializer", scope=[], name="new", dtype=dtype, dims=list(dims), fill=fill)
    tensor = tensor_in(document, "new")
    assert tensor.problem is None
    assert tensor.shape == tuple(dims)
    return tensor


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type_can_be_filled(document: Document, dtype: str) -> None:
    assert not added(document, dtype, [3, 7], kind="zeros").read().astype(complex).any() or (
        dtype == "float8e8m0"  # which has no zero: all bits zero is its least number
    )
    document.undo()
    for kind in random_kinds(dtype):
        fill: dict[str, JSON] = {"kind": kind, "seed": 3}
        if dtype == "float8e8m0":
            fill |= {"low": 0.01, "high": 1.0}
        first = added(document, dtype, [501], **fill).read().tobytes()
        document.undo()
        assert added(document, dtype, [501], **fill).read().tobytes() == first
        document.undo()
        fill["seed"] = 4
        assert added(document, dtype, [501], **fill).read().tobytes() != first
        document.undo()


@pytest.mark.parametrize("dtype", [d for d in DTYPES if not d.startswith("complex")])
@pytest.mark.parametrize("sign", [1, -1])
def test_uniform_of_one_sign(document: Document, dtype: str, sign: int) -> None:
    try:
        low, high = uniform_range(dtype, sign)
    except EditError as error:
        assert "no negative numbers" in error.message  # noqa: PT017
        return
    tensor = added(document, dtype, [400], kind="uniform", low=low, high=high)
    values = tensor.read().astype(np.float64)
    assert (values * sign >= 0).all()
    assert len(set(values.tolist())) > (1 if dtype != "int2" or sign < 0 else 0)


def test_large_random_tensors_are_made_in_parts(document: Document) -> None:
    tensor = added(document, "float32", [3, 200_000], kind="normal", mean=5, deviation=2, seed=1)
    values = tensor.read()
    assert abs(float(values.mean()) - 5) < 0.05
    assert abs(float(values.std()) - 2) < 0.05
    document.undo()
    whole = added(document, "uint8", [600_000], kind="uniform", low=0, high=255)
    assert set(whole.read().tolist()) == set(range(256))
    document.undo()
    assert not added(document, "int4", [2_000_001], kind="zeros").read(2_000_000, 1).any()


def test_values_and_payloads(document: Document) -> None:
    assert added(document, "int4", [3], kind="values", values=[1, -8, 7]).read().tolist() == [
        1, -8, 7
    ]  # fmt: skip
    document.undo()
    strings = added(document, "string", [2], kind="values", values=["a", "\udcff"])
    assert strings.read().tolist() == [b"a", b"\xff"]
    document.undo()
    data = np.arange(6, dtype=np.int16)
    payload = reference(document, data.tobytes())
    assert added(document, "int16", [6], kind="payload", payload=payload).read().tolist() == [
        0, 1, 2, 3, 4, 5
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("dtype", "fill", "why"),
    [
        ("string", {"kind": "zeros"}, "given as values"),
        ("bool", {"kind": "normal"}, "cannot be filled from"),
        ("float32", {"kind": "values", "values": [1]}, "1 values do not fill 4 elements"),
        ("float32", {"kind": "values"}, "must be a list"),
        ("float32", {"kind": "ones"}, "cannot be filled with 'ones'"),
        ("float16", {"kind": "uniform", "low": 0, "high": 1e6}, "at most 65504"),
        ("uint8", {"kind": "uniform", "low": -1, "high": 1}, "holds 0 to 255"),
        ("int8", {"kind": "uniform", "low": 0.2, "high": 0.8}, "no whole number"),
        ("float32", {"kind": "uniform", "low": 1, "high": 0}, "more than high"),
        ("float32", {"kind": "normal", "deviation": -1}, "at least 0"),
        ("float32", {"kind": "normal", "mean": "x"}, "must be a number"),
        ("float32", {"kind": "normal", "mean": math.inf}, "finite"),
        ("float32", {"kind": "normal", "seed": -1}, "seed"),
        ("float8e8m0", {"kind": "uniform", "low": 0, "high": 1}, "powers of two"),
        ("float32", {"kind": "payload", "payload": {"raw": "AAAA"}}, "has 3 B, 2x2 float32 needs"),
        ("float32", 7, "fill must be"),
    ],
)
def test_what_does_not_fit_is_refused(document: Document, dtype: str, fill: JSON, why: str) -> None:
    with pytest.raises(EditError, match=why):
        document.apply("add_initializer", scope=[], name="new", dtype=dtype, dims=[2, 2], fill=fill)
    assert not document.dirty


def test_defaults_of_one_sign_fit_their_type() -> None:
    for dtype in DTYPES:
        low, high = uniform_range(dtype, 1)
        assert low < high
        assert is_float(dtype) or payload_bytes(dtype, 8) is not None
