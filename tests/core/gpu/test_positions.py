from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dld_tui.core.report.gpu_kernels import (
    Activity,
    ActivityLog,
    JoinedWork,
    Launches,
    LayerSpan,
    PassSpan,
    TimedPass,
    attribute,
    in_launch_order,
    join_passes,
    work_of_passes,
)
from dld_tui.core.report.records import GpuEvent

PASS_NS = 1_000_000
ORIGIN = 1_700_000_000_000_000_000


def kernel(name: str, layer: int | None) -> GpuEvent:
    return GpuEvent("stream 7", "kernel", name, 0.0, 1.0, layer)


def recorded(*names: str, number: int = 0, **more: Any) -> list[Activity]:
    """Return kernels of a pass, one after another, each launched by a call of its own."""
    begin = ORIGIN + number * PASS_NS
    return [
        Activity("kernel", name, begin + 1000 * at, begin + 1000 * at + 500, at, "s", **more)
        for at, name in enumerate(names, 1)
    ]


def joined(
    work: list[Activity], launches: Launches | None, count: int = 1, **more: Any
) -> JoinedWork:
    passes = [
        TimedPass(n, ORIGIN + n * PASS_NS, ORIGIN + n * PASS_NS + PASS_NS - 5000)
        for n in range(count)
    ]
    return join_passes(ActivityLog(work, **more), passes, launches)


def layers_of(found: JoinedWork, index: int = 0) -> list[int | None]:
    return [event.layer for event in found.events[index]]


def test_the_kth_kernel_is_of_the_layer_that_launched_the_kth() -> None:
    launches = Launches([[kernel("a", 4), kernel("a", 5), kernel("b", 5)]])
    found = joined(recorded("a", "a", "b"), launches)

    assert layers_of(found) == [4, 5, 5]
    assert (found.passes, found.joined, found.attributed, found.problem) == (1, 1, 3, "")
    assert [event.start_us for event in found.events[0]] == [1.0, 2.0, 3.0]


def test_models_whose_passes_differ_have_a_sequence_for_each_way() -> None:
    ways = [[kernel("a", 0), kernel("b", 1)], [kernel("a", 0), kernel("c", 2)]]
    found = joined([*recorded("a", "c"), *recorded("a", "b", number=1)], Launches(ways), 2)

    assert [layers_of(found, n) for n in range(2)] == [[0, 2], [0, 1]]


def test_of_lost_records_only_the_usual_sequence_counts() -> None:
    whole = [kernel("a", 0), kernel("a", 1), kernel("a", 2)]
    holed = [whole[0], whole[2]]  # the record of the second kernel was lost
    assert layers_of(joined(recorded("a", "a"), Launches([whole, whole, holed]))) == [0, 2]
    lost = Launches([whole, whole, holed], lost=True)
    assert layers_of(joined(recorded("a", "a"), lost)) == [None, None]
    assert layers_of(joined(recorded("a", "a", "a"), lost)) == [0, 1, 2]


def test_passes_that_contradict_each_other_name_no_layer() -> None:
    launches = Launches([[kernel("a", 0), kernel("b", 1)], [kernel("a", 0), kernel("b", 2)]])
    assert layers_of(joined(recorded("a", "b"), launches)) == [0, None]


def test_a_launch_between_two_layers_in_one_pass_of_many_is_still_the_layers() -> None:
    whole, edge = [kernel("a", 3)], [kernel("a", None)]
    assert layers_of(joined(recorded("a"), Launches([whole, edge, whole]))) == [3]
    assert layers_of(joined(recorded("a"), Launches([whole, edge, edge]))) == [None]


def test_nodes_of_a_graph_are_in_the_order_of_their_numbers() -> None:
    launches = Launches([[kernel("a", 0), kernel("b", 1), kernel("c", 2)]])
    # One launch; the second branch starts before the first one ends.
    nodes = [("b", 2, 1500, 4000), ("c", 3, 1600, 1700), ("a", 1, 1000, 1400)]
    work = [
        Activity("kernel", name, ORIGIN + start, ORIGIN + end, 7, f"s{node}", graph_node=node)
        for name, node, start, end in nodes
    ]
    assert [event.name for event in joined(work, launches).events[0]] == ["a", "b", "c"]
    assert layers_of(joined(work, launches)) == [0, 1, 2]


def test_nodes_without_numbers_that_overlap_are_in_no_known_order() -> None:
    launches = Launches([[kernel("a", 0), kernel("a", 1)]])
    apart = [(1000, 1400), (1500, 1600)]
    beside = [(1000, 1400), (1300, 1600)]
    for times, layers in ((apart, [0, 1]), (beside, [None, None])):
        work = [Activity("kernel", "a", ORIGIN + a, ORIGIN + b, 7, "s") for a, b in times]
        found = joined(work, launches)
        assert layers_of(found) == layers
        assert ("side by side" in found.problem) is (None in layers)


def test_without_a_profiled_run_the_work_is_there_without_layers() -> None:
    found = join_passes(
        ActivityLog(recorded("a", "b")), [TimedPass(5, ORIGIN, ORIGIN + PASS_NS)], None, "no room"
    )
    assert layers_of(found, 5) == [None, None]
    assert (found.kernels, found.attributed, found.problem) == (2, 0, "no room")


