"""What a picture of an engine shows: a box a layer, coloured by what it does or by precision."""

from __future__ import annotations

from dld_tui.core import fmt
from dld_tui.core.graph.pictures.content import Content, of_graph, short_type
from dld_tui.core.graph.pictures.style import precision_class
from dld_tui.core.plan.formats import layout_of
from dld_tui.core.plan.graph import LayerVertex, PlanGraph, drawn_plan, tensor_type
from dld_tui.core.plan.macs import macs
from dld_tui.core.plan.model import EngineLayer, EnginePlan
from dld_tui.core.text import visible

COLOURS = ("type", "precision")
"""What the colours of an engine's picture can say."""


def plan_content(plan: EnginePlan, colour: str = "type", drawn: PlanGraph | None = None) -> Content:
    """Return the picture of an engine.

    Args:
        plan: The engine.
        colour: One of :data:`COLOURS`.
        drawn: Its graph, when there is one already.

    Raises:
        UsageError: The engine has too many layers for a picture.
    """
    drawn = drawn or drawn_plan(plan)
    content = of_graph(drawn.graph, plan.title)
    content.noun = "layer"
    for vertex, subject in enumerate(drawn.subjects):
        if isinstance(subject, LayerVertex):
            layer = plan.layers[subject.row]
            content.notes[vertex] = layer_notes(layer)
            content.tips[vertex] = layer_tips(layer)
            if colour == "precision":
                content.colours[vertex] = precision_class(layer.precision)
    layouts = {
        tensor.name: layout
        for layer in plan.layers
        for tensor in (*layer.inputs, *layer.outputs)
        if (layout := layout_of(tensor.format))
    }
    for place, net in enumerate(drawn.graph.nets):
        if net.name in layouts:
            content.net_labels[place] = f"{short_type(net.label)} {layouts[net.name]}".strip()
    return content


def layer_tips(layer: EngineLayer) -> list[str]:
    """Return what a tooltip says besides: kernel, sizes, work."""
    count = macs(layer)
    sizes = [
        f"{title} {fmt.size(size)}"
        for title, size in (("moves", layer.footprint), ("weights", layer.weights_bytes or None))
        if size is not None
    ]
    found = [
        f"tactic {visible(layer.tactic)}" if layer.tactic else "",
        ", ".join(sizes),
        f"{fmt.short_count(count)} MACs" if count else "",
        *(
            f"← {visible(tensor.name)}  {tensor_type(tensor)} {layout_of(tensor.format)}".rstrip()
            for tensor in layer.inputs[:4]
        ),
    ]
    return [line for line in found if line]


def layer_notes(layer: EngineLayer) -> list[str]:
    """Return the lines below the type of a layer: name, precision, time."""
    found = [visible(layer.name)] if layer.name else []
    precision = precision_text(layer)
    time = "" if layer.time_ms is None else f"{fmt.milliseconds(layer.time_ms)} ms"
    share = "" if layer.percent is None else f"{fmt.percent(layer.percent)} %"
    figures = "  ".join(part for part in (precision, time, share) if part)
    return [*found, figures] if figures else found


def precision_text(layer: EngineLayer) -> str:
    """Return the precision of a layer, and that of its outputs when it is another one."""
    if layer.output_precision and layer.output_precision != layer.precision:
        return f"{visible(layer.precision) or '?'} → {visible(layer.output_precision)}"
    return visible(layer.precision)
