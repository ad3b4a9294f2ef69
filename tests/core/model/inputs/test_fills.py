from __future__ import annotations

import numpy as np
import pytest

from dld_tui.core.errors import ActivityError
from dld_tui.core.model.inputs import fills
from dld_tui.core.model.inputs.fills import random_inputs
from dld_tui.core.model.inputs.shapes import InputSpec

RANGES = dict.fromkeys(("int8", "uint8"), (0, 127)) | dict.fromkeys(
    ("float16", "float32", "float64", "bfloat16", "float8e4m3fn", "float8e5m2", "int16", "uint16",
     "int32", "uint32", "int64", "uint64", "bool"), (0, 1))  # fmt: skip


@pytest.mark.parametrize("dtype", RANGES)
def test_every_type_has_values_in_its_range(dtype: str) -> None:
    array = random_inputs([InputSpec("x", dtype, ("N",))], {"x": (1000,)}, 0)["x"]

    low, high = RANGES[dtype]
    assert array.dtype.name == {"float8e4m3fn": "float8_e4m3fn", "float8e5m2": "float8_e5m2"}.get(
        dtype, dtype
    )
    assert array.shape == (1000,)
    numbers = array.astype(np.float64)
    assert low <= numbers.min() < numbers.max() <= high


def test_strings_are_words() -> None:
    array = random_inputs([InputSpec("x", "string", (2, 3))], {"x": (2, 3)}, 0)["x"]

    assert array.dtype == object
    assert array.shape == (2, 3)
    assert all(isinstance(word, str) and word for word in array.flat)


def test_complex_numbers() -> None:
    array = random_inputs([InputSpec("x", "complex64", (4,))], {"x": (4,)}, 0)["x"]

    assert array.dtype == np.complex64
    assert array.imag.max() > 0


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "uint8", "bfloat16", "float64"])
def test_scalars_and_empty_arrays_keep_their_shape(dtype: str) -> None:
    specs = [InputSpec("s", dtype, ()), InputSpec("e", dtype, (0, 3))]
    arrays = random_inputs(specs, {"s": (), "e": (0, 3)}, 0)

    assert isinstance(arrays["s"], np.ndarray)
    assert (arrays["s"].shape, arrays["e"].shape) == ((), (0, 3))


def test_the_seed_decides() -> None:
    specs = [InputSpec("x", "float32", (8,)), InputSpec("y", "float32", (8,))]
    shapes = {"x": (8,), "y": (8,)}
    first, again, other = (random_inputs(specs, shapes, seed) for seed in (1, 1, 2))

    assert np.array_equal(first["x"], again["x"])
    assert not np.array_equal(first["x"], other["x"])
    assert not np.array_equal(first["x"], first["y"])


def test_a_sequence_is_asked_for_as_data() -> None:
    with pytest.raises(
        ActivityError, match=r"s sequence\(float32\[…\]\) is not a tensor.*--inputs"
    ):
        random_inputs([InputSpec("s", "float32", None, "sequence")], {"s": ()}, 0)


def test_a_type_that_cannot_be_made() -> None:
    with pytest.raises(ActivityError, match="inputs of type float4e2m1 cannot be generated"):
        random_inputs([InputSpec("x", "float4e2m1", (1,))], {"x": (1,)}, 0)


def test_inputs_take_no_more_than_half_of_the_free_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fills, "free_memory", lambda: 16_000)
    specs = [InputSpec(name, "float32", (None,)) for name in "ab"]
    shapes = {"a": (1000,), "b": (1000,)}
    assert len(random_inputs(specs, shapes, 0)) == 2
    with pytest.raises(ActivityError, match=r"up to b float32\[\?\] take 8 kB"):
        random_inputs(specs, {**shapes, "b": (1001,)}, 0)
