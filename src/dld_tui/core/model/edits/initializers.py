"""Initializers: adding and deleting them, where their values are stored, dense and sparse forms."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dld_tui.core import fmt
from dld_tui.core.errors import EditError, InputError
from dld_tui.core.files import protos as onnx
from dld_tui.core.files.external import element_bits, entries_of, is_pending, require_location
from dld_tui.core.files.external import set_external as set_entries
from dld_tui.core.files.proto_fields import set_text, text_of
from dld_tui.core.model.document.edit_registry import edit, strings, subject
from dld_tui.core.model.document.scope import INITIALIZERS_WITHOUT_INPUTS, Scope
from dld_tui.core.model.document.transactions import SetLinks, Splice, Transaction
from dld_tui.core.model.edits.links import with_item
from dld_tui.core.model.edits.renaming import require_free
from dld_tui.core.model.edits.tensors import (
    EditedTensor,
    belongs_inside,
    initializer_at,
    kept_inside,
    put_payload,
    require_readable,
    without_values,
)
from dld_tui.core.model.tensors.elements import (
    PART_ELEMENTS,
    Array,
    element_type,
    encode_elements,
    native_type,
    payload_bytes,
    raw_payload,
    require_dims,
    require_dtype,
)
from dld_tui.core.model.tensors.generate import fill_payload, require_room, string_elements
from dld_tui.core.model.tensors.sparse import sparse_entries, sparse_parts
from dld_tui.core.model.tensors.tensor import Tensor
from dld_tui.core.text import quoted
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document


_LISTS = ("initializer", "sparse_initializer")


@edit
def add_initializer(
    document: Document,
    transaction: Transaction,
    *,
    scope: Sequence[str],
    name: str,
    dtype: str,
    dims: Sequence[int],
    fill: JSON,
) -> str:
    """Add an initializer to a graph.

    Args:
        scope: The path of the graph.
        name: Its name: a free one, that of an input without a value, or one that nodes use
            without a source.
        dims: The dimensions.
        fill: The values; see :func:`dld_tui.core.model.tensors.generate.fill_payload`. For
            values in a data file: ``{"kind": "external", "location", "offset", "length"}``.
    """
    home = document.scope_at(scope)
    require_new_initializer(home, name)
    dtype = element_type(dtype)
    number, shape = require_dtype(dtype), require_dims(dims)
    if not isinstance(fill, dict):
        raise EditError("fill must be an object with a kind")
    proto = onnx.TensorProto(data_type=number)
    set_text(proto, "name", name)
    proto.dims.extend(shape)
    if fill.get("kind") == "external":
        _point_outside(document, proto, fill)
    elif dtype == "string":
        if fill.get("kind") != "values":
            raise EditError("strings are given as values")
        proto.string_data.extend(string_elements(fill.get("values"), shape))
    else:
        put_payload(document, proto, fill_payload(document, dtype, shape, fill))
    enter_initializer(transaction, home, "initializer", proto)
    return f"add initializer {quoted(name)}"


def enter_initializer(transaction: Transaction, home: Scope, list_name: str, record: Any) -> None:
    """Put a new initializer at the end of its list; before IR version 4 it is an input as well."""
    transaction.append(home, list_name, record)
    if list_name == "initializer":
        list_as_input(transaction, home, record)


def list_as_input(transaction: Transaction, home: Scope, record: onnx.TensorProto) -> None:
    """Make an initializer an input as well, as it had to be before version 4 of the format."""
    version, name = home.document.model.ir_version, text_of(record.name)
    if not name or not 0 < version < INITIALIZERS_WITHOUT_INPUTS or name in home.inputs:
        return
    info = onnx.ValueInfoProto()
    set_text(info, "name", name)
    info.type.tensor_type.elem_type = record.data_type
    info.type.tensor_type.shape.SetInParent()
    for dim in record.dims:
        info.type.tensor_type.shape.dim.add(dim_value=dim)
    transaction.append(home, "input", info)


@edit
def delete_initializers(
    document: Document,
    transaction: Transaction,
    *,
    scope: Sequence[str],
    names: list[str],
    disconnect: bool = False,
) -> str:
    """Delete initializers, dense or sparse.

    Args:
        scope: The path of the graph.
        disconnect: Leave the inputs that use them empty; without it, one in use is refused.
    """
    home = document.scope_at(scope)
    wanted = list(dict.fromkeys(strings(names, "names")))
    for name in wanted:
        if not any(name in home.named(list_name) for list_name in _LISTS):
            raise EditError(f"there is no initializer {quoted(name)}")
        if name not in home.inputs:
            _free_uses(transaction, home, name, disconnect=disconnect)
    places = {
        list_name: {id(record): at for at, record in enumerate(home.records[list_name])}
        for list_name in _LISTS
    }
    records = [
        (places[list_name][id(record)], list_name, record)
        for name in wanted
        for list_name in _LISTS
        for record in home.named(list_name).all(name)
    ]
    # From the last one on, so that the places of those before stay right.
    for place, list_name, record in sorted(records, key=lambda item: item[0], reverse=True):
        transaction.do(Splice(home, list_name, place, [record], []))
    for name in wanted:
        transaction.drop(home, "value_info", name)
    return f"delete {subject(wanted, 'initializer')}"


@edit
def set_external(
    document: Document,
    transaction: Transaction,
    *,
    scope: Sequence[str],
    names: list[str],
    location: str = "",
) -> str:
    """Move the values of initializers to a data file, which the next save of the model writes.

    Lists of less than 1024 bytes stay: shapes may depend on them.

    Args:
        scope: The path of the graph.
        location: The file, relative to the model. It may be new, or a data file of this model,
            which then grows. Empty for one that is named after the model.
    """
    home = document.scope_at(scope)
    _require_new_or_own(document, location)
    wanted, kept = strings(names, "names"), []
    for name in wanted:
        target = initializer_at(home, name)
        tensor = target.tensor
        if belongs_inside(tensor) and not tensor.is_external and tensor.dtype != "string":
            kept.append(name)
            continue
        entries = entries_of(tensor.proto)
        present = entries.get("location", "") if tensor.is_external else None
        if present == location or (present and not location):
            continue
        _store(document, transaction, target, location)
    if wanted and len(kept) == len(wanted):
        raise EditError(kept_inside(len(kept)), where=", ".join(map(quoted, kept[:3])))
    moved = [name for name in wanted if name not in kept]
    stay = f"; {fmt.plural(len(kept), 'small list')} kept in the model" if kept else ""
    return f"make {subject(moved, 'initializer')} external{stay}"


@edit
def set_inline(
    document: Document, transaction: Transaction, *, scope: Sequence[str], names: list[str]
) -> str:
    """Keep the values of initializers in the model itself rather than in a data file.

    Args:
        scope: The path of the graph.
    """
    home = document.scope_at(scope)
    for name in strings(names, "names"):
        target = initializer_at(home, name)
        if target.tensor.is_external:
            _store(document, transaction, target, None)
    return f"make {subject(names, 'initializer')} inline"


@edit
def set_external_entries(
    document: Document,
    transaction: Transaction,
    *,
    scope: Sequence[str],
    name: str,
    location: str | None = None,
    offset: int | None = None,
    length: int | None = None,
) -> str:
    """Change where the values of an external initializer are read from; no file is changed.

    Args:
        scope: The path of the graph.
        name: The initializer, whose values are in a data file already.
        location: The data file, relative to the model; None leaves it.
        offset: Where the values begin, in bytes; None leaves it.
        length: How many bytes they are, which must fit its type and shape; None leaves it.
    """
    home = document.scope_at(scope)
    target = initializer_at(home, name)
    old = target.tensor.proto
    entries = entries_of(old)
    if not target.tensor.is_external or is_pending(old):
        raise EditError(
            f"the values of {quoted(name)} are in no data file", hint="Make it external and save"
        )
    new = without_values(old)
    fill: dict[str, JSON] = {
        "location": entries.get("location", "") if location is None else location,
        "offset": _entry(entries, "offset", 0) if offset is None else offset,
        "length": _entry(entries, "length", None) if length is None else length,
    }
    _point_outside(document, new, fill)
    kept = {entry.key for entry in new.external_data}
    new.external_data.extend(entry for entry in old.external_data if entry.key not in kept)
    if new == old:
        return "set nothing"
    transaction.do(Splice(home, "initializer", target.position, [old], [new]))
    return f"set the data file of {quoted(name)}"


def _entry(entries: Mapping[str, str], key: str, default: int | None) -> int | None:
    text = entries.get(key, "").strip()
    return int(text) if text.isascii() and text.isdecimal() else default


def _store(
    document: Document, transaction: Transaction, target: EditedTensor, location: str | None
) -> None:
    """Store the values of an initializer in a data file, or in the model when that is None."""
    tensor = target.tensor
    if tensor.dtype == "string":
        raise EditError(f"{target.title} holds strings, which cannot be external")
    require_readable(target)
    proto = without_values(tensor.proto)
    put_payload(document, proto, raw_payload(tensor), location=location)
    transaction.do(Splice(target.scope, "initializer", target.position, [tensor.proto], [proto]))


def require_new_initializer(scope: Scope, name: str) -> None:
    """Refuse an initializer where none can be, or whose name means something else.

    Raises:
        EditError: The scope is a function, or the name is not free.
    """
    _require_graph(scope)
    _require_name(scope, name)


def _require_graph(scope: Scope) -> None:
    if scope.is_function:
        raise EditError("a function has no initializers", hint="Add a Constant node instead")


def _require_name(scope: Scope, name: str) -> None:
    """Refuse names that mean something else here, around or in a subgraph below."""
    if not name:
        raise EditError("an initializer needs a name")
    definition = scope.definition(name)
    if definition is not None and definition.kind == "input":
        return
    dangling = scope.resolve(name) is None and bool(scope.users(name))
    if not dangling or any(below.definition(name) is not None for below in scope.walk()):
        require_free(scope, name)


def _point_outside(document: Document, proto: onnx.TensorProto, fill: Mapping[str, JSON]) -> None:
    """Let a tensor's values be those at a place of a data file that is there."""
    location, offset, length = fill.get("location"), fill.get("offset", 0), fill.get("length")
    needed = payload_bytes(Tensor(proto, None).dtype, math.prod(proto.dims))
    if needed is None:
        raise EditError("strings cannot be external")
    length = needed if length is None else length
    if not isinstance(location, str) or type(offset) is not int or type(length) is not int:
        raise EditError("external values have a location, an offset and a length")
    if length != needed:
        raise EditError(f"the tensor needs {needed} B, the length says {length}")
    entries = {"location": location, "offset": str(offset), "length": str(length)}
    try:
        document.external.blob(entries, expected=needed)
    except InputError as error:
        raise EditError(error.message, hint=error.hint) from None
    set_entries(proto, location, offset, length)


