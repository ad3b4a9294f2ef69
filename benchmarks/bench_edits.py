"""Every edit and its undo on 50,000 nodes, beside the same by plain protobuf."""

from __future__ import annotations

import sys

from benchmarks import harness
from benchmarks.edit_tasks import WHOLE, write_edit_model

_MOST_MS = 5.0
_MOST_PER_USER_MS = 1.0


def main(argv: list[str]) -> int:
    """Print the table; return 1 when a bound is missed."""
    parser = harness.parser(__doc__)
    parser.add_argument("--nodes", type=int, default=50_000, help="nodes of the model")
    parser.add_argument("--weights", type=int, default=15_000, help="small weights of the model")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each peer")
    options = parser.parse_args(argv)
    with harness.work_folder() as folder:
        path = folder / "edits.onnx"
        write_edit_model(path, nodes=options.nodes, weights=options.weights)
        found = harness.side_by_side(
            {"document_edits": [path, folder], "protobuf_edits": [path]},
            options.rounds,
            **harness.private_folders(folder),
        )
    ours, peer = found["document_edits"], found["protobuf_edits"]
    table = harness.Table(f"edits on {options.nodes:,} nodes; peer: plain protobuf")
    for key in ours:
        edit, _, part = key.partition(".")
        if part == "missing":
            print(f"not measured: {edit}")
        elif part:
            bound = None if edit in WHOLE else _MOST_MS
            what = edit if part == "edit" else "  undo"
            table.add(what, ours[key], peer.get(key), bound=bound, rule="5 ms" if bound else "")
    users = ours["users"]
    table.add(
        f"replace_uses, each of {users:,.0f} users",
        ours["replace_uses.edit"] / users,
        peer["replace_uses.edit"] / users,
        bound=_MOST_PER_USER_MS,
        rule="1 ms a user",
    )
    return table.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
