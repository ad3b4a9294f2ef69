"""Real engine builds with TensorRT-RTX, where it is installed: no GPU is needed."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

from dld_tui.activities.build import Request, run
from dld_tui.backends.tensorrt.library import trt
from dld_tui.core.codec import encode
from dld_tui.core.events import Event, Finished
from dld_tui.core.types import JSON

HAS_RTX = importlib.util.find_spec("tensorrt_rtx") is not None
needs_rtx = [
    pytest.mark.rtx,
    pytest.mark.skipif(not HAS_RTX, reason="TensorRT-RTX is not installed: pip install .[rtx]"),
    # Of its bindings, about what will go in a later version.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
"""For ``pytestmark``."""


@contextlib.contextmanager
def own_library() -> Iterator[None]:
    """Leave the library that the process uses as it was."""
    before = trt.module
    try:
        yield
    finally:
        trt.module = before


def build(model: Path, engine: Path, **settings: object) -> tuple[dict[str, JSON], list[Event]]:
    """Build with TensorRT-RTX in this process; return the result and the events before it."""
    request = Request(model, engine, "tensorrt_rtx", **settings)  # type: ignore[arg-type]
    with own_library():
        *events, last = run(request)
    assert isinstance(last, Finished)
    return encode(last.result), events
