"""Rules about one node: its call, links, attributes, types, and its subgraphs."""

from __future__ import annotations

from dld_tui.core import protos as onnx
from dld_tui.core.checks.findings import Finding, Level, Repair, found, name_of, names_of
from dld_tui.core.checks.model_rules import odd_name
from dld_tui.core.checks.signatures import UNLIMITED, Key, Signature, Taken
from dld_tui.core.checks.state import ScopeState
from dld_tui.core.checks.value_rules import attribute_problems
from dld_tui.core.document import Node, Scope
from dld_tui.core.document.node import attribute_type
from dld_tui.core.document.proto_text import text_of
from dld_tui.core.document.value_types import shown, tensor_type
from dld_tui.core.types import plain_domain


def check_bodies(state: ScopeState, node: Node) -> list[Finding]:
    """Return where the inputs or outputs of subgraphs do not fit the node that runs them."""
    domain, op_type = state.keys[node]
    if domain:
        return []
    if op_type == "If":
        return [
            finding
            for scope in node.subgraphs()
            for finding in _compare(node, scope, 0, len(node.outputs))
        ]
    bodies = node.children.get("body", ())
    if op_type == "Loop" and bodies:
        carried = max(len(node.inputs) - 2, 0)
        return _compare(node, bodies[0], carried + 2, len(node.outputs) + 1)
    if op_type == "Scan" and bodies and state.root.imports.get("", 0) >= 9:
        return _compare(node, bodies[0], len(node.inputs), len(node.outputs))
    return []


def _compare(node: Node, scope: Scope, inputs: int, outputs: int) -> list[Finding]:
    findings = []
    for what, names, wanted in (
        ("input", scope.inputs, inputs),
        ("output", scope.outputs, outputs),
    ):
        if len(names) != wanted:
            plural = "" if len(names) == 1 else "s"
            message = (
                f"Subgraph {name_of(scope.title)} has {len(names)} {what}{plural}, the node needs"
                f" {wanted}"
            )
            findings.append(found("subgraph-signature", message, node.scope, node))
    return findings


_A = onnx.AttributeProto
_TENSORS = frozenset({int(_A.TENSOR), int(_A.TENSORS), int(_A.SPARSE_TENSOR)})
_CUT = Repair("trim_links", node=True)


def operator_of(node: Node) -> Key:
    """Return the operator that a node calls."""
    proto = node.proto
    return plain_domain(text_of(proto.domain)), text_of(proto.op_type)


def check_node(state: ScopeState, node: Node, inputs: tuple[str, ...]) -> list[Finding]:
    """Return what is wrong with a node whose inputs are given (they are slow to get)."""
    findings: list[Finding] = []
    outputs = node.outputs
    producers, declared = state.producers, state.declared
    for name in inputs:
        if name not in producers and name not in declared and name and not state.sees(name):
            findings.append(_undefined(state, node, inputs))
            break
    name = node.name
    if not name.isprintable():
        findings += odd_name(node.scope, name, node)
    signature = state.root.signature(state.keys[node])
    if signature.problem is not None:
        rule, message = signature.problem
        # Readers take it for a constant, whatever its operator set.
        level: Level | None = "warning" if state.keys[node][1] == "Constant" else signature.level
        findings.append(
            found(rule, message, node.scope, node, repair=signature.repair, level=level)
        )
    if signature.checked:
        if (
            not signature.least_inputs <= len(inputs) <= signature.most_inputs
            or not signature.least_outputs <= len(outputs) <= signature.most_outputs
        ):
            _check_counts(findings, node, signature, len(inputs), len(outputs))
        if "" in inputs:
            _check_left_out(findings, node, signature, inputs)
        _check_types(findings, state, node, signature, inputs, outputs)
        if len(outputs) > 1:
            _check_unused(findings, state, node, signature)
    attributes = node.proto.attribute
    if attributes or signature.required:
        _check_attributes(findings, state, node, signature)
    if node.children:
        findings += check_bodies(state, node)
    return findings


