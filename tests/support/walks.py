"""Walks through an app of one widget, and through dialogs: what each step leads to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from textual.app import App
from textual.message import Message
from textual.pilot import Pilot
from textual.screen import Screen

from dld_tui.app import DldApp
from dld_tui.core.text import visible
from tests.support.screen_transcripts import (
    Row,
    changed,
    colours,
    focus_of,
    point,
    rows_of,
    settled,
)
from tests.support.tui import HostApp, until

Steps = Mapping[str, Callable[[], object] | None]
"""What is done by its name: keys and what :func:`point` knows, a size, or what is called."""
Dialogs = Mapping[str, tuple[Callable[[], Screen[Any]], str]]
"""How each dialog is made, and the keys, by its title."""
_OWN = ("view", "form", "field", "timeline", "control", "time", "sender")
_LONGEST = 80
"""Characters of a value of a message that is told."""


def _short(value: object) -> str:
    text = repr(sorted(map(str, value)) if isinstance(value, set | frozenset) else value)
    return text if len(text) <= _LONGEST else type(value).__name__


def _told(message: Message) -> str:
    values = {n: v for n, v in vars(message).items() if not n.startswith("_") and n not in _OWN}
    told = ", ".join(f"{name}={_short(value)}" for name, value in values.items())
    return f"* {type(message).__qualname__} {told}"


async def walked(app: App[Any], pilot: Pilot[Any], steps: Steps) -> dict[str, str]:
    """Take steps, and return what each leads to; after a step with ``~`` its colours, too."""
    texts: dict[str, str] = {}
    before: list[Row] = []
    told = 0
    for number, (step, call) in enumerate({"": None, **steps}.items()):
        words = step.replace("~", "").split()
        if call is not None:
            call()
        elif words and words[0][:1].isdigit() and "x" in words[0]:
            width, height = map(int, words[0].split("x"))
            await pilot.resize_terminal(width, height)
            before = []
        else:
            for word in words:
                what, _, places = word.partition(":")
                await (point(pilot, what, places) if places else pilot.press(word))
        for _ in range(3):
            await pilot.pause()
        if isinstance(app, DldApp):
            await settled(pilot)
        else:
            await until(pilot, lambda: all(worker.is_finished for worker in app.workers))
        rows = rows_of(app)  # type: ignore[arg-type]
        new = {id(message): message for message in getattr(app, "messages", ())}
        messages = [
            one for one in new.values()
            if type(one).__module__.startswith("dld_tui") and "._" not in type(one).__qualname__
        ]  # fmt: skip
        lines = [f"= {focus_of(app)}", *changed(before, rows)]  # type: ignore[arg-type]
        lines += [visible(_told(message)) for message in messages[told:]]
        copied = getattr(app, "copied", [])
        lines += [f"copied {text!a}" for text in copied]
        copied.clear()
        notices = getattr(app, "notices", [])
        lines += [f"! {text}" for text in notices]
        notices.clear()
        lines += colours(rows) if "~" in step or not step else []
        texts[f"{number}: {step}"] = "\n".join(lines)
        before, told = rows, len(messages)
    return texts


async def walked_dialogs(
    dialogs: Dialogs, size: tuple[int, int], shown: Callable[[object], str] = ascii
) -> dict[str, str]:
    """Press keys in dialogs; return what each leads to, and what is given, as `shown` says it."""
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
