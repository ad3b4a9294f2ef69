"""Compare two models of 50,000 nodes, beside onnx and a comparison of dictionaries by name."""

from __future__ import annotations

import sys
from pathlib import Path

import onnx

from benchmarks import harness, models

_LIMIT_MS = 3000.0


def main(argv: list[str]) -> int:
    """Print the table; return 1 when a bound is missed."""
    parser = harness.parser(__doc__)
    parser.add_argument("--nodes", type=int, default=50_000, help="nodes of each model")
    parser.add_argument("--weights", type=int, default=15_000, help="small weights of each model")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each peer")
    options = parser.parse_args(argv)
    table = harness.Table(f"two models of {options.nodes:,} nodes, {options.weights:,} weights")
    with harness.work_folder() as folder:
        old = folder / "old.onnx"
        models.write_many_nodes(old, nodes=options.nodes, weights=options.weights)
        for title, write in (("an edit", _edited), ("every name differs", _renamed)):
            new = folder / "new.onnx"
            write(old, new)
            found = harness.side_by_side(
                {"document_diff": [old, new], "onnx_diff": [old, new]},
                options.rounds,
                **harness.private_folders(folder),
            )
            ours, peer = found["document_diff"], found["onnx_diff"]
            table.add(
                f"{title}: open, compare", ours["ms"], peer["ms"], bound=_LIMIT_MS, rule="3 s"
            )
            table.add("  open", ours["open_ms"], peer["open_ms"])
            table.add("  peak memory", ours["peak_mb"], peer["peak_mb"], unit="MB")
            table.add("  differences", ours["changes"], peer["changes"], unit="")
    return table.finish()


def _edited(old: Path, new: Path) -> None:
    """Write a model with a node renamed, one deleted and a weight changed."""
    model = onnx.load(old)
    nodes = model.graph.node
    middle = len(nodes) // 2
    nodes[middle].name = "renamed"
    gone = nodes[middle + 12]
    for node in nodes[middle + 13 :]:
        for index, name in enumerate(node.input):
            if name == gone.output[0]:
                node.input[index] = gone.input[0]
    del nodes[middle + 12]
    tensor = model.graph.initializer[0]
    tensor.raw_data = bytes(4) + tensor.raw_data[4:]
    onnx.save(model, new)


def _renamed(old: Path, new: Path) -> None:
    """Write the model with other names for all nodes and values."""
    model = onnx.load(old)
    graph = model.graph
    names: dict[str, str] = {}

    def other(name: str) -> str:
        return names.setdefault(name, f"v{len(names)}")

    for number, node in enumerate(graph.node):
        node.name = f"n{number}"
        for index, name in enumerate(node.input):
            node.input[index] = other(name)
        for index, name in enumerate(node.output):
            node.output[index] = other(name)
    for value in (*graph.input, *graph.output):
        value.name = other(value.name)
    for tensor in graph.initializer:
        tensor.name = other(tensor.name)
    onnx.save(model, new)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
