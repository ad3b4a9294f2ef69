"""Draws what is typed at the program: keys of all kinds, noise, the mouse, pastes, new sizes.

A session ends by a quit, by SIGTERM or by SIGKILL. Whatever was typed, the program must not end by
itself, must answer, must give the terminal back, and its journals must make the edits again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import shutil
import signal
import tarfile
import termios
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dld_tui.commands import all_commands
from dld_tui.core.model.document import Document
from dld_tui.core.model.document.samples import write_demo_models
from dld_tui.core.model.document.scripting.journal import crash_journals
from dld_tui.core.model.document.scripting.scripts import replay
from tests.support.sessions import bytes_of
from tests.support.typist import Programs, Typist, private

_DATA = Path(__file__).parents[1] / "data"
_PAGES = {
    "profiles.tar.xz": "ortprofile/light_shufflenet.ort1.31.1.json",
    "engines.tar.xz": "engines/cookbook/trt10.16.1-exportLayerInfo-detailed.json",
}
"""A report and an engine plan, which are opened beside the models."""
PALETTE, OPEN, QUIT, ESC = "\x10", "\x0f", "\x11", "\x1b"
_PLAIN = "".join(map(chr, range(0x20, 0x7F))).translate(dict.fromkeys(map(ord, "/~`;|&$")))
"""No path outside the folder of the session is typed, nor a shell's command."""
_NAMED = (
    "\x1b[A", "\x1b[B", "\x1b[C", "\x1b[D", "\x1b[H", "\x1b[F", "\x1b[5~", "\x1b[6~", "\r", "\t",
    "\x1b[Z", "\x7f", "\x1b[3~", "\x1b[2~", " ", ESC, ESC, ESC, "\x1bOP", "\x1bOQ", "\x1bOR",
    "\x1b[17~", "\x1b[18~", "\x1b[19~", "\x1b[21~", "\x1b[23~", "\x1b[24~", "\x1b[1;2A",
    "\x1b[1;5C",
)  # fmt: skip
_CONTROL = "".join(chr(number) for number in range(1, 27) if number not in (3, 17, 26))
"""Not those that quit the program, nor Ctrl+Z, of which kitty's forms are drawn."""
_WORDS = ("relu", "conv", "1", "0.5", "name", "x.onnx", "[1, 2]", "float16", "N", "-1", "1e999")
_EDITS = ("d\r", "dr", "rname\r", "u", "u\x19", "U", "y", "p", "x", "arelu\r", "3je\x15 7\r", "O")
"""What changes the node at the cursor, takes it back, or makes it again."""
_LEFT_OUT = {"app.quit", "app.close"}
_TITLES = [command.title for command in all_commands() if command.id not in _LEFT_OUT]
_RESTS = 0.1
"""So often nothing is typed until all keys have had their effect; else they are typed ahead."""
_MODES = (1000, 1003, 1004, 1006, 1015, 1049, 2004)
"""What the program switches on and must switch off."""


@dataclass
class Outcome:
    """What one session gave, or several."""

    keys: int = 0
    sessions: int = 0
    slowest_s: float = 0.0
    """The longest that the program did not answer."""
    replayed: int = 0
    """Documents whose journal made the same edits again."""
    edits: int = 0
    """Lines of their journals."""
    pages: set[str] = field(default_factory=set)
    """The classes of pages and dialogs that were seen."""
    faults: list[str] = field(default_factory=list)

    def add(self, other: Outcome) -> None:
        """Count another session."""
        self.keys += other.keys
        self.sessions += other.sessions
        self.slowest_s = max(self.slowest_s, other.slowest_s)
        self.replayed += other.replayed
        self.edits += other.edits
        self.pages |= other.pages
        self.faults += other.faults


