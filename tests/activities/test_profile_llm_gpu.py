"""Decoders on a GPU: a CPU computes, and stand-ins say what a GPU did meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dld_tui.activities.profile import llm as profile_llm
from dld_tui.backends.machine import capture
from dld_tui.backends.onnxruntime import generation, processor_peaks
from dld_tui.backends.onnxruntime.session_options import SessionSettings
from dld_tui.core.events import Finished, Log
from dld_tui.core.reading.export import report_json
from dld_tui.core.reading.story import next_steps, request_of, trial_command
from dld_tui.core.report.generation import (
    big_numbers,
    generation_of,
    generation_story,
    sharing_gain,
)
from dld_tui.core.report.report import Report
from dld_tui.widgets.results.report_views import decoder_blocks
from tests.support import decoders
from tests.support.gpu_tracer import KERNELS, FakeTracer

pytest.importorskip("onnxruntime")


class Clock:
    """A clock that only runs of the model move."""

    def __init__(self) -> None:
        self.now_ns = 10**15

    def perf_counter_ns(self) -> int:
        """Stand for the function of the module."""
        return self.now_ns

    time_ns = perf_counter_ns


@pytest.fixture(autouse=True)
def gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(SessionSettings, "uses_cuda", True)
    monkeypatch.setattr(capture, "ActivityTracer", FakeTracer)
    monkeypatch.setattr(FakeTracer, "calls", [])
    monkeypatch.setattr(processor_peaks, "machine_peaks", lambda *_: {})
    run: Callable[..., None] = generation._run

    def noted(steps: Any, timed: generation.Timed) -> None:
        run(steps, timed)
        FakeTracer.calls.append(timed.runs_ns[-1])

    monkeypatch.setattr(generation, "_run", noted)


def profiled(model: Path, **settings: Any) -> tuple[profile_llm.Result, list[str]]:
    events = [*profile_llm.run(profile_llm.Request(model, **settings))]
    assert isinstance(events[-1], Finished)
    result: profile_llm.Result = events[-1].result
    return result, [event.text for event in events if isinstance(event, Log)]


def test_layers_of_both_phases_are_of_kernels_at_true_speed(tmp_path: Path) -> None:
    path = decoders.grouped(tmp_path / "m.onnx")
    result, _ = profiled(path, prompt="8", decode=6, layer_passes=4, iterations=1)
    assert result.prefill_report is not None
    for file in (result.report, result.prefill_report):
        with Report.open(file) as report:
            timeline: Any = report.properties["gpu_timeline"]
            assert (timeline["passes"], timeline["joined_passes"]) == (4, 4)
            assert timeline["kernels"] == 4 * KERNELS
            sums: Any = report.properties["gpu_check"]
            assert sums["attributed"] > 0
            assert sums["kernels"] == 5 * KERNELS, "the warm-up is not recorded, the first pass is"
            assert len(report.kernel_passes) == 4
            took = {
                round(event.duration_us, 6)
                for one in report.kernel_passes
                for event in report.gpu_events(one.index)
            }
            assert took == {0.1}, "at true speed; in the profiled run 0.2"


def test_a_new_length_of_the_context_is_a_figure_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pass takes 2 ms, 1.6 with a shared buffer; a length that is met first 65 ms more."""
    clock, met = Clock(), set[tuple[object, int]]()
    monkeypatch.setattr(generation, "time", clock)
    monkeypatch.setattr(profile_llm, "_WARM_UP_S", 1e9)

    def run(steps: Any, timed: generation.Timed) -> None:
        begin_ns = clock.now_ns
        session, is_shared = steps._session, hasattr(steps, "_shared")
        length = len(timed.runs_ns)
        steps.run()
        is_new = not is_shared and (session, length) not in met
        met.add((session, length))
        clock.now_ns += 1_600_000 if is_shared else 2_000_000 + 65_000_000 * is_new
        timed.runs_ns.append((begin_ns, clock.now_ns))

    monkeypatch.setattr(generation, "_run", run)
    path = decoders.grouped(tmp_path / "m.onnx")
    result, _ = profiled(path, prompt="8", decode=6, layer_passes=0, iterations=2)
    [figures] = result.figures
    assert figures.new_shape_ms == pytest.approx(65.0)
    assert figures.step_ms == pytest.approx([2.0] * 6)
    assert (figures.tokens_per_s, figures.first_token_ms) == pytest.approx((500.0, 2.0))
    assert (figures.is_steady, figures.warm_ups) == (True, 3)
    story = [*generation_story(result.figures)]
    assert story[0].startswith("Each new length of the context costs 65.000 ms once")
    big = [("2.000", "to the first token, ms"), ("500", "tokens/s")]
    assert big_numbers(result.figures) == big
    shown = [text for one in decoder_blocks(figures) for line in one.lines for text, _ in line]
    assert {"to the first token", "tokens/s", "prompt 8, batch 1"} <= {*map(str.strip, shown)}
    with Report.open(result.report) as report:
        assert generation_of(report) == result.figures
        gain = sharing_gain(report)
        assert gain is not None
        assert gain.factor == pytest.approx(2.0 / 1.6)
        [first, *_] = next_steps(report)
        assert "measured 500 → 625 tokens/s, 1.25×" in first.basis
        assert "no longer costs 65.0 ms" in first.basis
        assert trial_command(report, first).endswith("--shared-buffer on --prompt 8 --decode 6"
                                                     " --batch 1")  # fmt: skip
        activity, values = request_of(report, first, path)
        assert (activity, values["shared_buffer"], values["decode"]) == ("profile_llm", "on", 6)
        document: Any = report_json(report)
        assert document["llm"]["ttft_ms"] == pytest.approx(2.0)
        assert document["llm"]["tokens_s"] == pytest.approx(500.0)
        assert document["advice"][0]["command"] == trial_command(report, first)
        assert not any(step.changes for step in next_steps(report)), "dld tune makes no tokens"


def test_times_that_stay_unsteady_are_said_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(generation, "time", clock)

    def run(steps: Any, timed: generation.Timed) -> None:
        steps.run()
        clock.now_ns = clock.now_ns * 1001 // 1000  # each takes longer than the one before
        timed.runs_ns.append((clock.now_ns, clock.now_ns))

    monkeypatch.setattr(generation, "_run", run)
    monkeypatch.setattr(profile_llm, "_MOST_WARM_UPS", 3)
    monkeypatch.setattr(profile_llm, "_STEADY", 0.001)
    path = decoders.grouped(tmp_path / "m.onnx")
    settings = {"prompt": "8", "decode": 6, "layer_passes": 0, "shared_buffer": "off"}
    result, logs = profiled(path, iterations=1, **settings)
    text = "times were not steady after 3 repetitions of warm-up: they still changed by 1 %"
    assert result.figures[0].warm_up_text == text
    assert f"Batch 1, prompt 8: {text}" in logs
    with Report.open(result.report) as report:
        assert f"Batch 1, prompt 8: {text}." in {note.text for note in report.notes}
        assert sharing_gain(report) is None, "the user switched it off"
