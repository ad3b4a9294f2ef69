"""Bytes that the program sends for what people do most, in a real terminal of two sizes."""

from __future__ import annotations

import statistics
import subprocess
import sys
from pathlib import Path

from benchmarks import harness
from benchmarks.terminal import Terminal
from dld_tui.core.model.document.samples import write_demo_models

SIZES = ((80, 24), (200, 50))
REPORT_BYTES, JOB_BYTES_S = 20_000.0, 500.0
ESC, PALETTE, OPEN, F5, DOWN = "\x1b", "\x10", "\x0f", "\x1b[15~", "\x1b[B"
_CALM_S = 0.4
STEADY_S = 4
"""The page is laid out this long after the start of a job, and its report opens not before the
measured seconds have ended."""
TO_DURATION = 7
"""Fields from the model to the duration in the form of a profile."""


def main(argv: list[str]) -> int:
    """Print the table; return 1 when a bound is missed."""
    parser = harness.parser(__doc__)
    parser.add_argument("--seconds", type=int, default=16, help="how long the job runs")
    options = parser.parse_args(argv)
    table = harness.Table("Bytes sent to a pseudo-terminal")
    with harness.work_folder() as folder:
        variables = harness.environment(**harness.private_folders(folder))
        classifier, transformer = write_demo_models(folder)
        report = folder / "run.dldprof"
        command = ["profile", "onnxruntime", str(transformer), "--iterations", "30"]
        subprocess.run(
            [*harness.dld(), *command, "-o", str(report)],
            env=variables, check=True, capture_output=True,
        )  # fmt: skip
        for size in SIZES:
            _add(table, variables, (classifier, report), size, options.seconds)
    return table.finish()


def _add(
    table: harness.Table,
    variables: dict[str, str],
    files: tuple[Path, Path],
    size: tuple[int, int],
    seconds: int,
) -> None:
    model, report = files
    name = f"{size[0]}x{size[1]}"
    with Terminal(harness.dld(), variables, *size) as terminal:
        terminal.wait_for("Start", timeout=60)
        terminal.wait_calm(_CALM_S)
        table.add(f"{name}: start page", len(terminal.output), unit="B")

        def do(keys: str) -> None:
            terminal.send(keys)
            terminal.wait_calm(_CALM_S)  # a pause in the output is no end on a busy machine

        def press(what: str, keys: str, bound: float | None = None, rule: str = "") -> None:
            before = len(terminal.output)
            do(keys)
            sent = len(terminal.output) - before
            table.add(f"{name}: {what}", sent, unit="B", bound=bound, rule=rule)

        do(OPEN)
        do(str(model))
        press("open a model", "\r")
        press("palette opens", PALETTE)
        press("a letter in the palette", "c")
        press("palette closes", ESC)
        for key in "1jjjj":
            do(key)
        press("question to delete opens", "d")
        press("question closes", ESC)
        do(OPEN)
        do(str(report))
        bound = REPORT_BYTES if size[0] > 100 else None
        press("open a report", "\r", bound, "20 kB")
        do("\x17")  # Ctrl+W closes the report
        do(F5)
        for _ in range(TO_DURATION):
            do(DOWN)
        do(str(seconds))
        terminal.send(F5)  # it is not calm until the job has ended
        terminal.read_for(STEADY_S)
        rate = _rate(terminal, seconds - 2 * STEADY_S)
        if not rate:
            sys.exit(f"no job was seen: {terminal.text[-1000:]}")
        table.add(f"{name}: job page", rate, unit="B/s", bound=JOB_BYTES_S, rule="0.5 kB/s")


def _rate(terminal: Terminal, seconds: int) -> float:
    """Return the mean of the bytes of each second."""
    sent = []
    for _ in range(seconds):
        before = len(terminal.output)
        terminal.read_for(1.0)
        sent.append(len(terminal.output) - before)
    return statistics.mean(sent)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
