"""Patterns in the workspace: from marked nodes, listed as they are typed, replaced, taken back."""

from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.model.tensors.value_types import ValueType
from dld_tui.screens.workspace.inference import Inference
from dld_tui.widgets.dialogs.dialogs import Choice, ChoiceDialog
from dld_tui.widgets.dialogs.nodes import RewriteDialog
from tests.support import models
from tests.support.workspace import opened

UNTYPED = """<ir_version: 8, opset_import: ["" : 17]>
g (float[2, 3] x) => (float[2, 3] y) { a = Neg(x) y = Relu(a) }"""


@pytest.mark.broad
async def test_rules_with_conditions_on_types_wait_for_inference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Inference, "INFER", True)
    monkeypatch.setattr(Inference, "infer", lambda self: None)
    path = models.write(tmp_path, UNTYPED)
    rule = "Relu(a) => Abs(a) where a.shape = [2, 3]"
    async with opened(path) as session:
        screen = session.screen
        screen.model.has_fresh_types = False
        screen.offer_rules(rule)
        await session.pilot.pause()
        assert not isinstance(session.app.screen, RewriteDialog)
        screen.document.main.inferred["a"] = ValueType("float32", (2, 3))
        screen.model.has_fresh_types = True
        await session.front(RewriteDialog)
        await session.shows("1 place to replace")


@pytest.mark.broad
async def test_rules_are_offered_after_unsaved_edits(tmp_path: Path) -> None:
    path = models.write(tmp_path, models.CHAIN)
    async with opened(path) as session:
        screen = session.screen
        session.app.push_screen(ChoiceDialog("Unsaved edits", "", [Choice("d", "discard", "d")]))
        await session.pilot.pause()
        screen.when_open(lambda: screen.offer_rules("no-ops"))
        await session.pilot.pause()
        assert isinstance(session.app.screen, ChoiceDialog)
        session.app.screen.dismiss()
        await session.front(RewriteDialog)
