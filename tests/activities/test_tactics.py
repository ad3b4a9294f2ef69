"""The search for wrong tactics, with the fakes of TensorRT and CUDA; nothing here ran on a GPU."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from dld_tui.activities.tactics import Request, run
from dld_tui.backends.tensorrt import library as tensorrt_library
from dld_tui.backends.tensorrt import outputs
from dld_tui.backends.tensorrt.library import Library, capabilities_of
from dld_tui.core.codec import encode
from dld_tui.core.errors import UnavailableError
from dld_tui.core.events import Log, Progress
from dld_tui.core.tensorrt.tactics import parse_replay
from tests.support.activities import finished
from tests.support.engines import write_model
from tests.support.fake_builds import fake_build
from tests.support.fake_machine import install
from tests.support.fake_tensorrt import STRONGLY_TYPED, WEAKLY_TYPED
from tests.support.fake_tensorrt_tactics import Tactics, key_of, simulate
from tests.support.jobs import texts

pytest.importorskip("onnxruntime")
CHAIN = """
<ir_version: 8, opset_import: ["" : 17]>
chain (float[1,4] x) => (float[1,4] y) {
  [one] a = Relu(x)
  [two] b = Abs(a)
  [three] c = Neg(b)
  [four] y = Sigmoid(c)
}
"""
BOTH = pytest.mark.parametrize("version", [WEAKLY_TYPED, STRONGLY_TYPED], ids=["replay", "cache"])
BY_CACHE = pytest.mark.parametrize("version", [STRONGLY_TYPED], ids=["cache"])


class World:
    """A fake library and a model."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, version: str):
        self.trt = install(monkeypatch, version)
        self.tactics: Tactics = simulate(self.trt)
        self.model = write_model(folder / "chain.onnx", CHAIN)
        monkeypatch.chdir(folder)
        monkeypatch.setenv("NV_DLD_CACHE_DIR", str(folder / "cache"))

    def events(self, **settings: Any) -> Generator[Any, None, None]:
        steps = run(Request(self.model, **settings))
        assert isinstance(steps, Generator)
        return steps

    def search(self, **settings: Any) -> dict[str, Any]:
        result: dict[str, Any] = encode(finished(self.events(**settings)))
        return result

    def rebuilt(self, result: dict[str, Any]) -> dict[str, int]:
        """Build with the file that was written; return the tactics."""
        path = Path(result["avoid"])
        given: dict[str, Any] = {"tactic_replay": path}
        if result["way"] == "cache":
            given = {"timing_cache": path, "editable_timing_cache": True}
        fake_build(self.trt, self.model, **given)
        return self.tactics.taken[-1]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: Any) -> World:
    version = getattr(request.node, "callspec", None)
    version = version.params["version"] if version else WEAKLY_TYPED
    return World(tmp_path, monkeypatch, version)


def found(result: dict[str, Any]) -> set[tuple[str, int]]:
    return {(one["title"], one["tactic"]["tactic"]) for one in result["culprits"]}


@BOTH
def test_the_one_wrong_tactic_is_found_and_avoided(world: World, version: str) -> None:
    world.tactics.wrong = {("three", 102)}
    world.tactics.fastest = [{}, {"three": 102, "one": 103, "four": 102}]
    result = world.search(output=Path("right.engine"))
    assert result["verdict"] == "found"
    assert found(result) == {("three", 102)}
    (culprit,) = result["culprits"]
    assert culprit["confirmed"]
    assert culprit["instead"]["tactic"] == 101
    assert result["problem"].startswith("y: 4 of 4 elements")
    taken = world.rebuilt(result)
    assert taken == {"one": 103, "two": 101, "three": 101, "four": 102}, "all but the wrong one"
    assert Path("right.engine").is_file()
    assert result["way"] == {WEAKLY_TYPED: "replay", STRONGLY_TYPED: "cache"}[version]
    assert world.trt.fake.cuda.live == 0


@BOTH
def test_two_wrong_tactics_are_found(world: World, version: str) -> None:
    world.tactics.wrong = {("one", 101), ("four", 101)}
    result = world.search()
    assert result["verdict"] == "found"
    assert found(result) == world.tactics.wrong
    assert all(one["confirmed"] for one in result["culprits"])
    taken = world.rebuilt(result)
    assert not set(taken.items()) & world.tactics.wrong
    assert taken["two"] == 101


@BY_CACHE
def test_a_tactic_that_is_never_the_fastest_is_found_by_varying_alone(
    world: World, version: str
) -> None:
    world.tactics.wrong = {("two", 103)}
    result = world.search(tries=4)
    assert (result["verdict"], result["culprits"], result["avoid"]) == ("none_bad", [], None)
    assert (result["builds"], result["good"], result["variants"]) == (4, 4, 1)
    assert not list(Path().glob("*.tactics"))
    result = world.search(tries=30, vary=True)
    assert result["verdict"] == "found"
    assert found(result) == {("two", 103)}
    assert result["variants"] > 2


