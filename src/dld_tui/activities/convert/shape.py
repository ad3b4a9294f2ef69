"""Dimensions made dynamic or fixed, with the constants that hold their old size."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import partial

from dld_tui.core.conversion.request import ConversionRequest, Verification
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import UsageError
from dld_tui.core.events import Event, Progress
from dld_tui.core.params import param


@dataclass(frozen=True, kw_only=True)
class Request(Verification, ConversionRequest):
    """Which model, where to, and what its dimensions become."""

    dim: tuple[str, ...] = param(
        label="Dimensions",
        help=(
            "NAME=VALUE or INPUT:AXIS=VALUE. A name makes the dimension dynamic, a number fixes "
            "it; batch means the first axis."
        ),
        spellings=("--dim",),
        metavar="NAME=VALUE",
    )

    def require(self) -> None:
        """Refuse to change nothing.

        Raises:
            UsageError: No dimension is given.
        """
        super().require()
        if not self.dim:
            raise UsageError("a dimension is needed in --dim: batch=N or INPUT:AXIS=4")


def run(request: Request) -> Iterator[Event]:
    """Change the dimensions.

    Raises:
        UsageError: A dimension does not exist, or none is given.
        InputError: The model or an input cannot be read, or does not match.
        ActivityError: A node or a weight prevents it, or ONNX Runtime cannot use the result.
        SaveError: The result cannot be written.
    """
    from dld_tui.backends.conversion.resizing import resized
    from dld_tui.backends.conversion.soundness import write_sound
    from dld_tui.core.conversion.copies import open_model
    from dld_tui.core.conversion.result import ResizedModel

    request.require()
    yield Progress(0, None, stage="Opening the model")
    with contextlib.closing(open_model(request.model)) as document, contextlib.ExitStack() as stack:
        copy = yield from resized(request, request.dim, document, request.output)
        stack.callback(copy.document.close)
        result = partial(
            ResizedModel, values=copy.verified.values, latency_ms=copy.verified.latency_ms,
            dimensions=copy.dimensions, changed=copy.changed,
        )  # fmt: skip
        yield from write_sound(request, document, copy.document, request.output, result, copy.notes)
