"""An engine build with ``dld build``'s activity beside a plain script that uses Polygraphy."""

from __future__ import annotations

import importlib.util
import statistics
import sys

from benchmarks import harness

MOST = 1.05


def main(argv: list[str]) -> int:
    """Print the table; return 1 when the bound is missed."""
    parser = harness.parser(__doc__)
    parser.add_argument("--layers", type=int, default=60, help="layers of the encoder")
    parser.add_argument("--rounds", type=int, default=7, help="builds of each, in turn")
    options = parser.parse_args(argv)
    for module in ("tensorrt_rtx", "polygraphy"):
        if importlib.util.find_spec(module) is None:
            print(f"\nEngine builds: not measured, {module} is not installed")
            return 0
    ours: list[dict[str, float]] = []
    plain: list[dict[str, float]] = []
    with harness.work_folder() as folder:
        model, folders = folder / "model.onnx", harness.private_folders(folder)
        nodes = harness.fresh("encoder_model", model, options.layers)["nodes"]
        for attempt in range(options.rounds):
            # Whoever runs second finds a warmer machine, so they take turns.
            tasks = ("our_build", "plain_build")
            for task in tasks if attempt % 2 else reversed(tasks):
                found = harness.fresh(task, model, folder / f"{task}.engine", **folders)
                (ours if task == "our_build" else plain).append(found)
    table = harness.Table(
        f"Build of {nodes:,.0f} nodes with TensorRT-RTX, {options.rounds} of each"
    )
    mine, peer = harness.medians(ours), harness.medians(plain)
    table.add("whole build", mine["s"], peer["s"], unit="s")
    table.add("processor time", mine["cpu_s"], peer["cpu_s"], unit="s")
    # A busy machine adds seconds to some builds of both; the two of a round meet about the same.
    paired = [run["s"] / peer_run["s"] for run, peer_run in zip(ours, plain, strict=True)]
    ratio = statistics.median(paired)
    table.add("ratio of a round, median", ratio, unit="x", bound=MOST, rule="5 % over the peer")
    best, best_peer = (min(run["s"] for run in runs) for runs in (ours, plain))
    table.add("best whole build", best, best_peer, unit="s")
    table.add("parsing and building alone", mine["library_s"], unit="s")
    table.add("peak memory", mine["peak_mb"], peer["peak_mb"], unit="MB")
    table.add("engine", mine["bytes"] / 1e6, peer["bytes"] / 1e6, unit="MB")
    return table.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
