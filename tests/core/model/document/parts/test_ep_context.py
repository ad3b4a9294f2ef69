"""Models whose parts a provider compiled: what they hold, and what is taken out of them."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import helper

from dld_tui.core.errors import UsageError
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.parts.ep_context import contexts_of, extract_context
from tests.support.cli import Dld

HEAD = struct.pack("<4sI16x4B", b"ftrt", 0, 10, 16, 1, 11)
LONG, SHORT = HEAD + bytes(range(256)) * 300, HEAD + bytes(40)


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Document]:
    document = Document.open(path)
    try:
        yield document
    finally:
        document.close()


def write(path: Path, *contents: dict[str, Any]) -> Path:
    names = [f"v{at}" for at in range(len(contents) + 1)]
    nodes = [
        helper.make_node("EPContext", [names[at]], [names[at + 1]], name=f"part{at}",
                         domain="com.microsoft", **about)
        for at, about in enumerate(contents)
    ]  # fmt: skip
    ends = [helper.make_tensor_value_info(name, 1, [1]) for name in (names[0], names[-1])]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


@pytest.mark.parametrize("engine", [LONG, SHORT])
def test_an_engine_inside_the_model(engine: bytes, tmp_path: Path) -> None:
    about = {"source": "TensorrtExecutionProvider", "partition_name": "subgraph_0"}
    path = write(tmp_path / "m.onnx", {"ep_cache_context": engine, **about})
    with opened(path) as document:
        (context,) = contexts_of(document)
        assert context.bytes == len(engine)
        assert "TensorRT 10.16.1.11" in context.line
        assert "part subgraph_0" in context.line
        extract_context(document, "", tmp_path / "out.engine")
    assert (tmp_path / "out.engine").read_bytes() == engine


def test_parts_that_share_a_result_and_other_providers(tmp_path: Path) -> None:
    path = write(
        tmp_path / "m.onnx",
        {"ep_cache_context": b"blob" * 30, "source": "QNN", "ep_sdk_version": "2.3"},
        {"main_context": 0, "source": "QNN"},
    )
    with opened(path) as document:
        lines = [one.line for one in contexts_of(document)]
        assert lines == [
            "part0: QNN, 120 B in the model, sdk 2.3", "part1: QNN, with another node",
        ]  # fmt: skip
        assert extract_context(document, "", tmp_path / "out").node.name == "part0"
        with pytest.raises(UsageError, match="no EPContext node 'part1'"):
            extract_context(document, "part1", tmp_path / "out")


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dld, target = Dld(capsys), tmp_path / "x.engine"
    path = write(tmp_path / "m.onnx", {"ep_cache_context": LONG})
    assert "compiled" in dld("inspect", path).out
    assert dld("inspect", path, "--json").json["compiled"][0]["engine"] == "TensorRT 10.16.1.11"
    assert "TensorRT 10.16.1.11" in dld("extract", path, "--context", "-o", target).out
    assert target.read_bytes() == LONG


# As CreateCtxModel of ONNX Runtime's TensorRT provider writes it; no real engine is at hand here.
BY_TENSORRT = {
    "embed_mode": 0, "hardware_architecture": "86", "onnx_model_filename": "resnet.onnx",
    "source": "TensorrtExecutionProvider",
}  # fmt: skip
CACHE = "TensorrtExecutionProvider_TRTKernel_graph_torch-jit_11957043283_0_0_fp16_sm86"


def test_a_model_of_the_tensorrt_provider_leads_to_its_engine_and_plan(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dld = Dld(capsys)
    path = write(tmp_path / "m_ctx.onnx", {**BY_TENSORRT, "ep_cache_context": f"{CACHE}.engine"})
    assert "is not there" in dld.fails(3, "plan", path)
    (tmp_path / f"{CACHE}.engine").write_bytes(LONG)
    with opened(path) as document:
        (context,) = contexts_of(document)
        assert context.holds == (
            f"TensorRT 10.16.1.11, {CACHE}.engine, 76.8 kB, compute capability 8.6, of resnet.onnx"
        )
    told = dld.fails(3, "plan", path)
    assert "written by TensorRT 10.16.1.11" in told
    assert f"dld profile tensorrt {CACHE}.engine" in told
    layers = '{"Layers": [{"Name": "conv", "LayerType": "Convolution"}]}'
    (tmp_path / f"{CACHE}.trt.json").write_text(layers)
    plan = dld("plan", path, "--json")
    assert plan.json["summary"]["layers"] == 1


def test_a_plan_of_models_with_engines_inside_or_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dld = Dld(capsys)
    inside = {**BY_TENSORRT, "embed_mode": 1, "ep_cache_context": LONG}
    told = dld.fails(3, "plan", write(tmp_path / "one.onnx", inside))
    assert "dld extract one.onnx --context -o part.engine" in told
    told = dld.fails(3, "plan", write(tmp_path / "two.onnx", inside, inside))
    assert "2 engines" in told
    assert "--context NODE" in told
    assert "without a compiled engine" in dld.fails(3, "plan", write(tmp_path / "none.onnx"))
