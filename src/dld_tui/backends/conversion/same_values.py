"""Whether a model that was converted computes what the original does, by running both.

ONNX Runtime runs them on a CPU with the same inputs, as they are written (no optimization): once
with the sizes that are guessed, and once with two of a batch where that is free.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dld_tui.backends.onnxruntime.session import Session, SessionSettings
from dld_tui.core.document.document import Document
from dld_tui.core.document.serialise import skeleton_bytes
from dld_tui.core.errors import ActivityError, DldError
from dld_tui.core.files.view import discard_view, external_view
from dld_tui.core.inputs.guess import Guess, first_that_runs, specs_for
from dld_tui.core.inputs.search import candidate_guesses, guess_inputs
from dld_tui.core.inputs.shapes import parse_shapes
from dld_tui.core.text import visible

_SETTINGS = SessionSettings(
    optimization_level="disabled", quiet=True, config={"session.disable_prepacking": "1"}
)
NEAR = {"float16": 5e-3, "float32": 1e-4, "float64": 1e-7}
"""How far elements may be off, as a share of the largest one: the order of sums changes."""


class SameValues:
    """What a model computes, to be compared with what others compute.

    Args:
        original: The model.
        shapes: Of inputs, ``NAME:1x3x224x224``; what is open is guessed.
        title: The file that errors name.

    Raises:
        UsageError: A shape does not fit.
        ActivityError: The model cannot be run.
    """

    def __init__(self, original: Document, shapes: Sequence[str], title: Path) -> None:
        self._title = title
        session = session_of(original, title)
        if any(spec.container for spec in session.inputs):
            raise ActivityError("an input is not a tensor", where=str(title))
        specs = specs_for(session.inputs, original)
        given = parse_shapes(shapes, [spec.name for spec in specs])

        def run(feeds: Mapping[str, Any]) -> list[Any]:
            return session.run(session.feed(dict(feeds)))

        self.guess, first = first_that_runs(candidate_guesses(specs, original, given), 0, run)
        """The inputs that it was run with."""
        self._least = NEAR["float16"] if _is_half(original) else 0.0
        self._names = [visible(name) for name in original.main.outputs]
        self._runs: list[tuple[Mapping[str, Any], list[Any]]] = [(self.guess.values(0), first)]
        if not given:
            self._add_batch(specs, original, run)
        again = run(self._runs[0][0])
        self._random = {
            index
            for index, pair in enumerate(zip(first, again, strict=True))
            if _differ(*pair, self._least)
        }
        """Outputs that differ from run to run: nothing can be said of them."""

    def _add_batch(self, specs: Any, original: Document, run: Any) -> None:
        try:
            guess: Guess = guess_inputs(specs, original, None, batch=2)
            values = guess.values(1)
            if any(np.shape(values[name]) != np.shape(self._runs[0][0][name]) for name in values):
                self._runs.append((values, run(values)))
        except DldError:
            pass  # it takes one only

    @property
    def sizes(self) -> int:
        """With how many sizes of the inputs it was run."""
        return len(self._runs)

    def problem(self, result: Document) -> str | None:
        """Return what is wrong with a model that was made of the original, None when nothing is."""
        try:
            session = session_of(result, self._title)
            for feeds, wanted in self._runs:
                names = {spec.name for spec in session.inputs}
                given = {name: value for name, value in feeds.items() if name in names}
                made = session.run(session.feed(given))
                if len(made) != len(wanted):
                    return f"it has {len(made)} outputs and not {len(wanted)}"
                for index, pair in enumerate(zip(wanted, made, strict=True)):
                    if index not in self._random and (why := _differ(*pair, self._least)):
                        return f"output {self._names[index]}: {why}"
        except DldError as error:
            return error.message
        return None


def session_of(document: Document, title: Path) -> Session:
    """Load a document as it is written, without optimization; errors name `title`."""
    folder = document.path.parent if document.path is not None else None
    view = external_view(
        skeleton_bytes(document), document.blobs, folder, external=document.external, values=True
    )
    try:
        return Session(view, _SETTINGS, title)
    finally:
        discard_view(view)


def _is_half(document: Document) -> bool:
    """Return whether a model computes in 16 bits, whatever the type of its outputs."""
    return any(
        tensor.dtype in ("float16", "bfloat16")
        for scope in document.scopes()
        for tensor in scope.initializers
    )


def _differ(wanted: Any, made: Any, least: float) -> str | None:
    """Return how two outputs differ, None when they are equal but for rounding."""
    if isinstance(wanted, dict) and isinstance(made, dict):
        keys = [*wanted]
        if keys != [*made]:
            return "its keys differ"
        return _differ([*wanted.values()], [*made.values()], least)
    if isinstance(wanted, list | tuple) and isinstance(made, list | tuple):
        if len(wanted) != len(made):
            return f"{len(made)} elements and not {len(wanted)}"
        pairs = zip(wanted, made, strict=True)
        return next((why for one, other in pairs if (why := _differ(one, other, least))), None)
    one, other = np.asarray(wanted), np.asarray(made)
    if one.dtype != other.dtype or one.shape != other.shape:
        return f"{other.dtype}{list(other.shape)} and not {one.dtype}{list(one.shape)}"
    if one.dtype.kind not in "fc":
        return None if np.array_equal(one, other) else "its values differ"
    share = max(NEAR.get(one.dtype.name, 1e-4), least)
    finite = np.isfinite(one)
    if not np.array_equal(finite, np.isfinite(other)) or not np.array_equal(
        one[~finite], other[~finite], equal_nan=True
    ):
        return "what is not finite differs"
    if not finite.any():
        return None
    largest = float(np.abs(one[finite]).max())
    error = float(np.abs(one[finite] - other[finite]).max())
    return None if error <= share * largest + 1e-6 else f"it is off by {error:.3g} of {largest:.3g}"
