"""Keys are taken one by one before anything is shown."""

from __future__ import annotations

import asyncio
import os
import pty
import signal
import termios
import tty
from types import SimpleNamespace
from typing import Any

import pytest
from textual.drivers.linux_driver import LinuxDriver

from dld_tui.widgets.shell.driver import DiffDriver, ScreenDiff


async def test_the_terminal_swallows_no_key_once_something_is_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: dict[str, Any] = {}

    def start(driver: LinuxDriver) -> None:  # Textual's own writes first, and looks then
        flags = termios.tcgetattr(driver.fileno)
        seen["lines"] = flags[tty.LFLAG] & (termios.ICANON | termios.ECHO | termios.ISIG)
        seen["control"] = flags[tty.IFLAG] & termios.IXON
        driver.attrs_before = flags

    monkeypatch.setattr(LinuxDriver, "start_application_mode", start)
    master, slave = pty.openpty()
    try:
        before = termios.tcgetattr(slave)
        assert before[tty.IFLAG] & termios.IXON
        driver = object.__new__(DiffDriver)
        driver.fileno, driver._diff = slave, ScreenDiff()
        driver._app = SimpleNamespace(exit=lambda status: None)  # type: ignore[assignment]
        driver.start_application_mode()
        asyncio.get_running_loop().remove_signal_handler(signal.SIGTERM)
        assert seen == {"lines": 0, "control": 0}
        assert driver.attrs_before == before, "what a suspension and the end go back to"
    finally:
        os.close(master)
        os.close(slave)
