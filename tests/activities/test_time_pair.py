"""Pairs of runs as a gate makes them: real sessions of ONNX Runtime that take turns."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dld_tui.activities import time_pair
from dld_tui.activities.time_pair import Request, pairs_of
from dld_tui.backends.onnxruntime.profiling import ProfilingRun
from dld_tui.backends.onnxruntime.session_options import (
    SessionSettings,
    processor_times_compare,
    spins,
)
from dld_tui.core.compare.gate import NODE_PAIRS, Pair, PairTime
from dld_tui.core.errors import UsageError
from dld_tui.core.events import Event, Progress
from dld_tui.core.machine import environment
from tests.support.activities import finished
from tests.support.models import CHAIN, write

_TRIES = 5
"""A busy machine may lend one version no processor for a whole short run."""
SHORT = {"duration": 0.05, "layer_passes": 2, "warm_up": 1}


def chain(folder: Path, count: int) -> Path:
    """Return a model of so many products of 192 by 192 elements."""
    nodes = "".join(f"v{at + 1} = MatMul(v{at}, v{at})" for at in range(count))
    text = f"""<ir_version: 8, opset_import: ["" : 17]>
        g (float[192, 192] v0) => (float[192, 192] v{count}) {{ {nodes} }}"""
    return write(folder, text, f"chain{count}.onnx")


def measured(request: Request) -> Pair:
    pair = finished(time_pair.run(request))
    assert isinstance(pair, Pair)
    return pair


def stages(events: list[Event]) -> list[str]:
    return [event.stage for event in events if isinstance(event, Progress)]


@pytest.mark.parametrize("new_first", [False, pytest.param(True, marks=pytest.mark.broad)])
def test_twice_the_work_takes_about_twice_as_long(tmp_path: Path, new_first: bool) -> None:
    base, new = chain(tmp_path, 4), chain(tmp_path, 16)
    request = pairs_of(base, new, SHORT, {}, {})(int(new_first))
    assert request.new_first == new_first
    pairs = (measured(request) for _ in range(_TRIES))
    pair = next(pair for pair in pairs if pair.ratio > 2)
    assert pair.new.ms > pair.base.ms
    assert (len(pair.base.nodes), len(pair.new.nodes)) == (4, 16)


@pytest.mark.broad
def test_where_both_do_not_fit_one_is_measured_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_pair, "_MEMORY_SHARE", -1.0)
    pair = measured(pairs_of(chain(tmp_path, 4), chain(tmp_path, 16), SHORT, {}, {})(0))
    assert pair.ratio == pytest.approx(pair.new.ms / pair.base.ms)
    assert pair.ratio > 2


@pytest.mark.broad
def test_each_version_has_its_own_settings_and_stages(tmp_path: Path) -> None:
    """The gate says at which stage a pair was stopped."""
    model = chain(tmp_path, 4)
    request_of = pairs_of(
        model, model, {**SHORT, "threads": 2}, {"optimization_level": "disabled"}, {"threads": 1}
    )
    base, new = request_of(0).sides()
    assert (base.model, base.threads, base.optimization_level) == (model, 2, "disabled")
    assert (new.model, new.threads, new.optimization_level) == (model, 1, "all")
    events = list(time_pair.run(request_of(0)))
    assert finished(events).ratio > 0
    assert "base: Loading the model" in stages(events)
    assert any(re.fullmatch(r"new, loaded in .*s: Warming up", one) for one in stages(events))


def test_only_the_first_pairs_measure_layers_and_turns_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = chain(tmp_path, 1)
    request_of = pairs_of(model, model, SHORT, {}, {})
    assert request_of(NODE_PAIRS - 1).layer_passes == 2

    def told(interval_s: float) -> list[Progress]:
        monkeypatch.setattr(time_pair, "_PROGRESS_S", interval_s)
        events = list(time_pair.run(request_of(NODE_PAIRS)))
        assert finished(events).base.nodes == {}
        return [one for one in events if isinstance(one, Progress) and one.unit == "turns"]

    assert told(60.0) == []
    turns = told(0.0)
    assert {one.stage for one in turns} == {"Measuring in turns"}
    assert [one.done for one in turns] == list(range(1, len(turns) + 1))
    assert turns


@pytest.mark.parametrize(
    ("settings", "target", "words"),
    [
        ({"threads": -1}, None, "--threads is -1"),
        ({"threads": "x"}, None, "--threads is 'x', which is not a whole number"),
        ({"nonsense": 1}, None, "nonsense is not a setting of a gate"),
        ({"output": Path("r.dldprof")}, None, "output is not a setting"),
        ({"inputs": Path("there")}, "board", "both versions have the same --inputs"),
    ],
)
def test_settings_of_one_version_are_checked_before_anything_runs(
    settings: dict[str, Any], target: str | None, words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        pairs_of(Path("a.onnx"), Path("b.onnx"), {}, {}, settings, target)


@pytest.mark.parametrize(
    ("settings", "target"), [({"inputs": Path("there")}, None), ({"threads": 2}, "board")]
)
def test_each_version_may_have_settings_of_its_own(
    settings: dict[str, Any], target: str | None
) -> None:
    base, new = pairs_of(Path("a.onnx"), Path("b.onnx"), {}, {}, settings, target)(0).sides()
    assert (base.model, base.inputs, base.threads) == (Path("a.onnx"), None, 0)
    assert replace(new, **settings) == new == replace(base, model=Path("b.onnx"), **settings)


def test_weights_beyond_the_memory_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "environment", lambda packages: {"memory_bytes": 10})
    model = write(tmp_path, CHAIN)
    with pytest.raises(UsageError, match="take 24 B, and this machine has 10 B"):
        measured(pairs_of(model, model, SHORT, {}, {})(0))


@pytest.mark.parametrize("is_new", [False, True])
def test_an_error_names_the_version(tmp_path: Path, is_new: bool) -> None:
    base, new = (chain(tmp_path, length) for length in (2, 3))
    wrong = {"shape": ["nothing:1x2"]}
    settings = ({}, wrong) if is_new else (wrong, {})
    with pytest.raises(UsageError) as caught:
        measured(pairs_of(base, new, SHORT, *settings)(0))
    assert caught.value.where == str(new if is_new else base)


SPINNING = "session.intra_op.allow_spinning"


@pytest.mark.parametrize(
    ("one", "other", "compare"),
    [
        ({}, {}, True),
        ({"threads": 1}, {"threads": 1}, True),
        ({"threads": 1}, {}, False),
        ({"threads": 10_000}, {"threads": 10_000}, False),
        ({"inter_threads": 2}, {"inter_threads": 2}, False),
        ({}, {"providers": ("CUDA", "CPU")}, False),
        ({}, {"config": {SPINNING: "0"}}, False),
        ({"config": {SPINNING: "1"}}, {}, True),
        ({"threads": 1}, {"threads": 1, "config": {SPINNING: "0"}}, True),
        ({}, {"config": {"session.intra_op_thread_affinities": "1"}}, False),
        ({}, {"config": {"session.set_denormal_as_zero": "1"}}, True),
    ],
)
def test_processor_times_compare_where_the_calling_thread_never_sleeps(
    one: dict[str, Any], other: dict[str, Any], compare: bool
) -> None:
    sides = SessionSettings(**one), SessionSettings(**other)
    assert processor_times_compare(*sides) == compare
    assert processor_times_compare(*sides[::-1]) == compare


@pytest.mark.parametrize(
    ("settings", "answer"),
    [
        ([{"threads": 1}, {"threads": 1}], False),
        ([{"threads": 1}, {"threads": 2}], True),
        ([{"threads": 2, "config": {SPINNING: "0"}}] * 2, False),
        ([{"threads": 2, "config": {SPINNING: "0"}}, {"threads": 2}], True),
        ([{"threads": 2, "config": {"session.force_spinning_stop": "1"}}] * 2, False),
    ],
)
def test_threads_of_a_session_spin_where_there_are_some_that_may(
    settings: list[dict[str, Any]], answer: bool
) -> None:
    assert spins(*(SessionSettings(**each) for each in settings)) == answer


@pytest.mark.broad
def test_a_pair_keeps_to_its_share_of_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One pass of each is timed however short the share; layers only where there is time."""
    model = chain(tmp_path, 4)
    long = {"duration": 30.0, "layer_passes": 2, "warm_up": 1_000_000}
    counts, drop = list[int](), ProfilingRun.drop

    def dropped(run: ProfilingRun) -> None:
        counts.append(len(run.latencies))
        drop(run)

    monkeypatch.setattr(ProfilingRun, "drop", dropped)
    request_of = pairs_of(model, model, long, {}, {})
    begin = time.monotonic()
    pair = measured(request_of(0, PairTime(share_s=0.0)))
    assert 1 <= max(counts) < 500  # a turn of 5 ms, not 30 s
    assert pair.base.nodes == {}
    assert pair.base.ms > 0
    assert pair.ratio > 0
    counts.clear()
    measured(request_of(1, PairTime(share_s=1.0)))
    assert min(counts) >= 1
    assert time.monotonic() - begin < 25
    assert measured(pairs_of(model, model, SHORT, {}, {})(0, PairTime(share_s=20.0))).base.nodes
