"""Random edits of any kind, by primitives too, so that broken graphs come about."""

from __future__ import annotations

from random import Random
from typing import Any

import onnx
import onnx.helper as oh

from dld_tui.core.document import Document, Node, Scope, Transaction
from dld_tui.core.document.edits.registry import EDITS
from dld_tui.core.document.transactions import (
    Change,
    Primitive,
    SetAttribute,
    SetLinks,
    SetList,
    SetText,
    Splice,
)
from dld_tui.core.errors import DldError

NESTED = """
<ir_version: 10, opset_import: ["" : 18, "local" : 1]>
nested (bool choice, float[N, 4] x, float[N, 4] spare) => (float[N, 4] y, float[N, 4] z)
<float[4] w = {1, 2, 3, 4}, float[4] v = {5, 6, 7, 8}>
{
    [pre] a = Relu(x)
    [outer] y = If (choice) <
        then_branch = yes () => (float[N, 4] t) {
            [deep] t = If (choice) <
                then_branch = deeper () => (float[N, 4] p) { p = Add(a, w) },
                else_branch = other () => (float[N, 4] q) {
                    [inner] h = Neg(x)
                    q = Mul(h, a)
                }
            >
        },
        else_branch = no () => (float[N, 4] e) { e = Sub(a, v) }
    >
    [call] z = local.twice(a)
}
<domain: "local", opset_import: ["" : 18]>
twice (v) => (r)
{
    [sum] r = Add(v, v)
}
"""

_OPERATORS = ("Relu", "Add", "Mul", "Identity", "Reluu", "Cast", "Dropout", "MaxPool", "twice")
_SPLICED = ("initializer", "input", "output", "value_info")


def one(document: Document, choose: Random) -> str:
    """Make one random change and return what it was."""
    kind = choose.random()
    if kind < 0.15:
        document.undo()
        return "undo"
    if kind < 0.25:
        document.redo()
        return "redo"
    if kind < 0.45:
        return _edit(document, choose)
    transaction = Transaction("raw", {})
    for _ in range(choose.randint(1, 3)):
        primitive = _primitive(document, choose)
        if primitive is not None:
            transaction.do(primitive)
    if transaction.primitives:
        document.history.add(transaction)
        for listener in document.on_change:
            listener(Change("edit", transaction))
    return f"raw {[type(primitive).__name__ for primitive in transaction.primitives]}"


def _edit(document: Document, choose: Random) -> str:
    scope = choose.choice(list(document.scopes()))
    node = choose.choice(scope.nodes) if scope.nodes else None
    path: Any = list(scope.path)
    arguments: list[tuple[str, dict[str, Any]]] = [
        ("sort_nodes", {}), ("remove_unused", {}), ("rename_duplicate_nodes", {}),
        ("name_graph", {"name": choose.choice("gh")}),
        ("rename_value", {"value": _name(scope, choose), "name": f"n{choose.randint(0, 9)}"}),
        ("rename_shadowing", {"value": _name(scope, choose)}),
        ("own_outputs", {"values": list(scope.outputs)}),
        ("remove_value_info", {"values": [_name(scope, choose)]}),
    ]  # fmt: skip
    if node is not None:
        arguments += [
            ("delete_nodes", {"nodes": [node.ref], "reconnect": choose.random() < 0.5}),
            ("insert_node", {"value": _name(scope, choose), "op_type": "Abs"}),
            ("rename_node", {"node": node.ref, "name": f"m{choose.randint(0, 3)}"}),
            ("trim_links", {"node": node.ref}),
            ("remove_attribute", {"node": node.ref, "attribute": "then_branch"}),
        ]
    name, more = choose.choice(arguments)
    assert name in EDITS
    try:
        document.apply(name, scope=path, **more)
    except DldError as error:
        return f"{name} refused: {error}"
    return f"{name} {path} {more}"


def _primitive(document: Document, choose: Random) -> Primitive | None:
    scope = choose.choice(list(document.scopes()))
    node = choose.choice(scope.nodes) if scope.nodes else None
    makers = [_add_node, _add_record, _remove_record, _model_field]
    if node is not None:
        makers += [_links, _links, _remove_node, _text, _attribute, _move]
    return choose.choice(makers)(document, scope, node, choose)


def _name(scope: Scope, choose: Random) -> str:
    names = [*scope.links.producers, *scope.links.consumers, *scope.outputs, *scope.inputs]
    parent = scope.parent
    if parent is not None:
        names += [*parent.links.producers, *parent.inputs]
    return choose.choice([*sorted(names), "ghost", "new"])


