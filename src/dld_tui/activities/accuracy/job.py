"""Whether two models, or two ways to run one, give the same results.

Rows are in the order of the computation.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.core.accuracy.engine_settings import EngineSettings, is_engine, run_by
from dld_tui.core.accuracy.result import AccuracyReport, RunSide
from dld_tui.core.accuracy.tensor_errors import ToleranceSettings, parse_tolerances
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import ActivityError, UsageError
from dld_tui.core.events import Event, Finished, Progress
from dld_tui.core.machine import providers
from dld_tui.core.model.inputs.settings import InputSettings
from dld_tui.core.params import like, param
from dld_tui.core.tensorrt.settings import BuildSettings

if TYPE_CHECKING:
    from dld_tui.backends.accuracy.runs import Comparison, OutputSource
    from dld_tui.backends.onnxruntime.session_options import SessionSettings
    from dld_tui.backends.tensorrt.library import Library
    from dld_tui.core.files.recognise import EngineHeader
    from dld_tui.core.model.document.document import Document
    from dld_tui.core.model.inputs.feeds import Feeds


_LEVELS = ("disabled", "basic", "extended", "layout", "all")


@dataclass(frozen=True)
class ComparisonSettings:
    """What to compare with what, and how near it has to be."""

    model: Path = param(
        label="Model",
        help="The reference: an ONNX model or a TensorRT engine.",
        kind="file",
        positional=True,
        metavar="MODEL",
    )
    against: Path | None = param(
        None,
        label="Against",
        help=(
            "The model or TensorRT engine to compare with the reference. By default the same "
            "model with other settings."
        ),
        spellings=("--against",),
        kind="file",
        metavar="MODEL_B",
        empty="the same model",
    )
    tensors: bool = param(
        False,
        label="All tensors",
        help="Compare all tensors of the main graph, not only the outputs.",
        spellings=("--tensors",),
    )
    round: str = param(
        "none",
        label="Round to",
        help="Round inputs and outputs of the other model's nodes to this precision.",
        choices=("none", "fp16", "bf16"),
        spellings=("--round",),
    )
    backend: str = param(
        "onnxruntime",
        label="Backend",
        help="Backend of the reference; TensorRT builds an engine.",
        choices=("onnxruntime", "tensorrt"),
        words=(("ort", "onnxruntime"), ("trt", "tensorrt")),
        spellings=("--backend",),
    )
    against_backend: str = param(
        "same",
        label="Other backend",
        help="Backend of the other run; the TensorRT options apply to its engine.",
        choices=("same", "onnxruntime", "tensorrt"),
        words=(("ort", "onnxruntime"), ("trt", "tensorrt")),
        spellings=("--against-backend",),
    )
    provider: str = param(
        "CPU",
        label="Provider",
        help="ONNX Runtime execution provider of the reference.",
        spellings=("--provider",),
        metavar="NAME",
        means=providers.provider_note,
    )
    against_provider: str = param(
        "",
        label="Other provider",
        help="Execution provider of the other run; by default the same.",
        spellings=("--against-provider",),
        metavar="NAME",
        empty="the same",
        means=providers.provider_note,
    )
    provider_option: tuple[str, ...] = param(
        (),
        label="Provider options",
        help="KEY=VALUE option of the other provider, or NAME.KEY=VALUE of another. use_tf32=0 lets"
        " CUDA compute in float32.",
        spellings=("--provider-option", "--provider-options"),
        runs_code=True,
        metavar="KEY=VALUE",
        of_model=False,
    )
    optimization: str = param(
        "usual",
        label="Optimisation",
        help="Graph optimisation of the reference. usual means all, or disabled with --tensors.",
        choices=("usual", *_LEVELS),
        spellings=("--optimization",),
    )
    against_optimization: str = param(
        "same",
        label="Other optimisation",
        help="Graph optimisation of the other run.",
        choices=("same", *_LEVELS),
        spellings=("--against-optimization",),
    )
    tolerance: tuple[str, ...] = like(ToleranceSettings, "tolerance")
    atol: float | None = like(
        ToleranceSettings,
        "atol",
        None,
        help=(
            "Absolute tolerance. By default 1e-5, or 1e-2 if a run may use less precision than "
            "fp32: fp16, bf16, TF32, a prebuilt engine."
        ),
        empty="1e-5, or 1e-2 below fp32",
    )
    rtol: float | None = like(
        ToleranceSettings,
        "rtol",
        None,
        help="Relative tolerance; by default the same as --atol.",
        empty="same as absolute",
    )
    inputs: Path | None = like(InputSettings, "inputs")
    shape: tuple[str, ...] = like(InputSettings, "shape")
    seed: int = like(InputSettings, "seed")
    sets: int = param(
        1,
        label="Sets",
        help="Number of random input sets; the result shows the worst error of each tensor.",
        spellings=("--sets",),
        minimum=1,
        maximum=1000,
    )
    memory_budget: float = param(
        100.0,
        label="Memory budget",
        help="Memory for tensor values. With less, the comparison runs in several parts.",
        unit="MiB",
        spellings=("--memory-budget",),
        minimum=1,
    )


# The fields of the last base come first.
@dataclass(frozen=True)
class Request(EngineSettings, ComparisonSettings):
    """What to compare with what, how near it has to be, and how engines are built."""

    def require(self) -> None:
        """Refuse settings that do not go together, before anything is loaded.

        Raises:
            UsageError: Says which.
        """
        parse_tolerances(self.tolerance, self.atol, self.rtol)
        backends = run_by(self.model, self.against, self.backend, self.against_backend)
        engines = [path for path in (self.model, self.against) if is_engine(path)]
        if engines:
            self._require_for_engines(backends.count("tensorrt") > len(engines))
        elif "tensorrt" not in backends and self.engine_options:
            raise UsageError(
                f"{self.engine_options[0]} is for TensorRT",
                hint="Give --against-backend tensorrt, or an engine with --against",
            )
        mine, theirs = backends
        set_fields = (
            ("--provider", mine, self.provider != "CPU"),
            ("--optimization", mine, self.optimization != "usual"),
            ("--against-provider", theirs, self.against_provider != ""),
            ("--provider-option", theirs, self.provider_option != ()),
            ("--against-optimization", theirs, self.against_optimization != "same"),
        )
        for option, backend, is_given in set_fields:
            if is_given and backend == "tensorrt":
                raise UsageError(f"{option} is for ONNX Runtime, not for TensorRT")

    def _require_for_engines(self, builds: bool) -> None:
        if is_engine(self.model):
            where = str(self.model)
            if self.against is None:
                raise UsageError(
                    "there is nothing to compare the engine with",
                    where=where,
                    hint="Give its ONNX model, or another engine, with --against",
                )
            if self.tensors:
                raise UsageError("--tensors: an engine has outputs only", where=where)
        other = is_engine(self.against)
        if other and self.against_backend == "onnxruntime":
            raise UsageError("ONNX Runtime runs no engines of TensorRT", where=str(self.against))
        options = [] if builds else self.build_options
        options += ["--round"] if other and self.round != "none" else []
        if options:
            raise UsageError(f"{options[0]} cannot be used with a built engine")


_MIB = 1 << 20
_LOOSE = 1e-2
"""The default tolerances where one of the runs may have fewer digits than float32."""
_CPU_HALVES = (
    "ONNX Runtime on a CPU computes a float16 or bfloat16 model in float32 and does not round"
    " between nodes, so what overflows may come out finite: compare the float32 model with --round"
    " fp16, or run on CUDA"
)


def run(request: Request) -> Iterator[Event]:
    """Compare.

    Raises:
        UsageError: A setting does not match the models, there is nothing to compare, or an engine
            is not trusted.
        InputError: A model or an input cannot be read, or the models do not match.
        UnavailableError: ONNX Runtime, a provider, TensorRT or a GPU is missing.
        ActivityError: A model cannot be built or run.
    """
    request.require()
    plan = _Plan(request)
    with contextlib.ExitStack() as stack:
        if "tensorrt" in plan.backends:
            yield Progress(0, None, stage="Loading TensorRT")
            plan.load_library()
        yield Progress(0, None, stage="Opening the models")
        reference, other = plan.sides(stack)
        yield from _compare(request, reference, other)


def _compare(request: Request, reference: OutputSource, other: OutputSource) -> Iterator[Event]:
    from dld_tui.backends.accuracy.runs import Comparison, State, comparison_notes, grouped
    from dld_tui.backends.onnxruntime.limits import naming
    from dld_tui.core.accuracy.result import Result

    is_loose = request.round != "none" or reference.is_loose or other.is_loose
    loose = _LOOSE if is_loose else None
    tolerances = parse_tolerances(
        request.tolerance,
        loose if request.atol is None else request.atol,
        loose if request.rtol is None else request.rtol,
    )
    _limit(reference, other, shapes=request.shape)
    begin, state = time.perf_counter(), State()
    with (
        naming(reference.document),
        Comparison(reference, other, tolerances, request.tensors) as comparison,
    ):
        fed = _feeds(request, comparison)
        feeds, remarks = fed.sets, fed.remarks
        yield Progress(0, None, stage="Running both")
        try:
            for step in comparison.run(feeds, budget=int(request.memory_budget * _MIB)):
                if isinstance(step, State):
                    state = step
                    yield Progress(state.done, state.total, "tensors", "Comparing")
                else:
                    yield step
        except ActivityError as error:
            error.hint = error.hint or next(iter(remarks), None)  # shapes that were guessed
            raise
        remarks += _remarks(request, reference, other)
        remarks += comparison_notes(comparison, tensors=request.tensors)
        result = Result(tuple(state.rows), tuple(remarks))
        inputs = [spec.text for spec in comparison.inputs]
    yield Finished(
        AccuracyReport(
            reference=_run_side(reference, request.model, "none"),
            other=_run_side(other, request.against or request.model, request.round),
            inputs=inputs,
            sets=len(feeds),
            guess=None if fed.guess is None else fed.guess.recorded,
            tolerance=tolerances.every.text,
            tensors=[*result.rows],
            is_good=result.is_good,
            first=result.first.name if result.first is not None else None,
            unmatched=len(comparison.not_compared),
            not_compared={why: [*names] for why, names in grouped(comparison.not_compared).items()},
            kept_bytes=state.kept_bytes,
            seconds=time.perf_counter() - begin,
            remarks=[*result.remarks],
        )
    )


class _Plan:
    """What the two sides are."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self.backends = run_by(
            request.model, request.against, request.backend, request.against_backend
        )
        paths = (request.model, request.against)
        self._engines = [path for path in paths if path is not None and is_engine(path)]
        self._library: Library | None = None
        self._prebuilt: dict[Path, tuple[bytes, EngineHeader]] = {}

    def load_library(self) -> None:
        """Load TensorRT, and refuse unsupported settings."""
        from dld_tui.backends.tensorrt.cuda import select_device
        from dld_tui.backends.tensorrt.library import find_library
        from dld_tui.backends.tensorrt.outputs import require_gpu
        from dld_tui.backends.tensorrt.runtime import trusted_bytes
        from dld_tui.core.tensorrt.availability import refused

        request = self._request
        for engine in self._engines:
            self._prebuilt[engine] = trusted_bytes(engine, request.trust)
        select_device(request.device)  # before anything of CUDA
        self._library = find_library(request.library)
        require_gpu(self._library)
        if problems := refused(self._build_settings(), self._library.capabilities):
            raise UsageError(f"{self._library.capabilities.title}: {'; '.join(problems)}")

    def sides(self, stack: contextlib.ExitStack) -> tuple[OutputSource, OutputSource]:
        """Open the models, and return the two sides."""
        from dld_tui.core.conversion.retyping import in_lower_precision
        from dld_tui.core.llm.folder import open_document

        request = self._request
        mine, theirs = self._run_settings()
        if request.against is None and request.round == "none" and mine == theirs:
            raise UsageError(
                "there is nothing to compare with",
                hint="Give --against MODEL_B, --against-backend tensorrt, --against-provider NAME,"
                " --against-optimization LEVEL or --round fp16",
            )

        def opened(path: Path) -> Document:
            return stack.enter_context(contextlib.closing(open_document(path)))

        first = None if is_engine(request.model) else opened(request.model)
        reference = self._engine_side(request.model) if first is None else self._side(first, mine)
        if is_engine(request.against):
            return reference, self._engine_side(request.against)
        second = first if request.against is None else opened(request.against)
        assert second is not None  # an engine alone was refused
        folder = second.path.parent if second.path is not None else None
        if request.round != "none":
            copy = in_lower_precision(second, request.round, rounded=True).document
            second = stack.enter_context(contextlib.closing(copy))
        return reference, self._side(second, theirs, folder)

    def _run_settings(
        self,
    ) -> tuple[SessionSettings | BuildSettings, SessionSettings | BuildSettings]:
        """Return how each side is run."""
        request = self._request
        level, other_level = request.optimization, request.against_optimization
        if level == "usual":
            level = "disabled" if request.tensors else "all"
        mine, theirs = (backend == "tensorrt" for backend in self.backends)
        provider = request.against_provider or request.provider
        return (
            # Of two engines, the second one gets the requested precisions.
            self._build_settings(plain=theirs) if mine
            else _session(request.provider, level, provider, request.provider_option),
            self._build_settings() if theirs
            else _session(provider, level if other_level == "same" else other_level,
                          provider, request.provider_option),
        )  # fmt: skip

    def _build_settings(self, *, plain: bool = False) -> BuildSettings:
        return self._request.build_settings(self._request.model, Path("engine"), plain=plain)

    def _side(
        self, document: Document, way: SessionSettings | BuildSettings, folder: Path | None = None
    ) -> OutputSource:
        if self._library is not None and isinstance(way, BuildSettings):
            from dld_tui.backends.accuracy.runs import BuiltSide

            return BuiltSide(document, self._library, way)
        from dld_tui.backends.accuracy.runs import ModelSide
        from dld_tui.backends.onnxruntime.session_options import SessionSettings

        assert isinstance(way, SessionSettings)
        return ModelSide(document, way, folder)

    def _engine_side(self, path: Path | None) -> OutputSource:
        from dld_tui.backends.accuracy.runs import EngineSide

        assert self._library is not None
        assert path is not None
        request, (data, header) = self._request, self._prebuilt[path]
        return EngineSide(path, data, header, self._library, request.device, request.plugins)


