"""Merged models: equal to running them in turn, names and versions brought together."""

from __future__ import annotations

import contextlib
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from dld_tui.core.conversion.copies import infer
from dld_tui.core.errors import DldError, EditError
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.parts.extraction import declare_inferred, extract_nodes
from dld_tui.core.model.document.serialise import save
from dld_tui.core.model.inputs.guess import candidate_guesses, first_that_runs, input_specs
from dld_tui.core.types import JSON
from tests.support import models
from tests.support.conversions import FIRST, SECOND
from tests.support.drawn_models import drawn_model
from tests.support.model_lines import model_text
from tests.support.recorded import Recorded
from tests.support.runtime import session_of
from tests.support.sessions import bytes_of

THIRD = SECOND.replace("second (", "third (").replace("Sub(a, b)", "Mul(a, b)")


def merged(
    folder: Path, first: str, *others: str, **settings: Any
) -> tuple[onnx.ModelProto, list[onnx.ModelProto]]:
    """Merge models by the edit, write the result, and return it and what it is made of."""
    paths = [models.write(folder, text, f"m{n}.onnx") for n, text in enumerate((first, *others))]
    with contextlib.closing(Document.open(paths[0])) as document:
        given: list[JSON] = [{"file": str(path)} for path in paths[1:]]
        document.apply("merge_models", models=given, **settings)
        save(document, folder / "merged.onnx", overwrite=True)
    result = onnx.load(folder / "merged.onnx")
    onnx.checker.check_model(result)
    return result, [onnx.load(path) for path in paths]


def run(model: onnx.ModelProto | Path, **feed: Any) -> dict[str, Any]:
    session = session_of(model)
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, feed), strict=True))


X = np.arange(8, dtype=np.float32).reshape(2, 4) / 8
TRUE, FALSE = np.array(True), np.array(False)


def test_equal_to_running_in_turn(tmp_path: Path) -> None:
    # The weights W, the function minus and so shift, and z have one name and two meanings.
    result, parts = merged(
        tmp_path, FIRST, SECOND, THIRD,
        links={"data": "y"}, prefixes=["b_", "c_"], keep={"z": "seen", "c_data": "passed"},
    )  # fmt: skip
    first = run(parts[0], x=X)
    second = run(parts[1], data=first["y"], choice=TRUE)
    third = run(parts[2], data=second["y"], choice=FALSE)
    found = run(result, x=X, choice=TRUE, c_choice=FALSE)
    assert found.keys() == {"seen", "passed", "y", "data"}
    for name, value in {
        "seen": first["z"], "passed": third["data"], "y": third["y"], "data": second["data"]
    }.items():  # fmt: skip
        np.testing.assert_array_equal(found[name], value)
    assert {f.name for f in result.functions} == {"minus", "shift", "c_minus", "c_shift"}
    assert {node.name for node in result.graph.node} >= {"dense", "b_dense", "c_dense"}
    assert (result.ir_version, result.opset_import[0].version) == (9, 18)
    batches = {info.type.tensor_type.shape.dim[0].dim_param for info in result.graph.output}
    assert batches == {"batch"}  # names of linked dimensions are one


def test_data_files_and_defaults(tmp_path: Path) -> None:
    other = """
    <ir_version: 8, opset_import: ["" : 13]>
    other (float[N, 3] y, float[3] scale) => (float[N, 3] out)
    <float[3] scale = {2, 2, 2}, float[3] big = {7, 8, 9}>
    { t = Mul(y, scale)  out = Add(t, big) }
    """.replace("  out", "\n out")
    parts = [models.parse(FIRST), models.parse(other)]
    for number, part in enumerate(parts):
        for tensor in part.graph.initializer:  # only raw data go to a file
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor), tensor.name))
        folder = tmp_path / str(number)
        folder.mkdir()
        onnx.save(part, folder / "m.onnx", save_as_external_data=True, size_threshold=0,
                  location="w.data")  # fmt: skip
    with contextlib.closing(Document.open(tmp_path / "0" / "m.onnx")) as document:
        document.apply("merge_models", models=[{"file": str(tmp_path / "1" / "m.onnx")}])
        save(document, tmp_path / "out.onnx")
    stored = onnx.load(tmp_path / "out.onnx", load_external_data=False)
    assert {t.data_location for t in stored.graph.initializer} == {onnx.TensorProto.EXTERNAL}
    found = run(tmp_path / "out.onnx", x=X)["out"]
    expected = run(tmp_path / "1" / "m.onnx", y=run(models.parse(FIRST), x=X)["y"])["out"]
    np.testing.assert_array_equal(found, expected)


