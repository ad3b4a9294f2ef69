from __future__ import annotations

import dataclasses
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dld_tui.activities.profile.onnxruntime import Request, _stop_condition, require_memory, run
from dld_tui.core.codec import encode
from dld_tui.core.errors import (
    ActivityError,
    DldError,
    InputError,
    SaveError,
    UnavailableError,
    UsageError,
)
from dld_tui.core.events import Event, Finished, Log, Metric, Progress
from dld_tui.core.model.document.document import Document
from dld_tui.core.params import to_json
from dld_tui.core.report.latency import StopCondition
from dld_tui.core.report.measured_facts import report_inputs
from dld_tui.core.report.report import Report
from dld_tui.targets.process import Delays, LocalTarget
from tests.support import models

pytest.importorskip("onnxruntime")

PICKY = """
<ir_version: 10, opset_import: ["" : 18]>
picky (float[batch, length] x, int64[1] k) => (float[K] y) <int64[1] s = {8}>
{ [shaper] y = Reshape(x, s) z = Identity(k) }
"""

IMPOSSIBLE = """
<ir_version: 10, opset_import: ["" : 18]>
impossible (float[batch, length] x) => (float[K] y) <int64[1] s = {7}>
{ a = Concat <axis = 0> (x, x) [shaper] y = Reshape(a, s) }
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run in an empty folder, whose temporary files are inside it, too."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def quick(model: Path, **more: Any) -> Request:
    return Request(model, **{"iterations": 5, "warm_up": 1, "threads": 1, **more})


def profile(request: Request) -> tuple[Finished, list[Event]]:
    *events, last = run(request)
    assert isinstance(last, Finished)
    return last, events


def refused(request: Request, kind: type[DldError]) -> DldError:
    with pytest.raises(kind) as caught:
        list(run(request))
    return caught.value


@pytest.mark.broad
def test_a_report_with_latencies_and_layers(folder: Path) -> None:
    model = models.write(folder, models.CHAIN)
    finished, events = profile(quick(model, shape=("x:3x4",), layer_passes=4))

    report_path = Path(str(encode(finished.result)["report"]))
    assert report_path == folder / "model.dldprof"
    with Report.open(report_path) as report:
        assert report.status == "complete"
        assert len(report.latencies) == 5
        assert [one.state for one in report.passes] == ["warm-up"] + ["measured"] * 4
        assert {link.name for layer in report.layers for link in layer.nodes} == {
            "first", "second", "third", "last"
        }  # fmt: skip
        assert report.layers[0].input_dims[0] == (3, 4)
        assert report.network == "model.onnx"
        assert report.backend.startswith("ONNX Runtime 1.")
        assert report.execution_provider == "CPU"
        assert report.device == report.environment["cpu"]
        assert report.model["path"] == str(model)
        assert report.model_problem() is None
        assert report.settings["input_shapes"] == {"x": [3, 4]}
        assert report.settings["threads"] == 1
        assert "onnxruntime" in report.environment
        assert report.facts["load_ms"] > 0  # type: ignore[operator]
    stages = dict.fromkeys(event.stage for event in events if isinstance(event, Progress))
    assert list(stages) == [
        "Reading the model",
        "Loading the model",
        "Warming up",
        "Measuring latency",
        "Measuring layers",
        "Writing the report",
    ]
    assert {event.name for event in events if isinstance(event, Metric)} == {"load", "latency"}
    assert sorted(path.name for path in folder.iterdir()) == ["model.dldprof", "model.onnx"]


@pytest.mark.broad
def test_the_summary_has_the_percentiles_asked_for(folder: Path) -> None:
    finished, _ = profile(quick(models.write(folder, models.CHAIN), percentile="50, 99.9"))

    summary: Any = encode(finished.result)["summary"]
    assert summary["passes"] == 5
    assert summary["percentiles_ms"]["50"] == summary["latency_ms"]["median"]
    assert summary["latency_ms"]["min"] <= summary["percentiles_ms"]["99.9"]
    assert list(summary["percentiles_ms"]) == ["50", "99.9"]


@pytest.mark.broad
def test_every_new_report_has_a_name_of_its_own(folder: Path) -> None:
    model = models.write(folder, models.CHAIN)
    names = [profile(quick(model))[0].result.report.name for _ in range(3)]

    assert names == ["model.dldprof", "model-2.dldprof", "model-3.dldprof"]


@pytest.mark.broad
@pytest.mark.usefixtures("replaces_all")
def test_a_named_report_is_replaced(folder: Path) -> None:
    model, output = models.write(folder, models.CHAIN), folder / "r.dldprof"
    for passes in (5, 7):
        profile(quick(model, output=output, iterations=passes))

    with Report.open(output) as report:
        assert len(report.latencies) == 7
    assert sorted(path.name for path in folder.iterdir()) == ["model.onnx", "r.dldprof"]


def test_layers_can_be_left_out(folder: Path) -> None:
    finished, _ = profile(quick(models.write(folder, models.CHAIN), layer_passes=0))

    with Report.open(str(encode(finished.result)["report"])) as report:
        assert report.layers == ()
        assert report.latency is not None


@pytest.mark.broad
def test_subgraphs_are_measured_and_joined(folder: Path) -> None:
    body = "(float[N] b) {{ [{0}_1] h = {1}(a) [{0}_2] b = Add(h, a) }}"
    model = models.write(
        folder,
        f"""<ir_version: 10, opset_import: ["" : 18]>
        g (bool c, float[N] x) => (float[N] y) {{
            [before] a = Relu(x)
            [choose] y = If (c) <
                then_branch = yes () => {body.format("then", "Neg")},
                else_branch = no () => {body.format("else", "Abs")}
            >
        }}""",
    )
    finished, _ = profile(quick(model, optimization_level="disabled"))

    with Report.open(str(encode(finished.result)["report"])) as report:
        holders = [layer for layer in report.layers if layer.type == "If"]
        inner = [layer for layer in report.layers if layer.nodes and layer.nodes[0].scope]
        assert len(holders) == 1
        assert len(inner) == 2
        (scope,) = {layer.nodes[0].scope for layer in inner}
        assert scope[0].startswith("choose:")


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
def test_a_duration_is_kept(folder: Path) -> None:
    request = quick(models.write(folder, models.CHAIN), iterations=None, duration=0.2)
    finished, events = profile(dataclasses.replace(request, warm_up_ms=50.0, layer_passes=1))

    with Report.open(str(encode(finished.result)["report"])) as report:
        assert sum(report.latencies) <= 400
        assert len(report.latencies) > 10
    measuring = [e for e in events if isinstance(e, Progress) and e.stage == "Measuring latency"]
    assert measuring[-1].done == measuring[-1].total == 0.2


@pytest.mark.broad
def test_inputs_from_a_folder_take_turns(folder: Path) -> None:
    for number in range(2):
        data = folder / f"data/test_data_set_{number}"
        data.mkdir(parents=True)
        np.save(data / "x.npy", np.zeros((number + 1, 4), np.float32))
    model = models.write(folder, models.CHAIN)
    finished, _ = profile(quick(model, inputs=folder / "data", optimization_level="disabled"))

    with Report.open(str(encode(finished.result)["report"])) as report:
        assert report.settings["input_shapes"] == {"x": [1, 4]}
        shapes = {layer.input_dims[0] for layer in report.layers if layer.name == "first"}
        assert (1, 4) in shapes


@pytest.mark.broad
def test_initializers_that_are_listed_as_inputs_are_not_fed(folder: Path) -> None:
    text = """<ir_version: 3, opset_import: ["" : 9]>
        old (float[N] x, float[1] w) => (float[N] y) <float[1] w = {2}> { y = Mul(x, w) }"""
    model = models.write(folder, text)
    profile(quick(model, shape=("x:5",)))

    assert "Its inputs: x" in str(refused(quick(model, shape=("w:5",)), UsageError))


def test_a_free_dimension_is_what_the_graph_demands_and_is_told_in_the_report(folder: Path) -> None:
    model = models.write(folder, PICKY)
    finished, _ = profile(quick(model))
    with Report.open(str(encode(finished.result)["report"])) as report:
        assert report.settings["input_shapes"] == {"x": [1, 8], "k": [1]}
        assert next((one.shape_text, one.why) for one in report_inputs(report)) == (
            "1x8",
            "batch 1 by its name batch, sequence length 8 by Reshape shaper, which cannot do with"
            " 128",
        )


@pytest.mark.broad
def test_a_model_that_no_guess_can_run_says_what_was_tried(folder: Path) -> None:
    model = models.write(folder, IMPOSSIBLE)
    error = refused(quick(model), ActivityError)

    assert error.status == 5
    assert "node 'shaper' (Reshape)" in str(error.where)
    assert error.message.startswith("it cannot be run with any of the ")
    assert error.hint is not None
    assert error.hint.startswith("Tried x:1x128; ")
    assert "; and 4 more. " in error.hint
    assert len(error.hint) < 400
    assert "Give the shapes, as --shape x:1x128" in error.hint
    assert list(folder.iterdir()) == [model]


def test_shapes_that_are_given_count(folder: Path) -> None:
    model = models.write(folder, PICKY)
    profile(quick(model, shape=("x:2x4",)))


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"shape": ("z:1x4",)}, "'z', which is not an input of the model. Its inputs: x"),
        ({"shape": ("x:1x5",)}, "does not fit input x float32[N, 4]"),
        ({"percentile": "90,high"}, "--percentile is '90,high'"),
        ({"percentile": "101"}, "--percentile is '101'"),
        ({"shape": ("x:1x4",), "inputs": Path("data")}, "--shape cannot be used with --inputs"),
    ],
)
def test_settings_that_do_not_fit_are_usage_errors(
    folder: Path, more: dict[str, Any], says: str
) -> None:
    error = refused(quick(models.write(folder, models.CHAIN), **more), UsageError)

    assert says in str(error)
    assert [path.name for path in folder.iterdir()] == ["model.onnx"]


def test_a_provider_that_is_not_there(folder: Path) -> None:
    error = refused(quick(folder / "absent.onnx", provider="Teapot"), UnavailableError)

    assert error.status == 4


def test_inputs_and_models_that_cannot_be_read(folder: Path) -> None:
    model = models.write(folder, models.CHAIN)
    (folder / "page.onnx").write_text("<html>")

    assert "absent.onnx" in str(refused(quick(folder / "absent.onnx"), InputError))
    assert "HTML" in str(refused(quick(folder / "page.onnx"), InputError))
    assert "x.npy" not in str(refused(quick(model, inputs=folder / "none"), InputError))


def test_a_report_that_cannot_be_written(folder: Path) -> None:
    model = models.write(folder, models.CHAIN)
    error = refused(quick(model, output=folder / "absent" / "r.dldprof"), SaveError)

    assert "absent" in str(error)


def test_large_models_are_profiled_in_as_many_passes_as_there_is_room_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dld_tui.backends.onnxruntime import profiling as onnxruntime_profiling

    model = models.write(folder, models.CHAIN)
    monkeypatch.setattr(onnxruntime_profiling, "_MOST_LAYER_EVENTS", 12)
    finished, events = profile(quick(model, layer_passes=500))

    assert [e.text for e in events if isinstance(e, Log)] == [
        "Input x → 1x4 (guessed: batch 1 by its name N); --shape x:1x4 sets it",
        "layers: 2 passes, which is what ONNX Runtime's profile has room for",
    ]
    with Report.open(str(encode(finished.result)["report"])) as report:
        assert len(report.counted_passes) == 2


def stop_in(stage: str, request: Request) -> Iterator[Event]:
    """Run until a stage has begun; return the generator, which is then closed."""
    events = run(request)
    for event in events:
        if isinstance(event, Progress) and event.stage == stage and event.done:
            return events
    raise AssertionError(f"never got to {stage}")


def test_cancelled_before_anything_was_measured_leaves_nothing(folder: Path) -> None:
    model = models.write(folder, models.CHAIN)
    events = stop_in("Warming up", quick(model, warm_up=1_000_000))
    events.close()  # type: ignore[attr-defined]

    assert list(folder.iterdir()) == [model]


def test_cancelled_after_passes_were_written_leaves_a_partial_report(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dld_tui.backends.onnxruntime import profiling as onnxruntime_profiling

    monkeypatch.setattr(onnxruntime_profiling, "_WRITE_SECONDS", 0.0)
    model = models.write(folder, models.CHAIN)
    events = stop_in("Measuring latency", quick(model, iterations=1_000_000))
    next(events)
    events.close()  # type: ignore[attr-defined]

    with Report.open(folder / "model.dldprof") as report:
        assert report.status == "partial"
        assert report.latency is not None
        assert report.notes[-1].text == "the run was cancelled"


@pytest.mark.broad
def test_layers_that_fail_leave_the_latencies_and_say_where(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dld_tui.backends.onnxruntime import profiling as onnxruntime_profiling

    def fail(*_: object, **__: object) -> None:
        raise ActivityError("no profile")

    monkeypatch.setattr(onnxruntime_profiling, "add_ort_profile", fail)
    error = refused(quick(models.write(folder, models.CHAIN)), ActivityError)

    assert error.hint == f"What was measured before is in {folder / 'model.dldprof'}"
    with Report.open(folder / "model.dldprof") as report:
        assert (report.status, len(report.latencies)) == ("partial", 5)


@pytest.mark.broad
def test_as_a_job_killed_on_the_way_leaves_a_readable_report(folder: Path) -> None:
    model = models.write(folder, models.CHAIN)
    request = to_json(quick(model, iterations=None, duration=600.0, output=folder / "r.dldprof"))
    job = LocalTarget(delays=Delays()).start("profile_onnxruntime", request)
    with job:
        seen = 0
        for event in job.events():
            if isinstance(event, Progress) and (folder / "r.dldprof").exists():
                seen += 1
                if seen == 3:  # what made the file has been committed by then
                    os.kill(job.pid, signal.SIGKILL)
    assert type(event).__name__ == "Failed"
    with Report.open(folder / "r.dldprof") as report:
        assert report.status == "partial"
        assert report.latency is not None


def test_as_a_job_it_cancels_at_once(folder: Path) -> None:
    request = to_json(quick(models.write(folder, models.CHAIN), duration=600.0))
    with LocalTarget().start("profile_onnxruntime", request) as job:
        events = []
        for event in job.events():
            events.append(event)
            if isinstance(event, Metric) and event.name == "latency":
                job.cancel()
    assert type(events[-1]).__name__ == "Cancelled"
    assert not any("SIG" in event.text for event in events if isinstance(event, Log))


def test_what_no_memory_can_hold_is_refused_before_anything_runs(tmp_path: Path) -> None:
    document = Document.open(models.write(tmp_path, models.layered()))
    needed = sum(one.nbytes or 0 for one in document.main.initializers)
    assert needed > 0
    assert [*require_memory(document, {"memory_bytes": needed})] == []
    assert [*require_memory(document, {})] == []  # nobody knows
    with pytest.raises(UsageError, match="the weights alone take"):
        list(require_memory(document, {"memory_bytes": needed - 1}))
    document.close()


def test_a_free_dimension_gets_its_size(folder: Path) -> None:
    model = models.write(folder, models.CHAIN)
    finished, _ = profile(quick(model, dim=("N=6",)))

    with Report.open(str(encode(finished.result)["report"])) as report:
        assert report.layers[0].input_dims[0] == (6, 4)
        assert report.settings["dim"] == ["N=6"]
    with pytest.raises(UsageError) as caught:
        list(run(quick(model, dim=("M=6",))))
    assert caught.value.hint == "Dynamic dimensions: N"


def test_io_binding_times_the_copies_on_their_own(folder: Path) -> None:
    model = models.write(folder, models.CHAIN)
    finished, _ = profile(quick(model, io_binding=True, layer_passes=2))

    with Report.open(str(encode(finished.result)["report"])) as report:
        copies: Any = report.facts["copies"]
        assert copies["input_bytes"] == copies["output_bytes"] == 16
        assert len(report.latencies) == 5
        assert report.layers
        assert any("latency is without copies" in note.text for note in report.notes)


@pytest.mark.broad
def test_the_optimised_model_is_saved_and_opens(folder: Path) -> None:
    model = models.write(folder, models.CHAIN)
    target = folder / "optimised.onnx"
    finished, _ = profile(quick(model, optimized_model=target, optimization_level="basic"))

    assert encode(finished.result)["optimized_model"] == str(target)
    with Report.open(str(encode(finished.result)["report"])) as report:
        assert report.facts["optimized_model"] == str(target)
    profile(quick(target))
    assert sorted(path.name for path in folder.iterdir() if path.suffix != ".dldprof") == [
        "model.onnx",
        "optimised.onnx",
    ]


def test_an_optimised_model_that_cannot_be_written_fails_nothing(folder: Path) -> None:
    target = folder / "nowhere" / "optimised.onnx"
    finished, events = profile(quick(models.write(folder, models.CHAIN), optimized_model=target))

    assert "optimized_model" not in encode(finished.result)
    assert any("was not saved" in event.text for event in events if isinstance(event, Log))


def test_the_peak_of_memory_is_recorded(folder: Path) -> None:
    finished, _ = profile(quick(models.write(folder, models.CHAIN)))

    with Report.open(str(encode(finished.result)["report"])) as report:
        assert 10**7 < report.facts["peak_memory_bytes"] < 10**11  # type: ignore[operator]
        assert "gpu_memory_bytes" not in report.facts
