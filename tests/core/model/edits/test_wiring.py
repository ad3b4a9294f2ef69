"""The choices for a new node, and the edit that they become."""

from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.errors import DldError
from dld_tui.core.model.document import Document
from dld_tui.core.model.document.operator_listing import operator_palette
from dld_tui.core.model.document.summary import opset_imports
from dld_tui.core.model.edits.wiring import NewInitializer, NodeWiring, Setting, parse_initializer
from dld_tui.core.types import JSON
from tests.support import models
from tests.support.sessions import document_of, tensor_in


def wiring(
    folder: Path, operator: str, source: str = "a", *, domain: str = "", text: str = models.CHAIN
) -> NodeWiring:
    document = Document.open(models.write(folder, text))
    for name in ("a", "b", "c"):
        if document.main.producer(name) is not None:
            document.apply("set_value_type", scope=[], value=name, dtype="float32", dims=["N", 4])
    item = operator_palette(document.main).operator(operator, domain)
    assert item is not None
    return NodeWiring(document.main, item, source)


def test_the_first_input_that_takes_it_gets_the_source(tmp_path: Path) -> None:
    add = wiring(tmp_path, "Add")
    assert add.inputs == ["a", ""]
    assert add.missing() == ["input B"]
    where = wiring(tmp_path, "Where")
    assert where.inputs == ["", "a", ""], "the condition is of type bool"
    assert wiring(tmp_path, "Constant").inputs == []


def test_types_are_compared_with_the_other_inputs(tmp_path: Path) -> None:
    add = wiring(tmp_path, "Add")
    assert add.why_not(1, "w") is None
    document = document_of(add.scope)
    document.apply("set_value_type", scope=[], value="c", dtype="int64", dims=["N", 4])
    assert add.why_not(1, "c") == "is int64; T is float32"
    assert add.likely_type(1) == "float32"
    assert wiring(tmp_path, "Reshape").likely_type(1) == "int64"


def test_variadic_inputs_grow(tmp_path: Path) -> None:
    concat = wiring(tmp_path, "Concat")
    assert concat.slots == 2
    concat.connect(1, "b")
    assert concat.slots == 3
    assert concat.is_required(0)
    assert not concat.is_required(2)
    assert concat.missing() == ["attribute axis"]
    concat.attributes["axis"] = Setting("int", 1, "1")
    assert concat.edit().arguments["attributes"] == {"axis": {"kind": "int", "value": 1}}
    concat.connect(1, "")
    assert concat.edit().arguments["inputs"] == ["a"]


def test_optional_inputs_may_be_left_out(tmp_path: Path) -> None:
    clip = wiring(tmp_path, "Clip")
    clip.connect(2, "w")
    assert clip.missing() == []
    assert clip.edit().arguments["inputs"] == ["a", "", "w"]


def test_without_its_source_it_is_not_inserted(tmp_path: Path) -> None:
    relu = wiring(tmp_path, "Relu")
    assert relu.users == 1
    relu.inserts = True
    relu.connect(0, "b")
    assert not relu.inserts
    assert wiring(tmp_path, "Relu", "").users == 0


@pytest.mark.broad
def test_outputs_and_bodies(tmp_path: Path) -> None:
    assert wiring(tmp_path, "Relu").output_limits == (1, 1)
    split = wiring(tmp_path, "Split")
    assert split.output_limits[0] == 1
    assert split.output_limits[1] > 1
    split.outputs = 3
    assert split.edit().arguments["outputs"] == 3
    assert wiring(tmp_path, "If").bodies == ["else_branch", "then_branch"]
    assert wiring(tmp_path, "If").edit().arguments["bodies"] == ["else_branch", "then_branch"]


def test_an_operator_set_that_is_not_imported_comes_with_it(tmp_path: Path) -> None:
    scaler = wiring(tmp_path, "Scaler", domain="ai.onnx.ml")
    assert scaler.edit().arguments["opset"] == 5
    document_of(scaler.scope).apply(scaler.edit())
    entries = {entry.domain: entry for entry in opset_imports(document_of(scaler.scope))}
    assert (entries["ai.onnx.ml"].version, entries["ai.onnx.ml"].used_by) == (5, 1)


def test_a_new_initializer_comes_with_it(tmp_path: Path) -> None:
    add = wiring(tmp_path, "Add")
    add.create(1, parse_initializer("float32[4] normal"))
    assert add.missing() == []
    assert add.why_not(1, add.inputs[1]) is None
    document = document_of(add.scope)
    document.apply(add.edit())
    tensor = tensor_in(document, "Add_B")
    assert (tensor.dtype, tensor.shape) == ("float32", (4,))
    assert document.main.nodes[1].inputs == ("a", "Add_B")
    document.undo()
    assert document.main.initializer("Add_B") is None


def test_new_initializers_have_names_of_their_own_and_go_when_replaced(tmp_path: Path) -> None:
    clip = wiring(tmp_path, "Concat")
    clip.create(1, parse_initializer("float32[4]"))
    clip.create(2, parse_initializer("int64[1] 3"))
    assert len(set(clip.inputs)) == 3
    assert clip.why_not(2, clip.inputs[2]) == "is int64; T is float32"
    clip.connect(2, "b")
    assert list(clip.created) == [clip.inputs[1]]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("float32[2, 3]", NewInitializer("float32", (2, 3), {"kind": "zeros"})),
        ("f16[1] zeros", NewInitializer("float16", (1,), {"kind": "zeros"})),
        ("int64[2] 1 -1", NewInitializer("int64", (2,), {"kind": "values", "values": [1, -1]})),
        ("float32 0.5", NewInitializer("float32", (), {"kind": "values", "values": [0.5]})),
        ("float32[2] 1, 2", NewInitializer("float32", (2,), {"kind": "values", "values": [1, 2]})),
    ],
)
def test_initializers_as_text(text: str, wanted: NewInitializer) -> None:
    assert parse_initializer(text) == wanted


@pytest.mark.parametrize(
    "text", ["", "float32[N]", "nothing[2]", "float32[2] many", "float32[...]"]
)
def test_texts_that_are_no_initializer(text: str) -> None:
    with pytest.raises(DldError):
        parse_initializer(text)


def test_random_ones_have_a_range_and_a_seed() -> None:
    fill: dict[str, JSON] = {"kind": "uniform", "low": 0, "high": 127, "seed": 0}
    assert parse_initializer("int8[4] uniform").fill == fill


def test_a_custom_operator_is_wired_as_it_was_seen(tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["" : 18, "own" : 1]>
    custom (float[N] a) => (float[N] y) { y, z = own.Plugin<p = 1>(a, a) }"""
    plugin = wiring(tmp_path, "Plugin", domain="own", text=text)
    assert (plugin.inputs, plugin.outputs, plugin.missing()) == (["a", ""], 2, [])
    assert plugin.slots == 2
    plugin.connect(1, "a")
    assert plugin.slots == 3


def test_imports_with_their_uses(tmp_path: Path) -> None:
    text = models.FUNCTIONS.replace('"local" : 1]', '"local" : 1, "idle" : 3]', 1)
    document = Document.open(models.write(tmp_path, text))
    found = {entry.domain: entry for entry in opset_imports(document)}
    assert {name: (e.version, e.used_by) for name, e in found.items()} == {
        "": (18, 1), "local": (1, 1), "idle": (3, 0)
    }  # fmt: skip
    assert found["idle"].newest is None
    document.apply("add_node", scope=[], op_type="P", domain="missing", inputs=["x"])
    last = opset_imports(document)[-1]
    assert last.version is not None or last.domain == "missing"
