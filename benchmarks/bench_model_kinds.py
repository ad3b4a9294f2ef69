"""What is done first with a model, for each of some files: time and memory, beside onnx.

Times are those of the processor, of whole commands with their children, the least of the rounds:
on a busy machine the clock on the wall says little.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import harness
from benchmarks.terminal import Terminal

PICTURE = "overview"
"""The title of the graph's first view."""
SIZE = (200, 50)
# In processes of their own: the peak memory of a child begins with that of the one that starts it.
_LOOK = """
import json, sys
import onnx
from benchmarks import models
models.write_small_model(__import__("pathlib").Path(sys.argv[2]))
graph = onnx.load(sys.argv[1], load_external_data=False).graph
print(json.dumps([
    len(graph.node),
    any(one.external_data for one in graph.initializer),
    next((node.name for node in graph.node if node.name), "#0"),
]))
"""
_LOAD = "import onnx, sys; onnx.load(sys.argv[1])"
_CHECK = "import onnx, sys; onnx.checker.check_model(sys.argv[1], full_check=True)"
_SAVE = (
    "import onnx, sys; m = onnx.load(sys.argv[1]); m.graph.node[0].name = 'walked';"
    "onnx.save(m, sys.argv[2], save_as_external_data=sys.argv[3] == 'external',"
    "location=sys.argv[4])"
)


def main(argv: list[str]) -> int:
    """Print a table for each model."""
    parser = harness.parser(__doc__)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--rounds", type=int, default=3, help="runs of each command")
    options = parser.parse_args(argv)
    for path in options.models:
        with harness.work_folder() as folder:
            _measure(folder, path.absolute(), options.rounds)
    return 0


def _measure(folder: Path, path: Path, rounds: int) -> None:
    python = [sys.executable, "-c"]
    small = folder / "small.onnx"
    looked = subprocess.run(
        [*python, _LOOK, path, small],
        env=harness.environment(), capture_output=True, check=True,
    )  # fmt: skip
    nodes, is_external, named = json.loads(looked.stdout)
    edit = {"edit": "rename_node", "scope": [], "node": named, "name": "walked"}
    script = folder / "edit.jsonl"
    script.write_text(json.dumps(edit) + "\n", encoding="utf-8")
    model, ours, theirs = str(path), str(folder / "ours.onnx"), str(folder / "theirs.onnx")
    kind = "external" if is_external else "inline"
    acts: dict[str, tuple[list[str], list[str] | None]] = {
        "inspect / onnx.load": (["inspect", model, "--json"], [*python, _LOAD, model]),
        "check / onnx.checker": (["check", model, "--json"], [*python, _CHECK, model]),
        "draw": (["draw", model, "-o", str(folder / "drawn.svg"), "--force"], None),
        "edit and save / onnx.load, save": (
            ["edit", model, str(script), "-o", ours, "--force"],
            [*python, _SAVE, model, theirs, kind, "theirs.data"],
        ),
    }
    table = harness.Table(f"{path.name}: {nodes:,} nodes")
    for act, (words, peer) in acts.items():
        used = _least([harness.dld() + words] * rounds, folder)
        other = _least([peer] * rounds, folder) if peer is not None else (None, None)
        table.add(act, used[0], other[0])
        table.add("  peak memory", used[1], other[1], unit="MB")
    screens = [min(_screen(folder, one) for _ in range(rounds)) for one in (path, small)]
    table.add("first screen / that of ten nodes", screens[0][0], screens[1][0])
    table.add("  peak memory", screens[0][1], screens[1][1], unit="MB")
    table.finish()


def _least(commands: Sequence[Sequence[str]], folder: Path) -> tuple[float, float]:
    """Return the least processor time in ms, and the peak memory in MB of that run."""
    return min(_used(command, folder) for command in commands)


def _used(command: Sequence[str], folder: Path) -> tuple[float, float]:
    variables = harness.environment(**harness.private_folders(folder))
    child = subprocess.Popen(
        command, env=variables, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    assert child.stderr is not None
    said = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in (0, 1):
        sys.exit(f"{' '.join(command)} failed:\n{said.decode(errors='replace')}")
    return (usage.ru_utime + usage.ru_stime) * 1000, usage.ru_maxrss / 1000


def _screen(folder: Path, model: Path) -> tuple[float, float]:
    """Return the processor time in ms, and the peak memory in MB, until the graph is seen."""
    variables = harness.environment(**harness.private_folders(folder))
    with Terminal([*harness.dld(), str(model)], variables, *SIZE) as terminal:
        terminal.wait_for(PICTURE, timeout=120)
        return terminal.used()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
