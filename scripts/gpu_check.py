"""Profile models on a CUDA GPU and check what the reports say of them.

Usage: ``python scripts/gpu_check.py [MODEL] [-o REPORT] [--shape NAME:DIMS] [--more]``
       ``python scripts/gpu_check.py --suite [--folder FOLDER]``
       ``python scripts/gpu_check.py --figures [--folder FOLDER] [--part decoders|bounds]``

Without a model, ResNet-50 with random weights at batch 8 is exported by PyTorch and torchvision.
``--suite`` does the same with four models of different kinds, and one of them as a CUDA graph, each
in a process of its own, and prints one table. ``--figures`` checks decoders against a plain loop
and advice against tuning (``scripts/gpu_figures.py``), in less than eight minutes. Prints the
figures for benchmarks/log/measurements.md, one check a line, and exits with 1 when one fails. Needs
dld-tui with the extra ``gpu``; run from a checkout with ``PYTHONPATH=src``.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from array import array
from pathlib import Path
from typing import Any

from dld_tui.activities import registry
from dld_tui.backends.machine.capture import HardwareSampler
from dld_tui.backends.machine.cupti import ActivityTracer
from dld_tui.backends.onnxruntime.session import BoundFeed, Session
from dld_tui.backends.onnxruntime.session_options import SessionSettings
from dld_tui.core import fmt
from dld_tui.core.errors import DldError
from dld_tui.core.events import Finished, Log, Metric
from dld_tui.core.params import from_json
from dld_tui.core.report.gpu_kernels import gpu_summary
from dld_tui.core.report.report import Report
from dld_tui.core.report.triage import notes_of

_FACTS = (
    "load_ms",
    "peak_memory_bytes",
    "gpu_memory_bytes",
    "copies",
    "gpu_check",
    "gpu_timeline",
    "gpu_absent",
)
_MOST_SLOWED = 1.10
"""Of passes with kernel records, against passes without. CUPTI is part of each launch: models that
launches hold up miss it, and reports say by how much."""
_BUSY_WITHIN = 0.03
_SUITE = ("resnet50-b8", "gpt-fp32", "gpt-fp16", "mobilenetv2-b1", "gpt-fp16-graph")


class Checks:
    """Counts what fails."""

    def __init__(self) -> None:
        self.failed = 0

    def say(self, good: bool, text: str) -> None:
        """Print one check."""
        self.failed += not good
        print(f"{'ok  ' if good else 'FAIL'} {text}")


def export_resnet(path: Path) -> Path:
    """Write ResNet-50 with random weights."""
    return export_vision("resnet50", 8, path)


def export_vision(name: str, batch: int, path: Path) -> Path:
    """Write a model of torchvision with random weights."""
    torch: Any = importlib.import_module("torch")
    torchvision: Any = importlib.import_module("torchvision")
    model = getattr(torchvision.models, name)(weights=None).eval()
    example = torch.zeros(batch, 3, 224, 224)
    torch.onnx.export(model, (example,), str(path), input_names=["x"], dynamo=False)
    return path


def export_gpt(path: Path, *, half: bool) -> Path:
    """Write a decoder like GPT-2: 12 layers, width 768, 12 heads, 256 tokens, random weights."""
    torch: Any = importlib.import_module("torch")
    nn = torch.nn

    class Block(nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.before, self.after = nn.LayerNorm(768), nn.LayerNorm(768)
            self.qkv, self.out = nn.Linear(768, 3 * 768), nn.Linear(768, 768)
            self.mlp = nn.Sequential(nn.Linear(768, 3072), nn.GELU(), nn.Linear(3072, 768))

        def forward(self, x: Any, mask: Any) -> Any:
            parts = self.qkv(self.before(x)).reshape(1, 256, 3, 12, 64).permute(2, 0, 3, 1, 4)
            query, key, value = parts[0], parts[1], parts[2]
            scores = query @ key.transpose(-1, -2) * 0.125 + mask
            mixed = (scores.softmax(-1) @ value).transpose(1, 2).reshape(1, 256, 768)
            x = x + self.out(mixed)
            return x + self.mlp(self.after(x))

    class Gpt(nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.places = nn.Embedding(8192, 768), nn.Embedding(256, 768)
            self.blocks = nn.ModuleList(Block() for _ in range(12))
            self.last = nn.LayerNorm(768)
            self.register_buffer("mask", torch.full((256, 256), -1e4).triu(1))

        def forward(self, ids: Any) -> Any:
            x = self.tokens(ids) + self.places.weight
            for block in self.blocks:
                x = block(x, self.mask)
            return self.last(x)

    model = Gpt().eval().cuda()
    model = model.half() if half else model
    example = torch.zeros(1, 256, dtype=torch.int64, device="cuda")
    torch.onnx.export(model, (example,), str(path), input_names=["ids"], dynamo=False)
    return path


def export(name: str, folder: Path) -> Path:
    """Write a model of the suite."""
    path = folder / f"{name}.onnx"
    if name.startswith("gpt"):
        return export_gpt(path, half="fp16" in name)
    if name.startswith("resnet50"):
        return export_vision("resnet50", 8, path)
    return export_vision("mobilenet_v2", 1, path)


def profile(model: Path, report: Path, **more: Any) -> dict[str, list[float]]:
    """Run the activity; return the values of its live meter by name."""
    activity = registry.load("profile_onnxruntime")
    settings = {"model": str(model), "output": str(report), "provider": "CUDA", **more}
    meter: dict[str, list[float]] = {}
    for event in activity.run(from_json(activity.request, settings)):
        if isinstance(event, Log):
            print(f"     {event.level}: {event.text}")
        elif isinstance(event, Metric):
            meter.setdefault(f"{event.name} ({event.unit})", []).append(event.value)
        elif isinstance(event, Finished):
            print(f"     report: {event.result.report}")
    return meter


def check(path: Path, checks: Checks) -> None:
    """Print and check a report."""
    with Report.open(path) as report:
        latency, profiled = report.latency, report.profiled_latency
        if latency is not None:
            print(f"     latency: median {latency.median:.3f} ms over {latency.count} passes")
        if profiled is not None:
            print(f"     with profiling on: median {profiled.median:.3f} ms")
        for name, value in report.environment.items():
            if name.startswith(("gpu", "jetson", "onnxruntime")):
                print(f"     {name}: {value}")
        for name in _FACTS:
            if name in report.properties:
                print(f"     {name}: {report.properties[name]}")
        check_kernels(report, checks)
        check_counters(report, checks)
        print("     --- triage ---")
        for line in (note.text for note in notes_of(report)):
            print(f"     {line}")


def check_kernels(report: Report, checks: Checks) -> None:
    """Check that the kernels of layers and of no layer are all kernels."""
    sums: Any = report.properties.get("gpu_check")
    checks.say(isinstance(sums, dict), "the GPU's work was recorded")
    if not isinstance(sums, dict):
        return
    parts = sums["attributed_us"] + sums["unattributed_us"] + sums["outside_us"]
    checks.say(
        abs(parts - sums["kernel_us"]) < 1,
        f"attributed {sums['attributed_us']:.1f} + unattributed {sums['unattributed_us']:.1f}"
        f" + outside {sums['outside_us']:.1f} = all kernels {sums['kernel_us']:.1f} us",
    )
    within = sums["attributed"] + sums["unattributed"]
    share = 100 * sums["attributed"] / within if within else 0.0
    checks.say(
        share > 99, f"{sums['attributed']} of {within} kernels are attributed: {share:.2f} %"
    )
    measured = report.kernel_passes
    events = [report.gpu_events(one.index) for one in measured]
    kernels = [[event for event in some if event.kind == "kernel"] for some in events]
    work = sorted(sum(event.duration_us for event in some) for some in kernels)
    counts = sorted(map(len, kernels))
    checks.say(bool(counts and counts[0]), f"kernels a pass: {counts[:1]} to {counts[-1:]}")
    if work:
        print(f"     kernel time a pass: median {work[len(work) // 2] / 1000:.3f} ms")
    layers = [one for one in report.layers if one.gpu_time_ms is not None]
    total = sum(one.gpu_time_ms or 0.0 for one in layers)
    side = sum(one.time_ms or 0.0 for one in layers)
    print(f"     layers: GPU {total:.3f} ms, CPU side {side:.3f} ms, {len(layers)} with kernels")
    for layer in sorted(layers, key=lambda one: -(one.gpu_time_ms or 0.0))[:5]:
        print(f"       {layer.gpu_time_ms:.4f} ms  {layer.type}  {layer.name}")
    kinds: dict[tuple[str, str], int] = {}
    for event in (event for some in events for event in some):
        kinds[event.kind, event.stream] = kinds.get((event.kind, event.stream), 0) + 1
    print(f"     by kind and stream: {kinds}")


def suite(folder: Path, iterations: int) -> int:
    """Check each model of the suite in a process of its own; print the table. Returns a status."""
    rows, failed = [], 0
    for name in _SUITE:
        print(f"== {name}", flush=True)
        row = folder / f"{name}.json"
        command = [sys.executable, __file__, "--of-suite", name, "--folder", str(folder)]
        done = subprocess.run([*command, "--iterations", str(iterations)], check=False)
        failed += done.returncode != 0
        if row.exists():
            rows.append(json.loads(row.read_text()))
        else:
            print(f"FAIL {name}: the process ended with {done.returncode} and without figures")
    titles = list(dict.fromkeys(title for found in rows for title in found))
    print("| " + " | ".join(titles) + " |")
    print("|" + "---|" * len(titles))
    for found in rows:
        print("| " + " | ".join(str(found.get(title, "")) for title in titles) + " |")
    print(f"{failed} failed")
    return 1 if failed else 0


def of_suite(name: str, folder: Path, iterations: int) -> int:
    """Profile one model of the suite and write its row of the table. Returns a status."""
    checks, graph = Checks(), name.endswith("graph")
    model, path = export(name, folder), folder / f"{name}.dldprof"
    more: dict[str, Any] = {"iterations": iterations, "layer_passes": iterations // 2}
    if graph:
        more |= {"io_binding": True, "provider_option": ["enable_cuda_graph=1"]}
        checks.say(*graph_outputs(model))
    else:
        own = bare_latency(model, iterations)
        print(f"     bare latency of a loop of this script: {own:.3f} ms")
    begin = time.monotonic()
    profile(model, path, **more)
    print(f"     the whole run took {time.monotonic() - begin:.1f} s")
    check(path, checks)
    row = true_speed(path, checks)
    if row and not graph:
        row |= recording(model)
    (folder / f"{name}.json").write_text(json.dumps({"model": name, **row}))
    return 1 if checks.failed else 0


def true_speed(path: Path, checks: Checks) -> dict[str, str]:
    """Check a report against sums of its raw rows. Returns the row of the table."""
    with sqlite3.connect(path) as database:
        bare = statistics.median(ms for (ms,) in database.execute("SELECT ms FROM latencies"))
        recorded = "SELECT pass, duration_us / 1000 FROM passes WHERE state = 'kernels alone'"
        passes = dict(database.execute(recorded))
        work = (
            "SELECT pass, SUM(duration_us) / 1000, COUNT(*), COUNT(layer) FROM gpu_events"
            " WHERE kind = 'kernel' GROUP BY pass"
        )
        kernels = [row for row in database.execute(work) if row[0] in passes]
    with Report.open(path) as report:
        found, profiled = gpu_summary(report), report.profiled_latency
        clock = report.environment.get("gpu_sm_mhz")
    if found is None or not kernels:
        checks.say(False, "no kernel was recorded at true speed")
        return {}
    slowed = statistics.median(passes.values()) / bare
    factor = found.slowed_by or 1.0
    checks.say(
        abs(factor / slowed - 1) <= _BUSY_WITHIN,
        f"kernel records slowed the passes x{factor:.2f}; own computation x{slowed:.2f}",
    )
    total = statistics.median(ms for _, ms, _, _ in kernels)
    share, told = total / bare, found.busy_percent / 100
    within = "within" if slowed <= _MOST_SLOWED else "beyond"
    print(f"     kernel records are {within} the bound of x{_MOST_SLOWED:.2f}")
    checks.say(
        abs(told / share - 1) <= _BUSY_WITHIN,
        f"busy {100 * told:.1f} %, kernel sum over bare latency {100 * share:.1f} %",
    )
    count, named = sum(row[2] for row in kernels), sum(row[3] for row in kernels)
    checks.say(count == named, f"{named:,} of {count:,} kernels at true speed have a layer")
    return {
        "bare, ms": f"{bare:.3f}",
        "kernels alone, ms": f"{statistics.median(passes.values()):.3f}",
        "slowed, told": f"x{factor:.2f}",
        "profiled, ms": fmt.milliseconds(None if profiled is None else profiled.median),
        "kernels a pass": f"{found.kernels}",
        "kernel sum, ms": f"{total:.3f}",
        "busy": f"{found.busy_percent:.1f} %",
        "gaps, ms": f"{found.gaps_us / 1000:.3f}",
        "attributed": f"{named:,} of {count:,}",
        "SM clock, MHz": f"{clock}",
    }


def recording(model: Path, rounds: int = 6, passes: int = 50) -> dict[str, str]:
    """Measure what recording costs, in turns with passes without it: load and clocks drift.

    Returns:
        More of the row of the table.
    """
    np: Any = importlib.import_module("numpy")
    session = Session(model, SessionSettings(providers=("CUDA",), quiet=True))
    feed = {one.name: np.zeros(one.dims, one.dtype) for one in session.inputs}
    timer, durations = session.timer([session.feed(feed)]), array("q", bytes(8 * passes))
    timer(0, durations, passes, 1 << 62)
    ways = ("bare", "kernels", "kernels and counters", "counters")
    times: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way in ways:
            tracer = ActivityTracer(calls=False) if "kernels" in way else None
            sampler = HardwareSampler(0, 20.0, 15_000) if "counters" in way else None
            for one in (tracer, sampler):
                if one is not None:
                    one.start()
            timer(0, durations, 3, 1 << 62)  # the first one waits for buffers
            timer(0, durations, passes, 1 << 62)
            for one in (sampler, tracer):
                if one is not None:
                    one.stop()
            times[way].append(statistics.median(durations) / 1e6)
    middle = {way: statistics.median(found) for way, found in times.items()}
    for way, found in times.items():
        print(f"     {way}: {' '.join(f'{ms:.3f}' for ms in found)} ms")
    cost = {way: middle[way] / middle["bare"] for way in ways}
    print(f"     in turns with passes without records, CUPTI attached: {cost['kernels']:.3f}")
    return {
        "in turns: bare, ms": f"{middle['bare']:.3f}",
        "kernels recorded": f"{cost['kernels']:.3f}",
        "with counters": f"{cost['kernels and counters']:.3f}",
        "counters alone": f"{cost['counters']:.3f}",
    }


def bare_latency(model: Path, iterations: int) -> float:
    """Return the median latency in milliseconds of a plain loop, without dld-tui's."""
    runtime: Any = importlib.import_module("onnxruntime")
    np: Any = importlib.import_module("numpy")
    runtime.preload_dlls()
    session = runtime.InferenceSession(str(model), providers=["CUDAExecutionProvider"])
    given = session.get_inputs()[0]
    dtype = np.int64 if given.type == "tensor(int64)" else np.float32
    feed = {given.name: np.zeros(given.shape, dtype)}
    times = []
    for _ in range(iterations + 20):
        begin = time.perf_counter()
        session.run(None, feed)
        times.append(1000 * (time.perf_counter() - begin))
    return statistics.median(times[20:])


