"""A guess of a model's inputs: shapes that it can be run with, and plausible values.

What the user gives counts. The rest comes from names and places (:mod:`.roles`), from what the
graph demands (:mod:`.propagation`), and, where a model is run anyway, from trials of the
candidates, best first. Every dimension and all values state their source.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import ActivityError, TimeLimitError
from dld_tui.core.model.inputs.fills import Fill, Surroundings, fill_for, random_inputs
from dld_tui.core.model.inputs.free_sizes import (
    FIXED,
    FOLLOWS,
    GIVEN,
    FreeSizes,
    Reason,
    SizeSource,
    Sum,
    Variable,
    reason_by_name,
    reason_by_role,
)
from dld_tui.core.model.inputs.guessed_input import GuessedInput
from dld_tui.core.model.inputs.propagation import Propagation
from dld_tui.core.model.inputs.roles import (
    BATCH,
    PAST,
    words_of,
)
from dld_tui.core.model.inputs.shape_texts import Shape, shape_text
from dld_tui.core.model.inputs.shapes import AnyArray, InputSpec
from dld_tui.core.model.shapes.value import Value
from dld_tui.core.process.child import says_no_memory
from dld_tui.core.text import clip, shortened, visible

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document
    from dld_tui.core.model.document.node import Node
    from dld_tui.core.model.document.scope import Scope

_MOST_LINES = 6


@dataclass(frozen=True)
class InputGuess:
    """What one input is fed with."""

    name: str
    """Untrusted text."""
    dtype: str
    shape: Shape
    reasons: tuple[Reason, ...]
    """Why each dimension has its size."""
    fill: Fill
    """Its values."""
    free: tuple[str, ...] = ()
    """The variables of its guessed sizes: inputs that share one change together."""
    container: str = ""
    """What holds the tensors, such as ``sequence``; empty for a tensor."""

    @property
    def is_guessed(self) -> bool:
        """Whether a dimension is neither fixed by the model nor given."""
        return any(reason.is_guess for reason in self.reasons)

    @property
    def is_count(self) -> bool:
        """Whether it is a single guessed integer that may be how many there are of something."""
        is_one = "int" in self.dtype and math.prod(self.shape) == 1 and not self.container
        return is_one and self.fill.kind == "constant" and self.fill.low > 0

    def at_most(self, most: int) -> InputGuess:
        """Return a guess in which a number that counts something is not larger."""
        if not self.is_count or self.fill.low <= most:
            return self
        reason = f"{self.fill.reason}, found by trial"
        return replace(self, fill=replace(self.fill, low=float(most), reason=reason))

    @property
    def follows(self) -> bool:
        """Whether its free dimensions follow from shapes given for other inputs."""
        return not self.is_guessed and FOLLOWS in self.reasons

    @property
    def option(self) -> str:
        """The shape as the option ``--shape`` takes it. Untrusted text."""
        return f"{self.name}:{shape_text(self.shape)}"

    @property
    def why(self) -> str:
        """The reasons of the guessed dimensions, each once. For people."""
        by_size: dict[tuple[str, int], list[Reason]] = {}
        for size, reason in zip(self.shape, self.reasons, strict=True):
            if reason.is_guess:
                reasons = by_size.setdefault((reason.role, size), [])
                reasons += [reason] if reason not in reasons else []
        parts = []
        for (role, size), reasons in by_size.items():
            is_named = all(reason.source is SizeSource.NAME for reason in reasons)
            if is_named and len(reasons) > 1:
                why = f"the names {', '.join(reason.why for reason in reasons)}"
            else:
                why = ", ".join(reason.basis for reason in reasons)
            parts.append(f"{role} {size} by {why}")
        return visible(", ".join(parts))

    @property
    def text(self) -> str:
        """The input for people, as ``x → 1x3x640x640 (height and width 640 by the name x)``."""
        named = shortened(self.name)
        how = (
            f"guessed: {self.why}"
            if self.is_guessed
            else FOLLOWS.text
            if self.follows
            else GIVEN.text
        )
        is_told = self.is_guessed or self.follows or GIVEN in self.reasons
        return f"{named} → {shape_text(self.shape)}{f' ({how})' if is_told else ''}"

    @property
    def recorded(self) -> GuessedInput:
        """The input as results and reports have it."""
        return GuessedInput(
            self.name, self.dtype, tuple(self.shape),
            tuple(reason.text for reason in self.reasons), self.is_guessed, self.why,
            self.fill.text, self.fill.reason,
        )  # fmt: skip


@dataclass(frozen=True)
class Guess:
    """What all inputs are fed with."""

    inputs: tuple[InputGuess, ...]

    @property
    def shapes(self) -> dict[str, Shape]:
        """The shapes by input."""
        return {item.name: item.shape for item in self.inputs}

    @property
    def guessed(self) -> list[InputGuess]:
        """The inputs with a dimension that was guessed."""
        return [item for item in self.inputs if item.is_guessed]

    def bound_to(self, item: InputGuess) -> list[InputGuess]:
        """Return the other inputs that change with the sizes of one."""
        return [
            other for other in self.inputs if other is not item and {*other.free} & {*item.free}
        ]

    def with_fewer(self) -> Iterator[Guess]:
        """Yield guesses with smaller numbers where a number alone says how many, down to 0.

        Trip counts, k of TopK and lengths are such numbers: what suits them depends on others.
        """
        counts = [item.fill.low for item in self.inputs if item.is_count]
        most = int(max(counts, default=0))
        while most:
            most //= 2
            yield Guess(tuple(item.at_most(most) for item in self.inputs))

    @property
    def options(self) -> list[str]:
        """The shapes to give, as ``--shape`` takes them, so that no size is left to guess."""
        options, covered = [], set[str]()
        for item in sorted(self.guessed, key=lambda item: len(item.free)):  # sums of others last
            if not covered.issuperset(item.free) or not item.free:
                options.append(item.option)
            covered.update(item.free)
        return options

    def values(self, seed: int) -> dict[str, AnyArray]:
        """Return an array for every input.

        Raises:
            ActivityError: An input is not a tensor, or of a type that cannot be made.
        """
        specs = [
            InputSpec(item.name, item.dtype, item.shape, item.container) for item in self.inputs
        ]
        return random_inputs(
            specs, self.shapes, seed, {item.name: item.fill for item in self.inputs}
        )

    @property
    def remarks(self) -> list[str]:
        """What was guessed and how to change it, in lines for people; empty where nothing was."""
        guessed = self.guessed
        alike: dict[tuple[Shape, str], list[InputGuess]] = {}
        for item in guessed:
            alike.setdefault((item.shape, item.why), []).append(item)
        settable, lines = set(self.options), []
        for same in [*alike.values()][:_MOST_LINES]:
            more = f", and {len(same) - 1} like it" if len(same) > 1 else ""
            option = same[0].option
            how = f"; --shape {visible(option)} sets it" if option in settable else ""
            lines.append(f"{same[0].text}{more}{how}")
        if len(alike) > _MOST_LINES:
            lines.append(f"guessed, too: {fmt.plural(len(alike) - _MOST_LINES, 'more shape')}")
        return lines

    @property
    def text(self) -> str:
        """The guessed shapes in one line, as options take them; all of them where none is."""
        chosen = self.guessed or self.inputs
        return visible(", ".join(item.option for item in chosen))

    @property
    def recorded(self) -> list[GuessedInput]:
        """The inputs as results and reports have them."""
        return [item.recorded for item in self.inputs]


def input_specs(document: Document) -> list[InputSpec]:
    """Return the inputs of a model that have to be fed."""
    main = document.main
    specs = []
    for name in main.inputs:
        if main.is_weight(name):
            continue
        known = main.value_type(name)
        if known is None:
            specs.append(InputSpec(name, "?", None, "other"))
        else:
            specs.append(InputSpec(name, known.dtype or "?", known.dims, known.container))
    return specs


def _without_guess(spec: InputSpec) -> InputGuess:
    """Return an input that is no tensor: an optional is fed with a tensor, others with nothing."""
    shape = tuple(dim if isinstance(dim, int) else 1 for dim in spec.dims or ())
    container = "" if spec.container == "optional" else spec.container
    reasons = (FIXED,) * len(shape)
    return InputGuess(spec.name, spec.dtype, shape, reasons, Fill("none", ""), (), container)


def specs_for(specs: Sequence[InputSpec], document: Document) -> list[InputSpec]:
    """Return the inputs as a runtime reports them, with unknown ranks from the model.

    A runtime reports an input of unknown rank as one without dimensions.
    """
    rankless = {spec.name for spec in input_specs(document) if spec.dims is None}
    return [replace(s, dims=None) if s.name in rankless and not s.dims else s for s in specs]


T = TypeVar("T")
_MOST_TRIED, _MOST_SHAPES = 4, 3


def _in_short(guess: Guess) -> str:
    """Return the shapes that tell all others, but no more than fit a line."""
    options = guess.options or [guess.text]
    return fmt.listed(options, _MOST_SHAPES, visible)


def first_that_runs(
    guesses: Iterable[Guess], seed: int, run: Callable[[Mapping[str, Any]], T]
) -> tuple[Guess, T]:
    """Return the first guess that a model can be run with, and the result of the run.

    Where none of the shapes can be run, smaller counts are tried with the best of them.

    Args:
        guesses: The best one first.
        seed: Of the values.
        run: Runs the model with inputs by name.

    Raises:
        ActivityError: It cannot be run with any of them: why not with the first, and which shapes
            were tried.
        TimeLimitError: The time is up.
    """
    tried: list[Guess] = []
    first: ActivityError | None = None
    lacking: set[str | None] = set()
    for guess in _then_fewer(guesses):
        values = guess.values(seed)
        try:
            return guess, run(values)
        except TimeLimitError:  # says nothing about the guess
            raise
        except ActivityError as error:
            tried.append(guess)
            first = first or error
            if says_no_memory(f"{error.message} {error.details}"):
                if error.where in lacking:  # that node needs it whatever the inputs are
                    break
                lacking.add(error.where)
    assert first is not None
    best = tried[0]
    if best.guessed:
        shapes = "; ".join(map(_in_short, tried[:_MOST_TRIED]))
        if len(tried) > _MOST_TRIED:
            shapes += f"; and {len(tried) - _MOST_TRIED} more"
        first.message = (
            f"it cannot be run with any of the {fmt.plural(len(tried), 'shape')} guessed for its"
            f" inputs: {first.message}"
        )
        options = " ".join(f"--shape {option}" for option in best.options[:4])
        first.hint = f"Tried {shapes}. Give the shapes, as {options}, or values with --inputs DIR"
    elif best.inputs:
        first.hint = f"{f'{first.hint}. ' if first.hint else ''}Give the values with --inputs DIR"
    raise first


def _then_fewer(guesses: Iterable[Guess]) -> Iterator[Guess]:
    best: Guess | None = None
    for guess in guesses:
        best = best or guess
        yield guess
    if best is not None:
        yield from best.with_fewer()


MOST_TRIALS = 10
"""Candidates at most."""
_DENSE, _LONGEST = 1024, 1 << 16
"""Every size up to this is looked at where the usual ones do not fit, and then where no such does:
audio is long."""
_MOST_ELEMENTS = 1 << 26
_RANKS = (2, 4, 3, 1, 0)
"""What an input is tried with of which the model does not say how many dimensions it has."""


def guess_inputs(
    specs: Sequence[InputSpec],
    document: Document | None = None,
    given: Mapping[str, Shape] | None = None,
    sizes: Mapping[str, int] | None = None,
    *,
    batch: int | None = None,
    empty: bool = True,
    past: int | None = None,
) -> Guess:
    """Return the best guess; see :func:`candidate_guesses`."""
    return next(
        candidate_guesses(specs, document, given, sizes, batch=batch, empty=empty, past=past)
    )


def candidate_guesses(
    specs: Sequence[InputSpec],
    document: Document | None = None,
    given: Mapping[str, Shape] | None = None,
    sizes: Mapping[str, int] | None = None,
    *,
    batch: int | None = None,
    empty: bool = True,
    past: int | None = None,
) -> Iterator[Guess]:
    """Yield guesses, the best one first, at most :data:`MOST_TRIALS`.

    Args:
        specs: The inputs that are fed.
        document: The model; None for an engine, of which nothing but its inputs is known.
        given: Shapes by input.
        sizes: Sizes of free dimensions by their names.
        batch: Size of the batch, where nothing else determines it.
        empty: Whether 0 is a size, as that of an empty cache is.
        past: How many tokens are in a cache of a fixed size; by default none.

    Raises:
        UsageError: A given shape does not fit the model, or two of them disagree.
    """
    given, sizes = dict(given or {}), dict(sizes or {})
    rankless = [s.name for s in specs if s.dims is None and not s.container and s.name not in given]
    seen: set[tuple[tuple[str, Shape], ...]] = set()
    for rank in _RANKS if rankless else (0,):
        ranked = [replace(s, dims=(None,) * rank) if s.name in rankless else s for s in specs]
        search = _Search(ranked, document, given, sizes, batch, empty, frozenset(rankless), past)
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


class _Search:
    """Looks for sizes that the graph takes, and makes guesses of them."""

    def __init__(
        self,
        specs: Sequence[InputSpec],
        document: Document | None,
        given: dict[str, Shape],
        sizes: dict[str, int],
        batch: int | None,
        empty: bool,
        rankless: frozenset[str] = frozenset(),
        past: int | None = None,
    ) -> None:
        self._filled = past or 0
        self._others = [spec for spec in specs if spec.container]
        self._document, self._given, self._empty = document, given, empty
        self._orders: dict[Scope, list[Node]] = {}
        self._constants: dict[str, float] = {}
        self._last: tuple[object, Propagation] | None = None

        def take(links: bool) -> None:
            self._lengths = FreeSizes(
                specs, document, given, sizes, batch, rankless, past, links=links
            )
            self._specs, self._variables = self._lengths.specs, self._lengths.variables
            self._sums, self.free = self._lengths.sums, self._lengths.free

        take(links=True)
        if self._lengths.links and not self._fits():
            take(links=False)  # such as a mask over the whole length of the cache
        self._look()

    def _run(self, sizes: Mapping[str, Any], count: int) -> Propagation | None:
        """Look at the graph with sizes by variable: arrays of `count` candidates."""
        if self._document is None:
            return None
        key = (tuple(sizes.items()), tuple(self._constants.items())) if count == 1 else None
        if key is not None and self._last is not None and self._last[0] == key:
            return self._last[1]
        inputs = {}
        for spec in self._specs:
            dims: Any = tuple(self._dim(total, sizes, count) for total in self._sums[spec.name])
            if spec.dims is None and spec.name not in self._given:
                dims = None
            constant = self._constants.get(spec.name)
            numbers = None
            if constant is not None and dims in ((), (1,)):
                numbers = (int(constant) if spec.dtype[0] != "f" else constant,)
            inputs[spec.name] = Value(dims, numbers, (spec.name, 0), self._last_place(spec, dims))
        propagation = Propagation(self._document, inputs, count, self._orders)
        if key is not None:
            self._last = (key, propagation)
        return propagation

    def _last_place(self, spec: InputSpec, dims: Any) -> Any:
        """Return the greatest number in an input of positions, which count from the past on."""
        is_positions = {"position", "positions", "pos"} & set(words_of(spec.name))
        if not is_positions or not dims or spec.dtype not in ("int64", "int32"):
            return None
        return dims[-1] - 1

    def _dim(self, total_sum: Sum, sizes: Mapping[str, Any], count: int) -> Any:
        if not total_sum.factors:
            return total_sum.constant
        total = np.full(count, total_sum.constant, np.int64)
        for key, factor in total_sum.factors.items():
            total = total + factor * np.asarray(sizes[key], np.int64)
        return total

    def _preferred(self, variable: Variable) -> list[int]:
        sizes = variable.role.sizes
        if not self._empty:
            sizes = tuple(size for size in sizes if size) or (1,)
        return list(sizes)

    def _fits(self) -> bool:
        """Return whether the graph takes the usual sizes."""
        self._begin()
        first = self._now()
        return first is None or not first.demands.broken[0]

    def _begin(self) -> None:
        for variable in self.free:
            variable.size = self._preferred(variable)[0]
        self._limit()
        self._constants = _named_constants(self._specs)

    def _look(self) -> None:
        """Choose sizes that the graph takes."""
        self._begin()
        first = self._now()
        if first is None:
            return
        compared = {name: constants for name, constants in first.compared.items() if constants}
        if compared and not set(compared) <= set(self._constants):
            self._constants |= _compared_constants(self._specs, compared, self._constants)
            first = self._now()
        if first is None or not first.demands.broken[0]:
            return
        # One element stretched over a table is allowed, and rarely what a model is made for: such
        # sizes are taken only where no others are found.
        before = {variable.key: (variable.size, variable.reason) for variable in self.free}
        for shrunk in (int(first.demands.shrunk[0]), None):
            for variable in self.free:
                variable.size, variable.reason = before[variable.key]
            if self._descend(shrunk):
                return

    def _descend(self, shrunk: int | None) -> bool:
        """Change the sizes of one role, or of one variable, after the other until all nodes do.

        Args:
            shrunk: How many nodes may stretch a single element; None for any number.
        """
        rounds = (
            (True, _DENSE, False), (True, _LONGEST, False),
            (True, _DENSE, True), (False, _DENSE, True), (True, _LONGEST, True),
        )  # fmt: skip
        for strict, most, batches in rounds:
            for group in self._groups():
                # A long signal is likelier than a large batch.
                if not batches and any(variable.role.name == BATCH.name for variable in group):
                    continue
                if not self._fit(group, most, shrunk, strict=strict):
                    continue
                now = self._now()
                if now is None or _is_good(now, shrunk)[0]:
                    return True
        return False

    def _limit(self) -> None:
        """Take smaller sizes where an input would be too large."""
        for spec in self._specs:
            for _ in range(8):
                values = [self._lengths.value(total) for total in self._sums[spec.name]]
                if math.prod(values) <= _MOST_ELEMENTS:
                    break
                keys = {key for total in self._sums[spec.name] for key in total.factors}
                for key in keys:
                    variable = self._variables[key]
                    if not variable.given and variable.size > 1:
                        variable.size //= 2

    def _sizes(self) -> dict[str, int]:
        return {key: variable.size for key, variable in self._variables.items()}

    def _now(self) -> Propagation | None:
        return self._run(self._sizes(), 1)

    def _groups(self) -> list[list[Variable]]:
        """Return the free variables of one role together, then one by one, then all batches."""
        by_role: dict[str, list[Variable]] = {}
        for variable in self.free:
            by_role.setdefault(variable.role.name, []).append(variable)
        together = sorted(by_role.values(), key=lambda group: group[0].role.name == "batch")
        alone = [[single] for single in self.free if len(by_role[single.role.name]) > 1]
        last = [together.pop()] if together and together[-1][0].role.name == "batch" else []
        return [group for group in (*together, *alone, *last, self.free) if group]

    def _fit(
        self, group: Sequence[Variable], most: int, shrunk: int | None, *, strict: bool
    ) -> bool:
        """Give variables the first size that breaks least; return whether it changed something."""
        options = self._options(group[0], most)
        sizes: dict[str, Any] = dict(self._sizes())
        for variable in group:
            sizes[variable.key] = np.array(options)
        trial, now = self._run(sizes, len(options)), self._now()
        if trial is None or now is None:
            return False
        cost = trial.demands.cost_with(shrunk)
        best = int(np.argmin(cost))
        if cost[best] >= now.demands.cost_with(shrunk)[0]:
            return False
        if strict and not _is_good(trial, shrunk)[best]:
            return False
        node = now.demands.first_refusing(0)
        for variable in group:
            if node is not None and variable.size != options[best]:
                variable.reason = reason_by_role(variable.role.name, _refusal(node, variable.size))
            variable.size = options[best]
        return True

    def _options(self, variable: Variable, most: int) -> list[int]:
        """Return the sizes to look at: the usual ones, then all others, round ones first."""
        usual = self._preferred(variable)
        others = set(range(1, most + 1)) - {*usual, variable.size}
        ordered = sorted(others, key=lambda n: (-min(n & -n, 32), n))
        return list(dict.fromkeys([variable.size, *usual, *ordered]))

    def assignments(self) -> Iterator[dict[str, int]]:
        """Yield sizes by variable, the best ones first."""
        best = self._sizes()
        yield dict(best)
        others = list(self._alternatives(best))
        broken = [self._broken(other) for other in others]
        for at in sorted(range(len(others)), key=lambda at: (broken[at] > 0, at)):
            yield others[at]

    def _broken(self, assigned: Mapping[str, int]) -> int:
        propagation = self._run(assigned, 1)
        return 0 if propagation is None else int(propagation.demands.broken[0])

    def _alternatives(self, best: Mapping[str, int]) -> Iterator[dict[str, int]]:
        by_role: dict[str, list[Variable]] = {}
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
                    yield dict(best) | {free_variable.key: sizes[step] for free_variable in group}
        for size in (32, 16, 1, 512, 64):
            yield dict(best) | {
                free_variable.key: size for group in rest for free_variable in group
            }
        yield dict.fromkeys(best, 1) | {k: v for k, v in best.items() if self._variables[k].given}

    def guess(self, assigned: Mapping[str, int]) -> Guess:
        """Return the guess with these sizes."""
        propagation = self._run(assigned, 1)
        old = self._sizes()
        shapes: dict[str, Shape] = {}
        reasons: dict[str, tuple[Reason, ...]] = {}
        for spec in self._specs:
            if spec.dims is None:
                shapes[spec.name] = self._given.get(spec.name, ())
                reasons[spec.name] = (GIVEN,) * len(shapes[spec.name])
                continue
            sums = self._sums[spec.name]
            shapes[spec.name] = tuple(
                max(0, total.constant + sum(assigned[key] * n for key, n in total.factors.items()))
                for total in sums
            )
            reasons[spec.name] = tuple(
                self._reason(spec, at, total_at, assigned, old) for at, total_at in enumerate(sums)
            )
        caches = {name: pair.present for name, pair in self._lengths.caches.items()}
        around = Surroundings(
            shapes,
            self._roles(),
            self._past(assigned),
            self._constants,
            caches,
            self._lengths.states,
            self._lengths.count(assigned),
        )
        inputs = tuple(
            InputGuess(
                spec.name,
                spec.dtype,
                shapes[spec.name],
                reasons[spec.name],
                fill_for(spec, around, propagation),
                self._keys(spec),
            )
            for spec in self._specs
        )
        return Guess((*inputs, *map(_without_guess, self._others)))

    def _keys(self, spec: InputSpec) -> tuple[str, ...]:
        """Return the variables of an input that are guessed."""
        keys = dict.fromkeys(
            key for total in self._sums.get(spec.name, ()) for key in total.factors
        )
        return tuple(key for key in keys if not self._variables[key].given)

    def _past(self, assigned: Mapping[str, int]) -> int:
        """Return how many tokens are in the cache."""
        past = next((v.key for v in self._variables.values() if v.role.name == PAST.name), None)
        if past is not None:
            return assigned[past]
        fixed = [
            total.constant
            for name, pair in self._lengths.caches.items()
            if not (pair.window or pair.in_place)
            for total in self._sums[name][pair.axis :][:1]
        ]
        return self._filled or max(fixed, default=0)

    def _roles(self) -> dict[str, list[str]]:
        """Return the names of the roles of each input's dimensions, empty for fixed ones."""
        return {
            name: [
                next((self._variables[key].role.name for key in total.factors), "")
                for total in sums
            ]
            for name, sums in self._sums.items()
        }

    def _reason(
        self,
        spec: InputSpec,
        axis: int,
        total: Sum,
        assigned: Mapping[str, int],
        old: Mapping[str, int],
    ) -> Reason:
        if not total.factors:
            return FIXED
        if spec.name in self._given:
            return GIVEN
        if all(self._variables[key].given for key in total.factors):
            return FOLLOWS
        if (spec.name, axis) in self._lengths.why:
            return self._lengths.why[spec.name, axis]
        if len(total.factors) > 1:
            return reason_by_name("sum", str(spec.dims[axis]) if spec.dims is not None else "")
        key = next(iter(total.factors))
        variable = self._variables[key]
        if assigned[key] != old[key]:
            return reason_by_role(variable.role.name, f"trial, after {old[key]}")
        return variable.reason


