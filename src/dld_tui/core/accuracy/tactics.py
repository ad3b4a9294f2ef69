"""A search over builds for the tactics that make a result wrong, independent of a library.

It builds until one build is wrong and one is right, and then narrows down the layers in which the
two differ, by builds with all tactics chosen (:mod:`dld_tui.core.trials`).
"""

from __future__ import annotations

import hashlib
import json
import random
import shlex
from collections.abc import Generator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path

from dld_tui.core import fmt
from dld_tui.core.codec import encode
from dld_tui.core.dataclass import dataclass
from dld_tui.core.events import Event
from dld_tui.core.tables.table import NOTE, Column, Table
from dld_tui.core.tensorrt.tactics import REPLAY, Choices, Offers, Tactic, by_time
from dld_tui.core.trials import (
    Answer,
    Found,
    LimitReachedError,
    Outcome,
    Subset,
    Trials,
    Words,
    expected_trials,
    limit_notes,
    unknown_notes,
)

WORDS = Words("right", "wrong", "failed")
"""A set of layers whose tactics are changed is sufficient when the result of the build is right,
insufficient when it is wrong in a run at least, and unknown when there is no build."""
FOUND, NONE_BAD, NONE_GOOD, UNSTEADY = "found", "none_bad", "none_good", "unsteady"
STOPPED = "stopped"
"""How a search ends: with the tactics; all builds were right; no build was; the same tactics gave a
right and a wrong result, so tactics alone are not the cause; or at the time limit before any of
these."""


@dataclass(frozen=True)
class BuildEstimate:
    """The cost of a search."""

    layers: int
    """Those that can have other tactics."""
    build_seconds: float
    builds: tuple[int, int]
    """The fewest and the most."""
    seconds: tuple[float, float]


@dataclass(frozen=True)
class ShownTactic:
    """A tactic as results have it. Texts are foreign."""

    tactic: int
    implementation: int
    name: str
    shown: str


@dataclass(frozen=True)
class BadTactic:
    """A tactic of a layer that makes the result wrong. Texts are foreign."""

    layer: str
    title: str
    tactic: ShownTactic
    instead: ShownTactic | None
    confirmed: bool | None
    """Whether a build with only this tactic changed was wrong."""


@dataclass(frozen=True)
class SuspectTactics:
    """Tactics of a layer that occurred in wrong builds only. Texts are foreign."""

    layer: str
    title: str
    tactics: list[ShownTactic]


@dataclass(frozen=True)
class TacticReport:
    """The result of the activity ``tactics``. Fields may be added, never renamed."""

    verdict: str | None
    """None if only the cost was requested."""
    way: str
    library: str
    builds: int
    good: int
    bad: int
    failed: int
    variants: int
    """Different choices of tactics."""
    seconds: float
    layers: int
    problem: str
    culprits: list[BadTactic]
    suspects: list[SuspectTactics]
    avoid: Path | None
    engine: Path | None
    options: str
    """Those of the builds, as a command has them."""
    remarks: list[str]
    estimate: BuildEstimate | None
    is_whole: bool = True
    """Whether the search came to its end; else the time limit ended it."""


