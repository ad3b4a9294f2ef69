"""Q/DQ places are searched with measurements: on ONNX Runtime, and on the fake of TensorRT."""

from __future__ import annotations

import itertools
from collections.abc import Generator, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from dld_tui.activities import placement, registry, separate_process
from dld_tui.activities.placement import Request, run
from dld_tui.backends.onnxruntime import contest
from dld_tui.core.compare import gate
from dld_tui.core.compare.gate import Pair, PairTime, RunFigures, TimePair
from dld_tui.core.errors import CancelledError, DldError
from dld_tui.core.events import Event, Progress
from dld_tui.core.params import from_json
from dld_tui.core.tune.placement import PlacementResult, placement_lines
from dld_tui.core.tune.regions import Scheme
from tests.support import models
from tests.support.activities import finished
from tests.support.fake_machine import install
from tests.support.fake_tensorrt import STRONGLY_TYPED, WEAKLY_TYPED
from tests.support.jobs import texts

pytest.importorskip("onnxruntime")
MODEL = """
<ir_version: 9, opset_import: ["" : 19]>
net (float[1, 4, 8, 8] x) => (float[1, 6, 8, 8] y)
{
    [c0] a0 = Conv<pads = [1, 1, 1, 1]>(x, w0)
    [c1] a1 = Conv<pads = [1, 1, 1, 1]>(a0, w1)
    [c2] a2 = Conv<pads = [1, 1, 1, 1]>(a1, w2)
    [c3] y = Conv(a2, w3)
}
"""
"""Four products, two of which are alike."""
SHAPES = {"w0": (4, 4, 3, 3), "w1": (4, 4, 3, 3), "w2": (6, 4, 3, 3), "w3": (6, 6, 1, 1)}
GAINS = {"c0": 0.5, "c1": 0.5, "c2": -1.0, "c3": 1.0}
"""What quantizing a node saves of ten milliseconds."""


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NV_DLD_CACHE_DIR", str(tmp_path / "cache"))
    rng, parsed = np.random.default_rng(0), models.parse(MODEL)
    for name, shape in SHAPES.items():
        values = rng.standard_normal(shape).astype(np.float32)
        parsed.graph.initializer.append(numpy_helper.from_array(values, name))
    for number in range(2):
        folder = tmp_path / "sets" / f"test_data_set_{number}"
        folder.mkdir(parents=True)
        np.save(folder / "x.npy", rng.standard_normal((1, 4, 8, 8)).astype(np.float32))
    path = tmp_path / "net.onnx"
    path.write_bytes(parsed.SerializeToString())
    return path


def quantized(path: Path) -> frozenset[str]:
    """Return the convolutions of a model whose weights are quantized."""
    graph = onnx.load(path).graph
    stored = {node.output[0] for node in graph.node if node.op_type == "DequantizeLinear"}
    return frozenset(
        node.name for node in graph.node if node.op_type == "Conv" and node.input[1] in stored
    )


def ms_of(convolutions: frozenset[str]) -> float:
    return 10.0 - sum(GAINS[name] for name in convolutions)


