"""Local functions and their attributes: made, renamed, duplicated, deleted, declared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dld_tui.core import fmt
from dld_tui.core.document.edits.attributes import attribute_proto, find_attribute
from dld_tui.core.document.edits.imports import (
    DEFAULTS_IR,
    FUNCTIONS_IR,
    OVERLOADS_IR,
    drop_import,
    ensure_import,
    ensure_ir,
    import_messages,
    versions_by_domain,
)
from dld_tui.core.document.edits.registry import edit, node_at, strings
from dld_tui.core.document.edits.subgraphs import whole_function
from dld_tui.core.document.local_functions import (
    FunctionKey,
    called_by,
    declared_attributes,
    enclosing_function,
    key_of,
    nodes_with_key,
    references,
    shown_key,
)
from dld_tui.core.document.node import VALUE_FIELDS, Node, attribute_type
from dld_tui.core.document.scope import Scope
from dld_tui.core.document.transactions import SetAttribute, SetList, SetText, Transaction, copies
from dld_tui.core.errors import EditError
from dld_tui.core.files import protos as onnx
from dld_tui.core.files.proto_fields import get_text, set_text, set_texts, text_of, texts_of
from dld_tui.core.text import quoted
from dld_tui.core.types import JSON, plain_domain

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document

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
    count = f"; {fmt.plural(len(calls), 'instance')} follow" if calls else ""
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
    """Put a function at the end of the model's list, and import its domain."""
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
