"""The objects of a JSON array, one at a time, from a file of any size and any state of repair.

The array is the document, or what is under ``traceEvents`` in it.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from dld_tui.core.errors import CancelledError, InputError
from dld_tui.core.files.source import Source
from dld_tui.core.types import JSON, CancelCheck, ProgressCallback

_CHUNK = 1 << 20
_LONGEST_OBJECT = 4 << 20
_LONGEST_HEAD = 16 << 20
"""How far in the array may begin: traces describe their devices first."""
_WASTED, _WASTED_AT_ALL = 4, 16 << 20
"""How many times the characters of a file may be read in vain, and how many in any case. An object
that is never closed is looked for up to `_LONGEST_OBJECT`; of many of these, only the first are."""
_ARRAY = re.compile(r"\s*\[")
_OBJECT = re.compile(r"\s*\{")
_TRACE_EVENTS = re.compile(r'"traceEvents"\s*:\s*\[')
# Each line is looked at once: a run of line ends is not scanned again from each of them.
_NEXT_OBJECT = re.compile(r"[\r\n](?:[ \t,]*\{|\])")
_FILLING = re.compile(r"[\s,]*")


@dataclass
class Damage:
    """What was wrong with the text."""

    skipped: int = 0
    """Objects, or what should have been some, that could not be read."""
    ends_early: bool = False
    """The closing bracket is missing."""
    at_byte: int | None = None
    """Near where the first damage is."""


@dataclass
class ArrayReader:
    """Reads the array of a file; iterate over :meth:`objects` once."""

    path: Path
    progress: ProgressCallback | None = None
    cancelled: CancelCheck | None = None
    damage: Damage = field(default_factory=Damage)
    _read_bytes: int = 0
    _wasted: int = 0
    """Characters of objects that turned out to be damaged."""
    _has_constant: bool = False
    """Whether the object that is read has a number that JSON does not know."""

    def objects(self) -> Iterator[dict[str, JSON]]:
        """Yield the objects of the array in order, and pass over what is damaged.

        Raises:
            InputError: The file cannot be read, is empty, or is not a JSON array of objects.
            CancelledError: `cancelled` said so.
        """
        source = Source.open(self.path)
        try:
            yield from self._objects(source)
        finally:
            source.close()

    def _objects(self, source: Source) -> Iterator[dict[str, JSON]]:
        texts = self._texts(source)
        text = next(texts, "")
        if not text.strip():
            raise InputError("File is empty (0 bytes)", where=str(self.path))
        start = _ARRAY.match(text)
        if start is None:
            text, start = self._start_in_object(text, texts)
        decoder = json.JSONDecoder(strict=False, parse_constant=self._note_constant)
        position, more = start.end(), True
        while True:
            filling = _FILLING.match(text, position)
            position = filling.end() if filling else position
            if text.startswith("{", position):
                line = self._line(text, position) if self._is_impatient else None
                self._has_constant, begin = False, position
                try:
                    if line is None:
                        value, position = decoder.raw_decode(text, position)
                    else:
                        value, length = decoder.raw_decode(line)
                        position += length
                except (ValueError, RecursionError) as error:
                    known = isinstance(error, json.JSONDecodeError)
                    ended = line is not None and len(line) < len(text) - position
                    if more and known and not ended and len(text) - position < _LONGEST_OBJECT:
                        addition = next(texts, None)
                        more = addition is not None
                        text, position = text[position:] + (addition or ""), 0
                        continue
                    reached = error.pos if isinstance(error, json.JSONDecodeError) else len(text)
                    self._wasted += max(reached - position, 0) if line is None else len(line)
                    position = self._skip(text, position)
                else:
                    if self._has_constant:  # closed as it should be: what follows is whole
                        self._note_damage(text, begin)
                    else:
                        yield value
                continue
            if text.startswith("]", position):
                return
            if position < len(text):
                position = self._skip(text, position)
                continue
            addition = next(texts, None)
            if addition is None:
                self.damage.ends_early = True
                return
            text, position = addition, 0

    @property
    def _is_impatient(self) -> bool:
        """Whether so much was damaged that an object has to end before the next line's begins."""
        return self._wasted > max(_WASTED * self._read_bytes, _WASTED_AT_ALL)

    @staticmethod
    def _line(text: str, position: int) -> str:
        following = _NEXT_OBJECT.search(text, position)
        return text[position : following.start() if following else len(text)]

    def _start_in_object(self, text: str, texts: Iterator[str]) -> tuple[str, re.Match[str]]:
        """Return the text with the array of a trace that is an object, and where that begins."""
        while _OBJECT.match(text) and len(text) < _LONGEST_HEAD:
            start = _TRACE_EVENTS.search(text)
            if start is not None:
                return text, start
            addition = next(texts, None)
            if addition is None:
                break
            text += addition
        raise InputError("not a JSON array of events", where=str(self.path))

    def _skip(self, text: str, position: int) -> int:
        """Count what is at `position` as damage and return where the next object may begin."""
        self._note_damage(text, position)
        following = _NEXT_OBJECT.search(text, position)
        return following.end() - 1 if following else len(text)

    def _note_damage(self, text: str, position: int) -> None:
        self.damage.skipped += 1
        if self.damage.at_byte is None:
            self.damage.at_byte = max(0, self._read_bytes - (len(text) - position))

    def _note_constant(self, _constant: str) -> None:
        """Note that the object has NaN or Infinity, which are not JSON."""
        self._has_constant = True

    def _texts(self, source: Source) -> Iterator[str]:
        decoder: codecs.IncrementalDecoder | None = None
        while self._read_bytes < source.size:
            if self.cancelled is not None and self.cancelled():
                raise CancelledError(where=str(self.path))
            chunk = source.read(self._read_bytes, min(_CHUNK, source.size - self._read_bytes))
            self._read_bytes += len(chunk)
            if decoder is None:
                decoder = codecs.getincrementaldecoder(_encoding(chunk))("replace")
            if self.progress is not None:
                self.progress(self._read_bytes, source.size)
            yield decoder.decode(chunk)
        if decoder is not None:
            yield decoder.decode(b"", final=True)


def _encoding(head: bytes) -> str:
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    return "utf-8-sig"
