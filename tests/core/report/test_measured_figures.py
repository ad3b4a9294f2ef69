from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dld_tui.core.machine.peaks import Peaks, PeakSource
from dld_tui.core.reading.export import report_json, report_page
from dld_tui.core.reading.first_lines import first_lines
from dld_tui.core.reading.story import next_steps
from dld_tui.core.report.measured_figures import measured_figures
from dld_tui.core.report.records import Cost, Layer
from dld_tui.core.report.report import Report
from dld_tui.core.types import JSON
from tests.support.profiles import start_report, told

PHASES: Any = {
    "h2d": {"median": 0.2, "min": 0.1, "max": 0.9, "p99": 0.8},
    "compute": {"median": 1.25, "min": 1.2, "max": 1.9, "p99": 1.8},
    "d2h": {"median": 0.125},
    "enqueue": {"median": 0.05, "min": -1, "max": None, "p99": 0.06},
}


def write(path: Path, environment: dict[str, Any]) -> Report:
    settings = {"cuda_graph": True, "cuda_graph_used": True, "input_shapes": {"x": [1, 3]}}
    with start_report(path, settings=settings, environment=environment) as report:
        report.add_latencies([1.5] * 200)
        report.set_property("phases_ms", PHASES)
        report.set_property("throughput_per_s", 612.5)
        report.set_property("load_ms", 35.5)
        report.set_property("peak_memory_bytes", 1_500_000_000)
        report.set_property("activation_bytes", 2_000_000)
        report.set_property("engine", {"layers": 12})
    return Report.open(path)


def test_what_is_measured_is_shown_everywhere(tmp_path: Path) -> None:
    with write(tmp_path / "r.dldprof", {"cpu_threads": 8, "other_busy_threads": 0.1}) as report:
        facts = {fact.name: fact.text for fact in measured_figures(report)}
        document: Any = report_json(report)
        page, lines = report_page(report), told(report)
    assert facts == {
        "copy to the GPU": "median 0.200, min 0.100, max 0.900, p99 0.800 ms",
        "GPU compute": "median 1.250, min 1.200, max 1.900, p99 1.800 ms",
        "copy from the GPU": "median 0.125 ms",
        "enqueue (processor)": "median 0.050, p99 0.060 ms",
        "throughput": "612.5 inferences/s of elapsed time",
        "CUDA graph": "used",
        "model load": "35.500 ms",
        "peak memory of the process": "1.5 GB",
        "device memory of the engine": "2 MB",
        "other programs": "kept 0.1 of 8 threads busy",
    }
    assert all(text in page for text in (*facts, *facts.values()))
    assert document["measured"]["phases_ms"] == PHASES
    assert document["measured"]["throughput_per_s"] == 612.5
    assert document["measured"]["cuda_graph"] is True
    assert not any("busy" in line for line in lines)


@pytest.mark.parametrize(
    ("environment", "text"),
    [
        ({"cpu_threads": 2, "other_busy_threads": 1.5}, "kept 1.5 of 2 threads busy"),
        ({"other_busy_threads": 2}, "kept 2.0 threads busy"),
        ({"cpu_threads": 2, "load_average": [8.8, 1, 1]}, "load 8.8 on 2 threads before the run"),
        ({"cpu_threads": 2, "other_busy_threads": 0.2, "load_average": [8.8, 1, 1]}, ""),
        ({"cpu_threads": 16, "load_average": [7.9, 1, 1]}, ""),
        ({"load_average": [99.0, 1, 1]}, ""),
    ],
)
def test_a_busy_machine_is_a_doubt(tmp_path: Path, environment: dict[str, JSON], text: str) -> None:
    """Notes, doubts and the advice say the same of it."""
    with start_report(tmp_path / "r.dldprof", environment=environment) as writer:
        writer.add_latencies([1.0, 2.0, 3.0])
    with Report.open(tmp_path / "r.dldprof") as report:
        said = [" ".join(told(report)), first_lines(report)[2].text, next_steps(report)[0].basis]
    for place in said:
        assert text in place
        assert ("kept" in place or "load" in place) == bool(text)


def test_the_peaks_of_the_devices_that_computed_are_shown(tmp_path: Path) -> None:
    cpu = Peaks("a cpu", {"fp32": 4.5e11}, 7.2e10, source=PeakSource.MEASURED)
    roofs: Any = {"CPUExecutionProvider": cpu, "CUDAExecutionProvider": cpu, "Bad": {"flops": {}}}
    with start_report(tmp_path / "r.dldprof") as writer:
        for provider in ("CPUExecutionProvider", "Bad"):
            writer.add_layer(Layer("l", "Conv", provider=provider, cost=Cost(roof_ms=0.1)))
        writer.set_property("roofs", roofs)
    with Report.open(tmp_path / "r.dldprof") as report:
        texts = [fact.text for fact in measured_figures(report) if fact.name == "peaks"]
    assert texts == ["fp32 450 GFLOP/s, memory 72 GB/s (measured with ONNX Runtime)"]
