"""Finds the nodes that make the results of a converted model wrong, by the errors of its tensors.

On a CPU, ONNX Runtime computes float16 models in float32 and removes the casts between two nodes,
so that nothing overflows, and it has hardly any kernels for bfloat16. :func:`rounded_copy` gives
each node its own casts, which ONNX Runtime keeps.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence

from dld_tui.core.accuracy.result import AccuracyRow
from dld_tui.core.conversion.accuracy_criteria import NarrowType
from dld_tui.core.conversion.copies import infer, working_copy
from dld_tui.core.dataclass import dataclass
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.node import Node
from dld_tui.core.model.document.scope import Scope
from dld_tui.core.model.document.transactions import Transaction
from dld_tui.core.model.edits.casting import (
    Cast,
    CastPlan,
    FreshNames,
    Relink,
    Unchangeable,
    changes_of,
)
from dld_tui.core.model.edits.nodes import carry_out
from dld_tui.core.model.shapes.inference import TypeSource


@dataclass(frozen=True)
class FailingNode:
    """A node that should keep its type. All texts are foreign."""

    scope: tuple[str, ...]
    node: str
    op_type: str
    reason: str


@dataclass(frozen=True)
class MeasuredErrors:
    """The errors that a comparison with the original model measured."""

    document: Document
    """The original; nodes are those of its main graph."""
    rows: Sequence[AccuracyRow]
    """Errors of its tensors."""
    ranges: Mapping[str, float]
    """The largest finite magnitudes of its tensors."""
    clipped: Mapping[str, float]
    """Weights out of the range of the narrow type, with their largest magnitudes."""
    narrow: NarrowType | None = None
    """The type that nodes round to, where there is one."""

    @property
    def largest(self) -> float:
        """The largest number of that type."""
        return math.inf if self.narrow is None else self.narrow.largest


def first_failing_node(findings: MeasuredErrors) -> FailingNode | None:
    """Return the first node in execution order with wrong outputs and right inputs."""
    for suspect in _suspects(findings):
        weights = _clipped_inputs(suspect.node, findings.clipped)
        if suspect.output.problem and (weights or not any(row.problem for row in suspect.inputs)):
            return _failing_node(suspect, findings)
    worst = _ranked(_suspects(findings))
    return _failing_node(worst[0], findings) if worst else None


def nodes_to_keep(findings: MeasuredErrors, kept: Collection[Node], most: int) -> dict[Node, str]:
    """Return further nodes that should keep their type, with the reasons; may be empty.

    These are the nodes that produce or use values that overflow, those with weights out of range,
    and those that lose channels. Only where there are none of these: the nodes that add most noise.

    Args:
        findings: The measured errors.
        kept: The nodes that keep their type already.
        most: The most nodes that only add noise.
    """
    suspects = _suspects(findings)
    chosen: dict[Node, str] = {}
    for suspect in suspects:
        name = suspect.output.name
        beyond = findings.ranges.get(name, 0.0) > findings.largest and suspect.output.error.special
        if beyond or suspect.added == math.inf:
            for node in _around(findings.document, suspect.node, suspect.output.name):
                chosen.setdefault(node, _why(suspect, findings))
        elif (suspect.output.problem and _clipped_inputs(suspect.node, findings.clipped)) or (
            suspect.output.error.lost and not any(row.error.lost for row in suspect.inputs)
        ):
            chosen.setdefault(suspect.node, _why(suspect, findings))
    new_nodes = {node: why for node, why in chosen.items() if node not in kept}
    if not new_nodes:
        for suspect in _ranked(suspects):
            if len(new_nodes) < most and suspect.added:
                new_nodes |= dict.fromkeys(_noisy(findings, suspect, kept), _why(suspect, findings))
    return _with_bodies(new_nodes, kept)


def failing_nodes(nodes: Mapping[Node, str]) -> list[FailingNode]:
    """Return nodes and reasons as data."""
    return [
        FailingNode(tuple(node.scope.path), node.ref, node.op_type, why)
        for node, why in nodes.items()
    ]


@dataclass(frozen=True)
class _Suspect:
    node: Node
    output: AccuracyRow
    """Its output with the largest error."""
    inputs: Sequence[AccuracyRow]
    """Its inputs, other than weights."""
    added: float
    """Noise relative to the values, beyond that of its inputs; infinite for NaN and the like."""


def _suspects(findings: MeasuredErrors) -> list[_Suspect]:
    """Return the nodes whose outputs are known, in the order of the computation."""
    rows = {row.name: row for row in findings.rows}
    suspects = []
    for node in findings.document.main.nodes:
        mine = [rows[name] for name in node.outputs if name in rows]
        if not mine or _is_constant(node):
            continue  # its users take it as a weight
        worst = max(mine, key=lambda row: row.error.noise)
        taken = _taken(node, rows)
        noise = max([row.error.noise for row in taken], default=0.0)
        added = 0.0 if noise == math.inf else max(worst.error.noise - noise, 0.0)
        suspects.append(_Suspect(node, worst, taken, added))
    return suspects


def _taken(node: Node, rows: Mapping[str, AccuracyRow]) -> list[AccuracyRow]:
    """Return the rows of the inputs of a node, other than weights."""
    names = [name for name in node.inputs if name in rows]
    return [rows[name] for name in names if not _is_constant(node.scope.producer(name))]


def _is_constant(node: Node | None) -> bool:
    return node is not None and (not node.inputs or node.op_type == "ConstantOfShape")


def _ranked(suspects: Iterable[_Suspect]) -> list[_Suspect]:
    return sorted(suspects, key=lambda suspect: -suspect.added)


def _noisy(findings: MeasuredErrors, suspect: _Suspect, kept: Collection[Node]) -> list[Node]:
    """Return a node that adds noise; the producers of its inputs where it keeps its type."""
    if suspect.node not in kept:
        return [suspect.node]
    return [node for node in _makers(findings.document, suspect.node) if node not in kept]


def _makers(document: Document, node: Node) -> list[Node]:
    makers = [document.main.producer(name) for name in node.inputs]
    return [maker for maker in makers if maker is not None and not _is_constant(maker)]


def _clipped_inputs(node: Node, clipped: Mapping[str, float]) -> list[str]:
    return [name for name in node.inputs if name in clipped]


def _around(document: Document, node: Node, name: str) -> list[Node]:
    """Return a node, the users of one of its outputs, and the producers of its inputs."""
    users = [use.node for use in document.main.users(name)]
    return list(dict.fromkeys([node, *users, *_makers(document, node)]))


def _with_bodies(nodes: Mapping[Node, str], kept: Collection[Node]) -> dict[Node, str]:
    """Return nodes together with the nodes in their bodies."""
    reasons: dict[Node, str] = {}
    for node, why in nodes.items():
        reasons[node] = why
        for scopes in node.children.values():
            for scope in scopes:
                inner = [inner_node for below in scope.walk() for inner_node in below.nodes]
                reasons.update((inner_node, why) for inner_node in inner if inner_node not in kept)
    return reasons


def _failing_node(suspect: _Suspect, findings: MeasuredErrors) -> FailingNode:
    (failing_node,) = failing_nodes({suspect.node: _why(suspect, findings)})
    return failing_node


def _why(suspect: _Suspect, findings: MeasuredErrors) -> str:
    row = suspect.output
    weights = _clipped_inputs(suspect.node, findings.clipped)
    if weights and row.problem and findings.narrow is not None:
        return (
            f"its weight {weights[0]!r} reaches {findings.clipped[weights[0]]:,.4g}, and"
            f" {findings.narrow.dtype} ends at {findings.largest:,.6g}"
        )
    reach = findings.ranges.get(row.name)
    reached = "" if reach is None else f", in the original it is up to {reach:,.4g}"
    if row.error.special:
        return f"{row.name!r} becomes infinite or NaN{reached}"
    if row.error.lost:
        return f"{row.name!r}: {row.error.lost}"
    noise = "" if row.error.snr_db is None else f" (signal to noise {row.error.snr_db:.0f} dB)"
    how = "is far off" if row.problem else "is less exact"
    return f"{row.name!r} {how}{noise}{reached}"


_WIDE = "float32"


def rounded_copy(
    document: Document, narrow: str = "float16", extra_types: TypeSource | None = None
) -> Document:
    """Return a copy whose narrow nodes compute in float32 and round their outputs.

    Values keep their names and types, and weights are unchanged. Sums inside a node are not
    rounded, as on Tensor Cores. Runs onnx's shape inference: call it in a child process.

    Args:
        document: A model in 16 bits, in whole or in part; it stays as it is, and open until the
            copy is closed.
        narrow: ``float16`` or ``bfloat16``.
        extra_types: As for :func:`~dld_tui.core.model.shapes.inference.infer`.
    """
    with working_copy(document) as copy:
        infer(copy, document.path, extra_types)
        carry_out(_plan(copy, narrow), Transaction("round_between_nodes", {}))
    return copy


def _plan(copy: Document, narrow: str) -> CastPlan:
    plan, names = CastPlan(), FreshNames(copy)
    wide: dict[tuple[Scope, str], str] = {}
    for scope in copy.main.walk():
        for node in scope.nodes:
            if node.op_type != "Cast":
                _plan_node(plan, names, wide, node, narrow)
    return plan


def _plan_node(
    plan: CastPlan,
    names: FreshNames,
    wide: dict[tuple[Scope, str], str],
    node: Node,
    narrow: str,
) -> None:
    changes = changes_of(node, "fp32")
    if isinstance(changes, Unchangeable):
        return
    scope, inputs, outputs = node.scope, list(node.inputs), list(node.outputs)
    for index, before in changes.inputs:
        name = inputs[index]
        if before != narrow:
            continue
        if (scope, name) not in wide:
            wide[scope, name] = names.take(f"{name}_wide")
            plan.casts.append(
                Cast(scope, name, wide[scope, name], narrow, _WIDE, node, False, False)
            )
        inputs[index] = wide[scope, name]
    for index, before in changes.outputs:
        if before == narrow:
            rounded, outputs[index] = outputs[index], names.take(f"{outputs[index]}_exact")
            plan.casts.append(
                Cast(scope, outputs[index], rounded, _WIDE, narrow, node, True, False)
            )
    if (tuple(inputs), tuple(outputs)) != (node.inputs, node.outputs):
        plan.relinks.append(Relink(node, tuple(inputs), tuple(outputs)))
