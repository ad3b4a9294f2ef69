"""What tables say of whole models: constants, definitions, subgraphs, partitions, what helps."""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from dld_tui.core.checks.providers import TableReader, partitions
from dld_tui.core.files import protos as onnx
from dld_tui.core.model.document import Document
from dld_tui.core.model.document.node import Node
from dld_tui.core.model.operators.provider_tables import Cause, Support, Verdict, tables
from dld_tui.core.model.shapes.inference import infer, store_types
from tests.support.models import PLAIN_BRANCHES, write


@contextlib.contextmanager
def reader_of(folder: Path, text: str) -> Iterator[TableReader]:
    path = write(folder, text)
    with contextlib.closing(Document.open(path)) as document:
        store_types(document, infer(onnx.ModelProto.FromString(path.read_bytes())).model)
        yield TableReader(document, "m.onnx")


def told(reader: TableReader, provider: str) -> dict[str, tuple[Verdict, str]]:
    """Return verdict and advice by the operators of nodes."""
    table = next(one for one in tables() if one.name == provider)
    verdicts = reader.verdicts(table)
    return {
        node.op_type: (verdict, reader.change(table, node, verdict))
        for node, verdict in verdicts.items()
    }


NEW = """
<ir_version: 11, opset_import: ["" : 22]>
new (float[1, 3, 8, 8] x) => (float[1, 4, 6, 6] y)
<float[4, 3, 3, 3] w> { y = Conv(x, w) }
"""
MIXED = """
<ir_version: 10, opset_import: ["" : 18]>
mixed (float[N, 4, "length"] x, int64[1] k) => (float[N, 4, M] y)
<int64[1] axes = {0}, float[4] w = {1, 2, 3, 4}>
{
    shape = Constant <value = int64[2] {1, 4}> ()
    early = Expand(w, shape)
    a = Celu(x)
    b = HardSwish(a)
    s = Squeeze(b, k)
    y = Identity(s)
}
"""


OF_RUNTIME = """
<ir_version: 10, opset_import: ["" : 21]>
decoder (float[2, 4] x) => (float[2, 4] y)
<float[4] scale = {1, 1, 1, 1}> { y = SimplifiedLayerNormalization <axis = -1> (x, scale) }
"""


def test_an_operator_of_onnx_runtime_without_a_domain_has_no_definition(tmp_path: Path) -> None:
    with reader_of(tmp_path, OF_RUNTIME) as reader:
        found = {one.name: told(reader, one.name) for one in tables()}
    assert found["CUDA"]["SimplifiedLayerNormalization"][0].support is Support.TAKEN
    assert {len(verdicts) for verdicts in found.values()} == {1}


def test_the_nearest_opset_with_a_kernel_is_advised(tmp_path: Path) -> None:
    with reader_of(tmp_path, NEW) as reader:
        verdict, change = told(reader, "Dml")["Conv"]
        assert verdict.cause is Cause.VERSION
        assert change == "dld convert opset m.onnx --to 21 -o OUT"
        assert told(reader, "CUDA")["Conv"][0].support is Support.TAKEN
    # It is taken in that version, and not in the next.
    with reader_of(tmp_path, NEW.replace(": 22", ": 21")) as reader:
        assert told(reader, "Dml")["Conv"][0].support is Support.TAKEN


def test_constants_definitions_and_shapes_decide(tmp_path: Path) -> None:
    with reader_of(tmp_path, MIXED) as reader:
        assert "Expand" not in {node.op_type for node in reader.nodes}, "it depends on no input"
        tensorrt = told(reader, "Tensorrt")
        assert tensorrt["Squeeze"][0].reason == "axes is not constant"
        assert tensorrt["Squeeze"][1] == "dld convert shape m.onnx --dim N=1 --dim length=1 -o OUT"
        qnn = told(reader, "QNN")
        assert qnn["Identity"][0].cause is Cause.SHAPE
        assert qnn["Identity"][1].startswith("dld convert shape m.onnx --dim N=1")
        # CUDA has no kernel of Celu; ONNX Runtime puts its definition in its place.
        celu = told(reader, "CUDA")["Celu"][0]
        assert celu.support is Support.TAKEN
        assert celu.reason.startswith("as its definition of ")


