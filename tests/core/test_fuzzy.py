"""Fuzzy search: what is found and what comes first."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dld_tui.core.text.fuzzy import FuzzyIndex, score
from tests.support.known import known

OPERATORS = ("Conv", "ConvInteger", "ConvTranspose", "LeakyRelu", "Relu", "PRelu",
             "ReduceL1", "BatchNormalization", "LayerNormalization", "MatMul", "Gemm",
             "MatMulInteger")  # fmt: skip


def found(query: str, texts: tuple[str, ...] = OPERATORS) -> list[str]:
    return [texts[at] for at in FuzzyIndex(texts).search(query)]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("conv", ["Conv", "ConvInteger", "ConvTranspose"]),
        ("relu", ["Relu", "PRelu", "LeakyRelu"]),
        ("bn", ["BatchNormalization"]),
        ("mm", ["MatMul", "MatMulInteger"]),
        ("ln", ["LayerNormalization"]),
        ("norm layer", ["LayerNormalization"]),
        ("CONVT", ["ConvTranspose"]),
        ("xyz", []),
    ],
)
def test_the_best_comes_first(query: str, first: list[str]) -> None:
    assert found(query)[: len(first)] == first
    if not first:
        assert found(query) == []


def test_an_empty_query_keeps_the_order() -> None:
    assert found("") == list(OPERATORS)
    assert found("   ") == list(OPERATORS)


def test_letters_at_word_beginnings_and_in_a_row_score_more() -> None:
    def of(text: str, query: str = "fb") -> int:
        points = known(score(query, text))
        return points

    assert of("xFooBar") > of("xfoobar")
    assert of("x/fb") > of("x/fooooob")
    assert score("fb", "bf") is None
    alone, two, three = (of("xabc", word) for word in ("a", "ab", "abc"))
    assert three - two == two - alone, "each letter in a row adds the same"
    apart = (of("xFooBar"), of("x_foo_bar"), of("x/foo/bar"), of("x foo bar"))
    assert len({*apart[1:]}) == 1, "a word begins after whatever is no letter"
    assert of("a_b", "_b") == of("a/b", "/b") > of("__b", "_b")


def test_a_longer_query_narrows_and_a_shorter_one_widens() -> None:
    index = FuzzyIndex(OPERATORS)
    wide = list(index.search("re"))
    narrow = list(index.search("relu"))
    assert set(narrow) < set(wide)
    assert list(index.search("re")) == wide
    assert list(index.search("")) == list(range(len(OPERATORS)))


def test_added_texts_are_found_by_the_same_query() -> None:
    index = FuzzyIndex(["Relu"])
    assert list(index.search("relu")) == [0]
    index.extend(["LeakyRelu"])
    assert len(index) == 2
    assert list(index.search("relu")) == [0, 1]


def test_of_many_matches_those_that_begin_so_come_first() -> None:
    texts = [f"layer{number}/conv" for number in range(2000)] + ["conv_last", "a conv"]
    assert FuzzyIndex(texts).search("conv")[0] == 2000
    assert sorted(FuzzyIndex(texts).search("conv")) == list(range(2002))


def test_letters_far_behind_in_a_long_name_are_found() -> None:
    assert score("end", "x" * 5000 + "end") == 0
    assert list(FuzzyIndex(["x" * 5000 + "end", "end"]).search("end")) == [1, 0]


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
