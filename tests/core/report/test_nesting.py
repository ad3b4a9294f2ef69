from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dld_tui.core.report.formats.trace_events import SelfTimes, depths


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


@st.composite
def trees(draw: st.DrawFn) -> list[tuple[int, int, int, int]]:
    """(start, end, self, depth) of nested intervals, in the order of their ends."""
    events: list[tuple[int, int, int, int]] = []

    def span(start: int, depth: int) -> int:
        own = 0
        at = start
        for _ in range(draw(st.integers(0, 3)) if depth < 3 else 0):
            gap = draw(st.integers(1, 3))
            own += gap
            at = span(at + gap, depth + 1)
        last = draw(st.integers(1, 3))
        own += last
        events.append((start, at + last, own, depth))
        return at + last

    end = 0
    for _ in range(draw(st.integers(1, 3))):
        end = span(end, 0)
    return events


@given(trees(), trees())
def test_self_times_of_any_trees_sum_to_their_outermost_spans(
    one: list[tuple[int, int, int, int]], other: list[tuple[int, int, int, int]]
) -> None:
    """Of two threads, whose events end in turns."""
    events = sorted(
        ((end, at, thread, start, own, depth)
         for thread, tree in (("a", one), ("b", other))
         for at, (start, end, own, depth) in enumerate(tree))
    )  # fmt: skip
    times = SelfTimes()
    found = [times.add(thread, s, end - s, True) for end, _, thread, s, _, _ in events]
    assert found == [own for *_, own, _ in events]
    outermost = [end - start for end, _, _, start, _, depth in events if depth == 0]
    assert times.outermost == len(outermost)
    assert sum(found) == sum(outermost)
    ordered = sorted(events, key=lambda event: (event[3], -event[0]))
    spans = [(thread, float(s), float(end - s)) for end, _, thread, s, _, _ in ordered]
    assert depths(spans) == [depth for *_, depth in ordered]
