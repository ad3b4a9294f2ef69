"""What nodes cost, against onnx-tool's counts, and how long 50,000 nodes take.

onnx-tool (MIT) is no dependency: ``pip install --no-deps --target DIR onnx-tool tabulate``, then
``PYTHONPATH=DIR python -m benchmarks.bench_cost FOLDER...`` with folders of models. Compared are
the nodes that both count in multiply-accumulates; onnx-tool's bias, one an element of the result,
is taken off.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx

from benchmarks import harness
from benchmarks.models import write_many_nodes
from dld_tui.core.cost.nodes import ModelCosts
from dld_tui.core.cost.operators import PRODUCTS
from dld_tui.core.document.document import Document
from dld_tui.core.edits.inputs_outputs import declare_inputs
from dld_tui.core.inputs.guess import input_specs
from dld_tui.core.shapes.inference import infer, store_types
from dld_tui.core.shapes.noting import follow_shapes
from dld_tui.core.tensors.value_types import ValueType

_SIDE = {1: 1, 2: 16, 3: 224, 4: 224}
"""The size of a symbolic dimension of an input, by rank; the first one is the batch, which is 1."""
_BIASED = {"Conv": 2, "ConvTranspose": 2, "Gemm": 2}


def costs(path: Path) -> tuple[ModelCosts, dict[str, tuple[int, ...]]]:
    """Return our costs with sizes for all dimensions, and the shapes of the inputs."""
    document = Document.open(path)
    shapes = {}
    for spec in input_specs(document):
        rank = len(spec.dims or ())
        shapes[spec.name] = tuple(
            dim if isinstance(dim, int) and dim > 0 else 1 if not at else _SIDE.get(rank, 64)
            for at, dim in enumerate(spec.dims or ())
        )
    sizes = declare_inputs(document, shapes)
    model = onnx.load(path)
    for value in model.graph.input:
        for dim, size in zip(value.type.tensor_type.shape.dim, shapes.get(value.name, ()),
                             strict=False):  # fmt: skip
            dim.dim_value = size
    store_types(document, infer(model).model)
    return ModelCosts(document, follow_shapes(document, shapes) | sizes), shapes


def peers(path: Path, shapes: dict[str, tuple[int, ...]]) -> dict[str, tuple[str, int]]:
    """Return onnx-tool's multiply-accumulates by the first output of a node, without a bias."""
    import onnx_tool  # type: ignore[import-not-found]

    kinds = {
        value.name: onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        for value in onnx.load(path).graph.input
    }
    model = onnx_tool.Model(str(path), {"verbose": False, "constant_folding": False})
    graph = model.graph
    with contextlib.redirect_stdout(io.StringIO()):
        graph.shape_infer({name: np.ones(shape, kinds[name]) for name, shape in shapes.items()})
        graph.profile()
    found = {}
    for node in graph.nodemap.values():
        bias = _BIASED.get(node.op_type)
        made = int(np.prod(node.outshape)) if len(node.outshape) else 0
        extra = made if bias is not None and len(node.input) > bias else 0
        found[node.output[0]] = (node.op_type, round(node.macs[0]) - extra)
    return found


def compare(path: Path) -> str:
    """Return how the counts of one model compare, in a line."""
    ours, shapes = costs(path)
    try:
        theirs = peers(path, shapes)
    # The seam: another program fails in its own ways.
    except Exception as error:  # noqa: BLE001
        return f"{path.name:32} onnx-tool: {type(error).__name__}: {str(error)[:60]}"
    both, same = 0, 0
    unlike: dict[str, object] = {}
    for node in ours.document.main.nodes:
        if node.op_type not in PRODUCTS or node.outputs[0] not in theirs:
            continue
        both += 1
        macs = ours.nodes[node].macs
        same += macs == theirs[node.outputs[0]][1]
        if macs != theirs[node.outputs[0]][1]:
            unlike.setdefault(node.op_type, (macs, theirs[node.outputs[0]][1]))
    total = ours.known.macs
    return f"{path.name:32} MACs {total!s:>14}  products {both:4}  equal {same:4}  {unlike or ''}"


def speed() -> tuple[float, int]:
    """Return processor milliseconds for 50,000 nodes with known types, the least of five."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "many.onnx"
        write_many_nodes(path)
        document = Document.open(path)
        kinds = [ValueType("float32", (1, 64, 28, 28)), ValueType("float32", ("N", 64, 8, 8))]
        for at, node in enumerate(document.main.nodes):
            document.main.inferred[node.outputs[0]] = kinds[at % 10 == 0]
        times = []
        for _ in range(5):
            start = time.process_time()
            found = ModelCosts(document)
            times.append(time.process_time() - start)
        document.close()
        return min(times) * 1000, len(found.nodes)


def main() -> int:
    paths = [path for folder in sys.argv[1:] for path in sorted(Path(folder).glob("**/*.onnx"))]
    for path in paths:
        print(compare(path), flush=True)
    table = harness.Table("cost of nodes")
    ms, count = speed()
    table.add(f"{count:,} nodes", ms, bound=500.0, rule="half a second")
    return table.finish()


if __name__ == "__main__":
    raise SystemExit(main())