def _require_new_or_own(document: Document, location: str) -> None:
    """Refuse a data file that is not to be written, or that belongs to something else."""
    if not location:
        return
    model = document.path or document.external.model_path
    try:
        path = require_location(model, location)
    except InputError as error:
        raise EditError(error.message) from None
    if document.path is not None and path == document.path.resolve():
        raise EditError("the data file cannot be the model's own file")
    if not path.exists() or document.external.data_file(path) is not None:
        return
    for scope in document.scopes():
        for tensor in scope.initializers:
            if tensor.is_external and tensor.external_entries.get("location") == location:
                return
    raise EditError(
        f"{quoted(location)} is there already, and this model does not use it",
        hint="Choose another name",
    )


def _free_uses(transaction: Transaction, scope: Scope, name: str, *, disconnect: bool) -> None:
    """Empty the inputs that use a value; refuse it unless that is wanted and possible."""
    if name in scope.outputs:
        raise EditError(f"{quoted(name)} is an output of the graph", hint="Remove the output first")
    uses = scope.users(name)
    if uses and not disconnect:
        users = len({use.node for use in uses})
        count = "a node uses" if users == 1 else f"{users} nodes use"
        raise EditError(f"{count} {quoted(name)}", hint="Disconnect it as well, or replace it")
    for use in uses:
        inputs = with_item(use.node.inputs, use.index, "")
        transaction.do(SetLinks(use.node.scope, use.node, "input", inputs))