def graph_outputs(model: Path) -> tuple[bool, str]:
    """Return whether a bound CUDA graph computes what the model does without one, and a text."""
    runtime: Any = importlib.import_module("onnxruntime")
    np: Any = importlib.import_module("numpy")
    runtime.preload_dlls()
    outputs = []
    for options in ({}, {"enable_cuda_graph": "1"}):
        providers = [("CUDAExecutionProvider", options)]
        session = runtime.InferenceSession(str(model), providers=providers)
        ids = np.random.default_rng(1).integers(0, 8192, (1, 256))
        feed = BoundFeed(runtime, session, {"ids": ids}, ("cuda", 0))
        for _ in range(4):
            session.run_with_iobinding(feed.binding)
        outputs.append(feed.binding.copy_outputs_to_cpu()[0].astype(np.float64))
    worst = float(np.abs(outputs[0] - outputs[1]).max())
    return worst < 0.05, f"outputs of the graph differ by at most {worst:.4g}"


def check_counters(report: Report, checks: Checks) -> None:
    """Check that rows have samples in the time of the passes."""
    rows = [counter for counter in report.counters if counter.samples]
    checks.say(len(rows) >= 1, f"{len(rows)} counter rows have samples")
    for counter in report.counters:
        print(
            f"     {counter.source} {counter.title}: {counter.samples} samples,"
            f" highest {counter.highest} {counter.unit} ({counter.name}) {counter.absent or ''}"
        )
    measured = report.kernel_passes
    if not measured or not rows:
        return
    last = measured[-1]
    start, end = last.counter_origin_us, last.counter_origin_us + last.duration_us
    for counter in rows:
        series = report.counter_series(counter.id, start, end, 8)
        values = ["absent" if one is None else f"{one.mean:.1f}" for one in series]
        checks.say(any(one is not None for one in series), f"{counter.title}: {' '.join(values)}")


