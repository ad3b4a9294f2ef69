"""Profile a model with ONNX Runtime: latency first, then a GPU's work, then the time of each layer.

A run that is stopped leaves a partial report when passes were measured, else nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.core import fmt
from dld_tui.core.codec import optional
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import UsageError
from dld_tui.core.events import Event, Finished, Log, Progress
from dld_tui.core.machine import providers
from dld_tui.core.model.inputs.settings import FOLDER_HELP, InputSettings
from dld_tui.core.params import FIRST_PAGE, like, param, rerun_command, to_json
from dld_tui.core.process.paths import report_path
from dld_tui.core.report.latency import LatencyFigures
from dld_tui.core.tensorrt.run_settings import MeasureSettings
from dld_tui.core.text import comma_separated
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.backends.onnxruntime.profiling import ProfileJob
    from dld_tui.core.model.document.document import Document
    from dld_tui.core.report.latency import StopCondition

_LARGE = 1 << 30
"""Bytes of weights above which the needed memory is reported."""


def _passes(values: Mapping[str, JSON]) -> str:
    return "at least 10" if values.get("duration") else "10 to 10,000, as many as take 3 s"


def _seconds(values: Mapping[str, JSON]) -> str:
    return "as long as the passes take" if values.get("iterations") else "3"


def _cores(value: JSON, values: Mapping[str, JSON], here: bool) -> str:
    from dld_tui.core.machine.environment import usable_threads

    if value != 0:
        return ""
    return fmt.plural(usable_threads(), "thread") + ", all here" if here else "one a core there"


def _at_once(value: JSON, values: Mapping[str, JSON], here: bool) -> str:
    return "one" if value == 0 else ""


def _mode(value: JSON, values: Mapping[str, JSON], here: bool) -> str:
    at_once = values.get("inter_threads")
    is_parallel = isinstance(at_once, int) and at_once > 1
    return ("parallel" if is_parallel else "sequential") if value == "auto" else ""


if TYPE_CHECKING:
    from dld_tui.backends.onnxruntime.session_options import SessionSettings


@dataclass(frozen=True)
class Request:
    """What to run and how long."""

    model: Path = param(
        label="Model",
        help="The ONNX model to profile.",
        kind="file",
        positional=True,
        metavar="MODEL",
    )
    output: Path | None = param(
        None,
        label="Report",
        help=(
            "Write the report here. By default NAME.dldprof in the current folder, numbered if "
            "that file exists."
        ),
        spellings=("--output", "-o"),
        kind="output",
        suffix=".dldprof",
        default_path=lambda request: report_path(None, request.model),
        metavar="REPORT",
    )
    provider: str = param(
        "CPU",
        label="Provider",
        help=(
            "Execution provider, such as CPU, CUDA or TensorRT. With several, separated by "
            "commas, each node runs on the first that supports it, else on the CPU."
        ),
        spellings=("--provider", "--providers"),
        metavar="NAME",
        means=providers.provider_note,
    )
    shape: tuple[str, ...] = like(InputSettings, "shape")
    dim: tuple[str, ...] = param(
        (),
        label="Dynamic dimensions",
        help=(
            "Size of a dynamic dimension by name, such as N=1. ONNX Runtime optimises for this "
            "size."
        ),
        spellings=("--dim", "--dims"),
        metavar="NAME=SIZE",
        empty="from the input shapes",
    )
    inputs: Path | None = like(
        InputSettings,
        "inputs",
        help=f"{FOLDER_HELP} Passes cycle through several sets. By default inputs are generated.",
    )
    iterations: int | None = param(
        None,
        label="Iterations",
        help=(
            "Number of timed passes; with --duration, the minimum. By default as many as fit in "
            "3 seconds, between 10 and 10,000."
        ),
        minimum=1,
        maximum=10_000_000,
        spellings=("--iterations",),
        metavar="N",
        empty=_passes,
    )
    duration: float | None = param(
        None,
        label="Duration",
        help="Measure for at least this time.",
        unit="s",
        minimum=0,
        spellings=("--duration",),
        metavar="S",
        empty=_seconds,
    )
    warm_up: int = param(
        10,
        label="Warm-up passes",
        help=(
            "Passes before the timed ones, at least one. A count, as in Polygraphy; trtexec's "
            "--warmUp is a time."
        ),
        minimum=0,
        spellings=("--warm-up",),
        metavar="N",
    )
    warm_up_ms: float = like(
        MeasureSettings,
        "warm_up_ms",
        0.0,
        help="Warm up for at least this time.",
        page=FIRST_PAGE,
    )
    threads: int = param(
        0,
        label="Threads",
        help="Intra-op threads; 0 means one per core.",
        minimum=0,
        maximum=4096,
        spellings=("--threads", "--intra-threads"),
        means=_cores,
        metavar="N",
        page="Session",
    )
    inter_threads: int = param(
        0,
        label="Inter-op threads",
        help="Inter-op threads. Above 1, independent nodes run in parallel.",
        minimum=0,
        maximum=4096,
        spellings=("--inter-threads",),
        means=_at_once,
        metavar="N",
        page="Session",
    )
    execution_mode: str = param(
        "auto",
        label="Execution mode",
        help=(
            "Run nodes one by one or in parallel. auto means parallel if --inter-threads is "
            "above 1."
        ),
        choices=("auto", "sequential", "parallel"),
        spellings=("--execution-mode",),
        means=_mode,
        page="Session",
    )
    optimization_level: str = param(
        "all",
        label="Optimisation level",
        help="ONNX Runtime's graph optimisation level.",
        choices=("disabled", "basic", "extended", "layout", "all"),
        spellings=("--optimization-level",),
        page="Session",
    )
    device_id: int = param(
        0,
        label="Device",
        help="Device number, for providers with several devices.",
        minimum=0,
        spellings=("--device-id", "--device"),
        metavar="N",
        page="Session",
    )
    provider_option: tuple[str, ...] = param(
        (),
        label="Provider options",
        help="KEY=VALUE option of the first provider, or NAME.KEY=VALUE of another provider.",
        spellings=("--provider-option", "--provider-options"),
        runs_code=True,  # some providers load what an option names
        metavar="KEY=VALUE",
        of_model=False,
        page="Session",
    )
    session_config: tuple[str, ...] = param(
        (),
        label="Session config",
        help=(
            "Session configuration entry of ONNX Runtime. Example: "
            "session.disable_cpu_ep_fallback=1 forbids the fallback to the CPU."
        ),
        spellings=("--session-config",),
        runs_code=True,
        metavar="KEY=VALUE",
        of_model=False,
        page="Session",
    )
    custom_op_library: tuple[str, ...] = param(
        (),
        label="Operator libraries",
        help="Library with custom operators. Loading it runs its code.",
        spellings=("--custom-op-library", "--plugins"),
        runs_code=True,
        metavar="FILE",
        page="Session",
    )
    ep_library: tuple[str, ...] = param(
        (),
        label="Provider libraries",
        help=(
            "Library with plugin execution providers; select one with --provider. dld doctor "
            "--ep-library lists its devices. Loading it runs its code."
        ),
        spellings=("--ep-library",),
        runs_code=True,
        metavar="FILE",
        page="Session",
    )
    optimized_model: Path | None = param(
        None,
        label="Optimised model",
        help="Save the model as ONNX Runtime optimised it.",
        spellings=("--optimized-model",),
        kind="output",
        metavar="FILE",
        page="Session",
    )
    layer_passes: int | None = like(
        MeasureSettings,
        "layer_passes",
        help=(
            "Passes of the separate run that measures layers; 0 skips it. By default as many as "
            "timed passes, at most 50, fewer for large models."
        ),
        page="Measuring",
    )
    seed: int = like(InputSettings, "seed", page="Measuring")
    percentile: str = like(MeasureSettings, "percentile", page="Measuring")
    io_binding: bool = param(
        False,
        label="IO binding",
        help=(
            "Keep inputs and outputs on the device. The latency then excludes copies, which are "
            "timed separately."
        ),
        spellings=("--io-binding", "--noDataTransfers"),
        page="GPU",
    )
    gpu_timeline: bool = like(
        MeasureSettings,
        "gpu_timeline",
        help="Record GPU kernels and copies by stream, with the node that launched them (CUDA).",
    )
    gpu_counters: str = like(MeasureSettings, "gpu_counters")
    counter_interval: float = like(MeasureSettings, "counter_interval")
    counter_passes: int | None = like(
        MeasureSettings,
        "counter_passes",
        help=(
            "Maximum number of layer passes with counters; 0 for none. By default enough for "
            "100,000 samples per counter."
        ),
        empty="enough for 100,000 samples",
    )
    lock_clocks: bool = like(MeasureSettings, "lock_clocks")

    def require(self) -> None:
        """Refuse settings that exclude each other, before anything is loaded.

        Raises:
            UsageError: Says which.
        """
        if self.inputs is not None and self.shape:
            raise UsageError("--shape cannot be used with --inputs: the inputs fix the shapes")

    def session_settings(self) -> SessionSettings:
        """Return the settings of the session.

        Raises:
            UsageError: An option is malformed.
            UnavailableError: A provider or ONNX Runtime is not installed.
        """
        from dld_tui.backends.onnxruntime import runtime, session_options
        from dld_tui.backends.onnxruntime.runtime import find_provider

        libraries = tuple(Path(name) for name in self.ep_library)
        runtime.register(libraries)
        names = comma_separated(self.provider) or ["CPU"]
        providers = tuple(find_provider(name) for name in names)
        return session_options.SessionSettings(
            providers=providers,
            provider_options=session_options.options_by_provider(self.provider_option, providers),
            device_id=self.device_id,
            threads=self.threads,
            inter_threads=self.inter_threads,
            execution_mode=self.execution_mode,
            optimization_level=self.optimization_level,
            dimensions=session_options.parse_sizes(self.dim),
            custom_operators=tuple(Path(name) for name in self.custom_op_library),
            provider_libraries=libraries,
            config=session_options.parse_pairs(self.session_config, "--session-config"),
        )


_AUTO_PASSES, _AUTO_SECONDS, _AUTO_MOST = 10, 3.0, 10_000
_PACKAGES = ("dld-tui", "onnxruntime", "onnxruntime-gpu", "onnx", "numpy")


@dataclass(frozen=True)
class Result:
    """The result of a measurement."""

    report: Path
    summary: LatencyFigures | None
    """None where no pass was timed."""
    optimized_model: Path | None = optional()


def run(request: Request) -> Iterator[Event]:
    """Measure and write the report.

    Raises:
        UsageError: The settings do not fit each other or the model.
        InputError: The model or an input cannot be read.
        UnavailableError: ONNX Runtime or the provider is missing.
        ActivityError: ONNX Runtime cannot run the model.
    """
    from dld_tui.backends.onnxruntime.limits import limit_trials, naming
    from dld_tui.backends.onnxruntime.profiling import ProfilingRun
    from dld_tui.core.llm.folder import open_document
    from dld_tui.core.machine.environment import environment
    from dld_tui.core.report.latency import latency_summary, parse_percentiles

    percentiles = parse_percentiles(request.percentile)
    request.require()
    plan = plan_of(request)
    machine = environment(_PACKAGES)  # before the run makes the machine busy
    yield Progress(0, None, stage="Reading the model")
    with contextlib.closing(open_document(request.model)) as document:
        if plan.session.memory == "cpu":
            yield from require_memory(document, machine)
        if plan.session.providers == ("CPU",):
            limit_trials(document, shapes=request.shape)
        profiling = ProfilingRun(plan, document, machine)
        with naming(document):
            yield from profiling.events()
    summary = latency_summary(profiling.latencies, percentiles)
    yield Finished(Result(profiling.report_path, summary, profiling.optimized_path))


def require_memory(document: Document, machine: Mapping[str, JSON]) -> Iterator[Event]:
    """Say what the weights of a large model take, and refuse what this machine cannot hold.

    Raises:
        UsageError: They are more than its memory.
    """
    from dld_tui.core.model.document.summary import summarise

    needed = summarise(document).weight_bytes
    memory = machine.get("memory_bytes")
    if isinstance(memory, int) and needed > memory:
        raise UsageError(
            f"the weights alone take {fmt.size(needed)}, and this machine has {fmt.size(memory)}",
            hint="Run it on a larger target: --target NAME",
        )
    if needed >= _LARGE:
        yield Log(f"the weights alone take {fmt.size(needed)} of memory")


def plan_of(request: Request) -> ProfileJob:
    """Return what to run, with the settings of the session.

    Raises:
        UsageError: Settings do not fit each other.
        UnavailableError: A provider or ONNX Runtime is not installed.
    """
    from dld_tui.backends.machine.capture import GpuPlan
    from dld_tui.backends.machine.jetson import Jetson
    from dld_tui.backends.onnxruntime.profiling import ProfileJob

    session = request.session_settings()
    settings = to_json(request)
    del settings["model"], settings["output"]  # known from the report itself
    gpu = GpuPlan(
        device=request.device_id,
        timeline=request.gpu_timeline,
        counters=request.gpu_counters,
        interval_us=request.counter_interval,
        counter_passes=request.counter_passes,
        lock_clocks=request.lock_clocks,
    )
    if request.lock_clocks and not session.uses_cuda and Jetson().board is None:
        raise UsageError("--lock-clocks needs a Jetson, or a provider that runs on an NVIDIA GPU")
    if session.cuda_graph and not request.io_binding:
        raise UsageError(
            "a CUDA graph needs inputs and outputs that stay where they are",
            hint="Add --io-binding, or leave out the provider option of the graph",
        )
    return ProfileJob(
        model=request.model,
        report=report_path(request.output, request.model).absolute(),
        session=session,
        shapes=request.shape,
        inputs=request.inputs,
        seed=request.seed,
        warm_up_passes=request.warm_up,
        warm_up_seconds=request.warm_up_ms / 1000,
        timed=_stop_condition(request.iterations, request.duration),
        layer_passes=request.layer_passes,
        recorded_settings=settings,
        command=rerun_command(("dld", "profile", "onnxruntime"), request),
        gpu=gpu if session.uses_cuda else None,
        lock_clocks=request.lock_clocks,
        io_binding=request.io_binding,
        optimized_model=request.optimized_model,
    )


def _stop_condition(passes: int | None, seconds: float | None) -> StopCondition:
    from dld_tui.core.report.latency import StopCondition

    if seconds is not None:
        return StopCondition(passes or _AUTO_PASSES, seconds)
    if passes is not None:
        return StopCondition(passes)
    return StopCondition(_AUTO_PASSES, _AUTO_SECONDS, _AUTO_MOST)
