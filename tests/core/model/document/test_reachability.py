from __future__ import annotations

from pathlib import Path

from dld_tui.core.model.document import Document, Node, traversal
from tests.support import models

DIAMOND = """
<ir_version: 10, opset_import: ["" : 18]>
diamond (float[4] x, bool choice) => (float[4] y)
{
    [top] a = Relu(x)
    [left] b = Neg(a)
    [right] c = Abs(a)
    [join] d = Add(b, c)
    [apart] e = Sin(x)
    [fork] f = If (choice) <
        then_branch = yes () => (float[4] t) { [inner] t = Cos(e) },
        else_branch = no () => (float[4] u) { [other] u = Identity(d) }
    >
    [last] y = Add(f, d)
}
"""


def names(nodes: set[Node]) -> set[str]:
    return {node.name for node in nodes}


def diamond(folder: Path) -> dict[str, Node]:
    document = Document.open(models.write(folder, DIAMOND))
    return {node.name: node for scope in document.scopes() for node in scope.nodes}


def test_between_takes_all_paths_and_those_through_subgraphs(tmp_path: Path) -> None:
    found = diamond(tmp_path)
    assert names(traversal.between([found["top"], found["join"]])) == {
        "top",
        "left",
        "right",
        "join",
    }
    assert names(traversal.between([found["apart"], found["last"]])) == {"apart", "fork", "last"}
    assert names(traversal.between([found["left"], found["right"]])) == {"left", "right"}


def test_upstream_and_downstream(tmp_path: Path) -> None:
    found = diamond(tmp_path)
    assert names(traversal.upstream_of([found["fork"]])) == {
        "fork", "apart", "join", "left", "right", "top",
    }  # fmt: skip
    assert names(traversal.downstream_of([found["apart"]])) == {"apart", "fork", "last"}
    assert names(traversal.downstream_of([found["inner"]])) == {"inner"}


def test_terminals_know_captures_and_unused_values(tmp_path: Path) -> None:
    found = diamond(tmp_path)
    main = found["top"].scope
    assert traversal.inputs_and_outputs(main, [found["top"], found["left"]]) == (["x"], ["a", "b"])
    assert traversal.inputs_and_outputs(main, [found["join"], found["fork"]]) == (
        ["b", "c", "choice", "e"], ["d", "f"],
    )  # fmt: skip


def test_feeding_stops_at_what_is_given(tmp_path: Path) -> None:
    main = diamond(tmp_path)["top"].scope
    assert [node.name for node in traversal.feeding(main, ["d"], ["b"])] == ["top", "right", "join"]
    assert [node.name for node in traversal.feeding(main, ["f"], ["d"])] == ["apart", "fork"]
