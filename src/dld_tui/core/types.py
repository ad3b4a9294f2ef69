"""Names of operator sets.

Type names shared by several rooms.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

JSON: TypeAlias = "None | bool | int | float | str | list[JSON] | dict[str, JSON]"
"""A value that ``json`` can write and read back."""

ProgressCallback: TypeAlias = Callable[[int, int], None]
"""Called with (done, total), in bytes or items; total is 0 when unknown."""

CancelCheck: TypeAlias = Callable[[], bool]
"""Returns True when the work should stop; the worker then raises CancelledError."""


def plain_domain(domain: str) -> str:
    """Return a domain with ``ai.onnx``, which is another name of the default one, as ``""``."""
    return "" if domain == "ai.onnx" else domain
