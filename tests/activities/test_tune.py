"""Tuning from its request to its files, on a small model."""

from __future__ import annotations

import contextlib
import json
import time
from array import array
from collections.abc import Callable, Generator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import onnx
import pytest

from dld_tui.activities.profile import onnxruntime as profile_onnxruntime
from dld_tui.activities.tune import Request, conversions, course, outcome, proof, racing, run
from dld_tui.activities.tune.budget import BOTH, PROFILE_S, PROOF, Budget
from dld_tui.activities.tune.conversions import Conversions
from dld_tui.backends.onnxruntime import contest, limits, runtime
from dld_tui.backends.onnxruntime.session_options import SessionSettings
from dld_tui.core.codec import encode
from dld_tui.core.compare.gate import Pair, RunFigures
from dld_tui.core.errors import CancelledError, SaveError, TimeLimitError, UsageError
from dld_tui.core.events import Event, Finished, Log, Progress
from dld_tui.core.files import writer
from dld_tui.core.model.document.document import Document
from dld_tui.core.reading.story import NextStep
from dld_tui.core.report import latency
from dld_tui.core.report.latency import TimeCalls
from dld_tui.core.report.report import Report
from dld_tui.core.tune.changes import (
    CHANGES,
    Setup,
    TuneChange,
    batch_change,
    thread_changes,
    usable_changes,
)
from dld_tui.core.tune.gain import Gain, GainRow
from dld_tui.core.tune.race import Race
from dld_tui.core.tune.result import (
    NOTHING,
    TuneResult,
    load_result,
    no_time,
    result_lines,
    tune_document,
)
from tests.support.models import write

onnxruntime = pytest.importorskip("onnxruntime")
DEEP = """
<ir_version: 10, opset_import: ["" : 18]>
deep (float[1, 8] x) => (float[1, 8] y)
<float[8] c = {1, 2, 3, 4, 5, 6, 7, 8}>
{
    [add] d = Add(c, c)
    [mul] e = Mul(x, d)
    [out] y = Sigmoid(e)
}
"""


T = TypeVar("T")
ENDLESS = """
<ir_version: 8, opset_import: ["" : 17]>
endless (float[4] x) => (float[4] y) {
    trips = Constant <value = int64 {9000000000000000000}> ()
    y = Loop <body = body (int64 i, bool go, float[4] a) => (bool again, float[4] b) {
        again = Identity (go)
        b = Sin (a)
    }> (trips, , x)
}
"""
"""A model whose pass does not end in a lifetime."""


def tuned(path: Path, **settings: Any) -> TuneResult:
    settings.setdefault("budget", 600.0)
    events = list(run(Request(model=path, output=path.with_suffix(".tune.json"), **settings)))
    assert isinstance(events[-1], Finished)
    result = events[-1].result
    assert isinstance(result, TuneResult)
    return result


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """Return what turns take by the settings of the session: the clock is not asked."""
    speeds: dict[str, float] = {}

    def pass_ms(one: contest.Contestant) -> float:
        threads = str(one._settings.threads)
        return speeds.get(one._model.name, 1.0) * speeds.get(f"threads {threads}", 1.0)

    use_times(monkeypatch, pass_ms)
    return speeds


def use_times(
    monkeypatch: pytest.MonkeyPatch, pass_ms: Callable[[contest.Contestant], float]
) -> None:
    """Say what a pass of a set-up takes, in place of running it."""

    def timer(self: contest.Contestant) -> TimeCalls:
        self.open()

        def time_calls(first: int, durations: array[int], most: int, until: int) -> int:
            durations[0] = round(1e6 * pass_ms(self))
            return 1

        return time_calls

    monkeypatch.setattr(contest.Contestant, "timer", timer)
    monkeypatch.setattr(
        contest.Contestant, "turn", lambda self, seconds: RunFigures(pass_ms(self) / self.items)
    )
    monkeypatch.setattr(outcome, "_TURNS_S", 0.0)

    def timed_pair(
        self: proof.Proof, winner: Setup, folder: Path, duration_s: float, *, new_first: bool
    ) -> Generator[Event, None, Pair]:
        yield Progress(0, None)
        base, new = (self.subject.contestant(setup) for setup in (self.subject.base, winner))
        base_ms, new_ms = (pass_ms(one) / one.items for one in (base, new))
        return Pair(RunFigures(base_ms), RunFigures(new_ms), new_ms / base_ms)

    monkeypatch.setattr(proof.Proof, "_timed_pair", timed_pair)


