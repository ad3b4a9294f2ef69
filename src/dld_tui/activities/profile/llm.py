"""Measure a decoder: time to first token and tokens per second, over prompts and batches.

Each phase has a report with its layers: that of decode has the figures, that of prefill is beside
it.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from collections.abc import Generator as EventsOf
from dataclasses import replace
from math import inf
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from dld_tui.activities.profile.onnxruntime import Request as Profile
from dld_tui.core.codec import encode, optional
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import ActivityError, UsageError
from dld_tui.core.events import Event, Finished, Log, Metric, Progress
from dld_tui.core.files.temporary import temporary_folder
from dld_tui.core.model.inputs.roles import writes_in_place
from dld_tui.core.model.inputs.settings import InputSettings
from dld_tui.core.notes import NoteKind
from dld_tui.core.params import like, param, to_json, whole_numbers
from dld_tui.core.report.generation import GENERATION, SHARED_BUFFER, GenerationFigures
from dld_tui.core.statistics import FEW_FOR_P99, median_ranks, percentile
from dld_tui.core.text import comma_separated, visible
from dld_tui.core.types import PlainValues

if TYPE_CHECKING:
    from dld_tui.backends.machine.capture import GpuCapture
    from dld_tui.backends.machine.meters import Energy, RunEnergy
    from dld_tui.backends.onnxruntime.generation import Generator, Timed
    from dld_tui.backends.onnxruntime.session_options import SessionSettings
    from dld_tui.core.llm.feeds import Decoder, StepFeeds
    from dld_tui.core.llm.folder import GenaiConfig
    from dld_tui.core.model.document.document import Document
    from dld_tui.core.report.store import ReportWriter


def _default_report(request: Request) -> Path:
    from dld_tui.core.llm.folder import model_in
    from dld_tui.core.process.paths import report_path

    return report_path(None, model_in(request.model))


@dataclass(frozen=True)
class Request:
    """What to run: prompts, tokens, batches."""

    model: Path = param(
        label="Model",
        help="A decoder model, or a folder with genai_config.json or a single decoder.",
        kind="file",
        positional=True,
        metavar="MODEL",
    )
    output: Path | None = like(
        Profile, "output", beside=("{stem}.prefill.dldprof",), default_path=_default_report
    )
    prompt: str = param(
        "128",
        label="Prompts",
        help="Prompt lengths in tokens, separated by commas.",
        spellings=("--prompt", "--prompts"),
        metavar="N,…",
    )
    decode: int = param(
        64,
        label="Tokens",
        help="Number of tokens to generate after the first; end-of-text tokens are ignored.",
        minimum=1,
        maximum=1_000_000,
        spellings=("--decode", "--tokens"),
        metavar="N",
    )
    batch: str = param(
        "1",
        label="Batches",
        help="Batch sizes, separated by commas.",
        spellings=("--batch", "--batches"),
        metavar="N,…",
        of_model=True,
    )
    iterations: int = param(
        5,
        label="Repeats",
        help=(
            "Timed repetitions of each prompt, after the warm-up, which ends when times are steady;"
            " the report shows medians."
        ),
        minimum=1,
        maximum=10_000,
        spellings=("--iterations",),
        metavar="N",
    )
    provider: str = like(
        Profile,
        "provider",
        help=(
            "Execution provider, such as CPU or CUDA. With several, separated by commas, each "
            "node runs on the first that supports it."
        ),
    )
    shared_buffer: str = param(
        "auto",
        label="Shared KV cache",
        help=(
            "Let past and present KV cache share one buffer, as long as prompt and tokens. auto "
            "follows the model and genai_config.json; max allocates max_length of "
            "genai_config.json, or the longest context."
        ),
        choices=("auto", "on", "off", "max"),
        spellings=("--shared-buffer",),
    )
    layer_passes: int = param(
        10,
        label="Layer passes",
        help="Passes per phase that measure layers; 0 skips it.",
        minimum=0,
        maximum=1000,
        spellings=("--layer-passes",),
        metavar="N",
    )
    threads: int = like(Profile, "threads")
    device_id: int = like(Profile, "device_id")
    provider_option: tuple[str, ...] = like(Profile, "provider_option")
    session_config: tuple[str, ...] = like(Profile, "session_config")
    seed: int = like(InputSettings, "seed", page="Session")


_PACKAGES = ("dld-tui", "onnxruntime", "onnxruntime-gpu", "onnx", "numpy")
_MOST = 64
"""Prompts times batches."""
_WARM_UP_STEPS = 8
"""Tokens of a warm-up without a GPU, where a new length of the context costs nothing."""
_STEADY = 0.05
"""The part by which times of two repetitions may differ that are steady."""
_MOST_WARM_UPS, _WARM_UP_S = 12, 15.0
"""Repetitions of a warm-up at most, and after how many seconds it ends with the second one."""
_NEW_SHAPE_PART, _NEW_SHAPE_MS = 0.5, 0.2
"""What a token of a new length takes more, of a usual one and at least, to be told."""
_CACHES = 4
"""How often a cache is in memory at most: past and present, of both sessions."""
_ONLY_ON_GPU = ("Attention", "DecoderMaskedSelfAttention")
_NO_COUNTER = (
    "The energy of a token is not known: no counter of this machine can be read (RAPL of the"
    " processor is for root only, mostly)."
)


@dataclass(frozen=True)
class Result:
    """The result of a measurement."""

    report: Path
    """With the layers of decode."""
    figures: list[GenerationFigures]
    prefill_report: Path | None = optional()
    """With the layers of prefill."""


def run(request: Request) -> Iterator[Event]:
    """Measure and write the reports.

    Raises:
        UsageError: The settings do not fit the model.
        InputError: The model or its configuration cannot be read.
        UnavailableError: ONNX Runtime or the provider is missing.
        ActivityError: It is no decoder, or ONNX Runtime cannot run it.
    """
    from dld_tui.backends.onnxruntime.limits import limit_trials, naming
    from dld_tui.core.llm.folder import find_decoder, open_document
    from dld_tui.core.machine.environment import environment

    prompts = whole_numbers(request.prompt, "--prompt") or [128]
    batches = whole_numbers(request.batch, "--batch") or [1]
    if len(prompts) * len(batches) > _MOST:
        raise UsageError(f"more than {_MOST} pairs of prompt and batch size")
    machine = environment(_PACKAGES)  # before the run makes the machine busy
    yield Progress(0, None, stage="Reading the model")
    model, config = find_decoder(request.model)
    with (
        contextlib.closing(open_document(model)) as document,
        contextlib.closing(_Run(request, model, document, machine)) as measured,
    ):
        if measured.is_on_cpu:
            limit_trials(document)
        with naming(document):
            yield from measured.events(prompts, batches, config)


class _Run:
    def __init__(
        self, request: Request, model: Path, document: Document, machine: PlainValues
    ) -> None:
        self._request, self._model, self._document, self._facts = request, model, document, machine
        self._figures: list[GenerationFigures] = []
        self._gpu: GpuCapture | None = None

    def close(self) -> None:
        """Give the GPU back."""
        if self._gpu is not None:
            self._gpu.close()

    @property
    def is_on_cpu(self) -> bool:
        """Whether nothing but the CPU provider is used."""
        return self._settings().providers == ("CPU",)

    def events(self, prompts: list[int], batches: list[int], config: object) -> Iterator[Event]:
        from dld_tui.backends.machine.board_watch import BoardWatch
        from dld_tui.backends.onnxruntime.generation import Generator
        from dld_tui.backends.onnxruntime.runtime import version
        from dld_tui.backends.onnxruntime.session import Session
        from dld_tui.backends.onnxruntime.session_options import with_genai_options
        from dld_tui.core.llm.feeds import Decoder, StepFeeds
        from dld_tui.core.llm.folder import CONFIG, GenaiConfig
        from dld_tui.core.machine.environment import CpuWatch, peak_memory
        from dld_tui.core.model.document.identity import identify
        from dld_tui.core.model.inputs.guess import specs_for
        from dld_tui.core.model.inputs.guessed_input import INPUTS
        from dld_tui.core.process.paths import report_path
        from dld_tui.core.report.store import ReportWriter

        request = self._request
        identity = encode((yield from identify(self._model, self._document)))
        known = config if isinstance(config, GenaiConfig) else None
        settings, taken = with_genai_options(self._settings(), known.session if known else {})
        if taken:
            options = ", ".join(
                f"{visible(name)} {visible(str(option))}" for name, option in taken.items()
            )
            yield Log(f"session options from {CONFIG}: {options}")
        if known is not None:
            yield from self._check_configuration(known)
        gpu = self._gpu = _gpu_capture(settings)
        if gpu is not None:
            gpu.open()
            self._facts |= gpu.environment
        yield Progress(0, None, stage="Loading the model")
        begin = time.perf_counter()
        session = Session(self._model, settings)
        load_ms = 1000 * (time.perf_counter() - begin)
        specs = specs_for(session.inputs, self._document)
        decoder = Decoder(self._document, specs, known)
        self._check_lengths(decoder, prompts)
        require_provider(decoder, settings)
        yield from self._check_memory(decoder, max(batches), max(prompts), settings)
        shared = shares_cache(decoder, request.shared_buffer)
        generator = Generator(self._model, session, decoder, shared=shared)
        if not generator.chooses:
            yield Log("the tokens are random: the logits that give the next token cannot be read")
        path = report_path(request.output, self._model).absolute()
        board, watch = BoardWatch(gpu=True), CpuWatch()
        self._facts.update(board.start())
        recorded = {k: v for k, v in to_json(request).items() if k not in ("model", "output")}
        recorded["shared_buffer_used"] = shared
        if taken:
            recorded["session_options_used"] = dict(taken)
        about = {
            "network": self._model.name, "backend": f"ONNX Runtime {version()}",
            "execution_provider": settings.providers[0],
            "device": str(self._facts["cpu"]) if settings.memory == "cpu"
            else str(self._facts.get("gpu", f"{settings.providers[0]} device {request.device_id}")),
        }  # fmt: skip
        kept: StepFeeds | None = None
        cells = [(batch, prompt) for batch in batches for prompt in prompts]
        try:
            for at, (batch, prompt) in enumerate(cells):
                feeds = StepFeeds(
                    decoder, batch, prompt, request.seed, self._capacity(decoder, prompt)
                )
                stage = f"Batch {batch}, prompt {prompt:,}"
                yield Progress(at, len(cells), "pairs", stage)
                warm = yield from self._warmed_up(generator, feeds, (batch, prompt), stage)
                runs: list[Timed] = []
                self._joules = _Joules(None if gpu is None else gpu.energy_mj)
                begin_ns = time.time_ns()
                yield from self._repeat(
                    generator, feeds, (batch, prompt), request.iterations, stage, runs, self._joules
                )
                memory = peak_memory(), None if gpu is None else gpu.memory()
                if gpu is not None:
                    yield from gpu.metrics()
                figures = _figures(
                    batch, prompt, runs, memory, self._joules, warm, on_gpu=gpu is not None
                )
                self._figures.append(figures)
                yield Metric("token", figures.token_ms, "ms")
                if not figures.is_steady:
                    yield Log(f"{stage}: {figures.warm_up_text}")
                span = (begin_ns, time.time_ns()), figures.token_ms / 1000
                board.measured(*span)
                own = self._joules.of_steps(figures.tokens * request.iterations)
                if own is None and (by_board := board.energy()) is not None:
                    per_token = by_board.energy_per_inference_j / batch
                    self._figures[-1] = replace(figures, energy_per_token_j=per_token)
                if kept is None:  # what is told of the run is that of the first pair
                    kept, kept_span, used = feeds, span, own
                    each = [repeat.decode_ms / len(repeat.step_ms) for repeat in runs]
                    prefills = [repeat.prefill_ms for repeat in runs]
            assert kept is not None
            board.measured(*kept_span)
            feeds, sizes = kept, cells[0]
            by_sharing: GenerationFigures | None = None
            if request.shared_buffer == "auto" and not shared and _may_share(decoder):
                sharing = Generator(self._model, session, decoder, shared=True)
                by_sharing = yield from self._shared_figures(sharing, feeds, sizes)
                del sharing
            del session, generator
            with contextlib.ExitStack() as stack:
                writer = ReportWriter.create(
                    path, **about, model=identity, settings=recorded, environment=self._facts,
                )  # fmt: skip
                stack.callback(board.close)
                writer.add_environment(watch.environment())
                writer.add_latencies(each)
                writer.set_property("load_ms", load_ms)
                writer.set_property(GENERATION, self._figures)
                if by_sharing is not None:
                    writer.set_property(SHARED_BUFFER, by_sharing)
                if gpu is not None:
                    gpu.write_notes(writer)
                used_bytes = self._figures[-1].gpu_memory_bytes
                if used_bytes is not None:
                    writer.set_property("gpu_memory_bytes", used_bytes)
                for figures in self._figures:
                    kind = NoteKind.INFO if figures.is_steady else NoteKind.WARNING
                    where = f"Batch {figures.batch}, prompt {figures.prompt:,}"
                    writer.note(f"{where}: {figures.warm_up_text}.", kind)
                inputs = [guess.recorded for guess in feeds.later.inputs]
                writer.set_property(INPUTS, inputs)
                peak = peak_memory()
                if peak is not None:
                    writer.set_property("peak_memory_bytes", peak)
                writer.note(
                    f"Latencies are what a token took in each repetition, layers those of one"
                    f" token, with a batch of {batches[0]} after a prompt of {prompts[0]:,}."
                )
                prefill = path.with_name(f"{path.stem}.prefill.dldprof")
                wants_layers = request.layer_passes > 0
                if wants_layers:
                    writer.note(f"The layers of prefill are in {prefill.name}.")
                    other = ReportWriter.create(
                        prefill, **about, model=identity, settings=recorded,
                        environment=self._facts,
                    )  # fmt: skip
                    yield from self._layers(
                        decoder, settings, shared, feeds, sizes, (other, writer)
                    )
                    if not decoder.takes_one:  # else a pass is one token of the prompt
                        other.add_latencies(prefills)
                    other.set_property(INPUTS, [guess.recorded for guess in feeds.first.inputs])
                    other.finish()
                for name, value in (encode(used) or {}).items():
                    writer.set_property(name, value)
                board.write(writer, None)  # a board with sensors of its own says it again
                if used is None and board.energy() is None:
                    writer.note(_NO_COUNTER)
                written_path = writer.finish()
        finally:
            board.close()
        yield Finished(Result(written_path, self._figures, prefill if wants_layers else None))

    def _settings(self) -> SessionSettings:
        from dld_tui.backends.onnxruntime import runtime, session_options

        request = self._request
        names = comma_separated(request.provider) or ["CPU"]
        providers = tuple(map(runtime.find_provider, names))
        return session_options.SessionSettings(
            providers=providers,
            provider_options=session_options.options_by_provider(
                request.provider_option, providers
            ),
            device_id=request.device_id,
            threads=request.threads,
            config=session_options.parse_pairs(request.session_config, "--session-config"),
        )

    def _check_configuration(self, config: GenaiConfig) -> Iterator[Event]:
        """Report errors of the configuration: other programs would run something else."""
        from dld_tui.core.llm.agreement import disagreements

        mismatches = disagreements(self._document, config)
        if mismatches:
            more = f", and {len(mismatches) - 1} more" if len(mismatches) > 1 else ""
            yield Log(
                f"{mismatches[0].message}{more}: what the model itself says is measured;"
                " `dld check` of the folder names all",
                NoteKind.WARNING,
            )

    def _check_lengths(self, decoder: Decoder, prompts: list[int]) -> None:
        most, longest = decoder.context_length, max(prompts) + self._request.decode
        if most is not None and longest > most:
            raise UsageError(
                f"a prompt of {max(prompts):,} and {self._request.decode:,} tokens are more than"
                f" the {most:,} that the model can see"
            )

    def _check_memory(
        self, decoder: Decoder, batch: int, prompt: int, settings: SessionSettings
    ) -> Iterator[Event]:
        """Say what the largest run needs, and refuse what this machine cannot hold."""
        from dld_tui.backends.onnxruntime.limits import limit_trials
        from dld_tui.core import fmt
        from dld_tui.core.llm.budget import run_bytes

        capacity = self._capacity(decoder, prompt)
        needed = run_bytes(decoder, batch, prompt, capacity - prompt)
        yield Log(f"weights, cache and logits take at least {fmt.size(needed)}")
        if self.is_on_cpu:
            limit_trials(self._document, more=_CACHES * needed)
        memory = self._facts.get("memory_bytes")
        if settings.memory == "cpu" and isinstance(memory, int) and needed > memory:
            raise UsageError(
                f"a batch of {batch:,} with a prompt of {prompt:,} needs {fmt.size(needed)}, and"
                f" this machine has {fmt.size(memory)}",
                hint="Use a smaller batch or prompt",
            )

    def _capacity(self, decoder: Decoder, prompt: int) -> int:
        """Return the length of a cache that is allocated once.

        Raises:
            UsageError: The longest is wanted, and neither model nor configuration says it.
        """
        needed = prompt + self._request.decode
        if self._request.shared_buffer != "max":
            return needed
        config = decoder.config
        longest = (config.max_length if config is not None else None) or decoder.context_length
        if longest is None:
            raise UsageError(
                "--shared-buffer max needs max_length or context_length in genai_config.json"
            )
        return max(longest, needed)

    def _repeat(
        self,
        generator: Generator,
        feeds: StepFeeds,
        sizes: tuple[int, int],
        count: int,
        stage: str,
        into: list[Timed],
        joules: _Joules | None = None,
        tokens: int | None = None,
    ) -> Iterator[Event]:
        """Run a prompt and its tokens so many times, and keep the times."""
        tokens = self._request.decode if tokens is None else tokens
        for number in range(count):
            timed = None
            reported_at = time.monotonic()
            for timed in generator.run(feeds, *sizes, tokens):
                if joules is not None and not timed.step_ms:
                    joules.begin()
                if time.monotonic() - reported_at > 0.5:
                    reported_at = time.monotonic()
                    done = len(timed.step_ms) + number * tokens
                    yield Progress(done, count * tokens, "tokens", stage)
            if timed is not None:
                if joules is not None:
                    joules.end()
                into.append(timed)

    def _warmed_up(
        self, generator: Generator, feeds: StepFeeds, sizes: tuple[int, int], stage: str
    ) -> EventsOf[Event, None, list[Timed]]:
        """Repeat until times are steady, and return the repetitions.

        On a GPU all tokens are made: the first time that a kernel meets a length of the context, it
        may have to be planned.
        """
        tokens = self._request.decode
        if self._gpu is None:
            tokens = min(tokens, _WARM_UP_STEPS)
        runs: list[Timed] = []
        end = time.monotonic() + _WARM_UP_S
        while len(runs) < _MOST_WARM_UPS and (len(runs) < 2 or time.monotonic() < end):
            yield from self._repeat(
                generator, feeds, sizes, 1, f"{stage}: warming up", runs, tokens=tokens
            )
            if _change(runs) <= _STEADY:
                break
        return runs

    def _shared_figures(
        self, generator: Generator, feeds: StepFeeds, sizes: tuple[int, int]
    ) -> EventsOf[Event, None, GenerationFigures | None]:
        """Measure the same with past and present in one buffer; None where that cannot be run."""
        stage = "Trying a shared KV cache"
        runs: list[Timed] = []
        try:
            warm = yield from self._warmed_up(generator, feeds, sizes, stage)
            count = self._request.iterations
            yield from self._repeat(generator, feeds, sizes, count, stage, runs)
        except ActivityError as error:  # nobody asked for it
            yield Log(f"a shared KV cache cannot be run: {error.message}")
            return None
        on_gpu = self._gpu is not None
        return _figures(*sizes, runs, (None, None), _Joules(None), warm, on_gpu=on_gpu)

    def _layers(
        self,
        decoder: Decoder,
        settings: SessionSettings,
        shared: bool,
        feeds: StepFeeds,
        sizes: tuple[int, int],
        writers: tuple[ReportWriter, ReportWriter],
    ) -> Iterator[Event]:
        """Measure the layers of prefill and of decode, each in separate sessions.

        As for other models: on a GPU, kernels are recorded at true speed, and those of a profiled
        session say which layers launched them. Both sessions have met each length of the context
        before, so that what a new one costs is in no layer.
        """
        from dld_tui.backends.onnxruntime.generation import Generator
        from dld_tui.backends.onnxruntime.processor_peaks import machine_peaks
        from dld_tui.backends.onnxruntime.profiling import (
            OPTIMIZED,
            LayerProfile,
            profiled_session,
            write_layers,
        )
        from dld_tui.backends.onnxruntime.session import Session
        from dld_tui.core.report.gpu_kernels import TimedPass

        peaks = machine_peaks(self._facts, settings)
        for writer, phase in zip(writers, ("prefill", "decode"), strict=True):
            stage = f"Measuring the layers of {phase}"
            yield Progress(0, None, stage=stage)
            with contextlib.ExitStack() as stack:
                gpu, zero_ns = _gpu_capture(settings), None
                spans: list[tuple[int, int]] = []
                if gpu is not None:
                    stack.callback(gpu.close)
                    session = Session(self._model, settings)
                    generator = Generator(self._model, session, decoder, shared=shared)
                    yield from self._passes(generator, feeds, sizes, phase, stage, [])
                    if gpu.start_trace():
                        zero_ns = time.time_ns()
                        yield from self._passes(generator, feeds, sizes, phase, stage, spans)
                        gpu.stop_trace()
                    del session, generator
                folder = stack.enter_context(temporary_folder("layers"))
                session = profiled_session(self._model, settings, folder)
                generator = Generator(self._model, session, decoder, shared=shared)
                warm: list[tuple[int, int]] = []
                if gpu is not None:
                    yield from self._passes(generator, feeds, sizes, phase, stage, warm)
                    gpu.start_trace(calls=True)
                last: list[tuple[int, int]] = []
                yield from self._passes(generator, feeds, sizes, phase, stage, last)
                if gpu is not None:
                    gpu.stop_trace()
                origin_ns = session.profiling_start_ns()
                recorded = LayerProfile(
                    session.end_profiling(), folder / OPTIMIZED, origin_ns, len(warm)
                )
                del session, generator
                if gpu is not None and zero_ns is not None:
                    first = len(warm) + len(last)
                    passes = [TimedPass(at, *span) for at, span in enumerate(spans[1:], first)]
                    gpu.write_passes(writer, zero_ns, passes, counters=False)
                write_layers(
                    writer, recorded, self._document, settings, peaks, gpu=gpu, zero_ns=zero_ns
                )
                if gpu is not None:
                    gpu.write_notes(writer)

    def _passes(
        self,
        generator: Generator,
        feeds: StepFeeds,
        sizes: tuple[int, int],
        phase: str,
        stage: str,
        spans: list[tuple[int, int]],
    ) -> Iterator[Event]:
        """Run the passes of a phase and one more, the first, which is slower; keep their times."""
        passes = self._request.layer_passes
        is_prefill = phase == "prefill"
        tokens = 0 if is_prefill else min(passes, self._request.decode - 1) + 1
        for _ in range(1 + passes if is_prefill else 1):
            timed = None
            for after in generator.run(feeds, *sizes, tokens, prefill=is_prefill):
                timed = after
                yield Progress(0, None, stage=stage)
            if timed is not None:
                spans += timed.runs_ns


def shares_cache(decoder: Decoder, wanted: str) -> bool:
    """Return whether past and present share memory.

    Args:
        decoder: The model.
        wanted: ``auto``, ``on``, ``off`` or ``max``.

    Raises:
        UsageError: That is asked for and cannot be.
    """
    if wanted in ("on", "max") and not decoder.shareable:
        raise UsageError(
            f"--shared-buffer {wanted} needs a cache that only one operator reads, which writes"
            " into it, such as GroupQueryAttention"
        )
    if crash := _crash_of_sharing(decoder):
        if wanted in ("on", "max"):
            raise UsageError(crash, hint="Use --shared-buffer off, or a newer ONNX Runtime")
        return False
    config = decoder.config
    says = decoder.wants_sharing or (config is not None and config.shared_buffer)
    return wanted in ("on", "max") or (wanted == "auto" and says and bool(decoder.shareable))


def require_provider(decoder: Decoder, settings: SessionSettings) -> None:
    """Refuse what ONNX Runtime runs on a GPU only.

    Raises:
        ActivityError: Its CPU kernel has no shared cache.
    """
    for pair in decoder.pairs if settings.memory == "cpu" else ():
        for node in decoder.document.main.consumers(pair.past):
            if writes_in_place(node) and node.op_type in _ONLY_ON_GPU:
                raise ActivityError(
                    f"{visible(node.op_type)} {visible(node.name)} writes into a shared cache,"
                    " which ONNX Runtime does on a GPU only",
                    hint="Use --provider CUDA",
                )


def _gpu_capture(settings: SessionSettings) -> GpuCapture | None:
    """Return what records the GPU that computes, if there is one."""
    from dld_tui.backends.machine.capture import GpuCapture, GpuPlan

    return GpuCapture(GpuPlan(device=settings.device_id)) if settings.uses_cuda else None


def _change(runs: list[Timed]) -> float:
    """Return by what part the times of the last two repetitions differ; infinite of one."""
    if len(runs) < 2:
        return inf
    pairs = [
        [run.first_token_ms for run in runs[-2:]],
        [median(run.step_ms) for run in runs[-2:] if run.step_ms],
    ]
    return max(abs(one / other - 1) for one, other in (pair for pair in pairs if len(pair) == 2))


def _new_shape_ms(runs: list[Timed]) -> float | None:
    """Return what a token takes more where its length of the context is new; None if nothing.

    Args:
        runs: The same prompt and tokens, the first time first.
    """
    first, last = runs[0].step_ms[1:], runs[-1].step_ms[1:]  # the first step has costs of its own
    if len(runs) < 2 or len(last) < 2:
        return None
    more = sorted(one - other for one, other in zip(first, last, strict=True))
    least = more[median_ranks(len(more))[0]]  # of the interval of the median
    return median(more) if least > max(_NEW_SHAPE_PART * median(last), _NEW_SHAPE_MS) else None


class _Joules:
    """The energy of the steps of several runs, without their prompts.

    Args:
        gpu_mj: Reads the millijoules of the GPU, if one computes.
    """

    def __init__(self, gpu_mj: Callable[[], int | None] | None) -> None:
        self._gpu_mj = gpu_mj
        self._found: list[tuple[Energy | None, float]] = []
        self._watch: RunEnergy | None = None

    def begin(self) -> None:
        """A prompt was read."""
        from dld_tui.backends.machine.meters import RunEnergy

        self._watch, self._at = RunEnergy(self._gpu_mj), time.monotonic()

    def end(self) -> None:
        """The last token after it was written."""
        assert self._watch is not None
        self._found.append((self._watch.read(1), time.monotonic() - self._at))

    def of_steps(self, count: int) -> Energy | None:
        """Return the energy of one of this many steps of all runs; None if unknown."""
        known = [(energy, seconds) for energy, seconds in self._found if energy is not None]
        if len(known) < len(self._found) or not known or not count:
            return None
        joules = sum(energy.energy_per_inference_j for energy, _ in known)
        watts = joules / sum(seconds for _, seconds in known)
        return replace(known[0][0], energy_per_inference_j=joules / count, board_power_w=watts)


def _figures(
    batch: int,
    prompt: int,
    runs: list[Timed],
    memory: tuple[int | None, int | None],
    joules: _Joules,
    warm: list[Timed],
    *,
    on_gpu: bool,
) -> GenerationFigures:
    all_steps = sorted(ms for repeat in runs for ms in repeat.step_ms)
    used = joules.of_steps(len(all_steps))
    steps = zip(*(repeat.step_ms for repeat in runs), strict=True)
    change = _change(warm)
    return GenerationFigures(
        batch,
        prompt,
        len(runs[0].step_ms),
        median(repeat.prefill_ms for repeat in runs),
        median(repeat.first_token_ms for repeat in runs),
        median(repeat.decode_ms for repeat in runs),
        tuple(round(median(step), 6) for step in steps),
        runs[0].kv_bytes,
        memory[0],
        None if used is None else used.energy_per_inference_j / batch,
        gpu_memory_bytes=memory[1],
        warm_ups=len(warm),
        warm_up_change=change if change < inf else None,
        is_steady=change <= _STEADY,
        new_shape_ms=_new_shape_ms(warm) if on_gpu else None,
        repeats_ms=tuple(round(repeat.decode_ms, 6) for repeat in runs),
        first_tokens_ms=tuple(round(repeat.first_token_ms, 6) for repeat in runs),
        longest_step_ms=all_steps[-1],
        step_p99_ms=percentile(all_steps, 99) if len(all_steps) >= FEW_FOR_P99 else None,
    )


def _may_share(decoder: Decoder) -> bool:
    return bool(decoder.shareable) and not _crash_of_sharing(decoder)


_BEAM_WIDTH = 8
"""The place of that input of DecoderMaskedMultiHeadAttention."""
_SHARES_WITHOUT_BEAMS = (1, 31)
"""ONNX Runtime 1.23 crashes there, 1.31 does not; those between were not tried."""


def _crash_of_sharing(decoder: Decoder) -> str:
    """Return why ONNX Runtime would crash with a shared cache; empty if it would not."""
    from dld_tui.backends.onnxruntime import runtime

    if tuple(map(int, runtime.version().split(".")[:2])) >= _SHARES_WITHOUT_BEAMS:
        return ""
    for pair in decoder.pairs:
        for node in decoder.document.main.consumers(pair.past):
            has_beams = any(node.inputs[_BEAM_WIDTH : _BEAM_WIDTH + 1])
            if node.op_type == "DecoderMaskedMultiHeadAttention" and not has_beams:
                return (
                    f"ONNX Runtime {runtime.version()} crashes if past and present of"
                    f" {visible(node.op_type)} {visible(node.name)} share memory"
                )
    return ""
