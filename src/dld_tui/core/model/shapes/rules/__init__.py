"""The rules of operators, one function each, found by domain and operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from dld_tui.core.model.shapes.call import Call
from dld_tui.core.model.shapes.rules import (
    attention,
    convolution,
    elementwise,
    movement,
    products,
    reduction,
    sequences,
)
from dld_tui.core.model.shapes.value import Value

Rule: TypeAlias = "Callable[[Call], Sequence[Value]]"
"""Returns what is known of a node's outputs, and records what the operator demands. Where versions
of an operator differ, it asks for the version of the call."""

_FAMILIES = (elementwise, reduction, movement, convolution, products, attention, sequences)
RULES: dict[str, dict[str, Rule]] = {
    "": {name: rule for family in _FAMILIES for name, rule in family.STANDARD.items()},
    "com.microsoft": {name: rule for family in _FAMILIES for name, rule in family.CONTRIB.items()},
    "ai.onnx.ml": sequences.MACHINE_LEARNING,
    "ai.onnx.preview": attention.PREVIEW,
    "ai.onnx.preview.training": sequences.TRAINING,
}
"""By domain and operator. Those of nodes with subgraphs are in :mod:`..evaluation`."""


def rule_of(domain: str, operator: str) -> Rule | None:
    """Return the rule of an operator; None where there is none."""
    return RULES.get(domain, {}).get(operator)