class Clock:
    """Says what a pass takes by what is quantized; nothing is timed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.timed: list[frozenset[str]] = []
        self.factor = 1.0
        """Of separate runs."""
        self.limits: set[float] = set()
        self.stop_after = 10**6

        def time(one: contest.Contestant, seconds: float) -> float:
            found = quantized(one._model)
            if not self.timed or self.timed[-1] != found:
                self.timed.append(found)
            if len(self.timed) > self.stop_after:
                raise CancelledError
            return ms_of(found)

        def separate(runner: Any, base: Path, new: Path) -> TimePair:
            def pair(number: int, allowed: PairTime) -> Pair:
                base_ms, new_ms = ms_of(quantized(base)), self.factor * ms_of(quantized(new))
                return Pair(RunFigures(base_ms), RunFigures(new_ms), new_ms / base_ms)

            return pair

        def in_turns(pair: TimePair, **settings: Any) -> Any:
            self.limits.add(settings["limit_s"])
            return gate.in_turns(pair, **settings)

        monkeypatch.setattr(placement, "in_turns", in_turns)
        monkeypatch.setattr(contest.Contestant, "time", time)
        monkeypatch.setattr(placement._Sessions, "separate_pairs", separate)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def placed(model: Path, **settings: Any) -> PlacementResult:
    result = finished(run(Request(model=model, calibration=model.parent / "sets", **settings)))
    assert isinstance(result, PlacementResult)
    return result


@pytest.mark.broad
def test_the_fastest_of_all_placements_is_found_confirmed_and_written(
    model: Path, clock: Clock
) -> None:
    before = model.read_bytes()
    events = [*run(Request(model=model, calibration=model.parent / "sets"))]
    said = texts(events)
    assert said[0] == "4 regions of 3 patterns"
    assert said[1].startswith(
        "Trial 1: Conv 2 regions quantized, Conv 1 region quantized and 1 more"
    )
    assert said[2] == "Trial 2: Conv 2 regions float: not faster, +11.1 % (+11.1 to +11.1)"
    result = finished(events)
    assert isinstance(result, PlacementResult)
    choices = [
        frozenset(itertools.chain.from_iterable(chosen))
        for count in range(4)
        for chosen in itertools.combinations((("c0", "c1"), ("c2",), ("c3",)), count)
    ]  # those that are alike share a decision
    best = min(choices, key=ms_of)
    assert result.output is not None
    assert quantized(Path(result.output)) == best == {"c0", "c1", "c3"}
    assert Path(result.output).name == "net.placed.onnx"
    assert [(row.regions, row.scheme) for row in result.decisions] == [
        (2, Scheme.ALL), (1, Scheme.FLOAT), (1, Scheme.ALL),
    ]  # fmt: skip
    assert result.kept == ("c2",)
    assert result.confirmed is not None
    assert result.confirmed.change_percent == pytest.approx(-20)
    assert result.everything is not None
    assert result.everything.change_percent == pytest.approx(-10)
    effects = [row.effect for row in result.decisions]
    assert [effect and effect.new_ms < effect.base_ms for effect in effects] == [True, False, True]
    assert sum(row.share for row in result.decisions) == pytest.approx(1)
    assert result.accuracy.startswith("SNR ")
    lines = placement_lines(result)
    assert lines[0].startswith("1.25× faster (1.25 to 1.25) with 3 of 4 regions quantized")
    assert not [*(model.parent / "cache" / "trials").glob("placement-*")]
    assert model.read_bytes() == before
    assert clock.limits == {placement._TRIAL_S, gate.LIMIT_S}


def test_the_result_is_confirmed_in_processes_of_its_own(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Mapping[str, Any]] = []

    def run_in_process(
        activity: str, settings: Mapping[str, Any], folder: Path, limit: float
    ) -> Generator[Progress, None, Pair]:
        assert (activity, folder, limit) == ("time_pair", model.parent, 9.0)
        asked.append(settings)
        yield Progress(0)
        return Pair(RunFigures(2.0), RunFigures(1.0), 0.5)

    monkeypatch.setattr(placement, "run_in_process", run_in_process)
    request = Request(model=model, calibration=model.parent / "sets", provider="CUDA")
    runner: Any = SimpleNamespace(_request=request, _folder=model.parent)
    time_pair = placement._Sessions.separate_pairs(runner, model, Path("new.onnx"))
    assert [time_pair(number, PairTime(3.0, 9.0)).ratio for number in range(2)] == [0.5, 0.5]
    for number, settings in enumerate(asked):
        pair = from_json(registry.load("time_pair").request, settings)
        assert (pair.model, pair.new, pair.new_first) == (model, Path("new.onnx"), number == 1)
        assert (pair.inputs, pair.provider) == (model.parent / "sets", "CUDA")
        assert (pair.layer_passes, pair.share) == (0, 3.0)


def test_turns_of_two_models_alternate() -> None:
    timed: list[str] = []

    def ms(path: Path) -> float:
        timed.append(path.name)
        return {"a": 4.0, "b": 3.0}[path.name]

    runner: Any = SimpleNamespace(ms=ms)
    time_pair = placement._turns(runner, Path("a"), Path("b"))
    pairs = [time_pair(number, PairTime()) for number in range(4)]
    assert "".join(timed) == "abbaabba"
    assert pairs == [Pair(RunFigures(4.0), RunFigures(3.0), 0.75)] * 4


@pytest.mark.slow
def test_a_stopped_search_goes_on_and_finds_the_same(
    model: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    honest = placement._Searching._compared

    def compared(self: Any, pair: Any) -> Generator[Event, None, Any]:
        outcome = yield from honest(self, pair)
        asked.append(pair)
        return outcome

    monkeypatch.setattr(placement._Searching, "_compared", compared)
    whole = placed(model, output=model.parent / "one.onnx")
    uninterrupted = [*asked]
    asked.clear()
    clock.stop_after = len(clock.timed) + 30
    with pytest.raises(CancelledError) as stopped:
        placed(model, output=model.parent / "two.onnx")
    assert "run the same command again" in str(stopped.value.hint)
    assert 0 < len(asked) < len(uninterrupted)
    clock.stop_after = 10**6
    resumed = placed(model, output=model.parent / "two.onnx")
    assert asked == uninterrupted
    assert resumed.decisions == whole.decisions
    assert (model.parent / "one.onnx").read_bytes() == (model.parent / "two.onnx").read_bytes()


@pytest.mark.slow
def test_what_is_not_confirmed_is_not_written(model: Path, clock: Clock) -> None:
    clock.factor = 1.3
    result = placed(model)
    assert result.confirmed is not None
    assert result.output is None
    assert not (model.parent / "net.placed.onnx").exists()
    assert placement_lines(result)[0].startswith("No faster: with 3 of 4 regions quantized")


@pytest.mark.broad
def test_outputs_stay_within_the_tolerance(model: Path, clock: Clock) -> None:
    result = placed(model, tolerance=("snr=60",))
    assert {row.scheme for row in result.decisions} == {Scheme.FLOAT}
    assert all("signal to noise" in row.problem for row in result.decisions)
    assert result.confirmed is None
    assert result.output is None
    lines = placement_lines(result)
    count = sum(row.regions for row in result.decisions)
    refused = f"Nothing was timed: {count} of {count} regions cannot be quantized."
    assert lines[0] == f"{refused} Nothing is written."
    assert "signal to noise" in lines[1]
    # What the limit left out is not judged.
    untried = tuple(replace(row, problem="") for row in result.decisions[1:])
    partly = replace(result, decisions=(result.decisions[0], *untried), is_whole=False)
    assert placement_lines(partly)[0].startswith(
        f"Nothing was timed: {result.decisions[0].regions} of {count} regions"
    )


class Machine:
    """A machine with the fake, whose layers take their time by name."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
        self.trt = install(monkeypatch, version)
        # The fake takes 0.1 ms a layer. What a quantized product saves is told with its weights.
        self.trt.fake.layer_ms = {
            **dict.fromkeys(GAINS, 3.0),
            **{f"w{at}_DequantizeLinear": -2 * gain for at, gain in enumerate(GAINS.values())},
        }
        self.builds: list[Mapping[str, Any]] = []
        self.runs: dict[bytes, Any] = {}
        """What was measured of engines: the fake takes the same time again."""
        self.most = 0
        """Engines that are there at once."""
        monkeypatch.setattr(separate_process, "run_in_process", self.run_in_process)
        monkeypatch.setattr(gate, "_FIRST_LOOK", gate.LEAST_RUNS)

    def run_in_process(
        self, activity: str, settings: Mapping[str, Any], folder: Path, limit: float
    ) -> Generator[Progress, None, Any]:
        yield Progress(0)
        self.most = max(self.most, len([*folder.glob("*.engine")]))
        engine = Path(settings["engine"]).read_bytes() if "engine" in settings else b""
        if "output" in settings:
            self.builds.append(settings)
        elif engine in self.runs:
            return self.runs[engine]
        quick = {"warm_up_ms": 0.0, "duration": 0.0, "iterations": 2}
        loaded = registry.load(activity)
        result = finished(loaded.run(from_json(loaded.request, {**settings, **quick})))
        self.runs[engine] = result
        return result


