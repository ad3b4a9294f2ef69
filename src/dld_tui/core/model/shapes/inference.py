"""Types and shapes of all values, as the onnx package infers them.

It is native code that can end the process on a bad model: call this in a child process.

A value that is made an input or output gets the type that is known of it. Where nothing was known
then, shape inference may tell it later; what the file had without a type stays as it is.
"""

from __future__ import annotations

import bisect
import contextlib
import itertools
import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from heapq import heappop, heappush
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import ActivityError, InputError
from dld_tui.core.files import protos as onnx
from dld_tui.core.files.external import (
    ExternalFiles,
    dense_tensors,
    entries_of,
    is_external,
    payload_length,
    set_inline,
)
from dld_tui.core.files.proto_fields import operator_key, set_text, text_of
from dld_tui.core.files.wire import THRESHOLD
from dld_tui.core.model.document.locations import (
    Labels,
    LocatedMessage,
    Place,
    bodies,
    label_number,
    names_used,
    placed_bodies,
    scope_at,
)
from dld_tui.core.model.document.scope import CallTypes, Scope
from dld_tui.core.model.operators.native import (
    MOST_NODES,
    call_size,
    expansion,
    infer_shapes,
    limits_for,
)
from dld_tui.core.model.tensors.value_types import (
    GENERATED,
    ValueType,
    type_proto_of,
    value_type_of,
)
from dld_tui.core.process.child import CrashError, LimitError, Limits, RefusedError
from dld_tui.core.types import FIRST_IR_WITH_IMPORTS, plain_domain

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document
    from dld_tui.core.model.document.scope import Scope

TypeSource: TypeAlias = "Callable[[onnx.ModelProto], Iterable[onnx.ValueInfoProto]]"
"""Returns the types of values of the main graph that an inferred model has no shapes of."""
_NEGATIVE = b"\xff" * 8 + b"\x01"
"""How small negative numbers end in a file."""
_MOST_TOLD = 4
"""The most rounds in which a runtime infers more types from those before."""
_MOST_CONFLICTS = 8
"""How often declared shapes are left out: what follows from one comes to light without it."""


def inline_small_data(model: onnx.ModelProto, home: Path) -> None:
    """Make small external data inline: onnx computes sizes from inline data only.

    Args:
        model: The model, whose payloads may be cut out.
        home: The model's file: data files are found in its folder.
    """
    with contextlib.closing(ExternalFiles(home)) as files:
        for tensor in dense_tensors(model):
            if not is_external(tensor):
                continue
            length = payload_length(tensor)
            if length is not None and length < THRESHOLD:
                with contextlib.suppress(InputError):  # missing or refused: a check tells
                    set_inline(tensor, files.blob(entries_of(tensor), expected=length).read())


@dataclass
class Inference:
    """The result of shape inference."""

    model: onnx.ModelProto
    """A copy with ``value_info`` for all values that onnx can tell of; labels as node names."""
    labels: Labels
    messages: list[LocatedMessage]
    """Remarks on conflicts in the model."""
    failed: bool = False
    """Whether inference rejected the whole model: the copy has no additional types."""
    held: Mapping[str, LocatedMessage] = field(default_factory=dict)
    """Nodes that were left out, by their labels, because onnx takes too much for them, and why."""


def infer(model: onnx.ModelProto, extra_types: TypeSource | None = None) -> Inference:
    """Infer the types of a model; never fails.

    Where a declared shape of what a node makes differs from the inferred one, the declared one is
    left out, as ONNX Runtime does: runtimes go by what operators make.

    Args:
        model: The model, whose payloads may be cut out. It is changed: it gets the imports that it
            lacks, labels as names of its nodes, and loses declared shapes that are wrong, and
            dimensions that are negative.
        extra_types: Supplies types that onnx cannot infer, from which inference continues.
    """
    from dld_tui.core.model.shapes.naming import (  # lazy: NumPy
        forget_cut_dimensions,
        name_dimensions,
        shapes_of_others,
    )

    own_names = _declared_names(model.graph)
    _forget_negative(model)
    inference = _infer(model, None)
    forget_cut_dimensions(inference.model)
    name_dimensions(inference.model, own_names)
    for _ in range(0 if inference.failed else _MOST_TOLD):
        more = shapes_of_others(inference.model)
        if extra_types is not None:
            more.update((text_of(info.name), info) for info in extra_types(inference.model))
        if not more:
            break
        forget_generated(inference.model.graph)
        _declare(inference.model.graph, more)
        inference = _infer(inference.model, inference)
        forget_cut_dimensions(inference.model)
        name_dimensions(inference.model, own_names)
    return inference


