"""Reading a report: what a screen, a command or a script asks of it.

::

    with open_report("resnet50-cpu.dldprof") as report:
        report.latency            # LatencySummary of the latency loop, or None
        report.layers             # tuple[Layer], in order of first execution, with statistics
        report.passes             # tuple[ReportPass]: the profiled ones
        report.median_pass        # index of the pass to draw
        report.pass_events(index) # list[PassEvent], read from the file when asked
        report.layer_history(i)   # [(pass, self milliseconds)] of one layer
        report.groups("type")     # list[Group], largest first
        report.to_json(by=None)   # the document of `dld report --json`

Opening reads one row a layer; samples stay in the file. A report may be read while it is written,
and from several threads. :func:`open_report` opens what other profilers wrote, too;
:meth:`Report.open` only report files.
"""

from __future__ import annotations

import importlib
import os
from pathlib import Path

from dld_tui.core.errors import InputError
from dld_tui.core.files.added_readers import reader_of
from dld_tui.core.files.recognise import HEAD, FileKind, recognise
from dld_tui.core.files.source import Source
from dld_tui.core.report.reader import Report
from dld_tui.core.types import CancelCheck, ProgressCallback

__all__ = ["Report", "open_report"]

_SQLITE = b"SQLite format 3"

_READERS = {
    FileKind.ORT_PROFILE: "import_ort:open_ort_profile",
    FileKind.ENGINE_PROFILE: "trtexec_files:report_from_trtexec_profile",
    FileKind.ENGINE_TIMES: "trtexec_files:report_from_trtexec_times",
    FileKind.TRACE: "import_trace:report_from_trace",
}
"""Who reads what another program wrote; imported when there is such a file."""

_OF_ENGINES = frozenset(
    {
        FileKind.ENGINE_LAYERS,
        FileKind.ENGINE_METADATA,
        FileKind.ENGINE_ARCHIVE,
        FileKind.TRTEXEC_LOG,
    }
)


def open_report(
    path: str | os.PathLike[str],
    progress: ProgressCallback | None = None,
    cancelled: CancelCheck | None = None,
) -> Report:
    """Open a report file, or what another profiler wrote as a report.

    Args:
        path: A ``.dldprof`` file; a profile of ONNX Runtime; layer times or inference times of
            trtexec; or a Chrome trace. Recognised by content.
        progress: Called with (bytes read, bytes in all) of what another profiler wrote.
        cancelled: Asked about once a megabyte.

    Raises:
        InputError: The file cannot be read, or is something else.
        CancelledError: `cancelled` said so.
    """
    target = Path(path)
    source = Source.open(target)
    try:
        head = source.read(0, min(HEAD, source.size))
    finally:
        source.close()
    if head.startswith(_SQLITE):
        return Report.open(target)
    kind = recognise(target)
    if kind is FileKind.OTHER_PROFILE and (other := reader_of(head)) is not None:
        return other.read(target, progress, cancelled)
    reader = _READERS.get(kind)
    if reader is None:
        hint = f"Run: dld plan {target}" if kind in _OF_ENGINES else None
        raise InputError(f"is {kind.title}, not a profile report", where=str(target), hint=hint)
    module, _, function = reader.partition(":")
    found = getattr(importlib.import_module(f"dld_tui.core.report.{module}"), function)(
        target, progress, cancelled
    )
    assert isinstance(found, Report)
    return found
