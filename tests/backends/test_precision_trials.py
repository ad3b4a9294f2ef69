"""Trials of precisions: which nodes cannot be lower, and one session that computes any choice."""

from __future__ import annotations

import contextlib
import itertools
import re
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from onnx import numpy_helper

from dld_tui.backends.accuracy import precision_trials
from dld_tui.backends.accuracy.precision_trials import (
    QuantizationTrials,
    SwitchedModel,
    plan_of,
)
from dld_tui.backends.conversion.quantizer import Quantizer
from dld_tui.backends.onnxruntime.session_options import SessionSettings
from dld_tui.backends.onnxruntime.tensors import TensorRunner
from dld_tui.core.accuracy.tensor_errors import Tolerance, Tolerances
from dld_tui.core.conversion.accuracy_criteria import QUANTIZED
from dld_tui.core.conversion.quantization_switches import quantization_switches
from dld_tui.core.conversion.request import QuantizationSettings
from dld_tui.core.conversion.retyping import in_lower_precision, switchable
from dld_tui.core.errors import ActivityError, InputError, UsageError
from dld_tui.core.events import result_of
from dld_tui.core.model.document import Document, Node
from tests.support import models
from tests.support.precision_models import WIDTH, write_attention
from tests.support.recorded import Recorded

pytest.importorskip("onnxruntime")

from dld_tui.backends.accuracy.precision_trials import PrecisionTrials, Trial, judged

X = np.array([[0.5, 1, 2, 3]], np.float32)


HEAD = '<ir_version: 10, opset_import: ["" : 18, "f" : 1]>\n'
UNEVEN = (
    HEAD
    + """net (float[N, 4] x, int64 at) => (seq(float[N, 4]) s, float[N, 4] y, float[N, 4] z)
<float w = {300}, float small = {0.001}, float third = {0.3333333}, int64 two = {2}> {
  [plain] n = Add(at, two) [third] a = Mul(x, third) [kept] s = SequenceConstruct(a, x)
  [big] b = Mul(a, w) [bigger] c = Mul(b, w) [down] d = Mul(c, small) [after] e = Neg(d)
  [y] y = Mul(e, small) [z] z = Mul(a, third) [index] i = Sub(n, two) }"""
)
BODIES = (
    HEAD
    + """net (float[N, 4] x, bool t) => (float[N, 4] y) <float third = {0.3333333}> {
  [pre] p = Mul(x, third) [call] q = f.Thirds(p)
  [if] r = If(t) <then_branch = yes () => (float[N, 4] u) { [inner] u = Mul(q, third) },
       else_branch = no () => (float[N, 4] v) { [other] v = Neg(q) }> [post] y = Mul(r, r) }
<domain: "f", opset_import: ["" : 18]> Thirds (a) => (b) {
  [one] c = Constant<value_float = 0.3333333>() [two] b = Mul(a, c) }"""
)
T = np.array(True)
CASES: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "overflow": (UNEVEN, [{"x": X, "at": np.array(1)}, {"x": 3 * X, "at": np.array(2)}]),
    "without names": (re.sub(r"\[\w+\] ", "", UNEVEN), [{"x": X, "at": np.array(1)}]),
    "nothing to keep": (UNEVEN, [{"x": X / 99, "at": np.array(1)}]),
    "bodies and functions": (BODIES, [{"x": X, "t": T}, {"x": X / 2, "t": ~T}]),
}


def trial_text(trial: Trial, began: float) -> str:
    assert 0 < trial.seconds < time.perf_counter() - began
    errors = [f"{name} {found.max_abs:.3g} {found.special}" for name, found in trial.errors.items()]
    found = f"{trial.lowered_nodes} lowered, noise {trial.noise:.3g}, {', '.join(errors)}"
    return f"{found} | {trial.problem}"


def told(text: str, feeds: list[dict[str, Any]], folder: Path) -> Iterator[str]:
    tolerances = Tolerances(Tolerance(1e-2, 1e-2))
    settings = SessionSettings(quiet=True)
    with (
        contextlib.closing(Document.open(models.write(folder, text))) as document,
        contextlib.closing(PrecisionTrials(document, "fp16", feeds, tolerances, settings)) as made,
    ):
        names = {node: node.name or node.outputs[0] for node in made.candidates()}
        yield f"quick {made.is_quick}, candidates {' '.join(names.values())}"
        yield f"ranked {' '.join(node.name or node.outputs[0] for node in made.ranked())}"
        some = [(node,) for node in names] + [*itertools.pairwise(names)]
        for kept in ((), *(some if len(feeds) > 1 else []), tuple(names)):
            began = time.perf_counter()
            title = ", ".join(names[node] for node in kept) or "nothing"
            yield f"{title} kept: {trial_text(made.run(kept), began)}"
        began = time.perf_counter()
        yield f"converted: {trial_text(made.convert([*names][:1]), began)}"


