"""Running engines on the fakes of TensorRT and CUDA: shapes, memory, copies, graphs, times."""

from __future__ import annotations

import inspect
import itertools
from array import array
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dld_tui.backends.tensorrt import profiling
from dld_tui.backends.tensorrt.cuda import Cuda
from dld_tui.backends.tensorrt.execution import Execution, engine_inputs, fitting_profile
from dld_tui.backends.tensorrt.profiling import PassTimer, ProfilingRun, layer_passes
from dld_tui.backends.tensorrt.runtime import Binding, Engine
from dld_tui.core.errors import ActivityError, InputError, UsageError
from tests.support.engines import FREE, built, loaded
from tests.support.fake_cuda import FakeCuda
from tests.support.fake_tensorrt import fake_tensorrt
from tests.support.recorded import Recorded

SHAPE = (2, 3, 4, 4)


@pytest.fixture
def trt() -> Any:
    return fake_tensorrt()


@pytest.fixture
def engine(trt: Any) -> Engine:
    return loaded(trt, built(trt, FREE, ranges=((1, 2, 8), (4, 8, 16))))


def execution_of(trt: Any, engine: Engine, **more: Any) -> Execution:
    values, shapes = engine_inputs(engine.inputs, **more)
    return Execution(trt.fake.cuda, engine, values, shapes)


def test_the_fake_of_cuda_has_the_methods_of_the_real_one() -> None:
    for name, method in inspect.getmembers(Cuda, inspect.isfunction):
        if not name.startswith("_"):
            real = inspect.signature(method).parameters
            assert inspect.signature(getattr(FakeCuda, name)).parameters == real, name


def test_a_shape_tensor_takes_values_for_its_shape(trt: Any) -> None:
    trt.fake.host_tensors = {"image"}
    trt.ICudaEngine.get_tensor_profile_values = lambda self, profile, name: [[1], [5], [9]]
    engine = loaded(trt, built(trt, FREE, ranges=((1, 2, 8),)))

    values, _ = engine_inputs(engine.inputs)
    assert np.asarray(values["image"]).tolist() == [5]
    values, _ = engine_inputs(engine.inputs, shapes=["image:7"])
    assert np.asarray(values["image"]).tolist() == [7]


class TracedCuda:
    """A device that writes down the calls of the program."""

    def __init__(self) -> None:
        self.device = FakeCuda()
        self.trace: list[str] = []

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.device, name)
        if not callable(value) or name in ("read", "write", "work"):
            return value  # the fake of TensorRT works on it, too

        def call(*given: Any) -> Any:
            result = value(*given)
            shown = [_short(one) for one in (*given, result)]
            self.trace.append(f"{name}({', '.join(shown[:-1])}) -> {shown[-1]}")
            return result

        return call


def _short(value: object) -> str:
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    if isinstance(value, float):
        return f"{value:.3g}"
    return (
        f"+{value - 0x7F0000000000:x}" if isinstance(value, int) and value > 1 << 32 else str(value)
    )


@pytest.mark.parametrize("is_host", [False, True])
def test_what_a_run_asks_of_the_device(trt: Any, recorded: Recorded, is_host: bool) -> None:
    """A copy in, runs, a copy out; the same from a graph; and an input whose values are a shape."""
    cuda = trt.fake.cuda = TracedCuda()
    if is_host:
        trt.fake.host_tensors = {"image"}
        trt.ICudaEngine.get_tensor_profile_values = lambda self, profile, name: [[1], [5], [9]]
    engine = loaded(trt, built(trt, FREE, ranges=((1, 2, 8), (4, 8, 16))))
    cuda.trace.clear()
    values, shapes = engine_inputs(engine.inputs)
    if is_host:
        values["image"] = bytes(192)  # as many as a shape tensor of this size would have
    execution = Execution(cuda, engine, values, shapes)  # type: ignore[arg-type]
    texts = {}

    def done(title: str) -> None:
        texts[title] = "\n".join(cuda.trace)
        cuda.trace.clear()

    done("opened")
    execution.copy_inputs()
    execution.enqueue()
    execution.copy_outputs()
    execution.wait()
    done("a pass")
    assert {name: len(value) for name, value in execution.outputs().items()} == {
        "scores": (1 if is_host else 2) * 2 * 4 * 4 * 4
    }
    done("outputs")
    timer = PassTimer(cuda, [execution], True)  # type: ignore[arg-type]
    assert timer(0, array("q", bytes(16)), 2, 2**62) == 2
    timer.close()
    done("timed")
    execution.capture()
    execution.enqueue()
    done("captured")
    assert execution.context.nvtx_verbosity.name == "NONE"
    execution.name_layers()
    assert execution.context.nvtx_verbosity == engine.engine.profiling_verbosity
    execution.close()
    done("closed")
    recorded(f"engine_calls{'_of_shape_values' if is_host else ''}", texts)
    assert cuda.live == 0


