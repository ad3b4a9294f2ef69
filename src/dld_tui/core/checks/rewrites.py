"""Rules of the library of ``dld rewrite`` that find something in a model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dld_tui.core import fmt
from dld_tui.core.checks.findings import Finding, speed_finding
from dld_tui.core.document.document import Document
from dld_tui.core.document.node import Node
from dld_tui.core.rewrite.matcher import Hit, Matcher
from dld_tui.core.rewrite.rule import Rule, own_rules

_LOOKED_FOR = (
    ("attention", "attention-onnxruntime"), ("rotary", "rotary-onnxruntime"),
    ("layer-norm",), ("layer-norm-more",), ("rms-norm",), ("gelu", "gelu-onnxruntime"),
    ("hard-swish",), ("no-ops",), ("shapes",), ("qdq-residual",), ("qdq-pooling",), ("qdq-scales",),
    ("qdq-weights",),
)  # fmt: skip
"""Rules of which the first that finds something is named."""
_CORE = {
    "attention": {"MatMul", "Softmax"},
    "attention-onnxruntime": {"MatMul", "Softmax"},
}
"""Operators without which a hit of a rule only prepares for others."""


def rewrite_steps(document: Document) -> Iterator[Sequence[Finding]]:
    """Yield a finding for each rule that finds something, none in between.

    Args:
        document: The model; types and shapes should have been inferred before.
    """
    rules = {rule.name: rule for rule in own_rules()}
    for names in _LOOKED_FOR:
        for name in names:
            places: list[Node] = []
            for _ in _places(document, rules[name], places):
                yield ()
            if places:
                yield [_finding(rules[name], places)]
                break


def _places(document: Document, rule: Rule, places: list[Node]) -> Iterator[None]:
    """Enter the last node of each place that a rule would change."""
    if rule.name == "shapes" and not any(s.nodes_of_type("Shape") for s in document.scopes()):
        return  # it looks at all arithmetic
    core = _CORE.get(rule.name, set())
    seen: set[Node] = set()
    for one in rule.rewrites:
        search = Matcher(one.pattern)
        for scope in document.scopes():
            hits: list[Hit] = []
            for _ in search.gradually(scope, hits):
                yield
            for hit in hits:
                is_whole = core <= {node.op_type for node in hit.nodes}
                if not hit.problem and is_whole and hit.last not in seen:
                    seen.add(hit.last)
                    places.append(hit.last)
        yield


def _finding(rule: Rule, places: Sequence[Node]) -> Finding:
    count = fmt.plural(len(places), "place")
    message = f"{count} for the rule {rule.name}: {rule.about.rstrip('.')} ({rule.gains})"
    return speed_finding("speed:rewrite", message, places[0], rules=(rule.name,))
