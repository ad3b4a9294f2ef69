"""Writing tokens with ONNX Runtime: prefill and decode, the cache fed back by IO binding.

Past and present stay in the memory of the provider: what a step puts out is bound as the input of
the next one, or both are one piece of memory where the operators write into it.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dld_tui.backends.onnxruntime.session import Session, errors_of, load
from dld_tui.core.inputs.shapes import AnyArray, numpy_dtype
from dld_tui.core.llm.feeds import Decoder, StepFeeds

_ONNX_TYPES = {"bfloat16": 16, "float8e4m3fn": 17}
"""Of caches that NumPy has no type for."""
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


class Generator:
    """Runs a decoder over prompts.

    Args:
        model: The file that errors name.
        session: The model.
        decoder: What its inputs and outputs are.
        shared: Past and present are one piece of memory, as long as the longest context.
    """

    def __init__(
        self, model: Path, session: Session, decoder: Decoder, *, shared: bool = False
    ) -> None:
        self._model, self._session, self._decoder, self._shared = model, session, decoder, shared
        self._runtime, self._inner = load(), session.inference
        outputs = {one.name: one.type for one in self._inner.get_outputs()}
        self.chooses = decoder.takes_ids and outputs[decoder.logits] in _READABLE
        """Whether each token is the likeliest one after the last; else tokens are random."""
        presents = {pair.present for pair in decoder.pairs}
        self._others = [one for one in outputs if one not in {*presents, decoder.logits}]

    def run(
        self, feeds: StepFeeds, batch: int, prompt: int, tokens: int, *, prefill: bool = True
    ) -> Iterator[Timed]:
        """Run a prompt and yield its times after each token, the same object again and again.

        Args:
            feeds: The inputs.
            batch: How many sequences.
            prompt: Tokens of the prompt of each.
            tokens: How many to make after the first one.
            prefill: Run over the prompt; else its cache is zeros, and the first token random.

        Raises:
            ActivityError: ONNX Runtime cannot run it.
        """
        timed, clock = Timed(), time.perf_counter_ns
        with errors_of(self._model, "run"):
            length = prompt + tokens if self._shared else 0 if prefill else prompt
            cache = self._empty(batch, length)
            chosen = None
            collecting = gc.isenabled()
            gc.disable()
            try:
                if prefill:
                    begin = clock()
                    binding = self._bound(feeds.prompt(), cache)
                    start = clock()
                    self._inner.run_with_iobinding(binding)
                    timed.prefill_ms = (clock() - start) / 1e6
                    chosen = self._choose(self._logits(binding), timed, feeds)
                    timed.first_token_ms = (clock() - begin) / 1e6
                    cache = self._kept(binding, cache)
                    yield timed
                binding, logits = None, None
                for number in range(tokens):
                    # Masks and positions are known long before; only the token is not.
                    values = feeds.step(number)
                    begin = clock()
                    values = feeds.with_tokens(values, chosen)
                    if binding is not None and self._shared:
                        self._bind_inputs(binding, values)
                    else:
                        binding = self._bound(values, cache)
                    if logits is not None:
                        binding.bind_ortvalue_output(self._decoder.logits, logits[0])
                    self._inner.run_with_iobinding(binding)
                    cache = self._kept(binding, cache)
                    if self.chooses:
                        read = self._logits(binding) if logits is None else logits[1]
                        chosen = self._choose(read, timed, feeds)
                        if logits is None and read is not None:
                            logits = self._kept_logits(read)
                    took = (clock() - begin) / 1e6
                    timed.step_ms.append(took)
                    timed.decode_ms += took
                    yield timed
            finally:
                if collecting:
                    gc.enable()
            timed.kv_bytes = sum(_bytes(one) for one in cache.values())

    def _empty(self, batch: int, length: int) -> dict[str, Any]:
        memory = self._session.device
        made = {}
        for name, spec in self._decoder.caches.items():
            shape = self._decoder.cache_shape(name, batch, length)
            number = _ONNX_TYPES.get(spec.dtype)
            if number is not None:
                made[name] = self._runtime.OrtValue.ortvalue_from_shape_and_type(
                    shape, number, *memory
                )
            else:
                zeros = np.zeros(shape, numpy_dtype(spec.dtype))
                made[name] = self._runtime.OrtValue.ortvalue_from_numpy(zeros, *memory)
        return made

    def _bound(self, inputs: Mapping[str, AnyArray], cache: Mapping[str, Any]) -> Any:
        memory = self._session.device
        binding = self._inner.io_binding()
        self._bind_inputs(binding, inputs)
        for pair in self._decoder.pairs:
            binding.bind_ortvalue_input(pair.past, cache[pair.past])
            if self._shared:
                binding.bind_ortvalue_output(pair.present, cache[pair.past])
            else:
                binding.bind_output(pair.present, *memory)
        binding.bind_output(self._decoder.logits, *memory)
        for name in self._others:
            binding.bind_output(name, *memory)
        return binding

    def _bind_inputs(self, binding: Any, inputs: Mapping[str, AnyArray]) -> None:
        for name, value in self._session.feed(inputs).items():
            if isinstance(value, np.ndarray):
                binding.bind_cpu_input(name, value)
            else:
                binding.bind_ortvalue_input(name, value)

    def _kept(self, binding: Any, cache: dict[str, Any]) -> dict[str, Any]:
        if self._shared:
            return cache
        values = binding.get_outputs()
        return {pair.past: values[at] for at, pair in enumerate(self._decoder.pairs)}

    def _logits(self, binding: Any) -> AnyArray | None:
        """Return the logits of a run; None where they cannot be read."""
        if not self.chooses:
            return None
        read: AnyArray = binding.get_outputs()[len(self._decoder.pairs)].numpy()
        return read

    def _kept_logits(self, like: AnyArray) -> tuple[Any, AnyArray] | None:
        """Return memory for the logits of all further steps, and what reads it.

        Only the processor's memory is read without a copy.
        """
        if self._session.device[0] != "cpu":
            return None
        values = np.empty_like(like)
        return self._runtime.OrtValue.ortvalue_from_numpy(values, "cpu", 0), values

    def _choose(self, logits: AnyArray | None, timed: Timed, feeds: StepFeeds) -> AnyArray | None:
        """Return the likeliest next token of each sequence; None where they are random."""
        if logits is None:
            return None
        last = logits[:, -1, :] if logits.ndim == 3 else logits
        timed.logits = last
        chosen: AnyArray = np.argmax(last, axis=-1).astype(np.int64) % max(1, feeds.vocabulary)
        timed.tokens.append(chosen)
        return chosen


def _bytes(value: Any) -> int:
    shape, kind = value.shape(), str(value.data_type())
    width = {"float16": 2, "bfloat16": 2, "float": 4}.get(kind[7:-1], 1)
    size = width
    for dim in shape:
        size *= dim
    return size
