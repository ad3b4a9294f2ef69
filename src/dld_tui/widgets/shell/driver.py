"""Textual's driver, sending only the cells that changed: what curses does.

Textual paints whole lines of a pane, and sets and resets both colours around every piece of text.
On a slow line that is most of what is sent: a scroll of a list repaints all its rows, moving the
focus repaints two panes. The terminal's cells are remembered here, and a paint is cut down to the
runs of cells that differ, with only the colours that change between them; a large paint is sent
colour by colour where that is shorter.

The input is what ``Compositor`` renders: absolute moves (``ESC[y;xH``), SGR sequences each
complete in itself (``ESC[…m`` text ``ESC[0m``), text, and line feeds that only precede a move.
Anything else is passed on as it is, and the known state of the screen is discarded.
"""

from __future__ import annotations

import os
import re
import select
import selectors
import shutil
import signal
import sys
import termios
import tty
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from operator import itemgetter
from types import FrameType
from typing import Any, ParamSpec

from textual import events
from textual._ansi_sequences import SYNC_END, SYNC_START
from textual.drivers.linux_driver import LinuxDriver
from textual.geometry import Size
from textual.message import Message

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import ActivityError
from dld_tui.core.text import cell_width
from dld_tui.widgets.shell.key_parser import KeyParser

_TOKEN = re.compile(r"\x1b\[([0-9;]*)([Hm])|([^\x1b]+)")
_FOREIGN = re.compile(r"\x1b(?!\[[0-9;]*[Hm])")
_NARROW = re.compile("[ -~¡-˿Ͱ-ӿ‐-\u20ff\u2100-\u2319\u2400-\u25fc\u27c0-\u2b0f]*")
"""Characters that every terminal draws one cell wide; a run with others is sent whole."""
_SHOWN_ON_BLANKS = frozenset(("4", "7", "9", "21", "51", "52", "53"))
"""Underline, reverse, strike and frames."""
_ERASED = 12
"""Blanks that are worth an erase and a move."""
_FEW = 8
"""Pieces of a paint that is too small to be sorted."""
_GAP = 6
"""Cells that did not change but cost less to send again than to move over."""

_Cells = tuple[list[str], list[str]]
P = ParamSpec("P")


@lru_cache(maxsize=4096)
def _parsed(codes: str) -> tuple[str, str, str]:
    """Return (attributes, text colour, background) of a complete SGR sequence."""
    attributes: list[str] = []
    colours = {"3": "", "4": ""}
    parts = codes.split(";") if codes and codes != "0" else []
    at = 0
    while at < len(parts):
        code = parts[at]
        if code in ("38", "48"):
            length = 5 if parts[at + 1 : at + 2] == ["2"] else 3
            colours[code[0]] = ";".join(parts[at : at + length])
            at += length
            continue
        if len(code) == 2 and code[0] in "349" and code[1] in "01234567":
            colours["3" if code[0] in "39" else "4"] = code
        elif len(code) == 3 and code.startswith("10"):
            colours["4"] = code
        elif code not in ("39", "49"):
            attributes.append(code)
        at += 1
    return ";".join(attributes), colours["3"], colours["4"]


@lru_cache(maxsize=8192)
def _change(before: str, after: str) -> str:
    """Return the shortest sequence that turns one set of colours and attributes into another."""
    if before == after:
        return ""
    old, new = _parsed(before), _parsed(after)
    if old[0] != new[0]:
        if old[0] or not after:
            return f"\x1b[0;{after}m" if after else "\x1b[0m"
        parts = [new[0]]
    else:
        parts = []
    for index, default in ((1, "39"), (2, "49")):
        if old[index] != new[index]:
            parts.append(new[index] or default)
    return f"\x1b[{';'.join(parts)}m" if parts else ""


@lru_cache(maxsize=8192)
def _blank(codes: str) -> str:
    """Return the style of a blank: its text colour does not show, nor do bold and dim."""
    attributes, _, background = _parsed(codes)
    return codes if _SHOWN_ON_BLANKS.intersection(attributes.split(";")) else background


