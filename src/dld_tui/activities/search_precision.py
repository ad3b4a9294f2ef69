"""Find the smallest set of nodes that must stay in fp32 when a model runs in a lower precision.

Result: :data:`dld_tui.core.accuracy.search.PrecisionResult`.

Each trial is recorded immediately, so an interrupted search can be resumed.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.core.accuracy.engine_settings import EngineSettings
from dld_tui.core.accuracy.statistics import ToleranceSettings, parse_tolerances
from dld_tui.core.codec import encode
from dld_tui.core.errors import ActivityError, UsageError
from dld_tui.core.events import Event, Finished, Log, Metric, Progress
from dld_tui.core.files.writer import write_text
from dld_tui.core.inputs.settings import InputSettings
from dld_tui.core.machine import providers
from dld_tui.core.params import like, param, to_json

if TYPE_CHECKING:
    from dld_tui.backends.accuracy.precision_trials import EngineTrials, PrecisionTrials, Trial
    from dld_tui.backends.onnxruntime.session import SessionSettings
    from dld_tui.backends.tensorrt.library import Library
    from dld_tui.core.accuracy.search import Guided, Kept, Outcome, PrecisionEdit, SearchEstimate
    from dld_tui.core.accuracy.trial_journal import OutcomeJournal
    from dld_tui.core.document.document import Document
    from dld_tui.core.document.node import Node


_OWN_PRECISIONS = ("fp16", "bf16", "trust")
"""Settings of engines that mean nothing to a search."""


@dataclass(frozen=True)
class SearchSettings:
    """Which model, to which precision, and how good it has to be."""

    model: Path = param(
        label="Model", help="The ONNX model.", kind="file", positional=True, metavar="MODEL"
    )
    precision: str = param(
        "fp16",
        label="Precision",
        help="Precision for all nodes that support it.",
        choices=("fp16", "bf16", "int8"),
        spellings=("--search", "--precision"),
    )
    tolerance: tuple[str, ...] = like(ToleranceSettings, "tolerance")
    atol: float = like(ToleranceSettings, "atol")
    rtol: float = like(ToleranceSettings, "rtol")
    calibration: Path | None = param(
        None,
        label="Calibration",
        help=(
            "For int8: folder with input_0.pb, … or NAME.npy, or with subfolders "
            "test_data_set_0, …. Without --inputs, the first sets are also used to compare "
            "outputs."
        ),
        kind="folder",
        spellings=("--calibration",),
        metavar="DIR",
        empty="none",
    )
    runtime: str = param(
        "onnxruntime",
        label="For",
        help=(
            "For int8: backend of the result. tensorrt uses symmetric types and no quantized "
            "biases."
        ),
        choices=("onnxruntime", "tensorrt"),
        words=(("cpu", "onnxruntime"), ("ort", "onnxruntime"), ("trt", "tensorrt")),
        spellings=("--for",),
    )
    method: str = param(
        "minmax",
        label="Method",
        help="For int8: calibration method for activations.",
        choices=("minmax", "entropy", "percentile"),
        spellings=("--method",),
    )
    inputs: Path | None = like(InputSettings, "inputs")
    shape: tuple[str, ...] = like(InputSettings, "shape")
    seed: int = like(InputSettings, "seed")
    backend: str = param(
        "onnxruntime",
        label="Trial backend",
        help=(
            "Backend of the trials; TensorRT builds an engine for each. ONNX Runtime computes "
            "the reference."
        ),
        choices=("onnxruntime", "tensorrt"),
        words=(("ort", "onnxruntime"), ("trt", "tensorrt")),
        spellings=("--backend",),
    )
    provider: str = param(
        "CPU",
        label="Provider",
        help="Execution provider. On the CPU, tensors are rounded to the precision between nodes.",
        spellings=("--provider",),
        metavar="NAME",
        means=providers.provider_note,
    )
    most_trials: int | None = param(
        None,
        label="Maximum trials",
        help="Maximum number of trials. The next search resumes from here.",
        spellings=("--most-trials",),
        minimum=1,
        metavar="N",
        empty="until the result is certain",
    )
    script: Path | None = param(
        None,
        label="Script",
        help=(
            "Write the edit script that assigns the precisions. For int8, write the names of "
            "nodes to keep in floating point, for dld convert quantize --exclude-from."
        ),
        spellings=("--script",),
        kind="output",
        metavar="FILE",
    )
    estimate_only: bool = param(
        False,
        label="Estimate",
        help="Only estimate the duration, from one trial.",
        spellings=("--estimate",),
    )
    again: bool = param(
        False,
        label="Start over",
        help="Start over instead of resuming an earlier search.",
        spellings=("--from-start",),
    )


# The fields of the last base come first.
@dataclass(frozen=True)
class Request(EngineSettings, SearchSettings):
    """Which model, to which precision, how good it has to be, and how engines are built."""

    def require(self) -> None:
        """Refuse settings that do not go together, before anything is opened.

        Raises:
            UsageError: Says which.
        """
        parse_tolerances(self.tolerance, self.atol, self.rtol)
        for name in _OWN_PRECISIONS:
            if getattr(self, name):
                raise UsageError(f"--{name} cannot be used with --search")
        if self.precision == "int8":
            if self.calibration is None:
                raise UsageError("--search int8 needs --calibration DIR")
            if self.backend == "tensorrt" or self.provider != "CPU":
                raise UsageError("--search int8 is tried by ONNX Runtime on the CPU")
        elif self.calibration is not None:
            raise UsageError("--calibration is for --search int8")
        if self.backend != "tensorrt" and self.engine_options:
            raise UsageError(
                f"{self.engine_options[0]} is for TensorRT", hint="Give --backend tensorrt"
            )


_NO_MATTER = ("most_trials", "script", "estimate_only", "again")
"""Settings that change no trial."""
_SETS = 8
"""Sets of calibration inputs that are compared."""
_DEFAULT_TOLERANCE = (Request.atol, Request.rtol)
_AGAIN = 5
"""How often a search continues if the result disagrees with the trials."""
_TOLD = 0.8
"""A good set is reported if it is at most this share of the last reported one."""


def run(request: Request) -> Iterator[Event]:
    """Search.

    Raises:
        UsageError: A setting does not match the model.
        InputError: The model or an input cannot be read.
        UnavailableError: ONNX Runtime, the provider, TensorRT or a GPU is missing.
        ActivityError: The model itself cannot be run, or the limit of trials was too low.
    """
    from dld_tui.core.document.document import Document

    request.require()
    with contextlib.ExitStack() as stack:
        library = None
        if request.backend == "tensorrt":
            yield Progress(0, None, stage="Loading TensorRT")
            library = _library(request)
        yield Progress(0, None, stage="Reading the model")
        document = stack.enter_context(contextlib.closing(Document.open(request.model)))
        if request.precision == "int8":
            trials = yield from _quantization_trials(request, document, stack)
        else:
            yield Progress(0, None, stage="Running the model as it is")
            trials = yield from _trials(request, document)
        stack.enter_context(contextlib.closing(trials))
        search = _Search(request, trials)
        if library is not None:
            engines = stack.enter_context(contextlib.closing(search.build_with(library)))
            yield from search.rank()
            search.engines = engines
        yield from search.events()


def _library(request: Request) -> Library:
    """Load TensorRT, and refuse unsupported settings."""
    from dld_tui.backends.accuracy.precision_trials import trial_settings
    from dld_tui.backends.tensorrt.cuda import select_device
    from dld_tui.backends.tensorrt.library import find_library
    from dld_tui.backends.tensorrt.outputs import require_gpu
    from dld_tui.core.tensorrt.availability import require_available

    select_device(request.device)  # before anything of CUDA
    library = find_library(request.library)
    require_gpu(library)
    settings = trial_settings(
        request.build_settings(request.model, request.model), request.precision, library
    )
    require_available(settings, library.facts)
    return library


def _quantization_trials(
    request: Request, document: Document, stack: contextlib.ExitStack
) -> Generator[Event, None, PrecisionTrials]:
    from dld_tui.backends.accuracy.precision_trials import QuantizationTrials, plan_of
    from dld_tui.backends.conversion.quantizer import Quantizer
    from dld_tui.backends.onnxruntime.tensors import TensorRunner
    from dld_tui.core.accuracy.statistics import Tolerances
    from dld_tui.core.conversion.accuracy_criteria import QUANTIZED
    from dld_tui.core.conversion.request import QuantizationSettings
    from dld_tui.core.inputs.feeds import load_input_sets, set_folders

    is_told = request.tolerance or (request.atol, request.rtol) != _DEFAULT_TOLERANCE
    tolerances, criteria = Tolerances(QUANTIZED.tolerance), None if is_told else QUANTIZED
    if is_told:
        tolerances = parse_tolerances(request.tolerance, request.atol, request.rtol)
    asked = QuantizationSettings(
        calibration=request.calibration, runtime=request.runtime, method=request.method
    )
    quantizer = stack.enter_context(Quantizer(document, asked))
    yield from quantizer.check_calibration()
    quantized = yield from quantizer.quantize(request.method, ())
    yield Progress(0, None, stage="Running the model as it is")
    settings, folder = _settings(request), request.inputs or request.calibration
    assert folder is not None
    with TensorRunner(document, settings) as runner:
        specs = runner.inputs
    most = None if request.inputs else _SETS
    feeds = [
        load_input_sets(set_folder, specs)[0].values for set_folder in set_folders(folder)[:most]
    ]
    return QuantizationTrials(
        quantizer, plan_of(quantized), request.method, (), feeds, tolerances, settings, criteria
    )


def _trials(request: Request, document: Document) -> Generator[Event, None, PrecisionTrials]:
    from dld_tui.backends.accuracy.precision_trials import PrecisionTrials
    from dld_tui.backends.onnxruntime.tensors import TensorRunner
    from dld_tui.core.inputs.feeds import input_feeds
    from dld_tui.core.inputs.guess import specs_for

    tolerances = parse_tolerances(request.tolerance, request.atol, request.rtol)
    settings = _settings(request)
    with TensorRunner(document, settings) as runner:
        feeds = input_feeds(
            specs_for(runner.inputs, document),
            request.inputs,
            request.shape,
            [request.seed],
            document,
            partial(runner.values, runner.outputs),
        )
    for remark in feeds.remarks:
        yield Log(f"Input {remark}")
    return PrecisionTrials(document, request.precision, feeds.sets, tolerances, settings)


def _settings(request: Request) -> SessionSettings:
    from dld_tui.backends.onnxruntime.runtime import find_provider
    from dld_tui.backends.onnxruntime.session import SessionSettings

    provider = find_provider(request.provider)
    settings = SessionSettings(providers=(provider,), quiet=True)
    # What fuses nodes would hide what happens between them, and would not do it in each trial: the
    # differences would include those of the optimizer.
    level = "basic" if settings.uses_cuda else "disabled"
    return SessionSettings(providers=(provider,), optimization_level=level, quiet=True)


class _Search:
    """One search."""

    def __init__(self, request: Request, trials: PrecisionTrials) -> None:
        self._request = request
        self._document = trials.document
        self._trials = trials
        self._keys = _keys(trials.document, trials.candidates())
        self._library: Library | None = None
        self.engines: EngineTrials | None = None
        self._ranked: list[str] | None = None
        self._made = 0
        self._seconds = 0.0
        self._estimate: SearchEstimate | None = None
        self._last: dict[Kept, Trial] = {}

    def build_with(self, library: Library) -> EngineTrials:
        """Return the trials with TensorRT."""
        from dld_tui.backends.accuracy.precision_trials import EngineTrials, Expectation

        self._library = library
        request, trials = self._request, self._trials
        return EngineTrials(
            library,
            self._document,
            request.precision,
            trials.candidates(),
            request.build_settings(request.model, request.model),
            Expectation(trials.feeds, trials.reference, trials.tolerances),
        )

    def rank(self) -> Iterator[Event]:
        """Rank nodes by the error of the outputs if only one is rounded: builds would cost more."""
        if not self._trials.is_quick:
            return
        every, noise = set(self._keys.values()), dict[str, float]()
        for key, node in self._keys.items():
            yield Progress(len(noise), len(every), "nodes", "Ranking the nodes with ONNX Runtime")
            noise[key] = self._trials.run(every - {node}).noise
        self._ranked = sorted(noise, key=lambda key: -noise[key])

    def events(self) -> Iterator[Event]:
        from dld_tui.core.accuracy.search import (
            KeptNode,
            Outcome,
            PrecisionEstimate,
            PrecisionReport,
            cost_text,
            unproven_nodes,
        )

        every = frozenset(self._keys)
        first = yield from self._trial(frozenset())
        self._estimate = self._estimated(first.seconds)
        yield Log(cost_text(self._estimate))
        if self._request.estimate_only:
            yield Finished(
                PrecisionEstimate(self._request.precision, self._request.backend, self._estimate)
            )
            return
        journal = self._journal()
        known = journal.known
        if frozenset() not in known and not first.is_good:
            journal.add(frozenset(), first.outcome)
        known[frozenset()] = first.outcome
        final = None
        for attempt in range(_AGAIN):
            kept_nodes, is_whole = yield from self._steps(known, journal)
            if kept_nodes is None:
                break
            final = yield from self._confirmed(frozenset(kept_nodes))
            if final.is_good:
                break
            yield Log(f"{len(kept_nodes):,} kept: {final.problem} when it is converted")
            outcome = Outcome(False, known[frozenset(kept_nodes)].noise)
            known[frozenset(kept_nodes)] = outcome
            journal.add(frozenset(kept_nodes), outcome)
            if attempt + 1 == _AGAIN or not self._is_quick:
                raise ActivityError(
                    f"the result fails when it is tried again: {final.problem}",
                    hint="The results of the model may vary from run to run",
                )
        untried = 0
        if kept_nodes is not None and final is not None:
            verdicts = {kept: outcome.good for kept, outcome in known.items()}
            untried = len(unproven_nodes(frozenset(kept_nodes), verdicts))
            is_whole = not untried
        elif every in self._last and not self._last[every].errors:
            raise ActivityError(
                f"it cannot be run with all nodes in fp32: {self._last[every].problem}"
            )
        kept = None if kept_nodes is None else [self._keys[key] for key in kept_nodes]
        edits = () if kept is None else self._edits(kept)
        if kept is not None:
            self._write_script(kept, edits)
        script = self._request.script
        yield Finished(
            PrecisionReport(
                self._request.precision,
                self._request.backend,
                len(self._trials.feeds),
                len(every),
                None
                if kept is None
                else tuple(KeptNode(node.scope.path, node.ref, node.op_type) for node in kept),
                is_whole,
                untried,
                None if kept is None or script is None else str(script),
                edits,
                None if final is None else final.lowered_nodes,
                {} if final is None else final.errors,
                self._made,
                self._seconds,
                self._estimate,
            )
        )

    def _steps(
        self, known: dict[Kept, Outcome], journal: OutcomeJournal
    ) -> Generator[Event, None, tuple[Sequence[str] | None, bool]]:
        """Search; return the nodes, None when all are not enough, and whether it came to an end."""
        steps, reported = self._asking(known), float("inf")
        most = self._request.most_trials
        try:
            kept = next(steps)
            while True:
                if most is not None and self._made >= most:
                    return self._best(known), False
                trial = yield from self._trial(kept)
                yield Metric("kept", len(kept))
                if trial.is_good and len(kept) <= reported * _TOLD:
                    reported = len(kept)
                    yield Log(f"{len(kept):,} kept: good")
                elif not trial.is_good and not self._is_quick:
                    yield Log(f"{len(kept):,} kept: {trial.problem}")
                journal.add(kept, trial.outcome)
                kept = steps.send(trial.outcome)
        except StopIteration as end:
            return end.value, True

    @property
    def _is_quick(self) -> bool:
        return self.engines is None and self._trials.is_quick

    def _asking(self, known: dict[Kept, Outcome]) -> Guided:
        from dld_tui.core.accuracy.search import answered, guided_set, minimal_set

        if self._is_quick:
            return guided_set([*self._keys], known)
        if self._ranked is None:
            names = {node: key for key, node in self._keys.items()}
            self._ranked = [names[node] for node in self._trials.ranked()]
        return answered(minimal_set(self._ranked), known)

    def _best(self, known: Mapping[Kept, Outcome]) -> list[str]:
        """Return the smallest set that was good."""
        good = [kept for kept, outcome in known.items() if outcome.good]
        if not good:
            raise ActivityError(
                f"no result after {self._made} trials", hint="Run it again to continue from there"
            )
        best = min(good, key=len)
        return [key for key in self._keys if key in best]

    def _trial(self, kept: Kept) -> Generator[Event, None, Trial]:
        nodes = [self._keys[key] for key in kept]
        if self.engines is not None:
            trial = yield from self.engines.run(nodes, self._made + 1)
        else:
            subject = f"{len(kept):,} nodes kept in fp32" if kept else "all nodes lowered"
            yield Progress(self._made, None, "trials", f"Trying with {subject}")
            trial = self._trials.run(nodes)
        self._made += 1
        self._seconds += trial.seconds
        self._last = {kept: trial} | {
            old: earlier
            for old, earlier in self._last.items()
            if earlier.is_good or len(old) == len(self._keys)
        }
        return trial

    def _confirmed(self, kept: Kept) -> Generator[Event, None, Trial]:
        """Return the trial of the result; a converted copy is run where it was switched."""
        final = self._last.get(kept)
        if self._is_quick:
            yield Progress(self._made, None, "trials", "Running the converted model")
            final = self._trials.convert([self._keys[key] for key in kept])
            self._made, self._seconds = self._made + 1, self._seconds + final.seconds
        elif final is None:  # it was tried in an earlier search
            final = yield from self._trial(kept)
        return final

    def _estimated(self, seconds: float) -> SearchEstimate:
        from dld_tui.core.accuracy.search import SearchEstimate, expected_trials, ranking_trials

        nodes = len(self._keys)
        ranking = ranking_trials(nodes) if self._is_quick else 0
        least, most = expected_trials(nodes, 3)
        return SearchEstimate(
            nodes,
            "trial" if self.engines is None else "build and run",
            seconds,
            (least, most + ranking),
            ranking,
            expected_trials(nodes, 1)[1] - least,
            (least * seconds, (most + ranking) * seconds),
        )

    def _journal(self) -> OutcomeJournal:
        from dld_tui.core.accuracy.trial_journal import (
            OutcomeJournal,
            model_and_inputs,
            search_name,
            stamps,
        )
        from dld_tui.core.settings.paths import cache_dir

        request = self._request
        settings = {name: at for name, at in to_json(request).items() if name not in _NO_MATTER}
        facts = model_and_inputs(settings, self._document, request.inputs)
        if request.calibration is not None:
            facts["calibration"] = stamps(sorted(request.calibration.rglob("*")))
        if self._library is not None:
            facts["library"] = [self._library.facts.title, self._library.facts.path]
        path = cache_dir() / "precision-search" / f"{search_name(facts)}.jsonl"
        return OutcomeJournal(path, [*self._keys], again=request.again)

    def _edits(self, kept: Sequence[Node]) -> tuple[PrecisionEdit, ...]:
        """Return what assigns the precisions; Q and DQ nodes of int8 belong to no layer."""
        from dld_tui.core.accuracy.search import PrecisionEdit

        if self._request.precision == "int8":
            return ()
        others = [node for node in self._keys.values() if node not in set(kept)]
        return tuple(
            PrecisionEdit(
                "set_precision", tuple((node.scope.path, node.ref) for node in nodes), precision
            )
            for nodes, precision in ((kept, "fp32"), (others, self._request.precision))
            if nodes
        )

    def _write_script(self, kept: Sequence[Node], edits: Sequence[PrecisionEdit]) -> None:
        if self._request.script is None:
            return
        lines = [json.dumps(encode(edit), ensure_ascii=False) for edit in edits]
        if self._request.precision == "int8":
            lines = [node.name for node in kept]
        write_text(self._request.script, "".join(f"{line}\n" for line in lines))


def _keys(document: Document, nodes: Collection[Node]) -> dict[str, Node]:
    """Name nodes by their places, which hold from one start of the program to the next."""
    wanted = set(nodes)
    return {
        f"{number}:{at}": node
        for number, scope in enumerate(document.scopes())
        for at, node in enumerate(scope.nodes)
        if node in wanted
    }
