"""The errors of all tensors of two models beside two plain runs of them."""

from __future__ import annotations

import sys

from benchmarks import harness

MOST = 6.0
BUDGET_MIB = 100 * 1e6 / (1 << 20)


def main(argv: list[str]) -> int:
    """Print the table; return 1 when a bound is missed."""
    parser = harness.parser(__doc__)
    parser.add_argument("--blocks", type=int, default=100, help="blocks of four nodes")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each, in turn")
    options = parser.parse_args(argv)
    ours: list[dict[str, float]] = []
    plain: list[dict[str, float]] = []
    with harness.work_folder() as folder:
        one, two = folder / "one.onnx", folder / "two.onnx"
        made = harness.fresh("residual_model", one, options.blocks, 1)
        harness.fresh("residual_model", two, options.blocks, 1.001)
        for attempt in range(options.rounds):
            both = ("tensor_errors", "plain_runs")
            for task in both if attempt % 2 else reversed(both):
                if task == "tensor_errors":
                    ours.append(harness.fresh(task, one, two, BUDGET_MIB))
                else:
                    plain.append(harness.fresh(task, one, two))
    mine, peer = harness.medians(ours), harness.medians(plain)
    table = harness.Table(
        f"Errors of {mine['tensors']:,.0f} tensors of {made['nodes']:,.0f} nodes,"
        f" {made['megabytes']:.0f} MB of activations a model; the peer loads and runs both once;"
        f" {options.rounds} of each"
    )
    table.add("whole comparison", mine["s"], peer["s"], unit="s",
              bound=MOST * peer["s"], rule="6 times the peer")  # fmt: skip
    table.add("best", min(run["s"] for run in ours), min(run["s"] for run in plain), unit="s")
    table.add("values kept at a time", mine["kept_mb"], unit="MB", bound=100.0, rule="100 MB")
    table.add("peak memory", mine["peak_mb"], peer["peak_mb"], unit="MB")
    return table.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
