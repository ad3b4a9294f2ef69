"""Packed varints, cut anywhere, become numbers of fixed width."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dld_tui.core.errors import InputError
from dld_tui.core.files.wire import fixed_width


@given(
    values=st.lists(st.integers(-(2**63), 2**63 - 1), max_size=40),
    cut=st.integers(1, 30),
)
def test_numbers_are_those_that_protobuf_wrote(values: list[int], cut: int) -> None:
    tensor = onnx.TensorProto(int64_data=values)
    packed = tensor.SerializeToString()[len(tensor.SerializeToString()) - _length(values) :]
    parts = [packed[at : at + cut] for at in range(0, len(packed), cut)]
    found = np.frombuffer(b"".join(fixed_width(parts, 8)), "<i8")
    assert found.tolist() == values
    small = np.frombuffer(b"".join(fixed_width(parts, 1)), "<u1")
    assert small.tolist() == [value & 0xFF for value in values]


def _length(values: list[int]) -> int:
    return sum(max(((value % 2**64).bit_length() + 6) // 7, 1) for value in values)


@pytest.mark.parametrize("data", [b"\x80", b"\x01\xff", b"\xff" * 20 + b"\x01", b"\xff" * 30])
def test_what_is_no_varint_is_refused(data: bytes) -> None:
    with pytest.raises(InputError, match="not a list of varints"):
        list(fixed_width([data], 4))