@pytest.mark.slow
def test_the_fastest_is_found_confirmed_written_and_explained(
    tmp_path: Path, fast: dict[str, float]
) -> None:
    fast |= {"simplified.onnx": 0.5, "deep.tune.onnx": 0.5, "threads 1": 0.8}
    result = tuned(write(tmp_path, DEEP, "deep.onnx"), budget=600.0, only=("simplified,threads-1",))
    assert result.best == "simplified+threads-1"
    assert result.is_faster
    assert result.speedup is not None
    assert result.speedup.factor == pytest.approx(1 / 0.4)
    assert result.model == str(tmp_path / "deep.tune.onnx")
    assert len(onnx.load(result.model).graph.node) == 2  # the constants are folded
    by_key = {one.key: one for one in result.candidates}
    assert by_key["simplified+threads-1"].ratio == pytest.approx(0.4)
    assert by_key["simplified"].accuracy == "the same"
    assert [Path(one).exists() for one in result.reports] == [True, True]
    assert "intra_op_num_threads = 1" in (tmp_path / "deep.tune.py").read_text()
    assert "--threads 1" in result.code.command
    assert load_result(Path(result.report)) == result
    busy, idle = (replace(result, other_busy_threads=many) for many in (1.25, 0.1))
    told = [line for line in result_lines(busy) if line not in result_lines(idle)]
    assert told == [
        "Note: other programs kept 1.2 threads busy: on an idle machine the gain may"
        " differ, above all that of thread settings"
    ]
    assert result.inputs == "random values"  # no size was guessed, and no file given
    document: Any = tune_document(result)
    assert document["best"] == {
        "key": "simplified+threads-1", "title": "simplified graph, 1 thread",
        "settings": {"provider": "CPU", "threads": 1}, "latency_ms": pytest.approx(0.4),
        "speedup": pytest.approx(2.5), "speedup_interval": pytest.approx([2.5, 2.5]),
        "accuracy": "the same",
    }  # fmt: skip
    lost: Any = tune_document(replace(result, best="as it is", confirmed=None))
    assert (lost["best"]["key"], lost["best"]["title"]) == ("as it is", "original model")
    assert document["trials"] == document["candidates"]
    assert document["explained_percent"] is not None
    assert {"nodes", "before_ms", "after_ms", "running_ms", "waiting_ms"} == set(
        encode(result.nodes[0]) or {}
    )
    one_number = "speedup 2.50× (2.50 to 2.50) with simplified graph, 1 thread"
    assert one_number in result_lines(result)[0]
    assert result.winner is not None
    assert result.winner.ms == pytest.approx(0.4)
    assert result.winner.interval == pytest.approx((2.5, 2.5))


UNFUSED = """
<ir_version: 10, opset_import: ["" : 17]>
unfused (float[1, 8] x) => (float[1, 8] y)
<float r = {1.4142135}, float one = {1}, float half = {0.5}>
{
    d = Div(x, r)
    e = Erf(d)
    f = Add(e, one)
    m = Mul(x, f)
    y = Mul(m, half)
}
"""


@pytest.mark.slow
def test_rewrite_rules_are_tried_only_if_they_are_asked_for(
    tmp_path: Path, fast: dict[str, float]
) -> None:
    fast["fused-gelu.onnx"] = fast["unfused.tune.onnx"] = 0.5
    path = write(tmp_path, UNFUSED, "unfused.onnx")
    result = tuned(path, only=("fused-gelu",))
    assert (result.best, result.is_faster) == ("fused-gelu", True)
    assert result.winner is not None
    assert result.winner.accuracy  # its outputs were compared
    assert [node.op_type for node in onnx.load(str(result.model)).graph.node] == ["Gelu"]
    nothing = tuned(
        write(tmp_path, DEEP.replace("Sigmoid", "Erf"), "deep.onnx"), only=("fused-gelu",)
    )
    states = {one.key: one.state for one in nothing.candidates}
    assert states["fused-gelu"] == "no change"
    operators = frozenset(("Erf", "Softmax", "ReduceMean"))
    known = usable_changes(CHANGES, "CPU", operators, lambda name: None)
    assert not any(change.rules for change in known)


