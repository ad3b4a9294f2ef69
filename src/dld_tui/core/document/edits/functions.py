"""Local functions: made empty, renamed, duplicated, deleted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import onnx

from dld_tui.core import fmt
from dld_tui.core.document.calls import (
    FunctionKey,
    called_by,
    enclosing_function,
    key_of,
    nodes_with_key,
    shown_key,
)
from dld_tui.core.document.edits.bodies import whole_function
from dld_tui.core.document.edits.opsets import (
    FUNCTIONS_IR,
    OVERLOADS_IR,
    drop_import,
    ensure_import,
    ensure_ir,
    import_messages,
    imports_of,
)
from dld_tui.core.document.edits.registry import edit, quoted, strings
from dld_tui.core.document.history import Transaction
from dld_tui.core.document.node import Node
from dld_tui.core.document.primitives import SetText, Splice
from dld_tui.core.document.scope import Scope
from dld_tui.core.document.wiretext import get_text, set_text, set_texts
from dld_tui.core.domains import plain_domain
from dld_tui.core.errors import EditError

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
        document: The document.
        transaction: The transaction to make the change in.
        name: The operator that it defines.
        domain: Its operator set.
        overload: Which of several functions of one name it is.
        inputs: Names of its parameters.
        outputs: Names of what it gives; nothing makes them yet.
    """
    key = (plain_domain(domain), name, overload)
    require_new_function(document, key)
    for side in (strings(inputs, "inputs"), strings(outputs, "outputs")):
        if len(set(side)) != len(side) or "" in side:
            raise EditError("inputs and outputs need names of their own")
    proto = new_function(key, imports_of(document.main))
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
        document: The document.
        transaction: The transaction to make the change in.
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
    the import of the old one goes where nothing needs it any more.

    Args:
        document: The document.
        transaction: The transaction to make the change in.
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
    index = next(i for i, other in enumerate(document.functions) if other is function)
    transaction.do(Splice(document.main, "function", index, [function], []))
    note = f"; {fmt.plural(calls, 'instance')} now custom" if calls else ""
    return f"delete function {quoted(shown_key(key))}{note}"


def function_at(document: Document, scope: Sequence[str]) -> Scope:
    """Return a function by its path.

    Raises:
        EditError: There is none, or the path is that of a graph.
    """
    found = document.scope_at(scope)
    if not found.is_function:
        raise EditError("that is not a function", where=" › ".join(scope) or "main")
    return found


def require_new_function(document: Document, key: FunctionKey, *, unused: bool = False) -> None:
    """Refuse a function that there is already, or that no node could call.

    Args:
        document: The document.
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
    transaction.do(Splice(document.main, "function", len(document.functions), [], [function]))
    return function


def _set_key(proto: onnx.FunctionProto, key: FunctionKey) -> None:
    for field, text in zip(("domain", "name", "overload"), key, strict=True):
        set_text(proto, field, text or None)


def _rename(
    transaction: Transaction, scope: Scope, node: Node | None, old: FunctionKey, new: FunctionKey
) -> None:
    """Change what a node calls, or what a function (`node` is None) is called."""
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
        imports = imports_of(home)
        ensure_import(transaction, home, new, imports.get(old, 1))
        if old not in imports or old in {domain for domain, _, _ in called_by(home)}:
            continue
        defines = home is document.main and any(key_of(f)[0] == old for f in document.functions)
        if not defines:
            drop_import(transaction, home, old)