def test_all_that_trials_tell(tmp_path: Path, recorded: Recorded) -> None:
    recorded("precision_trials", {n: "\n".join(told(*c, tmp_path)) for n, c in CASES.items()})


def test_of_all_sets_the_worst_error_is_told(recorded: Recorded) -> None:
    """Values that are no numbers on both sides have no error."""
    none, zeros = np.full(2, np.nan, np.float32), np.zeros(2, np.float32)
    reference = [{"gone": None, "y": one, "z": zeros} for one in (none, zeros, zeros, none)]
    texts = {}
    for title, values, limit in (
        ("good", {"y": zeros + 0.25}, 0.5), ("beyond", {"y": zeros + 0.75}, 0.5),
        ("missing", {}, 0.5), ("of another shape", {"y": zeros[:1]}, 0.5),
    ):  # fmt: skip
        results = iter([
            {"y": none, "z": zeros}, {"y": zeros + 0.5, "z": zeros - 0.125},
            {"z": zeros, **values}, {"y": none, "z": zeros},
        ])  # fmt: skip
        found = judged(reference, results, Tolerances(Tolerance(limit, 0.0)))
        errors = [f"{name} {one.max_abs}" for name, one in found.errors.items()]
        texts[title] = (
            f"{found.problem} | {errors} | noise {found.noise} | {found.outcome.answer.name}"
            f" | {len([*results])} not read"
        )
    recorded("precision_trials_judged", texts)


def test_criteria_look_for_lost_channels() -> None:
    channels = np.arange(80, dtype=np.float32).reshape(1, 5, 4, 4)
    flat = channels.copy()
    flat[:, 2] = 1
    for criteria, lost in (
        (None, ""),
        (QUANTIZED, "1 of 5 channels of axis 1 are constant (channel 2)"),
    ):
        found = judged([{"y": channels}], [{"y": flat}], Tolerances(Tolerance(99.0, 0.0)), criteria)
        assert found.errors["y"].lost.partition(",")[0] == lost
        assert bool(found.problem) == bool(lost)


def test_a_trial_that_cannot_be_run_is_told_with_the_reason() -> None:
    def results() -> Iterator[Any]:
        yield {"y": X}
        raise ActivityError("it crashed")

    trials: Any = SimpleNamespace(
        reference=[{"y": X}] * 2, tolerances=Tolerances(Tolerance()), _criteria=None
    )
    found = PrecisionTrials._judged(trials, results())
    assert (found.problem, found.is_run) == ("it cannot be run: it crashed", False)


SETTINGS = SessionSettings(optimization_level="disabled", quiet=True)
GRID = np.linspace(0, 1, 4 * WIDTH, dtype=np.float32).reshape(4, WIDTH)


@pytest.fixture
def document(tmp_path: Path) -> Generator[Document, None, None]:
    write_attention(tmp_path / "model.onnx")
    with contextlib.closing(Document.open(tmp_path / "model.onnx")) as opened:
        yield opened


def switched(document: Document, precision: str) -> SwitchedModel:
    return SwitchedModel(switchable(document, precision), None, SETTINGS, ["y"], ["x"])


def check(document: Document, model: SwitchedModel) -> None:
    nodes = model.nodes
    for kept in ([], nodes[::2], nodes[3:4], nodes, nodes[1::2]):
        (found,) = model.each(set(kept), [{"x": GRID}])
        copy = in_lower_precision(document, "fp16", kept, rounded=True).document
        with contextlib.closing(copy), TensorRunner(copy, SETTINGS) as runner:
            np.testing.assert_array_equal(found["y"], runner.values(["y"], {"x": GRID})["y"])


def test_it_computes_what_copies_compute(document: Document) -> None:
    with contextlib.closing(switched(document, "fp16")) as model:
        check(document, model)
        assert len({name for name, _ in model._weights._known}) == 8, "lowered for all inputs"


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
        way: Any = (quantizer, plan, "minmax", (), feeds, Tolerances(Tolerance()), SETTINGS, None)
        with contextlib.closing(QuantizationTrials(*way)) as trials:
            assert [*map(id, trials.candidates())] == [*map(id, nodes)]
            found = [trials.convert(nodes[:count]) for count in (0, 3)]
        assert [trial.lowered_nodes for trial in found] == [len(nodes), len(nodes) - 3]
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
