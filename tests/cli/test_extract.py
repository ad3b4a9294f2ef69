from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from tests.support import models
from tests.support.cli import Dld

COMMAS = """
<ir_version: 10, opset_import: ["" : 18]>
commas (float[4] x) => (float[4] y)
{
    [one] a = Relu(x)
    [two] b = Neg(a)
    [three] y = Abs(b)
}
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return models.write(tmp_path, models.CHAIN)


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "part.onnx"


def load(path: Path) -> onnx.ModelProto:
    found = onnx.load(path)
    onnx.checker.check_model(found, full_check=True)
    return found


def test_nodes_with_types_from_inference(dld: Dld, model: Path, output: Path) -> None:
    outcome = dld("extract", model, "-o", output, "--nodes", "second,third")
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out == (
        "input   a  float32[N, 4]\n"
        "output  c  float32[N, 4]\n"
        "2 nodes, 1 initializer of 16 B\n"
    )  # fmt: skip
    assert [node.name for node in load(output).graph.node] == ["second", "third"]


def test_new_names(dld: Dld, model: Path, output: Path) -> None:
    outcome = dld("extract", model, "-o", output, "--inputs", "a=start", "--outputs", "b=mid,c")
    assert outcome.status == 0, outcome
    graph = load(output).graph
    assert [info.name for info in graph.input] == ["start"]
    assert [info.name for info in graph.output] == ["mid", "c"]
    error = dld.fails(3, "extract", model, "-o", output, "--force", "--outputs", "c=a,b=a")
    assert "a" in error


def test_between_values(dld: Dld, model: Path, output: Path) -> None:
    outcome = dld("extract", model, "-o", output, "--inputs", "a", "--outputs", "c", "--json")
    found = outcome.json
    assert (found["path"], found["nodes"], found["remarks"]) == (str(output), 2, [])
    assert [item["name"] for item in found["inputs"]] == ["a"]
    assert found["outputs"][0] == {
        "name": "c", "dtype": "float32", "shape": ["N", 4], "type": "float32[N, 4]",
        "has_default": False,
    }  # fmt: skip
    assert found["initializers"] == {"count": 1, "bytes": 16, "parameters": 4, "unsized": 0}
    load(output)


def test_names_with_commas(dld: Dld, tmp_path: Path, output: Path) -> None:
    text = models.parse(COMMAS)
    text.graph.node[1].name = "two,2"
    path = tmp_path / "commas.onnx"
    onnx.save(text, path)
    dld("extract", path, "-o", output, "--nodes", "two,2", "--nodes", "three")
    assert [node.name for node in load(output).graph.node] == ["two,2", "three"]
    dld("extract", path, "-o", output, "--nodes", "one,two,2,three", "--force")
    assert [node.name for node in load(output).graph.node] == ["one", "two,2", "three"]


def test_subgraph_and_function(dld: Dld, tmp_path: Path, output: Path) -> None:
    branches = models.write(tmp_path, models.BRANCHES, "branches.onnx")
    outcome = dld("extract", branches, "-o", output, "--subgraph", "choose:then_branch")
    assert outcome.out.startswith("input   a  float32[N, 4]\noutput  t")
    assert len(load(output).graph.node) == 2
    functions = models.write(tmp_path, models.FUNCTIONS, "functions.onnx")
    options = ("-o", output, "--function", "local:twice", "--force")
    assert dld("extract", functions, *options).out.startswith("input   v  float32[N]\n")
    assert [node.op_type for node in load(output).graph.node] == ["Add"]


def test_in_another_graph(dld: Dld, tmp_path: Path, output: Path) -> None:
    branches = models.write(tmp_path, models.BRANCHES)
    options = ("-o", output, "--scope", "choose:then_branch", "--nodes", "inner")
    assert dld("extract", branches, *options).status == 0
    assert [node.op_type for node in load(output).graph.node] == ["Neg"]


def test_what_only_a_subgraph_has_is_found_there(dld: Dld, tmp_path: Path, output: Path) -> None:
    branches = models.write(tmp_path, models.BRANCHES)
    for ways in (("--outputs", "h"), ("--nodes", "inner")):
        assert dld("extract", branches, "-o", output, *ways, "--force").status == 0
        assert [node.op_type for node in load(output).graph.node] == ["Neg"]
    outcome = dld("extract", branches, "-o", output, "--outputs", "h,e", "--force")
    assert outcome.status == 2
    assert "'h' is in 'choose:then_branch'. Name one graph: --scope" in outcome.err


def test_unknown_type_is_told(dld: Dld, tmp_path: Path, output: Path) -> None:
    text = COMMAS.replace("Neg(a)", "custom.Thing(a)").replace('"" : 18', '"" : 18, "custom" : 1')
    path = models.write(tmp_path, text)
    outcome = dld("extract", path, "-o", output, "--nodes", "two")
    assert outcome.status == 0
    assert "the type of 'b' is not known" in outcome.err
    assert "output  b  of unknown type" in outcome.out


def test_one_line_for_what_is_wrong(dld: Dld, model: Path, output: Path) -> None:
    def fails(*options: object, status: int = 2) -> str:
        return dld.fails(status, "extract", model, "-o", output, *options)

    assert "no node 'nope'" in fails("--nodes", "nope")
    assert "no value 'nope'" in fails("--outputs", "nope")
    assert "no graph 'nope:x'" in fails("--subgraph", "nope:x")
    assert "no graph" in fails("--function", "nope")
    assert "no graph 'nope'" in fails("--scope", "nope", "--nodes", "first")
    assert "say what to extract" in fails()
    assert "are ways to say it" in fails("--nodes", "first", "--function", "x:y")
    output.write_bytes(b"mine")
    assert "--force" in fails("--nodes", "first")
    assert output.read_bytes() == b"mine"


def test_a_weight_alone_is_a_model(dld: Dld, model: Path, output: Path) -> None:
    name = onnx.load(model).graph.initializer[0].name
    assert dld("extract", model, "-o", output, "--outputs", name).status == 0
    assert [(entry.domain, entry.version) for entry in load(output).opset_import] == [("", 18)]
