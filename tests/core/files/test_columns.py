"""The texts of nodes read column by column, held against asking protobuf node by node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from mmap import MAP_PRIVATE, mmap
from pathlib import Path
from threading import Barrier, Thread

import onnx
import pytest
from google.protobuf.message import DecodeError
from hypothesis import example, given, settings
from hypothesis import strategies as st
from onnx import helper

from dld_tui.core.errors import CorruptFileError, DldError
from dld_tui.core.files import columns
from dld_tui.core.files.columns import (
    MARK,
    AskNodesError,
    SplitModel,
    split_model,
)
from dld_tui.core.files.source import FileContent
from dld_tui.core.model.document import Document
from dld_tui.core.model.document import document as document_module
from dld_tui.core.model.document.index import LinkIndex, NodeIndex
from dld_tui.core.model.document.node import Node, NodeTexts, columns_of
from dld_tui.core.model.document.serialise import skeleton_bytes, snapshot
from tests.support import models
from tests.support.known import known

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


def check_columns(data: bytes, content: FileContent | None = None) -> None:
    """Hold a document whose nodes nobody has touched against one that protobuf reads alone.

    Args:
        data: A model.
        content: The same as it is read from a file.
    """
    plain = Document(onnx.ModelProto.FromString(data)).main
    nodes = plain.nodes
    asked = LinkIndex([])
    for node in nodes:
        asked.add(node)
    lazy = untouched(data if content is None else content)
    read = NodeTexts(lazy.main.nodes)
    for index, own in (
        (LinkIndex(lazy.main.nodes), lazy.main.nodes),
        (LinkIndex(read.nodes, read), lazy.main.nodes),
        (LinkIndex(nodes), nodes),
    ):
        for table, plain_table in (
            (index.producers, asked.producers),
            (index.consumers, asked.consumers),
        ):
            assert _places(table, own) == _places(plain_table, nodes)
            assert list(table) == list(plain_table)  # in the order of the file
    assert read.names == [node.name for node in nodes]
    assert read.kinds == [(node.domain, node.op_type) for node in nodes]
    for own in (lazy.main.nodes, nodes):
        by_column = [row for some in columns_of(own) for row in zip(*some, strict=True)]
        assert [(name, kind, tuple(ins), tuple(outs), list(attributes))
                for _, name, kind, ins, outs, attributes in by_column] == [
            (node.name, (node.domain, node.op_type), node.inputs, node.outputs,
             [one.SerializeToString() for one in node.proto.attribute])
            for node in nodes
        ]  # fmt: skip
        assert [row[0] for row in by_column] == own
    assert [tuple(own) for own in read.inputs] == [node.inputs for node in nodes]
    assert [tuple(own) for own in read.outputs] == [node.outputs for node in nodes]
    for field_name in ("name", "op_type"):
        by_text, plain_by_text = (
            NodeIndex(field_name, lazy.main.nodes),
            NodeIndex(field_name, nodes),
        )
        for text in {getattr(node, field_name) for node in nodes}:
            places = [plain.index_of(node) for node in plain_by_text.get(text)]
            assert [lazy.main.index_of(node) for node in by_text.get(text)] == places
    assert skeleton_bytes(lazy) == skeleton_bytes(plain.document)  # type: ignore[arg-type]
    snapshots = [b"".join(snapshot(each)) for each in (lazy, plain.document)]  # type: ignore[arg-type]
    of_lazy, of_plain = map(onnx.ModelProto.FromString, snapshots)
    assert of_lazy == of_plain
    assert [node.proto for node in lazy.main.nodes] == [node.proto for node in nodes]


def untouched(data: FileContent) -> Document:
    """Return a document as it is made of the bytes of a large file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "_LARGE", 1)
        found = columns.ModelParts(data)
        model, nodes = document_module._parsed(found)
        return Document(model, parts=found.nodes(), nodes=nodes)


def apart(data: bytes) -> SplitModel:
    """Return a model and its nodes, which are to be apart."""
    found = known(split_model(data))
    return found


