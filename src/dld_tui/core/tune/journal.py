"""What a run that was stopped had found, so that the next one goes on from there."""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.core.files import permission
from dld_tui.core.files.temporary import discard, hold_folder
from dld_tui.core.process.paths import ensure
from dld_tui.core.tune.result import CandidateState, Exclusion
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document

_PACKAGES = (
    "dld-tui", "onnx", "onnxruntime", "onnxruntime-gpu", "onnxsim", "onnxslim", "tensorrt",
)  # fmt: skip


class Journal:
    """A folder with one line for each thing that was found, and the models that were made.

    A journal that cannot be written is no reason to stop.

    Args:
        folder: It need not be there.
        lock: A descriptor that keeps others away, as long as this process lives.
        is_temporary: Remove the folder when the journal is closed.
    """

    def __init__(
        self, folder: Path, lock: int | None = None, *, is_temporary: bool = False
    ) -> None:
        self._folder, self._lock, self._is_temporary = folder, lock, is_temporary
        permission.agree([folder])  # a run that was stopped may have left models that do not count
        self._made: dict[str, Exclusion | None] = {}
        self._rounds: dict[str, list[dict[str, float]]] = {}
        self.digest = ""
        """Of the content of the model; empty of a folder that :meth:`of` did not choose."""
        self._is_cut = False
        """Whether the last line has no end."""
        self._read()

    @classmethod
    def of(
        cls, settings: Mapping[str, JSON], document: Document, *, again: bool = False
    ) -> Journal:
        """Return that of a model and settings on this machine.

        Args:
            settings: Those that decide what is found.
            document: The model.
            again: Forget what is there.
        """
        from dld_tui.core.conversion.search_key import search_conditions
        from dld_tui.core.machine.environment import cpu_name, package_version, usable_threads
        from dld_tui.core.process.paths import cache_dir
        from dld_tui.core.trials import search_name

        given = (settings.get(name) for name in ("inputs", "calibration", "dataset", "labels"))
        # Times and candidates of other versions or fewer processors are not those of this run.
        conditions = search_conditions(
            settings,
            document,
            [Path(text) for text in given if isinstance(text, str)],
            **{name: package_version(name) for name in _PACKAGES},
            cpu=cpu_name(),
            threads=usable_threads(),
        )
        path = cache_dir() / "tune" / search_name(conditions)
        lock = _locked(path.with_suffix(".lock"))
        if lock is None:  # another run has the journal: this one leaves nothing for the next
            journal = cls(hold_folder("tune"), is_temporary=True)
        else:
            if again:
                shutil.rmtree(path, ignore_errors=True)
            journal = cls(path, lock)
        journal.digest = str(conditions["model"])
        return journal

    def _read(self) -> None:
        """Read all lines but those that are damaged, such as the last one of a killed run."""
        try:
            text = self._path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return
        self._is_cut = bool(text) and not text.endswith("\n")
        for line in text.splitlines():
            with contextlib.suppress(
                ValueError, KeyError, TypeError, AttributeError, RecursionError
            ):
                data = json.loads(line)
                if "made" in data:
                    text, state = str(data["problem"]), CandidateState(data["state"])
                    self._made[str(data["made"])] = Exclusion(state, text) if text else None
                    continue
                figures = {str(key): float(value) for key, value in data["ms"].items()}
                if all(0 < ms < math.inf for ms in figures.values()):
                    self._rounds.setdefault(str(data["race"]), []).append(figures)

    @property
    def _path(self) -> Path:
        return self._folder / "journal.jsonl"

    def model(self, change: str) -> Path:
        """Return where the model of a change is or is to be."""
        with contextlib.suppress(OSError):
            ensure(self._folder)
        return self._folder / f"{change}.onnx"

    def is_made(self, change: str) -> bool:
        """Return whether the model of a change need not be made again."""
        counts = self.exclusion(change) is None
        return change in self._made and not (counts and not self.model(change).is_file())

    def exclusion(self, change: str) -> Exclusion | None:
        """Return why the model of a change does not count; None where it does."""
        return self._made.get(change)

    def add_made(self, change: str, excluded: Exclusion | None) -> None:
        """Keep what came of a conversion: why it does not count, or None."""
        self._made[change] = excluded
        text, state = ("", "") if excluded is None else (excluded.text, excluded.state.value)
        self._add({"made": change, "problem": text, "state": state})

    def rounds(self, stage: str, keys: Sequence[str]) -> list[dict[str, float]]:
        """Return the rounds of a race between the same set-ups, in order."""
        return self._rounds.get(_race(stage, keys), [])

    def add_round(self, stage: str, keys: Sequence[str], figures: Mapping[str, float]) -> None:
        """Keep a round."""
        self._add({"race": _race(stage, keys), "ms": {**figures}})

    def _add(self, data: Mapping[str, JSON]) -> None:
        with contextlib.suppress(OSError):
            ensure(self._folder)
            # Not atomic: a line is added, and one that is damaged is not read.
            with self._path.open("a", encoding="utf-8") as file:
                file.write("\n" * self._is_cut + json.dumps(data) + "\n")
            self._is_cut = False

    @property
    def is_kept(self) -> bool:
        """Whether the next run of the same finds something here."""
        return self._lock is not None and self._path.is_file()

    def forget(self) -> None:
        """Remove all: it came to an end."""
        shutil.rmtree(self._folder, ignore_errors=True)
        if self._lock is not None:
            self._folder.with_suffix(".lock").unlink(missing_ok=True)

    def close(self) -> None:
        """Release the journal for the next run; remove a temporary one."""
        if self._is_temporary:
            discard(self._folder)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _locked(path: Path) -> int | None:
    """Return the descriptor of a file that only this process has; None where another one has it."""
    try:
        ensure(path.parent)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _race(stage: str, keys: Sequence[str]) -> str:
    return f"{stage}: {' '.join(keys)}"