@pytest.mark.broad
@pytest.mark.parametrize("shown", [[0.9, 0.4], [0.9, 0.7, 0.8]])
def test_each_pair_of_profiles_is_read_once_and_the_likeliest_kept(
    shown: list[float], tmp_path: Path, fast: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that show 60 % less, as is confirmed, end it; else the nearest of all counts."""
    fast |= {"threads 1": 0.4}
    monkeypatch.setattr(outcome, "_PROFILE_PAIRS", len(shown))
    monkeypatch.setattr(outcome, "PROFILE_S", 1e9)
    read: list[float] = []

    def gain_of(before: Report, after: Report) -> Gain:
        read.append(shown[len(read)])
        row = GainRow("out", 1.0, read[-1], read[-1] - 1, 0.0)
        return Gain(1.0, read[-1], (row,), 0.0)

    monkeypatch.setattr("dld_tui.core.tune.gain.gain_of", gain_of)
    result = tuned(write(tmp_path, DEEP, "deep.onnx"), budget=600.0, only=("threads-1",))
    assert read == shown
    assert result.nodes[0].after_ms == min(shown)
    assert [Path(one).exists() for one in result.reports] == [True, True]


@pytest.mark.slow
def test_what_was_found_outlives_a_result_that_cannot_be_written(
    tmp_path: Path, fast: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    fast |= {"simplified.onnx": 0.5, "deep.tune.onnx": 0.5}
    path = write(tmp_path, DEEP, "deep.onnx")
    write_text, full = writer.write_text, [tmp_path / "deep.tune.json"]

    def on_a_full_disk(target: Path, text: str, **more: Any) -> None:
        """Fail for the result alone: modules that are imported meanwhile keep this function."""
        if target in full:
            raise SaveError("the disk is full", where=str(target))
        write_text(target, text, **more)

    monkeypatch.setattr(writer, "write_text", on_a_full_disk)
    with pytest.raises(SaveError, match="The measurements are kept"):
        tuned(path, budget=600.0, only=("simplified",))
    assert [one.name for one in tmp_path.iterdir()] == ["deep.onnx"]
    full.clear()
    monkeypatch.setattr(Conversions, "_convert", lambda *asked: pytest.fail("it is made"))
    assert tuned(path, budget=600.0, only=("simplified",)).best == "simplified"


def test_waiting_for_threads_is_no_measuring(
    tmp_path: Path, fast: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    def turn(one: contest.Contestant, seconds: float) -> RunFigures:
        latency._SETTLED_S[0] += 1000.0  # as if it had been waited for
        return RunFigures(1.0)

    monkeypatch.setattr(contest.Contestant, "turn", turn)
    result = tuned(write(tmp_path, DEEP, "deep.onnx"), only=("threads-1",))
    assert result.seconds["waiting"] >= 1000
    parts = sum(seconds for name, seconds in result.seconds.items() if name != "all")
    assert parts <= result.seconds["all"]
    assert "waiting for threads to sleep" in "\n".join(result_lines(result))


def test_nothing_is_claimed_and_written_where_nothing_is_faster(
    tmp_path: Path, fast: dict[str, float]
) -> None:
    fast["threads 1"] = 1.5
    result = tuned(write(tmp_path, DEEP, "deep.onnx"), only=("threads-1",))
    assert (result.best, result.is_faster, result.model) == ("as it is", False, None)
    assert {path.name for path in tmp_path.iterdir()} == {"deep.onnx", "deep.tune.json"}
    assert json.loads((tmp_path / "deep.tune.json").read_text())["best"] == "as it is"


def test_a_conversion_that_failed_is_tried_again_by_a_resumed_run(
    tmp_path: Path, fast: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk passes; outputs that are wrong stay wrong."""
    path, tries = write(tmp_path, DEEP, "deep.onnx"), list[str]()

    def failing(
        self: Conversions, change: TuneChange, values: Any
    ) -> Generator[Event, None, object]:
        yield Progress(0, None)
        tries.append(change.id)
        if change.id == "simplified":
            raise SaveError("the disk is full")
        return None  # no result that says whether outputs are right

    def stopped(self: racing.Racing, *settings: Any) -> Generator[Event, None, None]:
        yield Progress(0, None)
        raise CancelledError

    monkeypatch.setattr(Conversions, "_converted_here", failing)
    monkeypatch.setattr(racing.Racing, "raced", stopped)
    for expected in ({"simplified", "fp16"}, {"simplified"}):
        tries.clear()
        with pytest.raises(CancelledError):
            tuned(path, only=("simplified,fp16",))
        assert set(tries) == expected


def test_what_a_stopped_conversion_left_is_replaced(tmp_path: Path) -> None:
    path = write(tmp_path, DEEP, "deep.onnx")
    (fp16,) = (one for one in CHANGES if one.id == "fp16")
    with (
        contextlib.closing(Document.open(path)) as document,
        contextlib.closing(course.Tuning(Request(model=path, again=True), document)) as tuning,
    ):
        tuning.journal.model("fp16").write_bytes(b"half of a model")
        said = [event for event in tuning.conversions.converted([fp16]) if isinstance(event, Log)]
        assert (said, tuning.journal.exclusion("fp16")) == ([], None)
        assert onnx.load(tuning.journal.model("fp16")).graph.node


def test_rewrite_rules_that_failed_are_tried_again_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, DEEP, "deep.onnx")
    change = next(one for one in CHANGES if one.id == "fused-gelu")

    def full(self: Conversions, change: TuneChange) -> Generator[Event, None, str]:
        yield Progress(0, None)
        raise SaveError("the disk is full")

    monkeypatch.setattr(Conversions, "_rewritten", full)
    with (
        contextlib.closing(Document.open(path)) as document,
        contextlib.closing(course.Tuning(Request(model=path, again=True), document)) as tuning,
    ):
        for _ in range(2):
            list(tuning.conversions.converted([change]))
            assert not tuning.journal.is_made(change.id)


