"""What a terminal sends, as keys: whole and cut sequences, lone Esc, noise."""

from __future__ import annotations

import os
import pty
import termios
import tty
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from textual import events
from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual.drivers.linux_driver import LinuxDriver
from textual.message import Message

from dld_tui.widgets.shell.driver import DiffDriver, ScreenDiff
from dld_tui.widgets.shell.key_parser import KeyParser


class Clock:
    """A time that only a test moves."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def said(found: Iterable[Message]) -> list[str]:
    """Return the names of keys, and the classes of other events."""
    return [event.key if isinstance(event, events.Key) else type(event).__name__ for event in found]


def keys(*reads: str | bytes, alt: bool = False, pause_s: float = 0.0) -> list[str]:
    """Return what reads mean, each so long after the former one; all is over then."""
    clock = Clock()
    parser = KeyParser(alt, clock)
    found: list[Message] = []
    for read in reads:
        found += parser.feed(read.encode() if isinstance(read, str) else read)
        clock.now += pause_s
        found += parser.tick()
    clock.now += 2.0
    found += parser.tick()
    return said(found)


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
        (["\x1b["], ["escape", "left_square_bracket"]),
        (["\x1b[\r"], ["escape", "left_square_bracket", "enter"]),
        (["\x1bP"], ["escape", "P"]),
        (["\x1b]"], ["escape", "right_square_bracket"]),
        (["a\x1b", "q"], ["a", "escape", "q"]),
        (["\x1b"], ["escape"]),
        (["\x1b", "[A"], ["up"]),
        (["j\n"], ["j", "enter"]),
        (["\x1b[A\x1bOP\x1b[15~"], ["up", "f1", "f5"]),
        (["\x1b[[A\x1b[23$\x1b[Z"], ["f1", "f23", "shift+tab"]),
        (["\x1b[200~a/b\x1b[201~x"], ["Paste", "x"]),
        (["\x1b[200~a", "\x1b[20", "1~x"], ["Paste", "x"]),
        (["\x1b[I\x1b[O"], ["AppFocus", "AppBlur"]),
        (["\x1b[?2026;2$y"], ["TerminalSupportsSynchronizedOutput"]),
        (["\x1b[<0;5;5M\x1b[<0;5;5mq"], ["MouseDown", "MouseUp", "q"]),
    ],
)
def test_reads_are_keys(reads: list[str], expected: list[str]) -> None:
    assert keys(*reads) == expected


@pytest.mark.parametrize(
    ("sequence", "expected"),
    [
        ("\x1b[97u", [("a", "a")]),
        ("\x1b[97;;97u", [("a", "a")]),
        ("\x1b[97;1:1u", [("a", "a")]),
        ("\x1b[97;1:2u", [("a", "a")]),
        ("\x1b[97;1:3u", []),
        ("\x1b[97:65;2u", [("A", "A")]),
        ("\x1b[97;2u", [("A", "A")]),
        ("\x1b[97;65u", [("A", "A")]),
        ("\x1b[97;66u", [("a", "a")]),
        ("\x1b[97;2;65u", [("A", "A")]),
        ("\x1b[97:65:97;2:1;65u", [("A", "A")]),
        ("\x1b[49:33;2u", [("exclamation_mark", "!")]),
        ("\x1b[1092::97;1u", [("ф", "ф")]),
        ("\x1b[97;5u", [("ctrl+a", None)]),
        ("\x1b[97:65;6u", [("ctrl+shift+a", None)]),
        ("\x1b[97;3u", [("alt+a", None)]),
        ("\x1b[27u", [("escape", None)]),
        ("\x1b[13;1:3u", []),
        ("\x1b[1;1:1A", [("up", None)]),
        ("\x1b[1;1:3A", []),
        ("\x1b[1;5A", [("ctrl+up", None)]),
        ("\x1b[3;1:3~", []),
        ("\x1b[3;2~", [("shift+delete", None)]),
        ("\x1b[27;5;112~", [("ctrl+p", None)]),
    ],
)
def test_keys_of_the_kitty_protocol(sequence: str, expected: list[tuple[str, str | None]]) -> None:
    found = KeyParser().feed(sequence.encode())
    assert [(e.key, e.character) for e in found if isinstance(e, events.Key)] == expected


@pytest.mark.parametrize(
    "sequence",
    [
        "\x1b[1;:1A", "\x1b[1114112u", "\x1b[55296u", "\x1b[97;1:4u", "\x1b[97;999u", "\x1b[0u",
        "\x1b[57400000000000000000000u", "\x1b[99~", "\x1b[7u", "\x1b[u", "\x1b[1:2:3:4;5u",
        "\x1b[97;1;" + "1:" * 50 + "u", "\x1b[" + "9" * 5000 + "u", "\x1b[<0;0;0M", "\x1b[<;;M",
        "\x1b[<99999999999;1;1M", "\x1b[12;5R", "\x1b[?62;22c", "\x1b[48;24;80;384;640t",
        "\x1b[?2031;1$y", "\x1b[?1;2;3$y", "\x1b[201~", "\x1b[32;44;5M", "\x1b[1 @",
        "\x1b]11;rgb:1e1e/1e1e/1e1e\x1b\\", "\x1b]11;rgb:1e1e/1e1e/1e1e\x07", "\x1bP>|term\x1b\\",
    ],
    ids=lambda sequence: repr(sequence)[:20],
)  # fmt: skip
def test_what_is_no_key_does_nothing(sequence: str) -> None:
    assert keys(sequence) == []
    assert keys(*sequence) == []
    assert keys(f"{sequence}q") == ["q"]


@pytest.mark.parametrize(
    ("read", "expected"),
    [
        (b"\xe4q", ["replacement_character", "q"]),
        (b"\xe4", ["replacement_character"]),
        (b"q\xff\xfe\x80", ["q", *["replacement_character"] * 3]),
        ("ä€😀".encode(), ["ä", "euro_sign", "grinning_face"]),
        (b"\x1b[M \xe4\xa0q", ["q"]),
        (b"\x1b[M \xc3\xa4q", ["q"]),
        (b"\x1b[M\x01q", ["ctrl+a", "q"]),
        (b"\x1b[1;\xe4q", ["replacement_character", "q"]),
        (b"\x1b[1;\x1b[A", ["up"]),
        (b"\x1b[200~\xe4\x1b[201~q", ["Paste", "q"]),
    ],
)
def test_bytes_that_are_not_utf8(read: bytes, expected: list[str]) -> None:
    assert keys(read) == expected
    assert keys(*(read[at : at + 1] for at in range(len(read)))) == expected


def test_a_pause_cuts_a_sequence_off() -> None:
    assert keys("\x1b", "V", pause_s=0.2) == ["escape", "V"]
    assert keys("\x1b[1;", "j", "k", pause_s=0.2) == ["k"]  # on a slow line the rest comes late
    assert keys("\x1b[1;", "j", "k", pause_s=1.5) == ["j", "k"]
    assert keys("\x1b]11;rgb:", "j", "k", pause_s=0.2)[-2:] == ["j", "k"]


def test_a_paste_without_an_end_does_not_swallow_the_keys() -> None:
    assert keys("\x1b[200~abc", "q", "j", pause_s=1.5) == ["Paste", "q", "j"]
    assert keys("\x1b[200~abc", "\x1b[A", pause_s=1.5) == ["Paste", "up"]
    assert keys("\x1b[200~abc", "more\r", "text\x1b[201~", pause_s=1.5) == ["Paste"]


def test_a_paste_is_one_event_of_its_text() -> None:
    parser = KeyParser()
    data = "zwölf\0 \x1b[A\n".encode() * 10_000
    sent = b"\x1b[200~" + data + b"\x1b[201~"
    found = [event for at in range(0, len(sent), 4096) for event in parser.feed(sent[at:][:4096])]
    (paste,) = found
    assert isinstance(paste, events.Paste)
    assert paste.text == data.decode().replace("\0", "")


def test_alt_and_a_key_where_it_is_bound() -> None:
    assert keys("\x1bq\x1bQ", "\x1b", "[A", alt=True) == ["alt+q", "alt+shift+q", "up"]
    assert keys("\x1b", alt=True) == ["escape"]
    assert keys("\x1b\x1bq", alt=True) == ["escape", "alt+q"]
    assert keys(b"\x1b\xc3", b"\xa4", alt=True)  # Esc and half of a character


def test_the_mouse_in_pixels_needs_the_size_of_a_cell() -> None:
    parser = KeyParser()
    assert said(parser.feed(b"\x1b[48;24;80;384;640t")) == []  # nobody asked for it
    parser.reports_sizes = True
    assert said(parser.feed(b"\x1b[48;24;80;0;0t\x1b[<0;17;33M")) == ["MouseDown"]
    resized, pressed = parser.feed(b"\x1b[48;24:1;80;384;640t\x1b[<0;17;33M")
    assert isinstance(resized, events.Resize)
    assert resized.size == (80, 24)
    assert isinstance(pressed, events.MouseDown)
    assert (pressed.x, pressed.y) == (2, 2)


_NUMBER = st.one_of(st.just(""), st.integers(0, 10**9).map(str), st.sampled_from(("1", "97", "27")))
_FIELD = st.lists(_NUMBER, max_size=4).map(":".join)
_FINAL = st.sampled_from([*"u~ABCDEFGHIMOPQRSZtmcny@^$[`"])
_NEAR = st.builds(
    "\x1b[{}{}{}{}".format,
    st.sampled_from(["", "", "<", "?", ">", "M", "[", "-"]),
    st.lists(_FIELD, max_size=6).map(";".join),
    st.sampled_from(["", "", "", "$", " ", "!"]),
    _FINAL,
).map(lambda text: text.encode())
"""What looks like a sequence."""
_SNIPPETS = st.sampled_from([
    b"\x1b", b"\x1b[", b"\x1bO", b"\x1bP", b"\x1b]", b"\x1b_G", b"\x1b\\", b"\x07", b"\x1b[200~",
    b"\x1b[201~", b"\x1b[M", b"\x1b[<", b"\x1b[48;", b"\x1b[?2048;2$y", b"\x9b", b"\xe4", b"\0",
])  # fmt: skip
_NOISE = st.lists(st.one_of(st.binary(max_size=8), _NEAR, _SNIPPETS), max_size=30).map(b"".join)


@pytest.mark.broad
@settings(max_examples=40)
@given(
    _NOISE,
    st.lists(st.tuples(st.integers(0, 40), st.sampled_from((0.0, 0.05, 0.2, 1.5))), max_size=40),
    st.booleans(),
)
def test_no_bytes_stop_the_parser(data: bytes, cuts: list[tuple[int, float]], alt: bool) -> None:
    clock = Clock()
    parser = KeyParser(alt, clock)
    parser.reports_sizes = True
    at = 0
    found: list[Message] = []
    for length, pause_s in [*cuts, (len(data), 2.0)]:
        found += parser.feed(data[at : at + length])
        at += length
        clock.now += pause_s
        found += parser.tick()
    clock.now += 2.0
    found += parser.tick()
    assert all(isinstance(event, Message) for event in found)
    assert said(parser.feed(b"q"))[-1] == "q"  # whatever came before


_KNOWN = [
    key.encode("latin-1")
    for key in ANSI_SEQUENCES_KEYS
    if key.startswith(("\x1b[", "\x1bO")) and key.isascii()
]
_VALID = st.one_of(
    st.sampled_from(_KNOWN),
    st.text(st.characters(codec="utf-8", exclude_characters="\x1b"), min_size=1).map(str.encode),
    st.builds(
        "\x1b[{};{}u".format, st.sampled_from([9, 13, 27, 97, 228, 57358]), st.integers(1, 256)
    ).map(str.encode),
    st.builds("\x1b[<{};{};{}M".format, st.integers(0, 99), *[st.integers(1, 999)] * 2).map(
        str.encode
    ),
    st.binary(min_size=3, max_size=3).map(lambda at: b"\x1b[M" + bytes(b | 0x20 for b in at)),
    st.text(max_size=50).map(lambda text: b"\x1b[200~" + text.encode() + b"\x1b[201~"),
)


@pytest.mark.broad
@settings(max_examples=40)
@given(st.lists(_VALID, max_size=20), st.lists(st.integers(1, 9)))
def test_where_reads_are_cut_does_not_matter(parts: list[bytes], lengths: list[int]) -> None:
    data = b"".join(parts)
    at, found, parser = 0, [], KeyParser(clock=Clock())
    for length in [*lengths, len(data)]:
        found += said(parser.feed(data[at : at + length]))
        found += said(parser.tick())
        at += length
    assert found == said(KeyParser(clock=Clock()).feed(data))
    apart = [key for part in parts for key in said(KeyParser(clock=Clock()).feed(part))]
    assert found == apart


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
    monkeypatch.setattr("signal.signal", lambda number, handler: None)
    master, slave = pty.openpty()
    try:
        before = termios.tcgetattr(slave)
        assert before[tty.IFLAG] & termios.IXON
        driver = object.__new__(DiffDriver)
        driver.fileno, driver._diff = slave, ScreenDiff()
        driver._app = SimpleNamespace()  # type: ignore[assignment]
        driver.start_application_mode()
        assert seen == {"lines": 0, "control": 0}
        assert driver.attrs_before == before, "what a suspension and the end go back to"
    finally:
        os.close(master)
        os.close(slave)
