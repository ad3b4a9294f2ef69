"""Findings and the rules by id, those about speed and those of other programs included.

Findings that other programs report have ids that start with ``onnx:``, ``onnxruntime:`` or
``polygraphy:``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import field, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.locations import LocatedMessage, node_at, scope_at
from dld_tui.core.model.document.node import Node
from dld_tui.core.model.document.scope import Scope
from dld_tui.core.model.document.transactions import Edit
from dld_tui.core.model.rewrite import command_of
from dld_tui.core.model.tensors.value_types import ValueType
from dld_tui.core.text import clip, visible
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.model.shapes.inference import Inference

Level: TypeAlias = Literal["error", "warning", "info"]

RULES: dict[str, Level] = {
    # the model
    "ir-missing": "error",
    "ir-unsupported": "warning",
    "opset-missing": "error",
    "opset-future": "warning",
    "opset-import": "error",
    "duplicate-opset": "warning",
    "unused-opset": "info",
    "unknown-domain": "info",
    "model-size": "error",
    "initializer-not-input": "warning",
    "initializer-is-input": "info",
    "graph-name": "info",
    "empty-graph": "error",
    # functions and subgraphs
    "recursive-function": "error",
    "duplicate-function": "error",
    "unused-function": "info",
    "nesting-depth": "warning",
    "too-many-parts": "error",
    "subgraph-signature": "error",
    "outer-output": "error",
    # links
    "undefined-input": "error",
    "missing-output": "error",
    "graph-cycle": "error",
    "unsorted-nodes": "warning",
    "unused-node": "warning",
    "unused-output": "info",
    "unused-input": "info",
    # names
    "duplicate-producer": "error",
    "duplicate-node-name": "error",
    "duplicate-input": "error",
    "duplicate-output": "warning",
    "shadowed-value": "error",
    "empty-name": "error",
    "odd-name": "info",
    # operators
    "unknown-operator": "error",
    "deprecated-operator": "warning",
    "arity": "error",
    "missing-input": "error",
    "nameless-output": "error",
    "unknown-attribute": "error",
    "attribute-type": "error",
    "missing-attribute": "error",
    "duplicate-attribute": "error",
    "attribute-reference": "error",
    "attribute-value": "error",
    # what ONNX Runtime says
    "onnxruntime:load": "error",
    "onnxruntime:run": "error",
    "onnxruntime:crash": "error",
    "onnxruntime:limit": "warning",
    "no-kernel": "warning",
    # types and shapes
    "onnx:shape-inference": "error",
    "onnx:inference-limit": "warning",
    "operand-shape": "error",
    "input-type": "error",
    "output-type": "error",
    "type-conflict": "error",
    "shape-conflict": "warning",
    "missing-type": "error",
    "shape": "error",
    "negative-dimension": "warning",
    "unused-value-info": "info",
    # tensors
    "unused-initializer": "warning",
    "duplicate-initializer": "error",
    "tensor-without-data": "error",
    "tensor-data": "error",
    "external-data": "error",
    "external-keys": "warning",
    "external-unused": "info",
}
"""The level that findings of each rule usually have."""

UNSEEN = frozenset(
    {"model-size", "tensor-without-data", "tensor-data", "external-data", "external-keys"}
)
"""Rules about data, in whose place ONNX Runtime gets zeros."""


LOAD, RUN, KERNEL = "onnxruntime:load", "onnxruntime:run", "no-kernel"
OPERANDS = "operand-shape"
CRASH, LIMIT = "onnxruntime:crash", "onnxruntime:limit"
INFERENCE, NOT_INFERRED = "onnx:shape-inference", "onnx:inference-limit"

ORDER: dict[Level, int] = {"error": 0, "warning": 1, "info": 2}


@dataclass(frozen=True, slots=True)
class Repair:
    """What makes the edit that repairs a finding; :mod:`dld_tui.core.checks.repairs` has all."""

    make: Callable[[Finding], Edit | None]
    needs_type: bool = False
    """Whether it needs the type that is inferred for the finding's value: without one there is no
    repair yet."""
    changes_interface: bool = False
    """Whether it changes what a caller may feed, so that it has to be asked for by its rule."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong or odd in a model."""

    level: Level
    rule: str
    """A stable id, e.g. ``graph-cycle``: see `RULES`."""
    message: str
    """One sentence, fit for a terminal."""
    scope: Scope | None = None
    """None when it is about the whole model."""
    node: Node | None = None
    value: str | None = None
    """The value, initializer, input or output that it is about. Untrusted text."""
    repair: Repair | None = field(default=None, compare=False)
    rules: tuple[str, ...] = ()
    """Rules of ``dld rewrite`` that do away with it, in the whole model."""

    @property
    def command(self) -> str | None:
        """What does away with it on a command line; or None."""
        return command_of(self.rules) if self.rules else None

    @property
    def is_fixable(self) -> bool:
        """Whether there is an edit that does away with it, as of now."""
        if self.repair is None:
            return bool(self.rules)
        return not self.repair.needs_type or self.inferred_type is not None

    @property
    def fix(self) -> Edit | None:
        """The edit that repairs it as of now, or None."""
        if self.repair is not None:
            return self.repair.make(self)
        if not self.rules:
            return None
        from dld_tui.core.model.edits.rewriting import rewrite
        from dld_tui.core.model.rewrite.rule import rules_of, text_of_rules

        return rewrite(rules=text_of_rules(rules_of(self.rules)))

    @property
    def inferred_type(self) -> ValueType | None:
        """The inferred type of its value, if that is a tensor of known type."""
        if self.scope is None or self.value is None:
            return None
        known = self.scope.inferred.get(self.value)
        if known is None or known.dtype is None or known.container:
            return None
        return known if self.scope.kind != "graph" or known.dims is not None else None

    def to_json(self) -> JSON:
        """Return the finding as ``dld check --json`` prints it."""
        fix = self.fix
        return {
            "level": self.level,
            "rule": self.rule,
            "message": self.message,
            "scope": None if self.scope is None else list(self.scope.path),
            "node": None if self.node is None else self.node.ref,
            "value": self.value,
            "rewrite": self.command,
            "fix": None if fix is None else {"edit": fix.name, "arguments": fix.arguments},
        }


