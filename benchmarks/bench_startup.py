"""Start the program: ``dld --help``, ``dld inspect`` and the first rows of a small model."""

from __future__ import annotations

import statistics
import sys
from dataclasses import astuple, dataclass
from pathlib import Path

from benchmarks import harness, models
from benchmarks.quota import Quota, quota
from benchmarks.terminal import Terminal

FIRST_NAME = 1.5
"""Start to the name and the size of a small model, in starts of Textual to the paint of one line:
the bound of the start page, too."""
FIRST_ROWS = 2.2
"""The same to the first rows of it."""
OPEN_MB, START_MB = 70.0, 40.0
"""The most resident memory with a small model open, and on the start page."""
HELLO = """
from textual.app import App
from textual.widgets import Static
class Hello(App):
    def compose(self):
        yield Static("hello world")
Hello().run()
"""
LIST = """
from textual.app import App
from textual.widgets import OptionList
class Names(App):
    def compose(self):
        yield OptionList(*(f"layers.{number}.Conv" for number in range(10)))
Names().run()
"""
SHARE = 0.2
"""Of one core, for the last rows."""
SHARE_ROUNDS = 5
"""The most runs with it: each takes five times as long."""
SLOW_ROWS, SLOW_START = 2.5, 1.5
"""With that share, first rows and start page in times that a list of Textual takes."""


def main(argv: list[str]) -> int:
    """Print the table; return 1 when a bound is missed."""
    parser = harness.parser(__doc__)
    parser.add_argument("--megabytes", type=float, default=5.0, help="size of the inspected model")
    parser.add_argument("--rounds", type=int, default=15, help="runs of each peer")
    options = parser.parse_args(argv)
    with harness.work_folder() as folder:
        path = folder / "model.onnx"
        models.write_weights_model(path, megabytes=options.megabytes)
        times = harness.commands_ms(
            {
                "nothing": [sys.executable, "-c", "pass"],
                "help": [*harness.dld(), "--help"],
                "onnx": [sys.executable, "-c", "import onnx"],
                "inspect": [*harness.dld(), "inspect", str(path)],
            },
            options.rounds,
            **harness.private_folders(folder),
        )
    table = harness.Table(f"Startup, medians of {options.rounds}")
    nothing, imported = times["nothing"], times["onnx"]
    table.add(
        "dld --help",
        times["help"],
        nothing,
        bound=2 * nothing + 60,
        rule="2 x python -c pass + 60 ms",
    )
    table.add(
        f"dld inspect, {options.megabytes:g} MB",
        times["inspect"],
        imported,
        bound=1.5 * imported,
        rule="1.5 x import onnx",
    )
    with harness.work_folder() as folder:
        paints = first_paints(folder, options.rounds)
    hello = paints["hello"]
    for name, what, most in (
        ("name", "dld FILE, to its name and size", FIRST_NAME),
        ("rows", "dld FILE, 10 nodes, to the first rows", FIRST_ROWS),
        ("start", "dld, to the start page", FIRST_NAME),
    ):
        bound = most * hello.cpu_ms
        rule = f"{most:g} x a hello-world of Textual"
        table.add(f"{what}, processor", paints[name].cpu_ms, hello.cpu_ms, bound=bound, rule=rule)
        table.add(f"{what}, wall", paints[name].wall_ms, hello.wall_ms)
    for name, what, most in (("rows", "10 nodes open", OPEN_MB), ("start", "start page", START_MB)):
        memory, least = paints[name].memory_mb, hello.memory_mb
        table.add(f"memory, {what}", memory, least, unit="MB", bound=most, rule=f"{most:g} MB")
    with harness.work_folder() as folder, quota(SHARE) as held:
        paints = first_paints(folder, min(options.rounds, SHARE_ROUNDS), held)
    listed = paints["list"].wall_ms
    print(f"\n{SHARE:.0%} of one core: {held.how}")
    for name, what, most in (
        ("rows", "dld FILE, 10 nodes, to the first rows", SLOW_ROWS),
        ("start", "dld, to the start page", SLOW_START),
    ):
        rule = f"{most:g} x a list of Textual"
        wall = paints[name].wall_ms
        table.add(f"{what}, {SHARE:.0%} of a core", wall, listed, bound=most * listed, rule=rule)
    return table.finish()


@dataclass(frozen=True)
class Paint:
    """Something seen for the first time: medians."""

    wall_ms: float
    cpu_ms: float
    """Of the processor, which other programs hardly slow down."""
    memory_mb: float
    """Resident when the program had come to rest; 0 where that was not measured."""


def first_paints(folder: Path, rounds: int, held: Quota | None = None) -> dict[str, Paint]:
    """Return what a small model, the start page and small programs of Textual take, in turns.

    Args:
        folder: Takes the model and what the program keeps.
        rounds: How often each is started; once more at first, to fill the caches.
        held: Holds each to a share of a core; memory is not looked at then.
    """
    model = folder / "small.onnx"
    models.write_small_model(model)
    peers = {
        "hello": ([sys.executable, "-c", HELLO], {"hello": "hello world"}),
        "list": ([sys.executable, "-c", LIST], {"list": r"layers\.9"}),
        "file": (
            [*harness.dld(), str(model)],
            {"name": r"small\.onnx.*B", "rows": r"MatMul|layers\.0"},
        ),
        "start": (harness.dld(), {"start": "dld-tui"}),
    }
    variables = harness.environment(**harness.private_folders(folder))
    # The start page lists the files of its folder: none, wherever the benchmark is started.
    empty = folder / "empty"
    empty.mkdir()
    found: dict[str, list[Paint]] = {}
    for attempt in range(rounds + 1):
        for command, texts in peers.values():
            # What was opened before is previewed on the start page.
            with Terminal(command, variables, 80, 24, held, empty) as terminal:
                for last, (name, text) in enumerate(texts.items(), 1 - len(texts)):
                    seconds = terminal.wait_for(text, timeout=60)
                    cpu_ms = terminal.processor_ms()
                    memory = 0.0
                    if not last and held is None:
                        terminal.wait_idle()
                        memory = terminal.memory_mb()
                    if attempt:  # the first round fills the caches
                        paint = Paint(seconds * 1000, cpu_ms, memory)
                        found.setdefault(name, []).append(paint)
    return {
        name: Paint(
            *(statistics.median(values) for values in zip(*map(astuple, paints), strict=True))
        )
        for name, paints in found.items()
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
