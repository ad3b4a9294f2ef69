"""The pattern of some nodes finds them, and what is linked as they are."""

from __future__ import annotations

import pytest

from dld_tui.core.errors import UsageError
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.rewrite.matcher import find_hits, pattern_of
from dld_tui.core.model.rewrite.pattern import parse_pattern
from tests.support.drawn_models import drawn_model
from tests.support.models import PLAIN_BRANCHES, layered, parse


def test_repeated_blocks_are_found_by_one_of_them() -> None:
    document = Document(parse(layered(6)))
    layer = document.main.nodes[1:6]
    hits = find_hits(document, parse_pattern(pattern_of(layer)))
    assert len(hits) == 6
    assert set(hits[0].nodes) == set(layer)
    assert not any(hit.problem for hit in hits)


@pytest.mark.parametrize("seed", range(12))
def test_pattern_of_linked_nodes_finds_them(seed: int) -> None:
    document = Document(drawn_model(seed))
    links = document.main.links
    tried = 0
    for node in document.main.nodes:
        makers = [links.producers[name][0] for name in node.inputs if name in links.producers]
        chosen = list(dict.fromkeys([node, *makers]))
        if node.op_type == "Constant" or any(one.op_type == "Constant" for one in chosen):
            continue
        hits = find_hits(document, parse_pattern(pattern_of(chosen)))
        assert any(set(hit.nodes) == set(chosen) for hit in hits), pattern_of(chosen)
        tried += 1
    assert tried


def test_nodes_of_several_graphs_have_no_pattern() -> None:
    document = Document(parse(PLAIN_BRANCHES))
    inner = document.main.nodes[1].subgraphs()[0].nodes
    with pytest.raises(UsageError, match="several graphs"):
        pattern_of([document.main.nodes[0], inner[0]])
    with pytest.raises(UsageError, match="no nodes"):
        pattern_of([])
