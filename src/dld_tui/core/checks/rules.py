"""The rules of a check: about the model as a whole, about values, about nodes.

Of a model: versions, operator sets, size, functions, depth, names. Of values and tensors: what is
declared. Of a node: its call, links, attributes, types, and its subgraphs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from dld_tui.core import fmt
from dld_tui.core.checks import repairs
from dld_tui.core.checks.findings import Finding, Level, Repair, make_finding, name_of, names_of
from dld_tui.core.checks.signatures import (
    UNLIMITED,
    FormalTypes,
    Key,
    Root,
    Signature,
    function_key,
)
from dld_tui.core.checks.state import ScopeState
from dld_tui.core.checks.tensor_rules import (
    attribute_problems,
)
from dld_tui.core.checks.value_rules import odd_name
from dld_tui.core.files import protos as onnx
from dld_tui.core.files.external import (
    is_external,
    tensors_of_attribute,
)
from dld_tui.core.files.proto_fields import (
    LEAST_OF_A_CROWD,
    MOST_PARTS,
    attribute_type,
    crowd_of,
    crowd_of_tensor,
    crowd_of_value,
    text_of,
)
from dld_tui.core.model.document import Document, Node, Scope
from dld_tui.core.model.document.data_files import external_tensors, unused_bytes
from dld_tui.core.model.document.local_functions import key_of
from dld_tui.core.model.document.node import grouped_for_reading
from dld_tui.core.model.tensors.value_types import (
    castable,
    shown,
    tensor_type,
)
from dld_tui.core.reach import reached
from dld_tui.core.text import clip, visible
from dld_tui.core.types import SCAN_SINCE

LARGEST_FILE = 2**31 - 1
"""Bytes of the largest protobuf message."""
DEEPEST = 31
"""Subgraphs inside each other that protobuf still reads: a level takes 3 of 100 messages."""


def check_model(
    document: Document, roots: list[Root], states: Iterable[ScopeState]
) -> Iterator[Finding]:
    """Yield findings on the model as a whole; `roots` begin with the main graph's."""
    every = list(states)
    yield from _check_versions(document, roots[0])
    yield from _check_imports(roots)
    if not document.main.proto.name:
        yield make_finding("graph-name", "The graph has no name", repair=repairs.NAME_GRAPH)
    main = document.main
    if not (main.nodes or main.inputs or main.outputs or main.records["initializer"]):
        yield make_finding("empty-graph", "The graph has no nodes, inputs, outputs and weights")
    size = sum(sum(state.inline.values()) for state in every)
    if size > LARGEST_FILE:
        text = f"{fmt.size(size)} of weights are in the model's file; more than 2 GiB cannot be"
        yield make_finding("model-size", text)
    for location, count in unused_bytes(document, _external(document, every)).items():
        text = f"{fmt.size(count)} of the data file {name_of(location)} are used by no tensor"
        yield make_finding("external-unused", text)
    for state in every:
        if state.depth == DEEPEST + 1:
            text = f"Subgraphs are nested more than {DEEPEST} deep; protobuf may refuse the file"
            yield make_finding("nesting-depth", text, state.scope)
    yield from _check_functions(roots)


def _external(document: Document, states: Iterable[ScopeState]) -> Iterable[onnx.TensorProto]:
    """Return the tensors in data files, as the checks of scopes met them where that is enough."""
    protos = (function.proto for function in document.functions)
    has_defaults = any(isinstance(p, onnx.FunctionProto) and p.attribute_proto for p in protos)
    if document.model.training_info or has_defaults:
        return external_tensors(document)
    return [tensor for state in states for tensor in state.external]


