"""Find the smallest set of nodes that must stay in fp32 when a model runs in a lower precision.

Result: :data:`dld_tui.core.accuracy.search.PrecisionResult`.

Each trial is recorded immediately, so an interrupted search can be resumed.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.core import fmt
from dld_tui.core.accuracy.engine_settings import EngineSettings
from dld_tui.core.accuracy.tensor_errors import ToleranceSettings, parse_tolerances
from dld_tui.core.codec import encode
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import ActivityError, UsageError
from dld_tui.core.events import Event, Finished, Log, Progress
from dld_tui.core.files.writer import write_text
from dld_tui.core.machine import providers
from dld_tui.core.model.inputs.settings import InputSettings
from dld_tui.core.notes import NoteKind
from dld_tui.core.params import deciding, like, param

if TYPE_CHECKING:
    from dld_tui.backends.accuracy.precision_trials import EngineTrials, PrecisionTrials, Trial
    from dld_tui.backends.onnxruntime.session_options import SessionSettings
    from dld_tui.backends.tensorrt.library import Library
    from dld_tui.core.accuracy.search import PrecisionEdit, SearchEstimate
    from dld_tui.core.model.document.document import Document
    from dld_tui.core.model.document.node import Node
    from dld_tui.core.trials import Found, Outcome, Subset, Trials
    from dld_tui.core.types import JSON


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
        decides=False,
        help="Maximum number of trials. The next search resumes from here.",
        spellings=("--most-trials",),
        minimum=1,
        metavar="N",
        empty="until the result is certain",
    )
    limit: float | None = param(
        None,
        label="Time limit",
        decides=False,
        help="Start no trial after this time. The next search resumes from here.",
        unit="s",
        minimum=0,
        spellings=("--limit",),
        metavar="S",
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
        decides=False,
        help="Only estimate the duration, from one trial.",
        spellings=("--estimate",),
    )
    again: bool = param(
        False,
        label="Start over",
        decides=False,
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


_SETS = 8
"""Sets of calibration inputs that are compared."""
_DEFAULT_TOLERANCE = (Request.atol, Request.rtol)
_AGAIN = 5
"""How often a search continues if the result disagrees with the trials."""


def run(request: Request) -> Iterator[Event]:
    """Search.

    Raises:
        UsageError: A setting does not match the model.
        InputError: The model or an input cannot be read.
        UnavailableError: ONNX Runtime, the provider, TensorRT or a GPU is missing.
        ActivityError: The model itself cannot be run, or the limit of trials was too low.
    """
    from dld_tui.backends.onnxruntime.limits import limit_trials, naming
    from dld_tui.core.llm.folder import open_document

    request.require()
    with contextlib.ExitStack() as stack:
        library = None
        if request.backend == "tensorrt":
            yield Progress(0, None, stage="Loading TensorRT")
            library = _library(request)
        yield Progress(0, None, stage="Reading the model")
        document = stack.enter_context(contextlib.closing(open_document(request.model)))
        if library is None and _settings(request).providers == ("CPU",):
            limit_trials(document, shapes=request.shape)
        stack.enter_context(naming(document))
        if request.precision == "int8":
            trials = yield from _quantization_trials(request, document, stack)
        else:
            yield Progress(0, None, stage="Running the model as it is")
            trials = yield from _trials(request, document)
        stack.enter_context(contextlib.closing(trials))
        search = stack.enter_context(contextlib.closing(_Search(request, trials, library)))
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
    require_available(settings, library.capabilities)
    return library


def _quantization_trials(
    request: Request, document: Document, stack: contextlib.ExitStack
) -> Generator[Event, None, PrecisionTrials]:
    from dld_tui.backends.accuracy.precision_trials import QuantizationTrials, plan_of
    from dld_tui.backends.conversion.quantizer import Quantizer
    from dld_tui.backends.onnxruntime.tensors import TensorRunner
    from dld_tui.core.accuracy.tensor_errors import Tolerances
    from dld_tui.core.conversion.accuracy_criteria import QUANTIZED
    from dld_tui.core.conversion.request import QuantizationSettings
    from dld_tui.core.model.inputs.feeds import load_input_sets, set_folders

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
    from dld_tui.core.model.inputs.feeds import input_feeds
    from dld_tui.core.model.inputs.guess import specs_for

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
    from dld_tui.backends.onnxruntime.session_options import SessionSettings

    provider = find_provider(request.provider)
    settings = SessionSettings(providers=(provider,), quiet=True)
    # What fuses nodes would hide what happens between them, and would not do it in each trial: the
    # differences would include those of the optimizer.
    level = "basic" if settings.uses_cuda else "disabled"
    return SessionSettings(providers=(provider,), optimization_level=level, quiet=True)


class _Search:
    """One search. Close it before the trials."""

    def __init__(self, request: Request, trials: PrecisionTrials, library: Library | None) -> None:
        from dld_tui.core.trials import KnownOutcomes, Outcome

        self._request = request
        self._document = trials.document
        self._runner = trials
        self._keys = _keys(trials.document, trials.candidates())
        self._engines = None if library is None else self._build_with(library)
        self._journal = KnownOutcomes.of(
            Outcome, "search", self._facts(library), again=request.again
        )
        self._made: dict[Subset, Trial] = {}
        """The trials of this search, by the nodes that were kept."""

    def close(self) -> None:
        """Remove the last engine."""
        self._journal.close()
        if self._engines is not None:
            self._engines.close()

    def _build_with(self, library: Library) -> EngineTrials:
        """Return the trials with TensorRT."""
        from dld_tui.backends.accuracy.precision_trials import EngineTrials, Expectation

        request, runner = self._request, self._runner
        return EngineTrials(
            library,
            self._document,
            request.precision,
            runner.candidates(),
            request.build_settings(request.model, request.model),
            Expectation(runner.feeds, runner.reference, runner.tolerances),
        )

    def _facts(self, library: Library | None) -> Mapping[str, JSON]:
        from dld_tui.core.conversion.search_key import search_conditions

        request = self._request
        used: dict[str, JSON] = {}
        if library is not None:
            used["library"] = [library.capabilities.title, library.capabilities.path]
        inputs = [request.inputs, request.calibration]
        return search_conditions(deciding(request), self._document, inputs, **used)

    def _nodes(self, kept: Subset) -> list[Node]:
        return [self._keys[key] for key in kept]

    @property
    def _is_quick(self) -> bool:
        return self._engines is None and self._runner.is_quick

    def _trials(self) -> Trials[Subset, Outcome]:
        from dld_tui.core.trials import Limits, Trials, Words, subset_key

        every = len(self._keys)
        return Trials(
            self._try,
            subset_key,
            self._journal,
            Limits(self._request.limit, self._request.most_trials),
            lambda kept: f"{len(kept):,} of {every:,} nodes in fp32" if kept else "all lowered",
            Words("good", "not good", "not run", is_quick=self._is_quick),
        )

    def _try(self, kept: Subset) -> Generator[Event, None, Outcome]:
        nodes = self._nodes(kept)
        if self._engines is not None:
            trial = yield from self._engines.run(nodes)
        else:
            trial = self._runner.run(nodes)
        self._made[kept] = trial
        return trial.outcome

    def _convert(self, kept: Subset) -> Generator[Event, None, Outcome]:
        yield Progress(0, stage="converted")
        self._made[kept] = self._runner.convert(self._nodes(kept))
        return self._made[kept].outcome

    def events(self) -> Iterator[Event]:
        from dld_tui.core.accuracy.search import (
            KeptNode,
            PrecisionEstimate,
            PrecisionReport,
            cost_text,
        )
        from dld_tui.core.trials import Answer, unknown_notes

        request, every = self._request, frozenset(self._keys)
        ranked = yield from self._ranked()
        trials = self._trials()
        first = yield from trials.ask(frozenset())
        estimate = self._estimated(first.seconds)
        yield Log(cost_text(estimate))
        if request.estimate_only:
            yield Finished(PrecisionEstimate(request.precision, request.backend, estimate))
            return
        found = yield from self._found(trials, ranked)
        if found.things is None and not found.is_whole:
            raise ActivityError(
                f"no result after {fmt.plural(trials.made, 'trial')}",
                hint="Run it again to continue from there",
            )
        if found.things is None and found.tried[every].answer is Answer.UNKNOWN:
            raise ActivityError(
                f"it cannot be run with all nodes in fp32: {found.tried[every].problem}"
            )
        kept = None if found.things is None else [self._keys[key] for key in found.things]
        final = None if found.things is None else self._made[frozenset(found.things)]
        edits = () if kept is None else self._edits(kept)
        if kept is not None:
            self._write_script(kept, edits)
        for note in unknown_notes(found, "node"):
            yield Log(note, NoteKind.WARNING)
        yield Finished(
            PrecisionReport(
                request.precision,
                request.backend,
                len(self._runner.feeds),
                len(every),
                None
                if kept is None
                else tuple(KeptNode(node.scope.path, node.ref, node.op_type) for node in kept),
                not found.untried,
                len(found.untried),
                None if kept is None or request.script is None else str(request.script),
                edits,
                None if final is None else final.lowered_nodes,
                {} if final is None else final.errors,
                trials.made,
                trials.seconds,
                estimate,
                len(found.unknown),
                tuple(trials.changed),
            )
        )

    def _found(
        self, trials: Trials[Subset, Outcome], ranked: Sequence[str]
    ) -> Generator[Event, None, Found]:
        """Search until the result is good when it is tried again, too."""
        for attempt in range(_AGAIN):
            if self._is_quick:
                found = yield from trials.guided([*self._keys], lambda kept: kept)
            else:
                found = yield from trials.smallest(ranked, lambda kept: kept)
            if found.things is None:
                break
            kept = frozenset(found.things)
            if not kept and kept in self._made and not self._is_quick:
                break  # nothing was searched
            again = yield from trials.confirm(kept, self._convert if self._is_quick else None)
            if again.is_sufficient:
                break
            if attempt + 1 == _AGAIN or not self._is_quick:
                raise ActivityError(
                    f"the result fails when it is tried again: {again.problem}",
                    hint="The results of the model may vary from run to run",
                )
        return found

    def _ranked(self) -> Generator[Event, None, list[str]]:
        """Return the nodes, the likely ones first.

        By the error of the outputs if only one is rounded, where builds would cost more.
        """
        from dld_tui.core.trials import Limits, Trials, Words, subset_key

        if self._engines is None or not self._runner.is_quick:
            names = {node: key for key, node in self._keys.items()}
            return [] if self._is_quick else [names[node] for node in self._runner.ranked()]
        every, noise = frozenset(self._keys), dict[str, float]()

        def run(kept: Subset) -> Generator[Event, None, Outcome]:
            yield from ()
            return self._runner.run(self._nodes(kept)).outcome

        ranking = Trials(
            run,
            lambda kept: f"ranking {subset_key(kept)}",
            self._journal,
            Limits(),
            lambda kept: f"ranking {len(every):,} nodes with ONNX Runtime",
            Words("good", "not good", "not run", is_quick=True),
        )
        for key in self._keys:
            noise[key] = (yield from ranking.ask(every - {key})).noise
        return sorted(noise, key=lambda key: -noise[key])

    def _estimated(self, seconds: float) -> SearchEstimate:
        from dld_tui.core.accuracy.search import SearchEstimate
        from dld_tui.core.trials import expected_trials, ranking_trials

        nodes = len(self._keys)
        ranking = ranking_trials(nodes) if self._is_quick else 0
        least, most = expected_trials(nodes, 3)
        return SearchEstimate(
            nodes,
            "trial" if self._engines is None else "build and run",
            seconds,
            (least, most + ranking),
            ranking,
            expected_trials(nodes, 1)[1] - least,
            (least * seconds, (most + ranking) * seconds),
        )

    def _edits(self, kept: Sequence[Node]) -> tuple[PrecisionEdit, ...]:
        """Return what assigns the precisions; Q and DQ nodes of int8 belong to no layer."""
        from dld_tui.core.accuracy.search import PrecisionEdit
        from dld_tui.core.model.edits.metadata import set_precision

        if self._request.precision == "int8":
            return ()
        others = [node for node in self._keys.values() if node not in set(kept)]
        return tuple(
            PrecisionEdit(
                set_precision.name, tuple((node.scope.path, node.ref) for node in nodes), precision
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
