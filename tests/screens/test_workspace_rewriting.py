"""Patterns in the workspace: from marked nodes, listed as they are typed, replaced, taken back."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import Input

from dld_tui.core.model.tensors.value_types import ValueType
from dld_tui.screens.workspace.inference import Inference
from dld_tui.widgets.dialogs.dialogs import Choice, ChoiceDialog
from dld_tui.widgets.dialogs.nodes import RewriteDialog
from dld_tui.widgets.explorer.node_filter import NodeFilter, parse_conditions
from dld_tui.widgets.shell.page import offer_rules
from tests.support import models
from tests.support.workspace import opened


@pytest.mark.broad
async def test_a_finding_offers_its_rule_and_a_filter_hears_of_types(tmp_path: Path) -> None:
    text = (
        '<ir_version: 10, opset_import: ["" : 20]>\ng (float[4] x) => (float[4] y)'
        " <float k = {1.4142135}, float one = {1}, float half = {0.5}> { [n] a = Neg(x)"
        " b = Div(a, k) c = Erf(b) d = Add(c, one) e = Mul(a, d) [last] y = Mul(e, half) }"
    )
    path = models.write(tmp_path, text)
    async with opened(path, (120, 40)) as session:
        document, checks = session.screen.document, session.screen.checks
        checks.toggle_speed()
        findings = session.screen.panes.findings
        await session.until(lambda: checks.is_checked and findings.current is not None)
        findings.list.focus()
        await session.press("f")
        assert isinstance(session.app.screen, RewriteDialog)
        assert session.app.screen.query_one(Input).value == "gelu"
        await session.shows("1 place to replace")
        assert len(document.main.nodes) == 6
        await session.press("enter")
        await session.until(lambda: [n.op_type for n in document.main.nodes] == ["Neg", "Gelu"])
        document.undo()

        explorer = session.screen.explorer
        chosen = NodeFilter(conditions=parse_conditions("Mul(e, f) where e.shape = [7]"))
        explorer.set_filter(chosen)
        assert all(not chosen(node) for node in document.main.nodes)
        document.main.touched.add("e")
        document.main.inferred["e"] = ValueType("float32", (7,))
        explorer.types_changed()
        await session.until(
            lambda: [node.name for node in document.main.nodes if chosen(node)] == ["last"]
        )

        offer_rules(session.app, path, ("gelu", "no-ops"))  # as reports and engines do
        await session.front(RewriteDialog)
        assert session.app.screen.query_one(Input).value == "gelu no-ops"


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
