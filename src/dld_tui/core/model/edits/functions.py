"""Local functions: created from nodes, renamed, duplicated, deleted, and inlined at their calls."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import TYPE_CHECKING

from dld_tui.core import fmt
from dld_tui.core.errors import EditError
from dld_tui.core.files import protos as onnx
from dld_tui.core.files.proto_fields import (
    VALUE_FIELDS,
    attribute_type,
    get_text,
    set_text,
    set_texts,
    text_of,
    texts_of,
)
from dld_tui.core.model.document.edit_registry import edit, node_at, nodes_at, strings, targets_of
from dld_tui.core.model.document.local_functions import (
    FunctionKey,
    call_of,
    called_by,
    calls_itself,
    declared_attributes,
    enclosing_function,
    function_of,
    key_of,
    nodes_with_key,
    references,
    shown_key,
)
from dld_tui.core.model.document.locations import nested_nodes
from dld_tui.core.model.document.node import Node, constant_node, node_proto
from dld_tui.core.model.document.opset_imports import (
    DEFAULTS_IR,
    FUNCTIONS_IR,
    OVERLOADS_IR,
    drop_import,
    ensure_import,
    ensure_ir,
    ensure_known_import,
    import_messages,
    versions_by_domain,
)
from dld_tui.core.model.document.scope import Scope, unused_name
from dld_tui.core.model.document.transactions import (
    SetAttribute,
    SetList,
    SetText,
    Splice,
    Transaction,
    copies,
)
from dld_tui.core.model.document.traversal import sources
from dld_tui.core.model.edits.attributes import attribute_proto, find_attribute
from dld_tui.core.model.edits.nodes import boundary, file_order, new_proto, require_convex
from dld_tui.core.model.edits.subgraphs import (
    Names,
    all_names,
    defined_names,
    free_inner_names,
    rename_in_copy,
    whole_attribute,
    whole_function,
    whole_node,
)
from dld_tui.core.model.operators.registry import same_meaning
from dld_tui.core.text import quoted
from dld_tui.core.types import JSON, plain_domain

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document


NEW_DOMAIN = "local"
"""The domain of a new function where none is chosen."""


@edit
def add_function(
    document: Document,
    transaction: Transaction,
    *,
    name: str,
    domain: str = NEW_DOMAIN,
    overload: str = "",
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
) -> str:
    """Add a local function without nodes; custom operators of its name become its instances.

    Args:
        name: The operator that it defines.
        domain: Its operator set.
        overload: Which of several functions of one name it is.
        inputs: Names of its parameters.
        outputs: Names of its outputs; no node produces them yet.
    """
    key = (plain_domain(domain), name, overload)
    require_new_function(document, key)
    for side in (strings(inputs, "inputs"), strings(outputs, "outputs")):
        if len(set(side)) != len(side) or "" in side:
            raise EditError("inputs and outputs need distinct names")
    proto = new_function(key, versions_by_domain(document.main))
    set_texts(proto, "input", inputs)
    set_texts(proto, "output", outputs)
    enter_function(document, transaction, proto, key)
    calls = len(nodes_with_key(document, key))
    note = f"; {fmt.plural(calls, 'node')} call it" if calls else ""
    return f"add function {quoted(shown_key(key))}{note}"


@edit
def duplicate_function(
    document: Document,
    transaction: Transaction,
    *,
    scope: Sequence[str],
    name: str,
    domain: str | None = None,
    overload: str = "",
) -> str:
    """Add a copy of a local function under another name; nothing calls it yet.

    Args:
        scope: The path of the function.
        name: The operator that the copy defines.
        domain: Its operator set; None for that of the original.
        overload: Which of several functions of one name it is.
    """
    original = function_at(document, scope)
    old = key_of(original)
    key = (old[0] if domain is None else plain_domain(domain), name, overload)
    require_new_function(document, key, unused=True)
    proto = whole_function(original)
    _set_key(proto, key)
    enter_function(document, transaction, proto, key)
    return f"duplicate function {quoted(shown_key(old))} as {quoted(shown_key(key))}"


@edit
def rename_function(
    document: Document,
    transaction: Transaction,
    *,
    scope: Sequence[str],
    name: str | None = None,
    domain: str | None = None,
    overload: str | None = None,
) -> str:
    """Rename a local function, and with it all its instances.

    Where the domain changes, the import of the new one is added wherever there is an instance, and
    an unused import of the old one is removed.

    Args:
        scope: The path of the function.
        name: Its new name; None leaves it.
        domain: Its new operator set; None leaves it.
        overload: Its new overload, ``""`` for none; None leaves it.
    """
    function = function_at(document, scope)
    old = key_of(function)
    wanted = (None if domain is None else plain_domain(domain), name, overload)
    key = (wanted[0] if wanted[0] is not None else old[0],
           wanted[1] if wanted[1] is not None else old[1],
           wanted[2] if wanted[2] is not None else old[2])  # fmt: skip
    if key == old:
        return "rename nothing"
    require_new_function(document, key, unused=True)
    calls = nodes_with_key(document, old)
    for node in calls:
        _rename(transaction, node.scope, node, old, key)
    _rename(transaction, function, None, old, key)
    if key[2]:
        ensure_ir(transaction, document, OVERLOADS_IR)
    if key[0] != old[0]:
        _move_imports(transaction, document, calls, old[0], key[0])
    verb = "follows" if len(calls) == 1 else "follow"
    count = f"; {fmt.plural(len(calls), 'instance')} {verb}" if calls else ""
    return f"rename function {quoted(shown_key(old))} to {quoted(shown_key(key))}{count}"


@edit
def delete_function(document: Document, transaction: Transaction, *, scope: Sequence[str]) -> str:
    """Delete a local function; its instances stay, as operators that only a plugin can run."""
    function = function_at(document, scope)
    key = key_of(function)
    calls = len(nodes_with_key(document, key))
    transaction.replace(document.main, "function", function)
    note = f"; {fmt.plural(calls, 'instance')} now custom" if calls else ""
    return f"delete function {quoted(shown_key(key))}{note}"


def function_at(document: Document, scope: Sequence[str]) -> Scope:
    """Return a function by its path.

    Raises:
        EditError: There is none, or the path is that of a graph.
    """
    function = document.scope_at(scope)
    if not function.is_function:
        raise EditError("that is not a function", where=" › ".join(scope) or "main")
    return function


def require_new_function(document: Document, key: FunctionKey, *, unused: bool = False) -> None:
    """Refuse a function that there is already, or that no node could call.

    Args:
        key: The function's domain, name and overload.
        unused: Refuse the name of operators in the model too.

    Raises:
        EditError: The key cannot be that of a new function.
    """
    domain, name, _ = key
    if not all(isinstance(part, str) for part in key):
        raise EditError("domain, name and overload of a function are text")
    if not name:
        raise EditError("a function needs a name")
    if not domain:
        raise EditError("the domain ai.onnx is for the operators of ONNX", hint="Choose another")
    steps = {function.step for function in document.functions}
    step = f"function {domain}:{name}" + (f":{key[2]}" if key[2] else "")
    if step in steps:
        raise EditError(f"there is already a function {quoted(shown_key(key))}")
    if unused and (calls := len(nodes_with_key(document, key))):
        raise EditError(
            f"{fmt.plural(calls, 'node')} of operator {quoted(shown_key(key))} would become "
            "instances of it",
            hint="Choose another name",
        )


def new_function(key: FunctionKey, imports: dict[str, int]) -> onnx.FunctionProto:
    """Return the message of a function without nodes."""
    proto = onnx.FunctionProto()
    _set_key(proto, key)
    proto.opset_import.extend(import_messages(imports))
    return proto


def enter_function(
    document: Document, transaction: Transaction, proto: onnx.FunctionProto, key: FunctionKey
) -> Scope:
    """Put a function at the end of the model's list, and import its domain.

    Its nodes get the name of the operators of ONNX that its imports have: runtimes compare them.
    """
    for node in nested_nodes(proto.node):
        if node.domain and not plain_domain(text_of(node.domain)):
            node.domain = ""
    ensure_ir(transaction, document, OVERLOADS_IR if key[2] else FUNCTIONS_IR)
    ensure_import(transaction, document.main, key[0], 1)
    function = Scope(proto, document)
    transaction.append(document.main, "function", function)
    return function


def _set_key(proto: onnx.FunctionProto, key: FunctionKey) -> None:
    for field, text in zip(("domain", "name", "overload"), key, strict=True):
        set_text(proto, field, text or None)


def _rename(
    transaction: Transaction, scope: Scope, node: Node | None, old: FunctionKey, new: FunctionKey
) -> None:
    """Change the function that a node calls, or the name of a function (`node` is None)."""
    name_field = "name" if node is None else "op_type"
    message = scope.proto if node is None else node.proto
    for field, before, after in zip(("domain", name_field, "overload"), old, new, strict=True):
        if before != after:
            text = get_text(message, field)
            list_name = "" if node is None else "node"
            transaction.do(SetText(scope, list_name, node, message, field, text, after or None))


def _move_imports(
    transaction: Transaction, document: Document, calls: list[Node], old: str, new: str
) -> None:
    """Import a new domain where its instances are, and drop the old one where it is not used."""
    homes = [enclosing_function(node.scope) or document.main for node in calls]
    for home in dict.fromkeys((document.main, *homes)):
        imports = versions_by_domain(home)
        ensure_import(transaction, home, new, imports.get(old, 1))
        if old not in imports or old in {domain for domain, _, _ in called_by(home)}:
            continue
        defines = home is document.main and any(key_of(f)[0] == old for f in document.functions)
        if not defines:
            drop_import(transaction, home, old)


@edit
def set_function_attribute(
    document: Document,
    transaction: Transaction,
    *,
    scope: Sequence[str],
    attribute: str,
    kind: str | None = None,
    value: JSON = None,
) -> str:
    """Declare an attribute of a local function, with a default or without one.

    Args:
        scope: The path of the function.
        attribute: The attribute's name.
        kind: The kind of the default as in ``set_attribute``; None for no default.
        value: The default.
    """
    function = function_at(document, scope)
    if not attribute:
        raise EditError("an attribute needs a name")
    declared = declared_attributes(function)
    if kind is None:
        if attribute in declared and declared[attribute] is None:
            return "declare nothing"
        if attribute in declared:
            _set_defaults(transaction, function, _defaults_without(function, attribute))
        _set_names(transaction, function, [*_names(function), attribute])
        return f"declare attribute {quoted(attribute)}"
    default = attribute_proto(attribute, kind, value)
    _require_fitting(references(function).get(attribute, []), attribute, default.type)
    old = declared.get(attribute)
    if old is not None and old.SerializeToString() == default.SerializeToString():
        return "declare nothing"
    if attribute in _names(function):
        names = [name for name in _names(function) if name != attribute]
        _set_names(transaction, function, names)
    defaults = copies(_proto(function).attribute_proto)
    places = [i for i, item in enumerate(defaults) if text_of(item.name) == attribute]
    if places:
        defaults[places[-1]] = default
    else:
        defaults.append(default)
    _set_defaults(transaction, function, defaults)
    ensure_ir(transaction, document, DEFAULTS_IR)
    return f"declare attribute {quoted(attribute)} with a default"


@edit
def remove_function_attribute(
    document: Document, transaction: Transaction, *, scope: Sequence[str], attribute: str
) -> str:
    """Take away an attribute of a local function that nothing inside refers to."""
    function = function_at(document, scope)
    if attribute not in declared_attributes(function):
        raise EditError(f"the function declares no attribute {quoted(attribute)}")
    users = references(function).get(attribute, [])
    if users:
        raise EditError(
            f"{fmt.plural(len(users), 'attribute')} inside refer to {quoted(attribute)}, "
            f"one of {quoted(users[0][0].ref)}",
            hint="Give them values first",
        )
    if attribute in _names(function):
        names = [name for name in _names(function) if name != attribute]
        _set_names(transaction, function, names)
    defaults = _defaults_without(function, attribute)
    if len(defaults) != len(_proto(function).attribute_proto):
        _set_defaults(transaction, function, defaults)
    return f"remove attribute {quoted(attribute)} of the function"


@edit
def set_attribute_reference(
    document: Document,
    transaction: Transaction,
    *,
    scope: Sequence[str],
    node: str,
    attribute: str,
    reference: str,
    kind: str | None = None,
) -> str:
    """Let an attribute inside a local function take its value from one of the function's own.

    ``set_attribute`` gives it a value again.

    Args:
        scope: The path of the node's scope.
        node: The node's ref.
        attribute: The attribute of the node.
        reference: The attribute of the function.
        kind: The kind of the attribute; by default that of its present value or default.
    """
    target = node_at(document, scope, node)
    function = enclosing_function(target.scope)
    if function is None:
        raise EditError("only inside a function can an attribute refer to one of the function")
    declared = declared_attributes(function)
    if reference not in declared:
        raise EditError(
            f"the function declares no attribute {quoted(reference)}", hint="Declare it first"
        )
    if not attribute:
        raise EditError("an attribute needs a name")
    position, old = find_attribute(target, attribute)
    number = _reference_type(old, declared[reference], kind)
    others = [
        (user, proto)
        for user, proto in references(function).get(reference, [])
        if user is not target or text_of(proto.name) != attribute
    ]
    _require_fitting(others, reference, number, declared[reference])
    new = onnx.AttributeProto()
    if old is not None:
        new.CopyFrom(old)
        for field in VALUE_FIELDS.values():
            new.ClearField(field)
    else:
        set_text(new, "name", attribute)
    set_text(new, "ref_attr_name", reference)
    new.type = number  # type: ignore[assignment]
    if old is not None and old.SerializeToString() == new.SerializeToString():
        return "set nothing"
    transaction.do(SetAttribute(target, position, old, new))
    return f"let {quoted(attribute)} of {quoted(node)} be {quoted(reference)} of the function"


def _reference_type(
    old: onnx.AttributeProto | None, default: onnx.AttributeProto | None, kind: str | None
) -> int:
    if kind is not None:
        names = {name.lower(): n for name, n in onnx.AttributeProto.AttributeType.items() if n}
        if kind not in names:
            raise EditError(f"there is no kind of attribute {kind!r}")
        return names[kind]
    if default is not None:
        return attribute_type(default)
    if old is not None and attribute_type(old):
        return attribute_type(old)
    raise EditError("the kind of the attribute is unknown", hint="Say which kind it is")


def _require_fitting(
    users: list[tuple[Node, onnx.AttributeProto]],
    attribute: str,
    number: int,
    default: onnx.AttributeProto | None = None,
) -> None:
    """Refuse a type that the default or another reference contradicts."""
    for proto in (*([default] if default is not None else []), *(proto for _, proto in users)):
        known = attribute_type(proto)
        if known and known != number:
            name = onnx.AttributeProto.AttributeType.Name(known).lower()
            raise EditError(f"{quoted(attribute)} is of kind {name} inside the function")


def _proto(function: Scope) -> onnx.FunctionProto:
    assert isinstance(function.proto, onnx.FunctionProto)
    return function.proto


def _names(function: Scope) -> list[str]:
    return list(texts_of(_proto(function).attribute))


def _defaults_without(function: Scope, attribute: str) -> list[onnx.AttributeProto]:
    defaults = copies(_proto(function).attribute_proto)
    return [item for item in defaults if text_of(item.name) != attribute]


def _set_names(transaction: Transaction, function: Scope, names: list[str]) -> None:
    transaction.do(SetList(function, None, "", function.proto, "attribute", names))


def _set_defaults(
    transaction: Transaction, function: Scope, defaults: list[onnx.AttributeProto]
) -> None:
    transaction.do(SetList(function, None, "", function.proto, "attribute_proto", defaults))


@edit
def make_function(
    document: Document,
    transaction: Transaction,
    *,
    scope: Sequence[str],
    nodes: Sequence[str],
    name: str,
    domain: str = NEW_DOMAIN,
    constants: bool = False,
) -> str:
    """Make a local function of nodes and put one instance of it in their place.

    Its inputs are the values that the nodes take from outside, also those that their bodies
    capture, in the order of their first use; its outputs the values that others use. Attributes
    that refer to those of an enclosing function are handed on.

    Args:
        scope: The path of the nodes' scope.
        nodes: Refs of the nodes.
        name: The operator that the function defines.
        domain: Its operator set.
        constants: Put initializers that the nodes use into the function, as Constant nodes, rather
            than making them inputs; those in external files and sparse ones stay inputs.
    """
    targets = targets_of(document, scope, nodes, "make a function of")
    key = (plain_domain(domain), name, "")
    require_new_function(document, key, unused=True)
    home = targets[0].scope
    ordered = file_order(home, targets)
    inputs, outputs = boundary(home, ordered)
    require_convex(home, ordered, outputs)
    if not outputs:
        raise EditError("no output of these nodes is used", hint="Select the nodes that use it")
    weights = [value for value in inputs if constants and _can_be_constant(home, value)]
    inputs = [value for value in inputs if value not in weights]

    for domain in dict.fromkeys(node.domain for node in _with_bodies(ordered) if node.domain):
        ensure_known_import(transaction, home, domain)  # a function has to say all that it uses
    imports = _imports_used(home, ordered)
    if weights:
        imports.setdefault("", versions_by_domain(home).get("", 1))
    proto = new_function(key, imports)
    set_texts(proto, "input", inputs)
    set_texts(proto, "output", outputs)
    proto.node.extend(_constant(home, value) for value in weights)
    proto.node.extend(whole_node(node) for node in ordered)
    passed = _references(ordered)
    set_texts(proto, "attribute", passed)

    call = new_proto(home, name, key[0], "", inputs, outputs)
    for attribute, number in passed.items():
        entry = call.attribute.add(type=number)
        set_text(entry, "name", attribute)
        set_text(entry, "ref_attr_name", attribute)
    enter_function(document, transaction, proto, key)
    ensure_import(transaction, home, key[0], 1)
    _replace(transaction, home, ordered, home.new_node(call))
    _remove_leftovers(transaction, home, ordered, weights)
    return f"make function {quoted(shown_key(key))} of {fmt.plural(len(ordered), 'node')}"


def _can_be_constant(scope: Scope, value: str) -> bool:
    definition = scope.resolve(value)
    if definition is None or definition.kind != "initializer":
        return False
    if value in definition.scope.inputs:
        return False  # a caller of the model may give another value
    tensor = definition.scope.initializer(value)
    return tensor is not None and not tensor.is_external


def _constant(scope: Scope, value: str) -> onnx.NodeProto:
    definition = scope.resolve(value)
    assert definition is not None
    tensor = definition.scope.initializer(value)
    assert tensor is not None
    return constant_node(value, tensor.proto, f"Constant_{value}")


def _imports_used(home: Scope, nodes: Sequence[Node]) -> dict[str, int]:
    """Return the imports that the nodes and those in their bodies need."""
    imports = versions_by_domain(home)
    used = {node.domain for node in _with_bodies(nodes)}
    return {domain: version for domain, version in imports.items() if domain in used}


def _with_bodies(nodes: Sequence[Node]) -> list[Node]:
    all_nodes = []
    for node in nodes:
        all_nodes.append(node)
        for body in node.subgraphs():
            all_nodes += [inner for scope in body.walk() for inner in scope.nodes]
    return all_nodes


def _references(nodes: Sequence[Node]) -> dict[str, int]:
    """Return the attributes of the enclosing function that nodes refer to, with their types."""
    return {
        text_of(attribute.ref_attr_name): attribute_type(attribute)
        for node in _with_bodies(nodes)
        for attribute in node.proto.attribute
        if attribute.ref_attr_name
    }


def _replace(transaction: Transaction, home: Scope, nodes: list[Node], call: Node) -> None:
    """Replace nodes by a call; nodes between them that use their outputs move behind it."""
    first, last = home.index_of(nodes[0]), home.index_of(nodes[-1])
    span = home.nodes[first : last + 1]
    inside = set(nodes)
    after: dict[Node, None] = {}
    before: list[Node] = []
    for node in span:
        if node in inside:
            continue
        if any(source in inside or source in after for source in sources(home, node)):
            after[node] = None
        else:
            before.append(node)
    transaction.do(Splice(home, "node", first, span, [*before, call, *after]))


def _remove_leftovers(
    transaction: Transaction, home: Scope, nodes: Sequence[Node], weights: Sequence[str]
) -> None:
    """Remove the records of values that are now inside the function, and unused weights."""
    for value in weights:
        definition = home.resolve(value)
        if definition is None or definition.scope is not home:
            continue  # one of a scope around it stays where it is
        if not home.is_used(value):
            transaction.drop(home, "initializer", value)
    gone = [value for node in nodes for value in node.outputs] + list(weights)
    for value in gone:
        if not value or home.definition(value) is not None:
            continue
        for list_name in ("value_info", "quantization_annotation"):
            if list_name in home.records:
                transaction.drop(home, list_name, value)


def unused_key(document: Document, wanted: FunctionKey) -> FunctionKey:
    """Return the key of a function that can be made: `wanted`, or with a number at its name."""
    domain, name, overload = wanted
    number = 0
    while True:
        key = (domain, name if not number else f"{name}_{number}", overload)
        try:
            require_new_function(document, key, unused=True)
        except EditError:
            if not domain or not name:
                raise
            number += 1
        else:
            return key


@edit
def inline_function(
    document: Document,
    transaction: Transaction,
    *,
    nodes: Sequence[JSON],
) -> str:
    """Replace instances of local functions by the nodes of the functions.

    The names of values and nodes are made unique, attributes that refer to those of the function
    get the instance's value or the default. Calls of other functions in the body stay calls.

    Args:
        nodes: The instances, ``[[SCOPE, NODE], …]``: the path of a scope and a ref in it.
    """
    targets = dict.fromkeys(nodes_at(document, nodes))
    inlined, first = 0, next(iter(targets)).ref
    for node in targets:
        function = function_of(node)
        if function is None:
            raise EditError(f"{quoted(node.ref)} calls no local function")
        inlined += _inline(transaction, node, function)
    count = f"by {fmt.plural(inlined, 'node')}"
    subject_text = quoted(first) if len(targets) == 1 else fmt.plural(len(targets), "instance")
    return f"inline {subject_text} {count}"


def _inline(transaction: Transaction, call: Node, function: Scope) -> int:
    """Replace one instance; return by how many nodes."""
    home = call.scope
    shown = quoted(shown_key(key_of(function)))
    if calls_itself(function):
        raise EditError(f"{shown} calls itself: inlining it would never end")
    inputs, outputs = call.inputs, call.outputs
    for side, actual, formal in (("input", inputs, function.inputs),
                                 ("output", outputs, function.outputs)):  # fmt: skip
        if len(actual) > len(formal):
            raise EditError(
                f"{quoted(call.ref)} has {fmt.plural(len(actual), side)}, {shown} only "
                f"{len(formal)}"
            )
    _require_same_operators(home, function)
    body = Scope(whole_function(function), home.document)
    copies = _fit(body, call)
    protos = [whole_node(node) for node in body.nodes]
    _give_values(protos, call, declared_attributes(function))
    _name_nodes(home, protos, call)
    imports = versions_by_domain(function)
    for domain in {node.domain for scope in body.walk() for node in scope.nodes}:
        ensure_import(transaction, home, domain, imports.get(domain, 1))
    if copies:
        ensure_import(transaction, home, "", imports.get("", 1))
    new_nodes = [home.new_node(proto) for proto in (*protos, *copies)]
    transaction.replace(home, "node", call, *new_nodes)
    _declare_types(transaction, home, body)
    return len(new_nodes)


def _declare_types(transaction: Transaction, home: Scope, body: Scope) -> None:
    """Copy the types that the function declares for its values, where they hold here."""
    infos = []
    for record in body.records["value_info"]:
        name = text_of(record.name)
        if home.producer(name) is None or any(
            name in home.named(field) for field in ("value_info", "output") if field in home.records
        ):
            continue
        for dim in record.type.tensor_type.shape.dim:
            dim.ClearField("dim_param")  # the same name may be another size in another call
        infos.append(record)
    if infos:
        transaction.append(home, "value_info", *infos)


def _fit(body: Scope, call: Node) -> list[onnx.NodeProto]:
    """Rename the values of a copied body so that it fits the place of a call.

    Returns:
        Identity nodes for outputs that are inputs, or another output, of the function.
    """
    home, inputs, outputs = call.scope, call.inputs, call.outputs
    names = Names(home, {*all_names(body), *inputs, *outputs})
    free_inner_names(body, names)
    mapping: dict[str, str] = {}
    for index, formal in enumerate(body.inputs):
        mapping[formal] = inputs[index] if index < len(inputs) else ""
    copies: list[onnx.NodeProto] = []
    for index, formal in enumerate(body.outputs):
        actual = outputs[index] if index < len(outputs) else ""
        if formal not in mapping:
            if actual and body.producer(formal) is None:
                raise EditError(f"the function has no value for its output {quoted(formal)}")
            mapping[formal] = actual or names.take(formal)
        elif actual:
            if not mapping[formal]:
                raise EditError(f"the output {quoted(actual)} is an input that the call leaves out")
            copies.append(_identity(mapping[formal], actual))
    for formal, actual in mapping.items():
        left_out = [s for s in body.reach(formal) if s is not body and formal in s.outputs]
        if not actual and left_out:
            raise EditError(
                f"a body inside the function gives {quoted(formal)}, which the call leaves out"
            )
    for name in defined_names(body):
        if name not in mapping:
            mapping[name] = names.keep(name)
    rename_in_copy(body, mapping)
    return copies


def _identity(source: str, target: str) -> onnx.NodeProto:
    return node_proto("Identity", [source], [target], f"pass_{target}")


def _give_values(
    protos: Sequence[onnx.NodeProto],
    call: Node,
    declared: dict[str, onnx.AttributeProto | None],
) -> None:
    """Put the values of a call's attributes, or defaults, where the body refers to them."""
    values: dict[str, onnx.AttributeProto] = {
        name: default for name, default in declared.items() if default is not None
    }
    for attribute in call.proto.attribute:
        values[text_of(attribute.name)] = whole_attribute(call, attribute)
    for proto in protos:
        _give_to(proto, values)


