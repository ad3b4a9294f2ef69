"""The objects of a JSON array, one at a time, from a file of any size, even a damaged one.

The array is the document, or the value of ``traceEvents`` in it.
"""

from __future__ import annotations

import codecs
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import CancelledError, InputError
from dld_tui.core.files.source import Source
from dld_tui.core.types import CancelCheck, Foreign, ProgressCallback

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
# Each line is examined once: a run of line ends is not scanned again from each of them.
_NEXT_OBJECT = re.compile(r"[\r\n](?:[ \t,]*\{|\])")
_FILLING = re.compile(r"[\s,]*")
_STRAY_COMMA = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[\]},])|(?<=\[),')
"""A comma before a closing bracket or another comma, or behind an opening one; or a string."""
_ANOTHER = re.compile(rb"\]\s*\[")
"""The text between two lists. It may also occur in a string."""


@dataclass
class Damage:
    """The damage of the text."""

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
    only: int = 0
    """The index of the list to read if several follow each other, from :func:`last_list`."""
    lists: int = 0
    """How many lists were begun."""
    filled: list[int] = field(default_factory=list)
    """Which of them have an object."""
    _read_bytes: int = 0
    _wasted: int = 0
    """Characters of objects that turned out to be damaged."""
    _has_constant: bool = False
    """Whether the object that is read has a number that JSON does not know."""

    def objects(self) -> Iterator[Foreign]:
        """Yield the objects of the array in order, skipping damaged ones.

        Raises:
            InputError: The file cannot be read, is empty, or is not a JSON array of objects.
            CancelledError: `cancelled` returned True.
        """
        source = Source.open(self.path)
        try:
            yield from self._objects(source)
        finally:
            source.close()

    def _objects(self, source: Source) -> Iterator[Foreign]:
        texts = self._texts(source)
        text = next(texts, "")
        if not text.strip():
            raise InputError("File is empty (0 bytes)", where=str(self.path))
        start = _ARRAY.match(text)
        if start is None:
            text, start = self._start_in_object(text, texts)
        decoder = json.JSONDecoder(strict=False, parse_constant=self._note_constant)
        position, more, self.lists = start.end(), True, 1
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
                    repaired = self._without_stray_commas(decoder, text, begin, more)
                    if repaired is not None:
                        value, length = repaired
                        position += length
                        yield from self._taken(value)
                        continue
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
                        yield from self._taken(value)
                continue
            if text.startswith("]", position):
                if self.lists > self.only:
                    return
                text, position = self._next_list(text, position + 1, texts)
                if not text:
                    return
                continue
            if position < len(text):
                position = self._skip(text, position)
                continue
            addition = next(texts, None)
            if addition is None:
                self.damage.ends_early = True
                return
            text, position = addition, 0

    def _taken(self, value: Foreign) -> Iterator[Foreign]:
        """Yield an object if it is of the list that is read."""
        if self.filled[-1:] != [self.lists - 1]:
            self.filled.append(self.lists - 1)
        if self.lists > self.only:
            yield value

    def _without_stray_commas(
        self, decoder: json.JSONDecoder, text: str, position: int, more: bool
    ) -> tuple[Foreign, int] | None:
        """Return an object that is sound but for commas with nothing behind them, and its length.

        ONNX Runtime writes them for inputs and outputs that are no tensors: ``[{"float":[2]},]``.
        """
        line = self._line(text, position)
        if more and len(line) == len(text) - position:
            return None  # it may go on
        without = _STRAY_COMMA.sub(r"\1", line)
        if len(without) == len(line):
            return None
        try:
            value, end = decoder.raw_decode(without)
        except (ValueError, RecursionError):
            return None
        is_whole = not self._has_constant and _FILLING.fullmatch(without, end)
        return (value, len(line)) if is_whole else None

    def _next_list(self, text: str, position: int, texts: Iterator[str]) -> tuple[str, int]:
        """Return the text and the start of the next list in it; no text if there is none."""
        while not text[position:].strip():
            addition = next(texts, None)
            if addition is None:
                return "", 0
            text, position = text[position:] + addition, 0
        start = _ARRAY.match(text, position)
        if start is not None:
            self.lists += 1
            self.damage = Damage()  # what was passed over is not what is read
        return ("", 0) if start is None else (text, start.end())

    @property
    def _is_impatient(self) -> bool:
        """Whether so much was damaged that an object has to end before the next line begins one."""
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
        """Count `position` as damage and return where the next object may begin."""
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


@dataclass(frozen=True)
class LastList:
    """Which list of a file counts, as several runs into one file leave several."""

    index: int = 0
    lists: int = 1
    """How many have an object."""
    cut: bool = False
    """Another one begins after it and does not end."""

    def notes(self, noun: str) -> list[str]:
        """Return notes about the choice."""
        if self.lists < 2:
            return []
        which = "the last complete one" if self.cut else "the last"
        return [f"the {noun} is of {self.lists} runs: {which} is shown"]


def last_list(path: Path, cancelled: CancelCheck | None = None) -> LastList:
    """Return the last complete list with an object.

    Raises:
        InputError: The file cannot be read.
        CancelledError: `cancelled` returned True.
    """
    if not _may_have_several(path, cancelled):
        return LastList()
    reader = ArrayReader(path, cancelled=cancelled, only=sys.maxsize)
    for _ in reader.objects():
        pass  # none is of that list: all are read, and nothing is kept
    filled = reader.filled
    cut = reader.damage.ends_early and filled[-1:] == [reader.lists - 1]
    whole = filled[:-1] if cut and len(filled) > 1 else filled
    return LastList(whole[-1] if whole else 0, max(len(filled), 1), cut and len(filled) > 1)


def _may_have_several(path: Path, cancelled: CancelCheck | None) -> bool:
    source = Source.open(path)
    try:
        tail = b""
        for at in range(0, source.size, _CHUNK):
            if cancelled is not None and cancelled():
                raise CancelledError(where=str(path))
            piece = tail + source.read(at, min(_CHUNK, source.size - at))
            if _ANOTHER.search(piece):
                return True
            tail = piece[piece.rfind(b"]") :][:_CHUNK] if b"]" in piece else b""
        return False
    finally:
        source.close()


def _encoding(head: bytes) -> str:
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    return "utf-8-sig"
