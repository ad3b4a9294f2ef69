"""Custom tools in a real worker: outputs, failures, and that nothing of them is left."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from dld_tui.activities.tool import Request, request_for
from dld_tui.core.errors import (
    ActivityError,
    CancelledError,
    DldError,
    InputError,
    UnavailableError,
    UsageError,
)
from dld_tui.core.events import Event, Log
from dld_tui.core.params import from_json, to_json
from dld_tui.core.settings.custom_tools import Tool
from dld_tui.targets.process import LocalTarget
from tests.support import models
from tests.support.jobs import wait_until

COPY = "import shutil, sys; shutil.copy(sys.argv[1], sys.argv[2]); print('copied')"


def tool(program: str, *arguments: str, **about: object) -> Tool:
    given = ("-S", "-c", program, *arguments)
    return Tool("t", sys.executable, given, **about)  # type: ignore[arg-type]


def ran(
    request: Request,
    heard: Callable[[Event], None] | None = None,
    replaces: Sequence[Path] = (),
) -> Any:
    with LocalTarget().start("tool", to_json(request, map(str, replaces))) as job:
        return job.result(heard)


def test_the_output_is_written_and_only_it(tmp_path: Path) -> None:
    folder = tmp_path / "-it's $Model"
    folder.mkdir()
    model = folder / "-rf $(touch x) `id`;.onnx"
    model.write_bytes(b"model")
    output = folder / "--help $Output.onnx"
    texts = []
    copy = tool(COPY, "$Model", "$Output", output=".onnx")
    result = ran(request_for(copy, model, output), lambda e: texts.append(getattr(e, "text", None)))
    assert output.read_bytes() == b"model"
    assert (result["output"], result["files"]) == (str(output), [str(output)])
    assert "copied" in texts
    assert sorted(path.name for path in folder.iterdir()) == sorted([model.name, output.name])


def test_a_model_as_text_reaches_the_program_in_binary_form(tmp_path: Path) -> None:
    model, output = tmp_path / "net.onnxtxt", tmp_path / "copy.onnx"
    model.write_text(models.CHAIN)
    ran(request_for(tool(COPY, "$Model", "$Output", output=".onnx"), model, output))
    assert output.read_bytes() == models.parse(models.CHAIN).SerializeToString()
    assert sorted(path.name for path in tmp_path.iterdir()) == [output.name, model.name]


def test_arguments_reach_the_program_as_they_are(tmp_path: Path) -> None:
    model = tmp_path / "$Output \n'\".onnx"
    model.write_bytes(b"model")
    program = "import json, os, sys; print(json.dumps([*sys.argv[1:], os.getcwd()]))"
    shown = tool(program, "--in=$Model", "$$HOME ${Folder}", "*", "", folder="$Folder")
    heard: list[Event] = []
    ran(request_for(shown, model, None, model_folder=tmp_path), heard.append)
    said = [event.text for event in heard if isinstance(event, Log) and event.level == "info"]
    expected = [f"--in={model}", f"$HOME {tmp_path}", "*", "", str(tmp_path)]
    assert json.loads(said[0]) == expected


def test_files_beside_the_output_come_too(tmp_path: Path) -> None:
    model = tmp_path / "m.onnx"
    model.write_bytes(b"model")
    program = COPY + "; open(sys.argv[2] + '.data', 'w').write('weights')"
    made = request_for(tool(program, "$Model", "$Output", output=".onnx"), model, tmp_path / "o.x")
    result = ran(made)
    assert result["files"] == [str(tmp_path / "o.x"), str(tmp_path / "o.x.data")]
    assert (tmp_path / "o.x.data").read_text() == "weights"
    output, data = tmp_path / "o.x", tmp_path / "o.x.data"
    output.unlink()
    data.write_text("mine")
    for allowed in ([], [output]):
        with pytest.raises(ActivityError, match="already exists") as caught:
            ran(made, replaces=allowed)
        assert str(caught.value.where).endswith("o.x.data")
        assert (output.exists(), data.read_text()) == (False, "mine")
    assert not list(tmp_path.glob(".dld-*"))
    ran(made, replaces=[output, data])
    assert data.read_text() == "weights"


@pytest.mark.parametrize(
    ("program", "why"),
    [
        (COPY + "; sys.exit(3)", "exit status 3"),
        (COPY + "; import os; os.kill(os.getpid(), 9)", "SIGKILL"),
        ("print('nothing')", "wrote nothing"),
        ("import sys; open(sys.argv[2], 'w')", "wrote nothing"),
        ("import os, sys; os.symlink(sys.argv[1], sys.argv[2])", "wrote nothing"),
        (COPY + "; import time; time.sleep(100)", "its time limit"),
    ],
)
def test_a_tool_that_fails_replaces_nothing(tmp_path: Path, program: str, why: str) -> None:
    model, output = tmp_path / "m.onnx", tmp_path / "o.onnx"
    model.write_bytes(b"model")
    output.write_bytes(b"before")
    failing = tool(program, "$Model", "$Output", output=".onnx", limit=1)
    with pytest.raises(ActivityError, match=why) as caught:
        ran(request_for(failing, model, output), replaces=[output])
    assert caught.value.where == "tool 't'"
    assert output.read_bytes() == b"before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.onnx", "o.onnx"]


def test_mistakes_are_said_before_anything_runs(tmp_path: Path) -> None:
    model, output = tmp_path / "m.onnx", tmp_path / "o.onnx"
    model.write_bytes(b"model")
    output.write_bytes(b"before")
    copy = tool(COPY, "$Model", "$Output", output=".onnx")
    show = tool("1", "$Model")
    link = tmp_path / "link.onnx"
    link.symlink_to(model)
    cases: list[tuple[type[DldError], str, Request]] = [
        (InputError, "does not exist", request_for(copy, tmp_path / "none", output)),
        (UsageError, "-o", request_for(copy, model, None)),
        (UsageError, "writes no output", request_for(show, model, output)),
        (UsageError, "exists", request_for(copy, model, output)),
        (UsageError, "itself", request_for(copy, model, model)),
        (UsageError, "itself", request_for(copy, model, link)),
        (ActivityError, "cannot be written", request_for(copy, model, tmp_path / "no" / "o.onnx")),
        (UnavailableError, "PATH", request_for(Tool("t", "no-such-program"), model, None)),
        (UsageError, "folder", request_for(tool("1", folder="/nowhere"), model, None)),
        (UsageError, "folder", request_for(tool("1", folder="here"), model, None)),
        (UsageError, "unknown variable \\$X", request_for(Tool("t", "sh", ("$X",)), model, None)),
    ]
    for kind, why, request in cases:
        with pytest.raises(kind, match=why):
            ran(from_json(Request, to_json(request)))
    assert (model.read_bytes(), output.read_bytes()) == (b"model", b"before")
    assert not list(tmp_path.glob(".dld-*"))


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.broad
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc here")
@pytest.mark.parametrize(
    ("way", "ignores"),
    [("cancel", False), ("cancel", True), ("close", False), ("close", True), ("limit", False),
     pytest.param("limit", True, marks=pytest.mark.exhaustive)],
)  # fmt: skip
def test_what_it_started_ends_with_the_job(tmp_path: Path, way: str, ignores: bool) -> None:
    model = tmp_path / "m.onnx"
    model.write_bytes(b"model")
    ignore = "signal.signal(signal.SIGTERM, signal.SIG_IGN); " if ignores else ""
    child = f"import signal, time; {ignore}print('up', flush=True); time.sleep(1000)"
    parent = (
        f"import os, signal, subprocess, sys, time; {ignore}"
        f"child = subprocess.Popen([sys.executable, '-S', '-c', {child!r}],"
        " stdout=subprocess.PIPE); child.stdout.readline();"
        " print(os.getpid(), child.pid, flush=True); open(sys.argv[1], 'w'); time.sleep(1000)"
    )
    limit = 1 if way == "limit" else 0
    request = request_for(
        tool(parent, "$Output", output=".x", limit=limit), model, tmp_path / "o.x"
    )
    pids: list[int] = []
    with LocalTarget().start("tool", to_json(request)) as job:

        def heard(event: Event) -> None:
            if isinstance(event, Log) and event.level == "info" and not pids:
                pids.extend(map(int, event.text.split()))
                if way == "cancel":
                    job.cancel()
                elif way == "close":
                    job.close()

        with pytest.raises(ActivityError if way == "limit" else CancelledError):
            job.result(heard)
    wait_until(lambda: not any(map(is_alive, pids)), "the end of what the tool started")
    assert len(pids) == 2
    if way != "close":
        assert sorted(path.name for path in tmp_path.iterdir()) == ["m.onnx"]


def test_a_flood_neither_fills_the_memory_nor_holds_up_a_cancel(tmp_path: Path) -> None:
    yes = shutil.which("yes")
    if yes is None:
        pytest.skip("no program `yes` here")
    model = tmp_path / "m.onnx"
    model.write_bytes(b"model")
    lines = 0
    with LocalTarget().start("tool", to_json(request_for(Tool("y", yes), model, None))) as job:

        def heard(event: Event) -> None:
            nonlocal lines
            lines += isinstance(event, Log)
            if lines == 1000:
                job.cancel()

        with pytest.raises(CancelledError):
            job.result(heard)
    assert lines < 20_000  # `yes` says millions a second


def test_a_request_survives_its_way_to_the_worker() -> None:
    saved = Tool("a", "b", ("$Model", "$Output"), ".x", True, "/f", 5)
    request = request_for(saved, Path("m"), Path("o"))
    assert from_json(Request, to_json(request)) == request
