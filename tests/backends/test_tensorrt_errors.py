from __future__ import annotations

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import onnx
import pytest

from dld_tui.backends.tensorrt import parser_support
from dld_tui.backends.tensorrt.errors import (
    ParserProblem,
    build_error,
    loading_problem,
    parser_error,
    parser_problems,
    running_problem,
)
from dld_tui.backends.tensorrt.library import Library, capabilities_of
from dld_tui.core.errors import DldError, InputError
from dld_tui.core.files.recognise import EngineHeader
from dld_tui.core.model.document import Document
from tests.support import body_models, models
from tests.support.fake_builds import fake_build
from tests.support.fake_tensorrt import fake_tensorrt
from tests.support.recorded import Recorded, settled

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


# Texts of TensorRT 8.6, 10, 11 and TensorRT-RTX 1.7.
BUILDS = [
    "10: Could not find any implementation for node {ForeignNode[/a/MatMul.../b/Add]}.",
    "IBuilder::buildSerializedNetwork: Error Code 10: Internal Error (Could not find any"
    " implementation for node conv1 + relu1. In computeCosts at /_src/optimizer.cpp:4)",
    "2: [virtualMemoryBuffer.cpp::resizePhysical::145] Error Code 2: OutOfMemory (no further"
    " information)",
    "Cuda Runtime (out of memory)",
    "Error Code 9: Internal Error (node1: no implementation obeys reduced-precision constraints)",
    "Calibration failure occurred with no scaling factors detected.",
    "Error Code 4: API Usage Error (Network has dynamic or shape inputs, but no optimization"
    " profile has been defined. In validate at /_src/network.cpp:1)",
    "Myelin ([tactic.cpp:1676: enumerate_tactics] Tactic Selection: no tactics to implement the"
    " operation within workspace limit.",
    "Unable to load library: libnvinfer_lean.so.1: cannot open shared object file",
    "Error Code 1: Internal Error (Unsupported SM: 0x900)",
    "Target GPU SM 70 is not supported by this TensorRT release.",
    "IRuntime::deserializeCudaEngine: Supported compute capabilities: 8.0 8.6 8.9 12.0 12.1",
    "CUDA initialization failure with error: 35",
    "Assertion CHECK(status == CUDA_SUCCESS) failed",
    "no importer registered for op: Odd",
    "REFIT flag and layer 'a.b:' do not go together",
    'layer name: "one two" cannot run on DLA',
    "Node '': DLA",
    "IBuilder::build: Error Code 4: API Usage Error (Bad\x1b[2J things. In f at /s/n.cpp:1)",
    "Assertion failed: (ctx->tensors().count(name)): Node input was not registered",
    "Cuda Runtime ( )",
    "x" * 301,
    "x" * 300 + ".",
    "y " * 9000,
    "--- Begin node ---",
    "\n",
]
GRAPH = "'/a/b' and a name of more than eighty cells " + "n" * 80


def error_text(error: DldError) -> str:
    details = error.details or ""
    lines = [
        f"{type(error).__name__}: {error.message}", f"where: {error.where}", f"hint: {error.hint}",
        "details: " + (details if len(details) < 1000 else f"{details[:20]}, {len(details)} long"),
    ]  # fmt: skip
    return "\n".join(lines) + (f"\nfinding: {error.finding}" if error.finding else "")


def test_what_errors_of_builds_mean(recorded: Recorded) -> None:
    texts = {text[:120]: build_error(["earlier", text], "m.onnx", LIBRARY) for text in BUILDS}
    texts["two kinds"] = build_error(["out of memory", "DLA", "what"], "m.onnx", LIBRARY)
    texts["nothing"] = build_error([], "m.onnx", LIBRARY)
    recorded("tensorrt_build_errors", {name: error_text(one) for name, one in texts.items()})


HEADER = EngineHeader("TensorRT", "10.3.0.26")
LOADING = [
    "IRuntime::deserializeCudaEngine: Error Code 1: Serialization (Serialization assertion"
    " stdVersionRead == kSERIALIZATION_VERSION failed. Version tag does not match.)",
    "Supported compute capabilities: 8.0, 8.6 8.9. This device is SM90",
    "supported compute capability: None. SM 7.0 is not supported",
    "could not find plugin: Odd\x1b version: 1",
    "Plugin creator not found for Name: Other",
    "Cannot deserialize plugin with type 'ns::Third'",
    "IPluginCreator not found in Plugin Registry",
    "CUDA error: OUT_OF_MEMORY",
    "The engine plan was generated on an incompatible device",
    "Magic tag does not match",
    "IExecutionContext::enqueueV3: Error Code 3: API Usage Error (bad. In f at /s/f.cpp:12)"
    " (In g at /s/g.cpp:1)",
    "[runtime.cpp::f::12]",
    "z" * 400,
]


