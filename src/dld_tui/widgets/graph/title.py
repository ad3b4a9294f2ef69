"""What the border of a graph pane says: place, view, colours, counts, and the link or types."""

from __future__ import annotations

from dld_tui.core import fmt
from dld_tui.core.model.graph.layout import Link
from dld_tui.core.model.tensors.value_types import alias_legend
from dld_tui.core.text import visible
from dld_tui.widgets.graph.overlays import Overlay
from dld_tui.widgets.graph.state import GraphView, ViewedGraph
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.shell.command_dispatch import hint
from dld_tui.widgets.shell.frame import Choices, Frame


def show_title(
    frame: Frame, model: ViewedGraph, overlay: Overlay, marked: int, *, with_rows: bool
) -> None:
    """Write the title of a pane that shows a graph.

    Args:
        frame: The frame of the pane.
        model: The graph.
        overlay: What its colours say.
        marked: How many nodes, inputs and outputs are marked.
        with_rows: Whether it is shown as rows, which leave out what all names share.
    """
    place = f" {glyphs.current().crumb} {visible(model.place)}" if model.place else ""
    if with_rows and model.name_ends.gapped:
        place += f" · {visible(model.name_ends.gapped)}"
    colours = _colours(overlay)
    counts = _counts(model, marked)
    view = _view(model)
    views = list(GraphView)
    choices = Choices(
        visible(f"Graph{place}{colours}"),
        visible(f"{counts}  {hint('{graph.view}')}"),
        tuple(view if other is model.view else other.value for other in views),
        views.index(model.view),
    )
    frame.show(f"Graph{place} · {view}{colours}", f"{counts}  {{graph.view}} view", choices)


def subtitle(model: ViewedGraph, link: Link | None) -> str:
    """Return what stands below: the link that the cursor is on, or short names of dimensions."""
    if link is None:
        return alias_legend(model.aliases)
    graph, name = model.graph, model.graph.nets[link.net].name
    source, target = (
        f"{graph.labels[end]} {model.name_ends.without(graph.names[end])}".strip()
        for end in (link.source, link.target)
    )
    port, kind = model.port(link.target, name), model.named_type(name)
    text = f"link {name}  {kind}  {source} → {target}" + (f" {port}" if port else "")
    return visible(text)


def _colours(overlay: Overlay) -> str:
    if overlay.name == Overlay.name:
        return ""
    return f" · {overlay.name}" + (f" {overlay.legend}" if overlay.legend else "")


def _counts(model: ViewedGraph, marked: int) -> str:
    count = fmt.plural(model.total, model.noun)
    if model.count != model.total:
        count = f"{fmt.count(model.count)} of {count}"
    return f"{fmt.count(marked)} marked  {count}" if marked else count


def _view(model: ViewedGraph) -> str:
    view: str = model.view.value
    if model.view is GraphView.FOCUS:
        view += " ways" if model.other_end is not None else f" {model.hops}"
    return view