def check_size(document: Document) -> Iterator[Finding | None]:
    """Yield what the model has too many parts of to be looked at, and None between nodes."""
    count = len(document.model.opset_import)
    if count > MOST_PARTS:
        yield make_finding("too-many-parts", f"The model imports {count:,} operator sets")
    for holder, what in ((document.model, "model"), (document.main.proto, "graph")):
        count = len(getattr(holder, "metadata_props", ()))  # graphs have none in old onnx
        if count > MOST_PARTS:
            yield make_finding("too-many-parts", f"The {what} has {count:,} entries of metadata")
    for scope in document.scopes():
        for name in ("value_info", "initializer"):
            count = len(scope.records.get(name, ()))
            if count > MOST_PARTS + _PARTS_A_NODE * len(scope.nodes):
                text = f"There are {count:,} entries of {name} for {len(scope.nodes):,} nodes"
                yield make_finding("too-many-parts", text, scope)
        for name, crowd_in in (("value_info", crowd_of_value), ("initializer", crowd_of_tensor)):
            for at, record in enumerate(scope.records.get(name, ())):
                if crowd := crowd_in(record):
                    text = f"Value {name_of(text_of(record.name))} has {crowd}"
                    yield make_finding("too-many-parts", text, scope)
                elif not at % _SIZE_SLICE:
                    yield None
        for own, nodes in grouped_for_reading(scope.nodes):
            if own is not None and own.longest < LEAST_OF_A_CROWD:
                yield None
                continue
            for at, node in enumerate(nodes):
                if crowd := crowd_of(node.proto):
                    text = f"{name_of(node.op_type)} has {crowd}, more than programs go through"
                    yield make_finding("too-many-parts", text, scope, node)
                elif not at % _SIZE_SLICE:
                    yield None


_SIZE_SLICE = 1000
_PARTS_A_NODE = 100
"""More values than nodes have, as a rule."""


def _check_versions(document: Document, root: Root) -> Iterator[Finding]:
    model = document.model
    newest_ir = int(onnx.IR_VERSION)
    if not model.ir_version:
        from dld_tui.core.model.operators.registry import least_ir_version

        repair = repairs.set_ir_version(
            max([4, *(least_ir_version({d: v}) for d, v in root.entries)])
        )
        level: Level = "warning" if model.HasField("ir_version") else "error"  # 0 is taken
        yield make_finding("ir-missing", "ir_version missing", repair=repair, level=level)
    elif model.ir_version > newest_ir:
        text = f"IR version {model.ir_version} unsupported: newer than {newest_ir}"
        yield make_finding("ir-unsupported", text)
    elif model.ir_version < 4:
        names = set(document.main.named("initializer")) - set(document.main.inputs)
        if names:
            text = (
                f"{fmt.plural(len(names), 'initializer')} not among the graph inputs, as IR version"
                f" {model.ir_version} wants it"
            )
            yield make_finding("initializer-not-input", text, repair=repairs.set_ir_version(4))
    elif listed := set(document.main.named("initializer")).intersection(document.main.inputs):
        noun = fmt.plural(len(listed), "initializer")
        text = f"{noun} among the graph inputs: runtimes fold and fuse nothing with their values"
        repair = repairs.WEIGHTS_OFF_INPUTS
        yield make_finding("initializer-is-input", text, repair=repair)
    if not root.entries:
        yield make_finding("opset-missing", "No opset_import: invalid for IR >= 3")
    newest = onnx.defs().schema_version_map()[""][1]
    version = root.imports.get("", 0)
    if version > newest:
        text = f"Opset {version} is newer than this tool knows ({newest})"
        yield make_finding("opset-future", text)


