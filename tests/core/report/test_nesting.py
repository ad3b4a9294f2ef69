from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dld_tui.core.report.formats.trace_events import SelfTimes, depths


def test_children_are_taken_off_their_parent_once() -> None:
    times = SelfTimes()
    assert times.add("t", 20, 10, False) == 10  # grandchild
    assert times.add("t", 15, 30, True) == 20  # child
    assert times.add("t", 50, 5, False) == 5  # child
    assert times.add("t", 10, 60, True) == 60 - 30 - 5
    assert times.outermost == 1


def test_a_child_that_seems_to_end_after_its_parent_is_still_inside() -> None:
    # Start 10.9 and duration 5.9 are cut to 10 and 5; start 11.0 and duration 5.7 to 11 and 5.
    times = SelfTimes()
    times.add("t", 11, 5, False)
    assert times.add("t", 10, 5, True) == 0


def test_of_equal_starts_only_a_holder_is_the_parent() -> None:
    siblings = SelfTimes()
    siblings.add("t", 10, 0, False)
    assert siblings.add("t", 10, 5, False) == 5
    assert siblings.outermost == 2
    nested = SelfTimes()
    nested.add("t", 10, 2, False)
    assert nested.add("t", 10, 5, True) == 3


def test_threads_are_apart() -> None:
    times = SelfTimes()
    times.add("a", 20, 10, False)
    assert times.add("b", 10, 60, True) == 60


@st.composite
def trees(draw: st.DrawFn) -> list[tuple[int, int, int]]:
    """(start, end, self) of nested intervals, in the order of their ends."""
    events: list[tuple[int, int, int]] = []

    def span(start: int, level: int) -> int:
        own = 0
        at = start
        for _ in range(draw(st.integers(0, 3)) if level else 0):
            gap = draw(st.integers(1, 3))
            own += gap
            at = span(at + gap, level - 1)
        last = draw(st.integers(1, 3))
        own += last
        events.append((start, at + last, own))
        return at + last

    end = 0
    for _ in range(draw(st.integers(1, 3))):
        end = span(end, 3)
    return events


@given(trees())
def test_self_times_of_any_tree_sum_to_its_outermost_spans(
    events: list[tuple[int, int, int]],
) -> None:
    times = SelfTimes()
    found = [times.add(0, start, end - start, True) for start, end, _ in events]
    assert found == [own for _, _, own in events]
    ordered = sorted(events, key=lambda e: (e[0], -e[1]))
    top = [
        span
        for span, depth in zip(
            ordered, depths([(0, start, end - start) for start, end, _ in ordered]), strict=True
        )
        if depth == 0
    ]
    assert sum(found) == sum(end - start for start, end, _ in top)


def test_depths_count_the_holders() -> None:
    spans = [("t", 0.0, 10.0), ("t", 1.0, 5.0), ("t", 2.0, 1.0), ("t", 7.0, 1.0), ("u", 3.0, 1.0)]
    assert depths(spans) == [0, 1, 2, 1, 0]