def timed(trt: Any, executions: list[Execution], transfers: bool, passes: int) -> PassTimer:
    timer = PassTimer(trt.fake.cuda, executions, transfers)
    durations = array("q", bytes(8 * passes))
    assert timer(0, durations, passes, 2**62) == passes
    timer.close()
    return timer


def test_streams_have_passes_under_way_at_once(trt: Any, engine: Engine) -> None:
    executions = [execution_of(trt, engine) for _ in range(2)]
    trt.fake.cuda.calls.clear()
    timed(trt, executions, False, 4)

    order = [call for call in trt.fake.cuda.calls if call in ("work", "synchronize_event")]
    assert order[:3] == ["work", "work", "synchronize_event"]


def test_a_graph_replaces_the_calls_of_the_library(trt: Any, engine: Engine) -> None:
    execution = execution_of(trt, engine)
    execution.capture()
    trt.fake.cuda.calls.clear()
    times = timed(trt, [execution], True, 2).times

    assert trt.fake.cuda.calls.count("launch") == 2
    assert "work" not in trt.fake.cuda.calls
    assert times.compute[0] == pytest.approx(0.3, rel=0.1)
    execution.close()
    assert trt.fake.cuda.live == 0


def test_layers_are_timed_in_order_and_names_may_repeat(trt: Any, engine: Engine) -> None:
    trt.fake.layer_ms = {"first": 0.25}
    passes = layer_passes(execution_of(trt, engine), 2)

    assert [one.layers for one in passes] == [[("kernel", 0.1), ("first", 0.25), ("last", 0.1)]] * 2
    assert passes[1].start_ns >= passes[0].start_ns + passes[0].duration_ns


def test_a_profiled_context_cannot_be_captured(trt: Any, engine: Engine) -> None:
    execution = execution_of(trt, engine)

    class Profiler(trt.IProfiler):  # type: ignore[misc]
        def __init__(self) -> None:
            trt.IProfiler.__init__(self)

        def report_layer_time(self, layer_name: str, ms: float) -> None: ...

    with execution.profiled(Profiler()), pytest.raises(ActivityError, match="capturing"):
        execution.capture()


def test_inputs_are_random_by_seed_or_come_from_files(engine: Engine, tmp_path: Path) -> None:
    values, shapes = engine_inputs(engine.inputs, seed=3)
    again, _ = engine_inputs(engine.inputs, seed=3)
    assert shapes == {"image": SHAPE}
    image = np.asarray(values["image"])
    assert np.array_equal(image, np.asarray(again["image"]))
    assert image.dtype == np.float32
    np.save(tmp_path / "image.npy", np.ones((3, 3, 4, 4), np.float32))
    values, shapes = engine_inputs(engine.inputs, folder=tmp_path)
    assert shapes == {"image": (3, 3, 4, 4)}
    assert np.asarray(values["image"]).sum() == 144
    raw = tmp_path / "raw.bin"
    raw.write_bytes(bytes(384))
    values, _ = engine_inputs(engine.inputs, files=[f"image:{raw}"])
    assert values["image"] == bytes(384)
    with pytest.raises(UsageError, match="not an input of the engine"):
        engine_inputs(engine.inputs, files=[f"picture:{raw}"])
    np.save(tmp_path / "image.npy", np.ones(SHAPE, np.float64))
    with pytest.raises(InputError, match="has type float64"):
        engine_inputs(engine.inputs, folder=tmp_path)


def test_what_does_not_fit_is_one_line_and_leaves_nothing(
    trt: Any, engine: Engine, tmp_path: Path
) -> None:
    raw = tmp_path / "raw.bin"
    raw.write_bytes(bytes(10))
    with pytest.raises(UsageError, match="is outside profile 0") as raised:
        execution_of(trt, engine, shapes=["image:9x3x4x4"])
    assert raised.value.hint == "It takes [1, 3, 4, 4] to [8, 3, 4, 4]"
    with pytest.raises(InputError, match=r"input image takes 384 bytes \(float32\[2, 3, 4, 4\]\)"):
        execution_of(trt, engine, files=[f"image:{raw}"])
    trt.fake.cuda.limit = 1000
    with pytest.raises(ActivityError, match="no memory left"):
        execution_of(trt, engine)
    trt.fake.no_context_memory = True
    with pytest.raises(ActivityError, match="the GPU does not have enough memory for the engine"):
        execution_of(trt, engine)
    assert trt.fake.cuda.live == 0


