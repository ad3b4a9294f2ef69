"""What must hold for each edit: what stays equal, what may change, and whether the model loads.

A property draws arguments for an edit of a document. Then one of these holds, told by the onnx
package and ONNX Runtime alone (:mod:`tests.oracles.edited_models`):

* the model computes the same, bit for bit (`keeps`),
* the model is the one that a plain change of the messages makes (`expected`),
* only records of some kinds differ (`touches`).
"""

from __future__ import annotations

import math
import random
from base64 import b64encode
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np
import onnx
from onnx import helper

from dld_tui.core.errors import EditError
from dld_tui.core.model.document import Document, Node, Scope
from dld_tui.core.model.document.parts.fragment import fragment_of
from dld_tui.core.model.document.transactions import Splice, Transaction
from dld_tui.core.model.edits.cleaning import PASSES
from dld_tui.core.model.edits.folding import plan_fold
from dld_tui.core.model.edits.links import exposed_type
from dld_tui.core.model.edits.restore import inverse_arguments
from dld_tui.core.model.edits.tensors import belongs_inside
from dld_tui.core.model.tensors.tensor import Tensor
from tests.oracles.edited_models import with_text
from tests.support.sessions import bytes_of

Arguments: TypeAlias = "dict[str, Any]"
_Item = TypeVar("_Item")


class NothingError(Exception):
    """A model has nothing that an edit could be made of."""


def path(scope: Scope) -> list[str]:
    return list(scope.path)


def at(node: Node) -> Arguments:
    return {"scope": path(node.scope), "node": node.ref}


def refs(nodes: Iterable[Node]) -> list[str]:
    return [node.ref for node in nodes]


def places(nodes: Iterable[Node]) -> list[Any]:
    return [[path(node.scope), node.ref] for node in nodes]


def defined(scope: Scope) -> list[str]:
    """Return the values that a scope defines."""
    names = [*scope.inputs, *scope.links.producers, *scope.named("initializer")]
    return [name for name in dict.fromkeys(names) if name]


def raw(data: bytes) -> Arguments:
    return {"raw": b64encode(data).decode("ascii")}


def payload_of(tensor: Tensor) -> bytes:
    payload = tensor.payload() if tensor.nbytes else b""
    return payload if isinstance(payload, bytes) else payload.read()


def listed(values: Any) -> list[Any]:
    """Return numbers as JSON has them."""
    return [v if math.isfinite(v) else str(v) for v in values.reshape(-1).tolist()]


