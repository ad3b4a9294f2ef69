"""Inputs and outputs of graphs, and the declared types of values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING

from dld_tui.core.errors import EditError
from dld_tui.core.files import protos as onnx
from dld_tui.core.files.proto_fields import set_text
from dld_tui.core.model.document.edit_registry import edit
from dld_tui.core.model.document.local_functions import key_of, nodes_with_key
from dld_tui.core.model.document.parts.extraction import typed_record
from dld_tui.core.model.document.scope import Scope
from dld_tui.core.model.document.transactions import SetLinks, Transaction
from dld_tui.core.model.edits.renaming import require_free, require_visible
from dld_tui.core.model.shapes.noting import Shape, sizes_of
from dld_tui.core.model.tensors.value_types import ValueType, type_proto_of
from dld_tui.core.text import quoted

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document


@edit
def add_input(
    document: Document,
    transaction: Transaction,
    *,
    scope: Sequence[str],
    name: str,
    dtype: str | None = None,
    dims: Sequence[int | str | None] | None = None,
) -> str:
    """Make a value an input of the graph, or parameter of the function.

    A value that nodes use without a source, or that an initializer gives, becomes an input of this
    name; otherwise the name must be free.
    """
    home = document.scope_at(scope)
    if name in home.inputs:
        raise EditError(f"{quoted(name)} is an input already")
    if home.producer(name) is not None:
        raise EditError(
            f"{quoted(name)} is produced by a node", hint="Delete or disconnect that first"
        )
    if home.definition(name) is None and name not in home.links.consumers:
        require_free(home, name)
    _add(transaction, home, "input", name, dtype, dims)
    return f"add input {quoted(name)}"


@edit
def add_output(
    document: Document,
    transaction: Transaction,
    *,
    scope: Sequence[str],
    name: str,
    dtype: str | None = None,
    dims: Sequence[int | str | None] | None = None,
) -> str:
    """Make a value of the graph one of its outputs.

    Calls of a function get an output without a name there: they must have all outputs.
    """
    home = document.scope_at(scope)
    if name in home.outputs:
        raise EditError(f"{quoted(name)} is an output already")
    require_visible(home, name)
    if dtype is None and home.value_type(name) is None and document.ask_types is not None:
        document.ask_types()
    _add(transaction, home, "output", name, dtype, dims)
    return f"add output {quoted(name)}"


@edit
def remove_input(
    document: Document, transaction: Transaction, *, scope: Sequence[str], name: str
) -> str:
    """Remove an input of the graph; users of it are left without a source.

    Instances of a function lose the input that they passed there.
    """
    home = document.scope_at(scope)
    stored = not home.is_function and name in home.named("initializer")
    if stored and 0 < document.model.ir_version < 4 and home.parent is None:
        raise EditError(
            f"{quoted(name)} is an initializer, which must be an input in IR version "
            f"{document.model.ir_version}",
            hint="Set ir_version to 4 or more first",
        )
    _remove(transaction, home, "input", name)
    return f"remove input {quoted(name)}"


@edit
def remove_output(
    document: Document, transaction: Transaction, *, scope: Sequence[str], name: str
) -> str:
    """Remove an output of the graph; the value stays.

    Instances of a function lose the output that they got there.
    """
    _remove(transaction, document.scope_at(scope), "output", name)
    return f"remove output {quoted(name)}"


@edit
def set_value_type(
    document: Document,
    transaction: Transaction,
    *,
    scope: Sequence[str],
    value: str,
    dtype: str | None,
    dims: Sequence[int | str | None] | None,
) -> str:
    """Declare the type of an input, an output or an inner value; None for both takes it away.

    Args:
        scope: The path of the scope.
        dtype: Its element type, e.g. ``float32``.
        dims: Its dimensions: numbers, names, None where unknown; None when the rank is unknown.
    """
    home = document.scope_at(scope)
    for list_name in ("input", "output", "value_info"):
        records = [*home.named(list_name).all(value)] if list_name in home.records else []
        for record in records:  # a graph may name an output twice
            if list_name == "value_info" and dtype is None:
                transaction.replace(home, "value_info", record)
                continue
            changed = deepcopy(record)
            changed.ClearField("type")
            _set_type(changed, dtype, dims)
            transaction.replace(home, list_name, record, changed)
        if records:
            return f"set type of {quoted(value)}"
    if home.definition(value) is None:
        raise EditError(f"there is no value {quoted(value)} in this graph")
    if dtype is None:
        raise EditError(f"{quoted(value)} has no declared type")
    transaction.append(home, "value_info", _info(value, dtype, dims))
    return f"set type of {quoted(value)}"


def _add(
    transaction: Transaction,
    scope: Scope,
    side: str,
    name: str,
    dtype: str | None,
    dims: Sequence[int | str | None] | None,
) -> None:
    if scope.is_function:
        names = scope.inputs if side == "input" else scope.outputs
        transaction.do(SetLinks(scope, None, side, (*names, name)))
        if side == "output":
            for node in nodes_with_key(scope.document, key_of(scope)):
                if len(node.outputs) == len(names):
                    transaction.do(SetLinks(node.scope, node, side, (*node.outputs, "")))
        return
    info = typed_record(scope, name) if dtype is None else _info(name, dtype, dims)
    transaction.drop(scope, "value_info", name)  # an input declares it itself
    transaction.append(scope, side, info)


def _remove(transaction: Transaction, scope: Scope, side: str, name: str) -> None:
    names = scope.inputs if side == "input" else scope.outputs
    if name not in names:
        raise EditError(f"there is no {side} {quoted(name)}")
    if scope.is_function:
        kept = tuple(other for other in names if other != name)
        transaction.do(SetLinks(scope, None, side, kept))
        _drop_from_calls(transaction, scope, side, names.index(name))
        return
    transaction.replace(scope, side, scope.named(side).first(name))


def _drop_from_calls(transaction: Transaction, function: Scope, side: str, index: int) -> None:
    """Take a link out of every instance of a function, so that the others keep their meaning."""
    for node in nodes_with_key(function.document, key_of(function)):
        links = node.inputs if side == "input" else node.outputs
        if index < len(links):
            kept = (*links[:index], *links[index + 1 :])
            transaction.do(SetLinks(node.scope, node, side, kept))


def _info(
    name: str, dtype: str | None, dims: Sequence[int | str | None] | None
) -> onnx.ValueInfoProto:
    info = onnx.ValueInfoProto()
    set_text(info, "name", name)
    _set_type(info, dtype, dims)
    return info


def _set_type(
    info: onnx.ValueInfoProto, dtype: str | None, dims: Sequence[int | str | None] | None
) -> None:
    if dtype is None:
        return
    for dim in dims or ():
        if isinstance(dim, int) and not 0 <= dim < 2**63:
            raise EditError(f"dimension {dim} is out of range")
    proto = type_proto_of(ValueType(dtype, None if dims is None else tuple(dims)))
    if proto is None:
        raise EditError(f"there is no element type {dtype!r}")
    info.type.CopyFrom(proto)


def declare_inputs(document: Document, shapes: Mapping[str, Shape]) -> dict[str, int]:
    """Declare the shapes of inputs, in a document that is not saved.

    Returns:
        The numbers that symbolic dimensions of these inputs have by that.

    Raises:
        EditError: A shape does not fit.
    """
    sizes: dict[str, int] = {}
    for name, shape in shapes.items():
        before = document.main.value_type(name)
        if before is None:
            continue
        sizes.update(sizes_of(before.dims, shape))
        document.apply(set_value_type(scope=[], value=name, dtype=before.dtype, dims=list(shape)))
    return sizes