def test_what_the_library_refuses_is_told(trt: Any, engine: Engine) -> None:
    execution = execution_of(trt, engine)
    trt.fake.execute_fails = "Error Code 1: Cask (Cask convolution execution)"
    with pytest.raises(ActivityError, match="Running the engine failed: Cask"):
        execution.enqueue()


def test_copies_and_compute_are_timed_apart(trt: Any, engine: Engine) -> None:
    trt.fake.layer_ms = {"first": 2.0, "last": 1.0, "kernel": 0.0}
    execution = execution_of(trt, engine)
    times = timed(trt, [execution], True, 3).times
    assert times.compute.tolist() == pytest.approx([3.0] * 3, rel=0.01)
    assert min(times.h2d) > 0 < min(times.d2h)
    sums = [sum(parts) for parts in zip(times.h2d, times.compute, times.d2h, strict=True)]
    assert [row["latencyMs"] for row in times.rows()] == pytest.approx(sums)
    assert set(times.summary()) == {"h2d", "compute", "d2h", "enqueue"}
    trt.fake.cuda.calls.clear()
    times = timed(trt, [execution], False, 2).times
    assert not {"copy_to_device", "copy_to_host"} & set(trt.fake.cuda.calls)
    assert set(times.summary()) == {"compute", "enqueue"}


def bound(
    name: str, dtype: str, *ranges: Any, dims: tuple[int, ...] = (-1, 3), **more: Any
) -> Binding:
    return Binding(name, True, dtype, dims, more.get("on_host", False), True, ranges)


def test_inputs_of_types_without_arrays_are_bytes_of_their_size() -> None:
    kinds = ("int4", "float4e2m1", "float8e8m0", "float32")
    inputs = [bound(kind, kind, ((1, 3), (3, 3), (4, 3))) for kind in kinds]
    values, shapes = engine_inputs(inputs, (), seed=4)
    assert shapes == dict.fromkeys(kinds, (3, 3))
    made = {name: value for name, value in values.items() if isinstance(value, bytes)}
    assert {name: len(value) for name, value in made.items()} == {
        "int4": 5, "float4e2m1": 5, "float8e8m0": 9,
    }  # fmt: skip
    assert np.shape(values["float32"]) == (3, 3)
    assert made != {n: v for n, v in engine_inputs(inputs, (), seed=5)[0].items() if n in made}


def test_the_first_profile_that_allows_the_shapes_is_taken() -> None:
    small, large = ((1, 3), (2, 3), (4, 3)), ((5, 3), (6, 3), (8, 3))
    both = [bound("x", "float32", small, large), bound("y", "float32", small)]
    for size, other, profile in (
        (1, 1, 0), (4, 4, 0), (5, 1, 1), (8, 9, 1), (9, 1, 0), (4, 5, 0), (0, 1, 0),
    ):  # fmt: skip
        found = fitting_profile(both, {"x": (size, 3), "y": (other, 3)})
        assert found == profile, (size, other)
    assert fitting_profile(both, {"x": (5, 3, 1)}) == 0
    assert fitting_profile(both, {"y": (2, 3)}) == 0
    assert fitting_profile([], {}) == 0


@pytest.mark.parametrize(
    ("count", "sampled", "runs"),
    [
        (25, None, [10, 10, 5]), (25, 12, [10, 3, "sample", 10, 2, "end"]),
        (8, 50, ["sample", 8, "end"]), (10, 0, [10, "sample", "end"]), (0, None, []),
    ],
)  # fmt: skip
def test_layers_run_in_bursts_of_which_the_last_have_counters(
    count: int, sampled: int | None, runs: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[object] = []
    sampling = None if sampled is None else SimpleNamespace(passes=sampled)

    def planned(*given: object) -> object:
        done.append(given)
        return sampling

    gpu = SimpleNamespace(
        start_trace=lambda **given: done.append(given),
        plan_samples=planned,
        start_samples=lambda given: done.append("sample" if given is sampling else given),
        stop_samples=lambda: done.append("end"), stop_trace=lambda: done.append("stop"),
        between_passes=lambda: None,
    )  # fmt: skip
    run = SimpleNamespace(_gpu=gpu, _executions=["first", "other"], latencies=[3.0, 1.0, 2.0, 9.0])

    def passes_of(execution: object, burst: int) -> list[int]:
        assert execution == "first"
        done.append(burst)
        return [0] * burst

    monkeypatch.setattr(profiling, "layer_passes", passes_of)
    passes: list[Any] = []
    told = [*ProfilingRun._layer_bursts(run, count, passes)]  # type: ignore[arg-type]
    assert done == [{"calls": True, "ranges": True}, (3.0, count), *runs, "stop"]
    assert len(passes) == count
    assert told == list(itertools.accumulate(one for one in runs if isinstance(one, int)))
