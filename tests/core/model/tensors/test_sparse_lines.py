"""Sparse tensors as lines of text."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from dld_tui.core.errors import DldError
from dld_tui.core.model.document import Document
from dld_tui.core.model.tensors.sparse import read_sparse_lines, sparse_elements, sparse_lines
from tests.support import models


def test_a_tensor_without_elements_has_one_line() -> None:
    empty = onnx.SparseTensorProto(
        dims=[2, 3],
        values=onnx.TensorProto(data_type=onnx.TensorProto.INT8, dims=[0], raw_data=b""),
        indices=onnx.TensorProto(data_type=onnx.TensorProto.INT64, dims=[0], raw_data=b""),
    )
    document = Document(models.parse(models.CHAIN))
    assert sparse_lines(document, empty) == "int8 [2, 3]"
    places, values = sparse_elements(document, empty)
    assert (places.tolist(), values.tolist(), values.dtype) == ([], [], np.int8)


@pytest.mark.parametrize(
    ("dims", "indices", "told"),
    [
        ([2, 3], [[0, 1], [1, 2]], "0, 1 = 5\n1, 2 = 7"), ([2, 3], [1, 5], "0, 1 = 5\n1, 2 = 7"),
        ([6], [1, 5], "1 = 5\n5 = 7"), ([6], [[0], [5]], "0 = 5\n5 = 7"),
        ([1, 2, 3], [[0, 0, 2], [0, 1, 0]], "0, 0, 2 = 5\n0, 1, 0 = 7"),
        ([2, 3], [[1, 0], [0, 1]], None), ([2, 3], [3, 3], None), ([2, 3], [-1, 2], None),
        ([2, 3], [[0, 1], [1, 3]], None), ([2, 3], [[0, 1], [1, -1]], None), ([6], [1, 6], None),
        ([2, 3], [1, 2, 3], None), ([2, 3], [[0], [1]], None),
    ],
)  # fmt: skip
def test_elements_are_told_at_their_places(dims: list[int], indices: Any, told: str | None) -> None:
    places = numpy_helper.from_array(np.array(indices, np.int64))
    values = numpy_helper.from_array(np.array([5, 7], np.int8), "s")
    record = onnx.SparseTensorProto(dims=dims, values=values, indices=places)
    document = Document(models.parse(models.CHAIN))
    if told is not None:
        assert sparse_lines(document, record).partition("\n")[2] == told
        return
    with pytest.raises(DldError, match=r"the indices of 's' (do not fit|are not in order)"):
        sparse_lines(document, record)


def test_blanks_and_brackets_do_not_matter() -> None:
    assert read_sparse_lines("float32[2,3]\n\n [0, 1]=nan\n(1 2) = -2.5 ") == {
        "dtype": "float32", "dims": [2, 3], "indices": [[0, 1], [1, 2]], "values": ["nan", -2.5],
    }  # fmt: skip
    assert read_sparse_lines("bool [2]\n1 = true")["values"] == [True]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "first line"), ("1 = 2", "first line"), ("float33 [2]", "float33"),
        ("int8 [2]\n1 = 300", "line 2"), ("int8 [2]\n\n2 = 1", "line 3: index 2"),
        ("int8 [2]\n1, 1 = 1", "line 2: an element is 1"), ("int8 [2]\n1", "line 2"),
    ],
)  # fmt: skip
def test_a_malformed_line_is_named(text: str, why: str) -> None:
    with pytest.raises(DldError, match=why):
        read_sparse_lines(text)
