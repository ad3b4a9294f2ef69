from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import onnx
import pytest
from google.protobuf.message import Message
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, helper

from dld_tui.core.errors import CorruptFileError
from dld_tui.core.files import source as source_module
from dld_tui.core.files.blobs import BlobTable
from dld_tui.core.files.columns import ModelParts, NodeParts
from dld_tui.core.files.source import Source
from dld_tui.core.files.wire import cut
from dld_tui.core.model.document.document import Document
from tests.support.payloads import cut_file, everything, raw_tensor

LONG = 1 << 20


def node(**attributes: Any) -> NodeProto:
    """Return an operator call."""
    return helper.make_node("Op", ["x"], ["y"], name="n", **attributes)


def body() -> GraphProto:
    """Return a subgraph with an attribute in it."""
    return helper.make_graph([node(axis=1)], "body", [], [])


def annotated(message: NodeProto) -> NodeProto:
    """Return a node with an entry of ``metadata_props``."""
    message.metadata_props.add(key="k", value="v")
    return message


def untyped(graphs: list[GraphProto], field: str) -> NodeProto:
    """Return a node with graphs in an attribute whose type an old exporter left out."""
    message = node()
    attribute = message.attribute.add(name="then_branch")
    if field == "g":
        attribute.g.CopyFrom(graphs[0])
    else:
        attribute.graphs.extend(graphs)
    return message


def model(nodes: list[NodeProto], function: list[NodeProto] | None = None) -> ModelProto:
    """Return a model with a main graph and perhaps a function."""
    made = helper.make_model(helper.make_graph(nodes, "g", [], []))
    if function is not None:
        made.functions.append(helper.make_function("d", "f", ["x"], ["y"], function, []))
    return made


PLAIN, BODIES = NodeParts(bodies=False, metadata=False), NodeParts(bodies=True, metadata=False)
METADATA = NodeParts(bodies=False, metadata=True)
KINDS = {
    "nothing": (model([]), PLAIN),
    "attributes of other types": (model([node(axis=1, mode="s", to=[1.0])] * 3), PLAIN),
    "a body": (model([node(), node(then_branch=body()), node()]), BODIES),
    "bodies": (model([node(), node(branches=[body(), body()])]), BODIES),
    "a body without a type": (model([untyped([body()], "g")]), BODIES),
    "bodies without a type": (model([untyped([body(), body()], "graphs")]), BODIES),
    "an empty body": (model([node(then_branch=GraphProto())]), BODIES),
    "a body in a function": (model([node()], [node(), node(then_branch=body())]), BODIES),
    "metadata": (model([node(axis=1), annotated(node())]), METADATA),
    "metadata in a function": (model([node()], [annotated(node(axis=1))]), METADATA),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_nodes_have_is_seen_as_one_looks_at_each(kind: str) -> None:
    made, expected = KINDS[kind]
    assert ModelParts(made.SerializeToString()).nodes() == expected


@pytest.mark.parametrize("kind", KINDS)
def test_scopes_are_those_of_a_document_that_was_told_nothing(kind: str, tmp_path: Path) -> None:
    made, _ = KINDS[kind]
    path = tmp_path / "m.onnx"
    path.write_bytes(made.SerializeToString())
    opened, told_nothing = Document.open(path), Document(made)
    assert [scope.path for scope in opened.scopes()] == [s.path for s in told_nothing.scopes()]
    assert [one.metadata for scope in opened.scopes() for one in scope.nodes] == [
        one.metadata for scope in told_nothing.scopes() for one in scope.nodes
    ]
    opened.close()


@cache
def many_weights() -> bytes:
    """Return a model of many nodes, and many weights of 64 bytes."""
    nodes = [NodeProto(op_type="Relu", input=[f"v{i}"], output=[f"v{i + 1}"]) for i in range(8000)]
    made = model(nodes)
    made.graph.initializer.extend(raw_tensor(f"w{i}", 64) for i in range(8000))
    return made.SerializeToString()


LARGE: dict[str, Callable[[ModelProto], Message]] = {
    "a weight": lambda made: made.graph.initializer.add(raw_data=bytes(5000), name="w"),
    "a sparse weight": lambda made: made.graph.sparse_initializer.add(
        values=onnx.TensorProto(raw_data=bytes(5000))
    ),
    "a node": lambda made: made.graph.node.add(
        attribute=[AttributeProto(name="s", s=bytes(5000), type=AttributeProto.STRING)]
    ),
    "a function": lambda made: made.functions.add(
        name="f",
        node=[NodeProto(attribute=[AttributeProto(name="s", s=bytes(5000))])],
    ),
    "training": lambda made: made.training_info.add(
        algorithm=GraphProto(initializer=[onnx.TensorProto(raw_data=bytes(5000))])
    ),
}  # fmt: skip


@pytest.mark.parametrize("huge", [1 << 30, 1])
def test_a_file_of_small_fields_is_its_own_skeleton(
    huge: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_module, "_HUGE", huge)
    path = tmp_path / "m.onnx"
    path.write_bytes(many_weights())
    assert path.stat().st_size > LONG
    progress: list[tuple[int, int]] = []
    source, blobs = Source.open(path), BlobTable()
    skeleton = cut(source, blobs, progress=lambda done, total: progress.append((done, total))).model
    source.close()
    assert skeleton == path.read_bytes()
    assert len(blobs) == 0
    assert progress[-1] == (len(skeleton), len(skeleton))


def test_little_of_a_file_of_small_fields_is_read_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(many_weights())
    ranges: list[tuple[int, int]] = []
    read = Source.read

    def recording(source: Source, offset: int, length: int) -> bytes:
        ranges.append((offset, length))
        return read(source, offset, length)

    monkeypatch.setattr(Source, "read", recording)
    Document.open(path).close()
    assert ranges.pop() == (0, path.stat().st_size)
    assert sum(length for _, length in ranges) < 350_000  # 64 KiB of it to recognise the file


@pytest.mark.parametrize("where", LARGE)
def test_a_payload_far_behind_in_a_file_of_small_fields_is_cut(where: str, tmp_path: Path) -> None:
    made = ModelProto.FromString(many_weights())
    assert not ModelParts(many_weights()).has_long_piece(4096)
    LARGE[where](made)
    data = made.SerializeToString()
    assert ModelParts(data).has_long_piece(4096)
    path = tmp_path / "m.onnx"
    path.write_bytes(data)
    skeleton, blobs = cut_file(path, 4096)
    assert len(blobs) == 1
    assert len(data) - len(skeleton) > 4900


def test_a_cut_off_file_of_small_fields_says_where_it_ends(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(many_weights()[:-10])
    with pytest.raises(CorruptFileError, match="protobuf ends early at byte"):
        Document.open(path)


def test_all_that_a_model_can_hold_is_asked_for_without_an_error() -> None:
    data = everything().SerializeToString()
    assert ModelParts(data).has_long_piece(1)
    assert ModelParts(b"\xff\xff").has_long_piece(1)  # no protobuf
    assert ModelParts(data).nodes().bodies