@edit
def to_sparse(
    document: Document, transaction: Transaction, *, scope: Sequence[str], names: list[str]
) -> str:
    """Make initializers sparse: only elements whose bits are not all zero are kept.

    Args:
        scope: The path of the graph.
    """
    home = document.scope_at(scope)
    for name in strings(names, "names"):
        target = initializer_at(home, name)
        tensor = target.tensor
        if name in home.outputs:
            raise EditError(
                f"{quoted(name)} is an output of the graph, which would return a sparse tensor"
            )
        _require_sparse_type(target)
        sparse = _sparse(document, tensor)
        transaction.replace(home, "initializer", tensor.proto)
        transaction.append(home, "sparse_initializer", sparse)
    return f"make {subject(names, 'initializer')} sparse"


@edit
def to_dense(
    document: Document, transaction: Transaction, *, scope: Sequence[str], names: list[str]
) -> str:
    """Make sparse initializers dense.

    Args:
        scope: The path of the graph.
    """
    home = document.scope_at(scope)
    for name in strings(names, "names"):
        record = home.named("sparse_initializer").first(name)
        if record is None:
            raise EditError(f"there is no sparse initializer {quoted(name)}")
        dense = without_values(record.values, dims=require_dims(list(record.dims)))
        length = payload_bytes(Tensor(record.values, document).dtype, math.prod(record.dims))
        if length is None:
            raise EditError(f"{quoted(name)} holds strings, which cannot be dense here")
        require_room(document, length)
        put_payload(document, dense, _dense_parts(document, record, quoted(name)))
        transaction.replace(home, "sparse_initializer", record)
        transaction.append(home, "initializer", dense)
    return f"make {subject(names, 'initializer')} dense"