def _places(table: Mapping[str, Sequence[Node]], nodes: Sequence[Node]) -> dict[str, list[int]]:
    places = {node: place for place, node in enumerate(nodes)}
    return {name: [places[node] for node in found] for name, found in table.items()}


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
    assert sum(run.count for run in apart(data).nodes) == len(nodes) if nodes else True
    check_columns(data)


def mapped(data: bytes) -> mmap:
    """Return the content of a large file as it is read."""
    content = mmap(-1, len(data), flags=MAP_PRIVATE)
    content[:] = data
    return content


@given(NODES, st.integers(0, 2), st.none() | st.integers(0, 5), st.integers(1, 3), st.booleans())
@settings(deadline=None)
def test_odd_files_are_read_as_protobuf_reads_them(
    nodes: list[bytes], padding: int, apart: int | None, at_once: int, is_large: bool
) -> None:
    data = model_of(nodes, padding=padding, apart=apart)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "_AT_ONCE", at_once)
        check_columns(data, mapped(data) if is_large else data)


def test_nodes_one_after_the_other_are_not_asked() -> None:
    # Of one, two and three bytes of length.
    nodes = [field(2, b"a" * length) for length in (1, 200, 20_000, 3)]
    [run] = apart(model_of(nodes)).nodes
    [made] = run.read("output")
    assert made[1::2] == [MARK] * 4
    assert [len(name) for name in made[::2]] == [1, 200, 20_000, 3]


def test_nodes_that_stand_apart_are_asked() -> None:
    data = model_of([field(2, b"a"), field(2, b"b")], apart=1)
    document = untouched(data)
    assert [node.run for node in document.main.nodes] == [None, None]
    check_columns(data)


def test_a_name_that_is_the_mark_leaves_the_nodes_to_be_asked() -> None:
    data = model_of([field(1, MARK.encode()), field(2, b"a")])
    [run] = apart(data).nodes
    with pytest.raises(AskNodesError):
        run.read("output", "input")
    assert run.read("output") == [[MARK, "a", MARK]]
    check_columns(data)


@pytest.fixture
def opened_by_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Document:
    """A document of few nodes that is read as one of many is."""
    monkeypatch.setattr(columns, "_LARGE", 1)
    monkeypatch.setattr(columns, "_AT_ONCE", 2)
    return Document.open(models.write(tmp_path, models.CHAIN))


def unread(document: Document) -> list[bool]:
    """Return of which nodes nobody has made messages."""
    return [node.run is not None and node.run.unread is not None for node in document.main.nodes]


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


def test_looking_at_texts_touches_no_node(opened_by_columns: Document) -> None:
    scope = opened_by_columns.main
    assert all(unread(opened_by_columns))
    first, second = scope.texts(), scope.texts()
    scope.index(first)
    assert all(unread(opened_by_columns))
    last = scope.nodes[-1]
    assert last.op_type == first.kinds[-1][1]
    assert not unread(opened_by_columns)[-1]
    assert unread(opened_by_columns)[0]
    for texts in (second, scope.texts()):
        for name in ("names", "kinds", "inputs", "outputs"):
            assert list(map(tuple, getattr(first, name))) == list(map(tuple, getattr(texts, name)))
    opened_by_columns.close()


def test_nodes_that_were_moved_untouched_are_read_where_they_are(
    opened_by_columns: Document,
) -> None:
    scope = opened_by_columns.main
    names = [texts for texts in scope.texts().names]
    scope.nodes.reverse()
    assert scope.texts().names == names[::-1]
    assert [node.name for node in scope.nodes] == names[::-1]
    opened_by_columns.close()


