"""Rules about one value of a scope, and about tensors; no payload is read."""

from __future__ import annotations

import math
from typing import Any

from dld_tui.core import protos as onnx
from dld_tui.core.checks.findings import Finding, Level, Repair, found, name_of
from dld_tui.core.checks.model_rules import odd_name
from dld_tui.core.checks.state import ScopeState
from dld_tui.core.document import Node, Scope, Tensor
from dld_tui.core.document.proto_text import text_of
from dld_tui.core.document.tensor import MAX_DIMENSION_PRODUCT
from dld_tui.core.document.value_types import (
    Dims,
    shown,
    tensor_type,
    type_of_proto,
    type_of_value,
    value_type_of,
)
from dld_tui.core.files.external import KNOWN_ENTRIES
from dld_tui.core.files.tensors import NARROW_BITS, element_bits

_EXTERNAL = onnx.TensorProto.EXTERNAL
_NARROW = frozenset(
    number for name, number in onnx.TensorProto.DataType.items() if name in NARROW_BITS
)
_BYTES: dict[int, int] = {
    number: bits // 8
    for number in onnx.TensorProto.DataType.values()
    if number not in _NARROW and (bits := element_bits(number)) is not None
}
"""Bytes of an element, for the types whose elements are whole bytes."""
_RULES = (("no data", "tensor-without-data"), ("External data", "external-data"))


def check_tensor(proto: onnx.TensorProto, scope: Scope, name: str) -> list[Finding]:
    """Return what is wrong with an initializer."""
    if is_plainly_good(proto, scope):
        return []
    return _problems(Tensor(proto, scope.document), f"Tensor {name_of(name)}", scope, None, name)


def attribute_problems(node: Node, name: str) -> list[Finding]:
    """Return what is wrong with the tensor in an attribute of a node."""
    attribute = node.attribute(name)
    value = attribute.value if attribute is not None else None
    tensors = value if isinstance(value, list) else [value]
    return [
        finding
        for tensor in tensors
        if isinstance(tensor, Tensor) and not is_plainly_good(tensor.proto, node.scope)
        for finding in _problems(tensor, f"Attribute {name_of(name)}", node.scope, node, None)
    ]


def inline_bytes(proto: onnx.TensorProto) -> int:
    """Return about how many bytes a tensor takes in the model's own file."""
    if proto.data_location == _EXTERNAL:
        return 0
    size = _BYTES.get(proto.data_type, 1)
    for dim in proto.dims:
        size *= max(dim, 0)
    return size


def is_plainly_good(proto: onnx.TensorProto, scope: Scope) -> bool:
    """Return True for most good tensors, fast; False when a closer look is needed."""
    if proto.data_location == _EXTERNAL or not proto.HasField("raw_data"):
        return False
    width = _BYTES.get(proto.data_type)
    if width is None:
        return False
    for dim in proto.dims:
        if dim < 0:
            return False
        width *= dim
    if (
        proto.float_data
        or proto.int32_data
        or proto.int64_data
        or proto.string_data
        or proto.double_data
        or proto.uint64_data
    ):
        return False
    data = proto.raw_data
    blob = scope.document.blobs.get(data)
    return width == (len(data) if blob is None else blob.length)


def _problems(
    tensor: Tensor, subject: str, scope: Scope, node: Node | None, value: str | None
) -> list[Finding]:
    findings = []
    if tensor.is_external:
        unknown = sorted(set(tensor.external_entries) - KNOWN_ENTRIES)
        if unknown:
            text = f"{subject}: unknown external_data key {name_of(unknown[0])} is ignored"
            findings.append(found("external-keys", text, scope, node, value=value))
    problem = tensor.problem
    if problem is not None:
        rule = next((rule for text, rule in _RULES if text in problem), "tensor-data")
        level: Level | None = "warning" if "has both" in problem else None  # readers take one
        text = f"{subject}: {problem}"
        findings.append(found(rule, text, scope, node, value=value, level=level))
    return findings


def check_sparse(proto: onnx.SparseTensorProto, scope: Scope) -> list[Finding]:
    """Return what is wrong with a sparse initializer."""
    name = text_of(proto.values.name)
    subject = f"Sparse tensor {name_of(name)}"
    findings = _problems(Tensor(proto.values, scope.document), subject, scope, None, name)
    if not findings and proto.indices.data_type != onnx.TensorProto.INT64:
        text = f"{subject}: its indices are not int64"
        findings.append(found("tensor-data", text, scope, value=name))
    return findings


_TYPED_LISTS = ("input", "output", "value_info")
_LISTS = (*_TYPED_LISTS, "initializer", "sparse_initializer")