@lru_cache(maxsize=8192)
def _for_blanks(now: str, blank: str) -> str:
    """Return what to set for blanks: only the background differs from what is set now."""
    attributes, colour, _ = _parsed(now)
    if _parsed(blank)[0] or _SHOWN_ON_BLANKS.intersection(attributes.split(";")):
        return blank
    return ";".join(part for part in (attributes, colour, blank) if part)


class ScreenDiff:
    """What the terminal shows, and how to change it.

    Args:
        erase: The terminal erases with the background that is set, so that many blanks need not be
            sent one by one.
    """

    def __init__(self, erase: bool = False) -> None:
        self.erase = erase
        self._rows: dict[int, _Cells] = {}
        self._cursor: tuple[int, int] | None = None

    def forget(self) -> None:
        """Forget the screen, so that the next paint is sent whole: after a resize or a redraw."""
        self._rows.clear()
        self._cursor = None

    def reduce(self, data: str) -> str:
        """Return what to send to get the same screen as by sending `data`."""
        if "H" not in data or not data.startswith("\x1b["):
            if "\x1b[?1049" in data or "\x1b[2J" in data:
                self.forget()
            return data
        if _FOREIGN.search(data):
            self.forget()
            return data
        return _Paint(self._rows, self._cursor, self.erase).run(data, self)

    def moved(self, cursor: tuple[int, int] | None) -> None:
        """Note where a paint left the terminal's cursor."""
        self._cursor = cursor


@dataclass
class _Piece:
    """Cells of a row, all in one style, that are to be sent."""

    row: int
    column: int
    text: str
    cells: int
    style: str
    is_blank: bool
    is_odd: bool
    """Terminals may not agree on where the cursor is after it."""

    @property
    def end(self) -> int:
        return self.column + self.cells


class _Pen:
    """What is sent, and what it leaves the terminal's cursor and colours at."""

    def __init__(self, cursor: tuple[int, int] | None, erase: bool) -> None:
        self.cursor = cursor
        """(row, column) of the terminal's cursor, or None when it is not sure."""
        self.erase = erase
        self.sgr = ""
        self.out: list[str] = []
        self.size = 0

    def draw(self, pieces: Iterable[_Piece]) -> _Pen:
        """Send pieces in their order, and set the colours back."""
        for piece in pieces:
            self.move(piece.row, piece.column)
            wanted = _for_blanks(self.sgr, piece.style) if piece.is_blank else piece.style
            self._say(_change(self.sgr, wanted))
            self.sgr = wanted
            if self.erase and piece.is_blank and piece.cells >= _ERASED:
                self._say(f"\x1b[{piece.cells}X")  # the cursor stays before them
            else:
                self._say(piece.text)
                # Terminals do not agree on the width of some characters: say where to go on.
                self.cursor = None if piece.is_odd else (piece.row, piece.end)
        if self.sgr:
            self._say("\x1b[0m")
        return self

    def move(self, row: int, column: int) -> None:
        """Put the cursor somewhere."""
        if self.cursor == (row, column):
            return
        if self.cursor is not None and self.cursor[0] == row and column - self.cursor[1] > 0:
            self._say(f"\x1b[{column - self.cursor[1]}C")
        else:
            self._say(f"\x1b[{row};{column}H")
        self.cursor = (row, column)

    def _say(self, text: str) -> None:
        self.out.append(text)
        self.size += len(text)


