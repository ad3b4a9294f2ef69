"""Quick runs of apps under test: nothing is drawn for nobody, and waits end when work does."""

from __future__ import annotations

import asyncio
from time import monotonic, process_time
from typing import Any

import pytest
from rich.console import RenderableType

_STEP_S = 0.002
_SOON_S = 0.02
"""Textual lays out and repaints by timers of a sixtieth of a second."""


def apply(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace Textual's repaints and its wait for an idle process, in this process only."""
    import textual.app
    import textual.pilot
    from textual._compositor import Compositor

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
    monkeypatch.setattr(textual.app, "wait_for_idle", wait_for_idle)
    monkeypatch.setattr(textual.pilot, "wait_for_idle", wait_for_idle)


async def wait_for_idle(min_sleep: float = 0, max_sleep: float = 1) -> None:
    """Wait until the event loop has nothing to do, now or soon, and no thread computes."""
    loop: Any = asyncio.get_running_loop()
    start = monotonic()
    while monotonic() < start + max_sleep:
        began, worked = monotonic(), process_time()
        await asyncio.sleep(_STEP_S)
        is_busy = process_time() - worked > 0.25 * (monotonic() - began)
        is_due = any(
            handle.when() < loop.time() + _SOON_S and not handle.cancelled()
            for handle in loop._scheduled
        )
        if not (is_busy or is_due or loop._ready or monotonic() < start + min_sleep):
            return
