"""Profiling with the fakes of TensorRT and CUDA; nothing here has run on a GPU."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dld_tui.activities.profile.tensorrt import Request, run
from dld_tui.backends.machine import capture
from dld_tui.backends.tensorrt import library, profiling
from dld_tui.backends.tensorrt.library import Library, use
from dld_tui.core.codec import encode
from dld_tui.core.errors import ActivityError, InputError, UnavailableError, UsageError
from dld_tui.core.events import Event, Finished, Progress
from dld_tui.core.report.gpu_kernels import Activity, ActivityLog, NamedRange
from dld_tui.core.report.measured_facts import report_inputs
from dld_tui.core.report.report import Report, open_report
from dld_tui.core.tensorrt.plan.reader import open_plan
from tests.support.engines import FREE, built, write_model
from tests.support.fake_tensorrt import fake_tensorrt

Profile = Callable[..., tuple[Report, dict[str, Any]]]


@pytest.fixture
def trt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    fake = fake_tensorrt()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def find(choice: str) -> Library:
        return use(fake)

    def cuda(device: int | str, spin: bool = False) -> Any:
        fake.fake.cuda.calls.append(f"open {device} spin={spin}")
        return fake.fake.cuda

    monkeypatch.setattr(library, "find_library", find)
    monkeypatch.setattr(profiling, "Cuda", cuda)
    return fake


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
        last = events_of(model, **settings)[-1]
        assert isinstance(last, Finished)
        report = open_report(Path(str(encode(last.result)["report"])))
        opened.append(report)
        return report, encode(last.result)

    yield measure
    for report in opened:
        report.close()


def test_an_engine_is_built_and_measured(trt: Any, profile: Profile, model: Path) -> None:
    trt.fake.layer_ms = {"first": 2.0, "last": 1.0, "kernel": 0.0}
    report, result = profile(model)

    assert report.status == "complete"
    assert result["library"] == "TensorRT 10.13.0.35"
    assert result["summary"]["passes"] == 5
    assert result["phases_ms"]["compute"]["median"] == pytest.approx(3.0, rel=0.02)
    assert report.facts["backend"] == "TensorRT 10.13.0.35"
    assert report.facts["execution_provider"] == "TensorRT"
    assert len(trt.fake.builds) == 1
    assert not list(model.parent.glob("*.engine"))
    assert trt.fake.cuda.live == 0


def test_layers_have_their_nodes_and_times(trt: Any, profile: Profile, model: Path) -> None:
    trt.fake.layer_ms = {"kernel": 0.001, "first": 0.002, "last": 0.001}  # less than a pass takes
    report, _ = profile(model)

    layers = {layer.name: layer for layer in report.layers}
    assert layers["first"].time_ms == pytest.approx(0.002)
    assert layers["last"].time_ms == pytest.approx(0.001)
    assert layers["first"].type == "Convolution"
    (link,) = layers["first"].nodes
    assert (link.name, link.op_type, link.confidence) == ("first", "Conv", "name")
    assert layers["first"].output_dims == ((1, 2, 4, 4),)


def test_settings_that_decide_what_figures_mean_are_kept(
    trt: Any, profile: Profile, model: Path
) -> None:
    report, _ = profile(model, use_cuda_graph=True, spin_wait=True, no_data_transfers=True)

    kept = report.settings
    assert (kept["use_cuda_graph"], kept["cuda_graph_used"], kept["spin_wait"]) == (True,) * 3
    assert kept["no_data_transfers"] is True
    assert kept["input_shapes"] == {"image": [1, 3, 4, 4]}
    assert "open 0 spin=True" in trt.fake.cuda.calls
    assert "launch" in trt.fake.cuda.calls
    assert any("without copies" in note.text for note in report.notes)
    assert report.environment["gpu_compute_capability"] == "9.0"
    assert report.environment["tensorrt"] == "10.13.0.35"


def test_latency_and_layers_are_measured_in_runs_of_their_own(
    trt: Any, profile: Profile, model: Path
) -> None:
    report, _ = profile(model, layer_passes=3)

    assert len(report.latencies) == 5
    assert len(report.passes) == 3
    # Warm-up and timed passes copy; those of the layers, with one to warm up, do not.
    assert trt.fake.cuda.calls.count("copy_to_host") == 6
    assert trt.fake.cuda.calls.count("work") == 6 + 4


def test_layers_can_be_left_out(profile: Profile, model: Path) -> None:
    report, _ = profile(model, layer_passes=0)

    assert len(report.latencies) == 5
    assert not report.layers


def test_what_computes_nothing_is_hidden(trt: Any, profile: Profile, model: Path) -> None:
    report, _ = profile(model, hide_non_compute=True)

    assert [layer.name for layer in report.layers] == ["first", "last"]
    assert any("1 layer that compute nothing" in note.text for note in report.notes)


def test_names_alone_are_a_report_with_a_remark(profile: Profile, model: Path) -> None:
    report, _ = profile(model, verbosity="layer_names")

    assert {layer.name for layer in report.layers} == {"kernel", "first", "last"}
    assert any("--verbosity detailed" in note.text for note in report.notes)


def test_a_prebuilt_engine_must_be_trusted(trt: Any, tmp_path: Path, profile: Profile) -> None:
    engine = tmp_path / "small.engine"
    engine.write_bytes(built(trt))
    trt.fake.builds.clear()

    with pytest.raises(UsageError, match="trust who made it"):
        events_of(engine)
    report, _ = profile(engine, trust=True)
    assert report.settings["engine"] == str(engine)
    assert [layer.name for layer in report.layers] == ["kernel", "first", "last"]
    assert not trt.fake.builds


def test_a_prebuilt_engine_is_refitted_from_its_model(
    trt: Any, tmp_path: Path, profile: Profile, model: Path
) -> None:
    engine = tmp_path / "small.engine"
    engine.write_bytes(built(trt, flags=("REFIT",)))
    report, _ = profile(model, engine=engine, trust=True, refit_engine=True)

    assert any("1 weights of the engine were taken" in note.text for note in report.notes)
    assert report.layers[1].nodes


def test_shapes_choose_the_pass_and_the_profile(trt: Any, tmp_path: Path, profile: Profile) -> None:
    free = write_model(tmp_path / "free.onnx", FREE)
    report, _ = profile(free, shape=("image:4x3x4x4",))
    assert report.settings["input_shapes"] == {"image": [4, 3, 4, 4]}

    report, _ = profile(free)
    assert report.settings["input_shapes"] == {"image": [1, 3, 4, 4]}
    (found,) = report_inputs(report)
    assert found.why.startswith("batch 1 by")
    ranges = {"min_shapes": ("image:1x3x4x4",), "max_shapes": ("image:8x3x4x4",)}
    report, _ = profile(free, shape=("image:2x3x4x4",), **ranges)
    assert report.settings["input_shapes"] == {"image": [2, 3, 4, 4]}
    with pytest.raises(UsageError, match="outside profile 0"):
        events_of(free, shape=("image:9x3x4x4",), **ranges)


def test_a_shape_finds_its_profile(trt: Any, tmp_path: Path, profile: Profile) -> None:
    engine = tmp_path / "two.engine"
    engine.write_bytes(built(trt, FREE, ranges=((1, 2, 4), (8, 16, 32))))

    report, _ = profile(engine, trust=True, shape=("image:9x3x4x4",))
    assert report.settings["optimization_profile"] == 1
    report, _ = profile(engine, trust=True)
    assert report.settings["input_shapes"] == {"image": [2, 3, 4, 4]}


def test_the_engine_and_its_layers_are_kept_on_request(
    tmp_path: Path, profile: Profile, model: Path
) -> None:
    _, result = profile(
        model, output=tmp_path / "kept.engine", layer_info=tmp_path / "kept.trt.json"
    )

    assert (tmp_path / "kept.engine").read_bytes()[:4] == b"ftrt"
    assert [Path(path).name for path in result["saved"]] == [
        "kept.trt.json",
        "kept.profile.json",
        "kept.timing.json",
    ]
    plan = open_plan(tmp_path / "kept.trt.json")
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
            log.work.append(
                Activity("kernel", "conv", now, now + 1000, number, "stream 7", None, None)
            )
            if named:
                log.ranges.append(NamedRange("enqueue", now - 2000, now + 2000))
                log.ranges.append(NamedRange("first", now - 1000, now + 1000))
        work(stream, milliseconds, profiled)

    class Tracer:
        def __init__(self, device: int, *, calls: bool, ranges: bool) -> None:
            assert ranges == calls
            log.work.clear()
            log.ranges.clear()
            log.launches.clear()

        def start(self) -> None: ...
        def flush(self) -> None: ...

        def stop(self) -> ActivityLog:
            return log

    monkeypatch.setattr(trt.fake.cuda, "work", launch)
    monkeypatch.setattr(capture, "ActivityTracer", Tracer)
    report, _ = profile(model, layer_passes=3)

    check: Any = report.facts["gpu_check"]
    told = (3, 0) if named else (0, 3)
    assert (check["kernels"], check["attributed"], check["unattributed"]) == (3, *told)
    untold = any("which layer launched them is unknown" in note.text for note in report.notes)
    assert untold != named
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
        assert report.status == "partial"
        assert len(report.latencies) == 3
    assert trt.fake.cuda.live == 0


def test_no_driver_is_told_before_a_long_build(
    trt: Any, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()  # the library that is really there, if any, and no GPU

    def find(choice: str) -> Library:
        from dataclasses import replace

        found = use(trt)
        return Library(found.module, replace(found.facts, no_driver="there is no NVIDIA driver"))

    monkeypatch.setattr(library, "find_library", find)
    with pytest.raises(UnavailableError, match="cannot run engines here: there is no NVIDIA"):
        events_of(model)
    assert not trt.fake.builds


def test_settings_that_exclude_each_other_are_refused(model: Path, tmp_path: Path) -> None:
    engine = tmp_path / "a.engine"
    for settings, message in (
        ({"inputs": tmp_path, "shape": ("x:1",)}, "--shape cannot be used with --inputs"),
        ({"refit_engine": True}, "--refit-from-model needs"),
        ({"engine": engine, "output": engine}, "--save-engine cannot be used"),
        ({"percentile": "high"}, "numbers from 0 to 100"),
    ):
        with pytest.raises(UsageError, match=message):
            events_of(model, **settings)


def test_what_fails_is_one_line(trt: Any, model: Path, tmp_path: Path) -> None:
    trt.fake.no_context_memory = True
    with pytest.raises(ActivityError, match="not have enough memory for the engine"):
        events_of(model)
    assert not list(tmp_path.glob("*.dldprof*"))

    trt.fake.no_context_memory = False
    with pytest.raises(InputError, match="is not a TensorRT engine"):
        events_of(model, engine=model, trust=True)