def test_what_errors_of_engines_mean(recorded: Recorded) -> None:
    texts = {}
    for text in LOADING:
        said = [text, "[runtime.cpp::f::12]"]
        known = loading_problem(said, HEADER, LIBRARY, "compute capability 9.0", "m.engine")
        unknown = loading_problem([text], None, LIBRARY, "", "")
        running = running_problem([text], "copying", "m.engine")
        shown = [error_text(error) for error in (known, unknown, running)]
        texts[text[:120]] = "\n".join(shown)
    recorded("tensorrt_engine_errors", texts)


@pytest.fixture
def document(tmp_path: Path) -> Document:
    return Document.open(models.write(tmp_path, models.BRANCHES))


def test_a_function_that_calls_itself_is_refused_before_the_parser_sees_it(tmp_path: Path) -> None:
    model = body_models.write(tmp_path, "RECURSIVE")
    with pytest.raises(InputError, match="function local::ping calls itself") as caught:
        fake_build(fake_tensorrt(), model, opt_shapes=("x:2",))
    assert caught.value.where == str(model)


def problem(
    text: str = "bad", node: int = -1, name: str = "", op: str = "", functions: tuple[str, ...] = ()
) -> ParserProblem:
    return ParserProblem(text, node, name, op, functions, "INVALID_NODE")


PROBLEMS = {
    "by its position in the main graph": [problem(node=0, op="Relu", name="pre")],
    "by its name in a subgraph": [problem(node=0, op="Neg", name="inner")],
    "of an unknown node": [problem(node=44, op="Fake", name="gone")],
    "behind the last node": [problem(node=3)],
    "by its operator and position": [problem(node=0, op="Neg")],
    "by its name alone": [problem(name="pre")],
    "of no node": [problem()],
    "of an operator": [problem(op="Relu")],
    "in functions": [problem(node=1, name="n\x1b", op="O", functions=("outer", "in\x1bner"))],
    "plugin": [problem("Plugin not found", 0, "pre", "Relu"), problem()],
    "plugin without a name": [problem("Plugin not found")],
    "memory": [problem("bad_alloc"), *[problem()] * 1200],
    "initializer": [problem(f"Failed to import initializer: {GRAPH}", 0)],
    "initializer in a node": [problem("Failed to import initializer: In node 3: x")],
    "nothing": [],
}


@pytest.mark.parametrize("lines", [["first", "--- Begin node ---", "last. In f at /s.cpp:1"], []])
def test_what_errors_of_the_parser_mean(
    document: Document, recorded: Recorded, tmp_path: Path, lines: list[str]
) -> None:
    texts = {
        name: settled(error_text(parser_error(found, lines, document, LIBRARY)), tmp_path)
        for name, found in PROBLEMS.items()
    }
    recorded(f"tensorrt_parser_errors{'' if lines else '_without_log'}", texts)


def test_what_a_parser_says_of_an_error() -> None:
    error: dict[str, Any] = {
        "desc": lambda: "d", "node": lambda: 3, "node_name": lambda: "n",
        "node_operator": lambda: "o", "local_function_stack": lambda: ["f", "g"],
        "code": lambda: SimpleNamespace(name="C"),
    }  # fmt: skip
    parser: Any = SimpleNamespace(num_errors=2, get_error=lambda index: SimpleNamespace(**error))
    names = {f"ParserError.{name}" for name in error}
    whole = ParserProblem("d", 3, "n", "o", ("f", "g"), "C")
    assert parser_problems(parser, names) == [whole, whole]
    for lost, found in (
        ("node_name", ParserProblem("d", 3, "", "o", ("f", "g"), "C")),
        ("node_operator", ParserProblem("d", 3, "n", "", ("f", "g"), "C")),
        ("local_function_stack", ParserProblem("d", 3, "n", "o", (), "C")),
    ):
        assert parser_problems(parser, names - {f"ParserError.{lost}"}) == [found, found]
    texts = ("false", "Assertion failed: false.", "falsehood", "Assertion failed: x")
    assert [problem(text).tells_why for text in texts] == [False, False, True, True]