class Drawing:
    """Chooses something of a document by dice; for a selection of so many nodes."""

    def __init__(self, document: Document, dice: random.Random, size: int) -> None:
        self.document, self.main, self.dice, self.size = document, document.main, dice, size

    def flip(self) -> bool:
        return self.dice.random() < 0.5

    def one(self, items: Iterable[_Item]) -> _Item:
        found = list(items)
        if not found:
            raise NothingError
        return self.dice.choice(found)

    def some(self, items: Iterable[_Item]) -> list[_Item]:
        """Return as many as a selection has."""
        found = list(items)
        if not found:
            raise NothingError
        return self.dice.sample(found, min(self.size, len(found)))

    def fresh(self) -> str:
        return f"fresh {self.dice.random()}"

    def scope(self, kind: str = "") -> Scope:
        """Return a scope that has nodes, every now and then the main graph."""
        scopes = [s for s in self.document.scopes() if s.nodes and (not kind or s.kind == kind)]
        if self.main in scopes and self.dice.random() < 0.4:
            return self.main
        return self.one(scopes)

    def body(self) -> Scope:
        return self.one(s for s in self.document.scopes() if s.nodes and s.parent is not None)

    def node(self) -> Node:
        return self.one(self.scope().nodes)

    def nodes_of_type(self, op_type: str) -> list[Node]:
        found = [n for scope in self.document.scopes() for n in scope.nodes_of_type(op_type)]
        return [node for node in found if not node.domain]

    def function(self) -> Scope:
        return self.one(self.document.functions)

    def marked(self, scope: Scope | None = None) -> list[Node]:
        """Return nodes of a scope: a run of them, a connected part, or scattered ones."""
        nodes = list((scope or self.scope()).nodes)
        size, how = min(self.size, len(nodes)), self.dice.random()
        if size == len(nodes):
            return nodes
        if how < 0.45:
            first = self.dice.randint(0, len(nodes) - size)
            return nodes[first : first + size]
        if how < 0.55:
            return self.dice.sample(nodes, size)
        chosen = [self.one(nodes)]
        while len(chosen) < size:
            rest = [node for node in nodes if node not in chosen]
            made = {name for node in chosen for name in node.outputs}
            taken = {name for node in chosen for name in node.inputs}
            near = [n for n in rest if made & {*n.inputs} or taken & {*n.outputs}]
            chosen.append(self.one(near or rest))
        self.dice.shuffle(chosen)
        return chosen

    def identities(self) -> list[Node]:
        """Return the Identity nodes of one scope whose input a node there makes."""
        found = [
            node
            for node in self.nodes_of_type("Identity")
            if node.inputs and (made := node.scope.definition(node.inputs[0])) and made.node
        ]
        scope = self.one(found).scope
        return [node for node in found if node.scope is scope]

    def tensor_value(self, scope: Scope) -> str:
        """Return a value that Identity takes: of old operator sets it takes tensors alone."""
        types = ((name, scope.value_type(name)) for name in defined(scope))
        return self.one(name for name, known in types if known is None or not known.container)

    def floating_output(self) -> str:
        types = ((n, self.main.value_type(n)) for n in self.main.outputs if self.main.producer(n))
        return self.one(n for n, t in types if t and t.dtype == "float32" and not t.container)

    def attribute(self) -> tuple[Node, Any]:
        nodes = [node for scope in self.document.scopes() for node in scope.nodes]
        return self.one(
            (node, attribute)
            for node in nodes
            for attribute in node.attributes()
            if attribute.kind in ("int", "float", "ints", "floats") and attribute.reference is None
        )

    def holder(self) -> Arguments:
        """Return a body by the node that has it."""
        node = self.one(n for scope in self.document.scopes() for n in scope.control_flow)
        return at(node) | {"attribute": self.one(node.children)}

    def stored(self, fits: Callable[[Tensor], bool] = lambda tensor: True) -> tuple[Scope, Any]:
        """Return a graph with initializers and some of their names."""
        home = self.one(s for s in self.document.scopes() if s.records.get("initializer"))
        names = [n for n in sorted(home.named("initializer")) if fits(home.initializer(n))]  # type: ignore[arg-type]
        self.one(names)
        return home, self.dice.sample(names, self.dice.randint(1, len(names)))

    def weights(self) -> tuple[Scope, list[str]]:
        """Return a graph and some weights: ONNX Runtime reads no shapes from data files."""
        return self.stored(lambda tensor: not belongs_inside(tensor))

    def tensor(self, fits: Callable[[Tensor], bool] = lambda t: True) -> tuple[Arguments, Tensor]:
        home, (name, *_) = self.stored(fits)
        found = home.initializer(name)
        assert found is not None
        return {"scope": path(home), "tensor": {"initializer": name}}, found


@dataclass(frozen=True)
class Property:
    """What must hold for one edit, for arguments of one kind."""

    edit: str
    drawn: Callable[[Drawing], Arguments]
    keeps: bool = False
    """The outputs that the model had stay bit-equal, in their order."""
    negates: bool = False
    """The output that it names (``value`` or ``behind``) is the negative of what it was."""
    expected: Callable[[onnx.ModelProto, Arguments], onnx.ModelProto] | None = None
    undone: Callable[[onnx.ModelProto, Arguments], onnx.ModelProto] | None = None
    """The other way round: makes the model as it was of what it is."""
    touches: Collection[str] | None = None
    """Kinds of records that may differ: fields of graphs, functions and the model."""
    may_break: bool = False
    """The model may be refused afterwards: that is what the edit is for."""
    full_check: bool = True
    """False where onnx's shape inference refuses what the format allows: sparse initializers."""
    drops: bool = False
    """Inputs that no output depends on are gone."""
    selects: bool = False
    """It takes any number of nodes."""
    refusable: bool = True
    """It may be refused where it does not fit; else a refusal is a failure."""

    def draw(self, document: Document, dice: random.Random, size: int) -> Arguments | None:
        """Return arguments; None where the model has nothing for the edit."""
        try:
            return self.drawn(Drawing(document, dice, size))
        except NothingError:
            return None


def changed(
    change: Callable[[onnx.ModelProto, Arguments], object],
) -> Callable[[onnx.ModelProto, Arguments], onnx.ModelProto]:
    """Return what makes a model with a change of its messages."""

    def made(model: onnx.ModelProto, about: Arguments) -> onnx.ModelProto:
        copy = onnx.ModelProto.FromString(model.SerializeToString())
        change(copy, about)
        return copy

    return made


