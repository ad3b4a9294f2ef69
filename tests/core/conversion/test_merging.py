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
from tests.support.runtime import session_of

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


def test_by_name_and_by_shape(tmp_path: Path) -> None:
    relu = """<ir_version: 8, opset_import: ["" : 13]>
    relu (float[n, 3] {0}) => (float[n, 3] r) {{ r = Relu({0}) }}"""
    expected = np.maximum(X @ np.arange(1, 13, dtype=np.float32).reshape(4, 3), 0)
    for name in ("y", "anything"):
        result, _ = merged(tmp_path, FIRST, relu.format(name))
        np.testing.assert_array_equal(run(result, x=X)["r"], expected)
        assert [output.name for output in result.graph.output] == ["z", "r"]


def test_a_shared_input_and_undo(tmp_path: Path) -> None:
    path = models.write(tmp_path, FIRST)
    with contextlib.closing(Document.open(path)) as document:
        document.apply("merge_models", models=[{"file": str(path)}], links={"x": "x"})
        assert document.main.inputs == ("x",)
        assert [*document.main.outputs] == ["y", "z", "y_1", "z_1"]
        document.undo()
        assert [*document.main.outputs] == ["y", "z"]


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


@pytest.mark.parametrize(
    ("other", "settings", "says"),
    [
        (FIRST.replace("batch, 4", "batch, 5"), {}, "no output fits an input: 'y', 'z' to 'x'"),
        (SECOND.replace("N, 3]", "N, M]"), {}, "'y', 'z' fit input 'data'"),
        (FIRST, {"links": {"x": "y"}}, "'y' does not fit input 'x': float32[batch, 3] is not"),
        (FIRST, {"links": {"x": "q"}}, "second.onnx: there is no tensor 'q'"),
        (FIRST, {"links": {"q": "y"}}, "no added model has an input 'q'"),
        (FIRST, {"keep": {"q": "q"}}, "there is no output 'q'. There are 'y', 'y_1', 'z'"),
        (FIRST, {"keep": {"y": "x"}}, "there is another tensor called 'x'"),
        (FIRST, {"prefixes": ["a", "b"]}, "2 prefixes are given for 1 model"),
    ],
)
def test_refused_and_nothing_changed(
    tmp_path: Path, other: str, settings: dict[str, Any], says: str
) -> None:
    path = models.write(tmp_path, FIRST)
    second = models.write(tmp_path, other, "second.onnx")
    with contextlib.closing(Document.open(path)) as document:
        given: list[JSON] = [{"file": str(second)}]
        with pytest.raises(EditError) as caught:
            document.apply("merge_models", models=given, **settings)
        assert says in str(caught.value)
        assert not document.history.done
        assert (document.main.outputs, len(document.main.nodes)) == (("y", "z"), 2)


def test_operators_that_differ_between_the_models(tmp_path: Path) -> None:
    old = """<ir_version: 8, opset_import: ["" : 8]> old (float[1, 2, 3] z) => (float[1, 2, 3] o)
    { o = Scan <num_scan_inputs = 1, body = b (float[3] s) => (float[3] t) { t = Relu(s) }> (, z) }
    """
    new = """<ir_version: 8, opset_import: ["" : 13]>
    new (float[1, 2, 3] q) => (float[1, 2, 3] z, int64[3, n] i) { z = Relu(q) i = NonZero(q) }"""
    with pytest.raises(EditError, match=r"m1.onnx: opsets 13 and 8 cannot be .* together: .*Scan"):
        merged(tmp_path, new, old)
    operator = FIRST.replace("Relu(x)", "local.f(x)").replace('"" : 13', '"" : 13, "local" : 1')
    function = operator + '<domain: "local", opset_import: ["" : 13]> f (a) => (b) { b = Neg(a) }'
    for first, second in ((operator, function), (function, operator)):
        with pytest.raises(EditError, match="'local:f' is an operator of one model and a function"):
            merged(tmp_path, first, second, links={"x": "z"})


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