def _limit(*sides: OutputSource, shapes: Sequence[str]) -> None:
    """Limit sessions, if both runs are on a CPU."""
    from dld_tui.backends.accuracy.runs import ModelSide
    from dld_tui.backends.onnxruntime.limits import limit_trials

    on_cpu = [side for side in sides if isinstance(side, ModelSide) and side.provider == "CPU"]
    if len(on_cpu) == len(sides):
        limit_trials(*(side.document for side in on_cpu), shapes=shapes)


def _session(provider: str, level: str, other: str, options: Sequence[str]) -> SessionSettings:
    """Return the settings of one run.

    Args:
        provider: That runs it.
        level: Of its optimisation.
        other: The provider that options without a name are for.
        options: Of providers, as ``--provider-option`` takes them.
    """
    from dld_tui.backends.onnxruntime.runtime import find_provider
    from dld_tui.backends.onnxruntime.session_options import SessionSettings, options_by_provider

    own = find_provider(provider)
    by_provider = options_by_provider(options, (find_provider(other), own))
    mine = {own: by_provider[own]} if own in by_provider else {}
    return SessionSettings((own,), mine, optimization_level=level, quiet=True)


def _feeds(request: Request, comparison: Comparison) -> Feeds:
    from dld_tui.core.model.inputs.feeds import input_feeds
    from dld_tui.core.model.inputs.guess import specs_for

    specs, document = comparison.inputs, comparison.document
    if document is not None:
        specs = specs_for(specs, document)
    seeds = range(request.seed, request.seed + request.sets)
    return input_feeds(specs, request.inputs, request.shape, seeds, document, comparison.trial_run)


