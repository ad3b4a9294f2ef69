"""Pictures of the graph of a model, or of a part of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import InputError, UsageError
from dld_tui.core.model.document.parts.extraction import nodes_at
from dld_tui.core.model.graph.build import ScopeGraph, graph_of
from dld_tui.core.model.graph.folding import Overview
from dld_tui.core.model.graph.pictures import content as contents
from dld_tui.core.model.graph.pictures.content import Content, types_of
from dld_tui.core.model.graph.pictures.drawing import Picture, picture_of, rows_text, text_picture
from dld_tui.core.model.graph.pictures.style import SCHEMES, Look
from dld_tui.core.model.tensors.value_types import aliases_in
from dld_tui.core.statistics import share_percent

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document
    from dld_tui.core.model.document.scope import Scope

_TOO_MANY = 20_000
"""Number of nodes from which on the picture is folded without measuring it."""


@dataclass(frozen=True)
class Drawing:
    """What is drawn of a graph, and how."""

    kind: str = "svg"
    """``svg``, ``html``, ``png``, ``jpeg`` or ``text``."""
    view: str = "canvas"
    """``canvas`` draws boxes; as text, ``rail`` has a row per node, ``overview`` folded ones."""
    node: str | None = None
    """Draws the neighbourhood of this node: its name, or one of its outputs."""
    hops: int = 2
    """The size of the neighbourhood."""
    folded: bool | None = None
    """Whether repeated blocks and name scopes are single boxes; None if the picture would be too
    large for viewers."""
    constants: bool = False
    """Whether constant subexpressions are drawn, too."""
    report: Path | None = None
    """A profile whose times are shown."""
    look: Look = Look(SCHEMES["light"])
    scale: float | None = None
    ascii: bool = False


def picture_of_scope(
    document: Document,
    scope: Scope,
    title: str,
    drawing: Drawing,
    tell: Callable[[str], None],
    unfolded: str = "folded=False",
) -> Picture:
    """Return the picture of a graph of a model.

    Args:
        document: The model.
        scope: The graph: the main one, a function or a subgraph.
        title: Of the picture. Untrusted text.
        drawing: What is drawn of it, and how.
        tell: Called with what a person should know.
        unfolded: How a person asks for all nodes.

    Raises:
        InputError: The report is not of this graph.
        UsageError: There is no such node, or the picture is too large for its format.
    """
    drawn = graph_of(scope, constants=drawing.constants)
    if drawing.kind == "text" and drawing.view != "canvas":
        return _rows(drawn, drawing)

    def picture(drawing: Drawing) -> Picture:
        content = _content(drawn, title, drawing)
        content.types, content.aliases = types_of(scope), aliases_in(scope)
        if drawing.report is not None:
            _add_times(content, drawn, document, drawing.report)
        return picture_of(
            content, drawing.kind, drawing.look, scale=drawing.scale, in_ascii=drawing.ascii
        )

    whole = drawing.view == "canvas" and drawing.node is None and drawing.report is None
    if drawing.folded is None and whole and drawing.kind != "text":
        if len(scope.nodes) <= _TOO_MANY:
            try:
                result = picture(drawing)
            except UsageError as error:  # PNG and JPEG only
                why = error.message
            else:
                if not result.is_oversized:
                    return result
                why = _oversized(result)
        else:
            why = f"{len(scope.nodes):,} nodes are more than a picture can show"
        tell(f"{why}: repeated blocks are folded ({unfolded} draws everything)")
        drawing = replace(drawing, folded=True)
    result = picture(drawing)
    if result.is_oversized:
        tell(_oversized(result))
    return result


def _oversized(picture: Picture) -> str:
    return f"{picture.width:,} x {picture.height:,} pixels exceed the limit of viewers"


def lacks_types(scope: Scope) -> bool:
    """Return whether most types are unknown, judged by the first nodes."""
    names = [name for node in scope.nodes[:200] for name in node.outputs if name]
    return sum(scope.value_type(name) is None for name in names) * 4 > len(names)


def _content(drawn: ScopeGraph, title: str, drawing: Drawing) -> Content:
    if drawing.node is not None:
        (node,) = nodes_at(drawn.scope, [drawing.node])
        return contents.node_content(drawn, node, drawing.hops, title)
    if drawing.folded or drawing.view == "overview":
        return contents.folded_content(Overview(drawn.graph), title)
    return contents.whole_content(drawn, title)


def _add_times(content: Content, drawn: ScopeGraph, document: Document, path: Path) -> None:
    """Show the time of each node from a report in its box.

    Raises:
        InputError: The file is not a report, or its layers are not nodes of the model.
    """
    from dld_tui.core import fmt
    from dld_tui.core.report.report import open_report

    times: dict[int, float] = {}
    with open_report(path) as report:
        layers = report.layers
    for layer in layers:
        for link in layer.nodes:
            node = document.find_node(link.scope, link.node)
            vertex = None if node is None else drawn.vertex(node)
            if vertex is not None and layer.cost_ms:
                times[vertex] = times.get(vertex, 0.0) + layer.cost_ms * link.share
    if not times:
        raise InputError("no layer of the report is a node of this graph", where=str(path))
    longest, total = max(times.values()), sum(times.values())
    for vertex, time in times.items():
        content.heats[vertex] = time / longest
        share = fmt.percent(share_percent(time, total))
        content.tips.setdefault(vertex, []).append(f"{fmt.milliseconds(time)} ms, {share} %")


def _rows(drawn: ScopeGraph, drawing: Drawing) -> Picture:
    overview = Overview(drawn.graph)
    if drawing.view == "rail":
        overview.open_all()
    return text_picture(
        rows_text(overview, types_of(drawn.scope)), drawing.ascii, len(overview.rows)
    )
