"""Rules about values of a scope: their names, definitions, uses, and types."""

from __future__ import annotations

import math
import unicodedata
from typing import Any, TypeAlias

from dld_tui.core.checks import repairs
from dld_tui.core.checks.findings import Finding, Level, Repair, make_finding, name_of
from dld_tui.core.checks.state import ScopeState, Types
from dld_tui.core.checks.tensor_rules import (
    check_sparse,
    check_tensor,
    dims_text,
    inline_bytes,
    size_if_plain,
)
from dld_tui.core.files.external import (
    is_external,
)
from dld_tui.core.model.document import Node, Scope
from dld_tui.core.model.tensors.tensor import (
    MAX_DIMENSION_PRODUCT,
)
from dld_tui.core.model.tensors.value_types import (
    Dims,
    shown,
    tensor_type,
    type_of_proto,
    type_of_value,
    value_type_of,
)
from dld_tui.core.types import TextEnum

_INVISIBLE = frozenset({"Cc", "Cf", "Zl", "Zp"})
_TYPED_LISTS = ("input", "output", "value_info")
_LISTS = (*_TYPED_LISTS, "initializer", "sparse_initializer")


def odd_name(scope: Scope, name: str, node: Node | None = None) -> list[Finding]:
    """Return why a name is not printable."""
    subject = "Node" if node is not None else "Value"
    value = None if node is not None else name
    if any("\udc80" <= char <= "\udcff" for char in name):
        text = f"{subject} name {name_of(name)} is not UTF-8"
    elif any(unicodedata.category(char) in _INVISIBLE for char in name):
        text = f"{subject} name {name_of(name)} has control or invisible characters"
    else:
        return []
    return [make_finding("odd-name", text, scope, node, value=value)]


def check_value(state: ScopeState, name: str) -> list[Finding]:
    """Return findings on a value from the records of this scope."""
    types = _types_if_plain(state, name)
    if _is_plain_weight(state, name) if types is None else types in state.fine_types:
        return []
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
    if name in state.inputs:
        _check_input(findings, state, name)
    if name in state.outputs:
        _check_output(findings, state, name)
    if any(records.get(list_name) for list_name in _TYPED_LISTS):
        _check_value_types(findings, state, name, records)
    if types is not None and not findings:
        state.fine_types.add(types)
    return findings


def _types_if_plain(state: ScopeState, name: str) -> Types | None:
    """Return the types of most values that a node makes: all that can be wrong with such a one.

    None where there may be more to say.
    """
    scope = state.scope
    infos = scope.named("value_info").all(name)
    if (
        len(infos) != 1
        or len(state.producers.get(name, ())) != 1
        or name in state.declared
        or name in state.outputs
        or not name.isprintable()
        or (state.parent is not None and state.parent.sees(name))
    ):
        return None
    inferred = None if scope.is_stale(name) else scope.inferred.get(name)
    return infos[0].type.SerializeToString(), inferred, state.is_constant(name)


def _is_plain_weight(state: ScopeState, name: str) -> bool:
    """Return True for most weights, fast: there is nothing to say about them."""
    weights = state.scope.named("initializer").all(name)
    if (
        len(weights) != 1
        or state.parent is not None
        or name in state.others
        or name in state.producers
        or not state.uses(name)
        or not name.isprintable()
    ):
        return False
    size = size_if_plain(weights[0], state.scope)
    if size is None:
        return False
    state.inline[name] = size
    return True


