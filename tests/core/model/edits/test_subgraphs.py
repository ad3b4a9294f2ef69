"""Bodies of nodes are added, copied, moved and deleted, and what they capture stays what it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from dld_tui.core.errors import EditError
from dld_tui.core.model.document import Document
from dld_tui.core.types import JSON
from tests.support import body_models, models
from tests.support.sessions import bytes_of, node_in, opened, run


def without_body(folder: Path, node: str, attribute: str) -> Document:
    document = opened(folder, body_models.LOOP)
    document.apply("delete_subgraph", scope=[], node=node, attribute=attribute)
    return document


def test_a_new_loop_body_passes_its_state_on_and_runs(tmp_path: Path) -> None:
    document = without_body(tmp_path, "repeat", "body")
    assert node_in(document, "repeat").children == {}
    document.apply("add_subgraph", scope=[], node="repeat", attribute="body")
    body = document.scope_at(["repeat:body"])
    assert body.inputs == ("iteration", "condition", "state_0")
    assert body.outputs == ("condition_out", "state_0_out")
    assert body.value_type("iteration").text == "int64"  # type: ignore[union-attr]
    assert body.value_type("state_0").text == "float32[?]"  # type: ignore[union-attr]
    data = bytes_of(document)
    onnx.checker.check_model(onnx.ModelProto.FromString(data), full_check=True)
    x = np.array([1, 2], np.float32)
    y, *_ = run(data, n=np.array(3), go=np.array(True), x=x, rows=np.zeros((3, 2), np.float32))
    np.testing.assert_array_equal(y, x)


def test_a_new_scan_body_has_its_states_and_items(tmp_path: Path) -> None:
    document = without_body(tmp_path, "scan", "body")
    document.apply("add_subgraph", scope=[], node="scan", attribute="body")
    body = document.scope_at(["scan:body"])
    assert body.inputs == ("state_0", "scan_0")
    assert body.value_type("scan_0").text == "float32[2]"  # type: ignore[union-attr]
    rows = np.arange(6, dtype=np.float32).reshape(3, 2)
    feeds = {"n": np.array(0), "go": np.array(True), "x": np.ones(2, np.float32), "rows": rows}
    _, total, found = run(bytes_of(document), **feeds)
    np.testing.assert_array_equal(total, [2, 2])
    np.testing.assert_array_equal(found, rows)


def test_a_new_branch_has_the_outputs_of_the_if(tmp_path: Path) -> None:
    document = opened(tmp_path, models.BRANCHES)
    with pytest.raises(EditError, match="has a body already"):
        document.apply("add_subgraph", scope=[], node="choose", attribute="then_branch")
    document.apply("delete_subgraph", scope=[], node="choose", attribute="then_branch")
    document.apply("add_subgraph", scope=[], node="choose", attribute="then_branch")
    body = document.scope_at(["choose:then_branch"])
    assert (body.inputs, body.outputs, body.nodes) == ((), ("y_branch",), [])
    assert body.value_type("y_branch").text == "float32[N, 4]"  # type: ignore[union-attr]
    document.apply(
        "add_node", scope=["choose:then_branch"], op_type="Neg", inputs=["a"], outputs=["n"]
    )
    assert [use.node.op_type for use in document.main.users("a")] == ["Abs", "Neg"]


def test_a_body_with_chosen_inputs_and_outputs(tmp_path: Path) -> None:
    document = opened(tmp_path, models.CHAIN)
    document.apply(
        "add_subgraph", scope=[], node="last", attribute="f", inputs=["p", "x"], outputs=["p"]
    )
    body = document.scope_at(["last:f"])
    assert body.inputs == ("p", "x_1"), "x is a value of the graph already"
    assert body.nodes[0].inputs == ("p",)
    assert body.outputs == body.nodes[0].outputs


def test_a_copy_keeps_what_it_captures_and_gets_names_of_its_own(tmp_path: Path) -> None:
    document = opened(tmp_path, models.BRANCHES)
    document.apply("delete_subgraph", scope=[], node="choose", attribute="else_branch")
    document.apply(
        "copy_subgraph", scope=[], node="choose", attribute="else_branch",
        source=["choose:then_branch"],
    )  # fmt: skip
    copy = document.scope_at(["choose:else_branch"])
    assert copy.nodes[0].inputs == ("a",)
    assert set(copy.captured()) == {"a"}
    assert not {"h", "t"} & {name for node in copy.nodes for name in node.outputs}
    x = np.array([[1, -2, 3, -4]], np.float32)
    first, second = (
        run(bytes_of(document), choice=np.array(flag), x=x)[0] for flag in (True, False)
    )
    np.testing.assert_array_equal(first, second)


def test_a_copy_in_the_place_of_a_body(tmp_path: Path) -> None:
    document = opened(tmp_path, models.BRANCHES)
    old = document.scope_at(["choose:else_branch"])
    document.apply(
        "copy_subgraph", scope=[], node="choose", attribute="else_branch",
        source=["choose:then_branch"], replace=True,
    )  # fmt: skip
    copy = document.scope_at(["choose:else_branch"])
    assert [node.op_type for node in copy.nodes] == ["Neg", "Add"]
    document.undo()
    assert document.scope_at(["choose:else_branch"]) is old
    document.redo()
    assert document.scope_at(["choose:else_branch"]) is copy


@pytest.mark.parametrize(
    ("setup", "reason"),
    [
        ({"node": "#0", "scope": ["function local:f"]}, "'a', which is not visible there"),
        ({"node": "pre", "scope": []}, "'a', which is computed from 'pre'"),
        ({"node": "late", "scope": []}, None),
    ],
)
def test_a_copy_is_refused_where_a_captured_value_is_not_the_same(
    tmp_path: Path, setup: dict[str, object], reason: str | None
) -> None:
    text = models.BRANCHES.replace("}\n    >\n}", "}\n    >\n    [late] late = Relu(y)\n}")
    text = text.replace('"" : 18', '"" : 18, "local" : 1')
    text += '<domain: "local", opset_import: ["" : 18]> f (v) => (r) { r = Relu(v) }'
    document = opened(tmp_path, text)
    arguments = {"attribute": "extra", "source": ["choose:then_branch"], **setup}
    if reason is None:
        document.apply("copy_subgraph", **arguments)  # type: ignore[arg-type]
        assert "extra" in node_in(document, "late").children
        return
    with pytest.raises(EditError, match=reason):
        document.apply("copy_subgraph", **arguments)  # type: ignore[arg-type]
    assert not document.history.done


def test_a_copy_is_refused_where_the_name_means_another_value(tmp_path: Path) -> None:
    text = models.BRANCHES.replace("[shadow] x = Abs(a)", "[shadow] a = Abs(x)")
    document = opened(tmp_path, text.replace("e = Mul(x, x)", "e = Mul(a, a)"))
    with pytest.raises(EditError, match="'a', which is a different value there"):
        document.apply(
            "copy_subgraph", scope=["choose:else_branch"], node="#1", attribute="extra",
            source=["choose:then_branch"],
        )  # fmt: skip


def names(document: Document) -> list[str]:
    model = onnx.ModelProto.FromString(bytes_of(document))
    return [graph.output[0].name for graph in model.graph.node[-1].attribute[0].graphs]


def test_lists_of_bodies(tmp_path: Path) -> None:
    document = Document.open(body_models.write(tmp_path, "SWITCH"))
    about = {"scope": [], "node": "pick", "attribute": "cases"}
    first = document.scope_at(["pick:cases[0]"])
    states = [bytes_of(document)]
    for edit, arguments in (
        ("move_subgraph", {"index": 0, "to": 2}),
        ("delete_subgraph", {"index": 1}),
        ("add_subgraph", {"outputs": ["fresh"], "index": 1}),
        ("copy_subgraph", {"source": ["pick:cases[2]"]}),
        ("delete_subgraph", {}),
    ):
        document.apply(edit, **about, **arguments)  # type: ignore[arg-type]
        states.append(bytes_of(document))
        if edit == "move_subgraph":
            assert names(document) == ["case_1", "case_2", "case_0"]
            assert document.scope_at(["pick:cases[2]"]) is first, "scopes keep their identity"
    document.undo()
    assert names(document) == ["case_1", "fresh", "case_0", "case_0_1"]
    document.redo()
    for state in reversed(states[:-1]):
        document.undo()
        assert bytes_of(document) == state
    assert first.path == ("pick:cases[0]",)
    for state in states[1:]:
        document.redo()
        assert bytes_of(document) == state


def test_a_new_list_of_bodies(tmp_path: Path) -> None:
    document = opened(tmp_path, models.CHAIN)
    document.apply("add_subgraph", scope=[], node="last", attribute="all", many=True)
    document.apply("add_subgraph", scope=[], node="last", attribute="all", outputs=["o"])
    assert [scope.path for scope in document.main.children()] == [
        ("last:all[0]",),
        ("last:all[1]",),
    ]
    for edit, arguments, reason in (
        ("move_subgraph", {"index": 0, "to": 2}, "no place 2 in a list of 2"),
        ("delete_subgraph", {"index": 5}, "no place 5"),
        ("add_subgraph", {"index": 7}, "no place 7"),
    ):
        with pytest.raises(EditError, match=reason):
            document.apply(edit, scope=[], node="last", attribute="all", **arguments)
    document.apply("set_attribute", scope=[], node="last", attribute="number", kind="int", value=1)
    for attribute in ("nothing", "number"):
        with pytest.raises(EditError, match=f"no body '{attribute}'"):
            document.apply("delete_subgraph", scope=[], node="last", attribute=attribute)


def test_a_header_edited_before_its_body_is_deleted_comes_back_as_it_was(tmp_path: Path) -> None:
    document = opened(tmp_path, models.BRANCHES)
    before = bytes_of(document)
    then: list[JSON] = ["choose:then_branch"]
    document.apply("set_doc_string", scope=then, text="words")
    document.apply("set_metadata", scope=then, key="k", value="v")
    document.apply("delete_subgraph", scope=[], node="choose", attribute="then_branch")
    for _ in range(3):
        document.undo()
    assert bytes_of(document) == before
