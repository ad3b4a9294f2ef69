"""A model written down in another way: constants, weights, what is unused, texts, order."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from dld_tui.core.conversion.request import EditRequest
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import UsageError
from dld_tui.core.events import Event, Progress
from dld_tui.core.model.document.transactions import Edit
from dld_tui.core.params import OneOf, param, settings_of
from dld_tui.core.types import JSON

_CONSTANTS = OneOf(
    "Constants",
    "Turn Constant nodes into initializers, or initializers of the model file into Constant nodes.",
    otherwise="keep",
    first="keep",
)


def _flag(name: str, label: str, text: str, one_of: OneOf | None = None) -> Any:
    """Declare a pass."""
    return param(False, label=label, help=text, spellings=(f"--{name}",), one_of=one_of)


@dataclass(frozen=True, kw_only=True)
class Request(EditRequest):
    """Which passes."""

    constants_to_initializers: bool = _flag(
        "constants-to-initializers", "as initializers",
        "Turn Constant nodes into initializers.", _CONSTANTS,
    )  # fmt: skip
    initializers_to_constants: bool = _flag(
        "initializers-to-constants", "as nodes",
        "Turn initializers of the model file into Constant nodes.", _CONSTANTS,
    )  # fmt: skip
    share_weights: bool = _flag(
        "share-weights", "Share weights", "Keep one copy of equal initializers."
    )
    weights_off_inputs: bool = _flag(
        "weights-off-inputs", "Weights off inputs",
        "Remove initializers from the graph inputs, so that runtimes can fold them.",
    )  # fmt: skip
    remove_unused: bool = _flag(
        "remove-unused", "Remove unused",
        "Remove unused nodes, initializers, functions, types and opset imports.",
    )  # fmt: skip
    clear_docs: bool = _flag(
        "clear-docs", "Clear documentation", "Remove all documentation strings."
    )
    clear_shapes: bool = _flag(
        "clear-shapes", "Clear shapes", "Remove the declared types of tensors inside graphs."
    )
    sort: bool = _flag("sort", "Sort nodes", "Put nodes behind those whose outputs they use.")

    def passes(self) -> list[str]:
        """Return the names of the passes."""
        shared = {setting.name for setting in settings_of(EditRequest)}
        names = [setting.name for setting in settings_of(Request) if setting.name not in shared]
        return [name.replace("_", "-") for name in names if getattr(self, name)]

    def require(self) -> None:
        """Refuse to do nothing.

        Raises:
            UsageError: No pass is chosen.
        """
        super().require()
        if not self.passes():
            raise UsageError("choose at least one pass", hint="Such as --remove-unused")

    def as_edit(self, keep: Callable[[Path], JSON]) -> Edit:
        """Return the edit that does the same."""
        from dld_tui.core.model.edits import cleaning

        return cleaning.clean(passes=[*self.passes()])


def run(request: Request) -> Iterator[Event]:
    """Make the passes.

    Raises:
        UsageError: No pass is chosen.
        InputError: The model or an input cannot be read.
        EditError: Two passes undo each other, or the nodes have a cycle.
        ActivityError: The result is not sound.
        SaveError: The result cannot be written.
    """
    from dld_tui.backends.conversion.soundness import write_sound
    from dld_tui.backends.conversion.verification import same_arithmetic, verified
    from dld_tui.core.conversion.copies import copy_of, open_model
    from dld_tui.core.conversion.result import CleanedModel
    from dld_tui.core.model.document.transactions import Transaction
    from dld_tui.core.model.edits.cleaning import cleaned

    request.require()
    yield Progress(0, None, stage="Opening the model")
    with contextlib.closing(open_model(request.model)) as document, contextlib.ExitStack() as stack:
        result = stack.enter_context(contextlib.closing(copy_of(document)))
        yield Progress(0, None, stage="Cleaning")
        counts = cleaned(result, Transaction.of(request.as_edit(str)), request.passes())
        verdict, notes = yield from verified(
            # Weights that are no inputs are folded, and sums are then in another order.
            request, document, result, request.output, same_arithmetic(document),
            unchanged="" if any(counts.values()) else "nothing was to be changed",
        )  # fmt: skip
        make = partial(
            CleanedModel, values=verdict.values, latency_ms=verdict.latency_ms, passes=counts
        )
        yield from write_sound(request, document, result, request.output, make, notes)