def _check_definitions(
    findings: list[Finding], state: ScopeState, name: str, records: dict[str, list[Any]]
) -> None:
    producers = state.producers.get(name, ())
    scope = state.scope
    # Readers make initializers of constants, and take the last one.
    level: Level = "error"
    if all(node.op_type == "Constant" for node in producers):
        level = "warning"
    if producers and len(producers) > 1:
        ordered = sorted(producers, key=lambda node: state.positions.get(node, 0))
        text = f"Value {name_of(name)} is produced {len(producers)} times"
        findings.append(
            make_finding("duplicate-producer", text, scope, ordered[1], value=name, level=level)
        )
    if producers and name in state.declared:
        kind = "a graph input" if name in state.inputs else "an initializer"
        text = f"Value {name_of(name)} is {kind} and also the output of a node"
        first = state.first_producer(name)
        findings.append(
            make_finding("duplicate-producer", text, scope, first, value=name, level=level)
        )
    if state.parent is not None and state.defines(name) and state.parent.sees(name):
        text = f"Value {name_of(name)} has the name of a value of the scope around it"
        findings.append(
            make_finding(
                "shadowed-value",
                text,
                scope,
                state.first_producer(name),
                value=name,
                level="error" if producers and state.repeats(name) else "warning",
                repair=repairs.rename_shadowing(name),
            )
        )
    if not name and records:
        lists = ", ".join(records)
        findings.append(
            make_finding("empty-name", f"A record of {lists} has no name", scope, value=name)
        )


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
    parts = (part for proto in sparse for part in (proto.values, proto.indices))
    state.external += filter(is_external, (*dense, *parts))
    state.inline[name] = size
    count = len(dense) + len(sparse)
    unused = not state.uses(name)
    if count == 1 and not unused:
        return
    text = f"Initializer {name_of(name)} is "
    unused_repair = repairs.remove_initializers([name])
    if count > 1:
        times = "twice" if count == 2 else f"{count} times"
        tail = " and never used" if unused else ""
        same = repairs.remove_repeated_initializers([name])
        repair = unused_repair if unused else same if _are_equal(dense) else None
        text += f"defined {times}{tail}"
        findings.append(
            make_finding("duplicate-initializer", text, state.scope, value=name, repair=repair)
        )
    else:
        text += "never used"
        findings.append(
            make_finding("unused-initializer", text, state.scope, value=name, repair=unused_repair)
        )


def _are_equal(tensors: Any) -> bool:
    return len(tensors) > 1 and all(tensor == tensors[0] for tensor in tensors)


def _check_input(findings: list[Finding], state: ScopeState, name: str) -> None:
    scope = state.scope
    count = state.inputs[name]
    if count > 1:
        text = f"{count} inputs are called {name_of(name)}"
        findings.append(make_finding("duplicate-input", text, scope, value=name))
    is_weight = not scope.is_function and name in scope.named("initializer")
    # Subgraphs and functions have the inputs that their node gives, used or not.
    if scope.kind == "graph" and not state.uses(name) and not is_weight:
        text = f"Input {name_of(name)} is never used"
        findings.append(make_finding("unused-input", text, scope, value=name))


def _check_output(findings: list[Finding], state: ScopeState, name: str) -> None:
    scope, shown_name = state.scope, name_of(name)
    if state.outputs[name] > 1:
        text = f"{state.outputs[name]} outputs are called {shown_name}"
        level: Level | None = "error" if scope.is_function else None
        findings.append(make_finding("duplicate-output", text, scope, value=name, level=level))
    if scope.is_function and name and name in state.inputs:
        text = f"Output {shown_name} is an input of the function, which ONNX Runtime rejects"
        repair = repairs.own_outputs(name)
        findings.append(make_finding("outer-output", text, scope, value=name, repair=repair))
    if not name or state.defines(name):
        return
    if not state.sees(name):
        text = f"Graph output {shown_name} is never produced"
        findings.append(make_finding("missing-output", text, scope, value=name))
    else:
        text = (
            f"Output {shown_name} is a value of an outer scope, which cannot be an output directly"
        )
        repair = repairs.own_outputs(name)
        findings.append(make_finding("outer-output", text, scope, value=name, repair=repair))


class _Source(TextEnum):
    """What declares the type of a value."""

    VALUE_INFO = "value_info"
    INPUT = "the graph input"
    OUTPUT = "the graph output"
    INITIALIZER = "the initializer"
    INFERENCE = "shape inference"


_SOURCES = {"value_info": _Source.VALUE_INFO, "input": _Source.INPUT, "output": _Source.OUTPUT}
_Declared: TypeAlias = "tuple[_Source, str, Dims | None]"
"""What declares a value, with its type, empty if it is none, and its shape."""


