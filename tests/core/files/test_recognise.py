from __future__ import annotations

import gzip
import io
import json
import pickle
import sqlite3
import struct
import zipfile
from pathlib import Path

import numpy as np
import onnx
import pytest
from google.protobuf import json_format, text_format

from dld_tui.core.errors import CorruptFileError, InputError
from dld_tui.core.files.recognise import EngineHeader, FileKind, engine_header, recognise
from tests.support.known import known
from tests.support.models import CHAIN, parse

MODEL = parse(CHAIN)
EVENTS = [{"cat": "Session", "pid": 1, "tid": 1, "dur": 5, "ts": 1, "ph": "X", "name": "model_run"}]
TRACE = [{"ph": "X", "cat": "cpu_op", "name": "aten::conv2d", "ts": 1, "dur": 5}]
PROFILE = '[\n  { "count" : 11 }\n, { "name" : "conv", "timeMs" : 16.7, "averageMs" : 1.5 }\n]'
LOG = "&&&& RUNNING TensorRT.trtexec [TensorRT v101601] [b11] # trtexec --onnx=m.onnx\n"


def kind_of(tmp_path: Path, content: str | bytes) -> FileKind:
    path = tmp_path / "file"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return recognise(path)


def refusal(tmp_path: Path, content: str | bytes) -> str:
    with pytest.raises(InputError) as raised:
        kind_of(tmp_path, content)
    assert raised.value.where == str(tmp_path / "file")
    return raised.value.message


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (MODEL.SerializeToString(), FileKind.ONNX),
        (MODEL.SerializeToString()[:-5], FileKind.ONNX),  # what is wrong is said on opening
        (b"\x12\x08exporter\x08\x0a", FileKind.ONNX),
        # Unknown fields of 8 and 4 bytes come first.
        (b"\xa1\x06" + bytes(8) + b"\xad\x06" + bytes(4) + b"\x08\x0a\x12\x01x", FileKind.ONNX),
        (text_format.MessageToString(MODEL), FileKind.ONNX_TEXT),
        (json_format.MessageToJson(MODEL), FileKind.ONNX_TEXT),
        (onnx.printer.to_text(MODEL), FileKind.ONNX_TEXT),
        (json.dumps(EVENTS), FileKind.ORT_PROFILE),
        (json.dumps(EVENTS, indent=2), FileKind.ORT_PROFILE),
        ('{"model": "/a \\"b\\".onnx",\n "backend": "x", "axes": []', FileKind.SWEEP),
        ('{"report": "/a \\"b\\".json",\n "source": "m.onnx", "best": "fp16"', FileKind.TUNING),
        ("[\n", FileKind.ORT_PROFILE),
        (json.dumps(EVENTS).encode("utf-16"), FileKind.ORT_PROFILE),
        (b"\xef\xbb\xbf" + json.dumps(EVENTS).encode(), FileKind.ORT_PROFILE),
        (json.dumps({"traceEvents": EVENTS}), FileKind.ORT_PROFILE),
        (json.dumps({"devices": [{"id": 0}], "traceEvents": EVENTS}), FileKind.ORT_PROFILE),
        (json.dumps(TRACE), FileKind.TRACE),
        (json.dumps([{"args": {"a": {}}, **TRACE[0]}]), FileKind.TRACE),
        (json.dumps({"traceEvents": TRACE}), FileKind.TRACE),
        (json.dumps({"schemaVersion": 1, "x": [{"y": 2}], "traceEvents": []}), FileKind.TRACE),
        ('{"Layers": ["conv1", "relu1"], "Bindings": ["x"]}', FileKind.ENGINE_LAYERS),
        ('{"Layers": [{\n  "Name": "a", "LayerType": "kg', FileKind.ENGINE_LAYERS),
        ('--- Layer 0 ---\n{"Name":"a","LayerType":"kgen"}\n', FileKind.ENGINE_LAYERS),
        ('{"Name":"a","LayerType":"kgen"}{"Name":"b"}', FileKind.ENGINE_LAYERS),
        (PROFILE, FileKind.ENGINE_PROFILE),
        ('[{"count":0},{"name":"a","timeMs":NaN}]', FileKind.ENGINE_PROFILE),
        ('[{"startEnqMs" : 16.6, "endEnqMs" : 16.9, "computeMs" : 1}]', FileKind.ENGINE_TIMES),
        ('{"performance_summary": {"Throughput": 81.9}}', FileKind.ENGINE_METADATA),
        (LOG, FileKind.TRTEXEC_LOG),
        ("[07/07/2026-02:11:43] [I] [TRT] Loaded engine\n\x1e", FileKind.TRTEXEC_LOG),
        ('{"journal": 1, "path": "m.onnx"}\n{"edit": "rename_node"}\n', FileKind.EDIT_SCRIPT),
        ('{"edit": "rename_node", "scope": []}', FileKind.EDIT_SCRIPT),
        ('# rename all\n{"edit": "rename_node"}\n', FileKind.EDIT_SCRIPT),
    ],
)
def test_kinds_are_known_by_content(tmp_path: Path, content: str | bytes, kind: FileKind) -> None:
    assert kind_of(tmp_path, content) is kind


