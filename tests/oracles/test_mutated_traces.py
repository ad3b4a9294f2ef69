"""Chrome traces with damaged events: no crash, one line, and no sum but that of what is sound."""

from __future__ import annotations

import copy
import json
import math
import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from dld_tui.core.errors import InputError
from dld_tui.core.reading.export import report_json
from dld_tui.core.report.gpu_kernels import gpu_summary
from dld_tui.core.report.report import open_report
from tests.oracles.plain import check_numbers, least_quarter
from tests.support.profiles import told
from tests.support.tiers import first
from tests.support.traces import x

Events = list[dict[str, Any]]
STEPS = 5
WRONG: tuple[Any, ...] = (
    None,
    -7,
    "nan",
    "inf",
    "text",
    True,
    [],
    {},
    1e300,
    float("nan"),
    float("-inf"),
)


def trace(rng: random.Random) -> Events:
    """Return steps of one thread with calls in calls, and kernels of one stream."""
    events: Events = []
    for step in range(STEPS):
        at = 1000.0 * step
        outer, inner = rng.randint(100, 300), rng.randint(10, 80)
        events += [
            x("outer", at + 10, outer, cat="op"),
            x("inner", at + 20, inner, cat="op"),
            x("last", at + 500, rng.randint(10, 300), cat="op"),
            x("gemm", at + 40, rng.randint(50, 200), cat="kernel", tid=7),
            x("relu", at + 400, rng.randint(50, 200), cat="kernel", tid=7),
            x(f"ProfilerStep#{step}", at, 900, cat="user_annotation"),
        ]
    return events


def sound(event: dict[str, Any]) -> bool:
    """Tell whether the times of an event can be those of one."""
    times: list[Any] = [event.get("ts"), event.get("dur")]
    numbers = all(type(time) in (int, float) and abs(time) <= 1e18 for time in times)
    return numbers and event["dur"] >= 0 and isinstance(event.get("name"), str)


def own_ms(events: Events) -> dict[str, dict[int, float]]:
    """Return what each name takes by itself in each step: only `inner` may lie in another."""
    found: dict[str, dict[int, float]] = defaultdict(dict)
    steps = {int(event["name"][13:]): event["ts"] for event in events
             if sound(event) and event["name"].startswith("Prof")}  # fmt: skip
    for number, begin in steps.items():
        inside = {event["name"]: event["dur"] / 1000 for event in events
                  if sound(event) and event["cat"] == "op"
                  and begin <= event["ts"] < begin + 900}  # fmt: skip
        if "outer" in inside:
            inside["outer"] -= inside.get("inner", 0.0)
        for name, time in inside.items():
            found[name][number] = time
    return found


def shown(path: Path, events: Events) -> tuple[dict[str, Any], list[str], list[float]]:
    path.write_text(json.dumps(events))
    with open_report(path) as report:
        document: Any = report_json(report, "type")
        found = gpu_summary(report)
        kernels = [sum(event.duration_us for event in report.gpu_events(one.index))
                   for one in report.passes]  # fmt: skip
        assert found is None or (math.isfinite(found.busy_us) and found.busy_us >= 0)
        return document, told(report), kernels


