"""Build routes: the examples of trtexec's documentation, and what cannot be read."""

from __future__ import annotations

import itertools
import json
from collections.abc import Generator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dld_tui.activities import registry, separate_process
from dld_tui.backends.tensorrt import cuda, library, outputs, profiling
from dld_tui.backends.tensorrt.library import use
from dld_tui.core.codec import encode
from dld_tui.core.compare import gate
from dld_tui.core.compare.gate import judge
from dld_tui.core.errors import ActivityError, UsageError
from dld_tui.core.events import Finished, Log, Progress
from dld_tui.core.params import from_json
from dld_tui.core.tensorrt.build_routes import Knobs, parse_routes, read_knobs, route_text
from dld_tui.core.tensorrt.capabilities import LibraryCapabilities
from dld_tui.extras.routes import job, pages
from dld_tui.extras.routes.job import Request, run
from dld_tui.extras.routes.pages import reasons
from dld_tui.extras.routes.search import (
    RouteSearch,
    RouteTrial,
    combined_routes,
    fast_routes,
    full_routes,
    route_count,
    search_lines,
    trial_table,
)
from tests.support.engines import write_model
from tests.support.fake_tensorrt import STRONGLY_TYPED, WEAKLY_TYPED, fake_tensorrt
from tests.support.recorded import Recorded, settled, table_text


def knobs(**defaults: str) -> Knobs:
    options = [
        {
            "option": f"-{name}",
            "allowed_values": f"-{name}={'[on|off]' if value in ('on', 'off') else '[0|1|2]'}",
            "default_value": value,
        }
        for name, value in defaults.items()
    ]
    return read_knobs(json.dumps({"tuner_version": "2.17.83", "tuner_options": options}))


KNOBS = knobs(opt1="off", opt2="2")
TRIED = parse_routes("-opt1=[on|off] -opt2=[0|1|2]", KNOBS)


def test_searches_are_those_of_trtexecs_documentation() -> None:
    # The fast search of trtexec's header.
    assert [route_text(route) for route in fast_routes(TRIED, KNOBS)] == [
        "-opt1=off -opt2=2", "-opt1=off -opt2=0", "-opt1=off -opt2=1", "-opt1=on -opt2=2",
    ]  # fmt: skip
    assert route_count(TRIED, "fast", KNOBS) == 4
    # The full search has each combination once and the default first.
    full = [tuple(route.values()) for route in full_routes(TRIED, KNOBS)]
    assert full[0] == ("off", "2")
    assert sorted(full) == sorted(itertools.product(("on", "off"), "012"))
    assert route_count(TRIED, "full", KNOBS) == 6
    other = parse_routes("-opt1=on -opt2=[0|1]", KNOBS)
    assert [route_text(route) for route in full_routes(other, KNOBS)] == [
        "-opt1=on -opt2=2", "-opt1=on -opt2=0", "-opt1=on -opt2=1"
    ]  # fmt: skip
    assert route_count(other, "full", KNOBS) == 3
    # The mixed search of trtexec's README.
    abc = knobs(A="on", B="on", C="on")
    tried = parse_routes("-A=[on|off] -B=[on|off] -C=[on|off]", abc)
    base, c, b, a = (route_text(route) for route in fast_routes(tried, abc))
    # A and C improved; their combinations with B at its default, less what was measured.
    ms = {base: 2.0, a: 1.8, b: 2.1, c: 1.9}
    assert [route_text(one) for one in combined_routes(ms, tried, abc)] == ["-A=off -B=on -C=off"]
    assert combined_routes({base: 2.0, a: 1.8, b: 2.1}, tried, abc) == []
    # A default that is not told is left to the library.
    known = knobs(a="", b="on")
    tried = parse_routes("-a=[1|2] -b=[on|off]", known)
    routes = [route_text(route) for route in fast_routes(tried, known)]
    assert routes == ["-b=on", "-b=off", "-a=1 -b=on", "-a=2 -b=on"]
    assert all(parse_routes(route, known) for route in routes)
    ms = dict(zip(routes, (4.0, 3.0, 2.0, 5.0), strict=True))
    assert [route_text(one) for one in combined_routes(ms, tried, known)] == ["-a=1 -b=off"]


