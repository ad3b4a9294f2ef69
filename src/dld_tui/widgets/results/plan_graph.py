"""The graph of an engine plan: its layers and the tensors between them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence

from textual.message import Message

from dld_tui.core.dataclass import dataclass
from dld_tui.core.model.graph.graph import Kind
from dld_tui.core.model.graph.pictures.content import Content
from dld_tui.core.model.operators.categories import colour_class_of
from dld_tui.core.tensorrt.plan.engine_plan import EnginePlan
from dld_tui.core.tensorrt.plan.graph import (
    LayerVertex,
    PlanGraph,
    plan_content,
)
from dld_tui.core.tensorrt.plan.lint import PlanFinding
from dld_tui.core.text import visible
from dld_tui.core.types import precision_style
from dld_tui.widgets.graph.pane import GraphPane
from dld_tui.widgets.graph.state import GraphView, ViewedGraph
from dld_tui.widgets.lists.styled import Piece


class PlanGraphModel(ViewedGraph):
    """The graph of an engine; vertices stand for its layers and bindings."""

    noun = "layer"
    memory_name = "memory"

    def __init__(self, plan: EnginePlan, drawn: PlanGraph) -> None:
        super().__init__(drawn.graph, drawn.subjects)
        self.plan = plan
        self.drawn = drawn
        self._rows = {layer.index: row for row, layer in enumerate(plan.layers)}
        if not drawn.graph.nets:
            self.set_view(GraphView.RAIL)

    def content(self, title: str) -> Content:
        return plan_content(self.plan, drawn=self.drawn)

    def is_same(self, other: ViewedGraph) -> bool:
        """Return whether another graph is of the same engine."""
        return isinstance(other, PlanGraphModel) and other.plan is self.plan

    def holds(self, subject: Hashable) -> bool:
        """Return whether a layer belongs to the engine."""
        return isinstance(subject, LayerVertex) and subject.row < len(self.plan.layers)

    def node_at(self, vertex: int) -> Hashable | None:
        """Return the layer of a vertex; None for a binding."""
        subject = self.drawn.subjects[vertex]
        return subject if isinstance(subject, LayerVertex) else None

    def vertex(self, subject: Hashable) -> int | None:
        """Return the vertex of a layer, or of a binding by its name."""
        if isinstance(subject, LayerVertex):
            return self.drawn.vertex(subject.row)
        names = self.drawn.subjects
        return names.index(subject) if isinstance(subject, str) and subject in names else None

    def style(self, vertex: int) -> str:
        """Return the style class of a vertex: its kind of work."""
        if self.graph.kinds[vertex] != Kind.NODE:
            return "io"
        return f"op-{colour_class_of(self.graph.classes[vertex], self.graph.labels[vertex])}"

    def type_of(self, vertex: int) -> str:
        """Return the type of what a vertex makes first; empty when it is not known."""
        nets = self.graph.outputs[vertex] or self.graph.inputs[vertex][:1]
        return visible(self.graph.nets[nets[0]].label) if nets else ""

    def badge(self, vertex: int) -> Piece:
        """Return the precision of a layer."""
        precision = self.precision(vertex)
        return ("", "") if precision is None else (precision[0][:4], precision[1])

    def precision(self, vertex: int) -> Piece | None:
        """Return the precision that a layer takes; None when it is not known."""
        subject = self.drawn.subjects[vertex]
        if not isinstance(subject, LayerVertex):
            return None
        precision = self.plan.layers[subject.row].precision
        return (visible(precision), precision_style(precision)) if precision else None

    def levels(self, findings: Iterable[PlanFinding]) -> Iterable[tuple[str, int]]:
        """Yield (level, vertex) of the findings of layers."""
        for finding in findings:
            row = None if finding.layer is None else self._rows.get(finding.layer)
            if row is not None:
                yield finding.level, self.drawn.vertex(row)

    def row_times(self, times: Mapping[LayerVertex, float]) -> list[float]:
        """Return milliseconds by row, of times by layer."""
        rows = self.overview.rails.rows
        own = [0.0] * len(rows)
        for layer, time in times.items():
            own[rows[self.drawn.vertex(layer.row)]] = time
        return own

    def memory(self) -> tuple[Sequence[float], Sequence[float]] | None:
        """Return the bytes that each layer touches: weights, inputs and outputs."""
        rows = self.overview.rails.rows
        own = [0.0] * len(rows)
        for row, layer in enumerate(self.plan.layers):
            own[rows[self.drawn.vertex(row)]] = float(layer.footprint or 0)
        return (own, own) if any(own) else None


class PlanGraphPane(GraphPane):
    """The pane; what the cursor is on goes out as :class:`PlanGraphPane.LayerReached`."""

    @dataclass
    class LayerReached(Message):
        """The cursor is on a layer."""

        row: int

    @dataclass
    class LayerOpened(Message):
        """Enter on the box of a layer."""

        row: int

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave out what changes a model's metadata: boxes of an engine stay where they are."""
        if action in ("move_box", "arrange"):
            return False
        return super().check_action(action, parameters)

    @property
    def row_at_cursor(self) -> int | None:
        """The layer under the cursor, by its place among the plan's."""
        subject = self.subject_at_cursor
        return subject.row if isinstance(subject, LayerVertex) else None

    def say_marked(self, marks: Iterable[Hashable]) -> None:
        """Keep the marks to the graph."""

    def say_selected(self, subject: Hashable | None) -> None:
        """Post that the cursor has reached a layer."""
        if isinstance(subject, LayerVertex):
            self.post_message(self.LayerReached(subject.row))

    def say_opened(self) -> None:
        """Post that the layer under the cursor was opened."""
        row = self.row_at_cursor
        if row is not None:
            self.post_message(self.LayerOpened(row))
