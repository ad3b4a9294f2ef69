"""The explorer's folds when another model takes the place of the document's."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from dld_tui.core.model.document import Document
from dld_tui.core.model.edits.model_swap import keep_model
from dld_tui.widgets.explorer.state import ExplorerModel, model_anew
from tests.support import models

NESTED = """
<ir_version: 10, opset_import: ["" : 18, "here" : 1]>
nested (float[N] x, bool choice) => (float[N] y)
{
    [partQone] a = Relu(x)
    [partQtwo] b = here.Twice(a)
    [otherQone] c = Neg(b)
    [otherQtwo] d = Neg(c)
    [choose] y = If (choice) <
        then_branch = yes () => (float[N] t) { [inQleft] s = Relu(d) [inQright] t = Relu(s) },
        else_branch = no () => (float[N] e) { [right] e = Neg(d) }
    >
}
<domain: "here", opset_import: ["" : 18]>
Twice (p) => (q) { [fQone] r = Add(p, p) [fQtwo] q = Neg(r) }
"""


def write(folder: Path, text: str, name: str = "model.onnx") -> Path:
    """Write a model; the texts of models have no slash in a name."""
    path = models.write(folder, text, name)
    path.write_bytes(path.read_bytes().replace(b"Q", b"/"))
    return path


def folds(model: ExplorerModel) -> list[tuple[str, bool]]:
    items = model.rows().items
    return [(item.label, model.is_unfolded(item)) for item in items if model.can_unfold(item)]


def test_branches_stay_folded_and_unfolded_by_their_names(tmp_path: Path) -> None:
    path = write(tmp_path, NESTED)
    changed = NESTED.replace("[otherQtwo] d = Neg(c)", "[more] m = Neg(c) [otherQtwo] d = Neg(m)")
    made = write(tmp_path, changed, "made.onnx")
    with closing(Document.open(path)) as document:
        explorer = ExplorerModel(document)
        for row in range(30):
            items = explorer.rows().items
            if row < len(items) and explorer.can_unfold(items[row]):
                explorer.set_unfolded(items[row], row % 2 == 0)
        explorer.set_constants([document.main.nodes[0], document.main.nodes[2]], True)
        before = folds(explorer)
        assert {unfolded for _, unfolded in before} == {True, False}
        document.apply("replace_model", model=keep_model(document, made), title="convert it")
        again = model_anew(explorer)
        assert folds(again) == before
        kept = {document.main.nodes[0], document.main.nodes[2]}
        assert {entry.name for entry in again.exceptions} == {entry.name for entry in kept}
        assert again.exceptions <= set(document.main.nodes)
        assert [entry.label for entry in again.entries(document.main)].count("more") == 1
        document.undo()
        assert folds(model_anew(again)) == before


def test_what_is_gone_is_forgotten(tmp_path: Path) -> None:
    made = models.write(tmp_path, models.CHAIN, "made.onnx")
    with closing(Document.open(write(tmp_path, NESTED))) as document:
        explorer = ExplorerModel(document)
        for item in explorer.rows().items:
            if explorer.can_unfold(item):
                explorer.set_unfolded(item, False)
        for scope in document.scopes():
            explorer.set_unfolded(explorer.branch_of(scope), True)
        document.apply("replace_model", model=keep_model(document, made), title="convert it")
        again = model_anew(explorer)
        assert all(key[1] is document.main for key in again.unfolded)  # type: ignore[index]
        assert len(again.rows()) == 5
