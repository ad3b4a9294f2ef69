"""Open and save a 1.8 GB model in one file: Document beside onnx."""

from __future__ import annotations

import sys

from benchmarks import harness, models


def main(argv: list[str]) -> int:
    """Print the table; return 1 when a bound is missed."""
    parser = harness.parser(__doc__)
    parser.add_argument("--weights", type=int, default=models.LARGE_WEIGHTS, help="MatMul weights")
    parser.add_argument("--width", type=int, default=models.LARGE_WIDTH, help="of each weight")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each peer")
    options = parser.parse_args(argv)
    wanted = options.weights * options.width**2 * 4
    with harness.work_folder(int(2.1 * wanted)) as folder:
        path, target = folder / "large.onnx", folder / "saved.onnx"
        size = models.write_large_model(path, weights=options.weights, width=options.width)
        opened = harness.side_by_side(
            {"document_open": [path], "onnx_open": [path]}, options.rounds
        )
        saved = harness.side_by_side(
            {"document_save": [path, target], "onnx_save": [path, target]},
            options.rounds,
            **harness.private_folders(folder),
        )
    table = harness.Table(f"One file of {size / 1e9:.2f} GB, {options.weights} weights")
    ours, peer = opened["document_open"], opened["onnx_open"]
    table.add("open", ours["ms"], peer["ms"], bound=peer["ms"] / 100, rule="1/100 of onnx.load")
    _add_peak(table, "open, peak memory", ours, peer, "onnx.load")
    ours, peer = saved["document_save"], saved["onnx_save"]
    table.add("save", ours["ms"], peer["ms"], bound=peer["ms"] / 2, rule="1/2 of onnx.save")
    _add_peak(table, "save, peak memory", ours, peer, "onnx.save")
    return table.finish()


def _add_peak(
    table: harness.Table, what: str, ours: dict[str, float], peer: dict[str, float], name: str
) -> None:
    bound = peer["peak_mb"] / 20
    table.add(
        what, ours["peak_mb"], peer["peak_mb"], unit="MB", bound=bound, rule=f"1/20 of {name}"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
