"""What TensorRT-RTX's own parser says of its layers leads back to the nodes of the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest

from dld_tui.core.model.document import Document
from dld_tui.core.tensorrt.plan.mapping import map_plan
from tests.support.models import BRANCHES, parse
from tests.support.plans import named
from tests.support.rtx import needs_rtx

pytestmark = needs_rtx

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
