"""One guess of what a model is fed with: shapes that it can be run with, and plausible values.

What the user gives counts. The rest comes from names and places (:mod:`.roles`), from what the
graph demands (:mod:`.propagation`), and, where a model is run anyway, from trials of the candidates
one after the other (:mod:`.trials`). Every dimension and all values say why they are so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dld_tui.core.document.values import PLACEHOLDERS
from dld_tui.core.errors import UsageError
from dld_tui.core.inputs.dtypes import AnyArray
from dld_tui.core.inputs.fills import Fill, Surroundings, fill_for
from dld_tui.core.inputs.generate import random_inputs
from dld_tui.core.inputs.propagation import Known, Propagation
from dld_tui.core.inputs.roles import (
    BATCH,
    CACHE_WORDS,
    CONTEXT,
    PAST,
    TARGET,
    TOKENS,
    TOTAL,
    UNKNOWN,
    ModelTraits,
    Role,
    matching_output,
    named_role,
    placed_role,
    terms_of,
    words_of,
)
from dld_tui.core.inputs.shapes import InputSpec, Shape, check_given, is_fixed
from dld_tui.core.text import clip, visible
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document
    from dld_tui.core.document.node import Node
    from dld_tui.core.document.scope import Scope

INPUTS = "inputs"
"""The fact of a report that has :meth:`Guess.to_json`."""
MOST_TRIALS = 10
"""Candidates at most."""
_DENSE = 1024
"""Every size up to this is looked at where the usual ones do not fit."""
_MOST_ELEMENTS = 1 << 26
_GIVEN = "given"
_MOST_LINES = 6
_RANKS = (2, 4, 3, 1, 0)
"""What an input is tried with of which the model does not say how many dimensions it has."""


@dataclass(frozen=True)
class InputGuess:
    """What one input is fed with."""

    name: str
    """Foreign text."""
    dtype: str
    shape: Shape
    reasons: tuple[str, ...]
    """Why each dimension has its size; empty for one that the model fixes. Foreign text."""
    fill: Fill
    """Its values."""

    @property
    def is_guessed(self) -> bool:
        """Whether a dimension is neither fixed by the model nor given."""
        return any(reason not in ("", _GIVEN) for reason in self.reasons)

    @property
    def option(self) -> str:
        """The shape as the option ``--shape`` takes it. Foreign text."""
        return f"{self.name}:{shape_text(self.shape)}"

    @property
    def why(self) -> str:
        """The reasons of the guessed dimensions, each once. For people."""
        found: dict[str, list[int]] = {}
        for size, reason in zip(self.shape, self.reasons, strict=True):
            if reason not in ("", _GIVEN):
                found.setdefault(reason, []).append(size)
        parts = []
        for reason, sizes in found.items():
            what, _, why = reason.partition(": ")
            shown = "x".join(map(str, dict.fromkeys(sizes)))
            parts.append(f"{what} {shown} by {why}" if why else f"{reason} {shown}")
        return visible(", ".join(parts))

    @property
    def text(self) -> str:
        """The input for people, as ``x → 1x3x640x640 (height and width 640 by the name x)``."""
        shape = shape_text(self.shape)
        why = self.why or ("given" if _GIVEN in self.reasons else "")
        named = clip(visible(self.name), 60, keep="middle")
        return f"{named} → {shape}{f' (guessed: {why})' if self.is_guessed else ''}" + (
            f" ({why})" if why and not self.is_guessed else ""
        )

    def to_json(self) -> dict[str, JSON]:
        """Return it as JSON data."""
        return {
            "name": self.name, "dtype": self.dtype, "shape": list(self.shape),
            "reasons": list(self.reasons), "guessed": self.is_guessed, "why": self.why,
            "values": self.fill.text, "values_reason": self.fill.reason,
        }  # fmt: skip


def shape_text(shape: Shape) -> str:
    """Return ``1x3x224x224``; ``scalar`` where there are no dimensions."""
    return "x".join(map(str, shape)) or "scalar"


@dataclass(frozen=True)
class Guess:
    """What all inputs are fed with."""

    inputs: tuple[InputGuess, ...]

    @property
    def shapes(self) -> dict[str, Shape]:
        """The shapes by input."""
        return {one.name: one.shape for one in self.inputs}

    @property
    def guessed(self) -> list[InputGuess]:
        """The inputs with a dimension that was guessed."""
        return [one for one in self.inputs if one.is_guessed]

    def values(self, seed: int) -> dict[str, AnyArray]:
        """Return an array for every input.

        Raises:
            ActivityError: An input is not a tensor, or of a type that cannot be made.
        """
        specs = [InputSpec(one.name, one.dtype, one.shape) for one in self.inputs]
        return random_inputs(specs, self.shapes, seed, {one.name: one.fill for one in self.inputs})

    @property
    def remarks(self) -> list[str]:
        """What was guessed and how to change it, in lines for people; empty where nothing was."""
        guessed = self.guessed
        alike: dict[tuple[Shape, str], list[InputGuess]] = {}
        for one in guessed:
            alike.setdefault((one.shape, one.why), []).append(one)
        lines = []
        for (_, _), same in list(alike.items())[:_MOST_LINES]:
            more = f", and {len(same) - 1} like it" if len(same) > 1 else ""
            lines.append(f"{same[0].text}{more}; --shape {visible(same[0].option)} sets it")
        if len(alike) > _MOST_LINES:
            lines.append(f"{len(alike) - _MOST_LINES} more shapes are guessed")
        return lines

    @property
    def text(self) -> str:
        """The guessed shapes in one line, as options take them; all of them where none is."""
        chosen = self.guessed or self.inputs
        return visible(", ".join(one.option for one in chosen))

    def to_json(self) -> list[JSON]:
        """Return it as JSON data."""
        return [one.to_json() for one in self.inputs]


def input_specs(document: Document) -> list[InputSpec]:
    """Return the inputs of a model that have to be fed."""
    main = document.main
    defaults = main.named("initializer")
    found = []
    for name in main.inputs:
        if name in defaults:
            continue
        known = main.value_type(name)
        if known is None:
            found.append(InputSpec(name, "?", None, "other"))
        else:
            found.append(InputSpec(name, known.dtype or "?", known.dims, known.container))
    return found


def specs_for(specs: Sequence[InputSpec], document: Document) -> list[InputSpec]:
    """Return the inputs as a runtime tells of them, with unknown ranks as the model has them.

    A runtime says of an input of unknown rank that it has no dimensions.
    """
    rankless = {spec.name for spec in input_specs(document) if spec.dims is None}
    return [replace(s, dims=None) if s.name in rankless and not s.dims else s for s in specs]


def guess_inputs(
    specs: Sequence[InputSpec],
    document: Document | None = None,
    given: Mapping[str, Shape] | None = None,
    sizes: Mapping[str, int] | None = None,
    *,
    batch: int | None = None,
    empty: bool = True,
) -> Guess:
    """Return the best guess; see :func:`candidate_guesses`."""
    return next(candidate_guesses(specs, document, given, sizes, batch=batch, empty=empty))


def candidate_guesses(
    specs: Sequence[InputSpec],
    document: Document | None = None,
    given: Mapping[str, Shape] | None = None,
    sizes: Mapping[str, int] | None = None,
    *,
    batch: int | None = None,
    empty: bool = True,
) -> Iterator[Guess]:
    """Yield guesses, the best one first, at most :data:`MOST_TRIALS`.

    Args:
        specs: The inputs that are fed.
        document: The model; None for an engine, of which nothing but its inputs is known.
        given: Shapes by input.
        sizes: Sizes of free dimensions by their names.
        batch: Size of the batch, where nothing else tells it.
        empty: Whether 0 is a size, as that of an empty cache is.

    Raises:
        UsageError: A given shape does not fit the model, or two of them disagree.
    """
    given, sizes = dict(given or {}), dict(sizes or {})
    rankless = [s.name for s in specs if s.dims is None and not s.container and s.name not in given]
    seen: set[tuple[tuple[str, Shape], ...]] = set()
    for rank in _RANKS if rankless else (0,):
        ranked = [replace(s, dims=(None,) * rank) if s.name in rankless else s for s in specs]
        search = _Search(ranked, document, given, sizes, batch, empty, frozenset(rankless))
        for assigned in search.assignments():
            guess = search.guess(assigned)
            key = tuple(guess.shapes.items())
            if key not in seen:
                seen.add(key)
                yield guess
            if len(seen) >= MOST_TRIALS:
                return
            if rankless or not search.free:  # of each rank the best
                break


@dataclass
class _Variable:
    """A free size."""

    key: str
    role: Role
    reason: str
    size: int = 0
    given: bool = False


@dataclass
class _Sum:
    """The size of one dimension: a constant and multiples of variables."""

    constant: int = 0
    factors: dict[str, int] = field(default_factory=dict)


class _Search:
    def __init__(
        self,
        specs: Sequence[InputSpec],
        document: Document | None,
        given: dict[str, Shape],
        sizes: dict[str, int],
        batch: int | None,
        empty: bool,
        rankless: frozenset[str] = frozenset(),
    ) -> None:
        self._rankless = rankless
        check_given(specs, given, sizes)
        self._specs = [spec for spec in specs if not spec.container]
        self._others = [spec for spec in specs if spec.container]
        self._document, self._given, self._empty = document, given, empty
        self._orders: dict[Scope, list[Node]] = {}
        self._traits = _traits(specs, document)
        self._variables: dict[str, _Variable] = {}
        self._sums: dict[str, list[_Sum]] = {}
        self._why: dict[tuple[str, int], str] = {}
        for spec in self._specs:
            self._sums[spec.name] = [self._sum(spec, at) for at in range(self._rank(spec))]
        self._link_totals()
        self._take_given(sizes)
        if batch is not None:
            for key, variable in self._variables.items():
                if variable.role.name == BATCH.name:
                    self._set(key, batch)
        self.free = [one for one in self._variables.values() if not one.given]
        """The variables that are to be guessed."""
        self._constants: dict[str, float] = {}
        self._last: tuple[object, Propagation] | None = None
        self._look()

    def _rank(self, spec: InputSpec) -> int:
        if spec.dims is not None:
            return len(spec.dims)
        return len(self._given.get(spec.name, ()))

    # --- variables -------------------------------------------------------------------------------

    def _sum(self, spec: InputSpec, axis: int) -> _Sum:
        dim = None if spec.dims is None else spec.dims[axis]
        if isinstance(dim, int) and is_fixed(dim):
            return _Sum(dim)
        if not isinstance(dim, str) or dim in PLACEHOLDERS:
            return _Sum(0, {self._variable(f"{spec.name}\0{axis}", spec, axis, ""): 1})
        terms = terms_of(dim)
        if terms is None:
            return _Sum(0, {self._variable(dim, spec, axis, dim): 1})
        for symbol in terms[0]:
            self._variable(symbol, spec, axis, symbol)
        return _Sum(terms[1], dict(terms[0]))

    def _variable(self, key: str, spec: InputSpec, axis: int, name: str) -> str:
        role = named_role(name, self._traits) if name else None
        reason = f"{role.name}: its name {name}" if role is not None and name else ""
        if spec.name in self._rankless:
            role = UNKNOWN if len(spec.dims or ()) < 4 else placed_role(spec, axis, self._traits)[0]
            reason = f"{role.name}: trial, as the model does not say how many dimensions it has"
        elif role is None or self._is_vague(role, spec, axis):
            role, why = placed_role(spec, axis, self._traits)
            paired = self._cache_axis(spec, axis)
            if paired is not None:
                role, why = paired
            reason = f"{role.name}: {why}"
        if key not in self._variables:
            self._variables[key] = _Variable(key, role, reason)
        return key

    def _is_vague(self, role: Role, spec: InputSpec, axis: int) -> bool:
        """Return whether the place of a dimension says more than its name does."""
        words = set(words_of(spec.name))
        is_float = spec.dtype.startswith(("float", "bfloat"))
        rank = len(spec.dims or ())
        if role is TOKENS and is_float and rank == 2 and self._traits.is_streaming:
            return True
        if role is TOKENS and is_float and bool(words & {"audio", "waveform", "wav", "speech"}):
            return True
        return role is PAST and rank < 3

    def _cache_axis(self, spec: InputSpec, axis: int) -> tuple[Role, str] | None:
        """Return that an axis is the length of a cache, where an output has it longer."""
        if self._document is None or not set(words_of(spec.name)) & CACHE_WORDS or axis == 0:
            return None
        if {"encoder", "cross"} & set(words_of(spec.name)):
            return CONTEXT, f"the name {spec.name}"
        main = self._document.main
        output = matching_output(spec.name, dict.fromkeys(main.outputs))
        known = main.value_type(output) if output is not None else None
        if known is None or known.dims is None or len(known.dims) != len(spec.dims or ()):
            return None
        return PAST, f"its pair, the output {output}"

    def _link_totals(self) -> None:
        """Make the total length that of past and present."""
        past = next((v for v in self._variables.values() if v.role is PAST), None)
        now = self._present()
        if past is None:
            return
        pair = {past.key: 1} if now.factors.get(past.key) is None else {}
        for spec in self._specs:
            words = set(words_of(spec.name))
            is_mask = "mask" in words and not words & {"encoder", "cross", "head"}
            for axis, old in enumerate(self._sums[spec.name]):
                last = axis == len(self._sums[spec.name]) - 1 and axis > 0
                for key in list(old.factors):
                    variable = self._variables[key]
                    is_own = "\0" in key
                    if variable.role is TOTAL or (is_mask and last and is_own):
                        factor = old.factors.pop(key)
                        old.constant += now.constant * factor
                        for name, n in {**now.factors, **pair}.items():
                            old.factors[name] = old.factors.get(name, 0) + n * factor
                        self._why[spec.name, axis] = "total length: past and present together"
        used = {key for sums in self._sums.values() for one in sums for key in one.factors}
        self._variables = {key: v for key, v in self._variables.items() if key in used}
        if not now.factors:  # one token after the other
            for key, variable in self._variables.items():
                if variable.role is PAST:
                    role = replace(PAST, sizes=(127, 128, 64, 16, 1, 0))
                    self._variables[key] = replace(variable, role=role)

    def _present(self) -> _Sum:
        """Return the length of what is new: that of the first input of tokens."""
        rows = [s for s in self._specs if len(self._sums[s.name]) in (2, 3)]
        rows.sort(key=lambda s: not {"ids", "embeds", "tokens"} & set(words_of(s.name)))
        for spec in rows:
            words = set(words_of(spec.name))
            if words & (CACHE_WORDS | {"mask", "encoder"}):
                continue
            one = self._sums[spec.name][1]
            roles = {self._variables[key].role.name for key in one.factors}
            if not one.factors or roles & {TOKENS.name, TARGET.name}:
                return one
        return _Sum()

    def _take_given(self, sizes: Mapping[str, int]) -> None:
        """Work out the variables that given shapes and sizes tell."""
        for key, size in sizes.items():
            if key in self._variables:
                self._set(key, size)
        equations = [
            (one, size, spec)
            for spec in self._specs
            if spec.name in self._given
            for one, size in zip(self._sums[spec.name], self._given[spec.name], strict=True)
        ]
        for is_last in (False, True):
            left = len(self._variables)
            while left:
                left -= 1
                for one, size, spec in equations:
                    unknown = [key for key in one.factors if not self._variables[key].given]
                    if is_last and len(unknown) > 1:  # what is cached gives way
                        cached = [k for k in unknown if self._variables[k].role.name == PAST.name]
                        for key in (cached or unknown)[:-1] if not cached else cached[:1]:
                            self._set(key, 0 if cached else 1)
                        unknown = [key for key in one.factors if not self._variables[key].given]
                    if len(unknown) == 1:
                        rest = size - self._value(one, without=unknown[0])
                        factor = one.factors[unknown[0]]
                        if factor == 0 or rest % factor or rest // factor < 0:
                            raise self._disagree(spec)
                        self._set(unknown[0], rest // factor)
        for one, size, spec in equations:
            if all(self._variables[key].given for key in one.factors) and (
                self._value(one) != size
            ):
                raise self._disagree(spec)

    def _disagree(self, spec: InputSpec) -> UsageError:
        shape = shape_text(self._given[spec.name])
        return UsageError(
            f"--shape {visible(spec.name)}:{shape} does not agree with the other shapes given",
            hint=f"The model has {spec.text}",
        )

    def _set(self, key: str, size: int) -> None:
        variable = self._variables[key]
        if not variable.given:
            variable.size, variable.given, variable.reason = size, True, _GIVEN

    def _value(self, one: _Sum, without: str = "") -> int:
        parts = (self._variables[key].size * n for key, n in one.factors.items() if key != without)
        return one.constant + sum(parts)

    # --- what the graph demands ------------------------------------------------------------------

    def _run(self, sizes: Mapping[str, Any], count: int) -> Propagation | None:
        """Look at the graph with sizes by variable: arrays of `count` candidates."""
        if self._document is None:
            return None
        key = (tuple(sizes.items()), tuple(self._constants.items())) if count == 1 else None
        if key is not None and self._last is not None and self._last[0] == key:
            return self._last[1]
        inputs = {}
        for spec in self._specs:
            dims: Any = tuple(self._dim(one, sizes, count) for one in self._sums[spec.name])
            if spec.dims is None and spec.name not in self._given:
                dims = None
            constant = self._constants.get(spec.name)
            numbers = None
            if constant is not None and dims in ((), (1,)):
                numbers = (int(constant) if spec.dtype[0] != "f" else constant,)
            inputs[spec.name] = Known(dims, numbers, (spec.name, 0))
        found = Propagation(self._document, inputs, count, self._orders)
        if key is not None:
            self._last = (key, found)
        return found

    def _dim(self, one: _Sum, sizes: Mapping[str, Any], count: int) -> Any:
        if not one.factors:
            return one.constant
        total = np.full(count, one.constant, np.int64)
        for key, factor in one.factors.items():
            total = total + factor * np.asarray(sizes[key], np.int64)
        return total

    def _preferred(self, variable: _Variable) -> list[int]:
        sizes = variable.role.sizes
        if not self._empty:
            sizes = tuple(size for size in sizes if size) or (1,)
        return list(sizes)

    def _look(self) -> None:
        """Choose sizes that the graph takes."""
        for variable in self.free:
            variable.size = self._preferred(variable)[0]
        self._limit()
        self._constants = _named_constants(self._specs)
        first = self._now()
        if first is None:
            return
        compared = {name: found for name, found in first.compared.items() if found}
        if compared and not set(compared) <= set(self._constants):
            self._constants |= _compared_constants(self._specs, compared, self._constants)
            first = self._now()
        if first is None or not first.broken[0]:
            return
        for strict in (True, False):
            for group in self._groups():
                if not self._fit(group, strict=strict):
                    continue
                now = self._now()
                if now is None or not now.broken[0]:
                    return

    def _limit(self) -> None:
        """Take smaller sizes where an input would be too large."""
        for spec in self._specs:
            for _ in range(8):
                values = [self._value(one) for one in self._sums[spec.name]]
                if math.prod(values) <= _MOST_ELEMENTS:
                    break
                keys = {key for one in self._sums[spec.name] for key in one.factors}
                for key in keys:
                    variable = self._variables[key]
                    if not variable.given and variable.size > 1:
                        variable.size //= 2

    def _sizes(self) -> dict[str, int]:
        return {key: variable.size for key, variable in self._variables.items()}

    def _now(self) -> Propagation | None:
        return self._run(self._sizes(), 1)

    def _groups(self) -> list[list[_Variable]]:
        """Return the free variables of one role together, then one by one."""
        by_role: dict[str, list[_Variable]] = {}
        for variable in self.free:
            by_role.setdefault(variable.role.name, []).append(variable)
        together = sorted(by_role.values(), key=lambda group: group[0].role.name == "batch")
        alone = [[one] for one in self.free if len(by_role[one.role.name]) > 1]
        return [*together, *alone, self.free]

    def _fit(self, group: Sequence[_Variable], *, strict: bool) -> bool:
        """Give variables the first size that breaks least; return whether it changed something."""
        options = self._options(group[0])
        sizes: dict[str, Any] = dict(self._sizes())
        for variable in group:
            sizes[variable.key] = np.array(options)
        found = self._run(sizes, len(options))
        if found is None:
            return False
        before = group[0].size
        same = [at for at, size in enumerate(options) if size == before]
        best = int(np.argmin(found.broken))
        if same and found.broken[best] >= found.broken[same[0]]:
            return False
        if strict and found.broken[best]:
            return False
        node = found.culprit(same[0]) if same else None
        for variable in group:
            variable.size = options[best]
            if node is not None:
                variable.reason = f"{variable.role.name}: {_refusal(node, before)}"
        return True

    def _options(self, variable: _Variable) -> list[int]:
        """Return the sizes to look at: the usual ones, then all others, round ones first."""
        usual = self._preferred(variable)
        others = set(range(1, _DENSE + 1)) - {*usual, variable.size}
        ordered = sorted(others, key=lambda n: (-min(n & -n, 32), n))
        return list(dict.fromkeys([variable.size, *usual, *ordered]))

    # --- candidates ------------------------------------------------------------------------------

    def assignments(self) -> Iterator[dict[str, int]]:
        """Yield sizes by variable, the best ones first."""
        best = self._sizes()
        yield dict(best)
        others = list(self._alternatives(best))
        broken = [self._broken(one) for one in others]
        for at in sorted(range(len(others)), key=lambda at: (broken[at] > 0, at)):
            yield others[at]

    def _broken(self, assigned: Mapping[str, int]) -> int:
        found = self._run(assigned, 1)
        return 0 if found is None else int(found.broken[0])

    def _alternatives(self, best: Mapping[str, int]) -> Iterator[dict[str, int]]:
        by_role: dict[str, list[_Variable]] = {}
        for variable in self.free:
            by_role.setdefault(variable.role.name, []).append(variable)

        def with_sizes(**sizes: int) -> dict[str, int]:
            changed = dict(best)
            for name, size in sizes.items():
                for variable in by_role.get(name.replace("_", " "), ()):
                    changed[variable.key] = size
            return changed

        if PAST.name in by_role:
            yield with_sizes(past_length=127, sequence_length=1, target_sequence_length=1)
            yield with_sizes(past_length=64, sequence_length=64)
        rest = [group for name, group in by_role.items() if name != "batch"]
        for step in (1, 2, 3):
            for group in rest:
                sizes = self._preferred(group[0])
                if step < len(sizes):
                    yield dict(best) | {one.key: sizes[step] for one in group}
        for size in (32, 16, 1, 512, 64):
            yield dict(best) | {one.key: size for group in rest for one in group}
        yield dict.fromkeys(best, 1) | {k: v for k, v in best.items() if self._variables[k].given}

    def guess(self, assigned: Mapping[str, int]) -> Guess:
        """Return the guess with these sizes."""
        found = self._run(assigned, 1)
        old = self._sizes()
        shapes: dict[str, Shape] = {}
        reasons: dict[str, tuple[str, ...]] = {}
        for spec in self._specs:
            if spec.dims is None:
                shapes[spec.name] = self._given.get(spec.name, ())
                reasons[spec.name] = (_GIVEN,) * len(shapes[spec.name])
                continue
            sums = self._sums[spec.name]
            shapes[spec.name] = tuple(
                max(0, one.constant + sum(assigned[key] * n for key, n in one.factors.items()))
                for one in sums
            )
            reasons[spec.name] = tuple(
                self._reason(spec, at, one, assigned, old) for at, one in enumerate(sums)
            )
        around = Surroundings(shapes, self._roles(), self._past(assigned), self._constants)
        inputs = tuple(
            InputGuess(
                spec.name,
                spec.dtype,
                shapes[spec.name],
                reasons[spec.name],
                fill_for(spec, around, found),
            )
            for spec in self._specs
        )
        if self._others:  # for the message that no values can be made for them
            inputs = (
                *inputs,
                *(InputGuess(s.name, s.dtype, (), (), Fill("none", "")) for s in self._others),
            )
        return Guess(inputs)

    def _past(self, assigned: Mapping[str, int]) -> int:
        """Return how many tokens are in the cache."""
        past = next((v.key for v in self._variables.values() if v.role.name == PAST.name), None)
        return 0 if past is None else assigned[past]

    def _roles(self) -> dict[str, list[str]]:
        """Return the names of the roles of each input's dimensions, empty for fixed ones."""
        return {
            name: [
                next((self._variables[key].role.name for key in one.factors), "") for one in sums
            ]
            for name, sums in self._sums.items()
        }

    def _reason(
        self,
        spec: InputSpec,
        axis: int,
        one: _Sum,
        assigned: Mapping[str, int],
        old: Mapping[str, int],
    ) -> str:
        if not one.factors:
            return ""
        if spec.name in self._given or all(self._variables[key].given for key in one.factors):
            return _GIVEN
        if (spec.name, axis) in self._why:
            return self._why[spec.name, axis]
        if len(one.factors) > 1:
            return f"sum: its name {spec.dims[axis] if spec.dims is not None else ''}"
        key = next(iter(one.factors))
        variable = self._variables[key]
        if assigned[key] != old[key]:
            return f"{variable.role.name}: trial, after {old[key]}"
        return variable.reason


