"""The picture of a TensorRT engine, for ``dld draw``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from dld_tui.core.errors import InputError, UsageError
from dld_tui.core.graph.overview import Overview
from dld_tui.core.graph.pictures import style
from dld_tui.core.graph.pictures.content import folded
from dld_tui.core.graph.pictures.drawing import picture_of, text_picture
from dld_tui.core.graph.pictures.text import rows_text
from dld_tui.core.plan.graph import drawn_plan, plan_content
from dld_tui.core.plan.mapping import map_plan
from dld_tui.core.plan.reader import open_plan

if TYPE_CHECKING:
    from dld_tui.core.graph.pictures.drawing import Picture

_OF_MODELS = {"scope": "--scope", "node": "--node", "constants": "--constants"}


def draw_plan(path: Path, kind: str, asked: dict[str, Any]) -> tuple[Picture, int]:
    """Return the picture of an engine, and how many layers it has.

    Args:
        path: Its layer information, with the other files beside it.
        kind: The format.
        asked: The options of ``dld draw``.

    Raises:
        InputError: The file cannot be read, or tells of no layers.
        UsageError: An option is for models only.
    """
    for name, option in _OF_MODELS.items():
        if asked[name]:
            raise UsageError(f"{option} is for models", where=str(path))
    plan = open_plan(path)
    if not plan.layers:
        raise InputError("there are no layers to draw", where=str(path))
    nodes = map_plan(plan)
    drawn = drawn_plan(plan, {at: one.nodes[0].name for at, one in nodes.items() if one.nodes})
    count = len(plan.layers)
    view = asked["view"]
    if kind == "text" and view != "canvas":
        overview = Overview(drawn.graph)
        if view == "rail":
            overview.open_all()
        lines = rows_text(overview, lambda name: "")
        return text_picture(lines, asked["in_ascii"], len(overview.rows)), count
    if asked["folded"] or view == "overview":
        content = folded(Overview(drawn.graph), plan.title)
        content.noun = "layer"
    else:
        content = plan_content(plan, asked["colour"], drawn)
    look = style.Look(style.SCHEMES[asked["scheme"]], asked["background"], asked["grid"])
    made = picture_of(content, kind, look, scale=asked["scale"], in_ascii=asked["in_ascii"])
    return made, count
