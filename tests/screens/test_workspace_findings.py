"""Findings follow the edits, are filtered, and are repaired, in the real app."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import onnx
import onnx.helper as oh
import pytest

from dld_tui.core.checks import Finding
from dld_tui.core.checks.checker import Checker
from dld_tui.screens.workspace.checks import Checks
from tests.support import models
from tests.support.work import steps_in
from tests.support.workspace import NARROW, WIDE, Session, opened


def rules(session: Session) -> list[str]:
    return sorted({finding.rule for finding in session.screen.findings.findings})


async def checked(session: Session) -> None:
    await session.until(lambda: session.screen.checks.is_checked)


async def on_rule(session: Session, rule: str) -> None:
    """Put the cursor of the findings on the first of a rule."""
    await checked(session)
    await session.press("4")
    shown = session.screen.findings.shown
    at = next(at for at, finding in enumerate(shown) if finding.rule == rule)
    session.screen.findings.list.cursor = at
    await session.pilot.pause()


@pytest.fixture
def shady(tmp_path: Path) -> Path:
    return models.write(tmp_path, models.SHADY)


async def findings_follow_edit_undo_and_redo(session: Session) -> None:
    from dld_tui.core.model.edits import nodes, renaming

    await checked(session)
    assert "unused-node" not in rules(session)
    session.screen.history.edit(nodes.delete_nodes(scope=[], nodes=["last"]))
    await session.until(lambda: {"missing-output", "unused-node"} <= set(rules(session)))
    await session.press("u")
    await session.until(lambda: "unused-node" not in rules(session))
    await session.press("ctrl+y")
    await session.until(lambda: "unused-node" in rules(session))
    assert "third" in session.text
    session.screen.history.edit(renaming.rename_node(scope=[], node="third", name="another"))
    await session.until(lambda: "third" not in session.text)


@pytest.mark.parametrize("size", [NARROW, WIDE])
async def test_one_key_repairs_and_one_undo_takes_it_back(
    shady: Path, size: tuple[int, int]
) -> None:
    async with opened(shady, size) as session:
        await on_rule(session, "shadowed-value")
        before = rules(session)
        await session.press("f")
        await session.until(lambda: "shadowed-value" not in rules(session))
        assert session.screen.document.history.done[-1].edit == "rename_shadowing"
        await session.press("u")
        await session.until(lambda: rules(session) == before)


@pytest.mark.parametrize("size", [NARROW, WIDE])
async def test_when_the_last_finding_is_repaired_the_graph_or_the_layers_have_the_keys(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    model = models.parse(models.CHAIN.replace(", float[2] unused = {5, 6}", ""))
    model.graph.value_info.append(oh.make_tensor_value_info("k", 1, [1]))
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    async with opened(path, size) as session:
        await on_rule(session, "unused-value-info")
        await session.press("f")
        await session.until(lambda: not session.screen.findings.findings)
        await session.until(lambda: session.app.focused is not None)
        assert session.screen.panes.focused() == session.screen.panes.chosen.upper


async def test_all_of_a_rule_are_repaired_as_one_step(tmp_path: Path) -> None:
    model = models.parse(models.CHAIN)
    for name in ("k", "l"):
        model.graph.value_info.append(oh.make_tensor_value_info(name, 1, [1]))
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    async with opened(path, WIDE) as session:
        await on_rule(session, "unused-value-info")
        await session.press("E")
        await session.until(lambda: "unused-value-info" not in rules(session))
        assert len(session.screen.document.history.done) == 1


async def everything_is_repaired_from_the_palette(session: Session) -> None:
    await checked(session)
    session.screen.checks.fix_all()
    await session.until(lambda: session.screen.checks.is_checked)
    assert len(session.screen.document.history.done) == 1
    assert session.screen.document.history.done[-1].edit == "repair"


async def test_what_has_no_repair_says_so(tmp_path: Path) -> None:
    text = models.CHAIN.replace("Sigmoid", "Sigmoidd")
    async with opened(models.write(tmp_path, text), WIDE) as session:
        await on_rule(session, "unknown-operator")
        assert "fixable" not in session.screen.findings.list.conditions()
        await session.press("f")
        assert not session.screen.document.history.done
        assert session.app.screen is session.screen, "the filter of nodes has the same key"
        told = [one.message for one in session.app._notifications]
        assert told == ["fix: no fixable finding at the cursor"]


async def a_filter_shows_some_and_esc_shows_all(session: Session) -> None:
    await on_rule(session, "arity")
    pane = session.screen.findings
    every = len(pane.findings)
    await session.press("b")
    assert {finding.rule for finding in pane.shown} == {"arity"}
    assert "1 of arity shown" in pane.frame.keys
    await session.press("b")
    assert len(pane.shown) == every
    await session.press("/")
    await session.type("unused")
    await session.press("enter")
    assert 0 < len(pane.shown) < every
    assert pane.list.has_focus
    await session.press("escape")
    assert len(pane.shown) == every


async def a_filter_that_hides_all_says_so(session: Session) -> None:
    await on_rule(session, "arity")
    await session.press("/")
    await session.type("zzz")
    await session.press("down")
    assert session.screen.findings.current is None
    await session.until(lambda: "No finding matches the filter" in session.text)
    await session.press("f", "escape")
    assert session.screen.findings.current is not None


async def the_menu_offers_the_repair(session: Session) -> None:
    await on_rule(session, "arity")
    await session.press("full_stop")
    await session.until(lambda: "fix all" in session.text)


@pytest.mark.broad
async def test_filters_and_menus_of_findings(shady: Path) -> None:
    async with opened(shady, WIDE) as session:
        for check in (
            a_filter_shows_some_and_esc_shows_all,
            a_filter_that_hides_all_says_so,
            the_menu_offers_the_repair,
            everything_is_repaired_from_the_palette,
        ):
            await check(session)
            await session.reset()


async def findings_of_other_tools_are_listed_and_replaced(session: Session) -> None:
    await checked(session)
    screen = session.screen
    screen.checks.add_external([Finding("error", "onnx:check", "refused")], "onnx")
    assert "onnx:check" in rules(session)
    screen.checks.add_external([], "onnx")
    assert "onnx:check" not in rules(session)


@pytest.mark.broad
async def test_findings_of_a_chain(tmp_path: Path) -> None:
    async with opened(models.write(tmp_path, models.CHAIN), WIDE) as session:
        for check in (
            findings_of_other_tools_are_listed_and_replaced,
            findings_follow_edit_undo_and_redo,
        ):
            await check(session)
            await session.reset()


async def test_checking_a_large_model_leaves_room_for_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert 0 < Checks.CHECK_SLICE_S <= 0.01
    monkeypatch.setattr(Checks, "CHECK_SLICE_S", -1.0)  # a slice is as short as can be
    names = [f"v{at}" for at in range(1001)]
    nodes = [oh.make_node("Relu", [a], [b], b) for a, b in pairwise(names)]
    ends = [oh.make_tensor_value_info(name, 1, [1]) for name in (names[0], names[-1])]
    graph = oh.make_graph(nodes, "g", ends[:1], ends[1:])
    path = tmp_path / "large.onnx"
    onnx.save(oh.make_model(graph, opset_imports=[oh.make_opsetid("", 18)]), path)
    async with opened(path, WIDE) as session:
        await checked(session)
        slices: list[int] = []
        check = session.screen.checks._check_slice

        def spy(checker: Checker) -> None:
            slices.append(steps_in(check, checker))

        monkeypatch.setattr(session.screen.checks, "_check_slice", spy)
        session.screen.checks.check()
        await checked(session)
        assert len(slices) > 5, "between slices others get their turn"
        assert max(slices) < sum(slices) / 2


async def test_speed_is_looked_at_on_request_and_after_edits(tmp_path: Path) -> None:
    from dld_tui.core.model.edits import repairs

    async with opened(models.write(tmp_path, models.TRANSPOSES)) as session:
        screen = session.screen
        await session.until(lambda: screen.checks.is_checked)
        assert [f for f in screen.findings.findings if f.rule.startswith("speed:")] == []
        screen.checks.toggle_speed()
        await session.until(lambda: screen.checks.is_checked)
        assert len([f for f in screen.findings.findings if f.rule == "speed:transposes"]) == 2
        screen.history.edit(repairs.merge_transposes(scope=[], node="second"))
        await session.until(lambda: screen.checks.is_checked)
        assert len([f for f in screen.findings.findings if f.rule == "speed:transposes"]) == 1
        screen.checks.toggle_speed()
        await session.until(lambda: screen.checks.is_checked)
        assert [f for f in screen.findings.findings if f.rule.startswith("speed:")] == []
