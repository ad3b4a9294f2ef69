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
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

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
from tests.oracles.edited_models import with_text
from tests.support.sessions import bytes_of

Arguments: TypeAlias = "dict[str, Any]"
Draw: TypeAlias = "Callable[[Document, random.Random, int], Arguments | None]"
"""Draws arguments for a selection of so many nodes; None where the model has nothing for it."""


@dataclass(frozen=True)
class Property:
    """What must hold for one edit, for arguments of one kind."""

    edit: str
    draw: Draw
    keeps: bool = False
    """The outputs that the model had stay bit-equal, in their order."""
    negates: bool = False
    """The output that it names (``value`` or ``behind``) is the negative of what it was."""
    expected: Callable[[onnx.ModelProto, Arguments], onnx.ModelProto] | None = None
    undone: Callable[[onnx.ModelProto, Arguments], onnx.ModelProto] | None = None
    """The other way round: makes the model as it was of what it is."""
    touches: frozenset[str] | None = None
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


PROPERTIES: list[Property] = []


def holds(
    edit: str, *, touches: Sequence[str] | None = None, **about: Any
) -> Callable[[Draw], Draw]:
    """Enter a function that draws arguments into the table of properties."""

    def enter(draw: Draw) -> Draw:
        kinds = None if touches is None else frozenset(touches)
        PROPERTIES.append(Property(edit, draw, touches=kinds, **about))
        return draw

    return enter


def scope_of(document: Document, dice: random.Random, kind: str = "") -> Scope:
    """Return a scope that has nodes, every now and then the main graph."""
    scopes = [s for s in document.scopes() if s.nodes and (not kind or s.kind == kind)]
    if not scopes:
        return document.main
    return document.main if document.main in scopes and dice.random() < 0.4 else dice.choice(scopes)


def any_node(document: Document, dice: random.Random) -> Node:
    """Return a node of any scope."""
    return dice.choice(scope_of(document, dice).nodes)


def marked(scope: Scope, dice: random.Random, size: int) -> list[Node]:
    """Return nodes of a scope: a run of them, a connected part, or scattered ones."""
    nodes = list(scope.nodes)
    size = min(size, len(nodes))
    if size == len(nodes):
        return nodes
    how = dice.random()
    if how < 0.45:
        first = dice.randint(0, len(nodes) - size)
        return nodes[first : first + size]
    if how < 0.75:
        chosen = [dice.choice(nodes)]
        while len(chosen) < size:
            near = [
                node
                for node in nodes
                if node not in chosen
                and any(set(node.inputs) & set(c.outputs) or set(node.outputs) & set(c.inputs)
                        for c in chosen)
            ]  # fmt: skip
            rest = [node for node in nodes if node not in chosen]
            chosen.append(dice.choice(near or rest))
        dice.shuffle(chosen)
        return chosen
    return dice.sample(nodes, size)


def values_of(scope: Scope) -> list[str]:
    """Return the values that a scope defines."""
    names = [*scope.inputs, *scope.links.producers, *scope.named("initializer")]
    return [name for name in dict.fromkeys(names) if name]


def values_of_identity(scope: Scope) -> list[str]:
    """Return the values that Identity takes: of old operator sets it takes tensors alone."""
    types = ((name, scope.value_type(name)) for name in values_of(scope))
    return [name for name, known in types if known is None or not known.container]


def path(scope: Scope) -> Any:
    return list(scope.path)


def places(nodes: Sequence[Node]) -> list[Any]:
    return [[path(node.scope), node.ref] for node in nodes]


def stored(document: Document, dice: random.Random, list_name: str = "initializer") -> Any:
    """Return a graph with initializers and some of their names."""
    homes = [s for s in document.scopes() if s.records.get(list_name)]
    if not homes:
        return None
    home = dice.choice(homes)
    names = sorted(home.named(list_name))
    return home, dice.sample(names, dice.randint(1, len(names)))


def identities(document: Document) -> list[Node]:
    """Return the Identity nodes whose input a node of the same scope makes."""
    return [
        node
        for scope in document.scopes()
        for node in scope.nodes_of_type("Identity")
        if not node.domain and node.inputs
        if (made := scope.definition(node.inputs[0])) and made.node
    ]


def copied(model: onnx.ModelProto) -> onnx.ModelProto:
    return onnx.ModelProto.FromString(model.SerializeToString())


@holds("rename_node", keeps=True, touches=["node"], refusable=False)
def _(document: Document, dice: random.Random, size: int) -> Arguments:
    node = any_node(document, dice)
    return {"scope": path(node.scope), "node": node.ref, "name": f"fresh {dice.random()}"}


@holds("rename_value", keeps=True, refusable=False,
       undone=lambda model, about: with_text(model, about["name"], about["value"]))  # fmt: skip
def _(document: Document, dice: random.Random, size: int) -> Arguments:
    scope = scope_of(document, dice)
    value = dice.choice([v for v in values_of(scope) if v not in document.main.inputs])
    return {"scope": path(scope), "value": value, "name": f"fresh {dice.random()}"}


