"""How often requirements near the border get a wrong verdict, and how often none.

    python -m benchmarks.bench_requirements [--runs 40] [--gates 4] [--draws 20] [--simulated]

Requirements are placed at known distances below and above what is true. A wrong verdict is a PASS
of one that does not hold, or a FAIL of one that does; UNDECIDED is counted on its own.

What is true of latency and throughput is told by plain sessions of ONNX Runtime in processes of
their own, which take turns with the runs of ``dld gate``; limits within the interval of their
median are left out, as nobody knows on which side they are. Verdicts are those of real gates
(``--gates``), and of gates whose runs are drawn from all that were measured (``--draws`` a
requirement). Size, counts, memory and noise are computed from files, shapes and outputs; there any
wrong verdict counts. ``--simulated`` measures nothing: runs are drawn from a known distribution.
Ends with 1 if more than 5 % of the verdicts of a kind are wrong.
"""

from __future__ import annotations

import json
import math
import random
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import harness
from benchmarks.bench_llm import median_interval
from dld_tui.activities.gate import Request, RunJob, check_requirements
from dld_tui.activities.profile.onnxruntime import Request as Profile
from dld_tui.activities.profile.onnxruntime import Result as ProfileResult
from dld_tui.core.compare.gate import Outcome
from dld_tui.core.events import result_of
from dld_tui.core.params import to_json
from dld_tui.core.report.latency import LatencyFigures, latency_summary
from dld_tui.targets import registry

MOST_WRONG = 0.05
DISTANCES = (0.002, 0.005, 0.01, 0.02, 0.05)
"""From what is true, as a share of it, to both sides."""
UNITS = {"median": "ms", "p95": "ms", "mean": "ms", "fps": ""}
_PLAIN = """
import json, sys, time
import numpy as np, onnxruntime
session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
given = session.get_inputs()[0]
feed = {given.name: np.random.default_rng(0).standard_normal(given.shape).astype(np.float32)}
for _ in range(5): session.run(None, feed)
times, end = [], time.perf_counter() + float(sys.argv[2])
while time.perf_counter() < end or len(times) < 20:
    begin = time.perf_counter()
    session.run(None, feed)
    times.append(1000 * (time.perf_counter() - begin))
print(json.dumps(times))
"""


@dataclass(frozen=True)
class Placed:
    """A requirement whose verdict is known."""

    text: str
    figure: str
    distance: float
    """Between the limit and what is true, as a share of that."""
    holds: bool


@dataclass(frozen=True)
class Verdict:
    """What a gate said of it."""

    kind: str
    placed: Placed
    outcome: Outcome

    @property
    def is_wrong(self) -> bool:
        """Whether it contradicts what is true."""
        return self.outcome is (Outcome.FAIL if self.placed.holds else Outcome.PASS)


def placed(truths: Mapping[str, float], distances: Sequence[float] = DISTANCES) -> list[Placed]:
    """Return requirements on both sides of what is true.

    Args:
        truths: By figure: ms, or items a second.
        distances: From what is true.
    """
    found = []
    for figure, truth in truths.items():
        relation = ">=" if figure == "fps" else "<="
        for distance in (*(-one for one in distances), *distances):
            limit = truth * (1 + distance)
            holds = distance > 0 if relation == "<=" else distance < 0
            text = f"{figure} {relation} {limit!r} {UNITS[figure]}".strip()
            found.append(Placed(text, figure, distance, holds))
    return found


def exactly_placed(model: Path, reference: Path) -> list[Placed]:
    """Return requirements of what needs no measurement, a step below and above what is true.

    Args:
        model: A chain of products of square matrices, all in one file.
        reference: The same with other weights.
    """
    import onnx
    import onnxruntime

    graph = onnx.load(model).graph
    (weight,) = (onnx.numpy_helper.to_array(one) for one in graph.initializer)
    feed = {"v0": np.random.default_rng(0).standard_normal(weight.shape).astype(np.float32)}
    outputs = [
        onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, feed)[0]
        for path in (reference, model)
    ]
    noise = np.sum((outputs[1].astype(np.float64) - outputs[0]) ** 2)
    snr = 10 * math.log10(np.sum(outputs[0].astype(np.float64) ** 2) / noise)
    # The weights, and what a product reads and writes.
    memory = 3 * weight.nbytes
    kinds = len({node.op_type for node in graph.node})
    # Inputs are drawn by the gate itself, so that noise differs a little from run to run.
    return [
        Placed(f"{figure} {relation} {limit!r} {unit}".strip(), figure, 0.0, holds)
        for figure, truth, step, unit in (
            ("size", model.stat().st_size, 1, "B"), ("nodes", len(graph.node), 1, ""),
            ("parameters", weight.size, 1, ""), ("operators", kinds, 1, ""),
            ("peak memory", memory, 0.01 * memory, "B"), ("snr", snr, 1.0, "dB"),
        )
        for relation, limit, holds in (
            ("<=", truth + step, True), ("<=", truth - step, False),
            (">=", truth - step, True), (">=", truth + step, False),
        )
    ]  # fmt: skip


