"""A package of somebody else that adds one of everything: copied beside its metadata, see below."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import click
import pytest

from dld_tui.activities.registry import Activity, Command
from dld_tui.core.checks.checker import NodeCheck
from dld_tui.core.command_line import CommandInfo
from dld_tui.core.events import Event, Finished, Progress
from dld_tui.core.files.recognise import ReportReader
from dld_tui.core.model.document.node import Node
from dld_tui.core.params import Param, Setting, param
from dld_tui.core.report.records import Layer, PassState
from dld_tui.core.report.report import Report, temporary_report
from dld_tui.core.report.store import ReportWriter
from dld_tui.core.settings.custom_tools import Tool
from dld_tui.core.types import CancelCheck, ProgressCallback
from dld_tui.widgets.charts.report_charts import Chart

ENTRY_POINTS = """\
[dld_tui.commands]
toy = toy_package:COMMAND
[dld_tui.activities]
count_bytes = toy_package:ACTIVITY
[dld_tui.checks]
no_relu = toy_package:CHECK
[dld_tui.readers]
lines = toy_package:READER
[dld_tui.charts]
longest = toy_package:CHART
[dld_tui.tools]
copy = toy_package:TOOL
[dld_tui.settings]
toy_unit = toy_package:SETTING
"""


def install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put this module into a folder as a package of its own, on the path of modules."""
    info = folder / "toy_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    shutil.copy(__file__, folder / "toy_package.py")
    monkeypatch.syspath_prepend(folder)


COMMAND = CommandInfo("toy", "Say hello.", "toy_package:greet", example="--to World")


@click.command("toy")
@click.option("--to", default="you")
def greet(to: str) -> None:
    """Say hello."""
    click.echo(f"Hello {to}")


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


def look(node: Node) -> Iterator[str]:
    """Yield what is wrong with a node."""
    if node.op_type == "Relu":
        yield "no Relu, please"


CHECK = NodeCheck("toy:no-relu", "warning", look)


def read(path: Path, progress: ProgressCallback | None, cancelled: CancelCheck | None) -> Report:
    """Return lines such as ``conv 1.5`` as a report of one pass, in milliseconds."""
    lines = [line.split() for line in path.read_text().splitlines()[1:]]

    def fill(writer: ReportWriter) -> None:
        took = [1000 * float(ms) for _, ms in lines]
        writer.add_pass(0, 0.0, sum(took), PassState.MEASURED)
        for at, (name, _) in enumerate(lines):
            layer = writer.add_layer(Layer(name, "Toy"))
            writer.add_samples(0, [(layer, sum(took[:at]), took[at], took[at], 0)])

    return temporary_report(path, fill, network=path.stem, backend="Toy")


READER = ReportReader("a toy profile", lambda head, path: head.startswith(b"#toy"), read)
CHART = Chart(
    "longest", "The longest layer",
    lambda data: [[(max(data.layers, key=lambda layer: layer.time_ms or 0).name, "strong")]],
)  # fmt: skip
TOOL = Tool("toy-copy", "cp", ("$Model", "$Output"), ".onnx")
SETTING = Setting(
    "toy_unit", int, False, 1, Param("Toy unit", "Bytes of one unit.", minimum=1, page="Toy")
)
