"""Loading engines: against a fake whose names and arguments are those of TensorRT's stubs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dld_tui.backends.tensorrt.runtime import (
    Binding,
    Engine,
    buffer_bytes,
    refit,
    refitted_bytes,
    trusted_bytes,
)
from dld_tui.core.errors import ActivityError, InputError, UnavailableError, UsageError
from tests.support.engines import FREE, built, loaded, write_model
from tests.support.fake_tensorrt import STRONGLY_TYPED, fake_tensorrt

# What TensorRT-RTX 1.7.1 said on an H200.
RTX_REFUSES = (
    "IRuntime::deserializeCudaEngine: Error Code 6: API Usage Error (The engine cannot run on this"
    " GPU, which has compute capability 9.0. Supported compute capabilities: {}. {}In"
    " throwUnlessComputeCapSupported at /_src/runtime/dispatch/runtime.cpp:84)"
)
RTX_NEVER = (
    "TensorRT-RTX does not support this compute capability, so the engine cannot be rebuilt for"
    " it. "
)


@pytest.fixture
def trt() -> Any:
    return fake_tensorrt()


def test_an_engine_tells_what_goes_in_and_out(trt: Any) -> None:
    engine = loaded(trt, built(trt, FREE, ranges=((1, 2, 8), (8, 16, 32))))

    image, scores = engine.bindings
    told = (image.name, image.is_input, image.dtype, image.dims)
    assert told == ("image", True, "float32", (-1, 3, 4, 4))
    assert image.ranges[1] == ((8, 3, 4, 4), (16, 3, 4, 4), (32, 3, 4, 4))
    assert image.shape(0) == (2, 3, 4, 4)
    assert image.shape(2) == (1, 3, 4, 4)  # of a profile that there is not
    assert [one.name for one in engine.outputs] == ["scores"]
    assert scores.linear
    assert not scores.on_host


def test_an_engine_tells_its_layers_and_memory(trt: Any) -> None:
    engine = loaded(trt, built(trt))

    layers = json.loads(engine.layer_information())["Layers"]
    assert [layer["Name"] for layer in layers] == ["kernel", "first", "last"]
    assert engine.memory_bytes() == 1 << 20
    strong = fake_tensorrt(STRONGLY_TYPED)  # which has no device_memory_size
    assert loaded(strong, built(strong)).memory_bytes() == 1 << 20
    assert engine.description() == {
        "layers": 3, "profiles": 1, "refittable": False, "activation_bytes": 1 << 20,
        "profiling_verbosity": "DETAILED",
    }  # fmt: skip
    assert engine._runtime.engine_host_code_allowed


def test_an_engine_is_loaded_only_where_it_is_trusted(trt: Any, tmp_path: Path) -> None:
    path = tmp_path / "small.engine"
    path.write_bytes(built(trt))

    with pytest.raises(UsageError, match="trust who made it") as raised:
        trusted_bytes(path, trust=False)
    assert raised.value.hint == "Confirm with --trust"
    data, header = trusted_bytes(path, trust=True)
    assert (data, header.version) == (path.read_bytes(), "10.13.0.35")


@pytest.mark.parametrize(
    ("said", "kind", "message"),
    [
        (
            RTX_REFUSES.format("8.0 8.6 8.9 12.0 12.1 >12.0", RTX_NEVER),
            UnavailableError,
            "TensorRT 10.13.0.35 does not run on this GPU (Fake GPU); supported compute"
            " capabilities of the engine: 8.0, 8.6, 8.9, 12.0, 12.1, >12.0",
        ),
        (
            RTX_REFUSES.format("8.9", ""),
            InputError,
            "the engine does not run on this GPU (Fake GPU); its supported compute capabilities:"
            " 8.9",
        ),
        (
            RTX_REFUSES.format("None", RTX_NEVER),
            UnavailableError,
            "supported compute capabilities of the engine: none",
        ),
        (
            "CUDA initialization failure with error: 35",
            ActivityError,
            "TensorRT 10.13.0.35 does not load the engine: CUDA initialization failure",
        ),
        (
            "IPluginRegistry::getCreator: could not find plugin: ROIAlign_TRT version: 1",
            UnavailableError,
            "a plugin is missing: ROIAlign_TRT",
        ),
        (
            "Error Code 2: OutOfMemory (Requested size was 8589934592 bytes.)",
            ActivityError,
            "the GPU does not have enough memory for the engine",
        ),
    ],
)
def test_a_library_that_does_not_start_says_why(
    trt: Any, said: str, kind: type[Exception], message: str
) -> None:
    data = built(trt)
    trt.fake.runtime_fails = said

    with pytest.raises(kind) as raised:
        loaded(trt, data)
    assert message in str(raised.value)


def test_a_dla_core_must_be_there(trt: Any) -> None:
    data = built(trt)

    with pytest.raises(UnavailableError, match="no DLA core 1: the device has none"):
        loaded(trt, data, dla_core=1)
    trt.fake.dla_cores = 2
    assert loaded(trt, data, dla_core=1)._runtime.DLA_core == 1
    with pytest.raises(UnavailableError, match="no DLA core 2: the device has 2"):
        loaded(trt, data, dla_core=2)


def test_weights_of_a_model_are_put_into_an_engine(trt: Any, tmp_path: Path) -> None:
    engine = loaded(trt, built(trt, flags=("REFIT",)))
    other = FREE.replace("0.6", "7.5").replace("N,", "1,")
    model = write_model(tmp_path / "other.onnx", other)

    assert refit(engine, model) == 1
    new = refitted_bytes(engine)
    assert new == built(trt, other, flags=("REFIT",))
    model.rename(text := tmp_path / "other.onnxtxt")
    text.write_text(other)
    assert refit(engine, text) == 1


def test_a_stripped_engine_gets_its_weights(trt: Any, tmp_path: Path) -> None:
    stripped = built(trt, flags=("STRIP_PLAN",))
    engine = loaded(trt, stripped)
    assert refit(engine, write_model(tmp_path / "net.onnx")) == 1

    assert json.loads(refitted_bytes(engine)[32:])["weights"]["kernel"] != ""


def test_what_cannot_be_refitted_says_why(trt: Any, tmp_path: Path) -> None:
    model = write_model(tmp_path / "net.onnx")
    other = write_model(tmp_path / "o.onnx", FREE.replace("kernel", "weights"))

    with pytest.raises(InputError, match="cannot be refitted") as raised:
        refit(loaded(trt, built(trt)), model)
    assert "--refit" in str(raised.value.hint)
    with pytest.raises(InputError, match="do not fit the engine: the model has no weights kernel"):
        refit(loaded(trt, built(trt, flags=("REFIT",))), other)


def test_other_and_damaged_files_are_no_engines(trt: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a TensorRT engine"):
        trusted_bytes(write_model(tmp_path / "net.onnx"), trust=True)
    with pytest.raises(InputError, match="File not found"):
        trusted_bytes(tmp_path / "missing.engine", trust=True)
    with pytest.raises(InputError, match="is damaged or of another library"):
        loaded(trt, built(trt)[:200])


def test_an_engine_of_another_version_or_device_says_so(trt: Any) -> None:
    data = built(trt)
    with pytest.raises(InputError) as raised:
        loaded(fake_tensorrt("10.16.1.11"), data)
    assert raised.value.message == (
        "the engine was built by TensorRT 10.13.0.35, but this is TensorRT 10.16.1.11"
    )
    trt.fake.compute_capability = "8.6"
    with pytest.raises(InputError, match=r"built for another GPU, not for this one \(Fake GPU\)"):
        loaded(trt, data)


def test_memory_that_runs_out_while_loading_is_one_line(trt: Any) -> None:
    data = built(trt)
    trt.fake.out_of_memory = True
    with pytest.raises(ActivityError, match="not have enough memory for the engine"):
        loaded(trt, data)


@pytest.mark.parametrize(
    ("budget", "bytes_on_device"),
    [("", None), (" ", None), ("-1", 700), ("50%", 500), ("0%", 0), ("100%", 1000), ("0.5K", 512),
     ("1M", 1000)],
)  # fmt: skip
def test_weights_are_streamed_within_a_budget(budget: str, bytes_on_device: int | None) -> None:
    class Streaming:
        streamable_weights_size = 1000
        weight_streaming_budget_v2 = -2
        get_weight_streaming_automatic_budget = staticmethod(lambda: 700)

    engine: Any = SimpleNamespace(engine=Streaming())
    assert Engine.stream_weights(engine, budget) == bytes_on_device
    assert engine.engine.weight_streaming_budget_v2 == (
        -2 if bytes_on_device is None else bytes_on_device
    )
    engine.engine.streamable_weights_size = 0
    assert Engine.stream_weights(engine, budget) is None


@pytest.mark.parametrize("budget", ["101%", "-1%", "x%"])
def test_a_budget_that_is_no_share(budget: str) -> None:
    engine: Any = SimpleNamespace(engine=SimpleNamespace(streamable_weights_size=1000))
    with pytest.raises(UsageError, match="is not a share") as raised:
        Engine.stream_weights(engine, budget)
    assert raised.value.hint == "Write 0% to 100%"


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "int4", "other"])
@pytest.mark.parametrize("axis", [-1, 0, 1, 2, 3])
@pytest.mark.parametrize("lanes", [-1, 1, 2, 4])
@pytest.mark.parametrize("shape", [(2, 3, 5), (1, 0, 4), ()])
def test_bytes_of_buffers(dtype: str, axis: int, lanes: int, shape: tuple[int, ...]) -> None:
    """Against an array of the padded shape; `other` is a type whose size only the library knows."""
    bits = {"float32": 32, "float16": 16, "int8": 8, "int4": 4, "other": 24}[dtype]
    engine: Any = SimpleNamespace(
        get_tensor_vectorized_dim=lambda name: axis,
        get_tensor_components_per_element=lambda name: lanes,
        get_tensor_dtype=lambda name: SimpleNamespace(itemsize=3),
    )
    padded = list(shape)
    if lanes > 1 and axis in range(len(shape)):
        while padded[axis] % lanes:
            padded[axis] += 1
    plain = Binding("x", True, dtype, shape, False, True)
    assert buffer_bytes(engine, plain, shape) == (np.ones(shape, bool).size * bits + 7) // 8
    vectorized = replace(plain, linear=False)
    assert buffer_bytes(engine, vectorized, shape) == (np.ones(padded, bool).size * bits + 7) // 8


def test_libraries_of_plugins(trt: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = built(trt)
    libraries = [str(tmp_path / name) for name in ("a.so", "b.so")]
    with pytest.raises(UnavailableError, match="the plugin library does not exist") as raised:
        loaded(trt, data, plugins=libraries)
    assert raised.value.where == libraries[0]
    for library in libraries:
        Path(library).touch()
    assert loaded(trt, data, plugins=libraries)
    assert trt.fake.registry._libraries == libraries
    monkeypatch.setattr(type(trt.fake.registry), "load_library", lambda *_: None)
    with pytest.raises(UnavailableError, match="the plugin library cannot be loaded") as raised:
        loaded(trt, data, plugins=libraries)
    assert raised.value.where == libraries[0]
    monkeypatch.delattr(type(trt.fake.registry), "load_library")
    with pytest.raises(UnavailableError, match=r"10\.13\.0\.35 cannot load plugin libraries"):
        loaded(trt, data, plugins=libraries)
    assert loaded(trt, data)
