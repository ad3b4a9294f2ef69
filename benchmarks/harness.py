"""What all benchmarks share: fresh processes, medians, verdicts and one kind of table."""

from __future__ import annotations

import argparse
import json
import os
import platform
import select
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

Task: TypeAlias = Callable[..., dict[str, float]]
"""A function of a module that a process of its own runs, with texts as arguments."""
REPOSITORY = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Row:
    """One compared quantity; a row without a bound is shown and never fails."""

    what: str
    ours: float
    peer: float | None
    unit: str
    bound: float | None
    """The most that ours may be, in the same unit."""
    rule: str = ""
    """The bound in words, e.g. ``1/4 of the peer``."""

    @property
    def passed(self) -> bool:
        return self.bound is None or self.ours <= self.bound

    @property
    def verdict(self) -> str:
        return "" if self.bound is None else "PASS" if self.passed else "FAIL"


@dataclass
class Table:
    """The rows of one benchmark."""

    title: str
    rows: list[Row] = field(default_factory=list)

    def add(
        self,
        what: str,
        ours: float,
        peer: float | None = None,
        *,
        unit: str = "ms",
        bound: float | None = None,
        rule: str = "",
    ) -> None:
        self.rows.append(Row(what, ours, peer, unit, bound, rule))

    def finish(self) -> int:
        """Print the table; return 1 when a bound is missed, else 0."""
        heads = ("measured", "ours", "peer", "ours/peer", "at most", "rule", "")
        cells = [heads, *(self._cells(row) for row in self.rows)]
        widths = [max(len(line[column]) for line in cells) for column in range(len(heads))]
        print(f"\n{self.title}")
        for line in cells:
            parts = [
                text.ljust(width) if column in (0, 5, 6) else text.rjust(width)
                for column, (text, width) in enumerate(zip(line, widths, strict=True))
            ]
            print("  " + "  ".join(parts).rstrip())
        sys.stdout.flush()
        return int(not all(row.passed for row in self.rows))

    @staticmethod
    def _cells(row: Row) -> tuple[str, ...]:
        def number(value: float | None) -> str:
            if value is None:
                return "-"
            digits = 0 if abs(value) >= 1000 else 1 if abs(value) >= 100 else 2
            return f"{value:,.{digits}f} {row.unit}"

        ratio = "-"
        if row.peer:
            share = row.ours / row.peer
            ratio = f"1/{1 / share:.3g}" if 0 < share < 0.5 else f"{share:.3g}"
        return (
            row.what,
            number(row.ours),
            number(row.peer),
            ratio,
            number(row.bound),
            row.rule,
            row.verdict,
        )


class Child:
    """A process of a module that answers; a new one when it dies or takes too long."""

    def __init__(self, module: str, limit_s: float) -> None:
        self._module, self._limit_s = module, limit_s
        self._process: subprocess.Popen[str] | None = None

    def ask(self, **request: Any) -> dict[str, Any]:
        """Return the answer, or the verdict ``crash`` or ``time``."""
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", self._module],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                cwd=REPOSITORY,
            )  # fmt: skip
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            ready, _, _ = select.select([process.stdout], [], [], self._limit_s)
            line = process.stdout.readline() if ready else "time"
        except BrokenPipeError:
            line = ""
        if line.startswith("{"):
            answer: dict[str, Any] = json.loads(line)
            return answer
        self.close()
        return {"verdict": "time" if line else "crash"}

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def environment(**extra: str) -> dict[str, str]:
    """Return the variables for child processes: no user settings, this checkout importable.

    What ``PYTHONPATH`` names comes behind it: peers that are installed elsewhere.
    """
    kept = {"PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "VIRTUAL_ENV"}
    variables = {name: value for name, value in os.environ.items() if name in kept}
    also = filter(None, [os.environ.get("PYTHONPATH")])
    paths = os.pathsep.join((str(REPOSITORY / "src"), str(REPOSITORY), *also))
    return {**variables, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "", **extra}


def private_folders(folder: Path) -> dict[str, str]:
    """Return variables that keep settings, state and caches inside `folder`."""
    names = ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")
    return {name: str(folder / name.lower()) for name in names}


def dld() -> list[str]:
    """Return the command that starts the program of this checkout."""
    script = Path(sys.executable).with_name("dld")
    return [str(script)] if script.exists() else [sys.executable, "-m", "dld_tui"]


def fresh(task: Task, *arguments: object, **extra: str) -> dict[str, float]:
    """Run a function of a module in a process of its own and return what it measured.

    ``peak_mb`` is the largest resident size of that process, imports included.
    """
    command = [sys.executable, "-m", "benchmarks.task", task.__module__, task.__name__]
    done = subprocess.run(
        [*command, *map(str, arguments)],
        env=environment(**extra),
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{task.__name__} failed with status {done.returncode}:\n{done.stderr}")
    measured: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return measured


def medians(runs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the median of each quantity."""
    return {key: statistics.median(run[key] for run in runs) for key in runs[0]}


def side_by_side(rounds: int, *calls: tuple[Any, ...], **extra: str) -> list[dict[str, float]]:
    """Run tasks, each with its arguments, in turn, `rounds` times; return the medians of each."""
    runs = [[fresh(task, *arguments, **extra) for task, *arguments in calls] for _ in range(rounds)]
    return [medians(found) for found in zip(*runs, strict=True)]


def commands_ms(
    commands: Mapping[str, Sequence[str]], rounds: int, **extra: str
) -> dict[str, float]:
    """Run the commands in turn, `rounds` times, and return their median wall times in ms."""
    variables = environment(**extra)
    times: dict[str, list[float]] = {name: [] for name in commands}
    for attempt in range(rounds + 1):
        for name, command in commands.items():
            start = time.perf_counter()
            done = subprocess.run(command, env=variables, capture_output=True, check=False)
            if done.returncode:
                sys.exit(f"{' '.join(command)} failed:\n{done.stderr.decode(errors='replace')}")
            if attempt:  # the first round fills the caches
                times[name].append((time.perf_counter() - start) * 1000)
    return {name: statistics.median(found) for name, found in times.items()}


@contextmanager
def work_folder(needed_bytes: int = 0) -> Iterator[Path]:
    """Yield a temporary folder (TMPDIR is honoured) and remove it afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="dld-bench-"))
    # `timeout` and CI end a process so, and gigabytes would stay behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))
    try:
        free = shutil.disk_usage(folder).free
        if free < needed_bytes:
            sys.exit(
                f"{folder.parent}: {free / 1e9:.1f} GB are free and {needed_bytes / 1e9:.1f} GB are"
                " needed; set TMPDIR to a folder with more room, or use smaller sizes"
            )
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def parser(description: str | None) -> argparse.ArgumentParser:
    """Return a command line parser for a benchmark."""
    return argparse.ArgumentParser(
        description=(description or "").splitlines()[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )


def machine() -> str:
    """Return one line that says where the figures come from."""
    return f"{os.cpu_count()} cores {platform.machine()}, Python {platform.python_version()}"


def busy_percent(seconds: float = 2.0) -> float:
    """Return how much of the processors other programs use, in percent; waits `seconds`."""

    def ticks() -> tuple[int, int]:
        first = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0]
        numbers = [int(field) for field in first.split()[1:]]
        return sum(numbers[:8]), numbers[3] + numbers[4]

    total, idle = ticks()
    time.sleep(seconds)
    later_total, later_idle = ticks()
    return 100 * (1 - (later_idle - idle) / max(1, later_total - total))
