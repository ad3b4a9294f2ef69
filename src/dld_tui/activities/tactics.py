"""Find the tactics of TensorRT that make a model's results wrong.

Each build is recorded immediately, so an interrupted search can be resumed.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.core.accuracy.tactics import (
    BadTactic,
    BuildEstimate,
    ShownTactic,
    SuspectTactics,
    TacticReport,
)
from dld_tui.core.accuracy.tensor_errors import ToleranceSettings, parse_tolerances
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import UnavailableError, UsageError
from dld_tui.core.events import Event, Finished, Log, Progress
from dld_tui.core.files.temporary import temporary_folder
from dld_tui.core.machine import providers
from dld_tui.core.model.inputs.settings import FOLDER_HELP, InputSettings
from dld_tui.core.params import deciding, like, param
from dld_tui.core.tensorrt.settings import BuildSettings
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.backends.accuracy.tactic_trials import ExpectedOutputs, TacticTrials
    from dld_tui.backends.tensorrt.library import Library
    from dld_tui.core.accuracy.tactics import Build, Isolation
    from dld_tui.core.model.document.document import Document
    from dld_tui.core.model.document.metadata import Profile
    from dld_tui.core.tensorrt.capabilities import LibraryCapabilities
    from dld_tui.core.tensorrt.tactics import Tactic


@dataclass(frozen=True)
class Request(BuildSettings):
    """The builds, the expected results, and the limits of the search."""

    output: Path | None = param(
        None,
        label="Save engine",
        help="Save an engine with correct results here. By default it is discarded.",
        kind="output",
        spellings=("--output", "-o", "--save-engine", "--saveEngine"),
        metavar="ENGINE",
        empty="discarded",
    )
    avoid: Path | None = param(
        None,
        label="Replay file",
        help=(
            "Write a tactic replay, or an edited timing cache, that avoids these tactics, for "
            "dld build. By default NAME.tactics in the current folder."
        ),
        kind="output",
        suffix=".tactics",
        default_path=lambda request: None if request.estimate_only else request.avoid_path,
        spellings=("--write", "-w"),
        metavar="FILE",
    )
    tries: int = param(
        10,
        label="Builds",
        decides=False,
        help="Maximum number of builds to find a wrong result, and again to find a correct one.",
        minimum=1,
        spellings=("--tries", "--until"),
        metavar="N",
    )
    vary: bool = param(
        False,
        label="Vary",
        help=(
            "Choose random tactics from the second build on, not the fastest: finds wrong "
            "tactics that TensorRT rarely chooses."
        ),
        spellings=("--vary",),
    )
    runs: int = param(
        2,
        label="Runs",
        help="Runs of each engine on the same inputs. One wrong result is enough to reject it.",
        minimum=1,
        spellings=("--runs",),
        metavar="N",
    )
    way: str = param(
        "auto",
        label="Tactic choice",
        help=(
            "How to choose tactics: replay uses an algorithm selector (TensorRT 8 to 10), cache "
            "an edited timing cache (10.8 and newer). By default replay, if available."
        ),
        choices=("auto", "replay", "cache"),
        spellings=("--by",),
    )
    tolerance: tuple[str, ...] = like(ToleranceSettings, "tolerance")
    atol: float = like(ToleranceSettings, "atol")
    rtol: float = like(ToleranceSettings, "rtol")
    inputs: Path | None = like(
        InputSettings,
        "inputs",
        help=(
            f"{FOLDER_HELP} By default inputs are generated with the optimum shapes of the first "
            "profile."
        ),
    )
    seed: int = like(InputSettings, "seed")
    provider: str = param(
        "CPU",
        label="Reference",
        help="ONNX Runtime execution provider that computes the reference results.",
        spellings=("--provider",),
        metavar="NAME",
        means=providers.provider_note,
    )
    limit: float | None = param(
        None,
        label="Time limit",
        decides=False,
        help="Start no build after this time. The next search resumes from here.",
        unit="s",
        minimum=0,
        spellings=("--limit",),
        metavar="S",
        empty="until the result is certain",
    )
    estimate_only: bool = param(
        False,
        label="Estimate",
        decides=False,
        help="Only estimate the duration, from one build.",
        spellings=("--estimate",),
    )
    again: bool = param(
        False,
        label="Start over",
        decides=False,
        help="Start over instead of resuming an interrupted search.",
        spellings=("--from-start",),
    )

    @property
    def avoid_path(self) -> Path:
        """Where what avoids the tactics goes."""
        return self.avoid or Path(f"{self.model.stem}.tactics")

    def require(self) -> None:
        """Refuse settings that do not go together, before anything is loaded.

        Raises:
            UsageError: Says which.
        """
        parse_tolerances(self.tolerance, self.atol, self.rtol)
        if set_fields := [name for name in _OWN_TACTICS if getattr(self, name)]:
            flag = f"--{set_fields[0].replace('_', '-')}"
            raise UsageError(
                f"{flag} cannot be used with this search, which chooses all tactics itself"
            )


_OWN_TACTICS = ("tactic_replay", "save_tactics", "timing_cache", "editable_timing_cache",
                "error_on_cache_miss")  # fmt: skip
"""Settings of a build that a search makes itself."""
_NO_MATTER = ("no_timing_cache", *_OWN_TACTICS)
"""Settings of a build that change none of a search."""


def run(request: Request) -> Iterator[Event]:
    """Search.

    Raises:
        UsageError: The library does not support a setting, or a setting does not match the model.
        InputError: The model or an input cannot be read.
        UnavailableError: No library lets tactics be chosen, or there is no GPU for it.
        ActivityError: The model cannot be built or run.
        SaveError: The result cannot be written.
    """
    from dld_tui.backends.tensorrt.cuda import select_device
    from dld_tui.backends.tensorrt.library import find_library
    from dld_tui.core.llm.folder import open_document
    from dld_tui.core.tensorrt.availability import require_available
    from dld_tui.core.tensorrt.profiles import profiles_for

    request.require()
    yield Progress(0, None, stage="Loading TensorRT")
    select_device(request.device)  # before anything of CUDA
    library = find_library(request.library)
    way = _way(request, library.capabilities)
    require_available(request, library.capabilities)
    yield Progress(0, None, stage="Reading the model")
    with contextlib.closing(open_document(request.model)) as document:
        chosen = profiles_for(document, request)
        profiles = chosen.ranges
        for remark in chosen.remarks:
            yield Log(remark)
        yield Progress(0, None, stage="Running the model with ONNX Runtime")
        expected = _expected(request, document, profiles)
        search = _Searching(request, library, document, profiles, expected, way)
        yield from search.events()


def _way(request: Request, capabilities: LibraryCapabilities) -> str:
    """Return how tactics are chosen.

    Raises:
        UnavailableError: They cannot be with this library, or it cannot run engines here.
    """
    from dld_tui.core.tensorrt.availability import require_driver
    from dld_tui.core.tensorrt.tactics import CACHE, REPLAY, reason_against

    ways = (REPLAY, CACHE) if request.way == "auto" else (request.way,)
    reasons = {way: reason_against(way, capabilities) for way in ways}
    usable = next((way for way, reason in reasons.items() if not reason), None)
    if usable is None:
        raise UnavailableError(
            f"the tactics of {capabilities.title} cannot be chosen: "
            f"{' and '.join(reasons.values())}",
            hint="Use TensorRT: 8 to 10 can replay tactics, 10.8 and later edit the timing cache",
        )
    require_driver(capabilities)
    return usable


def _expected(request: Request, document: Document, profiles: list[Profile]) -> ExpectedOutputs:
    """Return inputs, and what ONNX Runtime makes of them."""
    from dld_tui.backends.accuracy.tactic_trials import ExpectedOutputs
    from dld_tui.backends.onnxruntime.runtime import find_provider
    from dld_tui.backends.onnxruntime.session_options import SessionSettings
    from dld_tui.backends.onnxruntime.tensors import TensorRunner
    from dld_tui.core.model.inputs.feeds import input_feeds
    from dld_tui.core.model.inputs.guess import specs_for
    from dld_tui.core.tensorrt.profiles import shape_inputs

    tolerances = parse_tolerances(request.tolerance, request.atol, request.rtol)
    provider = find_provider(request.provider)
    shapes: list[str] = []
    if request.inputs is None and profiles:
        values = shape_inputs(document)
        shapes = [
            f"{name}:{'x'.join(map(str, range_.opt))}"
            for name, range_ in profiles[0].items()
            if name not in values
        ]
    with TensorRunner(document, SessionSettings(providers=(provider,), quiet=True)) as runner:
        tolerances.require_names(runner.outputs)
        specs = specs_for(runner.inputs, document)
        run = partial(runner.values, runner.outputs)
        feeds = input_feeds(specs, request.inputs, shapes, [request.seed], document, run).sets
        outputs = [
            {name: value for name, value in outputs.items() if value is not None}
            for outputs in runner.each(runner.outputs, feeds)
        ]
    return ExpectedOutputs(feeds, outputs, tolerances, request.runs)


class _Searching:
    """One search."""

    def __init__(
        self,
        request: Request,
        library: Library,
        document: Document,
        profiles: list[Profile],
        expected: ExpectedOutputs,
        way: str,
    ) -> None:
        self._request = request
        self._library = library
        self._way = way
        self._document = document
        self._parts = (library, document, request, profiles, expected, way)
        self._estimate: BuildEstimate | None = None

    def events(self) -> Iterator[Event]:
        from dld_tui.backends.accuracy.tactic_trials import TacticTrials
        from dld_tui.core.accuracy.tactics import WORDS, Build, TacticPlan, isolate
        from dld_tui.core.process.paths import ensure
        from dld_tui.core.trials import KnownOutcomes, Limits, Trials

        request = self._request
        journal = KnownOutcomes.of(Build, "tactics", self._facts(), again=request.again)
        with contextlib.ExitStack() as stack:
            stack.callback(journal.close)
            if journal.claim() and journal.path is not None:
                folder = journal.path.with_suffix("")
                if not journal.known:
                    shutil.rmtree(folder, ignore_errors=True)
                ensure(folder)
            else:  # another process makes the same search, and has its timing caches
                journal.known.clear()
                folder = stack.enter_context(temporary_folder("tactics"))
            engines = TacticTrials(*self._parts, folder)
            for build in journal.known.values():
                engines.learn(build)
            limits = Limits(request.limit)
            trials = Trials(
                engines.run, lambda plan: plan.key, journal, limits, lambda plan: plan.why, WORDS
            )
            first = yield from trials.ask(TacticPlan(None, f"build 1 of {request.tries}"))
            yield self._cost(first)
            if request.estimate_only:
                yield Finished(self._report(None, [first], None, None))
                return
            isolation = yield from isolate(
                trials, request.tries, vary=request.vary, seed=request.seed
            )
            avoid = self._write(engines, isolation)
            engine = self._keep(engines, isolation)
            if isolation.is_whole:
                journal.forget()
                shutil.rmtree(folder, ignore_errors=True)
            yield Finished(self._report(isolation, list(isolation.builds), avoid, engine))

    def _facts(self) -> Mapping[str, JSON]:
        """Return what the builds of this very search depend on."""
        from dld_tui.core.conversion.search_key import search_conditions

        request, library = self._request, self._library
        return search_conditions(
            deciding(request, _NO_MATTER),
            self._document,
            [request.inputs],
            library=[library.capabilities.title, library.capabilities.path],
        )

    def _cost(self, build: Build) -> Log:
        from dld_tui.core.accuracy.tactics import cost_text, expected_builds

        layers = sum(len(offers) > 1 for offers in build.offers.values())
        least, most = expected_builds(self._request.tries, layers)
        seconds = (least * build.seconds, most * build.seconds)
        self._estimate = BuildEstimate(layers, build.seconds, (least, most), seconds)
        return Log(cost_text(self._estimate))

    def _write(self, trials: TacticTrials, isolation: Isolation) -> Path | None:
        from dld_tui.core.accuracy.tactics import FOUND

        if isolation.verdict != FOUND:
            return None
        path = self._request.avoid_path
        trials.write_avoiding(isolation.right, path)
        return path

    def _keep(self, trials: TacticTrials, isolation: Isolation) -> Path | None:
        """Keep the last engine of a search that found something: it is right."""
        from dld_tui.core.accuracy.tactics import FOUND
        from dld_tui.core.files.writer import write_pieces

        path = self._request.output
        if path is None or isolation.verdict != FOUND or not trials.engine.exists():
            return None
        write_pieces(path, [trials.engine.read_bytes()])
        return path

    def _report(
        self,
        isolation: Isolation | None,
        builds: list[Build],
        avoid: Path | None,
        engine: Path | None,
    ) -> TacticReport:
        titles = {layer: title for build in builds for layer, title in build.titles.items()}
        from dld_tui.core.trials import Answer

        answers = [build.answer for build in builds]
        different = {frozenset(build.choices.items()) for build in builds if build.runs}
        culprits = [] if isolation is None else [
            BadTactic(
                culprit.layer, titles.get(culprit.layer, culprit.layer), _shown(culprit.tactic),
                _shown(culprit.instead), culprit.confirmed,
            )
            for culprit in isolation.culprits
        ]  # fmt: skip
        suspects = [] if isolation is None else [
            SuspectTactics(layer, titles.get(layer, layer), [_shown(tactic) for tactic in tactics])
            for layer, tactics in isolation.suspects.items()
        ]  # fmt: skip
        return TacticReport(
            verdict=None if isolation is None else isolation.verdict,
            way=self._way,
            library=self._library.capabilities.title,
            builds=len(builds),
            good=answers.count(Answer.SUFFICIENT),
            bad=answers.count(Answer.INSUFFICIENT),
            failed=answers.count(Answer.UNKNOWN),
            variants=len(different),
            seconds=sum(build.seconds for build in builds),
            layers=max((len(build.choices) for build in builds), default=0),
            problem=next(
                (build.problem for build in builds if build.answer is Answer.INSUFFICIENT), ""
            ),
            culprits=culprits,
            suspects=suspects,
            avoid=None if avoid is None else avoid.absolute(),
            engine=None if engine is None else engine.absolute(),
            options=_options(self._request),
            remarks=[*_remarks(builds), *(isolation.notes if isolation is not None else ())],
            estimate=self._estimate,
            is_whole=isolation is None or isolation.is_whole,
        )


def _options(request: Request) -> str:
    """Return the options of the builds as written on the command line."""
    from dld_tui.core.params import command_line, settings_of
    from dld_tui.core.tensorrt.settings import BuildSettings

    values = deciding(request, ("model", *_NO_MATTER))
    names = [setting.name for setting in settings_of(BuildSettings)]
    build_settings = {name: values[name] for name in names if name in values}
    return command_line((), BuildSettings, build_settings)


def _shown(tactic: Tactic) -> ShownTactic:
    return ShownTactic(tactic.tactic, tactic.implementation, tactic.name, tactic.shown)


def _remarks(builds: list[Build]) -> list[str]:
    """Return what else people should know. Fit for a terminal."""
    from dld_tui.core import fmt
    from dld_tui.core.trials import Answer

    remarks = []
    if unsteady := sum(build.changes_by_run for build in builds):
        remarks.append(f"{fmt.plural(unsteady, 'engine')} gave a right and a wrong result for the"
                       " same inputs: a tactic is not deterministic")  # fmt: skip
    if missing := sum(bool(build.missing) for build in builds):
        remarks.append(f"in {fmt.plural(missing, 'build')} a layer was not offered the tactic that"
                       " was asked for")  # fmt: skip
    if failed := [build for build in builds if build.answer is Answer.UNKNOWN]:
        remarks.append(f"{fmt.plural(len(failed), 'build')} with chosen tactics failed:"
                       f" {failed[0].problem}")  # fmt: skip
    return remarks
