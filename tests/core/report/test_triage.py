from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dld_tui.core.reading.first_lines import text_lines
from dld_tui.core.reading.story import next_steps, step_command
from dld_tui.core.report.records import GpuEvent, Layer, NodeLink, PassState
from dld_tui.core.report.report import Report
from dld_tui.core.report.triage import notes_of, slow_first_ms
from tests.support.gpu_reports import CUDA, gpu_writer, make_gpu_report
from tests.support.profiles import start_report, told, write_report


def lines_of(path: Path) -> list[str]:
    return told(Report.open(path))


def test_times_joined_to_nodes(tmp_path: Path) -> None:
    link = NodeLink((), "n", "n", "Conv", share=0.5)
    layers = [
        (Layer("big", "FusedConv", nodes=(link, link), confidence="rule"), [6.0, 6.0]),
        (Layer("small", "Relu"), [2.0, 2.0]),
    ]
    text = "\n".join(lines_of(write_report(tmp_path / "r.dldprof", layers)))
    assert "75.0 % of layer time is mapped to ONNX nodes" in text


def test_noise_is_told_and_silence_means_quiet(tmp_path: Path) -> None:
    for name, times in (("loud", [1.0, 2.0] * 60), ("quiet", [1.0, 1.001] * 60)):
        with start_report(tmp_path / name) as report:
            report.add_latencies(times)
    assert any(line.startswith("Latency varies: ±33 %") for line in lines_of(tmp_path / "loud"))
    quiet = lines_of(tmp_path / "quiet")
    assert not any("varies" in line or "p99" in line for line in quiet)
    assert quiet[-1] == "No layer was timed."


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


def test_profiling_that_slows_the_model(tmp_path: Path) -> None:
    with start_report(tmp_path / "r") as report:
        report.add_latencies([1.0] * 100)
        layer = report.add_layer(Layer("a", "Conv"))
        report.add_pass(0, 0, 1500)
        report.add_samples(0, [(layer, 0, 900, 900, 1)])
    text = "\n".join(lines_of(tmp_path / "r"))
    assert "Profiling slows the model down by 50 %" in text
    assert "0.900 of 1.500 ms (60.0 % of an undisturbed pass of the profiled run)" in text
    assert "between the layers" not in text  # of the profiled run, which is no figure of the model


def test_fallback_and_control_flow(tmp_path: Path) -> None:
    layers = [
        (Layer("a", "Conv", provider="CUDAExecutionProvider"), [3.0]),
        (Layer("b", "If", provider="CPUExecutionProvider"), [1.0]),
    ]
    text = "\n".join(lines_of(write_report(tmp_path / "r", layers)))
    assert "Fallback: 1 of 2 layers ran on the CPU (25.0 % of a pass)" in text
    assert "25.0 % is the own time of If, Loop and Scan" in text


def test_partial_empty_and_notes(tmp_path: Path) -> None:
    with start_report(tmp_path / "empty") as report:
        report.note("a\x1b[2Jb")
    assert lines_of(tmp_path / "empty") == [
        "a\\x1b[2Jb", "No layer was timed.",
    ]  # fmt: skip
    writer = start_report(tmp_path / "partial")
    writer.add_latencies([1.0])
    writer.abort()
    assert any(line.startswith("Partial") for line in lines_of(tmp_path / "partial"))


def test_hostile_names_are_harmless(tmp_path: Path) -> None:
    layers = [(Layer("x" * 100_000 + "\x1b]0;t\x07[/b]", "Con\nv"), [1.0])]
    for line in lines_of(write_report(tmp_path / "r", layers)):
        assert line.isprintable()
        assert len(line) < 300


def test_the_order_of_layers_is_told_where_it_is_not_certain(tmp_path: Path) -> None:
    times = [[9.0 if number % 4 == layer else 1.0 for number in range(8)] for layer in range(4)]
    path = write_report(tmp_path / "r", [(Layer(f"l{n}", "Add"), t) for n, t in enumerate(times)])
    said = "The order of layers is not certain (4 may be the slowest)."
    assert lines_of(path).count(said) == 1


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


