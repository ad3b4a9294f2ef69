"""Hits that follow edits: after each edit, undo and redo, as a search of the whole finds them."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from dld_tui.core.errors import DldError
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.transactions import DocumentChange
from dld_tui.core.model.rewrite.matcher import LiveHits, find_hits
from dld_tui.core.model.rewrite.pattern import parse_pattern
from tests.core.model.edits.properties import PROPERTIES
from tests.support.drawn_models import drawn_model
from tests.support.tiers import first

PATTERNS = (
    "_(Add|Mul(x, y))",
    "Add|Sub|Mul(_(x), y) where y is not constant",
    "Relu?(Neg?(Add|Mul(x, y)))",
    "(x, y) => (a, b) { a = Add|Mul(x, y) b = &_(a) }",
    "_(Neg|Relu|Tanh|Identity|Abs|Exp(x))",
    "Add|Mul(x, _(x))",
    "Add|Sub|Mul|Neg|Relu|Abs(x, ...) where x.uses > 1",
    "Add|Sub|Mul|MatMul(x, y) where x.rank = y.rank and x.dtype = float32",
    "Abs|Neg|Relu|Sigmoid|Transpose(x) where x.shape[0] = 2",
    "Add|Sub|Max|Clip|Relu(Transpose|Neg|Abs?(x), ...) where x.rank = 2 and x.producer != Add",
)


def shown(hits: object) -> set[tuple[frozenset[int], bool]]:
    assert hasattr(hits, "__iter__")
    return {(frozenset(map(id, hit.nodes)), bool(hit.problem)) for hit in hits}


def following(hits: LiveHits) -> Callable[[DocumentChange], None]:
    """Return a listener of edits."""

    def listen(change: DocumentChange) -> None:
        hits.update(change)

    return listen


@pytest.mark.parametrize("seed", first(1, range(40)))
def test_hits_follow_edits_undo_and_redo(seed: int) -> None:
    dice = random.Random(seed)
    document = Document(drawn_model(seed))
    patterns = [parse_pattern(text) for text in PATTERNS]
    live = [LiveHits(document, pattern) for pattern in patterns]
    for hits in live:
        hits.refresh()
        document.on_change.append(following(hits))
    most = edits = 0
    for _ in range(60):
        step = dice.random()
        if step < 0.15:
            document.undo()
        elif step < 0.25:
            document.redo()
        else:
            prop = dice.choice(PROPERTIES)
            try:
                arguments = prop.draw(document, dice, dice.randint(1, 3))
            except (DldError, ValueError):
                continue  # what earlier edits left has nothing to choose from
            if arguments is None:
                continue
            try:
                document.apply(prop.edit, **arguments)
            except DldError:
                continue
            edits += 1
        for pattern, hits in zip(patterns, live, strict=True):
            assert shown(hits) == shown(find_hits(document, pattern)), (pattern.text, edits)
            most = max(most, len(hits))
    assert edits > 15
    assert most
