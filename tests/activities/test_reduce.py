"""``dld reduce``: the smallest part that still fails, resumed, and checks that do not."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import onnx
import pytest

from dld_tui.activities.reduce import Request, run
from dld_tui.backends import processes
from dld_tui.backends.processes import ProgramEnd
from dld_tui.core.conversion.reduction import Reduction
from dld_tui.core.errors import ActivityError, UsageError
from dld_tui.core.events import Event, Finished, Log
from tests.support import models
from tests.support.activities import finished
from tests.support.fork_server import python
from tests.support.tiers import first

pytestmark = pytest.mark.usefixtures("replaces_all")

BODIES = """If (c) <then_branch = yes () => (float[2] t) { [a] a = Neg (v20) [s] t = Sigmoid (a) },
    else_branch = no () => (float[2] e) { [e] e = Abs (v20) }>"""
LINES = "\n".join(
    f"[n{at}] v{at + 1} = {BODIES if at == 20 else f'Relu (v{at})'}" for at in range(40)
)
MODEL = (
    '<ir_version: 10, opset_import: ["" : 18]>\n'
    f"g (float[2] v0, bool c) => (float[2] v40) {{ {LINES} }}"
)
CHECK = "import sys; sys.exit(b'Sigmoid' in open(sys.argv[1], 'rb').read())"


def request(folder: Path, check: str, **more: object) -> Request:
    model = models.write(folder, MODEL)
    command = shlex.join([sys.executable, "-S", "-c", check, "{model}"])
    return Request(model, command, folder / "small.onnx", **more)  # type: ignore[arg-type]


def result(request: Request) -> Reduction:
    found = finished(run(request))
    assert isinstance(found, Reduction)
    return found


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NV_DLD_CACHE_DIR", str(tmp_path / "cache"))


def test_smallest_model_still_fails_and_a_second_search_knows(tmp_path: Path) -> None:
    asked = request(tmp_path, f"print('looked')\n{CHECK}")
    asked = replace(asked, check=asked.check.removesuffix(" '{model}'"))  # it is the last argument
    found = result(asked)
    assert (found.nodes_before, found.nodes_after) == (43, 2)
    assert found.nodes == ["n20", "n20:then_branch › s"]
    assert found.said == "looked\n"
    small = onnx.load(found.path)
    assert [node.op_type for node in small.graph.node] == ["If"]
    onnx.checker.check_model(small, full_check=True)
    assert small.graph.input[1].type.tensor_type.shape.dim[0].dim_value == 2
    again = result(asked)
    assert (again.tried, again.known) == (0, found.tried)


def test_only_the_failure_that_is_meant_counts(tmp_path: Path) -> None:
    for asked in (
        request(tmp_path, ""),
        request(tmp_path, CHECK, fail_codes=("3",)),
        request(tmp_path, CHECK, fail_text="segfault"),
    ):
        with pytest.raises(UsageError, match="does not fail"):
            result(asked)
    with pytest.raises(UsageError, match="no check"):
        result(Request(models.write(tmp_path, MODEL), "", tmp_path / "o.onnx"))


KILLED = """
import os, signal, sys
made = open(sys.argv[2], 'a')
made.write('x')
made.close()
if os.path.getsize(sys.argv[2]) == int(sys.argv[3]):
    os.kill(os.getppid(), signal.SIGKILL)
sys.exit(b'Sigmoid' in open(sys.argv[1], 'rb').read())
"""
RUNNING = (
    "import sys; from pathlib import Path; from dld_tui.activities.reduce import *;"
    " list(run(Request(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))))"
)


@pytest.mark.broad
@pytest.mark.parametrize("at", first(1, [2, 1, 7]))
def test_a_search_that_was_killed_goes_on_where_it_was(tmp_path: Path, at: int) -> None:
    counts, model, out = tmp_path / "n", models.write(tmp_path, MODEL), tmp_path / "o.onnx"
    whole = result(request(tmp_path, CHECK))
    check = [sys.executable, "-S", "-c", KILLED, "{model}", str(counts), str(at)]
    asked = Request(model, shlex.join(check), out)
    command = python(RUNNING, model, asked.check, out)
    killed = subprocess.run(command, check=False, timeout=60)
    assert killed.returncode == -signal.SIGKILL
    assert not out.exists()
    found = result(asked)
    assert found.known == at - 1, "all but the trial in which it was killed"
    assert found.known + found.tried == whole.tried
    assert found.nodes == whole.nodes
    made = counts.stat().st_size
    assert made == found.tried + found.known + 2, "the killed one, and the result once more"


@pytest.mark.broad
def test_a_trial_that_ends_three_processes_is_not_made_again(tmp_path: Path) -> None:
    model, out = models.write(tmp_path, MODEL), tmp_path / "o.onnx"
    fatal = (
        "import os, signal, sys; data = open(sys.argv[1], 'rb').read();"
        "data.count(b'Relu') == 20 and b'Neg' not in data"
        " and os.kill(os.getppid(), signal.SIGKILL);"
        "sys.exit(b'Sigmoid' in data)"
    )
    asked = Request(model, shlex.join([sys.executable, "-S", "-c", fatal, "{model}"]), out)
    command = python(RUNNING, model, asked.check, out)
    for _ in range(3):
        killed = subprocess.run(command, check=False, timeout=60)
        assert killed.returncode == -signal.SIGKILL
    found = result(asked)
    assert found.nodes == ["n20", "n20:then_branch › s"]
    assert found.known == 2, "the whole model, and the fatal part"


def test_a_check_without_an_end_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run_program(words: list[str], *_: object) -> Generator[Event, None, ProgramEnd]:
        yield from ()
        data = Path(words[-1]).read_bytes()
        is_late = data.count(b"Relu") <= 30
        return ProgramEnd(-9 if is_late else int(b"Sigmoid" in data), 60.0, is_late, 0, 0)

    monkeypatch.setattr(processes, "run_program", run_program)
    found = result(request(tmp_path, ""))
    assert found.nodes_after > 30
    assert found.minimal
    assert found.unknown == found.nodes_after - 2, "all of the chain may be needed"


def test_a_limit_leaves_the_rest_to_the_next_search(tmp_path: Path) -> None:
    *_, told, last = run(request(tmp_path, CHECK, limit=0.0))
    assert isinstance(told, Log)
    assert told.text.endswith("The limit ended the search; the same command resumes it")
    assert isinstance(last, Finished)
    part = last.result
    assert (part.tried, part.minimal, part.nodes_after) == (1, False, 43)
    found = result(request(tmp_path, CHECK))
    assert (found.nodes_after, found.minimal, found.known) == (2, True, 1)


def test_a_check_that_changes_is_told(tmp_path: Path) -> None:
    once = tmp_path / "once"
    check = (
        f"import os, sys; data = open(sys.argv[1], 'rb').read(); n = {str(once)!r};"
        "bad = b'Sigmoid' in data and (data.count(b'Relu') > 1 or not os.path.exists(n));"
        "b'Relu' not in data and open(n, 'w').close(); sys.exit(bad)"
    )
    events: list[Event] = []
    with pytest.raises(ActivityError, match="not deterministic"):
        events.extend(run(request(tmp_path, check)))
