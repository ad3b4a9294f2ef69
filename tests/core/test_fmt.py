"""Numbers as people read them; unknown is an en dash, never a zero."""

from __future__ import annotations

import pytest

from dld_tui.core import fmt


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0, "0 B"), (999, "999 B"), (1000, "1 kB"), (1_812_000_000, "1.81 GB"),
     (999_600, "1 MB"), (2**126, "8.51e+37 B")],
)  # fmt: skip
def test_size(value: int | None, text: str) -> None:
    assert fmt.size(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (12, "12"), (25_600_000, "25.6 M"), (999_900, "1000 k"), (7_000, "7 k")],
)
def test_short_count(value: float | None, text: str) -> None:
    assert fmt.short_count(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "–"), (0.0421, "42 ms"), (12.34, "12.3 s"), (59.96, "60.0 s"), (185, "3 min 5 s"),
     (7440, "2 h 4 min")],
)  # fmt: skip
def test_duration(seconds: float | None, text: str) -> None:
    assert fmt.duration(seconds) == text


@pytest.mark.parametrize(
    ("parts", "texts"),
    [
        ((1.0, 1.0, 1.0), ["34", "33", "33"]),
        ((66.6, 16.7, 16.7), ["66", "17", "17"]),
        ((99.6, 0.2, 0.2), ["100", "below 1", "below 1"]),
        ((50.5, 49.5), ["51", "49"]),
        ((3.0, 0.0), ["100", "0"]),
    ],
)
def test_whole_percents_of_all_parts_sum_to_100(parts: tuple[float, ...], texts: list[str]) -> None:
    assert fmt.whole_percents(parts, sum(parts)) == texts


def test_whole_percents_leave_room_for_what_is_not_listed() -> None:
    assert fmt.whole_percents((1.0, 1.0), 3.0) == ["34", "33"]
    assert fmt.whole_percents((50.5, 49.5), 200.0) == ["25", "25"]


def test_shapes_counts_times_and_percentages() -> None:
    assert fmt.shape(("N", 3, None)) == "[N, 3, ?]"
    assert (fmt.shape(()), fmt.shape(None)) == ("[]", "[…]")
    assert (fmt.count(10565), fmt.count(None)) == ("10,565", "–")
    assert (fmt.milliseconds(1234.5678), fmt.milliseconds(None)) == ("1,234.568", "–")
    assert (fmt.percent(12.34), fmt.percent(None)) == ("12.3", "–")
    assert [fmt.percent(one) for one in (99.94, 99.96, 459.8, 1234.5)] == [
        "99.9", "100", "460", "1,234",
    ]  # fmt: skip
    assert [fmt.whole_percent(one) for one in (0.0, 0.01, 0.5, 0.51, 1.4, 99.6)] == [
        "0", "below 1", "below 1", "1", "1", "100",
    ]  # fmt: skip


def test_of_many_texts_the_first_ones_and_how_many_more() -> None:
    assert fmt.listed([], 2) == ""
    assert fmt.listed(["a", "b"], 2) == "a, b"
    assert fmt.listed([*"abcd"], 2) == "a, b and 2 more"
