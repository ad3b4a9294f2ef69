"""Sizes with names, held against the same arithmetic with numbers."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from hypothesis import given
from hypothesis import strategies as st

from dld_tui.core.model.shapes.rules.movement import sliced
from dld_tui.core.model.shapes.size import (
    UNKNOWN,
    Polynomial,
    Size,
    add_up,
    at_least,
    both,
    byte_count,
    chosen,
    common,
    count_text,
    either,
    equal,
    maximum,
    minimum,
    name_of,
    names_in,
    number_of,
    product,
    rounded,
    size_at,
    size_of,
    size_text,
    sizes_text,
    symbol,
    truncated,
    value_at,
)
from tests.support.recorded import Recorded

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


N, S = symbol("N"), symbol("S")


SAMPLES: dict[str, Size] = {
    "0": 0, "1": 1, "3": 3, "-2": -2, "end": 2**31 - 1, "half": 0.5, "N": N, "2N": 2 * N,
    "N+3": N + 3, "-S": -S, "-N-1": -N - 1, "mix": 3 * N * N + 1024 * N * S + S + 5, "NS": N * S,
    "floor": N // 2, "N/2": N * 0.5, "named": symbol("2*n"), "?": UNKNOWN,
    "differ": np.array([4, 6]), "same": np.array([3, 3]),
}  # fmt: skip
PAIRED: dict[str, Callable[[Size, Size], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv,
    "%": operator.mod, "/": operator.truediv, "==": equal, ">=": at_least,
    "**": lambda a, b: a ** (5 if b == 2**31 - 1 else b),
    "max": maximum, "min": minimum, "product": lambda a, b: product((a, b)),
    "div": truncated, "chosen": lambda a, b: chosen(at_least(a, 3), b, 1),
}  # fmt: skip
SINGLE: dict[str, Callable[[Size], Any]] = {
    "neg": operator.neg, "abs": abs, "name": name_of, "names": lambda size: sorted(names_in(size)),
    "at 4": lambda size: size_at(size, 4), "common": common, "number": number_of,
    "floor": lambda size: rounded(size, "Floor"), "ceil": lambda size: rounded(size, "Ceil"),
    "4 bits": lambda size: byte_count(size, 4), "12 bits": lambda size: byte_count(size, 12),
    "count": count_text, "size": size_text, "text": lambda size: sizes_text([size, 1]),
}  # fmt: skip
DIMS: tuple[Any, ...] = (
    *(onnx.TensorShapeProto.Dimension(dim_value=value) for value in (4, 0, -1)),
    *(onnx.TensorShapeProto.Dimension(dim_param=name) for name in ("N", "")),
    onnx.TensorShapeProto.Dimension(), -1, None, "", "N", 0, 7,
)  # fmt: skip


def told(compute: Callable[..., Any], *sizes: Size) -> str:
    """Return what is computed of sizes as text; a dash where that is an error."""
    try:
        with np.errstate(all="ignore"):
            found = compute(*sizes)
    except (TypeError, ZeroDivisionError, AttributeError, OverflowError, ValueError):
        return "-"
    if found is UNKNOWN:
        return "?"
    return f"{found:.6g}" if isinstance(found, float) else str(found)


def test_what_is_computed_of_sizes(recorded: Recorded) -> None:
    made = {
        "sizes": "\n".join(f"{name}: {size!r}" for name, size in SAMPLES.items()),
        "dimensions": ", ".join(told(size_of, dim) for dim in DIMS),
    }
    for sign, single in SINGLE.items():
        made[sign] = "\n".join(f"{name}: {told(single, size)}" for name, size in SAMPLES.items())
    for sign, paired in PAIRED.items():
        lines = []
        for name, size in SAMPLES.items():
            row = (told(paired, size, other) for other in SAMPLES.values())
            lines.append(f"{name}: {' | '.join(row)}")
        made[sign] = "\n".join(lines)
    truths = (None, False, True)
    made["both, either"] = "\n".join(
        f"{a} {b}: {both(a, b)} {either(a, b)}" for a in truths for b in truths
    )
    made["none"] = sizes_text(None)
    recorded("sizes", made)


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
