"""Token generation with ONNX Runtime: prefill and decode, with the cache fed back by IO binding.

Past and present stay in the memory of the provider: the output of a step is the input of the next
one, or both share memory if the operators write in place.
"""

from __future__ import annotations

import gc
import math
import time
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

import numpy as np

from dld_tui.backends.onnxruntime.runtime import errors_of, load
from dld_tui.backends.onnxruntime.session import Session
from dld_tui.core.dataclass import dataclass
from dld_tui.core.llm.feeds import Decoder, StepFeeds
from dld_tui.core.model.inputs.roles import words_of
from dld_tui.core.model.inputs.shape_texts import Shape
from dld_tui.core.model.inputs.shapes import AnyArray, numpy_dtype

_ONNX_TYPES = {"bfloat16": 16, "float8e4m3fn": 17}
"""Of caches that NumPy has no type for."""
_AHEAD = 16
"""The number of tokens whose inputs are generated together."""
_READABLE = ("tensor(float)", "tensor(float16)", "tensor(double)")


@dataclass
class Timed:
    """One prompt and the tokens that followed it."""

    prefill_ms: float = 0.0
    first_token_ms: float = 0.0
    step_ms: list[float] = field(default_factory=list)
    decode_ms: float = 0.0
    tokens: list[AnyArray] = field(default_factory=list)
    """The chosen ones, each int64[batch], the first one of the prefill."""
    logits: AnyArray | None = None
    """Of the last step, of the last token: [batch, vocabulary]; None where they cannot be read."""
    kv_bytes: int = 0
    runs_ns: list[tuple[int, int]] = field(default_factory=list)
    """Start and end of each run of the model, in nanoseconds of the Unix epoch."""


class Generator:
    """Runs a decoder over prompts.

    Args:
        model: The file that errors name.
        session: The model.
        decoder: What its inputs and outputs are.
        shared: Past and present are one piece of memory, as long as the capacity of the inputs,
            for all caches that allow it.
    """

    def __init__(
        self, model: Path, session: Session, decoder: Decoder, *, shared: bool = False
    ) -> None:
        self._model, self._session, self._decoder, self._shared = model, session, decoder, shared
        outputs = {output.name: output.type for output in session.inference.get_outputs()}
        is_hidden = "hidden" in words_of(decoder.logits)  # without a head
        self.chooses = decoder.takes_ids and not is_hidden and outputs[decoder.logits] in _READABLE
        """Whether each token is the likeliest successor; else tokens are random."""

    def run(
        self, feeds: StepFeeds, batch: int, prompt: int, tokens: int, *, prefill: bool = True
    ) -> Iterator[Timed]:
        """Run a prompt and yield its times after each token, the same object again and again.

        Args:
            feeds: The inputs.
            batch: How many sequences.
            prompt: Tokens of the prompt of each.
            tokens: How many to make after the first one.
            prefill: Run over the prompt; else its cache is zeros, and the first token random. That
                of a context before the prompt is zeros, too.

        Raises:
            ActivityError: ONNX Runtime cannot run it.
            ValueError: A cache that does not grow is shorter than the prompt and these tokens.
        """
        length = feeds.context + prompt + tokens
        if self._decoder.chooses_capacity and length > feeds.capacity:
            raise ValueError(f"{length} tokens, but a capacity of {feeds.capacity}")
        timed, clock = Timed(), time.perf_counter_ns
        with errors_of(self._model, "run"):
            past = feeds.context + (0 if prefill else prompt)
            steps = self._steps(batch, past, max(feeds.capacity, length))
            chosen = None
            collecting = gc.isenabled()
            gc.disable()
            try:
                if prefill:
                    inputs = [feeds.prompt()]
                    if self._decoder.takes_one:
                        inputs = [feeds.step(number) for number in range(-prompt, 0)]
                    ready = [steps.ready(values) for values in inputs]
                    begin = clock()
                    for values in ready:
                        steps.feed(values)
                        start = clock()
                        _run(steps, timed)
                        timed.prefill_ms += (clock() - start) / 1e6
                    chosen = self._choose(steps, timed, feeds)
                    timed.first_token_ms = (clock() - begin) / 1e6
                    yield timed
                steps.begin_decode()
                for number in range(tokens):
                    # Masks and positions are known long before; only the token is not. To make
                    # them between two tokens would take the processor's cache from the model.
                    if number % _AHEAD == 0:
                        last = min(number + _AHEAD, tokens)
                        ahead = [feeds.step(later) for later in range(number, last)]
                        ready = [steps.ready(values) for values in ahead]
                    begin = clock()
                    if chosen is not None:
                        feeds.put_tokens(ahead[number % _AHEAD], chosen)
                    steps.feed(ready[number % _AHEAD])
                    _run(steps, timed)
                    chosen = self._choose(steps, timed, feeds)
                    took = (clock() - begin) / 1e6
                    timed.step_ms.append(took)
                    timed.decode_ms += took
                    yield timed
            finally:
                if collecting:
                    gc.enable()
            timed.kv_bytes = steps.cache_bytes() + self._crossed_bytes(feeds)

    def _crossed_bytes(self, feeds: StepFeeds) -> int:
        """Return the size of the keys and values that an encoder made."""
        names = {spec.name for spec in self._decoder.crossed}
        return sum(
            math.prod(one.shape) * numpy_dtype(one.dtype).itemsize
            for one in feeds.later.inputs
            if one.name in names
        )

    def _steps(self, batch: int, length: int, capacity: int) -> _ArraySteps | _BoundSteps:
        """Return the loop over runs, with an empty cache.

        Args:
            batch: How many sequences.
            length: Tokens of a cache that grows.
            capacity: Of one that does not, or that shares memory with its present.
        """
        decoder = self._decoder
        shared = decoder.shareable if self._shared else frozenset[str]()
        whole = shared | {pair.past for pair in decoder.pairs if pair.in_place}
        shapes = {
            name: decoder.cache_shape(name, batch, capacity if name in whole else length)
            for name in decoder.caches
        }
        has_arrays = all(spec.dtype not in _ONNX_TYPES for spec in decoder.caches.values())
        if has_arrays and not shared and self._session.device[0] == "cpu":
            return _ArraySteps(self._session, decoder, shapes)
        return _BoundSteps(self._session, decoder, shapes, shared)

    def _choose(
        self, steps: _ArraySteps | _BoundSteps, timed: Timed, feeds: StepFeeds
    ) -> AnyArray | None:
        """Return the likeliest next token of each sequence; None where they are random."""
        if not self.chooses:
            return None
        logits = steps.logits()
        if logits.ndim == 3:
            last = logits[:, -1]
        else:
            last = logits[-1:] if len(self._decoder.tokens.dims or ()) == 1 else logits
        timed.logits = last
        chosen: AnyArray = last.argmax(-1)
        if last.shape[-1] > feeds.vocabulary:
            chosen = chosen % max(1, feeds.vocabulary)
        timed.tokens.append(chosen)
        return chosen


