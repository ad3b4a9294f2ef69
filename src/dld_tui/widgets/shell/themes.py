"""The five themes. Colours exist only here; style sheets use the variables below.

Every theme sets the same variables, so a rule never asks which theme is on. What is to be read has
a contrast of 4.5 on every background, also that of the cursor; hints and rules have 3.
``colour-blind`` has the sky, yellow and vermilion of Okabe and Ito for good, warning and error, the
latter two lighter: their CIE distance for a deuteranope is above 30, where common themes have 10 to
29. State always has a glyph too.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from textual.cache import LRUCache
from textual.css.stylesheet import Stylesheet
from textual.theme import Theme

_OPERATORS = ("conv", "matmul", "norm", "act", "elem", "shape", "data", "control", "quant", "other")
_PRECISIONS = ("fp32", "fp16", "bf16", "int8", "fp8", "int4", "other")

_DARK = {
    "background": "#0e1116", "panel": "#161b22", "foreground": "#c8ced6",
    "quiet": "#949da8", "faint": "#646d78", "line": "#626b76", "line-focus": "#6fa8d6",
    "cursor": "#19324a", "cursor-blur": "#191f27", "accent": "#7cc0f5", "mark": "#e0b25c",
    "match": "#5a4a1c", "key": "#d9b06a", "link": "#8db8e6", "number": "#c8ced6",
    "io": "#86c5a4", "guide": "#646d78", "good": "#7dbb87", "warn": "#d8a84a", "bad": "#ec7476",
    "info": "#949da8", "bar": "#5d87ad", "rest": "#222931",
}  # fmt: skip
_DARK_OPERATORS = (
    "#8fb8e8", "#7ea6e0", "#a9a3dc", "#d9aa6d", "#b9c1ca", "#7a8591", "#82b5a3", "#d693b4",
    "#c6c275", "#c8ced6",
)  # fmt: skip
_DARK_PRECISIONS = (
    "#828c97", "#7cc0f5", "#9fb4f2", "#d9aa6d", "#d693b4", "#c6c275", "#c8ced6",
)  # fmt: skip
_DARK_HEAT = ("#75808b", "#a39f86", "#c7ad6c", "#db9a54", "#e77f4d", "#f26358")

_LIGHT = {
    "background": "#fbfbf9", "panel": "#f0f0ec", "foreground": "#23282e",
    "quiet": "#59636d", "faint": "#7f868e", "line": "#7f868e", "line-focus": "#2e74ad",
    "cursor": "#d3e5f5", "cursor-blur": "#ebece8", "accent": "#1b62a0", "mark": "#a0670a",
    "match": "#f3df9a", "key": "#8c5a08", "link": "#1c5d9c", "number": "#23282e",
    "io": "#19694a", "guide": "#7f868e", "good": "#247033", "warn": "#875708", "bad": "#bd2f2f",
    "info": "#59636d", "bar": "#6f9cc4", "rest": "#e6e7e3",
}  # fmt: skip
_LIGHT_OPERATORS = (
    "#1f62a3", "#2a55b0", "#5d4fa8", "#96590b", "#3d464f", "#76808a", "#27755c", "#a03a6f",
    "#6f6a10", "#23282e",
)  # fmt: skip
_LIGHT_PRECISIONS = (
    "#68727d", "#1f6cab", "#4055b5", "#96590b", "#a03a6f", "#6f6a10", "#23282e",
)  # fmt: skip
_LIGHT_HEAT = ("#7b858f", "#7d7242", "#8f6a14", "#a9560f", "#b8431b", "#c22727")

_CONTRAST = {
    "background": "#000000", "panel": "#000000", "foreground": "#ffffff",
    "quiet": "#d0d0d0", "faint": "#a8a8a8", "line": "#9a9a9a", "line-focus": "#ffff00",
    "cursor": "#0000c0", "cursor-blur": "#1c1c1c", "accent": "#ffff00", "mark": "#ffff00",
    "match": "#806000", "key": "#ffff00", "link": "#80d0ff", "number": "#ffffff",
    "io": "#80ffb0", "guide": "#a8a8a8", "good": "#60ff60", "warn": "#ffd000", "bad": "#ff8c8c",
    "info": "#d0d0d0", "bar": "#80c0ff", "rest": "#303030",
}  # fmt: skip
_CONTRAST_OPERATORS = (
    "#80c8ff", "#a0c0ff", "#d0b8ff", "#ffc060", "#ffffff", "#d0d0d0", "#80ffd0", "#ffa0d0",
    "#f0f080", "#ffffff",
)  # fmt: skip
_CONTRAST_PRECISIONS = (
    "#d0d0d0", "#80d0ff", "#b0b8ff", "#ffc060", "#ffa0d0", "#f0f080", "#ffffff",
)  # fmt: skip
_CONTRAST_HEAT = ("#d0d0d0", "#e8e0a0", "#ffe060", "#ffc040", "#ffa040", "#ff8080")

_OKABE_ITO = {
    **_DARK, "accent": "#56b4e9", "line-focus": "#56b4e9", "mark": "#f0e442", "key": "#e69f00",
    "link": "#56b4e9", "io": "#56b4e9", "good": "#56b4e9", "warn": "#fbf28c", "bad": "#f27514",
    "bar": "#3f7fae",
}  # fmt: skip
_OKABE_ITO_OPERATORS = (
    "#56b4e9", "#8fc6ea", "#cc9fc0", "#e69f00", "#b9c1ca", "#7a8591", "#4fbf9f", "#e0a8cb",
    "#f0e442", "#c8ced6",
)  # fmt: skip
_OKABE_ITO_PRECISIONS = (
    "#828c97", "#56b4e9", "#8fc6ea", "#e69f00", "#cc9fc0", "#f0e442", "#c8ced6",
)  # fmt: skip
# Lightness alone carries the order: it reads the same with any colour vision.
_OKABE_ITO_HEAT = ("#5d6a78", "#7c8070", "#a09660", "#c4ad50", "#e2c648", "#fbe45a")


def _theme(
    name: str,
    base: dict[str, str],
    operators: tuple[str, ...],
    precisions: tuple[str, ...],
    heat: tuple[str, ...],
    *,
    dark: bool = True,
    ansi: bool = False,
    styles: Mapping[str, str] = MappingProxyType({}),
) -> Theme:
    own = {key: value for key, value in base.items() if key not in ("background", "foreground")}
    own |= {f"op-{key}": value for key, value in zip(_OPERATORS, operators, strict=True)}
    own |= {f"prec-{key}": value for key, value in zip(_PRECISIONS, precisions, strict=True)}
    own |= {f"heat-{step}": value for step, value in enumerate(heat)}
    own |= {"quiet-style": "none", "cursor-style": "none", "match-style": "none"}
    own |= _textual_variables(base) | dict(styles)
    return Theme(
        name=name,
        primary=base["accent"],
        secondary=base["link"],
        accent=base["key"],
        warning=base["warn"],
        error=base["bad"],
        success=base["good"],
        foreground=base["foreground"],
        background=base["background"],
        surface=base["background"],
        panel=base["panel"],
        dark=dark,
        ansi=ansi,
        variables=own,
    )


def _textual_variables(base: dict[str, str]) -> dict[str, str]:
    """Return the variables of Textual's own widgets, so that they look like ours."""
    return {
        "border": base["line-focus"],
        "border-blurred": base["line"],
        "scrollbar": base["faint"],
        "scrollbar-hover": base["quiet"],
        "scrollbar-active": base["accent"],
        "scrollbar-background": base["background"],
        "scrollbar-background-hover": base["background"],
        "scrollbar-background-active": base["background"],
        "scrollbar-corner-color": base["background"],
        "block-cursor-background": base["cursor"],
        "block-cursor-foreground": base["foreground"],
        "block-cursor-text-style": "none",
        "footer-background": base["panel"],
        "footer-foreground": base["quiet"],
        "footer-key-foreground": base["key"],
        "footer-description-foreground": base["quiet"],
        "input-cursor-background": base["accent"],
        "input-cursor-foreground": base["background"],
        "input-selection-background": base["cursor"],
    }