def test_threads_see_one_message_of_a_node(opened_by_columns: Document) -> None:
    node = opened_by_columns.main.nodes[0]
    together, seen = Barrier(4), []

    def look() -> None:
        together.wait()
        seen.append(node.proto)

    threads = [Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [message is node.proto for message in seen] == [True] * 4
    opened_by_columns.close()


def deep(levels: int) -> bytes:
    """Return an attribute whose value is a type in types, so many levels of messages deep."""
    type_ = b""
    for _ in range(levels // 2):
        type_ = field(4, field(1, type_))  # sequence_type, elem_type
    return field(5, field(14, type_))


BROKEN = {
    "an attribute cut short": field(5, b"\x0a\x05a"),
    "a tensor in an attribute": field(5, field(5, b"\x0a\xff")),
    "a packed list that ends in a number": field(5, field(8, b"\x80")),
    "floats of three bytes": field(5, field(7, b"abc")),
    "an entry of metadata": field(9, b"\x0a\x09k"),
    "field number 0": b"\x02\x01a",
    "the end of no group": b"\x0c",
    "messages in messages": deep(400),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_node_is_told_when_the_model_is_opened(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.onnx"
    nodes = [field(2, b"%d" % at) for at in range(5)]
    path.write_bytes(model_of([*nodes, BROKEN[kind], *nodes]))
    told = []
    for large in (1 << 30, 1):
        monkeypatch.setattr(columns, "_LARGE", large)
        with pytest.raises(CorruptFileError) as error:
            Document.open(path)
        told.append(str(error.value))
    assert told[0] == told[1]


UNFINISHED = {
    "a name that goes on": [b"\x1a\x06"],
    "a field of a newer version that goes on": [b"\x7a\x06"],
    "a field that goes on in the next node": [b"\x7a\x0a", b"\x7a\x02\0\0"],
    "a group that ends in the next node": [b"\x7b", b"\x7c"],
    "a name that goes on, and marks elsewhere": [field(2, b"\0") + field(1, b"\0") + b"\x7a\x06"],
}
"""How a node ends, and how the next one begins: sound only with what is put between them."""


@pytest.mark.parametrize("after", [0, 3])
@pytest.mark.parametrize("before", [0, 3, 4, 5])
@pytest.mark.parametrize("kind", UNFINISHED)
def test_a_node_that_ends_in_a_field_is_told_wherever_it_stands(
    kind: str, before: int, after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columns, "_AT_ONCE", 5)
    node = field(1, b"a") + field(2, b"b")
    first, *rest = UNFINISHED[kind]
    broken = [node + first, *(begin + node for begin in rest)]
    data = model_of([node] * before + broken + [node] * after)
    with pytest.raises(DecodeError):
        onnx.ModelProto.FromString(data)
    assert split_model(data) is None
    assert split_model(mapped(data)) is None
    (tmp_path / "m.onnx").write_bytes(data)
    monkeypatch.setattr(columns, "_LARGE", 1)
    with pytest.raises(CorruptFileError, match="not an ONNX protobuf"):
        Document.open(tmp_path / "m.onnx")


def test_each_depth_is_refused_when_the_model_is_opened_or_never() -> None:
    refused = []
    for levels in range(80, 110, 2):
        data = model_of([field(2, b"a"), deep(levels)])
        try:
            onnx.ModelProto.FromString(data)
        except DecodeError:
            refused.append(levels)
            with pytest.raises(DecodeError):
                untouched(data)
        else:
            check_columns(data)
    assert refused
    assert refused[0] > 80


def test_columns_of_real_and_hostile_files(
    real_models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columns, "_LARGE", 1)
    seen = 0
    for path in sorted(real_models.rglob("*.onnx")):
        try:
            document = Document.open(path)
            data = path.read_bytes()
            onnx.ModelProto.FromString(data)
        except (DldError, DecodeError, OSError):
            continue
        names = document.main.texts().names
        assert names == [node.name for node in document.main.nodes]
        document.close()
        check_columns(data)
        seen += 1
    assert seen > 50


def test_a_number_of_fixed_width_before_the_graph_is_not_read_as_one() -> None:
    looks_like_a_graph = b"\x3a\x02\x0a\x00"
    assert split_model(varint(20 << 3 | 5) + looks_like_a_graph) is None
