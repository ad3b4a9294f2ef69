"""``python -m benchmarks``: those that need no model of the user, and which bounds are missed."""

from __future__ import annotations

import subprocess
import sys

from benchmarks import harness

SMALL = {
    "startup": ["--rounds", "5"],
    "many_nodes": ["--nodes", "5000", "--weights", "1500", "--rounds", "3"],
    "large_model": ["--weights", "40", "--rounds", "2"],
    "graph": ["--layers", "9", "--large", "13", "--rounds", "2"],
    "tui": ["--nodes", "5000", "--weights", "1500", "--keys", "30"],
    "findings": ["--nodes", "2000", "--edits", "3"],
    "profiler": ["--rounds", "5"],
    "report": ["--layers", "500", "--passes", "40", "--samples", "100000", "--rounds", "1"],
    "ssh": ["--megabytes", "50", "--rounds", "1"],
}
"""The benchmarks, with the options that make each of them short."""


def main(argv: list[str]) -> int:
    """Run them, one after the other; return 1 when a bound is missed."""
    parser = harness.parser(__doc__)
    parser.add_argument("names", nargs="*", help=f"some of: {', '.join(SMALL)}; all when empty")
    parser.add_argument("--small", action="store_true", help="small sizes: bounds may be missed")
    options = parser.parse_args(argv)
    unknown = sorted(set(options.names) - set(SMALL))
    if unknown:
        parser.error(f"unknown benchmark {unknown[0]!r}; there are {', '.join(SMALL)}")
    print(f"{harness.machine()}; each peer in fresh processes, medians", flush=True)
    failed = []
    for name in options.names or SMALL:
        flags = SMALL[name] if options.small else []
        busy = harness.busy_percent()
        if busy > 20:
            print(f"\nother programs use {busy:.0f} % of this machine: times may be too long")
        command = [sys.executable, "-m", f"benchmarks.bench_{name}", *flags]
        if subprocess.run(command, cwd=harness.REPOSITORY, check=False).returncode:
            failed.append(name)
    missed = ", ".join(failed)
    print(f"\nbounds missed or not measured: {missed}" if failed else "\nall bounds are met")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
