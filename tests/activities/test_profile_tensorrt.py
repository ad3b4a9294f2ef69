"""Profiling with the fakes of TensorRT and CUDA; nothing here has run on a GPU."""

from __future__ import annotations

import itertools
import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dld_tui.activities import build
from dld_tui.activities.profile.tensorrt import Request, run
from dld_tui.backends.machine import capture
from dld_tui.backends.tensorrt import library
from dld_tui.backends.tensorrt.library import Library, use
from dld_tui.core.codec import encode
from dld_tui.core.errors import ActivityError, InputError, SaveError, UnavailableError, UsageError
from dld_tui.core.events import Event, Progress
from dld_tui.core.files import writer
from dld_tui.core.report.gpu_kernels import Activity, ActivityLog, NamedRange
from dld_tui.core.report.measured_figures import report_inputs
from dld_tui.core.report.report import Report, open_report
from dld_tui.core.tensorrt.plan.reader import open_plan
from tests.support.activities import finished
from tests.support.engines import FREE, built, write_model
from tests.support.fake_machine import install
from tests.support.jobs import texts
from tests.support.recorded import Recorded, settled
from tests.support.report_text import report_text

Profile = Callable[..., tuple[Report, dict[str, Any]]]


@pytest.fixture
def trt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    return install(monkeypatch)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_model(tmp_path / "small.onnx")


def events_of(model: Path, **settings: Any) -> list[Event]:
    quick = {"iterations": 5, "duration": 0.0, "warm_up_ms": 0.0, "gpu_counters": "off"}
    return list(run(Request(model=model, **{**quick, **settings})))


@pytest.fixture
def profile(trt: Any) -> Iterator[Profile]:
    opened: list[Report] = []

    def measure(model: Path, **settings: Any) -> tuple[Report, dict[str, Any]]:
        result = encode(finished(events_of(model, **settings)))
        opened.append(open_report(Path(result["report"])))
        return opened[-1], result

    yield measure
    for report in opened:
        report.close()


def notes(report: Report) -> str:
    return "\n".join(note.text for note in report.notes)


def test_an_engine_is_built_and_measured_with_its_layers(
    trt: Any, profile: Profile, model: Path
) -> None:
    trt.fake.layer_ms = {"first": 2.0, "last": 1.0, "kernel": 0.0}
    report, result = profile(model, layer_passes=3)
    assert report.status == "complete"
    assert result["library"] == "TensorRT 10.13.0.35"
    assert result["summary"]["passes"] == 5
    assert result["phases_ms"]["compute"]["median"] == pytest.approx(3.0, rel=0.02)
    assert report.properties["backend"] == "TensorRT 10.13.0.35"
    assert report.properties["execution_provider"] == "TensorRT"
    assert len(trt.fake.builds) == 1
    assert not list(model.parent.glob("*.engine"))
    assert trt.fake.cuda.live == 0
    # Warm-up and timed passes copy; those of the layers, with one to warm up, do not.
    assert (len(report.latencies), len(report.passes)) == (5, 3)
    assert trt.fake.cuda.calls.count("copy_to_host") == 6
    assert trt.fake.cuda.calls.count("work") == 6 + 4
    layers = {layer.name: layer for layer in report.layers}
    assert layers["first"].type == "Convolution"
    (link,) = layers["first"].nodes
    assert (link.name, link.op_type, link.confidence) == ("first", "Conv", "name")
    assert layers["first"].output_dims == ((1, 2, 4, 4),)

    trt.fake.layer_ms = {"kernel": 0.001, "first": 0.002, "last": 0.001}  # less than a pass takes
    report, _ = profile(model)
    times = {layer.name: layer.time_ms for layer in report.layers}
    assert times == pytest.approx(trt.fake.layer_ms)


WHOLE: dict[str, dict[str, Any]] = {
    "default": {"layer_passes": 3},
    "graph": {"use_cuda_graph": True, "spin_wait": True, "no_data_transfers": True, "streams": 2},
    "no layers": {"layer_passes": 0},
    "hidden": {"hide_non_compute": True},
    "names": {"verbosity": "layer_names", "iterations": 1},
    "batch": {"shape": ("image:4x3x4x4",), "opt_shapes": ("image:4x3x4x4",), "seed": 3},
}