@pytest.mark.parametrize("operator", ["Neg", "Det"])
def test_a_node_with_subgraphs_is_taken_with_all_in_them(tmp_path: Path, operator: str) -> None:
    text = PLAIN_BRANCHES if operator == "Neg" else PLAIN_BRANCHES.replace("Neg(a)", "Det(a)")
    with reader_of(tmp_path, text) as reader:
        verdict = told(reader, "Tensorrt")["If"][0]
        if operator == "Neg":
            assert verdict.support is Support.PARTLY  # under the condition of the table
        else:
            assert (verdict.support, verdict.cause) == (Support.NOT, Cause.BODY)
            assert verdict.reason.startswith("its subgraph has Det: ")
        assert told(reader, "CoreML")["Add"][0].cause is Cause.BODY


SHAPES = """
<ir_version: 10, opset_import: ["" : 18]>
shapes (float[N, 4, 6] x, int64[3] fed) => (float[N, K] y, int64[3] other)
<int64[1] at = {0}, int64[1] rest = {-1}, int64[1] axes = {0}> {
    shape = Shape(x)
    first = Gather(shape, at)
    size = Concat <axis = 0> (first, rest)
    y = Reshape(x, size)
    z = Abs(x)
    other = Neg(shape)
    beside = Add(shape, fed)
    half = Cast <to = 10> (beside)
    halves = Sqrt(half)
    sum = ReduceSum <keepdims = 0> (fed)
    mixed = Mul(shape, sum)
}
"""


def test_shape_computations_are_left_to_the_cpu_as_onnx_runtime_does(tmp_path: Path) -> None:
    """Shape and Reshape stay: one writes to the host, the other reads from there."""
    with reader_of(tmp_path, SHAPES) as reader:
        cuda = {name: verdict.cause for name, (verdict, _) in told(reader, "CUDA").items()}
        assert {name for name, cause in cuda.items() if cause is Cause.HOST} == {
            "Gather", "Concat", "Neg", "Add", "Cast",
        }  # fmt: skip
        assert {name for name, cause in cuda.items() if cause is Cause.NONE} == {
            "Shape", "Reshape", "Abs",
            "Sqrt",  # of float16
            "ReduceSum", "Mul",  # of nothing that was made on the host, and of what it made
        }  # fmt: skip


def fewest(nodes: list[Node], taken: set[Node]) -> int:
    """Return the fewest runs of taken nodes over all orders, by trying all."""
    made = {name: node for node in nodes for name in node.outputs}
    needs = {n: {made[i] for i in n.inputs if i in made} for n in nodes}
    best = {(frozenset[Node](), False): 0}
    while True:
        grown: dict[tuple[frozenset[Node], bool], int] = {}
        for (done, side), groups in best.items():
            for node in nodes:
                if node not in done and needs[node] <= done:
                    state = (done | {node}, node in taken)
                    cost = groups + (node in taken and not side)
                    grown[state] = min(grown.get(state, cost), cost)
        if not grown:
            return min(best.values())
        best = grown


def test_partitions_are_the_fewest_of_all_orders(tmp_path: Path) -> None:
    rng = random.Random(5)
    seen = Counter[int]()
    for _ in range(60):
        lines, names = [], ["x"]
        for at in range(8):
            first, second = rng.choice(names), rng.choice(names)
            lines.append(f"    v{at} = Add({first}, {second})")
            names.append(f"v{at}")
        text = (
            '<ir_version: 10, opset_import: ["" : 18]>\n'
            "g (float[1] x) => (float[1] v7) {\n" + "\n".join(lines) + "\n}"
        )
        with contextlib.closing(Document.open(write(tmp_path, text))) as document:
            nodes = list(document.main.nodes)
            taken = {node for node in nodes if rng.random() < 0.5}
            count = partitions(nodes, taken)
            assert count == fewest(nodes, taken)
            seen[count] += 1
    assert len(seen) > 2
