"""Running a model with one guess of its inputs after the other, until it takes one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from dld_tui.core import fmt
from dld_tui.core.errors import ActivityError
from dld_tui.core.inputs.guess import Guess

T = TypeVar("T")


def first_that_runs(
    guesses: Iterable[Guess], seed: int, run: Callable[[Mapping[str, Any]], T]
) -> tuple[Guess, T]:
    """Return the first guess that a model can be run with, and what the run returned.

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
        shapes = "; ".join(guess.text for guess in tried)
        first.message = (
            f"it cannot be run with any of the {fmt.plural(len(tried), 'shape')} guessed for its"
            f" inputs: {first.message}"
        )
        options = " ".join(f"--shape {option}" for option in best.options[:4])
        first.hint = f"Tried {shapes}. Give the shapes, as {options}"
    raise first
