"""Every edit and its undo on one model, and the same by plain protobuf where it has an equal."""

from __future__ import annotations

import base64
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dld_tui.core.types import JSON

USERS = 1_000
"""Nodes that use one value, for replacing all uses of it."""
ROUNDS = 5
WHOLE = frozenset({"sort_nodes", "remove_unused", "rename_duplicate_nodes", "replace_uses"})
"""Edits that look at all nodes by their nature: for an order, for what is idle."""
ELSEWHERE = frozenset(
    {"restore", "repair", "own_outputs", "rename_shadowing", "remove_repeated_initializers"}
)
"""Edits that repeat what others did, or only mend what no valid model has."""


def write_edit_model(path: Path, *, nodes: int, weights: int) -> int:
    """Write the model of many nodes with a value of many users, bodies and a function in it."""
    import onnx
    from onnx import TensorProto, helper, parser

    from benchmarks.models import write_many_nodes

    write_many_nodes(path, nodes=nodes, weights=weights)
    model = onnx.load(path)
    graph = model.graph
    first = graph.node[0].output[0]
    for index in range(USERS):
        graph.node.append(helper.make_node("Neg", [first], [f"neg{index}"], f"neg{index}"))
    body = parser.parse_graph("yes () => (float[8, 8] t) { [inner] h = Neg(input) t = Abs(h) }")
    cond = helper.make_tensor_value_info("cond", TensorProto.BOOL, [])
    graph.input.append(cond)
    choose = helper.make_node("If", ["cond"], ["chosen"], "choose")
    for branch in ("then_branch", "else_branch"):
        choose.attribute.append(helper.make_attribute(branch, body))
    graph.node.append(choose)
    pick = helper.make_node("Pick", ["input"], ["picked"], "pick", domain="local")
    pick.attribute.append(helper.make_attribute("cases", [body, body]))
    graph.node.append(pick)
    call = helper.make_node("Leaky", ["input"], ["called"], "call", domain="local", alpha=0.5)
    graph.node.append(call)
    graph.node.append(helper.make_node("Leaky", ["input"], ["called2"], "call2", domain="local"))
    mid = graph.node[nodes // 2].output[0]
    graph.value_info.append(helper.make_tensor_value_info(mid, TensorProto.FLOAT, [8, 8]))
    function = parser.parse_function(
        '<domain: "local", opset_import: ["" : 17]> Leaky <alpha: float = 0.1, idle: int = 1> (v)'
        " => (r) { [make] r = LeakyRelu <alpha: float = @alpha> (v) }"
    )
    model.functions.append(function)
    model.opset_import.append(helper.make_opsetid("local", 1))
    zeros = helper.make_tensor("mostly_zero", TensorProto.FLOAT, [64], [0.0] * 63 + [1.0])
    graph.initializer.append(zeros)
    return path.write_bytes(model.SerializeToString())


def cases(document: Any, folder: Path) -> dict[str, tuple[dict[str, JSON], list[Any]]]:
    """Return the arguments of each edit, and the edits to be made before it."""
    main = document.main
    half = len(main.nodes) // 2
    node = next(node for node in main.nodes[half:] if node.op_type == "Relu")
    user = next(other for other in main.nodes[half:] if other.op_type == "MatMul")
    name, value, weight = node.name, node.outputs[0], user.inputs[1]
    early = main.nodes[10].outputs[0]
    scope: dict[str, JSON] = {"scope": []}
    leaky: dict[str, JSON] = {"scope": ["function local:Leaky"]}
    tensor: JSON = {"initializer": weight}
    fragment = base64.b64encode(_fragment()).decode("ascii")
    raw: JSON = {"raw": base64.b64encode(bytes(256)).decode("ascii")}
    number: JSON = {"kind": "int", "value": 3}
    profile: JSON = [{"input": {"min": [8, 8], "opt": [8, 8], "max": [8, 8]}}]
    then: JSON = ["choose:then_branch"]
    pick: dict[str, JSON] = {"scope": [], "node": "pick", "attribute": "cases"}
    plain: dict[str, dict[str, JSON]] = {
        "rename_node": {**scope, "node": name, "name": "renamed"},
        "rename_value": {**scope, "value": value, "name": "renamed"},
        "set_attribute": {**scope, "node": name, "attribute": "p", "kind": "int", "value": 3},
        "delete_nodes": {**scope, "nodes": [name], "reconnect": True},
        "delete_many": {"nodes": [[[], name], [then, "inner"]]},
        "set_attributes": {"changes": [{"nodes": [[[], name]], "attributes": {"p": number}}]},
        "add_node": {**scope, "op_type": "Abs", "inputs": [value]},
        "add_operator": {**scope, "op_type": "Abs", "inputs": [value]},
        "insert_node": {**scope, "value": value, "op_type": "Abs"},
        "replace_nodes": {**scope, "nodes": [name], "op_type": "P", "domain": "local"},
        "bypass_nodes": {**scope, "nodes": [name]},
        "set_input": {**scope, "node": user.name, "index": 0, "value": early},
        "set_output": {**scope, "node": name, "index": 0, "value": "fresh"},
        "replace_uses": {**scope, "value": main.nodes[0].outputs[0], "by": "input"},
        "disconnect_value": {**scope, "value": value},
        "remove_terminal": {**scope, "node": user.name, "side": "input", "index": 0},
        "trim_links": {**scope, "node": user.name},
        "expose_input": {**scope, "node": user.name, "index": 0},
        "replace_output": {**scope, "name": "output", "by": value},
        "move_terminal": {**scope, "side": "input", "name": "cond", "to": 0},
        "add_input": {**scope, "name": "more", "dtype": "float32", "dims": [1]},
        "add_output": {**scope, "name": value},
        "remove_input": {**scope, "name": "input"},
        "remove_output": {**scope, "name": "output"},
        "set_value_type": {**scope, "value": value, "dtype": "float16", "dims": [1]},
        "remove_value_info": {**scope, "values": [main.nodes[(half // 1)].outputs[0]]},
        "set_model_field": {"field": "producer_name", "value": "us"},
        "set_doc_string": {**scope, "text": "text", "nodes": [name]},
        "set_metadata": {**scope, "key": "k", "value": "v", "nodes": [name]},
        "set_opset": {"domain": "com.microsoft", "version": 1},
        "set_precision": {"nodes": [[[], name]], "precision": "fp16"},
        "set_profiles": {"profiles": profile},
        "name_graph": {**scope, "name": "other"},
        "sort_nodes": scope,
        "remove_unused": scope,
        "paste_nodes": {**scope, "fragment": {"model": fragment}},
        "add_initializer": {**scope, "name": "fresh", "dtype": "float32", "dims": [4],
                            "fill": {"kind": "zeros"}},
        "delete_initializers": {**scope, "names": [weight], "disconnect": True},
        "convert_tensor": {**scope, "tensor": tensor, "dtype": "float16"},
        "set_elements": {**scope, "tensor": tensor, "start": 0, "values": [1.5]},
        "replace_tensor": {**scope, "tensor": tensor, "dtype": "float32", "dims": [8, 8],
                           "payload": raw},
        "set_external": {**scope, "names": [weight], "location": "weights.data"},
        "to_sparse": {**scope, "names": ["mostly_zero"]},
        "add_function": {"name": "fresh", "inputs": ["v"], "outputs": ["r"]},
        "duplicate_function": {**leaky, "name": "copy"},
        "rename_function": {**leaky, "name": "soft"},
        "set_function_attribute": {**leaky, "attribute": "alpha", "kind": "float", "value": 2.0},
        "remove_function_attribute": {**leaky, "attribute": "idle"},
        "delete_function": leaky,
        "make_function": {**scope, "nodes": [name], "name": "made", "domain": "local"},
        "inline_function": {"nodes": [[[], "call"]]},
        "add_subgraph": {**scope, "node": "choose", "attribute": "other"},
        "copy_subgraph": {**scope, "node": "choose", "attribute": "other", "source": then},
        "delete_subgraph": {**scope, "node": "choose", "attribute": "then_branch"},
        "move_subgraph": {**pick, "index": 0, "to": 1},
        "set_attribute_reference": {**leaky, "node": "make", "attribute": "p",
                                    "reference": "alpha"},
    }  # fmt: skip
    found: dict[str, tuple[dict[str, JSON], list[Any]]] = {
        edit: (arguments, []) for edit, arguments in plain.items()
    }
    prepared = ("set_attribute", plain["set_attribute"])
    found["remove_attribute"] = ({**scope, "node": name, "attribute": "p"}, [prepared])
    twin = ("rename_node", {**scope, "node": name, "name": ""})
    found["rename_duplicate_nodes"] = (scope, [twin])
    found["to_dense"] = ({**scope, "names": ["mostly_zero"]}, [("to_sparse", plain["to_sparse"])])
    found["set_inline"] = ({**scope, "names": [weight]}, [("set_external", plain["set_external"])])
    return found


def _fragment() -> bytes:
    from onnx import parser

    text = '<ir_version: 8, opset_import: ["" : 17]> f (float[8, 8] input) => () { [p] a = Relu'
    return bytes(parser.parse_model(f"{text}(input) [q] b = Neg(a) }}").SerializeToString())


def document_edits(path: str, folder: str) -> dict[str, float]:
    """Time each edit and its undo; edits that are not measured have no entry."""
    from dld_tui.core.document import Document
    from dld_tui.core.document.edit_registry import known_edits
    from dld_tui.core.errors import EditError

    document = Document.open(path)
    for scope in document.scopes():  # as opening a tab does
        scope.producer("")
        scope.find("")
        for list_name in ("input", "output", "initializer", "sparse_initializer", "value_info"):
            scope.named(list_name)
    found: dict[str, float] = {}
    for edit, (arguments, before) in cases(document, Path(folder)).items():
        if edit not in known_edits():
            continue
        try:
            found |= _timed(document, edit, arguments, before)
        except EditError as error:
            raise SystemExit(f"{edit}: {error}") from None
    found["users"] = len(document.main.users(document.main.nodes[0].outputs[0]))
    for edit in known_edits().keys() - ELSEWHERE:
        if f"{edit}.edit" not in found:
            found[f"{edit}.missing"] = 1.0
    return found


def _timed(document: Any, edit: str, arguments: dict[str, Any], before: Any) -> dict[str, float]:
    edits, undos = [], []
    for _ in range(ROUNDS):
        for prepared, its_arguments in before:
            document.apply(prepared, **its_arguments)
        start = time.perf_counter()
        transaction = document.apply(edit, **arguments)
        done = time.perf_counter()
        made = bool(transaction.primitives)
        if made:
            document.undo()
        end = time.perf_counter()
        edits.append(done - start)
        undos.append(end - done)
        for _ in before:
            document.undo()
    return {
        f"{edit}.edit": statistics.median(edits) * 1000,
        f"{edit}.undo": statistics.median(undos) * 1000,
    }


def protobuf_edits(path: str) -> dict[str, float]:
    """Time the same changes as one writes them with plain protobuf, without checks or undo."""
    import onnx

    graph = onnx.load(path).graph
    half = len(graph.node) // 2

    def find(op_type: str) -> onnx.NodeProto:
        return next(node for node in list(graph.node)[half:] if node.op_type == op_type)

    def replace(old: str, new: str, sides: tuple[str, ...]) -> None:
        for node in graph.node:
            for side in sides:
                names = getattr(node, side)
                for index, name in enumerate(names):
                    if name == old:
                        names[index] = new

    value = find("Relu").output[0]
    name = find("Relu").name

    def by_name(name: str) -> onnx.NodeProto:
        return next(node for node in graph.node if node.name == name)

    def delete() -> None:
        node = by_name(name)
        replace(node.output[0], node.input[0], ("input",))
        graph.node.remove(node)

    def insert() -> None:
        node = onnx.helper.make_node("Abs", [value], ["fresh"], "fresh")
        replace(value, "fresh", ("input",))
        place = next(i for i, other in enumerate(graph.node) if value in other.output)
        graph.node.insert(place + 1, node)

    many = graph.node[0].output[0]
    changes: dict[str, Callable[[], object]] = {
        "rename_node": lambda: setattr(by_name(name), "name", name),
        "rename_value": lambda: replace(value, value, ("input", "output")),
        "set_attribute": lambda: by_name(name).attribute.append(onnx.helper.make_attribute("p", 3)),
        "insert_node": insert,
        "replace_uses": lambda: replace(many, "input", ("input",)),
        "delete_nodes": delete,
    }
    found = {}
    for edit, change in changes.items():
        start = time.perf_counter()
        change()
        found[f"{edit}.edit"] = (time.perf_counter() - start) * 1000
    return found