def is_generated(dim: onnx.TensorShapeProto.Dimension) -> bool:
    """Return whether a dimension looks as if onnx had named it."""
    return GENERATED.fullmatch(text_of(dim.dim_param)) is not None


def _forget_negative(model: onnx.ModelProto) -> None:
    """Take negative dimensions away: they are not known, and onnx would compute with them."""
    if _NEGATIVE not in model.SerializeToString():
        return
    for _, body in bodies(model):
        for info in (*body.input, *body.value_info, *body.output):
            if isinstance(info, onnx.ValueInfoProto):
                for dim in _shape_dims(info.type):
                    if dim.dim_value < 0:
                        dim.Clear()


def _shape_dims(kind: onnx.TypeProto) -> Sequence[onnx.TensorShapeProto.Dimension]:
    while (field := kind.WhichOneof("value")) in ("sequence_type", "optional_type"):
        kind = getattr(kind, str(field)).elem_type
    return getattr(kind, str(field)).shape.dim if field and field.endswith("tensor_type") else ()


def spell_out_domains(model: onnx.ModelProto) -> None:
    """Write out which operator sets a model uses, as ONNX Runtime reads it and libraries need it.

    The operators of ONNX, and constants, get one name, and all sets are imported.
    """
    lists = [model.opset_import, *(function.opset_import for function in model.functions)]
    for entry in (entry for imports in lists for entry in imports):
        if entry.domain == "ai.onnx":
            entry.domain = ""
    for _, body in bodies(model):
        for node in body.node:
            if node.domain == "ai.onnx" or (node.domain and node.op_type == "Constant"):
                node.domain = ""
    import_used(model)


def import_used(model: onnx.ModelProto) -> None:
    """Import the operator sets that a model uses without importing them.

    That is the newest version that the IR version allows; where the format has no imports yet there
    was one version. A newer file that imports nothing is taken by no runtime, and left alone.
    """
    from dld_tui.core.model.operators.registry import importable_version

    if not model.opset_import and 0 < model.ir_version < FIRST_IR_WITH_IMPORTS:
        model.opset_import.add(version=1)
    imported = {plain_domain(text_of(entry.domain)) for entry in model.opset_import}
    for place, body in bodies(model) if imported else ():
        if place[:1] == ["function"]:  # which has imports of its own
            continue
        for domain in {plain_domain(text_of(node.domain)) for node in body.node} - imported:
            imported.add(domain)
            version = importable_version(domain, int(model.ir_version))
            model.opset_import.add(domain=domain, version=version)


def _declared_names(graph: onnx.GraphProto) -> frozenset[str]:
    return frozenset(
        text_of(dim.dim_param)
        for info in (*graph.input, *graph.output)
        for dim in info.type.tensor_type.shape.dim
    )


def forget_generated(graph: onnx.GraphProto) -> None:
    """Leave out shapes with dimensions that onnx has named: it keeps them once they are there.

    What stands behind them may be known as soon as more types are.
    """
    kept = [
        info
        for info in graph.value_info
        if not any(map(is_generated, info.type.tensor_type.shape.dim))
    ]
    if len(kept) < len(graph.value_info):
        copies = [onnx.ValueInfoProto.FromString(info.SerializeToString()) for info in kept]
        del graph.value_info[:]
        graph.value_info.extend(copies)


