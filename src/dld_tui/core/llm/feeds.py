"""The inputs of a decoder at any length of its cache: new tokens, mask, positions, lengths.

Two guesses show how each input depends on the past: sizes and values that grow with it grow by the
same amount with each token.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from dld_tui.core.errors import ActivityError, UsageError
from dld_tui.core.llm.folder import GenaiConfig
from dld_tui.core.model.inputs.fills import random_inputs
from dld_tui.core.model.inputs.guess import Guess, InputGuess, guess_inputs
from dld_tui.core.model.inputs.roles import (
    CACHE_TYPES,
    CACHE_WORDS,
    TOKEN_WORDS,
    CachePair,
    StatePair,
    cache_pairs,
    is_token_ids,
    state_pairs,
    words_of,
    writes_in_place,
)
from dld_tui.core.model.inputs.shape_texts import Shape
from dld_tui.core.model.inputs.shapes import AnyArray, InputSpec, is_fixed

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document

_GROUPED = "GroupQueryAttention"
"""It writes into the memory of the past if the present has the same."""
_ONE_TOKEN = ("DecoderMaskedMultiHeadAttention", "DecoderMaskedSelfAttention")
_MARGIN = 64


class Decoder:
    """A model with tokens and a cache as inputs, and logits and a longer cache as outputs.

    Args:
        document: The model.
        specs: Its inputs.
        config: Of its folder, if any.

    Raises:
        ActivityError: It has no cache, or no logits.
    """

    def __init__(
        self, document: Document, specs: Sequence[InputSpec], config: GenaiConfig | None = None
    ) -> None:
        self.document, self.specs, self.config = document, specs, config
        by_name = {spec.name: spec for spec in specs}
        self.pairs: list[CachePair] = [p for p in cache_pairs(document) if p.past in by_name]
        self.states: list[StatePair] = [p for p in state_pairs(document) if p.past in by_name]
        """What convolutions and recurrences carry from one run to the next."""
        if not self.pairs and not self.states:
            raise ActivityError(
                "it has no cache of past keys and values, so that it cannot be measured as a"
                " decoder",
                hint="Measure it with: dld profile onnxruntime",
            )
        self.caches = {past: by_name[past] for past in self.fed_back}
        """All inputs that outputs are fed back into."""
        self.tokens = self._tokens()
        """The input of tokens or of their embeddings."""
        self.logits = self._logits()
        """The output that the next token is chosen from."""
        if any(pair.in_place for pair in self.pairs) and not self._tells_past():
            raise ActivityError(
                "its cache does not grow, and no input says how much of it is filled"
            )

    def _tokens(self) -> InputSpec:
        named = self.config.inputs if self.config is not None else {}
        for field in ("input_ids", "inputs_embeds"):
            for spec in self.specs:
                if spec.name == named.get(field):
                    return spec
        ranked = [spec for spec in self.specs if spec.name not in self.caches]
        rows = [
            spec for spec in ranked
            if len(spec.dims or ()) in (2, 3) or (len(spec.dims or ()) == 1 and is_token_ids(spec))
        ]  # fmt: skip
        rows = [
            spec for spec in rows if not {"mask", "position", "type"} & set(words_of(spec.name))
        ]
        rows.sort(key=lambda spec: not {*TOKEN_WORDS, "embeds"} & set(words_of(spec.name)))
        for spec in rows:
            if spec.dtype in ("int64", "int32") or len(spec.dims or ()) == 3:
                return spec
        raise ActivityError("it has no token input")

    @property
    def length_axis(self) -> int:
        """The axis of the tokens along which they follow one another.

        It is the last one of ids, which may have no batch, or several rows for each sequence.
        """
        rank = len(self.tokens.dims or ())
        return rank - 1 if self.takes_ids else 1

    @property
    def takes_one(self) -> bool:
        """Whether it takes one token at a time, those of a prompt, too."""
        return (self.tokens.dims or ())[self.length_axis] == 1 or any(
            node.op_type in _ONE_TOKEN
            for pair in self.pairs
            for node in self.document.main.consumers(pair.past)
        )

    def _tells_past(self) -> bool:
        """Return whether an input changes with what is in the cache."""
        empty, filled = (self.guess(self.least_batch, past, 1, capacity=2) for past in (0, 1))
        return empty.inputs != filled.inputs

    @property
    def least_batch(self) -> int:
        """The batch that the model fixes, else 1."""
        dims = self.tokens.dims or ()
        size = dims[0] if self.length_axis > 0 else None
        return size if isinstance(size, int) and is_fixed(size) else 1

    def _logits(self) -> str:
        presents = {*self.fed_back.values()}
        wanted = self.config.outputs.get("logits", "logits") if self.config else "logits"
        outputs = [name for name in self.document.main.outputs if name not in presents]
        if not outputs:
            raise ActivityError("its only outputs are its cache")
        return wanted if wanted in outputs else outputs[0]

    @cached_property
    def crossed(self) -> list[InputSpec]:
        """Caches that no output grows: keys and values that an encoder made."""
        return [
            spec for spec in self.specs
            if spec.name not in self.caches and spec.dims is not None and len(spec.dims) in (3, 4)
            and CACHE_WORDS & set(words_of(spec.name)) and spec.dtype in CACHE_TYPES
        ]  # fmt: skip

    def crossed_shapes(self, batch: int) -> dict[str, Shape]:
        """Return the shapes of the caches that an encoder made, at the usual length."""
        return {
            spec.name: (batch, *self._usual[spec.name][1:])
            if not isinstance((spec.dims or ("",))[0], int) else self._usual[spec.name]
            for spec in self.crossed
        }  # fmt: skip

    @property
    def fed_back(self) -> dict[str, str]:
        """The outputs that are fed back, by the inputs that take them."""
        caches = {pair.past: pair.present for pair in self.pairs}
        return caches | {state.past: state.present for state in self.states}

    @property
    def takes_ids(self) -> bool:
        """Whether it takes tokens; else their embeddings."""
        return self.tokens.dtype in ("int64", "int32")

    @cached_property
    def shareable(self) -> frozenset[str]:
        """The caches that may share memory with their presents: one operator reads and writes it.

        Those of a window may not: what they drop is not what they overwrite.
        """
        main = self.document.main
        names = set[str]()
        for pair in self.pairs:
            users = main.consumers(pair.past)
            if len(users) != 1 or pair.window or pair.present not in users[0].outputs:
                continue
            if users[0].op_type == _GROUPED or writes_in_place(users[0]):
                names.add(pair.past)
        return frozenset(names)

    @property
    def wants_sharing(self) -> bool:
        """Whether an operator is made for a past and a present that share memory."""
        main = self.document.main
        return any(
            writes_in_place(node) for pair in self.pairs for node in main.consumers(pair.past)
        )

    @property
    def chooses_capacity(self) -> bool:
        """Whether a cache does not grow and has any length that the caller chooses."""
        return any(
            pair.in_place and not is_fixed((self.caches[pair.past].dims or ())[pair.axis])
            for pair in self.pairs
        )

    @property
    def fixed_length(self) -> int | None:
        """The length of the cache where the model fixes it."""
        for pair in self.pairs:
            dims = self.caches[pair.past].dims
            size = None if dims is None or pair.window else dims[pair.axis]
            if isinstance(size, int) and is_fixed(size):
                return size
        return None

    @property
    def context_length(self) -> int | None:
        """The longest context, by its tables of angles and its configuration."""
        main, lengths = self.document.main, []
        if self.config is not None and self.config.numbers.get("context_length", 0) > 0:
            lengths.append(self.config.numbers["context_length"])
        for op_type, at in ((_GROUPED, 7), ("RotaryEmbedding", 1), ("RotaryEmbedding", 2)):
            for node in main.nodes_of_type(op_type)[:1]:
                name = node.inputs[at] if at < len(node.inputs) else ""
                table = main.initializer(name) if name else None
                if table is not None and len(table.shape) == 2:
                    lengths.append(table.shape[0])
        if self.fixed_length is not None:
            lengths.append(self.fixed_length)
        return min(lengths, default=None)

    @cached_property
    def _usual(self) -> dict[str, Shape]:
        """The shapes of all inputs where nothing is given: heads are as wide as the graph asks."""
        return guess_inputs(self.specs, self.document, {}).shapes

    def cache_shape(self, name: str, batch: int, length: int) -> Shape:
        """Return the shape of a cache of so many tokens, or of a state, which has no length."""
        pair = next((pair for pair in self.pairs if pair.past == name), None)
        dims = self.caches[name].dims or ()
        if pair is None:
            return tuple(dim if isinstance(dim, int) and is_fixed(dim) else batch for dim in dims)
        # Keys and values may be one tensor, as those of com.microsoft.Attention are.
        batch_axis = 1 if len(dims) == 5 and dims[0] == 2 else 0
        sizes = []
        for at, dim in enumerate(dims):
            if isinstance(dim, int) and is_fixed(dim):
                sizes.append(dim)
            elif at == pair.axis:
                sizes.append(pair.window or length)
            elif at == batch_axis:
                sizes.append(batch)
            else:
                sizes.append(self._usual[name][at])
        return tuple(sizes)

    def guess(self, batch: int, past: int, length: int, *, capacity: int | None = None) -> Guess:
        """Return all inputs for this many cached and new tokens.

        Args:
            batch: How many sequences.
            past: Tokens in the cache of each.
            length: New tokens of each.
            capacity: The length of a cache that does not grow and has any length; by default
                it is full after these tokens.

        Raises:
            UsageError: The model does not accept such sizes.
        """
        sizes = {self.length_axis: length}
        if self.length_axis > 0:
            sizes[0] = batch
        tokens = tuple(
            dim if isinstance(dim, int) and is_fixed(dim)
            else sizes[at] if at in sizes else _hidden(self.tokens)
            for at, dim in enumerate(self.tokens.dims or ())
        )  # fmt: skip
        if any(tokens[at] != size for at, size in sizes.items()) or (
            self.length_axis == 0 and batch > 1
        ):
            raise UsageError(
                f"the model takes tokens of {'x'.join(map(str, tokens))} alone, not"
                f" {batch}x{length}"
            )
        in_place = {pair.past for pair in self.pairs if pair.in_place}
        capacity = past + length if capacity is None else capacity
        given = {
            name: self.cache_shape(name, batch, capacity if name in in_place else past)
            for name in self.caches
        }
        given[self.tokens.name] = tokens
        return guess_inputs(self.specs, self.document, given, past=past)


def _hidden(spec: InputSpec) -> int:
    raise ActivityError(f"input {spec.text} does not fix the width of the embeddings")


class StepFeeds:
    """The inputs of one prompt and of the tokens after it, without tokens that are chosen.

    Args:
        decoder: The model.
        batch: How many sequences.
        prompt: Tokens of each before the first that is made.
        seed: Of the prompt.
        capacity: The length of a cache that does not grow, if the model leaves it open; by default
            that of the context, the prompt and 64 tokens.
        context: Tokens in the cache before the prompt.
    """

    def __init__(
        self,
        decoder: Decoder,
        batch: int,
        prompt: int,
        seed: int = 0,
        capacity: int | None = None,
        context: int = 0,
    ) -> None:
        self._decoder, self._batch, self._prompt, self._seed = decoder, batch, prompt, seed
        self.context = context
        past = context + prompt
        self.capacity = past + _MARGIN if capacity is None else capacity
        """The length of a cache that shares memory with its present."""
        self.first = decoder.guess(
            batch, context, 1 if decoder.takes_one else prompt, capacity=self.capacity
        )
        """Of the prefill, or of the first token of the prompt where one is taken at a time."""
        self.later = decoder.guess(batch, past, 1, capacity=self.capacity)
        """Of the first token after it."""
        again = decoder.guess(batch, past + 1, 1, capacity=self.capacity)
        left_out = {*decoder.caches}
        self._steps = [
            (step, other)
            for step, other in zip(self.later.inputs, again.inputs, strict=True)
            if step.name not in left_out
        ]
        rows = [step for step in self.first.inputs if step.name == decoder.tokens.name]
        self.vocabulary = int(rows[0].fill.high) + 1 if decoder.takes_ids else 0
        """Tokens that may be fed."""

    def prompt(self) -> dict[str, AnyArray]:
        """Return the inputs of the prefill; special tokens are not among them."""
        kept = [guess for guess in self.first.inputs if guess.name not in self._decoder.caches]
        values = _made(kept, self._seed)
        config, name = self._decoder.config, self._decoder.tokens.name
        if self._decoder.takes_ids and config is not None and config.special_tokens:
            plain = [
                token for token in range(self.vocabulary) if token not in config.special_tokens
            ]
            if plain:
                ids = values[name].astype(np.int64) % len(plain)
                values[name] = np.array(plain)[ids].astype(values[name].dtype)
        return values

    def step(self, number: int) -> dict[str, AnyArray]:
        """Return the inputs of the token after `number` others that followed the prompt.

        The tokens in it are random; :meth:`put_tokens` puts chosen ones in their place.

        Args:
            number: From 0 on; below 0 for the tokens of the prompt, the last one is -1.
        """
        inputs = [_grown(guess, other, number) for guess, other in self._steps]
        return _made(inputs, self._seed + 1 + self._prompt + number)

    def put_tokens(self, values: Mapping[str, AnyArray], tokens: AnyArray) -> None:
        """Put the last token of each sequence into the inputs of a step, in place.

        Args:
            values: The inputs of :meth:`step`, of a decoder that takes ids.
            tokens: int[batch].
        """
        fed = values[self._decoder.tokens.name]
        if fed.ndim == 1:
            fed[:] = tokens
        else:
            fed[:] = tokens.reshape(len(tokens), *(1,) * (fed.ndim - 1))


class KeptFeeds(StepFeeds):
    """The inputs of a sequence that is made again and again: each is made once, when first used.

    One sequence at a time may use them, as tokens are put into them in place.
    """

    @cached_property
    def _prompt_values(self) -> dict[str, AnyArray]:
        return super().prompt()

    @cached_property
    def _step_values(self) -> dict[int, dict[str, AnyArray]]:
        return {}

    def prompt(self) -> dict[str, AnyArray]:
        """Return the inputs of the prefill."""
        return self._prompt_values

    def step(self, number: int) -> dict[str, AnyArray]:
        """Return the inputs of a token."""
        if number not in self._step_values:
            self._step_values[number] = super().step(number)
        return self._step_values[number]


def _grown(guess: InputGuess, other: InputGuess, number: int) -> InputGuess:
    """Return an input after this many steps, extrapolated from the first and the second one."""
    if guess.shape == other.shape and guess.fill == other.fill:
        return guess
    shape = tuple(a + number * (b - a) for a, b in zip(guess.shape, other.shape, strict=True))
    low = guess.fill.low + number * (other.fill.low - guess.fill.low)
    return replace(guess, shape=shape, fill=replace(guess.fill, low=low))


def _made(inputs: Sequence[InputGuess], seed: int) -> dict[str, AnyArray]:
    specs = [InputSpec(guess.name, guess.dtype, guess.shape) for guess in inputs]
    shapes: Mapping[str, Shape] = {guess.name: guess.shape for guess in inputs}
    return random_inputs(specs, shapes, seed, {guess.name: guess.fill for guess in inputs})
