"""Small engines, built with the fake of TensorRT.

``trt = fake_tensorrt()`` first; what is made here belongs to that module.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import onnx.parser

from dld_tui.backends.tensorrt.library import Library, use
from dld_tui.backends.tensorrt.log import BuildLog
from dld_tui.backends.tensorrt.runtime import Engine

FIXED = """
<ir_version: 8, opset_import: ["" : 17]>
small (float[1,3,4,4] image) => (float[1,2,4,4] scores)
<float[2,3,1,1] kernel = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6}> {
  [first] hidden = Conv(image, kernel)
  [last] scores = Relu(hidden)
}
"""
FREE = FIXED.replace("float[1,3,4,4] image", "float[N,3,4,4] image").replace(
    "float[1,2,4,4] scores", "float[N,2,4,4] scores"
)


def model_of(text: str = FIXED) -> onnx.ModelProto:
    return onnx.parser.parse_model(text)


def write_model(path: Path, text: str = FIXED) -> Path:
    onnx.save(model_of(text), path)
    return path


def library_of(trt: Any) -> Library:
    """Make a fake the library of this process."""
    return use(trt)


def built(
    trt: Any,
    text: str = FIXED,
    flags: tuple[str, ...] = (),
    verbosity: str = "DETAILED",
    ranges: tuple[tuple[int, int, int], ...] = (),
    name: str = "image",
    rest: tuple[int, ...] = (3, 4, 4),
) -> bytes:
    """Return an engine; `ranges` are (min, opt, max) of the first dimension, one a profile."""
    logger = trt.Logger(trt.Logger.WARNING)
    builder = trt.Builder(logger)
    network = builder.create_network(0)
    assert trt.OnnxParser(network, logger).parse(model_of(text).SerializeToString())
    config = builder.create_builder_config()
    config.profiling_verbosity = trt.ProfilingVerbosity[verbosity]
    for name in flags:
        config.set_flag(trt.BuilderFlag[name])
    for sizes in ranges:
        profile = builder.create_optimization_profile()
        profile.set_shape(name, *((size, *rest) for size in sizes))
        config.add_optimization_profile(profile)
    made = builder.build_serialized_network(network, config)
    assert made is not None, trt.fake.log
    return bytes(made)


def loaded(trt: Any, data: bytes, said: Callable[[Any], None] | None = None, **more: Any) -> Engine:
    """Return an engine that is loaded."""
    log = BuildLog(None, said or (lambda _: None))
    return Engine(library_of(trt), data, log, "small.engine", "Fake GPU", **more)
