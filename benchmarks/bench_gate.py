"""How often ``dld gate`` is wrong: comparisons of a model with itself, and with 3 % more work.

    python -m benchmarks.bench_gate [--gates 4] [--busy 2] [--limit 170] [--draws 200]

The models are chains of products, that of the slower one is 3 % longer. ``--busy`` adds so many
processes that work and pause at random. Each gate is a real one; the pairs of all of them are then
drawn from again, as often as ``--draws`` says, since 200 gates of three minutes take ten hours.
``--commands`` compares command lines that hash files instead.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from pathlib import Path

import numpy as np

from benchmarks import harness
from dld_tui.api import gate
from dld_tui.core.compare.gate import (
    TOLERANCE_PERCENT,
    GateResult,
    Pair,
    PairTime,
    RunFigures,
    gate_result,
    in_turns,
)
from dld_tui.core.events import result_of

_MORE = 1.03
_BYTES = 6_000_000
_PRODUCTS, _SIDE = 100, 160
_BUSY = """
import random, time
while True:
    end = time.monotonic() + random.expovariate(2)
    while time.monotonic() < end: sum(range(1000))
    time.sleep(random.expovariate(2))
"""


def main(argv: list[str]) -> int:
    """Print what gates say; return 1 where one of the bounds is not held."""
    parser = harness.parser(__doc__)
    parser.add_argument("--gates", type=int, default=4, help="of each kind")
    parser.add_argument("--busy", type=int, default=0, help="processes beside them")
    parser.add_argument("--limit", type=float, default=170.0, help="seconds for a gate")
    parser.add_argument("--draws", type=int, default=200, help="gates made of the same pairs")
    parser.add_argument("--save", type=Path, help="write the ratios of all pairs there")
    parser.add_argument("--commands", action="store_true", help="of command lines")
    options = parser.parse_args(argv)
    is_good, saved = True, dict[str, object]()
    with tempfile.TemporaryDirectory() as name, _busy(options.busy):
        versions = (_commands if options.commands else _models)(Path(name))
        for title, new, wanted in (("with itself", versions[0], (0.0, 0.05)),
                                   ("with 3 % more", versions[1], (0.95, 1.0))):  # fmt: skip
            found = [_timed(versions[0], new, options.limit, options.commands)
                     for _ in range(options.gates)]  # fmt: skip
            results = [result for result, _ in found]
            pair_s = sum(seconds for _, seconds in found) / sum(one.runs for one in results)
            ratios = [ratio for one in results for ratio in one.ratios]
            saved[title] = {"pair_s": pair_s, "ratios": ratios}
            drawn = Counter(_drawn(ratios, pair_s, options.limit, seed)
                            for seed in range(options.draws))  # fmt: skip
            share = drawn["slower"] / max(1, options.draws)
            is_good &= wanted[0] <= share <= wanted[1]
            print(
                f"{title}: {dict(Counter(one.verdict for one in results))} of {len(results)} gates,"
                f" {statistics.median(s for _, s in found):.0f} s and"
                f" {statistics.median(one.runs for one in results):.0f} pairs each; pairs spread by"
                f" {100 * statistics.stdev(np.log(ratios)):.1f} %; {options.draws} drawn from"
                f" {len(ratios)} pairs: {dict(drawn)}; load {os.getloadavg()[0]:.1f}",
                flush=True,
            )
    if options.save:
        options.save.write_text(json.dumps(saved), encoding="utf-8")
    return int(not is_good)


def _timed(base: str, new: str, limit: float, commands: bool) -> tuple[GateResult, float]:
    start = time.perf_counter()
    result = gate(base, new, limit_s=limit, commands=commands)
    return result, time.perf_counter() - start


def _drawn(ratios: Sequence[float], pair_s: float, limit: float, seed: int) -> str:
    """Return the verdict of a gate whose pairs are drawn from those that were measured."""
    dice = random.Random(seed)
    clock = 0.0

    def time_pair(number: int, allowed: PairTime) -> Pair:
        nonlocal clock
        clock += pair_s
        ratio = dice.choice(ratios)
        return Pair(RunFigures(1.0, {}), RunFigures(ratio, {}), ratio)

    now: Callable[[], float] = lambda: clock  # noqa: E731
    pairs = result_of(in_turns(time_pair, limit_s=limit, clock=now)).pairs
    return gate_result("base", "new", pairs, TOLERANCE_PERCENT).verdict


def _commands(folder: Path) -> tuple[str, str]:
    paths = [folder / "base", folder / "new"]
    for path, size in zip(paths, (_BYTES, round(_BYTES * _MORE)), strict=True):
        path.write_bytes(os.urandom(size))
    return f"sha512sum {paths[0]}", f"sha512sum {paths[1]}"


def _models(folder: Path) -> tuple[str, str]:
    import onnx

    paths = [folder / "base.onnx", folder / "new.onnx"]
    for path, count in zip(paths, (_PRODUCTS, round(_PRODUCTS * _MORE)), strict=True):
        nodes = "".join(f"v{at + 1} = MatMul(v{at}, w)" for at in range(count))
        shape = f"float[{_SIDE}, {_SIDE}]"
        text = (f'<ir_version: 8, opset_import: ["" : 17]> chain ({shape} v0, {shape} w)'
                f" => ({shape} v{count}) {{ {nodes} }}")  # fmt: skip
        onnx.save(onnx.parser.parse_model(text), path)
    return str(paths[0]), str(paths[1])


@contextlib.contextmanager
def _busy(count: int) -> Generator[None]:
    others = [subprocess.Popen([sys.executable, "-c", _BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for one in others:
            one.kill()
            one.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
