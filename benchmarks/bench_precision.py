"""A trial of the precision search beside one for which a model is converted and loaded."""

from __future__ import annotations

import sys

from benchmarks import harness

LEAST = 4.0


def main(argv: list[str]) -> int:
    """Print the table; return 1 when a bound is missed."""
    parser = harness.parser(__doc__)
    parser.add_argument("--layers", type=int, default=12, help="layers of the encoder")
    parser.add_argument("--trials", type=int, default=20, help="trials a round")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of each, in turn")
    options = parser.parse_args(argv)
    found: dict[str, list[dict[str, float]]] = {"switched": [], "copied": []}
    with harness.work_folder() as folder:
        model = folder / "encoder.onnx"
        harness.fresh("encoder_model", model, options.layers)
        for _ in range(options.rounds):
            for way, runs in found.items():
                runs.append(harness.fresh("precision_trials", model, options.trials, way))
    mine, peer = harness.medians(found["switched"]), harness.medians(found["copied"])
    table = harness.Table(
        f"{options.trials} trials of {mine['nodes']:,.0f} nodes; the peer converts and loads one"
        f" model for each; {options.rounds} rounds"
    )
    table.add("a trial", mine["ms"], peer["ms"], bound=peer["ms"] / LEAST, rule="1/4")
    table.add("until the first", mine["ready_ms"], peer["ready_ms"])
    return table.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
