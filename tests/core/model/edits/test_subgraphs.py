"""Bodies of nodes are added, copied, moved and deleted, and what they capture stays what it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx

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
