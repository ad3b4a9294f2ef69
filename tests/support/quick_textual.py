"""Quick runs of apps under test: nothing is drawn for nobody, and waits end when work does."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import cache
from threading import active_count
from time import monotonic, process_time
from typing import Any

import pytest
from rich.console import RenderableType
from textual._context import active_app
from textual.message import Message
from textual.message_pump import MessagePump

_STEP_S = 0.002
_SOON_S = 0.02
_PERIOD_S = 0.001
_HELD_S = 0.1


def apply(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace Textual's repaints and its wait for an idle process, in this process only.

    Nothing is animated. Layouts and repaints wait for a timer of a sixtieth of a second, and what
    rests while somebody types, as the static check does, for a third of one: both go on at once.
    """
    import textual.app
    import textual.constants
    import textual.pilot
    import textual.screen
    from textual._compositor import Compositor

    from dld_tui.widgets.shell import key_queue

    draw = Compositor.render_update

    def render_update(
        self: Compositor, full: bool = False, **options: Any
    ) -> RenderableType | None:
        """Forget what is dirty; only a picture (``full``) is drawn.

        Tests that read the screen take the strips, which are drawn when they are asked for.
        """
        if full:
            return draw(self, full, **options)
        self._dirty_regions.clear()
        return None

    monkeypatch.setattr(Compositor, "render_update", render_update)
    monkeypatch.setattr(textual.constants, "TEXTUAL_ANIMATIONS", "none")
    monkeypatch.setattr(textual.screen, "UPDATE_PERIOD", _PERIOD_S)
    monkeypatch.setattr(key_queue, "_USED_S", 0.0)
    monkeypatch.setattr(textual.app, "wait_for_idle", wait_for_idle)
    monkeypatch.setattr(textual.pilot, "wait_for_idle", wait_for_idle)
    monkeypatch.setattr(textual.pilot.Pilot, "_wait_for_screen", _wait_for_screen)
    monkeypatch.setattr(MessagePump, "_get_dispatch_methods", _get_dispatch_methods)


def _is_due(loop: Any) -> bool:
    """Return whether a timer of the event loop ends soon."""
    soon = loop.time() + _SOON_S
    return any(handle.when() < soon and not handle.cancelled() for handle in loop._scheduled)


async def wait_for_idle(min_sleep: float = 0, max_sleep: float = 1) -> None:
    """Wait until the event loop has nothing to do, now or soon, and no thread computes.

    Keys that wait for work, which may wait for the test, are not waited for long.
    """
    loop: Any = asyncio.get_running_loop()
    keys = getattr(active_app.get(None), "keys", None)
    start = monotonic()
    while monotonic() < start + max_sleep:
        has_threads = active_count() > 1
        began, worked = monotonic(), process_time() if has_threads else 0
        await asyncio.sleep(_STEP_S)
        is_busy = has_threads and process_time() - worked > 0.25 * (monotonic() - began)
        if not (is_busy or loop._ready or monotonic() < start + min_sleep or _is_due(loop)):
            return
        if keys is not None and keys._held_since and monotonic() > keys._held_since + _HELD_S:
            return


async def _wait_for_screen(self: object, timeout: float = 0) -> bool:
    """Wait as above; Textual sends a message to each widget, and waits until all were taken."""
    await wait_for_idle()
    return True


_methods_of = MessagePump._get_dispatch_methods


def _get_dispatch_methods(self: MessagePump, name: str, message: Message) -> Iterable[Any]:
    """Return what handles a message: mostly nothing, for which Textual looks into each ancestor."""
    return _methods_of(self, name, message) if _handles(type(self), name) else ()


@cache
def _handles(kind: type, name: str) -> bool:
    """Return whether a class may handle a message."""
    names = {name, f"_{name}", "_decorated_handlers"}
    return any(names & vars(parent).keys() for parent in kind.__mro__)
