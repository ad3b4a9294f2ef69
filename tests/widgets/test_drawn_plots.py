"""Charts as they are drawn: kinds, sizes, axes, rules, cursors (``drawn_plots.txt``)."""

from __future__ import annotations

import math
from dataclasses import replace

from dld_tui.widgets.charts.plots import Axis, Marks, Picture, Plot, Series, Spot, draw, thinned
from dld_tui.widgets.charts.plots import ticks as ticks_of
from dld_tui.widgets.shell import glyphs
from tests.support.recorded import Recorded


def _drawn(picture: Picture, at: int | None = None) -> str:
    """Return the lines, then where the spots are, and the styles of the lines."""
    lines = list(picture.lines) if at is None else picture.with_cursor(at)
    texts = ["".join(text for text, _ in line).rstrip() for line in lines]
    styles = sorted({style for line in lines for text, style in line if text.strip()})
    places = [f"places {[*picture.places]} in {picture.canvas}"] if picture.places else []
    return "\n".join([*texts, *places, f"styles {', '.join(styles)}"])


_XS = [float(at) for at in range(1, 13)]
_WAVE = [round(10 * math.sin(at / 2), 3) for at in range(1, 13)]
_SPOTS = [
    Spot(1.0, _WAVE[0], "the first", 1),
    Spot(6.0, 1.411, "a middle", 2),
    Spot(12.0, -2.794, "the last"),
]
_BOTH = Plot(
    [Marks(_XS, _WAVE, "line"), Marks(_XS, [at / 2 for at in _XS], "dots", "accent")],
    Axis("runs", whole=True), Axis(text="{:.1f} ms".format, least=-12.0), _SPOTS,
    rules=((4.0, "warn"), (99.0, "bad")), below=[[("below", "dim")]],
)  # fmt: skip
_LOG = Plot(
    [Marks([0.0, 1.0, 10.0, 1000.0], [5.0, 1.0, 100.0, 30.0], "steps"), Marks([], [], "bars")],
    Axis("size", text="{:,.0f}".format, log=True, marked=(1, 10, 100, 1000)), Axis(log=True),
    [Spot(0.0, 5.0, "not shown"), Spot(10.0, 100.0, "ten")],
)  # fmt: skip
_PLOTS = {
    "both": _BOTH,
    "logarithmic": _LOG,
    "bars": Plot([Marks(_XS, [abs(at) for at in _WAVE], "bars")], Axis("kinds"), Axis(least=0.0)),
    "one height": Plot([Marks([1.0, 2.0], [3.0, 3.0], "line")]),
    "texts that would repeat": Plot(
        [Marks(_XS, [3 + at / 90 for at in _WAVE], "line")],
        Axis("runs"),
        Axis(text="{:.1f}".format),
    ),
    "one text": Plot([Marks(_XS, [3 + at / 900 for at in _WAVE])], y=Axis(text="{:.1f}".format)),
    "no finite values": Plot([Marks([1.0, math.nan, math.inf], [1.0, 2.0, 3.0])]),
}


def test_charts_of_each_kind_at_each_size(recorded: Recorded) -> None:
    texts = {}
    for name in ("unicode", "ascii"):
        glyphs.use(name)
        try:
            for title, plot in _PLOTS.items():
                for width, height in ((24, 8), (60, 14)):
                    texts[f"{title}, {name}, {width}x{height}"] = _drawn(draw(plot, width, height))
        finally:
            glyphs.use("unicode")
    for width, height in ((23, 8), (24, 7), (24, 6), (30, 5)):
        texts[f"least room, {width}x{height}"] = _drawn(draw(_PLOTS["bars"], width, height))
    beside = replace(_BOTH, beside=_LOG)
    texts["beside, 120x12"] = _drawn(draw(beside, 120, 12), 0)
    texts["beside without room, 109x12"] = _drawn(draw(beside, 109, 12), 2)
    texts["logarithmic, the cursor"] = _drawn(draw(_LOG, 60, 12), 0)
    recorded("drawn_plots", texts)


def test_the_nearest_spot_and_thinned_dots() -> None:
    picture = draw(_BOTH, 60, 14)
    (first, top), middle, (last, _) = picture.places
    assert [picture.nearest(*at) for at in ((first, top), middle, (last, 0), (0, 0))] == [
        0,
        1,
        2,
        0,
    ]
    assert draw(_PLOTS["bars"], 60, 14).nearest(3, 3) is None
    points = [(x / 10, y / 10) for x in range(11) for y in range(3)]
    assert thinned(points, (0.0, 1.0), (0.0, 0.2), (3, 2)) == [
        (0.0, 0.0), (0.0, 0.2), (0.3, 0.0), (0.3, 0.2), (0.8, 0.0), (0.8, 0.2),
    ]  # fmt: skip


def test_what_axes_and_live_figures_say(recorded: Recorded) -> None:
    ends = [
        (0.0, 1.0),
        (0.0, 97.0),
        (-3.0, 3.0),
        (9.99, 10.06),
        (1e-9, 3e-9),
        (1e6, 1.2e6),
        (5.0, 25.0),
    ]
    texts = {
        "ticks": "\n".join(
            f"{low:g} to {high:g}: "
            + "  ".join(
                f"{most}: {[float(f'{at:.6g}') for at in ticks_of(low, high, most)]}"
                for most in (2, 5, 9)
            )
            for low, high in ends
        ),
        "logarithmic ticks": "\n".join(
            f"{low} to {high}: "
            + "  ".join(
                f"{most}: {[round(10**at, 4) for at in ticks_of(low, high, most, log=True)]}"
                for most in (2, 4, 8)
            )
            for low, high in ((0.0, 1.0), (0.0, 6.0), (-2.0, 0.5), (0.1, 0.2), (1.0, 1.9))
        ),
    }
    for count in (1, 2, 40, 600):
        series = Series("latency", "ms")
        for at in range(count):
            series.add(3.0 + at % 7 + (50.0 if at == 333 else 0.0))
        texts[f"{count} values"] = "\n".join(
            [f"{len(series.values)} of {series.each}, {series.count} counted"]
            + [
                "|".join(text for text, _ in line)
                for size in ((20, 3), (60, 4), (60, 1))
                for line in series.lines(*size)
            ]
        )
    recorded("figures_of_axes", texts)
