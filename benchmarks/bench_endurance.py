"""Thousands of mixed actions in one session: memory, descriptors, threads, journals, latency.

With ``--keys`` instead drawn keys, noise and new sizes in many sessions: ends, hangs, lost edits.
"""

from __future__ import annotations

import os
import random
import shutil
import statistics
import sys
import time
from pathlib import Path

from benchmarks import harness
from benchmarks.terminal import Terminal
from dld_tui.core.model.document.samples import write_demo_models
from tests.support.random_keys import Outcome, session
from tests.support.typist import Programs

ESC, ENTER, OPEN, CLOSE, PALETTE, REDO = "\x1b", "\r", "\x0f", "\x17", "\x10", "\x19"
MEMORY_MB, LATENCY_RATIO = 40.0, 1.5
ANSWER_S, ANSWERS_S = 60.0, 2.0
"""A program that does not answer for so long hangs; it should answer within the second."""
DEEPEST, MOVES = 6, 100
"""Dialogs over each other at most; keys that a latency is measured with."""
_BETWEEN_S, _ESC_S, _AFTER_S = 0.03, 0.15, 0.4
"""How long the program has slept after an action, after Esc, and after a tab was opened or closed.
A timer may still be due, as when somebody types quickly."""
ACTIONS = (
    "jjjj", "kk", "\x1b[6~", "\x1b[5~", "/relu\r", ESC, "1", "2", "3", "4", "m", "m", "l", "h",
    f"{PALETTE}check{ESC}", f"?{ESC}", f"d{ENTER}", "u", "u", REDO, f"rname{ENTER}", "u",
    f"3jje{ESC}", "1", f"a{ESC}", f"c{ESC}", "2v", "jj", "1", f".{ESC}", "gg", "G", "  ", ESC,
)  # fmt: skip
"""What is typed at a model; each is one write."""


def main(argv: list[str]) -> int:
    """Print the table; return 1 when something grew."""
    parser = harness.parser(__doc__)
    parser.add_argument("--actions", type=int, default=10_000, help="actions in all")
    parser.add_argument("--each", type=int, default=40, help="actions before the tab is closed")
    parser.add_argument("--minutes", type=float, default=600, help="so long at most")
    parser.add_argument("--seed", type=int, default=1, help="of the order of actions")
    parser.add_argument("--keys", type=int, default=0, help="type so many drawn keys instead")
    parser.add_argument("--session", type=int, default=1_000, help="keys of one run of the program")
    options = parser.parse_args(argv)
    if options.keys:
        return _drawn(options.keys, options.session, options.seed, options.minutes)
    draw = random.Random(options.seed)
    began = time.perf_counter()
    with harness.work_folder() as folder:
        variables = harness.environment(**harness.private_folders(folder))
        models = write_demo_models(folder)
        with Terminal(harness.dld(), variables, 80, 24) as terminal:
            terminal.wait_for("Start", timeout=60)
            until = began + 60 * options.minutes
            _session(terminal, models, 2 * options.each, options.each, draw, until)  # caches fill
            before, early = _load(terminal), _latency(terminal, models[0])
            done = _session(terminal, models, options.actions, options.each, draw, until)
            if terminal._child.poll() is not None:
                print(terminal.text[-3000:], file=sys.stderr)
                return 1
            after, late = _load(terminal), _latency(terminal, models[0])
        state = Path(variables["XDG_STATE_HOME"])
        faults = "".join(path.read_text() for path in state.rglob("log"))
        journals = len(list(state.rglob("*.jsonl")))
    table = harness.Table(f"{done:,} actions in {(time.perf_counter() - began) / 60:.0f} minutes")
    table.add("memory grown", after[0] - before[0], unit="MB", bound=MEMORY_MB, rule="40 MB")
    table.add("descriptors grown", after[1] - before[1], unit="", bound=0.0, rule="none")
    table.add("threads grown", after[2] - before[2], unit="", bound=2.0, rule="2")
    table.add("journals left", journals, unit="", bound=0.0, rule="none")
    print(faults[:4000], file=sys.stderr)
    table.add("log of faults", len(faults), unit="B", bound=0.0, rule="none")
    for at, name in enumerate(("median", "processor time")):
        bound = early[at] * LATENCY_RATIO if at else None  # the first depends on what else runs
        table.add(f"one row at the start, {name}", early[at])
        table.add(f"one row at the end, {name}", late[at], bound=bound, rule="1.5 times")
    return table.finish()