def _refusal(node: Node, size: int) -> str:
    label = clip(visible(node.name or next(iter(node.outputs), "")), 40, keep="middle")
    return f"{visible(node.op_type)} {label}, which cannot do with {size}"


def _traits(specs: Sequence[InputSpec], document: Document | None) -> ModelTraits:
    words = {word for spec in specs for word in words_of(spec.name)}
    if document is None:
        return ModelTraits(frozenset(words), frozenset(), frozenset())
    outputs = {word for name in document.main.outputs for word in words_of(name)}
    operators = {"NonMaxSuppression"} if document.main.nodes_of_type("NonMaxSuppression") else set()
    return ModelTraits(frozenset(words), frozenset(outputs), frozenset(operators))


def _named_constants(specs: Iterable[InputSpec]) -> dict[str, float]:
    """Return the values of scalars whose names tell them."""
    found = {}
    for spec in specs:
        words = set(words_of(spec.name))
        if spec.dims not in ((), (1,)):
            continue
        joined = "".join(words_of(spec.name))
        if words & {"sr", "fs"} or joined in ("samplerate", "samplingrate"):
            found[spec.name] = 16000.0
    return found


def _compared_constants(
    specs: Iterable[InputSpec], compared: Mapping[str, list[Any]], named: Mapping[str, float]
) -> dict[str, float]:
    """Return, for scalars that are compared with constants, the first of these."""
    found = {}
    for spec in specs:
        listed = [
            float(one) for one in compared.get(spec.name, ()) if isinstance(one, (int, float))
        ]
        if spec.dims in ((), (1,)) and listed and spec.dtype != "bool":
            wanted = named.get(spec.name)
            found[spec.name] = wanted if wanted in listed and wanted is not None else listed[0]
    return found