def _check_imports(roots: list[Root]) -> Iterator[Finding]:
    known: set[str] = set()
    if roots[0].operators:
        from dld_tui.core.model.operators.registry import known_domains

        known.update(known_domains())
    counts: Counter[str] = Counter()
    functions = roots[0].functions
    for root in roots:
        scope = None if root is roots[0] else root.scope
        for domain, count in Counter(domain for domain, _ in root.entries).items():
            if count > 1:
                text = f"Operator set {name_of(domain or 'ai.onnx')} is imported {count} times"
                yield make_finding("duplicate-opset", text, scope)
        for (domain, op_type), count in root.calls.items():
            if domain not in known and (domain, op_type) not in functions:
                counts[domain] += count
    for domain, count in counts.items() if known else ():
        text = (
            f"{fmt.plural(count, 'node')} of the operator set {name_of(domain)}"
            f" {'is' if count == 1 else 'are'} not checked: it is not known here"
        )
        yield make_finding("unknown-domain", text)
    called = {domain for domain, _ in roots[0].calls}
    for domain in roots[0].imports:
        if domain and domain not in called:
            repair = repairs.set_opset(domain, None)
            text = f"Operator set {name_of(domain)} is imported and never used"
            # The edit looks at functions too, which have imports of their own.
            in_functions = any(domain == key[0] for root in roots[1:] for key in root.calls)
            yield make_finding("unused-opset", text, repair=None if in_functions else repair)


def _check_functions(roots: list[Root]) -> Iterator[Finding]:
    seen: set[tuple[str, str, str]] = set()
    callers: dict[Key, list[Root]] = {}
    for root in roots[1:]:
        callers.setdefault(function_key(root.scope), []).append(root)
        full_key = key_of(root.scope)
        if full_key in seen:
            text = f"Function {_title(root.scope)} is defined more than once"
            yield make_finding("duplicate-function", text, root.scope)
        seen.add(full_key)
    used = _reached(roots[0].calls, callers)
    for key, found_roots in callers.items():
        calls: Counter[Key] = Counter()
        for root in found_roots:
            calls += root.calls
        scope = found_roots[0].scope
        if key in _reached(calls, callers):
            yield make_finding(
                "recursive-function", f"Function {_title(scope)} calls itself", scope
            )
        if key not in used:
            text = f"Function {_title(scope)} is never called"
            is_one = sum(root.scope.path == scope.path for root in found_roots) == 1
            repair = repairs.DELETE_FUNCTION if is_one else None
            yield make_finding("unused-function", text, scope, repair=repair)


def _reached(calls: Counter[Key], functions: dict[Key, list[Root]]) -> set[Key]:
    """Return the functions that some calls reach, directly or through others."""
    return reached(
        functions.keys() & calls.keys(),
        lambda key: [k for root in functions[key] for k in root.calls if k in functions],
    )


def _title(scope: Scope) -> str:
    return name_of("::".join(function_key(scope)))


def check_bodies(state: ScopeState, node: Node) -> list[Finding]:
    """Return where the inputs or outputs of subgraphs do not fit the node that runs them."""
    domain, op_type = state.keys[node]
    if domain:
        return []
    if op_type == "If":
        return [
            finding
            for scope in node.subgraphs()
            for finding in _compare_with_body(node, scope, 0, len(node.outputs))
        ]
    bodies = node.children.get("body", ())
    if op_type == "Loop" and bodies:
        carried = max(len(node.inputs) - 2, 0)
        return _compare_with_body(node, bodies[0], carried + 2, len(node.outputs) + 1)
    if op_type == "Scan" and bodies and state.root.imports.get("", 0) >= SCAN_SINCE:
        return _compare_with_body(node, bodies[0], len(node.inputs), len(node.outputs))
    return []


def _compare_with_body(node: Node, scope: Scope, inputs: int, outputs: int) -> list[Finding]:
    findings = []
    for label, names, wanted in (
        ("input", scope.inputs, inputs),
        ("output", scope.outputs, outputs),
    ):
        if len(names) != wanted:
            plural = "" if len(names) == 1 else "s"
            message = (
                f"Subgraph {name_of(scope.title)} has {len(names)} {label}{plural}, the node needs"
                f" {wanted}"
            )
            findings.append(make_finding("subgraph-signature", message, node.scope, node))
    return findings


