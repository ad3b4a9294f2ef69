"""A profile report of a long GPU run: writing, opening and drawing it, beside the same as JSON."""

from __future__ import annotations

import sys

from benchmarks import harness, report_tasks

WRITE_MS = 10_000.0
OPEN_MS = 1000.0
DRAW_MS = 50.0
MEMORY_MB = 300.0


def main(argv: list[str]) -> int:
    """Print the table; return 1 when a bound is missed."""
    parser = harness.parser(__doc__)
    parser.add_argument("--layers", type=int, default=5000, help="layers of the model")
    parser.add_argument("--passes", type=int, default=200, help="profiled passes")
    parser.add_argument("--samples", type=int, default=1_000_000, help="of all counters")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each")
    options = parser.parse_args(argv)
    sizes = (options.layers, options.passes, options.samples)
    with harness.work_folder(2_000_000_000) as folder:
        report, text = folder / "run.dldprof", folder / "run.json"
        ours, peer = harness.side_by_side(
            options.rounds,
            (report_tasks.report_write, report, *sizes),
            (report_tasks.json_report_write, text, *sizes),
        )
        opened, loaded = harness.side_by_side(
            options.rounds,
            (report_tasks.report_open, report),
            (report_tasks.json_report_open, text),
        )
    table = harness.Table(
        f"Report of {options.layers:,} layers x {options.passes:,} passes and {options.samples:,}"
        f" counter samples; the peer is the same rows through Python's json; {options.rounds} runs"
    )
    table.add("write", ours["write_ms"], peer["write_ms"], bound=WRITE_MS, rule="10 s")
    table.add("open", opened["open_ms"], loaded["open_ms"], bound=OPEN_MS, rule="1 s")
    table.add("read one pass", opened["pass_ms"])
    table.add("draw all counters, slowest zoom", opened["draw_ms"], bound=DRAW_MS, rule="50 ms")
    for what, one, other in (
        ("peak memory to write", ours, peer),
        ("peak memory to open", opened, loaded),
    ):
        table.add(what, one["peak_mb"], other["peak_mb"], unit="MB", bound=MEMORY_MB, rule="300 MB")
    table.add("file", ours["mb"], peer["mb"], unit="MB")
    return table.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
