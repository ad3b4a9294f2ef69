"""Names of nodes and values: which are free, and another one for what has one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from dld_tui.core.errors import EditError
from dld_tui.core.files import protos as onnx
from dld_tui.core.files.proto_fields import get_text, set_text, text_of
from dld_tui.core.model.document.edit_registry import edit, node_at
from dld_tui.core.model.document.index import NAME_FIELD
from dld_tui.core.model.document.scope import Scope, unused_name
from dld_tui.core.model.document.transactions import SetLinks, SetText, Transaction
from dld_tui.core.model.edits.metadata import rename_in_profiles
from dld_tui.core.text import quoted

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document


def require_visible(scope: Scope, value: str) -> None:
    """Refuse a value that nothing defines in a scope or around it.

    Raises:
        EditError: There is no such value.
    """
    if scope.resolve(value) is None:
        raise EditError(
            f"there is no value {quoted(value)} here", where=" › ".join(scope.path) or "main"
        )


def require_free(scope: Scope, value: str) -> None:
    """Refuse a name that means something already, here, around, or in a subgraph below.

    An output without a source is what waits for the name: as in the model before, a subgraph may
    have another value of the same name.

    Raises:
        EditError: The name is taken.
    """
    if not value:
        raise EditError("a value needs a name")
    if value in scope.outputs and scope.resolve(value) is None:
        return
    if is_taken(scope, value):
        raise EditError(f"there is already a value called {quoted(value)}", hint="Choose another")


def is_taken(scope: Scope, value: str) -> bool:
    """Return whether a name means something here, around, or in a subgraph below."""
    if scope.resolve(value) is not None or value in scope.links.consumers:
        return True
    return any(below.definition(value) is not None for below in _below(scope))


def _below(scope: Scope) -> Iterator[Scope]:
    """Yield a scope and those inside it, in any order: keeping one would look at every node."""
    waiting = [scope]
    while waiting:
        inner = waiting.pop()
        yield inner
        waiting += (child for node in inner.control_flow for child in node.subgraphs())


def free_name(scope: Scope, wanted: str) -> str:
    """Return a value name that is free in a scope: `wanted`, or with a number behind it."""
    return unused_name(wanted or "value", partial(is_taken, scope))


_VALUE_LISTS = ("initializer", "input", "output", "value_info", "quantization_annotation")


@edit
def rename_node(
    document: Document, transaction: Transaction, *, scope: Sequence[str], node: str, name: str
) -> str:
    """Give a node another name; nothing refers to nodes by name inside the model."""
    target = node_at(document, scope, node)
    if name and any(other is not target for other in target.scope.nodes_named(name)):
        raise EditError(
            f"another node is already called {quoted(name)}", hint="Choose a name not in use."
        )
    old = get_text(target.proto, "name")
    if (old or "") == name:
        return "rename nothing"
    transaction.do(SetText(target.scope, "node", target, target.proto, "name", old, name or None))
    return f"rename node {quoted(old or node)} to {quoted(name)}"


@edit
def rename_value(
    document: Document, transaction: Transaction, *, scope: Sequence[str], value: str, name: str
) -> str:
    """Rename a value where it is defined and everywhere it is used, captured uses included."""
    start = document.scope_at(scope)
    definition = start.resolve(value)
    home = definition.scope if definition is not None else start
    if name == value:
        return "rename nothing"
    if not value or not name:
        raise EditError("a value needs a name")
    _refuse_collisions(home, value, name)
    if value in document.main.inputs and home is document.main:
        rename_in_profiles(document, transaction, {value: name})
    rename_everywhere(transaction, home, value, name)
    if not transaction.primitives:
        raise EditError(f"there is no value {quoted(value)}", where=" › ".join(home.path) or "main")
    return f"rename value {quoted(value)} to {quoted(name)}"


def _refuse_collisions(home: Scope, value: str, name: str) -> None:
    definition = home.resolve(name)
    if definition is not None or home.links.producers.get(name):
        where = " › ".join(definition.scope.path) if definition is not None else ""
        raise EditError(f"there is already a value called {quoted(name)}", where=where or "main")
    if name in home.links.consumers or name in home.named("output"):
        raise EditError(f"{quoted(name)} is already used here, by an input without a source")
    for below in _below(home):  # also where it is not used: a name must not be shadowed
        if below is not home and below.definition(name) is not None:
            raise EditError(f"{quoted(name)} means another value inside {quoted(below.title)}")


def rename_everywhere(transaction: Transaction, home: Scope, old: str, new: str) -> None:
    """Rename a value defined in `home` in links, records and annotations, without any check."""
    for scope in list(home.reach(old)):
        links = scope.links
        nodes = dict.fromkeys((*links.producers.get(old, ()), *links.consumers.get(old, ())))
        for node in nodes:
            for side, names in (("input", node.inputs), ("output", node.outputs)):
                if old in names:
                    renamed = tuple(new if name == old else name for name in names)
                    transaction.do(SetLinks(scope, node, side, renamed))
            _rename_sharding(transaction, scope, node, old, new)
        if scope.is_function:
            for side, names in (("input", scope.inputs), ("output", scope.outputs)):
                if old in names:
                    renamed = tuple(new if name == old else name for name in names)
                    transaction.do(SetLinks(scope, None, side, renamed))
        _rename_records(transaction, scope, old, new)


def rename_before_output(transaction: Transaction, home: Scope, value: str) -> str:
    """Give a value that is an output another name, so that a new node can make the output.

    The output keeps its name and its declared type, and has no source until the new node is there.

    Args:
        home: The graph or function, whose node makes the value.

    Returns:
        The new name of the value, which all its users have now.
    """
    inner = free_name(home, f"{value}_inner")
    rename_everywhere(transaction, home, value, inner)
    if home.is_function:
        outputs = tuple(value if name == inner else name for name in home.outputs)
        transaction.do(SetLinks(home, None, "output", outputs))
        return inner
    for record in list(home.named("output").all(inner)):
        if record.HasField("type") and inner not in home.named("value_info"):
            info = onnx.ValueInfoProto()
            info.type.CopyFrom(record.type)
            set_text(info, "name", inner)
            transaction.append(home, "value_info", info)
        transaction.do(SetText(home, "output", record, record, "name", inner, value))
    return inner


def feeds_output(home: Scope, value: str) -> bool:
    """Return whether a value is an output that a node makes: one that a node can be put before."""
    return value in home.outputs and home.producer(value) is not None


def _rename_records(transaction: Transaction, scope: Scope, old: str, new: str) -> None:
    for list_name in _VALUE_LISTS:
        if list_name not in scope.records:
            continue
        for record in list(scope.named(list_name).all(old)):
            field = NAME_FIELD.get(list_name, "name")
            transaction.do(SetText(scope, list_name, record, record, field, old, new))
    for record in list(scope.named("sparse_initializer").all(old)):
        transaction.do(
            SetText(scope, "sparse_initializer", record, record.values, "name", old, new)
        )
    for record in scope.records.get("quantization_annotation", ()):
        for entry in record.quant_parameter_tensor_names:
            if text_of(entry.value) == old:
                transaction.do(
                    SetText(scope, "quantization_annotation", record, entry, "value", old, new)
                )


def _rename_sharding(transaction: Transaction, scope: Scope, node: Any, old: str, new: str) -> None:
    for configuration in getattr(node.proto, "device_configurations", ()):
        for spec in configuration.sharding_spec:
            if text_of(spec.tensor_name) == old:
                transaction.do(SetText(scope, "node", node, spec, "tensor_name", old, new))
