"""Sweeps run every point with its sizes, share sessions, keep what failed, and go on."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dld_tui.activities import memory
from dld_tui.activities.convert import fp16
from dld_tui.activities.sweep.job import TURNS, Request, run
from dld_tui.backends.onnxruntime import limits
from dld_tui.backends.onnxruntime.contest import Contestant
from dld_tui.backends.onnxruntime.generation import Generator
from dld_tui.core.errors import ActivityError, UnavailableError, UsageError
from dld_tui.core.params import placeholder_text, settings_of
from dld_tui.core.report.sweep import Sweep
from dld_tui.core.types import JSON
from tests.support import decoders
from tests.support.activities import finished
from tests.support.jobs import texts
from tests.support.models import write
from tests.support.runtime import needs_onnxruntime

HEAD = '<ir_version: 8, opset_import: ["" : 17]> g'
PICKY = (
    f"{HEAD} (float[N, K] x) => (float[N, K] y) <float[4] w = {{1, 2, 3, 4}}> {{ y = Add(x, w) }}"
)
"""Runs where K is 1 or 4 only."""
WEIGHTS = f"""{HEAD} (float[N, 2] x) => (float[N, 2] y) <float[2, 2] w = {{0.5, -0.25, 1.0, 0.125}}>
{{ y = MatMul(x, w) }}"""
Turn = Callable[[Contestant], float]


@pytest.fixture(autouse=True)
def without_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the memory out, which takes a session more, where no time is asked for."""
    monkeypatch.setattr("dld_tui.activities.sweep.job.MEMORY_S", 0.0)


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> Callable[[Turn], None]:
    """Return a function that says what turns measure, in place of running the model."""

    def take(turn: Turn) -> None:
        monkeypatch.setattr(Contestant, "time", lambda self, seconds, **_: turn(self))

    return take


def sweep(path: Path, **asked: Any) -> tuple[Sweep, list[str]]:
    events = list(run(Request(path, **{"duration": 0.0, **asked})))
    found: Sweep = finished(events)
    return found, texts(events)


def problems(found: Sweep, axis: str) -> dict[Any, str]:
    return {found.value(point, axis): point.problem for point in found.points}


def test_a_point_that_fails_is_a_cell_with_its_reason(
    tmp_path: Path, turns: Callable[[Turn], None]
) -> None:
    turns(lambda one: one.open() or 1.0)  # type: ignore[func-returns-value]
    path = write(tmp_path, PICKY)
    told = problems(sweep(path, dim=("K=1,3,4",))[0], "K")
    assert "Add" in told.pop(3)
    assert told == {1: "", 4: ""}
    with pytest.raises(ActivityError, match="no point can be run"):
        sweep(path, dim=("K=3,5",))
    assert [point.at for point in sweep(path)[0].points] == [(1,), (2,), (4,), (8,)]

    path = write(tmp_path, f"{HEAD} (float[2, 3] x) => (float[2, 3] y) {{ y = Relu(x) }}")
    told = problems(sweep(path, batch="2,4")[0], "batch")
    assert told.pop(2) == ""
    assert "fixed in the model" in told[4]

    path = write(tmp_path, WEIGHTS)
    told = problems(sweep(path, provider=("CPU", "Tensorrt", "OpenVINO"), batch="1")[0], "provider")
    assert told["CPU"] == ""
    assert "Tensorrt" in told["Tensorrt"]
    with pytest.raises(UnavailableError):
        sweep(path, provider=("Tensorrt",))


def test_a_point_that_fails_later_keeps_the_others(
    tmp_path: Path, turns: Callable[[Turn], None]
) -> None:
    def failing(one: Contestant) -> float:
        (values,) = one._sets
        if len(values["x"]) == 2:
            raise ActivityError("no memory")
        return 1.0

    turns(failing)
    found, _ = sweep(write(tmp_path, WEIGHTS), batch="1,2,4")
    assert problems(found, "batch") == {1: "", 2: "no memory", 4: ""}
    assert [len(point.rounds_ms) for point in found.points] == [TURNS, 0, TURNS]