def _give_to(proto: onnx.NodeProto, values: dict[str, onnx.AttributeProto]) -> None:
    kept = []
    for attribute in proto.attribute:
        for graph in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
            for inner in graph.node:
                _give_to(inner, values)
        if not attribute.ref_attr_name:
            kept.append(attribute)
            continue
        value = values.get(text_of(attribute.ref_attr_name))
        if value is None:
            continue  # left out by the call, so the operator's default holds
        copy = deepcopy(value)
        set_text(copy, "name", text_of(attribute.name))
        copy.ClearField("doc_string")
        kept.append(copy)
    copies = onnx.NodeProto()
    copies.attribute.extend(kept)
    del proto.attribute[:]
    proto.attribute.extend(copies.attribute)


def _name_nodes(home: Scope, protos: Sequence[onnx.NodeProto], call: Node) -> None:
    """Give nodes names that are free in a scope; the one that goes leaves its name free."""
    used_names: set[str] = set()
    for proto in protos:
        name = text_of(proto.name)
        if not name:
            continue
        free = unused_name(
            name,
            lambda name: (
                name in used_names or any(node is not call for node in home.nodes_named(name))
            ),
        )
        used_names.add(free)
        if free != name:
            set_text(proto, "name", free)


def _require_same_operators(home: Scope, function: Scope) -> None:
    """Refuse a function whose operators mean something else in the opsets of the place."""
    inner, outer = versions_by_domain(function), versions_by_domain(home)
    local = {key_of(other) for other in home.document.functions}
    for scope in function.walk():
        for node in scope.nodes:
            domain = node.domain
            there, here = inner.get(domain), outer.get(domain)
            if there is None or here is None or call_of(node) in local:
                continue
            if not same_meaning(node.op_type, domain, there, here):
                raise EditError(
                    f"{quoted(node.op_type)} is not the same in opset {there}, which the function "
                    f"imports, and in opset {here}",
                    hint="Convert one of them first",
                )