def _undefined(state: ScopeState, node: Node, inputs: tuple[str, ...]) -> Finding:
    missing = [name for name in inputs if name and not state.sees(name)]
    noun, verb = ("Input", "has") if len(missing) == 1 else ("Inputs", "have")
    message = f"{noun} {names_of(missing)} {verb} no producer"
    return found("undefined-input", message, node.scope, node, value=missing[0])


def _check_counts(
    findings: list[Finding], node: Node, signature: Signature, inputs: int, outputs: int
) -> None:
    if not signature.least_inputs <= inputs <= signature.most_inputs:
        least, most = signature.least_inputs, signature.most_inputs
        findings.append(_count(node, signature, "input", inputs, least, most))
    if not signature.least_outputs <= outputs <= signature.most_outputs:
        least, most = signature.least_outputs, signature.most_outputs
        findings.append(_count(node, signature, "output", outputs, least, most))


def _count(
    node: Node, signature: Signature, what: str, count: int, least: int, most: int
) -> Finding:
    if most >= UNLIMITED:
        wanted = f"at least {least}"
    else:
        wanted = f"{least}" if least == most else f"{least} to {most}"
    plural = "" if count == 1 else "s"
    message = f"{signature.title} has {count} {what}{plural}, it takes {wanted}"
    names = node.inputs if what == "input" else node.outputs
    filled = next((i + 1 for i in reversed(range(count)) if names[i]), 0)
    can_trim = filled < count and least <= filled <= most
    return found("arity", message, node.scope, node, repair=_CUT if can_trim else None)


def _check_left_out(
    findings: list[Finding], node: Node, signature: Signature, inputs: tuple[str, ...]
) -> None:
    for index, name in enumerate(inputs):
        if not name and index < len(signature.inputs) and signature.inputs[index].required:
            message = f"{signature.title} needs its input {index}, which is left out"
            findings.append(found("missing-input", message, node.scope, node))


def _check_unused(
    findings: list[Finding], state: ScopeState, node: Node, signature: Signature
) -> None:
    for index, name in enumerate(node.outputs):
        if not name or index >= len(signature.outputs) or not signature.outputs[index].optional:
            continue
        if not state.uses(name):
            message = f"Output {name_of(name)} of {signature.title} is optional and never used"
            findings.append(found("unused-output", message, node.scope, node, value=name))


# --- types --------------------------------------------------------------------------------------


def _check_types(
    findings: list[Finding],
    state: ScopeState,
    node: Node,
    signature: Signature,
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
) -> None:
    """Compare what is known of the types of a node's values with what its operator takes."""
    known: list[tuple[bool, int, str]] = []
    is_plain = not state.scope.inferred and state.parent is None
    types, from_inference = state.types, False
    for is_input, names in ((True, inputs), (False, outputs)):
        for index, name in enumerate(names):
            if name in types:
                known.append((is_input, index, types[name]))
            elif not is_plain and name:
                type_name, is_inferred = state.type_of(name)
                if type_name is not None:
                    known.append((is_input, index, type_name))
                    from_inference = from_inference or is_inferred
    if not known:
        return
    before = len(findings)
    _compare_types(findings, node, signature, known)
    if node.op_type == "Cast":
        _check_cast(findings, state, node)
    if from_inference and len(findings) > before:
        state.inferred_nodes.add(node)