def test_a_conversion_that_fails_is_a_cell(
    tmp_path: Path, turns: Callable[[Turn], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(request: Any) -> None:
        raise ActivityError("it has no types", hint="Do this")

    turns(lambda one: 1.0)
    monkeypatch.setattr(fp16, "run", fail)
    path = write(tmp_path, WEIGHTS)
    told = problems(sweep(path, precision="fp32,fp16,int8", batch="1")[0], "precision")
    assert told.pop("int8").endswith(" needs --calibration")
    assert told == {"fp32": "", "fp16": "it has no types. Do this"}


def test_what_an_empty_field_stands_for() -> None:
    cases: list[tuple[str, dict[str, JSON]]] = [
        ("1,2,4,8", {}), ("1,2,4,8", {"provider": ["CPU"]}),
        ("as guessed", {"provider": ["CPU", "CUDA"]}), ("as guessed", {"threads": "1,2"}),
        ("as guessed", {"dim": ["K=1"], "provider": ["CPU"]}),
    ]  # fmt: skip
    (batch,) = (one for one in settings_of(Request) if one.name == "batch")
    for text, values in cases:
        assert placeholder_text(batch, values) == text


def test_a_sweep_that_was_stopped_goes_on(tmp_path: Path, turns: Callable[[Turn], None]) -> None:
    path, times = write(tmp_path, PICKY), iter(range(1, 100))

    def stopped(one: Contestant) -> float:
        if (at := next(times)) == 6:
            raise KeyboardInterrupt
        return float(at)

    turns(stopped)
    with pytest.raises(KeyboardInterrupt):
        sweep(path, batch="1,2")
    times = iter(range(101, 200))
    found, logs = sweep(path, batch="1,2")
    assert logs == ["5 of 12 turns are known from before"]
    first, second = (point.rounds_ms for point in found.points)
    assert (first[:3], second[:2]) == ((1.0, 3.0, 5.0), (2.0, 4.0))
    assert len(first) == len(second) == TURNS
    assert min(first[3:] + second[2:]) > 100
    assert sweep(path, batch="1,2")[1] == []  # nothing is left of it


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"dim": ("K",)}, "--dim is 'K'"),
        ({"dim": ("Z=1,2",)}, "no input has a dimension 'Z'"),
        ({"dim": ("K=1", "K=2")}, "given twice"),
        ({"dim": ("target=1,2",)}, "something else of this name"),
        ({"batch": "1,b"}, "b is not a size"),
        ({"threads": "0"}, "0 is not a size"),
        ({"precision": "fp16,fp17"}, "fp17 is no precision"),
        ({"precision": "fp32,model"}, "the same model"),
        ({"prompt": "8", "dim": ("K=1",)}, "the sizes of a decoder are"),
        ({"prompt": "8,x"}, "x is not a size"),
        ({"shape": ("nothing:1x2",), "batch": "1"}, "nothing"),
    ],
)
def test_what_does_not_fit_is_refused(asked: dict[str, Any], why: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=why):
        sweep(write(tmp_path, PICKY), **asked)


def test_dimensions_that_there_are_stand_beside_one_that_is_not(tmp_path: Path) -> None:
    fixed = PICKY.replace("[N, K]", "[2, 2]")
    for text, named in ((PICKY, "There are K, N"), (fixed, "There are none: all of its sizes")):
        with pytest.raises(UsageError) as caught:
            sweep(write(tmp_path, text), dim=("Z=1,2",))
        assert str(caught.value.hint).startswith(named)


@needs_onnxruntime(31)
def test_the_memory_of_a_point_is_that_of_its_pass(
    tmp_path: Path, turns: Callable[[Turn], None]
) -> None:
    turns(lambda one: 1.0)
    text = f"""{HEAD} (float[N, K] x) => (float[N, K] y)
    {{ z = Exp(x) t = Sin(z) u = Cos(z) y = Add(t, u) }}"""
    path = write(tmp_path, text)
    asked: dict[str, Any] = {"dim": ("N=1000,3000", "K=8"), "threads": "1,2"}
    found, _ = sweep(path, duration=60.0, **asked)
    known = {(point.at[0], point.at[1]): point.memory_bytes for point in found.points}
    for threads, rows in itertools.product((1, 2), (1000, 3000)):
        plan = finished(memory.run(memory.Request(path, shape=(f"x:{rows}x8",), threads=1)))
        assert known[threads, rows] == plan.measured.peak
    assert [point.memory_bytes for point in sweep(path, **asked)[0].points] == [None] * 4


