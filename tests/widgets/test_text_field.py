from __future__ import annotations

import pytest

from dld_tui.core.text import cell_width
from dld_tui.widgets.forms.text_field import TextField, drawn
from tests.support.tui import HostApp, rows_of


@pytest.mark.parametrize("text", ["plain", "漢字 é", "\x1b]0;x\x07", "a\tb\nc", "\udcff\u202e\x9b"])
def test_what_is_drawn_has_the_same_length_and_no_control(text: str) -> None:
    assert len(drawn(text)) == len(text)
    assert not set(drawn(text)) & set("\x1b\x07\t\n\udcff\u202e\x9b")
    assert cell_width(drawn(text)) >= 1


async def test_the_value_stays_and_the_cursor_does_not_blink() -> None:
    app = HostApp(lambda: TextField("\x1b[31mred"))
    async with app.run_test(size=(30, 4)) as pilot:
        field = app.query_one(TextField)
        assert rows_of(app)[0].startswith("␛[31mred")
        await pilot.press("end", "x")
        assert field.value == "\x1b[31mredx"
        assert not field.cursor_blink