@pytest.mark.parametrize("seed", first(11, range(40)))
def test_a_damaged_event_is_in_no_sum(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    events = trace(rng)
    damaged = copy.deepcopy(events)
    # The call in the call and whole steps decide what others are worth; they have own tests.
    places = [at for at, event in enumerate(events) if event["name"] in ("last", "inner", "gemm")]
    place = rng.choice(places)
    key = rng.choice(("ts", "dur", "dur"))
    if seed % len(WRONG):
        damaged[place][key] = WRONG[seed % len(WRONG)]
    else:
        del damaged[place][key]
    document, lines, kernels = shown(tmp_path / "t.json", damaged)
    check_numbers(document)
    outside = sound(damaged[place])  # a time before all steps can be one
    said = "1 event outside all passes" if outside else "1 event could not be read"
    assert sum(said in line for line in lines) == 1
    expected = own_ms(damaged)
    times = {layer["name"]: layer["time_ms"] for layer in document["layers"]}
    steps = len({step for by_step in expected.values() for step in by_step})
    taken = {name: least_quarter([*by_step.values()]) * len(by_step) / steps
             for name, by_step in expected.items()}  # fmt: skip
    assert times == pytest.approx(taken)
    assert document["layers_total_ms"] == pytest.approx(sum(taken.values()))
    told = [sum(event["dur"] for event in damaged if event["cat"] == "kernel" and sound(event)
                and 1000 * step <= event["ts"] < 1000 * step + 1000)
            for step in range(STEPS)]  # fmt: skip
    assert kernels == pytest.approx(told)


@pytest.mark.parametrize("name", ["outer", "inner", "last", "gemm", "relu", "ProfilerStep#2"])
def test_an_event_that_is_there_twice_changes_no_time(name: str, tmp_path: Path) -> None:
    events = trace(random.Random(name))
    [place] = [at for at, event in enumerate(events)
               if event["name"] == name and 2000 <= event["ts"] < 3000]  # fmt: skip
    doubled = [*events, dict(events[place])]
    before, _, kernels = shown(tmp_path / "a.json", events)
    after, lines, kernels_after = shown(tmp_path / "b.json", doubled)
    assert kernels_after == pytest.approx(kernels)
    for key in ("layers_total_ms", "covered_percent", "latency_ms"):
        assert after[key] == pytest.approx(before[key])
    assert [layer["time_ms"] for layer in after["layers"]] == pytest.approx(
        [layer["time_ms"] for layer in before["layers"]]
    )
    said = {"gemm": "counted once", "relu": "counted once", "ProfilerStep#2": "overlap others"}
    if name in said:
        assert sum(said[name] in line for line in lines) == 1


def test_kernels_alone_that_are_there_twice(tmp_path: Path) -> None:
    events = [event for event in trace(random.Random(1)) if event["cat"] == "kernel"]
    before, _, _ = shown(tmp_path / "a.json", events)
    after, lines, _ = shown(tmp_path / "b.json", [*events, *map(dict, events[:3])])
    assert [(one["time_ms"], one["count"]) for one in after["layers"]] == [
        (one["time_ms"], one["count"]) for one in before["layers"]
    ]
    assert sum("3 events of a GPU are in the trace twice" in line for line in lines) == 1


@pytest.mark.parametrize("seed", first(8, range(30)))
def test_a_trace_that_was_cut(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    events = trace(rng)
    text = json.dumps(events)
    path = tmp_path / "t.json"
    cut = rng.randrange(1, len(text))
    path.write_text(text[:cut])
    whole = text[:cut].count("}, {") + text[:cut].endswith("}")
    known = own_ms([*events[:whole], *(one for one in events if one["name"].startswith("Prof"))])
    try:
        with open_report(path) as report:
            lines = told(report)
            document: Any = report_json(report)
    except InputError:
        assert whole == 0 or not known
        return
    check_numbers(document)
    assert sum("the trace ends early" in line for line in lines) == 1
    if any(event["name"].startswith("Prof") for event in events[:whole]):
        return  # events after the last whole step are outside; the next test is of these
    total = sum(sum(by_step.values()) for by_step in known.values())
    assert document["layers_total_ms"] == pytest.approx(total)


def test_an_event_longer_than_its_step_makes_the_step_doubtful(tmp_path: Path) -> None:
    events = trace(random.Random(3))
    expected = own_ms(events)
    [place] = [at for at, event in enumerate(events)
               if event["name"] == "last" and event["ts"] == 2500]  # fmt: skip
    events[place]["dur"] = 50_000
    document, lines, _ = shown(tmp_path / "t.json", events)
    taken = [least_quarter([time for step, time in by_step.items() if step != 2])
             for by_step in expected.values()]  # fmt: skip
    assert document["layers_total_ms"] == pytest.approx(sum(taken))
    assert sum("1 profiled pass without valid times" in line for line in lines) == 1