def make_finding(
    rule: str,
    message: str,
    scope: Scope | None = None,
    node: Node | None = None,
    *,
    value: str | None = None,
    repair: Repair | None = None,
    level: Level | None = None,
) -> Finding:
    """Return a finding at the usual level of its rule."""
    return Finding(level or RULES[rule], rule, message, scope, node, value, repair)


def by_severity(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings with errors first, otherwise in the order they were found."""
    return sorted(findings, key=lambda finding: ORDER[finding.level])


def name_of(name: str) -> str:
    """Return a foreign name for a message: escaped and of bounded length."""
    return clip(visible(name), 80, keep="middle")


def names_of(names: list[str], most: int = 5) -> str:
    """Return a few foreign names for a message, and how many more there are."""
    return fmt.listed(names, most, name_of)


_LEVELS = ("error", "warning", "info")


@dataclass(frozen=True)
class ToolFinding:
    """One thing that a tool of others complains of."""

    level: str
    """``error``, ``warning`` or ``info``."""
    rule: str
    """Such as ``onnx:checker`` and ``polygraphy:onnxruntime``."""
    remark: LocatedMessage


@dataclass
class RuntimeAnswer:
    """What ONNX Runtime said of a model."""

    asked: bool
    version: str | None = None
    providers: list[str] = field(default_factory=list)
    """Short names of those that it was asked with."""
    loaded: bool | None = None
    """Whether it loads the model; None if that was not found out."""
    ran: bool | None = None
    """Whether it ran it on guessed inputs; None if it was not tried."""
    reason: str = ""
    """Why it was not asked, or gave no answer."""


def located_finding(document: Document, level: str, rule: str, remark: LocatedMessage) -> Finding:
    """Return a remark as a finding.

    Args:
        document: The model, as it was when the tool saw it.
        level: ``error`` or ``warning``; anything else is a mere remark.
        rule: A stable id such as ``onnx:checker``.
        remark: The remark.
    """
    known = next((known for known in _LEVELS if known == level), "info")
    place = remark.place
    scope = None if place is None else scope_at(document, place)
    node = None if place is None else node_at(document, place, remark.index)
    return Finding(known, rule, remark.message, scope, node)  # type: ignore[arg-type]


def findings_of(document: Document, reported: Iterable[ToolFinding]) -> list[Finding]:
    """Return the reports of other tools as findings."""
    return [located_finding(document, item.level, item.rule, item.remark) for item in reported]


_NEWER = ("NegativeLogLikelihoodLoss", "in unification between")
"""An operator, and onnx's message on shapes of it that runtimes do not check."""


def complaints_of(inference: Inference) -> list[ToolFinding]:
    """Return what shape inference complains of."""
    held = [*inference.held.values()]
    return [
        ToolFinding("warning", NOT_INFERRED, remark)
        if remark in held
        else ToolFinding("error", INFERENCE, remark)
        for remark in inference.messages
        if not all(part in remark.message for part in _NEWER)
    ]


def without_repeats(of_tools: list[Finding], known: list[Finding]) -> list[Finding]:
    """Leave out what tools say of a node that is known already.

    That is what they say by the same rule, and why ONNX Runtime refuses what has another error.
    """
    rules = {(finding.rule, id(finding.node)) for finding in known if finding.node is not None}
    wrong = {
        id(finding.node)
        for finding in (*known, *of_tools)
        if finding.level == "error" and finding.rule not in (LOAD, RUN)
    }

    def is_known(finding: Finding) -> bool:
        if finding.rule in (LOAD, RUN) and wrong:
            return finding.node is None or id(finding.node) in wrong
        return (finding.rule, id(finding.node)) in rules

    return [finding for finding in of_tools if not is_known(finding)]


def joined(
    of_tools: list[Finding], answer: RuntimeAnswer | None, known: list[Finding]
) -> list[Finding]:
    """Return all findings on a model.

    Args:
        of_tools: Those of tools.
        answer: Of ONNX Runtime.
        known: Those of rules.
    """
    return by_severity(settled([*known, *without_repeats(of_tools, known)], answer))


def settled(findings: Iterable[Finding], answer: RuntimeAnswer | None) -> list[Finding]:
    """Return findings with those errors as warnings that ONNX Runtime takes, where it was asked."""
    if answer is None or not answer.loaded:
        return [*findings]

    def is_refuted(finding: Finding) -> bool:
        if finding.rule == OPERANDS or finding.rule in DECODER_RULES:
            return answer.ran is True and finding.rule != "decoder:config"
        if finding.rule not in RULES or finding.rule in UNSEEN:
            return False
        return not finding.rule.startswith("onnxruntime:")

    return [
        replace(finding, level="warning")
        if finding.level == "error" and is_refuted(finding)
        else finding
        for finding in findings
    ]


DECODER_RULES: dict[str, Level] = {
    "decoder:config": "error",
    "decoder:heads": "error",
    "decoder:head-size": "warning",
    "decoder:rotary-table": "warning",
    "decoder:lengths": "error",
    "decoder:no-bias": "warning",
    "decoder:block-sizes": "error",
    "decoder:block-kernel": "warning",
    "decoder:moe-kernel": "warning",
    "decoder:cache-pair": "warning",
    "decoder:cache-alike": "warning",
    "decoder:unused-past": "warning",
    "decoder:mask-length": "warning",
    "decoder:attention-not-fused": "info",
    "decoder:norm-not-fused": "info",
    "decoder:rotary-not-fused": "info",
}
"""The level of each rule on models that write token after token."""

SPEED_RULES: dict[str, Level] = {
    "speed:alignment": "info",
    "speed:transposes": "warning",
    "speed:casts": "warning",
    "speed:cast-in-loop": "warning",
    "speed:float64": "warning",
    "speed:int64": "info",
    "speed:data-dependent": "info",
    "speed:dynamic-channels": "warning",
    "speed:dynamic-input": "info",
    "speed:half-quantized": "warning",
    "speed:float-residual": "warning",
    "speed:requantized": "info",
    "speed:rewrite": "info",
}
"""The level of each rule."""


def speed_finding(
    rule: str,
    message: str,
    node: Node,
    repair: Repair | None = None,
    rules: tuple[str, ...] = (),
) -> Finding:
    """Return a finding of one of :data:`SPEED_RULES`."""
    return Finding(SPEED_RULES[rule], rule, message, node.scope, node, None, repair, rules)


_ORDER = {
    # These rename, add or remove nodes, which other repairs may name.
    "rename_shadowing": 1,
    "own_outputs": 2,
    "remove_unused": 3,
    "sort_nodes": 4,
    "rename_duplicate_nodes": 5,
}


def safe(findings: Iterable[Finding]) -> list[Finding]:
    """Leave out findings whose repair has to be asked for by its rule."""
    return [one for one in findings if one.repair is None or not one.repair.changes_interface]


def repair_steps(findings: Iterable[Finding]) -> list[Edit]:
    """Return the steps of the edit ``repair`` for all findings that can be repaired.

    Repairs of the same kind and scope become one; inner scopes come before outer ones. Rules of
    ``dld rewrite`` are no repairs: fused operators and quantized layers compute other values, by a
    little, or by more.
    """
    merged: dict[str, tuple[tuple[int, int], Edit]] = {}
    for finding in findings:
        fix = finding.fix if finding.repair is not None else None
        if fix is None:
            continue
        arguments = fix.arguments
        lists = {name: value for name, value in arguments.items() if _is_names(name, value)}
        rest = {name: value for name, value in arguments.items() if name not in lists}
        key = json.dumps([fix.name, rest, sorted(lists)], sort_keys=True)
        depth = len(finding.scope.path) if finding.scope is not None else 0
        empty = Edit(fix.name, {**rest, **{name: [] for name in lists}})
        _, known = merged.setdefault(key, ((_ORDER.get(fix.name, 0), -depth), empty))
        for name, values in lists.items():
            present = known.arguments[name]
            assert isinstance(present, list)
            assert isinstance(values, list)
            present += [value for value in values if value not in present]
    ordered = sorted(merged.values(), key=lambda step: step[0])
    return [edit for _, edit in ordered]


def _is_names(name: str, value: JSON) -> bool:
    return name in ("names", "values") and isinstance(value, list)
