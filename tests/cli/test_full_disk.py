"""A disk that is full, as the eMMC of a board gets: one line, and what was there is untouched.

The disk is a real one, of a few megabytes in memory; :mod:`tests.core.files.test_writer` has
those that fill up while they are written to.
"""

from __future__ import annotations

import contextlib
import errno
import importlib.util
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from dld_tui.core.errors import SaveError
from dld_tui.core.files import permission
from dld_tui.core.model.document import Document
from dld_tui.core.model.document.serialise import save
from dld_tui.core.report.records import Layer
from dld_tui.core.report.report import Report
from dld_tui.core.report.store import ReportWriter
from dld_tui.core.settings.state import State
from tests.support import models
from tests.support.cli import Dld

_CHUNK = 1 << 16


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Return a disk of four megabytes, which :func:`fill` makes full."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "dld-test", str(place)],
        capture_output=True,
        text=True,
    )
    if mounted.returncode:
        pytest.skip(f"no disk can be mounted here: {mounted.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=False)


def fill(disk: Path) -> None:
    with contextlib.suppress(OSError), (disk / "filler").open("wb", buffering=0) as file:
        while True:
            file.write(bytes(_CHUNK))
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        (disk / "one more").write_bytes(bytes(1 << 13))
    (disk / "one more").unlink()


def files(disk: Path) -> dict[str, bytes]:
    """Return what is on the disk, but for what fills it."""
    return {p.name: p.read_bytes() for p in disk.iterdir() if p.name != "filler"}


def report(path: Path) -> ReportWriter:
    return ReportWriter.create(
        path, network="n", backend="b", execution_provider="CPU", device="d",
        model={}, settings={}, environment={},
    )  # fmt: skip


def why_it_stops(writer: ReportWriter) -> str:
    """Add layers until they cannot be written, and return the error."""
    try:
        for number in range(1_000):
            writer.add_layer(Layer(f"layer {number} {'x' * 20_000}", "Conv"))
            writer.flush()
    except SaveError as error:
        with contextlib.suppress(SaveError):
            writer.abort()
        return str(error)
    return ""


@pytest.mark.broad
def test_models_exports_and_reports_of_commands(dld: Dld, disk: Path, tmp_path: Path) -> None:
    model = models.write(tmp_path, models.CHAIN)
    source = report(tmp_path / "r.dldprof")
    source.add_latencies([1.0, 2.0])
    measured = source.finish()
    commands: list[tuple[object, ...]] = [
        ("report", measured, "--csv", disk / "kept", "--force"),
        ("draw", model, "-o", disk / "kept.svg", "--force"),
        ("convert", "fp16", model, "-o", disk / "kept.onnx", "--force"),
    ]
    if importlib.util.find_spec("onnxruntime") is not None:
        commands.append(
            ("profile", "onnxruntime", model, "--iterations=3", "-o", disk / "kept.dldprof",
             "--force")
        )  # fmt: skip
    for name in ("kept", "kept.svg", "kept.onnx", "kept.dldprof"):
        (disk / name).write_bytes(b"what was there")
    fill(disk)
    before = files(disk)
    for command in commands:
        line = dld.fails(5, *command)
        assert str(disk) in line
        assert "free on its disk" in line or "full" in line
        assert files(disk) == before


def test_a_report_that_grows_until_the_disk_is_full(disk: Path) -> None:
    first = report(disk / "r.dldprof")
    first.add_latencies([1.0])
    first.finish()
    before = files(disk)
    permission.agree([disk / "r.dldprof"])
    second = report(disk / "r.dldprof")
    assert why_it_stops(second).endswith("cannot write the report: database or disk is full")
    assert files(disk)["r.dldprof"] == before["r.dldprof"]
    with Report.open(disk / "r.dldprof") as kept:
        assert list(kept.latencies) == [1.0]


def test_edits_go_on_without_a_journal_and_are_saved_elsewhere(
    disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(disk))
    path = models.write(tmp_path, models.CHAIN)
    with contextlib.closing(Document.open(path, journaled=True)) as document:
        document.apply("rename_node", scope=[], node="first", name="one")
        fill(disk)
        for number in range(200):
            name = "one" if number == 0 else f"{number - 1} {'y' * 100}"
            document.apply("rename_node", scope=[], node=name, name=f"{number} {'y' * 100}")
        told = document.journal_error
        assert told == "edits are not journaled: No space left on device"
        assert document.main.nodes[0].name.startswith("199 ")
        save(document)
        assert document.journal_error is None
    with contextlib.closing(Document.open(path)) as again:
        assert again.main.nodes[0].name.startswith("199 ")


def test_what_the_program_remembers_stays_as_it_was(disk: Path) -> None:
    state = State(disk)
    state.put("layouts", "a", {"n": 1})
    fill(disk)
    before = files(disk)
    state.put("layouts", "a", {"n": 2, "long": "z" * 100_000})
    assert files(disk) == before
    assert json.loads(before["layouts.json"]) == {"a": {"n": 1}}
