"""Run all benchmarks, one after the other, and say which bounds are missed."""

from __future__ import annotations

import subprocess
import sys

from benchmarks import harness

SCRIPTS = (
    "startup",
    "many_nodes",
    "edits",
    "large_model",
    "tensor_edit",
    "diff",
    "lint",
    "graph",
    "tui",
    "profiler",
    "report",
    "plan",
    "build",
    "convert",
    "accuracy",
    "precision",
    "import",
    "ssh",
)
_SMALL = {
    "startup": ["--rounds", "5"],
    "many_nodes": ["--nodes", "5000", "--weights", "1500", "--rounds", "3"],
    "edits": ["--nodes", "5000", "--weights", "1500", "--rounds", "1"],
    "large_model": ["--weights", "40", "--rounds", "2"],
    "tensor_edit": ["--width", "2000", "--cells", "100", "--rounds", "1"],
    "diff": ["--nodes", "5000", "--weights", "1500", "--rounds", "2"],
    "lint": ["--nodes", "5000", "--weights", "1500", "--rounds", "2"],
    "graph": ["--layers", "9", "--large", "13", "--rounds", "2"],
    "tui": ["--nodes", "5000", "--weights", "1500", "--keys", "30"],
    "profiler": ["--rounds", "5"],
    "report": ["--layers", "500", "--passes", "40", "--samples", "100000", "--rounds", "1"],
    "plan": ["--layers", "500", "--rounds", "2"],
    "build": ["--layers", "6", "--rounds", "2"],
    "convert": ["--weights", "40"],
    "accuracy": ["--blocks", "10", "--rounds", "2"],
    "precision": ["--layers", "2", "--trials", "4", "--rounds", "1"],
    "import": ["--megabytes", "30", "--copy", "10", "--rounds", "1"],
    "ssh": ["--megabytes", "50", "--rounds", "1"],
}


def main(argv: list[str]) -> int:
    """Run them; return 1 when a bound is missed."""
    parser = harness.parser(__doc__)
    parser.add_argument("names", nargs="*", help=f"some of: {', '.join(SCRIPTS)}; all when empty")
    parser.add_argument("--small", action="store_true", help="small sizes: bounds may be missed")
    options = parser.parse_args(argv)
    unknown = sorted(set(options.names) - set(SCRIPTS))
    if unknown:
        parser.error(f"unknown benchmark {unknown[0]!r}; there are {', '.join(SCRIPTS)}")
    print(f"{harness.machine()}; each peer in fresh processes, medians", flush=True)
    failed = []
    for name in options.names or SCRIPTS:
        flags = _SMALL[name] if options.small else []
        busy = harness.busy_percent()
        if busy > 20:
            print(f"\nother programs use {busy:.0f} % of this machine: times may be too long")
        command = [sys.executable, "-m", f"benchmarks.bench_{name}", *flags]
        if subprocess.run(command, cwd=harness.REPOSITORY, check=False).returncode:
            failed.append(name)
    print(
        f"\nbounds missed or not measured: {', '.join(failed)}"
        if failed
        else "\nall bounds are met"
    )
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
