"""What a terminal sends, as keys: Esc before another key in one read."""

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
from textual import events
from textual.drivers.linux_driver import LinuxDriver

from dld_tui.widgets.shell.driver import DiffDriver, ScreenDiff
from dld_tui.widgets.shell.key_queue import KeyParser


def keys(*reads: str) -> list[str]:
    parser = KeyParser(False)
    found = [event for read in reads for event in parser.feed(read)]
    parser._timeout_time = parser._timeout_time and 0.0  # as a tenth of a second later
    found += parser.tick()
    return [e.key if isinstance(e, events.Key) else type(e).__name__ for e in found]


@pytest.mark.parametrize(
    ("reads", "expected"),
    [
        (["\x1bq"], ["escape", "q"]),
        (["\x1b/c"], ["escape", "slash", "c"]),
        (["\x1b\r"], ["escape", "enter"]),
        (["\x1b1"], ["escape", "1"]),
        (["\x1b\x1bq"], ["escape", "escape", "q"]),
        (["\x1bO"], ["escape", "O"]),
        (["\x1bOz"], ["escape", "O", "z"]),
        (["a\x1b", "q"], ["a", "escape", "q"]),
        (["\x1b"], ["escape"]),
        (["\x1b", "[A"], ["up"]),
        (["j\n"], ["j", "enter"]),
        (["\x1b[A\x1bOP\x1b[15~"], ["up", "f1", "f5"]),
        (["\x1b[200~a/b\x1b[201~x"], ["Paste", "x"]),
    ],
)
def test_esc_is_a_key_of_its_own(reads: list[str], expected: list[str]) -> None:
    assert keys(*reads) == expected


def test_esc_that_was_told_after_a_pause_is_not_told_again() -> None:
    parser = KeyParser(False)
    assert not list(parser.feed("\x1b"))
    parser._timeout_time = 0.0
    assert [event.key for event in parser.tick() if isinstance(event, events.Key)] == ["escape"]
    assert [e.key for e in parser.feed("V") if isinstance(e, events.Key)] == ["V"]


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
