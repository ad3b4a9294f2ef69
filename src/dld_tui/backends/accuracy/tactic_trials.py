"""Builds of a search for wrong tactics: an engine with chosen tactics, run and compared."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from dld_tui.backends.tensorrt.builder import build
from dld_tui.backends.tensorrt.library import Library
from dld_tui.backends.tensorrt.outputs import engine_outputs
from dld_tui.backends.tensorrt.tactics import CacheEditor, TacticSelection
from dld_tui.core.accuracy.tactics import Build, TacticPlan
from dld_tui.core.accuracy.tensor_errors import Tolerances, compare
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import ActivityError
from dld_tui.core.events import Event, Progress
from dld_tui.core.files import permission
from dld_tui.core.files.writer import write_pieces
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.metadata import Profile
from dld_tui.core.model.inputs.shapes import AnyArray
from dld_tui.core.tensorrt.settings import BuildSettings
from dld_tui.core.tensorrt.tactics import REPLAY, Choices, Tactic, measured_tactics, replay_text
from dld_tui.core.text import visible
from dld_tui.core.trials import Answer


@dataclass(frozen=True)
class ExpectedOutputs:
    """What an engine has to compute."""

    feeds: Sequence[Mapping[str, Any]]
    """Sets of inputs."""
    outputs: Sequence[Mapping[str, AnyArray]]
    """The right values by name, of each set."""
    tolerances: Tolerances
    runs: int = 1
    """How often each set is run."""


class TacticTrials:
    """Makes the builds.

    Args:
        library: Builds and runs the engines.
        document: The model; it stays open and unchanged.
        settings: Of the builds.
        profiles: Of the engines.
        expected: The reference outputs.
        way: How tactics are chosen, see :mod:`dld_tui.core.tensorrt.tactics`.
        folder: For the engine, its log and the timing caches, which are needed to resume a
            search.
    """

    def __init__(
        self,
        library: Library,
        document: Document,
        settings: BuildSettings,
        profiles: Sequence[Profile],
        expected: ExpectedOutputs,
        way: str,
        folder: Path,
    ) -> None:
        self._library = library
        self._document = document
        self._settings = replace(settings, tactic_replay=None, save_tactics=None)
        self._profiles = profiles
        self._expected = expected
        self._folder = folder
        permission.agree([folder])
        self._choosing: _Replay | _Cache = _Replay() if way == REPLAY else _Cache(library, folder)
        self.engine = folder / "trial.engine"
        """The engine of the last build."""
        self._log = folder / "trial.log"

    def learn(self, build: Build) -> None:
        """Take the names of tactics from a build of an earlier start of the program."""
        self._choosing.learn(build)

    def run(self, plan: TacticPlan) -> Generator[Event, None, Build]:
        """Build, run and compare.

        Raises:
            ActivityError: A build that was left to the library fails.
            DldError: As building and running engines does.
        """
        began = time.perf_counter()
        self._choosing.prepare(plan)
        try:
            yield from self._build()
            yield Progress(0, stage="running the engine")
            wrong, problem = self._compared()
        except ActivityError as error:
            if plan.choices is None:
                raise
            seconds = time.perf_counter() - began
            return Build(
                Answer.UNKNOWN, error.message, seconds=seconds, choices=plan.choices, runs=0
            )
        return replace(
            self._choosing.record(self._log),
            answer=Answer.INSUFFICIENT if wrong else Answer.SUFFICIENT,
            problem=problem,
            wrong_runs=wrong,
            runs=self._expected.runs,
            seconds=time.perf_counter() - began,
        )

    def _build(self) -> Iterator[Event]:
        selection = self._choosing.selection
        settings = self._choosing.settings(self._settings)
        steps = build(self._library, self._document, settings, self._profiles, self.engine,
                      self._log, selection)  # fmt: skip
        for event in steps:  # its lines would drown those of the search
            if isinstance(event, Progress):
                yield event

    def _compared(self) -> tuple[int, str]:
        """Return in how many runs the result was wrong, and why in the first of these."""
        expected, settings = self._expected, self._settings
        wrong, problem = 0, ""
        outputs = engine_outputs(
            self._library,
            self.engine,
            [*expected.feeds] * expected.runs,
            device=settings.device,
            plugins=settings.all_plugins,
            dla_core=settings.dla_core,
        )
        for _ in range(expected.runs):
            why = ""
            for reference in expected.outputs:
                why = why or self._problem(reference, next(outputs, {}))
            wrong += bool(why)
            problem = problem or why
        return wrong, problem

    def _problem(self, reference: Mapping[str, AnyArray], outputs: Mapping[str, AnyArray]) -> str:
        for name, value in reference.items():
            if name not in outputs:
                return f"{visible(name)}: the engine has no such output"
            tolerance = self._expected.tolerances.of(name)
            why = tolerance.problem(compare(value, outputs[name], tolerance))
            if why:
                return f"{visible(name)}: {why}"
        return ""

    def write_avoiding(self, right: Choices, path: Path) -> None:
        """Write the file with which later builds take these tactics.

        Raises:
            SaveError: It cannot be written.
        """
        self._choosing.write(right, path)


class _Replay:
    """Tactics by an algorithm selector."""

    def __init__(self) -> None:
        self.selection: TacticSelection | None = None

    def learn(self, build: Build) -> None:
        """Do nothing: a selector gets all choices for each build."""

    def prepare(self, plan: TacticPlan) -> None:
        """Get ready for a build."""
        self.selection = TacticSelection(plan.choices or {})

    def settings(self, settings: BuildSettings) -> BuildSettings:
        """Return the settings of a build: measured times of others must not decide."""
        return replace(settings, timing_cache=None, no_timing_cache=True)

    def record(self, log: Path) -> Build:
        """Return the tactics of the build."""
        selection = self.selection or TacticSelection()
        return Build(
            Answer.UNKNOWN,
            choices=selection.taken,
            offers=selection.offers,
            missing=tuple(dict.fromkeys(selection.missing)),
        )

    def write(self, right: Choices, path: Path) -> None:
        """Write a replay file."""
        write_pieces(path, [replay_text(right).encode()])


@dataclass
class _Names:
    """What logs say of a layer."""

    title: str = ""
    kernels: dict[int, str] = field(default_factory=dict)


class _Cache:
    """Tactics by an edited timing cache."""

    selection = None

    def __init__(self, library: Library, folder: Path) -> None:
        self._editor = CacheEditor(library)
        self._folder = folder
        self._names: dict[str, _Names] = {}
        self._missing: list[str] = []
        self._path = folder / "0000.free.timing"

    def learn(self, build: Build) -> None:
        """Keep the names."""
        for key, title in build.titles.items():
            self._named(key, title, [build.choices.get(key), *build.offers.get(key, ())])

    def _named(self, key: str, title: str, tactics: Sequence[Tactic | None]) -> None:
        known = self._names.setdefault(key, _Names(title))
        known.kernels |= {
            entry.tactic: entry.name for entry in tactics if entry is not None and entry.name
        }

    def prepare(self, plan: TacticPlan) -> None:
        """Write the cache of a build, none for one that is left to the library."""
        name = "edited" if plan.choices else f"{plan.number:04}.free"
        self._path = self._folder / f"{name}.timing"
        self._path.unlink(missing_ok=True)
        self._missing = self._edit(plan.choices, self._path) if plan.choices else []

    def _edit(self, choices: Choices, path: Path) -> list[str]:
        """Write a cache that has all layers of some choices."""
        for base in sorted(self._folder.glob("*.free.timing")):
            if base != path and choices.keys() <= self._editor.entries(base).keys():
                return self._editor.edit(base, choices, path)
        raise ActivityError("the timing cache of the first build is gone",
                            hint="Start again with --from-start")  # fmt: skip

    def settings(self, settings: BuildSettings) -> BuildSettings:
        """Return the settings of a build."""
        return replace(
            settings, timing_cache=self._path, no_timing_cache=False, editable_timing_cache=True
        )

    def record(self, log: Path) -> Build:
        """Return the tactics of the build."""
        with log.open(encoding="utf-8", errors="replace") as lines:
            measured = measured_tactics(lines)
        for key, choice in measured.items():
            self._named(key, choice.layer, choice.tactics)
        choices = {
            key: replace(choice, name=self._kernel(key, choice.tactic))
            for key, choice in self._editor.entries(self._path).items()
        }
        titles = {key: self._names[key].title for key in choices if key in self._names}
        offers = {key: tuple(choice.tactics) for key, choice in measured.items()}
        return Build(
            Answer.UNKNOWN,
            choices=choices,
            offers=offers,
            titles=titles,
            missing=tuple(self._missing),
        )

    def _kernel(self, key: str, tactic: int) -> str:
        known = self._names.get(key)
        return "" if known is None else known.kernels.get(tactic, "")

    def write(self, right: Choices, path: Path) -> None:
        """Write an edited timing cache."""
        self._edit(right, path)
