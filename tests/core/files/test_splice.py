from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import helper

from dld_tui.core.files.blobs import Blob, BlobTable
from dld_tui.core.files.source import Source
from dld_tui.core.files.wire import splice
from tests.support.payloads import joined


@pytest.fixture
def source(tmp_path: Path) -> Source:
    (tmp_path / "f").write_bytes(bytes(range(256)) * 100)
    return Source.open(tmp_path / "f")


@pytest.mark.parametrize("length", [33, 127, 128, 16_383, 16_384])
def test_enclosing_lengths_grow_by_a_byte_where_they_must(source: Source, length: int) -> None:
    blobs = BlobTable()
    sentinel = blobs.add(Blob(source, 0, length, "raw_data"))
    attribute = helper.make_attribute("t", onnx.TensorProto(raw_data=sentinel, name="n"))
    node = onnx.NodeProto(op_type="Constant", attribute=[attribute])
    body = onnx.GraphProto(node=[node], name="body")
    outer = onnx.NodeProto(attribute=[helper.make_attribute("g", body)], name="after")
    model = helper.make_model(onnx.GraphProto(node=[outer, outer]))
    filled = model.SerializeToString().replace(sentinel, bytes(32))
    expected = onnx.ModelProto.FromString(filled)
    for node in expected.graph.node:
        node.attribute[0].g.node[0].attribute[0].t.raw_data = source.read(0, length)
    assert joined(splice(model.SerializeToString(), blobs)) == expected.SerializeToString()


@pytest.mark.parametrize("unknown", [
    b"\xc0\x3e\x96\x01", b"\xc1\x3e12345678", b"\xc2\x3e\x02ab", b"\xc5\x3e1234",
    b"\xc3\x3e\x0a\x01a\x13\x0d1234\x14\xc4\x3e",
], ids=["varint", "64 bits", "bytes", "32 bits", "groups"])  # fmt: skip
def test_fields_that_no_version_knows_are_passed_over(source: Source, unknown: bytes) -> None:
    blobs = BlobTable()
    tensor = onnx.TensorProto(raw_data=blobs.add(Blob(source, 0, 400, "raw_data")))
    model = helper.make_model(onnx.GraphProto(initializer=[tensor])).SerializeToString()
    whole = joined(splice(model, blobs))
    assert joined(splice(unknown + model + unknown, blobs)) == unknown + whole + unknown


def test_float_payload_may_become_raw(source: Source) -> None:
    blobs = BlobTable()
    model = helper.make_model(onnx.GraphProto(initializer=[onnx.TensorProto()]))
    model.graph.initializer[0].raw_data = blobs.add(Blob(source, 0, 400, "float_data"))
    assert source.read(0, 400) in joined(splice(model.SerializeToString(), blobs))


def test_a_sentinel_where_its_payload_does_not_belong_is_a_bug_not_a_file(source: Source) -> None:
    blobs = BlobTable()
    varints = blobs.add(Blob(source, 0, 400, "int64_data"))
    model = helper.make_model(onnx.GraphProto(initializer=[onnx.TensorProto(raw_data=varints)]))
    with pytest.raises(ValueError, match="int64_data stands in raw_data"):
        splice(model.SerializeToString(), blobs)
    model = helper.make_model(onnx.GraphProto(doc_string=varints.decode()))
    with pytest.raises(ValueError, match="holds no tensor data"):
        splice(model.SerializeToString(), blobs)
    model = helper.make_model(onnx.GraphProto(doc_string=(blobs.nonce + b"9" * 12).decode()))
    with pytest.raises(ValueError, match="starts no sentinel"):
        splice(model.SerializeToString(), blobs)
