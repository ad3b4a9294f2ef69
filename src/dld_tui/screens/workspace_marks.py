"""Marking nodes of a workspace: by filter, by name, along the links."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable, Sequence
from time import monotonic

from textual import on
from textual.worker import Worker

from dld_tui.core import fmt
from dld_tui.core.document import Node, reach
from dld_tui.core.errors import DldError
from dld_tui.core.types import CancelCheck, ProgressCallback
from dld_tui.screens.workspace_edit import Editing
from dld_tui.widgets.dialogs import Choice, ChoiceDialog, PromptDialog
from dld_tui.widgets.explorer_items import Branch, name_separator
from dld_tui.widgets.explorer_search import all_nodes, matching_nodes
from dld_tui.widgets.filter_dialog import FilterDialog
from dld_tui.widgets.line_view import LineView
from dld_tui.widgets.node_filter import NodeFilter

_SLICE_S = 0.015
_FEW = 4_000
"""Nodes of the largest model whose links are followed between two key presses."""


class Marking(Editing):
    """The part of the workspace that marks."""

    def facts(self) -> set[str]:
        """Return what holds for the commands on marks, too."""
        facts = super().facts()
        if self.is_open and self.explorer.list.marks:
            facts.add("marks")
        return facts

    @on(LineView.MarksChanged)
    def marks_changed(self) -> None:
        """Offer what can be done with marks."""
        if self.is_open:
            self.facts_changed()

    def chosen_nodes(self) -> list[Node]:
        """Return the marked nodes, or the one at the cursor."""
        marked = self.explorer.marked if not self.in_parameters else []
        node = self.node
        return marked or ([node] if node is not None else [])

    def set_marks(self, nodes: Iterable[Node]) -> None:
        """Mark nodes and no others, and say how many they are."""
        marks: set[Hashable] = set(nodes)
        self.explorer.list.set_marks(marks)
        self.notify(f"{fmt.plural(len(marks), 'node')} marked", timeout=2)

    def add_marks(self, nodes: Iterable[Node]) -> None:
        """Mark more nodes."""
        before = {mark for mark in self.explorer.list.marks if isinstance(mark, Node)}
        self.set_marks(before.union(nodes))

    def action_mark_more(self) -> None:
        """Ask what to mark."""
        marks = bool(self.explorer.list.marks)
        choices = [
            Choice("f", "nodes that pass a filter", "filter"),
            Choice("n", "nodes whose names begin with …", "name"),
        ]
        if self.node is not None:
            choices.append(Choice("t", "nodes of the same operator type", "same"))
        if self.node is not None or marks:
            choices += [
                Choice("u", "upstream: what they are computed from", "upstream"),
                Choice("d", "downstream: what is computed from them", "downstream"),
            ]
        if marks:
            choices.append(Choice("b", "between: all nodes on paths between them", "between"))
        choices.append(Choice("i", "invert: what is not marked now", "invert"))
        if marks:
            choices.append(Choice("c", "clear the marks", "clear"))

        def chosen(answer: str | None) -> None:
            if answer:
                getattr(self, f"action_mark_{answer}")()

        count = fmt.plural(len(self.explorer.list.marks), "node")
        self.app.push_screen(ChoiceDialog("Mark", f"{count} marked.", choices), chosen)

    def action_mark_filter(self) -> None:
        """Mark the nodes that an advanced filter lets through."""
        nodes = list(all_nodes(self.explorer.model))
        dialog = FilterDialog(nodes, self.explorer.model.count_kinds(), None)
        dialog.TITLE_TEXT = "Mark by filter"
        dialog.KEYS = "Enter mark  Space choose  ^X clear  Esc close"

        def chosen(found: NodeFilter | None) -> None:
            if found is None:
                return

            async def judge() -> None:
                await self._mark_fitting(nodes, found)

            _: Worker[None] = self.run_worker(judge, group="mark", exclusive=True)

        self.app.push_screen(dialog, chosen)

    async def _mark_fitting(self, nodes: Sequence[Node], fits: NodeFilter) -> None:
        """Judge in slices between which keys are answered."""
        found, deadline = [], monotonic() + _SLICE_S
        for node in nodes:
            if fits(node):
                found.append(node)
            if monotonic() > deadline:
                await asyncio.sleep(0)
                deadline = monotonic() + _SLICE_S
        self.add_marks(found)

    def action_mark_name(self) -> None:
        """Mark the nodes whose shown names begin with a text."""
        model = self.explorer.model
        entries = [model.entry(node) for node in all_nodes(model)]

        def problem(text: str) -> str | None:
            if not text or any(entry.label.startswith(text) for entry in entries):
                return None
            return "No node's name begins so"

        def chosen(text: str | None) -> None:
            if text:
                self.add_marks(e.node for e in entries if e.label.startswith(text))

        message = "Mark the nodes whose names begin with:"
        start = self._name_scope()
        self.app.push_screen(PromptDialog("Mark by name", message, start, check=problem), chosen)

    def _name_scope(self) -> str:
        """Return the name scope of the node at the cursor, or the folder's."""
        item, model = self.explorer.item, self.explorer.model
        if isinstance(item, Branch) and item.kind == "folder" and item.members:
            first = item.members[0].label
            return first[: item.start + len(item.label)]
        node = self.node
        if node is None:
            return ""
        separator = name_separator(model.entries(node.scope))
        head, found, _ = model.entry(node).label.rpartition(separator)
        return head + found

    def action_mark_same(self) -> None:
        """Mark the nodes of the operator type at the cursor."""
        node = self.node
        if node is None:
            return
        model = self.explorer.model
        kind = model.entry(node).kind
        self.add_marks(n for n in all_nodes(model) if model.entry(n).kind == kind)

    def action_mark_between(self) -> None:
        """Mark all nodes on paths between the marked ones."""
        self._follow(reach.between, self.explorer.marked)

    def action_mark_upstream(self) -> None:
        """Mark what the chosen nodes are computed from."""
        self._follow(reach.upstream_of, self.chosen_nodes())

    def action_mark_downstream(self) -> None:
        """Mark what is computed from the chosen nodes."""
        self._follow(reach.downstream_of, self.chosen_nodes())

    def _follow(self, along: Callable[[Sequence[Node]], set[Node]], start: Sequence[Node]) -> None:
        if not start:
            return
        if self.explorer.model.total <= _FEW:
            self.set_marks(along(start))
            return
        found: list[set[Node]] = []

        def task(progress: ProgressCallback, cancelled: CancelCheck) -> None:
            found.append(along(start))

        def ended(error: DldError | None) -> None:
            if error is not None:
                self.complain(error)
            else:
                self.set_marks(found[0])

        self.work("Following the links", task, ended)

    def action_mark_invert(self) -> None:
        """Mark what passes the filters and is not marked, and nothing else."""
        marks = self.explorer.list.marks
        self.set_marks(node for node in matching_nodes(self.explorer.model) if node not in marks)

    def action_mark_clear(self) -> None:
        """Mark nothing."""
        self.explorer.list.set_marks(set())
