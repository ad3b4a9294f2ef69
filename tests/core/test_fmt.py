"""Numbers as people read them, on both sides of each limit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dld_tui.core import fmt

TEXTS: dict[Callable[[Any], str], dict[Any, str]] = {
    fmt.size: {
        None: "–", 0: "0 B", 999: "999 B", -999: "-999 B", 1000: "1 kB", 999_400: "999 kB",
        999_500: "1 MB", 1_812_000_000: "1.81 GB", 10**12: "1 TB", 10**15: "1 PB",
        999_500 * 10**12: "1 EB", 2**62: "4.61 EB", 2**126: "8.51e+37 B",
        10**21: "1e+21 B",
    },
    fmt.short_count: {
        None: "–", 12: "12", 999.5: "999.5", 1000: "1 k", 7_000: "7 k", 999_400: "999 k",
        999_500: "1000 k", 999_900: "1000 k", 10**6: "1 M", 25_600_000: "25.6 M", -2_500: "-2.5 k",
        10**9: "1 G", 10**12: "1 T", 9_995 * 10**11: "1000 T",
    },
    fmt.count: {None: "–", 0: "0", 10565: "10,565"},
    fmt.milliseconds: {None: "–", 0.0: "0.000", 1234.5678: "1,234.568"},
    fmt.three_digits: {
        None: "–", 0: "0", 0.01234: "0.0123", 0.9996: "1.00", 4.5678: "4.57", 9.996: "10.0",
        99.94: "99.9", 99.95: "100", -99.95: "-100", 1234.5: "1,234", -0.5: "-0.500",
    },
    fmt.joules: {
        None: "–", 0.0314: "31.4 mJ", 0.99: "990 mJ", 1: "1 J", 1.5: "1.5 J", 2.5: "2.5 J",
        12345.6: "1.235e+04 J",
    },
    fmt.duration: {
        None: "–", 0: "0 ms", 0.0004: "0.400 ms", 0.0005: "0 ms", 0.00051: "1 ms", 0.0421: "42 ms",
        0.9994: "999 ms", 1: "1.0 s", 1.5: "1.5 s", 12.34: "12.3 s", 59.96: "60.0 s",
        60: "1 min 0 s", 60.4: "1 min 0 s", 185: "3 min 5 s", 3599.4: "59 min 59 s",
        3600: "1 h 0 min", 7440: "2 h 4 min",
    },
    fmt.percent: {
        None: "–", 12.34: "12.3", 99.94: "99.9", 99.95: "100", 459.8: "460", -99.96: "-100",
        1234.5: "1,234",
    },
    fmt.whole_percent: {
        0.0: "0", 0.01: "below 1", 0.5: "below 1", 0.51: "1", 1.4: "1", 99.6: "100", -0.2: "-0",
    },
    fmt.shape: {None: "[…]", (): "[]", ("N", 3, None): "[N, 3, ?]"},
    fmt.number: {1.0: "1", 0.126: "0.13", -0.001: "0", 100.5: "100.5", -2.0: "-2"},
}  # fmt: skip


@pytest.mark.parametrize("function", TEXTS, ids=lambda function: function.__name__)
def test_texts_of_figures(function: Callable[[Any], str]) -> None:
    wanted = TEXTS[function]
    assert {value: function(value) for value in wanted} == wanted


@pytest.mark.parametrize(
    ("parts", "whole", "texts"),
    [
        ((1.0, 1.0, 1.0), 3.0, ["34", "33", "33"]),
        ((66.6, 16.7, 16.7), 100.0, ["66", "17", "17"]),
        ((99.6, 0.2, 0.2), 100.0, ["100", "below 1", "below 1"]),
        ((50.5, 49.5), 100.0, ["51", "49"]),
        ((3.0, 0.0), 3.0, ["100", "0"]),
        ((1.0, 1.0), 3.0, ["34", "33"]),  # with room for what is not listed
        ((50.5, 49.5), 200.0, ["25", "25"]),
        ((3.0, 2.0), 4.0, ["75", "50"]),  # in parallel they take more than the whole
    ],
)
def test_whole_percents_of_all_parts_sum_to_100(
    parts: tuple[float, ...], whole: float, texts: list[str]
) -> None:
    assert fmt.whole_percents(parts, whole) == texts


def test_counts_with_nouns_lists_and_printed_differences() -> None:
    assert [fmt.plural(1, "node"), fmt.plural(1746, "node")] == ["1 node", "1,746 nodes"]
    assert [fmt.plural(at, "pass", "passes") for at in (0, 1)] == ["0 passes", "1 pass"]
    assert fmt.listed([], 2) == ""
    assert fmt.listed(["a", "b"], 2) == "a, b"
    assert fmt.listed([1, 2, *range(2000)], 2, lambda at: f"<{at}>") == "<1>, <2> and 2,000 more"
    assert [fmt.progress(*at) for at in ((0, 3), (2, 3), (999, 1000), (7, 7), (9, 7))] == [
        "0 %", "66 %", "99 %", "100 %", "100 %",
    ]  # fmt: skip
    assert fmt.printed_difference(5.663, 5.4794) == 5.663 - 5.479
    assert fmt.printed_difference(5.6634, 5.4786) == 5.663 - 5.479
