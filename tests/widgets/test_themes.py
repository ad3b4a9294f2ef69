"""Every theme can be read: contrast, the same variables, and colour-blind safety."""

from __future__ import annotations

import itertools
import math

import pytest
from textual.color import Color
from textual.theme import Theme

from dld_tui.core.settings.config import THEMES as NAMES
from dld_tui.widgets.shell.themes import THEMES

COLOURED = [theme for theme in THEMES if not theme.ansi]
BY_NAME = {theme.name: theme for theme in THEMES}
TEXT = ("foreground", "quiet", "accent", "key", "link", "io", "good", "warn", "bad")
HINTS = ("faint", "line", "guide")
"""What need not be read: what cannot be used now, rules, lines of graphs."""
# Machado, Oliveira and Fernandes 2009, severity 1, on linear RGB.
BLINDNESS = {
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
}


def variable(theme: Theme, name: str) -> Color:
    own = {"foreground": theme.foreground, "background": theme.background}
    return Color.parse(own.get(name) or theme.variables[name])


def linear(colour: Color) -> list[float]:
    return [
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
        for value in (colour.r / 255, colour.g / 255, colour.b / 255)
    ]


def contrast(first: Color, second: Color) -> float:
    light = [
        0.2126 * red + 0.7152 * green + 0.0722 * blue
        for red, green, blue in (linear(first), linear(second))
    ]
    return (max(light) + 0.05) / (min(light) + 0.05)


def lab(rgb: list[float]) -> tuple[float, float, float]:
    red, green, blue = (min(1.0, max(0.0, value)) for value in rgb)
    xyz = (
        (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.95047,
        0.2126 * red + 0.7152 * green + 0.0722 * blue,
        (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.08883,
    )
    x, y, z = (t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in xyz)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def seen_distance(first: Color, second: Color, kind: str) -> float:
    def seen(colour: Color) -> tuple[float, float, float]:
        rgb = linear(colour)
        return lab([sum(a * b for a, b in zip(row, rgb, strict=True)) for row in BLINDNESS[kind]])

    return math.dist(seen(first), seen(second))


def test_themes_are_those_of_the_settings_with_the_same_variables() -> None:
    # The settings know the themes.
    assert tuple(theme.name for theme in THEMES) == NAMES
    # All themes set the same variables.
    assert {frozenset(theme.variables) for theme in THEMES} == {frozenset(THEMES[0].variables)} | {
        frozenset(BY_NAME["no-colour"].variables)
    }
    assert set(THEMES[0].variables) <= set(BY_NAME["no-colour"].variables)
    # No colour uses none.
    theme = BY_NAME["no-colour"]
    colours = {value for name, value in theme.variables.items() if not name.endswith("style")}
    assert colours == {"ansi_default"}


@pytest.mark.parametrize("theme", COLOURED, ids=lambda theme: str(theme.name))
def test_text_can_be_read_on_every_background(theme: Theme) -> None:
    least = 7.0 if theme.name == "high-contrast" else 4.5
    for back in ("background", "panel", "cursor", "cursor-blur"):
        for name in (*TEXT, *HINTS):
            wanted = 3.0 if name in HINTS else 4.5 if back == "cursor" else least
            if name in HINTS and back == "cursor":
                continue
            found = contrast(variable(theme, name), variable(theme, back))
            assert found >= wanted, f"{theme.name}: {name} on {back} is {found:.1f}"


@pytest.mark.parametrize("kind", sorted(BLINDNESS))
def test_the_colour_blind_theme_tells_states_apart(kind: str) -> None:
    theme = BY_NAME["colour-blind"]
    for first, second in itertools.combinations(("good", "warn", "bad"), 2):
        distance = seen_distance(variable(theme, first), variable(theme, second), kind)
        assert distance > 30, f"{first} and {second} are {distance:.0f} apart for {kind}"


def test_the_colour_blind_heat_gets_lighter_step_by_step() -> None:
    theme = BY_NAME["colour-blind"]
    lightness = [lab(linear(variable(theme, f"heat-{step}")))[0] for step in range(6)]
    assert lightness == sorted(lightness)
    assert min(b - a for a, b in itertools.pairwise(lightness)) > 4