_NONE = dict.fromkeys(_DARK, "ansi_default")

THEMES: tuple[Theme, ...] = (
    _theme("dark", _DARK, _DARK_OPERATORS, _DARK_PRECISIONS, _DARK_HEAT),
    _theme("light", _LIGHT, _LIGHT_OPERATORS, _LIGHT_PRECISIONS, _LIGHT_HEAT, dark=False),
    _theme("high-contrast", _CONTRAST, _CONTRAST_OPERATORS, _CONTRAST_PRECISIONS, _CONTRAST_HEAT),
    _theme(
        "colour-blind", _OKABE_ITO, _OKABE_ITO_OPERATORS, _OKABE_ITO_PRECISIONS, _OKABE_ITO_HEAT
    ),
    _theme(
        "no-colour",
        _NONE,
        ("ansi_default",) * len(_OPERATORS),
        ("ansi_default",) * len(_PRECISIONS),
        ("ansi_default",) * len(_DARK_HEAT),
        ansi=True,
        styles={
            "ansi-background": "ansi_default",
            "ansi-foreground": "ansi_default",
            "quiet-style": "dim",
            "cursor-style": "reverse",
            "match-style": "reverse",
            "input-cursor-text-style": "reverse",
            "block-cursor-text-style": "reverse",
        },
    ),
)
"""All themes; the first is the default."""


_MOST_SOURCES = 1024
"""Textual keeps 64, and goes through more than that in order: it would find none again."""


class KeptStylesheet(Stylesheet):
    """Parses a source once for each theme.

    Textual parses all sources again for each screen that is shown for the first time: a third of
    the time from the start to the first rows.
    """

    def __init__(self, *, variables: dict[str, str] | None = None) -> None:
        super().__init__(variables=variables)
        self._parse_cache = LRUCache(_MOST_SOURCES)

    def set_variables(self, variables: dict[str, str]) -> None:
        """Take the variables of a theme; nothing is parsed again when they are as before."""
        if variables != self._variables:
            super().set_variables(variables)

    def reparse(self) -> None:
        """Parse the sources that were not parsed with these variables; an error changes nothing."""
        self.parse()