def judged(
    kind: str, request: Request, some: Sequence[Placed], run_job: RunJob
) -> Iterator[Verdict]:
    """Yield the verdicts of one gate on some requirements.

    Args:
        kind: Of the verdicts.
        request: The model and the settings of runs.
        some: What is required.
        run_job: Makes the runs.
    """
    asked = replace(request, requirements=tuple(one.text for one in some))
    found = result_of(check_requirements(asked, run_job)).judged
    for one, said in zip(some, found, strict=True):
        yield Verdict(kind, one, said.outcome)


def runs_of(figures: Callable[[], LatencyFigures]) -> RunJob:
    """Return what gives a gate its runs.

    Args:
        figures: Of one run.
    """

    def run_job(activity_id: str, request: Any, kind: Any, limit_s: float = math.inf) -> Any:
        assert activity_id == "profile_onnxruntime"
        return ProfileResult(Path(), figures())

    return run_job


SPREADS = ((0.002, 0.01), (0.01, 0.03), (0.05, 0.1))
"""Standard deviations of the logarithms of runs and of their passes."""
_PASSES, _MS = 200, 10.0
_Z95 = 1.6448536


def simulated(model: Path, gates: int, seed: int = 0) -> Iterator[Verdict]:
    """Yield verdicts on runs of a known distribution: latencies of runs and of passes are
    lognormal, so that the figures of the median run have closed forms.

    Args:
        model: Any file; nothing runs.
        gates: How many a distribution.
        seed: Of the draws.
    """
    for between, within in SPREADS:
        mean = _MS * math.exp(within**2 / 2)
        mean = _MS * math.exp(within**2 / 2)
        truths = {
            "median": _MS, "p95": _MS * math.exp(_Z95 * within), "mean": mean, "fps": 1000 / _MS,
        }  # fmt: skip
        dice = np.random.default_rng([seed, round(1000 * between)])

        def figures(
            dice: np.random.Generator = dice, between: float = between, within: float = within
        ) -> LatencyFigures:
            run = dice.normal(math.log(_MS), between)
            found = latency_summary([*np.exp(dice.normal(run, within, _PASSES))], [95.0])
            assert found is not None
            return found

        for _ in range(gates):
            yield from judged(
                f"simulated, runs spread by {100 * between:g} %", Request(model),
                placed(truths), runs_of(figures),
            )  # fmt: skip


def main(argv: list[str]) -> int:
    """Print the verdicts; return 1 where too many are wrong."""
    parser = harness.parser(__doc__)
    parser.add_argument("--runs", type=int, default=40, help="of each kind, a model")
    parser.add_argument("--seconds", type=float, default=1.0, help="that a run measures")
    parser.add_argument("--gates", type=int, default=4, help="real ones, a model")
    parser.add_argument("--draws", type=int, default=20, help="gates a requirement")
    parser.add_argument("--simulated", action="store_true", help="measure nothing")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.simulated:
            return _told([*simulated(_chain(folder / "any.onnx", 1, 8, 0), options.draws)])
        verdicts: list[Verdict] = []
        here: RunJob = partial(registry.result_of, target=None)
        for kind, (count, side) in {"small": (60, 64), "middle": (100, 160)}.items():
            model, reference = (
                _chain(folder / f"{kind}{at}.onnx", count, side, 1e-3 * at) for at in (1, 0)
            )
            request = Request(model, reference=reference, duration=options.seconds)
            verdicts += judged(f"{kind}, exact", request, exactly_placed(model, reference), here)
            verdicts += _measured(kind, request, here, options)
    return _told(verdicts)