def _compare_types(
    findings: list[Finding], node: Node, signature: Signature, known: list[tuple[bool, int, str]]
) -> None:
    bound: dict[str, tuple[bool, int, str]] = {}
    for entry in known:
        is_input, index, type_name = entry
        formals = signature.inputs if is_input else signature.outputs
        more = signature.variadic_input if is_input else signature.variadic_output
        taken = formals[index] if index < len(formals) else more
        if taken is None:
            continue
        if type_name not in taken.types:
            if node.op_type == "Constant":
                continue  # before opset 9 it is for floats only, and runtimes take any
            rule = "input-type" if is_input else "output-type"
            text = f"{_terminal(node, entry)} is {shown(type_name)}, it takes {_accepted(taken)}"
            findings.append(found(rule, text, node.scope, node))
        elif taken.variable:
            first = bound.setdefault(taken.variable, entry)
            if first[2] != type_name:
                text = (
                    f"{_terminal(node, entry)} is {shown(type_name)}, but"
                    f" {_terminal(node, first)} is {shown(first[2])}"
                )
                findings.append(found("type-conflict", text, node.scope, node))
                return


def _terminal(node: Node, entry: tuple[bool, int, str]) -> str:
    is_input, index, _ = entry
    name = (node.inputs if is_input else node.outputs)[index]
    return f"{'Input' if is_input else 'Output'} {index} ({name_of(name)})"


def _check_cast(findings: list[Finding], state: ScopeState, node: Node) -> None:
    wanted = node.attribute("to")
    declared = state.types.get(next(iter(node.outputs), ""))
    made = tensor_type(int(wanted.proto.i)) if wanted is not None else None
    if made is not None and declared is not None and made != declared:
        message = (
            f"Cast makes {shown(made)}, but its output {name_of(node.outputs[0])} is declared"
            f" {shown(declared)}"
        )
        findings.append(found("type-conflict", message, node.scope, node, value=node.outputs[0]))


def _accepted(taken: Taken) -> str:
    names = sorted(shown(name) for name in taken.types)
    return names_of(names, most=6)


# --- attributes ---------------------------------------------------------------------------------


_LENIENT = ("LayerNormalization",)
"""Operators that ONNX Runtime takes with attributes that they have not."""


def _check_attributes(
    findings: list[Finding], state: ScopeState, node: Node, signature: Signature
) -> None:
    seen: set[str] = set()
    known = signature.attributes if signature.checked else None
    for proto in node.proto.attribute:
        name = text_of(proto.name)
        if name in seen:
            message = f"Attribute {name_of(name)} is set more than once"
            findings.append(found("duplicate-attribute", message, node.scope, node))
        seen.add(name)
        kind = proto.type or attribute_type(proto)
        if known is not None:
            wanted = known.get(name)
            if wanted is None:
                message = f"{signature.title} has no attribute {name_of(name)}"
                repair = Repair("remove_attribute", {"attribute": name}, node=True)
                level: Level | None = "warning" if signature.title in _LENIENT else None
                findings.append(
                    found(
                        "unknown-attribute", message, node.scope, node, repair=repair, level=level
                    )
                )
            elif wanted and kind != wanted:
                message = f"Attribute {name_of(name)} is {_kind(kind)}, it takes {_kind(wanted)}"
                findings.append(found("attribute-type", message, node.scope, node))
        elif not kind:
            message = f"Attribute {name_of(name)} has no type and no value"
            findings.append(found("attribute-type", message, node.scope, node))
        if proto.ref_attr_name:
            _check_reference(findings, state, node, text_of(proto.ref_attr_name))
        elif kind in _TENSORS:
            findings += attribute_problems(node, name)
    missing = [name for name in signature.required if name not in seen]
    if missing:
        message = f"{signature.title} needs the attribute {names_of(missing)}"
        findings.append(found("missing-attribute", message, node.scope, node))


def _check_reference(
    findings: list[Finding], state: ScopeState, node: Node, parameter: str
) -> None:
    if parameter in state.root.parameters:
        return
    if not state.root.scope.is_function:
        message = f"An attribute refers to the parameter {name_of(parameter)} outside a function"
    else:
        message = f"The function has no parameter {name_of(parameter)} that an attribute refers to"
    findings.append(found("attribute-reference", message, node.scope, node))


def _kind(number: int) -> str:
    try:
        return _A.AttributeType.Name(number).lower()
    except ValueError:
        return f"type {number}"
