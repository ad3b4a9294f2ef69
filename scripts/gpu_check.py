"""Profile a model on a CUDA GPU and check what the report says of it.

Usage: ``python scripts/gpu_check.py [MODEL] [-o REPORT] [--shape NAME:DIMS] [--more]``

Without a model, ResNet-50 with random weights at batch 8 is exported by PyTorch and torchvision.
Prints the figures for docs/verified.md, one check a line, and exits with 1 when one fails. Needs
dld-tui with the extra ``gpu``; run from a checkout with ``PYTHONPATH=src``.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

from dld_tui.activities import registry
from dld_tui.core.errors import DldError
from dld_tui.core.events import Finished, Log, Metric
from dld_tui.core.params import from_json
from dld_tui.core.report.model import Report
from dld_tui.core.report.triage import triage

_FACTS = ("load_ms", "peak_memory_bytes", "gpu_memory_bytes", "copies", "gpu_check", "gpu_absent")


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
    torch: Any = importlib.import_module("torch")
    torchvision: Any = importlib.import_module("torchvision")
    model = torchvision.models.resnet50(weights=None).eval()
    example = torch.zeros(8, 3, 224, 224)
    torch.onnx.export(model, (example,), str(path), input_names=["x"], dynamo=False)
    return path


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
            print(f"     report: {event.result['report']}")
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
            if name in report.facts:
                print(f"     {name}: {report.facts[name]}")
        check_kernels(report, checks)
        check_counters(report, checks)
        print("     --- triage ---")
        for line in triage(report):
            print(f"     {line}")


def check_kernels(report: Report, checks: Checks) -> None:
    """Check that the kernels of layers and of no layer are all kernels."""
    sums: Any = report.facts.get("gpu_check")
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
    measured = [one for one in report.passes if one.state == "measured"]
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


def check_counters(report: Report, checks: Checks) -> None:
    """Check that rows have samples in the time of the passes."""
    rows = [counter for counter in report.counters if counter.samples]
    checks.say(len(rows) >= 1, f"{len(rows)} counter rows have samples")
    for counter in report.counters:
        print(
            f"     {counter.source} {counter.title}: {counter.samples} samples,"
            f" highest {counter.highest} {counter.unit} ({counter.name}) {counter.absent or ''}"
        )
    measured = [one for one in report.passes if one.state == "measured"]
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
    parser.add_argument(
        "--more", action="store_true", help="also IO binding and the other sources of counters"
    )
    options = parser.parse_args()
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