def check_value(state: ScopeState, name: str) -> list[Finding]:
    """Return what is wrong with a value, by what this scope says of it."""
    findings: list[Finding] = []
    scope = state.scope
    records = {}
    for list_name in _LISTS:
        if scope.records.get(list_name):
            entries = state.records_of(list_name, name)
            if entries:
                records[list_name] = entries
    if not name.isprintable():
        findings += odd_name(scope, name)
    if name in state.producers or state.parent is not None or not name:
        _check_definitions(findings, state, name, records)
    if "initializer" in records or "sparse_initializer" in records:
        _check_initializer(findings, state, name, records)
    else:
        state.inline.pop(name, None)
    if name in state.inputs:
        _check_input(findings, state, name)
    if name in state.outputs:
        _check_output(findings, state, name)
    if any(records.get(list_name) for list_name in _TYPED_LISTS):
        _check_types(findings, state, name, records)
    return findings


def _check_definitions(
    findings: list[Finding], state: ScopeState, name: str, records: dict[str, list[Any]]
) -> None:
    producers = state.producers.get(name, ())
    scope = state.scope
    if producers and len(producers) > 1:
        ordered = sorted(producers, key=lambda node: state.positions.get(node, 0))
        text = f"Value {name_of(name)} is produced {len(producers)} times"
        findings.append(found("duplicate-producer", text, scope, ordered[1], value=name))
    if producers and name in state.declared:
        what = "a graph input" if name in state.inputs else "an initializer"
        text = f"Value {name_of(name)} is {what} and is also made by a node"
        first = state.first_producer(name)
        findings.append(found("duplicate-producer", text, scope, first, value=name))
    if state.parent is not None and state.defines(name) and state.parent.sees(name):
        text = f"Value {name_of(name)} has the name of a value of the scope around it"
        findings.append(
            found(
                "shadowed-value",
                text,
                scope,
                state.first_producer(name),
                value=name,
                level="error" if producers else "warning",
                repair=Repair("rename_shadowing", {"value": name}),
            )
        )
    if not name and records:
        lists = ", ".join(records)
        findings.append(found("empty-name", f"A record of {lists} has no name", scope, value=name))


def _check_initializer(
    findings: list[Finding], state: ScopeState, name: str, records: dict[str, list[Any]]
) -> None:
    dense, sparse = records.get("initializer", ()), records.get("sparse_initializer", ())
    size = 0
    for proto in dense:
        findings += check_tensor(proto, state.scope, name)
        size += inline_bytes(proto)
    for proto in sparse:
        findings += check_sparse(proto, state.scope)
    if size:
        state.inline[name] = size
    else:
        state.inline.pop(name, None)
    count = len(dense) + len(sparse)
    unused = not state.uses(name)
    if count == 1 and not unused:
        return
    text = f"Initializer {name_of(name)} is "
    names: Any = [name]
    unused_repair = Repair("remove_unused", {"nodes": False, "names": names})
    if count > 1:
        times = "twice" if count == 2 else f"{count} times"
        tail = " and never used" if unused else ""
        same = Repair("remove_repeated_initializers", {"names": names})
        repair = unused_repair if unused else same if _are_equal(dense) else None
        text += f"defined {times}{tail}"
        findings.append(
            found("duplicate-initializer", text, state.scope, value=name, repair=repair)
        )
    else:
        text += "never used"
        findings.append(
            found("unused-initializer", text, state.scope, value=name, repair=unused_repair)
        )


def _are_equal(tensors: Any) -> bool:
    return len(tensors) > 1 and all(tensor == tensors[0] for tensor in tensors)


def _check_input(findings: list[Finding], state: ScopeState, name: str) -> None:
    scope = state.scope
    count = state.inputs[name]
    if count > 1:
        text = f"{count} inputs are called {name_of(name)}"
        findings.append(found("duplicate-input", text, scope, value=name))
    is_weight = not scope.is_function and name in scope.named("initializer")
    # Subgraphs and functions have the inputs that their node gives, used or not.
    if scope.kind == "graph" and not state.uses(name) and not is_weight:
        text = f"Input {name_of(name)} is never used"
        findings.append(found("unused-input", text, scope, value=name))


def _check_output(findings: list[Finding], state: ScopeState, name: str) -> None:
    scope, shown_name = state.scope, name_of(name)
    if state.outputs[name] > 1:
        text = f"{state.outputs[name]} outputs are called {shown_name}"
        findings.append(found("duplicate-output", text, scope, value=name))
    if not name or state.defines(name):
        return
    if not state.sees(name):
        text = f"Graph output {shown_name} is never produced"
        findings.append(found("missing-output", text, scope, value=name))
    else:
        text = (
            f"Output {shown_name} is a value of the scope around it, which cannot go out as it is"
        )
        repair = Repair("own_outputs", {"values": [name]})
        findings.append(found("outer-output", text, scope, value=name, repair=repair))


# --- types and shapes ---------------------------------------------------------------------------


