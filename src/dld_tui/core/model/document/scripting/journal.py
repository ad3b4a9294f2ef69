"""The journal: every edit since the last save, on disk, so that no crash loses one.

One JSON object a line. The first line names the file and how it was when the journal began, or how
a new model began that has no file; then each edit with its arguments, and ``{"undo": true}`` and
``{"redo": true}``. ``{"saved": {...}}`` says what the file becomes by the save that follows: once
it is that, the lines before are in it. A journal belongs to one running program, which holds a lock
on it; one that nobody holds is left from a crash. One whose edits were thrown away gets another
ending, and is kept for a week.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from dld_tui import __version__
from dld_tui.core.codec import decode, encode
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import DldError
from dld_tui.core.model.document.scripting.arguments import Entry, FileState, entry_of, parse_line
from dld_tui.core.model.document.transactions import Transaction
from dld_tui.core.model.tensors.payloads import sweep
from dld_tui.core.process.interpreter import sha256_without_openssl
from dld_tui.core.process.paths import NEW_JOURNALS, ensure, journal_dir

if TYPE_CHECKING:
    from dld_tui.core.model.document.new_model import NewModel

SYNC_SECONDS = 1.0
"""A line reaches the kernel at once and the disk within this time."""
DISCARDED_DAYS = 7
"""So long discarded edits are kept."""
_FORMAT = 1
_DISCARDED = ".discarded"


def _stem(path: Path | None) -> str:
    """Return how the names of the journals of a model begin; of new models without a file."""
    if path is None:
        return NEW_JOURNALS
    return sha256_without_openssl(os.fsencode(os.path.realpath(path)))[:24]


@dataclass(frozen=True)
class CrashJournal:
    """A journal that a crashed program left behind."""

    journal: Path
    lines: list[Entry]
    """The finished edits, undos and redos, in order."""
    written: float
    """When the last edit was made, in seconds since the epoch."""
    matches: bool
    """False when the model file has changed since the journal began."""
    new: NewModel | None = None
    """How a model began that was never saved; None of a model with a file."""


class EditJournal:
    """The journal of one open document. Created by the first edit, removed when all is saved.

    Args:
        model: Its file; None of a new model that has none yet.
        new: How such a model began.
    """

    def __init__(self, model: Path | None, new: NewModel | None = None) -> None:
        self._model = model
        self._new = new
        self._file: IO[str] | None = None
        self._path: Path | None = None
        self._unsynced = threading.Event()
        self._closed = threading.Event()
        self._error: str | None = None
        self._broken = False
        """True once a line is missing: those after it would be replayed on another state."""
        self._thread: threading.Thread | None = None

    @property
    def error(self) -> str | None:
        """Why edits are not being journaled, or None."""
        return self._error

    def append(self, line: Entry) -> None:
        """Write one line. Why it cannot is remembered in :attr:`error`; the edit itself goes on."""
        if self._broken:
            return
        try:
            if self._file is None:
                self._begin()
            assert self._file is not None
            self._file.write(json.dumps(line) + "\n")
            self._file.flush()
            self._unsynced.set()
        except (OSError, MemoryError, RecursionError, TypeError, ValueError) as error:
            self.fail(getattr(error, "strerror", None) or f"{type(error).__name__} {error}".strip())

    def fail(self, why: str) -> None:
        """Take note that a line cannot be written; there are none until all is saved."""
        self._error = f"edits are not journaled: {why}"
        self._broken = True

    def about_to_save(self, new_file: Path) -> None:
        """Note how the model's file will be when `new_file` has been renamed over it.

        The line is on the disk before the rename, so that no crash in between leaves edits that
        would be offered again although the file has them.
        """
        if self._file is not None and not self._broken:
            self.append({"saved": encode(FileState.of(new_file))})
            with suppress(OSError):  # as in append: the save goes on
                os.fsync(self._file.fileno())

    def restart(self, model: Path) -> None:
        """Forget all lines: the document has just been saved to `model`."""
        self._end(keep=False)
        self._model, self._new = model, None
        self._error, self._broken = None, False

    def close(self) -> None:
        """Remove the journal; edits that the user threw away are kept for a week."""
        self._end(keep=True)

    def _end(self, *, keep: bool) -> None:
        if self._file is None:
            return
        self._closed.set()
        self._unsynced.set()
        if self._thread is not None:
            self._thread.join()
        with suppress(OSError):  # it writes what a full disk did not take
            self._file.close()
        if self._path is not None:
            if keep and _holds_edits(self._path):
                _put_aside(self._path)
            else:
                self._path.unlink(missing_ok=True)
        self._file = self._path = self._thread = None

    def _begin(self) -> None:
        folder = ensure(journal_dir())
        self._path = folder / f"{_stem(self._model)}-{os.getpid()}-{time.time_ns():x}.jsonl"
        self._file = self._path.open("x", encoding="ascii")
        fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._closed.clear()
        header: Entry = {
            "journal": _FORMAT,
            "version": __version__,
            "model": None if self._model is None else os.path.realpath(self._model),
            **encode(_state_of(self._model)),
        }
        if self._new is not None:
            header["new"] = encode(self._new)
        self._file.write(json.dumps(header) + "\n")
        self._thread = threading.Thread(target=self._sync, name="journal", daemon=True)
        self._thread.start()

    def _sync(self) -> None:
        """Flush written lines to the disk, at most once in `SYNC_SECONDS`."""
        while not self._closed.is_set():
            self._unsynced.wait()
            self._unsynced.clear()
            file = self._file
            if self._closed.is_set() or file is None:
                return
            try:
                os.fsync(file.fileno())
            except OSError as error:
                self._error = f"the journal cannot be brought to disk: {error.strerror}"
            self._closed.wait(SYNC_SECONDS)


def _state_of(model: Path | None) -> FileState:
    return FileState() if model is None else FileState.of(model)


def crash_journals(model: Path | None) -> list[CrashJournal]:
    """Return journals of this model that no running program holds, the newest first.

    Args:
        model: Its file; None for all new models that were never saved.
    """
    return _journals(model, ".jsonl")


def discarded_journals(model: Path | None) -> list[CrashJournal]:
    """Return journals of this model whose edits were thrown away, the newest first."""
    return _journals(model, _DISCARDED)


def _journals(model: Path | None, ending: str) -> list[CrashJournal]:
    read = (_read(path, model) for path in journal_dir().glob(f"{_stem(model)}-*{ending}"))
    journals = [journal for journal in read if journal is not None]
    return sorted(journals, key=lambda journal: journal.written, reverse=True)


def forget_journal(journal: CrashJournal) -> None:
    """Remove a journal that has been replayed."""
    journal.journal.unlink(missing_ok=True)
    sweep()


def discard_journal(journal: CrashJournal) -> None:
    """Offer a journal no more; it is kept for a week, see :func:`discarded_journals`."""
    _put_aside(journal.journal)


def _put_aside(path: Path) -> None:
    with suppress(OSError):  # as a full disk, it is no reason to stop
        os.utime(path)  # the week begins now
        path.rename(path.with_suffix(_DISCARDED))


def _holds_edits(path: Path) -> bool:
    with suppress(OSError):
        return bool(standing_edits(_unsaved(_entries(path.read_text("utf-8", "replace")))[1]))
    return False


def sweep_journals() -> None:
    """Remove the journals of programs that are gone which hold no edit that a file lacks.

    Also those that were discarded more than a week ago.
    """
    oldest = time.time() - DISCARDED_DAYS * 86_400
    for path in journal_dir().glob(f"*{_DISCARDED}"):
        with suppress(OSError):
            if path.stat().st_mtime < oldest:
                path.unlink()
    for path in journal_dir().glob("*.jsonl"):
        with suppress(OSError), path.open(encoding="utf-8", errors="replace") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # else its program is alive
            header, edits = _unsaved(_entries(file.read()))
            if header is not None and not standing_edits(edits):
                path.unlink()


def _read(path: Path, model: Path | None) -> CrashJournal | None:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except OSError:
                return None  # its program is alive
            text = file.read()
            modified = os.fstat(file.fileno()).st_mtime
    except OSError:
        return None
    header, edits = _unsaved(_entries(text))
    if header is None or header.get("journal") != _FORMAT or not standing_edits(edits):
        return None
    new: NewModel | None = None
    if model is None:
        from dld_tui.core.model.document.new_model import NewModel

        try:
            new = decode(NewModel, header.get("new"))
        except DldError:  # of another version
            return None
    matches = FileState.said_by(header) == _state_of(model)
    return CrashJournal(path, edits, modified, matches, new)


def _entries(text: str) -> list[Entry]:
    lines = []
    for line in text.splitlines():
        try:
            entry = parse_line(line)
        except ValueError:
            break  # the line being written when the power went
        if isinstance(entry, dict):
            lines.append(entry)
    return lines


def _unsaved(lines: list[Entry]) -> tuple[Entry | None, list[Entry]]:
    """Return the header of a journal, None without one, and the edits that its file lacks."""
    if not lines or "journal" not in lines[0]:
        return ({}, []) if not lines else (None, [])
    header, edits = lines[0], []
    model = header.get("model")
    now = _state_of(Path(model) if isinstance(model, str) else None)
    for entry in lines[1:]:
        saved = entry.get("saved")
        if saved is None:
            edits.append(entry)
        elif saved == encode(now) and now.size is not None:
            header, edits = {**header, **encode(now)}, []
    return header, edits


def standing_edits(lines: Iterable[Entry]) -> list[Entry]:
    """Return the edits that are not undone at the end, in order."""
    done: list[Entry] = []
    undone: list[Entry] = []
    for line in lines:
        if line.get("undo"):
            undone += [done.pop()] if done else []
        elif line.get("redo"):
            done += [undone.pop()] if undone else []
        else:
            done.append(line)
            undone.clear()
    return done


class Recorder:
    """Writes what happens to a document so that it can be replayed on the file as last saved.

    Undo and redo are written as such while a replay would have the edit in its history. An edit
    from before the last save is not in it: its undo is written as an edit that does the inverse.
    """

    def __init__(self, journal: EditJournal) -> None:
        self.journal = journal
        self._done: list[tuple[Transaction, bool]] = []
        """What a replay would have done: (transaction, whether it is its inverse)."""
        self._undone: list[tuple[Transaction, bool]] = []

    def edited(self, transaction: Transaction) -> None:
        """Write an edit that has just been made, or made again."""
        self.journal.append(entry_of(transaction.edit, transaction.arguments))
        self._done.append((transaction, False))
        self._undone.clear()

    def undoes(self, transaction: Transaction) -> bool:
        """Write an undo if a replay could do it; False when it needs the inverse instead."""
        return self._step(transaction, is_forward=False)

    def redoes(self, transaction: Transaction) -> bool:
        """Write a redo if a replay could do it; False when it must be written as a new edit."""
        return self._step(transaction, is_forward=True)

    def inverted(self, transaction: Transaction, arguments: Entry) -> None:
        """Write the inverse of a transaction that a replay does not know."""
        self.journal.append(entry_of("restore", arguments))
        self._done.append((transaction, True))
        self._undone.clear()

    def lost(self, why: str) -> None:
        """Take note that an edit cannot be written; see :meth:`EditJournal.fail`."""
        self.journal.fail(why)

    def saved(self, model: Path) -> None:
        """Begin again: the file now holds everything."""
        self.journal.restart(model)
        self._done.clear()
        self._undone.clear()

    def _step(self, transaction: Transaction, *, is_forward: bool) -> bool:
        # To make it: redo the edit, or undo its inverse. To unmake it: the other way round.
        if self._done and self._is(self._done[-1], transaction, inverse=is_forward):
            self._undone.append(self._done.pop())
            self.journal.append({"undo": True})
            return True
        if self._undone and self._is(self._undone[-1], transaction, inverse=not is_forward):
            self._done.append(self._undone.pop())
            self.journal.append({"redo": True})
            return True
        return False

    @staticmethod
    def _is(entry: tuple[Transaction, bool], transaction: Transaction, *, inverse: bool) -> bool:
        return entry[0] is transaction and entry[1] is inverse
