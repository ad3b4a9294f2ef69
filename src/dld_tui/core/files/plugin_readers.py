"""Readers that other packages add: entry points of the group ``dld_tui.readers``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from dld_tui.core.settings.plugins import plugins
from dld_tui.core.types import CancelCheck, ProgressCallback

R = TypeVar("R", covariant=True)


@dataclass(frozen=True)
class ReportReader(Generic[R]):
    """Reads what another profiler wrote as a report."""

    title: str
    """What such a file is, with its article: ``a profile of NAME``."""
    matches: Callable[[bytes], bool]
    """Tells by the first 64 KiB of a file whether it is one."""
    read: Callable[[Path, ProgressCallback | None, CancelCheck | None], R]
    """See :func:`dld_tui.core.report.report.temporary_report`."""


def reader_of(head: bytes) -> ReportReader[object] | None:
    """Return the reader of another package that knows a file by its beginning."""
    for plugin in plugins("readers", ReportReader):
        try:
            if plugin.value is not None and plugin.value.matches(head):
                return plugin.value
        # The seam to code of others, which may raise anything: it does not know the file then.
        except Exception:  # noqa: BLE001
            continue
    return None