@pytest.mark.parametrize("slow", ["compute", "launch", "copies"])
def test_whole_reports(
    trt: Any, profile: Profile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    recorded: Recorded, slow: str,
) -> None:  # fmt: skip
    """On a clock of which each look takes 0.01 ms, 5 ms where launches are slow; of dates 4 ms."""
    ticks = itertools.count(10**18, 5_000_000 if slow == "launch" else 10_000)
    wall = itertools.count(10**18, 4_000_000)
    clock = SimpleNamespace(
        perf_counter_ns=lambda: next(ticks), time_ns=lambda: next(wall),
        perf_counter=lambda: next(ticks) / 1e9,
    )  # fmt: skip
    monkeypatch.setattr("dld_tui.backends.tensorrt.profiling.time", clock)
    trt.fake.layer_ms = {"first": 2.0, "last": 1.0, "kernel": 0.0}
    if slow == "copies":
        trt.fake.layer_ms = dict.fromkeys(trt.fake.layer_ms, 0.000001)
    texts = {}
    for title, settings in WHOLE.items() if slow == "compute" else [*WHOLE.items()][:2]:
        text = FREE if "opt_shapes" in settings else FREE.replace("N,", "1,")
        model = write_model(tmp_path / "small.onnx", text)
        report, result = profile(model, **settings)
        del result["report"]
        lines = [one for one in report_text(report).split("\n") if not one.startswith(OWN)]
        text = settled("\n".join([*lines, json.dumps(result)]), tmp_path)
        texts[title] = re.sub(r"\d\.\d+e-1[3-9]", "0.0", text)  # equal values, summed
        assert trt.fake.cuda.live == 0
    recorded(f"tensorrt_profiles_{slow}", texts)


OWN = ("environment:", "properties:", "settings:", "model:", "info: No ", "info: The GPU's clocks")
"""Beginnings of what is of this machine, or as it was asked for."""


def test_settings_that_decide_what_figures_mean_are_kept(
    trt: Any, profile: Profile, model: Path
) -> None:
    report, _ = profile(model, use_cuda_graph=True, spin_wait=True, no_data_transfers=True)
    kept = report.settings
    assert (kept["use_cuda_graph"], kept["cuda_graph_used"], kept["spin_wait"]) == (True,) * 3
    assert kept["no_data_transfers"] is True
    assert kept["input_shapes"] == {"image": [1, 3, 4, 4]}
    assert {"open 0 spin=True", "launch"} <= {*trt.fake.cuda.calls}
    assert "without copies" in notes(report)
    assert report.environment["gpu_compute_capability"] == "9.0"
    assert report.environment["tensorrt"] == "10.13.0.35"


def test_a_prebuilt_engine_must_be_trusted_and_may_be_refitted(
    trt: Any, tmp_path: Path, profile: Profile, model: Path
) -> None:
    engine = tmp_path / "small.engine"
    engine.write_bytes(built(trt, flags=("REFIT",)))
    trt.fake.builds.clear()
    with pytest.raises(UsageError, match="trust who made it"):
        events_of(engine)
    report, _ = profile(engine, trust=True)
    assert report.settings["engine"] == str(engine)
    assert [layer.name for layer in report.layers] == ["kernel", "first", "last"]
    report, _ = profile(model, engine=engine, trust=True, refit_engine=True)
    assert "1 weight of the engine taken" in notes(report)
    assert report.layers[1].nodes
    assert not trt.fake.builds


def test_shapes_choose_the_pass_and_the_profile(trt: Any, tmp_path: Path, profile: Profile) -> None:
    free = write_model(tmp_path / "free.onnx", FREE)

    def measured(path: Path = free, /, **settings: Any) -> Report:
        return profile(path, layer_passes=0, **settings)[0]

    report = measured(shape=("image:4x3x4x4",))
    assert report.settings["input_shapes"] == {"image": [4, 3, 4, 4]}
    report = measured()
    assert report.settings["input_shapes"] == {"image": [1, 3, 4, 4]}
    (found,) = report_inputs(report)
    assert found.why.startswith("batch 1 by")
    ranges: dict[str, Any] = {"min_shapes": ("image:1x3x4x4",), "max_shapes": ("image:8x3x4x4",)}
    report = measured(shape=("image:2x3x4x4",), **ranges)
    assert report.settings["input_shapes"] == {"image": [2, 3, 4, 4]}
    with pytest.raises(UsageError, match="outside profile 0"):
        measured(shape=("image:9x3x4x4",), **ranges)

    engine = tmp_path / "two.engine"
    engine.write_bytes(built(trt, FREE, ranges=((1, 2, 4), (8, 16, 32))))
    report = measured(engine, trust=True, shape=("image:9x3x4x4",))
    assert report.settings["optimization_profile"] == 1
    report = measured(engine, trust=True)
    assert report.settings["input_shapes"] == {"image": [2, 3, 4, 4]}


def test_the_engine_and_its_layers_are_kept_on_request(
    tmp_path: Path, profile: Profile, model: Path
) -> None:
    kept = tmp_path / "kept.trt.json"
    _, result = profile(model, output=tmp_path / "kept.engine", layer_info=kept)
    assert (tmp_path / "kept.engine").read_bytes()[:4] == b"ftrt"
    names = ["kept.trt.json", "kept.profile.json", "kept.timing.json"]
    assert [Path(path).name for path in result["saved"]] == names
    plan = open_plan(kept)
    assert plan.passes == 5
    assert plan.timing is not None
    assert plan.timing.latency is not None
    rows = json.loads((tmp_path / "kept.timing.json").read_text())
    assert len(rows) == 5
    for row in rows:
        assert row["h2dMs"] > 0
        took = [row[f"end{part}Ms"] - row[f"start{part}Ms"] for part in ("H2d", "Compute", "D2h")]
        assert took == pytest.approx([row["h2dMs"], row["computeMs"], row["d2hMs"]])
        assert row["endD2hMs"] - row["startH2dMs"] == pytest.approx(row["latencyMs"])


