"""Walks of keys through dialogs, with what is shown after each key and given at the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from textual.screen import Screen

from tests.support.screen_transcripts import Row, changed, colours, focus_of, rows_of
from tests.support.tui import HostApp

Dialogs = Mapping[str, tuple[Callable[[], Screen[Any]], str]]
"""How each dialog is made, and the keys, by its title."""


async def walked(
    dialogs: Dialogs, size: tuple[int, int], shown: Callable[[object], str] = ascii
) -> dict[str, str]:
    """Return texts by title and key; `shown` says what an answer is."""
    texts: dict[str, str] = {}
    app: Any = HostApp()
    async with app.run_test(size=size) as pilot:
        for title, (make, keys) in dialogs.items():
            answers: list[object] = []
            app.push_screen(make(), answers.append)
            before: list[Row] = []
            for at, key in enumerate(["", *keys.split()], 1):
                if key:
                    await pilot.press(key)
                await pilot.pause()
                await pilot.pause()
                rows = rows_of(app)
                lines = [f"= {focus_of(app)}", *changed(before, rows)]
                texts[f"{title}, {at}: {key}"] = "\n".join(lines)
                before = rows
                if at == 1:
                    texts[f"{title}: colours"] = "\n".join(colours(rows))
            given = ", ".join(map(shown, answers))
            texts[f"{title}: answers"] = f"[{given}] {app.copied!a}"
            app.copied.clear()
            while len(app.screen_stack) > 1:
                await pilot.press("escape")
                await pilot.pause()
    return texts