def _check_value_types(
    findings: list[Finding], state: ScopeState, name: str, records: dict[str, list[Any]]
) -> None:
    declared: list[_Declared] = []
    for list_name in _TYPED_LISTS:
        for record in records.get(list_name, ()):
            kind = type_of_proto(record.type)
            value = value_type_of(record.type)
            dims = value.dims if value is not None and not value.container else None
            if list_name != "value_info":
                repair = repairs.SET_INFERRED_TYPE if len(records[list_name]) == 1 else None
                _check_declared(findings, state, name, list_name, record, kind is None, repair)
            _check_dims(findings, state, name, dims, record)
            declared.append((_SOURCES[list_name], kind or "", dims))
    for proto in records.get("initializer", ()):
        declared.append(
            (_Source.INITIALIZER, tensor_type(proto.data_type) or "", tuple(proto.dims))
        )
    inferred = state.scope.inferred.get(name)
    if inferred is not None and declared and not state.scope.is_stale(name):
        dims = None if inferred.container else inferred.dims
        declared.append((_Source.INFERENCE, type_of_value(inferred) or "", dims))
    _compare_with_declared(findings, state, name, declared)
    if records.get("value_info") and not state.defines(name) and name not in state.outputs:
        text = f"value_info describes {name_of(name)}, which is not in the graph"
        findings.append(
            make_finding(
                "unused-value-info",
                text,
                state.scope,
                value=name,
                repair=repairs.remove_value_info(name),
            )
        )


_ERROR: Level = "error"
_WARNING: Level = "warning"


def _check_declared(
    findings: list[Finding],
    state: ScopeState,
    name: str,
    list_name: str,
    record: Any,
    bare: bool,
    repair: Repair | None,
) -> None:
    """Tell of inputs and outputs of the main graph that onnx's checker refuses."""
    if state.scope.kind != "graph":
        return
    if bare and value_type_of(record.type) is None:
        difference, level = "type", _ERROR if list_name == "input" else _WARNING
    elif record.type.HasField("tensor_type") and not record.type.tensor_type.HasField("shape"):
        difference, level = "shape", _WARNING  # runtimes take it
    else:
        return
    text = (
        f"The graph {list_name} {name_of(name)} has no {difference}, which onnx's checker refuses"
    )
    findings.append(
        make_finding("missing-type", text, state.scope, value=name, repair=repair, level=level)
    )


def _check_dims(
    findings: list[Finding], state: ScopeState, name: str, dims: Dims | None, record: Any
) -> None:
    sizes = [dim for dim in dims or () if isinstance(dim, int)]
    if None in (dims or ()) and any(d.dim_value < 0 for d in record.type.tensor_type.shape.dim):
        text = f"Value {name_of(name)} has a negative dimension"
        findings.append(make_finding("negative-dimension", text, state.scope, value=name))
        return
    count = math.prod(sizes)
    if count > MAX_DIMENSION_PRODUCT:
        power = count.bit_length() - 1
        text = f"Value {name_of(name)}: element count overflows (about 2^{power})"
        findings.append(make_finding("shape", text, state.scope, value=name))


def _compare_with_declared(
    findings: list[Finding],
    state: ScopeState,
    name: str,
    declared: list[_Declared],
) -> None:
    """Compare all declarations of a value with the first one."""
    sources = {source for source, _, _ in declared}
    repair = (
        repairs.remove_value_info(name)
        if _Source.VALUE_INFO in sources and len(sources) > 1
        else None
    )
    if repair is None and {_Source.OUTPUT, _Source.INFERENCE} <= sources:
        repair = repairs.SET_INFERRED_TYPE
    first = next((entry for entry in declared if entry[1]), None)
    for label, kind, _ in declared:
        if first is not None and kind and kind != first[1]:
            text = (
                f"Value {name_of(name)} is {shown(first[1])} in {first[0]} and {shown(kind)} in"
                f" {label}"
            )
            kind_level: Level = "warning" if state.is_constant(name) else "error"
            findings.append(
                make_finding(
                    "type-conflict", text, state.scope, value=name, repair=repair, level=kind_level
                )
            )
            return
    shaped = [(label, dims) for label, _, dims in declared if dims is not None]
    for label, dims in shaped[1:]:
        if _differ(shaped[0][1], dims):
            text = (
                f"Value {name_of(name)} is {dims_text(shaped[0][1])} in {shaped[0][0]} and"
                f" {dims_text(dims)} in {label}"
            )
            # Runtimes go by what operators make, and refuse only what does not fit the weights.
            level: Level = "error" if _Source.INITIALIZER in sources else "warning"
            if state.is_constant(name):
                level = "info"  # the shape is that of its data, whatever else is declared
            findings.append(
                make_finding(
                    "shape-conflict", text, state.scope, value=name, repair=repair, level=level
                )
            )
            return


def _differ(first: Dims, second: Dims) -> bool:
    return len(first) != len(second) or any(
        isinstance(a, int) and isinstance(b, int) and a != b
        for a, b in zip(first, second, strict=True)
    )
