"""Copies for trials: one that rounds by choice, and one whose nodes are set to precisions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dld_tui.core.conversion.retyping import assigned, in_lower_precision, switchable
from dld_tui.core.document import Document, Node
from dld_tui.core.document.metadata import precision_of
from tests.core.conversion.test_retyping import CALLS, X
from tests.support import models
from tests.support.sessions import run


def opened(folder: Path, text: str) -> Document:
    return Document.open(models.write(folder, text))


@pytest.mark.parametrize("text", [models.CHAIN, models.PLAIN_BRANCHES, CALLS])
def test_it_computes_what_a_copy_for_each_choice_computes(tmp_path: Path, text: str) -> None:
    document = opened(tmp_path, text)
    switched = switchable(document, "fp16")
    nodes = [*switched.nodes]
    feeds = {"x": X * 1e5 / 3, "choice": np.array(True)}
    feeds = {name: feeds[name] for name in document.main.inputs}
    for kept in ([], nodes[:1], nodes[::2], nodes):
        lowered_ones = switched.on(kept)
        chosen = {switch: np.array(switch in lowered_ones) for switch in switched.names}
        mine = run(switched.document, **feeds, **chosen)
        theirs = run(in_lower_precision(document, "fp16", kept, rounded=True).document, **feeds)
        for one, two in zip(mine, theirs, strict=True):
            np.testing.assert_array_equal(one, two)


def test_nodes_with_a_precision_of_their_own_keep_it(tmp_path: Path) -> None:
    document = opened(tmp_path, models.CHAIN)
    document.apply("set_precision", nodes=[[[], "second"]], precision="fp32")
    switched = switchable(document, "fp16")
    assert [node.name for node in switched.nodes] == ["first", "third", "last"]


def test_precisions_are_set_in_the_copy_only(tmp_path: Path) -> None:
    document = opened(tmp_path, models.CHAIN)
    nodes: list[Node] = [*document.main.nodes]
    copy = assigned(document, "bf16", nodes[:3], nodes[1:2])
    assert [precision_of(node) for node in copy.main.nodes] == ["bf16", "fp32", "bf16", ""]
    assert not any(precision_of(node) for node in nodes)
