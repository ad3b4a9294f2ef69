"""What an input was fed with, as results and reports have it."""

from __future__ import annotations

from dld_tui.core.dataclass import dataclass

INPUTS = "inputs"
"""The property of a report with :attr:`.guess.Guess.recorded`; here, since that needs onnx."""


@dataclass(frozen=True)
class GuessedInput:
    """What an input was fed with, as results and reports have it. All texts are foreign."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    reasons: tuple[str, ...]
    """Why each dimension has its size."""
    guessed: bool
    why: str
    values: str
    values_reason: str