def test_what_is_said_of_a_search() -> None:
    trials = (
        RouteTrial("-a=1 -b=1", 2.0),
        RouteTrial("-a=0 -b=1", 1.0),
        RouteTrial("-a=1 -b=0", None, "crashed: \x1b[31mSIGSEGV"),
    )
    row = judge("end to end", [2.0] * 6, [1.0] * 6)
    search = RouteSearch("TensorRT 11.4", "2.19", "fast", trials, False, row, None, "dld build m")
    cells = [column.value(trial_table(search).rows[0]) for column in trial_table(search).columns]
    assert cells == ["-a=0", 1.0, 2.0, ""]
    lines = search_lines(search)
    assert lines[0] == "TensorRT 11.4, tuner 2.19: 3 routes built, right results from 2"
    assert lines[1] == "The time limit ended before all routes were tried"
    assert lines[2].startswith("-a=0 is faster than the default: 2 to 1 ms, -50.0 %")
    assert lines[3] == "Build it again: dld build m"
    same = RouteSearch("T", "2", "fast", trials[:1], True)
    assert search_lines(same)[-1] == "No route is faster than the default"
    lost = RouteSearch(
        "T", "2", "fast", (RouteTrial("-a=1 -b=1", 2.0, "y is off"), trials[1]), True
    )
    assert search_lines(lost)[1:] == [
        "The default route gives none: y is off",
        "The fastest that does is -a=0; there is nothing to compare it with",
    ]
    wrong = RouteSearch("T", "2", "fast", trials[2:], True)
    assert search_lines(wrong)[-1] == "No engine gives right results"


def test_a_search_of_build_routes_needs_knobs() -> None:
    rtx = LibraryCapabilities("x", "tensorrt_rtx", "1.3")
    assert reasons({}, rtx)[""] == "no build routes: TensorRT-RTX has no knobs"
    with_knobs = LibraryCapabilities(
        "x", "tensorrt", "11.4", has=frozenset({"IBuilderConfig.build_route"})
    )
    found = reasons({}, with_knobs)
    assert "" not in found
    assert found["build_route"] == "the search sets it"
    assert "" not in reasons({}, None)


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
    pytest.importorskip("onnxruntime")
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
@pytest.mark.parametrize("search", ["mixed", "full", "fast"])
def test_whole_searches(machine: Machine, tmp_path: Path, recorded: Recorded, search: str) -> None:
    """The fastest route gives wrong results, and one crashes; the engine of the next is kept."""
    model = write_model(tmp_path / "small.onnx")
    fake = machine.trt.fake
    fake.knob_factors = {"-copy_ppg=off": 0.5, "-kgen:tiling=1": 0.9, "-kgen:tiling=2": 0.1}
    machine.off = {"-copy_ppg=on -kgen:tiling=2": 1.0}
    machine.crashes = {"-copy_ppg=off -kgen:tiling=1"}
    quick: dict[str, Any] = {
        "iterations": 2,
        "duration": 0.0,
        "optimization_level": 4,
        "search": search,
    }
    events = [*run(Request(model, routes=EXPRESSION, **quick))]
    result = events[-1].result  # type: ignore[union-attr]
    shown = pages.page(result, {})
    texts = {
        "result": json.dumps(encode(result), indent=1),
        "lines": "\n".join(search_lines(result)),
        "trials": table_text(trial_table(result)),
        "page": "" if shown.loaded is None else "\n".join(shown.loaded.summary),
        "said": "\n".join(event.text for event in events if isinstance(event, Log)),
        "built": "\n".join(machine.built),
        "turns": " ".join(machine.turns),
    }
    recorded(f"route_search_{search}", {k: settled(v, tmp_path) for k, v in texts.items()})
    assert result.engine is not None
    assert result.best.route.encode() in result.engine.read_bytes()
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
    (journal,) = (tmp_path / "cache" / "route-search").glob("*/routes.jsonl")
    journal.write_text(journal.read_text().rstrip("\n"))  # as earlier versions wrote it
    result = searched(model)
    # The last one was not measured; the engines of the default and the fastest are built again.
    assert machine.built == [first[-1], "-copy_ppg=on -kgen:tiling=0"]
    assert [trial.route for trial in result.trials] == first
    assert result.is_faster
    assert machine.turns[:6] == ["default", "best", "best", "default", "default", "best"]


def test_without_time_only_the_default_is_tried(machine: Machine, tmp_path: Path) -> None:
    result = searched(write_model(tmp_path / "small.onnx"), budget=0.0)
    assert (len(result.trials), result.is_whole, result.best) == (1, False, result.trials[0])


@pytest.mark.parametrize("more", [0, 2])
def test_pairs_are_measured_while_there_is_time(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: int
) -> None:
    monkeypatch.setattr(gate, "RUNS", gate.LEAST_RUNS + 2)
    now, budget = [1e9], 60.0
    monkeypatch.setattr(job, "time", SimpleNamespace(monotonic=lambda: now[0]))
    model = write_model(tmp_path / "small.onnx")
    machine.trt.fake.knob_factors = {"-kgen:tiling=1": 0.5}
    routes = "-kgen:tiling=[0|1|2]"
    for event in run(Request(model, routes=routes, iterations=2, duration=0.0, budget=budget)):
        if isinstance(event, Progress) and event.stage == "Confirming the fastest":
            now[0] = 1e9 + budget + (0.0 if more else 0.1)
    assert len(machine.turns) == 2 * (gate.LEAST_RUNS + more)
    assert [route[-1] for route in machine.built] == ["0", "1", "2"]  # none again for the pairs


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