class SequenceClient:
    """Makes sequences, one after the other, and keeps what tokens took.

    Args:
        generator: Of the session that all clients share.
        feeds: Of one sequence.
        prompt: Tokens of the prompt.
        tokens: How many to make, the first one among them.
    """

    def __init__(self, generator: Generator, feeds: StepFeeds, prompt: int, tokens: int) -> None:
        self._generator, self._feeds = generator, feeds
        self._prompt, self._tokens = prompt, tokens
        self.first_token_ms: list[float] = []
        """From the begin of a sequence."""
        self.token_ms: list[float] = []
        """Of each further token, the mean of a sequence."""

    def __call__(self, calls: int, durations: array[int], most: int, until: int) -> int:
        """Make sequences as :data:`dld_tui.core.report.latency.TimeCalls` says.

        Raises:
            ActivityError: ONNX Runtime cannot run it.
        """
        for slot in range(most):
            begin = time.perf_counter_ns()
            *_, timed = self._generator.run(self._feeds, 1, self._prompt, self._tokens - 1)
            end = time.perf_counter_ns()
            durations[slot] = end - begin
            self.first_token_ms.append(timed.first_token_ms)
            if timed.step_ms:
                self.token_ms.append(timed.decode_ms / len(timed.step_ms))
            if end >= until:
                return slot + 1
        return most


def _run(steps: _ArraySteps | _BoundSteps, timed: Timed) -> None:
    begin_ns = time.time_ns()
    steps.run()
    timed.runs_ns.append((begin_ns, time.time_ns()))


class _ArraySteps:
    """Runs of the processor: it takes and gives arrays without a copy, faster than by binding."""

    def __init__(self, session: Session, decoder: Decoder, shapes: Mapping[str, Shape]) -> None:
        self._session = session
        outputs = [output.name for output in session.inference.get_outputs()]
        self._presents = [
            (past, outputs.index(present)) for past, present in decoder.fed_back.items()
        ]
        self._logits_at = outputs.index(decoder.logits)
        self._cache: dict[str, Any] = {
            name: np.zeros(shape, numpy_dtype(decoder.caches[name].dtype))
            for name, shape in shapes.items()
        }
        self._fed: dict[str, Any] = {}
        self._made: list[AnyArray] = []

    def ready(self, inputs: Mapping[str, AnyArray]) -> dict[str, Any]:
        """Return inputs as :meth:`feed` takes them; tokens put into them later are seen."""
        return self._session.feed(inputs)

    def feed(self, inputs: dict[str, Any]) -> None:
        """Take the inputs of the next run, without the cache."""
        self._fed = inputs
        inputs.update(self._cache)

    def run(self) -> None:
        """Run, and keep the cache for the next time."""
        self._made = outputs = self._session.inference.run(None, self._fed)
        self._cache = {past: outputs[at] for past, at in self._presents}
        self._fed.clear()  # the former cache is given back while the processor still knows it

    def begin_decode(self) -> None:
        """Fix the shapes of all further runs, except for the past."""

    def logits(self) -> AnyArray:
        """Return the logits of the last run."""
        return self._made[self._logits_at]

    def cache_bytes(self) -> int:
        """Return the size of the cache."""
        return sum(value.nbytes for value in self._cache.values())