def main() -> int:
    """Run the checks. Returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", type=Path, nargs="?")
    parser.add_argument("-o", "--output", type=Path, default=Path("gpu_check.dldprof"))
    parser.add_argument("--shape", action="append", default=[])
    parser.add_argument("--iterations", type=int, default=200)
    parser.add_argument("--suite", action="store_true", help="check four models and a CUDA graph")
    parser.add_argument("--of-suite", metavar="NAME", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help="where to leave models and reports")
    parser.add_argument(
        "--more", action="store_true", help="also IO binding and the other sources of counters"
    )
    parser.add_argument("--figures", action="store_true", help="check decoders and advice")
    parser.add_argument("--part", default="all", help="of --figures: decoders or bounds")
    options = parser.parse_args()
    if options.figures:
        words = ["--part", options.part]
        if options.folder:
            words += ["--folder", str(options.folder.absolute())]
        command = [sys.executable, "-m", "scripts.gpu_figures", *words]
        return subprocess.run(command, cwd=Path(__file__).parents[1], check=False).returncode
    if options.suite or options.of_suite:
        with tempfile.TemporaryDirectory() as temporary:
            kept = options.folder or Path(temporary)
            kept.mkdir(parents=True, exist_ok=True)
            if options.of_suite:
                return of_suite(options.of_suite, kept, options.iterations)
            return suite(kept, options.iterations)
    checks = Checks()
    with tempfile.TemporaryDirectory() as folder:
        model = options.model or export_resnet(Path(folder, "resnet50.onnx"))
        common = {"shape": options.shape, "iterations": options.iterations}
        runs: list[tuple[str, dict[str, Any]]] = [("main", {})]
        if options.more:
            binding = Path(folder, "optimized.onnx")
            runs += [
                ("io-binding", {"io_binding": True, "optimized_model": str(binding)}),
                ("counters-alone", {"gpu_timeline": False}),
                ("gpm", {"gpu_counters": "gpm", "layer_passes": 400}),
                ("nvml", {"gpu_counters": "nvml", "layer_passes": 400}),
                ("plain", {"gpu_counters": "off", "gpu_timeline": False}),
            ]
        for name, settings in runs:
            print(f"== {name}")
            path = options.output if name == "main" else Path(folder, f"{name}.dldprof")
            try:
                meter = profile(model, path, **common, **settings)
                for title, values in meter.items():
                    print(f"     {title}: {len(values)} readings, highest {max(values):.1f}")
                # What a run leaves out on purpose is no failure.
                check(path, Checks() if name in ("plain", "counters-alone") else checks)
            except DldError as error:
                checks.say(False, f"{name}: {error} ({error.hint or 'no hint'}) {error.details}")
            except Exception:  # noqa: BLE001 - the other runs go on
                checks.say(False, f"{name}:\n{traceback.format_exc()}")
    print(f"{checks.failed} failed")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