def test_functions_are_compared_with_their_large_constants(tmp_path: Path) -> None:
    paths = []
    for name, last in (("a", 1), ("b", 1), ("c", 2)):
        model = models.parse(FUNCTION)
        values = np.arange(5000, dtype=np.float32)
        values[-1] = last
        node = onnx.helper.make_node(
            "Constant", [], ["k"], value=numpy_helper.from_array(values, "large")
        )
        model.functions[0].node.append(node)
        paths.append(tmp_path / f"{name}.onnx")
        onnx.save(model, paths[-1])
    found = []
    for path in paths[1:]:
        with contextlib.closing(Document.open(paths[0])) as document:
            document.apply("merge_models", models=[str(path)], links={"x": "z"}, prefixes=["p_"])
            made = onnx.ModelProto.FromString(bytes_of(document))
        found.append([function.name for function in made.functions])
    assert found == [["f"], ["f", "p_f"]]


RELU = """<ir_version: 8, opset_import: ["" : 13]>
    relu (float[n, 3] {0}) => (float[n, 3] r) {{ r = Relu({0}) }}"""
SCAN = """<ir_version: 8, opset_import: ["" : 8]> old (float[1, 2, 3] z) => (float[1, 2, 3] o)
    { o = Scan <num_scan_inputs = 1, body = b (float[3] s) => (float[3] t) { t = Relu(s) }> (, z) }
    """
NEWER = """<ir_version: 8, opset_import: ["" : 13]>
    new (float[1, 2, 3] q) => (float[1, 2, 3] z, int64[3, n] i) { z = Relu(q) i = NonZero(q) }"""
SUM = """<ir_version: 8, opset_import: ["" : 18]>
    sum (float[n, 3] z) => (float[n] s) <int64[1] a = {1}> { s = ReduceMax<keepdims=0>(z, a) }"""
NORMAL = """<ir_version: 3, opset_import: ["" : 6, "ai.onnx.ml" : 1]>
    g (float[n, 4] z) => (float[n, 4] s) { s = ai.onnx.ml.Normalizer(z) }"""
LABELS = """<ir_version: 8, opset_import: ["" : 13, "ai.onnx.ml" : 1]>
    l (float[n, 4] x, string[n] w) => (float[n, 4] z, int64[n] v)
    { z = Exp(x) v = ai.onnx.ml.LabelEncoder<classes_strings = ["a", "b"]>(w) }"""
OWN = """<ir_version: 8, opset_import: ["" : 13, "own" : 2]>
    o (float[n, 4] x) => (float[n, 4] z, float[n, 4] e) { z = own.F(x) e = Exp(x) }"""
OPERATOR = FIRST.replace("Relu(x)", "local.f(x)").replace('"" : 13', '"" : 13, "local" : 1')
FUNCTION = OPERATOR + '<domain: "local", opset_import: ["" : 13]> f (a) => (b) { b = Neg(a) }'
NAMED = """<ir_version: 8, opset_import: ["" : 13]>
g (float[{}, {}] x) => (float[L, {}] y) {{ y = Relu (x) }}"""
CASES: dict[str, tuple[list[str], dict[str, Any]]] = {
    "three": (
        [FIRST, SECOND, THIRD],
        {"links": {"data": "y"}, "prefixes": ["b_", "c_"], "keep": {"z": "s", "c_data": "p"}},
    ),
    "one prefix for two": ([FIRST, SECOND, THIRD], {"links": {"data": "y"}, "prefixes": ["p_"]}),
    "no prefixes": ([FIRST, SECOND, THIRD], {"links": {"data": "y"}}),
    "by name": ([FIRST, RELU.format("y")], {}),
    "by shape": ([FIRST, RELU.format("anything")], {}),
    "kept outputs": ([FIRST, RELU.format("y")], {"keep": {"y": "y", "r": "end"}}),
    "two shared inputs": ([FIRST, FIRST], {"links": {"x": "x"}}),
    "opsets go up": ([FIRST.replace(": 13", ": 11"), SUM.replace("n, 3", "n, 4")], {}),
    "opsets of the second go up": ([OWN, NORMAL], {"links": {"z": "z"}}),
    "neither opset goes": ([NEWER, SCAN], {}),
    "one opset goes down": ([RELU.format("q").replace("n, 3", "1, 2, 3"), SCAN], {}),
    "another set goes up": ([OWN, OWN.replace(": 2", ": 3").replace("own.F", "Neg")],
                            {"links": {"x": "z"}}),
    "another set that differs": (
        [LABELS, NORMAL.replace("ml\" : 1", "ml\" : 2")], {"links": {"z": "x"}}
    ),
    "an operator and a function": ([OPERATOR, FUNCTION], {"links": {"x": "z"}}),
    "a function and an operator": ([FUNCTION, OPERATOR], {"links": {"x": "z"}}),
    "nothing": ([FIRST], {}),
    "nothing fits": ([FIRST, FIRST.replace("batch, 4", "batch, 5")], {}),
    "two fit": ([FIRST, SECOND.replace("N, 3]", "N, M]")], {}),
    "it does not fit": ([FIRST, FIRST], {"links": {"x": "y"}}),
    "one output and one input that do not fit": (
        [RELU.format("y"), RELU.format("q").replace("float[", "int64[")], {}
    ),
    "sizes with names": (
        [NAMED.format("N", 3, 3), NAMED.format("M", "K", "M")],
        {"links": {"x": "y"}},
    ),
    "no tensor": ([FIRST, FIRST], {"links": {"x": "q"}}),
    "no tensor, of the first of two": (
        [FIRST, SECOND, RELU.format("y")], {"links": {"choice": "q", "data": "y"}}
    ),
    "no input": ([FIRST, FIRST], {"links": {"q": "y"}}),
    "no output": ([FIRST, FIRST], {"keep": {"q": "q"}}),
    "another tensor": ([FIRST, FIRST], {"keep": {"y": "x"}}),
    "two prefixes": ([FIRST, FIRST], {"prefixes": ["a", "b"]}),
}  # fmt: skip


