"""Open an engine plan of 5,000 layers with its profile, and lint it, beside json and a loop."""

from __future__ import annotations

import sys

from benchmarks import harness
from benchmarks.plan_tasks import write_plan

OPEN_TIMES, LINT_MS, HTML_MS = 2.0, 100.0, 2000.0


def main(argv: list[str]) -> int:
    """Print the table; return 1 when a bound is missed."""
    parser = harness.parser(__doc__)
    parser.add_argument("--layers", type=int, default=5000, help="layers of the engine")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each")
    options = parser.parse_args(argv)
    with harness.work_folder() as folder:
        graph, profile = write_plan(folder, options.layers)
        found = harness.side_by_side(
            {"plan_open": [graph], "json_plan_open": [graph, profile], "plan_html": [graph]},
            options.rounds,
        )
        megabytes = (graph.stat().st_size + profile.stat().st_size) / 1e6
    ours, peer = found["plan_open"], found["json_plan_open"]
    table = harness.Table(
        f"Engine plan of {options.layers:,} layers and its profile, {megabytes:.1f} MB; the peer is"
        f" Python's json and a loop that makes a row a layer; processor time; {options.rounds} runs"
    )
    table.add(
        "open", ours["open_ms"], peer["open_ms"], bound=OPEN_TIMES * peer["open_ms"],
        rule="2 x json",
    )  # fmt: skip
    table.add("lint", ours["lint_ms"], bound=LINT_MS, rule="0.1 s")
    table.add("page", found["plan_html"]["html_ms"], bound=HTML_MS, rule="2 s")
    table.add("find the nodes of each layer", ours["map_ms"])
    table.add("make three tables", ours["tables_ms"])
    table.add("peak memory", ours["peak_mb"], peer["peak_mb"], unit="MB")
    return table.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
