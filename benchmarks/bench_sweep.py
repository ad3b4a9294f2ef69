"""Points of ``dld sweep`` beside a plain loop of ``session.run`` in the same run.

    python -m benchmarks.bench_sweep MODEL... [--providers CUDA] [--batch 1,2,4,8] [--duration 3]

The loop has a session of its own, without a line of dld-tui in what is timed. It takes a turn after
each turn of the sweep, as long as that, so that what changes slowly on the machine hits both alike.
A point agrees where the median of the loop's turns lies inside the sweep's interval, or within 3 %
of its figure. The overhead is what the sweep takes beyond its timed turns: opening the model,
making sessions, trying each point; without the loop, and without starting a process.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from benchmarks import harness
from dld_tui.activities.sweep.job import TURNS, Request, run
from dld_tui.backends.onnxruntime.runtime import load, version
from dld_tui.core.errors import DldError
from dld_tui.core.events import Finished, Progress
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.inputs.guess import candidate_guesses, input_specs
from dld_tui.core.report.latency import settle
from dld_tui.core.report.sweep import BATCH, PROVIDER, THREADS, Sweep, places

_WITHIN, _OVERHEAD = 0.03, 0.15
_WARM, _LEAST = 1, 3
"""Passes of a turn that are not counted, and that are counted at least."""


def main(argv: list[str]) -> int:
    """Print a row a point; return 1 where a point is off or the overhead too high."""
    parser = harness.parser(__doc__)
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--providers", action="append", default=[], metavar="NAME")
    parser.add_argument("--batch", default="1,2,4,8")
    parser.add_argument("--dim", action="append", default=[], metavar="NAME=N,…")
    parser.add_argument("--threads", default="")
    parser.add_argument("--duration", type=float, default=3.0, help="seconds a point")
    options = parser.parse_args(argv)
    print(f"{harness.machine()}; ONNX Runtime {version()};"
          f" others use {harness.busy_percent():.0f} % of the processors\n")  # fmt: skip
    print("| model | point | sweep ms | from | to | loop ms | loop / sweep | agrees |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    agreeing, overheads = list[bool](), dict[str, float]()
    for model in map(Path.resolve, options.models):
        try:
            sweep, loop, overheads[model.name] = _beside(model, options)
        except DldError as error:
            print(f"| {model.name} | {error} | | | | | | |", flush=True)
            continue
        agreeing += _rows(model.name, sweep, loop)
    print()
    for name, overhead in overheads.items():
        print(f"{name}: {100 * overhead:.1f} % beyond the timed turns")
    print(f"\n{sum(agreeing)} of {len(agreeing)} points agree; the highest overhead is"
          f" {100 * max(overheads.values(), default=0.0):.1f} %")  # fmt: skip
    return int(not all(agreeing) or max(overheads.values(), default=0.0) > _OVERHEAD)


def _beside(
    model: Path, options: argparse.Namespace
) -> tuple[Sweep, dict[tuple[int | str, ...], list[float]], float]:
    """Sweep a model with a turn of the loop after each turn; return both, and the overhead."""
    asked = Request(
        model, batch=options.batch, dim=tuple(options.dim), threads=options.threads,
        provider=tuple(options.providers), duration=options.duration, again=True,
    )  # fmt: skip
    spots, loop = places(asked.axes()), _Loop(model, asked)
    times: dict[tuple[int | str, ...], list[float]] = {}
    loop_s = 0.0
    for event in run(asked):
        if isinstance(event, Progress) and event.unit == "turns":
            began = time.monotonic()
            settle()  # threads of the other session spin for some time
            at = spots[int(event.done) % len(spots)]
            if (ms := loop.turn(at, options.duration / TURNS)) is not None:
                times.setdefault(at, []).append(ms)
            settle()
            loop_s += time.monotonic() - began
        elif isinstance(event, Finished):
            sweep: Sweep = event.result
    return sweep, times, (sweep.seconds - loop_s) / sweep.measured_s - 1


class _Loop:
    """Sessions as anybody makes them, by provider and threads."""

    def __init__(self, model: Path, asked: Request) -> None:
        self._model, self._axes = model, [axis.name for axis in asked.axes()]
        self._provider = next(iter(asked.provider), "CPU")
        self._sessions: dict[tuple[str, int], Any] = {}
        self._feeds: dict[tuple[int | str, ...], dict[str, Any]] = {}

    def turn(self, at: tuple[int | str, ...], seconds: float) -> float | None:
        """Return the median ms of passes for so long; None where the point cannot be run."""
        sizes = dict(zip(self._axes, at, strict=True))
        key = str(sizes.get(PROVIDER, self._provider)), int(sizes.get(THREADS, 0))
        if key not in self._sessions:
            runtime = load()
            settings = runtime.SessionOptions()
            settings.intra_op_num_threads = key[1]
            settings.log_severity_level = 4
            names = [f"{key[0]}ExecutionProvider"]
            self._sessions[key] = runtime.InferenceSession(
                str(self._model), settings, providers=names
            )
        if at not in self._feeds:
            self._feeds[at] = self._feed(sizes)
        session, feed = self._sessions[key], self._feeds[at]
        try:
            for _ in range(_WARM):
                session.run(None, feed)
        except Exception:  # noqa: BLE001 - whatever ONNX Runtime raises: the sweep says why
            return None
        times, end = list[float](), time.perf_counter() + seconds
        while len(times) < _LEAST or time.perf_counter() < end:
            begin = time.perf_counter()
            session.run(None, feed)
            times.append(1000 * (time.perf_counter() - begin))
        return statistics.median(times)

    def _feed(self, sizes: dict[str, int | str]) -> dict[str, Any]:
        dims = {
            name: size for name, size in sizes.items()
            if isinstance(size, int) and name not in (BATCH, THREADS)
        }  # fmt: skip
        batch = sizes.get(BATCH)
        with closing(Document.open(self._model)) as document:
            guesses = candidate_guesses(
                input_specs(document), document, {}, dims,
                batch=batch if isinstance(batch, int) else None,
            )  # fmt: skip
            return dict(next(guesses).values(0))


def _rows(name: str, sweep: Sweep, loop: dict[tuple[int | str, ...], list[float]]) -> list[bool]:
    """Print the points of a model; return which agree."""
    found = []
    for point in sweep.points:
        place = ", ".join(map(str, point.at))
        if point.ms is None or point.low_ms is None or point.high_ms is None:
            print(f"| {name} | {place} | {point.problem[:60]} | | | | | |", flush=True)
            continue
        if point.at not in loop:
            print(f"| {name} | {place} | the loop could not run | | | | | |", flush=True)
            found.append(False)
            continue
        ms = statistics.median(loop[point.at])
        is_inside = point.low_ms <= ms <= point.high_ms
        is_near = abs(ms / point.ms - 1) <= _WITHIN
        found.append(is_inside or is_near)
        how = " and ".join(["inside"] * is_inside + ["within 3 %"] * is_near) or "no"
        print(f"| {name} | {place} | {point.ms:.4f} | {point.low_ms:.4f} | {point.high_ms:.4f} |"
              f" {ms:.4f} | {ms / point.ms:.3f} | {how} |", flush=True)  # fmt: skip
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
