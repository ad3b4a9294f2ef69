"""Profile reports that notebooks show."""

from __future__ import annotations

import os
from html import escape

from dld_tui.core.reading.first_lines import headline, text_lines
from dld_tui.core.report import report as core


class Report(core.Report):
    """Layers, passes, latencies and the environment of a run; ``with`` closes the file."""

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Report:
        """Open a report, or what another profiler wrote.

        Raises:
            InputError: The file cannot be read, or is of another kind.
        """
        report = core.open_report(path)
        report.__class__ = Report
        assert isinstance(report, Report)
        return report

    def __repr__(self) -> str:
        return f"Report({self.path.name!r}): {headline(self)}"

    def _repr_html_(self) -> str:
        """Return the first lines."""
        lines = "\n".join(text_lines(self))
        return f"<pre>{escape(lines)}</pre>"
