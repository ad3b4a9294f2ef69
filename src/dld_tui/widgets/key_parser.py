"""Esc before another key in one read is Esc: nothing here is bound to Alt.

Enter that was typed while the program started is Enter, too, and not Ctrl+J.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual._xterm_parser import XTermParser
from textual.events import Key
from textual.message import Message

_ESC = "\x1b"
_SS3 = "".join(key[2] for key in ANSI_SEQUENCES_KEYS if key[:2] == "\x1bO" and len(key) == 3)
_LONE = re.compile(rf"\x1b(?=[^\x1b\[O]|O[^{re.escape(_SS3)}])")
"""An Esc that no sequence of a terminal begins with."""
_PASTE_BEGINS, _PASTE_ENDS = "\x1b[200~", "\x1b[201~"


class KeyParser(XTermParser):
    """Textual's parser takes Esc and a letter in one read for Alt and the letter.

    Before other characters it even loses the Esc, and that also when the second key comes within a
    tenth of a second, as in fast typing.
    """

    _ends_with_esc = False
    _in_paste = False

    def feed(self, data: str) -> Iterable[Message]:
        """Return the events of what was read."""
        if not data:
            yield from super().feed(data)
            return
        if not (self._in_paste or _PASTE_BEGINS in data):
            data = data.replace("\n", "\r")  # Enter, before the terminal was ours
        if self._ends_with_esc and not self._in_paste and _LONE.match(_ESC + data):
            yield from self._end_esc()
        start = 0
        for match in _LONE.finditer(data):
            part = data[start : match.end()]
            yield from super().feed(part)
            self._note_paste(part)
            start = match.end()
            if not self._in_paste:
                yield from self._end_esc()
        if data[start:]:
            yield from super().feed(data[start:])
            self._note_paste(data[start:])
        self._ends_with_esc = data.endswith(_ESC)

    def tick(self) -> Iterable[Message]:
        """Return the events that a pause ends: Esc and O may begin a function key."""
        for event in super().tick():
            if isinstance(event, Key) and event.key == "alt+shift+o":
                yield Key("escape", _ESC)
                yield Key("O", "O")
            else:
                yield event

    def _note_paste(self, part: str) -> None:
        begin, end = part.rfind(_PASTE_BEGINS), part.rfind(_PASTE_ENDS)
        if begin != end:
            self._in_paste = begin > end

    def _end_esc(self) -> Iterable[Message]:
        """Say what the parser would say if nothing came for a tenth of a second."""
        if self._timeout_time is not None:
            self._timeout_time = 0.0
            yield from self.tick()