_A = onnx.AttributeProto
_TENSORS = frozenset({int(_A.TENSOR), int(_A.TENSORS), int(_A.SPARSE_TENSOR)})


def check_node_name(state: ScopeState, name: str) -> None:
    """Find out whether several nodes have this name."""
    nodes = state.scope.nodes_named(name) if name else []
    if len(nodes) < 2:
        return
    second = sorted(nodes, key=lambda node: state.positions.get(node, 0))[1]
    message = f"{len(nodes)} nodes are called {name_of(name)}"
    # Readers make weights of constants: their names are then no nodes' any more.
    others = sum(node.op_type != "Constant" for node in nodes)
    level: Level = "error" if others > 1 else "warning"
    finding = make_finding(
        "duplicate-node-name",
        message,
        state.scope,
        second,
        repair=repairs.RENAME_DUPLICATES,
        level=level,
    )
    state.report([finding], state.positions[second])


def check_node(state: ScopeState, node: Node, inputs: Sequence[str]) -> list[Finding]:
    """Return findings on a node whose inputs are given (they are slow to get)."""
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
            make_finding(rule, message, node.scope, node, repair=signature.repair, level=level)
        )
    if signature.checked:
        if (
            not signature.least_inputs <= len(inputs) <= signature.most_inputs
            or not signature.least_outputs <= len(outputs) <= signature.most_outputs
        ):
            _check_counts(findings, node, signature, len(inputs), len(outputs))
        if "" in inputs:
            _check_left_out(findings, node, signature, inputs)
        if "" in outputs:
            _check_nameless(findings, node, signature, outputs)
        _check_operand_types(findings, state, node, signature, inputs, outputs)
        if len(outputs) > 1:
            _check_unused(findings, state, node, signature)
    _check_attributes(findings, state, node, signature)
    if node.children:
        findings += check_bodies(state, node)
    return findings


def _undefined(state: ScopeState, node: Node, inputs: Sequence[str]) -> Finding:
    missing = list(dict.fromkeys(name for name in inputs if name and not state.sees(name)))
    noun, verb = ("Input", "has") if len(missing) == 1 else ("Inputs", "have")
    message = f"{noun} {names_of(missing)} {verb} no producer"
    return make_finding("undefined-input", message, node.scope, node, value=missing[0])


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
    node: Node, signature: Signature, side: str, count: int, least: int, most: int
) -> Finding:
    if most >= UNLIMITED:
        wanted = f"at least {least}"
    else:
        wanted = f"{least}" if least == most else f"{least} to {most}"
    plural = "" if count == 1 else "s"
    message = f"{signature.title} has {count} {side}{plural}, it takes {wanted}"
    names = node.inputs if side == "input" else node.outputs
    filled = next((i + 1 for i in reversed(range(count)) if names[i]), 0)
    can_trim = filled < count and least <= filled <= most
    return make_finding(
        "arity", message, node.scope, node, repair=repairs.TRIM_LINKS if can_trim else None
    )


def _check_left_out(
    findings: list[Finding], node: Node, signature: Signature, inputs: Sequence[str]
) -> None:
    for index, name in enumerate(inputs):
        if not name and index < len(signature.inputs) and signature.inputs[index].required:
            message = f"{signature.title} needs its input {index}, which is left out"
            findings.append(make_finding("missing-input", message, node.scope, node))


def _check_nameless(
    findings: list[Finding], node: Node, signature: Signature, outputs: Sequence[str]
) -> None:
    formals = signature.outputs
    for index, name in enumerate(outputs):
        formal = formals[min(index, len(formals) - 1)] if formals else None
        if name or formal is None:
            continue
        if formal.required:
            message = f"Output {index} of {signature.title} is required, but has no name"
            findings.append(make_finding("nameless-output", message, node.scope, node))
            return


