"""What a model is fed with: the sets of a folder, or values that are made for a guess."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dld_tui.core.errors import UsageError
from dld_tui.core.inputs.folder import load_input_sets
from dld_tui.core.inputs.guess import Guess
from dld_tui.core.inputs.search import candidate_guesses
from dld_tui.core.inputs.shapes import InputSpec, parse_shapes
from dld_tui.core.inputs.trials import first_that_runs

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document


@dataclass(frozen=True)
class Feeds:
    """Sets of inputs by name, and where they come from."""

    sets: list[Mapping[str, Any]]
    guess: Guess | None = None
    """None where the data are those of a folder."""

    @property
    def remarks(self) -> list[str]:
        """What was guessed, and how to change it; empty where nothing was."""
        return [] if self.guess is None else self.guess.remarks


def input_feeds(
    specs: Sequence[InputSpec],
    folder: Path | None,
    shapes: Sequence[str],
    seeds: Iterable[int],
    document: Document | None = None,
    run: Callable[[Mapping[str, Any]], object] | None = None,
) -> Feeds:
    """Return sets of inputs.

    Args:
        specs: What the model takes.
        folder: Where the data are; None for values that are made.
        shapes: Shapes of the inputs, as ``NAME:1x3``; others are guessed.
        seeds: One for each set that is made.
        document: The model, where there is one: what it demands of its inputs counts.
        run: Runs the model with a set. Where sizes are guessed, the first guess counts that it
            takes; without, the best one.

    Raises:
        UsageError: Shapes are given for data of a folder, or do not fit.
        InputError: The data cannot be read, or do not fit the inputs.
        ActivityError: No data can be made for an input, or no guess can be run.
    """
    if folder is not None:
        if shapes:
            raise UsageError("--shape does not go with --inputs, whose data have shapes")
        return Feeds([one.values for one in load_input_sets(folder, specs)])
    guesses = candidate_guesses(
        specs, document, parse_shapes(shapes, [spec.name for spec in specs])
    )
    guess = next(guesses)
    wanted = [*seeds]
    if run is not None and guess.guessed and wanted:
        guess, _ = first_that_runs(_again(guess, guesses), wanted[0], run)
    return Feeds([guess.values(seed) for seed in wanted], guess)


def _again(first: Guess, others: Iterable[Guess]) -> Iterable[Guess]:
    yield first
    yield from others