def test_how_busy_the_gpu_is(tmp_path: Path) -> None:
    events = [GpuEvent("s", "kernel", "k", 100.0 * n, 80.0, 0) for n in range(10)]
    copy = GpuEvent("s", "memcpy", "HtoD", 0.0, 5.0, None, 2_000_000)
    text = write(tmp_path / "r", [*events, copy])
    # Of the latency, which is shorter than the pass with its kernels recorded.
    assert (
        "GPU busy 0.800 ms of 0.900 (88.9 %) with 10 kernels, launch gaps 0.100 ms,"
        " copies 0.005 ms (2 MB)." in text
    )
    assert (
        "Passes with kernel records took 1.11× as long: 1.000 ms in 1 pass against 0.900 ms" in text
    )
    assert "the gaps that the timeline draws are wider" in text
    assert "bound" not in text


def test_short_kernels_with_gaps_are_launch_bound(tmp_path: Path) -> None:
    events = [GpuEvent("s", "kernel", "k", 20.0 * n, 4.0, 0) for n in range(45)]
    text = write(tmp_path / "a", events)
    assert "the GPU waits 80 % of the pass" in text
    assert "CUDA graphs (--io-binding --provider-option enable_cuda_graph=1)" in text
    long = [GpuEvent("s", "kernel", "k", 250.0 * n, 100.0, 0) for n in range(4)]
    assert "Launch-bound" not in write(tmp_path / "b", long)
    text = write(tmp_path / "c", events, graph=True)
    assert "Launch-bound" in text
    assert "CUDA graph" not in text
    text = write(tmp_path / "d", events, alone=False)
    assert "Launch-bound" not in text
    assert "launch gaps" not in text
    assert "GPU busy 0.180 ms of 1.000 (18.0 %) with 45 kernels, with profiling on" in text


def test_copies_alone_are_copy_bound(tmp_path: Path) -> None:
    copy = GpuEvent("s", "memcpy", "HtoD", 0.0, 360.0, None, 10)
    kernel = GpuEvent("s", "kernel", "k", 360.0, 540.0, 0)
    assert "Copy-bound: 40 % of the pass is copies alone" in write(tmp_path / "a", [copy, kernel])
    beside = GpuEvent("t", "kernel", "k", 0.0, 900.0, 0)
    assert "Copy-bound" not in write(tmp_path / "b", [copy, beside])


def test_kernels_without_a_layer_are_told(tmp_path: Path) -> None:
    events = [GpuEvent("s", "kernel", "k", 0.0, 500.0), GpuEvent("s", "kernel", "k", 500, 500, 0)]
    assert "50 % of kernel time is attributed to layers" in write(tmp_path / "a", events)


def test_fallback_names_the_layers(tmp_path: Path) -> None:
    text = text_of(make_gpu_report(tmp_path / "g.dldprof", fallback=5))
    assert "Fallback: 5 of 12 layers ran on the CPU" in text
    assert " and 2 more." in text
    assert "/block.0/" in text


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


def test_launches_alone_say_nothing_of_what_layers_cost(tmp_path: Path) -> None:
    with gpu_writer(tmp_path / "r") as made:
        made.add_layer(Layer("a", "Conv", provider=CUDA))
        made.add_layer(Layer("b", "Relu", provider=CUDA))
        for number in range(8):
            start, length = 1e6 * number, 1000.0 if number else 90_000.0
            made.add_pass(number, start, length)
            made.add_samples(number, [(0, start, 300.0, 300.0, 1), (1, start + 300, 99.0, 99.0, 1)])
    with Report.open(tmp_path / "r") as report:
        lines = text_lines(report)
        [step] = next_steps(report)
        command = step_command(report, step)
        text = "\n".join([*lines, *told(report)])
    assert not any(line.startswith(("Slowest", "Time", "Limit")) for line in lines)
    assert "between the layers" not in text
    assert "as the first pass took 90.0 ms, like a warm-up" in text
    assert "when the machine is idle" not in text
    assert command == "dld profile onnxruntime MODEL --provider CUDA"