class _Paint:
    """One pass over one paint."""

    def __init__(
        self, rows: dict[int, _Cells], cursor: tuple[int, int] | None, erase: bool
    ) -> None:
        self.rows = rows
        self.erase = erase
        self.cursor = cursor
        self.pieces: list[_Piece] = []
        self.reached: dict[int, int] = {}
        """By row, the column up to which pieces reach."""
        self.is_twice = False
        """Whether some cells may be painted twice, so that the order matters."""

    def run(self, data: str, owner: ScreenDiff) -> str:
        """Return the reduced paint."""
        at: tuple[int, int] | None = None
        run: list[tuple[str, str]] = []
        sgr = ""
        for match in _TOKEN.finditer(data):
            codes, kind, text = match.groups()
            if kind == "H":
                self._put(at, run)
                run = []
                row, _, column = codes.partition(";")
                at = (int(row or 1), int(column or 1))
            elif kind == "m":
                sgr = "" if codes in ("", "0") else codes
            elif text := text.replace("\n", ""):
                run.append((text, sgr))
        self._put(at, run)
        pen = _Pen(self.cursor, self.erase).draw(self.pieces)
        if len(self.pieces) > _FEW and not self.is_twice:
            # A move is shorter than the colours of most themes.
            by_colour = _Pen(self.cursor, self.erase).draw(_by_colour(self.pieces))
            pen = min(pen, by_colour, key=lambda pen: pen.size)
        if at is not None and not run and pen.cursor != at:
            # A move at the end is where the text cursor belongs.
            pen.out.append(f"\x1b[{at[0]};{at[1]}H")
            pen.cursor = at
        owner.moved(pen.cursor)
        return "".join(pen.out)

    def _put(self, at: tuple[int, int] | None, run: list[tuple[str, str]]) -> None:
        if at is None or not run:
            return
        row, column = at
        chars, styles = _cells(run)
        known = self.rows.setdefault(row, ([], []))
        end = column + len(chars)
        if len(known[0]) < end:
            missing = end - len(known[0])
            known[0].extend([""] * missing)  # no cell has no character: always different
            known[1].extend(["?"] * missing)
        old_chars, old_styles = known[0][column:end], known[1][column:end]
        known[0][column:end], known[1][column:end] = chars, styles
        if chars == old_chars and styles == old_styles:
            return
        odd = _odd_cells(chars)
        done = 0
        for start, stop in _differing(chars, styles, old_chars, old_styles, self.erase):
            # Half of a wide character cannot be sent, nor overwritten.
            while start > done and not (chars[start] and old_chars[start]):
                start -= 1
            while stop < len(chars) and not (chars[stop] and old_chars[stop]):
                stop += 1
            if done < stop:
                self._cut((row, column), chars[:stop], styles, odd, max(start, done))
                done = stop

    def _cut(
        self,
        origin: tuple[int, int],
        chars: list[str],
        styles: list[str],
        odd: list[bool],
        start: int,
    ) -> None:
        """Cut the cells from `start` on into pieces."""
        row, column = origin
        at, stop = start, len(chars)
        self.is_twice = self.is_twice or column + start < self.reached.get(row, 0)
        self.reached[row] = max(self.reached.get(row, 0), column + stop)
        while at < stop:
            style, is_odd = styles[at], odd[at]
            end = at + 1
            while end < stop and styles[end] == style and odd[end] == is_odd:
                end += 1
            text = "".join(chars[at:end])
            is_blank = not text.strip(" ") and not _parsed(style)[0]
            self.pieces.append(_Piece(row, column + at, text, end - at, style, is_blank, is_odd))
            at = end


def _by_colour(pieces: Iterable[_Piece]) -> list[_Piece]:
    """Return pieces sorted by background, then by colour, with the blanks among a text in it."""
    joined: list[_Piece] = []
    for piece in pieces:
        last = joined[-1] if joined else None
        if last is not None and (last.row, last.end) == (piece.row, piece.column):
            same = piece.style == last.style and not piece.is_blank
            blank = piece.is_blank and piece.cells < _ERASED and not last.is_blank
            if (same and not last.is_odd) or (
                blank and not last.is_odd and _for_blanks(last.style, piece.style) == last.style
            ):
                text, cells = last.text + piece.text, last.cells + piece.cells
                joined[-1] = replace(last, text=text, cells=cells)
                continue
        joined.append(piece)
    order: dict[str, int] = {}
    keys = []
    for piece in joined:
        background = order.setdefault("on " + _parsed(piece.style)[2], len(order))
        keys.append((background, order.setdefault(piece.style, len(order))))
    return [piece for _, piece in sorted(zip(keys, joined, strict=True), key=itemgetter(0))]


