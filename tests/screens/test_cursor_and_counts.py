"""In every list of a model the cursor stays on its object, the title counts right, keys go on."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import pytest
from textual.widget import Widget

from dld_tui.screens.workspace.inference import TypeInference
from dld_tui.widgets.dialogs.dialogs import ChoiceDialog
from dld_tui.widgets.lists.line_view import LineView
from tests.support import models
from tests.support.workspace import Session, opened

COUNT = 6


@pytest.fixture(autouse=True)
def no_child_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TypeInference, "INFER", False)


def model(folder: Path) -> Path:
    """Write a model with six of everything: nodes, initializers and functions nobody needs."""
    text = models.CHAIN
    path = models.write(folder, text)
    found = onnx.load(path)
    found.opset_import.append(onnx.helper.make_opsetid("local", 1))
    opset = [onnx.helper.make_opsetid("", 18)]
    for at in range(COUNT):
        spare = onnx.helper.make_node("Relu", ["x"], [f"spare{at}"], f"spare {at}")
        found.graph.node.append(spare)
        found.graph.initializer.append(
            onnx.numpy_helper.from_array(np.ones(2, np.float32), f"weight {at}")
        )
        body = [onnx.helper.make_node("Relu", ["v"], ["r"])]
        made = onnx.helper.make_function("local", f"Spare{at}", ["v"], ["r"], body, opset)
        found.functions.append(made)
        onnx.helper.set_model_props(found, {f"key {at}": "text" for at in range(COUNT)})
    onnx.save(found, path)
    return path


@dataclass(frozen=True)
class Listed:
    """A list of a model."""

    keys: str
    """What shows it."""
    find: str
    """How a row that goes without asking anything more begins."""
    counted: Callable[[str], int | None] = lambda title: int(re.findall(r"\d+", title)[0])
    """The count in its title."""


LISTS = {
    "layers": Listed("1", "spare"),
    "initializers": Listed("i", "weight"),
    "functions": Listed("F", "Spare"),
    "metadata": Listed("t", "key", lambda title: None),
}


def view_of(session: Session) -> LineView:
    focused = session.app.focused
    assert isinstance(focused, LineView), focused
    return focused


def title_of(view: LineView) -> str:
    widget: Widget | None = view
    while widget is not None:
        title = f"{getattr(widget, 'frame_title', '')} {getattr(widget, 'frame_keys', '')}"
        if title.strip():
            return title
        widget = widget.parent if isinstance(widget.parent, Widget) else None
    return ""


def rows_of(view: LineView, find: str) -> list[Hashable]:
    found = [at for at in range(len(view.lines)) if find in view.lines.text(at)]
    return [view.lines.key(at) for at in found]


@pytest.mark.parametrize("name", LISTS)
async def test_deleting_and_undoing(tmp_path: Path, name: str) -> None:
    listed = LISTS[name]
    async with opened(model(tmp_path)) as session:
        before = session.app.focused
        await session.press(*listed.keys)
        if name != "layers":
            await session.until(lambda: session.app.focused not in (before, None))
        view = view_of(session)
        texts = [_spaced(view, at) for at in range(len(view.lines))]
        at = next((at for at, text in enumerate(texts) if f"{listed.find} 3" in text), None)
        assert at is not None, texts
        view.cursor = at
        await session.settle()
        rows, below = rows_of(view, listed.find), view.lines.key(at + 1)
        counted = listed.counted(title_of(view))
        await session.press("d")
        await session.settle()
        if isinstance(session.app.screen, ChoiceDialog):
            await session.press("enter")
            await session.settle()
        view = view_of(session)
        assert len(rows_of(view, listed.find)) == len(rows) - 1
        assert view.key_at_cursor() == below
        if counted is not None:
            assert listed.counted(title_of(view)) == counted - 1
        for key, count in (("u", counted), ("ctrl+y", counted and counted - 1), ("u", counted)):
            await session.press(key)
            await session.settle()
            view = view_of(session)
            assert view.key_at_cursor() == below, key
            assert listed.counted(title_of(view)) == count


def _spaced(view: LineView, at: int) -> str:
    return view.lines.text(at).replace("Spare", "Spare ")
