"""Prepare the views of graphs of 1,000, 10,000 and 45,000 nodes, beside graphviz dot.

About 1,000 nodes have a transformer's encoder and decoder, a mixture of experts, and convolutional
networks of many kinds; dot lays out the same boxes and lines in the same run, and its crossings are
counted by the same rule.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable

import onnx

from benchmarks import graph_tasks, harness, networks, transformers

_MOST_CROSSINGS = 10
_LAYOUT_MS = {"encoder": 50.0, "small decoder": 50.0, "decoder": 400.0}
_NOT_COMPARED = ("decoder", "experts")
"""dot takes minutes for 10,000 nodes."""
_RAIL_MS, _FOLD_MS = 300.0, 150.0
"""At 50,000 nodes."""


def main(argv: list[str]) -> int:
    """Print the table; return 1 when a bound is missed."""
    parser = harness.parser(__doc__)
    parser.add_argument("--layers", type=int, default=90, help="layers of the middle decoder")
    parser.add_argument("--large", type=int, default=135, help="layers of the large decoder")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each peer")
    options = parser.parse_args(argv)
    with harness.work_folder() as folder:
        models: dict[str, Callable[[], onnx.ModelProto]] = {
            "encoder": transformers.encoder,
            "small decoder": lambda: transformers.decoder(8),
            "small experts": lambda: transformers.decoder(4, 8),
            "inception": networks.inception,
            "dense": lambda: networks.dense((20, 40, 60, 40), flat=False),
            "flat dense": networks.dense,
            "U-net": networks.unet,
            "nested U-net": networks.nested_unet,
            "pyramid": networks.pyramid,
            "exchange": networks.exchange,
            "searched": networks.searched,
            "decoder": lambda: transformers.decoder(options.layers),
            "experts": lambda: transformers.decoder(options.large, 18),
        }
        table = harness.Table("Graphs; the peer is graphviz dot, on the same boxes and lines")
        has_dot = shutil.which("dot") is not None
        if not has_dot:
            print("not compared: graphviz dot is not installed")
        for name, model in models.items():
            path = folder / "graph.onnx"
            onnx.save(model(), path)
            calls = [(graph_tasks.graph_prepare, path)]
            if has_dot and name not in _NOT_COMPARED:
                calls.append((graph_tasks.dot_layout, path))
            private = harness.private_folders(folder)
            ours, *dot = harness.side_by_side(options.rounds, *calls, **private)
            _add(table, name, ours, dot[0] if dot else None)
    return table.finish()


def _add(
    table: harness.Table, name: str, ours: dict[str, float], dot: dict[str, float] | None
) -> None:
    what = f"{name}, {int(ours['nodes']):,}:"
    most = _LAYOUT_MS.get(name)
    if "layout_ms" not in ours:
        table.add(f"{what} rails", ours["rail_ms"], bound=_RAIL_MS, rule=f"{_RAIL_MS:.0f} ms")
        table.add(f"{what} folds", ours["fold_ms"], bound=_FOLD_MS, rule=f"{_FOLD_MS:.0f} ms")
        return
    table.add(f"{what} rails", ours["rail_ms"])
    table.add(f"{what} folds", ours["fold_ms"])
    if most is not None:
        table.add(f"{what} layout", ours["layout_ms"], bound=most, rule=f"{most:.0f} ms")
    if dot is None:
        table.add(f"{what} crossings", ours["crossings"], unit="")
        return
    table.add(
        f"{what} layout", ours["layout_ms"], dot["ms"], bound=dot["ms"] / 5, rule="1/5 of the peer"
    )
    if name == "encoder":
        table.add(f"{what} crossings", ours["crossings"], unit="", bound=_MOST_CROSSINGS, rule="10")
    table.add(
        f"{what} crossings", ours["crossings"], dot["crossings"], unit="", bound=dot["crossings"],
        rule="the peer",
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