def _is_good(propagation: Propagation, shrunk: int | None) -> npt.NDArray[np.bool_]:
    """Return which candidates break nothing and stretch no more than `shrunk` nodes do."""
    demands = propagation.demands
    is_whole = demands.broken == 0
    return np.asarray(is_whole if shrunk is None else is_whole & (demands.shrunk <= shrunk))


def _refusal(node: Node, size: int) -> str:
    label = clip(visible(node.name or next(iter(node.outputs), "")), 40, keep="middle")
    return f"{visible(node.op_type)} {label}, which cannot do with {size}"


def _named_constants(specs: Iterable[InputSpec]) -> dict[str, float]:
    """Return the values of scalars whose names tell them."""
    constants = {}
    for spec in specs:
        words = set(words_of(spec.name))
        if spec.dims not in ((), (1,)):
            continue
        joined = "".join(words_of(spec.name))
        if words & {"sr", "fs"} or joined in ("samplerate", "samplingrate"):
            constants[spec.name] = 16000.0
    return constants


def _compared_constants(
    specs: Iterable[InputSpec], compared: Mapping[str, list[Any]], named: Mapping[str, float]
) -> dict[str, float]:
    """Return, for scalars that are compared with constants, the first of these."""
    constants = {}
    for spec in specs:
        listed = [
            float(number)
            for number in compared.get(spec.name, ())
            if isinstance(number, (int, float))
        ]
        if spec.dims in ((), (1,)) and listed and spec.dtype != "bool":
            wanted = named.get(spec.name)
            constants[spec.name] = wanted if wanted in listed and wanted is not None else listed[0]
    return constants
