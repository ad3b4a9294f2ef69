"""Find the places of QuantizeLinear and DequantizeLinear that give the lowest measured latency.

The model is calibrated once. Regions that are alike share a decision; each is quantized only if
that is faster in paired measurements and outputs stay within the tolerance. The placement found
must beat the original model again in separate runs, else nothing is written.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from dld_tui.activities.profile.onnxruntime import Request as Profile
from dld_tui.activities.separate_process import engine_ms, run_in_process
from dld_tui.core import fmt
from dld_tui.core.accuracy.engine_settings import EngineSettings
from dld_tui.core.accuracy.tensor_errors import ToleranceSettings, parse_tolerances
from dld_tui.core.compare.gate import (
    LEAST_RUNS,
    TOLERANCE_PERCENT,
    Pair,
    PairTime,
    RunFigures,
    TimePair,
    compared_times,
    in_turns,
    judge,
)
from dld_tui.core.conversion.request import QuantizationSettings
from dld_tui.core.conversion.search_key import search_conditions
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import (
    ActivityError,
    CancelledError,
    DldError,
    SaveError,
    UsageError,
)
from dld_tui.core.events import Event, Finished, Log, Progress, result_of
from dld_tui.core.files.temporary import temporary_folder
from dld_tui.core.model.inputs.settings import InputSettings
from dld_tui.core.notes import NoteKind
from dld_tui.core.params import (
    deciding,
    like,
    output_path,
    param,
    settings_of,
    to_json,
)
from dld_tui.core.process.paths import unused
from dld_tui.core.tensorrt.settings import SHAPES, BuildSettings
from dld_tui.core.text import comma_separated
from dld_tui.core.trials import Answer, KnownOutcomes, Limits, Trials, Words, subset_key
from dld_tui.core.tune.placement import (
    Comparison,
    Placement,
    PlacementResult,
    PlacementSearch,
    decisions_of,
    floating,
)
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    import onnx

    from dld_tui.backends.conversion.quantizer import QuantizedCopy, Quantizer
    from dld_tui.backends.onnxruntime.contest import Contestant
    from dld_tui.backends.tensorrt.library import Library
    from dld_tui.core.compare.gate import GateRow
    from dld_tui.core.model.document.document import Document
    from dld_tui.core.tune.regions import Regions

Result = PlacementResult
_SETS = 8
"""Sets of calibration inputs that are compared, where no others are given."""
_TURN_S = 0.1
"""How long one turn of a trial takes, unless a few passes take longer."""
_TRIAL_S = 8.0
"""How long the turns of a trial take at most, unless the fewest take longer."""
_WITHIN_PERCENT = 1.0
"""The half-width of the interval of a trial that is enough."""
_ROOM = 1.5
"""How much longer than expected the fewest turns may take."""
_ENGINE_S = 1.0
"""How long an engine runs in a turn."""
_BUILD_LIMIT_S = 1800.0
_KEPT = "The measurements are kept: run the same command again to continue"


@dataclass(frozen=True)
class PlacementSettings:
    """What is quantized, for what, and how good it has to be."""

    model: Path = param(
        label="Model", help="The ONNX model.", kind="file", positional=True, metavar="MODEL"
    )
    calibration: Path = like(QuantizationSettings, "calibration", required=True, applies=None)
    output: Path | None = param(
        None,
        label="Output",
        help=(
            "Write the model with the fastest placement here. By default NAME.placed.onnx in the "
            "current folder, if it is faster."
        ),
        spellings=("--output", "-o"),
        kind="output",
        default_path=lambda request: unused(Path(f"{request.model.stem}.placed.onnx")),
        beside=("{name}.data",),
        metavar="OUT",
    )
    runtime: str = like(
        QuantizationSettings,
        "runtime",
        help="Backend that is measured. TensorRT builds an engine for each trial.",
    )
    provider: str = like(Profile, "provider", spellings=("--provider",))
    tolerance: tuple[str, ...] = like(ToleranceSettings, "tolerance")
    limit: float = param(
        600.0,
        label="Time limit",
        decides=False,
        help="Start no trial after this time. The same command resumes the search.",
        unit="s",
        minimum=1,
        spellings=("--limit",),
        metavar="S",
    )
    weights: str = like(QuantizationSettings, "weights", choices=("int8", "uint8"))
    activations: str = like(
        QuantizationSettings, "activations", choices=("int8", "uint8"), applies=None
    )
    method: str = like(
        QuantizationSettings,
        "method",
        "minmax",
        help="Calibration method.",
        choices=("minmax", "entropy", "percentile"),
        applies=None,
    )
    ops: tuple[str, ...] = like(
        QuantizationSettings,
        "ops",
        help="Quantize only these operators, separated by commas. By default all supported ones.",
    )
    exclude: tuple[str, ...] = like(QuantizationSettings, "exclude")
    exclude_from: Path | None = like(QuantizationSettings, "exclude_from")
    per_channel: bool = like(QuantizationSettings, "per_channel", applies=None)
    reduce_range: bool = like(QuantizationSettings, "reduce_range", applies=None)
    inputs: Path | None = like(
        InputSettings,
        "inputs",
        help=(
            "Inputs to measure and compare with: a folder with input_0.pb, … or NAME.npy, or with "
            "subfolders. By default the calibration inputs."
        ),
        empty="the calibration inputs",
    )
    again: bool = param(
        False,
        label="Start over",
        decides=False,
        help="Start over instead of resuming an interrupted search.",
        spellings=("--from-start",),
    )


# The fields of the last base come first.
@dataclass(frozen=True)
class Request(EngineSettings, PlacementSettings):
    """What is quantized, for what, how good it has to be, and how engines are built."""

    def require(self) -> None:
        """Refuse settings that do not go together, before anything is opened.

        Raises:
            UsageError: Says which.
        """
        parse_tolerances(self.tolerance)
        if not self.is_for_engines and self.engine_options:
            raise UsageError(
                f"{self.engine_options[0]} is for TensorRT", hint="Give --for tensorrt"
            )
        if self.is_for_engines and (self.weights, self.activations) != ("int8", "int8"):
            raise UsageError("TensorRT takes int8 for weights and activations")

    @property
    def is_for_engines(self) -> bool:
        """Whether engines are measured."""
        return self.runtime == "tensorrt"

    @property
    def data(self) -> Path:
        """The folder of the inputs that are measured and compared."""
        return self.inputs or self.calibration

    @property
    def quantization(self) -> QuantizationSettings:
        """The settings of the quantizer."""
        names = [one.name for one in settings_of(QuantizationSettings)]
        given = {name: getattr(self, name) for name in names if hasattr(self, name)}
        return QuantizationSettings(**given)


def run(request: Request) -> Iterator[Event]:
    """Search.

    Raises:
        UsageError: A setting does not match the model.
        InputError: The model or an input cannot be read.
        UnavailableError: ONNX Runtime, the provider, TensorRT or a GPU is missing.
        ActivityError: The model itself cannot be run or quantized.
        SaveError: The result cannot be written.
    """
    from dld_tui.backends.conversion.quantizer import Quantizer
    from dld_tui.backends.onnxruntime.limits import limit_trials, naming
    from dld_tui.core.llm.folder import open_document

    request.require()
    path = output_path(request, "output")
    assert path is not None  # it has a default
    if not os.access(path.absolute().parent, os.W_OK | os.X_OK):  # said before the work
        raise SaveError(
            "the folder is not writable", where=str(path.absolute().parent),
            hint="Choose another --output",
        )  # fmt: skip
    with contextlib.ExitStack() as stack:
        library = None
        if request.is_for_engines:
            yield Progress(0, None, stage="Loading TensorRT")
            library = _library(request)
        yield Progress(0, None, stage="Reading the model")
        document = stack.enter_context(contextlib.closing(open_document(request.model)))
        if library is None:
            limit_trials(document)
        stack.enter_context(naming(document))
        quantizer = stack.enter_context(Quantizer(document, request.quantization))
        yield from quantizer.check_calibration()
        folder = stack.enter_context(temporary_folder("placement"))
        yield Progress(0, None, stage="Running the model as it is")
        runner: _Runner
        if library is None:
            runner = _Sessions(request, document, folder)
        else:
            runner = _Engines(request, document, folder, library)
        stack.callback(runner.close)
        search = _Searching(request, document, quantizer, runner, folder)
        stack.callback(search.close)
        try:
            yield from search.events(path)
        except CancelledError as error:
            error.hint = _KEPT
            raise


def _library(request: Request) -> Library:
    from dld_tui.backends.tensorrt.cuda import select_device
    from dld_tui.backends.tensorrt.library import find_library
    from dld_tui.backends.tensorrt.outputs import require_gpu
    from dld_tui.core.tensorrt.availability import require_available

    select_device(request.device)  # before anything of CUDA
    library = find_library(request.library)
    require_gpu(library)
    require_available(request.build_settings(request.model, request.model), library.capabilities)
    return library


def _feeds(request: Request, document: Document) -> Sequence[Mapping[str, Any]]:
    """Return the inputs that are compared, the first of which are also timed."""
    from dld_tui.backends.onnxruntime.session_options import SessionSettings
    from dld_tui.backends.onnxruntime.tensors import TensorRunner
    from dld_tui.core.model.inputs.feeds import load_input_sets, set_folders

    with TensorRunner(document, SessionSettings(quiet=True)) as runner:
        specs = runner.inputs
    folders = set_folders(request.data)[: None if request.inputs else _SETS]
    return [load_input_sets(folder, specs)[0].values for folder in folders]


class _Runner(Protocol):
    """Runs models for their latency and their outputs."""

    title: str
    feeds: Sequence[Mapping[str, Any]]
    tolerance: str
    pair_s: float
    """How long a turn of two models takes."""

    def ready(self, model: Path) -> Generator[Event, None, tuple[str, str]]:
        """Load a model; return what is wrong with its outputs, and else how close they are."""

    def ms(self, model: Path) -> float:
        """Return the median latency of a model that is ready."""

    def drop(self, model: Path) -> None:
        """Forget a model."""

    def separate_pairs(self, base: Path, new: Path) -> TimePair:
        """Return what makes pairs of runs in separate processes."""

    def close(self) -> None:
        """Forget all models."""


def _turns(runner: _Runner, base: Path, new: Path) -> TimePair:
    """Return what times two models that are ready, one after the other."""

    def time_pair(number: int, allowed: PairTime) -> Pair:
        order = (base, new) if number % 2 == 0 else (new, base)
        figures = {model: runner.ms(model) for model in order}
        ratio = figures[new] / figures[base]
        return Pair(RunFigures(figures[base]), RunFigures(figures[new]), ratio)

    return time_pair


class _Judging:
    """Compares outputs with those of the original model."""

    def __init__(self, request: Request, reference: Sequence[Mapping[str, Any]]) -> None:
        from dld_tui.core.accuracy.tensor_errors import Tolerances
        from dld_tui.core.conversion.accuracy_criteria import QUANTIZED

        self._reference = reference
        self._criteria = None if request.tolerance else QUANTIZED
        self._tolerances = Tolerances(QUANTIZED.tolerance)
        self.text = f"SNR of {QUANTIZED.quiet_db:g} dB (default)"
        if request.tolerance:
            self._tolerances = parse_tolerances(request.tolerance)
            self.text = " ".join(request.tolerance)

    def judged(self, outputs: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
        """Return what is wrong, empty where nothing is, and how close outputs are."""
        from dld_tui.backends.onnxruntime.contest import accuracy

        problem, close = accuracy(self._reference, outputs, self._tolerances, self._criteria)
        return problem, close.text


class _Sessions:
    """Sessions of ONNX Runtime in this process, timed by turns."""

    def __init__(self, request: Request, document: Document, folder: Path) -> None:
        from dld_tui.backends.onnxruntime.runtime import version

        self._request, self._folder = request, folder
        asked = Profile(model=request.model, provider=request.provider)
        self._settings = replace(asked.session_settings(), quiet=True)
        self.title = f"ONNX Runtime {version()}, {', '.join(self._settings.providers)}"
        self.feeds = _feeds(request, document)
        self._models: dict[Path, Contestant] = {}
        begin = time.monotonic()
        original = self._contestant(request.model)
        self._judging = _Judging(request, original.outputs())
        self.tolerance = self._judging.text
        original.time(_TURN_S)
        self.pair_s = 2 * (time.monotonic() - begin)

    def _contestant(self, model: Path) -> Contestant:
        from dld_tui.backends.onnxruntime.contest import Contestant

        if model not in self._models:
            self._models[model] = Contestant(model, self._settings, self.feeds)
        return self._models[model]

    def ready(self, model: Path) -> Generator[Event, None, tuple[str, str]]:
        yield Progress(0, stage="loading")
        return self._judging.judged(self._contestant(model).outputs())

    def ms(self, model: Path) -> float:
        return self._contestant(model).time(_TURN_S)

    def drop(self, model: Path) -> None:
        if (known := self._models.pop(model, None)) is not None:
            known.close()

    def separate_pairs(self, base: Path, new: Path) -> TimePair:
        from dld_tui.activities.time_pair import pairs_of

        request = self._request
        settings = {"provider": request.provider, "inputs": request.data, "layer_passes": 0}
        request_of = pairs_of(base, new, settings, {}, {})

        def time_pair(number: int, allowed: PairTime) -> Pair:
            pair: Pair = result_of(
                run_in_process(
                    "time_pair", to_json(request_of(number, allowed)), self._folder, allowed.left_s
                )
            )
            return pair

        return time_pair

    def close(self) -> None:
        for model in [*self._models]:
            self.drop(model)


class _Engines:
    """Engines of TensorRT, built and timed in processes of their own."""

    def __init__(
        self, request: Request, document: Document, folder: Path, library: Library
    ) -> None:
        from dld_tui.backends.onnxruntime.session_options import SessionSettings
        from dld_tui.backends.onnxruntime.tensors import TensorRunner
        from dld_tui.backends.tensorrt.network import is_strong

        self._request, self._folder, self._library = request, folder, library
        self.title = library.capabilities.title
        self.feeds = _feeds(request, document)
        settings = SessionSettings(optimization_level="disabled", quiet=True)
        with TensorRunner(document, settings) as runner:
            outputs = [name for name in document.main.outputs if name]
            self._judging = _Judging(request, [*runner.each(outputs, self.feeds)])
        self.tolerance = self._judging.text
        self.pair_s = 2 * _ENGINE_S
        build = request.build_settings(request.model, request.model)
        own = {setting.name for setting in settings_of(EngineSettings)}
        self._build = {name: value for name, value in to_json(build).items() if name in own}
        self._build |= _shapes(document, build, self.feeds)
        self._is_weak = not is_strong(build, library.capabilities)
        self._loading: dict[str, JSON] = {
            "library": request.library, "device": request.device, "plugins": [*request.plugins],
            "trust": True,
        }  # fmt: skip
        self._engines: dict[Path, Path] = {}
        self._count = 0

    def _measured(self, **settings: JSON) -> Generator[Progress, None, float]:
        return engine_ms(
            self._folder, _BUILD_LIMIT_S, inputs=str(self._request.data), duration=_ENGINE_S,
            **settings,
        )  # fmt: skip

    def ready(self, model: Path) -> Generator[Event, None, tuple[str, str]]:
        from dld_tui.backends.tensorrt.outputs import engine_outputs

        if model not in self._engines:
            self._count += 1
            engine = self._folder / f"{self._count}.engine"
            yield Progress(0, stage="building")
            begin, build = time.monotonic(), {**self._build}
            if self._is_weak and model != self._request.model:
                build["int8"] = True  # needed for Q/DQ pairs, and refused without them
            yield from self._measured(**build, model=str(model), output=str(engine))
            self.pair_s = max(self.pair_s, time.monotonic() - begin)
            self._engines[model] = engine
        outputs = engine_outputs(
            self._library, self._engines[model], self.feeds, device=self._request.device,
            plugins=self._request.plugins,
        )  # fmt: skip
        with contextlib.closing(outputs):
            return self._judging.judged([*outputs])

    def ms(self, model: Path) -> float:
        engine = str(self._engines[model])
        return result_of(self._measured(engine=engine, model=str(model), **self._loading))

    def drop(self, model: Path) -> None:
        if (engine := self._engines.pop(model, None)) is not None:
            engine.unlink(missing_ok=True)

    def separate_pairs(self, base: Path, new: Path) -> TimePair:
        return _turns(self, base, new)  # each has a process of its own

    def close(self) -> None:
        for model in [*self._engines]:
            self.drop(model)


def _shapes(
    document: Document, build: BuildSettings, feeds: Sequence[Mapping[str, Any]]
) -> dict[str, JSON]:
    """Return the optimization profile that takes the inputs, unless the user gave one."""
    from dld_tui.core.tensorrt.profiles import profiles_from

    if any(getattr(build, name) for name in SHAPES):
        return {}
    ranges = [pair for profile in profiles_from(document, feeds) for pair in profile.items()]
    return {
        name: [
            f"{tensor}:{'x'.join(map(str, getattr(ranged, name.removesuffix('_shapes'))))}"
            for tensor, ranged in ranges
        ]
        for name in SHAPES
    }


def _shares(model: onnx.ModelProto) -> dict[str, float]:
    """Return the share of the multiply-accumulates of known nodes, by the names of their outputs.

    Args:
        model: With the types of all tensors; inference has named its nodes.
    """
    from dld_tui.core.model.cost.nodes import ModelCosts
    from dld_tui.core.model.document.document import Document

    with contextlib.closing(Document(model)) as document:
        costs = ModelCosts(document)
        counts = {
            name: costs.of(node).macs for node in document.main.nodes for name in node.outputs[:1]
        }
    known = {name: count for name, count in counts.items() if isinstance(count, int)}
    total = sum(known.values())
    return {name: count / total for name, count in known.items()} if total else {}


class _Searching:
    """One search."""

    def __init__(
        self,
        request: Request,
        document: Document,
        quantizer: Quantizer,
        runner: _Runner,
        folder: Path,
    ) -> None:
        from dld_tui.core.machine.environment import cpu_name, usable_threads

        self._request, self._document, self._quantizer = request, document, quantizer
        self._runner, self._folder = runner, folder
        # Times of another backend or another machine are not those of this one.
        machine: dict[str, JSON] = {
            "backend": runner.title, "cpu": cpu_name(), "threads": usable_threads(),
        }  # fmt: skip
        inputs = [request.inputs, request.calibration]
        conditions = search_conditions(deciding(request), document, inputs, **machine)
        self._journal: KnownOutcomes[Comparison] = KnownOutcomes.of(
            Comparison, "placement", conditions, again=request.again
        )
        self._begin = time.monotonic()
        self._models: dict[Placement, Path] = {}
        self._accuracy: dict[Placement, str] = {}

    def close(self) -> None:
        """Let other processes have the journal."""
        self._journal.close()

    def events(self, path: Path) -> Iterator[Event]:
        regions = yield from self._regions()
        self._patterns = regions.patterns
        trials = Trials(
            self._compared,
            lambda pair: " ".join(subset_key(floating(self._patterns, one)) for one in pair),
            self._journal,
            Limits(self._request.limit),
            self._described,
            Words("faster", "not faster"),
        )
        search = PlacementSearch(regions, lambda base, new: trials.ask((base, new)))
        yield from search.run()
        confirmed, notes = None, [*self._quantizer.notes]
        model = None
        if any(scheme is not scheme.FLOAT for scheme in search.best):
            model, confirmed = yield from self._confirmed(search.best)
        everything = search.everything
        result = PlacementResult(
            str(self._request.model), self._runner.title, decisions_of(search, regions),
            tuple(floating(self._patterns, search.best)),
            None if everything is None else everything.row,
            "" if everything is None or everything.row is not None else everything.problem,
            confirmed, self._accuracy.get(search.best, ""), self._runner.tolerance,
            None, search.is_whole, trials.made + trials.replayed, time.monotonic() - self._begin,
            len(self._runner.feeds), tuple(notes),
        )  # fmt: skip
        if result.is_faster and model is not None:
            remarks = yield from self._written(model, path)
            result = replace(result, output=str(path), notes=(*notes, *remarks))
        if search.is_whole:
            self._journal.forget()
        yield Finished(result)

    def _regions(self) -> Generator[Event, None, Regions]:
        from dld_tui.backends.accuracy.runs import inferred_with, types_of
        from dld_tui.core.tune.regions import regions_of

        plan = yield from self._quantizer.plan(comma_separated(*self._request.ops))
        asking = {rule.node for rule in plan.rules if rule.otherwise or rule.when_quantized}
        prepared = self._quantizer.prepared
        inferred = inferred_with(prepared, self._runner.feeds[0])
        value_types = {} if inferred is None else types_of(inferred)
        types = {name: known.text for name, known in value_types.items() if known is not None}
        by_output = {} if inferred is None else _shares(inferred)
        shares = {
            node.name: by_output[name]
            for node in prepared.main.nodes
            for name in node.outputs[:1]
            if name in by_output
        }
        candidates = [node for node in prepared.main.nodes if node.name in asking]
        regions = regions_of(prepared.main, candidates, types, shares)
        count = sum(len(pattern.regions) for pattern in regions.patterns)
        patterns = fmt.plural(len(regions.patterns), "pattern")
        yield Log(f"{fmt.plural(count, 'region')} of {patterns}")
        return regions

    def _described(self, pair: tuple[Placement, Placement]) -> str:
        changed = [
            f"{pattern.title} {fmt.plural(len(pattern.regions), 'region')} {new}"
            for pattern, base, new in zip(self._patterns, *pair, strict=True)
            if base is not new
        ]
        return fmt.listed(changed, 2)

    def _compared(self, pair: tuple[Placement, Placement]) -> Generator[Event, None, Comparison]:
        """Time a placement against another one: :data:`~dld_tui.core.tune.placement.Ask`."""
        begin = time.monotonic()
        base, new = pair
        for other in [one for one in self._models if one not in pair]:
            self._forget(other)
        try:
            paths = []
            for placement in (new, base):
                paths.append((yield from self._model(placement)))
                problem, accuracy = yield from self._runner.ready(paths[-1])
                self._accuracy[placement] = accuracy
                if problem:
                    return Comparison(Answer.INSUFFICIENT, problem)
            row = yield from self._row(_turns(self._runner, paths[1], paths[0]))
        except (CancelledError, SaveError):
            raise
        except DldError as error:
            return Comparison(Answer.UNKNOWN, error.message)
        if row is None:
            return Comparison(Answer.UNKNOWN, "there was no time for enough runs")
        answer = Answer.SUFFICIENT if row.is_faster else Answer.INSUFFICIENT
        return Comparison(answer, row.text, seconds=time.monotonic() - begin, row=row)

    def _forget(self, placement: Placement) -> None:
        path = self._models.pop(placement)
        self._runner.drop(path)
        if path != self._request.model:
            for file in (path, path.with_name(f"{path.name}.data")):
                file.unlink(missing_ok=True)

    def _row(
        self,
        time_pair: TimePair,
        within_percent: float = _WITHIN_PERCENT,
        limit_s: float = _TRIAL_S,
    ) -> Generator[Event, None, GateRow | None]:
        """Make pairs of runs and judge them; None where there are too few."""
        limit_s = max(limit_s, _ROOM * LEAST_RUNS * self._runner.pair_s)
        turns = in_turns(time_pair, within_percent=within_percent, limit_s=limit_s)
        while True:
            try:
                done, count = next(turns)
            except StopIteration as stop:
                pairs = stop.value.pairs
                break
            yield Progress(done, count, "pairs", "measuring")
        if len(pairs) < LEAST_RUNS:
            return None
        times = compared_times(pairs)
        return judge("end to end", times.base_ms, times.new_ms, TOLERANCE_PERCENT, times.ratios)

    def _model(self, placement: Placement) -> Generator[Event, None, Path]:
        """Return the file of a model with a placement."""
        from dld_tui.core.conversion.copies import write_copy

        kept = floating(self._patterns, placement)
        if placement in self._models:
            return self._models[placement]
        if all(scheme is scheme.FLOAT for scheme in placement):
            self._models[placement] = self._request.model
        else:
            quantized = yield from self._quantized(kept)
            path = self._folder / f"{subset_key(kept)}.onnx"
            write_copy(quantized.document, path)
            quantized.close()
            self._models[placement] = path
        return self._models[placement]

    def _quantized(self, kept: Sequence[str]) -> Generator[Event, None, QuantizedCopy]:
        """Quantize the regions; nodes in subgraphs and of constants stay as they are."""
        names = {name for one in self._patterns for region in one.regions for name in region}
        names.difference_update(kept)
        main = self._quantizer.prepared.main
        nodes = [
            node
            for scope in main.walk()
            for node in scope.nodes
            if scope is not main or node.name not in names
        ]
        return (
            yield from self._quantizer.quantize(
                self._request.method, comma_separated(*self._request.ops), nodes
            )
        )

    def _confirmed(
        self, placement: Placement
    ) -> Generator[Event, None, tuple[Path, GateRow | None]]:
        """Compare a placement with the original model in separate runs."""
        from dld_tui.core.compare.gate import LIMIT_S, WITHIN_PERCENT

        base, new = self._request.model, (yield from self._model(placement))
        problem, self._accuracy[placement] = yield from self._runner.ready(new)
        if problem:
            raise ActivityError(
                f"the result fails when it is tried again: {problem}",
                hint="The results of the model may vary from run to run",
            )
        yield from self._runner.ready(base)
        pairs = self._runner.separate_pairs(base, new)
        row = yield from self._row(pairs, WITHIN_PERCENT, LIMIT_S)
        if row is None:
            yield Log("the placement found was not confirmed: runs take too long", NoteKind.WARNING)
        return new, row

    def _written(self, model: Path, path: Path) -> Generator[Event, None, list[str]]:
        """Write the model that was measured, if it is sound; return notes."""
        from dld_tui.backends.conversion.soundness import write_sound
        from dld_tui.core.conversion.copies import open_model
        from dld_tui.core.conversion.result import ConversionResult

        remarks: list[str] = []
        with contextlib.closing(open_model(model)) as converted:
            writing = write_sound(
                self._request, self._document, converted, path, ConversionResult,
                is_for_runtime=not self._request.is_for_engines,
            )  # fmt: skip
            for event in writing:
                if isinstance(event, Finished):
                    remarks = [*event.result.notes, *event.result.remarks]
                else:
                    yield event
        return remarks
