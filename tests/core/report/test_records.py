from __future__ import annotations

from dld_tui.core.report.records import Cost, Layer, NodeLink


def test_labels_say_where_a_node_is() -> None:
    assert NodeLink((), "n", "n", "Conv").label == "n"
    assert NodeLink((), ">out", "", "Conv").label == ">out"
    inner = NodeLink(("If_0:then_branch", "If_1:else_branch"), "/x", "/x", "Conv")
    assert inner.label == "If_0:then_branch › If_1:else_branch › /x"


def test_layers_can_be_keys() -> None:
    layer = Layer("a", "Conv", cost=Cost(1), other={"new": [3]})
    assert {layer: 1}[Layer("a", "Conv", cost=Cost(1), other={"new": [3]})] == 1
