from __future__ import annotations

import random
import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dld_tui.core.text import cell_width
from dld_tui.widgets.shell.driver import ScreenDiff, erases_with_background

WIDTH, HEIGHT = 30, 6
STYLES = [
    "", "38;2;1;2;3;48;2;9;9;9", "38;2;4;5;6;48;2;9;9;9", "1;38;2;4;5;6;48;2;9;9;9", "7", "2;37;40",
    "38;5;12;49", "4;38;2;4;5;6;48;2;9;9;9",
]  # fmt: skip
TEXTS = [
    "", " ", " " * 14, "a b  c", "abc", "Conv /blk[0]", "│ ├─● ", "漢字", "é", "é", "x" * 12, "   ",
    "🙂",
]  # fmt: skip


class Terminal:
    """The little of a terminal that a paint needs; each cell is (character, look)."""

    def __init__(self) -> None:
        blank = (" ", ("", "", ""))
        self.cells = [[blank] * (WIDTH + 2) for _ in range(HEIGHT + 1)]
        self.row = self.column = 1
        self.look: tuple[str, str, str] = ("", "", "")

    def write(self, data: str) -> None:
        for match in re.finditer(r"\x1b\[([0-9;]*)([HmCX])|(\n)|([^\x1b\n])", data):
            codes, kind, newline, char = match.groups()
            if kind == "H":
                row, _, column = codes.partition(";")
                self.row, self.column = int(row), int(column)
            elif kind == "C":
                self.column += int(codes)
            elif kind == "X":
                for cell in range(self.column, self.column + int(codes)):
                    self.cells[self.row][cell] = (" ", self.look)
            elif kind == "m":
                self.set_look(codes)
            elif newline:
                continue  # Textual always moves after it
            else:
                self.draw(char)

    def set_look(self, codes: str) -> None:
        parts = codes.split(";")
        while parts:
            code = parts.pop(0)
            attributes, colour, background = self.look
            if code in ("", "0"):
                self.look = ("", "", "")
            elif code in ("38", "48"):
                count = 4 if parts[0] == "2" else 2
                value = ";".join(parts[:count])
                del parts[:count]
                self.look = (
                    (attributes, value, background) if code == "38" else (attributes, colour, value)
                )
            elif code[0] == "3" and len(code) == 2:
                self.look = (attributes, "" if code == "39" else code, background)
            elif code[0] == "4" and len(code) == 2:
                self.look = (attributes, colour, "" if code == "49" else code)
            else:
                self.look = (attributes + code, colour, background)

    def draw(self, char: str) -> None:
        width = cell_width(char)
        cells = self.cells[self.row]
        if not width:
            cells[self.column - 1] = (cells[self.column - 1][0] + char, cells[self.column - 1][1])
            return
        for cell in range(self.column, self.column + width):
            cells[cell] = (char if cell == self.column else "", self.look)
        self.column += width


def paint(rng: random.Random) -> str:
    parts = []
    for _ in range(rng.randrange(1, 5)):
        row, column = rng.randrange(1, HEIGHT + 1), rng.choice((1, 1, 4, 9))
        parts.append(f"\x1b[{row};{column}H")
        room = WIDTH - column
        for _ in range(rng.randrange(1, 5)):
            text, style = rng.choice(TEXTS), rng.choice(STYLES)
            if cell_width(text) > room:
                break
            room -= cell_width(text)
            parts.append(f"\x1b[{style}m{text}\x1b[0m" if style else text)
        parts.append("\n")
    return "".join(parts) + f"\x1b[{rng.randrange(1, HEIGHT + 1)};1H"


@pytest.mark.parametrize("seed", range(60))
def test_the_reduced_output_draws_the_same_screen(seed: int) -> None:
    rng = random.Random(seed)
    whole, reduced, diff = Terminal(), Terminal(), ScreenDiff(erase=seed % 2 == 0)
    sent = saved = 0
    # A screen begins with a paint of all of it.
    first = "".join(f"\x1b[{row};1H{'.' * WIDTH}\n" for row in range(1, HEIGHT + 1)) + "\x1b[1;1H"
    for data in [first, *(paint(rng) for _ in range(12))]:
        whole.write(data)
        short = diff.reduce(data)
        reduced.write(short)
        sent, saved = sent + len(data), saved + len(short)
        assert _seen(reduced) == _seen(whole)
        assert (reduced.row, reduced.column) == (whole.row, whole.column)
        assert reduced.look == ("", "", "")
    assert saved < sent


