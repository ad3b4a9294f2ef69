"""What ``dld tune`` claims, beside a sweep of equal time, both judged by ``dld gate`` afterwards.

    python -m benchmarks.bench_tune MODEL... [--budget 100] [--limit 60] [--provider CUDA]

The sweep is what people write by hand: dynamic int8 and fp16 by ONNX Runtime's own tools, numbers
of threads, levels of optimisation, on a GPU searches of convolutions and layouts; each timed alone
for an equal share of the time that tuning took, the least median of those whose outputs are near
enough wins. Both have the same bound of accuracy, which is tried once more without dld-tui.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks import harness
from benchmarks.bench_conversions import input_sets
from dld_tui.core.machine.environment import physical_cores, usable_threads
from dld_tui.core.model.document.document import Document
from dld_tui.core.tune.changes import CHANGES, Setup, thread_changes
from dld_tui.core.types import JSON

_COSINE = 0.999
_FOUND = "found.tune.json"
_LEVELS = {"all": "ORT_ENABLE_ALL", "extended": "ORT_ENABLE_EXTENDED", "basic": "ORT_ENABLE_BASIC"}


def main(argv: list[str]) -> int:
    """Print a row a model; return 1 where a bound is broken."""
    parser = harness.parser(__doc__)
    parser.add_argument("models", type=Path, nargs="*")
    parser.add_argument("--budget", type=float, default=100.0, help="seconds for dld tune")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for a gate")
    parser.add_argument("--provider", default="CPU")
    parser.add_argument("--no-sweep", action="store_true", help="measure dld tune alone")
    parser.add_argument("--keep", type=Path, help="folder for the results of dld tune")
    parser.add_argument("--pairs", action="store_true", help="MODELs are results of dld tune")
    parser.add_argument("--sweep", nargs=5, help=argparse.SUPPRESS)
    parser.add_argument("--cosine", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.sweep:
        print(json.dumps(_sweep(*options.sweep)))
        return 0
    if options.cosine:
        print(_least_cosine(*options.cosine))
        return 0
    if options.pairs:
        _print_pairs(options.models)
        return 0
    print("| model | tune: set-up | claimed | gate | held | attributed | cosine | measuring"
          " | overhead | sweep: set-up | gate | load |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|---|---|---|---|", flush=True)
    ratios: list[tuple[float, float]] = []
    for model in map(Path.resolve, options.models):
        with harness.work_folder() as folder:
            row, pair = _row(model, folder, options)
            if options.keep:
                options.keep.mkdir(parents=True, exist_ok=True)
                shutil.copy(folder / _FOUND, options.keep / f"{model.stem}.tune.json")
        print(f"| {' | '.join(row)} |", flush=True)
        ratios.append(pair)
    means = [math.exp(statistics.fmean(map(math.log, one))) for one in zip(*ratios, strict=True)]
    print(f"\nas fast as before, geometric mean of {len(ratios)}: tune {means[0]:.3f} x,"
          f" sweep {means[1]:.3f} x")  # fmt: skip
    return int(not options.no_sweep and means[0] < means[1])


def _row(
    model: Path, folder: Path, options: argparse.Namespace
) -> tuple[list[str], tuple[float, float]]:
    """Return the cells of a model, and how many times as fast both made it by the gate."""
    found = folder / _FOUND
    _run([*harness.dld(), "tune", str(model), "--budget", str(options.budget), "-o", str(found),
          "--tolerance", f"cosine={_COSINE}", "--provider", options.provider], folder)  # fmt: skip
    tuned = json.loads(found.read_text(encoding="utf-8"))
    claimed, gated, held = 0.0, 1.0, "–"
    confirmed = tuned["confirmed"]
    is_faster = confirmed is not None and confirmed["verdict"] == "faster"
    if is_faster:
        claimed = -confirmed["high_percent"] / 100  # at least this, it says
        faster = Path(tuned["model"] or model)
        gated = _gate(model, faster, _settings(tuned["best"]), folder, options)
        held = f"{(1 - 1 / gated) / claimed:.0%}"
    seconds = tuned["seconds"]
    share = tuned["explained_percent"]
    sets = input_sets(model, folder / "sets")
    swept: dict[str, Any] = {"model": str(model), "settings": {}, "name": "no inputs"}
    cosine = "–"
    again = [sys.executable, "-m", "benchmarks.bench_tune"]
    if sets is not None:
        words = [*again, "--sweep", str(model), str(sets), str(folder), str(seconds["all"]),
                 options.provider]  # fmt: skip
        if options.no_sweep:
            swept["name"] = "–"
        else:
            swept = json.loads(_run(words, harness.REPOSITORY).splitlines()[-1])
        if is_faster and tuned["model"]:
            words = [*again, "--cosine", str(model), tuned["model"], str(sets), options.provider]
            cosine = _run(words, harness.REPOSITORY).splitlines()[-1]
    by_sweep = 1.0
    if swept["settings"] or swept["model"] != str(model):
        by_sweep = _gate(model, Path(swept["model"]), swept["settings"], folder, options)
    row = [
        model.stem, tuned["best"], f"-{claimed:.1%}" if is_faster else "nothing",
        f"{gated:.2f} x" if is_faster else "–", held,
        "–" if share is None else f"{share:.0f} %",
        cosine,
        f"{seconds['measuring'] / seconds['all']:.0%} of {seconds['all']:.0f} s",
        f"{(seconds['loading'] + seconds['checking']) / seconds['measuring']:.1%}",
        swept["name"], f"{by_sweep:.2f} x", f"{os.getloadavg()[0]:.1f}",
    ]  # fmt: skip
    return row, (gated, by_sweep)


def _print_pairs(results: Sequence[Path]) -> None:
    """Print how many times as fast each change alone made models whose work is of one kind."""
    found: dict[tuple[str, str], list[float]] = {}
    for path in results:
        result = json.loads(path.read_text(encoding="utf-8"))
        kind = _kind(Path(result["source"]))
        for one in result["candidates"]:
            if one["ratio"] and one["key"] in {change.id for change in CHANGES}:
                found.setdefault((one["key"], kind), []).append(1 / one["ratio"])
    print("| change | models of | how many | least | median | most |")
    print("|---|---|---|---|---|---|")
    for (change, kind), ratios in sorted(found.items()):
        print(f"| `{change}` | {kind} | {len(ratios)} | {min(ratios):.2f} |"
              f" {statistics.median(ratios):.2f} | {max(ratios):.2f} |")  # fmt: skip


def _kind(model: Path) -> str:
    """Return the operator that most of a model's products are of."""
    with contextlib.closing(Document.open(model)) as document:
        nodes = [node.op_type for scope in document.scopes() for node in scope.nodes]
    counts = {"Conv": nodes.count("Conv"), "MatMul": nodes.count("MatMul") + nodes.count("Gemm")}
    return max(counts, key=lambda kind: counts[kind])