def test_work_between_passes_is_of_none() -> None:
    work = [*recorded("a"), *recorded("late", number=1)]
    by_pass, outside = work_of_passes(ActivityLog(work), [TimedPass(0, ORIGIN, ORIGIN + 9000)])
    assert [one.name for one in by_pass[0]] == ["a"]
    assert [one.name for one in outside] == ["late"]


def test_clocks_that_differ_by_microseconds_do_not_matter() -> None:
    # The host notes the end of the pass 2 us before the kernel ends by the GPU's clock.
    work = [Activity("kernel", "a", ORIGIN + 1000, ORIGIN + 11_000, 1, "s")]
    by_pass, _ = work_of_passes(ActivityLog(work), [TimedPass(0, ORIGIN, ORIGIN + 9000)])
    assert by_pass[0] == work


# Any model: layers with their kernels, recorded twice at other speeds, in any order of records.


@dataclass(frozen=True)
class Launch:
    """What a layer asks for; `mark` tells it from others of the same name."""

    layer: int
    kind: str
    name: str
    stream: int
    took: int
    mark: int


_MODELS = st.lists(
    st.lists(
        st.tuples(
            st.sampled_from(["kernel", "kernel", "kernel", "memcpy"]),
            st.sampled_from("abc"),
            st.integers(0, 2),
            st.integers(1, 4000),
        ),
        max_size=4,
    ),
    min_size=1,
    max_size=6,
).map(
    lambda model: [
        Launch(layer, *work, mark=1000 * layer + at)
        for layer, works in enumerate(model)
        for at, work in enumerate(works)
    ]
)


def log_of(passes: list[list[Launch]], gap: int, marks: dict[Activity, Launch]) -> ActivityLog:
    """Return passes as a tracer records them: streams overlap, each has one thing at a time."""
    log, correlation = ActivityLog(), 0
    for number, launches in enumerate(passes):
        begin = ORIGIN + 10 * number * PASS_NS
        free: dict[int, int] = {}
        for at, one in enumerate(launches):
            correlation += 1
            called = begin + 1000 + (at + 1) * gap
            start = max(called + 50, free.get(one.stream, 0))
            free[one.stream] = start + one.took
            size = 64 if one.kind == "memcpy" else None
            kind: Any = one.kind
            work = (start, start + one.took, correlation, f"stream {one.stream}", size)
            activity = Activity(kind, one.name, *work)
            log.launched(correlation, called)
            log.work.append(activity)
            marks[activity] = one
    return log


def spans_of(passes: list[list[Launch]], gap: int) -> list[PassSpan]:
    spans = []
    for number, launches in enumerate(passes):
        begin = 10 * number * PASS_NS / 1000
        layers = [
            LayerSpan(one.layer, begin + 1 + ((at + 1) * gap - 400) / 1000, 0.6)
            for at, one in enumerate(launches)
        ]
        spans.append(PassSpan(number, begin, 9 * PASS_NS / 1000, layers))
    return spans


@pytest.mark.broad
@settings(max_examples=60)
@given(
    model=_MODELS,
    changes=st.lists(
        st.tuples(st.sampled_from(["drop", "swap", "add", "none"]), st.integers(0, 30)),
        min_size=3,
        max_size=3,
    ),
    order=st.randoms(use_true_random=False),
)
def test_a_layer_that_is_named_is_the_one_that_launched_the_kernel(
    model: list[Launch], changes: list[tuple[str, int]], order: Any
) -> None:
    marks: dict[Activity, Launch] = {}
    slow = [model, model]
    slow_log = log_of(slow, 3000, {})
    order.shuffle(slow_log.work)  # buffers are handed over in any order
    found = attribute(slow_log, ORIGIN, spans_of(slow, 3000))
    launches = Launches(found.events.values())

    fast = [_changed(model, *change) for change in changes]
    log = log_of(fast, 700, marks)
    order.shuffle(log.work)
    passes = [
        TimedPass(n, ORIGIN + 10 * n * PASS_NS, ORIGIN + (10 * n + 9) * PASS_NS)
        for n in range(len(fast))
    ]
    result = join_passes(log, passes, launches)

    for number, launched in enumerate(fast):
        kernels = [one for one in launched if one.kind == "kernel"]
        alike = [one.name for one in kernels] == [o.name for o in model if o.kind == "kernel"]
        events = result.events[number]
        assert len(events) == len(launched)
        work = [one for one in in_launch_order(log.work) if marks[one] in launched]
        own = [
            one for one in work if passes[number].start_ns <= one.start_ns < passes[number].end_ns
        ]
        for event, activity in zip(events, own, strict=True):
            assert event.name == activity.name
            if event.layer is not None:
                # A sequence that is equal by name may have lost or swapped equal names only.
                assert alike
            if alike and changes[number][0] == "none":
                assert event.layer == marks[activity].layer
            if not alike:
                assert event.layer is None


def _changed(model: list[Launch], change: str, at: int) -> list[Launch]:
    made = list(model)
    place = at % len(made) if made else 0
    if change == "drop" and made:
        del made[place]
    elif change == "swap" and len(made) > 1:
        other = (place + 1) % len(made)
        made[place], made[other] = made[other], made[place]
    elif change == "add":
        made.insert(place, Launch(99, "kernel", "abc"[at % 3], 0, 10, -1))
    return made
