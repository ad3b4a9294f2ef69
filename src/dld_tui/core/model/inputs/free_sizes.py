"""Sizes of inputs that are still free, sums that hold between them, and the reason for each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from enum import Enum
from typing import TYPE_CHECKING

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import UsageError
from dld_tui.core.model.inputs.roles import (
    BATCH,
    CACHE_WORDS,
    CAPACITY,
    CONTEXT,
    FEATURES,
    FRAMES,
    HEAD_SIZE,
    HEADS,
    LINE,
    PAST,
    SIDE,
    SPECTRUM_WORDS,
    TARGET,
    TOKEN_WORDS,
    TOKENS,
    TOTAL,
    UNKNOWN,
    VIDEO,
    WINDOW,
    ModelTraits,
    Role,
    cache_pairs,
    is_audio,
    is_self_mask,
    is_token_ids,
    named_role,
    placed_role,
    state_pairs,
    terms_of,
    words_of,
)
from dld_tui.core.model.inputs.shape_texts import Shape, shape_text
from dld_tui.core.model.inputs.shapes import InputSpec, check_given, is_fixed
from dld_tui.core.model.tensors.value_types import PLACEHOLDERS
from dld_tui.core.text import visible

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document


class SizeSource(Enum):
    """Where the size of a dimension is from."""

    MODEL = "fixed"
    GIVEN = "given"
    """By the user."""
    FOLLOWS = "follows from what is given"
    """From a shape given for another input."""
    NAME = "name"
    """Guessed by the name of the dimension."""
    GUESS = "guess"
    """Guessed by anything else."""


@dataclass(frozen=True)
class Reason:
    """Why a dimension has its size."""

    source: SizeSource
    role: str = ""
    """What is guessed that it is."""
    why: str = ""
    """The name of the dimension, or what else it is guessed by. Untrusted text."""

    @property
    def is_guess(self) -> bool:
        """Whether the size is neither fixed by the model nor given."""
        return self.source in (SizeSource.NAME, SizeSource.GUESS)

    @property
    def text(self) -> str:
        """As results have it; empty for a dimension that the model fixes."""
        if self.is_guess:
            return f"{self.role}: {self.basis}"
        return "" if self.source is SizeSource.MODEL else self.source.value

    @property
    def basis(self) -> str:
        """What a size is guessed by."""
        return f"its name {self.why}" if self.source is SizeSource.NAME else self.why


FIXED = Reason(SizeSource.MODEL)
GIVEN = Reason(SizeSource.GIVEN)
FOLLOWS = Reason(SizeSource.FOLLOWS)


def reason_by_name(role: str, name: str) -> Reason:
    """Return the reason for a size of the role that its name tells."""
    return Reason(SizeSource.NAME, role, name)


def reason_by_role(role: str, why: str) -> Reason:
    """Return the reason for a size of a role that something else tells."""
    return Reason(SizeSource.GUESS, role, why)


@dataclass
class Variable:
    """A free size."""

    key: str
    role: Role
    reason: Reason
    size: int = 0
    given: bool = False


_FILLED = "\0filled"
"""The key of how much of a cache is filled that new elements are written into."""


@dataclass
class Sum:
    """The size of one dimension: a constant and multiples of variables."""

    constant: int = 0
    factors: dict[str, int] = field(default_factory=dict)


class FreeSizes:
    """The dimensions of all inputs as sums of variables.

    Args:
        specs: The inputs that are tensors.
        document: The model, where there is one.
        given: Shapes by input.
        sizes: Sizes of free dimensions by their names.
        batch: Size of the batch, where nothing else determines it.
        rankless: Inputs of which the model does not say how many dimensions they have.
        past: How many tokens are in a cache that new ones are written into; None if unknown.
        links: Whether a total length counts what is in such a cache, and not its length.

    Raises:
        UsageError: Given shapes do not fit the model or each other.
    """

    def __init__(
        self,
        specs: Sequence[InputSpec],
        document: Document | None,
        given: Mapping[str, Shape],
        sizes: Mapping[str, int],
        batch: int | None,
        rankless: frozenset[str] = frozenset(),
        past: int | None = None,
        links: bool = True,
    ) -> None:
        check_given(specs, given, sizes)
        self.specs = [spec for spec in specs if not spec.container]
        self._document, self._given, self._rankless = document, given, rankless
        self._traits = _traits(specs, document)
        self.caches = (
            {} if document is None else {pair.past: pair for pair in cache_pairs(document)}
        )
        """The pairs of past and present, by the past."""
        self.states = (
            {} if document is None else {pair.past: pair.present for pair in state_pairs(document)}
        )
        """The outputs that states come back from, by input."""
        dims = [dim for spec in self.specs for dim in spec.dims or () if isinstance(dim, str)]
        terms = [terms_of(dim) for dim in dims]
        self._uses = Counter(
            name
            for dim, term in zip(dims, terms, strict=True)
            for name in (term[0] if term is not None else (dim,))
        )
        """In how many dimensions of inputs a name is."""
        self._keys: dict[str, str] = {}
        """The variables of names that say nothing."""
        self.variables: dict[str, Variable] = {}
        """By symbol, or by input and axis where a dimension has no name."""
        self.sums: dict[str, list[Sum]] = {}
        """The size of each dimension, by input."""
        self.why: dict[tuple[str, int], Reason] = {}
        """Why a dimension is a sum, by input and axis."""
        self._in_place = {name for name, pair in self.caches.items() if pair.in_place}
        # The role of a length that a mask shares with such a cache is that of the cache.
        for spec in sorted(self.specs, key=lambda spec: spec.name not in self._in_place):
            self.sums[spec.name] = [self._sum(spec, at) for at in range(self._rank(spec))]
        self.links = links and self._has_filled()
        """Whether a total length is linked to how much of a cache is filled."""
        self._link_capacity()
        self._link_totals()
        self._take_given(sizes)
        if past is not None and _FILLED in self.variables:
            self._set(_FILLED, past)
        if batch is not None:
            for key, variable in self.variables.items():
                if variable.role.name == BATCH.name:
                    self._set(key, batch)
        self.free = [item for item in self.variables.values() if not item.given]
        """The variables that are to be guessed."""

    def _rank(self, spec: InputSpec) -> int:
        if spec.dims is not None:
            return len(spec.dims)
        return len(self._given.get(spec.name, ()))

    def _sum(self, spec: InputSpec, axis: int) -> Sum:
        dim = None if spec.dims is None else spec.dims[axis]
        if isinstance(dim, int) and is_fixed(dim):
            return Sum(dim)
        if not isinstance(dim, str) or dim in PLACEHOLDERS:
            key = f"{spec.name}\0{axis}"
            if self.caches:  # one decoder has one batch and one past
                is_past = self._cache_axis(spec, axis)
                if is_past is not None and is_past[0] in (PAST, CAPACITY):
                    key = f"\0{is_past[0].name}"
                elif axis == 0 and (spec.name in self.caches or len(spec.dims or ()) > 1):
                    key = f"\0{BATCH.name}"
            return Sum(0, {self._variable(key, spec, axis, ""): 1})
        terms = terms_of(dim)
        if terms is None and self._is_counter(dim):
            is_past = self._cache_axis(spec, axis)
            if is_past is not None and is_past[0] in (PAST, CAPACITY):
                key = self._keys[dim] = f"\0{is_past[0].name}"
                return Sum(0, {self._variable(key, spec, axis, ""): 1})
        if terms is None:
            return Sum(0, {self._variable(dim, spec, axis, dim): 1})
        for symbol in terms[0]:
            self._variable(symbol, spec, axis, symbol)
        return Sum(terms[1], dict(terms[0]))

    def _is_counter(self, dim: str) -> bool:
        """Return whether a name says nothing, as those that torch.onnx gives to single sizes."""
        return self._uses[dim] == 1 and named_role(dim, self._traits) is None

    def _variable(self, key: str, spec: InputSpec, axis: int, name: str) -> str:
        role = named_role(name, self._traits) if name else None
        reason = reason_by_name(role.name, name) if role is not None and name else FIXED
        if role is FRAMES and len(spec.dims or ()) == 5:
            role = VIDEO
        if role is FRAMES and is_token_ids(spec):  # [B, T]
            role, reason = TOKENS, reason_by_role(TOKENS.name, f"the name {spec.name}")
        is_spectrum = bool(SPECTRUM_WORDS & set(words_of(spec.name)))
        if role is CONTEXT and is_spectrum:  # what the encoder takes, not what it makes
            role = WINDOW
            reason = reason_by_name(role.name, name)
        if spec.name in self._rankless:
            role = UNKNOWN if len(spec.dims or ()) < 4 else placed_role(spec, axis, self._traits)[0]
            why = "trial, as the model does not say how many dimensions it has"
            reason = reason_by_role(role.name, why)
        elif role is None or self._is_vague(role, spec, axis):
            placed, why = placed_role(spec, axis, self._traits)
            paired = self._cache_axis(spec, axis)
            if paired is not None:
                placed, why = paired
            is_so_named = role is not None and role.name == placed.name
            if role is None or role.name != SIDE.name or placed.name in (SIDE.name, LINE.name):
                role = placed
                reason = (
                    reason_by_name(role.name, name)
                    if is_so_named
                    else reason_by_role(role.name, why)
                )
        if key not in self.variables:
            self.variables[key] = Variable(key, role, reason)
        return key

    def _is_vague(self, role: Role, spec: InputSpec, axis: int) -> bool:
        """Return whether the place of a dimension says more than its name does."""
        dims = spec.dims or ()
        pair = self.caches.get(spec.name)
        if role is PAST and pair is not None and (pair.axis != axis or pair.window):
            return True  # such as kv_cache_dim
        if pair is not None and pair.in_place and pair.axis == axis:
            return True  # such as max_sequence_length
        if role.name == SIDE.name:
            return len(dims) == 4
        if role.name == FEATURES.name:
            is_spectrum = len(dims) == 3 and bool(SPECTRUM_WORDS & set(words_of(spec.name)))
            return is_spectrum and any(is_fixed(dim) for dim in dims[1:])
        if role.name not in (TOKENS.name, FRAMES.name) or not spec.dtype.startswith(
            ("float", "bfloat")
        ):
            return False
        is_plain = len(dims) == 2 or (len(dims) == 3 and 1 in dims[1:])
        return is_plain and (self._traits.is_streaming or is_audio(spec))

    def _cache_axis(self, spec: InputSpec, axis: int) -> tuple[Role, str] | None:
        """Return what an axis of a cache is: the one that an output has longer is its length."""
        pair = self.caches.get(spec.name)
        is_named = bool(set(words_of(spec.name)) & CACHE_WORDS)
        if axis == 0 or (pair is None and not is_named):
            return None
        if {"encoder", "cross"} & set(words_of(spec.name)):
            return CONTEXT, f"the name {spec.name}"
        if pair is None:
            return None
        rank = len(spec.dims or ())
        if pair.axis != axis:
            if rank == 4 or axis == rank - 1:
                return (HEAD_SIZE if axis == rank - 1 else HEADS), f"the cache {spec.name}"
            return None
        if pair.window:
            window = Role("length of the window", (pair.window,))
            return window, f"the window of attention that reads {spec.name}"
        if pair.in_place:
            return CAPACITY, f"the output {pair.present}, which is as long"
        return PAST, f"its pair, the output {pair.present}"

    def _has_filled(self) -> bool:
        """Add a variable for how much of a cache is filled; return whether there is one."""
        if not self._in_place or any(v.role is PAST for v in self.variables.values()):
            return False
        reason = reason_by_role(PAST.name, "an empty cache")
        self.variables[_FILLED] = Variable(_FILLED, PAST, reason)
        return True

    def _link_capacity(self) -> None:
        """Make the length of a mask that is named after a cache of a fixed length that length."""
        fixed = [
            total.constant
            for name in self._in_place
            for total in self.sums[name][self.caches[name].axis :][:1]
            if not total.factors
        ]
        for spec in self.specs if fixed else ():
            if is_self_mask(words_of(spec.name)) and self.sums[spec.name]:
                last = self.sums[spec.name][-1]
                if any({"max", "cache"} & set(words_of(key)) for key in last.factors):
                    self.variables = {
                        key: v for key, v in self.variables.items() if key not in last.factors
                    }
                    self.sums[spec.name][-1] = Sum(fixed[0])

    def _link_totals(self) -> None:
        """Make the total length that of past and present."""
        cached = {
            key
            for name in self.caches
            for length in self.sums.get(name, ())
            for key in length.factors
        }
        pasts = [item for item in self.variables.values() if item.role is PAST]
        pasts.sort(key=lambda item: item.key not in cached)
        past = pasts[0] if pasts else None
        now = self._present()
        if past is None:
            return
        totals = self._named_totals()
        pair = {past.key: 1} if now.factors.get(past.key) is None else {}
        for spec in self.specs:
            words = set(words_of(spec.name))
            is_mask = is_self_mask(words)
            for axis, old in enumerate(self.sums[spec.name]):
                if spec.name in self.caches:
                    continue
                last = axis == len(self.sums[spec.name]) - 1 and axis > 0
                for key in list(old.factors):
                    variable = self.variables[key]
                    is_own = "\0" in key or self._is_counter(key)
                    if key not in cached and key not in now.factors:
                        # Such as kv_length; of a mask of four dimensions the last one is of keys.
                        is_own |= variable.role is PAST or len(self.sums[spec.name]) == 4
                    if key in totals or variable.role is TOTAL or (is_mask and last and is_own):
                        factor = old.factors.pop(key)
                        old.constant += now.constant * factor
                        for name, n in {**now.factors, **pair}.items():
                            old.factors[name] = old.factors.get(name, 0) + n * factor
                        self.why[spec.name, axis] = reason_by_role(
                            "total length", "past and present together"
                        )
        used = {key for sums in self.sums.values() for total in sums for key in total.factors}
        self.variables = {key: v for key, v in self.variables.items() if key in used}
        if not now.factors:  # one token after the other
            for key, variable in self.variables.items():
                if variable.role is PAST:
                    role = replace(PAST, sizes=(127, 128, 64, 16, 1, 0))
                    self.variables[key] = replace(variable, role=role)

    def _named_totals(self) -> set[str]:
        """Return the names that outputs of caches have for their length."""
        names = set[str]()
        for pair in self.caches.values():
            if pair.window or pair.in_place:
                continue
            known = self._document.main.value_type(pair.present) if self._document else None
            dims = known.dims if known is not None else None
            name = dims[pair.axis] if dims is not None and pair.axis < len(dims) else None
            if isinstance(name, str) and terms_of(name) is None:
                names.add(name)
        past = {
            key
            for name in self.caches
            if name in self.sums
            for total in self.sums[name]
            for key in total.factors
        }
        return names - past

    def _present(self) -> Sum:
        """Return the number of new tokens: the length of the first input of tokens."""
        rows = [
            spec for spec in self.specs
            if len(self.sums[spec.name]) in (2, 3)
            or (len(self.sums[spec.name]) == 1 and is_token_ids(spec))
        ]  # fmt: skip
        rows.sort(key=lambda spec: not {*TOKEN_WORDS, "embeds"} & set(words_of(spec.name)))
        for spec in rows:
            words = set(words_of(spec.name))
            if words & (CACHE_WORDS | {"mask", "encoder", "position", "positions"}):
                continue
            sums = self.sums[spec.name]
            length = sums[0 if len(sums) == 1 else 1]
            if len(sums) == 3 and spec.dtype in ("int64", "int32"):  # rows of tokens
                length = sums[2]
            roles = {self.variables[key].role.name for key in length.factors}
            if not length.factors or roles & {TOKENS.name, TARGET.name}:
                return length
        return Sum()

    def _take_given(self, sizes: Mapping[str, int]) -> None:
        """Work out the variables that given shapes and sizes tell."""
        for name, size in sizes.items():
            key = self._keys.get(name, name)
            if key in self.variables:
                self._set(key, size)
        equations = [
            (total, size, spec)
            for spec in self.specs
            if spec.name in self._given
            for total, size in zip(self.sums[spec.name], self._given[spec.name], strict=True)
        ]
        for is_last in (False, True):
            unsolved = len(self.variables)
            while unsolved:
                unsolved -= 1
                for total, size, spec in equations:
                    unknown = [key for key in total.factors if not self.variables[key].given]
                    if is_last and len(unknown) > 1:  # what is cached gives way
                        cached = [k for k in unknown if self.variables[k].role.name == PAST.name]
                        for key in (cached or unknown)[:-1] if not cached else cached[:1]:
                            self._set(key, 0 if cached else 1)
                        unknown = [key for key in total.factors if not self.variables[key].given]
                    if len(unknown) == 1:
                        rest = size - self.value(total, without=unknown[0])
                        factor = total.factors[unknown[0]]
                        if factor == 0 or rest % factor or rest // factor < 0:
                            raise self._disagree(spec)
                        self._set(unknown[0], rest // factor)
        for total, size, spec in equations:
            if all(self.variables[key].given for key in total.factors) and (
                self.value(total) != size
            ):
                raise self._disagree(spec)

    def count(self, assigned: Mapping[str, int]) -> int:
        """Return the number of new tokens of each sequence; 1 if there are none."""
        now = self._present()
        return now.constant + sum(assigned[key] * n for key, n in now.factors.items()) or 1

    def _disagree(self, spec: InputSpec) -> UsageError:
        shape = shape_text(self._given[spec.name])
        return UsageError(
            f"--shape {visible(spec.name)}:{shape} does not agree with the other shapes given",
            hint=f"The model has {spec.text}",
        )

    def _set(self, key: str, size: int) -> None:
        variable = self.variables[key]
        if not variable.given:
            variable.size, variable.given, variable.reason = size, True, GIVEN

    def value(self, total: Sum, without: str = "") -> int:
        """Return a sum with the present sizes; the term of one variable may be left out."""
        parts = (self.variables[key].size * n for key, n in total.factors.items() if key != without)
        return total.constant + sum(parts)


def _traits(specs: Sequence[InputSpec], document: Document | None) -> ModelTraits:
    words = {word for spec in specs for word in words_of(spec.name)}
    if document is None:
        return ModelTraits(frozenset(words), frozenset(), frozenset())
    outputs = {word for name in document.main.outputs for word in words_of(name)}
    operators = {"NonMaxSuppression"} if document.main.nodes_of_type("NonMaxSuppression") else set()
    return ModelTraits(frozenset(words), frozenset(outputs), frozenset(operators))