def _check_types(
    findings: list[Finding], state: ScopeState, name: str, records: dict[str, list[Any]]
) -> None:
    declared: list[tuple[str, str, Dims | None]] = []
    before = len(findings)
    for list_name in _TYPED_LISTS:
        for record in records.get(list_name, ()):
            kind = type_of_proto(record.type)
            value = value_type_of(record.type)
            dims = value.dims if value is not None and not value.container else None
            if list_name != "value_info":
                _check_declared(findings, state, name, list_name, record, kind is None)
            _check_dims(findings, state, name, dims)
            what = "value_info" if list_name == "value_info" else f"the graph {list_name}"
            declared.append((what, kind or "", dims))
    for proto in records.get("initializer", ()):
        declared.append(("the initializer", tensor_type(proto.data_type) or "", tuple(proto.dims)))
    inferred = state.scope.inferred.get(name)
    uses_inferred = False
    if inferred is not None and declared and not state.scope.is_stale(name):
        dims = None if inferred.container else inferred.dims
        declared.append(("shape inference", type_of_value(inferred) or "", dims))
        uses_inferred = True
    _compare(findings, state, name, declared)
    if uses_inferred and len(findings) > before:
        state.inferred_values.add(name)
    if records.get("value_info") and not state.defines(name) and name not in state.outputs:
        text = f"value_info describes {name_of(name)}, which is not in the graph"
        findings.append(
            found("unused-value-info", text, state.scope, value=name, repair=_forget(name))
        )


_ERROR: Level = "error"
_WARNING: Level = "warning"
_TAKE_INFERRED = Repair("set_value_type", typed=True)
"""Declares what shape inference has found."""


def _forget(name: str) -> Repair:
    return Repair("remove_value_info", {"values": [name]})


def _check_declared(
    findings: list[Finding], state: ScopeState, name: str, list_name: str, record: Any, bare: bool
) -> None:
    """Tell of inputs and outputs of the main graph that onnx's checker refuses."""
    if state.scope.kind != "graph":
        return
    if bare and value_type_of(record.type) is None:
        what, level = "type", _ERROR if list_name == "input" else _WARNING
    elif record.type.HasField("tensor_type") and not record.type.tensor_type.HasField("shape"):
        what, level = "shape", _WARNING  # runtimes take it
    else:
        return
    text = f"The graph {list_name} {name_of(name)} has no {what}, which onnx's checker refuses"
    findings.append(
        found("missing-type", text, state.scope, value=name, repair=_TAKE_INFERRED, level=level)
    )


def _check_dims(findings: list[Finding], state: ScopeState, name: str, dims: Dims | None) -> None:
    sizes = [dim for dim in dims or () if isinstance(dim, int)]
    if any(dim < 0 for dim in sizes):
        text = f"Value {name_of(name)} has a negative dimension"
        findings.append(found("negative-dimension", text, state.scope, value=name))
        return
    count = math.prod(sizes)
    if count > MAX_DIMENSION_PRODUCT:
        power = count.bit_length() - 1
        text = f"Value {name_of(name)}: element count overflows (about 2^{power})"
        findings.append(found("shape", text, state.scope, value=name))


def _compare(
    findings: list[Finding],
    state: ScopeState,
    name: str,
    declared: list[tuple[str, str, Dims | None]],
) -> None:
    """Compare all that is said of a value with what was said first."""
    sources = {what for what, _, _ in declared}
    repair = _forget(name) if "value_info" in sources and len(sources) > 1 else None
    if repair is None and {"the graph output", "shape inference"} <= sources:
        repair = _TAKE_INFERRED
    first = next((entry for entry in declared if entry[1]), None)
    for what, kind, _ in declared:
        if first is not None and kind and kind != first[1]:
            text = (
                f"Value {name_of(name)} is {shown(first[1])} in {first[0]} and {shown(kind)} in"
                f" {what}"
            )
            kind_level: Level = "warning" if state.is_constant(name) else "error"
            findings.append(
                found(
                    "type-conflict", text, state.scope, value=name, repair=repair, level=kind_level
                )
            )
            return
    shaped = [(what, dims) for what, _, dims in declared if dims is not None]
    for what, dims in shaped[1:]:
        if _differ(shaped[0][1], dims):
            text = (
                f"Value {name_of(name)} is {_dims(shaped[0][1])} in {shaped[0][0]} and"
                f" {_dims(dims)} in {what}"
            )
            # Runtimes go by what operators make, and refuse only what does not fit the weights.
            level: Level = "error" if "the initializer" in sources else "warning"
            findings.append(
                found("shape-conflict", text, state.scope, value=name, repair=repair, level=level)
            )
            return


def _differ(one: Dims, other: Dims) -> bool:
    return len(one) != len(other) or any(
        isinstance(a, int) and isinstance(b, int) and a != b
        for a, b in zip(one, other, strict=True)
    )


def _dims(dims: Dims) -> str:
    return name_of("[" + ", ".join("?" if dim is None else str(dim) for dim in dims) + "]")
