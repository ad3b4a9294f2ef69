from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dld_tui.core.reading.story import next_steps
from dld_tui.core.report.records import GpuEvent, Layer, PassState
from dld_tui.core.report.report import Report
from dld_tui.core.report.triage import notes_of, slow_first_ms
from tests.support.gpu_reports import CUDA, gpu_writer, make_gpu_report
from tests.support.profiles import start_report, told, write_report


@pytest.mark.parametrize("is_timed", [True, False])
@pytest.mark.parametrize(
    ("times", "slow"),
    [
        ([10.0, *[1.0] * 30], 10.0),
        ([10.0, 9.0, *[1.0] * 30], None),
        ([1.0, 10.0, *[1.0] * 30], None),
        ([1.0, *[1.0, 2.0] * 30], None),
        ([10.0], None),
    ],
)
def test_only_a_first_pass_that_is_slow_alone_is_a_warm_up(
    times: list[float], slow: float | None, is_timed: bool, tmp_path: Path
) -> None:
    with start_report(tmp_path / "r") as writer:
        if is_timed:
            writer.add_latencies(times)
        else:
            for index, took in enumerate(times):
                writer.add_pass(index, 20_000 * index, 1000 * took)
    with Report.open(tmp_path / "r") as report:
        assert report.latency is not None
        assert slow_first_ms(report, report.latency) == slow


def test_hostile_names_are_harmless(tmp_path: Path) -> None:
    layers = [(Layer("x" * 100_000 + "\x1b]0;t\x07[/b]", "Con\nv"), [1.0])]
    for line in text_of(write_report(tmp_path / "r", layers)).splitlines():
        assert line.isprintable()
        assert len(line) < 300


def text_of(path: Path) -> str:
    with Report.open(path) as report:
        return "\n".join(told(report))


def write(
    path: Path,
    events: list[GpuEvent],
    layers: list[Layer] | None = None,
    *,
    alone: bool = True,
    graph: bool = False,
) -> str:
    """Return what is said of a latency of 900 us, and events of a pass of 1000 us.

    Args:
        path: Of the report.
        events: What the GPU did.
        layers: Of the report.
        alone: The kernels were recorded without profiling of layers; else there is no latency.
        graph: Passes replayed a CUDA graph.
    """
    with gpu_writer(path) as report:
        if graph:
            report.set_property("cuda_graph", True)
        for layer in layers or [Layer("a", "Conv", provider=CUDA, precision="float16")]:
            report.add_layer(layer)
        report.add_latencies([0.9] * 3 if alone else [])
        report.add_pass(0, 0.0, 1000.0)
        report.add_samples(0, [(0, 0.0, 900.0, 900.0, 1)])
        report.add_pass(
            1, 2000.0, 1000.0, PassState.KERNELS_ALONE if alone else PassState.INCOMPLETE
        )
        report.add_gpu_events(int(alone), events)
    return text_of(path)


def test_full_precision_on_the_gpu_would_gain(tmp_path: Path) -> None:
    def advised(name: str, *layers: Layer) -> list[str]:
        part = 900.0 / len(layers)
        events = [GpuEvent("s", "kernel", "k", part * n, part, n) for n in range(len(layers))]
        write(tmp_path / name, events, [*layers])
        with Report.open(tmp_path / name) as report:
            return [step.line for step in next_steps(report) if step.changes == ("fp16",)]

    full = Layer("/big", "FusedConv", provider=CUDA, precision="float32")
    [line] = advised("a", full)
    assert line.startswith("fp16: 100 % of the time is MatMul and Conv in fp32")
    assert advised("b", replace(full, precision="float16")) == []
    # A layer that runs on the CPU gains nothing there.
    [line] = advised("c", full, replace(full, name="/cpu", provider="CPUExecutionProvider"))
    assert line.startswith("fp16: 50 % of the time is MatMul and Conv in fp32")


def test_what_was_not_measured_is_said_once_with_its_reason(tmp_path: Path) -> None:
    why = "needs the group debug\x1b[2J"
    path = make_gpu_report(tmp_path / "g.dldprof", no_counters=why, absent="no driver")
    text = text_of(path)
    assert "GPU not measured: no driver" in text
    assert text.count("needs the group debug\\x1b[2J") == 1
    with Report.open(path) as report:
        levels = {note.text: note.kind for note in notes_of(report)}
    assert {kind for text, kind in levels.items() if why[:5] in text} == {"warning"}