@dataclass(frozen=True)
class TacticPlan:
    """A build to make."""

    choices: Choices | None = field(hash=False)
    """The tactics to take, by layer; None leaves them to the library."""
    why: str
    """Its purpose, in a few words."""
    number: int = 0
    """Of builds with the same choices, which may differ."""

    @property
    def key(self) -> str:
        """What the build is known by."""
        choices = None if self.choices is None else {
            layer: encode(replace(choice, ms=None, name=""))
            for layer, choice in self.choices.items()
        }  # fmt: skip
        text = json.dumps([choices, self.number], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Build(Outcome):
    """The outcome of a build."""

    choices: Choices = field(default_factory=dict)
    """What the library took in the end."""
    offers: Offers = field(default_factory=dict)
    """The alternatives, if the library lists them."""
    titles: Mapping[str, str] = field(default_factory=dict)
    """Names of layers for people, where they are known by something else. Untrusted text."""
    wrong_runs: int = 0
    """Runs of the engine, with the same inputs, in which the result was wrong."""
    runs: int = 1
    missing: tuple[str, ...] = ()
    """Layers that did not get the requested tactic. Untrusted text."""

    @property
    def changes_by_run(self) -> bool:
        """Whether the same engine gave a right and a wrong result."""
        return 0 < self.wrong_runs < self.runs


@dataclass(frozen=True)
class Culprit:
    """A tactic without which the result is right."""

    layer: str
    tactic: Tactic
    instead: Tactic
    """The tactic of a right build."""
    confirmed: bool
    """Whether a build with only this tactic changed was wrong; else there is no such build."""


@dataclass(frozen=True)
class Isolation:
    """The result of a search."""

    verdict: str
    culprits: tuple[Culprit, ...] = ()
    right: Choices = field(default_factory=dict)
    """All tactics of a build that was right, without the culprits."""
    builds: tuple[Build, ...] = ()
    """All that were made, in order."""
    notes: tuple[str, ...] = ()
    """Caveats. Untrusted text."""
    is_whole: bool = True
    """Whether it came to its end."""

    @property
    def suspects(self) -> dict[str, tuple[Tactic, ...]]:
        """The tactics that occur in wrong builds only."""
        return suspects(self.builds)


def suspects(builds: Sequence[Build]) -> dict[str, tuple[Tactic, ...]]:
    """Return by layer the tactics that wrong builds took and no right one did."""
    by_layer: dict[str, dict[Tactic, None]] = {}
    good: set[tuple[str, Tactic]] = set()
    for build in builds:
        if build.is_sufficient:
            good.update(build.choices.items())
    for build in builds:
        if build.answer is Answer.INSUFFICIENT:
            for layer, tactic in build.choices.items():
                if (layer, tactic) not in good:
                    by_layer.setdefault(layer, {})[tactic] = None
    return {layer: tuple(tactics) for layer, tactics in by_layer.items()}


def isolate(
    trials: Trials[TacticPlan, Build], tries: int, *, vary: bool = False, seed: int = 0
) -> Generator[Event, None, Isolation]:
    """Find the tactics that make a result wrong.

    Args:
        trials: Makes the builds.
        tries: The most builds to find a wrong result, and then a right one.
        vary: From the second build on, choose tactics at random instead of the fastest ones.
        seed: Of the random choice.

    Returns:
        The result. Culprits are minimal: with a single one of them put back, the result is wrong
        again, unless it is not `confirmed`.
    """
    search = _Search(trials, tries, vary, seed)
    try:
        isolation = yield from search.steps()
    except LimitReachedError:
        isolation = search.at_limit()
    return replace(isolation, notes=(*isolation.notes, *trials.changed))


class _Search:
    """One search."""

    def __init__(
        self, trials: Trials[TacticPlan, Build], tries: int, vary: bool, seed: int
    ) -> None:
        self._trials = trials
        self._tries = tries
        self._vary = vary
        self._random = random.Random(seed)
        self._builds: list[Build] = []
        self._offers: dict[str, tuple[Tactic, ...]] = {}

    def _make(
        self, choices: Choices | None, why: str, number: int = 0
    ) -> Generator[Event, None, Build]:
        build = yield from self._trials.ask(TacticPlan(choices, why, number))
        self._keep(build)
        return build

    def _keep(self, build: Build) -> None:
        if any(build is other for other in self._builds):
            return  # the same tactics were asked for before
        self._builds.append(build)
        for layer, offered in build.offers.items():
            self._offers[layer] = by_time([*self._offers.get(layer, ()), *offered])

    def _end(self, verdict: str) -> Isolation:
        return Isolation(verdict, builds=tuple(self._builds))

    def at_limit(self) -> Isolation:
        """Return the result of a search that a limit ended before anything was isolated."""
        return replace(self._end(STOPPED), is_whole=False)

    def steps(self) -> Generator[Event, None, Isolation]:
        """Search."""
        bad = yield from self._first_bad()
        if bad is None:
            return self._end(NONE_BAD)
        good = next((build for build in self._builds if build.is_sufficient), None)
        if good is None:
            good = yield from self._first_good(bad)
        if good is None:
            return self._end(NONE_GOOD)
        return (yield from self._between(bad, good))

    def _first_bad(self) -> Generator[Event, None, Build | None]:
        for number in range(self._tries):
            choices = None
            if number and self._vary and any(self._offers.values()):
                choices = self._other(self._builds[0], "random", 0)
            why = f"build {number + 1} of {self._tries}"
            build = yield from self._make(choices, why, number)
            if build.answer is Answer.INSUFFICIENT:
                return build
        return None

    def _first_good(self, bad: Build) -> Generator[Event, None, Build | None]:
        """Look for a right build among those with other tactics wherever possible."""
        seen = [bad.choices]
        for number in range(self._tries):
            choices = self._other(bad, "rank" if number < 2 else "random", number)
            if choices in seen:
                continue
            seen.append(choices)
            build = yield from self._make(choices, f"other tactics, {number + 1}")
            if build.is_sufficient:
                return build
        return None

    def _other(self, build: Build, how: str, rank: int) -> Choices:
        """Return choices that differ from those of a build wherever there is an alternative."""
        choices = dict(build.choices)
        for layer, taken in build.choices.items():
            others = [tactic for tactic in self._offers.get(layer, ()) if tactic != taken]
            same = [other for other in others if _forms(other) == _forms(taken)]
            others = same or others  # other types and layouts change the layers around, too
            if how == "random":
                choices[layer] = self._random.choice([taken, *others])
            elif others:
                choices[layer] = others[min(rank, len(others) - 1)]
        return choices

    def _between(self, bad: Build, good: Build) -> Generator[Event, None, Isolation]:
        """Narrow down the layers in which a wrong and a right build differ."""
        likely = suspects(self._builds)
        differing = [layer for layer, choice in bad.choices.items()
                     if layer in good.choices and good.choices[layer] != choice]  # fmt: skip
        differing.sort(key=lambda layer: layer not in likely)

        def plan(changed: Subset) -> TacticPlan:
            choices = {**bad.choices, **{layer: good.choices[layer] for layer in changed}}
            why = f"{len(changed)} of {len(differing)} layers as in the right build"
            return TacticPlan(choices, why)

        found = yield from self._trials.smallest(differing, plan)
        for build in found.tried.values():
            if isinstance(build, Build):
                self._keep(build)
        if not found.things and not found.is_whole:
            return self.at_limit()
        if not found.things:  # nothing has to change for a right result, or all is not enough
            return self._end(UNSTEADY)
        right = plan(frozenset(found.things))
        again = yield from self._trials.confirm(right)
        self._keep(again)
        if not again.is_sufficient:
            return self._end(UNSTEADY)
        culprits = tuple(
            Culprit(layer, bad.choices[layer], again.choices.get(layer, good.choices[layer]),
                    _is_confirmed(found, layer, bad))
            for layer in found.things
        )  # fmt: skip
        return replace(
            self._end(FOUND), culprits=culprits, right=again.choices or right.choices or {},
            notes=(*limit_notes(found, "tactic"), *unknown_notes(found, "tactic")),
            is_whole=found.is_whole,
        )  # fmt: skip


def _is_confirmed(found: Found, layer: str, bad: Build) -> bool:
    """Return whether a build was wrong that took the layer's tactic, and took it indeed."""
    build = found.tried.get(frozenset(found.things or ()) - {layer})
    if not isinstance(build, Build) or build.answer is not Answer.INSUFFICIENT:
        return False
    return build.choices.get(layer) == bad.choices[layer]


def _forms(tactic: Tactic) -> tuple[object, object]:
    return tactic.inputs, tactic.outputs


def expected_builds(tries: int, layers: int) -> tuple[int, int]:
    """Return how many builds a search takes about, at least and at most, for two culprits.

    Args:
        tries: As of :func:`isolate`.
        layers: How many have a tactic to choose.
    """
    return tries, 2 * tries + expected_trials(layers, 2)[1] + 1


def cost_text(estimate: BuildEstimate) -> str:
    """Return the cost of a search as a sentence."""
    least, most = estimate.builds
    shortest, longest = (fmt.duration(seconds) for seconds in estimate.seconds)
    return (
        f"{fmt.plural(estimate.layers, 'layer')} can have other tactics; a build with its runs"
        f" takes {fmt.duration(estimate.build_seconds)}: up to {least} ({shortest}) to find a"
        f" wrong result, up to {most} ({longest}) to find its tactics"
    )


def verdict_text(data: TacticReport) -> str:
    """Return how a search ended, in one sentence."""
    verdict = data.verdict
    if verdict is None:
        return cost_text(data.estimate) if data.estimate is not None else ""
    builds = fmt.plural(data.builds, "build")
    if verdict == FOUND:
        count = len(data.culprits)
        return f"{fmt.plural(count, 'tactic')} {'makes' if count == 1 else 'make'} the result wrong"
    if verdict == NONE_BAD:
        same = "" if data.variants > 1 else "; all took the same tactics: --vary tries others"
        return f"No wrong result in {builds}{same}"
    if verdict == NONE_GOOD:
        return (
            f"No right result in {builds}, with other tactics neither: look at the precisions"
            " (dld accuracy --search) and the tolerances"
        )
    if verdict == STOPPED:
        return f"The time limit ended the search after {builds}; the same command resumes it"
    return "The same tactics gave a right and a wrong result: they are not the only cause"


def counts_text(data: TacticReport) -> str:
    """Return how many builds there were, and how they ended. Untrusted text."""
    return (
        f"{fmt.plural(data.builds, 'build')} with {data.library} in"
        f" {fmt.duration(data.seconds)}: {data.good} right, {data.bad} wrong,"
        f" {data.failed} failed; {fmt.plural(data.variants, 'choice')} of tactics"
    )


def avoiding_command(data: TacticReport, model: Path) -> str:
    """Return the command that builds without the tactics, or "". Untrusted text."""
    if not data.avoid:
        return ""
    file = shlex.quote(str(data.avoid))
    flags = f"--timing-cache {file} --editable-timing-cache"
    if data.way == REPLAY:
        flags = f"--tactic-replay {file}"
    options = f" {data.options}" if data.options else ""
    return f"dld build {shlex.quote(str(model))}{options} {flags}"


def tactic_table(report: TacticReport) -> Table[BadTactic]:
    """Return the tactics that are to blame as a table, or those of wrong builds only."""
    rows = report.culprits or [
        BadTactic(suspect.layer, suspect.title, tactic, None, None)
        for suspect in report.suspects
        for tactic in suspect.tactics
    ]
    alone = {True: "wrong", False: "not built", None: ""}
    return Table(
        (
            Column("layer", "layer", lambda bad: bad.title, least=16, keep="end"),
            Column("tactic", "wrong tactic", lambda bad: bad.tactic.shown, width=30, keep="end",
                   style="type"),
            Column("instead", "right one", lambda bad: bad.instead.shown if bad.instead else "",
                   NOTE, 24, priority=1, keep="end"),
            Column("alone", "alone", lambda bad: alone[bad.confirmed], NOTE, 9, priority=2,
                   style="dim"),
        ),
        rows,
    )  # fmt: skip
