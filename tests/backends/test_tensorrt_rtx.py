"""Real networks and builds with TensorRT-RTX, on the CPU: outputs, and names of layers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from dld_tui.backends.accuracy.runs import BuiltRunner, BuiltSide
from dld_tui.backends.tensorrt.library import Library, find_library
from dld_tui.backends.tensorrt.outputs import NO_TENSOR, SHAPE, mark_outputs, reasons_against
from dld_tui.core.model.document.document import Document
from dld_tui.core.tensorrt.plan.mapping import map_plan
from dld_tui.core.tensorrt.settings import BuildSettings
from tests.support import models
from tests.support.models import BRANCHES, parse
from tests.support.plans import named
from tests.support.rtx import needs_rtx, own_library

pytestmark = needs_rtx

TEXT = """
<ir_version: 8, opset_import: ["" : 17]>
shapes (float[N, 4] x) => (float[K] y)
<int64[1] flat = {-1}>
{
  c = Constant<value = float[4] {1, 2, 3, 4}>()
  a = Add(x, c)
  r = Relu(a)
  size = Shape(r)
  whole = ReduceProd<keepdims = 1>(size)
  z = Reshape(r, whole)
  y = Sigmoid(z)
}
"""
INNER = ("c", "a", "r", "size", "whole", "z", "ghost")


@pytest.fixture(scope="module")
def library() -> Iterator[Library]:
    with own_library():
        yield find_library("tensorrt_rtx")


def side(library: Library, folder: Path, stack: contextlib.ExitStack) -> BuiltSide:
    path = models.write(folder, TEXT)
    document = stack.enter_context(contextlib.closing(Document.open(path)))
    return BuiltSide(document, library, BuildSettings(path, folder / "x.engine"))


def test_what_the_parser_does_not_keep_has_a_reason(library: Library, tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        one = side(library, tmp_path, stack)
        found = reasons_against(library, one.document, one.settings, INNER)
    assert found == {"c": NO_TENSOR, "size": SHAPE, "whole": SHAPE, "ghost": NO_TENSOR}


def test_the_engine_gets_the_outputs(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[str]] = []

    def watched(made: Any, names: Any) -> None:
        mark_outputs(made, names)
        network = made.network
        seen.append([network.get_output(at).name for at in range(network.num_outputs)])

    monkeypatch.setattr("dld_tui.backends.accuracy.runs.mark_outputs", watched)
    feeds = [{"x": np.zeros((size, 4), np.float32)} for size in (2, 5)]
    with contextlib.ExitStack() as stack:
        one = side(library, tmp_path, stack)
        runner = stack.enter_context(BuiltRunner(one, tensors=True))
        stages = [event.stage for event in runner.prepare(["a", "z"], feeds)]  # type: ignore[union-attr]
        assert not runner.refused
        (engine,) = runner.folder.iterdir()
        assert engine.stat().st_size > 1000
        assert not list(runner.prepare(["a", "z"], feeds)), "it is built already"
    assert any(stage.startswith("Building") for stage in stages), stages
    assert seen == [["y", "a", "z"]]
    assert not runner.folder.exists()


FUNCTIONS = """
<ir_version: 10, opset_import: ["" : 18, "local" : 1]>
net (float[4, 4] x) => (float[4, 4] y) {
    [one] a = local.Outer(x)
    [two] b = local.Outer(a)
    r = Relu(b)
    [act] y = Abs(r)
}
<opset_import: ["" : 18, "local" : 1], domain: "local">
Outer (i) => (o) { [mid] t = local.Inner(i) n = Neg(t) [act] o = Exp(n) }
<opset_import: ["" : 18], domain: "local">
Inner (i) => (o) { [act] o = Abs(i) }
"""


def layers_of(path: Path) -> list[tuple[str, str, str]]:
    """Return name, type and metadata of the layers that the parser makes."""
    import tensorrt_rtx

    library: Any = tensorrt_rtx
    logger = library.Logger(library.Logger.ERROR)
    network = library.Builder(logger).create_network(0)
    parser = library.OnnxParser(network, logger)
    assert parser.parse_from_file(str(path))
    layers = (network.get_layer(index) for index in range(network.num_layers))
    return [(layer.name, str(layer.type), layer.metadata) for layer in layers]


@pytest.mark.parametrize(
    ("text", "operators"),
    [
        (FUNCTIONS, ["Abs", "Neg", "Exp", "Abs", "Neg", "Exp", "Relu", "Abs"]),
        (BRANCHES.replace("N, 4", "4, 4"), ["Relu", "Neg", "Add", "Abs", "Mul", "If"]),
    ],
)
def test_metadata_of_the_parser(tmp_path: Path, text: str, operators: list[str]) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(parse(text), path)
    layers = [
        layer for layer in layers_of(path) if layer[2] and "CONDITIONAL_INPUT" not in layer[1]
    ]
    plan = named(*(name for name, _, _ in layers), metadata=[text for _, _, text in layers])
    found = list(map_plan(plan, Document.open(path)).values())
    assert [[ref.op_type for ref in one.nodes] for one in found] == [[name] for name in operators]
    assert {one.confidence for one in found} == {"exact"}
    assert len({one.nodes for one in found}) == len(found)
