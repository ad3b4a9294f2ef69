"""The reports of a model: the newest one, and what it says of its nodes."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dld_tui.core.errors import DldError
from dld_tui.core.report import schema
from dld_tui.core.report.queries import (
    read_properties,
)
from dld_tui.core.report.records import (
    Layer,
)
from dld_tui.core.report.report import Report

if TYPE_CHECKING:
    from dld_tui.core.model.document import Document, Node

_MOST_REPORTS = 20
"""The most reports that are examined for a model."""


class Profile(NamedTuple):
    """The layers of a report that is not open."""

    layers: Sequence[Layer]
    title: str
    """The name of its file: untrusted text."""


def reports_of(model: str, files: Iterable[str]) -> Iterator[str]:
    """Yield those of some reports that are of a model, in their order; not all of many are read."""
    target = os.path.realpath(model)
    for _, file in zip(range(_MOST_REPORTS), files, strict=False):
        with contextlib.suppress(DldError, OSError):
            if model_of(file) == target:
                yield file


def model_of(report: str) -> str | None:
    """Return the path of the model of a report; reads two rows of it.

    Raises:
        DldError: It is no report.
    """
    with contextlib.closing(schema.open_database(Path(report))) as connection:
        properties = read_properties(
            lambda sql, values=(): connection.execute(sql, values).fetchall(), "report", "key"
        )
    stored = properties.get("model")
    path = stored.get("path") if isinstance(stored, dict) else None
    return os.path.realpath(path) if isinstance(path, str) else None


@contextlib.contextmanager
def newest_report(model: Path, others: Iterable[str] = ()) -> Iterator[Report | None]:
    """Have the newest report of the unchanged model open: from its folder, or from `others`.

    Args:
        model: The model file. Reports of earlier versions of the file are ignored.
        others: Report files elsewhere; missing or damaged ones are skipped.
    """
    reports = {str(file) for file in model.absolute().parent.glob("*.dldprof")} | {*others}
    known: dict[str, float] = {}
    for file in reports:
        with contextlib.suppress(OSError, ValueError):
            known[file] = os.stat(file).st_mtime
    for file in reports_of(str(model), sorted(known, key=known.__getitem__, reverse=True)):
        with contextlib.ExitStack() as stack:
            try:
                report = stack.enter_context(Report.open(file))
                is_usable = report.model_problem() is None and report.layers
            except (DldError, OSError):
                continue
            if is_usable:
                yield report
                return
    yield None


def newest_profile(model: Path, others: Iterable[str] = ()) -> Profile | None:
    """Return the newest profile of the unchanged model, as :func:`newest_report` finds it."""
    with newest_report(model, others) as report:
        if report is None:
            return None
        return Profile(report.layers, os.path.basename(str(report.path)))


def times_by_node(layers: Sequence[Layer], document: Document) -> dict[Node, float]:
    """Return the milliseconds of nodes: the sum of their shares of what layers cost."""
    times: dict[Node, float] = {}
    for layer in layers:
        for link in layer.nodes:
            node = document.find_node(link.scope, link.node)
            if node is not None and layer.cost_ms is not None:
                times[node] = times.get(node, 0.0) + layer.cost_ms * link.share
    return times
