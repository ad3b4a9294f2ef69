"""Open, save and convert a 1.8 GB model in one file, beside onnx and ONNX Runtime's converter."""

from __future__ import annotations

import sys

from benchmarks import harness, model_tasks, models


def main(argv: list[str]) -> int:
    """Print the table; return 1 when a bound is missed."""
    parser = harness.parser(__doc__)
    parser.add_argument("--weights", type=int, default=models.LARGE_WEIGHTS, help="MatMul weights")
    parser.add_argument("--width", type=int, default=models.LARGE_WIDTH, help="of each weight")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each peer")
    options = parser.parse_args(argv)
    largest = options.width**2 * 4 / 1e6
    with harness.work_folder(int(4.5 * options.weights * largest * 1e6)) as folder:
        path, target = folder / "large.onnx", folder / "written.onnx"
        size = models.write_large_model(path, weights=options.weights, width=options.width)
        private = harness.private_folders(folder) | {"TMPDIR": str(folder)}
        table = harness.Table(
            f"One file of {size / 1e9:.2f} GB, {options.weights} weights of {largest:.0f} MB"
        )
        for what, own, other, times in (
            ("open", model_tasks.document_open, model_tasks.onnx_open, 100),
            ("save", model_tasks.document_save, model_tasks.onnx_save, 2),
        ):
            paths = [path] if what == "open" else [path, target]
            ours, peer = harness.side_by_side(
                options.rounds, (own, *paths), (other, *paths), **private
            )
            name = f"onnx.{'load' if what == 'open' else what}"
            table.add(
                what, ours["ms"], peer["ms"], bound=peer["ms"] / times, rule=f"1/{times} of {name}"
            )
            table.add(
                f"{what}, peak memory", ours["peak_mb"], peer["peak_mb"], unit="MB",
                bound=peer["peak_mb"] / 20, rule=f"1/20 of {name}",
            )  # fmt: skip
        ours, peer = harness.side_by_side(
            1,
            (model_tasks.own_fp16, path, target),
            (model_tasks.onnxruntime_fp16, path, target),
            **private,
        )
        table.add(
            "float16, peak memory", max(ours["peak_mb"], ours["child_mb"]), peer["peak_mb"],
            unit="MB", bound=2.5 * largest + 500, rule="2.5 x a weight + 500 MB",
        )  # fmt: skip
        table.add("float16, time", ours["ms"], peer["ms"])
    return table.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
