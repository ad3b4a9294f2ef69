"""Bodies of nodes are added, copied, moved and deleted in the workspace, by keys alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.model.document import Document
from dld_tui.screens.workspace.functions import Slot, body_slots
from tests.support import body_models, models
from tests.support.workspace import SIZES, opened


@pytest.mark.broad
@SIZES
async def test_delete_a_body_and_copy_the_other_in_its_place(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    async with opened(models.write(tmp_path, models.BRANCHES), size) as session:
        node = await session.go("choose")
        await session.press("L")
        assert "choose has 2 subgraphs" in session.text
        await session.press("d")
        await session.type("else")
        await session.until(lambda: "then_branch" not in session.text.partition("which")[2])
        await session.press("enter")
        assert list(node.children) == ["then_branch"]
        await session.press("L", "c", "1")
        await session.until(lambda: "1 captured" in session.text)
        await session.press("enter")
        copied = node.children["else_branch"][0]
        assert session.screen.explorer.model.root is copied
        assert len(copied.nodes) == 2


async def test_a_new_body_is_opened(tmp_path: Path) -> None:
    async with opened(models.write(tmp_path, models.CHAIN)) as session:
        node = await session.go("last")
        await session.press("L", "a")
        await session.type("body")
        await session.press("enter")
        assert session.screen.explorer.model.root is node.children["body"][0]
        assert session.screen.explorer.model.root.path == ("last:body",)


@pytest.mark.broad
async def test_lists_of_bodies(tmp_path: Path) -> None:
    async with opened(body_models.write(tmp_path, "SWITCH")) as session:
        node = await session.go("pick")
        first, second, third = node.children["cases"]
        await session.press("L", "m")
        await session.until(lambda: "cases[2]" in session.text)
        await session.press("down", "down", "enter")
        assert node.children["cases"] == [third, first, second]
        await session.press("L", "a")
        await session.settle()
        assert len(node.children["cases"]) == 4


async def test_a_refused_copy_says_why(tmp_path: Path) -> None:
    async with opened(models.write(tmp_path, models.BRANCHES)) as session:
        await session.go("pre")
        await session.press("L", "c")
        await session.type("body")
        await session.press("enter")
        await session.until(lambda: "1 captured" in session.text)
        await session.press("enter")
        assert not session.screen.document.history.done
        told = [notice.message for notice in session.app._notifications]
        assert "computed from 'pre'" in told[-1]


def test_where_a_body_can_go(tmp_path: Path) -> None:
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
