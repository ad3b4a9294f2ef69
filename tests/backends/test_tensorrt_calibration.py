"""INT8 calibration: a folder of inputs, checked, becomes a cache (against the fakes)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dld_tui.backends.tensorrt.calibration import calibrator_for
from dld_tui.core.errors import ActivityError, InputError, UnavailableError, UsageError
from dld_tui.core.model.document.metadata import Range
from dld_tui.core.tensorrt.settings import BuildSettings
from tests.support.engines import FIXED, FREE, library_of, model_of
from tests.support.fake_tensorrt import STRONGLY_TYPED, fake_tensorrt


@pytest.fixture
def trt() -> Any:
    return fake_tensorrt()


@pytest.fixture
def sets(tmp_path: Path) -> Path:
    for number in range(3):
        folder = tmp_path / "sets" / f"test_data_set_{number}"
        folder.mkdir(parents=True)
        np.save(folder / "image.npy", np.full((1, 3, 4, 4), number, np.float32))
    return tmp_path / "sets"


def calibrate(trt: Any, text: str = FIXED, profile: tuple[int, ...] = (), **settings: Any) -> Any:
    """Build in INT8 and return (engine or None, the fake's record)."""
    logger = trt.Logger(trt.Logger.WARNING)
    builder = trt.Builder(logger)
    network = builder.create_network(0)
    assert trt.OnnxParser(network, logger).parse(model_of(text).SerializeToString())
    config = builder.create_builder_config()
    config.set_flag(trt.BuilderFlag.INT8)
    profiles = []
    for count in profile:
        shape = (count, 3, 4, 4)
        profiles.append({"image": Range(shape, shape, shape)})
        made = builder.create_optimization_profile()
        made.set_shape("image", shape, shape, shape)
        config.add_optimization_profile(made)
    request = BuildSettings(model=Path("net.onnx"), int8=True, **settings)
    kept = calibrator_for(config, network, request, library_of(trt), profiles, cuda=trt.fake.cuda)
    assert kept is config.int8_calibrator
    return builder.build_serialized_network(network, config)


def test_a_cache_is_used_instead_of_inputs(trt: Any, tmp_path: Path) -> None:
    cache = tmp_path / "net.cache"
    cache.write_bytes(b"TRT-101300-MinMaxCalibration\nimage: 3c010a14\n")

    assert calibrate(trt, calibration_cache=cache) is not None
    assert not trt.fake.calibrated
    assert trt.fake.builds[-1][1].int8_calibrator.read_calibration_cache() == cache.read_bytes()
    assert isinstance(trt.fake.builds[-1][1].int8_calibrator, trt.IInt8MinMaxCalibrator)
    assert cache.read_bytes().endswith(b"3c010a14\n")


def test_free_dimensions_are_those_of_the_profile(trt: Any, sets: Path) -> None:
    assert calibrate(trt, FREE, (1, 2), calibration_inputs=sets) is not None

    with pytest.raises(InputError, match=r"but the model has image float32\[2, 3, 4, 4\]"):
        calibrate(trt, FREE, (2,), calibration_inputs=sets)


def test_strongly_typed_libraries_have_no_calibrators(tmp_path: Path) -> None:
    cache = tmp_path / "net.cache"
    cache.write_bytes(b"TRT-101300-EntropyCalibration2\nimage: 3c010a14\n")
    strong = fake_tensorrt(STRONGLY_TYPED)
    network = strong.Builder(strong.Logger()).create_network(0)
    config = strong.Builder(strong.Logger()).create_builder_config()

    settings = BuildSettings(model=Path("net.onnx"), calibration_cache=cache)
    with pytest.raises(UnavailableError, match=r"TensorRT 11\.4\.0\.106 has no IInt8Entropy"):
        calibrator_for(config, network, settings, library_of(strong))


def test_a_folder_becomes_a_cache(trt: Any, sets: Path, tmp_path: Path) -> None:
    class Watched(list[list[int]]):
        def append(self, addresses: list[int]) -> None:
            super().append(addresses)
            seen.append(float(np.frombuffer(trt.fake.cuda.read(addresses[0], 4), np.float32)[0]))

    seen: list[float] = []
    trt.fake.calibrated = Watched()
    cache = tmp_path / "net.cache"
    assert calibrate(trt, calibration_inputs=sets, calibration_cache=cache) is not None
    assert seen == [0.0, 1.0, 2.0]
    assert cache.read_bytes().startswith(b"TRT-101300-EntropyCalibration2\n")
    assert trt.fake.cuda.live == 0
    calibrator = trt.fake.builds[-1][1].int8_calibrator
    assert calibrator.get_batch_size() == 1
    assert calibrator.read_calibration_cache() is None
    assert calibrator.get_batch(["image"]) is None
    calibrator.write_calibration_cache(b"another")
    assert cache.read_bytes() == b"another"


def test_an_input_that_is_not_there_ends_the_calibration(trt: Any, sets: Path) -> None:
    assert calibrate(trt, calibration_inputs=sets) is not None
    network, config = trt.fake.builds[-1]
    settings = BuildSettings(model=Path("net.onnx"), calibration_inputs=sets)
    cuda = trt.fake.cuda
    calibrator: Any = calibrator_for(config, network, settings, library_of(trt), cuda=cuda)
    assert cuda.live == 3  # a stream, and memory on both sides
    assert calibrator.get_batch(["picture"]) is None
    assert cuda.live == 0
    calibrator = calibrator_for(config, network, settings, library_of(trt), cuda=cuda)
    assert len({tuple(calibrator.get_batch(["image"])) for _ in range(3)}) == 1
    cuda.limit = 192 + 191  # no room for the copy on the GPU
    with pytest.raises(ActivityError, match="no memory left"):
        calibrator_for(config, network, settings, library_of(trt), cuda=cuda)
    assert calibrator.get_batch(["image"]) is None
    assert cuda.live == 0


def test_what_is_no_cache_says_so(trt: Any, tmp_path: Path) -> None:
    cache = tmp_path / "net.cache"
    with pytest.raises(UsageError, match="no calibration cache yet") as raised:
        calibrate(trt, calibration_cache=cache)
    assert raised.value.hint == "Give a folder with --calibration-inputs"
    cache.write_bytes(b"hello")
    with pytest.raises(InputError, match="is not a TensorRT calibration cache"):
        calibrate(trt, calibration_cache=cache)
