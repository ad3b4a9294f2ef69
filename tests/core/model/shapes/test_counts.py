"""Counts with symbolic dimensions, against evaluating them with numbers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dld_tui.core.model.shapes.size import (
    Polynomial,
    add_up,
    byte_count,
    count_text,
    size_at,
    size_text,
    symbol,
)

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
