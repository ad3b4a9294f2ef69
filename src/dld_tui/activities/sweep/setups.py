"""What a sweep measures with one session: passes of a model, or prompts and tokens of a decoder."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Protocol

from dld_tui.activities.profile.llm import require_provider, shares_cache
from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import ActivityError
from dld_tui.core.report.latency import settle
from dld_tui.core.report.sweep import BATCH, CONTEXT, PROMPT

if TYPE_CHECKING:
    from dld_tui.backends.onnxruntime.generation import Timed
    from dld_tui.backends.onnxruntime.session import Session
    from dld_tui.backends.onnxruntime.session_options import SessionSettings
    from dld_tui.core.llm.folder import GenaiConfig
    from dld_tui.core.model.document.document import Document
    from dld_tui.core.model.inputs.guess import Guess
    from dld_tui.core.model.inputs.shapes import InputSpec

_CACHE_BYTES = 1 << 28
"""Bytes of inputs that stay between turns; those of other points are made anew for each."""
_WARM_UP_SHARE = 0.25
"""The part of a turn that a run may take which is not counted, as caches are cold."""


@dataclass(frozen=True)
class SliceFigures:
    """What one turn of a point measured."""

    ms: float
    """The median latency of a pass, or of a token of a decoder after the first."""
    first_ms: float | None = None
    """The median time to the first token; None but for decoders."""


class Runner(Protocol):
    """A point that was run once."""

    about: str
    """The inputs in words, for display."""

    def measure_slice(self, seconds: float, *, wait_for_idle_threads: bool) -> SliceFigures:
        """Run for so long, and at least once.

        Args:
            seconds: How long.
            wait_for_idle_threads: Wait until threads of another session sleep.

        Raises:
            ActivityError: It cannot be run.
        """


class Setup(Protocol):
    """A session that serves all sizes of a sweep."""

    def runner(self, sizes: Mapping[str, int]) -> Runner:
        """Run the model once with these sizes, by axis.

        Raises:
            ActivityError: It cannot be run.
            UsageError: The model does not take such sizes.
        """

    def peaks(self, runners: Sequence[Runner], limit_s: float) -> list[int]:
        """Return the bytes of activations at the peak of a pass of each point.

        Args:
            runners: Of this setup.
            limit_s: After so many seconds, the points that are left are left out.
        """


class Passes:
    """A model with guessed inputs.

    Args:
        model: Its file.
        settings: Of the session.
        document: The model with the inputs that are guessed.
        shape: Given shapes of inputs.
        seed: Of the inputs.

    Raises:
        ActivityError: The model cannot be loaded.
        UnavailableError: A provider is missing.
    """

    def __init__(
        self, model: Path, settings: SessionSettings, document: Document,
        shape: Sequence[str], seed: int,
    ) -> None:  # fmt: skip
        from dld_tui.backends.onnxruntime.session import Session
        from dld_tui.core.model.inputs.guess import specs_for

        self._model, self._settings, self._document = model, settings, document
        self._shape, self._seed = shape, seed
        began = time.monotonic()
        self._session: Session = Session(model, settings)
        self._opening_s = time.monotonic() - began
        self._specs = specs_for(self._session.inputs, document)
        self._cache_budget = _CACHE_BYTES

    def runner(self, sizes: Mapping[str, int]) -> Runner:
        """See :class:`Setup`."""
        from dld_tui.core.model.inputs.guess import first_that_runs

        session = self._session
        guess, _ = first_that_runs(
            _guesses(self._specs, self._document, self._shape, sizes), self._seed,
            lambda values: session.try_once(session.feed(dict(values))),
        )  # fmt: skip
        values: Mapping[str, Any] | None = guess.values(self._seed)
        size = sum(getattr(value, "nbytes", 0) for value in (values or {}).values())
        if size > self._cache_budget:
            values = None
        else:
            self._cache_budget -= size
        return _PassRunner(self._model, self._settings, session, guess, self._seed, values)

    def peaks(self, runners: Sequence[Runner], limit_s: float) -> list[int]:
        """See :class:`Setup`: of passes in a session of their own, known on the CPU alone."""
        from dld_tui.backends.onnxruntime.arena import peaks_of_runs

        end = time.monotonic() + limit_s
        if self._settings.providers != ("CPU",) or self._opening_s > limit_s:
            return []
        inputs = (
            runner.values for runner in runners
            if isinstance(runner, _PassRunner) and time.monotonic() < end
        )  # fmt: skip
        try:
            return peaks_of_runs(self._model, self._settings, inputs)
        except ActivityError:  # this version of ONNX Runtime does not record it
            return []


def _guesses(
    specs: Sequence[InputSpec], document: Document, shape: Sequence[str], sizes: Mapping[str, int]
) -> Iterator[Guess]:
    from dld_tui.core.model.inputs.guess import candidate_guesses
    from dld_tui.core.model.inputs.shapes import parse_shapes

    dims = {name: size for name, size in sizes.items() if name != BATCH}
    batch = sizes.get(BATCH)
    given = parse_shapes(shape, [spec.name for spec in specs])

    def guesses(batch: int | None) -> Iterator[Guess]:
        return candidate_guesses(specs, document, given, dims, batch=batch)

    if batch is not None:
        shapes, others = (next(guesses(n)).shapes for n in (batch, batch + 1))
        if shapes == others and all(shape[:1] != (batch,) for shape in shapes.values()):
            raise ActivityError("no input takes another batch: it is fixed in the model")
    return guesses(batch)


class _PassRunner:
    def __init__(
        self, model: Path, settings: SessionSettings, session: Session, guess: Guess, seed: int,
        values: Mapping[str, Any] | None,
    ) -> None:  # fmt: skip
        self._model, self._settings, self._session = model, settings, session
        self._guess, self._seed, self._kept = guess, seed, values
        self.about = guess.text

    @property
    def values(self) -> Mapping[str, Any]:
        """The inputs by name."""
        return self._guess.values(self._seed) if self._kept is None else self._kept

    def measure_slice(self, seconds: float, *, wait_for_idle_threads: bool) -> SliceFigures:
        from dld_tui.backends.onnxruntime.contest import Contestant

        contestant = Contestant(self._model, self._settings, [self.values])
        contestant.use(self._session, 0.0)
        return SliceFigures(contestant.time(seconds, wait_for_idle_threads=wait_for_idle_threads))


class Generation:
    """A decoder that takes a prompt and makes tokens, as ``dld profile llm`` runs it.

    Args:
        model: Its file.
        settings: Of the session.
        config: Of its folder, if any.
        document: The model.
        tokens: How many are made after the first one.
        seed: Of the prompts.

    Raises:
        ActivityError: The model cannot be loaded, or is no decoder.
        UnavailableError: A provider is missing.
    """

    def __init__(
        self, model: Path, settings: SessionSettings, config: GenaiConfig | None,
        document: Document, tokens: int, seed: int,
    ) -> None:  # fmt: skip
        from dld_tui.backends.onnxruntime.generation import Generator
        from dld_tui.backends.onnxruntime.session import Session
        from dld_tui.backends.onnxruntime.session_options import with_genai_options
        from dld_tui.core.llm.feeds import Decoder
        from dld_tui.core.model.inputs.guess import specs_for

        settings, _ = with_genai_options(settings, config.session if config is not None else {})
        session = Session(model, settings)
        self._decoder = Decoder(document, specs_for(session.inputs, document), config)
        require_provider(self._decoder, settings)
        self._on_cpu = settings.memory == "cpu"
        self._tokens, self._seed = tokens, seed
        shared = shares_cache(self._decoder, "auto")
        self._generator = Generator(model, session, self._decoder, shared=shared)

    def runner(self, sizes: Mapping[str, int]) -> Runner:
        """See :class:`Setup`."""
        from dld_tui.core.llm.feeds import StepFeeds

        batch, prompt, context = sizes.get(BATCH, 1), sizes[PROMPT], sizes.get(CONTEXT, 0)
        self._require_room(batch, context + prompt)
        capacity = context + prompt + self._tokens
        feeds = StepFeeds(self._decoder, batch, prompt, self._seed, capacity, context)

        def run() -> Timed:
            *_, timed = self._generator.run(feeds, batch, prompt, self._tokens)
            return timed

        run()
        past = f" after {context:,}" if context else ""
        return _GenerationRunner(
            run, f"prompt {batch}x{prompt}{past}, {fmt.plural(self._tokens, 'token')}"
        )

    def peaks(self, runners: Sequence[Runner], limit_s: float) -> list[int]:
        """See :class:`Setup`: not known of generation."""
        return []

    def _require_room(self, batch: int, prompt: int) -> None:
        """Refuse a context that the model cannot see, or the machine cannot hold.

        Raises:
            ActivityError: Says which.
        """
        from dld_tui.core.llm.budget import run_bytes
        from dld_tui.core.machine.environment import memory_bytes

        most, longest = self._decoder.context_length, prompt + self._tokens
        if most is not None and longest > most:
            raise ActivityError(f"{longest:,} tokens are more than the {most:,} that it can see")
        needed, memory = run_bytes(self._decoder, batch, prompt, self._tokens), memory_bytes()
        if self._on_cpu and memory is not None and needed > memory:
            raise ActivityError(
                f"it needs {fmt.size(needed)}, and this machine has {fmt.size(memory)}"
            )


class _GenerationRunner:
    def __init__(self, run: Any, about: str) -> None:
        self._run, self.about, self._took_s = run, about, 0.0

    def measure_slice(self, seconds: float, *, wait_for_idle_threads: bool) -> SliceFigures:
        if wait_for_idle_threads:
            settle()
        if self._took_s < _WARM_UP_SHARE * seconds:
            self._once()
        runs, end = [self._once()], time.monotonic() + seconds - self._took_s
        while time.monotonic() < end:
            runs.append(self._once())
        return SliceFigures(
            median(run.decode_ms / len(run.step_ms) for run in runs),
            median(run.first_token_ms for run in runs),
        )

    def _once(self) -> Timed:
        began = time.monotonic()
        timed: Timed = self._run()
        self._took_s = time.monotonic() - began
        return timed