def _drawn(keys: int, each: int, seed: int, minutes: float) -> int:
    """Type drawn keys in sessions and print what came of it; return 1 when something was wrong."""
    total, began = Outcome(), time.perf_counter()
    with harness.work_folder() as folder, Programs() as programs:
        while total.keys < keys and time.perf_counter() < began + 60 * minutes:
            place = folder / str(total.sessions)
            place.mkdir()
            outcome = session(programs, place, seed + total.sessions, each, ANSWER_S)
            total.add(outcome)
            print(
                f"{total.keys:,} keys, {(time.perf_counter() - began) / 60:.1f} min, "
                f"slowest {outcome.slowest_s:.2f} s, {len(total.faults)} faults",
                *outcome.faults, sep="\n  ", file=sys.stderr, flush=True,
            )  # fmt: skip
            shutil.rmtree(place, ignore_errors=True)
    spent = (time.perf_counter() - began) / 60
    title = f"{total.keys:,} drawn keys in {total.sessions} sessions and {spent:.0f} minutes"
    seen = f"{len(total.pages)} kinds of pages and dialogs"
    again = f"{total.edits} edits of {total.replayed} journals made again"
    table = harness.Table(f"{title}; {seen}; {again}")
    table.add("faults", len(total.faults), unit="", bound=0.0, rule="none")
    table.add("longest without an answer", total.slowest_s, unit="s", bound=ANSWERS_S, rule="2 s")
    return table.finish()


def _session(
    terminal: Terminal,
    models: tuple[Path, ...] | list[Path],
    count: int,
    each: int,
    draw: random.Random,
    until: float,
) -> int:
    """Type actions, opening and closing a tab between every `each` of them; return how many."""
    done, began = 0, time.perf_counter()
    while done < count and time.perf_counter() < until and terminal._child.poll() is None:
        _open(terminal, draw.choice(list(models)))
        for _ in range(min(each, count - done)):
            terminal.send(draw.choice(ACTIONS))
            terminal.wait_calm(_BETWEEN_S)
            done += 1
        _close(terminal)
        memory, descriptors, threads = _load(terminal)
        minutes = (time.perf_counter() - began) / 60
        print(
            f"{done:,} actions, {minutes:.1f} min: {memory:.1f} MB, {descriptors} descriptors, "
            f"{threads} threads", file=sys.stderr, flush=True,
        )  # fmt: skip
    return done


def _open(terminal: Terminal, model: Path) -> None:
    terminal.send(f"{OPEN}{model}{ENTER}")
    terminal.wait_calm(_AFTER_S)


def _close(terminal: Terminal) -> None:
    """Leave all dialogs, close the tab and discard its edits."""
    for _ in range(DEEPEST):
        terminal.send(ESC)
        terminal.wait_calm(_ESC_S)
    before = len(terminal.output)
    terminal.send(CLOSE)
    terminal.wait_calm(_AFTER_S)
    if b"lose" in terminal.output[before:]:
        terminal.send("d")
        terminal.wait_calm(_AFTER_S)


def _latency(terminal: Terminal, model: Path) -> tuple[float, float]:
    """Return the milliseconds of a move by one row in a fresh tab: (median, processor time)."""
    _open(terminal, model)
    terminal.wait_idle()
    terminal.press("1")
    used = terminal.processor_ms()
    times = [terminal.press("jk"[at % 2]).row_ms for at in range(MOVES)]
    used = terminal.processor_ms() - used
    _close(terminal)
    terminal.wait_idle()
    return statistics.median(times), used / MOVES


def _load(terminal: Terminal) -> tuple[float, int, int]:
    """Return (MB, descriptors, threads) of the program, at rest."""
    terminal.wait_calm(_AFTER_S)
    folder = Path(f"/proc/{terminal._child.pid}")
    status = dict(
        line.split(":", 1) for line in (folder / "status").read_text().splitlines() if ":" in line
    )
    return (
        int(status["VmRSS"].split()[0]) / 1024,
        len(os.listdir(folder / "fd")),
        int(status["Threads"]),
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
