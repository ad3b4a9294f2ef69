"""Scripts on a model whose nodes and values have other names than where the script was made."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import onnx
import pytest

from dld_tui.core.compare.diff import relocation
from dld_tui.core.compare.diff.relocation import Relocation
from dld_tui.core.errors import EditError
from dld_tui.core.model.document import Document
from dld_tui.core.model.document.scripting.scripts import (
    ReplayResult,
    base_file,
    export_script,
    parse_script,
    replay,
)
from dld_tui.core.types import JSON
from tests.support import models
from tests.support.diff_models import copy_of
from tests.support.known import known
from tests.support.recorded import Recorded
from tests.support.sessions import bytes_of

TWINS = """
<ir_version: 10, opset_import: ["" : 18]>
twins (float[4] x) => (float[4] y)
{
    [left] a = Relu(x)
    [right] b = Relu(x)
    [sum] y = Add(a, b)
}
"""
ALIKE = TWINS.replace("Add(a, b)", "Abs(x)")
"""Nothing tells ``left`` and ``right`` apart but their names."""
SCRIPTS: dict[str, tuple[str, list[dict[str, JSON]]]] = {
    "names": (models.CHAIN, [
        {"edit": "rename_node", "scope": [], "node": "second", "name": "sum"},
        {"edit": "set_metadata", "scope": [], "nodes": ["sum", "last"], "key": "k", "value": "v"},
        {"edit": "rename_value", "scope": [], "value": "a", "name": "positive"},
        {"edit": "set_doc_string", "scope": [], "nodes": [">positive"], "text": "t"},
    ]),
    "made": (models.CHAIN, [
        {"edit": "insert_node", "scope": [], "value": "b", "op_type": "Neg",
         "users": [["third", 1], ["third", 0]]},
        {"edit": "add_node", "scope": [], "op_type": "Abs", "inputs": ["c"]},
        {"edit": "set_metadata", "scope": [], "nodes": [">Abs_output", ">b_Neg"],
         "key": "k", "value": "v"},
        {"undo": True},
        {"redo": True},
        {"edit": "delete_many", "nodes": [[[], "first"], [[], "third"]], "reconnect": True},
        {"edit": "set_elements", "tensor": {"initializer": "w"}, "scope": [], "start": 1,
         "values": [9.0]},
        {"edit": "delete_initializers", "scope": [], "names": ["unused"]},
    ]),
    "undone": (models.CHAIN, [
        {"edit": "rename_node", "scope": [], "node": "second", "name": "sum"},
        {"edit": "insert_node", "scope": [], "value": "b", "op_type": "Neg"},
        {"undo": True},
        {"undo": True},
        {"edit": "sort_nodes", "scope": []},
        {"edit": "set_metadata", "scope": [], "nodes": ["second"], "key": "k", "value": "v"},
        {"edit": "insert_node", "scope": [], "value": "b", "op_type": "Abs"},
    ]),
    "bodies": (models.BRANCHES, []),
    "processed": (models.CHAIN, [
        {"edit": "convert_terminals", "types": {"x": "float64", "float32": "float64"}},
        {"edit": "append_processing", "step": "softmax", "output": "y"},
        {"edit": "prepend_processing", "input": "x", "scale": 0.5},
        {"edit": "replace_nodes", "scope": [], "nodes": ["second"], "op_type": "P",
         "domain": "my", "inputs": ["a"], "outputs": ["b"], "types": {"b": "float32[N, 4]"}},
        {"edit": "cut_off", "nodes": ["third"], "outputs": {"b": "cut"}},
    ]),
}  # fmt: skip


def renamed(model: onnx.ModelProto, prefix: str) -> onnx.ModelProto:
    """Give every node and value of a model another name."""
    result = copy_of(model)
    for graph in graphs(result.graph):
        for node in graph.node:
            node.name = prefix + node.name
            node.input[:] = [name and prefix + name for name in node.input]
            node.output[:] = [name and prefix + name for name in node.output]
        for value in (*graph.input, *graph.output, *graph.value_info):
            value.name = prefix + value.name
        for tensor in graph.initializer:
            tensor.name = prefix + tensor.name
    return result


def graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from graphs(attribute.g)


def numbered(model: onnx.ModelProto) -> str:
    """Return a model with numbers for names, in the order in which they come."""
    numbers: dict[str, str] = {"": ""}
    result = copy_of(model)
    for graph in graphs(result.graph):
        for value in graph.input:
            value.name = numbers.setdefault(value.name, f"v{len(numbers)}")
        for tensor in graph.initializer:
            tensor.name = numbers.setdefault(tensor.name, f"v{len(numbers)}")
        del graph.value_info[:]
        for node in graph.node:
            node.name = ""
            for names in (node.input, node.output):
                names[:] = [numbers.setdefault(name, f"v{len(numbers)}") for name in names]
        for record in graph.output:
            record.name = numbers.setdefault(record.name, f"v{len(numbers)}")
    return str(result)


def saved(document: Document) -> onnx.ModelProto:
    return onnx.ModelProto.FromString(bytes_of(document))


def both(
    tmp_path: Path, base: onnx.ModelProto, target: onnx.ModelProto, lines: list[dict[str, JSON]]
) -> tuple[onnx.ModelProto, onnx.ModelProto, ReplayResult]:
    """Replay lines on a model, and on another one beside a fresh copy of the first."""
    onnx.save(base, tmp_path / "base.onnx")
    onnx.save(target, tmp_path / "target.onnx")
    documents = [Document.open(tmp_path / name) for name in ("base.onnx",) * 2 + ("target.onnx",)]
    plain = replay(documents[0], lines)
    assert not plain.refused
    result = replay(documents[2], lines, Relocation(documents[1], documents[2]))
    models_after = saved(documents[0]), saved(documents[2])
    assert result.refused or saved(documents[1]) == models_after[0]
    for document in documents:
        document.close()
    return *models_after, result


def branch_lines(model: onnx.ModelProto) -> list[dict[str, JSON]]:
    """Return edits in the first body of a model."""
    holder = next(node for node in model.graph.node if any(a.HasField("g") for a in node.attribute))
    attribute = next(a for a in holder.attribute if a.HasField("g"))
    inner = attribute.g.node[0]
    path: list[JSON] = [f"{holder.name or '>' + holder.output[0]}:{attribute.name}"]
    ref = inner.name or ">" + inner.output[0]
    return [
        {"edit": "rename_node", "scope": path, "node": ref, "name": "inside"},
        {"edit": "insert_node", "scope": path, "value": inner.output[0], "op_type": "Neg"},
        {"edit": "set_metadata", "scope": path, "nodes": ["inside"], "key": "k", "value": "v"},
    ]


@pytest.mark.parametrize("name", SCRIPTS)
def test_all_names_differ(tmp_path: Path, name: str) -> None:
    text, lines = SCRIPTS[name]
    base = models.parse(text)
    lines = lines or branch_lines(base)
    plain, found, result = both(tmp_path, base, renamed(base, "r_"), lines)
    assert not result.refused
    assert result.relocated
    assert numbered(found) == numbered(plain)


def test_a_function_that_the_target_does_not_have_hides_no_other(tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["" : 18, "f" : 1]>
    m (float[4] x) => (float[4] y) { [one] a = f.One(x) [two] b = f.Two(a) y = f.Three(b) }
    """ + "".join(
        f'<domain: "f", opset_import: ["" : 18]> {name} (p) => (q) {{ [{name}] h = Abs(p)'
        f" [end] q = {last}(h) }}"
        for name, last in (("One", "Neg"), ("Two", "Exp"), ("Three", "Sin"))
    )
    base, target = models.parse(text), models.parse(text)
    del target.functions[1]
    target.graph.node[1].CopyFrom(onnx.helper.make_node("Exp", ["a"], ["b"], "two"))
    line: dict[str, JSON]
    for function in target.functions:
        function.node[0].name = "begin"
        line = {"edit": "rename_node", "scope": [f"function f:{function.name}"],
                "node": function.name, "name": "found"}  # fmt: skip
        _, found, result = both(tmp_path, base, target, [line])
        assert not result.refused
        names = {one.name: one.node[0].name for one in found.functions}
        assert [name for name in names if names[name] == "found"] == [function.name]


