"""What a terminal sends, as events: keys, pastes, the mouse, reports.

Textual's parser decodes before it parses, types the characters of sequences that it does not know,
and raises on some. Here the bytes are cut into sequences as ECMA-48 says; one that is whole and
valid is given to Textual's tables, and any other has no effect. Text is decoded with replacement:
it may come from a terminal that is not UTF-8, or over a bad line.

Esc is a key of its own, also in one read with the next key: Textual takes the two for Alt and the
key, or loses the Esc. Enter that was typed while the program started is Enter, and not Ctrl+J.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Generator, Iterator
from time import monotonic

from textual import constants, events, messages
from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual._keyboard_protocol import FUNCTIONAL_KEYS
from textual._xterm_parser import FOCUSIN, FOCUSOUT, IS_ITERM, XTermParser
from textual.keys import Keys
from textual.message import Message

# Patterns are compiled with the first key, and kept by `re`: nobody types before the first paint.
_ESC = b"\x1b"
_SS3 = "".join({key[-1] for key in ANSI_SEQUENCES_KEYS if key.startswith("\x1bO")}).encode()
_WHOLE = (
    rb"\x1b(?:\[\[[A-E]"  # function keys of the Linux console
    rb"|\[M[\0 -\xff]{3}"  # the mouse as X10 has it: bytes, not characters
    rb"|\[[0-9]+\$"  # function keys of rxvt
    rb"|\[(?![M\[])[0-?]*[ -/]*[@-~]"
    rb"|O[0-9]?[" + re.escape(_SS3) + rb"]"
    rb"|\][0-9]+;[^\x1b\x07]*(?:\x07|\x1b\\)"  # late answers to the questions of other programs
    rb"|(?:P[0-9!>]|_G)[ -~]*\x1b\\)"
)
_PART = rb"\x1b(?:\[(?:\[|M[\0 -\xff]{0,2}|[0-?]*[ -/]*)|O[0-9]?)?"
_STRING_PART = rb"\x1b(?:\](?:[0-9]+(?:;[^\x1b\x07]*)?)?|P(?:[0-9!>][ -~]*)?|_(?:G[ -~]*)?)\x1b?"
_TYPED = (_ESC, b"\x1b[", b"\x1bO")
"""Beginnings of sequences that are keys of their own when nothing follows soon."""

_CUT_S = 1.0
"""What began a sequence, a character or a paste, and was not continued for so long, is cut off."""
_MOST_SEQUENCE, _MOST_PASTE = 1 << 16, 1 << 24
"""Bytes that are kept of one that does not end."""

_PASTE_BEGINS, _PASTE_ENDS = b"\x1b[200~", b"\x1b[201~"
_MOUSE = r"\x1b\[<[0-9]{1,3};-?[0-9]{1,6};-?[0-9]{1,6}[Mm]"
_SIZE = r"\x1b\[48" + r";0*([1-9][0-9]{0,5})(?::[0-9:]*)?" * 4 + "t"
_MODE = r"\x1b\[\?(2026|2048);([0-4])\$y"
_KEY = (
    r"\x1b\[([0-9]{0,7})(?::([0-9]{0,7}))?(?::[0-9]{0,7})?"  # the key, that with Shift, in the US
    r"(?:;(?:([0-9]{1,3})(?::([123]))?)?"  # modifiers; pressed, repeated or released
    r"(?:;([0-9:]{0,64}))?)?([u~A-FHPQS])"  # the text
)
_SHIFT, _CAPS_LOCK, _NUM_LOCK = 1, 64, 128


class KeyParser:
    """Makes events of the bytes of a terminal; none of them makes it raise.

    Args:
        alt: Esc and a character in one read are Alt and the character.
        clock: The time in seconds.
    """

    def __init__(self, alt: bool = False, clock: Callable[[], float] = monotonic) -> None:
        self.reports_sizes = False
        """Whether the terminal was asked for its size, and for the mouse in pixels."""
        self._alt = alt
        self._clock = clock
        self._textual = XTermParser()
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._left = b""
        """What may become a sequence, or end a paste."""
        self._began = self._came = 0.0
        """When that began, and when the last bytes came."""
        self._paste: bytearray | None = None

    def feed(self, data: bytes) -> Iterator[Message]:
        """Return the events of what was read."""
        now = self._clock()
        if now - self._came >= _CUT_S:
            yield from self._cut(data)
        if not self._left:
            self._began = now
        self._came = now
        yield from self._parse(self._left + data)

    def tick(self) -> Iterator[Message]:
        """Return the events that a pause ends; it is to be called a few times a second."""
        waited = self._clock() - self._came
        is_due = self._left and self._paste is None and waited >= constants.ESCAPE_DELAY
        if is_due and (self._left in _TYPED or re.fullmatch(_STRING_PART, self._left)):
            yield from self._parse(self._left, is_over=True)
        if waited >= _CUT_S:
            yield from self._cut(b"")

    def _cut(self, following: bytes) -> Iterator[Message]:
        """Give up what has waited for its end, a paste only before a single key.

        A paste whose end was lost would swallow all keys. One that a slow line holds up goes on
        with more than a key.
        """
        if self._paste is None:
            self._left = b""
            yield from self._text(b"", is_whole=True)
        elif following and not _PASTE_ENDS.startswith(self._left + following):
            match = re.match(_WHOLE, following)
            if len(following) == 1 or (match is not None and match.end() == len(following)):
                self._paste += self._left
                self._left = b""
                yield self._pasted()

    def _parse(self, data: bytes, *, is_over: bool = False) -> Iterator[Message]:
        """Return the events of bytes, and keep what may go on.

        Args:
            data: The bytes.
            is_over: Nothing follows them.
        """
        self._left = b""
        while data:
            if self._paste is not None:
                data = yield from self._paste_more(data)
                continue
            at = data.find(_ESC)
            if at:
                at = at if at > 0 else len(data)
                yield from self._text(data[:at], is_whole=is_over or at < len(data))
                data = data[at:]
                continue
            yield from self._text(b"", is_whole=True)
            length = self._length(data)
            if not length and not is_over:
                self._left = data
                return
            if length > 1:
                yield from self._sequence(data[:length])
                data = data[length:]
            elif self._alt and data[1:2] not in (b"", _ESC):
                at = data.find(_ESC, 1)
                at = at if at > 0 else len(data)
                yield from self._text(data[1:at], is_whole=is_over or at < len(data), alt=True)
                data = data[at:]
            else:
                yield events.Key("escape", "\x1b")
                data = data[1:]

    def _length(self, data: bytes) -> int:
        """Return the length of the sequence at the beginning; 1 for Esc, 0 if it may go on."""
        if match := re.match(_WHOLE, data):
            return match.end()
        part = re.match(_PART, data)
        end = part.end() if part is not None else 1
        if end == len(data):
            return 0 if end < _MOST_SEQUENCE else end
        if re.fullmatch(_STRING_PART, data) and self._came - self._began < constants.ESCAPE_DELAY:
            return 0
        # A control character, or one that is not ASCII, ends a sequence, which then is none.
        return end if data[1:2] == b"[" and data[:end] not in _TYPED else 1

    def _text(self, data: bytes, *, is_whole: bool, alt: bool = False) -> Iterator[Message]:
        """Return the keys that type a text; Alt is down for its first character."""
        for character in self._decode(data, is_whole):
            name = "\r" if character == "\n" else character
            if alt and "\x1b" + name in ANSI_SEQUENCES_KEYS:
                name = "\x1b" + name
            yield from self._keys(name, alt)
            alt = False

    def _keys(self, sequence: str, alt: bool = False) -> Iterator[Message]:
        for event in self._textual._sequence_to_key_events(sequence, alt):
            if event.key != Keys.Ignore:
                yield event

    def _sequence(self, data: bytes) -> Iterator[Message]:
        """Return the events of a whole sequence; none if it means nothing."""
        text = data.decode("latin-1")
        if data == _PASTE_BEGINS:
            self._paste = bytearray()
        elif text == FOCUSIN:
            yield events.AppFocus()
        elif text == FOCUSOUT:
            yield events.AppBlur()
        elif re.fullmatch(_MOUSE, text):
            event = self._textual.parse_mouse_code(text)
            if event is not None:
                yield event
        elif match := re.fullmatch(_SIZE, text):
            if self.reports_sizes:
                yield self._resized(*map(int, match.groups()))
        elif match := re.fullmatch(_MODE, text):
            mode, state = match[1], int(match[2])
            if mode == "2026" and state:
                yield messages.TerminalSupportsSynchronizedOutput()
            elif mode == "2048" and constants.SMOOTH_SCROLL and not IS_ITERM:
                yield messages.InBandWindowResize.from_setting_parameter(state)
        elif known := _known_key(text):
            yield from self._keys(known)

    def _resized(self, rows: int, columns: int, height: int, width: int) -> Message:
        """Take note of the size of a cell in pixels, in which the mouse is reported."""
        event = events.Resize.from_dimensions((columns, rows), (width, height))
        self._textual.terminal_size = event.size
        self._textual.terminal_pixel_size = event.pixel_size
        self._textual.mouse_pixels = True
        return event

    def _paste_more(self, data: bytes) -> Generator[Message, None, bytes]:
        """Add to a paste, and return what follows its end."""
        assert self._paste is not None
        end = data.find(_PASTE_ENDS)
        if end >= 0:
            self._paste += data[:end]
            yield self._pasted()
            return data[end + len(_PASTE_ENDS) :]
        at = data.rfind(_ESC, -len(_PASTE_ENDS) + 1)
        if at >= 0 and _PASTE_ENDS.startswith(data[at:]):
            data, self._left = data[:at], data[at:]
        if len(self._paste) < _MOST_PASTE:
            self._paste += data
        return b""

    def _pasted(self) -> events.Paste:
        assert self._paste is not None
        text = self._paste.decode("utf-8", "replace")
        self._paste = None
        return events.Paste(text.replace("\0", ""))


def _known_key(text: str) -> str | None:
    """Return the sequence of a key as Textual understands it; None for what is no pressed key."""
    match = re.fullmatch(_KEY, text)
    if match is None:
        return text if text in ANSI_SEQUENCES_KEYS else None
    code, shifted, modifiers, kind, typed, end = match.groups(default="")
    if code == "27" and end == "~" and typed:  # as xterm's modifyOtherKeys has it
        code, typed, end = typed, "", "u"
    modifier_bits = max(int(modifiers or 1), 1) - 1
    if kind == "3" or modifier_bits > 255:
        return None
    if end != "u":
        if f"{code or ('' if end == '~' else 1)}{end}" in FUNCTIONAL_KEYS:
            return f"\x1b[{code};{modifiers}{end}"
        return text if text in ANSI_SEQUENCES_KEYS else None
    if not code.isdecimal():
        return None
    number = int(code)
    if f"{number}u" not in FUNCTIONAL_KEYS:
        if not _is_character(number) or 0xE000 <= number < 0xF900:  # the protocol's own
            return None
        if not typed and not modifier_bits & ~(_SHIFT | _CAPS_LOCK | _NUM_LOCK):
            typed = _typed_by(number, int(shifted or 0), modifier_bits)
    known = [part for part in typed.split(":") if part and _is_character(int(part))]
    return f"\x1b[{number};{modifiers};{':'.join(known)}u"


def _typed_by(number: int, shifted: int, modifier_bits: int) -> str:
    """Return the code of what a key types; empty if only the layout of the keyboard tells."""
    character = chr(number)
    if modifier_bits & _SHIFT and _is_character(shifted):
        return str(shifted)
    if len(character.upper()) == 1 and character.upper() != character:
        is_upper = bool(modifier_bits & _SHIFT) != bool(modifier_bits & _CAPS_LOCK)
        return str(ord(character.upper() if is_upper else character))
    return "" if modifier_bits & _SHIFT and character != " " else str(number)


def _is_character(number: int) -> bool:
    """Return whether a terminal may type it: no control character, no half of a pair."""
    is_control = number < 0x20 or 0x7F <= number < 0xA0
    return number < 0x110000 and not is_control and not 0xD800 <= number < 0xE000
