"""The free sizes of a model's inputs: what each stands for, and how they hang together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from dld_tui.core.document.value_types import PLACEHOLDERS
from dld_tui.core.errors import UsageError
from dld_tui.core.inputs.caches import cache_pairs
from dld_tui.core.inputs.guess import GIVEN, shape_text
from dld_tui.core.inputs.roles import (
    BATCH,
    CACHE_WORDS,
    CONTEXT,
    FEATURES,
    FRAMES,
    LINE,
    PAST,
    SIDE,
    SPECTRUM_WORDS,
    TARGET,
    TOKENS,
    TOTAL,
    UNKNOWN,
    VIDEO,
    WINDOW,
    ModelTraits,
    Role,
    is_audio,
    named_role,
    placed_role,
    terms_of,
    words_of,
)
from dld_tui.core.inputs.shapes import InputSpec, Shape, check_given, is_fixed
from dld_tui.core.text import visible

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document


@dataclass
class Variable:
    """A free size."""

    key: str
    role: Role
    reason: str
    size: int = 0
    given: bool = False


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
        batch: Size of the batch, where nothing else tells it.
        rankless: Inputs of which the model does not say how many dimensions they have.

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
    ) -> None:
        check_given(specs, given, sizes)
        self.specs = [spec for spec in specs if not spec.container]
        self._document, self._given, self._rankless = document, given, rankless
        self._traits = _traits(specs, document)
        self.caches = {} if document is None else {one.past: one for one in cache_pairs(document)}
        """The pairs of past and present, by the past."""
        self.variables: dict[str, Variable] = {}
        """By symbol, or by input and axis where a dimension has no name."""
        self.sums: dict[str, list[Sum]] = {}
        """The size of each dimension, by input."""
        self.why: dict[tuple[str, int], str] = {}
        """Why a dimension is a sum, by input and axis."""
        for spec in self.specs:
            self.sums[spec.name] = [self._sum(spec, at) for at in range(self._rank(spec))]
        self._link_totals()
        self._take_given(sizes)
        if batch is not None:
            for key, variable in self.variables.items():
                if variable.role.name == BATCH.name:
                    self._set(key, batch)
        self.free = [one for one in self.variables.values() if not one.given]
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
                if is_past is not None and is_past[0] is PAST:
                    key = f"\0{PAST.name}"
                elif axis == 0 and (spec.name in self.caches or len(spec.dims or ()) > 1):
                    key = f"\0{BATCH.name}"
            return Sum(0, {self._variable(key, spec, axis, ""): 1})
        terms = terms_of(dim)
        if terms is None:
            return Sum(0, {self._variable(dim, spec, axis, dim): 1})
        for symbol in terms[0]:
            self._variable(symbol, spec, axis, symbol)
        return Sum(terms[1], dict(terms[0]))

    def _variable(self, key: str, spec: InputSpec, axis: int, name: str) -> str:
        role = named_role(name, self._traits) if name else None
        reason = f"{role.name}: its name {name}" if role is not None and name else ""
        if role is FRAMES and len(spec.dims or ()) == 5:
            role = VIDEO
        is_spectrum = bool(SPECTRUM_WORDS & set(words_of(spec.name)))
        if role is CONTEXT and is_spectrum:  # what the encoder takes, not what it makes
            role = WINDOW
            reason = f"{role.name}: its name {name}"
        if spec.name in self._rankless:
            role = UNKNOWN if len(spec.dims or ()) < 4 else placed_role(spec, axis, self._traits)[0]
            reason = f"{role.name}: trial, as the model does not say how many dimensions it has"
        elif role is None or self._is_vague(role, spec, axis):
            placed, why = placed_role(spec, axis, self._traits)
            paired = self._cache_axis(spec, axis)
            if paired is not None:
                placed, why = paired
            if role is not None and role.name == placed.name:
                why = f"its name {name}"
            if role is None or role.name != SIDE.name or placed.name in (SIDE.name, LINE.name):
                role, reason = placed, f"{placed.name}: {why}"
        if key not in self.variables:
            self.variables[key] = Variable(key, role, reason)
        return key

    def _is_vague(self, role: Role, spec: InputSpec, axis: int) -> bool:
        """Return whether the place of a dimension says more than its name does."""
        dims = spec.dims or ()
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
        """Return that an axis is the length of a cache, where an output has it longer."""
        pair = self.caches.get(spec.name)
        is_named = bool(set(words_of(spec.name)) & CACHE_WORDS)
        if axis == 0 or (pair is None and not is_named):
            return None
        if {"encoder", "cross"} & set(words_of(spec.name)):
            return CONTEXT, f"the name {spec.name}"
        if pair is None or pair.axis != axis:
            return None
        return PAST, f"its pair, the output {pair.present}"

    def _link_totals(self) -> None:
        """Make the total length that of past and present."""
        past = next((v for v in self.variables.values() if v.role is PAST), None)
        now = self._present()
        if past is None:
            return
        totals = self._named_totals()
        pair = {past.key: 1} if now.factors.get(past.key) is None else {}
        for spec in self.specs:
            words = set(words_of(spec.name))
            is_mask = "mask" in words and not words & {"encoder", "cross", "head"}
            for axis, old in enumerate(self.sums[spec.name]):
                if spec.name in self.caches:
                    continue
                last = axis == len(self.sums[spec.name]) - 1 and axis > 0
                for key in list(old.factors):
                    variable = self.variables[key]
                    is_own = "\0" in key
                    if key in totals or variable.role is TOTAL or (is_mask and last and is_own):
                        factor = old.factors.pop(key)
                        old.constant += now.constant * factor
                        for name, n in {**now.factors, **pair}.items():
                            old.factors[name] = old.factors.get(name, 0) + n * factor
                        self.why[spec.name, axis] = "total length: past and present together"
        used = {key for sums in self.sums.values() for one in sums for key in one.factors}
        self.variables = {key: v for key, v in self.variables.items() if key in used}
        if not now.factors:  # one token after the other
            for key, variable in self.variables.items():
                if variable.role is PAST:
                    role = replace(PAST, sizes=(127, 128, 64, 16, 1, 0))
                    self.variables[key] = replace(variable, role=role)

    def _named_totals(self) -> set[str]:
        """Return the names that outputs of caches have for their length."""
        found = set[str]()
        for pair in self.caches.values():
            known = self._document.main.value_type(pair.present) if self._document else None
            dims = known.dims if known is not None else None
            name = dims[pair.axis] if dims is not None and pair.axis < len(dims) else None
            if isinstance(name, str) and terms_of(name) is None:
                found.add(name)
        past = {
            key
            for name in self.caches
            if name in self.sums
            for one in self.sums[name]
            for key in one.factors
        }
        return found - past

    def _present(self) -> Sum:
        """Return the length of what is new: that of the first input of tokens."""
        rows = [s for s in self.specs if len(self.sums[s.name]) in (2, 3)]
        rows.sort(key=lambda s: not {"ids", "embeds", "tokens"} & set(words_of(s.name)))
        for spec in rows:
            words = set(words_of(spec.name))
            if words & (CACHE_WORDS | {"mask", "encoder"}):
                continue
            one = self.sums[spec.name][1]
            roles = {self.variables[key].role.name for key in one.factors}
            if not one.factors or roles & {TOKENS.name, TARGET.name}:
                return one
        return Sum()

    def _take_given(self, sizes: Mapping[str, int]) -> None:
        """Work out the variables that given shapes and sizes tell."""
        for key, size in sizes.items():
            if key in self.variables:
                self._set(key, size)
        equations = [
            (one, size, spec)
            for spec in self.specs
            if spec.name in self._given
            for one, size in zip(self.sums[spec.name], self._given[spec.name], strict=True)
        ]
        for is_last in (False, True):
            left = len(self.variables)
            while left:
                left -= 1
                for one, size, spec in equations:
                    unknown = [key for key in one.factors if not self.variables[key].given]
                    if is_last and len(unknown) > 1:  # what is cached gives way
                        cached = [k for k in unknown if self.variables[k].role.name == PAST.name]
                        for key in (cached or unknown)[:-1] if not cached else cached[:1]:
                            self._set(key, 0 if cached else 1)
                        unknown = [key for key in one.factors if not self.variables[key].given]
                    if len(unknown) == 1:
                        rest = size - self.value(one, without=unknown[0])
                        factor = one.factors[unknown[0]]
                        if factor == 0 or rest % factor or rest // factor < 0:
                            raise self._disagree(spec)
                        self._set(unknown[0], rest // factor)
        for one, size, spec in equations:
            if all(self.variables[key].given for key in one.factors) and (self.value(one) != size):
                raise self._disagree(spec)

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

    def value(self, one: Sum, without: str = "") -> int:
        """Return a sum with the present sizes; of one variable it may leave out what it adds."""
        parts = (self.variables[key].size * n for key, n in one.factors.items() if key != without)
        return one.constant + sum(parts)


def _traits(specs: Sequence[InputSpec], document: Document | None) -> ModelTraits:
    words = {word for spec in specs for word in words_of(spec.name)}
    if document is None:
        return ModelTraits(frozenset(words), frozenset(), frozenset())
    outputs = {word for name in document.main.outputs for word in words_of(name)}
    operators = {"NonMaxSuppression"} if document.main.nodes_of_type("NonMaxSuppression") else set()
    return ModelTraits(frozenset(words), frozenset(outputs), frozenset(operators))