@holds("rename_matches", keeps=True)
def _(document: Document, dice: random.Random, size: int) -> Arguments:
    kinds = [kind for kind in ("nodes", "tensors") if dice.random() < 0.8]
    how: list[Arguments] = [
        {"prefix": "p/", "suffix": ".s"},
        {"pattern": ".*", "replacement": "{op}_{n}"},
        {"pattern": "^(.)(.*)$", "replacement": r"\2\1_x"},
        {"pattern": "[aeiou_/]", "replacement": "-", "suffix": "{n}"},
    ]
    nodes = places(marked(scope_of(document, dice), dice, size)) if dice.random() < 0.5 else None
    return {"kinds": kinds or ["tensors"], "nodes": nodes, **dice.choice(how)}


@holds("clean", keeps=True, full_check=False)
def _(document: Document, dice: random.Random, size: int) -> Arguments:
    names = [name for name in PASSES if dice.random() < 0.5]
    both = {"constants-to-initializers", "initializers-to-constants"}
    if both <= set(names):
        names.remove(dice.choice(sorted(both)))
    return {"passes": names or ["remove-unused"]}


@holds("fold_nodes", keeps=True)
def _(document: Document, dice: random.Random, size: int) -> Arguments | None:
    constant = []
    for scope in document.scopes():
        for node in scope.nodes:
            with suppress(EditError):
                constant.append(plan_fold(document, [node]).nodes[0])
    if not constant:
        return None
    home = dice.choice(constant).scope
    mine = [node for node in constant if node.scope is home]
    return {"nodes": places(dice.sample(mine, min(len(mine), size)))}


def _named(model: onnx.ModelProto, about: Arguments) -> onnx.ModelProto:
    changed = copied(model)
    changed.graph.name = about["name"]
    return changed


@holds("name_graph", keeps=True, expected=_named, refusable=False)
def _(document: Document, dice: random.Random, size: int) -> Arguments:
    return {"scope": [], "name": "another"}


@holds("set_doc_string", keeps=True, touches=["doc_string", "node"], refusable=False, selects=True)
def _(document: Document, dice: random.Random, size: int) -> Arguments:
    scope = scope_of(document, dice)
    nodes = [node.ref for node in marked(scope, dice, size)]
    return {"scope": path(scope), "text": "a\nb", "nodes": dice.choice([None, nodes])}


@holds(
    "set_metadata", keeps=True, touches=["metadata_props", "node"], refusable=False, selects=True
)
def _(document: Document, dice: random.Random, size: int) -> Arguments:
    scope = scope_of(document, dice)
    nodes = [node.ref for node in marked(scope, dice, size)]
    return {"key": "k", "value": "v", "scope": path(scope), "nodes": dice.choice([None, nodes])}


@holds("set_model_field", keeps=True, touches=["producer_name", "model_version"], refusable=False)
def _(document: Document, dice: random.Random, size: int) -> Arguments:
    return dice.choice([{"field": "producer_name", "value": "us"},
                        {"field": "model_version", "value": 7}])  # fmt: skip


def _imported(model: onnx.ModelProto, about: Arguments) -> onnx.ModelProto:
    changed = copied(model)
    changed.opset_import.append(helper.make_opsetid(about["domain"], about["version"]))
    return changed


@holds("set_opset", keeps=True, expected=_imported, refusable=False)
def _(document: Document, dice: random.Random, size: int) -> Arguments:
    return {"domain": "nobody.knows", "version": 3}


@holds("set_precision", keeps=True, touches=["node"], refusable=False, selects=True)
def _(document: Document, dice: random.Random, size: int) -> Arguments:
    chosen = marked(scope_of(document, dice), dice, size)
    return {"nodes": places(chosen), "precision": dice.choice(["fp16", "int8"])}


@holds("set_positions", keeps=True, touches=["node"], refusable=False, selects=True)
def _(document: Document, dice: random.Random, size: int) -> Arguments:
    scope = scope_of(document, dice)
    return {"scope": path(scope), "positions": {n.ref: [1, 2] for n in marked(scope, dice, size)}}


@holds("set_profiles", keeps=True, touches=["metadata_props"])
def _(document: Document, dice: random.Random, size: int) -> Arguments | None:
    main = document.main
    ranges = {}
    for name in main.inputs:
        known = main.value_type(name)
        if name in main.named("initializer") or known is None or known.dims is None:
            continue
        dims = [dim if isinstance(dim, int) and dim > 0 else 2 for dim in known.dims]
        ranges[name] = dict.fromkeys(("min", "opt", "max"), dims)
    return {"profiles": [ranges]} if ranges else None


@holds("sort_nodes", keeps=True, touches=[], refusable=False)
def _(document: Document, dice: random.Random, size: int) -> Arguments:
    return {"scope": path(scope_of(document, dice))}


@holds("rename_duplicate_nodes", keeps=True, touches=["node"], refusable=False)
def _(document: Document, dice: random.Random, size: int) -> Arguments:
    return {"scope": path(scope_of(document, dice))}


@holds("remove_unused", keeps=True, refusable=False)
def _(document: Document, dice: random.Random, size: int) -> Arguments:
    return {"scope": path(scope_of(document, dice))}


@holds("trim_links", keeps=True, touches=["node"], refusable=False)
def _(document: Document, dice: random.Random, size: int) -> Arguments:
    node = any_node(document, dice)
    return {"scope": path(node.scope), "node": node.ref}