def test_reports_are_told_from_other_databases(tmp_path: Path) -> None:
    path = tmp_path / "r.dldprof"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE t (x)")
    with pytest.raises(InputError, match="SQLite database that is not a report"):
        recognise(path)
    with sqlite3.connect(path) as database:
        database.execute(f"PRAGMA application_id = {int.from_bytes(b'DLDP', 'big')}")
    database.close()
    assert recognise(path) is FileKind.REPORT


def zipped() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("archive/data.pkl", "x")
    return buffer.getvalue()


def saved(array: np.ndarray[tuple[int], np.dtype[np.float64]]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


HEADER = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()


OTHER_FILES: list[tuple[str | bytes, str]] = [
    (b"", "File is empty (0 bytes)"),
    (zipped(), "This is a ZIP archive (PyTorch .pt?), not ONNX"),
    (gzip.compress(b"x" * 100), "This file is gzip-compressed: decompress first"),
    (b"\x28\xb5\x2f\xfd rest", "This file is zstd-compressed: decompress first"),
    (b"\x89HDF\r\n\x1a\n rest", "This is an HDF5 file"),
    (b"\x1c\0\0\0TFL3 rest", "This is a TensorFlow Lite model"),
    (b"\x08\0\0\0ORTM rest", "This is an ONNX Runtime .ort model"),
    (b"GGUF\x03\0\0\0 rest", "This is a GGUF model"),
    (pickle.dumps({"a": 1}, protocol=2), "This is a Python pickle"),
    (pickle.dumps([1.5] * 9, protocol=4), "This is a Python pickle"),
    (len(HEADER).to_bytes(8, "little") + HEADER + b"\0\0\0\0", "This is a safetensors file"),
    (saved(np.zeros(4)), "This is a NumPy array"),
    (b"ftrt\0\0\0\0 engine", "This is a TensorRT engine"),
    (b"\x7fELF rest", "This is a program"),
    (b"\x89PNG\r\n\x1a\n", "This is a picture"),
    (
        "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n",
        "This is a Git LFS pointer",
    ),
    ("<!DOCTYPE html><html><title>404</title>", "Looks like HTML/text, not ONNX"),
    ("Access denied", "Looks like HTML/text, not ONNX"),
    ('{"hello": 1}', "This JSON file is not a known kind"),
    ("[" * 100_000, "This JSON file is not a known kind"),
    (b"\x1c\x9b\xd8\x71\xb0\xde" * 10, "Not an ONNX protobuf"),
    (b"\x0a\x05hello\x12\x03abc", "Not an ONNX protobuf: unexpected field 1"),  # a GraphDef
    (b"\xfa\x3e\x03abc" * 20, "Not an ONNX protobuf: it starts with no field of a model"),
    (bytes(100), "Not an ONNX protobuf"),
    (b"\x80" * 100, "Not an ONNX protobuf"),
]


@pytest.mark.parametrize(
    ("content", "words"), OTHER_FILES, ids=[words[:40] for _, words in OTHER_FILES]
)
def test_other_files_are_refused_by_name(tmp_path: Path, content: str | bytes, words: str) -> None:
    assert refusal(tmp_path, content).startswith(words)


def test_empty_and_broken_files_are_corrupt(tmp_path: Path) -> None:
    for content in (b"", b"\x1c\x9b"):
        with pytest.raises(CorruptFileError):
            kind_of(tmp_path, content)


def test_any_content_comes_to_an_end(tmp_path: Path) -> None:
    """The patterns must not try every way to split a long run: that would not end."""
    for text in (
        "\n" * 70_000,
        "<" * 70_000,
        '[{"name":' * 9000,
        "{" * 70_000,
        '"' * 70_000,
        "[ " * 40_000,
    ):
        with pytest.raises(InputError):
            kind_of(tmp_path, text)


def test_titles_and_words_fit_a_sentence() -> None:
    assert FileKind.ORT_PROFILE.title == "an ONNX Runtime profile"
    assert len({kind.title for kind in FileKind}) == len(FileKind)
    rtx = known(engine_header(head(b"vtrt", 1, 7, 1, 116, mask=10)))
    assert rtx.text == "TensorRT-RTX 1.7.1.116 for compute capability 8.0, 8.9"
    assert EngineHeader("TensorRT", "").text == (
        "an unknown version of TensorRT: its header does not tell"
    )


BAD = {
    "03_empty_0_bytes.onnx": "File is empty (0 bytes)",
    "04_wrong_magic_zip.onnx": "This is a ZIP archive (PyTorch .pt?), not ONNX",
    "06_html_error_page.onnx": "Looks like HTML/text, not ONNX (failed download?)",
    "07_random_bytes.onnx": "Not an ONNX protobuf",
    "08_gzip_of_valid.onnx": "This file is gzip-compressed: decompress first",
    "json/deep_nesting.json": "This JSON file is not a known kind",
    "json/engine_not_engine.json": "This JSON file is not a known kind",
}


def test_the_collection_of_bad_files(real_files: Path) -> None:
    for name, words in BAD.items():
        with pytest.raises(InputError) as raised:
            recognise(real_files / "bad" / name)
        assert raised.value.message.startswith(words)
    others = [
        path
        for path in (real_files / "bad").glob("*.onnx")
        if path.is_file() and path.name not in BAD
    ]
    assert len(others) > 30
    assert {recognise(path) for path in others} == {FileKind.ONNX}


def head(magic: bytes, *version: int, serialization: int = 0, mask: int = 0) -> bytes:
    second = magic if magic == b"vtrt" else bytes(4)
    return struct.pack("<4sI16x4B4sI", magic, serialization, *version, second, mask) + bytes(28)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (head(b"ftrt", 10, 16, 1, 11), EngineHeader("TensorRT", "10.16.1.11")),
        (head(b"ftrt", 10, 16, 1, 11, serialization=3), EngineHeader("TensorRT", "")),
        (head(b"ptrt", 8, 2, 3, 0), EngineHeader("TensorRT", "")),
        (b"ftrt\0\0\0\0", EngineHeader("TensorRT", "")),
        (head(b"vtrt", 1, 7, 1, 116, mask=8), EngineHeader("TensorRT-RTX", "1.7.1.116", ("8.9",))),
        (
            head(b"vtrt", 1, 7, 1, 116, mask=0x42),
            EngineHeader("TensorRT-RTX", "1.7.1.116", ("8.0", "others")),
        ),
        (b"\x08\x07", None),
    ],
)
def test_header(data: bytes, expected: EngineHeader | None) -> None:
    assert engine_header(data) == expected


def test_recognise_says_who_wrote_it(tmp_path: Path) -> None:
    path = tmp_path / "net.engine"
    path.write_bytes(head(b"ftrt", 10, 3, 0, 26))
    with pytest.raises(InputError) as caught:
        recognise(path)
    assert "written by TensorRT 10.3.0.26" in str(caught.value)


@pytest.mark.rtx
def test_an_engine_made_here(tmp_path: Path) -> None:
    trt = pytest.importorskip("tensorrt_rtx")
    if not hasattr(trt, "Builder"):
        pytest.skip("tensorrt_rtx has no library here")
    from onnx import parser

    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[1,4] x) => (float[1,4] y) {y = Relu(x)}'
    )
    logger = trt.Logger(trt.Logger.ERROR)
    builder = trt.Builder(logger)
    network = builder.create_network(0)
    assert trt.OnnxParser(network, logger).parse(model.SerializeToString())
    config = builder.create_builder_config()
    config.num_compute_capabilities = 1
    config.set_compute_capability(trt.ComputeCapability.SM89, 0)
    found = engine_header(bytes(builder.build_serialized_network(network, config))[:64])
    assert found == EngineHeader("TensorRT-RTX", trt.__version__, ("8.9",))