def _set_outputs(model: onnx.ModelProto, outputs: Sequence[onnx.ValueInfoProto]) -> None:
    kept = [onnx.ValueInfoProto.FromString(info.SerializeToString()) for info in outputs]
    del model.graph.output[:]
    model.graph.output.extend(kept)


def _move_output(model: onnx.ModelProto, about: Arguments) -> None:
    records = list(model.graph.output)
    place = [info.name for info in records].index(about["name"])
    records.insert(about["to"], records.pop(place))
    _set_outputs(model, records)


def _names(d: Drawing) -> Arguments:
    kinds = [kind for kind in ("nodes", "tensors") if d.dice.random() < 0.8]
    how: list[Arguments] = [
        {"prefix": "p/", "suffix": ".s"}, {"pattern": ".*", "replacement": "{op}_{n}"},
        {"pattern": "^(.)(.*)$", "replacement": r"\2\1_x"},
        {"pattern": "[aeiou_/]", "replacement": "-", "suffix": "{n}"},
    ]  # fmt: skip
    nodes = places(d.marked()) if d.flip() else None
    return {"kinds": kinds or ["tensors"], "nodes": nodes, **d.one(how)}


def _renamed(d: Drawing) -> Arguments:
    scope = d.scope()
    return {"scope": path(scope), "value": d.one(defined(scope)), "name": d.fresh()}


def _positions(d: Drawing) -> Arguments:
    scope = d.scope()
    return {"scope": path(scope), "positions": {ref: [1, 2] for ref in refs(d.marked(scope))}}


def _passes(d: Drawing) -> Arguments:
    names = [name for name in PASSES if d.flip()]
    both = {"constants-to-initializers", "initializers-to-constants"}
    if both <= {*names}:
        names.remove(d.one(sorted(both)))
    return {"passes": names or ["remove-unused"]}


def _constant_nodes(d: Drawing) -> Arguments:
    constant: list[Node] = []
    for scope in d.document.scopes():
        for node in scope.nodes:
            with suppress(EditError):
                constant.append(plan_fold(d.document, [node]).nodes[0])
    home = d.one(constant).scope
    return {"nodes": places(d.some(node for node in constant if node.scope is home))}


def _text_of(d: Drawing, **about: Any) -> Arguments:
    scope = d.scope()
    return {"scope": path(scope), "nodes": d.one([None, refs(d.marked(scope))]), **about}


def _ranges(d: Drawing) -> Arguments:
    ranges = {}
    for name in d.main.inputs:
        known = d.main.value_type(name)
        if name not in d.main.named("initializer") and known and known.dims is not None:
            dims = [dim if isinstance(dim, int) and dim > 0 else 2 for dim in known.dims]
            ranges[name] = dict.fromkeys(("min", "opt", "max"), dims)
    d.one(ranges)
    return {"profiles": [ranges]}


