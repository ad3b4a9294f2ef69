"""Patterns in the open model: found, shown, and replaced."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from textual import on
from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import Input

from dld_tui.core import fmt
from dld_tui.core.errors import DldError
from dld_tui.core.text import clip, visible
from dld_tui.screens.workspace.controller import Controller
from dld_tui.screens.workspace.history import MANY, History
from dld_tui.screens.workspace.selection import Selection
from dld_tui.widgets.dialogs.dialogs import Dialog
from dld_tui.widgets.forms.query_field import query_field
from dld_tui.widgets.lists.line_source import Piece
from dld_tui.widgets.lists.styled import Rows
from dld_tui.widgets.shell import glyphs

if TYPE_CHECKING:
    from dld_tui.core.rewrite.completion import Completion
    from dld_tui.core.rewrite.matcher import Hit
    from dld_tui.core.rewrite.pattern import Pattern
    from dld_tui.core.rewrite.rule import Rule

_WAIT_S = 0.15
_LINES = 12


Look: TypeAlias = "Callable[[str], Awaitable[tuple[str, Sequence[str]]]]"


class RewriteDialog(Dialog[str]):
    """Gives the text when Enter is pressed.

    Args:
        value: The text to begin with.
        look: Returns a line of how many there are, and lines of what would change, for a text; not
            fit for a terminal. May raise a :class:`DldError` that says what is wrong with it. It is
            stopped where another text is typed meanwhile.
        completion: How words go on.
    """

    TITLE_TEXT = "Find and rewrite"
    KEYS = "Enter mark, or rewrite with =>  Esc close"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "apply", "apply", show=False)]

    def __init__(self, value: str, look: Look, completion: Completion) -> None:
        super().__init__()
        self.completion = completion
        self.value = value
        self.look = look

    def body(self) -> Iterable[Widget]:
        example = "Mul(x, Sigmoid(x))   or   Identity(x) => x   or   gelu"
        yield query_field(self.value, example, self.completion)
        yield Rows([[] for _ in range(_LINES + 1)], id="rewrite-answer")

    def on_mount(self) -> None:
        """Say what is found now."""
        self.query_one(Input).focus()
        self.changed()

    @on(Input.Changed)
    def changed(self) -> None:
        """Look again when nothing was typed for a moment."""
        self.tasks.start(self._look(self.query_one(Input).value), "count", replace=True)

    async def _look(self, text: str) -> None:
        await asyncio.sleep(_WAIT_S)
        rows: list[list[Piece]] = []
        if text.strip():
            try:
                head, lines = await self.look(text)
            except DldError as error:
                mark = glyphs.current().error
                rows = [[(f"{mark} {clip(visible(str(error)), self.text_width - 2)}", "bad")]]
            else:
                rows = [[(visible(head), "strong")]]
                for line in lines[:_LINES]:
                    style = {"-": "bad", "+": "good"}.get(line[:1], "")
                    rows.append([(clip(visible(line), self.text_width), style)])
        rows += [[] for _ in range(_LINES + 1 - len(rows))]
        self.query_one("#rewrite-answer", Rows).set_rows(rows)

    @on(Input.Submitted)
    def submitted(self, event: Input.Submitted) -> None:
        """Give the text."""
        event.stop()
        self.action_apply()

    def action_apply(self) -> None:
        text = self.query_one(Input).value.strip()
        if text:
            self.dismiss(text)


LIVE = 2_000
"""Nodes of a model of which it is shown what rules would change while they are typed."""
_SLICE_S = 0.015
_MOST_HITS = 12


@dataclass(eq=False)
class Rewriting(Controller):
    """Finds and replaces patterns."""

    history: History
    selection: Selection

    def show(self) -> None:
        """Ask for a pattern or a rule, beginning with the pattern of the marked nodes."""
        from dld_tui.core.rewrite.completion import Completion
        from dld_tui.core.rewrite.matcher import pattern_of
        from dld_tui.core.rewrite.rule import known_rules

        value = ""
        marked = self.model.marked(self.cursor)
        try:
            value = pattern_of(marked) if marked else ""
        except DldError as error:
            self.complain(error)
        nodes = (node for scope in self.document.scopes() for node in scope.nodes)
        completion = Completion(nodes, [rule.name for rule in known_rules()])
        self.ask(RewriteDialog(value, self.look, completion), self.carry_out)

    async def look(self, text: str) -> tuple[str, Sequence[str]]:
        """Return how many hits there are, and what they are or what would change.

        Raises:
            DldError: The text is no pattern and no rule.
        """
        from dld_tui.core.document.edits.rewriting import preview
        from dld_tui.core.rewrite.pattern import parse_pattern
        from dld_tui.core.rewrite.rule import text_of_rules

        rules = self._rules(text)
        patterns = [one.pattern for rule in rules for one in rule.rewrites]
        patterns = patterns or [parse_pattern(text)]
        if self.document.is_held:
            return "The model is being edited", ()
        if rules and sum(len(scope.nodes) for scope in self.document.scopes()) <= LIVE:
            done = preview(self.document, text_of_rules(rules))
            lines = [
                line
                for _, _, went, came in done.hits[:_MOST_HITS]
                for line in (*(f"- {one}" for one in went), *(f"+ {one}" for one in came))
            ]
            left = sum(done.refused.values())
            more = f", {left} left as they are" if left else ""
            lines += list(done.refused)
            return f"{fmt.plural(sum(done.counts.values()), 'place')} to replace{more}", lines
        hits = await self._hits(patterns)
        lines = [
            f"{' '.join(node.ref for node in hit.nodes)}"
            + (f"   cannot be replaced: {hit.problem}" if hit.problem else "")
            for hit in hits[:_MOST_HITS]
        ]
        return fmt.plural(len(hits), "hit"), lines

    async def _hits(self, patterns: Sequence[Pattern]) -> list[Hit]:
        """Search in slices between which keys are answered."""
        from dld_tui.core.rewrite.matcher import Matcher

        found: list[Hit] = []
        deadline = monotonic() + _SLICE_S
        for pattern in patterns:
            matcher = Matcher(pattern)
            for scope in list(self.document.scopes()):
                for _ in matcher.gradually(scope, found):
                    if monotonic() > deadline:
                        await asyncio.sleep(0)
                        deadline = monotonic() + _SLICE_S
        return found

    def carry_out(self, text: str | None) -> None:
        """Rewrite by rules, or mark what a pattern finds."""
        from dld_tui.core.rewrite.matcher import find_hits
        from dld_tui.core.rewrite.pattern import parse_pattern
        from dld_tui.core.rewrite.rule import text_of_rules

        if not text:
            return
        try:
            rules = self._rules(text)
            if not rules:
                hits = find_hits(self.document, parse_pattern(text))
                self.selection.set_marks(node for hit in hits for node in hit.nodes)
                return
        except DldError as error:
            self.complain(error)
            return
        made = len(self.document.history.done)

        def done() -> None:
            after = self.document.history.done
            self.say(after[-1].title if len(after) > made else "Nothing to replace")

        self.history.change(
            "Rewriting",
            [lambda: self.document.apply("rewrite", rules=text_of_rules(rules))],
            large=len(self.document.main.nodes) > MANY,
            done=done,
        )

    @staticmethod
    def _rules(text: str) -> list[Rule]:
        """Return the rules that a text is or names; none where it is a pattern."""
        from dld_tui.core.rewrite.pattern import read_pattern
        from dld_tui.core.rewrite.rule import known_rules, rules_of
        from dld_tui.core.rewrite.text import Reader

        words = text.split()
        if all(any(word == rule.name for rule in known_rules()) for word in words):
            return rules_of(words)
        reader = Reader(text)
        read_pattern(reader)
        return rules_of([text]) if not reader.is_done else []
