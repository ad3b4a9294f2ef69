"""Fuzzy search: what is found and what comes first."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dld_tui.core.text.fuzzy import FuzzyIndex, score

OPERATORS = ("Conv", "ConvInteger", "ConvTranspose", "LeakyRelu", "Relu", "PRelu",
             "ReduceL1", "BatchNormalization", "LayerNormalization", "MatMul", "Gemm",
             "MatMulInteger")  # fmt: skip


def found(query: str, texts: tuple[str, ...] = OPERATORS) -> list[str]:
    return [texts[at] for at in FuzzyIndex(texts).search(query)]


def test_an_empty_query_keeps_the_order() -> None:
    assert found("") == list(OPERATORS)
    assert found("   ") == list(OPERATORS)


@pytest.mark.parametrize(
    ("query", "text", "points"),
    [  # A letter is 16, one that begins a word 8 more (twice for the first), in a row 4 more.
        ("", "", 0), ("a", "b", None), ("ab", "ba", None), ("ac", "ab", None), ("b c", "ab", None),
        ("a", "xa", 16), ("a", "x a", 32), ("a", "Xa", 16), ("A", "xA", 30),
        ("ab", "xaxb", 29), ("ab", "xaxxxb", 27), ("ab", "xAb", 53), ("ab", "xAB", 53),
        ("ab", "x/a/b", 53), ("ab", "x_a b", 53), ("ab", "b/ab", 56), ("ba", "aabbaa", 36),
        ("1", "x1", 30), ("2", "x12", 16), ("12", "x12", 53), ("12", "/12", 56),
        ("_b", "xa_b", 56), ("/b", "x//b", 53), ("a/bc", "xa/bc", 88), ("qcd", "xqCd", 59),
        ("conv", "QConv", 99),
        ("abcd", "xabxabcxabcd", 76), ("aab", "xaaab", 56),
        # 1000 for a text that begins so, 200 more where a word ends there.
        ("a", "a", 1232), ("ab", "ab", 1256), ("ab", "abc", 1056), ("ab", "ab_c", 1256),
        ("ab", "ab2", 1056),
        ("ab", "ab_", 1256), ("ab", "a1b", 45), ("ab", "a/b", 53), ("aab", "aaab", 69),
        ("aa", "a_aa", 56), ("aB", "aXBab", 52), ("ab", "a_bab", 53), ("b a", "ab", 48),
        ("b a", "b a", 1264), ("abc", "ab/abc", 80), ("a/b", "a/xa/b", 75), ("ii", "iİi", 1245),
        ("end", "x" * 157 + "end", 56), ("end", "x" * 158 + "end", 0),
        ("x y", "x" * 200 + "y", 1032),
    ],
)  # fmt: skip
def test_points_of_a_text(query: str, text: str, points: int | None) -> None:
    assert score(query, text) == points
    places = list(FuzzyIndex([text, "q"]).search(query))
    assert places == ([0, 1] if not query else [] if points is None else [0])


def test_added_texts_are_found_by_the_same_query() -> None:
    index = FuzzyIndex(["Relu"])
    assert list(index.search("relu")) == [0]
    index.extend(["LeakyRelu"])
    assert len(index) == 2
    assert list(index.search("relu")) == [0, 1]


def test_of_many_matches_only_those_that_can_come_first_are_scored() -> None:
    texts = [f"layer{number}/conv" for number in range(297)] + ["c_o_n_v", "conv_last", "a conv"]
    index = FuzzyIndex(texts)
    scored = [298, 299, *range(297), 297]
    assert index.search("conv") == scored
    index.extend(["C O N V", "my conv", "conv2"])
    assert index.search("conv") == [298, 302, 299, *range(297), 301, 297, 300]
    index.extend(["convolve", "cov"])
    assert index.search("CONV")[:4] == [298, 302, 303, 0]
    assert index.search("cov")[:2] == [304, 297]
    assert index.search("conv 296") == [296]


def test_letters_far_behind_in_a_long_name_are_found() -> None:
    assert list(FuzzyIndex(["x" * 5000 + "end", "end", "y" * 400 + "end"]).search("end")) == [
        1,
        2,
        0,
    ]


@given(st.lists(st.text(max_size=12), max_size=30), st.text(max_size=5))
def test_found_is_what_has_the_letters_in_order(texts: list[str], query: str) -> None:
    index = FuzzyIndex(texts)
    places = list(index.search(query))
    assert len(places) == len(set(places))
    assert set(places) == {at for at, text in enumerate(texts) if score(query, text) is not None}
    # The same when it is typed letter by letter.
    typed = FuzzyIndex(texts)
    for end in range(len(query) + 1):
        places = list(typed.search(query[:end]))
    assert places == list(FuzzyIndex(texts).search(query))
