"""What a run that was stopped had found, so that the next one goes on from there."""

from __future__ import annotations

import contextlib
import math
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dld_tui.core.files import permission
from dld_tui.core.files.temporary import discard, hold_folder
from dld_tui.core.files.work_journal import WorkJournal
from dld_tui.core.process.paths import ensure
from dld_tui.core.tune.result import CandidateState, Exclusion
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document

_NAME = "journal.jsonl"
_PACKAGES = (
    "dld-tui", "onnx", "onnxruntime", "onnxruntime-gpu", "onnxsim", "onnxslim", "tensorrt",
)  # fmt: skip


class KnownMeasurements:
    """A folder with a journal of what was made and measured, and the models that were made.

    Args:
        folder: It need not be there.
        journal: The file in it, if it is claimed.
        is_temporary: Remove the folder at the end.
    """

    def __init__(
        self, folder: Path, journal: WorkJournal | None = None, *, is_temporary: bool = False
    ) -> None:
        self._folder, self._is_temporary = folder, is_temporary
        permission.agree([folder])  # a run that was stopped may have left models that do not count
        self._made: dict[str, Exclusion | None] = {}
        self._rounds: dict[str, list[dict[str, float]]] = {}
        self.digest = ""
        """Of the content of the model; empty of a folder that :meth:`of` did not choose."""
        self._journal = journal or WorkJournal(folder / _NAME)
        self._journal.read(self._take)

    @classmethod
    def of(
        cls, settings: Mapping[str, JSON], document: Document, *, again: bool = False
    ) -> KnownMeasurements:
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
        folder = cache_dir() / "tune" / search_name(conditions)
        journal = WorkJournal(folder / _NAME)
        if again and journal.claim():
            shutil.rmtree(folder, ignore_errors=True)
            journal.close()
        if journal.claim():
            known = cls(folder, journal)
        else:  # another run has the journal: this one leaves nothing for the next
            known = cls(hold_folder("tune"), is_temporary=True)
        known.digest = str(conditions["model"])
        return known

    def _take(self, data: dict[str, Any]) -> None:
        if "made" in data:
            text, state = str(data["problem"]), CandidateState(data["state"])
            self._made[str(data["made"])] = Exclusion(state, text) if text else None
            return
        figures = {str(key): float(value) for key, value in data["ms"].items()}
        if all(0 < ms < math.inf for ms in figures.values()):
            self._rounds.setdefault(str(data["race"]), []).append(figures)

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
        self._journal.add({"made": change, "problem": text, "state": state})

    def rounds(self, stage: str, keys: Sequence[str]) -> list[dict[str, float]]:
        """Return the rounds of a race between the same set-ups, in order."""
        return self._rounds.get(_race(stage, keys), [])

    def add_round(self, stage: str, keys: Sequence[str], figures: Mapping[str, float]) -> None:
        """Keep a round."""
        self._journal.add({"race": _race(stage, keys), "ms": {**figures}})

    @property
    def is_kept(self) -> bool:
        """Whether the next run of the same finds something here."""
        return not self._is_temporary and self._journal.has_lines

    def forget(self) -> None:
        """Remove all: it came to an end."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def close(self) -> None:
        """Release the journal for the next run; remove a temporary one."""
        self._journal.close()
        if self._is_temporary:
            discard(self._folder)


def _race(stage: str, keys: Sequence[str]) -> str:
    return f"{stage}: {' '.join(keys)}"
