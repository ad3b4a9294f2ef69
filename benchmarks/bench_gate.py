"""How often ``dld gate`` is wrong: comparisons of a command with itself, and with 3 % more work.

``python -m benchmarks.bench_gate [COMPARISONS] [RUNS]``. The commands are real processes that hash
a file, on the machine as busy as it is; the slower one's file is 3 % longer.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from dld_tui.core.compare.gate import RUNS, gate_result, in_turns, time_command

_BYTES = 6_000_000


def verdicts(base: str, new: str, comparisons: int, runs: int) -> Counter[str]:
    """Return the verdicts of so many gates."""
    found: Counter[str] = Counter()
    for _ in range(comparisons):
        measured = in_turns(lambda: time_command(base), lambda: time_command(new), runs)
        found[gate_result(base, new, *measured).verdict] += 1
    return found


def main() -> int:
    comparisons, runs = (int(sys.argv[at]) if len(sys.argv) > at else at_least
                         for at, at_least in ((1, 60), (2, RUNS)))  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for size in (_BYTES, round(_BYTES * 1.03)):
            path = Path(folder) / str(size)
            path.write_bytes(os.urandom(size))
            paths.append(f"sha512sum {path}")
        for name, new in (("with itself", paths[0]), ("with 3 % more", paths[1])):
            start = time.perf_counter()
            found = verdicts(paths[0], new, comparisons, runs)
            seconds = (time.perf_counter() - start) / comparisons
            print(f"{name}: {comparisons} comparisons of {runs} pairs, {seconds:.1f} s each,"
                  f" load {os.getloadavg()[0]:.1f}: {dict(found)}", flush=True)  # fmt: skip
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
