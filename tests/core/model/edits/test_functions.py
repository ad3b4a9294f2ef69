"""Local functions are added, renamed with their instances, duplicated and deleted."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import onnx
import pytest

from dld_tui.core.errors import EditError
from dld_tui.core.model.document import Document
from dld_tui.core.model.document.local_functions import calls_itself, instances, key_of, recursive
from dld_tui.core.model.edits.subgraphs import Names
from dld_tui.core.types import JSON
from tests.support import body_models, models
from tests.support.sessions import bytes_of, node_in, opened, run

LEAKY: list[JSON] = ["function local:leaky"]
FEEDS = {"x": np.array([-3, 1, 4], np.float32), "z": np.array([1, -2, 3], np.float32)}


def model_of(document: Document) -> onnx.ModelProto:
    return onnx.ModelProto.FromString(bytes_of(document))


def test_instances_are_found_in_functions_and_subgraphs_too(tmp_path: Path) -> None:
    document = opened(tmp_path, body_models.SHAPES)
    calls = instances(document)
    names = {key: [node.name for node in nodes] for key, nodes in calls.items()}
    assert names == {
        ("local", "leaky", ""): ["first", "second", "inner"],
        ("local", "outer", ""): ["third"],
    }


def test_recursive_functions_are_named(tmp_path: Path) -> None:
    assert recursive(opened(tmp_path, body_models.SHAPES)) == set()
    found = recursive(opened(tmp_path, body_models.RECURSIVE))
    assert found == {("local", "ping", ""), ("local", "pong", "")}


def test_a_new_function_takes_in_custom_operators_of_its_name(tmp_path: Path) -> None:
    document = opened(tmp_path, models.CHAIN)
    document.apply("replace_nodes", scope=[], nodes=["second"], op_type="Bias", domain="mine")
    done = document.apply(
        "add_function", name="Bias", domain="mine", inputs=["v", "b"], outputs=["q"]
    )
    assert done.title == "add function 'mine.Bias'; 1 node call it"
    scope: list[JSON] = ["function mine:Bias"]
    document.apply("add_node", scope=scope, op_type="Add", inputs=["v", "b"], outputs=["q"])
    onnx.checker.check_model(model_of(document), full_check=True)
    assert document.opset_imports == {"": 18, "mine": 1}


def test_an_old_model_gets_the_ir_version_that_functions_need(tmp_path: Path) -> None:
    document = opened(tmp_path, models.CHAIN.replace("ir_version: 10", "ir_version: 6"))
    document.apply("add_function", name="f")
    assert document.model.ir_version == 8
    document.apply("set_function_attribute", scope=["function local:f"], attribute="k",
                   kind="int", value=1)  # fmt: skip
    assert document.model.ir_version == 9
    document.apply("duplicate_function", scope=["function local:f"], name="f", overload="o")
    assert document.model.ir_version == 10


def test_a_new_function_imports_what_the_model_does_not(tmp_path: Path) -> None:
    """ONNX Runtime knows its own operators in a model that does not import their domain."""
    document = opened(
        tmp_path,
        """<ir_version: 10, opset_import: ["" : 18]>
        g (float[2] x) => (float[2] y) { [one] y = com.microsoft.QuickGelu (x) }""",
    )
    document.apply("make_function", scope=[], nodes=["one"], name="Part")
    run(document, x=FEEDS["x"][:2])


def test_nodes_of_a_function_name_the_operators_of_onnx_as_its_imports_do(tmp_path: Path) -> None:
    path = models.write(tmp_path, models.CHAIN)
    model = onnx.load(path)
    model.opset_import[0].domain = "ai.onnx"
    for node in model.graph.node:
        node.domain = "ai.onnx"
    onnx.save(model, path)
    document = Document.open(path)
    first = document.main.nodes[0]
    document.apply("make_function", scope=[], nodes=[first.ref], name="part")
    (function,) = model_of(document).functions
    assert [entry.domain for entry in function.opset_import] == [""]
    assert [node.domain for node in function.node] == [""]


def test_rename_takes_instances_and_imports_along(tmp_path: Path) -> None:
    document = opened(tmp_path, body_models.SHAPES)
    expected = run(document, **FEEDS)
    done = document.apply("rename_function", scope=LEAKY, name="soft", domain="other")
    assert done.title == "rename function 'local.leaky' to 'other.soft'; 3 instances follow"
    assert document.opset_imports == {"": 18, "local": 1, "other": 1}
    outer = document.scope_at(["function local:outer"])
    assert {e.domain: e.version for e in outer.proto.opset_import} == {"": 18, "other": 1}  # type: ignore[union-attr]
    onnx.checker.check_model(model_of(document), full_check=True)
    for value, wanted in zip(run(document, **FEEDS), expected, strict=True):
        np.testing.assert_array_equal(value, wanted)
    document.apply("rename_function", scope=["function local:outer"], domain="other")
    assert document.opset_imports == {"": 18, "other": 1}, "nothing needs local any more"
    document.apply("rename_function", scope=["function other:soft"], overload="b")
    assert {key_of(f)[2] for f in document.functions} == {"", "b"}
    assert node_in(document, "first").overload == "b"


def test_rename_is_refused_where_operators_would_become_instances(tmp_path: Path) -> None:
    document = opened(tmp_path, body_models.SHAPES)
    document.apply("replace_nodes", scope=[], nodes=["pre"], op_type="Plug", domain="local")
    for arguments, reason in (
        ({"name": "Plug"}, "1 node of operator 'local.Plug' would become instances"),
        ({"name": "outer"}, "already a function 'local.outer'"),
        ({"name": ""}, "needs a name"),
    ):
        with pytest.raises(EditError, match=reason):
            document.apply("rename_function", scope=LEAKY, **arguments)
    with pytest.raises(EditError, match="not a function"):
        document.apply("rename_function", scope=[], name="f")


def test_duplicate_and_delete(tmp_path: Path) -> None:
    document = opened(tmp_path, body_models.SHAPES)
    document.apply("duplicate_function", scope=["function local:outer"], name="copy")
    original, copy = (document.scope_at([f"function local:{n}"]) for n in ("outer", "copy"))
    assert [node.name for node in copy.nodes] == [node.name for node in original.nodes]
    assert copy.nodes[0] is not original.nodes[0]
    assert [scope.path for scope in copy.children()] == [
        ("function local:copy", "choose:then_branch"),
        ("function local:copy", "choose:else_branch"),
    ]
    onnx.checker.check_model(model_of(document))
    done = document.apply("delete_function", scope=LEAKY)
    assert done.title == "delete function 'local.leaky'; 4 instances now custom"
    assert [node.op_type for node in document.main.nodes] == ["Relu", "leaky", "leaky", "outer"]
    document.undo()
    assert run(document, **FEEDS)


def test_taking_an_input_of_a_function_away_takes_it_from_the_instances(tmp_path: Path) -> None:
    document = opened(tmp_path, body_models.SHAPES)
    document.apply("remove_input", scope=LEAKY, name="x")
    assert node_in(document, "second").inputs == ("a",)
    assert document.scope_at(["function local:outer"]).find("inner").inputs == ("f",)  # type: ignore[union-attr]
    document.apply("remove_output", scope=LEAKY, name="r")
    assert node_in(document, "first").outputs == ()


@pytest.mark.parametrize("seed", range(20))
def test_a_function_calls_itself_where_the_calls_of_all_lead_back(seed: int) -> None:
    random = Random(seed)
    model = onnx.helper.make_model(
        onnx.helper.make_graph([], "g", [], []),
        functions=[
            onnx.helper.make_function(
                "d", f"f{at}", ["x"], ["y"],
                [
                    onnx.helper.make_node(f"f{random.randrange(9)}", ["x"], ["y"], domain="d")
                    for _ in range(random.randrange(3))
                ],
                [],
            )
            for at in range(7)  # some calls are of none
        ],
    )  # fmt: skip
    document = Document(model)
    endless = {key_of(one) for one in document.functions if calls_itself(one)}
    assert endless == recursive(document)


def test_names_go_on_from_those_that_are_taken(tmp_path: Path) -> None:
    home = opened(tmp_path, body_models.SHAPES).main
    names = Names(home, {"t", "u"})
    assert [names.take("t") for _ in range(70)] == [f"t_{number}" for number in range(1, 71)]
    assert names.take("new") == "new"
    # A name in between that is free may stay so; none is given twice.
    names = Names(home, {"t", "t_1", "t_2", "t_4"})
    given = [names.take("t") for _ in range(9)]
    assert len(set(given)) == 9
    assert not {"t", "t_1", "t_2", "t_4"} & {*given}


def test_calls_keep_all_outputs_of_a_function(tmp_path: Path) -> None:
    """ONNX Runtime and onnx's checker reject calls with fewer."""
    text = """<ir_version: 10, opset_import: ["" : 20, "f" : 1]>
    g (float[2] x) => (float[2] y) { y = f.Two(x) }
    <domain: "f", opset_import: ["" : 20]> Two (a) => (c) { b = Neg(a) c = Exp(b) }"""
    document = Document.open(models.write(tmp_path, text))
    document.apply("add_output", scope=["function f:Two"], name="b")
    assert document.main.nodes[0].outputs == ("y", "")
    document.apply("trim_links", scope=[], node=">y")
    document.apply("set_output", scope=[], node=">y", index=1, value="z")
    document.apply("set_output", scope=[], node=">y", index=1, value="")
    assert document.main.nodes[0].outputs == ("y", "")
    onnx.checker.check_model(onnx.ModelProto.FromString(bytes_of(document)), full_check=True)
