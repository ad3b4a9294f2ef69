"""Record the first five minutes: the real program, typed at in a pseudo-terminal.

Writes ``docs/images/tour.cast`` (asciinema, version 2) and the same as an animated picture,
``docs/images/tour.svg``. Waiting for the machine is left out: each key has the time that a reader
needs. Needs pyte, an emulator of a terminal: ``pip install pyte``.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import selectors
import shutil
import struct
import sys
import tempfile
import termios
import time
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import pyte

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
COLUMNS, ROWS = 112, 30
QUIET_S, LIMIT_S = 0.6, 110.0
TYPED_S, PAINTED_S = 0.12, 0.3
"""Between two letters, and between two pieces that the program sends, at most."""
SENT = {"Enter": "\r", "Esc": "\x1b", "F5": "\x1b[15~",
        "F9": "\x1b[20~", "Down": "\x1b[B"}  # fmt: skip


@dataclass(frozen=True)
class Step:
    """Keys, what has to be seen before the next ones, and how long that is left to look at."""

    keys: tuple[str, ...]
    until: str
    hold_s: float
    caption: str
    """The keys and what they do, below the screen."""


TOUR = (
    Step((), "demo_transformer", 1.0, "dld"),
    Step(("Enter",), "Graph", 1.8, "Enter: open a model; repeated blocks are folded"),
    Step(("/", *"act/Erf", "Enter"), "Erf", 1.5, "/ act/Erf: find a node"),
    Step(("d",), "delete", 1.0, "d: delete it"),
    Step(("r",), "undoes it", 1.6, "r: and reconnect its users"),
    Step(("u",), "Undone", 1.6, "u: undo"),
    Step(("F5",), "Profile", 1.2, "F5: find the slow layers"),
    Step(("F5",), "a second", 3.0, "F5: run it"),
    Step(("3",), "", 1.6, "3: the layers"),
    Step(("q",), "Graph", 0.6, "q: back to the model"),
    Step(("F9",), "F5 run", 1.2, "F9: make it faster"),
    Step(("Down", "Down", *"60"), "60", 0.8, "in 60 seconds"),
    Step(("F5",), "is faster", 4.5, "F5: candidates race, and the best is measured once more"),
)


# What a terminal answers to, or takes for a setting, and pyte would print.
_UNKNOWN = re.compile(
    r"\x1b\[[<>=][\d;]*[a-zA-Z]|\x1b\[\?[\d;]*\$p|\x1bP.*?\x1b\\|\x1b\[\d* q", re.S
)


Frame = tuple[float, list[list[Any]]]
"""When it is shown, in seconds; and its rows, the last of which is the caption."""


class Terminal:
    """The program in a pseudo-terminal, and what it has drawn."""

    def __init__(self, folder: Path, place: str) -> None:
        self.screen = pyte.Screen(COLUMNS, ROWS)
        self._stream = pyte.Stream(self.screen)
        self.events: list[tuple[float, str]] = []
        """Seconds of the recording, and what was sent then."""
        self.frames: list[Frame] = []
        self.clock = 0.0
        pid, self._master = pty.fork()
        if not pid:
            os.chdir(folder)
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
            home = {f"XDG_{name}_HOME": f"{place}/{name}" for name in
                    ("CONFIG", "STATE", "CACHE", "DATA")}  # fmt: skip
            os.execve(sys.executable, [sys.executable, "-m", "dld_tui"], {
                **os.environ, **home, "TERM": "xterm-256color", "COLORTERM": "truecolor",
                "TEXTUAL_ANIMATIONS": "none",
            })  # fmt: skip
        self._pid = pid

    def read(self, until: str) -> None:
        """Take what comes until a text is seen and nothing has come for a while."""
        begun, text = time.monotonic(), b""
        with selectors.DefaultSelector() as waiting:
            waiting.register(self._master, selectors.EVENT_READ)
            while time.monotonic() - begun < LIMIT_S:
                if waiting.select(QUIET_S):
                    try:
                        text = text + os.read(self._master, 1 << 16)
                    except OSError:  # the program has ended
                        return
                    text = self._take(text)
                elif until in "\n".join(self.screen.display):
                    return
        raise SystemExit(f"{until!r} was not seen:\n" + "\n".join(self.screen.display))

    def _take(self, data: bytes) -> bytes:
        """Show what is whole of some bytes, and return the rest."""
        for cut in range(4):
            try:
                text = data[: len(data) - cut].decode()
            except UnicodeDecodeError:
                continue
            self.clock += min(PAINTED_S, 0.02)
            self.events.append((self.clock, text))
            self._stream.feed(_UNKNOWN.sub("", text))
            return data[len(data) - cut :]
        return data

    def snapshot(self, caption: str) -> None:
        """Keep what is seen now as a picture, with a line below it."""
        rows = [_runs(self.screen.buffer[row]) for row in range(ROWS)]
        rows.append([(1, caption, CAPTION, "#121212", True)])
        if not self.frames or self.frames[-1][1] != rows:
            self.frames.append((self.clock, rows))

    def press(self, key: str) -> None:
        """Type a key."""
        os.write(self._master, SENT.get(key, key).encode())

    def end(self) -> None:
        """End the program."""
        os.close(self._master)
        os.waitpid(self._pid, 0)


def _colour(name: str, fallback: str) -> str:
    if name == "default":
        return fallback
    return f"#{name}" if re.fullmatch(r"[0-9a-f]{6}", name) else {"brown": "olive"}.get(name, name)


def _runs(row: Any) -> list[tuple[int, str, str, str, bool]]:
    """Return a row as (column, text, colour, background, bold)."""
    found: list[tuple[int, str, str, str, bool]] = []
    for column in range(COLUMNS):
        cell = row[column]
        front, back = _colour(cell.fg, "#e0e0e0"), _colour(cell.bg, "#121212")
        if cell.reverse:
            front, back = back, front
        last = found[-1] if found else None
        if last and (last[2:] == (front, back, cell.bold) or (cell.data, back) == (" ", last[3])):
            found[-1] = last[0], last[1] + cell.data, *last[2:]
        else:
            found.append((column, cell.data, front, back, cell.bold))
    return found


WIDTH, HEIGHT = 8.4, 16.5
"""Of a cell."""
CAPTION = "#ffd75f"


def animated(frames: list[Frame], length: float) -> str:
    """Return an animated picture: each different row is drawn once, and used by the frames."""
    rows: dict[str, str] = {}
    shown = []
    for at, (when, lines) in enumerate(frames):
        until = frames[at + 1][0] if at + 1 < len(frames) else length
        uses = []
        for row, line in enumerate(lines):
            drawn = _drawn(line)
            if drawn:
                name = rows.setdefault(drawn, f"r{len(rows)}")
                gap = HEIGHT / 2 if row == ROWS else 0
                uses.append(f'<use href="#{name}" y="{row * HEIGHT + gap}"/>')
        first, last = 100 * when / length, 100 * until / length
        shown.append(
            f"@keyframes k{at}{{0%,{first:.3f}%{{visibility:hidden}}"
            f"{first + 0.001:.3f}%,{last:.3f}%{{visibility:visible}}"
            f"{min(last + 0.001, 100):.3f}%,100%{{visibility:hidden}}}}"
            f"#f{at}{{animation:k{at} {length:.2f}s step-end infinite}}",
        )
        shown.append(f'\0<g id="f{at}" visibility="hidden">{"".join(uses)}</g>')
    style = "".join(part for part in shown if not part.startswith("\0"))
    groups = "".join(part[1:] for part in shown if part.startswith("\0"))
    width, height = COLUMNS * WIDTH, (ROWS + 2) * HEIGHT
    symbols = "".join(f'<g id="{name}">{drawn}</g>' for drawn, name in rows.items())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve"'
        f' viewBox="0 0 {width:g} {height:g}">'
        f"<style>text{{font:14px 'DejaVu Sans Mono',Menlo,Consolas,monospace;white-space:pre}}"
        f".b{{font-weight:bold}}{style}</style><defs>{symbols}</defs>"
        f'<rect width="100%" height="100%" rx="6" fill="#121212"/>{groups}</svg>\n'
    )


def _drawn(line: list[tuple[int, str, str, str, bool]]) -> str:
    parts = []
    for column, text, front, back, bold in line:
        x, width = column * WIDTH, len(text) * WIDTH
        if back != "#121212":
            parts.append(f'<rect x="{x:.4g}" width="{width:.4g}" height="{HEIGHT}" fill="{back}"/>')
        told = text.strip()
        if told:
            start = x + (len(text) - len(text.lstrip())) * WIDTH
            parts.append(
                f'<text x="{start:.4g}" y="13" textLength="{len(told) * WIDTH:.4g}"'
                f'{" class=" + chr(34) + "b" + chr(34) if bold else ""} fill="{front}">'
                f"{escape(told)}</text>"
            )
    return "".join(parts)


def main() -> None:
    """Record the tour on the demo models."""
    from dld_tui.core.model.document.samples import write_demo_models

    with tempfile.TemporaryDirectory() as place:
        # A path that says nothing of the machine, for what is shown.
        folder = Path(tempfile.gettempdir()) / "models"
        folder.mkdir()
        write_demo_models(folder)
        terminal = Terminal(folder, place)
        for step in TOUR:
            for key in step.keys:
                terminal.press(key)
                terminal.read("")
                terminal.snapshot(step.caption)
                terminal.clock += TYPED_S if len(key) == 1 else 2 * TYPED_S
            terminal.read(step.until)
            terminal.snapshot(step.caption)
            terminal.clock += step.hold_s
        terminal.end()
        shutil.rmtree(folder)
    header = {"version": 2, "width": COLUMNS, "height": ROWS, "title": "dld: the first minutes",
              "env": {"TERM": "xterm-256color"}}  # fmt: skip
    lines = [header, *([round(at, 3), "o", text] for at, text in terminal.events)]
    cast = "".join(json.dumps(line) + "\n" for line in lines)
    (IMAGES / "tour.cast").write_text(cast, encoding="utf-8")
    (IMAGES / "tour.svg").write_text(animated(terminal.frames, terminal.clock), encoding="utf-8")


if __name__ == "__main__":
    main()
