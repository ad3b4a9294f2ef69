"""Tokens that go to other experts after a conversion, and those before them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np
import pytest

from dld_tui.backends.conversion.routing import (
    Router,
    Routes,
    comparable_routes,
    routers_of,
    token_shape,
)
from dld_tui.core.model.document import Document
from tests.support import models

TEXT = """<ir_version: 10, opset_import: ["" : 18, "com.microsoft" : 1]>
g (int64[batch, seq] input_ids, float[batch, 1, past, 2] past_key, float[batch, 1, new, 2] key,
   float[t, 4] a, float[t, 4] b, int64[1] open)
   => (float[batch, seq, 2] logits, float[batch, 1, total, 2] present_key)
<int64[1] k = {2}, int64[2] both = {1, 2}, float[4] u = {1, 2, 3, 4}> {
  present_key = Concat <axis = 2> (past_key, key)
  c = com.microsoft.MoE <k = 3> (a, b, u, , u)
  d = com.microsoft.QMoE (a, c, u, u, , u)
  e = com.microsoft.MoE (a)
  stored, i1 = TopK (a, k)
  one = Constant <value = int64[1] {1}> ()
  made, i2 = TopK <axis = 1> (b, one)
  two = Constant <value = int64[2] {1, 2}> ()
  v3, i3 = TopK (stored, two)
  number = Constant <value_int = 1> ()
  v4, i4 = TopK (stored, number)
  v5, i5 = TopK (stored, both)
  v6, i6 = TopK (stored, open)
  v7, i7 = TopK <axis = 0> (stored, k)
  computed = Neg (one)
  v8, i8 = TopK (stored, computed)
  logits = own.Head (d)
}"""


@pytest.fixture
def decoder() -> Iterator[Document]:
    with closing(Document(models.parse(TEXT))) as document:
        yield document


def test_routers_are_mixtures_and_the_greatest_of_a_known_number(decoder: Document) -> None:
    assert routers_of(decoder) == [Router("b", 3), Router("c", 1), Router("a", 2), Router("b", 1)]


def test_tokens_are_those_of_a_decoder(decoder: Document) -> None:
    ids = np.zeros((2, 5), np.int64)
    assert token_shape(decoder, {"past_key": np.zeros((2, 1)), "input_ids": ids}) == (2, 5)
    assert token_shape(decoder, {"input_ids": ids[0]}) is None
    assert token_shape(decoder, {"input_ids": ids[None]}) is None
    assert token_shape(decoder, {"unknown": ids}) is None
    assert token_shape(decoder, {"a": np.zeros((2, 4), np.float32)}) is None
    with closing(Document(models.parse(models.TOKENS))) as other:
        assert token_shape(other, {"ids": ids}) is None, "it has no cache"


ROUTER = Router("scores", 2)
NEAR = np.tile(np.array([1, 1, 0.9999], np.float32), (2, 8, 1))


def moved(*places: tuple[int, int], to: float = 1.0001) -> np.ndarray[Any, Any]:
    scores: np.ndarray[Any, Any] = NEAR.copy()
    for row, place in places:
        scores[row, place, 2] = to
    return scores


@pytest.mark.parametrize(
    ("result", "first"),
    [
        (NEAR, None),
        (moved((1, 5)), [8, 5]),
        (moved((1, 5), (1, 6)), [8, 5]),
        (moved((0, 0), (1, 0)), None),  # there is nothing before them
        (moved((0, 4), (1, 4)), [4, 4]),
        (moved((0, 4), (1, 3)), None),  # seven tokens are too few
        (moved((1, 5), to=50), None),  # no near tie
        (moved((1, 5), to=np.nan), None),
        (NEAR[..., :2], None),  # as many scores as are taken
        (NEAR[:, :7], None),
        (NEAR.reshape(1, 16, 3), None),
    ],
)
def test_tokens_are_compared_before_the_first_that_goes_elsewhere(
    decoder: Document, result: np.ndarray[Any, Any], first: list[int] | None
) -> None:
    unknown, other = Router("unknown", 1), Router("absent", 1)
    original: dict[str, Any] = {"scores": NEAR, "unknown": None, "absent": NEAR}
    made = comparable_routes(
        decoder, [unknown, other, ROUTER], (2, 8), original, {"scores": result}, 20.0
    )
    assert made == (None if first is None else Routes(2, 8, first, {"present_key": 2}))


def test_the_first_of_several_routers_counts_and_scores_may_be_in_rows(decoder: Document) -> None:
    scores = {"few": NEAR[..., :2], "one": NEAR, "two": NEAR.reshape(16, 3), "three": NEAR}
    others = {"one": moved((0, 6)), "two": moved((0, 3), (1, 7)).reshape(16, 3),
              "three": moved((0, 5), (1, 6)), "few": NEAR[..., 1:]}  # fmt: skip
    routers = [Router(name, 2) for name in scores]
    made = comparable_routes(decoder, routers, (2, 8), scores, others, 20.0)
    assert made is not None
    assert made.first == [3, 6]
    assert comparable_routes(decoder, routers, (2, 9), scores, others, 20.0) is None
    exact = {"one": NEAR.astype(np.float64), "two": np.ones((2, 8, 3)) * np.inf}
    assert comparable_routes(decoder, routers, (2, 8), exact, others, 20.0) is not None


@pytest.mark.parametrize(
    ("name", "shape", "kept"),
    [
        ("logits", (2, 4, 3), [*range(3), *range(12, 21)]),
        ("logits", (2, 6, 1), [0, 1, 2, 6, 7, 8, 9, 10]),  # two were there before
        ("cache", (2, 2, 4), [0, 4, 8, 12, 9, 13, 10, 14]),
        ("logits", (2, 3, 4), None),
        ("logits", (3, 4), None),
        ("logits", (2,), None),
        ("logits", (), None),
        ("cache", (2, 4), None),
    ],
)
def test_what_is_kept_of_an_output(
    name: str, shape: tuple[int, ...], kept: list[int] | None
) -> None:
    routes = Routes(2, 4, [1, 3], {"cache": 2})
    found = routes.kept(name, np.arange(np.prod(shape, dtype=int)).reshape(shape))
    assert (None if found is None else found.tolist()) == kept