def _odd_cells(chars: list[str]) -> list[bool]:
    """Return which cells hold a character whose width terminals may not agree on."""
    if "" not in chars and _NARROW.fullmatch("".join(chars)):
        return [False] * len(chars)
    return [not char or not _NARROW.fullmatch(char) for char in chars]


def _cells(run: list[tuple[str, str]]) -> tuple[list[str], list[str]]:
    chars: list[str] = []
    styles: list[str] = []
    for text, sgr in run:
        if _NARROW.fullmatch(text):
            chars += text
            blank = _blank(sgr)
            styles += [blank if char == " " else sgr for char in text]
            continue
        for char in text:
            width = cell_width(char)
            if width < 1:  # a combining mark belongs to the cell before; without one it is lost
                chars[-1:] = [cell + char for cell in chars[-1:]]
                continue
            chars += [char] + [""] * (width - 1)
            styles += [_blank(sgr) if char == " " else sgr] * width
    return chars, styles


def _differing(
    chars: list[str],
    styles: list[str],
    old_chars: list[str],
    old_styles: list[str],
    erase: bool,
) -> list[tuple[int, int]]:
    """Return the (start, end) of the runs to send, near ones joined.

    Blanks of one background that are far apart are joined, too, when those between them are like
    them: to erase all is shorter than to erase each.
    """
    differing: list[tuple[int, int]] = []
    start = last = -1
    for index, (char, style, old_char, old_style) in enumerate(
        zip(chars, styles, old_chars, old_styles, strict=True)
    ):
        if char == old_char and style == old_style:
            continue
        gap = index - last - 1
        if start < 0:
            start = index
        elif (gap > _GAP or (gap and styles[last] != styles[last + 1])) and not (
            erase
            and gap + 2 >= _ERASED
            and char == " " == chars[last]
            and chars[last:index].count(" ") == gap + 1
            and styles[last:index].count(style) == gap + 1
        ):
            differing.append((start, last + 1))
            start = index
        last = index
    if start >= 0:
        differing.append((start, last + 1))
    return differing


_READ = 4096
"""Bytes that are read at once."""
_TICK_S = 0.1
_NO_PIXELS = "\x1b[?1016l"
_LEAVING = (
    b"\x1b[?2004l\x1b[?7h\x1b[?2048l\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?1016l"
    b"\x1b[?2026l\x1b[<u\x1b[0m\x1b[?1049l\x1b[?25h\x1b[?1004l"
)
"""What ends all modes that Textual's driver begins."""


class _Screen:
    """The file of the writer thread, which goes on when the terminal has gone.

    Else the app would wait for that thread for ever.

    Args:
        file: What is drawn on.
        failed: Called with the first error.
    """

    def __init__(self, file: Any, failed: Callable[[BaseException], None]) -> None:
        self.has_failed = False
        self._file, self._failed = file, failed

    def fileno(self) -> int:
        return int(self._file.fileno())

    def write(self, text: str) -> None:
        self._do(self._file.write, text)

    def flush(self) -> None:
        self._do(self._file.flush)

    def _do(self, function: Callable[P, object], *args: P.args, **options: P.kwargs) -> None:
        if self.has_failed:
            return
        try:
            function(*args, **options)
        except Exception as error:  # noqa: BLE001 - the app says it
            self.has_failed = True
            self._failed(error)


