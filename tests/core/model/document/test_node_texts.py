from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from dld_tui.core.model.document import Document
from dld_tui.core.model.document.index import LinkIndex
from dld_tui.core.model.document.node import NodeTexts, columns_of

NAMES = ["one", "two", "", "two", *(f"more {at}" for at in range(70))]
"""More than are read at once where nodes have messages."""


@pytest.fixture
def document(tmp_path: Path) -> Document:
    proto = onnx.ModelProto(ir_version=10)
    for at, name in enumerate(NAMES):
        domain = "ai.onnx" if at % 2 else ""
        node = proto.graph.node.add(op_type="Add", name=name, domain=domain)
        node.input.extend([f"v{at}", f"v{at}"] if at else ["x", ""])
        node.output.append(f"v{at + 1}")
    odd = proto.graph.node.add(op_type="Relu", input=[f"v{len(NAMES)}"], output=["Q"], name="N")
    data = proto.SerializeToString()
    path = tmp_path / "model.onnx"
    # A byte that is no UTF-8, in a name and in an output.
    path.write_bytes(
        data.replace(b"\x12\x01Q", b"\x12\x01\xff").replace(b"\x1a\x01N", b"\x1a\x01\xfe")
    )
    assert odd.name == "N"
    return Document.open(path)


@pytest.mark.parametrize("touched", [range(0), range(60), range(75)])
def test_each_node_is_read_once_whether_it_has_a_message_or_not(
    document: Document, touched: range
) -> None:
    nodes = document.main.nodes
    for at in touched:
        assert nodes[at].proto
    read = [*columns_of(nodes)]
    assert [node for one in read for node in one.nodes] == [*nodes]
    assert [name for one in read for name in one.names] == [node.name for node in nodes]
    assert [tuple(names) for one in read for names in one.inputs] == [one.inputs for one in nodes]


def test_columns_stay_as_they_were_read(document: Document) -> None:
    texts = NodeTexts(document.main.nodes)
    document.apply("rename_node", scope=[], node="one", name="first")
    assert texts.names[0] == "one"
    assert document.main.nodes[0].name == "first"


def test_the_index_of_links_is_that_of_node_by_node(document: Document) -> None:
    nodes = document.main.nodes
    whole, single = LinkIndex(nodes, NodeTexts(nodes)), LinkIndex([])
    for node in nodes:
        single.add(node)
    for ours, theirs in ((whole.producers, single.producers), (whole.consumers, single.consumers)):
        assert {name: list(found) for name, found in ours.items()} == theirs
    assert list(whole.consumers["v1"]) == [nodes[1], nodes[1]]
    for node in nodes:
        whole.remove(node)
    assert not whole.producers
    assert not whole.consumers
