"""Float16 and sanitizing of a 1.8 GB model: peak memory and time beside the libraries' own."""

from __future__ import annotations

import sys

from benchmarks import harness, models


def main(argv: list[str]) -> int:
    """Print the table; return 1 when a bound is missed."""
    parser = harness.parser(__doc__)
    parser.add_argument("--weights", type=int, default=models.LARGE_WEIGHTS, help="MatMul weights")
    parser.add_argument("--width", type=int, default=models.LARGE_WIDTH, help="of each weight")
    parser.add_argument("--rounds", type=int, default=1, help="runs of each peer")
    options = parser.parse_args(argv)
    largest = options.width**2 * 4 / 1e6
    with harness.work_folder(int(4.5 * options.weights * largest * 1e6)) as folder:
        path, target = folder / "large.onnx", folder / "converted.onnx"
        size = models.write_large_model(path, weights=options.weights, width=options.width)
        private = harness.private_folders(folder) | {"TMPDIR": str(folder)}
        half = harness.side_by_side(
            {"own_fp16": [path, target], "onnxruntime_fp16": [path, target]},
            options.rounds,
            **private,
        )
        clean = harness.side_by_side(
            {"own_sanitize": [path, target], "polygraphy_sanitize": [path, target]},
            options.rounds,
            **private,
        )
    table = harness.Table(f"One file of {size / 1e9:.2f} GB, largest tensor {largest:.0f} MB")
    bound, rule = 2.5 * largest + 500, "2.5 x largest tensor + 500 MB"
    for what, ours, peer in (
        ("float16", half["own_fp16"], half["onnxruntime_fp16"]),
        ("sanitize", clean["own_sanitize"], clean["polygraphy_sanitize"]),
    ):
        peak = max(ours["peak_mb"], ours["child_mb"])
        table.add(f"{what}, peak memory", peak, peer["peak_mb"], unit="MB", bound=bound, rule=rule)
        table.add(f"{what}, time", ours["ms"], peer["ms"])
    return table.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
