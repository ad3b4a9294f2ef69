"""Simplifying: the best result that computes the same, and never a failure of a model that runs."""

from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from dld_tui.activities.convert import sanitize
from dld_tui.backends.conversion import library_file, simplifiers
from dld_tui.core.errors import ActivityError
from dld_tui.core.events import Event, Progress
from dld_tui.core.model.document import Document
from tests.support import models
from tests.support.conversions import convert
from tests.support.recorded import Recorded, settled

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


FAILURE = ActivityError("stopped after 120 s")
FOLDED = SMALLEST.replace(" w ", " v ").replace("x, w", "x, v")
FOREIGN = SMALLEST.replace('"" : 17', '"" : 17, "com.microsoft" : 1').replace(
    "Mul(x, w)", "com.microsoft.BiasGelu(x, w)"
)
DEFAULT = CHAIN.replace("float[N, 4] x", "float[N, 4] x, float[4] w")
CASES: dict[str, tuple[dict[str, Any], str, dict[str, Any]]] = {
    "the fewest nodes": (
        {"onnxslim": SMALLEST, "onnxsim": SMALLER, "Polygraphy": CHAIN}, CHAIN, {}),
    "other values": ({"onnxslim": WRONG, "onnxsim": SMALLER}, CHAIN, {}),
    "other values, not verified": ({"onnxslim": WRONG}, CHAIN, {"verify": False}),
    "values that are not compared": ({"onnxslim": WRONG}, CHAIN, {"values": "never"}),
    "an operator set more": ({"onnxslim": FOREIGN}, CHAIN, {}),
    "weights that are there count nothing": (
        {"Polygraphy": FOLDED, "onnxslim": SMALLER}, CHAIN, {"threshold": 0.0}),
    "folded beyond the threshold": ({"Polygraphy": FOLDED}, CHAIN, {"threshold": 0.0}),
    "folded below the threshold": ({"Polygraphy": FOLDED}, CHAIN, {"threshold": 1.0}),
    "all fail": ({"onnxslim": ActivityError("it crashed"), "Polygraphy": WRONG}, CHAIN, {}),
    "one fails and is not asked again": ({"onnxslim": SMALLER, "Polygraphy": FAILURE}, CHAIN, {}),
    "as many nodes by the best": ({"onnxslim": CHAIN}, CHAIN, {}),
    "as many nodes by one": ({"onnxslim": CHAIN}, CHAIN, {"by": "onnxslim"}),
    "more nodes by one": ({"onnxslim": CHAIN}, SMALLER, {"by": "onnxslim"}),
    "without folding": ({"onnxslim": SMALLEST}, CHAIN, {"fold": False}),
    "an input before": ({"Polygraphy": SMALLEST}, CHAIN.replace("(fl", "(bool u, fl", 1), {}),
    "an input behind": ({"Polygraphy": SMALLEST}, CHAIN.replace("] x", "] x, bool u"), {}),
    "a default": ({"Polygraphy": SMALLEST}, DEFAULT, {}),
    "an input behind a default": (
        {"Polygraphy": SMALLEST}, DEFAULT.replace("[4] w", "[4] w, bool u", 1), {}),
    "a default of an old file": ({"Polygraphy": SMALLEST}, DEFAULT.replace("n: 8", "n: 3"), {}),
}  # fmt: skip


@pytest.mark.broad
@pytest.mark.usefixtures("replaces_all")
def test_which_result_is_taken(
    simplified: Simplified, recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sanitize, "install_command", lambda what: f"install {what}")
    texts = {}
    for name, (made, text, settings) in CASES.items():
        result, model = simplified(made, text, measure=False, **settings)
        values = result["values"]
        inputs = [f"{one.name} {one.type.tensor_type.elem_type}" for one in model.graph.input]
        texts[name] = "\n".join([
            f"{', '.join(operators(model))} of {inputs}, is good: {values.get('is_good', values)}",
            f"unchanged {result.get('unchanged', False)}", *result["notes"],
            *map(str, result["tried"]),
        ])  # fmt: skip
    recorded("simplified", {name: settled(text, tmp_path) for name, text in texts.items()})


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
