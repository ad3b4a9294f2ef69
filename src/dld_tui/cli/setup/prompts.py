"""Prompts on the terminal: hidden passwords, and yes or no."""

from __future__ import annotations

import atexit
import os
import sys
import termios

from dld_tui.core.settings import secrets
from dld_tui.core.text import visible

_TERMINAL = "/dev/tty"
_YES = ("y", "yes")


class TerminalAsker:
    """Asks on the terminal of the process, independent of standard input and output.

    Without a terminal there is nobody to ask.
    """

    def secret(self, question: str) -> str | None:
        """Return the input; None without a terminal and at the end of input."""
        return _ask(f"{visible(question)}: ", is_secret=True)

    def confirm(self, question: str, detail: str) -> bool:
        """Return whether the answer is ``y`` or ``yes``."""
        lines = [visible(line) for line in (*detail.split("\n"), question)]
        answer = _ask("\n".join(lines) + " [y/N] ", is_secret=False)
        return (answer or "").strip().lower() in _YES


def ask_on_terminal() -> None:
    """Use the terminal, if any, for prompts of this process."""
    try:
        os.close(os.open(_TERMINAL, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return  # nobody can be asked, which is not the same as a person who gives no answer
    secrets.use(TerminalAsker())


def _ask(prompt: str, *, is_secret: bool) -> str | None:
    try:
        terminal = os.open(_TERMINAL, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return None
    before = termios.tcgetattr(terminal)

    def restore() -> None:
        termios.tcsetattr(terminal, termios.TCSAFLUSH, before)

    # Asked on a thread: Ctrl+C ends the program and not this function, so the echo comes back then.
    atexit.register(restore)
    try:
        if is_secret:
            hidden = termios.tcgetattr(terminal)
            hidden[3] &= ~termios.ECHO
            termios.tcsetattr(terminal, termios.TCSAFLUSH, hidden)
        os.write(terminal, prompt.encode(errors="backslashreplace"))
        line = _line(terminal)
        if is_secret:
            os.write(terminal, b"\n")
        return line
    finally:
        restore()
        atexit.unregister(restore)
        os.close(terminal)


def _line(terminal: int) -> str | None:
    data = b""
    while not data.endswith(b"\n"):
        part = os.read(terminal, 4096)  # a terminal gives whole lines
        if not part:
            return None
        data += part
    return data.rstrip(b"\r\n").decode(sys.getfilesystemencoding(), "surrogateescape")
