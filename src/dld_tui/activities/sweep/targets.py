"""A sweep on several targets at once: one result, with the target as an axis.

Each target has a file of its own until all are done, so that the same command goes on with those
that were lost.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

from dld_tui.activities.registry import Joining
from dld_tui.activities.sweep.job import Request, asked_settings
from dld_tui.core.errors import DldError
from dld_tui.core.files.writer import write_text
from dld_tui.core.report.sweep import Sweep, joined, load_sweep, sweep_text

_BY_PATH = "calibration"
"""The setting whose path is another one on another machine."""


def _known(request: Request, path: Path) -> Sweep | None:
    from dld_tui.core.conversion.storage import content_digest
    from dld_tui.core.llm.folder import find_decoder, open_document

    try:
        sweep = load_sweep(path)
        asked = asked_settings(request)
        if {**sweep.settings, _BY_PATH: None} != {**asked, _BY_PATH: None}:
            return None
        model = find_decoder(request.model)[0] if request.is_of_decoder else request.model
        with contextlib.closing(open_document(model)) as document:
            return sweep if content_digest(document) == sweep.digest else None
    except DldError:  # it is measured anew, and a bad model is said then
        return None


def _join(results: Mapping[str, Sweep], path: Path) -> Sweep:
    sweep = joined(results, str(path.absolute()))
    write_text(path, sweep_text(sweep))
    return sweep


JOINING = Joining(_known, _join)
