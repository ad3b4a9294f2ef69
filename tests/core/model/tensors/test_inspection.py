"""The window reads any element of any tensor, and only what is asked for."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import numpy_helper

from dld_tui.core.errors import CancelledError, EditError, InputError
from dld_tui.core.model.document import Document
from dld_tui.core.model.tensors.elements import Array, encode_elements, require_dtype
from dld_tui.core.model.tensors.inspection import TensorWindow, tensor_histogram
from dld_tui.core.model.tensors.tensor import Tensor, tensor_statistics
from tests.support import models
from tests.support.elements import tensor_of
from tests.support.sessions import tensor_in

T = onnx.TensorProto


def window_of(array: Array) -> TensorWindow:
    return TensorWindow(Tensor(numpy_helper.from_array(array), None))


@settings(max_examples=80)
@given(data=st.data(), dims=st.lists(st.integers(1, 5), min_size=1, max_size=4))
def test_any_plane_is_that_of_numpy(data: st.DataObject, dims: list[int]) -> None:
    array: Array = np.arange(int(np.prod(dims))).reshape(dims)
    window = window_of(array)
    axes = st.sampled_from([None, *range(len(dims))])
    rows, columns = data.draw(axes), data.draw(axes)
    if rows == columns:
        if rows is not None:
            with pytest.raises(IndexError):
                window.plane(rows, columns)
        return
    fixed = [data.draw(st.integers(0, size - 1)) for size in dims]
    plane = window.plane(rows, columns, fixed)
    place = tuple(slice(None) if i in (rows, columns) else at for i, at in enumerate(fixed))
    expected: Any = array[place]
    if rows is not None and columns is not None and rows > columns:
        expected = expected.T
    expected = expected.reshape(window.size(plane))
    assert np.array_equal(window.cells(plane, 0, 99), expected)
    row = data.draw(st.integers(0, expected.shape[0] - 1))
    column = data.draw(st.integers(0, expected.shape[1] - 1))
    part = window.cells(plane, row, 2, column, 2)
    assert np.array_equal(part, expected[row : row + 2, column : column + 2])
    index = window.index(plane, row, column)
    assert window.value(index) == expected[row, column]
    assert np.array_equal(window.rows(plane, row, 1)[0], expected[row])


def test_scalars_lists_and_empty_tensors() -> None:
    scalar = window_of(np.array(7.5, np.float32))
    assert scalar.size(scalar.plane()) == (1, 1)
    assert scalar.cells(scalar.plane(), 0, 1).tolist() == [[7.5]]
    column = window_of(np.arange(3))
    assert column.size(column.plane()) == (3, 1)
    assert column.cells(column.plane(), 1, 5).tolist() == [[1], [2]]
    empty = window_of(np.zeros((3, 0), np.int8))
    assert empty.size(empty.plane()) == (0, 0)
    assert empty.cells(empty.plane(), 0, 9).shape == (0, 0)
    for wrong in ((5, None, ()), (0, 1, (0,)), (0, None, (0, 0))):
        with pytest.raises(IndexError):
            column.plane(*wrong)
    with pytest.raises(IndexError):
        column.value(3)
    with pytest.raises(IndexError, match="dimension 0 has no index 9"):
        window_of(np.zeros((2, 3, 4))).plane(1, 2, (9, 0, 0))
    for dims in ((1, 3, 4), (0, 3, 4)):
        assert window_of(np.zeros(dims)).plane(1, 2, (0, 2, 3)).fixed == (0, 2, 3)
        with pytest.raises(IndexError, match="dimension 0 has no index 1"):
            window_of(np.zeros(dims)).plane(1, 2, (1, 0, 0))


def test_what_lies_far_apart_is_read_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dld_tui.core.model.tensors.inspection._SPAN", 12)
    array = np.arange(60).reshape(3, 4, 5)
    window = window_of(array)
    assert window.cells(window.plane(0, 1, (0, 0, 2)), 0, 9).tolist() == array[:, :, 2].tolist()
    assert window.cells(window.plane(1, 0, (0, 0, 4)), 1, 2).tolist() == array[:, 1:3, 4].T.tolist()


FIELDS = [
    ("int32_data", T.INT4, [0x21, 0xF8, 0x07], [1, 2, -8, -1, 7]),
    ("int32_data", T.UINT4, [0x21, 0xF8, 0x07], [1, 2, 8, 15, 7]),
    ("int32_data", T.FLOAT16, [0x3C00, 0xC000, 0, 1, 2], [1, -2, 0, 2.0**-24, 2.0**-23]),
    ("int32_data", T.BFLOAT16, [0x3F80, 0xC000, 0, 0x4040, 0x7F80], [1, -2, 0, 3, np.inf]),
    ("int32_data", T.FLOAT8E4M3FN, [0x38, 0xB8, 0, 0x7E, 1], [1, -1, 0, 448, 2.0**-9]),
    ("int32_data", T.INT8, [-1, 1, 2, 3, 4], [-1, 1, 2, 3, 4]),
    ("int32_data", T.BOOL, [1, 0, 1, 0, 1], [1, 0, 1, 0, 1]),
    ("int64_data", T.INT64, [-(2**63), 1, 2, 3, 4], [-(2**63), 1, 2, 3, 4]),
    ("uint64_data", T.UINT64, [2**64 - 1, 1, 2, 3, 4], [2**64 - 1, 1, 2, 3, 4]),
    ("float_data", T.FLOAT, [0.5, 1, 2, 3, 4], [0.5, 1, 2, 3, 4]),
    ("double_data", T.DOUBLE, [0.5, 1, 2, 3, 4], [0.5, 1, 2, 3, 4]),
]


@pytest.mark.parametrize(("field", "kind", "stored", "expected"), FIELDS)
@pytest.mark.parametrize("times", [1, 5001])
def test_whatever_field_holds_the_values(
    tmp_path: Path, field: str, kind: int, stored: list[float], expected: list[float], times: int
) -> None:
    """Large ones are cut out of the file, and decoded once."""
    count = len(expected) * times
    if len(stored) != len(expected):  # two a byte: an even number repeats
        stored, expected = [*stored, 0x43], [*expected, 0, 3, 4]
        stored[2:] = [0x07, 0x43]
        count = 8 * times
    proto = onnx.TensorProto(name="t", data_type=kind, dims=[count])
    getattr(proto, field).extend(stored * times)
    model = models.parse(models.CHAIN)
    model.graph.initializer.append(proto)
    onnx.save(model, tmp_path / "m.onnx")
    document = Document.open(tmp_path / "m.onnx")
    tensor = tensor_in(document, "t")
    window = TensorWindow(tensor)
    last = len(expected) * (times - 1)
    found = window.values(last, len(expected)).astype(np.longdouble)
    assert found.tolist() == [np.longdouble(value) for value in expected]
    assert float(window.value(1)) == expected[1]
    if times > 1 and field in ("int32_data", "int64_data", "uint64_data"):
        assert len(document.fixed_forms) == 1
    document.apply("set_elements", scope=[], tensor={"initializer": "t"}, start=last, values=[1])
    changed = tensor_in(document, "t")
    assert [float(v) for v in changed.read(last, 3)] == [1.0, *map(float, expected[1:3])]
    document.close()


def test_cells_are_written_and_typed() -> None:
    half = TensorWindow(tensor_of(np.array([0.1, 1, np.nan], np.float16), "float16"))
    assert [half.text(value) for value in half.values(0, 3)] == ["0.1", "1.0", "nan"]
    typed = half.parse("0.10001")
    assert (typed.text, typed.rounded) == ("0.10004", True)
    assert half.parse("1e4").rounded is False
    assert half.parse("inf").value == "inf"
    with pytest.raises(EditError, match="float16 holds at most 65504"):
        half.parse("1e9")
    with pytest.raises(EditError, match="not a whole number"):
        window_of(np.zeros(1, np.int8)).parse("1.5")
    four = TensorWindow(tensor_of(np.array([1], np.int8), "int4"))
    assert (four.parse("0x7").value, four.parse("0x7").rounded) == (7, False)
    with pytest.raises(EditError, match="int4 holds -8 to 7"):
        four.parse("8")
    strings: Any = [b"a\xff", b"b"]
    text = TensorWindow(Tensor(onnx.helper.make_tensor("s", T.STRING, [2], strings), None))
    assert text.text(text.value(0)) == r"'a\xff'"
    assert text.parse(r"'a\xff'").value == "a\udcff"
    assert text.parse("it's").value == "it's"


def test_what_cannot_be_read_is_told() -> None:
    broken = onnx.TensorProto(data_type=T.FLOAT, dims=[3], raw_data=b"1234")
    with pytest.raises(InputError, match="raw_data has 4 B"):
        TensorWindow(Tensor(broken, None))


@given(values=st.lists(st.floats(width=32), max_size=50), bins=st.integers(1, 20))
def test_everything_is_counted_once(values: list[float], bins: int) -> None:
    array = np.array(values, np.float32)
    histogram = tensor_histogram(tensor_of(array, "float32"), bins)
    if histogram is None:
        assert not np.isfinite(array).any()
        return
    assert len(histogram.counts) == bins
    odd = histogram.nans + histogram.negative_infinities + histogram.positive_infinities
    assert sum(histogram.counts) + odd == len(values)
    finite = array[np.isfinite(array)]
    assert histogram.low <= finite.min() <= finite.max() <= histogram.high


def test_bins_are_those_of_numpy() -> None:
    array = np.random.default_rng(0).normal(size=700_000)
    tensor = tensor_of(array, "float64")
    histogram = tensor_histogram(tensor, 50)
    assert histogram is not None
    expected, _ = np.histogram(array, 50)
    assert np.abs(np.array(histogram.counts) - expected).sum() <= 4, "but for rounding at edges"


def test_a_chosen_range_and_known_statistics() -> None:
    tensor = tensor_of(
        np.array([1, 2, 3, 4, 9, math.nan, *[math.inf] * 2, *[-math.inf] * 3]), "float64"
    )
    known = tensor_statistics(tensor)
    done: list[Any] = []
    histogram = tensor_histogram(
        tensor, 2, low=2, high=4, statistics=known, progress=lambda *step: done.append(step)
    )
    assert histogram is not None
    assert (histogram.counts, histogram.below, histogram.above) == ((1, 2), 1, 1)
    odd = histogram.nans, histogram.negative_infinities, histogram.positive_infinities
    assert (odd, done) == ((1, 3, 2), [(11, 11)])
    with pytest.raises(CancelledError):
        tensor_histogram(tensor, cancelled=lambda: True)


def test_the_widest_range_and_one_value() -> None:
    wide = tensor_histogram(tensor_of(np.array([-1.7e308, 0, 1.7e308]), "float64"), 3)
    assert wide is not None
    assert wide.counts == (1, 1, 1)
    same = tensor_histogram(tensor_of(np.array([5, 5], np.int8), "int4"), 4)
    assert same is not None
    assert same.counts == (2, 0, 0, 0)
    assert encode_elements(np.array([5, 5], np.int8), "int4") == b"\x55"
    assert require_dtype("int4")
    assert tensor_histogram(tensor_of(np.array([1 + 1j]), "complex128")) is None
