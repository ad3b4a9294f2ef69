from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from dld_tui.core.errors import InputError, SaveError, UsageError
from dld_tui.core.files import permission
from dld_tui.core.report.records import Layer
from dld_tui.core.report.report import Report
from tests.support.fork_server import python
from tests.support.profiles import start_report


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "r.dldprof"


def test_what_cannot_be_written_to_is_refused_and_kept(path: Path, tmp_path: Path) -> None:
    path.write_text("mine")
    with pytest.raises(UsageError, match="Use --force"):
        start_report(path)
    assert path.read_text() == "mine"
    with pytest.raises(SaveError, match="cannot write the report"):
        start_report(tmp_path / "missing" / "r.dldprof")


def test_overwriting_keeps_the_old_report_until_the_new_one_is_finished(path: Path) -> None:
    with start_report(path, network="old") as report:
        report.add_latencies([1.0])
    permission.agree([path])
    writer = start_report(path, network="new")
    writer.add_latencies([2.0])
    writer.flush()
    assert Report.open(path).network == "old"
    assert writer.written_path.name == "r.dldprof.partial"
    assert Report.open(writer.written_path).status == "partial"
    assert writer.finish() == path
    assert Report.open(path).network == "new"
    assert [p.name for p in path.parent.iterdir()] == ["r.dldprof"]


def test_error_leaves_a_partial_report_with_statistics_and_the_reason(path: Path) -> None:
    def fail() -> None:
        with start_report(path) as report:
            number = report.add_layer(Layer("a", "Conv"))
            report.add_pass(0, 0, 10)
            report.add_samples(0, [(number, 0, 10, 10, 1)])
            raise RuntimeError("the device is gone")

    with pytest.raises(RuntimeError):
        fail()
    found = Report.open(path)
    assert (found.status, found.layers[0].time_ms) == ("partial", 0.01)
    assert [note.text for note in found.notes] == ["the device is gone"]


def test_error_before_any_measurement_leaves_nothing(path: Path) -> None:
    def fail() -> None:
        with start_report(path) as report:
            report.add_layer(Layer("a", "Conv"))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert not path.exists()


def test_abort_says_where_the_partial_report_is(path: Path) -> None:
    writer = start_report(path)
    writer.add_latencies([1.0])
    assert writer.abort("cancelled") == path
    empty = start_report(path.with_name("empty.dldprof"))
    assert empty.abort() is None


def test_closed_report_takes_nothing_more(path: Path) -> None:
    writer = start_report(path)
    writer.finish()
    with pytest.raises(ValueError, match="closed"):
        writer.add_latencies([1.0])


def test_disk_full_is_a_save_error_and_the_rest_is_readable(path: Path) -> None:
    writer = start_report(path)
    writer.add_latencies([1.0])
    writer.flush()
    writer._database.execute("PRAGMA max_page_count = 40")
    with pytest.raises(SaveError, match="full"):
        writer.add_latencies([float(i) for i in range(100_000)])
    assert Report.open(path).latencies == (1.0,)
    with pytest.raises(SaveError):
        writer.abort("no room")
    assert Report.open(path).latencies == (1.0,)
    with pytest.raises(ValueError, match="closed"):
        writer.add_latencies([1.0])


def test_what_could_not_be_written_is_kept_until_there_is_room(path: Path) -> None:
    writer = start_report(path)
    writer._database.execute("PRAGMA max_page_count = 40")
    with pytest.raises(SaveError):
        writer.add_latencies([1.0] * 100_000)
    writer._database.execute("PRAGMA max_page_count = 100000")
    writer.finish()
    assert len(Report.open(path).latencies) == 100_000


_ENDLESS = """
import sys
from tests.support.profiles import start_report
from dld_tui.core.report.records import Layer
from dld_tui.core.report import store
store.COMMIT_SECONDS = 0.05
writer = start_report(sys.argv[1])
layer = writer.add_layer(Layer("a", "Conv"))
index = 0
while True:
    writer.add_latencies([1.0] * 10)
    writer.add_pass(index, index * 1000, 1000)
    writer.add_samples(index, [(layer, index * 1000 + i, 1, 1, 1) for i in range(500)])
    index += 1
"""


def committed_passes(path: Path) -> int:
    try:
        return len(Report.open(path).passes)
    except InputError:  # not made yet
        return 0


def test_killed_run_leaves_a_readable_partial_report(path: Path) -> None:
    child = subprocess.Popen(python(_ENDLESS, path))
    try:
        deadline = time.monotonic() + 120
        while not committed_passes(path):
            assert child.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    found = Report.open(path)
    assert found.status == "partial"
    assert len(found.latencies) >= 10
    assert found.layers[0].time_ms == pytest.approx(0.5)
    assert len(found.pass_events(found.passes[0].index)) == 500


def test_kill_within_a_commit_is_rolled_back(path: Path) -> None:
    with start_report(path) as report:
        report.add_latencies([1.0])
    code = (
        "import os, signal, sqlite3, sys\n"
        "c = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "c.execute('PRAGMA cache_size = 5')\n"
        "c.execute('BEGIN')\n"
        "c.execute('DELETE FROM settings')\n"
        "c.executemany('INSERT INTO latencies VALUES (?, 2.0)', ((i,) for i in range(1, 50000)))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run(python(code, path), check=False)
    assert Path(f"{path}-journal").exists()
    found = Report.open(path)
    assert (found.latencies, found.settings) == ((1.0,), {"iterations": 3})


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_report_opens_in_a_folder_without_write_access(path: Path) -> None:
    with start_report(path) as report:
        report.add_latencies([1.0])
    path.chmod(0o400)
    path.parent.chmod(0o500)
    try:
        assert Report.open(path).latencies == (1.0,)
    finally:
        path.parent.chmod(0o700)