def test_shifted_names(tmp_path: Path) -> None:
    """The name is there, but it is that of another node, as after a new export."""
    base = models.parse(models.CHAIN)
    target = models.parse(models.CHAIN)
    for node, name in zip(target.graph.node, ("zero", "first", "second", "third"), strict=True):
        node.name = name
    line: dict[str, JSON] = {
        "edit": "set_doc_string", "scope": [], "nodes": ["second"], "text": "sum"
    }  # fmt: skip
    _, found, result = both(tmp_path, base, target, [line])
    assert [node.doc_string for node in found.graph.node] == ["", "sum", "", ""]
    assert [(number, one.name, one.place) for number, one in result.relocated] == [
        (1, "second", "first")
    ]


def test_several_nodes_may_be_meant(tmp_path: Path) -> None:
    base = models.parse(ALIKE)
    lines: list[dict[str, JSON]] = [
        {"edit": "rename_node", "scope": [], "node": "left", "name": "l"},
        {"edit": "rename_node", "scope": [], "node": "sum", "name": "s"},
    ]
    _, found, result = both(tmp_path, base, renamed(base, "r_"), lines)
    assert [number for number, _ in result.refused] == [1]
    assert "several nodes are like it" in result.refused[0][1]
    assert [node.name for node in found.graph.node] == ["r_left", "r_right", "s"]


