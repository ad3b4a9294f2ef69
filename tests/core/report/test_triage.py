from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.report.records import Layer, NodeLink
from dld_tui.core.report.report import Report
from dld_tui.core.report.triage import slow_first_ms
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
    assert not any("varies" in line or "p99 of" in line for line in quiet)
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