@pytest.mark.broad
def test_a_race_does_not_depend_on_the_luck_of_its_sessions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sessions are drawn that are up to 10 % faster or slower for as long as they last."""
    path, lucks = write(tmp_path, DEEP, "deep.onnx"), dict[contest.Contestant, float]()
    truly = {0: 1.0, 1: 0.96}
    drawn = np.random.default_rng(0)
    honest = contest.Contestant.open

    def opened(one: contest.Contestant) -> None:
        if not one.is_open or one not in lucks:
            lucks[one] = drawn.uniform(0.9, 1.1)
        honest(one)

    monkeypatch.setattr(contest.Contestant, "open", opened)
    monkeypatch.setattr(
        contest.Contestant,
        "turn",
        lambda one, seconds: RunFigures(truly[one._settings.threads] * lucks[one]),
    )

    def error_of(share: float) -> float:
        monkeypatch.setattr(racing, "_RENEWING", share)
        monkeypatch.setattr(racing, "OVERHEAD", share)
        with contextlib.closing(Document.open(path)) as document:
            tuning = course.Tuning(Request(model=path, budget=1e6, again=True), document)
            tuning.subject.make_inputs()
            one_thread = next(one for one in tuning._changes() if one.id == "threads-1")
            setups = [tuning.subject.base, tuning.subject.base.with_change(one_thread)]
            list(tuning.racing.raced("settings", setups, 1.0))
        ratio = tuning.found.races[0].ratio(setups[1].key, setups[0].key)
        assert ratio is not None
        return abs(ratio / truly[1] - 1)

    kept, renewed = ([error_of(share) for _ in range(20)] for share in (1e-12, 1e12))
    assert np.mean(renewed) < np.mean(kept) / 1.5


def test_a_race_compares_what_the_confirmation_compares(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine that is processor time, and sessions do not spin between passes."""
    path = write(tmp_path, DEEP, "deep.onnx")
    for waited, stops in ((50.0, {"session.force_spinning_stop": "1"}), (0.0, {})):
        machine = "dld_tui.core.machine.environment.waited_percent"
        monkeypatch.setattr(machine, lambda waited=waited: waited)
        with contextlib.closing(Document.open(path)) as document:
            tuning = course.Tuning(Request(model=path, budget=60.0, again=True), document)
            tuning.subject.make_inputs()
            base, known = tuning.subject.base, {one.id: one for one in tuning._changes()}
            setups = [base, *(base.with_change(known[id]) for id in ("extended", "threads-1"))]
            made = [tuning.subject.contestant(setup) for setup in setups]
            assert [dict(one._settings.config) for one in made] == [stops] * 3
            runs = RunFigures(2.0, processor_ms=1.0), RunFigures(1.0, processor_ms=0.9)
            ratios = [tuning.subject.ratio(base, setup, *runs) for setup in setups[1:]]
            assert ratios == pytest.approx([0.9, 0.5])  # other threads take another share


def test_what_ran_in_one_round_is_confirmed_last(tmp_path: Path) -> None:
    """A busy machine showed 10.65x in a single round, and the confirmation was spent on that."""
    with contextlib.closing(Document.open(write(tmp_path, DEEP, "deep.onnx"))) as document:
        tuning = course.Tuning(Request(model=tmp_path / "deep.onnx", again=True), document)
        base = tuning.subject.base
        known = {one.id: one for one in CHANGES}
        once, slower, faster = (base.with_change(known[id]) for id in ("basic", "gelu", "extended"))
        often = Race([base.key, slower.key, faster.key])
        for _ in range(2):
            often.add_round({base.key: 10.0, slower.key: 9.0, faster.key: 8.0})
        lucky = Race([base.key, once.key])
        lucky.add_round({base.key: 10.0, once.key: 1.0})
        tuning.found.races = [often, lucky]
        assert tuning._ranked([once, slower, faster]) == [faster, slower, once, base]


def test_new_sessions_take_a_small_share_of_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, clock, opened = write(tmp_path, DEEP, "deep.onnx"), [0.0], list[float]()
    monkeypatch.setattr("dld_tui.activities.tune.budget.time.monotonic", lambda: clock[0])
    honest = contest.Contestant.open

    def open_in_a_second(one: contest.Contestant) -> None:
        opened.extend([] if one.is_open else [clock[0]])
        honest(one)
        one.opening_s = 1.0

    def turn(one: contest.Contestant, seconds: float) -> RunFigures:
        clock[0] += 5.0
        return RunFigures(1.0)

    monkeypatch.setattr(contest.Contestant, "open", open_in_a_second)
    monkeypatch.setattr(contest.Contestant, "turn", turn)
    with contextlib.closing(Document.open(path)) as document:
        tuning = course.Tuning(Request(model=path, budget=1e6, again=True), document)
        tuning.subject.make_inputs()
        one_thread = next(one for one in tuning._changes() if one.id == "threads-1")
        list(
            tuning.racing.raced(
                "settings", [tuning.subject.base, tuning.subject.base.with_change(one_thread)], 1.0
            )
        )
    again = len(opened) - 1  # the original model has the session that the inputs were made with
    assert again == pytest.approx(racing._RENEWING * clock[0], abs=1)