def test_what_is_made_or_refused(tmp_path: Path, recorded: Recorded) -> None:
    found = {}
    for title, (texts, settings) in CASES.items():
        paths = [models.write(tmp_path, text, f"m{at}.onnx") for at, text in enumerate(texts)]
        with contextlib.closing(Document.open(paths[0])) as document:
            before = bytes_of(document)
            given: list[JSON] = [str(path) for path in paths[1:]]
            try:
                done = document.apply("merge_models", models=given, **settings)
            except EditError as error:
                found[title] = f"! {error}\n!   {error.hint}"
            else:
                made = onnx.ModelProto.FromString(bytes_of(document))
                onnx.checker.check_model(made)
                found[title] = f"{done.title}\n{model_text(made)}"
                document.undo()
            assert bytes_of(document) == before
            assert not document.history.done
    recorded("merging", found)


NAMES = (
    "basic_pitch_nmp", "functions_encoder_op18", "light_resnet50", "light_shufflenet",
    "magika_v3_3", "opennsfw_fp16_op9", "ppocrv2_cls", "ppocrv4_det", "rawi_ensemble_int8",
    "silero_vad_16k_op15",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_split_and_merged_models(tmp_path: Path, real_models: Path, name: str) -> None:
    _require_equal_when_split(real_models / "onnx" / f"{name}.onnx", 2, tmp_path)


@pytest.mark.parametrize("seed", range(6))
def test_drawn_models_split_in_three_and_merged(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "drawn.onnx"
    onnx.save(drawn_model(seed), path)
    _require_equal_when_split(path, 3, tmp_path)


def _require_equal_when_split(path: Path, count: int, folder: Path) -> None:
    """Split a model into parts, merge them again, and run both."""
    session = session_of(onnx.load(path))

    def feed(values: Any) -> list[Any]:
        try:
            return list(session.run(None, dict(values)))
        except Exception as error:
            raise DldError(str(error)) from error

    parts = list[Path]()
    with contextlib.closing(Document.open(path)) as document:
        infer(document, path)
        nodes = document.main.nodes
        ends = [len(nodes) * number // count for number in range(count + 1)]
        for begin, end in pairwise(ends):
            part = extract_nodes(document, nodes[begin:end])
            declare_inferred(part)
            parts.append(folder / f"{begin}.onnx")
            save(part.document, parts[-1])
            part.document.close()
        guess, expected = first_that_runs(
            candidate_guesses(input_specs(document), document), 0, feed
        )
    with contextlib.closing(Document.open(parts[0])) as first:
        known = {*first.main.outputs, *first.main.inputs}
        links: dict[str, JSON] = {}
        for one in parts[1:]:
            graph = onnx.load(one).graph
            links |= {info.name: info.name for info in graph.input if info.name in known}
            known |= {info.name for info in (*graph.input, *graph.output)}
        names = [output.name for output in session.get_outputs()]
        keep: dict[str, JSON] = {name: name for name in names if name in links}
        given: list[JSON] = [{"file": str(one)} for one in parts[1:]]
        first.apply("merge_models", models=given, links=links, keep=keep)
        save(first, folder / "merged.onnx")
    again = session_of(onnx.load(folder / "merged.onnx"))
    used = {one.name for one in again.get_inputs()}
    fed = {name: value for name, value in dict(guess.values(0)).items() if name in used}
    for mine, theirs in zip(again.run(names, fed), expected, strict=True):
        np.testing.assert_array_equal(mine, theirs)