def _settings(best: str) -> dict[str, JSON]:
    """Return the settings of ``profile_onnxruntime`` of a set-up by its key."""
    known = {one.id: one for one in (*CHANGES, *thread_changes(usable_threads(), physical_cores()))}
    return Setup(Path(), tuple(known[name] for name in best.split("+"))).session


def _gate(
    model: Path, new: Path, settings: dict[str, Any], folder: Path, options: argparse.Namespace
) -> float:
    """Return how many times as fast `new` is, from runs that take turns."""
    words = [*harness.dld(), "gate", str(model), str(new), "--limit", str(options.limit), "--json",
             "--provider", options.provider]  # fmt: skip
    for name, value in settings.items():
        for one in value if isinstance(value, list) else [value]:
            words += ["--new-set", f"{name}={one}"]
    change: float = json.loads(_run(words, folder))["end_to_end"]["change_percent"]
    return 1 / (1 + change / 100)


def _run(words: Sequence[str], folder: Path) -> str:
    """Return what a command prints; 1 is a verdict, no failure."""
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False,
                          env=harness.environment())  # fmt: skip
    if done.returncode > 1:
        sys.exit(f"{' '.join(words)}: status {done.returncode}\n{done.stderr[-2000:]}")
    return done.stdout


def _sweep(model: str, sets: str, folder: str, budget: str, provider: str) -> dict[str, Any]:
    import onnxruntime as ort

    ort.set_default_logger_severity(4)
    begin = time.monotonic()
    feeds = [_feed(one) for one in sorted(Path(sets).iterdir())]
    models = [model, *_converted(model, Path(folder))]
    settings = _CUDA_SETTINGS if provider == "CUDA" else _cpu_settings()
    tried = list(itertools.product(models, settings))
    expected: list[list[Any]] = []
    best: tuple[float, str, dict[str, Any]] | None = None
    for left, (path, setting) in zip(range(len(tried), 0, -1), tried, strict=True):
        share = (float(budget) - (time.monotonic() - begin)) / left
        if share <= 0:
            break
        end = time.monotonic() + share
        try:
            session = _session(path, provider, setting)
            outputs = [session.run(None, one) for one in feeds]
        except Exception:  # noqa: BLE001 - ONNX Runtime's errors have no common class
            continue
        expected = expected or outputs
        if not all(map(_near, expected, outputs)):
            continue
        times: list[float] = []
        while time.monotonic() < end or not times:
            start = time.perf_counter()
            session.run(None, feeds[0])
            times.append(time.perf_counter() - start)
        figure = (statistics.median(times), path, setting)
        best = min(best or figure, figure, key=lambda one: one[0])
    assert best is not None, "the model itself does not run"
    _, path, setting = best
    values = (str(one) for value in setting.values()
              for one in (value if isinstance(value, list) else [value]))  # fmt: skip
    return {"model": path, "settings": setting, "name": "+".join((Path(path).stem, *values))}


