"""The search of build routes on the fake of TensorRT, in this process."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import pytest

from dld_tui.activities import registry, separate_process
from dld_tui.backends.tensorrt import cuda, library, outputs, profiling
from dld_tui.backends.tensorrt.library import use
from dld_tui.core.compare import gate
from dld_tui.core.errors import ActivityError, UsageError
from dld_tui.core.events import Finished, Progress
from dld_tui.core.params import from_json
from dld_tui.extras.routes import job
from dld_tui.extras.routes.job import Request, run
from dld_tui.extras.routes.search import RouteSearch, search_lines, trial_table
from tests.support.engines import write_model
from tests.support.fake_tensorrt import STRONGLY_TYPED, WEAKLY_TYPED, fake_tensorrt

pytest.importorskip("onnxruntime")
EXPRESSION = "-copy_ppg=[on|off] -kgen:tiling=[0|1|2]"


class Machine:
    """A machine with the fake, on which routes may crash or be wrong."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
        self.trt = fake_tensorrt(version)
        self.crashes: set[str] = set()
        self.off: dict[str, float] = {}
        self.route = ""
        self.trt.fake.values = lambda name, value: value + self.off.get(self.route, 0)
        self.built: list[str] = []
        self.turns: list[str] = []
        for module in (job, separate_process):
            monkeypatch.setattr(module, "run_in_process", self.run_in_process)
        monkeypatch.setattr(gate, "RUNS", gate.LEAST_RUNS)
        monkeypatch.setattr(library, "find_library", lambda choice: use(self.trt))
        for module in (cuda, outputs):
            monkeypatch.setattr(module, "Cuda", lambda device: self.trt.fake.cuda)
        monkeypatch.setattr(profiling, "Cuda", lambda device, spin=False: self.trt.fake.cuda)

    def run_in_process(
        self, activity: str, settings: Mapping[str, Any], folder: Path, limit: float
    ) -> Generator[Progress, None, Any]:
        if "build_route" in settings:
            self.route = settings["build_route"]
            self.built.append(self.route)
            if self.route in self.crashes:
                raise ActivityError("crashed: SIGSEGV")
        elif "engine" in settings:
            self.turns.append(Path(settings["engine"]).stem)
        yield Progress(0)
        loaded = registry.load(activity)
        quick = {"warm_up_ms": 0.0} if activity == "profile_tensorrt" else {}
        *_, last = loaded.run(from_json(loaded.request, {**settings, **quick}))
        assert isinstance(last, Finished)
        return last.result


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Machine:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NV_DLD_CACHE_DIR", str(tmp_path / "cache"))
    return Machine(monkeypatch, STRONGLY_TYPED)


def searched(model: Path, routes: str = EXPRESSION, **settings: Any) -> RouteSearch:
    quick: dict[str, Any] = {"iterations": 2, "duration": 0.0, **settings}
    *_, last = run(Request(model, routes=routes, **quick))
    assert isinstance(last, Finished)
    assert isinstance(last.result, RouteSearch)
    return last.result


@pytest.mark.broad
def test_the_fastest_right_route_wins_and_its_engine_is_kept(
    machine: Machine, tmp_path: Path
) -> None:
    model = write_model(tmp_path / "small.onnx")
    fake = machine.trt.fake
    fake.knob_factors = {"-copy_ppg=off": 0.5, "-kgen:tiling=1": 0.9, "-kgen:tiling=2": 0.1}
    machine.off = {"-copy_ppg=on -kgen:tiling=2": 1.0}  # the fastest of all, but wrong
    machine.crashes = {"-copy_ppg=off -kgen:tiling=1"}
    result = searched(model, search="mixed")
    default = "-copy_ppg=on -kgen:tiling=0"
    ms = {trial.route: trial.ms for trial in result.trials}
    saved = (ms[default] or 0) - (ms["-copy_ppg=off -kgen:tiling=0"] or 0)
    assert saved == pytest.approx(0.15)  # half of three layers of 0.1 ms
    problems = {trial.route: trial.problem for trial in result.trials if trial.problem}
    assert list(problems) == ["-copy_ppg=on -kgen:tiling=2", "-copy_ppg=off -kgen:tiling=1"]
    assert "is not within" in problems["-copy_ppg=on -kgen:tiling=2"]
    assert result.best is not None
    assert result.best.route == "-copy_ppg=off -kgen:tiling=0"
    assert result.is_faster
    assert result.is_whole
    assert result.engine == tmp_path / "small.engine"
    assert b"-copy_ppg=off -kgen:tiling=0" in result.engine.read_bytes()
    assert "--build-route" in result.command
    assert "copy_ppg=off" in result.command
    assert "-copy_ppg=off is faster than the default" in " ".join(search_lines(result))
    assert trial_table(result).rows[0] == result.best
    assert fake.cuda.live == 0
    assert not list((tmp_path / "cache" / "route-search").glob("*"))


@pytest.mark.broad
def test_a_search_goes_on_where_it_was_stopped(machine: Machine, tmp_path: Path) -> None:
    model = write_model(tmp_path / "small.onnx")
    machine.trt.fake.knob_factors = {"-copy_ppg=off": 0.5}
    steps: Any = run(Request(model, routes=EXPRESSION, iterations=2, duration=0.0))
    while len(machine.built) < 4:
        next(steps)
    steps.close()
    first = machine.built[:]
    machine.built.clear()
    result = searched(model)
    # The last one was not measured; the engines of the default and the fastest are built again.
    assert machine.built == [first[-1], "-copy_ppg=on -kgen:tiling=0"]
    assert [trial.route for trial in result.trials] == first
    assert result.is_faster
    assert machine.turns[:6] == ["default", "best", "best", "default", "default", "best"]


def test_without_time_only_the_default_is_tried(machine: Machine, tmp_path: Path) -> None:
    result = searched(write_model(tmp_path / "small.onnx"), budget=0.0)
    assert (len(result.trials), result.is_whole, result.best) == (1, False, result.trials[0])


def test_equal_routes_are_not_called_faster(machine: Machine, tmp_path: Path) -> None:
    model = write_model(tmp_path / "small.onnx")
    result = searched(model, "-copy_ppg=[on|off]")
    assert not result.is_faster
    assert result.engine is None
    assert result.command == ""
    assert not (tmp_path / "small.engine").exists()


def test_without_an_expression_knobs_are_listed(machine: Machine, tmp_path: Path) -> None:
    result = searched(write_model(tmp_path / "small.onnx"), "")
    assert [knob.name for knob in result.knobs] == ["-copy_ppg", "-kgen:tiling", "-peep:max"]
    assert search_lines(result)[0].endswith("3 knobs; give some with --routes to search them")


def test_a_default_that_fails_is_the_error(machine: Machine, tmp_path: Path) -> None:
    machine.crashes = {"-copy_ppg=on"}
    with pytest.raises(ActivityError, match="SIGSEGV"):
        searched(write_model(tmp_path / "small.onnx"), "-copy_ppg=[on|off]")


def test_libraries_without_knobs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    Machine(monkeypatch, WEAKLY_TYPED)
    with pytest.raises(UsageError, match=r"TensorRT 10\.13\.0\.35 has no knobs"):
        searched(write_model(tmp_path / "small.onnx"))


def test_settings_that_do_not_go_together() -> None:
    with pytest.raises(UsageError, match="are both given"):
        Request(Path("m.onnx"), routes="-a=1", routes_file=Path("r.txt")).require()
    with pytest.raises(UsageError, match="cannot be set: this search finds it"):
        Request(Path("m.onnx"), build_route="-a=1").require()
