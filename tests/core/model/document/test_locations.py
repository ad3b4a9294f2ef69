from __future__ import annotations

from random import Random

import onnx
import pytest

from dld_tui.core.codec import decode, encode
from dld_tui.core.model.document import Document
from dld_tui.core.model.document.locations import (
    Labels,
    LocatedMessage,
    bodies,
    label,
    node_at,
    place_of,
    scope_at,
)
from dld_tui.core.model.document.transactions import Splice, Transaction
from tests.support import models
from tests.support.conversions import NESTED


@pytest.mark.parametrize("text", [models.CHAIN, models.BRANCHES, models.FUNCTIONS, NESTED])
def test_the_place_of_every_graph_leads_to_its_scope(text: str) -> None:
    document = Document(models.parse(text))
    found = {}
    for place, body in bodies(models.parse(text)):
        scope = scope_at(document, place)
        assert scope is not None
        assert place_of(scope) == place
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


@pytest.mark.parametrize("seed", range(6))
def test_a_node_is_found_wherever_edits_have_moved_it(seed: int) -> None:
    random = Random(seed)
    nodes = [onnx.helper.make_node("Relu", [f"v{at}"], [f"v{at + 1}"]) for at in range(900)]
    scope = Document(onnx.helper.make_model(onnx.helper.make_graph(nodes, "g", [], []))).main
    transaction = Transaction("move", {})
    for node in list(scope.nodes)[:: random.choice((1, 3, 40))]:  # in order, as conversions do
        place = scope.index_of(node)
        assert scope.nodes[place] is node
        made = [scope.new_node(onnx.helper.make_node("Cast", ["a"], ["b"])) for _ in range(3)]
        transaction.do(Splice(scope, "node", place, [], made))
    for _ in range(200):
        node = random.choice(scope.nodes)
        assert scope.index_of(node) == scope.nodes.index(node)
        place = random.randrange(len(scope.nodes))
        transaction.do(Splice(scope, "node", place, scope.nodes[place : place + 2], []))
    with pytest.raises(ValueError, match="not in list"):
        scope.index_of(made[0] if made[0] not in scope.nodes else scope.new_node(nodes[0]))


def test_real_names_are_shown_and_foreign_text_is_escaped() -> None:
    model = models.parse(models.CHAIN)
    model.graph.node[1].name = "se\x1bcond"
    labels = Labels(model)

    assert model.graph.node[1].name == label(1)
    (remark,) = labels.messages(f"Bad node spec. Name: {label(1)} OpType: Add")
    assert remark == LocatedMessage("Add: Bad node spec. Name: se\\x1bcond OpType: Add", [], 1)
    assert labels.find(label(1)) == ([], 1, "se\x1bcond")
    assert labels.find("second") is None
    assert decode(LocatedMessage, encode(remark)) == remark


def test_a_message_without_a_node_is_kept_in_short() -> None:
    labels = Labels(models.parse(models.CHAIN))
    (remark,) = labels.messages("[TypeInferenceError] no opset import\n" + "x" * 10_000)
    assert remark.place is None
    assert remark.message.startswith("no opset import x")
    assert len(remark.message) <= 400
    (other,) = labels.messages("of <n99999>")
    assert other == LocatedMessage("of ?")
