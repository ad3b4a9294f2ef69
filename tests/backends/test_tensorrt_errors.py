from __future__ import annotations

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import onnx
import pytest

from dld_tui.backends.tensorrt import parser_support
from dld_tui.backends.tensorrt.errors import ParserProblem, build_error, parser_error, short
from dld_tui.backends.tensorrt.library import Library, capabilities_of
from dld_tui.core.errors import ActivityError, InputError, UnavailableError
from dld_tui.core.model.document import Document
from dld_tui.core.types import NodePlace
from tests.support import body_models, models
from tests.support.fake_builds import fake_build
from tests.support.fake_tensorrt import fake_tensorrt

LIBRARY = "TensorRT 10.3"


class RefusesAbs:
    """A parser that takes all but Abs, and the groups of nodes between them."""

    num_errors = 1

    def __init__(self, *_: object) -> None:
        self.groups: list[list[int]] = []

    def supports_model_v2(self, data: bytes, path: str) -> bool:
        kinds = [node.op_type for node in onnx.ModelProto.FromString(data).graph.node]
        runs = itertools.groupby(range(len(kinds)), lambda at: kinds[at] != "Abs")
        self.groups = [list(run) for is_taken, run in runs if is_taken]
        self.refused = kinds.index("Abs") if "Abs" in kinds else -1
        return "Abs" not in kinds

    @property
    def num_subgraphs(self) -> int:
        return len(self.groups)

    def get_subgraph_nodes(self, at: int) -> list[int]:
        return self.groups[at]

    def get_error(self, index: int) -> Any:
        texts = {"desc": "no importer", "node_name": "", "node_operator": "Abs", "code": "8"}
        return SimpleNamespace(
            node=lambda: self.refused, local_function_stack=list,
            **{name: lambda text=text: text for name, text in texts.items()},
        )  # fmt: skip


def test_the_parser_is_asked_until_every_part_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    trt = fake_tensorrt()
    trt.OnnxParser = RefusesAbs
    found = Library(trt, capabilities_of(trt))
    monkeypatch.setattr(parser_support, "find_library", lambda choice: found)
    model = models.parse("""<ir_version: 10, opset_import: ["" : 21]> g (float[4] x) => (float[4] y)
        { a = Relu(x) b = Relu(a) c = Abs(b) d = Neg(c) e = Abs(d) y = Neg(e) }""")
    model = onnx.shape_inference.infer_shapes(model)
    title, taken, reasons = parser_support.parser_support(model, Path("m.onnx"), "tensorrt")
    assert title == found.capabilities.title
    assert sorted(taken) == [0, 1, 3, 5]
    assert reasons == {2: "no importer"}


# Texts of TensorRT 8.6, 10 and TensorRT-RTX 1.7.
CASES = [
    ("10: Could not find any implementation for node {ForeignNode[/a/MatMul.../b/Add]}.",
     "no implementation for a layer", "/a/MatMul.../b/Add"),
    ("IBuilder::buildSerializedNetwork: Error Code 10: Internal Error (Could not find any"
     " implementation for node conv1 + relu1. In computeCosts at /_src/optimizer.cpp:4)",
     "no implementation for a layer", "conv1"),
    ("2: [virtualMemoryBuffer.cpp::resizePhysical::145] Error Code 2: OutOfMemory (no further"
     " information)", "out of memory", None),
    ("Cuda Runtime (out of memory)", "out of memory", None),
    ("Error Code 9: Internal Error (node1: no implementation obeys reduced-precision constraints)",
     "no implementation has the requested precision", None),
    ("Calibration failure occurred with no scaling factors detected.",
     "INT8 without calibration", None),
    ("Error Code 4: API Usage Error (Network has dynamic or shape inputs, but no optimization"
     " profile has been defined. In validate at /_src/network.cpp:1)",
     "the optimization profiles do not fit", None),
    ("Myelin ([tactic.cpp:1676: enumerate_tactics] Tactic Selection: no tactics to implement the"
     " operation within workspace limit.", "no implementation for a layer", None),
    ("Unable to load library: libnvinfer_lean.so.1: cannot open shared object file",
     "lean runtime is missing", None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message", "layer"), CASES)
def test_kinds_of_failures(text: str, message: str, layer: str | None) -> None:
    error = build_error(["earlier", text], "m.onnx", LIBRARY)
    assert isinstance(error, ActivityError)
    assert message in error.message
    assert error.message.startswith(LIBRARY)
    assert error.hint
    assert "earlier" in (error.details or "")
    if layer:
        assert error.where is not None
        assert error.where.startswith("m.onnx: layer '")
        assert layer in error.where
    else:
        assert error.where == "m.onnx"


@pytest.fixture
def document(tmp_path: Path) -> Document:
    return Document.open(models.write(tmp_path, models.BRANCHES))


def test_a_function_that_calls_itself_is_refused_before_the_parser_sees_it(tmp_path: Path) -> None:
    model = body_models.write(tmp_path, "RECURSIVE")
    with pytest.raises(InputError, match="function local::ping calls itself") as caught:
        fake_build(fake_tensorrt(), model, opt_shapes=("x:2",))
    assert caught.value.where == str(model)


@pytest.mark.parametrize(
    "text",
    [
        "Error Code 1: Internal Error (Unsupported SM: 0x900)",
        "Target GPU SM 70 is not supported by this TensorRT release.",
        "IRuntime::deserializeCudaEngine: Supported compute capabilities: 8.0 8.6 8.9 12.0 12.1",
    ],
)
def test_devices_that_are_not_supported(text: str) -> None:
    error = build_error([text], "m.onnx", LIBRARY)
    assert isinstance(error, UnavailableError)
    assert "does not support the compute capability" in error.message


def test_what_is_not_known_is_told_as_it_is_and_cut() -> None:
    text = "IBuilder::build: Error Code 4: API Usage Error (Bad\x1b[2J things. In f at /s/n.cpp:1)"
    error = build_error([text], "m.onnx", LIBRARY)
    assert error.message == "TensorRT 10.3 cannot build it: Bad\\x1b[2J things"
    assert build_error([], "m", LIBRARY).message.endswith("it gave no reason")
    error = build_error(["x" * 100_000], "m.onnx", LIBRARY)
    assert len(error.message) < 400
    assert len(error.details or "") < 10_000
    text = "Assertion failed: (ctx->tensors().count(name)): Node input was not registered"
    assert short(text) == "Node input was not registered"


def problem(
    text: str = "bad", node: int = -1, name: str = "", op: str = "", functions: tuple[str, ...] = ()
) -> ParserProblem:
    return ParserProblem(text, node, name, op, functions, "INVALID_NODE")


@pytest.mark.parametrize(
    ("found", "where", "finding"),
    [
        # By its position in the main graph, by its name in a subgraph, or nowhere.
        (problem(node=0, op="Relu", name="pre"), "node 'pre' (Relu, number 0)", ((), "pre")),
        (problem(node=0, op="Neg", name="inner"), "", (("choose:then_branch",), "inner")),
        (problem(node=44, op="Fake", name="gone"), "node 'gone' (Fake, number 44)", None),
    ],
)
def test_where_a_problem_is(
    document: Document, found: ParserProblem, where: str, finding: Any
) -> None:
    error = parser_error([found], ["log"], document, LIBRARY)
    assert where in (error.where or "")
    assert str(document.path) in (error.where or "")
    assert error.message == "TensorRT 10.3: cannot be parsed: bad"
    assert error.details == "log"
    at = None if finding is None else (str(document.path), *finding, finding[1], found.op_type)
    assert error.finding == (at and NodePlace(*at))
