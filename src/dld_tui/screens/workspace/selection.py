"""Marked nodes: by filter, name, links or patterns; copied, pasted, edited, rewritten together."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from textual.app import App

from dld_tui.commands.command import table
from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import DldError
from dld_tui.core.model.document.metadata import precision_of
from dld_tui.core.text import visible
from dld_tui.core.types import JSON
from dld_tui.screens.workspace.controller import Controller
from dld_tui.screens.workspace.history import MANY, EditHistory
from dld_tui.screens.workspace.inference import Inference
from dld_tui.screens.workspace.navigation import Navigation
from dld_tui.screens.workspace.panes import Panes
from dld_tui.screens.workspace.state import Cursor, is_alive
from dld_tui.widgets.explorer.branches import name_separator
from dld_tui.widgets.explorer.state import all_nodes, matching_nodes
from dld_tui.widgets.shell.command_dispatch import hint
from dld_tui.widgets.shell.page import host
from dld_tui.widgets.tasks import task

if TYPE_CHECKING:
    from dld_tui.core.model.document import Node, Transaction
    from dld_tui.core.model.document.parts.fragment import Fragment
    from dld_tui.core.model.rewrite.matcher import Hit
    from dld_tui.core.model.rewrite.pattern import Pattern
    from dld_tui.core.model.rewrite.rule import Rewrite, Rule
    from dld_tui.screens.workspace.editing import Editing
    from dld_tui.widgets.dialogs.nodes import TypeGroup
    from dld_tui.widgets.explorer.node_filter import NodeFilter


_SLICE_S = 0.015
_FEW = 4_000
"""Nodes of the largest model whose links are followed between two key presses."""
_MOST_SHARED = 8_000
"""Bytes of the largest fragment that goes to the clipboard of the terminal, too."""
_LARGE = 1 << 20
"""Bytes of payloads from which on pasting runs on a thread."""
_KEYS = "1234567890"
_MOST_LISTED = 5
"""Tensors that a question lists."""
_MOST_HITS = 12
_GUIDE = "A pattern finds nodes, a rule replaces them, a name is a rule:"
_EXAMPLES = (
    "  Mul(x, Sigmoid(x))    mark every SiLU",
    "  Identity(x) => x      remove every Identity",
    "  gelu                  replace the parts of GELU by one Gelu",
)


@dataclass(eq=False)
class NodeSelection(Controller):
    """Marks nodes, and does something with those that are marked, or that a pattern finds."""

    COMMAND_TABLE = (
        *table(
            "workspace",
            ("edit.fold", "selection.fold", "", "nodes", "fold to initializers",
             "Replace the marked nodes, or the node at the cursor, by what they compute from "
             "constants.",
             "constant folding, precompute, evaluate, bake"),
            ("mark.precision", "selection.mark_precision", "", "", "mark precision",
             "Mark the nodes with a given layer precision."),
            common="document", menus={"edit.fold": "node"},
        ),
        *table(
            "workspace",
            ("mark.menu", "selection.mark_more", "comma", "", "mark more",
             "Mark nodes by filter, name or links, or invert the marks.", "select, selection"),
            ("mark.filter", "selection.mark_filter", "", "", "mark by filter",
             "Mark nodes by operator type and attributes."),
            ("mark.name", "selection.mark_name", "", "", "mark by name",
             "Mark nodes by name prefix, such as a name scope."),
            ("mark.same", "selection.mark_same", "", "node", "mark same type",
             "Mark all nodes with the operator type of the node at the cursor."),
            ("mark.between", "selection.mark_between", "", "marks", "mark between",
             "Mark all nodes on paths between the marked nodes."),
            ("mark.upstream", "selection.mark_upstream", "", "nodes", "mark upstream",
             "Mark all nodes that the marked nodes depend on."),
            ("mark.downstream", "selection.mark_downstream", "", "nodes", "mark downstream",
             "Mark all nodes that depend on the marked nodes."),
            ("mark.invert", "selection.mark_invert", "", "", "invert marks",
             "Mark the listed nodes that are not marked, and unmark the others."),
            ("mark.clear", "selection.mark_clear", "", "marks", "clear marks", "Unmark all nodes."),
            ("edit.copy", "selection.copy", "y", "nodes", "copy nodes",
             "Copy the marked nodes, or the node at the cursor, with their weights.", "copy, yank"),
            ("edit.cut", "selection.cut", "ctrl+x", "nodes", "cut nodes",
             "Copy the marked nodes, or the node at the cursor, and delete them.", "cut"),
            ("edit.paste", "selection.paste", "p", "copied", "paste nodes",
             "Paste the copied nodes into the graph at the cursor, in any tab.", "paste"),
            ("edit.many", "selection.edit_many", "E", "nodes", "edit several",
             "Set attributes that all marked nodes share.", "change all, bulk edit"),
            ("edit.rewrite", "selection.show", "Q", "", "find and rewrite",
             "Find a pattern, initially that of the marked nodes; mark or replace matches.",
             "pattern, match, replace subgraph, fuse, graph rewriting, rule"),
            common="document", group="Mark",
            menus={"edit.paste": "scope", "mark.menu": "node scope"},
        ),
    )  # fmt: skip

    panes: Panes
    navigation: Navigation
    history: EditHistory
    inference: Inference
    editing: Editing

    def conditions(self, cursor: Cursor) -> set[str]:
        return {"copied"} if host(self.page).copied_nodes is not None else set()

    def set_marks(self, nodes: Iterable[Node]) -> None:
        """Mark only these nodes, and show how many they are."""
        marks: set[Hashable] = set(nodes)
        self.panes.explorer.list.set_marks(marks)
        self.say(f"{fmt.plural(len(marks), 'node')} marked", 2)

    def add_marks(self, nodes: Iterable[Node]) -> None:
        """Mark more nodes."""
        from dld_tui.core.model.document import Node

        before = {mark for mark in self.panes.explorer.list.marks if isinstance(mark, Node)}
        self.set_marks(before.union(nodes))

    def mark_more(self) -> None:
        """Ask what to mark."""
        marks, node = self.cursor.marks, self.cursor.node
        at_node = node is not None
        rows: Sequence[tuple[str, str, bool, Callable[[], None]]] = (
            ("f", "nodes that match a filter", True, self.mark_filter),
            ("n", "nodes whose names begin with …", True, self.mark_name),
            ("t", "nodes of the same operator type", at_node, self.mark_same),
            ("u", "upstream: what they are computed from", at_node or bool(marks),
             self.mark_upstream),
            ("d", "downstream: what is computed from them", at_node or bool(marks),
             self.mark_downstream),
            ("b", "between: all nodes on paths between them", bool(marks), self.mark_between),
            ("i", "invert: what is not marked now", True, self.mark_invert),
            ("c", "clear the marks", bool(marks), self.mark_clear),
        )  # fmt: skip
        options = [(key, label, action) for key, label, fits, action in rows if fits]
        self.ask_which("Mark", f"{fmt.plural(len(marks), 'node')} marked.", options)

    @task()
    async def mark_filter(self) -> None:
        """Mark the nodes that an advanced filter lets through."""
        from dld_tui.widgets.explorer.node_filter import FilterDialog

        nodes = list(all_nodes(self.model.listing))
        dialog = FilterDialog(nodes, self.model.listing.count_kinds(), None)
        dialog.TITLE_TEXT = "Mark by filter"
        dialog.KEYS = "Enter mark  Space choose  ^X clear  Esc close"

        answer = await self.ask(dialog)
        if answer is not None:
            self._mark_fitting(nodes, answer)

    @task("mark", replace=True)
    async def _mark_fitting(self, nodes: Sequence[Node], fits: NodeFilter) -> None:
        """Judge in slices between which keys are answered."""
        fitting, deadline = [], monotonic() + _SLICE_S
        for node in nodes:
            if fits(node):
                fitting.append(node)
            if monotonic() > deadline:
                await asyncio.sleep(0)
                deadline = monotonic() + _SLICE_S
        self.add_marks(fitting)

    @task()
    async def mark_name(self) -> None:
        """Mark the nodes whose shown names begin with a text."""
        from dld_tui.widgets.dialogs.dialogs import PromptDialog

        model = self.model.listing
        entries = [model.entry(node) for node in all_nodes(model)]

        def problem(text: str) -> str | None:
            if not text or any(entry.label.startswith(text) for entry in entries):
                return None
            return "No node's name begins with this"

        message = "Mark the nodes whose names begin with:"
        start = self._name_scope()
        text = await self.ask(PromptDialog("Mark by name", message, start, check=problem))
        if text:
            self.add_marks(entry.node for entry in entries if entry.label.startswith(text))

    def _name_scope(self) -> str:
        """Return the name scope of the node at the cursor, or the folder's."""
        cursor, model = self.cursor, self.model.listing
        branch, node = cursor.branch, cursor.node
        if branch is not None and branch.kind == "folder" and branch.members:
            first = branch.members[0].label
            return first[: branch.start + len(branch.label)]
        if node is None:
            return ""
        separator = name_separator(model.entries(node.scope))
        head, is_nested, _ = model.entry(node).label.rpartition(separator)
        return head + is_nested

    def mark_same(self) -> None:
        """Mark the nodes of the operator type at the cursor."""
        node = self.cursor.node
        if node is None:
            return
        model = self.model.listing
        kind = model.entry(node).kind
        self.add_marks(n for n in all_nodes(model) if model.entry(n).kind == kind)

    def mark_between(self) -> None:
        """Mark all nodes on paths between the marked ones."""
        from dld_tui.core.model.document import traversal

        self._follow(traversal.between, self.model.marked(self.cursor))

    def mark_upstream(self) -> None:
        """Mark what the chosen nodes are computed from."""
        from dld_tui.core.model.document import traversal

        self._follow(traversal.upstream_of, self.model.chosen_nodes)

    def mark_downstream(self) -> None:
        """Mark what is computed from the chosen nodes."""
        from dld_tui.core.model.document import traversal

        self._follow(traversal.downstream_of, self.model.chosen_nodes)

    def _follow(self, along: Callable[[Sequence[Node]], set[Node]], start: Sequence[Node]) -> None:
        if not start:
            return
        reached: list[set[Node]] = []
        large = self.model.listing.total > _FEW
        self.perform(
            "Following the links",
            lambda: reached.append(along(start)),
            lambda: self.set_marks(reached[0]),
            large=large,
        )

    def mark_invert(self) -> None:
        """Mark what passes the filters and is not marked, and nothing else."""
        marks = self.panes.explorer.list.marks
        self.set_marks(node for node in matching_nodes(self.model.listing) if node not in marks)

    def mark_clear(self) -> None:
        """Mark nothing."""
        self.panes.explorer.list.set_marks(set())

    @task()
    async def mark_precision(self) -> None:
        """Ask for a precision and mark the nodes that are set to it."""
        counts = Counter(map(precision_of, all_nodes(self.model.listing)))
        counts.pop("", None)
        if not counts:
            self.say(hint("No node has a precision yet; {layer.precision} sets one"))
            return

        options = [
            (key, f"{visible(name)}  {fmt.plural(count, 'node')}", name)
            for key, (name, count) in zip(_KEYS, counts.most_common(), strict=False)
        ]
        precision = await self.pick("Mark", "Nodes of which precision?", options)
        if precision is not None:
            nodes = all_nodes(self.model.listing)
            fitting: set[Hashable] = {node for node in nodes if precision_of(node) == precision}
            self.panes.explorer.list.set_marks(fitting)

    def copy(self) -> None:
        """Copy the marked nodes, or the one at the cursor."""
        self._copy("copied", lambda nodes: None)

    def cut(self) -> None:
        """Copy the marked nodes, or the one at the cursor, and delete them."""
        self._copy("cut", lambda nodes: self.editing.delete_nodes(nodes, reconnect=False))

    def _copy(self, word: str, then: Callable[[Sequence[Node]], None]) -> None:
        from dld_tui.core.model.document.parts.fragment import fragment_of
        from dld_tui.screens.workspace.editing import outer_nodes

        nodes = outer_nodes(self.model.chosen_nodes)
        if not nodes:
            return
        fragments: list[Fragment] = []

        def copied() -> None:
            host(self.page).copied_nodes = fragments[0]
            self._share(fragments[0])
            self.say(f"{fmt.plural(len(nodes), 'node')} {word}: {hint('{edit.paste} pastes')}")
            self.page.conditions_changed()
            then(nodes)

        self.perform(
            "Copying", lambda: fragments.append(fragment_of(nodes)), copied, large=len(nodes) > MANY
        )

    def _share(self, fragment: Fragment) -> None:
        """Put a small fragment on the clipboard of the terminal, as JSON."""
        if fragment.size <= _MOST_SHARED:
            text = json.dumps({"nodes": fragment.to_json(self.document)})
            App.copy_to_clipboard(self.app, text)  # not the app's own, which tells of it

    def paste(self) -> None:
        """Add the copied nodes to the graph at the cursor."""
        from dld_tui.core.model.edits import pasting

        fragment = host(self.page).copied_nodes
        if fragment is None:
            return
        scope = self.cursor.target_scope or self.model.listing.root
        transactions: list[Transaction] = []

        def paste() -> Transaction:
            data = fragment.to_json(self.document, scope)
            transactions.append(
                self.document.apply(pasting.paste_nodes(scope=scope.path, fragment=data))
            )
            return transactions[0]

        def done() -> None:
            self._show_pasted(transactions[0])

        large = fragment.count > MANY or fragment.size > _LARGE
        self.history.change(
            f"Pasting {fmt.plural(fragment.count, 'node')}", [paste], large=large, done=done
        )

    def _show_pasted(self, transaction: Transaction) -> None:
        from dld_tui.core.model.document.transactions import Splice

        pasted = [
            node
            for primitive in transaction.primitives
            if isinstance(primitive, Splice) and primitive.list_name == "node"
            for node in primitive.inserted
        ]
        self.panes.explorer.list.set_marks(set(pasted))
        if pasted:
            self.navigation.go_to(pasted[0])

    @task()
    async def fold(self) -> None:
        """Show what folding the chosen nodes makes, and do it."""
        from dld_tui.core.model.edits import folding
        from dld_tui.core.model.edits.folding import plan_fold

        nodes = self.model.chosen_nodes
        if not nodes:
            return
        try:
            fold = plan_fold(self.document, nodes)
        except DldError as error:
            self.complain(error)
            return
        lines = []
        for name in fold.outputs[:_MOST_LISTED]:
            known = fold.scope.value_type(name)
            lines.append(f"{visible(name)}  {known.text if known is not None else 'type unknown'}")
        more = len(fold.outputs) - len(lines)
        lines += [f"and {more} more"] if more else []
        pairs: list[JSON] = [[list(node.scope.path), node.ref] for node in fold.nodes]
        count = fmt.plural(len(fold.nodes), "node")
        what = "a constant" if len(fold.outputs) == 1 else "constants"
        verb = "becomes" if len(fold.nodes) == 1 else "become"
        message = "\n".join([f"{count} {verb} {what}:", *lines])
        if await self.pick("Fold", message, [("f", "fold", True), ("k", "keep", False)]):
            edit = partial(self.document.apply, folding.fold_nodes(nodes=pairs))
            self.history.change("Folding", [edit], large=True)

    def edit_many(self) -> None:
        """Set the attributes that the marked nodes share."""
        from dld_tui.widgets.dialogs.nodes import groups_of

        nodes = self.model.chosen_nodes
        if not nodes:
            return
        groups: list[TypeGroup] = []

        self.perform(
            "Reading attributes",
            lambda: groups.extend(groups_of(nodes)),
            lambda: self._edit_groups(nodes, groups),
            large=len(nodes) > MANY,
        )

    @task()
    async def _edit_groups(self, nodes: Sequence[Node], groups: list[TypeGroup]) -> None:
        from dld_tui.widgets.dialogs.nodes import BatchDialog

        if not any(group.attributes for group in groups):
            self.say("These operators have no editable attributes", 4)
            return
        edit = await self.ask(BatchDialog(groups))
        if edit is not None and all(is_alive(node) for node in nodes):
            step = partial(self.document.apply, edit)
            self.history.change("Setting attributes", [step], large=len(nodes) > MANY)

    def show(self) -> None:
        """Ask for a pattern or a rule, beginning with the pattern of the marked nodes."""
        from dld_tui.core.model.rewrite.matcher import pattern_of

        value = ""
        marked = self.model.marked(self.cursor)
        try:
            value = pattern_of(marked) if marked else ""
        except DldError as error:
            self.complain(error)
        self.offer(value)

    @task()
    async def offer(self, text: str) -> None:
        """Show what rules or a pattern find and would change; Enter carries it out.

        Meanwhile what is found is marked, in the list and on the graph. Rules with conditions on
        types wait until these are inferred: before that, they would find nothing.
        """
        from dld_tui.core.model.rewrite.query import Completion
        from dld_tui.core.model.rewrite.rule import known_rules, rule_names
        from dld_tui.widgets.dialogs.nodes import RewriteDialog

        await self._types_for(text)
        nodes = (node for scope in self.document.scopes() for node in scope.nodes)
        completion = Completion(nodes, rule_names())
        marked = self.panes.explorer.list
        before = set(marked.marks)

        async def look(pattern: str) -> tuple[str, Sequence[str]]:
            if pattern.strip():
                return await self.look(pattern)
            marked.set_marks(before)
            return _GUIDE, _EXAMPLES

        answer = await self.ask(RewriteDialog(text, look, completion, known_rules))
        marked.set_marks(before)
        if answer:
            await self._types_for(answer)
            self.carry_out(answer)

    async def _types_for(self, text: str) -> None:
        """Wait for the types of the model where rules need them."""
        try:
            needs_types = any(rule.needs_types for rule in self._rules(text)) if text else False
        except DldError:
            return
        if needs_types:
            await self.inference.typed(always=True)

    async def look(self, text: str) -> tuple[str, Sequence[str]]:
        """Return how many hits there are, and what they are or what would change.

        Raises:
            DldError: The text is no pattern and no rule.
        """
        from dld_tui.core.model.edits.rewriting import preview
        from dld_tui.core.model.rewrite.pattern import parse_pattern
        from dld_tui.core.model.rewrite.rule import text_of_rules
        from dld_tui.core.model.rewrite.why import why_nothing

        rules = self._rules(text)
        rewrites = [rewrite for rule in rules for rewrite in rule.rewrites]
        patterns = [rewrite.pattern for rewrite in rewrites] or [parse_pattern(text)]
        if self.document.is_locked:
            return "The model is being edited", ()
        hits_by_pattern = await self._hits(patterns)
        nodes: set[Hashable] = {
            node for hits in hits_by_pattern for hit in hits for node in hit.nodes
        }
        self.panes.explorer.list.set_marks(nodes)
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
        from dld_tui.core.model.edits.hit_replacement import RewriteRefusal
        from dld_tui.core.model.edits.rewriting import planned_lines

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
        from dld_tui.core.model.rewrite.matcher import Matcher

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
        from dld_tui.core.model.edits import rewriting
        from dld_tui.core.model.rewrite.matcher import find_hits
        from dld_tui.core.model.rewrite.pattern import parse_pattern
        from dld_tui.core.model.rewrite.rule import text_of_rules

        try:
            rules = self._rules(text)
            if not rules:
                hits = find_hits(self.document, parse_pattern(text))
                self.set_marks(node for hit in hits for node in hit.nodes)
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
        from dld_tui.core.model.edits.rewriting import preview
        from dld_tui.core.model.rewrite.rule import text_of_rules
        from dld_tui.core.model.rewrite.why import why_nothing

        left = list(preview(self.document, text_of_rules(rules)).refused)
        return visible((left or why_nothing(self.document, rules))[0])

    @staticmethod
    def _rules(text: str) -> list[Rule]:
        """Return the rules that a text is or names; none where it is a pattern."""
        from dld_tui.core.model.rewrite.expression import Reader
        from dld_tui.core.model.rewrite.pattern import read_pattern
        from dld_tui.core.model.rewrite.rule import rule_names, rules_of

        words = text.split()
        if set(words) <= set(rule_names()):
            return rules_of(words)
        reader = Reader(text)
        read_pattern(reader)
        return rules_of([text]) if not reader.is_done else []


LIVE = 500
"""Nodes of a model of which all is shown that rules would change while they are typed; of larger
ones the first place is."""
