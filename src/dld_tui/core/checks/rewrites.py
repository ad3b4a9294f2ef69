"""Rules of the library of ``dld rewrite`` that find something in a model."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from dld_tui.core import fmt
from dld_tui.core.checks.findings import Finding, speed_finding
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.node import Node
from dld_tui.core.model.rewrite.matcher import Ends, Hit, Matcher
from dld_tui.core.model.rewrite.rule import Rule, own_rule

ATTENTION = ("attention", "attention-grouped", "attention-onnxruntime")
ROTARY = ("rotary", "rotary-onnxruntime")
NORM = ("rms-norm", "rms-norm-onnxruntime")
_LOOKED_FOR = (
    ATTENTION, ROTARY, NORM, ("layer-norm",), ("gelu", "gelu-onnxruntime"),
    ("hard-swish",), ("no-ops",), ("shapes",), ("qdq-residual",), ("qdq-pooling",), ("qdq-scales",),
    ("qdq-weights",),
)  # fmt: skip
"""Rules of which the first that finds something is named."""
_CORE = dict.fromkeys(ATTENTION, frozenset(("MatMul", "Softmax")))
"""Operators without which a hit of a rule only prepares for others."""
_STARTS = {"shapes": {"Shape"}}
"""Operators that a model must have for it to be worth looking: such a rule looks at much."""


def rewrite_steps(
    document: Document,
    named: Collection[str] = frozenset(),
    advised: Collection[tuple[Node | None, str]] = frozenset(),
) -> Iterator[Sequence[Finding]]:
    """Yield a finding for each rule that finds something, none in between.

    Args:
        document: The model; types and shapes should have been inferred before.
        named: Rules of which other findings tell.
        advised: Nodes for which other findings advise a rule, with its name.
    """
    for names in _LOOKED_FOR:
        for name in names:
            places: list[Node] = []
            for _ in _places(document, own_rule(name), places):
                yield ()
            others = [node for node in places if (node, name) not in advised]
            if others and name not in named:
                yield [_finding(own_rule(name), others)]
            if places:
                break


def fitting_rule(document: Document, *names: str) -> tuple[str, ...]:
    """Return the first of some rules that finds something in a model, or none."""
    for name in names:
        places: list[Node] = []
        if any(places for _ in _places(document, own_rule(name), places)) or places:
            return (name,)
    return ()


def rules_at(node: Node, *names: str) -> tuple[str, ...]:
    """Return those of some rules that would change a node."""
    ends = Ends(node.scope)
    return tuple(
        name
        for name in names
        if any(
            not hit.problem
            for rewrite in own_rule(name).rewrites
            for variant in rewrite.pattern.variants
            for hit in Matcher(variant).hits_through([node], ends)
        )
    )


def _places(document: Document, rule: Rule, places: list[Node]) -> Iterator[None]:
    """Enter the last node of each place that a rule would change; yields between steps."""
    scopes = list(document.scopes())
    starts, core = _STARTS.get(rule.name, set()), _CORE.get(rule.name, frozenset())
    if not all(any(scope.nodes_of_type(name) for scope in scopes) for name in starts):
        return
    seen: set[Node] = set()
    for rewrite in rule.rewrites:
        calls = rewrite.pattern.body.calls
        if not core <= {name for call in calls for _, name in call.kinds}:
            continue
        search = Matcher(rewrite.pattern)
        for scope in scopes:
            hits: list[Hit] = []
            for _ in search.gradually(scope, hits):
                yield
            for hit in hits:
                if not hit.problem and hit.last not in seen:
                    seen.add(hit.last)
                    places.append(hit.last)
        yield


def _finding(rule: Rule, places: Sequence[Node]) -> Finding:
    count = fmt.plural(len(places), "place")
    message = f"{count} for the rule {rule.name}: {rule.about.rstrip('.')} ({rule.gains})"
    return speed_finding("speed:rewrite", message, places[0], rules=(rule.name,))
