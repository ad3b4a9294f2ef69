"""Calls of onnx without a fork for each: the process of the tests is large, and a fork copies it.

Tests of what onnx may do to a process, or of what it takes too long for, are marked
``real_forks``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dld_tui.core.model.operators import native
from dld_tui.core.process.child import LimitError, Limits, RefusedError, says_no_memory

if TYPE_CHECKING:
    import pytest


def apply(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let onnx infer and inline in this process."""
    monkeypatch.setattr(native, "compute", compute)


def compute(function: Callable[[], bytes], limits: Limits) -> bytes:
    """Do what :func:`dld_tui.core.process.child.compute` does, in this process."""
    try:
        return function()
    except Exception as error:
        text = str(error)
        if isinstance(error, MemoryError) or says_no_memory(text):
            raise LimitError("memory", limits.memory) from error
        raise RefusedError(text) from error
