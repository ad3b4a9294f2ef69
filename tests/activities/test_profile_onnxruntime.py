"""Profiles by ONNX Runtime: what is in the report, and what is said where there is none."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dld_tui.activities.profile.onnxruntime import Request, _stop_condition, require_memory, run
from dld_tui.backends.onnxruntime import profiling
from dld_tui.core.errors import (
    ActivityError,
    DldError,
    UsageError,
)
from dld_tui.core.events import Event, Progress
from dld_tui.core.model.document.document import Document
from dld_tui.core.params import to_json
from dld_tui.core.report.latency import StopCondition
from dld_tui.core.report.report import Report
from dld_tui.targets.process import Delays, LocalTarget
from tests.support import models
from tests.support.activities import finished
from tests.support.jobs import texts

HEAD = '<ir_version: 10, opset_import: ["" : 18]>'
PICKY = f"""{HEAD} picky (float[batch, length] x, int64[1] k) => (float[K] y) <int64[1] s = {{8}}>
{{ [shaper] y = Reshape(x, s) z = Identity(k) }}"""
IMPOSSIBLE = f"""{HEAD} impossible (float[batch, length] x) => (float[K] y) <int64[1] s = {{7}}>
{{ a = Concat <axis = 0> (x, x) [shaper] y = Reshape(a, s) }}"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run in an empty folder, whose temporary files are inside it, too."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def model(folder: Path) -> Path:
    return models.write(folder, models.CHAIN)


def quick(model: Path, **more: Any) -> Request:
    return Request(model, **{"iterations": 5, "warm_up": 1, "threads": 1, **more})


def profile(model: Path, **more: Any) -> tuple[Report, list[Event]]:
    events = list(run(quick(model, **more)))
    return Report.open(finished(events).report), events


def refused(kind: type[DldError], model: Path, **more: Any) -> DldError:
    with pytest.raises(kind) as caught:
        list(run(quick(model, **more)))
    return caught.value


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(
    ("passes", "seconds", "stop"),
    [
        (None, None, StopCondition(10, 3.0, 10_000)),
        (20, None, StopCondition(20)),
        (None, 0.5, StopCondition(10, 0.5)),
        (7, 0.5, StopCondition(7, 0.5)),
    ],
)
def test_how_long(passes: int | None, seconds: float | None, stop: StopCondition) -> None:
    assert _stop_condition(passes, seconds) == stop


@pytest.mark.broad
def test_inputs_from_a_folder_take_turns(folder: Path, model: Path) -> None:
    for number in range(2):
        data = folder / f"data/test_data_set_{number}"
        data.mkdir(parents=True)
        np.save(data / "x.npy", np.zeros((number + 1, 4), np.float32))
    report, _ = profile(model, inputs=folder / "data", optimization_level="disabled")
    with report:
        assert report.settings["input_shapes"] == {"x": [1, 4]}
        shapes = {layer.input_dims[0] for layer in report.layers if layer.name == "first"}
        assert (1, 4) in shapes


@pytest.mark.broad
def test_a_model_that_no_guess_can_run_says_what_was_tried(folder: Path) -> None:
    model = models.write(folder, IMPOSSIBLE)
    error = refused(ActivityError, model)
    assert error.status == 5
    assert "node 'shaper' (Reshape)" in str(error.where)
    assert error.message.startswith("it cannot be run with any of the ")
    assert error.hint is not None
    assert error.hint.startswith("Tried x:1x128; ")
    assert "; and 4 more. " in error.hint
    assert len(error.hint) < 400
    assert "Give the shapes, as --shape x:1x128" in error.hint
    assert list(folder.iterdir()) == [model]


def test_large_models_are_profiled_in_as_many_passes_as_there_is_room_for(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profiling, "_MOST_LAYER_EVENTS", 12)
    report, events = profile(model, layer_passes=500)
    assert texts(events) == [
        "Input x → 1x4 (guessed: batch 1 by its name N); --shape x:1x4 sets it",
        "layers: 2 passes, which is what ONNX Runtime's profile has room for",
    ]
    with report:
        assert len(report.counted_passes) == 2


