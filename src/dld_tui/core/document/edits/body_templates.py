"""New bodies of If, Loop, Scan and SequenceMap, with the inputs and outputs that each wants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import onnx

from dld_tui.core.document.edits.bodies import Names
from dld_tui.core.document.edits.opsets import imports_of
from dld_tui.core.document.node import Node
from dld_tui.core.document.values import ValueType, dtype_number
from dld_tui.core.document.wiretext import set_text, set_texts

_ITERATION, _CONDITION = ValueType("int64", ()), ValueType("bool", ())
_BATCHED_SCAN = 8
"""The opset whose Scan has a batch dimension, and sequence lengths as its first input."""


@dataclass
class Template:
    """What a new body has."""

    inputs: list[tuple[str, ValueType | None]] = field(default_factory=list)
    outputs: list[tuple[str, ValueType | None, int | None]] = field(default_factory=list)
    """Name, type and which input is passed on as it is; None where nothing makes it yet."""


def template_for(node: Node) -> Template:
    """Return what the operator of a node wants its body to have; nothing for an unknown one."""
    build = {"If": _branch, "Loop": _loop, "Scan": _scan, "SequenceMap": _sequence_map}
    return build.get(node.op_type if not node.domain else "", _empty)(node)


def plain_template(inputs: Sequence[str], outputs: Sequence[str]) -> Template:
    """Return a template with values of no declared type; an output of an input's name is it."""
    places = {name: position for position, name in enumerate(inputs)}
    return Template(
        [(name, None) for name in inputs], [(name, None, places.get(name)) for name in outputs]
    )


def new_body(node: Node, attribute: str, template: Template) -> onnx.GraphProto:
    """Return the graph of a template, with names that are free around the node."""
    names = Names(node.scope)
    graph = onnx.GraphProto()
    set_text(graph, "name", attribute)
    inputs = [names.take(name) for name, _ in template.inputs]
    for name, (_, value_type) in zip(inputs, template.inputs, strict=True):
        declare(graph.input.add(), name, value_type)
    for wanted, value_type, source in template.outputs:
        name = names.take(wanted)
        declare(graph.output.add(), name, value_type)
        if source is not None:
            copy = graph.node.add(op_type="Identity")
            set_text(copy, "name", f"pass_{name}")
            set_texts(copy, "input", [inputs[source]])
            set_texts(copy, "output", [name])
    return graph


def declare(info: onnx.ValueInfoProto, name: str, value_type: ValueType | None) -> None:
    """Fill in the record of a value; a type that is no plain tensor is left out."""
    set_text(info, "name", name)
    number = dtype_number(value_type.dtype or "") if value_type is not None else None
    if value_type is None or number is None or value_type.container:
        return
    tensor = info.type.tensor_type
    tensor.elem_type = number
    if value_type.dims is None:
        return
    tensor.shape.SetInParent()
    for dim in value_type.dims:
        entry = tensor.shape.dim.add()
        if isinstance(dim, int):
            entry.dim_value = dim
        elif dim:
            set_text(entry, "dim_param", dim)


def _type(node: Node, names: Sequence[str], index: int) -> ValueType | None:
    name = names[index] if index < len(names) else ""
    return node.scope.value_type(name) if name else None


def _empty(node: Node) -> Template:
    return Template()


def _branch(node: Node) -> Template:
    return Template(
        outputs=[
            (f"{name or 'output'}_branch", _type(node, node.outputs, index), None)
            for index, name in enumerate(node.outputs)
        ]
    )


def _loop(node: Node) -> Template:
    state = range(2, len(node.inputs))
    made = Template([("iteration", _ITERATION), ("condition", _CONDITION)])
    made.outputs.append(("condition_out", _CONDITION, 1))
    for index in state:
        value_type = _loosened(_type(node, node.inputs, index))
        made.inputs.append((f"state_{index - 2}", value_type))
        made.outputs.append((f"state_{index - 2}_out", value_type, index))
    for index in range(len(state), len(node.outputs)):
        value_type = _item(_type(node, node.outputs, index), 0)
        made.outputs.append((f"scan_{index - len(state)}_out", value_type, None))
    return made


def _scan(node: Node) -> Template:
    batched = imports_of(node.scope).get("", _BATCHED_SCAN + 1) <= _BATCHED_SCAN
    inputs = node.inputs[1:] if batched else node.inputs
    scanned = _int(node, "num_scan_inputs", 1)
    states = max(0, len(inputs) - scanned)
    axes = _ints(node, "scan_input_axes")
    made = Template()
    for index in range(states):
        value_type = _loosened(_type(node, inputs, index))
        value_type = _item(value_type, 0) if batched else value_type
        made.inputs.append((f"state_{index}", value_type))
        made.outputs.append((f"state_{index}_out", value_type, index))
    for index in range(states, len(inputs)):
        axis = axes[index - states] if index - states < len(axes) else 0
        value_type = _item(_type(node, inputs, index), axis)
        value_type = _item(value_type, 0) if batched else value_type
        made.inputs.append((f"scan_{index - states}", value_type))
    for index in range(states, len(node.outputs)):
        source = index if index < len(inputs) else None
        value_type = None if source is None else made.inputs[source][1]
        made.outputs.append((f"scan_{index - states}_out", value_type, source))
    return made


def _sequence_map(node: Node) -> Template:
    made = Template()
    for index in range(len(node.inputs)):
        known = _type(node, node.inputs, index)
        if known is not None and known.container == "sequence":
            known = ValueType(known.dtype, known.dims)
        made.inputs.append((f"item_{index}", known))
    for index in range(len(node.outputs)):
        source = index if index < len(node.inputs) else None
        value_type = None if source is None else made.inputs[source][1]
        made.outputs.append((f"item_{index}_out", value_type, source))
    return made


def _loosened(value_type: ValueType | None) -> ValueType | None:
    """Return the type of a state: its rank may stay, its dimensions may change as it runs."""
    if value_type is None or value_type.dims is None or value_type.container:
        return value_type
    return ValueType(value_type.dtype, tuple(None for _ in value_type.dims))


def _item(value_type: ValueType | None, axis: int) -> ValueType | None:
    """Return the type of one item of a scanned value."""
    if value_type is None or value_type.dims is None or not value_type.dims:
        return value_type
    dims = list(value_type.dims)
    if -len(dims) <= axis < len(dims):
        del dims[axis]
    return ValueType(value_type.dtype, tuple(dims), value_type.container)


def _int(node: Node, name: str, default: int) -> int:
    found = node.attribute(name)
    return found.value if found is not None and isinstance(found.value, int) else default


def _ints(node: Node, name: str) -> list[int]:
    found = node.attribute(name)
    return found.value if found is not None and found.kind == "ints" else []