def _seen(terminal: Terminal) -> list[list[tuple[str, tuple[str, str, str]]]]:
    # Half of an overwritten wide character looks different in every terminal.
    return [[_shown(*cell) for cell in row if cell[0]] for row in terminal.cells]


def _shown(char: str, look: tuple[str, str, str]) -> tuple[str, tuple[str, str, str]]:
    # The colour of a blank does not show, nor its weight.
    if char == " " and "7" not in look[0] and "4" not in look[0]:
        return char, ("", "", look[2])
    return char, look


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(
            st.integers(1, 5), st.integers(1, 30), st.text(max_size=9), st.sampled_from(STYLES)
        ),
        max_size=20,
    )
)
@example([(1, 1, "\u0301a", ""), (1, 1, "\u200b", ""), (1, 1, "漢\u0301\u0301", "7")])
def test_no_text_stops_it(paints: list[tuple[int, int, str, str]]) -> None:
    diff = ScreenDiff(erase=True)
    for row, column, text, style in paints:
        diff.reduce(f"\x1b[{row};{column}H\x1b[{style}m{text}\x1b[0m")
        chars, styles = diff._rows.get(row, ([], []))
        assert len(chars) == len(styles)


def test_only_what_changed_is_sent() -> None:
    # An equal paint sends nothing but the cursor.
    diff = ScreenDiff()
    data = "\x1b[1;1H\x1b[1;38;2;1;2;3mabc\x1b[0m\n\x1b[2;1Hdef\x1b[1;1H"
    assert "abc" in diff.reduce(data)
    assert diff.reduce(data) == ""
    # Only the changed run is sent.
    diff = ScreenDiff()
    diff.reduce("\x1b[3;1HConv     /blk[0]/Conv     [1, 3]\x1b[1;1H")
    assert diff.reduce("\x1b[3;1HConv     /blk[1]/Conv     [1, 3]\x1b[1;1H") == (
        "\x1b[3;15H1\x1b[1;1H"
    )
    # Many blanks are erased.
    diff = ScreenDiff(erase=True)
    diff.reduce("\x1b[1;1H" + "x" * 60 + "\x1b[1;1H")
    short = diff.reduce("\x1b[1;1H\x1b[38;2;1;2;3;48;2;4;5;6mx" + " " * 58 + "y\x1b[0m\x1b[1;1H")
    assert "\x1b[58X\x1b[58C" in short
    assert "  " not in short
    # The colour of blanks is not sent.
    diff = ScreenDiff()
    diff.reduce("\x1b[1;1H\x1b[31;40ma   b\x1b[0m\x1b[1;1H")
    assert (
        diff.reduce(
            "\x1b[1;1H\x1b[31;40ma\x1b[0m\x1b[1;32;40m   \x1b[0m\x1b[31;40mb\x1b[0m\x1b[1;1H"
        )
        == ""
    )


def test_foreign_sequences_pass_and_forget_the_screen() -> None:
    diff = ScreenDiff()
    data = "\x1b[1;1Habc\x1b[1;1H"
    diff.reduce(data)
    assert diff.reduce("\x1b]52;c;AAAA\a") == "\x1b]52;c;AAAA\a"
    assert diff.reduce(data) == ""
    link = "\x1b[1;1H\x1b]8;id=1;http://x\x1b\\abc\x1b]8;;\x1b\\"
    assert diff.reduce(link) == link
    assert "abc" in diff.reduce(data)
    assert diff.reduce("\x1b[?1049h") == "\x1b[?1049h"
    assert "abc" in diff.reduce(data)


@pytest.mark.parametrize(
    ("environ", "erases"),
    [
        ({"TERM": "xterm-256color"}, True),
        ({"TERM": "tmux-256color"}, True),
        ({"TERM": "screen"}, False),
        ({"TERM": "screen-256color", "TMUX": "x"}, True),
        ({"TERM": "vt100"}, False),
        ({}, False),
    ],
)
def test_terminals_that_erase_with_the_background(environ: dict[str, str], erases: bool) -> None:
    assert erases_with_background(environ) is erases