def _measured(kind: str, request: Request, here: RunJob, options: Any) -> Iterator[Verdict]:
    plain, ours = list[LatencyFigures](), list[LatencyFigures]()
    for at in range(options.runs):  # in turns: a machine is not as fast all the time
        plain.append(_plain_run(request.model, options.seconds))
        ours.append(_gate_run(request, here))
        print(f"{kind}: {at + 1} of {options.runs} runs of each", file=sys.stderr, flush=True)
    wanted: list[Placed] = []
    for figure in UNITS:
        truth, low, high = median_interval([_figure(one, figure) for one in plain])
        own = statistics.median(_figure(one, figure) for one in ours)
        ends = (100 * (end / truth - 1) for end in (low, high, own))
        print("{}: {} is {:.4g} ({:+.2f} to {:+.2f} %), and {:+.2f} % in runs of the gate".format(
            kind, figure, truth, *ends))  # fmt: skip
        for one in placed({figure: truth}):  # nobody knows on which side the others are
            limit = truth * (1 + one.distance)
            wanted += [] if low <= limit <= high else [one]
    print(f"{kind}: {len(wanted)} limits are outside of the intervals of plain runs")
    for number in range(min(options.gates, len(wanted))):
        yield from judged(f"{kind}, real", request, wanted[number :: options.gates], here)
    for seed in range(options.draws if wanted else 0):
        dice = random.Random(seed)
        yield from judged(f"{kind}, drawn", request, wanted, runs_of(partial(dice.choice, ours)))


def _plain_run(model: Path, seconds: float) -> LatencyFigures:
    ended = subprocess.run(
        [sys.executable, "-c", _PLAIN, str(model), str(seconds)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    found = latency_summary(json.loads(ended.stdout), [95.0])
    assert found is not None
    return found


def _gate_run(request: Request, here: RunJob) -> LatencyFigures:
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "run.dldprof"
        settings = {**request.settings, "layer_passes": 0, "percentile": "95", "iterations": 20}
        profile = Profile(model=request.model, output=output, **settings)
        found = here("profile_onnxruntime", to_json(profile), ProfileResult).summary
    assert found is not None
    return found


def _figure(found: LatencyFigures, name: str) -> float:
    if name == "fps":
        assert found.throughput is not None
        return found.throughput
    return found.percentiles_ms["95"] if name == "p95" else found.latency_ms[name]


def _chain(path: Path, count: int, side: int, noise: float) -> Path:
    """Write a chain of products with one weight, which keeps the size of values."""
    import onnx

    nodes = "".join(f"v{at + 1} = MatMul(v{at}, w) " for at in range(count))
    shape = f"float[{side}, {side}]"
    text = f'<ir_version: 8, opset_import: ["" : 17]> chain ({shape} v0) => ({shape} v{count})'
    model = onnx.parser.parse_model(f"{text} {{ {nodes} }}")
    dice = np.random.default_rng(0)
    weight, _ = np.linalg.qr(dice.standard_normal((side, side)))
    weight = (weight + noise * dice.standard_normal(weight.shape) / side).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    onnx.save(model, path)
    return path


def _told(verdicts: Sequence[Verdict]) -> int:
    """Print how many verdicts of each kind and distance there are; return 1 for too many wrong."""
    print("| runs | figure | distance | PASS | FAIL | UNDECIDED | wrong |")
    print("|---|---|---|---|---|---|---|")
    groups = defaultdict[tuple[str, str, float], list[Verdict]](list)
    for one in verdicts:
        groups[one.kind, one.placed.figure, abs(one.placed.distance)].append(one)
    for (kind, figure, distance), some in groups.items():
        counts = [sum(one.outcome is outcome for one in some) for outcome in Outcome]
        wrong = sum(one.is_wrong for one in some)
        place = f"± {100 * distance:g} %" if distance else "one step"
        print(f"| {kind} | {figure} | {place} | {' | '.join(map(str, counts))} | {wrong} |")
    is_good = True
    for kind in dict.fromkeys(one.kind for one in verdicts):
        own = [one for one in verdicts if one.kind == kind]
        wrong, open_ = (sum(test(one) for one in own) for test in (
            lambda one: one.is_wrong, lambda one: one.outcome is Outcome.UNDECIDED))  # fmt: skip
        allowed = 0.0 if kind.endswith("exact") else MOST_WRONG
        is_good &= wrong <= allowed * len(own)
        print(f"{kind}: {len(own)} requirements, {wrong} wrong ({100 * wrong / len(own):.1f} %),"
              f" {open_} undecided ({100 * open_ / len(own):.1f} %)")  # fmt: skip
    return int(not is_good)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
