"""Serialisation of documents: to bytes, as snapshots in small steps, and saved atomically.

A snapshot is for tools that read no values. Unlike :func:`skeleton_bytes` it only reads the
document, its bytes are not canonical (the graph comes as several fields that every parser merges),
and it can leave out types that edits made doubtful. Payloads stay cut out.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import FileChangedError, InputError, SaveError, UsageError
from dld_tui.core.files import protos as onnx
from dld_tui.core.files.columns import field_bytes
from dld_tui.core.files.external import (
    dense_tensors,
    entries_of,
    in_huggingface_cache,
    is_external,
    is_pending,
)
from dld_tui.core.files.model_set import discard_view, external_view, plan_model
from dld_tui.core.files.proto_fields import (
    DELIMITED,
    FIXED64,
    MODEL_TAGS,
    VARINT,
    read_varint,
    text_of,
)
from dld_tui.core.files.writer import can_clone, clone
from dld_tui.core.model.document.index import record_name
from dld_tui.core.model.document.node import Node, grouped_for_reading
from dld_tui.core.model.document.scope import FUNCTION_LISTS, GRAPH_LISTS, Scope
from dld_tui.core.types import CancelCheck, ProgressCallback

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document

_GRAPH_FIELD = onnx.ModelProto.DESCRIPTOR.fields_by_name["graph"].number
_NODE_FIELD = onnx.GraphProto.DESCRIPTOR.fields_by_name["node"].number
_SINGLE_FIELDS = ("name", "doc_string")


def skeleton_bytes(document: Document) -> bytes:
    """Return the model as protobuf writes it, with sentinels where payloads were cut out."""
    model = document.model
    for function in document.functions:
        _fill(function)
    model.functions.extend(function.proto for function in document.functions)  # type: ignore[misc]
    try:
        head = model.SerializeToString()
    finally:
        del model.functions[:]
        for function in document.functions:
            _empty(function)
    graph = _graph_bytes(document.main)
    start, end = _graph_span(head)
    return b"".join((head[:start], field_bytes(_GRAPH_FIELD, graph), head[end:]))


@contextmanager
def loadable_view(document: Document) -> Iterator[Path]:
    """Yield a file of a document as it is now, which a runtime loads, without its large weights.

    Raises:
        SaveError: It cannot be written.
    """
    view = external_view(
        skeleton_bytes(document), document.blobs, external=document.external, loadable=True
    )
    try:
        yield view
    finally:
        discard_view(view)


def _graph_bytes(scope: Scope) -> bytes:
    """Return the main graph, composed field by field.

    Putting 50,000 nodes back into the message would copy them into its arena, which never shrinks.
    """
    proto: Any = scope.proto
    fields = sorted(
        (proto.DESCRIPTOR.fields_by_name[name].number, name)
        for name in (*GRAPH_LISTS, *_SINGLE_FIELDS)
    )
    parts: list[bytes] = []
    for number, name in fields:
        if name == "node":
            parts += _graph_nodes(scope)
        elif name in _SINGLE_FIELDS:
            only = type(proto)()
            if proto.HasField(name):
                only.CopyFrom(proto)
                for descriptor, _ in proto.ListFields():
                    if descriptor.name != name:
                        only.ClearField(descriptor.name)
                only.DiscardUnknownFields()
            parts.append(only.SerializeToString())
        else:
            parts += (field_bytes(number, r.SerializeToString()) for r in scope.records[name])
    rest = deepcopy(proto)
    for name in _SINGLE_FIELDS:
        rest.ClearField(name)
    # What is left (metadata_props, fields of newer versions) has higher numbers than all above.
    parts.append(rest.SerializeToString())
    return b"".join(parts)


def _graph_nodes(scope: Scope) -> Iterator[bytes]:
    """Yield the nodes of the main graph as fields of it."""
    for own, nodes in grouped_for_reading(scope.nodes):
        if own is not None:
            yield own.serialised()  # a Python object for each node would take longer than all else
        else:
            yield from (field_bytes(_NODE_FIELD, _node_bytes(node)) for node in nodes)


def _node_bytes(node: Node) -> bytes:
    if not node.children:
        return node.proto.SerializeToString()
    with filled(node):
        return node.proto.SerializeToString()


@contextmanager
def filled(node: Node) -> Iterator[None]:
    """Make the message of a node complete, subgraphs included, for as long as the context lasts."""
    with ExitStack() as stack:
        for scope in node.subgraphs():
            stack.enter_context(filled_scope(scope))
        yield


@contextmanager
def filled_scope(scope: Scope) -> Iterator[None]:
    """Make the message of a subgraph or function complete for as long as the context lasts."""
    _fill(scope)
    try:
        yield
    finally:
        _empty(scope)


def _fill(scope: Scope) -> None:
    """Put the records of a subgraph or function back into its message, those below it first."""
    for child in scope.children():
        _fill(child)
    for name in _lists(scope):
        records = scope.records[name]
        messages = (node.proto for node in scope.nodes) if name == "node" else records
        getattr(scope.proto, name).extend(messages)


def _empty(scope: Scope) -> None:
    for name in _lists(scope):
        del getattr(scope.proto, name)[:]
    for child in scope.children():
        _empty(child)


def _lists(scope: Scope) -> tuple[str, ...]:
    return FUNCTION_LISTS if scope.is_function else GRAPH_LISTS


def _graph_span(head: bytes) -> tuple[int, int]:
    """Return where the (empty) graph field is in a serialised model: start and end."""
    position = 0
    while position < len(head):
        start = position
        tag, position = read_varint(head, position)
        wire_type = tag & 7
        if wire_type == VARINT:
            _, position = read_varint(head, position)
        elif wire_type == DELIMITED:
            length, position = read_varint(head, position)
            position += length
        else:
            position += 8 if wire_type == FIXED64 else 4
        if tag == MODEL_TAGS[_GRAPH_FIELD]:
            return start, position
    raise AssertionError("a document always has a graph")


DataMode: TypeAlias = Literal["copy", "link", "reflink"]
"""How data files come to another folder: as a copy without its holes; as a second name of the same
file; as a file of its own that shares the blocks of the first until one of them is changed, where
the file system can do that, and else as a copy."""


def save(
    document: Document,
    path: Path | None = None,
    *,
    overwrite: bool = False,
    force: bool = False,
    data: DataMode = "copy",
    progress: ProgressCallback | None = None,
    cancelled: CancelCheck | None = None,
) -> list[str]:
    """Write a document to a file and return remarks for the user, mostly none.

    Payloads are streamed from where they are; what does not fit in 2 GiB goes to external data, and
    external data comes along to another folder.

    Args:
        document: The document; afterwards it belongs to the file that was written.
        path: Where to; by default the file that it was opened from.
        overwrite: Replace a file that exists; the document's own is replaced in any case. Else
            :mod:`~dld_tui.core.files.permission` says whether it may be replaced.
        force: Write even if another program has changed the document's own file.
        data: How data files come to another folder; see :data:`DataMode`.
        progress: Called with bytes done and bytes in all.
        cancelled: Asked now and then.

    Raises:
        UsageError: The document has no file and no path is given.
        FileChangedError: Another program has changed the file since it was read.
        SaveError: It could not be written; the old file is untouched.
        CancelledError: `cancelled` said so; the old file is untouched.
    """
    target = path or document.path
    if target is None:
        raise UsageError("a new model needs a path to be saved to")
    if in_huggingface_cache(target):
        # Its files are links to blobs that every model of the cache shares.
        raise SaveError(
            "the Hugging Face cache is not written to", where=str(target), hint="Save elsewhere"
        )
    own = document.path is not None and target.resolve() == document.path.resolve()
    if own and not force and document.changed_on_disk():
        raise FileChangedError(
            "another program has changed the file since it was opened",
            where=str(target),
            hint="Save under another name, or overwrite on purpose",
        )
    with ExitStack() as undo:
        brought = _bring_data(document, target, data, undo) if data != "copy" else []
        plan = plan_model(
            skeleton_bytes(document),
            document.blobs,
            target,
            external=document.external,
            spill=document.spill,
        )
        if own:  # whatever its name
            plan.text = document.text
        remarks = plan.write(
            overwrite=overwrite or own,
            like=None if force else document.source,
            progress=progress,
            cancelled=cancelled,
            sealed=document.about_to_save if own else None,
        )
        undo.pop_all()
    remarks = [*brought, *remarks]
    document.saved_as(target, plan.adopt(document.blobs, document.external), plan.text)
    return remarks


@dataclass(frozen=True)
class DataToCopy:
    """Data files that are elsewhere than a model at its new place looks for them."""

    size: int = 0
    """Bytes in them."""
    stored: int = 0
    """Bytes that they take on the disk, without holes."""
    can_reflink: bool = False
    """Whether copies there can share their blocks."""


def data_to_copy(document: Document, target: Path) -> DataToCopy:
    """Return the data files that a save at `target` copies."""
    away = [
        (source, place) for source, place in _data_files(document, target) if not place.exists()
    ]
    sizes = [source.stat() for source, _ in away]
    folder = target.absolute().parent
    return DataToCopy(
        sum(status.st_size for status in sizes),
        sum(status.st_blocks * 512 for status in sizes),
        bool(away) and all(can_clone(source, folder) for source, _ in away),
    )


def _data_files(document: Document, target: Path) -> list[tuple[Path, Path]]:
    """Return the data files of a document, and where a model at `target` looks for each."""
    folder = Path(os.path.realpath(target.absolute().parent))
    files: dict[str, Path] = {}
    for tensor in dense_tensors(onnx.ModelProto.FromString(skeleton_bytes(document))):
        if not is_external(tensor) or is_pending(tensor):
            continue
        location = entries_of(tensor).get("location", "")
        if location not in files:
            with suppress(InputError):  # what is missing is said when the model is saved
                files[location] = document.external.source(location).path
    return [(path, folder / place) for place, path in files.items() if path != folder / place]


def _in_bodies(document: Document) -> bool:
    """Return whether tensors of bodies, nodes or functions are in data files."""
    model = onnx.ModelProto.FromString(skeleton_bytes(document))
    outer = sum(map(is_external, model.graph.initializer))
    return sum(map(is_external, dense_tensors(model))) > outer


def _bring_data(document: Document, target: Path, mode: DataMode, undo: ExitStack) -> list[str]:
    """Link or clone data files beside the target; returns remarks, takes them back on errors."""
    remarks = []
    if mode == "link" and _in_bodies(document):
        raise SaveError(
            "the data cannot be linked: ONNX Runtime then reads the weights of bodies for neither"
            " model",
            where=str(target), hint="Copy it instead",
        )  # fmt: skip
    for source, place in _data_files(document, target):
        if os.path.lexists(place):
            continue  # it is the same file, or else another one: then the data is copied
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            if mode == "link":
                os.link(source, place)
            elif not clone(source, place):
                remarks.append(f"{source.name} is copied: its blocks cannot be shared there")
                continue
            else:
                document.external.cloned(source, place)
        except OSError as error:
            raise SaveError(
                f"the data cannot be linked: {error.strerror}", where=str(place),
                hint="Copy it instead",
            ) from error  # fmt: skip
        undo.callback(place.unlink, missing_ok=True)
        if mode == "link":
            remarks.append(
                f"{place.name} is linked: what changes it in place changes {source} as well, and"
                " onnx loads neither model while it has two names"
            )
    return remarks


_STEP = 200
"""Nodes, or other records, of one step: about half a millisecond."""


def snapshot(document: Document, *, doubtful: bool = False) -> Iterator[bytes]:
    """Yield the parts of a serialised model; some are empty, to end a step.

    The document must not change between two steps: whoever drives this starts again when it does.

    Args:
        doubtful: Whether ``value_info`` and outputs are to have types that edits have made
            doubtful, too (see :attr:`Scope.touched`).
    """
    yield document.model.SerializeToString()  # with the header of the main graph
    graph = _number(onnx.ModelProto, "graph")
    for part in _parts(document.main, doubtful):
        yield field_bytes(graph, part) if part else b""
    functions = _number(onnx.ModelProto, "functions")
    for function in document.functions:
        whole = onnx.FunctionProto()
        whole.CopyFrom(function.proto)  # type: ignore[arg-type]
        for part in _parts(function, doubtful):
            whole.MergeFromString(part)
            yield b""
        yield field_bytes(functions, whole.SerializeToString())


def _parts(scope: Scope, doubtful: bool) -> Iterator[bytes]:
    """Yield the lists of a scope as serialised messages that add up to it."""
    kind = onnx.FunctionProto if scope.is_function else onnx.GraphProto
    for name in FUNCTION_LISTS if scope.is_function else GRAPH_LISTS:
        number = _number(kind, name)
        if name == "node":
            yield from _node_parts(number, scope, doubtful)
            continue
        part: list[bytes] = []
        for at, record in enumerate(list(scope.records[name])):
            if name == "output" and not doubtful and not _is_trusted(scope, record, name):
                part.append(field_bytes(number, _bare(record).SerializeToString()))
            elif name != "value_info" or doubtful or _is_trusted(scope, record, name):
                part.append(field_bytes(number, record.SerializeToString()))
            if at % _STEP == _STEP - 1:
                yield b"".join(part)
                part = []
        yield b"".join(part)


def _node_parts(number: int, scope: Scope, doubtful: bool) -> Iterator[bytes]:
    for own, nodes in grouped_for_reading(list(scope.nodes)):
        if own is not None:
            yield own.serialised()
            continue
        part: list[bytes] = []
        for at, node in enumerate(nodes):
            if node.children:
                yield b"".join(part)
                part = []
                yield from _node_with_bodies(number, node, doubtful)
            else:
                part.append(field_bytes(number, node.proto.SerializeToString()))
            if at % _STEP == _STEP - 1:
                yield b"".join(part)
                part = []
        yield b"".join(part)


def _node_with_bodies(number: int, node: Node, doubtful: bool) -> Iterator[bytes]:
    whole = onnx.NodeProto()
    whole.CopyFrom(node.proto)  # the lists of its graphs are empty
    for attribute in whole.attribute:
        scopes = node.children.get(text_of(attribute.name), [])
        graphs = list(attribute.graphs) or [attribute.g]
        for scope, graph in zip(scopes, graphs, strict=False):
            for part in _parts(scope, doubtful):
                graph.MergeFromString(part)
                yield b""
    yield field_bytes(number, whole.SerializeToString())


def _is_trusted(scope: Scope, record: onnx.ValueInfoProto, list_name: str) -> bool:
    return not scope.touched or record_name(list_name, record) not in scope.touched


def _bare(record: onnx.ValueInfoProto) -> onnx.ValueInfoProto:
    """Return an output without its type: inference is to tell it, and a check compares."""
    bare = deepcopy(record)
    bare.ClearField("type")
    return bare


def _number(kind: Any, name: str) -> int:
    return int(kind.DESCRIPTOR.fields_by_name[name].number)
