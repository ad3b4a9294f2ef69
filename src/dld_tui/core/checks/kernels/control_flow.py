"""What kernels of Loop and Scan refuse to hand to their bodies."""

from __future__ import annotations

from dld_tui.core.checks.calls import Call, operand_of
from dld_tui.core.checks.operands import (
    Said,
    differ,
    dims_text,
    wrong,
)


def carried(call: Call) -> Said:
    """Yield inputs of a Loop that are left out, and a condition that its body has otherwise."""
    for index in range(2, len(call.node.input)):
        if not call.has(index):
            yield wrong(f"Input {index} is left out, the loop carries it")
    body, dims = call.attribute("body"), call.dims(1)
    declared = operand_of(body.input[1].type).dims if body and len(body.input) > 1 else None
    if dims is not None and declared is not None and len(dims) != len(declared):
        yield wrong(f"The condition is {dims_text(dims)}, in the body {dims_text(declared)}")


def scanned(call: Call) -> Said:
    """Yield what goes into the body of a Scan and is not as the body declares it."""
    body, before = call.attribute("body"), 1 if call.version < 9 else 0
    if body is None:
        return
    states = len(call.node.input) - before - call.attribute("num_scan_inputs", 0)
    axes = call.attribute("scan_input_axes") or [0] * len(call.node.input)
    for index, info in enumerate(body.input):
        dims, declared = call.dims(index + before), operand_of(info.type).dims
        if dims is not None and before:
            dims = dims[1:]  # the batch
        if dims is not None and 0 <= index - states < len(axes):
            axis = axes[index - states]
            if not -len(dims) <= axis < len(dims):
                yield wrong(f"Axis {axis} of {dims_text(dims)} is scanned")
                return
            if dims[axis] == 0:
                yield wrong(f"Axis {axis} of {dims_text(dims)} has nothing to scan")
            dims = dims[: axis % len(dims)] + dims[axis % len(dims) + 1 :]
        if dims is None or declared is None:
            continue
        if len(dims) != len(declared) or any(map(differ, dims, declared)):
            yield wrong(
                f"Input {index} is {dims_text(dims)} in the body, where {dims_text(declared)} is"
                " declared"
            )
