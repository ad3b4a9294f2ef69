"""Trials of precisions: which nodes cannot be lower, and one session that computes any choice."""

from __future__ import annotations

import contextlib
import inspect
import re
from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import numpy_helper
from onnxruntime.quantization import quantize_static

from dld_tui.backends.accuracy import precision_trials
from dld_tui.backends.accuracy.precision_trials import SwitchedModel, plan_of
from dld_tui.backends.conversion.quantizer import Quantizer
from dld_tui.backends.onnxruntime.session_options import SessionSettings
from dld_tui.backends.onnxruntime.tensors import TensorRunner, TensorSession
from dld_tui.core.accuracy.tensor_errors import Tolerance, Tolerances
from dld_tui.core.conversion.quantization_switches import quantization_switches
from dld_tui.core.conversion.request import QuantizationSettings
from dld_tui.core.conversion.retyping import in_lower_precision, switchable
from dld_tui.core.errors import InputError, UsageError
from dld_tui.core.events import Event, result_of
from dld_tui.core.model.document import Document, Node
from dld_tui.core.trials import KnownOutcomes, Limits, Outcome, Subset, Trials, Words, subset_key
from tests.support import models
from tests.support.conversions import OVERFLOWS
from tests.support.precision_models import WIDTH, write_attention

pytest.importorskip("onnxruntime")

from dld_tui.backends.accuracy.precision_trials import PrecisionTrials, judged

X = np.array([[0.5, 1, 2, 3]], np.float32)


def trials(folder: Path, text: str, tolerance: Tolerance, x: np.ndarray = X) -> PrecisionTrials:
    document = Document.open(models.write(folder, text))
    settings = SessionSettings(quiet=True)
    return PrecisionTrials(document, "fp16", [{"x": x}], Tolerances(tolerance), settings)


def search(made: PrecisionTrials) -> tuple[str, ...] | None:
    nodes: dict[str, Node] = {node.name: node for node in made.candidates()}

    def run(kept: Subset) -> Generator[Event, None, Outcome]:
        yield from ()
        return made.run([nodes[name] for name in kept]).outcome

    trials = Trials(
        run, subset_key, KnownOutcomes(Outcome, None), Limits(), str, Words("good", "not good")
    )
    return result_of(trials.smallest(list(nodes), lambda kept: kept)).things


def test_what_overflows_is_the_first_suspect(tmp_path: Path) -> None:
    made = trials(tmp_path, OVERFLOWS, Tolerance(1e-2, 1e-2))
    assert next(node.name for node in made.ranked()) == "bigger"
    assert next(node.name for node in made.candidates()) == "first", "in the order of the model"
    found = made.run([])
    assert not found.is_good
    assert found.problem.startswith("y: ")
    assert found.errors["y"].special or found.errors["y"].max_abs


def test_of_all_sets_the_worst_error_is_told(tmp_path: Path) -> None:
    """Values that are no numbers on both sides have no error."""
    none, zeros = np.full(2, np.nan, np.float32), np.zeros(2, np.float32)
    reference = [{"y": one, "gone": None} for one in (none, zeros, zeros, none)]
    results = [{"y": one} for one in (none, zeros + 0.5, zeros + 0.25, none)]
    found = judged(reference, results, Tolerances(Tolerance(0.5, 0.0)))
    assert (found.problem, list(found.errors), found.errors["y"].max_abs) == ("", ["y"], 0.5)
    found = judged(reference, results, Tolerances(Tolerance(0.1, 0.0)))
    assert found.problem.startswith("y: ")


def test_nodes_without_names_are_candidates(tmp_path: Path) -> None:
    """Their outputs, which a copy renames, are all that they are known by."""
    made = trials(tmp_path, re.sub(r"\[\w+\] ", "", OVERFLOWS), Tolerance(1e-2, 1e-2))
    assert [node.outputs[0] for node in made.candidates()] == [*"abcdey"]
    assert made.ranked()[0].outputs == ("c",)


def test_a_search_finds_the_nodes_around_what_overflows(tmp_path: Path) -> None:
    made = trials(tmp_path, OVERFLOWS, Tolerance(1e-2, 1e-2))
    # The product is made by `bigger` and taken by `down`: both must hold it.
    assert set(search(made) or ()) == {"bigger", "down"}


def test_nothing_has_to_be_kept_where_it_is_good_enough(tmp_path: Path) -> None:
    made = trials(tmp_path, models.CHAIN, Tolerance(1e-2, 1e-2))
    assert search(made) == ()
    found = made.run([])
    assert (found.problem, found.lowered_nodes) == ("", 4)


def test_a_tolerance_that_nothing_meets(tmp_path: Path) -> None:
    text = models.CHAIN.replace("[last] y = Sigmoid(c)", "[last] r = RandomNormalLike(c)")
    text = text.replace("RandomNormalLike(c)", "RandomNormalLike(c)\n    y = Add(c, r)")
    assert search(trials(tmp_path, text, Tolerance(0, 0))) is None