def draw_keys(draw: random.Random, files: list[str], size: tuple[int, int]) -> bytes:
    """Return what one action sends: a key, or a few that belong together."""
    kind = draw.random()
    if kind < 0.36:
        return draw.choice(_PLAIN).encode()
    if kind < 0.62:
        return draw.choice(_NAMED).encode()
    if kind < 0.70:
        return draw.choice(_CONTROL).encode()
    if kind < 0.76:
        return bytes(draw.randrange(0x80, 0x100) for _ in range(draw.randint(1, 3)))
    if kind < 0.82:
        return _kitty(draw)
    if kind < 0.90:
        return _mouse(draw, size)
    if kind < 0.92:
        return draw.choice(_WORDS).encode()
    if kind < 0.94:
        return f"{3 * ESC}1{'j' * draw.randint(0, 9)}{draw.choice(_EDITS)}".encode()
    if kind < 0.97:
        return f"{PALETTE}{draw.choice(_TITLES)}\r".encode()
    if kind < 0.98:
        return f"{OPEN}{draw.choice(files)}\r".encode()
    if kind < 0.99:
        return draw.choice([b"\x1b[I", b"\x1b[O", b"\x1b[?2026;2$y", b"\x1b[24;80R", b"\x1b[?62c"])
    length = draw.choice((0, 1, 20, 3000, 100_000))
    return b"\x1b[200~" + draw.randbytes(length).replace(b"\x1b", b"\n") + b"\x1b[201~"


def _kitty(draw: random.Random) -> bytes:
    """Return a key of the kitty protocol, or something like one."""
    code = draw.choice((*range(97, 123), 9, 13, 27, 127, 57358, 57441, 1114112, 10**9, 0xD800))
    shifted = draw.choice(("", "", f":{code - 32}", "::97", ":"))
    modifiers = draw.choice(("", ";1", ";2", ";5", ";1:1", ";1:2", ";1:3", ";:1", ";999", ";2:9"))
    text = draw.choice(("", "", f";{code}", ";228", ";1114112", ";:"))
    return f"\x1b[{code}{shifted}{modifiers}{text}{draw.choice('uuuuu~ABHPS')}".encode()


def _mouse(draw: random.Random, size: tuple[int, int]) -> bytes:
    """Return a report of the mouse, as SGR, urxvt or X10 have it."""
    x, y = draw.randint(0, size[0] + 3), draw.randint(0, size[1] + 3)
    button = draw.choice((0, 0, 0, 1, 2, 32, 35, 64, 65, 66, 127))
    kind = draw.random()
    if kind < 0.7:
        return f"\x1b[<{button};{x};{y}{draw.choice('Mm')}".encode()
    if kind < 0.8:
        return f"\x1b[{button + 32};{x};{y}M".encode()
    return b"\x1b[M" + bytes(min(32 + value, 255) for value in (button, x, y))


def session(programs: Programs, folder: Path, seed: int, keys: int, answer_s: float) -> Outcome:
    """Type drawn keys at one run of the program in an empty folder.

    Args:
        programs: Starts it.
        folder: Holds all its files.
        seed: Of what is drawn.
        keys: So many.
        answer_s: The program must answer within so many seconds.
    """
    draw = random.Random(seed)
    outcome = Outcome(sessions=1)
    files = _files(folder)
    size = (draw.randint(60, 200), draw.randint(15, 50))
    with programs.start(folder, *files[: draw.randint(1, len(files))], size=size) as typist:
        typist.wait_for_screen()
        try:
            while outcome.keys < keys and typist.runs():
                size = _step(typist, draw, files, size, outcome)
                slowest_s = typist.answer(answer_s, all_keys=draw.random() < _RESTS)
                outcome.slowest_s = max(outcome.slowest_s, slowest_s)
            _end(typist, draw, folder, outcome)
        except TimeoutError as error:
            outcome.faults.append(f"{error} (after {outcome.keys} keys)\n{typist.stacks()}")
        outcome.pages = typist.pages
        if not typist.runs():
            outcome.faults += typist.state()["faults"]
    log = folder / "home/state/dld-tui/log"
    if log.exists() and "Traceback" in (text := log.read_text(errors="replace")):
        outcome.faults.append(text[text.index("Traceback") :][-2000:])
    outcome.faults = [f"seed {seed}: {fault}" for fault in outcome.faults]
    return outcome