def _links(document: Document, scope: Scope, node: Node | None, choose: Random) -> Primitive:
    assert node is not None
    side = choose.choice(["input", "output"])
    count = choose.randint(0, 3)
    names = tuple(choose.choice([_name(scope, choose), "made", ""]) for _ in range(count))
    return SetLinks(scope, node, side, names)


def _add_node(document: Document, scope: Scope, node: Node | None, choose: Random) -> Primitive:
    op_type = choose.choice(_OPERATORS)
    proto = oh.make_node(
        op_type,
        [_name(scope, choose) for _ in range(choose.randint(0, 2))],
        [choose.choice([_name(scope, choose), "made"]) for _ in range(choose.randint(0, 2))],
        name=choose.choice(["", "pre", "m1"]),
        domain="local" if op_type == "twice" else "",
    )
    if choose.random() < 0.3:
        body = oh.make_graph(
            [oh.make_node("Neg", [_name(scope, choose)], ["o"])], "body", [],
            [oh.make_tensor_value_info(choose.choice(["o", "a"]), 1, None)],
        )  # fmt: skip
        proto.attribute.append(oh.make_attribute("then_branch", body))
        proto.op_type = "If"
    place = choose.randint(0, len(scope.nodes))
    return Splice(scope, "node", place, [], [scope.new_node(proto)])


def _remove_node(document: Document, scope: Scope, node: Node | None, choose: Random) -> Primitive:
    assert node is not None
    return Splice(scope, "node", scope.index_of(node), [node], [])


def _move(document: Document, scope: Scope, node: Node | None, choose: Random) -> Primitive:
    nodes = list(scope.nodes)
    choose.shuffle(nodes)
    return Splice(scope, "node", 0, list(scope.nodes), nodes)


def _text(document: Document, scope: Scope, node: Node | None, choose: Random) -> Primitive:
    assert node is not None
    field, values = choose.choice(
        [("name", ["pre", "m1", "odd\u202e", "m2"]), ("op_type", list(_OPERATORS)),
         ("domain", ["", "local", "other"])]
    )  # fmt: skip
    old = getattr(node.proto, field) if node.proto.HasField(field) else None
    return SetText(scope, "node", node, node.proto, field, old, choose.choice(values))


def _attribute(document: Document, scope: Scope, node: Node | None, choose: Random) -> Primitive:
    assert node is not None
    tensor = oh.make_tensor("", 1, [2], [1.0, 2.0])
    value = choose.choice([1, 2.5, "text", tensor])
    proto = oh.make_attribute(choose.choice(["to", "axis", "alpha"]), value)
    if node.children and choose.random() < 0.5:
        position = choose.randrange(len(node.proto.attribute))
        return SetAttribute(node, position, node.proto.attribute[position], None)
    return SetAttribute(node, 0, None, proto)


def _add_record(document: Document, scope: Scope, node: Node | None, choose: Random) -> Primitive:
    lists = [name for name in _SPLICED if name in scope.records]
    list_name, name = choose.choice(lists), _name(scope, choose)
    record: Any
    if list_name == "initializer":
        record = oh.make_tensor(name, choose.choice([1, 7]), [2], [1, 2])
    else:
        dims: Any = choose.choice([[2], ["N", 4], [-1], None])
        record = oh.make_tensor_value_info(name, choose.choice([1, 7, 9]), dims)
    return Splice(scope, list_name, 0, [], [record])


def _remove_record(
    document: Document, scope: Scope, node: Node | None, choose: Random
) -> Primitive | None:
    lists = [name for name in _SPLICED if scope.records.get(name)]
    if not lists:
        return None
    list_name = choose.choice(lists)
    place = choose.randrange(len(scope.records[list_name]))
    return Splice(scope, list_name, place, [scope.records[list_name][place]], [])


def _model_field(document: Document, scope: Scope, node: Node | None, choose: Random) -> Primitive:
    model, main = document.model, document.main
    if choose.random() < 0.5:
        entries = [onnx.OperatorSetIdProto(domain=d, version=18) for d in ("", "other", "local")]
        return SetList(main, None, "model", model, "opset_import", entries[: choose.randint(0, 3)])
    old = model.ir_version if model.HasField("ir_version") else None
    return SetText(main, "model", None, model, "ir_version", old, choose.choice([3, 10, None]))