@pytest.mark.parametrize(("budget", "kept"), [(600.0, 180.0), (60.0, 18.0)])
def test_time_is_kept_for_the_proof(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, budget: float, kept: float
) -> None:
    path, clock = write(tmp_path, DEEP, "deep.onnx"), [0.0]
    monkeypatch.setattr("dld_tui.activities.tune.budget.time.monotonic", lambda: clock[0])

    def turn(one: contest.Contestant, seconds: float) -> RunFigures:
        clock[0] += 3.0
        return RunFigures(1.0)

    monkeypatch.setattr(contest.Contestant, "turn", turn)
    monkeypatch.setattr(racing, "_ROUNDS", 10**6)
    with contextlib.closing(Document.open(path)) as document:
        tuning = course.Tuning(Request(model=path, budget=budget, again=True), document)
        tuning.subject.make_inputs()
        one_thread = next(one for one in tuning._changes() if one.id == "threads-1")
        setups = [tuning.subject.base, tuning.subject.base.with_change(one_thread)]
        list(tuning.racing.raced("together", setups, BOTH))
    assert clock[0] == pytest.approx(budget - kept, abs=6.1)  # a round is two turns


def test_the_log_compares_what_is_slower_with_the_best_in_the_same_rounds(
    tmp_path: Path, fast: dict[str, float]
) -> None:
    fast |= {"threads 1": 1.7}
    path = write(tmp_path, DEEP, "deep.onnx")
    request = Request(
        model=path, output=tmp_path / "o.tune.json", budget=600.0, only=("threads-1",)
    )
    lines = [event.text for event in run(request) if isinstance(event, Log)]
    assert "1 thread: slower, 1.70× the best latency" in lines


def test_a_gain_that_a_gate_would_allow_is_not_claimed(
    tmp_path: Path, fast: dict[str, float]
) -> None:
    """A gate calls nothing different that differs by 0.5 %, and neither does a tuning."""
    fast["threads 1"] = 0.997
    result = tuned(write(tmp_path, DEEP, "deep.onnx"), only=("threads-1",))
    assert result.confirmed is not None
    assert (result.confirmed.verdict, result.is_faster) == ("no difference", False)


@pytest.mark.parametrize("budget", [60.0, 600.0])
def test_the_proof_fits_into_the_time_that_is_kept_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, budget: float
) -> None:
    """Each pair takes a second besides its runs; a short budget has shorter runs.

    In a long one the runs are long enough that starting processes is a small share of them.
    """
    path, clock, durations = write(tmp_path, DEEP, "deep.onnx"), [0.0], list[float]()
    monkeypatch.setattr("dld_tui.activities.tune.budget.time.monotonic", lambda: clock[0])

    def timed_pair(
        self: proof.Proof, winner: Setup, folder: Path, duration_s: float, *, new_first: bool
    ) -> Generator[Event, None, Pair]:
        yield Progress(0, None)
        durations.append(duration_s)
        clock[0] += 1.0 + 2 * duration_s
        return Pair(RunFigures(2.0), RunFigures(1.0), 0.5)

    monkeypatch.setattr(proof.Proof, "_timed_pair", timed_pair)
    with contextlib.closing(Document.open(path)) as document:
        tuning = course.Tuning(Request(model=path, budget=budget, again=True), document)
        clock[0] = budget - PROOF * budget
        list(tuning.proof.confirmed(tuning.subject.base.with_change(thread_changes(2, 2)[0])))
    profile_s = min(PROFILE_S, proof._PROFILE_SHARE * budget)
    assert len(durations) >= 6
    assert clock[0] <= budget - profile_s + 1.0 + 2 * durations[-1]
    starting_s, measuring_s = 1.0 * len(durations), 2 * sum(durations)
    assert budget < 100 or starting_s < 0.1 * measuring_s


@pytest.mark.broad
@pytest.mark.parametrize("again", ["loading", "running"])
def test_the_budget_holds_for_a_model_that_takes_longer_than_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, again: str
) -> None:
    """It is said that the original model was not even loaded, or run once."""
    path = write(tmp_path, ENDLESS, "endless.onnx")
    monkeypatch.setattr(limits, "_abandoned", [])
    if again == "loading":
        creates = onnxruntime.InferenceSession

        def create(*arguments: Any, **settings: Any) -> Any:
            time.sleep(20)
            return creates(*arguments, **settings)

        monkeypatch.setattr(onnxruntime, "InferenceSession", create)
    begin = time.monotonic()
    result = tuned(path, budget=4.0)
    assert time.monotonic() - begin < 7
    assert (result.best, result.is_whole, result.is_faster) == ("as it is", False, False)
    state = "loaded" if again == "loading" else "run"
    assert result.candidates[0].problem == no_time(f"before the original model was {state}").text
    assert result.candidates[0].state == "not tried"