def _files(folder: Path) -> list[str]:
    models = [path.name for path in write_demo_models(folder)]
    for archive, name in _PAGES.items():
        with tarfile.open(_DATA / archive) as packed:
            member = packed.extractfile(name)
            assert member is not None
            (folder / Path(name).name).write_bytes(member.read())
    return [*models, *(Path(name).name for name in _PAGES.values())]


def _step(
    typist: Typist, draw: random.Random, files: list[str], size: tuple[int, int], outcome: Outcome
) -> tuple[int, int]:
    """Type a few keys, in one write or in several; return the size of the terminal."""
    count = draw.choice((1, 3, 10, 30))
    drawn = [draw_keys(draw, files, size) for _ in range(count)]
    outcome.keys += count
    for part in [b"".join(drawn)] if draw.random() < 0.5 else drawn:
        typist.write(part)
    if draw.random() < 0.1:
        for _ in range(draw.choice((1, 2, 2, 8))):
            wide = draw.random() < 0.9
            size = (
                (draw.randint(40, 200), draw.randint(10, 60)) if wide else (draw.randint(1, 9), 1)
            )
            typist.resize(*size)
    return size


def _end(typist: Typist, draw: random.Random, folder: Path, outcome: Outcome) -> None:
    """End the program, and look at what it leaves."""
    if not typist.runs():  # the keys have quit it
        outcome.faults += _not_given_back(typist)
        return
    typist.resize(120, 30)
    way = draw.choice(("kill", "kill", "term", "quit"))
    if way == "quit":
        for _ in range(20):
            typist.write(8 * ESC)
            typist.settle(0.3)
            typist.write(QUIT)
            typist.settle(0.3)
            typist.write("d")
            typist.settle(0.3)
            if not typist.runs():
                break
        else:
            outcome.faults.append("it does not quit")
    else:
        documents = typist.state().get("sources", {})
        os.kill(typist.pid, signal.SIGKILL if way == "kill" else signal.SIGTERM)
        typist.wait_for_end()
        with _environment(private(folder)):
            for name, document in documents.items():
                _compare(name, document, outcome)
    if way != "kill":
        outcome.faults += _not_given_back(typist)


def _not_given_back(typist: Typist) -> list[str]:
    """Return what the program has not given back of the terminal."""
    faults = [
        f"mode {mode} is still on"
        for mode in _MODES
        if typist.sent.rfind(b"\x1b[?%dh" % mode) > typist.sent.rfind(b"\x1b[?%dl" % mode)
    ]
    if typist.sent.rfind(b"\x1b[?25h") < typist.sent.rfind(b"\x1b[?25l"):
        faults.append("the cursor is hidden")
    if not typist.flags() & termios.ICANON or not typist.flags() & termios.ECHO:
        faults.append("the terminal is raw")
    return faults


def _compare(name: str, source: dict[str, Any], outcome: Outcome) -> None:
    """Replay the journal of a document and compare it with what the program had."""
    if source["unjournaled"] or source["path"] is None:
        return
    path = Path(source["path"])
    journals = crash_journals(path)
    if not path.exists() or any(not journal.matches for journal in journals):
        return  # something else was written there
    document = Document.open(path)
    try:
        if journals:
            result = replay(document, journals[0].lines)
            outcome.faults += [f"{name}: journal line {at}: {why}" for at, why in result.refused]
            outcome.edits += result.applied
            outcome.replayed += 1
        elif source["dirty"]:
            outcome.faults.append(f"{name}: the journal is missing")
        digest = hashlib.sha256(bytes_of(document)).hexdigest()[:16]
        if digest != source["digest"]:
            outcome.faults.append(f"{name}: the journal gives another model")
            shutil.copytree(path.parent, f"{path.parent}-kept", dirs_exist_ok=True)
    finally:
        document.close(keep_journal=True)


@contextlib.contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    """Look for journals where a session has them."""
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