def test_a_precision_that_does_not_hold_the_values_is_a_cell(
    tmp_path: Path, turns: Callable[[Turn], None]
) -> None:
    turns(lambda one: 1.0)
    huge = WEIGHTS.replace("0.5, -0.25, 1.0, 0.125", "1e6, 1, 1, 1")
    told = problems(sweep(write(tmp_path, huge), precision="model,fp16", batch="1")[0], "precision")
    assert told["model"] == ""
    assert told["fp16"]
    text = WEIGHTS.replace("float[", "float16[").replace("0.5, -0.25, 1.0, 0.125", "1, 2, 3, 4")
    text = text.replace("}>", "}, float16[4] u = {1, 2, 3, 4}, float[3] v = {1, 2, 3}>")
    half = write(tmp_path, text)
    with pytest.raises(ActivityError, match="most of its weights are float16"):
        sweep(half, precision="fp32", batch="1")
    assert sweep(half, precision="model", batch="1")[0].points[0].problem == ""


def test_a_converted_model_is_known_to_the_next_sweep(
    tmp_path: Path, turns: Callable[[Turn], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(one: Contestant) -> float:
        raise KeyboardInterrupt

    path, asked = write(tmp_path, WEIGHTS), {"precision": "fp32,fp16", "batch": "1"}
    turns(stopped)
    with pytest.raises(KeyboardInterrupt):
        sweep(path, **asked)
    monkeypatch.setattr(fp16, "run", lambda request: pytest.fail("converted again"))
    turns(lambda one: 1.0)
    assert [point.problem for point in sweep(path, **asked)[0].points] == ["", ""]


def test_points_may_take_the_memory_that_is_free(
    tmp_path: Path, turns: Callable[[Turn], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    limited: list[int] = []
    turns(lambda one: 1.0)
    monkeypatch.setattr(limits, "_trials", [])
    monkeypatch.setattr(limits, "is_child", lambda: True)
    monkeypatch.setattr(limits, "limit_memory", limited.append)
    monkeypatch.setattr(limits, "free_memory", lambda: 10 << 40)
    assert sweep(write(tmp_path, WEIGHTS), batch="1,2")[0].points[1].problem == ""
    assert limited == [9 << 40]


def test_a_decoder_is_measured_by_prompt_and_context(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[tuple[int, int, int, int]] = []
    generate = Generator.run

    def noted(self: Generator, feeds: Any, batch: int, prompt: int, tokens: int) -> Any:
        ran.append((batch, prompt, feeds.context, tokens))
        yield from generate(self, feeds, batch, prompt, tokens)

    monkeypatch.setattr(Generator, "run", noted)
    model = decoders.grouped(tmp_path / "m.onnx")
    found, _ = sweep(model, prompt="4,8", context="16,245,249", decode=3)
    assert [axis.name for axis in found.axes] == ["prompt", "context"]
    fitting = [(1, 4, 16, 3), (1, 4, 245, 3), (1, 4, 249, 3), (1, 8, 16, 3), (1, 8, 245, 3)]
    assert sorted(ran) == sorted(fitting * (1 + TURNS)), "the first of each is not timed"
    assert [bool(point.problem) for point in found.points] == [False] * 5 + [True]
    assert "260 tokens are more than the 256" in found.points[5].problem
    measured = found.points[0]
    assert len(measured.rounds_ms) == len(measured.first_rounds_ms) == TURNS
    assert found.throughput(measured) == pytest.approx(1000 / (measured.ms or 0))
    assert (found.tokens, found.unit) == (3, "tokens/s")
    assert found.fixed == "prompt 1x4 after 16, 3 tokens"

    found, _ = sweep(decoders.folder(tmp_path / "genai"), decode=2, batch="1,2")
    assert [(point.at, point.problem) for point in found.points] == [((1, 128), ""), ((2, 128), "")]
    with pytest.raises(ActivityError, match="no cache of past keys"):
        sweep(write(tmp_path, WEIGHTS), prompt="4")