def test_a_candidate_whose_loading_does_not_fit_is_not_started(
    tmp_path: Path, fast: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    fast["threads 1"] = 0.5
    monkeypatch.setattr(Budget, "left", lambda self, share=None: 5.0)
    path = write(tmp_path, DEEP, "deep.onnx")
    with contextlib.closing(Document.open(path)) as document:
        tuning = course.Tuning(Request(model=path, budget=600.0, again=True), document)
        tuning.subject.make_inputs()
        tuning.budget.first_s = 10.0
        one_thread = next(one for one in tuning._changes() if one.id == "threads-1")
        setup = tuning.subject.base.with_change(one_thread)
        list(tuning.racing._admitted("settings", [setup], 1.0))
        assert tuning.found.problems == {setup.key: no_time("before it was measured")}
        assert tuning.racing.made == {}


def test_only_so_many_candidates_are_loaded_as_can_race(
    tmp_path: Path, fast: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two rounds of turns of 3 s each, behind a second for loading."""
    path = write(tmp_path, DEEP, "deep.onnx")
    with contextlib.closing(Document.open(path)) as document:
        tuning = course.Tuning(Request(model=path, budget=600.0, again=True), document)
        tuning.subject.make_inputs()
        setups = [
            tuning.subject.base,
            *map(tuning.subject.base.with_change, thread_changes(16, 16)),
        ]
        assert len(setups) == 4
        tuning.budget.first_s = tuning.budget.pass_s = 1.0
        monkeypatch.setattr(tuning.budget, "left", lambda share=None: 19.0)
        list(tuning.racing._admitted("settings", setups, 1.0))
        assert [*tuning.racing.made] == [setup.key for setup in setups[:3]]
        assert tuning.found.problems == {setups[3].key: no_time("before it was measured")}


@pytest.mark.slow
def test_a_pass_that_does_not_end_ends_the_race_and_not_the_result(
    tmp_path: Path, fast: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The round that was stopped does not count."""
    fast["threads 1"] = 0.5
    turns: list[float] = []

    def turn(one: contest.Contestant, seconds: float) -> RunFigures:
        turns.append(1.0)
        if len(turns) >= 6:
            raise TimeLimitError("stopped")
        return RunFigures(1.0 if one._settings.threads == 0 else 0.95)

    monkeypatch.setattr(contest.Contestant, "turn", turn)
    result = tuned(write(tmp_path, DEEP, "deep.onnx"), only=("threads-1",))
    assert [one.rounds for one in result.candidates] == [2, 2]
    assert not result.is_whole


def test_a_confirmation_that_does_not_fit_claims_nothing(
    tmp_path: Path, fast: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    fast["threads 1"] = 0.5
    pairs: list[int] = []

    def timed_pair(*arguments: Any, **settings: Any) -> Generator[Event, None, Pair]:
        yield Progress(0, None)
        pairs.append(1)
        if len(pairs) == 4:
            raise TimeLimitError("took too long")
        return Pair(RunFigures(2.0), RunFigures(1.0), 0.5)

    monkeypatch.setattr(proof.Proof, "_timed_pair", timed_pair)
    result = tuned(write(tmp_path, DEEP, "deep.onnx"), only=("threads-1",))
    assert (result.confirmed, result.best, result.is_whole) == (None, "as it is", False)
    assert "Closest: 1 thread, 2.00× at first" in "\n".join(result_lines(result))


@pytest.mark.slow
def test_a_slow_model_is_converted_in_a_process_that_can_be_stopped(
    tmp_path: Path, fast: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    fast |= {"simplified.onnx": 0.5, "deep.tune.onnx": 0.5}
    monkeypatch.setattr(conversions, "_QUICK_BYTES", -1)
    path = write(tmp_path, DEEP, "deep.onnx")
    monkeypatch.setattr(Conversions, "_converted_here", lambda *asked: pytest.fail("here"))
    result = tuned(path, only=("simplified",))
    assert (result.best, result.is_faster) == ("simplified", True)
    with contextlib.closing(Document.open(path)) as document:
        tuning = course.Tuning(Request(model=path, budget=600.0, again=True), document)
        tuning.subject.make_inputs()
        monkeypatch.setattr(tuning.budget, "left", lambda share=None: 0.05)
        change = next(one for one in CHANGES if one.id == "simplified")
        assert returned(tuning.conversions._convert(change)) == no_time("during the conversion")


def test_profiles_that_do_not_fit_take_nothing_from_the_claim(
    tmp_path: Path, fast: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    def turned(*arguments: Any) -> Generator[Event, None, None]:
        yield Progress(0, None)
        raise TimeLimitError("stopped")

    fast["threads 1"] = 0.5
    monkeypatch.setattr(outcome.Outcome, "_turned", turned)
    result = tuned(write(tmp_path, DEEP, "deep.onnx"), only=("threads-1",))
    assert (result.is_faster, result.reports, result.is_whole) == (True, (), False)
    assert result.why == ("The budget was spent before both could be profiled.",)


_TRIES = 5
"""Passes of microseconds on a busy machine may take ten times as long for a while."""


def test_the_winner_is_confirmed_in_new_processes(tmp_path: Path) -> None:
    """A pass of four items that takes as long as one of one item is about four times as fast."""
    text = DEEP.replace("float[1, 8] x", "float[N, 8] x").replace("float[1, 8] y", "float[N, 8] y")
    path = write(tmp_path, text, "deep.onnx")
    request = Request(model=path, again=True)
    with (
        contextlib.closing(Document.open(path)) as document,
        contextlib.closing(course.Tuning(request, document)) as tuning,
    ):
        tuning.subject.make_inputs()
        winner = tuning.subject.base.with_change(batch_change(4))
        for _ in range(_TRIES):
            pair = returned(tuning.proof._timed_pair(winner, tmp_path, 0.05, new_first=True))
            assert pair.base.ms > 0
            if 0.1 < pair.ratio < 0.6:
                break
        else:
            pytest.fail(f"a pass of four items takes {pair.ratio} as long as one, by item")


@pytest.mark.broad
@pytest.mark.parametrize(("provider", "forks"), [("CPU", True), ("CUDA", False)])
def test_only_processes_without_a_gpu_are_forks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, provider: str, forks: bool
) -> None:
    monkeypatch.setattr(runtime, "providers", lambda: ["CPU", "CUDA"])
    path = write(tmp_path, DEEP, "deep.onnx")
    with (
        contextlib.closing(Document.open(path)) as document,
        contextlib.closing(
            course.Tuning(Request(model=path, provider=provider, again=True), document)
        ) as tuning,
    ):
        assert (tuning.proof._pair_server is not None) == forks


def returned(events: Generator[Event, None, T]) -> T:
    """Return what a generator returns when its events are over."""
    while True:
        try:
            next(events)
        except StopIteration as end:
            value: T = end.value
            return value


def test_what_computes_something_else_does_not_count(
    tmp_path: Path, fast: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    fast["threads 1"] = 0.1
    honest = contest.Contestant.outputs

    def outputs(self: contest.Contestant) -> list[dict[str, Any]]:
        factor = 1.5 if self._settings.threads == 1 else 1.0
        found: list[Mapping[str, Any]] = [*honest(self)]
        return [{name: factor * value for name, value in one.items()} for one in found]

    monkeypatch.setattr(contest.Contestant, "outputs", outputs)
    result = tuned(write(tmp_path, DEEP, "deep.onnx"), only=("threads-1",))
    assert not result.is_faster
    (one,) = (one for one in result.candidates if one.key == "threads-1")
    assert one.state == "failed"
    assert one.problem.startswith("output y: 8 of 8 elements are outside of")


@pytest.mark.parametrize("binds", [False, True])
def test_outputs_and_times_are_of_the_model_bound_or_not(tmp_path: Path, binds: bool) -> None:
    values = {"x": np.arange(8, dtype=np.float32).reshape(1, 8)}
    sets = [values, {"x": -values["x"]}]
    path = write(tmp_path, DEEP, "deep.onnx")
    one = contest.Contestant(path, SessionSettings(), sets, items=2, io_binding=binds)
    expected = [1 / (1 + np.exp(-feed["x"] * 2 * np.arange(1, 9))) for feed in sets]
    for found, wanted in zip(one.outputs(), expected, strict=True):
        np.testing.assert_allclose(found["y"], wanted, rtol=1e-5, atol=1e-6)
    assert one.time(0.0) > 0
    one.close()
    assert one.time(0.0) > 0  # it is made again


@pytest.mark.parametrize(("pass_s", "calls"), [(0.0, 4), (1.2, 2), (2.5, 1)])
def test_a_turn_of_a_slow_model_has_fewer_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pass_s: float, calls: int
) -> None:
    now, counted = [10**12], list[int]()
    monkeypatch.setattr("dld_tui.core.report.latency.time.perf_counter_ns", lambda: now[0])
    monkeypatch.setattr(contest, "settle", lambda: None)

    def timer(one: contest.Contestant) -> TimeCalls:
        def time_calls(first: int, durations: array[int], most: int, until: int) -> int:
            now[0] += round(1e9 * pass_s)
            durations[0] = 7_000_000
            counted.append(first)
            return 1

        return time_calls

    monkeypatch.setattr(contest.Contestant, "timer", timer)
    one = contest.Contestant(tmp_path / "m.onnx", SessionSettings(), [])
    assert one.time(0.0) == 7
    assert len(counted) == calls


def test_a_folder_that_may_not_be_written_to_is_said_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, DEEP, "deep.onnx")
    monkeypatch.setattr("os.access", lambda folder, mode: folder != tmp_path)
    for output in (tmp_path / "o.tune.json", None):
        monkeypatch.chdir(tmp_path)
        with pytest.raises(SaveError, match="is not writable"):
            next(run(Request(model=path, output=output)))


def test_a_change_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no change is called faster"):
        tuned(write(tmp_path, DEEP, "deep.onnx"), only=("faster",))


@pytest.mark.slow
def test_items_of_a_batch_are_timed_and_compared_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = DEEP.replace("float[1, 8] x", "float[N, 8] x").replace("float[1, 8] y", "float[N, 8] y")
    seen: list[tuple[int, tuple[int, ...]]] = []

    def pass_ms(one: contest.Contestant) -> float:
        seen.append((one.items, one._sets[0]["x"].shape))
        return 1.0

    use_times(monkeypatch, pass_ms)
    result = tuned(write(tmp_path, text, "deep.onnx"), only=("batch-4",), batch=("4",))
    assert (4, (4, 8)) in seen
    assert (1, (1, 8)) in seen
    assert result.best == "batch-4"
    assert result.speedup is not None
    assert result.speedup.factor == pytest.approx(4.0)
    assert "--shape x:4x8" in result.code.command


@pytest.mark.parametrize(("each_s", "tried"), [(10.0, 6), (40.0, 1)])
def test_the_budget_is_used_as_long_as_candidates_are_left(
    tmp_path: Path,
    fast: dict[str, float],
    monkeypatch: pytest.MonkeyPatch,
    each_s: float,
    tried: int,
) -> None:
    """Conversions that take long had a share of the budget, of which the rest was left."""
    path, clock, converted = write(tmp_path, DEEP, "deep.onnx"), [0.0], list[str]()
    monkeypatch.setattr("dld_tui.activities.tune.budget.time.monotonic", lambda: clock[0])
    opset = replace(next(one for one in CHANGES if one.id == "opset"), values={"to": 22})
    models = [opset, *(one for one in CHANGES if one.id in ("simplified", "fp16"))]
    models += [replace(opset, id=f"opset-{number}") for number in range(3)]
    monkeypatch.setattr(course.Tuning, "_usable", lambda self: models)

    def convert(self: Conversions, change: TuneChange) -> Generator[Event, None, object]:
        yield Progress(0, None)
        room_s = self.budget.left(self.budget.converted_share)
        clock[0] += min(each_s, room_s)
        if each_s > room_s:
            return no_time("during the conversion")
        converted.append(change.id)
        return NOTHING

    monkeypatch.setattr(Conversions, "_convert", convert)
    result = tuned(path, budget=120.0)
    assert len(set(converted)) == len(converted) == tried
    left = [one for one in result.candidates if one.state == "not tried"]
    assert len(left) == 6 - tried
    assert not left or clock[0] >= 0.9 * 120
    told = [line for line in result_lines(result) if line.startswith("Note: stopped after")]
    assert bool(told) == bool(left)


def test_what_won_before_is_proven_though_later_races_had_no_time_for_it(tmp_path: Path) -> None:
    path = write(tmp_path, DEEP)
    with contextlib.closing(Document.open(path)) as document:
        work = course.Tuning(Request(model=path, budget=95.0), document)
        base = work.subject.base
        half, graph = (
            base.with_change(one) for one in CHANGES if one.id in ("fp16", "no-spinning")
        )
        both = graph.with_change(half.changes[0])
        first, second = Race([base.key, graph.key]), Race([graph.key, both.key])
        for _ in range(4):
            first.add_round({base.key: 2.0, graph.key: 1.2})
            second.add_round({graph.key: 1.2, both.key: 1.1})
        work.found.races = [first, second]
        assert work._ranked([base, both, graph, both]) == [both, graph, base]
        work.found.problems[both.key] = no_time("before it was measured")
        assert work._ranked([base, both, graph]) == [graph, base]
        work.found.races = [Race([base.key, half.key])]
        work.found.races[0].add_round({base.key: 2.0, half.key: 2.2})
        assert work._ranked([half]) == [base]


def test_time_is_kept_for_the_proof_of_a_leader_on_a_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, clock = write(tmp_path, DEEP), [0.0]
    monkeypatch.setattr("dld_tui.activities.tune.budget.time.monotonic", lambda: clock[0])
    with contextlib.closing(Document.open(path)) as document:
        work = course.Tuning(Request(model=path, budget=95.0), document)
        leader = work.subject.base.with_change(CHANGES[0])
        work.budget.first_s, work.budget.pass_s = 0.9, 0.01
        work.budget.is_on_cpu = True  # a fork has loaded everything
        assert work.budget.left(1.0) == pytest.approx(95 * 0.7)
        work.budget.is_on_cpu, work.budget.first_s = False, 2.5
        pairs_s = 6 * (1 + 2 * 2.53)
        assert work.budget.left(1.0) == pytest.approx(95 - pairs_s)
        clock[0] = 95 - pairs_s / 0.75 - 1
        assert not work._must_prove(leader)
        clock[0] += 2
        assert work._must_prove(leader)
        assert not work._must_prove(work.subject.base)
        work.found.proofs[leader.key] = None  # type: ignore[assignment]
        assert not work._must_prove(leader)


@pytest.mark.broad
def test_what_a_report_of_the_model_advises_is_tried_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path, DEEP, "deep.onnx")
    steps = [NextStep("this", "why", ("blocks",)), NextStep("that", "why", ("opset", "blocks"))]
    monkeypatch.setattr("dld_tui.core.reading.story.next_steps", lambda report: steps)
    with (
        contextlib.closing(Document.open(path)) as document,
        contextlib.closing(course.Tuning(Request(model=path, again=True), document)) as tuning,
    ):
        tuning.subject.make_inputs()
        before = [change.id for change in tuning._usable()]
        assert before[:2] != ["blocks", "opset"]
        (tmp_path / "reports").mkdir()
        monkeypatch.chdir(tmp_path / "reports")
        list(profile_onnxruntime.run(profile_onnxruntime.Request(path, iterations=2)))
        after = [change.id for change in tuning._usable()]
        assert after == [*dict.fromkeys(["blocks", "opset", *before])]
