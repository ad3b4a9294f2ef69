"""Nodes that ``dld convert sanitize`` leaves beside onnxslim, onnxsim and Polygraphy, by model.

Each runs in a process of its own with its own command. A result counts when ONNX Runtime computes
the same with it as with the model; what does not is marked with an exclamation mark, what failed
with a dash.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import harness

_LIMIT_S = 300
_BIN = Path(sys.executable).parent
# Peers that are installed elsewhere are found by PYTHONPATH.
PEERS: dict[str, Sequence[str]] = {
    "onnxslim": ("-c", "from onnxslim.cli import main; main()", "{}", "{}"),
    "onnxsim": ("-m", "onnxsim", "{}", "{}"),
    "polygraphy": (
        "-c", "from polygraphy.tools import main; main()", "surgeon", "sanitize",
        "--fold-constants", "--cleanup", "{}", "-o", "{}",
    ),
}  # fmt: skip


def main(argv: list[str]) -> int:
    """Print the table; return 1 where a peer leaves fewer nodes, or ours fails or differs."""
    parser = harness.parser(__doc__)
    parser.add_argument(
        "models", type=Path, nargs="*", help="models; the onnx package's by default"
    )
    options = parser.parse_args(argv)
    models = [model.resolve() for model in options.models] or _light_models()
    print(f"{'model':28}{'nodes':>8}{'ours':>8}" + "".join(f"{name:>12}" for name in PEERS))
    missed = 0
    for model in models:
        with harness.work_folder() as folder:
            found = {name: _peer(name, model, folder / f"{name}.onnx") for name in PEERS}
            ours = _ours(model, folder / "ours.onnx")
        before, mine = _nodes(model), ours[0]
        counts = [count for count, problem in found.values() if count is not None and not problem]
        is_missed = mine is None or bool(ours[1]) or mine > min([before, *counts])
        missed += is_missed
        cells = "".join(f"{_cell(*result):>12}" for result in found.values())
        print(f"{model.stem[:27]:28}{before:8}{_cell(*ours):>8}{cells}{'  MISSED' * is_missed}")
        for name, (_, problem) in {"ours": ours, **found}.items():
            if problem:
                print(f"    {name}: {problem[:160]}")
        sys.stdout.flush()
    print(f"{len(models)} models, {missed} missed")
    return int(missed > 0)


def _light_models() -> list[Path]:
    import onnx

    return sorted((Path(onnx.__file__).parent / "backend/test/data/light").glob("*.onnx"))


def _cell(count: int | None, problem: str | None) -> str:
    return "-" if count is None else f"{count}{'!' if problem else ''}"


def _nodes(path: Path) -> int:
    from dld_tui.activities.convert.sanitize import nodes
    from dld_tui.core.document import Document

    with contextlib.closing(Document.open(path)) as document:
        return nodes(document)


def _peer(name: str, model: Path, output: Path) -> tuple[int | None, str | None]:
    texts = iter((str(model), str(output)))
    command = [next(texts) if part == "{}" else part for part in PEERS[name]]
    return _run([sys.executable, *command], model, output)


def _ours(model: Path, output: Path) -> tuple[int | None, str | None]:
    command = [str(_BIN / "dld"), "convert", "sanitize", str(model), "-o", str(output)]
    return _run(command, model, output)


def _run(command: list[str], model: Path, output: Path) -> tuple[int | None, str | None]:
    """Return the nodes of what a command makes, and what is wrong with its values."""
    try:
        ended = subprocess.run(
            command, capture_output=True, text=True, timeout=_LIMIT_S, check=False,
            env=harness.environment(), cwd=output.parent,
        )  # fmt: skip
    except FileNotFoundError:
        return None, "not installed"
    except subprocess.TimeoutExpired:
        return None, f"stopped after {_LIMIT_S} s"
    if ended.returncode or not output.exists():
        lines = (ended.stderr or ended.stdout).strip().splitlines() or ["without a word"]
        return None, lines[-1]
    return _nodes(output), _problem(model, output)


def _problem(model: Path, output: Path) -> str | None:
    from dld_tui.backends.conversion.value_check import Question, ValueCheck
    from dld_tui.backends.conversion.verification import same_arithmetic
    from dld_tui.core.document import Document
    from dld_tui.core.errors import DldError

    with (
        contextlib.closing(Document.open(model)) as before,
        contextlib.closing(Document.open(output)) as after,
    ):
        try:
            check = ValueCheck(before, Question(), same_arithmetic(before))
        except DldError:
            return None  # the model itself cannot be run
        with contextlib.closing(check):
            try:
                rows = check.outputs(after).outputs
            except DldError as error:
                return error.message
            return next((f"{row.name}: {row.problem}" for row in rows if row.problem), None)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