def stop_in(stage: str, request: Request) -> Iterator[Event]:
    """Run until a stage has begun; return the generator, which is then closed."""
    events = run(request)
    for event in events:
        if isinstance(event, Progress) and event.stage == stage and event.done:
            return events
    raise AssertionError(f"never got to {stage}")


def test_what_was_measured_before_a_cancel_is_left(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = stop_in("Warming up", quick(model, warm_up=1_000_000))
    events.close()  # type: ignore[attr-defined]
    assert list(model.parent.iterdir()) == [model]
    monkeypatch.setattr(profiling, "_WRITE_SECONDS", 0.0)
    events = stop_in("Measuring latency", quick(model, iterations=1_000_000))
    next(events)
    events.close()  # type: ignore[attr-defined]
    with Report.open(model.with_suffix(".dldprof")) as report:
        assert report.status == "partial"
        assert report.latency is not None
        assert report.notes[-1].text == "the run was cancelled"


@pytest.mark.broad
def test_layers_that_fail_leave_the_latencies_and_say_where(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ActivityError("no profile")

    monkeypatch.setattr(profiling, "add_ort_profile", fail)
    written = model.with_suffix(".dldprof")
    assert refused(ActivityError, model).hint == f"What was measured before is in {written}"
    with Report.open(written) as report:
        assert (report.status, len(report.latencies)) == ("partial", 5)


@pytest.mark.broad
def test_as_a_job_killed_on_the_way_leaves_a_readable_report(folder: Path, model: Path) -> None:
    output = folder / "r.dldprof"
    request = to_json(quick(model, iterations=None, duration=600.0, output=output))
    with LocalTarget(delays=Delays()).start("profile_onnxruntime", request) as job:
        seen = 0
        for event in job.events():
            if isinstance(event, Progress) and output.exists():
                seen += 1
                if seen == 3:  # what made the file has been committed by then
                    os.kill(job.pid, signal.SIGKILL)
    assert type(event).__name__ == "Failed"
    with Report.open(output) as report:
        assert report.status == "partial"
        assert report.latency is not None


def test_what_no_memory_can_hold_is_refused_before_anything_runs(tmp_path: Path) -> None:
    document = Document.open(models.write(tmp_path, models.layered()))
    needed = sum(one.nbytes or 0 for one in document.main.initializers)
    assert needed > 0
    assert [*require_memory(document, {"memory_bytes": needed})] == []
    assert [*require_memory(document, {})] == []  # nobody knows
    with pytest.raises(UsageError, match="the weights alone take"):
        list(require_memory(document, {"memory_bytes": needed - 1}))
    document.close()


def test_io_binding_times_the_copies_on_their_own(model: Path) -> None:
    report, _ = profile(model, io_binding=True, layer_passes=2)
    with report:
        copies: Any = report.properties["copies"]
        assert copies["input_bytes"] == copies["output_bytes"] == 16
        assert len(report.latencies) == 5
        assert report.layers
        assert any("latency is without copies" in note.text for note in report.notes)


@pytest.mark.broad
def test_the_optimised_model_is_saved_and_opens_or_its_failure_is_told(
    folder: Path, model: Path
) -> None:
    target = folder / "optimised.onnx"
    report, events = profile(
        model, optimized_model=target, optimization_level="basic", layer_passes=0
    )
    with report:
        assert report.properties["optimized_model"] == str(target)
    assert finished(events).optimized_model == target
    profile(target, layer_passes=0)
    left = [name for name in files(folder) if not name.endswith(".dldprof")]
    assert left == ["model.onnx", "optimised.onnx"]
    _, events = profile(model, optimized_model=folder / "nowhere" / "o.onnx", layer_passes=0)
    assert finished(events).optimized_model is None
    assert any("was not saved" in text for text in texts(events))
