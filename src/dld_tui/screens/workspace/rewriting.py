"""Find and rewrite: patterns in the open model are found, shown and replaced."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Sequence
from time import monotonic
from typing import TYPE_CHECKING

from dld_tui.commands.command import table
from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import DldError
from dld_tui.core.text import visible
from dld_tui.screens.workspace.controller import Controller
from dld_tui.screens.workspace.history import MANY, EditHistory
from dld_tui.screens.workspace.inference import TypeInference
from dld_tui.screens.workspace.selection import NodeSelection

if TYPE_CHECKING:
    from dld_tui.core.rewrite.matcher import Hit
    from dld_tui.core.rewrite.pattern import Pattern
    from dld_tui.core.rewrite.rule import Rewrite, Rule

LIVE = 500
"""Nodes of a model of which all is shown that rules would change while they are typed; of larger
ones the first place is."""
_SLICE_S = 0.015
_MOST_HITS = 12
_GUIDE = "A pattern finds nodes, a rule replaces them, a name is a rule:"
_EXAMPLES = (
    "  Mul(x, Sigmoid(x))    mark every SiLU",
    "  Identity(x) => x      remove every Identity",
    "  gelu                  replace the parts of GELU by one Gelu",
)


@dataclass(eq=False)
class Rewriting(Controller):
    """Finds and replaces patterns."""

    COMMAND_TABLE = table(
        "workspace",
        ("edit.rewrite", "rewriting.show", "Q", "", "find and rewrite",
         "Find a pattern, initially that of the marked nodes; mark or replace matches.",
         "pattern, match, replace subgraph, fuse, graph rewriting, rule"),
        common="document", group="Mark",
    )  # fmt: skip

    history: EditHistory
    selection: NodeSelection
    inference: TypeInference

    def show(self) -> None:
        """Ask for a pattern or a rule, beginning with the pattern of the marked nodes."""
        from dld_tui.core.rewrite.matcher import pattern_of

        value = ""
        marked = self.model.marked(self.cursor)
        try:
            value = pattern_of(marked) if marked else ""
        except DldError as error:
            self.complain(error)
        self.offer(value)

    def offer(self, text: str) -> None:
        """Show what rules or a pattern find and would change; Enter carries it out.

        Meanwhile what is found is marked, in the list and on the graph. Rules with conditions on
        types wait until these are inferred: before that, they would find nothing.
        """
        self._when_typed(text, lambda: self._offer(text))

    def _when_typed(self, text: str, task: Callable[[], None]) -> None:
        try:
            needs_types = any(rule.needs_types for rule in self._rules(text)) if text else False
        except DldError:
            needs_types = False
        if needs_types:
            self.inference.when_typed(task, always=True)
        else:
            task()

    def _offer(self, text: str) -> None:
        from dld_tui.core.rewrite.query import Completion
        from dld_tui.core.rewrite.rule import known_rules, rule_names
        from dld_tui.widgets.dialogs.nodes import RewriteDialog

        nodes = (node for scope in self.document.scopes() for node in scope.nodes)
        completion = Completion(nodes, rule_names())
        marked = self.selection.panes.explorer.list
        before = set(marked.marks)

        async def look(pattern: str) -> tuple[str, Sequence[str]]:
            if pattern.strip():
                return await self.look(pattern)
            marked.set_marks(before)
            return _GUIDE, _EXAMPLES

        def left(answer: str | None) -> None:
            marked.set_marks(before)
            if answer:
                self._when_typed(answer, lambda: self.carry_out(answer))

        self.ask(RewriteDialog(text, look, completion, known_rules), left)

    async def look(self, text: str) -> tuple[str, Sequence[str]]:
        """Return how many hits there are, and what they are or what would change.

        Raises:
            DldError: The text is no pattern and no rule.
        """
        from dld_tui.core.edits.rewriting import preview
        from dld_tui.core.rewrite.pattern import parse_pattern
        from dld_tui.core.rewrite.rule import text_of_rules
        from dld_tui.core.rewrite.why import why_nothing

        rules = self._rules(text)
        rewrites = [rewrite for rule in rules for rewrite in rule.rewrites]
        patterns = [rewrite.pattern for rewrite in rewrites] or [parse_pattern(text)]
        if self.document.is_locked:
            return "The model is being edited", ()
        hits_by_pattern = await self._hits(patterns)
        nodes: set[Hashable] = {
            node for hits in hits_by_pattern for hit in hits for node in hit.nodes
        }
        self.selection.panes.explorer.list.set_marks(nodes)
        if rules and sum(len(scope.nodes) for scope in self.document.scopes()) <= LIVE:
            done = preview(self.document, text_of_rules(rules))
            lines = [
                line
                for _, _, went, came in done.hits[:_MOST_HITS]
                for line in (
                    *(f"- {one}" for one in went),
                    *(f"+ {node_line}" for node_line in came),
                )
            ]
            unchanged = sum(done.refused.values())
            more = f", {unchanged} left as they are" if unchanged else ""
            lines += list(done.refused)
            places = sum(done.counts.values())
            head = f"{fmt.plural(places, 'place')} to replace" if places else "Nothing to replace"
            if not (places or unchanged):
                lines += why_nothing(self.document, rules)
            return f"{head}{more}", lines
        lines = self._first_change(rewrites, hits_by_pattern)
        lines += [
            f"{' '.join(node.ref for node in hit.nodes)}"
            + (f"   cannot be replaced: {hit.problem}" if hit.problem else "")
            for hits in hits_by_pattern
            for hit in hits[:_MOST_HITS]
        ]
        count = sum(map(len, hits_by_pattern))
        if not count:
            lines += why_nothing(self.document, rules)
        return fmt.plural(count, "hit") if count else "No match", lines

    def _first_change(
        self, rewrites: Sequence[Rewrite], hits_by_pattern: Sequence[Sequence[Hit]]
    ) -> list[str]:
        """Return what would go and come at the first place, or why nothing does."""
        from dld_tui.core.edits.rewriting import RewriteRefusal, planned_lines

        for rewrite, hits in zip(rewrites, hits_by_pattern, strict=False):
            if hits:
                try:
                    went, came = planned_lines(self.document, hits[0], rewrite)
                except (DldError, RewriteRefusal) as error:
                    return [str(error)]
                return [*(f"- {line}" for line in went), *(f"+ {line}" for line in came)]
        return []

    async def _hits(self, patterns: Sequence[Pattern]) -> list[list[Hit]]:
        """Search in slices between which keys are answered; return the hits of each pattern."""
        from dld_tui.core.rewrite.matcher import Matcher

        hits_by_pattern: list[list[Hit]] = []
        deadline = monotonic() + _SLICE_S
        for pattern in patterns:
            hits_by_pattern.append([])
            matcher = Matcher(pattern)
            for scope in list(self.document.scopes()):
                for _ in matcher.gradually(scope, hits_by_pattern[-1]):
                    if monotonic() > deadline:
                        await asyncio.sleep(0)
                        deadline = monotonic() + _SLICE_S
        return hits_by_pattern

    def carry_out(self, text: str) -> None:
        """Rewrite by rules, or mark what a pattern finds."""
        from dld_tui.core.edits import rewriting
        from dld_tui.core.rewrite.matcher import find_hits
        from dld_tui.core.rewrite.pattern import parse_pattern
        from dld_tui.core.rewrite.rule import text_of_rules

        try:
            rules = self._rules(text)
            if not rules:
                hits = find_hits(self.document, parse_pattern(text))
                self.selection.set_marks(node for hit in hits for node in hit.nodes)
                return
        except DldError as error:
            self.complain(error)
            return
        edits_before = len(self.document.history.done)

        def done() -> None:
            if len(self.document.history.done) == edits_before:
                self.say(f"Nothing to replace: {self._why_nothing(rules)}", 8)

        self.history.change(
            "Rewriting",
            [lambda: self.document.apply(rewriting.rewrite(rules=text_of_rules(rules)))],
            large=len(self.document.main.nodes) > MANY,
            done=done,
        )

    def _why_nothing(self, rules: Sequence[Rule]) -> str:
        """Return why rules have replaced nothing. Fit for a terminal."""
        from dld_tui.core.edits.rewriting import preview
        from dld_tui.core.rewrite.rule import text_of_rules
        from dld_tui.core.rewrite.why import why_nothing

        left = list(preview(self.document, text_of_rules(rules)).refused)
        return visible((left or why_nothing(self.document, rules))[0])

    @staticmethod
    def _rules(text: str) -> list[Rule]:
        """Return the rules that a text is or names; none where it is a pattern."""
        from dld_tui.core.rewrite.expression import Reader
        from dld_tui.core.rewrite.pattern import read_pattern
        from dld_tui.core.rewrite.rule import rule_names, rules_of

        words = text.split()
        if set(words) <= set(rule_names()):
            return rules_of(words)
        reader = Reader(text)
        read_pattern(reader)
        return rules_of([text]) if not reader.is_done else []
