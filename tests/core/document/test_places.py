from __future__ import annotations

import pytest

from dld_tui.core.document import Document
from dld_tui.core.document.locations import bodies, node_at, scope_at
from tests.activities.test_infer_shapes import NESTED
from tests.support import models


@pytest.mark.parametrize("text", [models.CHAIN, models.BRANCHES, models.FUNCTIONS, NESTED])
def test_the_place_of_every_graph_leads_to_its_scope(text: str) -> None:
    document = Document(models.parse(text))
    found = {}
    for place, body in bodies(models.parse(text)):
        scope = scope_at(document, place)
        assert scope is not None
        assert [node.op_type for node in scope.nodes] == [node.op_type for node in body.node]
        found[scope.path] = place

    assert found.keys() == {scope.path for scope in document.scopes()}


@pytest.mark.parametrize(
    "place",
    [[9, "then_branch", 0], [1, "absent", 0], [1, "then_branch", 5], ["function", 3],
     ["function"], [1, "then_branch"], ["x", "y", "z"], [1, "then_branch", "z"]],
)  # fmt: skip
def test_a_place_that_is_gone(place: list[int | str]) -> None:
    document = Document(models.parse(models.BRANCHES))
    assert scope_at(document, place) is None
    assert node_at(document, place, 0) is None


def test_nodes() -> None:
    document = Document(models.parse(models.BRANCHES))
    node = node_at(document, [1, "then_branch", 0], 0)
    assert node is not None
    assert node.name == "inner"
    for index in (-1, 2, None):
        assert node_at(document, [1, "then_branch", 0], index) is None
