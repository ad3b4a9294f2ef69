"""Searching and reading operators, and choosing one to add."""

from __future__ import annotations

import pytest

from dld_tui.core.model.document.operator_listing import Grouping, OperatorPalette, PaletteOperator
from dld_tui.core.model.operators.schema import Formal, OperatorSchema
from dld_tui.widgets.dialogs.operator_browser import OperatorBrowser, OperatorRows
from dld_tui.widgets.dialogs.wiring import AddNode
from tests.support.tui import ESCAPE, HOSTILE, HostApp, rows_of, screen_text

NARROW, WIDE = (80, 24), (200, 50)


@pytest.fixture(scope="module")
def palette() -> OperatorPalette:
    hostile = f"{HOSTILE}{ESCAPE}"
    custom = OperatorSchema(
        hostile, hostile, 1, False, (Formal(hostile, "", (), ""),), (), (), (), hostile
    )  # fmt: skip
    return OperatorPalette({"": 18}, custom=[custom], uses={("", "Relu"): 3})


def current(browser: OperatorBrowser) -> str:
    return browser.operator.name if browser.operator is not None else ""


@pytest.mark.broad
async def test_groups_are_stepped_over_and_switched(palette: OperatorPalette) -> None:
    browser = OperatorBrowser(palette)
    app = HostApp(browser)
    async with app.run_test(size=NARROW, message_hook=app.note) as pilot:
        lines = browser.view.lines
        assert isinstance(lines, OperatorRows)
        assert lines.operator(0) is None, "a title"
        assert current(browser) == "Conv"
        await pilot.press("up")
        assert current(browser) == "Conv"
        for _ in range(60):
            await pilot.press("down")
            assert browser.operator is not None
        seen = [browser.grouping]
        for _ in range(4):
            await pilot.press("tab")
            seen.append(browser.grouping)
        assert seen == [Grouping.CATEGORY, Grouping.VERSION, Grouping.NAME, Grouping.COLLECTION,
                        Grouping.CATEGORY]  # fmt: skip
        await pilot.pause()
        assert [message.grouping for message in app.of(OperatorBrowser.Grouped)] == seen[1:]


async def test_older_versions_can_be_read(palette: OperatorPalette) -> None:
    browser = OperatorBrowser(palette, start=("", "Reshape"))
    async with HostApp(browser).run_test(size=WIDE) as pilot:
        await pilot.pause()
        assert browser.docs.schema is not None
        assert browser.docs.schema.since_version == 14
        await pilot.press("ctrl+down")
        assert browser.docs.schema.since_version == 13
        await pilot.press("ctrl+up", "ctrl+up")
        assert browser.docs.schema.since_version == 19
        before = browser.docs.scroll_offset.y
        await pilot.press("shift+down")
        await pilot.pause()
        assert browser.docs.scroll_offset.y >= before
        assert browser.docs.schema.since_version == 19


async def test_foreign_names_are_only_text(palette: OperatorPalette) -> None:
    browser = OperatorBrowser(palette)
    app = HostApp(browser)
    async with app.run_test(size=WIDE) as pilot:
        await pilot.press(*"conv", "space", *"blk")
        await pilot.pause()
        assert browser.operator is not None
        text = screen_text(app)
        assert HOSTILE in text
        assert "\x1b" not in text


async def test_quick_add_gives_an_operator_that_fits(palette: OperatorPalette) -> None:
    app = HostApp()
    answers: list[PaletteOperator | None] = []
    async with app.run_test(size=NARROW) as pilot:
        # Quick add gives an operator.
        app.push_screen(AddNode(palette), answers.append)
        await pilot.pause()
        await pilot.press(*"relu")
        await pilot.pause()
        row = next(row for row in rows_of(app) if "Relu" in row and "×3" in row)
        assert "activation" in row
        await pilot.press("enter")
        await pilot.pause()
        assert answers[0] is not None
        assert answers[0].key == ("", "Relu")
        # What needs a newer opset is refused.
        answers = []
        app.push_screen(AddNode(palette), answers.append)
        await pilot.pause()
        await pilot.press(*"rmsn")
        await pilot.pause()
        assert "newer opset of ai.onnx" in screen_text(app)
        assert app.screen.query_one(OperatorBrowser).view.go_to_key(("", "RMSNormalization"))
        await pilot.press("enter")
        await pilot.pause()
        assert answers == []
        assert isinstance(app.screen, AddNode)
        # The grouping is remembered.
        app.push_screen(AddNode(palette))
        await pilot.pause()
        await pilot.press("tab", "escape")
        app.push_screen(AddNode(palette))
        await pilot.pause()
        assert app.screen.query_one(OperatorBrowser).grouping is Grouping.VERSION
