"""Edit cells of a 600 MB tensor and save its 1.8 GB model: Document beside onnx and numpy."""

from __future__ import annotations

import sys

from benchmarks import harness, models

_PEAK_MB = 150


def main(argv: list[str]) -> int:
    """Print the table; return 1 when a bound is missed."""
    parser = harness.parser(__doc__)
    parser.add_argument("--weights", type=int, default=3, help="MatMul weights, at least 2")
    parser.add_argument("--width", type=int, default=12_247, help="of each weight")
    parser.add_argument("--cells", type=int, default=1000, help="edits, of the peer three")
    parser.add_argument("--rounds", type=int, default=2, help="runs of each peer")
    options = parser.parse_args(argv)
    wanted = options.weights * options.width**2 * 4
    with harness.work_folder(int(2.1 * wanted)) as folder:
        path, target = folder / "large.onnx", folder / "saved.onnx"
        size = models.write_large_model(path, weights=options.weights, width=options.width)
        found = harness.side_by_side(
            {
                "document_cells": [path, target, options.cells],
                "onnx_cells": [path, target, 3],
                "document_look": [path],
                "numpy_look": [path],
            },
            options.rounds,
            **harness.private_folders(folder),
        )
    each = options.width**2 * 4
    table = harness.Table(f"A tensor of {each / 1e6:.0f} MB in one file of {size / 1e9:.2f} GB")
    ours, peer = found["document_cells"], found["onnx_cells"]
    table.add("set a cell", ours["ms"], peer["ms"], bound=5, rule="5 ms")
    table.add("undo it", ours["undo_ms"], bound=5, rule="5 ms")
    table.add("save", ours["save_ms"], peer["save_ms"], bound=peer["save_ms"] / 2, rule="1/2")
    _add_peak(table, "set cells and save, peak memory", ours, peer)
    ours, peer = found["document_look"], found["numpy_look"]
    table.add("50 x 20 cells of a plane", ours["ms"], bound=20, rule="20 ms")
    plan = peer["plan_ms"]
    table.add("what float16 would lose", ours["plan_ms"], plan, bound=4 * plan, rule="4 times")
    histogram = peer["histogram_ms"]
    table.add(
        "histogram and statistics",
        ours["histogram_ms"],
        histogram,
        bound=4 * histogram,
        rule="4 times",
    )
    _add_peak(table, "look at it, peak memory", ours, peer)
    return table.finish()


def _add_peak(
    table: harness.Table, what: str, ours: dict[str, float], peer: dict[str, float]
) -> None:
    rule = f"{_PEAK_MB} MB"
    table.add(what, ours["peak_mb"], peer["peak_mb"], unit="MB", bound=_PEAK_MB, rule=rule)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
