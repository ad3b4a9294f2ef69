"""A package of somebody else that adds one of everything: copied beside its metadata, see below."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from dld_tui.activities.registry import Activity, Command
from dld_tui.core.events import Event, Finished, Progress
from dld_tui.core.params import param

ENTRY_POINTS = """\
[dld_tui.activities]
count_bytes = toy_package:ACTIVITY
torn = toy_package:NO_SUCH_NAME
"""


def install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put this module into a folder as a package of its own, on the path of modules."""
    info = folder / "toy_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    shutil.copy(__file__, folder / "toy_package.py")
    monkeypatch.syspath_prepend(folder)


@dataclass(frozen=True)
class Request:
    """Which file, and in what unit."""

    model: Path = param(label="Model", help="The model.", kind="file", positional=True)
    unit: int = param(1, label="Unit", help="Bytes that count as one.", minimum=1)


def run(request: Request) -> Iterator[Event]:
    """Count."""
    yield Progress(0, None, stage="Counting")
    yield Finished({"units": request.model.stat().st_size // request.unit})


def shown(result: Mapping[str, object], values: Mapping[str, object]) -> str:
    """Return what is said when it has run."""
    return f"{result['units']} units of {values['unit']}"


ACTIVITY = Activity(
    "count_bytes",
    "Count bytes",
    "Count the bytes of a model.",
    Request,
    run,
    Command(("run", "count-bytes"), "Count the bytes."),
    result_view=shown,
    synonyms=("weigh",),
    offered=True,
)
