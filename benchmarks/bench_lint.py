"""Check 50,000 nodes beside onnx's checker and Polygraphy's lint."""

from __future__ import annotations

import sys

from benchmarks import harness, models
from benchmarks.lint_tasks import PEER_LIMIT_S

FULL_MS, SLICE_MS = 2000.0, 50.0


def main(argv: list[str]) -> int:
    """Print the table; return 1 when a bound is missed."""
    parser = harness.parser(__doc__)
    parser.add_argument("--nodes", type=int, default=50_000, help="nodes of the model")
    parser.add_argument("--weights", type=int, default=15_000, help="small weights of the model")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each peer")
    options = parser.parse_args(argv)
    with harness.work_folder() as folder:
        path = folder / "many.onnx"
        models.write_many_nodes(path, nodes=options.nodes, weights=options.weights)
        found = harness.side_by_side(
            {"document_lint": [path], "onnx_lint": [path]},
            options.rounds,
            **harness.private_folders(folder),
        )
        peer = harness.fresh("polygraphy_lint", path, **harness.private_folders(folder))
    ours, onnx = found["document_lint"], found["onnx_lint"]
    polygraphy = peer["ms"] or None
    table = harness.Table(f"Checks of {options.nodes:,} nodes, {options.weights:,} weights")
    table.add("all rules, beside onnx.checker", ours["ms"], onnx["ms"], bound=FULL_MS, rule="2 s")
    table.add(f"beside Polygraphy's lint, up to {PEER_LIMIT_S:.0f} s", ours["ms"], polygraphy)
    table.add("longest slice", ours["worst_slice_ms"], bound=SLICE_MS, rule="50 ms")
    return table.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