def _declare(graph: onnx.GraphProto, more: dict[str, onnx.ValueInfoProto]) -> None:
    """Record types of values, replacing declared ones."""
    missing = dict(more)
    for info in (*graph.value_info, *graph.output):
        new = missing.pop(text_of(info.name), None)
        if new is not None:
            info.type.CopyFrom(new.type)
    graph.value_info.extend(missing.values())


def _infer(model: onnx.ModelProto, before: Inference | None) -> Inference:
    if before is None:
        spell_out_domains(model)  # a set that is not imported would end it for all the others
        _take_weights_as_constants(model)
        before = Inference(model, Labels(model), [])
        before.held = _wide_calls(model, before.labels)
        sort_nodes(model.graph)
    labels, held = before.labels, before.held
    op_type = _unreadable(model)
    if op_type is not None:
        return Inference(
            model, labels, [LocatedMessage(f"{op_type}: its input is not known")], failed=True
        )
    for _ in range(_MOST_HELD):
        try:
            inference = _infer_without(model, labels, held)
        except (LimitError, CrashError) as error:
            held = {**held, **_causes(model, labels, held, str(error))}
        else:
            inference.held = held
            inference.messages += held.values()
            return inference
    # What is left may be as expensive: nothing is inferred.
    return Inference(model, labels, [*held.values()], failed=True, held=held)


_MOST_HELD = 4
"""How often nodes are looked for that are left out."""
_HELD = "dld.held"
"""The domain of nodes that are left out."""


def _wide_calls(model: onnx.ModelProto, labels: Labels) -> dict[str, LocatedMessage]:
    """Return the calls of functions that stand for more nodes than can be looked at."""
    counts = expansion(model) if model.functions else {}
    sizes = {text_of(node.name): call_size(node, counts) for node in model.graph.node}
    return {
        name: labels.message(name, f"its types are not inferred: it stands for {size:.3g} nodes")
        for name, size in sizes.items()
        if size > MOST_NODES
    }


def _infer_without(
    model: onnx.ModelProto, labels: Labels, held: Mapping[str, LocatedMessage]
) -> Inference:
    """Infer a model without some nodes.

    Raises:
        LimitError: It takes too much.
        CrashError: It ends the process.
    """
    messages: list[LocatedMessage] = []
    for _ in range(_MOST_CONFLICTS):
        try:
            return Inference(_inferred(model, held, strict=True), labels, [])
        except RefusedError as error:
            messages = labels.messages(str(error))
        if not _forget_conflicts(model, messages):
            break
    messages = [remark for remark in messages if not remark.is_of_declared_shape]
    try:  # only the strict way tells its errors, and then nothing else
        return Inference(_inferred(model, held, strict=False), labels, messages)
    except RefusedError as error:
        return Inference(model, labels, messages or labels.messages(str(error)), failed=True)


