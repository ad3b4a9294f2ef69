"""New tensors: the values that were asked for, the same ones for the same seed."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from dld_tui.core.errors import EditError
from dld_tui.core.model.document import Document
from dld_tui.core.model.tensors.elements import is_float, payload_bytes
from dld_tui.core.model.tensors.generate import fill_payload, uniform_range
from dld_tui.core.model.tensors.payloads import reference
from dld_tui.core.model.tensors.tensor import Tensor
from dld_tui.core.types import JSON
from tests.support import models
from tests.support.elements import DTYPES
from tests.support.recorded import Recorded
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


FILLS: list[dict[str, JSON]] = [
    {"kind": "zeros"},
    {"kind": "normal"}, {"kind": "normal", "mean": 3, "deviation": 0.5, "seed": 4},
    {"kind": "uniform"}, {"kind": "uniform", "seed": 4, "low": 1, "high": 1.5},
    {"kind": "uniform", "low": 0.2, "high": 0.8}, {"kind": "uniform", "low": -2, "high": 3.7},
    {"kind": "uniform", "low": 1, "high": 0}, {"kind": "uniform", "low": 0, "high": 300},
    {"kind": "uniform", "low": -1e6, "high": 1}, {"kind": "uniform", "low": 0, "high": 2**64 - 1},
    {"kind": "normal", "mean": 1e6}, {"kind": "normal", "deviation": 0},
    {"kind": "values", "values": [1, 0, 1]}, {"kind": "values", "values": ["a", "\udcff", ""]},
]  # fmt: skip
WRONG: list[dict[str, JSON]] = [
    {"kind": "values", "values": [1]}, {"kind": "values"}, {"kind": "ones"}, {},
    {"kind": "normal", "deviation": -1}, {"kind": "normal", "mean": "x"},
    {"kind": "normal", "mean": math.inf}, {"kind": "normal", "deviation": True},
    {"kind": "normal", "seed": -1}, {"kind": "normal", "seed": 2**63},
    {"kind": "normal", "seed": 2**63 - 1}, {"kind": "normal", "seed": True},
    {"kind": "normal", "seed": 1.5}, {"kind": "payload", "payload": {"raw": "AAAA"}},
    {"kind": "payload", "payload": {"raw": "AAAAAAAAAAAAAAAA"}}, {"kind": "payload"},
    {"kind": "payload", "payload": {"values": [1, 2, 3]}},
    {"kind": "payload", "payload": {"values": [1, 2]}},
]  # fmt: skip


def test_whole_fills(document: Document, recorded: Recorded) -> None:
    def filled(dtype: str, fill: dict[str, JSON]) -> str:
        try:
            payload = fill_payload(document, dtype, (3,), fill)
        except EditError as error:
            return f"! {error}"
        assert isinstance(payload, bytes)
        return payload.hex()

    made = {
        dtype: "\n".join(f"{json.dumps(fill)}: {filled(dtype, fill)}" for fill in fills)
        for dtype, fills in {**dict.fromkeys(DTYPES, FILLS), "float32": [*FILLS, *WRONG]}.items()
    }
    recorded("fills", made)


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
