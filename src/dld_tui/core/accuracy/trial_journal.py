"""The trials of an interrupted search, for resuming it: a file with one line per trial."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.core.accuracy.search import Kept, Outcome
from dld_tui.core.accuracy.tactics import Build, Plan
from dld_tui.core.codec import decode, encode
from dld_tui.core.errors import ActivityError, SaveError
from dld_tui.core.files.writer import write_text
from dld_tui.core.settings.paths import ensure
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document


def model_and_inputs(
    settings: Mapping[str, JSON], document: Document, inputs: Path | None
) -> dict[str, JSON]:
    """Return what the trials of a search depend on, in the form that :func:`search_name` takes.

    The model counts by its content, not by its file: a model with edits that are not saved is
    written to another file each time it is searched.

    Args:
        settings: Those that matter to a trial.
        inputs: A folder of input files.
    """
    from dld_tui.core.conversion.storage import content_digest

    fed = sorted(inputs.rglob("*")) if inputs is not None else []
    return {
        "settings": {name: value for name, value in settings.items() if name != "model"},
        "model": content_digest(document),
        "files": stamps(fed),
    }


def stamps(paths: Iterable[Path]) -> list[JSON]:
    """Return stamps that change when one of the files does; missing files count as well."""
    rows: list[JSON] = []
    for path in paths:
        try:
            status = path.stat()
        except OSError:
            rows.append([str(path), None, None])
            continue
        rows.append([str(path), status.st_size, status.st_mtime_ns])
    return rows


def search_name(facts: Mapping[str, JSON]) -> str:
    """Return the name of a search, which changes with everything that the search depends on."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:32]


class TrialJournal:
    """Earlier builds, replayed in the order in which they were made.

    Args:
        path: The file, in an existing folder.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known = self._read()
        self.used = 0
        """Builds that were replayed."""

    def _read(self) -> list[tuple[str, Build]]:
        """Return the builds up to the first line that is damaged."""
        entries: list[tuple[str, Build]] = []
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, ActivityError):
            for line in self._path.read_text(encoding="utf-8").splitlines():
                data = json.loads(line)
                entries.append((str(data["plan"]), decode(Build, data["build"])))
        return entries

    def take(self, plan: Plan) -> Build | None:
        """Return the next build when it is of this plan; None when it has to be made."""
        if self.used < len(self._known) and self._known[self.used][0] == _digest(plan):
            self.used += 1
            return self._known[self.used - 1][1]
        if self.used < len(self._known):  # what follows was of another search
            self._known = self._known[: self.used]
            self._write("w", self._known)
        return None

    def add(self, plan: Plan, build: Build) -> None:
        """Keep a build; a journal that cannot be written is no reason to stop."""
        self._known.append((_digest(plan), build))
        self.used += 1
        self._write("a", self._known[-1:])

    def _write(self, mode: str, builds: Iterable[tuple[str, Build]]) -> None:
        with contextlib.suppress(OSError), self._path.open(mode, encoding="utf-8") as file:
            for digest, build in builds:
                file.write(f"{json.dumps({'plan': digest, 'build': encode(build)})}\n")


def _digest(plan: Plan) -> str:
    choices = None if plan.choices is None else {
        layer: encode(replace(choice, ms=None, name="")) for layer, choice in plan.choices.items()
    }  # fmt: skip
    return hashlib.sha256(json.dumps(choices, sort_keys=True).encode()).hexdigest()


class OutcomeJournal:
    """Trials of a precision search, by the nodes that were kept.

    path: The file; its folder is created when needed.
        nodes: All that can be kept, in an order that is stable across runs.
        nodes: All that can be kept, in an order that holds from one start to the next.
        again: Discard the existing trials.
    """

    def __init__(self, path: Path, nodes: Sequence[str], *, again: bool = False) -> None:
        self._path = path
        self._nodes = nodes
        self._places = {node: at for at, node in enumerate(nodes)}
        self._head = hashlib.sha256("\n".join(nodes).encode()).hexdigest()
        self.known: dict[Kept, Outcome] = {} if again else self._read()
        """The trials of earlier searches."""
        self._is_new = not self.known

    def _read(self) -> dict[Kept, Outcome]:
        """Return the trials up to the first line that is damaged."""
        outcomes: dict[Kept, Outcome] = {}
        with contextlib.suppress(OSError, ValueError, TypeError):
            head, *lines = self._path.read_text(encoding="utf-8").splitlines()
            for line in lines if head == self._head else ():
                mask, good, noise = json.loads(line)
                bits = int(mask, 16)
                kept = frozenset(node for at, node in enumerate(self._nodes) if bits >> at & 1)
                outcomes[kept] = Outcome(bool(good), float(noise))
        return outcomes

    def add(self, kept: Kept, outcome: Outcome) -> None:
        """Keep a trial; a journal that cannot be written is no reason to stop."""
        mask = sum(1 << self._places[node] for node in kept)
        line = json.dumps([f"{mask:x}", outcome.good, str(outcome.noise)])
        with contextlib.suppress(OSError, SaveError):
            if self._is_new:
                ensure(self._path.parent)
                write_text(self._path, f"{self._head}\n")
                self._is_new = False
            # Not atomic: a line is added, and one that is damaged ends the reading.
            with self._path.open("a", encoding="utf-8") as file:
                file.write(f"{line}\n")
