"""Sizes with names, held against the same arithmetic with numbers."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dld_tui.core.model.shapes.rules.movement import sliced
from dld_tui.core.model.shapes.size import (
    UNKNOWN,
    Polynomial,
    Size,
    add_up,
    at_least,
    byte_count,
    count_text,
    equal,
    maximum,
    minimum,
    product,
    rounded,
    size_at,
    size_of,
    size_text,
    symbol,
    value_at,
)

N, S = symbol("N"), symbol("S")
SIZES = st.integers(0, 9)
_NUMBERS = st.integers(-4, 6)
_LEAVES: st.SearchStrategy[Size] = st.one_of(_NUMBERS, st.sampled_from([N, S]))


def evaluated(size: Size, n: int, s: int) -> Any:
    return value_at(size, {"N": n, "S": s}.__getitem__)


@given(st.data(), SIZES, SIZES)
def test_computing_with_names_is_computing_with_numbers(data: Any, n: int, s: int) -> None:
    tree = st.recursive(
        st.tuples(st.just("leaf"), _LEAVES),
        lambda kids: st.tuples(st.sampled_from("+-*/<>"), kids, kids),
        max_leaves=6,
    )
    drawn = data.draw(tree)

    def compute(node: Any, leaf: Callable[[Size], Size]) -> Size:
        if node[0] == "leaf":
            return leaf(node[1])
        first, second = compute(node[1], leaf), compute(node[2], leaf)
        if node[0] == "/":
            return UNKNOWN if first is UNKNOWN else first // 3
        return {
            "+": lambda: first + second, "-": lambda: first - second,
            "*": lambda: first * second, "<": lambda: minimum(first, second),
            ">": lambda: maximum(first, second),
        }[node[0]]()  # fmt: skip

    symbolic = compute(drawn, lambda leaf: leaf)
    numeric = compute(drawn, lambda leaf: evaluated(leaf, n, s))
    assert symbolic is UNKNOWN or evaluated(symbolic, n, s) == numeric


@given(SIZES, SIZES, _NUMBERS, _NUMBERS, _NUMBERS)
def test_a_comparison_that_is_decided_holds(n: int, s: int, a: int, b: int, c: int) -> None:
    first, second = a * N + b, c * S + 1
    one, two = evaluated(first, n, s), evaluated(second, n, s)
    assert equal(first, second) in (None, one == two)
    assert at_least(first, second) in (None, one >= two)


def test_what_may_be_either_is_not_decided() -> None:
    sizes = [*itertools.product(range(1, 9), repeat=2)]
    for a, b, c in itertools.product(range(-2, 4), repeat=3):
        first, second = a * N + b, c * S + 1
        pairs = [(evaluated(first, n, s), evaluated(second, n, s)) for n, s in sizes]
        assert equal(first, second) is None or {one == two for one, two in pairs} == {
            equal(first, second)
        }
        assert at_least(first, second) is None or {one >= two for one, two in pairs} == {
            at_least(first, second)
        }


@given(SIZES, st.integers(-12, 12), st.integers(-12, 12), st.sampled_from([1, 2, 3, -1, -2]))
def test_a_slice_takes_as_many_as_python(n: int, begin: int, end: int, step: int) -> None:
    actual = len(range(n)[begin:end:step])
    if step < 0 and (begin < -n or end < -n):
        return  # which python takes for another end than onnx does
    assert sliced(n, begin, end, step) == actual
    assert evaluated(sliced(N, begin, end, step), n, 1) == actual


def test_what_is_divisible_stays_a_polynomial() -> None:
    heads = 12 * N * S * 64
    assert heads // (12 * N) == 64 * S
    assert (N + S) * 64 // (N + S) == 64
    assert (2 * N + 1) // 2 == N
    assert (4 * N + 2 * S) // 4 == N + (2 * S) // 4
    assert str((N + 1) // 2) == "floor((N + 1)/2)"
    assert evaluated((N + 1) // 2, 4, 0) == 2
    assert ((N + 1) // 2) * 8 // 8 == (N + 1) // 2
    assert rounded(N * 0.5, "Floor") == N // 2
    assert rounded(N * 2.0, "Floor") == 2 * N


def test_what_is_not_known_stays_unknown() -> None:
    assert UNKNOWN + 1 is UNKNOWN
    assert N * UNKNOWN is UNKNOWN
    assert UNKNOWN // N is UNKNOWN
    assert product((N, UNKNOWN)) is UNKNOWN
    assert product((UNKNOWN, 0)) == 0
    assert maximum(UNKNOWN, 1) is UNKNOWN
    assert equal(UNKNOWN, 1) is None


def test_names_of_functions_of_sizes() -> None:
    size = (N + 1) // 2 * S
    assert isinstance(size, Polynomial)
    assert size.names == {"N", "S"}


@pytest.mark.parametrize(
    ("dim", "size"),
    [
        (onnx.TensorShapeProto.Dimension(dim_value=4), 4),
        (onnx.TensorShapeProto.Dimension(dim_value=0), 0),
        (onnx.TensorShapeProto.Dimension(dim_value=-1), UNKNOWN),
        (onnx.TensorShapeProto.Dimension(dim_param="N"), N),
        (onnx.TensorShapeProto.Dimension(dim_param=""), UNKNOWN),
        (onnx.TensorShapeProto.Dimension(), UNKNOWN),
        (-1, UNKNOWN), (None, UNKNOWN), ("", UNKNOWN), ("N", N), (0, 0), (7, 7),
    ],
)  # fmt: skip
def test_the_size_of_a_dimension(dim: Any, size: Size) -> None:
    assert size_of(dim) == size


N, S = symbol("N"), symbol("S")


def test_products_and_sums_are_read_by_people() -> None:
    count = 1024 * N * S + 3 * N * N + 5
    assert str(count) == "3·N² + 1024·N·S + 5"
    assert count_text(count) == "3·N² + 1.02 k·N·S + 5"
    assert str(symbol("2*n") * 2) == "2·(2*n)"
    assert count_text(12_345) == "12.3 k"
    assert count_text(count + S) == "3·N² + 1.02 k·N·S + S + 1 more term"
    assert (size_text(4 * N), size_text(4 * N + 2)) == ("4·N B", "(4·N + 2) B")
    assert N * 0 == 0
    assert N + (-1) * N == 0


@given(
    st.lists(st.tuples(st.sampled_from([1, N, S, N * S, N * N]), st.integers(-9, 9)), max_size=6),
    st.integers(1, 50),
)
def test_a_sum_has_the_value_of_its_parts(parts: list[tuple[int, int]], at: int) -> None:
    counts = [one * factor for one, factor in parts]
    values = [size_at(count, at) for count in counts]
    assert size_at(add_up(counts), at) == sum(values)
    whole = add_up(counts) * (N + 2)
    assert size_at(whole, at) == sum(values) * (at + 2)
    assert isinstance(whole, (int, Polynomial))


def test_bytes_of_less_than_eight_bits() -> None:
    assert byte_count(3, 4) == 2
    assert byte_count(6 * N, 4) == 3 * N