def _causes(
    model: onnx.ModelProto, labels: Labels, held: Mapping[str, LocatedMessage], why: str
) -> dict[str, LocatedMessage]:
    """Return the node for which onnx takes too much, and why; others of its kind at the second one.

    The nodes before it are inferred within a fourth of the limits.
    """
    limits = limits_for(model.ByteSize())
    limits = Limits(limits.seconds / 4, limits.memory // 4)
    head = onnx.ModelProto()
    head.CopyFrom(model)
    nodes = [*model.graph.node]

    def is_enough(count: int) -> bool:
        del head.graph.node[:]
        head.graph.node.extend(nodes[:count])
        try:
            _inferred(head, held, strict=False, limits=limits)
        except RefusedError:
            pass
        except (LimitError, CrashError):
            return True
        return False

    count = bisect.bisect_left(range(len(nodes) - 1), True, key=lambda at: is_enough(at + 1))
    cause = nodes[count]
    kind = cause.domain, cause.op_type
    kinds = {(node.domain, node.op_type) for node in nodes if text_of(node.name) in held}
    causes = [node for node in nodes if (node.domain, node.op_type) == kind]
    message = f"its types cannot be inferred: {why}"
    return {
        text_of(node.name): labels.message(text_of(node.name), message)
        for node in (causes if kind in kinds else [cause])
    }


_READ = frozenset({"EyeLike", "LabelEncoder", "RegexFullMatch", "TreeEnsemble"})
"""Operators whose inference ends the process where there is no type of their first input."""


def _unreadable(model: onnx.ModelProto) -> str | None:
    """Return an operator that would end the process; None where there is none."""
    calls = [node for _, body in bodies(model) for node in body.node if node.op_type in _READ]
    known: set[str] = set()
    for _, body in bodies(model) if calls else ():
        for node in body.node:
            known.update(node.output)
        if isinstance(body, onnx.GraphProto):
            known.update(info.name for info in body.input)
            known.update(tensor.name for tensor in body.initializer)
        else:
            known.update(body.input)
    for node in calls:
        if not (node.input and node.input[0] and node.input[0] in known):
            return text_of(node.op_type)
    return None


def _take_weights_as_constants(model: onnx.ModelProto) -> None:
    """Prepare a model for inference as runtimes read it.

    Before IR version 4 all initializers are inputs, too, and constants all the same. What is
    declared of the value of a Constant node holds for nobody.
    """
    if model.ir_version < 4:
        weights = {tensor.name for tensor in model.graph.initializer}
        kept = [info for info in model.graph.input if info.name not in weights]
        copies = [onnx.ValueInfoProto.FromString(info.SerializeToString()) for info in kept]
        del model.graph.input[:]
        model.graph.input.extend(copies)
        model.ir_version = 4
    for sparse in model.graph.sparse_initializer:  # operators take them as dense ones
        kind = onnx.TypeProto()
        kind.tensor_type.elem_type = sparse.values.data_type
        for dim in sparse.dims:
            kind.tensor_type.shape.dim.add().dim_value = dim
        model.graph.input.append(onnx.ValueInfoProto(name=sparse.values.name, type=kind))
    del model.graph.sparse_initializer[:]
    for _, body in bodies(model):
        constants = {
            node.output[0] for node in body.node if node.op_type == "Constant" and node.output
        }
        if not constants or not isinstance(body, onnx.GraphProto):
            continue
        for info in body.value_info:
            if info.name in constants:
                info.type.Clear()


def sort_nodes(graph: onnx.GraphProto) -> None:
    """Bring nodes into an order in which they can run, where they are in none, as runtimes do."""
    if _is_sorted(graph):
        return
    order = sorted_positions(graph)
    if len(order) == len(graph.node):  # else a cycle: another rule tells
        _put_nodes(graph, [graph.node[at] for at in order])


def sorted_positions(graph: onnx.GraphProto) -> list[int]:
    """Return the positions of nodes so that each comes after those it needs, else as in the file.

    Nodes of cycles, and what needs them, are missing.
    """
    makers = {text_of(name): at for at, node in enumerate(graph.node) for name in node.output}
    needed: list[set[int]] = []
    users: list[list[int]] = [[] for _ in graph.node]
    for at, node in enumerate(graph.node):
        sources = {makers[name] for name in names_used([node]) if name in makers} - {at}
        needed.append(sources)
        for source in sources:
            users[source].append(at)
    ready = [at for at, sources in enumerate(needed) if not sources]
    order = []
    while ready:
        order.append(at := heappop(ready))
        for user in users[at]:
            needed[user].discard(at)
            if not needed[user]:
                heappush(ready, user)
    return order


def in_file_order(inferred: onnx.ModelProto) -> None:
    """Restore the order of the file for the nodes of a result of :func:`infer`, by their labels.

    Places of graphs in them are positions.
    """
    nodes = inferred.graph.node
    numbers = [label_number(text_of(node.name)) for node in nodes]
    known = [number for number in numbers if number is not None]
    if len(known) == len(nodes) and known != sorted(known):
        _put_nodes(inferred.graph, [node for _, node in sorted(zip(known, nodes, strict=True))])


def _put_nodes(graph: onnx.GraphProto, nodes: Sequence[onnx.NodeProto]) -> None:
    copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(copies)


def _is_sorted(graph: onnx.GraphProto) -> bool:
    """Return whether the nodes are sorted; quick for the usual case that they are."""
    seen: set[str] = set()
    early: set[str] = set()
    for node in graph.node:
        if node.attribute:
            early |= names_used([node]) - seen
        else:
            early.update(name for name in map(text_of, node.input) if name not in seen)
        seen.update(map(text_of, node.output))
    return not (early & seen) - {""}


def _inferred(
    model: onnx.ModelProto,
    held: Mapping[str, LocatedMessage],
    *,
    strict: bool,
    limits: Limits | None = None,
) -> onnx.ModelProto:
    """Return what onnx infers of a model without some nodes, which are there all the same."""
    if not held:
        return infer_shapes(model, strict=strict, limits=limits)
    domains: dict[str, str] = {}
    for node in model.graph.node:
        name = text_of(node.name)
        if name in held:
            domains[name] = node.domain
            node.domain = _HELD
    imported = model.opset_import.add(domain=_HELD, version=1)
    counts = expansion(model) if model.functions else {}
    functions = [*model.functions] if max(counts.values(), default=0) > MOST_NODES else []
    if functions:  # onnx looks at them even if nothing calls them
        del model.functions[:]
    try:
        inferred = infer_shapes(model, strict=strict, limits=limits)
    finally:
        model.functions.extend(functions)
        model.opset_import.remove(imported)
        _put_back(model, domains)
    inferred.functions.extend(functions)
    inferred.opset_import.remove(imported)
    _put_back(inferred, domains)
    return inferred


def _put_back(model: onnx.ModelProto, domains: Mapping[str, str]) -> None:
    for node in model.graph.node:
        if node.domain == _HELD:
            node.domain = domains[text_of(node.name)]


def _forget_conflicts(model: onnx.ModelProto, messages: list[LocatedMessage]) -> bool:
    """Leave out declared shapes that are not what nodes make; return whether there were some."""
    wrong = [
        remark for remark in messages if remark.is_of_declared_shape and remark.place is not None
    ]
    if not wrong:
        return False
    graphs = {json.dumps(place): body for place, body in bodies(model)}
    is_changed = False
    for remark in wrong:
        body = graphs.get(json.dumps(remark.place))
        if not isinstance(body, onnx.GraphProto) or remark.index is None:
            continue
        names = set(body.node[remark.index].output)
        for info in (*body.value_info, *body.output):
            kind = info.type
            if (
                info.name in names
                and kind.HasField("tensor_type")
                and kind.tensor_type.HasField("shape")
            ):
                info.type.tensor_type.ClearField("shape")
                is_changed = True
    return is_changed


def infer_types(
    model: onnx.ModelProto, path: Path | None, extra_types: TypeSource | None = None
) -> tuple[onnx.ModelProto, list[LocatedMessage]]:
    """Return a copy of a model with ``value_info`` for all values that onnx can tell of.

    Args:
        model: The model, whose payloads may be cut out; it is changed as :func:`infer` says.
        path: How errors name it.
        extra_types: As for :func:`infer`.

    Returns:
        The copy, and messages on conflicts in the model.

    Raises:
        ActivityError: Inference refuses the model as a whole; it says why.
    """
    inference = infer(model, extra_types=extra_types)
    if not inference.failed:
        return inference.model, inference.messages
    why = inference.messages[0].message if inference.messages else "the model is inconsistent"
    raise ActivityError(
        f"shape inference stopped: {why}", where=None if path is None else str(path)
    )


def left_out(document: Document) -> str:
    """Return a node that inference leaves out because it takes too much, and why; empty if none.

    Libraries that infer by onnx, too, would not end.
    """
    from dld_tui.core.model.document.serialise import skeleton_bytes

    model = onnx.ModelProto.FromString(skeleton_bytes(document))
    if document.path is not None:
        inline_small_data(model, document.path)
    return next((remark.told_of(document) for remark in infer(model).held.values()), "")


def store_types(document: Document, inferred: onnx.ModelProto) -> None:
    """Give a document the types that inference found in a copy of it."""
    in_file_order(inferred)
    for place, body in bodies(inferred):
        scope = scope_at(document, place)
        if scope is None or scope.is_function or not isinstance(body, onnx.GraphProto):
            continue
        _take(scope, body)
    document.call_types = CallTypes()
    for typed in function_types(inferred):
        inner = scope_at(document, typed.place)
        if inner is not None:
            types = _types_in(typed.graph)
            document.call_types.note(inner, typed.variant, types, typed.called)


def _take(scope: Scope, graph: onnx.GraphProto) -> None:
    scope.inferred.update(_types_in(graph))


def _types_in(graph: onnx.GraphProto) -> dict[str, ValueType]:
    return {
        text_of(info.name): known
        for info in (*graph.value_info, *graph.output)
        if (known := value_type_of(info.type)) is not None
    }


_Types: TypeAlias = "dict[str, onnx.TypeProto]"
_MOST_SIGNATURES = 32
"""Calls with other types or attributes that are followed; where there are more, nothing is told."""


class BodyTypes(NamedTuple):
    """What is known of the values in a graph, and of the calls of functions in it."""

    place: Place
    graph: onnx.GraphProto
    """Its ``value_info`` has the types."""
    variant: int | None = None
    """For which calls of the function around it; None for all."""
    called: dict[str, int] = {}  # noqa: RUF012 - never changed
    """The variant of the function that a node calls, by its first output; see CallTypes."""


@dataclass
class _Variant:
    """A function as calls with the same types and attributes have it."""

    function: int
    number: int
    graphs: dict[str, tuple[Place, onnx.GraphProto]]
    """By the text of the place."""


@dataclass
class _CallSite:
    """A call, and the function it calls."""

    caller: _Variant | None
    """None for the main graph."""
    place: Place
    output: str
    function: int
    variant: int


def function_types(inferred: onnx.ModelProto) -> Iterator[BodyTypes]:
    """Yield the types of values in local functions, which declare none.

    A function is inferred with the types that its calls hand in. First comes what all its calls
    agree on; where calls differ, what each kind of them has, and which node is which kind.

    Args:
        inferred: A model with the types that :func:`infer_types` found.
    """
    known = {operator_key(function): number for number, function in enumerate(inferred.functions)}
    if not known or max(expansion(inferred).values()) > MOST_NODES:
        return
    variants: dict[int, dict[bytes, _Variant]] = {}
    not_followed: set[int] = set()
    called: list[_CallSite] = []
    names = _new_names(inferred)
    waiting: deque[tuple[_Variant | None, _Call]] = deque()
    waiting.extend((None, call) for call in _calls(inferred.graph, {}, known))
    while waiting:
        caller, (place, number, call, types) = waiting.popleft()
        if number in not_followed:
            continue
        seen = variants.setdefault(number, {})
        signature = b"|".join(t.SerializeToString() if t else b"" for t in types)
        signature += b"".join(a.SerializeToString() for a in call.attribute)
        variant = seen.get(signature)
        if variant is None:
            function = inferred.functions[number]
            is_followed = len(seen) < _MOST_SIGNATURES
            try:
                graph = _probe(inferred, function, call, types, names) if is_followed else None
            except (LimitError, CrashError):
                return  # so would what it calls
            own = {} if graph is None else _types_by_place(number, graph)
            variant = seen[signature] = _Variant(number, len(seen), own)
            if graph is None:  # and so what it calls with other types is not known, either
                not_followed.add(number)
                graph = onnx.GraphProto(node=function.node)
            waiting.extend((variant, inner) for inner in _calls(graph, {}, known))
        output = next((text_of(name) for name in call.output if name), "")
        if output:
            called.append(_CallSite(caller, place, output, number, variant.number))
    followed = {
        number: [*seen.values()] for number, seen in variants.items() if number not in not_followed
    }
    for same in followed.values():
        for key, (place, _) in same[0].graphs.items():
            graphs = [instance.graphs[key][1] for instance in same if key in instance.graphs]
            if len(graphs) == len(same):  # not where a call hands a graph in
                yield BodyTypes(place, _common_types(graphs))
    calls = _by_place(called, followed)
    for same in followed.values():
        for variant in same if len(same) > 1 else ():
            for key, (place, graph) in variant.graphs.items():
                inner = calls.pop((key, variant.number), {})
                yield BodyTypes(place, graph, variant.number, inner)
    for (key, which), inner in calls.items():  # of graphs whose types are above, or in the model
        yield BodyTypes(json.loads(key), onnx.GraphProto(), which, inner)


def _types_by_place(
    function: int, graph: onnx.GraphProto
) -> dict[str, tuple[Place, onnx.GraphProto]]:
    """Return the types of all values in a graph and those below it, by the text of the place."""
    types = {}
    for place, body in bodies(onnx.ModelProto(graph=graph)):
        whole: Place = ["function", function, *place]
        graph_types = onnx.GraphProto()
        for info in (*body.input, *body.output, *body.value_info):
            graph_types.value_info.add().CopyFrom(info)
        types[json.dumps(whole)] = whole, graph_types
    return types


def _by_place(
    called: Sequence[_CallSite], followed: Mapping[int, Sequence[_Variant]]
) -> dict[tuple[str, int | None], dict[str, int]]:
    """Return the variants that calls call, by the text of a place and the variant it is of."""
    places: dict[tuple[str, int | None], dict[str, int]] = {}
    for call in called:
        if len(followed.get(call.function, ())) < 2:
            continue
        caller, place, variant = call.caller, call.place, None
        if caller is not None:
            if caller.function not in followed:
                continue
            place = ["function", caller.function, *place]
            variant = caller.number if len(followed[caller.function]) > 1 else None
        places.setdefault((json.dumps(place), variant), {})[call.output] = call.variant
    return places


def _new_names(model: onnx.ModelProto) -> Iterator[str]:
    """Return names as onnx gives them to dimensions, without those that are in a model."""
    used_names = [
        int(match[1])
        for _, body in bodies(model)
        if isinstance(body, onnx.GraphProto)
        for info in (*body.input, *body.output, *body.value_info)
        for dim in info.type.tensor_type.shape.dim
        if (match := GENERATED.fullmatch(text_of(dim.dim_param)))
    ]
    return (f"unk__{number}" for number in itertools.count(max(used_names, default=-1) + 1))


_Call: TypeAlias = "tuple[Place, int, onnx.NodeProto, list[onnx.TypeProto | None]]"
"""Of a function: the place of its graph, the function's number, the node, the types that go in."""


def _calls(
    graph: onnx.GraphProto,
    outer: _Types,
    known: dict[tuple[str, str, str], int],
    place: Sequence[int | str] = (),
) -> Iterator[_Call]:
    """Yield the calls of functions in a graph and its subgraphs."""
    types = dict(outer)
    for info in (*graph.input, *graph.output, *graph.value_info):
        if info.HasField("type"):
            types[text_of(info.name)] = info.type
    for tensor in graph.initializer:
        dense = onnx.TypeProto()
        dense.tensor_type.elem_type = tensor.data_type
        dense.tensor_type.shape.SetInParent()
        for size in tensor.dims:
            dense.tensor_type.shape.dim.add(dim_value=size)
        types[text_of(tensor.name)] = dense
    for index, node in enumerate(graph.node):
        number = known.get(operator_key(node))
        if number is not None:
            yield [*place], number, node, [types.get(text_of(name)) for name in node.input]
        for step, inner in placed_bodies(node):
            yield from _calls(inner, types, known, [*place, index, *step])


def _probe(
    model: onnx.ModelProto,
    function: onnx.FunctionProto,
    call: onnx.NodeProto,
    types: list[onnx.TypeProto | None],
    names: Iterator[str],
) -> onnx.GraphProto | None:
    """Return the body of a function as a graph with the types that one call gives it.

    Args:
        names: For dimensions that onnx names: each probe would begin at ``unk__0`` again.
    """
    from dld_tui.core.model.shapes.naming import shapes_of_others  # lazy: NumPy

    probe = onnx.ModelProto(ir_version=model.ir_version, functions=model.functions)
    imports = {text_of(e.domain): e.version for e in (*model.opset_import, *function.opset_import)}
    for domain, version in imports.items():
        probe.opset_import.add(domain=domain, version=version)
    graph = probe.graph
    graph.node.extend(function.node)
    values = {text_of(entry.name): entry for entry in function.attribute_proto}
    values.update((text_of(entry.name), entry) for entry in call.attribute)
    _give_values(graph, values)
    for formal, known in zip(function.input, types, strict=False):
        info = graph.input.add()
        set_text(info, "name", text_of(formal))
        if known is not None:
            info.type.CopyFrom(known)
    for formal in function.output:
        set_text(graph.output.add(), "name", text_of(formal))
    given = {
        text_of(dim.dim_param)
        for kind in types
        if kind is not None
        for dim in kind.tensor_type.shape.dim
    }
    try:
        inferred = infer_shapes(probe)
        for _ in range(_MOST_TOLD):
            more = shapes_of_others(inferred)
            if not more:
                break
            _declare(inferred.graph, more)
            inferred = infer_shapes(inferred)
    except RefusedError:
        return None
    renamed: dict[str, str] = {}
    for _, body in bodies(inferred):
        if isinstance(body, onnx.FunctionProto):
            break
        for info in (*body.output, *body.value_info):
            for dim in info.type.tensor_type.shape.dim:
                name = text_of(dim.dim_param)
                if name not in given and GENERATED.fullmatch(name):
                    if name not in renamed:
                        renamed[name] = next(names)
                    dim.dim_param = renamed[name]
    return inferred.graph


def _give_values(graph: onnx.GraphProto, values: dict[str, onnx.AttributeProto]) -> None:
    """Put the values of a function's attributes where its nodes refer to them."""
    for node in graph.node:
        for position in reversed(range(len(node.attribute))):
            attribute = node.attribute[position]
            if attribute.HasField("g"):
                _give_values(attribute.g, values)
            if not attribute.ref_attr_name:
                continue
            value = values.get(text_of(attribute.ref_attr_name))
            if value is None or value.ref_attr_name:
                del node.attribute[position]
                continue
            name = text_of(attribute.name)
            attribute.CopyFrom(value)
            set_text(attribute, "name", name)


def _common_types(graphs: Sequence[onnx.GraphProto]) -> onnx.GraphProto:
    """Return the types that all calls agree on; a type that one call lacks is unknown."""
    if len(graphs) == 1:
        return graphs[0]
    common: dict[str, ValueType | None] | None = None
    for graph in graphs:
        types = {text_of(info.name): value_type_of(info.type) for info in graph.value_info}
        common = types if common is None else {
            name: _common(value, types.get(name)) for name, value in common.items()
        }  # fmt: skip
    graph_types = onnx.GraphProto()
    for name, value in (common or {}).items():
        proto = type_proto_of(value) if value is not None else None
        if proto is not None:
            set_text(graph_types.value_info.add(type=proto), "name", name)
    return graph_types


def _common(first: ValueType | None, second: ValueType | None) -> ValueType | None:
    if first is None or second is None:
        return None
    if (first.dtype, first.container) != (second.dtype, second.container):
        return None
    dims = None
    if first.dims is not None and second.dims is not None and len(first.dims) == len(second.dims):
        pairs = zip(first.dims, second.dims, strict=True)
        dims = tuple(size if size == same else None for size, same in pairs)
    return ValueType(first.dtype, dims, first.container)
