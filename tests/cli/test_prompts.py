"""Prompts on a terminal: what is typed, and what of it is seen."""

from __future__ import annotations

import os
import termios
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from dld_tui.cli.setup import prompts
from dld_tui.cli.setup.prompts import TerminalAsker


def answered(ask: Callable[[], Any], typed: bytes, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the answer to a prompt, and what is seen of what was typed."""
    person, terminal = os.openpty()
    monkeypatch.setattr(prompts, "_TERMINAL", os.ttyname(terminal))
    with ThreadPoolExecutor() as threads:
        answer = threads.submit(ask)
        seen = b""
        while not seen.endswith((b": ", b"[y/N] ")):
            seen += os.read(person, 1000)
        os.write(person, typed)
        found = answer.result(60)
    assert termios.tcgetattr(terminal)[3] & termios.ECHO
    os.write(terminal, b"end")
    after = b""
    while not after.endswith(b"end"):
        after += os.read(person, 1000)
    os.close(person)
    os.close(terminal)
    return found, after.removesuffix(b"end").strip()


@pytest.mark.parametrize(
    ("typed", "answer", "seen"),
    [(b"Yes\n", True, b"Yes"), (b"y \n", True, b"y"), (b"n\n", False, b"n"), (b"\n", False, b"")],
)
def test_a_question_shows_its_answer(
    typed: bytes, answer: bool, seen: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = TerminalAsker().confirm
    assert answered(lambda: ask("Go on?", "a\nb"), typed, monkeypatch) == (answer, seen)


@pytest.mark.parametrize(("typed", "answer"), [(b"open sesame\n", "open sesame"), (b"\x04", None)])
def test_a_password_is_not_shown(
    typed: bytes, answer: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert answered(lambda: TerminalAsker().secret("Password"), typed, monkeypatch) == (answer, b"")


def test_without_a_terminal_nobody_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prompts, "_TERMINAL", "/nowhere")
    assert TerminalAsker().secret("Password") is None
    assert not TerminalAsker().confirm("Go on?", "")
