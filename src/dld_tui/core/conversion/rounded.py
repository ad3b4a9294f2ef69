"""What a model in 16 bits gives where it is computed in these, with float32 kernels.

ONNX Runtime computes float16 models on a CPU in float32 and leaves out the casts between two nodes,
so that nothing overflows, and has next to no kernels for bfloat16. Here each node gets casts of its
own, which are not left out.
"""

from __future__ import annotations

from dld_tui.core.conversion.copies import copy_of, infer
from dld_tui.core.document.casting import Cast, CastPlan, FreshNames, Relink, changes_of
from dld_tui.core.document.document import Document
from dld_tui.core.document.edits.casting import carry_out
from dld_tui.core.document.history import Transaction
from dld_tui.core.document.node import Node
from dld_tui.core.document.scope import Scope

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
