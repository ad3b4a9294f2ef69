"""A report made of another program's file: temporary, and gone when it is closed."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path

from dld_tui.core.files.blobs import spill_folder
from dld_tui.core.report.reader import Report
from dld_tui.core.report.schema import saving
from dld_tui.core.report.store import ReportWriter


def temporary_report(
    path: Path,
    fill: Callable[[ReportWriter], None],
    *,
    network: str,
    backend: str,
    amend: Callable[[sqlite3.Connection], None] | None = None,
) -> Report:
    """Return a file as a report.

    Args:
        path: The file; the report says that it is this one.
        fill: Called once to add layers, passes and facts.
        network: The model's name for people.
        backend: What measured.
        amend: Called with the finished database, for figures that `path` has and passes have not.

    Raises:
        SaveError: There is no room in the folder for temporary files.
    """
    with tempfile.TemporaryDirectory(prefix="dld-", dir=spill_folder()) as folder:
        with ReportWriter.create(
            Path(folder, "profile.dldprof"),
            network=network,
            backend=backend,
            execution_provider="",
            device="",
            model={},
            settings={},
            environment={},
        ) as writer:
            writer.set_fact("created", "")  # when it was measured is not known, unless `fill` does
            fill(writer)
        if amend is not None:
            with saving(writer.path):
                database = sqlite3.connect(writer.path)
                try:
                    amend(database)
                    database.commit()
                finally:
                    database.close()
        # The open file outlives its name: nothing is left behind, however the process ends.
        report = Report.open(writer.path)
    report.path = path
    return report
