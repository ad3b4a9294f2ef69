"""Which nodes make the results of a converted model wrong, from the errors of its tensors.

ONNX Runtime computes float16 models on a CPU in float32 and leaves out the casts between two
nodes, so that nothing overflows, and has next to no kernels for bfloat16. Here each node gets
casts of its own, which are not left out.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from dld_tui.core.accuracy.result import Row
from dld_tui.core.conversion.agreement import NarrowType
from dld_tui.core.conversion.copies import copy_of, infer
from dld_tui.core.document.casting import Cast, CastPlan, FreshNames, Relink, changes_of
from dld_tui.core.document.document import Document
from dld_tui.core.document.edits.batch import carry_out
from dld_tui.core.document.history import Transaction
from dld_tui.core.document.node import Node
from dld_tui.core.document.scope import Scope


@dataclass(frozen=True)
class Culprit:
    """A node that should stay as it was. All texts are foreign."""

    scope: tuple[str, ...]
    node: str
    op_type: str
    reason: str


@dataclass(frozen=True)
class Findings:
    """What a comparison with the original model has found."""

    document: Document
    """The original; nodes are those of its main graph."""
    rows: Sequence[Row]
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


def first_culprit(found: Findings) -> Culprit | None:
    """Return the first node, as the model computes, whose results are wrong and its inputs not."""
    for suspect in _suspects(found):
        weights = _clipped_inputs(suspect.node, found.clipped)
        if suspect.made.problem and (weights or not any(row.problem for row in suspect.taken)):
            return _told(suspect, found)
    worst = _ranked(_suspects(found))
    return _told(worst[0], found) if worst else None


def nodes_to_keep(found: Findings, kept: Collection[Node], most: int) -> dict[Node, str]:
    """Return nodes that should stay as they were, too, with the reasons; none when all do already.

    These are the nodes that make or take what overflows, those that take weights out of range, and
    those that lose channels; only when there are none of these the ones that add most noise.

    Args:
        found: What is wrong.
        kept: The nodes that stay as they were already.
        most: How many of those that only add noise.
    """
    suspects = _suspects(found)
    chosen: dict[Node, str] = {}
    for suspect in suspects:
        name = suspect.made.name
        beyond = found.ranges.get(name, 0.0) > found.largest and suspect.made.error.special
        if beyond or suspect.added == math.inf:
            for node in _around(found.document, suspect.node, suspect.made.name):
                chosen.setdefault(node, _why(suspect, found))
        elif (suspect.made.problem and _clipped_inputs(suspect.node, found.clipped)) or (
            suspect.made.error.lost and not any(row.error.lost for row in suspect.taken)
        ):
            chosen.setdefault(suspect.node, _why(suspect, found))
    left = {node: why for node, why in chosen.items() if node not in kept}
    if not left:
        for suspect in _ranked(suspects):
            if len(left) < most and suspect.added:
                left |= dict.fromkeys(_noisy(found, suspect, kept), _why(suspect, found))
    return _with_bodies(left, kept)


def culprits(nodes: Mapping[Node, str]) -> list[Culprit]:
    """Return nodes and reasons as data."""
    return [
        Culprit(tuple(node.scope.path), node.ref, node.op_type, why) for node, why in nodes.items()
    ]


@dataclass(frozen=True)
class _Suspect:
    node: Node
    made: Row
    """Its output with the largest error."""
    taken: Sequence[Row]
    """What it takes, other than weights."""
    added: float
    """Noise relative to the values, beyond that of its inputs; infinite for NaN and the like."""


def _suspects(findings: Findings) -> list[_Suspect]:
    """Return the nodes whose outputs are known, in the order of the computation."""
    rows = {row.name: row for row in findings.rows}
    suspects = []
    for node in findings.document.main.nodes:
        mine = [rows[name] for name in node.outputs if name in rows]
        if not mine or _is_constant(node):
            continue  # it is its users' weight
        made = max(mine, key=lambda row: row.error.noise)
        taken = _taken(node, rows)
        noise = max([row.error.noise for row in taken], default=0.0)
        added = 0.0 if noise == math.inf else max(made.error.noise - noise, 0.0)
        suspects.append(_Suspect(node, made, taken, added))
    return suspects


def _taken(node: Node, rows: Mapping[str, Row]) -> list[Row]:
    """Return the rows of what a node takes, other than weights."""
    names = [name for name in node.inputs if name in rows]
    return [rows[name] for name in names if not _is_constant(node.scope.producer(name))]


def _is_constant(node: Node | None) -> bool:
    return node is not None and (not node.inputs or node.op_type == "ConstantOfShape")


def _ranked(suspects: Iterable[_Suspect]) -> list[_Suspect]:
    return sorted(suspects, key=lambda suspect: -suspect.added)


def _noisy(findings: Findings, suspect: _Suspect, kept: Collection[Node]) -> list[Node]:
    """Return a node that adds noise; what makes its values where that stays as it was already."""
    if suspect.node not in kept:
        return [suspect.node]
    return [node for node in _makers(findings.document, suspect.node) if node not in kept]


def _makers(document: Document, node: Node) -> list[Node]:
    makers = [document.main.producer(name) for name in node.inputs]
    return [maker for maker in makers if maker is not None and not _is_constant(maker)]


def _clipped_inputs(node: Node, clipped: Mapping[str, float]) -> list[str]:
    return [name for name in node.inputs if name in clipped]


def _around(document: Document, node: Node, name: str) -> list[Node]:
    """Return a node, what takes a value that it makes, and what makes the values that it takes."""
    users = [use.node for use in document.main.users(name)]
    return list(dict.fromkeys([node, *users, *_makers(document, node)]))


def _with_bodies(nodes: Mapping[Node, str], kept: Collection[Node]) -> dict[Node, str]:
    """Return nodes, and those in their bodies in place of the ones that only hold others."""
    found: dict[Node, str] = {}
    for node, why in nodes.items():
        found[node] = why
        for scopes in node.children.values():
            for scope in scopes:
                inner = [one for below in scope.walk() for one in below.nodes]
                found.update((one, why) for one in inner if one not in kept)
    return found


def _told(suspect: _Suspect, findings: Findings) -> Culprit:
    (made,) = culprits({suspect.node: _why(suspect, findings)})
    return made


def _why(suspect: _Suspect, findings: Findings) -> str:
    row = suspect.made
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


def rounded_copy(document: Document, narrow: str = "float16") -> Document:
    """Return a copy whose narrow nodes compute in float32 and round what they make.

    Values keep their names and types, weights what they are. What a node adds up inside is not
    rounded, as Tensor Cores do not either. Runs onnx's shape inference: call it in a child process.

    Args:
        document: A model in 16 bits, in whole or in part; it stays as it is, and open until the
            copy is closed.
        narrow: ``float16`` or ``bfloat16``.
    """
    copy = copy_of(document)
    try:
        infer(copy, document.path)
        carry_out(_plan(copy, narrow), Transaction("round_between_nodes", {}))
    except BaseException:
        copy.close()
        raise
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
    if isinstance(changes, str):
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
            made, outputs[index] = outputs[index], names.take(f"{outputs[index]}_exact")
            plan.casts.append(Cast(scope, outputs[index], made, _WIDE, narrow, node, True, False))
    if (tuple(inputs), tuple(outputs)) != (node.inputs, node.outputs):
        plan.relinks.append(Relink(node, tuple(inputs), tuple(outputs)))
