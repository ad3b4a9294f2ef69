"""Functions and subgraphs: listed, made, changed and inlined in the workspace, by keys alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.errors import UsageError
from dld_tui.core.model.document import Document
from dld_tui.screens.model.functions import attribute_values, parse_declaration
from dld_tui.screens.workspace.functions import Slot, body_slots
from tests.support import body_models, models


def test_declarations() -> None:
    assert parse_declaration(" slope ") == ("slope", None, None)
    assert parse_declaration("slope: float = 0.5") == ("slope", "float", 0.5)
    assert parse_declaration("axes:ints=[1, 2]") == ("axes", "ints", [1, 2])
    assert parse_declaration("s: string = 'a = b: c'") == ("s", "string", "a = b: c")
    for text in ("", "a b", "a: int", "a: int = x", "a: nothing = 1"):
        with pytest.raises(UsageError):
            parse_declaration(text)


def test_attributes_are_typed_as_a_list() -> None:
    text = "iou=0.5, most=100, v='1', mode=fast, s=[1, 2], f: floats=[1], t=float32 [1, 2]"
    found = attribute_values(text)
    assert {name: about["kind"] for name, about in found.items() if isinstance(about, dict)} == {
        "iou": "float", "most": "int", "v": "string", "mode": "string", "s": "ints", "f": "floats",
        "t": "tensor",
    }  # fmt: skip
    assert found["v"] == {"kind": "string", "value": "1"}
    assert found["f"] == {"kind": "floats", "value": [1.0]}
    for text, message in (("iou", "'iou' is no attribute"), ("s=[]", "several kinds")):
        with pytest.raises(UsageError, match=message):
            attribute_values(text)


def test_where_a_subgraph_can_go(tmp_path: Path) -> None:
    document = Document.open(models.write(tmp_path, models.BRANCHES))
    choose = document.main.find("choose")
    assert choose is not None
    assert [slot.label for slot in body_slots(choose)] == [
        "else_branch, replacing the present one",
        "then_branch, replacing the present one",
    ]
    document.apply("delete_subgraph", scope=[], node="choose", attribute="else_branch")
    assert body_slots(choose) == [
        Slot("else_branch", many=False),
        Slot("then_branch", many=False, replaces=True),
    ]
    switch = Document.open(body_models.write(tmp_path, "SWITCH")).main.find("pick")
    assert switch is not None
    assert body_slots(switch) == [Slot("cases", many=True)]
