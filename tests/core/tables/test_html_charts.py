from __future__ import annotations

import random
from xml.etree import ElementTree

import pytest

from dld_tui.core.reading.export import Graph, Lane, Span, timeline
from dld_tui.core.tables.html_page import WIDTH, Bar, bars, histogram, scale, ticks


def parsed(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


def rects(svg: str) -> list[ElementTree.Element]:
    return parsed(svg).findall(".//rect")


def test_bars_are_as_long_as_their_values() -> None:
    made = rects(bars([Bar("a<", (4.0,), ("4 ms",)), Bar("b", (1.0,), ("1 ms",))]))
    long, short = (float(rect.get("width", "0")) for rect in made)
    assert long == pytest.approx(4 * short, rel=0.01)
    assert [rect.findtext("title") for rect in made] == ["a<: 4 ms", "b: 1 ms"]


def test_several_series_have_a_legend_and_a_class_each() -> None:
    made = bars([Bar("a", (1.0, None, 2.0), ("1", "–", "2"))], ("base", "n<w", "third"))
    assert "n&lt;w" in made
    assert {rect.get("class") for rect in rects(made)} == {"s0", "s1", "s2"}
    assert bars([Bar("a", (None,), ("–",))]) == bars([]) == ""


def test_a_histogram_counts_every_value_once() -> None:
    dice = random.Random(3)
    values = [dice.gauss(5, 0.1) for _ in range(900)] + [50.0]
    made = histogram(values, [("least", 4.7), ("most", 50.0)])
    counted = [
        int(title.rsplit(": ", 1)[1].replace(",", ""))
        for rect in rects(made)
        if (title := rect.findtext("title"))
    ]
    texts = [element.text or "" for element in parsed(made).findall("text")]
    beyond = next(text for text in texts if " more above " in text)
    assert sum(counted) + int(beyond.split()[0]) == 901
    assert int(beyond.split()[0]) == 5, "half a per cent"
    marks = {
        (element.text or "").split()[0]: (element.get("text-anchor"), element.get("dx"))
        for element in parsed(made).findall("text")
        if element.get("dx")
    }
    assert marks == {"least": ("start", "4"), "most": ("end", "-4")}
    lines = [float(line.get("x1", "0")) for line in parsed(made).findall(".//line[@class='mark']")]
    assert max(lines) == WIDTH - 30, "what is beyond the axis stands at its end"
    assert " more above " not in histogram([*values[:-1], 6.3], []), "that is not far beyond"
    assert " more above " in histogram([*values[:-1], 7.3], [])
    assert "least 4.7 ms" in texts
    assert "ms" in texts, "the axis has its unit"
    few, many = ([1.0] * count + [50.0] for count in (198, 199))
    assert " more above " not in histogram(few, []), "199 values have no 99.5th percentile"
    assert "1 more above " in histogram(many, [])


@pytest.mark.parametrize("values", [[], [1.0], [float("nan"), 2.0]])
def test_a_distribution_needs_two_values(values: list[float]) -> None:
    assert histogram(values, []) == ""


@pytest.mark.parametrize(
    "values",
    [[0.0, 0.0], [3.0] * 500, [1e-9, 1e9], [-1.0, 1.0], [*(1 + n / 1e4 for n in range(99)), 99.0]],
)
def test_odd_distributions_are_drawn_within_the_picture(values: list[float]) -> None:
    for rect in rects(histogram(values, [("median", values[0])])):
        assert 0 <= float(rect.get("x", "-1")) <= WIDTH
        assert 0 <= float(rect.get("height", "-1")) <= 200
        width = float(rect.get("width", "-1"))
        assert (WIDTH - 80) / 80 - 2 < width < (WIDTH - 80) / 10 + 1, "there are 10 to 80 bars"


def test_ticks_and_scales_stay_within() -> None:
    assert ticks(0, 10) == [float(n) for n in range(11)]
    assert ticks(0.3, 1.1, most=4) == [0.4, 0.6, 0.8, 1.0]
    assert ticks(1, 1) == ticks(0, float("inf")) == []
    assert len(ticks(0, 9.99e-7)) <= 11
    axis = scale(2.0, 2.0, 10, 20)
    assert [axis.at(value) for value in (0.0, 2.0, 2.5, 9.0)] == [10, 10, 15, 20]


def test_short_neighbours_are_one_bar_and_long_ones_have_names() -> None:
    thin = [Span(float(n), 0.9, f"k{n}", "h0") for n in range(5000)]
    long = Span(6000.0, 4000.0, "a long <kernel>", "h4")
    nested = Span(6100.0, 1000.0, "inside", "h1", depth=1)
    made = timeline([Lane("thread 1", [*thin, long, nested]), Lane("none", [])], [], 10_000.0)
    titles = [rect.findtext("title") for rect in rects(made)]
    assert titles == ["5,000 short ones: 4.5 ms", "a long <kernel>: 4 ms", "inside: 1 ms"]
    assert "a long &lt;kernel&gt;</text>" in made
    tops = [float(rect.get("y", "0")) for rect in rects(made)]
    assert tops[0] == tops[1] < tops[2]
    assert timeline([], [], 1.0) == timeline([Lane("a", [long])], [], 0.0) == ""


def test_counters_stay_open_where_nothing_was_sampled() -> None:
    lane = Lane("t", [Span(0.0, 100.0, "k", "s0")])
    graph = Graph("SM <active>", [10.0, 20.0, None, None, 30.0], 100.0, "up to 30 %")
    made = parsed(timeline([lane], [graph], 100.0))
    areas = made.findall(".//polygon")
    assert len(areas) == 2
    assert len((areas[0].get("points") or "").split()) == 6
    nothing = Graph("none", [None], 1.0, "")
    assert parsed(timeline([lane], [nothing], 100.0)).findall(".//polygon") == []


@pytest.mark.parametrize("count", [2, 5, 8, 13])
def test_every_series_has_a_colour_of_its_own_and_stands_in_the_legend(count: int) -> None:
    names = [
        f"{chr(65 + place)} a-rather-long-name-of-an-engine-{place}.engine"
        for place in range(count)
    ]
    row = Bar("Conv", tuple(float(place + 1) for place in range(count)), ("x",) * count)
    page = parsed(bars([row], names))
    fills = [
        element.get("class") or element.get("fill")
        for element in page.iter()
        if element.tag.endswith("rect")
    ]
    assert len(fills) == 2 * count
    assert fills[:count] == fills[count:], "the legend has the colours of the bars"
    assert len(set(fills)) == count
    places = [(float(rect.get("x", "")), float(rect.get("y", ""))) for rect in page.iter()
              if rect.tag.endswith("rect")]  # fmt: skip
    key, drawn = sorted((places[:count], places[count:]), key=lambda some: min(y for _, y in some))
    assert len(set(key)) == count, "each entry of the legend has its place"
    assert max(x for x, _ in key) < WIDTH
    assert (len({y for _, y in key}) > 1) == (count > 2), "and rows where they do not fit"
    assert min(y for _, y in drawn) >= max(y for _, y in key) + 20
    legend = [e for e in page.iter() if e.tag.endswith("text")][:count]
    assert ["".join(e.itertext()).count(name) for e, name in zip(legend, names, strict=True)] == [
        2
    ] * count
    width = float((page.get("viewBox") or "").split()[2])
    for element, name in zip(legend, names, strict=True):
        assert float(element.get("x") or 0) + 6 * len(name) < width
    height = max(float(e.get("y") or 0) for e in legend)
    tops = [float(e.get("y") or 0) for e in page.iter() if e.tag.endswith("rect")][count:]
    assert min(tops) > height
