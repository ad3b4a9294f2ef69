"""Where a gain comes from, and what became of each set-up."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dld_tui.core.compare.gate import GateRow, Verdict
from dld_tui.core.report.latency import PROCESSOR_MS
from dld_tui.core.report.records import GpuEvent, PassState
from dld_tui.core.report.report import open_report
from dld_tui.core.tune.changes import CHANGES, Setup
from dld_tui.core.tune.gain import Gain, GainRow, Parts, gain_line, gain_of
from dld_tui.core.tune.race import Race
from dld_tui.core.tune.result import (
    NOTHING,
    CandidateState,
    Closeness,
    Exclusion,
    Speedup,
    candidates,
    no_time,
)
from tests.support.recorded import Recorded
from tests.support.report_files import layer, writer
from tests.support.tiers import first

_BY_ID = {change.id: change for change in CHANGES}


PARTS = {0: 6.0, 1: 1.0, 2: 3.0}


def report(
    path: Path,
    layers: Mapping[int, float],
    *,
    before_ms: Mapping[int, float] | None = None,
    after_ms: float = 0.0,
    recording_ms: float = 0.0,
    passes: Sequence[float] = (1.0,) * 20,
    hits: Mapping[int, tuple[int, float]] | None = None,
    nodes: bool = True,
    processor_ms: float | None = None,
    batch: int = 1,
    gpu: bool = False,
) -> Path:
    """Write a report whose layers take milliseconds by their number.

    Args:
        path: Where.
        layers: Milliseconds while they run.
        before_ms: What passes before they start.
        after_ms: What passes after the last one.
        recording_ms: What recording adds to each run, before it.
        passes: How slow the machine is in each.
        hits: Of passes, the place in the pass that another program delays, and by how much.
        nodes: Whether layers are joined to nodes.
        processor_ms: Processor time of a pass without recording.
        batch: Of its input.
        gpu: Add passes of kernels alone, each half as long as its layer.
    """
    made = writer(path, input_shapes={"x": [batch, 3]})
    waits = before_ms or {}
    plain = sum(layers.values()) + sum(waits.values()) + after_ms
    if processor_ms is not None:
        made.set_property(PROCESSOR_MS, processor_ms)
    made.add_latencies([plain * factor for factor in passes])
    for index in layers:
        made.add_layer(layer(index) if nodes else layer(index, nodes=(), confidence="none"))
    for number, factor in enumerate(passes):
        start = at = number * 1e6
        rows: list[tuple[int, float, float, float, int | str]] = []
        for row, (index, ms) in enumerate(layers.items()):
            at += 1000 * (factor * waits.get(index, 0.0) + recording_ms)
            hit, more = (hits or {}).get(number, (-1, 0.0))
            took = 1000 * (factor * ms + (more if hit == row else 0.0))
            rows.append((row, at, took, took, 1))
            at += took
        made.add_pass(number, start, at + 1000 * factor * after_ms - start)
        made.add_samples(number, rows)
    for number in range(len(passes), len(passes) + 4 * gpu):
        made.add_pass(number, number * 1e6, 1000 * plain, PassState.KERNELS_ALONE)
        made.add_gpu_events(number, [
            GpuEvent("s", "kernel", "k", 1000.0 * index, 500.0 * ms, row)
            for row, (index, ms) in enumerate(layers.items())
        ])  # fmt: skip
    made.finish()
    return path


def gain(before: Path, after: Path) -> Gain:
    with open_report(before) as first, open_report(after) as second:
        found = gain_of(first, second)
    assert found is not None
    return found


def test_a_gain_that_is_at_no_node_is_called_so(tmp_path: Path) -> None:
    before = report(tmp_path / "a.dldprof", PARTS)
    found = gain(before, report(tmp_path / "b.dldprof", {0: 6.2, 1: 1.0, 2: 3.0}))
    assert gain_line(found, -8.0).startswith("No node gained: fewer delays between nodes")


def test_what_is_saved_after_the_last_node_is_saved_at_the_outputs(tmp_path: Path) -> None:
    """As with IO binding: the nodes take as long, and what they make stays where it is."""
    before = report(tmp_path / "a.dldprof", PARTS, after_ms=2.0)
    found = gain(before, report(tmp_path / "b.dldprof", PARTS, after_ms=0.5))
    assert found.handing_ms == pytest.approx(-1.5)
    assert found.named_ms == pytest.approx(0.0)
    assert found.whole_ms == pytest.approx(-1.5)
    assert found.percent_of(-12.5) == pytest.approx(100.0)
    text = "100 % of it is at copies of inputs and outputs (-1.500 ms)."
    assert gain_line(found, -12.5) == text


def rows_of(*deltas: tuple[float, float]) -> tuple[GainRow, ...]:
    return tuple(
        GainRow(f"/block.{at}/a rather long name of a node", 5.0, 5.0 + running + waiting, running,
                waiting)
        for at, (running, waiting) in enumerate(deltas)
    )  # fmt: skip


GAINS = {
    "none": Gain(10.0, 9.0, (), 0.0),
    "no time": Gain(0.0, 0.0, rows_of((-1.0, 0.0)), 0.0),
    "one node": Gain(10.0, 9.0, rows_of((-1.0, 0.0)), 0.0),
    "many nodes": Gain(10.0, 8.0, rows_of((-1.0, 0), (-0.5, 0), (-0.3, 0), (-0.2, 0)), 0.0),
    "some gained": Gain(10.0, 9.0, rows_of((-1.0, 0.0), (0.0, 0.0), (0.5, -0.5)), 0.0),
    "a tenth": Gain(10.0, 5.0, rows_of((-0.5, 0.0)), 0.0),
    "waiting": Gain(10.0, 9.0, rows_of((0.0, -1.0), (-0.25, 0.25)), 0.0),
    "as much": Gain(10.0, 9.0, rows_of((-0.5, -0.5)), 0.0),
    "slower": Gain(10.0, 11.0, rows_of((1.0, 0.0), (2.0, -2.0)), 0.0),
    "copies": Gain(10.0, 9.0, rows_of((0.0, 0.0)), -1.0),
    "both": Gain(10.0, 9.0, rows_of((-0.5, 0.0)), -0.5),
    "few copies": Gain(10.0, 9.0, rows_of((-0.96, 0.0)), -0.04),
    "just told": Gain(10.0, 9.0, rows_of((-0.95, 0.0)), -0.05),
    "a short pass": Gain(0.5, 0.4, rows_of((-0.1, 0.0)), 0.0),
    "a pass of 1 ms": Gain(1.0, 0.875, rows_of((-0.125, 0.0)), 0.0),
    "tiny": Gain(0.002, 0.0018, rows_of((-0.0002, 0.0)), 0.0),
}  # fmt: skip


def test_whole_lines(recorded: Recorded) -> None:
    recorded("whole_gain_lines", {
        name: "\n".join(f"{change}: {gain_line(gain, change)}"
                        for change in (-10.0, -15.0, -20.0, -50.0, -5.0, 10.0, 0.0))
        for name, gain in GAINS.items()
    })  # fmt: skip


def told(first: Path, second: Path, change: float = -30.0) -> str:
    found = gain(first, second)
    lines = [f"{found.before_ms:.4f} {found.after_ms:.4f} {found.handing_ms:.4f}"]
    for row in found.rows:
        lines.append(f"{row.nodes} {row.before_ms:.4f} {row.after_ms:.4f}"
                     f" {row.running_ms:.4f} {row.waiting_ms:.4f}")  # fmt: skip
    return "\n".join([*lines, gain_line(found, change)])


FASTER = {0: 3.0, 1: 1.0, 2: 2.5, 3: 0.5}


def test_whole_gains(tmp_path: Path, recorded: Recorded) -> None:
    """Recording adds to each of two profiles, little or most of it, with as many layers or more."""
    cases: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "no recording": ({}, {}),
        "little recording": ({"recording_ms": 0.1}, {"recording_ms": 0.3}),
        "mostly recording": ({"recording_ms": 0.1}, {"recording_ms": 4.0}),
        "by processor times": ({"recording_ms": 0.1, "processor_ms": 10.0},
                               {"recording_ms": 0.2, "processor_ms": 7.0}),
        "no processor time": ({"recording_ms": 0.1, "processor_ms": 0.0},
                              {"recording_ms": 0.1, "processor_ms": -1.0}),
        "too much processor time": ({"recording_ms": 0.1, "processor_ms": 20.0}, {}),
        "waiting": ({"before_ms": {0: 1.0, 2: 0.5}, "after_ms": 2.0}, {"before_ms": {0: 0.5}}),
        "without nodes": ({"nodes": False}, {"nodes": False}),
    }  # fmt: skip
    texts = {}
    for at, (name, (before, after)) in enumerate(cases.items()):
        first = report(tmp_path / f"{at}a.dldprof", PARTS, **before)
        second = report(tmp_path / f"{at}b.dldprof", FASTER, **after)
        texts[name] = told(first, second)
    of_two = report(tmp_path / "items.dldprof", {0: 12.0, 1: 2.0, 2: 6.0}, batch=2)
    texts["of batches"] = told(of_two, report(tmp_path / "one.dldprof", FASTER))
    first, second = (report(tmp_path / f"gpu{at}.dldprof", parts, gpu=True)
               for at, parts in enumerate((PARTS, FASTER)))  # fmt: skip
    texts["on a GPU"] = told(first, second)
    recorded("whole_gains", texts)


@pytest.mark.parametrize(("each_ms", "running", "waiting"), [
    (0.0, [4, 2], [0, 1]), (0.5, [3.5, 1.5], [0, 0]), (1.2, [2.2, 0], [0, 0]),
    (2.0, [0, 0], [0, 0]),
])  # fmt: skip
def test_what_recording_adds_is_taken_from_waiting_then_from_its_layer_then_from_all(
    each_ms: float, running: list[float], waiting: list[float]
) -> None:
    parts = Parts(np.array([4.0, 2.0]), np.array([0.0, 1.0]), 7.0, np.array([1.0, 3.0]))
    less = parts.less(each_ms)
    assert less.running.tolist() == pytest.approx(running)
    assert less.waiting.tolist() == waiting
    assert less.total == pytest.approx(max(parts.total - 4 * each_ms, 7.0))


def test_layers_without_nodes_explain_nothing(tmp_path: Path) -> None:
    before = report(tmp_path / "a.dldprof", PARTS, nodes=False)
    after = report(tmp_path / "b.dldprof", {0: 3.0, 1: 1.0, 2: 3.0}, nodes=False)
    assert gain(before, after).percent_of(-30.0) == 0.0


@pytest.mark.broad
@pytest.mark.parametrize("seeds", first(1, [range(6), range(6, 20)]), ids=str)
def test_a_planted_difference_is_found_at_its_node_on_a_noisy_machine(
    tmp_path: Path, seeds: range
) -> None:
    """Passes of both are hit alike by what is slow, and one in four by another program.

    In each pair of profiles, 5 % of the time goes at one of 40 nodes.
    """
    found = []
    for seed in seeds:
        draw = random.Random(seed)
        layers = {number: draw.uniform(0.05, 0.4) for number in range(40)}
        planted = draw.randrange(40)
        less = 0.05 * sum(layers.values())
        layers[planted] += less
        slow = [draw.lognormvariate(0.0, 0.3) for _ in range(30)]
        paths = []
        for name in "ab":
            made = {**layers, planted: layers[planted] - (less if name == "b" else 0.0)}
            hits = {n: (draw.randrange(40), draw.expovariate(0.2)) for n in range(30)
                    if draw.random() < 0.25}  # fmt: skip
            noisy = [one * draw.uniform(0.98, 1.02) for one in slow]
            path = report(tmp_path / f"{name}{seed}.dldprof", made, passes=noisy, hits=hits,
                          recording_ms=0.003)  # fmt: skip
            paths.append(path)
        result = gain(paths[0], paths[1])
        key = layer(planted).name
        row = next(row for row in result.rows if row.nodes == key)
        at_node = row.delta_ms / result.before_ms / (-less / sum(layers.values()))
        is_first = result.rows[0].nodes == key
        share = result.percent_of(-100 * less / sum(layers.values()))
        found.append((is_first, 0.8 <= at_node <= 1.2, share is not None and share >= 80))
    named, near, explained = (sum(column) for column in zip(*found, strict=True))
    assert (named, near) == (len(seeds), len(seeds))
    assert explained >= 0.8 * len(seeds)


def test_ratios_of_later_races_are_those_of_the_model_as_it_is() -> None:
    base = Setup(Path("m.onnx"))
    fp16 = base.with_change(_BY_ID["fp16"])
    both = fp16.with_change(_BY_ID["blocks"])
    lost = base.with_change(_BY_ID["int8-dynamic"])
    first = Race([base.key, fp16.key])
    first.add_round({base.key: 4.0, fp16.key: 2.0})
    second = Race([fp16.key, both.key])
    second.add_round({fp16.key: 3.0, both.key: 1.5})  # the machine is slower now
    setups = {one.key: one for one in (base, fp16, both, lost)}
    wrong = Exclusion(CandidateState.FAILED, "wrong")
    found = candidates(
        setups, [first, second], {lost.key: wrong}, {fp16.key: Closeness("SNR 60 dB")}, both.key
    )
    assert [(one.ratio, one.ms, one.first_ratio, one.state) for one in found] == [
        (1.0, 4.0, 1.0, "compared"), (None, None, 0.5, "unconfirmed"),
        (None, None, 0.25, "best"), (None, None, None, "failed"),
    ]  # fmt: skip
    assert [one.rounds for one in found] == [1, 2, 1, 0]
    row = GateRow("end to end", 5.0, 4.5, -10.0, -30.0, 20.0, Verdict.NO_DIFFERENCE)
    confirmed = candidates(setups, [first, second], {}, {}, base.key, {both.key: row})
    assert [(one.ms, one.interval, one.state) for one in confirmed[:3]] == [
        (5.0, None, "best"), (None, None, "unconfirmed"),
        (pytest.approx(4.5), pytest.approx((1 / 1.2, 1 / 0.7)), "unconfirmed"),
    ]  # fmt: skip
    same = candidates(setups, [], {lost.key: NOTHING}, {}, base.key)
    assert same[3].state == "no change"
    late = candidates(setups, [], {lost.key: no_time("before it was measured")}, {}, base.key)
    assert late[3].state == "not tried"
    assert (found[1].accuracy, found[3].problem) == ("SNR 60 dB", "wrong")


def test_no_set_up_that_was_slower_than_the_leader_has_a_higher_speed() -> None:
    base = Setup(Path("m.onnx"))
    leader, slower = (base.with_change(_BY_ID[name]) for name in ("fp16", "blocks"))
    race = Race([base.key, leader.key, slower.key])
    for _ in range(4):  # something delays the model as it is
        race.add_round({base.key: 4.0, leader.key: 3.0, slower.key: 3.3})
    assert slower.key not in race.running
    for _ in range(10):
        race.add_round({base.key: 3.06, leader.key: 3.0})
    found = candidates({one.key: one for one in (base, leader, slower)}, [race], {}, {}, leader.key)
    assert [one.first_ratio for one in found] == pytest.approx([1.0, 3.0 / 3.06, 3.3 / 3.06])
    assert [one.state for one in found] == ["compared", "best", "slower"]


def test_a_wide_interval_claims_its_least_and_no_median() -> None:
    """On a busy machine a confirmation left 1.21 to 262.73, with a median of 12.64."""
    wide, narrow = Speedup(12.64, 1.21, 262.73), Speedup(1.25, 1.2, 1.31)
    assert wide.text == "at least 1.21× (1.21 to 262.73)"
    assert (wide.title, wide.claim) == ("at least 1.21×", "at least 1.21×")
    assert (narrow.text, narrow.title) == ("1.25× (1.20 to 1.31)", "1.25× (at least 1.20×)")
