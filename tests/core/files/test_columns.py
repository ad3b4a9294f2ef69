"""The texts of nodes read column by column, held against asking protobuf node by node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import onnx
import pytest
from google.protobuf.message import DecodeError
from hypothesis import example, given, settings
from hypothesis import strategies as st
from onnx import helper

from dld_tui.core.document import Document
from dld_tui.core.document import document as document_module
from dld_tui.core.document.index import LinkIndex
from dld_tui.core.document.node import NodeLinks, NodeTexts
from dld_tui.core.errors import DldError
from dld_tui.core.files import columns
from dld_tui.core.files.columns import (
    MARK,
    AskNodesError,
    NodeColumns,
    item_of_each,
    items_of_each,
)
from dld_tui.core.files.parts import ModelParts
from tests.support import models

NODE_TEXTS = (1, 2, 3, 4, 7)
DELIMITED = 2


def varint(value: int, padding: int = 0) -> bytes:
    """Return a number as it may be written, with groups of zeros that say nothing."""
    groups = [value & 0x7F]
    while value := value >> 7:
        groups.append(value & 0x7F)
    groups += [0] * padding
    return bytes(group | 0x80 for group in groups[:-1]) + bytes(groups[-1:])


def field(number: int, content: bytes, padding: int = 0) -> bytes:
    """Return a length-delimited field."""
    return varint(number << 3 | DELIMITED) + varint(len(content), padding) + content


NAMES = st.sampled_from([b"", b"a", b"b", b"x/y", b"\xff", "ä".encode(), b"\xed\xa0\x80", b"0"])
TEXT_FIELDS = st.builds(field, st.sampled_from(NODE_TEXTS), NAMES, st.integers(0, 2))
OTHER_FIELDS = st.one_of(
    st.just(field(5, helper.make_attribute("axis", 1).SerializeToString())),
    st.just(field(99, b"\x0a\x01a")),  # a field of a newer version
    st.just(varint(1 << 3) + varint(300)),  # the number of `input`, but no text
    st.just(varint(99 << 3 | 3) + field(1, b"z") + varint(99 << 3 | 4)),  # a group
    st.just(varint(98 << 3 | 5) + bytes(4)),
)
NODES = st.lists(
    st.lists(st.one_of(TEXT_FIELDS, TEXT_FIELDS, OTHER_FIELDS), max_size=7).map(b"".join)
)


def model_of(nodes: list[bytes], *, padding: int = 0, apart: int | None = None) -> bytes:
    """Return a model with these nodes.

    Args:
        nodes: Their bytes.
        padding: Bytes by which their lengths are longer than they need be.
        apart: Before which node an initializer stands and another occurrence of the graph starts.
    """
    fields = [field(1, node, padding) for node in nodes]
    weight = field(5, onnx.TensorProto(name="w").SerializeToString())
    head = varint(1 << 3) + varint(10)
    if apart is None:
        return head + field(7, field(2, b"g") + b"".join(fields) + weight)
    return head + field(7, b"".join(fields[:apart]) + weight) + field(7, b"".join(fields[apart:]))


def check_columns(document: Document, data: bytes) -> None:
    """Hold what columns say against what the nodes say."""
    nodes = document.main.nodes
    plain, read = NodeTexts(nodes), NodeTexts(nodes, NodeColumns(ModelParts(data)))
    assert read.names == plain.names == [node.name for node in nodes]
    assert read.kinds == plain.kinds == [(node.domain, node.op_type) for node in nodes]
    assert [tuple(own) for own in read.inputs] == [node.inputs for node in nodes]
    assert [tuple(own) for own in read.outputs] == [node.outputs for node in nodes]
    links = NodeLinks(nodes, NodeColumns(ModelParts(data)))
    asked = LinkIndex(NodeLinks(nodes))
    for index in (LinkIndex(links), LinkIndex(read)):
        assert _listed(index.producers) == _listed(asked.producers)
        assert _listed(index.consumers) == _listed(asked.consumers)
    assert [tuple(own) for own in links.inputs] == [node.inputs for node in nodes]


def _listed(table: Mapping[str, Sequence[object]]) -> dict[str, list[object]]:
    return {name: list(found) for name, found in table.items()}


def document_of(data: bytes) -> Document:
    """Return a document of bytes, read by protobuf alone."""
    return Document(onnx.ModelProto.FromString(data))


@given(NODES)
@settings(deadline=None)
@example([])
@example([b""])
@example([field(3, b"a") + field(3, b"b"), b""])  # two names and none: as many as nodes
@example([field(1, b"\0"), b""])  # the mark is a name of the file
@example([field(2, b"a") + field(2, b"b"), b"", field(2, b"c")])
@example([field(2, b"a"), field(2, b"a")])  # two producers of one value
def test_columns_say_what_protobuf_says_of_each_node(nodes: list[bytes]) -> None:
    data = model_of(nodes)
    document = document_of(data)
    assert len(document.main.nodes) == len(nodes)
    check_columns(document, data)


@given(NODES, st.integers(0, 2), st.none() | st.integers(0, 5), st.integers(1, 3))
@settings(deadline=None)
def test_odd_files_are_read_as_protobuf_reads_them(
    nodes: list[bytes], padding: int, apart: int | None, at_once: int
) -> None:
    data = model_of(nodes, padding=padding, apart=apart)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "_AT_ONCE", at_once)
        check_columns(document_of(data), data)


def test_nodes_one_after_the_other_are_not_asked() -> None:
    # Of one, two and three bytes of length.
    nodes = [field(2, b"a" * length) for length in (1, 200, 20_000, 3)]
    [[made]] = NodeColumns(ModelParts(model_of(nodes))).read("output")
    assert made[1::2] == [MARK] * 4
    assert [len(name) for name in made[::2]] == [1, 200, 20_000, 3]


@pytest.mark.parametrize("odd", [{"padding": 1}, {"apart": 1}])
def test_nodes_that_stand_apart_are_asked(odd: dict[str, int]) -> None:
    data = model_of([field(2, b"a"), field(2, b"b")], **odd)
    with pytest.raises(AskNodesError):
        list(NodeColumns(ModelParts(data)).read("output"))
    check_columns(document_of(data), data)


def test_a_name_that_is_the_mark_leaves_the_nodes_to_be_asked() -> None:
    data = model_of([field(1, MARK.encode()), field(2, b"a")])
    with pytest.raises(AskNodesError):
        list(NodeColumns(ModelParts(data)).read("input"))
    assert list(NodeColumns(ModelParts(data)).read("output")) == [[[MARK, "a", MARK]]]
    check_columns(document_of(data), data)


def test_lists_with_marks() -> None:
    marked = ["a", MARK, "b", "c", MARK, MARK]
    assert items_of_each(marked) == [("a",), ["b", "c"], []]
    assert item_of_each(marked) == ["a", "c", ""]
    assert item_of_each([MARK, MARK]) == ["", ""]
    assert item_of_each(["a", MARK, "b", MARK]) == ["a", "b"]
    # As many items as nodes, but not one each.
    assert items_of_each([MARK, "a", "b", MARK]) == [[], ["a", "b"]]
    assert item_of_each([MARK, "a", "b", MARK]) == ["", "b"]


@pytest.fixture
def opened_by_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Document:
    """A document of few nodes that is read as one of many is."""
    monkeypatch.setattr(document_module, "_LARGE_SKELETON", 1)
    return Document.open(models.write(tmp_path, models.CHAIN))


@pytest.mark.parametrize("indexed", [False, True])
def test_an_edit_before_somebody_looked_is_seen(opened_by_columns: Document, indexed: bool) -> None:
    document = opened_by_columns
    scope = document.main
    if indexed:
        scope.index(scope.texts())
    second = scope.nodes[1]
    old = second.outputs[0]
    document.apply("rename_value", scope=[], value=old, name="other")
    assert scope.producer("other") is second
    assert scope.producer(old) is None
    assert [tuple(own) for own in scope.texts().outputs] == [node.outputs for node in scope.nodes]
    document.undo()
    assert scope.producer(old) is second
    assert scope.producer("other") is None
    document.close()


def test_columns_are_read_once_and_the_nodes_asked_then(opened_by_columns: Document) -> None:
    scope = opened_by_columns.main
    first, second = scope.texts(), scope.texts()
    for name in ("names", "kinds", "inputs", "outputs"):
        assert list(map(tuple, getattr(first, name))) == list(map(tuple, getattr(second, name)))
    opened_by_columns.close()


def test_columns_of_real_and_hostile_files(
    real_models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document_module, "_LARGE_SKELETON", 1)
    seen = 0
    for path in sorted(real_models.rglob("*.onnx")):
        try:
            document = Document.open(path)
            data = path.read_bytes()
            onnx.ModelProto.FromString(data)
        except (DldError, DecodeError, OSError):
            continue
        check_columns(document, data)
        scope = document.main
        assert scope.texts().names == [node.name for node in scope.nodes]
        document.close()
        seen += 1
    assert seen > 50
