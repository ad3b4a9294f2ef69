"""Open 50,000 nodes to an indexed document, beside onnx-ir with an index, and protobuf alone."""

from __future__ import annotations

import sys

from benchmarks import harness, model_tasks, models


def main(argv: list[str]) -> int:
    """Print the table; return 1 when a bound is missed."""
    parser = harness.parser(__doc__)
    parser.add_argument("--nodes", type=int, default=50_000, help="nodes of the model")
    parser.add_argument("--weights", type=int, default=15_000, help="small weights of the model")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each peer")
    options = parser.parse_args(argv)
    with harness.work_folder() as folder:
        path = folder / "many.onnx"
        size = models.write_many_nodes(path, nodes=options.nodes, weights=options.weights)
        ours, peer, parsed = harness.side_by_side(
            options.rounds,
            (model_tasks.document_open, path),
            (model_tasks.onnx_ir_open, path),
            (model_tasks.protobuf_parse, path),
            **harness.private_folders(folder),
        )
    table = harness.Table(
        f"{options.nodes:,} nodes, {options.weights:,} weights, {size / 1e6:.1f} MB"
    )
    table.add(
        "open and index", ours["ms"], peer["ms"], bound=peer["ms"] / 4, rule="1/4 of onnx_ir.load"
    )
    parse = parsed["ms"]
    rule = "3 times protobuf's parse"
    table.add("open and index / protobuf's parse", ours["ms"], parse, bound=3 * parse, rule=rule)
    # What other programs do at the time tells less there.
    table.add("  processor time of the same", ours["processor_ms"], parsed["processor_ms"])
    table.add("  open", ours["open_ms"], peer["open_ms"])
    table.add("  index", ours["ms"] - ours["open_ms"], peer["ms"] - peer["open_ms"])
    table.add("peak memory", ours["peak_mb"], peer["peak_mb"], unit="MB")
    return table.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
