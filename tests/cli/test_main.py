"""What every command shares: help, errors as one line, exit status, pipes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dld_tui.cli import main
from dld_tui.core import errors
from dld_tui.core.process.paths import short, state_dir
from tests.support import models
from tests.support.cli import Dld, listen_to_interrupts, process


def test_version(dld: Dld) -> None:
    assert dld("--version").out.startswith("dld ")


def test_name_of_an_existing_file_is_a_path(
    dld: Dld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models.write(tmp_path, models.CHAIN, "plainname")
    monkeypatch.chdir(tmp_path)
    assert "Relu" in dld("plainname").out


def replace_dld(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def fail(argv: object) -> None:
        raise error

    monkeypatch.setattr(main, "_invoke", fail)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errors.UsageError("x"), 2),
        (errors.InputError("x"), 3),
        (errors.CorruptFileError("x"), 3),
        (errors.UnavailableError("x"), 4),
        (errors.ActivityError("x"), 5),
        (errors.CancelledError(), 130),
        (KeyboardInterrupt(), 130),
        (MemoryError(), 5),
        (OSError(28, "No space left on device"), 5),
    ],
    ids=repr,
)
def test_errors_become_a_line_and_a_status(
    dld: Dld, monkeypatch: pytest.MonkeyPatch, error: BaseException, status: int
) -> None:
    replace_dld(monkeypatch, error)
    dld.fails(status, "check")


def test_error_line_has_place_reason_and_hint_and_no_escapes(
    dld: Dld, monkeypatch: pytest.MonkeyPatch
) -> None:
    error: errors.DldError = errors.InputError(
        "is\x1b[2J odd\nfile", where="a.onnx", hint="Look again"
    )
    replace_dld(monkeypatch, error)
    assert dld.fails(3, "check") == r"dld: a.onnx: is\x1b[2J odd\nfile. Look again"


def test_details_of_an_error_are_kept_in_a_file(dld: Dld, monkeypatch: pytest.MonkeyPatch) -> None:
    replace_dld(monkeypatch, errors.ActivityError("it failed", details="line 1\nline 2"))
    line = dld.fails(5, "check")
    path = state_dir() / "last-error.txt"
    assert line == f"dld: it failed (details: {short(path)})"
    assert path.read_text() == "line 1\nline 2\n"


def test_bug_shows_its_traceback_and_is_not_taken_for_a_finding(
    dld: Dld, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace_dld(monkeypatch, ZeroDivisionError("odd"))
    outcome = dld("check")
    assert outcome.status == 5
    assert "ZeroDivisionError: odd" in outcome.err
    assert outcome.err.endswith("dld: this is a bug in dld; please report the lines above\n")


def test_reader_that_leaves_early_is_no_error(tmp_path: Path) -> None:
    nodes = "\n".join(f"t{i} = Relu(t{i - 1})" for i in range(1, 3000))
    head = '<ir_version: 10, opset_import: ["": 18]> g (float[1] t0) => (float[1] t2999)'
    text = f"{head} {{{nodes}}}"
    path = models.write(tmp_path, text)
    read, write = os.pipe()
    command = [sys.executable, "-m", "dld_tui", "inspect", "--nodes", str(path)]
    with subprocess.Popen(command, stdout=write, stderr=subprocess.PIPE) as running:
        os.close(write)
        os.read(read, 10)
        os.close(read)
        assert running.stderr is not None
        assert running.stderr.read() == b""
    assert running.returncode == 141


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_full_disk_behind_standard_output_is_said(
    monkeypatch: pytest.MonkeyPatch, unbuffered: str
) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    with open("/dev/full", "w") as full:
        done = process("--version", capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 5
    assert done.stderr == "dld: standard output: No space left on device\n"


def test_closed_standard_output_is_no_crash() -> None:
    done = process("--version", preexec_fn=lambda: os.close(1))
    assert "Traceback" not in done.stderr


def test_interrupt_ends_with_130() -> None:
    code = (
        "import os, signal, sys\n"
        "from dld_tui.cli import main\n"
        "import dld_tui.cli.tui as tui\n"
        "tui.open_paths = lambda paths: os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.exit(main.run([]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=listen_to_interrupts,
    )
    assert done.returncode == 128 + signal.SIGINT
    assert done.stderr.strip() == "dld: cancelled: dld"


def test_output_that_is_not_utf8_is_escaped(tmp_path: Path) -> None:
    model = models.parse(models.CHAIN)
    model.graph.node[0].name = "宽"
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"}
    done = process("inspect", path, "--nodes", env=environment)
    assert done.returncode == 0
    assert r"\u5bbd  Relu" in done.stdout