def _check_unused(
    findings: list[Finding], state: ScopeState, node: Node, signature: Signature
) -> None:
    for index, name in enumerate(node.outputs):
        if not name or index >= len(signature.outputs) or not signature.outputs[index].optional:
            continue
        if not state.uses(name):
            message = f"Output {name_of(name)} of {signature.title} is optional and never used"
            findings.append(make_finding("unused-output", message, node.scope, node, value=name))


def _check_operand_types(
    findings: list[Finding],
    state: ScopeState,
    node: Node,
    signature: Signature,
    inputs: Sequence[str],
    outputs: Sequence[str],
) -> None:
    """Compare the known types of a node's values with those that its operator takes."""
    known: list[tuple[bool, int, str]] = []
    is_plain = not state.scope.inferred and state.parent is None
    types = state.types
    for is_input, names in ((True, inputs), (False, outputs)):
        for index, name in enumerate(names):
            if name in types:
                known.append((is_input, index, types[name]))
            elif not is_plain and name and (type_name := state.type_of(name)) is not None:
                known.append((is_input, index, type_name))
    if not known:
        return
    _compare_types(findings, node, signature, known)
    if node.op_type == "Cast":
        _check_cast(findings, state, node)


def _compare_types(
    findings: list[Finding], node: Node, signature: Signature, known: list[tuple[bool, int, str]]
) -> None:
    bound: dict[str, tuple[bool, int, str]] = {}
    for entry in known:
        is_input, index, type_name = entry
        formals = signature.inputs if is_input else signature.outputs
        more = signature.variadic_input if is_input else signature.variadic_output
        formal = formals[index] if index < len(formals) else more
        if formal is None:
            continue
        if type_name not in formal.types:
            if node.op_type == "Constant":
                continue  # before opset 9 it is for floats only, and runtimes take any
            rule = "input-type" if is_input else "output-type"
            text = f"{_terminal(node, entry)} is {shown(type_name)}, it takes {_accepted(formal)}"
            repair = _cast(entry, _best_type(signature, known, formal))
            findings.append(make_finding(rule, text, node.scope, node, repair=repair))
        elif formal.variable:
            first = bound.setdefault(formal.variable, entry)
            if first[2] != type_name:
                text = (
                    f"{_terminal(node, entry)} is {shown(type_name)}, but"
                    f" {_terminal(node, first)} is {shown(first[2])}"
                )
                repair = _cast(entry, first[2])
                findings.append(
                    make_finding("type-conflict", text, node.scope, node, repair=repair)
                )
                return


def _cast(entry: tuple[bool, int, str], wanted: str | None) -> Repair | None:
    """Return the Cast of an input to a type; None where it cannot be cast."""
    is_input, index, present = entry
    dtype = castable(wanted)
    if not is_input or castable(present) is None or dtype is None:
        return None
    return repairs.cast_input(index, dtype)


_PREFERRED = ("tensor(float)", "tensor(int64)", "tensor(int32)", "tensor(bool)")
"""What an input is cast to that takes several types."""


def _best_type(
    signature: Signature, known: list[tuple[bool, int, str]], formal: FormalTypes
) -> str | None:
    """Return the type that an input should have: that of its like, or one that it takes."""
    for is_input, index, type_name in known if formal.variable else ():
        formals = signature.inputs if is_input else signature.outputs
        other = formals[index] if index < len(formals) else None
        if other is not None and other.variable == formal.variable and type_name in formal.types:
            return type_name
    if len(formal.types) == 1:
        return next(iter(formal.types))
    return next((name for name in _PREFERRED if name in formal.types), None)


def _terminal(node: Node, entry: tuple[bool, int, str]) -> str:
    is_input, index, _ = entry
    name = (node.inputs if is_input else node.outputs)[index]
    return f"{'Input' if is_input else 'Output'} {index} ({name_of(name)})"


