"""What a graph demands of its inputs, for many sizes of them at once.

One evaluation (:mod:`dld_tui.core.model.shapes`) with one size a candidate tells which sizes the
nodes cannot do with, and also what values the inputs must have: ids within a table, scalars that
are compared with constants.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dld_tui.core.errors import DldError
from dld_tui.core.model.shapes.call import Demands
from dld_tui.core.model.shapes.evaluation import Evaluation
from dld_tui.core.model.shapes.size import Size, number_of
from dld_tui.core.model.shapes.value import Value

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document
    from dld_tui.core.model.document.node import Node
    from dld_tui.core.model.document.scope import Scope


_MOST_CLASSES = 1 << 16


class Propagation(Evaluation):
    """One pass over a model. What it found is in the attributes afterwards.

    Args:
        inputs: What is known of each input.
        count: The number of candidates, the length of every array.
        orders: What another pass over the same model found of the order of its nodes.
    """

    def __init__(
        self,
        document: Document,
        inputs: Mapping[str, Value],
        count: int,
        orders: dict[Scope, list[Node]] | None = None,
    ) -> None:
        self.uses: dict[str, list[tuple[str, int, Node]]] = {}
        """Operators that take an input, perhaps cast or reshaped, and its position there."""
        self.compared: dict[str, list[Size]] = {}
        """Constants that an input is compared with, in the order of the nodes."""
        self.factors: dict[str, list[float]] = {}
        """Constants that an input is multiplied with."""
        super().__init__(document, inputs, Demands(count), orders)

    def _seen(self, node: Node, inputs: Sequence[Value]) -> None:
        for at, known in enumerate(inputs):
            if known.source is not None:
                self.uses.setdefault(known.source[0], []).append((node.op_type, at, node))
                if len(inputs) == 2 and node.op_type in ("Mul", "Equal"):
                    self._note_constant(node.op_type, known.source, inputs[1 - at])

    def _note_constant(self, operator: str, source: tuple[str, int], constant: Value) -> None:
        values = constant.values()
        number = number_of(values[0]) if values is not None and len(values) == 1 else None
        if operator == "Mul" and number is not None and constant.source is None:
            self.factors.setdefault(source[0], []).append(float(number))
        if operator == "Equal":
            classes = _classes(constant)
            if classes:
                self.demands.bound(Value(source=source), classes)
            if number is not None and constant.source is None:
                self.compared.setdefault(source[0], []).append(number)


def _classes(constant: Value) -> int | None:
    """Return how many classes are compared with, where a constant lists them, as in a one-hot."""
    tensor = constant.tensor
    if tensor is None or not 1 < tensor.element_count <= _MOST_CLASSES:
        return None
    try:
        listed = tensor.read().reshape(-1)
    except (DldError, ValueError):
        return None
    is_counted = listed.dtype.kind in "iu" and int(listed.min()) >= 0
    return int(listed.max()) + 1 if is_counted else None
