"""Rewriting: what rules find is replaced, as one edit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import EditError
from dld_tui.core.model.document.edit_registry import edit
from dld_tui.core.model.document.local_functions import calls_itself, key_of
from dld_tui.core.model.document.node import Node
from dld_tui.core.model.document.operator_matching import schema_in
from dld_tui.core.model.document.scope import Scope
from dld_tui.core.model.document.transactions import Transaction
from dld_tui.core.model.document.traversal import names_taken
from dld_tui.core.model.edits.attributes import set_attribute
from dld_tui.core.model.edits.hit_replacement import (
    HitReplacement,
    RewriteRefusal,
    line_of,
    typed_attribute,
)
from dld_tui.core.model.edits.metadata import set_precision
from dld_tui.core.model.edits.nodes import cast_nodes, remove_records
from dld_tui.core.model.rewrite.expression import UNKNOWN, plain
from dld_tui.core.model.rewrite.matcher import Ends, Hit, Matcher, disjoint
from dld_tui.core.model.rewrite.pattern import (
    Variable,
)
from dld_tui.core.model.rewrite.rule import Action, Rewrite, Rule, parse_rules
from dld_tui.core.text import quoted
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document

MOST_ROUNDS = 1_000
"""Of one rule."""
MOST_REPEATS = 8
"""Rounds that change as much as the one before, and leave as many nodes: no reduction does that."""
MOST_TURNS = 100
"""Of all rules: how often one may find what another has made."""
MOST_GENERATIONS = 4
"""The most generations in which a rule may rewrite its own results."""


@dataclass
class RewriteResult:
    """What rules did."""

    counts: dict[str, int] = field(default_factory=dict)
    """Hits that were replaced, by rule."""
    refused: dict[str, int] = field(default_factory=dict)
    """Hits that were not, by the reason. Untrusted text."""
    hits: list[tuple[str, tuple[str, ...], list[str], list[str]]] = field(default_factory=list)
    """Rule, scope, and lines of removed and added nodes; filled in on request."""


@edit
def rewrite(
    document: Document,
    transaction: Transaction,
    *,
    rules: str,
    at: Sequence[Sequence[JSON]] | None = None,
) -> str:
    """Replace the hits of patterns, in bodies and functions too, until there are no more.

    Args:
        rules: The text of rules; see :mod:`dld_tui.core.model.rewrite.rule`.
        at: Replace only the hits whose last node is one of these, ``[[SCOPE, NODE], …]``, once.
    """
    rewritten = rewrite_document(document, transaction, rules, at=at)
    total = sum(rewritten.counts.values())
    if not total and rewritten.refused and at is not None:
        raise EditError(next(iter(rewritten.refused)))
    names = ", ".join(quoted(name) for name in list(rewritten.counts)[:3])
    return f"rewrite {fmt.plural(total, 'place')}" + (f" by {names}" if names else "")


def rewrite_document(
    document: Document,
    transaction: Transaction,
    rules: str,
    *,
    at: Sequence[Sequence[JSON]] | None = None,
    lines: bool = False,
) -> RewriteResult:
    """Carry out rules in a transaction; see :func:`rewrite`.

    Args:
        rules: The text of rules.
        at: As in :func:`rewrite`.
        lines: Whether to return lines of removed and added nodes.

    Raises:
        UsageError: The rules are malformed.
        EditError: They do not end.
    """
    from dld_tui.core.model.document.edit_registry import nodes_at

    chosen = None if at is None else set(nodes_at(document, at))
    work = _Work(document, transaction, lines)
    parsed = parse_rules(rules)
    limit = 1_000 + 5 * sum(len(scope.nodes) for scope in document.scopes())
    last: tuple[object, ...] = ()
    repeats = 0
    for round_number in range(MOST_TURNS):
        counts = {rule.name: work.all_of(rule, chosen, round_number) for rule in parsed}
        busy = [name for name, count in counts.items() if count]
        if not busy or chosen is not None:
            if endless := [f for f in document.functions if calls_itself(f)]:
                name = quoted(endless[0].step)
                raise EditError(f"{name} would call itself after this")
            return work.done
        now = (counts, sum(len(scope.nodes) for scope in document.scopes()))
        repeats, last = (repeats + 1 if now == last else 0), now
        if repeats > MOST_REPEATS or sum(work.done.counts.values()) > limit:
            break
    raise _endless(busy)


def _endless(names: Sequence[str]) -> EditError:
    if len(names) > 1:
        listed = " and ".join(map(quoted, names))
        return EditError(
            f"the rules {listed} never end: each rewrites what the others make",
            hint="Leave one of them out",
        )
    return EditError(
        "the rules never end: each round rewrites the results of the one before",
        hint="Add a condition that no longer holds afterwards",
    )


def preview(document: Document, rules: str) -> RewriteResult:
    """Return what rules would do; the document is unchanged and no listener is notified."""
    scratch = Transaction.of(rewrite(rules=rules))
    try:
        return rewrite_document(document, scratch, rules, lines=True)
    finally:
        scratch.roll_back()


def planned_lines(
    document: Document, hit: Hit, rewrite_rule: Rewrite
) -> tuple[list[str], list[str]]:
    """Return lines of the nodes that would go and come at one place; nothing is changed.

    Raises:
        Refused: It cannot be replaced.
        EditError: The replacement is none.
    """
    if hit.problem:
        raise RewriteRefusal(hit.problem)
    if not rewrite_rule.removes:
        return [line_of(node) for node in hit.nodes], [rewrite_rule.text.partition("=>")[2].strip()]
    local = {key_of(function)[:2] for function in document.functions}
    return HitReplacement(document, hit, rewrite_rule, {}, local, Ends(hit.scope)).lines


class _Work:
    """One run of rules over a document."""

    def __init__(self, document: Document, transaction: Transaction, lines: bool) -> None:
        self._document = document
        self._transaction = transaction
        self._lines = lines
        self.done = RewriteResult()
        self._made: dict[Node, tuple[str, int, int]] = {}
        """By which rewrite and in which application a node was made, and its generation."""
        self._applications = 0
        self._given_up: set[str] = set()
        """Rewrites of which a search took too long to be made again."""
        self._probed: dict[str, int] = {}
        """By rewrite: the latest generation of its own results that it has replaced."""
        self._refused: dict[str, dict[str, int]] = {}
        self._functions: dict[bytes, str] = {}
        self._local = {key_of(function)[:2] for function in document.functions}

    def all_of(self, rule: Rule, chosen: set[Node] | None, round_number: int) -> int:
        """Replace what one rule finds until it finds nothing more; return how many."""
        total = 0
        for again in range(MOST_ROUNDS):
            changed = 0
            for number, rewrite_rule in enumerate(rule.rewrites):
                if rewrite_rule.removes or not (round_number or again):
                    changed += self.once(rule.name, f"{rule.name} {number}", rewrite_rule, chosen)
            total += changed
            if not changed or chosen is not None:
                return total
        raise _endless([rule.name])

    def once(self, name: str, key: str, rewrite_rule: Rewrite, chosen: set[Node] | None) -> int:
        """Replace the hits that there are now and return how many."""
        if key in self._given_up:
            return 0
        search, count = Matcher(rewrite_rule.pattern), 0
        refused = self._refused[key] = {}
        for scope in list(self._document.scopes()):
            if not _is_attached(scope) or self._is_target(rewrite_rule, scope):
                continue
            scope_hits = search.hits_in(scope)
            if chosen is not None:
                scope_hits = [hit for hit in scope_hits if hit.last in chosen]
            for hit in scope_hits:
                if hit.problem:
                    _count(refused, hit, hit.problem)
            hits, _ = disjoint([hit for hit in scope_hits if not hit.problem])
            late = max(hits, key=lambda hit: self._generation(key, hit), default=None)
            if late is not None and self._generation(key, late) > self._probed.get(key, 0):
                # One first: rules that do not end would double the model with each generation.
                hits, self._probed[key] = [late], self._generation(key, late)
            gone: list[str] = []
            ends = Ends(scope) if hits else None
            # From the last one on, so that the places of those before stay right.
            for hit in reversed(hits):
                assert ends is not None
                if not _is_current(hit):
                    continue  # another one has changed it: the next round finds it as it is now
                try:
                    gone += self._apply(key, rewrite_rule, hit, ends)
                except RewriteRefusal as error:
                    _count(refused, hit, str(error))
                    continue
                count += 1
                self.done.counts[name] = self.done.counts.get(name, 0) + 1
                if self._lines:
                    _, place, went, came = self.done.hits.pop()
                    self.done.hits.append((name, place, went, came))
            self._forget(scope, gone)
        for node in search.given_up[:1]:
            self._given_up.add(key)
            refused[f"{quoted(node.ref)}: there are too many ways to try around it"] = len(
                search.given_up
            )
        self.done.refused = {
            text: number for reasons in self._refused.values() for text, number in reasons.items()
        }
        return count

    def _is_target(self, rewrite_rule: Rewrite, scope: Scope) -> bool:
        """Return whether a scope belongs to the function that replaces the hits."""
        while scope.parent is not None:
            scope = scope.parent
        if not scope.is_function:
            return False
        domain, name, _ = key_of(scope)
        if rewrite_rule.action is not None:
            return (
                f"{domain}.{name}" == rewrite_rule.action.name or name in self._functions.values()
            )
        calls = rewrite_rule.replacement.calls if rewrite_rule.replacement is not None else ()
        return any((domain, name) in call.kinds for call in calls)

    def _apply(self, key: str, rewrite_rule: Rewrite, hit: Hit, ends: Ends) -> list[str]:
        """Replace one hit; return the values that are gone."""
        if rewrite_rule.action is not None and not rewrite_rule.removes:
            self._act(rewrite_rule.action, hit)
            if self._lines:
                self._note(hit, [], [], rewrite_rule.text.partition("=>")[2].strip())
            return []
        generation = self._generation(key, hit)
        if generation > MOST_GENERATIONS:
            raise EditError(
                f"the rule {quoted(key.rpartition(' ')[0])} never ends: it rewrites its own"
                " results",
                hint="Add a condition that no longer holds afterwards",
            )
        plan = HitReplacement(self._document, hit, rewrite_rule, self._functions, self._local, ends)
        added = plan.carry_out(self._transaction)
        self._applications += 1
        for node in added:
            self._made[node] = (key, self._applications, generation)
        if self._lines:
            self._note(hit, plan.lines[0], added, "")
        outputs = {output for node in added for output in node.outputs}
        return [value for value in plan.gone if value not in outputs]

    def _generation(self, key: str, hit: Hit) -> int:
        """Return how many generations of its own results a rewrite has replaced here."""
        origins = {self._made.get(node) for node in hit.nodes}
        origin = next(iter(origins))
        is_own = len(origins) == 1 and origin is not None and origin[0] == key
        return origin[2] + 1 if is_own and origin is not None else 0

    def _note(self, hit: Hit, removed: list[str], added: Iterable[Node], action: str) -> None:
        came = [line_of(node) for node in added]
        if action:
            removed, came = [line_of(node) for node in hit.nodes], [action]
        self.done.hits.append(("", hit.scope.path, removed, came))

    def _act(self, action: Action, hit: Hit) -> None:
        places: list[list[JSON]] = [[list(n.scope.path), n.ref] for n in hit.nodes]
        try:
            if action.kind == "cast":
                cast_nodes.run(
                    self._document, self._transaction, nodes=places, precision=action.name
                )
            elif action.kind == "precision":
                set_precision.run(
                    self._document, self._transaction, nodes=places, precision=action.name
                )
            else:
                self._set(action, hit)
        except EditError as error:
            raise RewriteRefusal(error.message) from None

    def _set(self, action: Action, hit: Hit) -> None:
        calls = hit.pattern.body.calls
        for label, name, expression in action.values:
            value = plain(expression.value(hit.name))
            if value is UNKNOWN or value is None:
                raise RewriteRefusal(f"the value of {name} is not known")
            for call, node in zip(calls, hit.nodes, strict=True):
                if label and call.label != label:
                    continue
                schema = schema_in(node.op_type, node.domain, node.scope)
                kind, ready = typed_attribute(name, value, schema)
                set_attribute.run(
                    self._document, self._transaction, scope=list(node.scope.path), node=node.ref,
                    attribute=name, kind=kind, value=ready,
                )  # fmt: skip

    def _forget(self, scope: Scope, values: Sequence[str]) -> None:
        """Remove inputs of the replaced nodes that are now unused, and their records."""
        if not values:
            return
        values = [*values, *self._drop_unused(scope, values)]
        outputs = set(scope.outputs)
        lost = [name for name in dict.fromkeys(values) if scope.definition(name) is None]
        for list_name in ("value_info", "quantization_annotation"):
            if list_name in scope.records:
                index = scope.named(list_name)
                records = [r for n in lost if n not in outputs for r in index.all(n)]
                remove_records(self._transaction, scope, list_name, records)

    def _drop_unused(self, scope: Scope, values: Sequence[str]) -> list[str]:
        """Remove the producers of values of this scope or an outer one that are now unused.

        Return the values that are gone with it.
        """
        lost: list[str] = []
        waiting = [(scope, name) for name in dict.fromkeys(values)]
        while waiting:
            weights: dict[Scope, list[Any]] = {}
            nodes: dict[Scope, dict[Node, None]] = {}
            for seen_in, name in waiting:
                definition = seen_in.resolve(name)
                if definition is None or definition.scope.is_used(name):
                    continue
                home, node = definition.scope, definition.node
                if definition.kind == "initializer" and name not in home.inputs:
                    weights.setdefault(home, []).extend(home.named("initializer").all(name))
                elif node is not None and not any(map(home.is_used, filter(None, node.outputs))):
                    nodes.setdefault(home, {})[node] = None
            for home, records in weights.items():
                remove_records(self._transaction, home, "initializer", records)
            waiting = []
            for home, unused in nodes.items():
                remove_records(self._transaction, home, "node", list(unused))
                for node in unused:
                    lost += (output for output in node.outputs if home is scope)
                    waiting += ((home, name) for name in names_taken(node))
        return lost


def _count(refused: dict[str, int], hit: Hit, reason: str) -> None:
    text = f"{quoted(hit.last.ref)}: {reason}"
    refused[text] = refused.get(text, 0) + 1


def _is_attached(scope: Scope) -> bool:
    """Return whether a scope is still part of its document."""
    while scope.owner is not None:
        try:
            scope.owner.scope.index_of(scope.owner)
        except ValueError:
            return False
        scope = scope.owner.scope
    return True


def _is_current(hit: Hit) -> bool:
    """Return whether a hit is still valid."""
    scope = hit.scope
    for call, node in zip(hit.pattern.body.calls, hit.nodes, strict=True):
        for name, actual in zip(call.outputs, node.outputs, strict=False):
            if name and hit.values[name] != actual:
                return False
            if actual and scope.producer(actual) is not node:
                return False
        inputs = node.inputs
        for item in call.inputs:
            if isinstance(item, Variable) and item.name != "_":
                actual = hit.values.get(item.name, "")
                if actual and actual not in inputs:
                    return False
    return True
