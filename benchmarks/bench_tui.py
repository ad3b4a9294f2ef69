"""The explorer and the graph of 50,000 nodes in a real terminal: first rows, key presses.

Moves in the graph are in turns with those in a list of Textual.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

from benchmarks import harness, models
from benchmarks.model_tasks import document_open
from benchmarks.terminal import Terminal

SIZES = ((80, 24), (200, 50))
LIST = """
from textual.app import App
from textual.widgets import OptionList
class Rows(App):
    def compose(self):
        yield OptionList(*(f"layers.{number}.Conv" for number in range(1000)))
Rows().run()
"""
"""The peer of a move."""
ROWS = r"Sigmoid|MatMul|layers\.0"
"""Text that only rows of the layers or of the graph hold."""
PICTURE = r"overview"
"""The title of the graph's first view, which is painted with its rows."""
WIDE = 120
"""Columns from which on the graph is seen beside the explorer."""

TO_NODES = "gjjzjzjj"
"""Keys from the first row to a node: down to a scope, unfold it, and the one in it."""

QUIET_S = 0.6
"""The other panes follow a cursor that rests for 0.1 s, and take their time: they are not of the
next key."""

FIRST_ROWS_MS, REPAINT_MS, ROW_BYTES = 1000.0, 20.0, 2048.0
GRAPH_MS, GRAPH_REPAINT_MS, GRAPH_ROW_BYTES, GRAPH_PAGE_BYTES = 1000.0, 10.0, 1024.0, 10_240.0


def main(argv: list[str]) -> int:
    """Print the table; return 1 when a bound is missed."""
    parser = harness.parser(__doc__)
    parser.add_argument("--nodes", type=int, default=50_000, help="nodes of the model")
    parser.add_argument("--weights", type=int, default=15_000, help="small weights of the model")
    parser.add_argument("--keys", type=int, default=100, help="key presses of each kind")
    parser.add_argument("--rounds", type=int, default=5, help="starts of each model")
    options = parser.parse_args(argv)
    with harness.work_folder() as folder:
        many, small = folder / "many.onnx", folder / "small.onnx"
        models.write_many_nodes(many, nodes=options.nodes, weights=options.weights)
        models.write_small_model(small)
        table = harness.Table(f"The explorer of {options.nodes:,} nodes in a pseudo-terminal")
        private = harness.private_folders(folder)
        [opened] = harness.side_by_side(options.rounds, (document_open, many), **private)
        open_ms = opened["open_ms"]
        table.add("Document.open", open_ms)
        for columns, rows in SIZES:
            _add_start(table, folder, (many, small), (columns, rows), open_ms, options.rounds)
            _add_keys(table, folder, many, columns, rows, options.keys)
            _add_graph(table, folder, many, columns, rows, options.keys)
    return table.finish()


def _start(folder: Path, model: Path, columns: int, rows: int) -> Terminal:
    variables = harness.environment(**harness.private_folders(folder))
    return Terminal([*harness.dld(), str(model)], variables, columns, rows)


def _add_start(
    table: harness.Table,
    folder: Path,
    opened: tuple[Path, Path],
    size: tuple[int, int],
    open_ms: float,
    rounds: int,
) -> None:
    """Add when the first rows and the first picture of the graph come.

    The start of the program is in all of it; a start with a small model before each start with the
    large one tells how long that takes at the time.
    """
    many, small = opened
    starts, rows, pictures = [], [], []
    for _ in range(rounds):
        with _start(folder, small, *size) as terminal:
            starts.append(terminal.wait_for(ROWS, timeout=60) * 1000)
        with _start(folder, many, *size) as terminal:
            rows.append(terminal.wait_for(ROWS, timeout=60) * 1000)
            pictures.append(terminal.wait_for(PICTURE, timeout=60) * 1000)
    name = f"{size[0]}x{size[1]}"
    table.add(f"{name}: start to rows of a model of 10 nodes", statistics.median(starts))
    table.add(f"{name}: start to rows", statistics.median(rows))
    table.add(f"{name}: start to the first picture of the graph", statistics.median(pictures))
    for title, times, bound in (
        ("rows", rows, FIRST_ROWS_MS),
        ("first picture", pictures, GRAPH_MS),
    ):
        later = statistics.median(time - start for time, start in zip(times, starts, strict=True))
        after = max(0.0, later - open_ms)
        table.add(f"{name}: {title} after the open", after, bound=bound, rule="1 s")
    later = statistics.median(picture - row for picture, row in zip(pictures, rows, strict=True))
    table.add(f"{name}: first picture after the rows", later)


