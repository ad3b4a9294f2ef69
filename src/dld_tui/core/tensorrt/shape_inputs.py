"""Inputs whose values are a shape: a profile gives them values, not a shape."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dld_tui.core.document.wiretext import text_of

if TYPE_CHECKING:
    from dld_tui.core.document import Document
    from dld_tui.core.document.scope import Scope

_INTEGERS = ("int32", "int64")
_TAKES_SHAPE = {
    "Reshape": (1,),
    "Expand": (1,),
    "ConstantOfShape": (0,),
    "Tile": (1,),
    "Resize": (3,),
    "Slice": (1, 2, 3, 4),
    "Range": (0, 1, 2),
    "TopK": (1,),
    "Pad": (1,),
    "Unsqueeze": (1,),
    "Squeeze": (1,),
    "OneHot": (1,),
}
"""Positions of inputs that must be known before the layers run, by operator."""
_KEEPS_VALUES = frozenset(
    (
        "Add", "Cast", "Concat", "Div", "Gather", "Identity", "Max", "Min", "Mul", "Slice",
        "Squeeze", "Sub", "Unsqueeze",
    )
)  # fmt: skip
"""Operators whose result is a shape when their input is one."""
_MOST_VALUES = 10_000
"""Values that are followed from one input, at most."""


def shape_inputs(document: Document) -> dict[str, int]:
    """Return the inputs of a model that hold a shape, and how many values each has.

    Followed through arithmetic on the top level of the graph; inputs whose number of values is
    open are left out, since these cannot be ranged.
    """
    main = document.main
    defaults = main.named("initializer")
    found = {}
    for name in main.inputs:
        known = main.value_type(name)
        if name in defaults or known is None or known.dtype not in _INTEGERS or known.dims is None:
            continue
        if len(known.dims) <= 1 and all(isinstance(dim, int) for dim in known.dims):
            count = next((dim for dim in known.dims if isinstance(dim, int)), 1)
            if _is_shape(main, name):
                found[name] = count
    return found


def _is_shape(scope: Scope, name: str) -> bool:
    seen, waiting = {name}, [name]
    while waiting and len(seen) < _MOST_VALUES:
        value = waiting.pop()
        for node in scope.consumers(value):
            inputs = [text_of(item) for item in node.proto.input]
            positions = _TAKES_SHAPE.get(node.op_type, ())
            if any(at < len(inputs) and inputs[at] == value for at in positions):
                return True
            if node.op_type in _KEEPS_VALUES:
                for output in map(text_of, node.proto.output):
                    if output and output not in seen:
                        seen.add(output)
                        waiting.append(output)
    return False
