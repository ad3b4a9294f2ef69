"""Prepare the views of graphs of 1,000, 10,000 and 45,000 nodes, beside graphviz dot."""

from __future__ import annotations

import shutil
import sys

import onnx

from benchmarks import harness, transformers

_MOST_CROSSINGS = 10
_LAYOUT_MS = {"encoder": 50.0, "decoder": 400.0}
_COMPARED = ("encoder", "small decoder")
"""About 1,000 nodes each; dot takes minutes for 10,000."""
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
        models = {
            "encoder": transformers.encoder(),
            "small decoder": transformers.decoder(8),
            "decoder": transformers.decoder(options.layers),
            "experts": transformers.decoder(options.large, 18),
        }
        table = harness.Table("Graphs; the peer is graphviz dot, on the same boxes and lines")
        has_dot = shutil.which("dot") is not None
        if not has_dot:
            print("not compared: graphviz dot is not installed")
        for name, model in models.items():
            path = folder / "graph.onnx"
            onnx.save(model, path)
            tasks = {"graph_prepare": [path]}
            if has_dot and name in _COMPARED:
                tasks["dot_layout"] = [path]
            found = harness.side_by_side(tasks, options.rounds, **harness.private_folders(folder))
            ours, dot = found["graph_prepare"], found.get("dot_layout")
            _add(table, name, ours, dot)
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
    rule = f"{most:.0f} ms" if most is not None else ""
    table.add(f"{what} layout", ours["layout_ms"], bound=most, rule=rule)
    if dot is not None:
        table.add(
            f"{what} layout", ours["layout_ms"], dot["ms"],
            bound=dot["ms"] / 5, rule="1/5 of the peer",
        )  # fmt: skip
    crossings = ours["crossings"]
    if name != "encoder":
        table.add(f"{what} crossings", crossings, dot["crossings"] if dot else None, unit="")
        return
    table.add(f"{what} crossings", crossings, unit="", bound=_MOST_CROSSINGS, rule="10")
    if dot is not None:
        table.add(
            f"{what} crossings", crossings, dot["crossings"], unit="", bound=dot["crossings"],
            rule="the peer",
        )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