@pytest.mark.parametrize("named", [False, True])
def test_kernels_by_stream_and_by_the_layers_that_tensorrt_names(
    trt: Any, profile: Profile, model: Path, monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    log = ActivityLog()
    work = trt.fake.cuda.work

    def launch(stream: int, milliseconds: float, profiled: bool) -> None:
        if profiled:
            number, now = len(log.work) + 1, time.time_ns()
            log.launched(number, now)
            log.work.append(Activity("kernel", "conv", now, now + 1000, number, "stream 7"))
            if named:
                log.ranges.append(NamedRange("enqueue", now - 2000, now + 2000))
                log.ranges.append(NamedRange("first", now - 1000, now + 1000))
        work(stream, milliseconds, profiled)

    class Tracer:
        def __init__(self, device: int, *, calls: bool, ranges: bool) -> None:
            assert ranges == calls
            for part in (log.work, log.ranges, log.launches):
                part.clear()

        def start(self) -> None: ...
        def flush(self) -> None: ...

        def stop(self) -> ActivityLog:
            return log

    monkeypatch.setattr(trt.fake.cuda, "work", launch)
    monkeypatch.setattr(capture, "ActivityTracer", Tracer)
    report, _ = profile(model, layer_passes=3)
    check: Any = report.properties["gpu_check"]
    told = (3, 0) if named else (0, 3)
    assert (check["kernels"], check["attributed"], check["unattributed"]) == (3, *told)
    assert ("which layer launched them is unknown" in notes(report)) != named
    events = [event for index in range(3) for event in report.gpu_events(index)]
    layers = {report.layers[event.layer].name for event in events if event.layer is not None}
    assert layers == ({"first"} if named else set())


def test_a_run_that_is_stopped_leaves_what_it_has(trt: Any, model: Path, tmp_path: Path) -> None:
    request = Request(model=model, iterations=3, duration=0.0, warm_up_ms=0.0, gpu_counters="off")
    events = run(request)
    for event in events:
        if isinstance(event, Progress) and event.stage == "Measuring layers":
            break
    events.close()  # type: ignore[attr-defined]
    with open_report(tmp_path / "small.dldprof") as report:
        assert (report.status, len(report.latencies)) == ("partial", 3)
    assert trt.fake.cuda.live == 0


def test_no_driver_is_told_before_a_long_build(
    trt: Any, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()  # the library that is really there, if any, and no GPU
    found = use(trt)
    facts = replace(found.capabilities, no_driver="there is no NVIDIA driver")
    monkeypatch.setattr(library, "find_library", lambda choice: Library(found.module, facts))
    with pytest.raises(UnavailableError, match="cannot run engines here: there is no NVIDIA"):
        events_of(model)
    assert not trt.fake.builds


def test_what_fails_is_one_line(trt: Any, model: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="numbers from 0 to 100"):
        events_of(model, percentile="high")
    trt.fake.no_context_memory = True
    with pytest.raises(ActivityError, match="not have enough memory for the engine"):
        events_of(model)
    assert not list(tmp_path.glob("*.dldprof*"))
    with pytest.raises(InputError, match="is not a TensorRT engine"):
        events_of(model, engine=model, trust=True)


@pytest.mark.parametrize(
    ("settings", "error", "said"),
    [
        ({}, None, ""),
        ({"verbosity": "none"}, None, "the engine says nothing of its layers (--verbosity none)"),
        ({}, SaveError("there is no room"), "there is no room"),
        ({}, OSError("broken"), "broken"),
    ],
)
def test_layers_that_cannot_be_written_are_no_failure(
    trt: Any, model: Path, monkeypatch: pytest.MonkeyPatch,
    settings: dict[str, Any], error: Exception | None, said: str,
) -> None:  # fmt: skip
    layers, write = model.with_suffix(".trt.json"), writer.write_pieces

    def written(path: Path, *values: Any, **more: Any) -> Any:
        if path.name == layers.name and error is not None:
            raise error
        return write(path, *values, **more)

    monkeypatch.setattr(writer, "write_pieces", written)
    events = [*build.run(build.Request(model, **settings))]
    result = finished(events)
    assert (result.layer_info, result.layer_info_problem) == (None if said else layers, said)
    assert layers.exists() is not bool(said)
    assert [text for text in texts(events) if "layers" in text] == (
        [f"The layers are not written: {said}"] if said else []
    )
