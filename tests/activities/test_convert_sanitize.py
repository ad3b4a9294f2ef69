"""Simplifying: the best result that computes the same, and never a failure of a model that runs."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from dld_tui.activities.convert import sanitize
from dld_tui.backends.conversion import library_file, simplifiers
from dld_tui.backends.conversion.value_check import Question, ValueCheck
from dld_tui.core.conversion.accuracy_criteria import SAME
from dld_tui.core.errors import ActivityError
from dld_tui.core.events import Event, Progress
from dld_tui.core.model.document import Document
from dld_tui.core.process.installation import install_command
from tests.support import models
from tests.support.conversions import convert

CHAIN = """
<ir_version: 8, opset_import: ["" : 17]>
chain (float[N, 4] x) => (float[N, 4] y)
<float[4] w = {1, 2, 3, 4}>
{
    a = Identity(x)
    b = Mul(a, w)
    y = Identity(b)
}
"""
SMALLER = CHAIN.replace("a = Identity(x)", "").replace("Mul(a", "Mul(x")
SMALLEST = SMALLER.replace("y = Identity(b)", "").replace("b = Mul", "y = Mul")
WRONG = SMALLEST.replace("Mul", "Add")
FIXED = SMALLEST.replace("y = Mul(x, w)", "y = Expand(x, s)").replace(
    "4}>", "4}, int64[2] s = {1, 4}>"
)
Simplified = Callable[..., tuple[dict[str, Any], onnx.ModelProto]]


@pytest.fixture
def simplified(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Simplified:
    """Return a function that sanitizes with simplifiers that make certain models, or fail."""

    def sanitized(
        made: dict[str, Any], text: str = CHAIN, **settings: Any
    ) -> tuple[dict[str, Any], onnx.ModelProto]:
        def by_library(
            document: Document, module: str, options: simplifiers.Options, stage: str, stack: Any,
            *, limit_s: float, computed: bool,
        ) -> Generator[Event, None, Document]:  # fmt: skip
            result = made[options.by]
            if isinstance(result, Exception):
                raise result
            opened = Document.open(models.write(tmp_path, result, f"{options.by}.onnx"))
            stack.callback(opened.close)
            yield Progress(0, None, stage=stage)
            return opened

        monkeypatch.setattr(library_file, "by_library", by_library)
        monkeypatch.setattr(simplifiers, "missing", lambda name: [] if name in made else [name])
        path, out = models.write(tmp_path, text), tmp_path / "out.onnx"
        result = convert("sanitize", path, out, **settings)
        onnx.checker.check_model(onnx.load(out))
        return result, onnx.load(out)

    return sanitized


def operators(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


def test_the_fewest_nodes_win(simplified: Simplified) -> None:
    made = {"onnxslim": SMALLEST, "onnxsim": SMALLER, "Polygraphy": CHAIN}
    result, model = simplified(made)
    assert operators(model) == ["Mul"]
    assert result["notes"] == [
        "simplified by onnxsim, then onnxslim",
        f"tried without rules, which may leave fewer nodes: {install_command('simplify')}",
    ]
    assert {"by": "onnxsim", "nodes": 2, "problem": None} in result["tried"]


def test_other_values_are_not_taken(simplified: Simplified) -> None:
    result, model = simplified({"onnxslim": WRONG, "onnxsim": SMALLER})
    assert operators(model) == ["Mul", "Identity"]
    told = next(one for one in result["tried"] if one["by"] == "onnxsim, then onnxslim")
    assert "output y" in told["problem"]


def test_an_operator_set_more_is_not_taken(simplified: Simplified) -> None:
    text = SMALLEST.replace('"" : 17', '"" : 17, "com.microsoft" : 1').replace(
        "Mul(x, w)", "com.microsoft.BiasGelu(x, w)"
    )
    result, model = simplified({"onnxslim": text})
    assert len(model.graph.node) == 3
    assert "com.microsoft" in str(result["notes"])


@pytest.mark.usefixtures("replaces_all")
def test_what_folds_into_more_than_the_threshold_is_not_taken(simplified: Simplified) -> None:
    """Weights that the model has already count nothing, however large they are."""
    folded = SMALLEST.replace(" w ", " v ").replace("x, w", "x, v")
    result, after = simplified({"Polygraphy": folded, "onnxslim": SMALLER}, threshold=0.0)
    assert operators(after) == operators(models.parse(SMALLER))
    result, after = simplified({"Polygraphy": folded}, threshold=0.0)
    assert operators(after) == ["Identity", "Mul", "Identity"]
    assert "it folds v, which takes 16 B" in "".join(result["notes"])
    _, after = simplified({"Polygraphy": folded}, threshold=1.0)
    assert operators(after) == ["Mul"]


def test_unverified_results_are_taken_on_demand_only(simplified: Simplified) -> None:
    assert operators(simplified({"onnxslim": WRONG}, verify=False)[1]) == ["Add"]


def test_a_failure_of_all_leaves_the_model_as_it_is(simplified: Simplified) -> None:
    result, model = simplified({"onnxslim": ActivityError("it crashed"), "Polygraphy": WRONG})
    assert len(model.graph.node) == 3
    assert "it crashed" in str(result["notes"])


def test_one_that_failed_is_not_asked_again(simplified: Simplified) -> None:
    made = {"onnxslim": SMALLER, "Polygraphy": ActivityError("stopped after 120 s")}
    result, model = simplified(made)
    assert len(model.graph.node) == 2
    told = [one["problem"] for one in result["tried"] if "Poly" in one["by"]]
    assert told == ["stopped after 120 s"]


@pytest.mark.parametrize("place", [0, 1])
def test_inputs_that_nothing_reads_stay_in_their_places(place: int, simplified: Simplified) -> None:
    listed = ["float[N, 4] x", "bool unread"][:: -1 if place == 0 else 1]
    text = CHAIN.replace("float[N, 4] x", ", ".join(listed))
    _, after = simplified({"Polygraphy": SMALLEST}, text)
    assert len(after.graph.node) == 1
    assert [one.name for one in after.graph.input].index("unread") == place
    assert after.graph.input[place].type.tensor_type.elem_type == onnx.TensorProto.BOOL


@pytest.mark.parametrize(("version", "is_said"), [(8, True), (3, False)])
def test_a_default_that_is_folded_is_told(
    version: int, is_said: bool, simplified: Simplified
) -> None:
    text = CHAIN.replace("float[N, 4] x", "float[N, 4] x, float[4] w")
    text = text.replace("ir_version: 8", f"ir_version: {version}")
    result, after = simplified({"Polygraphy": SMALLEST}, text)
    assert len(after.graph.node) == 1
    told = any(note.startswith("w: no longer an input") for note in result["notes"])
    assert told == is_said


@pytest.mark.parametrize(("largest", "files"), [(1000, ["m", "m.data"]), (1 << 20, ["m"])])
def test_a_simplified_model_beyond_protobuf_has_its_weights_beside_it(
    largest: int, files: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simplifiers, "_LARGEST_FILE", largest)
    weights = np.arange(1000, dtype=np.float32)
    model = models.parse(CHAIN)
    model.graph.initializer.append(numpy_helper.from_array(weights, "large"))
    simplifiers._save(model, str(tmp_path / "m"))
    assert sorted(path.name for path in tmp_path.iterdir()) == files
    stored = onnx.load(tmp_path / "m").graph.initializer[-1]
    assert numpy_helper.to_array(stored).tolist() == weights.tolist()


@pytest.mark.parametrize(
    ("text", "problem"),
    [(CHAIN, None), (SMALLEST, None), (WRONG, "outside"), (FIXED, "outside")],
)
def test_values_are_compared_with_two_sizes(tmp_path: Path, text: str, problem: str | None) -> None:
    with (
        closing(Document.open(models.write(tmp_path, CHAIN))) as before,
        closing(Document.open(models.write(tmp_path, text, "after.onnx"))) as after,
        closing(ValueCheck(before, Question(), SAME)) as check,
    ):
        assert len(check.feeds.sets) == 2
        (row,) = check.outputs(after).outputs
    assert row.problem == "" if problem is None else problem in row.problem


@pytest.mark.skipif(bool(simplifiers.missing("Polygraphy")), reason="Polygraphy is not installed")
def test_external_data_and_local_functions(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17, "f" : 1]>
    g (float[N, 64] x) => (float[N, 64] y) <float[64, 64] w>
    { a = Transpose<perm=[1, 0]>(w) b = MatMul(x, a) y = f.Half(b) }
    <domain: "f", opset_import: ["" : 17]>
    Half (p) => (q) { c = Constant<value = float {2}>() q = Div(p, c) }"""
    model = onnx.load(models.write_weighted(tmp_path, text))
    path, out = tmp_path / "m.onnx", tmp_path / "out.onnx"
    onnx.save(model, path, save_as_external_data=True, location="m.data", size_threshold=0)
    convert("sanitize", path, out, by="Polygraphy")
    with closing(Document.open(path)) as before, closing(Document.open(out)) as after:
        with closing(ValueCheck(before, Question(), SAME)) as check:
            assert check.outputs(after).is_good
        assert sanitize.nodes(after) <= sanitize.nodes(before)


def test_our_rules_simplify_without_any_library(tmp_path: Path) -> None:
    path, out = models.write(tmp_path, CHAIN), tmp_path / "out.onnx"
    convert("sanitize", path, out, by="rules")
    assert operators(onnx.load(out)) == ["Mul"]


@pytest.mark.parametrize(
    ("before", "after", "is_told"),
    [(20 << 20, 60 << 20, True), (20 << 20, 21 << 20, False), (100, 5000, False), (9, 2, False)],
)
def test_weights_that_folding_made_much_larger_are_told(
    before: int, after: int, is_told: bool
) -> None:
    assert bool(sanitize.growth(before, after)) == is_told