def _check_cast(findings: list[Finding], state: ScopeState, node: Node) -> None:
    wanted = node.attribute("to")
    declared = state.type_of(next(iter(node.outputs), ""))
    output_type = tensor_type(int(wanted.proto.i)) if wanted is not None else None
    if output_type is not None and declared is not None and output_type != declared:
        message = (
            f"Cast outputs {shown(output_type)}, but its output {name_of(node.outputs[0])} is"
            f" declared {shown(declared)}"
        )
        findings.append(
            make_finding("type-conflict", message, node.scope, node, value=node.outputs[0])
        )


def _accepted(formal: FormalTypes) -> str:
    names = sorted(shown(name) for name in formal.types)
    return names_of(names, most=6)


_LENIENT = ("LayerNormalization",)
"""Operators that ONNX Runtime takes with attributes that they have not."""


def _check_attributes(
    findings: list[Finding], state: ScopeState, node: Node, signature: Signature
) -> None:
    seen: set[str] = set()
    known = signature.attributes if signature.checked else None
    for proto in node.proto.attribute:
        name = text_of(proto.name)
        state.external += filter(is_external, tensors_of_attribute(proto, sparse=True))
        if name in seen:
            message = f"Attribute {name_of(name)} is set more than once"
            findings.append(make_finding("duplicate-attribute", message, node.scope, node))
        seen.add(name)
        kind = proto.type or attribute_type(proto)
        if known is not None:
            wanted = known.get(name)
            if wanted is None:
                message = f"{signature.title} has no attribute {name_of(name)}"
                repair = repairs.remove_attribute(name)
                level: Level | None = "warning" if signature.title in _LENIENT else None
                findings.append(
                    make_finding(
                        "unknown-attribute", message, node.scope, node, repair=repair, level=level
                    )
                )
            elif wanted and kind != wanted:
                message = f"Attribute {name_of(name)} is {_kind(kind)}, it takes {_kind(wanted)}"
                # Readers take a Constant with a sparse tensor under any name.
                lenient = node.op_type == "Constant" and kind == _A.SPARSE_TENSOR
                type_level: Level | None = "warning" if lenient else None
                findings.append(
                    make_finding("attribute-type", message, node.scope, node, level=type_level)
                )
        elif not kind:
            message = f"Attribute {name_of(name)} has no type and no value"
            findings.append(make_finding("attribute-type", message, node.scope, node))
        if proto.ref_attr_name:
            _check_reference(findings, state, node, text_of(proto.ref_attr_name))
        elif kind == _A.STRING and signature.checked:
            _check_word(findings, state, node, name, text_of(proto.s))
        elif kind in _TENSORS:
            findings += attribute_problems(node, name)
    missing = [name for name in signature.required if name not in seen]
    if missing:
        message = f"{signature.title} needs the attribute {names_of(missing)}"
        level = signature.missing_attribute
        findings.append(make_finding("missing-attribute", message, node.scope, node, level=level))


def _check_word(
    findings: list[Finding], state: ScopeState, node: Node, attribute: str, text: str
) -> None:
    from dld_tui.core.model.operators.attribute_words import attribute_words, is_default_word

    domain, op_type = state.keys[node]
    words = attribute_words(op_type, domain, attribute)
    if words and text not in words and not is_default_word(attribute, text):
        message = (
            f"Attribute {attribute} is {clip(visible(text), 40)!r}, it takes {', '.join(words)}"
        )
        findings.append(make_finding("attribute-value", message, node.scope, node))


def _check_reference(
    findings: list[Finding], state: ScopeState, node: Node, parameter: str
) -> None:
    if parameter in state.root.parameters:
        return
    if not state.root.scope.is_function:
        message = f"An attribute refers to the parameter {name_of(parameter)} outside a function"
    else:
        message = f"The function has no parameter {name_of(parameter)} that an attribute refers to"
    findings.append(make_finding("attribute-reference", message, node.scope, node))


def _kind(number: int) -> str:
    try:
        return _A.AttributeType.Name(number).lower()
    except ValueError:
        return f"type {number}"