class DiffDriver(LinuxDriver):
    """Draws on standard error, as Textual's own driver does."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._file: Any = _Screen(sys.__stderr__, self._failed)
        self._parser = KeyParser()
        self._reported = Size(80, 24)
        self._is_on = False
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
        """Read what the terminal sends until the end.

        Raises:
            ActivityError: The terminal has gone.
        """
        with selectors.DefaultSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            while not self.exit_event.is_set():
                if selector.select(_TICK_S):
                    data = os.read(self.fileno, _READ)
                    if not data:
                        raise ActivityError("the terminal has gone")
                    for event in self._parser.feed(data):
                        self.process_message(event)
                for event in self._parser.tick():
                    self.process_message(event)

    def _run_input_thread(self) -> None:
        try:
            self.run_input_thread()
        except BaseException as error:  # noqa: BLE001 - the app says it
            self._failed(error)

    def _failed(self, error: BaseException) -> None:
        """End the app, from a thread: it can be neither used nor seen any more."""
        with suppress(RuntimeError):  # it has ended meanwhile
            self._loop.call_soon_threadsafe(self._app._handle_exception, error)  # type: ignore[arg-type]

    def process_message(self, message: Message) -> None:
        """Send an event to the app, from the input thread."""
        if isinstance(message, events.Resize):
            # It is a hint to look: the terminal may have another size by now.
            self._reported = message.size
            size = self.present_size
            message = events.Resize(size, size, size, message.pixel_size)
        super().process_message(message)
        self._parser.reports_sizes = self._mouse_pixels

    def start_application_mode(self) -> None:
        """Begin, or begin again after a suspension."""
        self._diff.forget()
        bound: Mapping[str, str] = getattr(getattr(self._app, "config", None), "keys", {})
        self._parser = KeyParser(alt=any("alt+" in keys for keys in bound.values()))
        before = self._take_keys()
        self._is_on = True
        super().start_application_mode()  # type: ignore[no-untyped-call]
        if before is not None:
            self.attrs_before = before
        signal.signal(signal.SIGWINCH, self._resized)

    def _resized(self, number: int, frame: FrameType | None) -> None:
        """Tell the app the new size, also where the terminal reports it by itself."""
        size = self.present_size
        self.send_message(events.Resize(size, size))

    @property
    def present_size(self) -> Size:
        """The size of the terminal: what its last report said where nothing else knows it."""
        return Size(*shutil.get_terminal_size(self._reported))

    def _get_terminal_size(self) -> tuple[int, int]:
        return self.present_size

    def _disable_mouse_support(self) -> None:
        super()._disable_mouse_support()
        if self._mouse_pixels:
            self.write(_NO_PIXELS)

    def stop_application_mode(self) -> None:
        """Give the terminal back."""
        super().stop_application_mode()
        self._is_on = self._file.has_failed  # else nothing of that has been sent

    def leave_at_once(self) -> None:
        """Give the terminal back from any thread, if that was not done; it waits for nothing."""
        if not self._is_on:
            return
        self._is_on = False
        with suppress(OSError, ValueError, termios.error):  # it may have gone
            termios.tcflush(self.fileno, termios.TCIFLUSH)  # else the shell runs what was typed
            if self.attrs_before is not None:
                termios.tcsetattr(self.fileno, termios.TCSANOW, self.attrs_before)
            screen = self._file.fileno()
            if select.select([], [screen], [], _TICK_S)[1]:  # else it takes nothing any more
                os.write(screen, _LEAVING)

    def _take_keys(self) -> list[Any] | None:
        """Take keys one by one before anything is shown, and return how the terminal took them.

        Somebody who sees the program types at it: in a line that is not taken yet, the terminal
        itself would swallow Ctrl+Q and Ctrl+S, and Ctrl+W and Ctrl+U would erase other keys.
        """
        try:
            before, raw = termios.tcgetattr(self.fileno), termios.tcgetattr(self.fileno)
            raw[tty.LFLAG] = self._patch_lflag(raw[tty.LFLAG])
            raw[tty.IFLAG] = self._patch_iflag(raw[tty.IFLAG])
            termios.tcsetattr(self.fileno, termios.TCSANOW, raw)
        except termios.error:
            return None
        return before


def erases_with_background(environ: Mapping[str, str]) -> bool:
    """Return whether the terminal fills erased cells with the current background.

    GNU screen does not; tmux does, although it may call itself ``screen``.
    """
    kind = environ.get("TERM", "")
    known = ("xterm", "tmux", "alacritty", "kitty", "foot", "rxvt", "st-", "wezterm", "ghostty")
    return kind.startswith(known) or (kind.startswith("screen") and "TMUX" in environ)
