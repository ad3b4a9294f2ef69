"""Textual's driver, sending only what changed."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping
from typing import Any

from textual._ansi_sequences import SYNC_END, SYNC_START
from textual.drivers import linux_driver
from textual.drivers.linux_driver import LinuxDriver

from dld_tui.core.errors import ExitStatus
from dld_tui.widgets.key_parser import KeyParser
from dld_tui.widgets.screen_diff import ScreenDiff


class DiffDriver(LinuxDriver):
    """Draws on standard error, as Textual's own driver does."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._diff = ScreenDiff(erase=erases_with_background(os.environ))
        self._drawn_size: object = None
        self._sync_due = False
        """An update has begun, and nothing of it was sent yet."""

    def write(self, data: str) -> None:
        """Send a paint, or anything else, to the terminal."""
        size = self._app.size
        if size != self._drawn_size:
            # The terminal may have wrapped or cut its lines.
            self._drawn_size = size
            self._diff.forget()
        if data == SYNC_START:
            self._sync_due = True
            return
        if data == SYNC_END and self._sync_due:
            self._sync_due = False
            return
        reduced = self._diff.reduce(data)
        if reduced:
            super().write(SYNC_START + reduced if self._sync_due else reduced)
            self._sync_due = False

    def redraw(self) -> None:
        """Forget what was drawn, so that the next paint is sent whole."""
        self._diff.forget()

    def run_input_thread(self) -> None:
        """Read keys, with a parser that knows Esc when it sees it."""
        bound: Mapping[str, str] = getattr(getattr(self._app, "config", None), "keys", {})
        if not any("alt+" in keys for keys in bound.values()):
            vars(linux_driver)["XTermParser"] = KeyParser  # the driver has no other way
        super().run_input_thread()

    def start_application_mode(self) -> None:
        """Begin, or begin again after a suspension."""
        self._diff.forget()
        # The default would leave the terminal in raw mode on the other screen.
        asyncio.get_running_loop().add_signal_handler(
            signal.SIGTERM, self._app.exit, int(ExitStatus.CANCELLED)
        )
        super().start_application_mode()  # type: ignore[no-untyped-call]


def erases_with_background(environ: Mapping[str, str]) -> bool:
    """Tell whether the terminal fills erased cells with the background that is set.

    GNU screen does not; tmux does, although it may call itself ``screen``.
    """
    kind = environ.get("TERM", "")
    known = ("xterm", "tmux", "alacritty", "kitty", "foot", "rxvt", "st-", "wezterm", "ghostty")
    return kind.startswith(known) or (kind.startswith("screen") and "TMUX" in environ)
