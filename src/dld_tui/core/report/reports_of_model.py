"""Which reports are of a model, and what its nodes took in them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dld_tui.core.errors import DldError
from dld_tui.core.report.groups import priced
from dld_tui.core.report.records import Layer

if TYPE_CHECKING:
    from dld_tui.core.document import Document, Node

_MOST = 20
"""Reports that are asked whether they are of a model."""


class Profile(NamedTuple):
    """What is kept of a report that is not open."""

    layers: Sequence[Layer]
    title: str
    """The name of its file: foreign text."""


def reports_of(model: str, files: Iterable[str]) -> Iterator[str]:
    """Yield those of some reports that are of a model, in their order; not all of many are read."""
    target = os.path.realpath(model)
    for _, file in zip(range(_MOST), files, strict=False):
        with contextlib.suppress(DldError, OSError):
            if _is_of(file, target):
                yield file


def _is_of(report: str, model: str) -> bool:
    """Tell whether a report is of a model; reads two rows of it."""
    from dld_tui.core.report import rows, schema

    with contextlib.closing(schema.open_database(Path(report))) as connection:
        facts = rows.read_facts(
            lambda sql, values=(): connection.execute(sql, values).fetchall(), "report", "key"
        )
    found = facts.get("model")
    path = found.get("path") if isinstance(found, dict) else None
    return isinstance(path, str) and os.path.realpath(path) == model


def newest_profile(model: Path, others: Iterable[str] = ()) -> Profile | None:
    """Return the newest profile of a model as it is now: of those beside it, and of others.

    Args:
        model: Its file. What was measured before that was changed does not count.
        others: Report files elsewhere; those that are gone or damaged are passed over.
    """
    from dld_tui.core.report.report import Report

    found = {str(file) for file in model.absolute().parent.glob("*.dldprof")} | {*others}
    known: dict[str, float] = {}
    for file in found:
        with contextlib.suppress(OSError, ValueError):
            known[file] = os.stat(file).st_mtime
    for file in reports_of(str(model), sorted(known, key=known.__getitem__, reverse=True)):
        with contextlib.suppress(DldError, OSError), Report.open(file) as report:
            if report.model_problem() is None and report.layers:
                return Profile(report.layers, os.path.basename(file))
    return None


def times_by_node(layers: Sequence[Layer], document: Document) -> dict[Node, float]:
    """Return the milliseconds of nodes: each has its share of the layers that it is in."""
    times: dict[Node, float] = {}
    for layer in priced(layers):  # not what it takes to launch them on a GPU
        for link in layer.nodes:
            node = document.find_node(link.scope, link.node)
            if node is not None and layer.time_ms is not None:
                times[node] = times.get(node, 0.0) + layer.time_ms * link.share
    return times