class _BoundSteps:
    """Runs with IO binding, by which the cache stays in the memory of the provider."""

    def __init__(
        self,
        session: Session,
        decoder: Decoder,
        shapes: Mapping[str, Shape],
        shared: frozenset[str],
    ) -> None:
        self._session, self._decoder, self._shared = session, decoder, shared
        self._shares_all = shared == {*decoder.fed_back}
        self._runtime, self._inner = load(), session.inference
        presents = {*decoder.fed_back.values()}
        names = [output.name for output in self._inner.get_outputs()]
        self._others = [name for name in names if name not in {*presents, decoder.logits}]
        self._cache = {name: self._zeros(name, shape) for name, shape in shapes.items()}
        self._binding: Any = None
        self._is_decoding = False
        self._read: AnyArray | None = None
        """The memory that logits are written into, where that can be read without a copy."""

    def _zeros(self, name: str, shape: Shape) -> Any:
        kind, memory = self._decoder.caches[name].dtype, self._session.device
        number = _ONNX_TYPES.get(kind)
        make = self._runtime.OrtValue
        if number is not None:
            return make.ortvalue_from_shape_and_type(shape, number, *memory)
        return make.ortvalue_from_numpy(np.zeros(shape, numpy_dtype(kind)), *memory)

    def ready(self, inputs: Mapping[str, AnyArray]) -> dict[str, Any]:
        """Return inputs as :meth:`feed` takes them; tokens put into them later are seen."""
        fed = self._session.feed(inputs)
        if self._session.device[0] != "cpu":
            return fed
        # They share the memory of the arrays; to make one takes as long as ten operators.
        make = self._runtime.OrtValue.ortvalue_from_numpy
        return {
            name: make(value) if isinstance(value, np.ndarray) else value
            for name, value in fed.items()
        }

    def feed(self, inputs: Mapping[str, Any]) -> None:
        """Take the inputs of the next run, without the cache."""
        if self._binding is None or not self._shares_all:
            self._binding = self._inner.io_binding()
            self._bind_cache(self._binding)
        else:
            # ONNX Runtime keeps the memory of the last run, whose shapes may be other ones.
            for name in (
                self._others if self._read is not None else (self._decoder.logits, *self._others)
            ):
                self._binding.bind_output(name, *self._session.device)
        for name, value in inputs.items():
            if isinstance(value, np.ndarray):
                self._binding.bind_cpu_input(name, value)
            else:
                self._binding.bind_ortvalue_input(name, value)

    def _bind_cache(self, binding: Any) -> None:
        memory = self._session.device
        for past, present in self._decoder.fed_back.items():
            binding.bind_ortvalue_input(past, self._cache[past])
            if past in self._shared:
                binding.bind_ortvalue_output(present, self._cache[past])
            else:
                binding.bind_output(present, *memory)
        binding.bind_output(self._decoder.logits, *memory)
        for name in self._others:
            binding.bind_output(name, *memory)

    def run(self) -> None:
        """Run, and keep the cache for the next time."""
        with self._session.denormals():
            self._inner.run_with_iobinding(self._binding)
        if not self._shares_all:
            values = self._binding.get_outputs()
            for at, past in enumerate(self._decoder.fed_back):
                if past not in self._shared:
                    self._cache[past] = values[at]

    def begin_decode(self) -> None:
        """Fix the shapes of all further runs, except for the past."""
        self._is_decoding = True

    def logits(self) -> AnyArray:
        """Return the logits of the last run."""
        if self._read is not None:
            return self._read
        read: AnyArray = self._binding.get_outputs()[len(self._decoder.fed_back)].numpy()
        if self._is_decoding and self._shares_all and self._session.device[0] == "cpu":
            self._read = np.empty_like(read)
            value = self._runtime.OrtValue.ortvalue_from_numpy(self._read, "cpu", 0)
            self._binding.bind_ortvalue_output(self._decoder.logits, value)
        return read

    def cache_bytes(self) -> int:
        """Return the size of the cache."""
        return sum(map(_bytes, self._cache.values()))


def _bytes(value: Any) -> int:
    shape, kind = value.shape(), str(value.data_type())
    width = {"float16": 2, "bfloat16": 2, "float": 4}.get(kind[7:-1], 1)
    size = width
    for dim in shape:
        size *= dim
    return size