def _add_keys(
    table: harness.Table, folder: Path, model: Path, columns: int, rows: int, presses: int
) -> None:
    size = f"{columns}x{rows}"
    with _start(folder, model, columns, rows) as terminal:
        terminal.wait_for(ROWS, timeout=60)
        terminal.press("1")
        busy = [terminal.press("jk"[index % 2]) for index in range(10)]
        terminal.wait_idle()
        for key in TO_NODES:
            terminal.press(key)
        moves = [terminal.press("jk"[index % 2], QUIET_S) for index in range(presses)]
        pages = [terminal.press(("\x1b[6~", "\x1b[5~")[index % 2]) for index in range(20)]
    if not all(answer.all_bytes for answer in moves):
        sys.exit(f"{size}: some keys changed nothing on the screen")
    times = [answer.row_ms for answer in moves]
    table.add(f"{size}: one row, median", statistics.median(times))
    table.add(f"{size}: one row, p95", p95(times), bound=REPAINT_MS, rule="20 ms")
    sent = [answer.row_bytes for answer in moves]
    table.add(f"{size}: one row, most bytes", max(sent), unit="B", bound=ROW_BYTES, rule="2 KB")
    most = max(answer.all_bytes - answer.row_bytes for answer in moves)
    table.add(f"{size}:   the other panes, which follow, most bytes", most, unit="B")
    table.add(f"{size}: one page, p95", p95([answer.row_ms for answer in pages]))
    table.add(f"{size}: one page, most bytes", max(a.row_bytes for a in pages), unit="B")
    table.add(f"{size}: one row right after the first rows, worst", max(a.row_ms for a in busy))


def _add_graph(
    table: harness.Table, folder: Path, model: Path, columns: int, rows: int, presses: int
) -> None:
    size = f"{columns}x{rows} graph"
    variables = harness.environment(**harness.private_folders(folder))
    peer = Terminal([sys.executable, "-c", LIST], variables, columns, rows)
    with _start(folder, model, columns, rows) as terminal, peer:
        terminal.wait_for(ROWS, timeout=60)
        terminal.press("2")
        terminal.wait_for(PICTURE, timeout=60)
        terminal.wait_idle()
        terminal.press("v")  # the rails, in which every node is a row
        terminal.wait_idle()
        moves, theirs = [], []
        for index in range(presses):
            moves.append(terminal.press("jk"[index % 2], QUIET_S))
            theirs.append(peer.press(("\x1b[B", "\x1b[A")[index % 2]))
        pages = [terminal.press(("\x1b[6~", "\x1b[5~")[index % 2]) for index in range(20)]
    times, peers = ([answer.row_ms for answer in one] for one in (moves, theirs))
    median = statistics.median
    table.add(f"{size}: one row / a list of Textual, median", median(times), median(peers))
    what = f"{size}: one row / a list of Textual, p95"
    table.add(what, p95(times), p95(peers), bound=GRAPH_REPAINT_MS, rule="10 ms")
    most, more = (max(answer.row_bytes for answer in one) for one in (moves, theirs))
    what = f"{size}: one row, most bytes"
    table.add(what, most, more, unit="B", bound=GRAPH_ROW_BYTES, rule="1 KB")
    most = max(answer.all_bytes - answer.row_bytes for answer in moves)
    table.add(f"{size}:   the other panes, which follow, most bytes", most, unit="B")
    most = max(answer.row_bytes for answer in pages)
    table.add(f"{size}: one page, most bytes", most, unit="B", bound=GRAPH_PAGE_BYTES, rule="10 KB")


def p95(values: list[float]) -> float:
    """Return the 95th percentile."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(0.95 * len(ordered)))]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