@pytest.mark.broad
@pytest.mark.parametrize(
    "version", [pytest.param(WEAKLY_TYPED, marks=pytest.mark.slow), STRONGLY_TYPED]
)
def test_engines_are_built_and_timed_for_each_placement(
    model: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    machine = Machine(monkeypatch, version)
    if version == STRONGLY_TYPED:  # with the shapes of the inputs
        graph = onnx.load(model)
        graph.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "N"
        graph.graph.output[0].type.tensor_type.shape.dim[0].dim_param = "N"
        onnx.save(graph, model)
    result = placed(model, runtime="tensorrt")
    assert result.backend.startswith("TensorRT 1")
    assert [(row.regions, row.scheme) for row in result.decisions] == [
        (2, Scheme.ALL), (1, Scheme.FLOAT), (1, Scheme.ALL),
    ]  # fmt: skip
    assert result.output is not None
    assert quantized(Path(result.output)) == {"c0", "c1", "c3"}
    assert result.is_faster
    assert machine.most == 3
    weakly = version == WEAKLY_TYPED
    shapes = [] if weakly else ["x:1x4x8x8"]
    assert all(build["max_shapes"] == shapes for build in machine.builds)
    for build in machine.builds:
        assert bool(build.get("int8")) == (weakly and build["model"] != str(model))
    assert machine.trt.fake.cuda.live == 0


def test_without_a_gpu_it_is_said_in_one_line(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, STRONGLY_TYPED)
    machine.trt.fake.runtime_fails = "no CUDA-capable device is detected"
    with pytest.raises(DldError) as refused:
        placed(model, runtime="tensorrt")
    assert "\n" not in refused.value.message
