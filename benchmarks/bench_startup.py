"""Start the program: ``dld --help`` and ``dld inspect``, beside bare Python."""

from __future__ import annotations

import sys

from benchmarks import harness, models


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
    return table.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