def test_a_name_that_is_there_decides_between_equals(tmp_path: Path) -> None:
    base, target = models.parse(TWINS), models.parse(TWINS)
    line: dict[str, JSON] = {"edit": "rename_node", "scope": [], "node": "right", "name": "r"}
    _, found, result = both(tmp_path, base, target, [line])
    assert not result.refused
    assert [node.name for node in found.graph.node] == ["left", "r", "sum"]


def test_a_script_names_its_model(tmp_path: Path) -> None:
    model = models.write(tmp_path, models.CHAIN)
    document = Document.open(model)
    document.apply("rename_node", scope=[], node="first", name="begin")
    (tmp_path / "scripts").mkdir()
    script = tmp_path / "scripts/edits.jsonl"
    export_script(document, script)
    document.close()
    text = script.read_text()
    assert json.loads(text)["made_on"]["model"] == f"../{model.name}"
    assert parse_script(text) == {
        1: {"edit": "rename_node", "scope": [], "node": "first", "name": "begin"}
    }
    named = known(base_file(text, script.parent))
    assert named.samefile(model)
    model.unlink()
    assert base_file(text, script.parent) is None


ALL = """
<ir_version: 10, opset_import: ["" : 18, "f" : 1]>
all (bool c, float[4] x, float[2] s) => (float[4] y, float[4] z)
<float[4] w = {1, 2, 3, 4}>
{
    [first] a = Relu(x)
    [second] b, , d = f.Three(a, w)
    [choose] y = If (c) <
        then_branch = yes () => (float[4] t) { [inner] h = Neg(a) [end] t = Add(h, x) },
        else_branch = no () => (float[4] e) { [other] e = Abs(b) }
    >
    [one] o = Sin(d)
    [two] p = Sin(d)
    [last] z = Cos(o)
}
<domain: "f", opset_import: ["" : 18]>
Three (p, q) => (r, s, t) { [sum] r = Add(p, q) s = Neg(r) t = Exp(r) }
"""
INSIDE: JSON = ["choose:then_branch"]
ARGUMENTS: dict[str, JSON] = {
    "scope": [], "node": "second", "nodes": ["first", ">b", 3, ["second", 1], [INSIDE, "inner"]],
    "value": "a", "values": ["b", "d"], "names": ["w", 5], "name": "x", "inputs": ["a", "", "no"],
    "outputs": {"d": "new"}, "by": "d", "behind": 7, "output": "y", "scores": "z", "input": "x",
    "links": {"w": "x", "y": 4}, "connect": {"a": "w"}, "types": {"b": "float", "int8": "w"},
    "layouts": {"x": "NHWC"}, "keep": ["a", "nothing"], "source": INSIDE, "users": "first",
    "positions": {"first": [1, 2], ">h": [3, 4]}, "tensor": {"initializer": "w"},
}  # fmt: skip


