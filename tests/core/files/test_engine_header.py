"""What the first bytes of an engine tell."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from dld_tui.core.errors import InputError
from dld_tui.core.files.recognise import EngineHeader, engine_header, recognise


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


def test_words() -> None:
    rtx = engine_header(head(b"vtrt", 1, 7, 1, 116, mask=10))
    assert rtx is not None
    assert rtx.text == "TensorRT-RTX 1.7.1.116 for compute capability 8.0, 8.9"
    assert EngineHeader("TensorRT", "").text == (
        "an unknown version of TensorRT: its header does not tell"
    )


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
