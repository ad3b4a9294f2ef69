"""Chosen nodes replaced by initializers with what they compute."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from dld_tui.core.conversion.request import EditRequest
from dld_tui.core.dataclass import dataclass
from dld_tui.core.events import Event, Progress
from dld_tui.core.model.document.transactions import Edit
from dld_tui.core.params import param
from dld_tui.core.types import JSON


@dataclass(frozen=True, kw_only=True)
class Request(EditRequest):
    """Which nodes."""

    node: tuple[str, ...] = param(
        label="Nodes",
        help="Fold the node with this name, or that makes a tensor of this name.",
        spellings=("--node",),
        metavar="NAME",
    )
    scope: tuple[str, ...] = param(
        (),
        label="Scope",
        help="Look in this subgraph or function; repeat for nested ones.",
        spellings=("--scope",),
        metavar="STEP",
    )

    def as_edit(self, keep: Callable[[Path], JSON]) -> Edit:
        """Return the edit that does the same."""
        from dld_tui.core.model.edits.folding import fold_nodes

        return fold_nodes(nodes=[[[*self.scope], name] for name in self.node])


def run(request: Request) -> Iterator[Event]:
    """Fold the nodes.

    Raises:
        InputError: The model or an input cannot be read.
        EditError: There is no such node, or it does not compute from constants alone.
        ActivityError: The result is not sound.
        SaveError: The result cannot be written.
    """
    from dld_tui.backends.conversion.soundness import write_sound
    from dld_tui.backends.conversion.verification import same_arithmetic, verified
    from dld_tui.core.conversion.copies import copy_of, open_model
    from dld_tui.core.conversion.result import FoldedModel

    yield Progress(0, None, stage="Opening the model")
    with contextlib.closing(open_model(request.model)) as document, contextlib.ExitStack() as stack:
        result = stack.enter_context(contextlib.closing(copy_of(document)))
        yield Progress(0, None, stage="Folding")
        transaction = result.apply(request.as_edit(str))
        verdict, notes = yield from verified(
            request, document, result, request.output, same_arithmetic(document)
        )
        make = partial(
            FoldedModel, values=verdict.values, latency_ms=verdict.latency_ms,
            folded=transaction.title,
        )  # fmt: skip
        yield from write_sound(request, document, result, request.output, make, notes)