def _declared(d: Drawing) -> Arguments:
    scope = d.scope()
    known = list(scope.named("value_info"))
    d.one(known)
    return {"scope": path(scope), "values": d.dice.sample(known, len(known) // 2 + 1)[:9]}


def _repairs(d: Drawing) -> Arguments:
    node = d.node()
    return {"steps": [
        ["trim_links", at(node)], ["rename_duplicate_nodes", {"scope": path(node.scope)}],
        ["rename_node", at(node) | {"name": "fresh"}],
        ["delete_nodes", {"scope": [], "nodes": ["nobody"]}],
    ]}  # fmt: skip


def _inverse(d: Drawing) -> Arguments:
    transaction = d.document.apply("rename_node", **at(d.node()), name=d.fresh())
    arguments = inverse_arguments(d.document, transaction)  # which takes it back
    d.document.history.done.pop()
    transaction.repeat()
    return arguments


def _whole(d: Drawing) -> Arguments:
    data = bytes_of(d.document)
    d.one([data] if len(data) <= 1 << 20 else [])
    return {"model": raw(data)}


def _appended(d: Drawing) -> Arguments:
    output = d.one(d.main.records["output"])
    graph = onnx.GraphProto(name="added", input=[output])
    graph.node.append(helper.make_node("Identity", [output.name], ["fresh output"]))
    graph.output.append(onnx.ValueInfoProto(name="fresh output", type=output.type))
    model = onnx.ModelProto(ir_version=d.document.model.ir_version, graph=graph)
    model.opset_import.extend(d.document.model.opset_import)
    return {"models": [raw(model.SerializeToString())]}


def _dimension(d: Drawing) -> Arguments:
    types = ((name, d.main.value_type(name)) for name in d.main.inputs)
    sized = [
        f"{n}:{at}" for n, t in types if t and not t.container for at in range(len(t.dims or ()))
    ]
    return {"dims": {d.one(sized): f"new_{d.size}"}}


def _transposes(d: Drawing) -> Iterator[Node]:
    for node in d.nodes_of_type("Transpose"):
        before = node.scope.producer(node.inputs[0]) if node.inputs else None
        if before and before.op_type == "Transpose":
            yield node


def _calls(d: Drawing) -> Iterator[Node]:
    keys = {f.step.removeprefix("function ") for f in d.document.functions}
    for scope in d.document.scopes():
        yield from (n for n in scope.nodes if f"{n.domain}:{n.op_type}" in keys)


def _declare(d: Drawing, function: Scope, **default: Any) -> Arguments:
    """Give a function an attribute."""
    d.document.apply("set_function_attribute", scope=path(function), attribute="fresh", **default)  # type: ignore[arg-type]
    return {"scope": path(function), "attribute": "fresh"}


def _referring(d: Drawing) -> Arguments:
    function, node, attribute = d.one(
        (function, node, attribute)
        for function in d.document.functions
        for scope in function.walk()
        for node in scope.nodes
        for attribute in node.attributes()
        if attribute.kind == "float" and attribute.reference is None
    )
    _declare(d, function, kind="float", value=attribute.value)
    return at(node) | {"attribute": attribute.name, "reference": "fresh"}


def _of_identities(d: Drawing) -> Arguments:
    nodes = d.identities()
    return {"scope": path(nodes[0].scope), "nodes": refs(d.some(nodes))}


def _inserted(d: Drawing) -> Arguments:
    scope = d.scope()
    return {"scope": path(scope), "value": d.tensor_value(scope), "op_type": "Identity"}


def _added_operator(d: Drawing) -> Arguments:
    scope = d.scope()
    value = d.tensor_value(scope)
    new = {"name": "fresh", "dtype": "float32", "dims": [2], "fill": {"kind": "zeros"}}
    more = {} if scope.is_function else {"initializers": [new]}
    return {"scope": path(scope), "op_type": "Identity", "inputs": [value],
            "behind": d.one(["", value]), **more}  # fmt: skip


def _of_marked(d: Drawing, **about: Any) -> Arguments:
    scope = d.scope()
    return {"scope": path(scope), "nodes": refs(d.marked(scope)), **about}


def _cast(d: Drawing) -> Arguments:
    node = d.node()
    index = d.one(at for at, name in enumerate(node.inputs) if name)
    return at(node) | {"index": index, "dtype": d.one(["float32", "int64", "bool"])}


def _pasted(d: Drawing) -> Arguments:
    scope = d.scope()
    fragment = fragment_of(d.marked(scope))
    return {"scope": path(scope), "fragment": fragment.to_json(d.document, scope)}


def _other_number(d: Drawing) -> Arguments:
    node, one = d.attribute()
    value = [v + 1 for v in one.value] if one.kind[-1] == "s" else one.value + 1
    return at(node) | {"attribute": one.name, "kind": one.kind, "value": value}


def _same_number(d: Drawing) -> Arguments:
    node, one = d.attribute()
    about = {one.name: {"kind": one.kind, "value": one.value}}
    return {"changes": [{"nodes": places([node]), "attributes": about}]}


def _less_attribute(d: Drawing) -> Arguments:
    node, one = d.attribute()
    return at(node) | {"attribute": one.name}


def _behind_identity(d: Drawing) -> Arguments:
    """Let a user of what goes into an Identity node take what comes out of it."""
    node, user = d.one(
        (node, user)
        for node in d.identities()
        for user in node.scope.consumers(node.inputs[0])
        if user is not node
    )
    index = user.inputs.index(node.inputs[0])
    return at(user) | {"index": index, "value": node.outputs[0], "sort": True}


def _around_identity(d: Drawing) -> Arguments:
    node = d.one(d.identities())
    return {"scope": path(node.scope), "value": node.outputs[0], "by": node.inputs[0]}


def _terminal(d: Drawing) -> Arguments:
    node, side = d.node(), d.one(["input", "output"])
    index = d.one(range(len(node.inputs if side == "input" else node.outputs)))
    return at(node) | {"side": side, "index": index}


def _in_scope(d: Drawing, scope: Scope | None = None) -> Arguments:
    scope = scope or d.scope()
    return {"scope": path(scope), "value": d.one(defined(scope))}


def _inner_value(d: Drawing) -> str:
    types = ((n, d.main.value_type(n)) for n in d.main.links.producers if n not in d.main.outputs)
    return d.one(name for name, known in types if name and known and known.dims is not None)


def _given_default(d: Drawing) -> Arguments:
    """Take an initializer out of the inputs, which is one or is made one."""
    names = list(d.main.named("initializer"))
    given = [name for name in names if name in d.main.inputs]
    if not given:
        given = [d.one(names)]
        d.document.apply("add_input", scope=[], name=given[0])
    return {"scope": [], "name": d.one(given)}


def _exposed(d: Drawing) -> Arguments:
    node = d.one(n for n in d.main.nodes if n.inputs and n.inputs[0])
    known = exposed_type(node, 0)
    return at(node) | {
        "index": 0,
        "dtype": known.dtype or "float32",
        "dims": list(known.dims or ()),
    }


def _other_output(d: Drawing) -> Arguments:
    scope = d.scope(d.one(["graph", "subgraph"]))
    last = scope.outputs[-1]
    inner = [v for v in scope.links.producers if v and v not in scope.outputs]
    fits = (v for v in inner if scope.value_type(v) == scope.value_type(last))
    return {"scope": path(scope), "name": last, "by": d.one(fits)}


def _known_type(d: Drawing) -> Arguments:
    types = ((n, d.main.value_type(n)) for n in d.main.links.producers if n)
    name, known = d.one((n, t) for n, t in types if t and t.dtype and not t.container)
    dims = known.dims if name in d.main.outputs or known.dims is None else [None] * len(known.dims)
    return {"scope": [], "value": name, "dtype": known.dtype, "dims": dims and list(dims)}


def _new_initializer(d: Drawing) -> Arguments:
    fills = [{"kind": "zeros"}, {"kind": "normal"}, {"kind": "values", "values": [1, 2]}]
    return {"scope": [], "name": "fresh", "dtype": d.one(["float32", "int64", "float16"]),
            "dims": [2], "fill": d.one(fills)}  # fmt: skip


def _is_plain(tensor: Tensor) -> bool:
    return tensor.dtype in ("float32", "int64") and 0 < tensor.element_count <= 4000


def _same_elements(d: Drawing) -> Arguments:
    about, tensor = d.tensor(_is_plain)
    start = d.dice.randrange(tensor.element_count)
    values = tensor.read(start, min(5, tensor.element_count - start))
    return about | {"start": start, "values": listed(values)}


def _same_row(d: Drawing) -> Arguments:
    about, tensor = d.tensor(lambda tensor: _is_plain(tensor) and bool(tensor.shape))
    axis = d.dice.randrange(len(tensor.shape))
    start = d.dice.randrange(tensor.shape[axis])
    row = tensor.read().reshape(tensor.shape).take(start, axis)
    return about | {"axis": axis, "start": start, "delete": 1, "insert": 1, "values": listed(row)}


def _same_payload(d: Drawing) -> Arguments:
    about, tensor = d.tensor(lambda one: one.element_count <= 4000 and one.dtype != "string")
    return about | {"dtype": tensor.dtype, "dims": list(tensor.shape),
                    "payload": raw(payload_of(tensor))}  # fmt: skip


def _named_tensors(d: Drawing, found: tuple[Scope, list[str]], **about: Any) -> Arguments:
    return {"scope": path(found[0]), "names": found[1], **about}


def _moved_data(d: Drawing) -> Arguments:
    """Put the data of a weight into two files, of which the model names the one."""
    home, (name, *_) = d.weights()
    tensor = home.initializer(name)
    folder = d.one([d.document.path]).parent if d.document.path else d.one([])
    assert tensor is not None
    data = payload_of(d.one([tensor] if 0 < tensor.nbytes <= 1 << 20 else []))  # type: ignore[operator]
    for file, before in (("one.data", b"wrong"), ("two.data", bytes(64))):
        (folder / file).write_bytes(before + data)
    old = tensor.proto
    moved = onnx.TensorProto(name=old.name, data_type=old.data_type, dims=old.dims)
    moved.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", "one.data"), ("offset", "0"), ("length", str(len(data)))):
        moved.external_data.add(key=key, value=value)
    place = next(i for i, other in enumerate(home.records["initializer"]) if other is old)
    Transaction("raw", {}).do(Splice(home, "initializer", place, [old], [moved]))
    return {"scope": path(home), "name": name, "location": "two.data", "offset": 64}


def _applied_first(d: Drawing, edit: str, found: tuple[Scope, list[str]]) -> Arguments:
    arguments = _named_tensors(d, found)
    d.document.apply(edit, **arguments)
    return arguments


def _sparse_kind(tensor: Tensor) -> bool:
    return bool(tensor.shape) and tensor.dtype == "float32" and tensor.element_count <= 1 << 16


def _same_sparse(d: Drawing) -> Arguments:
    home, (name, *_) = d.stored(_sparse_kind)
    tensor = home.initializer(name)
    assert tensor is not None
    array = tensor.read().reshape(tensor.shape)
    places = [i for i in np.ndindex(array.shape) if array[i].tobytes() != bytes(4)
              or d.dice.random() < 0.1]  # fmt: skip
    d.dice.shuffle(places)
    d.document.apply("to_sparse", scope=path(home), names=[name])  # type: ignore[arg-type]
    flat = d.flip()
    indices = [int(np.ravel_multi_index(i, array.shape)) if flat else list(i) for i in places]
    return {"scope": path(home), "name": name, "dims": list(array.shape), "indices": indices,
            "values": [float(array[i]) for i in places]}  # fmt: skip


def _copied_body(d: Drawing) -> Arguments:
    about = d.holder()
    node = d.document.scope_at(about["scope"]).find(about["node"])
    assert node is not None
    body = node.children[about["attribute"]][0]
    return about | {"source": path(body), "replace": True}


def _moved_body(d: Drawing) -> Arguments:
    about = {"scope": [], "node": d.main.nodes[-1].ref, "attribute": "cases"}
    for _number in range(3):
        d.document.apply("add_subgraph", **about, inputs=[], outputs=[], many=True)  # type: ignore[arg-type]
    return about | {"node": d.main.nodes[-1].ref, "index": 0, "to": 2}


def _cut_out(d: Drawing) -> Arguments:
    scope = d.scope()
    nodes = d.some(scope.nodes)
    if d.flip():
        return {"scope": path(scope), "nodes": refs(nodes)}
    return {"scope": path(scope), "inputs": list(nodes[0].inputs[:1]),
            "outputs": {name: f"{name} new" for name in nodes[-1].outputs if name}}  # fmt: skip


ADDED = {"node", "output", "value_info", "opset_import"}
TAKEN = {"node", "value_info", "output"}
PROPERTIES: list[Property] = [
    Property("rename_node", lambda d: at(d.node()) | {"name": d.fresh()},
             keeps=True, touches={"node"}, refusable=False),
    Property("rename_value", _renamed, keeps=True, refusable=False,
             undone=lambda model, about: with_text(model, about["name"], about["value"])),
    Property("rename_matches", _names, keeps=True),
    Property("clean", _passes, keeps=True, full_check=False),
    Property("fold_nodes", _constant_nodes, keeps=True),
    Property("name_graph", lambda d: {"scope": [], "name": "another"}, keeps=True, refusable=False,
             expected=changed(lambda model, about: setattr(model.graph, "name", about["name"]))),
    Property("set_doc_string", lambda d: _text_of(d, text="a\nb"),
             keeps=True, touches={"doc_string", "node"}, refusable=False, selects=True),
    Property("set_metadata", lambda d: _text_of(d, key="k", value="v"),
             keeps=True, touches={"metadata_props", "node"}, refusable=False, selects=True),
    Property("set_model_field", lambda d: d.one([{"field": "producer_name", "value": "us"},
                                                 {"field": "model_version", "value": 7}]),
             keeps=True, touches={"producer_name", "model_version"}, refusable=False),
    Property("set_opset", lambda d: {"domain": "nobody.knows", "version": 3}, keeps=True,
             expected=changed(lambda model, about: model.opset_import.add(**about)),
             refusable=False),
    Property("set_precision",
             lambda d: {"nodes": places(d.marked()), "precision": d.one(["fp16", "int8"])},
             keeps=True, touches={"node"}, refusable=False, selects=True),
    Property("set_positions", _positions,
             keeps=True, touches={"node"}, refusable=False, selects=True),
    Property("set_profiles", _ranges, keeps=True, touches={"metadata_props"}),
    Property("sort_nodes", lambda d: {"scope": path(d.scope())},
             keeps=True, touches=frozenset(), refusable=False),
    Property("rename_duplicate_nodes", lambda d: {"scope": path(d.scope())},
             keeps=True, touches={"node"}, refusable=False),
    Property("remove_unused", lambda d: {"scope": path(d.scope())}, keeps=True, refusable=False),
    Property("trim_links", lambda d: at(d.node()), keeps=True, touches={"node"}, refusable=False),
    Property("remove_value_info", _declared, keeps=True, touches={"value_info"}, refusable=False),
    Property("remove_repeated_initializers", lambda d: _named_tensors(d, d.stored()),
             keeps=True, touches={"initializer"}),
    Property("rename_shadowing", lambda d: _in_scope(d, d.body()),
             keeps=True, touches={"node", "input", "output", "value_info", "initializer"}),
    Property("own_outputs", lambda d: (
        lambda body: {"scope": path(body), "values": list(body.outputs)})(d.body()),
             keeps=True, touches={"node", "output"}),
    Property("repair", _repairs, keeps=True, touches={"node"}),
    Property("restore", _inverse, keeps=True, touches={"node"}),
    Property("replace_model", _whole, keeps=True, touches=frozenset(), refusable=False),
    Property("merge_models", _appended, may_break=True),
    Property("convert_terminals", lambda d: {"side": "both", "types": {
        d.one([*d.main.inputs, *d.main.outputs]): d.one(["float16", "float64", "int32"])}},
             may_break=True),
    Property("prepend_processing", lambda d: {"input": d.one(d.main.inputs), "scale": 0.5},
             may_break=True),
    Property("append_processing", lambda d: {"output": d.one(d.main.outputs), "keep": True,
                                             "step": d.one(["softmax", "argmax"])},
             may_break=True),
    Property("change_dimensions", _dimension, keeps=True),
    Property("merge_transposes", lambda d: at(d.one(_transposes(d))), keeps=True, touches={"node"}),
    Property("make_function", lambda d: _of_marked(d, name="Made", constants=d.flip()),
             keeps=True, selects=True),
    Property("inline_function", lambda d: {"nodes": places(d.some(_calls(d)))},
             keeps=True, selects=True),
    Property("add_function", lambda d: {"name": "fresh", "domain": "fresh"},
             keeps=True, refusable=False),
    Property("duplicate_function", lambda d: {"scope": path(d.function()), "name": "copied"},
             keeps=True),
    Property("rename_function", lambda d: {"scope": path(d.function()), "name": "renamed",
                                           "domain": d.one([None, "other"])}, keeps=True),
    Property("delete_function", lambda d: {"scope": path(d.function())}, may_break=True),
    Property("set_function_attribute", lambda d: {
        "scope": path(d.function()), "attribute": "fresh", "kind": "float", "value": 1.5},
             keeps=True),
    Property("remove_function_attribute", lambda d: _declare(d, d.function()), keeps=True),
    Property("set_attribute_reference", _referring, keeps=True),
    Property("bypass_nodes", _of_identities, keeps=True, touches=TAKEN, selects=True),
    Property("rewrite", lambda d: {  # the same bits by IEEE 754
        "rules": "Add(x, y) => Sub(x, Neg(y))", "at": places(d.some(d.nodes_of_type("Add")))},
             keeps=True, touches={"node", "value_info"}, selects=True),
    Property("delete_nodes", lambda d: _of_identities(d) | {"reconnect": True},
             keeps=True, touches=TAKEN, selects=True),
    Property("delete_nodes", _of_marked, may_break=True, selects=True),
    Property("delete_many", lambda d: {"nodes": places(d.some(d.identities())), "reconnect": True},
             keeps=True, touches=TAKEN, selects=True),
    Property("insert_node", _inserted, keeps=True, touches=ADDED, refusable=False),
    Property("add_node", lambda d: (lambda scope: {
        "scope": path(scope), "op_type": "Identity", "inputs": [d.tensor_value(scope)]})(d.scope()),
             keeps=True, touches={"node", "opset_import"}, refusable=False),
    Property("add_operator", _added_operator, keeps=True, touches=ADDED | {"initializer", "input"},
             refusable=False),
    Property("insert_node", lambda d: {"scope": [], "value": d.floating_output(),
                                       "op_type": "Neg"}, negates=True, refusable=False),
    Property("add_operator", lambda d: (lambda value: {
        "scope": [], "inputs": [value], "behind": value, "op_type": "Neg"})(d.floating_output()),
             negates=True, refusable=False),
    Property("replace_nodes", lambda d: _of_marked(d, op_type="Plugin", domain="fresh"),
             may_break=True, selects=True),
    Property("cast_input", _cast, may_break=True),
    Property("set_operator", lambda d: _of_marked(
        d, op_type=d.one(["Relu", "Plugin"]), domain=d.one(["", "fresh"]),
        attributes=d.one(["known", "all", "none"])), may_break=True, selects=True),
    Property("cast_nodes", lambda d: {"nodes": places(d.marked()), "precision": "fp16"},
             touches={"node", "value_info"}, selects=True),
    Property("paste_nodes", _pasted, keeps=True, selects=True),
    Property("set_attribute", _other_number, touches={"node"}, may_break=True),
    Property("set_attributes", _same_number, touches={"node"}, keeps=True),
    Property("remove_attribute", _less_attribute, touches={"node"}, may_break=True),
    Property("set_input", _behind_identity, keeps=True, touches={"node"}),
    Property("replace_uses", _around_identity, keeps=True, touches={"node"}),
    Property("set_output", lambda d: at(d.node()) | {"index": 0, "value": "fresh"},
             may_break=True, touches={"node"}),
    Property("remove_terminal", _terminal, may_break=True, touches={"node"}),
    Property("disconnect_value", _in_scope, may_break=True, touches={"node"}),
    Property("add_output", lambda d: {"scope": [], "name": _inner_value(d)},
             keeps=True, touches={"output", "value_info"}),
    Property("add_input", lambda d: {"scope": [], "name": d.one(
        n for n in d.main.named("initializer") if n not in d.main.inputs)},
             keeps=True, touches={"input", "value_info"}),
    Property("remove_input", _given_default, keeps=True, touches={"input"}),
    Property("remove_output", lambda d: {"scope": [], "name": d.one(d.main.outputs[1:])},
             refusable=False, expected=changed(lambda model, about: _set_outputs(
                 model, [info for info in model.graph.output if info.name != about["name"]]))),
    Property("expose_input", _exposed, touches={"input", "node", "value_info"}),
    Property("replace_output", _other_output, touches={"output", "value_info"}),
    Property("move_terminal", lambda d: {
        "scope": [], "side": "output", "name": d.one(d.main.outputs),
        "to": d.one(range(len(d.main.outputs)))}, expected=changed(_move_output), refusable=False),
    Property("set_value_type", _known_type, keeps=True, touches={"value_info", "output"}),
    Property("add_initializer", _new_initializer, keeps=True, touches={"initializer", "input"},
             refusable=False),
    Property("delete_initializers", lambda d: _named_tensors(d, d.stored(), disconnect=True),
             touches={"initializer", "node", "value_info"}, may_break=True),
    Property("convert_tensor", lambda d: d.tensor()[0] | {"dtype": "float16"},
             touches={"initializer", "input", "value_info"}, may_break=True),
    Property("set_elements", _same_elements, keeps=True, touches=frozenset()),
    Property("splice_tensor", _same_row, keeps=True, touches=frozenset()),
    Property("replace_tensor", _same_payload, keeps=True, touches=frozenset()),
    Property("set_external", lambda d: _named_tensors(d, d.weights()),
             keeps=True, touches={"initializer"}),
    Property("set_external_entries", _moved_data, keeps=True),
    Property("set_inline", lambda d: _applied_first(d, "set_external", d.weights()),
             keeps=True, touches=frozenset(), refusable=False),
    Property("to_sparse", lambda d: _named_tensors(d, d.stored()), keeps=True, full_check=False,
             touches={"initializer", "sparse_initializer"}),
    Property("to_dense", lambda d: _applied_first(d, "to_sparse", d.stored(_sparse_kind)),
             keeps=True, touches={"initializer", "sparse_initializer"}),
    Property("set_sparse", _same_sparse, keeps=True, full_check=False,
             touches={"sparse_initializer"}),
    Property("add_subgraph", lambda d: d.holder() | {"replace": True}, may_break=True),
    Property("copy_subgraph", _copied_body, keeps=True),
    Property("delete_subgraph", lambda d: d.holder(), may_break=True),
    Property("move_subgraph", _moved_body, may_break=True),
    Property("cut_off", lambda d: {"nodes": [d.one(d.main.nodes).ref]}, may_break=True),
    Property("extract", lambda d: {"outputs": [*dict.fromkeys(d.main.outputs)]},
             keeps=True, drops=True),
    Property("extract", _cut_out, may_break=True),
]  # fmt: skip
