"""What dialogs about nodes show after each key and give (``walks_of_node_dialogs.txt``)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Any

import pytest
import textual

from dld_tui.core.errors import UsageError
from dld_tui.core.model.document import Document, Node
from dld_tui.core.model.document.operator_listing import OperatorPalette
from dld_tui.core.model.document.parts.extraction import extract_part
from dld_tui.core.model.document.transactions import Edit
from dld_tui.core.model.edits.wiring import NodeWiring
from dld_tui.core.model.rewrite.query import Completion
from dld_tui.core.model.rewrite.rule import known_rules, rule_names
from dld_tui.widgets.dialogs.nodes import BatchDialog, ExtractDialog, RewriteDialog, groups_of
from dld_tui.widgets.dialogs.search import PickDialog, PickItem, TickDialog
from dld_tui.widgets.dialogs.wiring import (
    AddNode,
    NodePicker,
    TerminalPicker,
    ValuePicker,
    WiringDialog,
)
from tests.support import models
from tests.support.recorded import Recorded
from tests.support.tui import ESCAPE
from tests.support.walks import Dialogs, walked_dialogs

pytestmark = [
    pytest.mark.broad,
    pytest.mark.skipif(textual.__version__ != "8.2.8", reason="written with Textual 8.2.8"),
]

NET = """
<ir_version: 10, opset_import: ["" : 18, "local" : 1]>
net (bool choice, float[1, 2, 4, 4] x, int64[1] axes) => (float[1, 2, 4, 4] y, float[1, 2, 1, 1] z)
<float[2, 2, 1, 1] w = {1, 2, 3, 4}, float[2] bias = {5, 6}>
{
    [one] a = Conv <group = 1, kernel_shape = [1, 1]> (x, w, bias)
    [two] b = Conv <group = 1, pads = [0, 0, 0, 0], auto_pad = "NOTSET"> (a, w)
    [three] c = Conv (b, w)
    [mean] z = ReduceMean <keepdims = 1> (c, axes)
    [choose] y = If (choice) <
        then_branch = yes () => (float[1, 2, 4, 4] t) { [inner] t = Relu(c) },
        else_branch = no () => (float[1, 2, 4, 4] e) { [shadow] e = local.Twice(c) }
    >
}
<opset_import: ["" : 18], domain: "local">
Twice (v) => (d) { d = Add(v, v) }
"""


@pytest.fixture
def document(tmp_path: Path) -> Any:
    with contextlib.closing(Document.open(models.write(tmp_path, NET))) as opened:
        yield opened


def node(document: Document, name: str) -> Node:
    return next(one for scope in document.scopes() for one in scope.nodes if one.name == name)


def given(answer: object) -> str:
    """Return what a dialog gives, without addresses of objects."""
    if isinstance(answer, NodeWiring):
        return str(answer.edit())
    if isinstance(answer, (Node, Edit)):
        return str(getattr(answer, "ref", answer))
    return str(getattr(answer, "name", None) or getattr(answer, "label", None) or ascii(answer))


async def look(pattern: str) -> tuple[str, Sequence[str]]:
    if pattern == "bad":
        raise UsageError(f"no pattern {ESCAPE}")
    lines = ["- Relu(x)", "+ Abs(x)", "  plain", *[f"line {at}" for at in range(20)]]
    return f"{len(pattern)} found {ESCAPE}", lines if pattern else []


def items(key: Callable[[int], Hashable] = int) -> list[PickItem]:
    texts = ["first", "second thing", "third", *(f"more {at}" for at in range(210))]
    return [PickItem(key(at), [(text, "strong")], text) for at, text in enumerate(texts)]


def dialogs(document: Document) -> Dialogs:
    main = document.main
    palette = OperatorPalette({"": 18}, uses={("", "Relu"): 3})
    convolutions = [node(document, name) for name in ("one", "two", "mean", "three", "inner")]

    def wiring(operator: str, source: str = "", **more: Any) -> WiringDialog:
        item = next(one for one in palette.operators if one.name == operator and not one.domain)
        return WiringDialog(NodeWiring(main, item, source, **more))

    inner = node(document, "inner").scope
    return {
        "attributes": (
            lambda: BatchDialog(groups_of(convolutions)),
            "f5 enter escape enter ctrl+u V enter delete delete down enter ctrl+u x enter escape"
            " down enter ctrl+u 2 enter down delete delete down down down down enter ctrl+u 0 enter"
            " f5",
        ),
        "one node": (lambda: BatchDialog(groups_of([node(document, "shadow")])), "enter escape"),
        "an extract": (
            lambda: ExtractDialog(
                extract_part(document, nodes=["one", "two"]), "part.onnx"
            ),
            "enter",
        ),
        "an extract of no weights": (
            lambda: ExtractDialog(extract_part(document, scope=[*inner.path], nodes=["inner"]), ""),
            "escape",
        ),
        "a pattern": (
            lambda: RewriteDialog(
                "bad", look, Completion([node(document, "one")], rule_names()), known_rules
            ),
            "enter",
        ),
        "a rewrite": (
            lambda: RewriteDialog(
                "", look, Completion([node(document, "one")], rule_names()), known_rules
            ),
            "enter R e f2 g e l u enter enter",
        ),
        "picks": (
            lambda: PickDialog("Which?", items, value=2, placeholder="name", last=[
                PickItem("other", [("another", "accent")], "another")]),
            "down up pagedown pageup m o r e space 2 0 9 x backspace down enter",
        ),
        "no pick": (lambda: PickDialog("Which?", items), "z z enter escape"),
        "ticks": (lambda: TickDialog("Which?", items(str)[:4], ["1"]), "enter down enter f3 x f2"),
        "an operator": (lambda: AddNode(palette, f"Insert after {ESCAPE}"), "a b s tab enter"),
        "a Conv": (
            lambda: wiring("Conv", "a", inserts=True),
            "f5 enter w enter down down down a enter down down down down enter down enter down"
            " enter down down down down down down down down enter ctrl+u [ 1 , 1 ] enter"
            " down down down down down down down down d end enter o n e enter ctrl+u n enter f5",
        ),
        "a Split": (
            lambda: wiring("Split", "x"),
            "down down down enter down enter end up enter ctrl+u 0 enter ctrl+u 3 enter f5",
        ),
        "a Constant": (lambda: wiring("ConstantOfShape"), "enter enter down down enter escape f5"),
        "values": (
            lambda: ValuePicker(
                inner, title=f"Which {ESCAPE}", first=["c", "gone"], exclude=["b"],
                wanted=lambda known: None if known and known.dtype == "float32" else "no float",
                empty_label="leave it out",
            ),
            "down down end i n t enter",
        ),
        "values without conditions": (lambda: ValuePicker(main, title="Which"), "z z enter escape"),
        "ends": (
            lambda: TerminalPicker(
                node(document, "one"), title="Which end", value_type=main.value_type("axes")
            ),
            "down down x backspace o u t enter",
        ),
        "inputs": (
            lambda: TerminalPicker(node(document, "two"), title="Which", side="input"),
            "down down enter",
        ),
        "nodes": (
            lambda: NodePicker(
                main, title="Which node", first=[node(document, "inner")],
                exclude=node(document, "two"),
            ),
            "down down down down r e l u enter",
        ),
    }  # fmt: skip


async def test_dialogs_of_nodes_from_their_beginning_to_their_end(
    recorded: Recorded, document: Document, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("dld_tui.widgets.dialogs.nodes._WAIT_S", 0.0)
    walked = await walked_dialogs(dialogs(document), (130, 40), given)
    recorded("walks_of_node_dialogs", walked)