@edit
def set_sparse(
    document: Document,
    transaction: Transaction,
    *,
    scope: Sequence[str],
    name: str,
    dims: Sequence[int],
    indices: Sequence[JSON],
    values: Sequence[JSON],
    dtype: str | None = None,
) -> str:
    """Make a sparse initializer, or give one that is there other elements.

    Args:
        scope: The path of the graph.
        name: Its name: that of a sparse initializer, or a new one.
        dims: The dimensions of the whole tensor.
        indices: Where the elements are, in any order: lists of one index an axis, or numbers that
            count the elements of the tensor in row order.
        values: The elements, as many.
        dtype: The element type; that of the present elements by default.
    """
    home = document.scope_at(scope)
    old = home.named("sparse_initializer").first(name)
    if old is None:
        require_new_initializer(home, name)
        values_proto = onnx.TensorProto()
        set_text(values_proto, "name", name)
        if dtype is None:
            raise EditError("a new initializer needs its element type", hint="Give dtype")
    else:
        values_proto = old.values
    kind = Tensor(values_proto, document).dtype if dtype is None else element_type(dtype)
    shape, places, elements = sparse_parts(kind, dims, indices, values)
    sparse = onnx.SparseTensorProto(dims=shape)
    sparse.values.CopyFrom(without_values(values_proto, kind, [len(places)]))
    put_payload(document, sparse.values, encode_elements(elements, kind))
    by_axis = old is not None and len(old.indices.dims) == 2
    if old is not None:
        sparse.indices.CopyFrom(without_values(old.indices))
        del sparse.indices.dims[:]
    sparse.indices.data_type = onnx.TensorProto.INT64
    sparse.indices.dims.extend([len(places), len(shape)] if by_axis else [len(places)])
    flat = np.stack(np.unravel_index(places, shape), 1) if by_axis and len(places) else places
    put_payload(
        document, sparse.indices, encode_elements(flat.reshape(-1).astype(np.int64), "int64")
    )
    if old is None:
        transaction.append(home, "sparse_initializer", sparse)
        return f"add sparse initializer {quoted(name)}"
    transaction.replace(home, "sparse_initializer", old, sparse)
    return f"set the elements of {quoted(name)}"


def _require_sparse_type(target: EditedTensor) -> None:
    tensor, title = target.tensor, target.title
    bits = element_bits(tensor.proto.data_type)
    if bits is None or bits < 8:
        raise EditError(f"{title} is {tensor.dtype}, which cannot be sparse")
    if not tensor.shape:
        raise EditError(f"{title} is a scalar, which cannot be sparse")
    require_readable(target)


def _sparse(document: Document, tensor: Tensor) -> onnx.SparseTensorProto:
    sparse = onnx.SparseTensorProto()
    sparse.dims.extend(tensor.shape)
    count = sum(len(places) for places, _ in _present(tensor))
    values = without_values(tensor.proto, dims=[count])
    put_payload(
        document, values, (encode_elements(part, tensor.dtype) for _, part in _present(tensor))
    )
    indices = onnx.TensorProto(data_type=onnx.TensorProto.INT64)
    indices.dims.append(count)
    put_payload(
        document, indices, (encode_elements(places, "int64") for places, _ in _present(tensor))
    )
    sparse.values.CopyFrom(values)
    sparse.indices.CopyFrom(indices)
    return sparse


def _present(tensor: Tensor) -> Iterator[tuple[Array, Array]]:
    """Yield the places and values of elements other than zero, in parts."""
    for start in range(0, tensor.element_count, PART_ELEMENTS):
        values = tensor.read(start, PART_ELEMENTS)
        codes = np.ascontiguousarray(values).view(np.uint8).reshape(len(values), -1)
        places = np.flatnonzero(codes.any(axis=1))
        yield places.astype(np.int64) + start, values[places]


def _dense_parts(document: Document, record: onnx.SparseTensorProto, title: str) -> Iterator[bytes]:
    values = Tensor(record.values, document)
    total = math.prod(record.dims)
    entries = sparse_entries(document, record, title)
    places, elements = next(entries, _NOTHING)
    for start in range(0, total, PART_ELEMENTS):
        end = min(start + PART_ELEMENTS, total)
        part = np.zeros(end - start, native_type(values.dtype))
        while len(places):
            fits = int(np.searchsorted(places, end))
            part[places[:fits] - start] = elements[:fits]
            places, elements = places[fits:], elements[fits:]
            if len(places):
                break
            places, elements = next(entries, _NOTHING)
        yield encode_elements(part, values.dtype)
    if total == 0:
        yield b""


_NOTHING: tuple[Array, Array] = (np.empty(0, np.int64), np.empty(0))