@holds("remove_value_info", keeps=True, touches=["value_info"], refusable=False)
def _(document: Document, dice: random.Random, size: int) -> Arguments | None:
    scope = scope_of(document, dice)
    known = list(scope.named("value_info"))
    return (
        {"scope": path(scope), "values": dice.sample(known, len(known) // 2 + 1)[:9]}
        if known
        else None
    )


@holds("remove_repeated_initializers", keeps=True, touches=["initializer"])
def _(document: Document, dice: random.Random, size: int) -> Arguments | None:
    found = stored(document, dice)
    return {"scope": path(found[0]), "names": found[1]} if found else None


@holds(
    "rename_shadowing", keeps=True, touches=["node", "input", "output", "value_info", "initializer"]
)
def _(document: Document, dice: random.Random, size: int) -> Arguments | None:
    scope = scope_of(document, dice, "subgraph")
    if scope.parent is None:
        return None
    return {"scope": path(scope), "value": dice.choice(values_of(scope))}


@holds("own_outputs", keeps=True, touches=["node", "output"])
def _(document: Document, dice: random.Random, size: int) -> Arguments | None:
    scope = scope_of(document, dice, "subgraph")
    return {"scope": path(scope), "values": list(scope.outputs)} if scope.parent else None


@holds("repair", keeps=True, touches=["node"])
def _(document: Document, dice: random.Random, size: int) -> Arguments:
    node = any_node(document, dice)
    steps = [["trim_links", {"scope": path(node.scope), "node": node.ref}],
             ["rename_duplicate_nodes", {"scope": path(node.scope)}],
             ["rename_node", {"scope": path(node.scope), "node": node.ref, "name": "fresh"}],
             ["delete_nodes", {"scope": [], "nodes": ["nobody"]}]]  # fmt: skip
    return {"steps": steps}


@holds("restore", touches=["node"], keeps=True)
def _(document: Document, dice: random.Random, size: int) -> Arguments:
    node = any_node(document, dice)
    transaction = document.apply(
        "rename_node", scope=path(node.scope), node=node.ref, name=f"fresh {dice.random()}"
    )
    arguments = inverse_arguments(document, transaction)  # which takes it back
    document.history.done.pop()
    transaction.repeat()
    return arguments


@holds("replace_model", keeps=True, touches=[], refusable=False)
def _(document: Document, dice: random.Random, size: int) -> Arguments | None:
    data = bytes_of(document)
    if len(data) > 1 << 20:
        return None
    return {"model": {"raw": b64encode(data).decode("ascii")}}


@holds("merge_models", may_break=True)
def _(document: Document, dice: random.Random, size: int) -> Arguments | None:
    outputs = document.main.records["output"]
    if not outputs:
        return None
    output = dice.choice(outputs)
    graph = onnx.GraphProto(name="added", input=[output])
    graph.node.append(helper.make_node("Identity", [output.name], ["fresh output"]))
    graph.output.append(onnx.ValueInfoProto(name="fresh output", type=output.type))
    model = onnx.ModelProto(ir_version=document.model.ir_version, graph=graph)
    model.opset_import.extend(document.model.opset_import)
    return {"models": [{"raw": b64encode(model.SerializeToString()).decode("ascii")}]}


@holds("convert_terminals", may_break=True)
def _(document: Document, dice: random.Random, size: int) -> Arguments | None:
    name = dice.choice([*document.main.inputs, *document.main.outputs])
    return {"types": {name: dice.choice(["float16", "float64", "int32"])}, "side": "both"}


@holds("prepend_processing", may_break=True)
def _(document: Document, dice: random.Random, size: int) -> Arguments | None:
    return {"input": dice.choice(document.main.inputs), "scale": 0.5}


@holds("append_processing", may_break=True)
def _(document: Document, dice: random.Random, size: int) -> Arguments | None:
    step = dice.choice(["softmax", "argmax"])
    return {"output": dice.choice(document.main.outputs), "step": step, "keep": True}


@holds("change_dimensions", keeps=True)
def _(document: Document, dice: random.Random, size: int) -> Arguments | None:
    sized = [
        f"{name}:{axis}"
        for name in document.main.inputs
        if (known := document.main.value_type(name)) is not None and not known.container
        for axis in range(len(known.dims or ()))
    ]
    return {"dims": {dice.choice(sized): f"new_{size}"}} if sized else None


@holds("merge_transposes", keeps=True, touches=["node"])
def _(document: Document, dice: random.Random, size: int) -> Arguments | None:
    found = [
        node
        for scope in document.scopes()
        for node in scope.nodes_of_type("Transpose")
        if (before := scope.producer(node.inputs[0])) and before.op_type == "Transpose"
    ]
    if not found:
        return None
    node = dice.choice(found)
    return {"scope": path(node.scope), "node": node.ref}


@holds("make_function", keeps=True, selects=True)
def _(document: Document, dice: random.Random, size: int) -> Arguments:
    scope = scope_of(document, dice)
    nodes = [node.ref for node in marked(scope, dice, size)]
    return {"scope": path(scope), "nodes": nodes, "name": "Made",
            "constants": dice.random() < 0.5}  # fmt: skip


@holds("inline_function", keeps=True, selects=True)
def _(document: Document, dice: random.Random, size: int) -> Arguments | None:
    keys = {f.step.removeprefix("function ") for f in document.functions}
    calls = [n for s in document.scopes() for n in s.nodes if f"{n.domain}:{n.op_type}" in keys]
    return {"nodes": places(dice.sample(calls, min(size, len(calls))))} if calls else None


@holds("add_function", keeps=True, refusable=False)
def _(document: Document, dice: random.Random, size: int) -> Arguments:
    return {"name": "fresh", "domain": "fresh"}


def _function(document: Document, dice: random.Random) -> Scope | None:
    return dice.choice(document.functions) if document.functions else None


@holds("duplicate_function", keeps=True)
def _(document: Document, dice: random.Random, size: int) -> Arguments | None:
    function = _function(document, dice)
    return None if function is None else {"scope": path(function), "name": "copied"}


@holds("rename_function", keeps=True)
def _(document: Document, dice: random.Random, size: int) -> Arguments | None:
    function = _function(document, dice)
    if function is None:
        return None
    return {"scope": path(function), "name": "renamed", "domain": dice.choice([None, "other"])}


@holds("delete_function", may_break=True)
def _(document: Document, dice: random.Random, size: int) -> Arguments | None:
    function = _function(document, dice)
    return None if function is None else {"scope": path(function)}


@holds("set_function_attribute", keeps=True)
def _(document: Document, dice: random.Random, size: int) -> Arguments | None:
    function = _function(document, dice)
    if function is None:
        return None
    return {"scope": path(function), "attribute": "fresh", "kind": "float", "value": 1.5}


@holds("remove_function_attribute", keeps=True)
def _(document: Document, dice: random.Random, size: int) -> Arguments | None:
    function = _function(document, dice)
    if function is None:
        return None
    document.apply("set_function_attribute", scope=path(function), attribute="fresh")
    return {"scope": path(function), "attribute": "fresh"}


@holds("set_attribute_reference", keeps=True)
def _(document: Document, dice: random.Random, size: int) -> Arguments | None:
    found = [
        (function, node, attribute)
        for function in document.functions
        for scope in function.walk()
        for node in scope.nodes
        for attribute in node.attributes()
        if attribute.kind == "float" and attribute.reference is None
    ]
    if not found:
        return None
    function, node, attribute = dice.choice(found)
    document.apply("set_function_attribute", scope=path(function), attribute="fresh",
                   kind="float", value=attribute.value)  # fmt: skip
    return {"scope": path(node.scope), "node": node.ref, "attribute": attribute.name,
            "reference": "fresh"}  # fmt: skip


@holds("bypass_nodes", keeps=True, touches=["node", "value_info", "output"], selects=True)
def _(document: Document, dice: random.Random, size: int) -> Arguments | None:
    found = identities(document)
    if not found:
        return None
    scope = dice.choice(found).scope
    same = [node for node in found if node.scope is scope]
    return {"scope": path(scope), "nodes": [n.ref for n in dice.sample(same, min(size, len(same)))]}


@holds("rewrite", keeps=True, touches=["node", "value_info"], selects=True)
def _(document: Document, dice: random.Random, size: int) -> Arguments | None:
    sums = [
        [path(scope), node.ref]
        for scope in document.scopes()
        for node in scope.nodes_of_type("Add")
        if not node.domain
    ]
    if not sums:
        return None
    at = dice.sample(sums, min(size, len(sums)))
    return {"rules": "Add(x, y) => Sub(x, Neg(y))", "at": at}  # the same bits by IEEE 754


@holds("delete_nodes", keeps=True, touches=["node", "value_info", "output"], selects=True)
def _(document: Document, dice: random.Random, size: int) -> Arguments | None:
    found = identities(document)
    if not found:
        return None
    scope = dice.choice(found).scope
    same = [node for node in found if node.scope is scope]
    chosen = dice.sample(same, min(size, len(same)))
    return {"scope": path(scope), "nodes": [n.ref for n in chosen], "reconnect": True}


@holds("delete_nodes", may_break=True, selects=True)
def _(document: Document, dice: random.Random, size: int) -> Arguments:
    scope = scope_of(document, dice)
    return {"scope": path(scope), "nodes": [n.ref for n in marked(scope, dice, size)]}


@holds("delete_many", keeps=True, touches=["node", "value_info", "output"], selects=True)
def _(document: Document, dice: random.Random, size: int) -> Arguments | None:
    found = identities(document)
    chosen = dice.sample(found, min(size, len(found)))
    return {"nodes": places(chosen), "reconnect": True} if chosen else None


@holds("insert_node", keeps=True, refusable=False,
       touches=["node", "output", "value_info", "opset_import"])  # fmt: skip
def _(document: Document, dice: random.Random, size: int) -> Arguments:
    scope = scope_of(document, dice)
    value = dice.choice(values_of_identity(scope))
    return {"scope": path(scope), "value": value, "op_type": "Identity"}


@holds("add_node", keeps=True, touches=["node", "opset_import"], refusable=False)
def _(document: Document, dice: random.Random, size: int) -> Arguments:
    scope = scope_of(document, dice)
    return {"scope": path(scope), "op_type": "Identity",
            "inputs": [dice.choice(values_of_identity(scope))]}  # fmt: skip


@holds(
    "add_operator",
    keeps=True,
    refusable=False,
    touches=["node", "output", "value_info", "initializer", "input", "opset_import"],
)
def _(document: Document, dice: random.Random, size: int) -> Arguments:
    scope = scope_of(document, dice)
    value = dice.choice(values_of_identity(scope))
    more: Arguments = {}
    if not scope.is_function:
        more = {"initializers": [{"name": "fresh", "dtype": "float32", "dims": [2],
                                  "fill": {"kind": "zeros"}}]}  # fmt: skip
    return {"scope": path(scope), "op_type": "Identity", "inputs": [value],
            "behind": dice.choice(["", value]), **more}  # fmt: skip


def floating_output(main: Scope, dice: random.Random) -> str | None:
    made = [
        name
        for name in main.outputs
        if main.producer(name) and (known := main.value_type(name))
        and known.dtype == "float32" and not known.container
    ]  # fmt: skip
    return dice.choice(made) if made else None


@holds("insert_node", refusable=False, negates=True)
def _(document: Document, dice: random.Random, size: int) -> Arguments | None:
    main = document.main
    value = floating_output(main, dice)
    if value is None:
        return None
    return {"scope": [], "value": value, "op_type": "Neg"}


@holds("add_operator", refusable=False, negates=True)
def _(document: Document, dice: random.Random, size: int) -> Arguments | None:
    main = document.main
    value = floating_output(main, dice)
    if value is None:
        return None
    return {"scope": [], "inputs": [value], "behind": value, "op_type": "Neg"}


@holds("replace_nodes", may_break=True, selects=True)
def _(document: Document, dice: random.Random, size: int) -> Arguments:
    scope = scope_of(document, dice)
    nodes = [node.ref for node in marked(scope, dice, size)]
    return {"scope": path(scope), "nodes": nodes, "op_type": "Plugin", "domain": "fresh"}


@holds("cast_input", may_break=True)
def _(document: Document, dice: random.Random, size: int) -> Arguments | None:
    node = any_node(document, dice)
    places = [at for at, name in enumerate(node.inputs) if name]
    if not places:
        return None
    return {"scope": path(node.scope), "node": node.ref, "index": dice.choice(places),
            "dtype": dice.choice(["float32", "int64", "bool"])}  # fmt: skip


@holds("set_operator", may_break=True, selects=True)
def _(document: Document, dice: random.Random, size: int) -> Arguments:
    scope = scope_of(document, dice)
    return {
        "scope": path(scope), "nodes": [node.ref for node in marked(scope, dice, size)],
        "op_type": dice.choice(["Relu", "Plugin"]), "domain": dice.choice(["", "fresh"]),
        "attributes": dice.choice(["known", "all", "none"]),
    }  # fmt: skip


@holds("cast_nodes", touches=["node", "value_info"], selects=True)
def _(document: Document, dice: random.Random, size: int) -> Arguments:
    return {"nodes": places(marked(scope_of(document, dice), dice, size)), "precision": "fp16"}


@holds("paste_nodes", keeps=True, selects=True)
def _(document: Document, dice: random.Random, size: int) -> Arguments:
    scope = scope_of(document, dice)
    fragment = fragment_of(marked(scope, dice, size))
    return {"scope": path(scope), "fragment": fragment.to_json(document, scope)}


def _an_attribute(document: Document, dice: random.Random) -> Any:
    kinds = ("int", "float", "ints", "floats")
    found = [
        (node, attribute)
        for scope in document.scopes()
        for node in scope.nodes
        for attribute in node.attributes()
        if attribute.kind in kinds and attribute.reference is None
    ]
    return dice.choice(found) if found else None


@holds("set_attribute", touches=["node"], may_break=True)
def _(document: Document, dice: random.Random, size: int) -> Arguments | None:
    found = _an_attribute(document, dice)
    if found is None:
        return None
    node, attribute = found
    value = [v + 1 for v in attribute.value] if attribute.kind[-1] == "s" else attribute.value + 1
    return {"scope": path(node.scope), "node": node.ref, "attribute": attribute.name,
            "kind": attribute.kind, "value": value}  # fmt: skip


@holds("set_attributes", touches=["node"], keeps=True)
def _(document: Document, dice: random.Random, size: int) -> Arguments | None:
    found = _an_attribute(document, dice)
    if found is None:
        return None
    node, attribute = found
    about = {attribute.name: {"kind": attribute.kind, "value": attribute.value}}
    return {"changes": [{"nodes": places([node]), "attributes": about}]}


@holds("remove_attribute", touches=["node"], may_break=True)
def _(document: Document, dice: random.Random, size: int) -> Arguments | None:
    found = _an_attribute(document, dice)
    if found is None:
        return None
    node, attribute = found
    return {"scope": path(node.scope), "node": node.ref, "attribute": attribute.name}


def _behind_identity(document: Document, dice: random.Random) -> Any:
    """Return an Identity node and one that uses what goes into it."""
    found = [
        (node, user, user.inputs.index(node.inputs[0]))
        for node in identities(document)
        for user in node.scope.consumers(node.inputs[0])
        if user is not node
    ]
    return dice.choice(found) if found else None


@holds("set_input", keeps=True, touches=["node"])
def _(document: Document, dice: random.Random, size: int) -> Arguments | None:
    found = _behind_identity(document, dice)
    if found is None:
        return None
    node, user, index = found
    return {"scope": path(node.scope), "node": user.ref, "index": index,
            "value": node.outputs[0], "sort": True}  # fmt: skip


@holds("replace_uses", keeps=True, touches=["node"])
def _(document: Document, dice: random.Random, size: int) -> Arguments | None:
    found = identities(document)
    if not found:
        return None
    node = dice.choice(found)
    return {"scope": path(node.scope), "value": node.outputs[0], "by": node.inputs[0]}


@holds("set_output", may_break=True, touches=["node"])
def _(document: Document, dice: random.Random, size: int) -> Arguments:
    node = any_node(document, dice)
    return {"scope": path(node.scope), "node": node.ref, "index": 0, "value": "fresh"}


@holds("remove_terminal", may_break=True, touches=["node"])
def _(document: Document, dice: random.Random, size: int) -> Arguments | None:
    node = any_node(document, dice)
    side = dice.choice(["input", "output"])
    names = node.inputs if side == "input" else node.outputs
    if not names:
        return None
    index = dice.randrange(len(names))
    return {"scope": path(node.scope), "node": node.ref, "side": side, "index": index}


@holds("disconnect_value", may_break=True, touches=["node"])
def _(document: Document, dice: random.Random, size: int) -> Arguments:
    scope = scope_of(document, dice)
    return {"scope": path(scope), "value": dice.choice(values_of(scope))}


@holds("add_output", keeps=True, touches=["output", "value_info"])
def _(document: Document, dice: random.Random, size: int) -> Arguments | None:
    main = document.main
    inner = [
        value
        for value in main.links.producers
        if value and value not in main.outputs
        and (known := main.value_type(value)) and known.dims is not None
    ]  # fmt: skip
    return {"scope": [], "name": dice.choice(inner)} if inner else None


@holds("add_input", keeps=True, touches=["input", "value_info"])
def _(document: Document, dice: random.Random, size: int) -> Arguments | None:
    names = [n for n in document.main.named("initializer") if n not in document.main.inputs]
    return {"scope": [], "name": dice.choice(names)} if names else None


@holds("remove_input", keeps=True, touches=["input"])
def _(document: Document, dice: random.Random, size: int) -> Arguments | None:
    names = [n for n in document.main.named("initializer") if n in document.main.inputs]
    if not names and document.main.records["initializer"]:
        names = [dice.choice(list(document.main.named("initializer")))]
        document.apply("add_input", scope=[], name=names[0])
    return {"scope": [], "name": dice.choice(names)} if names else None


def _less_output(model: onnx.ModelProto, about: Arguments) -> onnx.ModelProto:
    changed = copied(model)
    kept = [info for info in model.graph.output if info.name != about["name"]]
    del changed.graph.output[:]
    changed.graph.output.extend(kept)
    return changed


@holds("remove_output", expected=_less_output, refusable=False)
def _(document: Document, dice: random.Random, size: int) -> Arguments | None:
    if len(document.main.outputs) < 2:
        return None
    return {"scope": [], "name": dice.choice(document.main.outputs)}


@holds("expose_input", touches=["input", "node", "value_info"])
def _(document: Document, dice: random.Random, size: int) -> Arguments | None:
    nodes = [n for n in document.main.nodes if n.inputs and n.inputs[0]]
    if not nodes:
        return None
    node = dice.choice(nodes)
    known = exposed_type(node, 0)
    return {"scope": [], "node": node.ref, "index": 0, "dtype": known.dtype or "float32",
            "dims": list(known.dims or ())}  # fmt: skip


@holds("replace_output", touches=["output", "value_info"])
def _(document: Document, dice: random.Random, size: int) -> Arguments | None:
    scope = scope_of(document, dice, dice.choice(["graph", "subgraph"]))
    inner = [
        value
        for value in scope.links.producers
        if value and value not in scope.outputs
        and scope.value_type(value) == scope.value_type(scope.outputs[-1])
    ]  # fmt: skip
    if not inner:
        return None
    return {"scope": path(scope), "name": scope.outputs[-1], "by": dice.choice(inner)}


def _moved(model: onnx.ModelProto, about: Arguments) -> onnx.ModelProto:
    changed = copied(model)
    records = [copy for copy in model.graph.output]
    at = [info.name for info in records].index(about["name"])
    records.insert(about["to"], records.pop(at))
    del changed.graph.output[:]
    changed.graph.output.extend(records)
    return changed


@holds("move_terminal", expected=_moved, refusable=False)
def _(document: Document, dice: random.Random, size: int) -> Arguments:
    names = document.main.outputs
    return {"scope": [], "side": "output", "name": dice.choice(names),
            "to": dice.randrange(len(names))}  # fmt: skip


@holds("set_value_type", keeps=True, touches=["value_info", "output"])
def _(document: Document, dice: random.Random, size: int) -> Arguments | None:
    main = document.main
    typed = [
        (name, known)
        for name in main.links.producers
        if name and (known := main.value_type(name)) and known.dtype and not known.container
    ]
    if not typed:
        return None
    name, known = dice.choice(typed)
    dims: Any = None if known.dims is None else [None] * len(known.dims)
    if name in main.outputs:
        dims = None if known.dims is None else list(known.dims)
    return {"scope": [], "value": name, "dtype": known.dtype, "dims": dims}


@holds("add_initializer", keeps=True, touches=["initializer", "input"], refusable=False)
def _(document: Document, dice: random.Random, size: int) -> Arguments:
    fill = dice.choice(
        [{"kind": "zeros"}, {"kind": "normal"}, {"kind": "values", "values": [1, 2]}]
    )
    return {"scope": [], "name": "fresh", "dtype": dice.choice(["float32", "int64", "float16"]),
            "dims": [2], "fill": fill}  # fmt: skip


@holds("delete_initializers", touches=["initializer", "node", "value_info"], may_break=True)
def _(document: Document, dice: random.Random, size: int) -> Arguments | None:
    found = stored(document, dice)
    return {"scope": path(found[0]), "names": found[1], "disconnect": True} if found else None


@holds("convert_tensor", touches=["initializer", "input", "value_info"], may_break=True)
def _(document: Document, dice: random.Random, size: int) -> Arguments | None:
    found = stored(document, dice)
    if not found:
        return None
    return {"scope": path(found[0]), "tensor": {"initializer": found[1][0]}, "dtype": "float16"}


@holds("set_elements", keeps=True, touches=[])
def _(document: Document, dice: random.Random, size: int) -> Arguments | None:
    found = stored(document, dice)
    if not found:
        return None
    tensor = found[0].initializer(found[1][0])
    if not tensor.element_count or tensor.dtype not in ("float32", "int64"):
        return None
    start = dice.randrange(tensor.element_count)
    values = tensor.read(start, min(5, tensor.element_count - start)).tolist()
    return {"scope": path(found[0]), "tensor": {"initializer": found[1][0]}, "start": start,
            "values": [v if math.isfinite(v) else str(v) for v in values]}  # fmt: skip


@holds("splice_tensor", keeps=True, touches=[])
def _(document: Document, dice: random.Random, size: int) -> Arguments | None:
    found = stored(document, dice)
    if not found:
        return None
    tensor = found[0].initializer(found[1][0])
    if not tensor.shape or not 0 < tensor.element_count <= 4000:
        return None
    if tensor.dtype not in ("float32", "int64"):
        return None
    axis = dice.randrange(len(tensor.shape))
    start = dice.randrange(tensor.shape[axis])
    row = tensor.read().reshape(tensor.shape).take(start, axis).reshape(-1).tolist()
    return {"scope": path(found[0]), "tensor": {"initializer": found[1][0]}, "axis": axis,
            "start": start, "delete": 1, "insert": 1,
            "values": [v if math.isfinite(v) else str(v) for v in row]}  # fmt: skip


@holds("replace_tensor", keeps=True, touches=[])
def _(document: Document, dice: random.Random, size: int) -> Arguments | None:
    found = stored(document, dice)
    if not found:
        return None
    tensor = found[0].initializer(found[1][0])
    if tensor.element_count > 4000 or tensor.dtype == "string":
        return None
    data = tensor.payload() if tensor.nbytes else b""
    raw = data if isinstance(data, bytes) else data.read()
    return {"scope": path(found[0]), "tensor": {"initializer": found[1][0]},
            "dtype": tensor.dtype, "dims": list(tensor.shape),
            "payload": {"raw": b64encode(raw).decode("ascii")}}  # fmt: skip


def weights(document: Document, dice: random.Random) -> Any:
    """Return a graph and some of its weights: ONNX Runtime reads no shapes from data files."""
    found = stored(document, dice)
    names = [n for n in found[1] if not belongs_inside(found[0].initializer(n))] if found else []
    return (found[0], names) if names else None


@holds("set_external", keeps=True, touches=["initializer"])
def _(document: Document, dice: random.Random, size: int) -> Arguments | None:
    found = weights(document, dice)
    return {"scope": path(found[0]), "names": found[1]} if found else None


@holds("set_external_entries", keeps=True)
def _(document: Document, dice: random.Random, size: int) -> Arguments | None:
    found = weights(document, dice)
    if not found or document.path is None:
        return None
    home, names = found
    tensor = home.initializer(names[0])
    if not tensor.nbytes or tensor.nbytes > 1 << 20:
        return None
    payload = tensor.payload()
    data = payload if isinstance(payload, bytes) else payload.read()
    for name, before in (("one.data", b"wrong"), ("two.data", bytes(64))):
        (document.path.parent / name).write_bytes(before + data)
    proto = tensor.proto
    old = onnx.TensorProto.FromString(proto.SerializeToString())
    moved = onnx.TensorProto(name=old.name, data_type=old.data_type, dims=old.dims)
    moved.data_location = onnx.TensorProto.EXTERNAL
    moved.external_data.add(key="location", value="one.data")
    moved.external_data.add(key="offset", value="0")
    moved.external_data.add(key="length", value=str(len(data)))
    place = next(i for i, other in enumerate(home.records["initializer"]) if other is proto)
    transaction = Transaction("raw", {})
    transaction.do(Splice(home, "initializer", place, [proto], [moved]))
    return {"scope": path(home), "name": names[0], "location": "two.data", "offset": 64}


@holds("set_inline", keeps=True, touches=[], refusable=False)
def _(document: Document, dice: random.Random, size: int) -> Arguments | None:
    found = weights(document, dice)
    if not found:
        return None
    document.apply("set_external", scope=path(found[0]), names=found[1])
    return {"scope": path(found[0]), "names": found[1]}


@holds("to_sparse", keeps=True, full_check=False, touches=["initializer", "sparse_initializer"])
def _(document: Document, dice: random.Random, size: int) -> Arguments | None:
    found = stored(document, dice)
    return {"scope": path(found[0]), "names": found[1]} if found else None


@holds("to_dense", keeps=True, touches=["initializer", "sparse_initializer"])
def _(document: Document, dice: random.Random, size: int) -> Arguments | None:
    found = stored(document, dice)
    if not found:
        return None
    names = [n for n in found[1] if (t := found[0].initializer(n)).shape and t.dtype == "float32"]
    if not names:
        return None
    document.apply("to_sparse", scope=path(found[0]), names=names)
    return {"scope": path(found[0]), "names": names}


@holds("set_sparse", keeps=True, full_check=False, touches=["sparse_initializer"])
def _(document: Document, dice: random.Random, size: int) -> Arguments | None:
    found = stored(document, dice)
    if not found:
        return None
    home, names = found
    names = [n for n in names if (t := home.initializer(n)).shape and t.dtype == "float32"]
    if not names or home.initializer(names[0]).element_count > 1 << 16:
        return None
    array = home.initializer(names[0]).read().reshape(home.initializer(names[0]).shape)
    zero = bytes(4)
    places = [
        index for index in np.ndindex(array.shape)
        if array[index].tobytes() != zero or dice.random() < 0.1
    ]  # fmt: skip
    dice.shuffle(places)
    document.apply("to_sparse", scope=path(home), names=names[:1])
    flat = dice.random() < 0.5
    indices = [
        int(np.ravel_multi_index(index, array.shape)) if flat else list(index) for index in places
    ]
    return {"scope": path(home), "name": names[0], "dims": list(array.shape), "indices": indices,
            "values": [float(array[index]) for index in places]}  # fmt: skip


def _holder(document: Document, dice: random.Random) -> Any:
    found = [node for scope in document.scopes() for node in scope.control_flow]
    return dice.choice(found) if found else None


@holds("add_subgraph", may_break=True)
def _(document: Document, dice: random.Random, size: int) -> Arguments | None:
    node = _holder(document, dice)
    if node is None:
        return None
    attribute = dice.choice(list(node.children))
    return {"scope": path(node.scope), "node": node.ref, "attribute": attribute, "replace": True}


@holds("copy_subgraph", keeps=True)
def _(document: Document, dice: random.Random, size: int) -> Arguments | None:
    node = _holder(document, dice)
    if node is None:
        return None
    attribute = dice.choice(list(node.children))
    (body,) = node.children[attribute]
    return {"scope": path(node.scope), "node": node.ref, "attribute": attribute,
            "source": path(body), "replace": True}  # fmt: skip


@holds("delete_subgraph", may_break=True)
def _(document: Document, dice: random.Random, size: int) -> Arguments | None:
    node = _holder(document, dice)
    if node is None:
        return None
    attribute = dice.choice(list(node.children))
    return {"scope": path(node.scope), "node": node.ref, "attribute": attribute}


@holds("move_subgraph", may_break=True)
def _(document: Document, dice: random.Random, size: int) -> Arguments:
    node = document.main.nodes[-1]
    names: Arguments = {
        "scope": [],
        "node": node.ref,
        "attribute": "cases",
        "inputs": [],
        "outputs": [],
    }
    for _number in range(3):
        document.apply("add_subgraph", **names, many=True)
    return {"scope": [], "node": document.main.nodes[-1].ref, "attribute": "cases",
            "index": 0, "to": 2}  # fmt: skip


@holds("cut_off", may_break=True)
def _(document: Document, dice: random.Random, size: int) -> Arguments | None:
    nodes = document.main.nodes
    return {"nodes": [dice.choice(nodes).ref]} if nodes else None


@holds("extract", keeps=True, drops=True)
def _(document: Document, dice: random.Random, size: int) -> Arguments | None:
    return {"outputs": [*dict.fromkeys(document.main.outputs)]}


@holds("extract", may_break=True)
def _(document: Document, dice: random.Random, size: int) -> Arguments | None:
    scope = dice.choice([*document.scopes()])
    nodes = dice.sample(scope.nodes, min(len(scope.nodes), size))
    if not nodes:
        return None
    if dice.random() < 0.5:
        return {"scope": [*scope.path], "nodes": [node.ref for node in nodes]}
    ends = [name for name in nodes[-1].outputs if name]
    return {"scope": [*scope.path], "inputs": [nodes[0].inputs[0]] if nodes[0].inputs else [],
            "outputs": {name: f"{name} new" for name in ends}}  # fmt: skip
