"""Tuning from its request to its files, on a small model."""

from __future__ import annotations

import json
import time
from array import array
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest

from dld_tui.activities.accuracy import score
from dld_tui.activities.profile import onnxruntime as profile_onnxruntime
from dld_tui.activities.tune import (
    Request,
    conversions,
    course,
    original,
    outcome,
    proof,
    racing,
    run,
)
from dld_tui.activities.tune.budget import BOTH, PROFILE_S, PROOF, Budget
from dld_tui.activities.tune.conversions import Conversions
from dld_tui.activities.tune.found import NO_TIME, failed
from dld_tui.backends.onnxruntime import contest, limits, runtime
from dld_tui.backends.onnxruntime.session_options import SessionSettings
from dld_tui.core.codec import encode
from dld_tui.core.compare.gate import Outcome, Pair, RunFigures
from dld_tui.core.errors import CancelledError, InputError, SaveError, TimeLimitError, UsageError
from dld_tui.core.events import Event, Progress, result_of
from dld_tui.core.files import writer
from dld_tui.core.model.document.document import Document
from dld_tui.core.params import to_json
from dld_tui.core.reading.story import NextStep
from dld_tui.core.report.latency import TimeCalls
from dld_tui.core.tune import result as tune_result
from dld_tui.core.tune.changes import (
    CHANGES,
    Setup,
    TuneChange,
    batch_change,
    reasons_of,
    thread_changes,
    usable_changes,
)
from dld_tui.core.tune.gain import Gain, GainRow
from dld_tui.core.tune.race import Race
from dld_tui.core.tune.result import (
    NOTHING,
    Candidate,
    TuneResult,
    load_result,
    no_time,
    result_lines,
    tune_document,
)
from tests.support.activities import finished
from tests.support.jobs import texts
from tests.support.models import ENDLESS, write, write_weighted
from tests.support.runtime import session_of

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
BATCHES = DEEP.replace("float[1, 8]", "float[N, 8]")
KNOWN = {one.id: one for one in CHANGES}
Speeds = dict[str, float]


@pytest.fixture
def deep(tmp_path: Path) -> Path:
    return write(tmp_path, DEEP, "deep.onnx")


def tuned(path: Path, **settings: Any) -> TuneResult:
    for old in path.parent.glob(f"{path.stem}.tune*"):
        old.unlink()
    settings.setdefault("budget", 600.0)
    result = finished(run(Request(model=path, output=path.with_suffix(".tune.json"), **settings)))
    assert isinstance(result, TuneResult)
    return result


@contextmanager
def tuning(path: Path, **settings: Any) -> Iterator[course.Tuning]:
    """Yield a tuning that has made its inputs, for tests of a part of it."""
    request = Request(model=path, again=True, **{"budget": 600.0, **settings})
    with (
        closing(Document.open(path)) as document,
        closing(course.Tuning(request, document)) as found,
    ):
        found.subject.make_inputs()
        yield found


def setup_of(work: course.Tuning, change: str = "threads-1") -> Setup:
    return work.subject.base.with_change(next(one for one in work._changes() if one.id == change))


def candidate(result: TuneResult, key: str) -> Candidate:
    return next(one for one in result.candidates if one.key == key)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the time of the budget, which goes on where a test says so."""
    now = [0.0]
    monkeypatch.setattr("dld_tui.activities.tune.budget.time.monotonic", lambda: now[0])
    return now


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> Speeds:
    """Return what turns take by the settings of the session: the clock is not asked."""
    speeds: Speeds = {}

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

    def timed_pair(
        self: proof.Proof, winner: Setup, folder: Path, duration_s: float, *, new_first: bool
    ) -> Generator[Event, None, Pair]:
        yield Progress(0, None)
        base, new = (self.subject.contestant(setup) for setup in (self.subject.base, winner))
        base_ms, new_ms = (pass_ms(one) / one.items for one in (base, new))
        return Pair(RunFigures(base_ms), RunFigures(new_ms), new_ms / base_ms)

    monkeypatch.setattr(contest.Contestant, "timer", timer)
    monkeypatch.setattr(
        contest.Contestant,
        "measure_slice",
        lambda self, seconds: RunFigures(pass_ms(self) / self.items),
    )
    monkeypatch.setattr(outcome, "_TURNS_S", 0.0)
    monkeypatch.setattr(outcome, "_PROFILE_PAIRS", 1)
    monkeypatch.setattr(proof.Proof, "_timed_pair", timed_pair)


def turns_of(monkeypatch: pytest.MonkeyPatch, turn: Callable[[contest.Contestant], float]) -> None:
    """Say what a turn measures, in milliseconds a pass."""
    monkeypatch.setattr(
        contest.Contestant, "measure_slice", lambda one, seconds: RunFigures(turn(one))
    )


@pytest.mark.slow
def test_the_fastest_is_found_confirmed_written_and_explained(deep: Path, fast: Speeds) -> None:
    fast |= {"simplified.onnx": 0.5, "deep.tune.onnx": 0.5, "threads 1": 0.8}
    result = tuned(deep, only=("simplified,threads-1",))
    assert (result.best, result.is_faster) == ("simplified+threads-1", True)
    assert result.speedup is not None
    assert result.speedup.factor == pytest.approx(1 / 0.4)
    assert result.model == str(deep.with_name("deep.tune.onnx"))
    assert len(onnx.load(result.model).graph.node) == 2  # the constants are folded
    assert candidate(result, "simplified+threads-1").ratio == pytest.approx(0.4)
    assert candidate(result, "simplified").accuracy == "the same"
    assert [Path(one).exists() for one in result.reports] == [True, True]
    assert "intra_op_num_threads = 1" in deep.with_name("deep.tune.py").read_text()
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
{ d = Div(x, r) e = Erf(d) f = Add(e, one) m = Mul(x, f) y = Mul(m, half) }
"""


