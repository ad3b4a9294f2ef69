"""What every command shares: errors as one line or document, exit status, pipes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import click
import pytest

from dld_tui import __main__ as entry
from dld_tui.cli import main
from dld_tui.cli.group import LazyGroup
from dld_tui.core import errors
from dld_tui.core.command_line import CommandInfo
from dld_tui.core.errors import ExitStatus, UnavailableError
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
        (errors.UsageError("x"), 2), (errors.InputError("x"), 3), (errors.CorruptFileError("x"), 3),
        (errors.UnavailableError("x"), 4), (errors.ActivityError("x"), 5),
        (errors.CancelledError(), 130), (KeyboardInterrupt(), 130), (MemoryError(), 5),
        (OSError(28, "No space left on device"), 5),
    ],
    ids=repr,
)  # fmt: skip
def test_errors_become_a_line_and_a_status(
    dld: Dld, monkeypatch: pytest.MonkeyPatch, error: BaseException, status: int
) -> None:
    replace_dld(monkeypatch, error)
    dld.fails(status, "check")
    if not isinstance(error, OSError):  # standard output can be written
        dld.fails(status, "check", "--json")


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
    assert "a bug" in dld("check", "--json").json["error"]["message"]


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
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60,
        preexec_fn=listen_to_interrupts,
    )  # fmt: skip
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


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> LazyGroup:
    module = ModuleType("lazy_example")
    module.command = click.Command("one", callback=lambda: 7)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "lazy_example", module)
    table = (
        CommandInfo("one", "The first.", "lazy_example"),
        CommandInfo("absent", "Its module is not there.", "no_such_module"),
        CommandInfo("secret", "Not shown.", "lazy_example", hidden=True),
    )
    return LazyGroup(table, name="group")


def test_a_group_imports_a_command_when_it_runs(group: LazyGroup) -> None:
    # Help imports no command.
    shown = group.get_help(click.Context(group))
    assert "absent  Its module is not there." in shown
    assert "secret" not in shown
    # Command is imported when it runs.
    assert group.main(["one"], standalone_mode=False) == 7
    assert group.main(["secret"], standalone_mode=False) == 7
    # Completion offers the table without importing.
    found = group.shell_complete(click.Context(group), "a")
    assert [(item.value, item.help) for item in found] == [("absent", "Its module is not there.")]
    # Unknown name is a usage error.
    with pytest.raises(click.UsageError, match="did you mean 'one'"):
        group.main(["on"], standalone_mode=False)


@pytest.mark.parametrize(
    "words",
    [
        ("inspect", "gone.onnx"), ("check", "gone.onnx"), ("report", "gone.dldprof"),
        ("plan", "gone.trt.json"), ("diff", "gone.onnx", "b.onnx"), ("compare", "a", "b"),
        ("accuracy", "gone.onnx", "--round", "fp16"), ("target", "show", "gone"),
        ("profile", "onnxruntime", "gone.onnx"), ("convert", "fp16", "gone.onnx", "-o", "b.onnx"),
        ("tool", "run", "gone", "m.onnx"), ("profile", "onnxruntime", "m.onnx", "--target", "gone"),
        ("build", "gone.onnx"), ("extract", "gone.onnx", "-o", "b.onnx", "--outputs", "y"),
    ],
)  # fmt: skip
def test_a_failure_gives_a_document(
    words: tuple[str, ...], dld: Dld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = dld(*words, "--json")
    assert done.status not in (ExitStatus.DONE, ExitStatus.FOUND)
    assert done.json["error"]["message"]
    assert done.json["status"] == done.status


def test_a_file_that_is_no_model_is_named(dld: Dld, tmp_path: Path) -> None:
    path = tmp_path / "m\x1b[31m.onnx"
    path.write_text("no model")
    done = dld("inspect", path, "--json")
    assert done.json["error"]["where"] == str(path)
    assert "\x1b" not in done.out


def test_ctrl_c_before_all_is_imported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(argv: list[str]) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(main, "run", interrupt)
    for option, written in (("--json", {"message": "cancelled", "where": None, "hint": None}),
                            ("--nodes", None)):  # fmt: skip
        monkeypatch.setattr("sys.argv", ["dld", "inspect", option, "m.onnx"])
        assert entry.main() == ExitStatus.CANCELLED
        out = capsys.readouterr().out
        assert (json.loads(out)["error"] if out else None) == written


def test_there_is_never_a_second_document(dld: Dld, monkeypatch: pytest.MonkeyPatch) -> None:
    def half(argv: object) -> int:
        from dld_tui.cli.output import write_json

        write_json({"a": 1})
        raise UnavailableError("too late")

    monkeypatch.setattr(main, "_invoke", half)
    done = dld("doctor", "--json")
    assert json.loads(done.out) == {"a": 1}
    assert done.status == ExitStatus.UNAVAILABLE


def test_without_it_standard_output_stays_empty(dld: Dld) -> None:
    dld.fails(ExitStatus.USAGE, "tool", "run", "--", "gone", "--json")