def _cpu_settings() -> list[dict[str, Any]]:
    cores = len(os.sched_getaffinity(0))
    threads = sorted({1, cores // 2 or 1, cores})
    return [{"threads": count, "optimization_level": level}
            for count in threads for level in _LEVELS]  # fmt: skip


_CUDA_SETTINGS: list[dict[str, Any]] = [
    {"provider_option": [f"cudnn_conv_algo_search={search}", f"prefer_nhwc={layout}"]}
    for search in ("EXHAUSTIVE", "HEURISTIC") for layout in (0, 1)
]  # fmt: skip


def _session(path: str, provider: str, setting: dict[str, Any]) -> Any:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = setting.get("threads", 0)
    level = _LEVELS[setting.get("optimization_level", "all")]
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, level)
    own = dict(text.split("=") for text in setting.get("provider_option", ()))
    providers: list[Any] = [(f"{provider}ExecutionProvider", own)]
    if provider != "CPU":
        providers.append("CPUExecutionProvider")
    return ort.InferenceSession(path, options, providers=providers)


def _least_cosine(model: str, other: str, sets: str, provider: str) -> str:
    """Return the least cosine of an output over sets of inputs, of plain sessions."""
    import onnxruntime as ort

    ort.set_default_logger_severity(4)
    feeds = [_feed(one) for one in sorted(Path(sets).iterdir())]
    sessions = [_session(path, provider, {}) for path in (model, other)]
    found = [
        _cosine(one, two)
        for feed in feeds
        for one, two in zip(*(session.run(None, feed) for session in sessions), strict=True)
    ]
    return f"{min(found):.5f}"


def _converted(model: str, folder: Path) -> Iterator[str]:
    import onnx
    from onnxruntime.quantization import quantize_dynamic
    from onnxruntime.transformers.float16 import convert_float_to_float16

    def int8(path: str) -> None:
        quantize_dynamic(model, path)

    def fp16(path: str) -> None:
        onnx.save(convert_float_to_float16(onnx.load(model), keep_io_types=True), path)

    for convert in (int8, fp16):
        path = str(folder / f"{convert.__name__}.onnx")
        try:
            convert(path)
        except Exception:  # noqa: BLE001 - what a tool cannot convert is not tried
            continue
        yield path


def _feed(folder: Path) -> dict[str, Any]:
    import onnx
    from onnx import numpy_helper

    tensors = [onnx.load_tensor(one) for one in sorted(folder.iterdir())]
    return {one.name: numpy_helper.to_array(one) for one in tensors}


def _near(expected: Sequence[Any], actual: Sequence[Any]) -> bool:
    return all(_cosine(*pair) >= _COSINE for pair in zip(expected, actual, strict=True))


def _cosine(one: Any, other: Any) -> float:
    """Return the cosine of two outputs; 1 where it says nothing."""
    import numpy as np

    if not isinstance(one, np.ndarray) or one.dtype.kind not in "fiub" or one.size < 2:
        return 1.0
    first, second = one.astype(float).ravel(), other.astype(float).ravel()
    product = float(np.linalg.norm(first) * np.linalg.norm(second))
    return float(first @ second) / product if product else 1.0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
