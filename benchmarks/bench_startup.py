"""Start the program: ``dld --help``, ``dld inspect`` and the first rows of a small model."""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

from benchmarks import harness, models
from benchmarks.terminal import Terminal

FIRST_ROWS = 2.2
"""Start to the first rows of a small model, in starts of Textual to the paint of one line."""
HELLO = """
from textual.app import App
from textual.widgets import Static
class Hello(App):
    def compose(self):
        yield Static("hello world")
Hello().run()
"""


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
        ours, hello = first_paints_ms(folder, options.rounds)
    table.add(
        "dld, 10 nodes, to the first rows",
        ours,
        hello,
        bound=FIRST_ROWS * hello,
        rule=f"{FIRST_ROWS:g} x a hello-world of Textual",
    )
    return table.finish()


def first_paints_ms(folder: Path, rounds: int) -> tuple[float, float]:
    """Return how long a small model and a hello-world of Textual take to be seen, in turns."""
    model = folder / "small.onnx"
    models.write_small_model(model)
    peers = {
        "ours": ([*harness.dld(), str(model)], r"Sigmoid|layers\.0"),
        "hello": ([sys.executable, "-c", HELLO], "hello world"),
    }
    variables = harness.environment(**harness.private_folders(folder))
    times: dict[str, list[float]] = {name: [] for name in peers}
    for attempt in range(rounds + 1):
        for name, (command, text) in peers.items():
            with Terminal(command, variables, 80, 24) as terminal:
                seconds = terminal.wait_for(text, timeout=60)
            if attempt:  # the first round fills the caches
                times[name].append(seconds * 1000)
    return statistics.median(times["ours"]), statistics.median(times["hello"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
