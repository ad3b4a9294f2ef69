"""Values through engines, on the fakes of TensorRT and CUDA: the fake computes the model."""

from __future__ import annotations

import time
from array import array
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from dld_tui.backends.tensorrt import outputs as tensorrt_outputs
from dld_tui.backends.tensorrt.library import Library
from dld_tui.backends.tensorrt.outputs import engine_outputs
from dld_tui.core.errors import ActivityError, InputError, UnavailableError, UsageError
from tests.support.engines import FREE, built, library_of, model_of
from tests.support.fake_tensorrt import WEAKLY_TYPED, fake_tensorrt

KERNEL = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], np.float32).reshape(2, 3)


def image(size: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(size).normal(size=(size, 3, 4, 4)).astype(np.float32)


def expected(value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    found: np.ndarray[Any, Any] = np.maximum(np.einsum("oc,nchw->nohw", KERNEL, value), 0)
    return found


def test_shapes_that_data_decide_and_types_of_all_kinds(trt: Any) -> None:
    engine = built_counts(trt)
    feed = {
        "image": np.array([0, 7, 0, -(1 << 40), 2]),
        "keep": np.array([True, False, True, True, True]),
        "b": np.array([1.5, -2], ml_dtypes.bfloat16),
    }
    (found,) = engine_outputs(library_of(trt), engine, [feed])

    assert found["where"].tolist() == [[1, 3, 4]]
    assert found["y"].tolist() == [0, 0, 0, -(1 << 40), 2]
    assert (found["c"].dtype, found["c"].tolist()) == (ml_dtypes.bfloat16, [1.5, -2])


def test_the_timer_makes_passes_until_its_time(trt: Any) -> None:
    with (
        tensorrt_outputs.EngineRun(library_of(trt), built(trt)) as run,
        run.clients(1, {"image": image(1)}, {"image": (1, 3, 4, 4)}, 0) as (timer,),
    ):
        durations = array("q", bytes(8 * 10))
        assert timer(0, durations, 4, time.perf_counter_ns() + 10**12) == 4
        assert all(duration > 0 for duration in durations[:4])
        assert not any(durations[4:])
        assert timer(4, durations, 10, 0) == 1


def test_an_engine_with_smaller_integers_takes_what_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    trt = computing(monkeypatch, "8.6.1")
    engine = built_counts(trt, COUNTS.replace("bfloat16", "float"))  # 8.6 has no bfloat16 either
    feed = {"image": np.array([3, 0]), "keep": np.array([True, True]), "b": np.zeros(2)}
    (found,) = engine_outputs(library_of(trt), engine, [feed])
    assert (found["y"].dtype.name, found["y"].tolist()) == ("int32", [3, 0])

    with pytest.raises(InputError, match="input image has values that the engine's int32 cannot"):
        list(engine_outputs(library_of(trt), engine, [{**feed, "image": np.array([1 << 40, 0])}]))
    assert trt.fake.cuda.live == 0


def test_problems_name_what_they_are_about(trt: Any, tmp_path: Path) -> None:
    library, engine = library_of(trt), built(trt, FREE, ranges=((1, 2, 8),))
    with pytest.raises(InputError, match="takes an input image, for which") as raised:
        list(engine_outputs(library, engine, [{"picture": image(1)}]))
    assert raised.value.hint == "There are picture"
    with pytest.raises(UsageError, match=r"shape \[9, 3, 4, 4\] of input image is outside"):
        list(engine_outputs(library, engine, [{"image": image(9)}]))
    with pytest.raises(InputError, match="File not found"):
        list(engine_outputs(library, tmp_path / "none.engine", []))
    trt.fake.execute_fails = "Cask convolution execution failed"
    with pytest.raises(ActivityError, match="failed: convolution execution failed"):
        list(engine_outputs(library, engine, [{"image": image(1)}]))
    assert trt.fake.cuda.live == 0


def test_without_a_gpu_it_says_what_to_do(trt: Any) -> None:
    library = library_of(trt)
    facts = replace(library.capabilities, no_driver="there is no NVIDIA driver (libcuda.so.1)")
    with pytest.raises(UnavailableError, match="cannot run engines here: there is no") as raised:
        next(engine_outputs(Library(trt, facts), b"", []))
    assert "--target" in str(raised.value.hint)


COUNTS = """<ir_version: 8, opset_import: ["" : 17]>
counts (int64[N] image, bool[N] keep, bfloat16[2] b)
  => (int64[1,K] where, int64[N] y, bfloat16[2] c) {
  where = NonZero(image) zero = Sub(image, image) y = Where(keep, image, zero) c = Identity(b)
}"""


def computing(monkeypatch: pytest.MonkeyPatch, version: str = WEAKLY_TYPED) -> Any:
    fake = fake_tensorrt(version)
    fake.fake.values = lambda name, value: value
    monkeypatch.setattr(tensorrt_outputs, "Cuda", lambda device: fake.fake.cuda)
    return fake


@pytest.fixture
def trt(monkeypatch: pytest.MonkeyPatch) -> Any:
    return computing(monkeypatch)


def built_counts(trt: Any, text: str = COUNTS) -> bytes:
    logger = trt.Logger(trt.Logger.WARNING)
    builder = trt.Builder(logger)
    network = builder.create_network(0)
    assert trt.OnnxParser(network, logger).parse(model_of(text).SerializeToString())
    config = builder.create_builder_config()
    profile = builder.create_optimization_profile()
    for name in ("image", "keep"):
        profile.set_shape(name, (1,), (2,), (9,))
    config.add_optimization_profile(profile)
    return bytes(builder.build_serialized_network(network, config))


def test_values_go_in_and_come_out_for_every_set_and_profile(trt: Any, tmp_path: Path) -> None:
    path = tmp_path / "small.engine"
    path.write_bytes(built(trt, FREE, ranges=((1, 1, 2), (4, 4, 8))))
    feeds = [{"image": image(size)} for size in (2, 1, 5)]
    for wrong in (0, 0.5):
        trt.fake.values = lambda name, value, by=wrong: value + (by if name == "scores" else 0)
        for feed, outputs in zip(feeds, engine_outputs(library_of(trt), path, feeds), strict=True):
            assert list(outputs) == ["scores"]
            assert outputs["scores"] == pytest.approx(expected(feed["image"]) + wrong, abs=1e-6)
        assert trt.fake.cuda.live == 0
        assert "close" in trt.fake.cuda.calls
