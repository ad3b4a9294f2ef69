"""A guess of a model's inputs: shapes that it can be run with, and plausible values.

What the user gives counts. The rest comes from names and places (:mod:`.roles`), from what the
graph demands (:mod:`.propagation`), and, where a model is run anyway, from trials of the
candidates one after the other (:mod:`.search`). Every dimension and all values
say why they are so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from dld_tui.core import fmt
from dld_tui.core.errors import ActivityError
from dld_tui.core.inputs.fills import Fill, random_inputs
from dld_tui.core.inputs.shapes import AnyArray, InputSpec, Shape
from dld_tui.core.report.measured_facts import INPUTS as INPUTS
from dld_tui.core.report.measured_facts import GuessedInput
from dld_tui.core.text import shortened, visible

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document

GIVEN = "given"
"""The reason of a size that the user gave."""
FOLLOWS = "follows from what is given"
"""The reason of a size that follows from a shape given for another input."""
_MOST_LINES = 6
_NAMED = "its name "


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
    free: tuple[str, ...] = ()
    """The variables of its guessed sizes: inputs that share one change together."""

    @property
    def is_guessed(self) -> bool:
        """Whether a dimension is neither fixed by the model nor given."""
        return any(reason not in ("", GIVEN, FOLLOWS) for reason in self.reasons)

    @property
    def follows(self) -> bool:
        """Whether its free dimensions follow from shapes given for other inputs."""
        return not self.is_guessed and FOLLOWS in self.reasons

    @property
    def option(self) -> str:
        """The shape as the option ``--shape`` takes it. Foreign text."""
        return f"{self.name}:{shape_text(self.shape)}"

    @property
    def why(self) -> str:
        """The reasons of the guessed dimensions, each once. For people."""
        by_size: dict[tuple[str, int], list[str]] = {}
        for size, reason in zip(self.shape, self.reasons, strict=True):
            if reason not in ("", GIVEN, FOLLOWS):
                role, _, why = reason.partition(": ")
                whys = by_size.setdefault((role, size), [])
                whys += [why] if why not in whys else []
        parts = []
        for (role, size), whys in by_size.items():
            names = [why.removeprefix(_NAMED) for why in whys]
            is_named = len(whys) > 1 and all(why.startswith(_NAMED) for why in whys)
            why = f"the names {', '.join(names)}" if is_named else ", ".join(whys)
            parts.append(f"{role} {size} by {why}")
        return visible(", ".join(parts))

    @property
    def text(self) -> str:
        """The input for people, as ``x → 1x3x640x640 (height and width 640 by the name x)``."""
        named = shortened(self.name)
        how = f"guessed: {self.why}" if self.is_guessed else FOLLOWS if self.follows else GIVEN
        is_told = self.is_guessed or self.follows or GIVEN in self.reasons
        return f"{named} → {shape_text(self.shape)}{f' ({how})' if is_told else ''}"

    @property
    def facts(self) -> GuessedInput:
        """The input as results and reports have it."""
        return GuessedInput(
            self.name, self.dtype, tuple(self.shape), self.reasons, self.is_guessed, self.why,
            self.fill.text, self.fill.reason,
        )  # fmt: skip


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
        specs = [InputSpec(item.name, item.dtype, item.shape) for item in self.inputs]
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
    def facts(self) -> list[GuessedInput]:
        """The inputs as results and reports have them."""
        return [item.facts for item in self.inputs]


def input_specs(document: Document) -> list[InputSpec]:
    """Return the inputs of a model that have to be fed."""
    main = document.main
    defaults = main.named("initializer")
    specs = []
    for name in main.inputs:
        if name in defaults:
            continue
        known = main.value_type(name)
        if known is None:
            specs.append(InputSpec(name, "?", None, "other"))
        else:
            specs.append(InputSpec(name, known.dtype or "?", known.dims, known.container))
    return specs


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
    more = f" and {len(options) - _MOST_SHAPES} more" if len(options) > _MOST_SHAPES else ""
    return visible(", ".join(options[:_MOST_SHAPES])) + more


def first_that_runs(
    guesses: Iterable[Guess], seed: int, run: Callable[[Mapping[str, Any]], T]
) -> tuple[Guess, T]:
    """Return the first guess that a model can be run with, and the result of the run.

    Args:
        guesses: The best one first.
        seed: Of the values.
        run: Runs the model with inputs by name.

    Raises:
        ActivityError: It cannot be run with any of them: why not with the first, and which shapes
            were tried.
    """
    tried: list[Guess] = []
    first: ActivityError | None = None
    for guess in guesses:
        values = guess.values(seed)
        try:
            return guess, run(values)
        except ActivityError as error:
            tried.append(guess)
            first = first or error
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
    raise first