def lines_of_every_kind() -> Iterator[dict[str, JSON]]:
    for edit in (*relocation._VALUE_ARGUMENTS, *relocation._VALUE_KEYS):
        keys = dict.fromkeys(
            (*relocation._VALUE_ARGUMENTS.get(edit, ()), *relocation._VALUE_KEYS.get(edit, ()))
        )
        yield {"edit": edit, "scope": [], **{key: ARGUMENTS[key] for key in keys}}
    for key in (*relocation._NODE_ARGUMENTS, *relocation._SCOPE_ARGUMENTS):
        yield {"edit": "any", "scope": [], key: ARGUMENTS[key]}
    yield {"edit": "any", "scope": INSIDE, "nodes": ["inner", ">t", "#0", "first", ""]}
    yield {"edit": "set_input", "scope": INSIDE, "value": "h", "node": None}
    yield {"edit": "rename_value", "scope": INSIDE, "value": "a"}
    yield {"edit": "rename_value", "scope": ["function f:Three"], "value": "r", "node": "sum"}
    scopes: list[JSON] = [["nowhere:then_branch"], "main", [1]]
    for scope in scopes:
        yield {"edit": "rename_value", "scope": scope, "value": "a", "node": "first"}
    yield {"edit": "rename_value", "value": "d", "node": {"node": "first", "attribute": "k"}}
    yield {"edit": "any", "nodes": [["first"], [1, 2], [["a"], 2], None], "tensor": {"node": 1}}
    yield {"edit": "any", "tensor": {"initializer": 1}}
    for name in ("one", "two", "#4", ">o", "last"):
        yield {"edit": "any", "node": name}
    changes: list[JSON] = [{"nodes": ["first"], "attribute": "k"}, {"attribute": "l"}, "first"]
    yield {"edit": "set_attributes", "changes": changes}
    yield {"edit": "set_attributes", "changes": {"nodes": "first"}}
    yield {"edit": "other", "changes": changes}
    steps: list[JSON] = [
        ["rename_value", {"value": "a", "node": "first"}], ["rename_value", "a"], "first",
        ["delete_many", {"nodes": [[[], "second"], [INSIDE, "end"]]}, 3],
        ["delete_nodes", {"nodes": ["second"]}],
    ]  # fmt: skip
    yield {"edit": "repair", "steps": steps, "nodes": ["first"]}
    yield {"edit": "repair", "steps": "first"}
    yield {"edit": 1, "node": "first"}
    yield {"undo": True}


def test_what_is_found_for_each_name_of_a_line(recorded: Recorded) -> None:
    base = models.parse(ALL)
    target = renamed(base, "r_")
    del target.graph.node[1].output[2:]
    for node in target.graph.node[3:5]:
        node.input[:] = ["r_b"]
    told = {}
    for line in lines_of_every_kind():
        found = Relocation(Document(copy_of(base)), Document(copy_of(target)))
        try:
            entry, moved = found.located(line)
        except EditError as error:
            told[json.dumps(line)] = str(error)
            continue
        names = "".join(f"\n{one.kind} {one.name} -> {one.place}" for one in moved)
        told[json.dumps(line)] = json.dumps(entry) + names
    recorded("whole_relocations", told)
