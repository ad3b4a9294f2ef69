"""Open a 500 MB profile of ONNX Runtime as a report, beside json.load of a smaller copy."""

from __future__ import annotations

import sys

from benchmarks import harness
from benchmarks.import_tasks import write_profile

_PEAK_MB = 150
_LEAST_RATE = 10.0
"""MB/s."""


def main(argv: list[str]) -> int:
    """Print the table; return 1 when a bound is missed."""
    parser = harness.parser(__doc__)
    parser.add_argument("--megabytes", type=int, default=500, help="of the profile")
    parser.add_argument("--copy", type=int, default=50, help="megabytes of the peer's copy")
    parser.add_argument("--rounds", type=int, default=3, help="runs with the copy")
    options = parser.parse_args(argv)
    with harness.work_folder(2 * options.megabytes * 1_000_000) as folder:
        large, small = folder / "large.json", folder / "small.json"
        size = write_profile(large, options.megabytes * 1_000_000)
        part = write_profile(small, options.copy * 1_000_000)
        private = harness.private_folders(folder)
        whole = harness.fresh("profile_import", large, **private)
        found = harness.side_by_side(
            {"profile_import": [small], "json_import": [small], "trace_import": [small]},
            options.rounds,
            **private,
        )
    ours, peer, trace = (found[f"{name}_import"] for name in ("profile", "json", "trace"))
    table = harness.Table(
        f"A profile of {size / 1e6:.0f} MB, {whole['passes']:,.0f} passes, beside json.load of"
        f" {part / 1e6:.0f} MB; progress was told {whole['told']:,.0f} times"
    )
    rate = size / 1e3 / whole["ms"]
    bound = size / 1e3 / _LEAST_RATE
    table.add(
        f"open it as a report ({rate:.0f} MB/s)",
        whole["ms"],
        bound=bound,
        rule=f"{_LEAST_RATE:.0f} MB/s",
    )
    table.add(
        "peak memory, the peer's of the smaller copy",
        whole["peak_mb"],
        peer["peak_mb"],
        unit="MB",
        bound=_PEAK_MB,
        rule=f"{_PEAK_MB} MB",
    )
    table.add("the smaller copy, statistics and samples stored", ours["ms"], peer["ms"])
    table.add("the smaller copy as a Chrome trace", trace["ms"], peer["ms"])
    table.add("its peak memory", trace["peak_mb"], peer["peak_mb"], unit="MB")
    return table.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