def test_what_is_wrong_from_run_to_run_is_said(world: World) -> None:
    world.tactics.sometimes = {("two", 101)}
    result = world.search()
    assert found(result) == {("two", 101)}
    assert any("not deterministic" in remark for remark in result["remarks"])


@BY_CACHE
def test_no_tactics_give_a_right_result(world: World, version: str) -> None:
    world.tactics.wrong = {("two", number) for number in (101, 102, 103)}
    result = world.search(tries=3)
    assert (result["verdict"], result["good"]) == ("none_good", 0)
    assert result["builds"] > 2


def test_results_that_do_not_follow_the_tactics(world: World) -> None:
    values = world.trt.fake.values

    def wrong_once(name: str, exact: Any) -> Any:
        return exact + 100 if world.tactics.builds == 2 else values(name, exact)

    world.tactics.fastest = [{}, {"one": 102}]
    world.trt.fake.values = wrong_once
    result = world.search()
    assert (result["verdict"], result["avoid"]) == ("unsteady", None)


@BY_CACHE
def test_a_build_that_fails_with_chosen_tactics_is_said(world: World, version: str) -> None:
    world.tactics.wrong = {("three", 101)}
    world.tactics.refused = {("one", 102)}
    result = world.search(tries=3)
    assert result["verdict"] == "found"
    assert found(result) == {("three", 101)}
    assert result["failed"] > 0
    assert any("0x66 cannot be used for one" in remark for remark in result["remarks"])


@BOTH
@pytest.mark.usefixtures("replaces_all")
def test_a_search_that_was_cut_goes_on_where_it_was(world: World, version: str) -> None:
    world.tactics.wrong = {("three", 102)}
    world.tactics.fastest = [{}, {"three": 102, "one": 103, "four": 102}]
    steps = world.events()
    noted = 0
    for event in steps:
        noted += isinstance(event, Log) and event.text.startswith("Trial ")
        if noted == 3:
            steps.close()
            break
    assert world.tactics.builds == 3
    result = world.search()
    assert found(result) == {("three", 102)}
    assert world.tactics.builds == result["builds"], "no build was made twice"
    (culprit,) = result["culprits"]
    shown = {WEAKLY_TYPED: "0x", STRONGLY_TYPED: "kernel_102"}[version]
    assert culprit["tactic"]["shown"].startswith(shown)
    assert world.rebuilt(result)["three"] == 101
    before = world.tactics.builds
    again = world.search()
    assert world.tactics.builds == before + again["builds"], "a search that ended begins anew"


def test_the_cost_is_said_first(world: World) -> None:
    events = list(world.events(estimate_only=True))
    assert world.tactics.builds == 1
    result = encode(finished(events))
    assert result["verdict"] is None
    assert result["estimate"]["layers"] == 4
    assert result["estimate"]["builds"][0] == 10
    assert any("4 layers can have other tactics" in text for text in texts(events))
    stages = [event.stage for event in events if isinstance(event, Progress)]
    assert "Trial 1: build 1 of 10 (running the engine)" in stages


def test_files_of_the_two_ways(world: World) -> None:
    world.tactics.wrong = {("one", 101)}
    replay = world.search(way="replay", avoid=Path("a.json"))
    layers = parse_replay(Path("a.json").read_text(), "a.json")
    assert set(layers) == {"one", "two", "three", "four"}
    assert replay["culprits"][0]["layer"] == "one"
    cache = world.search(way="cache", avoid=Path("b.timing"))
    assert cache["culprits"][0]["layer"] == key_of("one")
    assert found(replay) == found(cache) == {("one", 101)}


def test_what_cannot_be_searched_is_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    rtx = pytest.importorskip("tensorrt_rtx")
    library = Library(rtx, capabilities_of(rtx))
    monkeypatch.setattr(tensorrt_library, "find_library", lambda choice: library)
    with pytest.raises(UnavailableError) as refused:
        world.search()
    assert "no algorithm selector and its timing cache does nothing" in str(refused.value)


def test_engines_run_on_the_dla_core_that_they_are_built_for(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    cores: list[Any] = []
    real = vars(outputs)["Engine"]

    def engine(*given: Any) -> Any:
        cores.append(given[-1])
        return real(*given)

    monkeypatch.setattr(outputs, "Engine", engine)
    world.trt.fake.dla_cores = 2
    world.search(dla_core=1, fp16=True, gpu_fallback=True, tries=2)
    assert cores == [1, 1]