def _remarks(request: Request, *sides: OutputSource) -> Iterator[str]:
    """Yield notes about how ONNX Runtime was requested to run."""
    from dld_tui.backends.accuracy.runs import ModelSide

    sessions = [side for side in sides if isinstance(side, ModelSide)]
    on_cpu = [side for side in sessions if side.provider == "CPU"]
    if request.round == "none" and any(side.is_loose for side in on_cpu):
        yield _CPU_HALVES
    in_tf32 = dict.fromkeys(side.provider for side in sessions if side.may_use_tf32)
    for provider in in_tf32:
        fix = f"; --provider-option {provider}.use_tf32=0 computes in float32"
        yield (
            f"{provider} computes convolutions and products of float32 in TF32, with 10 bits of"
            f" precision, on GPUs from Ampere on: the default tolerance is {_LOOSE:g}"
            f"{fix if provider == 'CUDA' else ''}"
        )
    if request.tensors and any(s.settings.optimization_level != "disabled" for s in sessions):
        yield ("an optimized graph computes inner tensors only for this comparison, where it would"
               " fuse their nodes otherwise")  # fmt: skip


def _run_side(side: OutputSource, path: Path, rounded: str) -> RunSide:
    return RunSide(**vars(side.run_by()), model=str(path), round=rounded)