def test_bodies_and_functions_are_candidates_too(tmp_path: Path) -> None:
    document = Document.open(models.write(tmp_path, models.PLAIN_BRANCHES))
    feeds = [{"x": X, "choice": np.array(True)}]
    tolerances = Tolerances(Tolerance(1e-2, 1e-2))
    made = PrecisionTrials(document, "fp16", feeds, tolerances, SessionSettings(quiet=True))
    assert {node.name for node in made.candidates()} >= {"pre", "inner"}
    assert made.run([]).is_good


SETTINGS = SessionSettings(optimization_level="disabled", quiet=True)
GRID = np.linspace(0, 1, 4 * WIDTH, dtype=np.float32).reshape(4, WIDTH)


@pytest.fixture
def document(tmp_path: Path) -> Generator[Document, None, None]:
    write_attention(tmp_path / "model.onnx")
    with contextlib.closing(Document.open(tmp_path / "model.onnx")) as opened:
        yield opened


@pytest.fixture
def sessions(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The outputs of each session that is made."""
    made: list[list[str]] = []
    real = TensorRunner.session

    def session(self: TensorRunner, names: Any, given: Any = None) -> TensorSession:
        made.append([*names])
        return real(self, names, given)

    monkeypatch.setattr(TensorRunner, "session", session)
    return made


def switched(document: Document, precision: str) -> SwitchedModel:
    return SwitchedModel(switchable(document, precision), None, SETTINGS, ["y"], ["x"])


def check(document: Document, model: SwitchedModel) -> None:
    nodes = model.nodes
    for kept in ([], nodes[::2], nodes[3:4], nodes, nodes[1::2]):
        (found,) = model.each(set(kept), [{"x": GRID}])
        copy = in_lower_precision(document, "fp16", kept, rounded=True).document
        with contextlib.closing(copy), TensorRunner(copy, SETTINGS) as runner:
            np.testing.assert_array_equal(found["y"], runner.values(["y"], {"x": GRID})["y"])


def test_trials_need_no_more_sessions(document: Document, sessions: list[list[str]]) -> None:
    with contextlib.closing(switched(document, "fp16")) as model:
        next(model.each((), [{"x": GRID}]))
        first = len(sessions)
        assert sessions[-1] == ["y"]
        assert sum(map(len, sessions[:-1])) == 8, "each weight once, the scale for each block"
        for kept in (model.nodes[::2], model.nodes[:5], model.nodes):
            next(model.each(kept, [{"x": GRID}]))
        assert len(sessions) == first


def test_it_computes_what_copies_compute(document: Document) -> None:
    with contextlib.closing(switched(document, "fp16")) as model:
        check(document, model)


def test_weights_that_are_not_kept_are_rounded_again(
    document: Document, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(precision_trials, "_KEPT_BYTES", 1)
    monkeypatch.setattr(precision_trials, "_TOGETHER", 3)
    with contextlib.closing(switched(document, "bf16")) as model:
        (exact,) = model.each(model.nodes, [{"x": GRID}])
        (rounded,) = model.each((), [{"x": GRID}])
        (again,) = model.each(model.nodes, [{"x": GRID}])
        assert not model._weights._known
    np.testing.assert_array_equal(exact["y"], again["y"])
    assert exact["y"] is not None
    assert rounded["y"] is not None
    assert not np.array_equal(exact["y"], rounded["y"])


MODEL = """
<ir_version: 8, opset_import: ["" : 17]>
net (float[1, 4, 8, 8] x) => (float[1, 6] y, float[1, 6, 8, 8] z)
<int64[2] flat = {1, 6}>
{
    [stem] a = Conv<pads = [1, 1, 1, 1]>(x, w0, b0)
    [bent] b = Relu(a)
    [small] p = MaxPool<kernel_shape = [2, 2], pads = [0, 0, 1, 1]>(b)
    [side] z = Conv<pads = [1, 1, 1, 1]>(b, w1)
    [mean] m = GlobalAveragePool(z)
    [rows] r = Reshape(m, flat)
    [mixed] s = MatMul(r, w2)
    [shares] t = Softmax(s)
    [sum] y = Add(t, r)
    [unused] q = Transpose<perm = [0, 2, 3, 1]>(p)
}
"""


@pytest.fixture
def calibration(tmp_path: Path) -> Path:
    rng = np.random.default_rng(1)
    for number in range(3):
        folder = tmp_path / "sets" / f"test_data_set_{number}"
        folder.mkdir(parents=True)
        np.save(folder / "x.npy", rng.standard_normal((1, 4, 8, 8)).astype(np.float32))
    return tmp_path / "sets"


@pytest.fixture
def net(tmp_path: Path) -> Generator[Document, None, None]:
    model, rng = models.parse(MODEL), np.random.default_rng(0)
    shapes = {"w0": (4, 4, 3, 3), "b0": (4,), "w1": (6, 4, 3, 3), "w2": (6, 6)}
    for name, dims in shapes.items():
        values = rng.standard_normal(dims).astype(np.float32)
        values *= name != "b0"  # what a bias loses in 32 bits could change how a sum is rounded
        model.graph.initializer.append(numpy_helper.from_array(values, name))
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    with contextlib.closing(Document.open(path)) as opened:
        yield opened


@pytest.mark.broad
@pytest.mark.parametrize("runtime", ["onnxruntime", "tensorrt"])
def test_switches_compute_what_the_quantizer_makes(
    net: Document, calibration: Path, runtime: str
) -> None:
    feeds = [{"x": np.load(one / "x.npy")} for one in sorted(calibration.iterdir())]
    settings = QuantizationSettings(calibration=calibration, runtime=runtime)
    with Quantizer(net, settings) as quantizer:
        list(quantizer.check_calibration())
        plan = plan_of(result_of(quantizer.quantize("minmax", ())))
        switched = quantization_switches(quantizer.prepared, plan)
        model = SwitchedModel(switched, None, SETTINGS, ["y", "z"], ["x"])
        nodes = model.nodes
        assert {"stem", "bent", "side", "mixed", "shares", "sum"} < {one.name for one in nodes}
        by_name = {node.name: node for node in nodes}
        choices: list[list[Node]] = [
            [], [by_name["stem"]], [by_name["bent"], by_name["mixed"]],
            [by_name["shares"], by_name["side"]], nodes[1::2],
        ]  # fmt: skip
        with contextlib.closing(model), TensorRunner(net, SETTINGS) as runner:
            plain = [*runner.each(["y", "z"], feeds)]
            noise = 0.0
            for kept in choices:
                copy = result_of(quantizer.quantize("minmax", (), kept))
                mine = [*model.each(set(kept), feeds)]
                with TensorRunner(copy.document, SETTINGS) as other:
                    theirs = [*other.each(["y", "z"], feeds)]
                for one, two, right in zip(mine, theirs, plain, strict=True):
                    for name in ("y", "z"):
                        a, b, c = (np.asarray(side[name], np.float32) for side in (one, two, right))
                        np.testing.assert_allclose(a, b, rtol=0, atol=1e-5)
                        noise = max(noise, float(np.abs(b - c).max()))
            assert noise > 1e-3, "quantization changes something"
            (exact,) = model.each(nodes, feeds[:1])
            np.testing.assert_array_equal(exact["y"], plain[0]["y"])
        with_all = {point.tensor for point in plan.points()}
        quantized = {
            node.inputs[0]
            for node in copy_nodes(result_of(quantizer.quantize("minmax", ())).document)
        }
        assert quantized <= with_all | {f"{name}_QuantizeLinear_Input" for name in with_all}


def copy_nodes(net: Document) -> list[Node]:
    return [*net.main.nodes_of_type("QuantizeLinear")]


def test_points_need_no_calibration(net: Document) -> None:
    with Quantizer(net, QuantizationSettings(exclude=("side",))) as quantizer:
        plan = result_of(quantizer.plan(()))
    points = {point.tensor: point for point in plan.points()}
    assert points["w0"].kind == "weight"
    assert points["b0"].kind == "bias"
    assert points["x"].nodes == ("stem",)
    assert "w1" not in points, "its node is excluded"
    assert points["b"].nodes == ("bent",)
    assert not plan.scales


def test_names_in_a_file_are_left_out_and_wrong_ones_are_refused(
    net: Document, tmp_path: Path
) -> None:
    names = tmp_path / "names.txt"
    names.write_text("stem\n\nmixed\n", encoding="utf-8")
    settings = QuantizationSettings(exclude=("side",), exclude_from=names)
    with Quantizer(net, settings) as quantizer:
        options = quantizer._options("minmax", (), ())
    assert options.exclude == ["side", "stem", "mixed"]
    names.write_text("absent\n", encoding="utf-8")
    with pytest.raises(UsageError, match="no node is named 'absent'"):
        Quantizer(net, settings)
    names.unlink()
    with pytest.raises(InputError, match="File not found"):
        Quantizer(net, settings)


@pytest.mark.skipif(
    "calibration_cache_path" not in inspect.signature(quantize_static).parameters,
    reason="this ONNX Runtime cannot keep ranges",
)
def test_the_inputs_are_calibrated_once(net: Document, calibration: Path) -> None:
    def scales(quantizer: Quantizer, method: str) -> dict[str, bytes]:
        made = result_of(quantizer.quantize(method, ())).document.main
        return {
            tensor.name: tensor.read().tobytes()
            for tensor in made.initializers
            if tensor.name.endswith("_scale")
        }

    settings = QuantizationSettings(calibration=calibration)
    with Quantizer(net, settings) as quantizer:
        list(quantizer.check_calibration())
        first = scales(quantizer, "minmax")
        for folder in calibration.iterdir():  # what is read again would have other ranges
            np.save(folder / "x.npy", 9 * np.load(folder / "x.npy"))
        assert scales(quantizer, "minmax") == first
        assert scales(quantizer, "percentile") != first
    with Quantizer(net, settings) as other:
        list(other.check_calibration())
        assert scales(other, "minmax") != first