@pytest.mark.slow
def test_rewrite_rules_are_tried_only_if_they_are_asked_for(tmp_path: Path, fast: Speeds) -> None:
    fast["fused-gelu.onnx"] = fast["unfused.tune.onnx"] = 0.5
    result = tuned(write(tmp_path, UNFUSED, "unfused.onnx"), only=("fused-gelu",))
    assert (result.best, result.is_faster) == ("fused-gelu", True)
    assert result.winner is not None
    assert result.winner.accuracy  # its outputs were compared
    assert [node.op_type for node in onnx.load(str(result.model)).graph.node] == ["Gelu"]
    text = DEEP.replace("Sigmoid", "Erf")
    nothing = tuned(write(tmp_path, text, "deep.onnx"), only=("fused-gelu",))
    assert candidate(nothing, "fused-gelu").state == "no change"
    operators = frozenset(("Erf", "Softmax", "ReduceMean"))
    known = usable_changes(CHANGES, "CPU", operators, lambda name: None)
    assert not any(change.rules for change in known)


@pytest.mark.parametrize(
    ("shown", "most_s"), [([0.9, 0.4], 1e9), ([0.9, 0.7, 0.8], 1e9), ([0.9], 0.0)]
)
def test_each_pair_of_profiles_is_read_once_and_the_likeliest_kept(
    shown: list[float], most_s: float, deep: Path, fast: Speeds, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that show 60 % less, as is confirmed, end it; else the nearest in the time counts."""
    fast["threads 1"] = 0.4
    monkeypatch.setattr(outcome, "_PROFILE_PAIRS", 3)
    monkeypatch.setattr(outcome, "PROFILE_S", most_s)
    read: list[float] = []

    def turned(self: outcome.Outcome, setups: Any, paths: list[Path]) -> Iterator[Event]:
        yield Progress(0, None)
        for path in paths:
            path.write_text(str(shown[len(read)]))

    def gain_of(paths: list[Path]) -> Gain:
        (shown,) = {float(path.read_text()) for path in paths}
        read.append(shown)
        return Gain(1.0, shown, (GainRow("out", 1.0, shown, shown - 1, 0.0),), 0.0)

    monkeypatch.setattr(outcome.Outcome, "_turned", turned)
    monkeypatch.setattr(outcome, "_gain_of", gain_of)
    result = tuned(deep, only=("threads-1",))
    assert read == shown
    assert result.nodes[0].after_ms == min(shown)
    assert [float(Path(one).read_text()) for one in result.reports] == [min(shown)] * 2


@pytest.mark.slow
def test_what_was_found_outlives_a_result_that_cannot_be_written(
    deep: Path, fast: Speeds, monkeypatch: pytest.MonkeyPatch
) -> None:
    fast |= {"simplified.onnx": 0.5, "deep.tune.onnx": 0.5}
    write_text, full = writer.write_text, [deep.with_name("deep.tune.json")]

    def on_a_full_disk(target: Path, text: str, **more: Any) -> None:
        """Fail for the result alone: modules that are imported meanwhile keep this function."""
        if target in full:
            raise SaveError("the disk is full", where=str(target))
        write_text(target, text, **more)

    monkeypatch.setattr(writer, "write_text", on_a_full_disk)
    with pytest.raises(SaveError, match="The measurements are kept"):
        tuned(deep, only=("simplified",))
    assert [*deep.parent.iterdir()] == [deep]
    full.clear()
    monkeypatch.setattr(Conversions, "_convert", lambda *asked: pytest.fail("it is made"))
    assert tuned(deep, only=("simplified",)).best == "simplified"


def test_nothing_is_claimed_and_written_where_nothing_is_faster(deep: Path, fast: Speeds) -> None:
    """Neither what a gate would allow, which calls nothing different that differs by 0.5 %."""
    fast["threads 1"] = 0.997
    result = tuned(deep, only=("threads-1",))
    assert result.confirmed is not None
    assert (result.confirmed.verdict, result.is_faster) == ("no difference", False)
    fast["threads 1"] = 1.7
    output = deep.with_name("deep.tune.json")
    output.unlink()
    request = Request(model=deep, output=output, budget=600.0, only=("threads-1",))
    events = [*run(request)]
    assert "1 thread: slower, 1.70× the best latency" in texts(events)
    result = finished(events)
    assert (result.best, result.is_faster, result.model) == ("as it is", False, None)
    assert {*deep.parent.iterdir()} == {deep, output}
    assert json.loads(output.read_text())["best"] == "as it is"


def test_a_conversion_that_failed_is_tried_again_by_a_resumed_run(
    deep: Path, fast: Speeds, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk passes; outputs that are wrong stay wrong."""
    tries: list[str] = []

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
            tuned(deep, only=("simplified,fp16",))
        assert set(tries) == expected


def test_what_a_stopped_conversion_left_is_replaced_and_rules_that_failed_are_tried_again(
    deep: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Conversions, change: TuneChange) -> Generator[Event, None, str]:
        yield Progress(0, None)
        raise SaveError("the disk is full")

    with tuning(deep) as work:
        assert result_of(work.conversions._rewritten(KNOWN["fused-gelu"])) == NOTHING
        work.journal.model("fp16").write_bytes(b"half of a model")
        said = texts([*work.conversions.converted([KNOWN["fp16"]])])
        assert (said, work.journal.exclusion("fp16")) == ([], None)
        assert onnx.load(work.journal.model("fp16")).graph.node
        monkeypatch.setattr(Conversions, "_rewritten", full)
        for _ in range(2):
            list(work.conversions.converted([KNOWN["fused-gelu"]]))
            assert not work.journal.is_made("fused-gelu")


def test_a_race_compares_what_the_confirmation_compares(
    deep: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine that is processor time, and sessions do not spin between passes."""
    for waited, stops in ((50.0, {"session.force_spinning_stop": "1"}), (0.0, {})):
        machine = "dld_tui.core.machine.environment.waited_percent"
        monkeypatch.setattr(machine, lambda waited=waited: waited)
        with tuning(deep) as work:
            base = work.subject.base
            setups = [base, setup_of(work, "extended"), setup_of(work)]
            made = [work.subject.contestant(setup) for setup in setups]
            assert [dict(one._settings.config) for one in made] == [stops] * 3
            runs = RunFigures(2.0, processor_ms=1.0), RunFigures(1.0, processor_ms=0.9)
            ratios = [work.subject.ratio(base, setup, *runs) for setup in setups[1:]]
            assert ratios == pytest.approx([0.9, 0.5])  # other threads take another share


def raced(count: int, times: Mapping[str, float]) -> Race:
    race = Race([*times])
    for _ in range(count):
        race.add_round(times)
    return race


def test_what_is_proven_is_what_was_faster_often_though_later_races_had_no_time(
    deep: Path,
) -> None:
    """A busy machine showed 10.65x in a single round, and the confirmation was spent on that."""
    with tuning(deep) as work:
        base = work.subject.base
        once, slower, faster, half, graph = (
            base.with_change(KNOWN[id])
            for id in ("basic", "gelu", "extended", "fp16", "no-spinning")
        )
        often = {base.key: 10.0, slower.key: 9.0, faster.key: 8.0}
        work.found.races = [raced(2, often), raced(1, {base.key: 10.0, once.key: 1.0})]
        assert work._ranked([once, slower, faster]) == [faster, slower, once, base]

        both = graph.with_change(half.changes[0])
        work.found.races = [
            raced(4, {base.key: 2.0, graph.key: 1.2}),
            raced(4, {graph.key: 1.2, both.key: 1.1}),
        ]
        assert work._ranked([base, both, graph, both]) == [both, graph, base]
        work.found.problems[both.key] = no_time("before it was measured")
        assert work._ranked([base, both, graph]) == [graph, base]
        work.found.races = [raced(1, {base.key: 2.0, half.key: 2.2})]
        assert work._ranked([half]) == [base]


def test_a_race_without_a_round_leaves_untried_what_never_raced(
    deep: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_round(self: racing.Racing, race: Race, share: float) -> Generator[Event, None, None]:
        yield Progress(0, None)
        raise TimeLimitError("no time")

    monkeypatch.setattr(racing.Racing, "_round", no_round)
    with tuning(deep) as work:
        base, known, other = work.subject.base, setup_of(work), setup_of(work, "extended")
        earlier = raced(1, {base.key: 1.0, known.key: 0.9})
        work.found.races = [earlier]
        assert result_of(work.racing.raced("settings", [base, known, other], BOTH)) == []
        assert work.found.problems == {other.key: NO_TIME}
        assert work.found.races == [earlier]


def test_turns_take_their_part_of_the_time_that_is_left(
    deep: Path, clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    turns: list[float] = []

    def measured(one: contest.Contestant, seconds: float) -> RunFigures:
        turns.append(seconds)
        return RunFigures(1.0)

    monkeypatch.setattr(contest.Contestant, "measure_slice", measured)
    with tuning(deep, budget=10.0) as work:
        work.budget.first_s = work.budget.pass_s = 0.0
        left_s = work.budget.left(BOTH)
        list(work.racing.raced("settings", [work.subject.base, setup_of(work)], BOTH))
    expected = [left_s / (2 * rounds) for rounds in (6, 5, 4, 3, 2, *[1] * 7)]
    assert turns[::2] == turns[1::2] == pytest.approx([min(1.0, max(0.1, s)) for s in expected])


def test_models_and_settings_race_and_what_had_no_time_is_tried_again(
    deep: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Settings that save launches are tried on models that lost, too."""
    stages: dict[str, list[Setup]] = {}
    graph = replace(KNOWN["no-spinning"], saves_launches=True)
    changes = [KNOWN["fp16"], KNOWN["weights-int8"], graph]

    def converted(self: Conversions, models: list[TuneChange]) -> Generator[Event, None, Any]:
        yield Progress(0, None)
        return [self.subject.base.with_change(one) for one in models]

    def race(
        self: racing.Racing, stage: str, setups: list[Setup], share: float
    ) -> Generator[Event, None, list[Setup]]:
        yield Progress(0, None)
        stages[stage] = setups
        return [setups[1], setups[0]] if len(setups) > 1 else []

    monkeypatch.setattr(Conversions, "converted", converted)
    monkeypatch.setattr(racing.Racing, "raced", race)
    with tuning(deep) as work:
        base = work.subject.base
        won, lost = (base.with_change(one) for one in changes[:2])
        late, broken = (base.with_change(KNOWN[name]) for name in ("basic", "extended"))
        work.found.setups |= {one.key: one for one in (late, broken)}
        work.found.problems = {late.key: NO_TIME, broken.key: failed("it crashed")}
        assert result_of(work._raced_all(changes, base)) == [won.with_change(graph), won]
        assert stages == {
            "models": [base, won, lost], "settings": [won, won.with_change(graph)],
            "together": [won, won.with_change(graph), base.with_change(graph),
                         lost.with_change(graph)],
        }  # fmt: skip
        assert (work.found.again, {*work.found.problems}) == ({late.key}, {broken.key})
        assert late.key not in work.found.setups


def test_new_sessions_take_a_small_share_of_the_time(
    deep: Path, clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, honest = list[float](), contest.Contestant.open

    def open_in_a_second(one: contest.Contestant) -> None:
        opened.extend([] if one.is_open else [clock[0]])
        honest(one)
        one.opening_s = 1.0

    def turn(one: contest.Contestant) -> float:
        clock[0] += 5.0
        return 1.0

    monkeypatch.setattr(contest.Contestant, "open", open_in_a_second)
    turns_of(monkeypatch, turn)
    with tuning(deep, budget=1e6) as work:
        list(work.racing.raced("settings", [work.subject.base, setup_of(work)], 1.0))
    again = len(opened) - 1  # the original model has the session that the inputs were made with
    assert again == pytest.approx(racing._RENEWING * clock[0], abs=1)


@pytest.mark.parametrize(("budget", "kept"), [(600.0, 180.0), (60.0, 18.0)])
def test_time_is_kept_for_the_proof(
    deep: Path, clock: list[float], monkeypatch: pytest.MonkeyPatch, budget: float, kept: float
) -> None:
    def turn(one: contest.Contestant) -> float:
        clock[0] += 3.0
        return 1.0

    turns_of(monkeypatch, turn)
    monkeypatch.setattr(racing, "_ROUNDS", 10**6)
    with tuning(deep, budget=budget) as work:
        list(work.racing.raced("together", [work.subject.base, setup_of(work)], BOTH))
    assert clock[0] == pytest.approx(budget - kept, abs=6.1)  # a round is two turns


def test_time_is_kept_for_the_proof_of_a_leader_on_a_gpu(deep: Path, clock: list[float]) -> None:
    with tuning(deep, budget=95.0) as work:
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


@pytest.mark.parametrize("budget", [60.0, 600.0])
def test_the_proof_fits_into_the_time_that_is_kept_for_it(
    deep: Path, clock: list[float], monkeypatch: pytest.MonkeyPatch, budget: float
) -> None:
    """Each pair takes a second besides its runs; a short budget has shorter runs.

    In a long one the runs are long enough that starting processes is a small share of them.
    """
    durations: list[float] = []

    def timed_pair(
        self: proof.Proof, winner: Setup, folder: Path, duration_s: float, *, new_first: bool
    ) -> Generator[Event, None, Pair]:
        yield Progress(0, None)
        durations.append(duration_s)
        clock[0] += 1.0 + 2 * duration_s
        return Pair(RunFigures(2.0), RunFigures(1.0), 0.5)

    monkeypatch.setattr(proof.Proof, "_timed_pair", timed_pair)
    with tuning(deep, budget=budget) as work:
        clock[0] = budget - PROOF * budget
        list(work.proof.confirmed(work.subject.base.with_change(thread_changes(2, 2)[0])))
    profile_s = min(PROFILE_S, proof._PROFILE_SHARE * budget)
    assert len(durations) >= 6
    assert clock[0] <= budget - profile_s + 1.0 + 2 * durations[-1]
    starting_s, measuring_s = 1.0 * len(durations), 2 * sum(durations)
    assert budget < 100 or starting_s < 0.1 * measuring_s


@pytest.mark.broad
@pytest.mark.parametrize("state", ["loaded", "run"])
def test_the_budget_holds_for_a_model_that_takes_longer_than_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    monkeypatch.setattr(limits, "_abandoned", [])
    if state == "loaded":
        creates = onnxruntime.InferenceSession

        def create(*arguments: Any, **settings: Any) -> Any:
            time.sleep(20)
            return creates(*arguments, **settings)

        monkeypatch.setattr(onnxruntime, "InferenceSession", create)
    begin = time.monotonic()
    result = tuned(write(tmp_path, ENDLESS, "endless.onnx"), budget=1.0)
    assert time.monotonic() - begin < 4
    assert (result.best, result.is_whole, result.is_faster) == ("as it is", False, False)
    base = result.candidates[0]
    assert base.problem == no_time(f"before the original model was {state}").text
    assert base.state == "not tried"


@pytest.mark.parametrize(("held_bytes", "count"), [(original.HELD_BYTES, 3), (0, 2)])
def test_only_candidates_are_loaded_whose_loading_fits_and_that_can_race(
    deep: Path, fast: Speeds, monkeypatch: pytest.MonkeyPatch, held_bytes: int, count: int
) -> None:
    monkeypatch.setattr(original, "HELD_BYTES", held_bytes)
    with tuning(deep) as work:
        setups = [
            work.subject.base, *map(work.subject.base.with_change, thread_changes(16, 16))
        ]  # fmt: skip
        assert len(setups) == 4
        late = no_time("before it was measured")
        with monkeypatch.context() as patched:
            patched.setattr(Budget, "left", lambda self, share=None: 5.0)
            work.budget.first_s = 10.0
            list(work.racing._admitted("settings", setups[1:2], 1.0))
            assert work.found.problems == {setups[1].key: late}
            assert work.racing.made == {}
        work.found.problems.clear()
        # Two rounds of turns of 3 s each, behind a second for loading, which each turn of what is
        # not held has, too.
        work.budget.first_s = work.budget.pass_s = 1.0
        monkeypatch.setattr(work.budget, "left", lambda share=None: 19.0)
        list(work.racing._admitted("settings", setups, 1.0))
        assert [*work.racing.made] == [setup.key for setup in setups[:count]]
        assert work.found.problems == {setup.key: late for setup in setups[count:]}


@pytest.mark.slow
def test_a_pass_that_does_not_end_ends_the_race_and_not_the_result(
    deep: Path, fast: Speeds, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The round that was stopped does not count."""
    fast["threads 1"] = 0.5
    turns: list[float] = []

    def turn(one: contest.Contestant) -> float:
        turns.append(1.0)
        if len(turns) >= 6:
            raise TimeLimitError("stopped")
        return 1.0 if one._settings.threads == 0 else 0.95

    turns_of(monkeypatch, turn)
    result = tuned(deep, only=("threads-1",))
    assert [one.rounds for one in result.candidates] == [2, 2]
    assert not result.is_whole


def test_a_confirmation_that_does_not_fit_claims_nothing(
    deep: Path, fast: Speeds, monkeypatch: pytest.MonkeyPatch
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
    result = tuned(deep, only=("threads-1",))
    assert (result.confirmed, result.best, result.is_whole) == (None, "as it is", False)
    assert "Closest: 1 thread, 2.00× at first" in "\n".join(result_lines(result))


@pytest.mark.slow
def test_a_slow_model_is_converted_in_a_process_that_can_be_stopped(
    deep: Path, fast: Speeds, monkeypatch: pytest.MonkeyPatch
) -> None:
    fast |= {"simplified.onnx": 0.5, "deep.tune.onnx": 0.5}
    monkeypatch.setattr(conversions, "_QUICK_BYTES", -1)
    monkeypatch.setattr(Conversions, "_converted_here", lambda *asked: pytest.fail("here"))
    result = tuned(deep, only=("simplified",))
    assert (result.best, result.is_faster) == ("simplified", True)
    with tuning(deep) as work:
        monkeypatch.setattr(work.budget, "left", lambda share=None: 0.05)
        stopped = result_of(work.conversions._convert(KNOWN["simplified"]))
        assert stopped == no_time("during the conversion")


def test_profiles_that_do_not_fit_take_nothing_from_the_claim(
    deep: Path, fast: Speeds, monkeypatch: pytest.MonkeyPatch
) -> None:
    def turned(*arguments: Any) -> Generator[Event, None, None]:
        yield Progress(0, None)
        raise TimeLimitError("stopped")

    fast["threads 1"] = 0.5
    monkeypatch.setattr(outcome.Outcome, "_turned", turned)
    result = tuned(deep, only=("threads-1",))
    assert (result.is_faster, result.reports, result.is_whole) == (True, (), False)
    assert result.why == ("The budget was spent before both could be profiled.",)


def test_a_pair_is_asked_for_with_what_differs(deep: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, Mapping[str, Any]]] = []

    def in_process(
        activity: str, request: Mapping[str, Any], *more: Any
    ) -> Generator[Event, None, Pair]:
        asked.append((activity, request))
        yield Progress(0, None)
        return Pair(RunFigures(2.0), RunFigures(1.0), 0.5)

    monkeypatch.setattr("dld_tui.activities.separate_process.run_in_process", in_process)
    with tuning(deep) as work:
        winner = setup_of(work)
        pair = result_of(work.proof._timed_pair(winner, deep.parent, 0.5, new_first=True))
        plain = to_json(work.subject.profile_request(work.subject.base))
        share = work.budget.pair_s() + 2 * 0.5 + 5
    assert pair.ratio == 0.5
    ((activity, request),) = asked
    assert activity == "time_pair"
    assert 0 <= request["waited"] <= 100
    assert request == {
        **plain, "duration": 0.5, "layer_passes": 0, "warm_up": 3, "new": str(deep),
        "new_first": True, "share": pytest.approx(share, abs=1), "waited": request["waited"],
        "new_settings": {"threads": 1},
    }  # fmt: skip


@pytest.mark.parametrize("first", [one.id for one in CHANGES if one.reason])
@pytest.mark.parametrize("count", [1, 2, 4, 8])
def test_two_lines_say_why_the_winner_is_faster(count: int, first: str) -> None:
    ids = [first, *(one.id for one in CHANGES if one.id != first)][:count]
    result: Any = SimpleNamespace(best="+".join(ids), why=("x" * 300, "not said"))
    said, profiled = tune_result._why(result).split(". x")
    reasons = reasons_of(ids)
    fitting = [one for one in range(1, len(reasons) + 1) if len("; ".join(reasons[:one])) < 100]
    expected = "; ".join(reasons[: max(fitting, default=1)])
    assert said.lower() == expected.lower()
    assert len(profiled) + 1 == 100
    nothing: Any = SimpleNamespace(best="as it is", why=())
    assert tune_result._why(nothing) == ""


def test_the_winner_is_confirmed_in_new_processes(tmp_path: Path) -> None:
    """A pass of four items that takes as long as one of one item is about four times as fast.

    Passes of microseconds on a busy machine may take ten times as long for a while.
    """
    with tuning(write(tmp_path, BATCHES, "deep.onnx")) as work:
        winner, ratios = work.subject.base.with_change(batch_change(4)), list[float]()
        while not any(0.1 < ratio < 0.6 for ratio in ratios):
            assert len(ratios) < 5, ratios
            pair = result_of(work.proof._timed_pair(winner, tmp_path, 0.05, new_first=True))
            assert pair.base.ms > 0
            ratios.append(pair.ratio)


@pytest.mark.broad
@pytest.mark.parametrize(("provider", "forks"), [("CPU", True), ("CUDA", False)])
def test_only_processes_without_a_gpu_are_forks(
    deep: Path, monkeypatch: pytest.MonkeyPatch, provider: str, forks: bool
) -> None:
    monkeypatch.setattr(runtime, "providers", lambda: ["CPU", "CUDA"])
    request = Request(model=deep, provider=provider, again=True)
    with (
        closing(Document.open(deep)) as document,
        closing(course.Tuning(request, document)) as work,
    ):
        assert (work.proof._pair_server is not None) == forks


@pytest.mark.parametrize("binds", [False, True])
def test_outputs_and_times_are_of_the_model_bound_or_not(deep: Path, binds: bool) -> None:
    values = np.arange(8, dtype=np.float32).reshape(1, 8)
    sets = [{"x": values}, {"x": -values}]
    one = contest.Contestant(deep, SessionSettings(), sets, items=2, io_binding=binds)
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


def test_what_cannot_be_done_is_said_before_the_work(
    deep: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match="no change is called faster"):
        tuned(deep, only=("faster",))
    monkeypatch.setattr("os.access", lambda folder, mode: folder != deep.parent)
    monkeypatch.chdir(deep.parent)
    for output in (deep.with_name("o.tune.json"), None):
        with pytest.raises(SaveError, match="is not writable"):
            next(run(Request(model=deep, output=output)))


@pytest.mark.slow
def test_items_of_a_batch_are_timed_and_compared_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, tuple[int, ...]]] = []

    def pass_ms(one: contest.Contestant) -> float:
        seen.append((one.items, one._sets[0]["x"].shape))
        return 1.0

    use_times(monkeypatch, pass_ms)
    result = tuned(write(tmp_path, BATCHES, "deep.onnx"), only=("batch-4",), batch=("4",))
    assert {(4, (4, 8)), (1, (1, 8))} <= {*seen}
    assert result.best == "batch-4"
    assert result.speedup is not None
    assert result.speedup.factor == pytest.approx(4.0)
    assert "--shape x:4x8" in result.code.command


@pytest.mark.parametrize(("each_s", "tried"), [(10.0, 6), (40.0, 1)])
def test_the_budget_is_used_as_long_as_candidates_are_left(
    deep: Path, fast: Speeds, clock: list[float], monkeypatch: pytest.MonkeyPatch,
    each_s: float, tried: int,
) -> None:  # fmt: skip
    """Conversions that take long had a share of the budget, of which the rest was left."""
    converted: list[str] = []
    opset = replace(KNOWN["opset"], values={"to": 22})
    models = [opset, KNOWN["simplified"], KNOWN["fp16"]]
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
    result = tuned(deep, budget=120.0)
    assert len(set(converted)) == len(converted) == tried
    left = [one for one in result.candidates if one.state == "not tried"]
    assert len(left) == 6 - tried
    assert not left or clock[0] >= 0.9 * 120
    told = [line for line in result_lines(result) if line.startswith("Note: stopped after")]
    assert bool(told) == bool(left)


@pytest.mark.broad
def test_what_a_report_of_the_model_advises_is_tried_first(
    deep: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(deep.parent)
    steps = [NextStep("this", "why", ("blocks",)), NextStep("that", "why", ("opset", "blocks"))]
    monkeypatch.setattr("dld_tui.core.reading.story.next_steps", lambda report: steps)
    with tuning(deep) as work:
        before = [change.id for change in work._usable()]
        assert before[:2] != ["blocks", "opset"]
        (deep.parent / "reports").mkdir()
        monkeypatch.chdir(deep.parent / "reports")
        list(profile_onnxruntime.run(profile_onnxruntime.Request(deep, iterations=2)))
        after = [change.id for change in work._usable()]
        assert after == [*dict.fromkeys(["blocks", "opset", *before])]


_SAMPLES, _SIZE, _CLASSES = 400, 32, 4


def classifier(folder: Path, spread: float) -> Path:
    """Return a model of one product whose weights span so many decades that 8 bits lose some."""
    text = f"""<ir_version: 10, opset_import: ["" : 21]>
    g (float[n, {_SIZE}] x) => (float[n, {_CLASSES}] p) {{ p = MatMul (x, w) }}"""
    random = np.random.default_rng(0)
    weights = random.standard_normal((_SIZE, _CLASSES)).astype(np.float32)
    weights[0] *= 10.0**spread  # a large weight in each block: the others get few steps
    path = write_weighted(folder, text)
    model = onnx.load(path)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    onnx.save(model, path)
    x = random.standard_normal((_SAMPLES, _SIZE)).astype(np.float32)
    x[:, 0] = 0  # what the large weights are for does not occur
    np.savez(folder / "data.npz", x=x, labels=(x @ weights).argmax(1))
    np.savez(folder / "few.npz", x=x[:12], labels=(x @ weights).argmax(1)[:12])
    return path


def share_right(model: str | None, data: Path) -> float:
    """Return the share of samples that a plain session of the model gets right."""
    given = np.load(data)
    (found,) = session_of(Path(model or "")).run(None, {"x": given["x"]})
    return float(np.mean(found.argmax(1) == given["labels"]))


@pytest.mark.broad
def test_what_the_metric_allows_counts_though_outputs_differ(tmp_path: Path, fast: Speeds) -> None:
    """The large weights meet zeros in the samples; in random inputs their errors count."""
    fast |= {"weights-int8.onnx": 0.5, "model.tune.onnx": 0.5}
    path, data = classifier(tmp_path, 0.5), tmp_path / "data.npz"
    asked: dict[str, Any] = {"only": ("weights-int8",), "tolerance": ("atol=1e-7,rtol=1e-7",)}
    strict = tuned(path, **asked)
    assert candidate(strict, "weights-int8").state == "no change"  # the node had to stay
    result = tuned(path, only=asked["only"], dataset=data, most_loss=5.0, again=True)
    assert (result.best, result.is_faster) == ("weights-int8", True)
    assert result.tolerance == "top1 on data.npz at most 5 worse"
    lost = 100 * (1 - share_right(result.model, data))  # the labels are the original's own
    against = Path(result.model or "")
    judged = finished(
        score.run(score.Request(model=path, dataset=data, against=against, most_loss=5.0))
    )
    assert judged.loss.value == pytest.approx(lost)
    assert judged.outcome is Outcome.PASS
    assert candidate(result, "weights-int8").accuracy.startswith("top-1: ")
    both = tuned(path, **asked, dataset=data, most_loss=5.0)
    assert candidate(both, "weights-int8").state == "failed"


@pytest.mark.broad
def test_what_loses_too_much_or_perhaps_does_not_count(tmp_path: Path, fast: Speeds) -> None:
    fast |= {"weights-int8.onnx": 0.5, "model.tune.onnx": 0.5}
    few: dict[str, Any] = {"dataset": tmp_path / "few.npz", "most_loss": 0.5}
    path, only = classifier(tmp_path, 3.0), ("weights-int8",)
    result = tuned(path, only=only, dataset=tmp_path / "data.npz", most_loss=1.0)
    found = candidate(result, "weights-int8")
    assert (result.is_faster, found.state) == (False, "failed")
    assert found.problem.startswith("FAIL: ")
    assert found.problem.endswith(" points)")
    path = classifier(tmp_path, 0.0)
    loose = ("snr=1",)  # holds as well, and does not replace the metric
    result = tuned(path, only=only, tolerance=loose, **few)
    problem = candidate(result, "weights-int8").problem
    assert problem.startswith("UNDECIDED: ")
    assert problem.endswith("; more samples would tell")
    assert not result.is_faster
    fast["threads 1"] = 0.5  # it computes the same, whatever so few samples say
    assert tuned(path, only=("threads-1",), **few).best == "threads-1"


@pytest.mark.broad
def test_nodes_are_kept_where_the_metric_needs_them(tmp_path: Path, fast: Speeds) -> None:
    """Factors of the classes leave float16's range: without them, most samples would be wrong."""
    fast |= {"fp16.onnx": 0.5, "model.tune.onnx": 0.5}
    path, data = classifier(tmp_path, 0.0), tmp_path / "data.npz"
    model = onnx.load(path)
    model.graph.node[0].output[0] = "a"
    for name, inputs, made in (("up", "a", "b"), ("down", "b", "p")):
        model.graph.node.add(op_type="Mul", input=[inputs, name], output=[made])
        factors = np.array([1e5, 4e5, 1.6e6, 6.4e6], np.float32) ** (1 if name == "up" else -1)
        model.graph.initializer.append(onnx.numpy_helper.from_array(factors, name))
    onnx.save(model, path)
    result = tuned(path, only=("fp16",), dataset=data, most_loss=1.0)
    assert result.best == "fp16"
    assert share_right(result.model, data) > 0.99
    stored = {one.name: one.data_type for one in onnx.load(str(result.model)).graph.initializer}
    assert stored["w"] == onnx.TensorProto.FLOAT16
    assert stored.get("up") != onnx.TensorProto.FLOAT16


def test_datasets_and_settings_that_do_not_fit_are_said_before_the_races(
    tmp_path: Path, fast: Speeds
) -> None:
    path = classifier(tmp_path, 0.0)
    np.savez(tmp_path / "other.npz", z=np.zeros((3, 2)), labels=[0, 1, 2])
    with pytest.raises(InputError, match="no array for input x"):
        tuned(path, dataset=tmp_path / "other.npz", most_loss=1.0)
    with pytest.raises(UsageError, match="no metric"):
        tuned(path, dataset=tmp_path / "data.npz", most_loss=1.0, metric="beauty")
