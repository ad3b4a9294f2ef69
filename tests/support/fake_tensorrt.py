"""A small fake of TensorRT, whose names and arguments are those of tensorrt-stubs.

A name, attribute or argument that the stubs do not have raises, so code that runs against it
calls what exists. It parses real ONNX models (one layer a node), records what is asked of it,
"builds" engines that it can read, inspect, refit and "run" on :mod:`tests.support.fake_cuda`.

Use::

    trt = fake_tensorrt()                    # 10.13, weakly typed; skips where stubs are absent
    trt = fake_tensorrt("11.1.0.0", "strong")    # without what 11 removed
    install(monkeypatch, trt)                # what `import tensorrt` finds

    network, config = trt.fake.builds[-1]    # the last build: its real arguments
    network.get_layer(0).precision, config.get_flag(trt.BuilderFlag.FP16)
    trt.fake.log                             # lines of trt.Logger; loggers of the program get them

What can be made to happen is set on ``trt.fake``, see :class:`Fake`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import pytest

from tests.support import (
    fake_tensorrt_builder,
    fake_tensorrt_engine,
    fake_tensorrt_network,
    fake_tensorrt_parser,
    fake_tensorrt_refit,
    fake_tensorrt_tactics,
)
from tests.support.fake_cuda import FakeCuda
from tests.support.fake_tensorrt_stubs import Maker, stub_path

STRONG_LACKS = frozenset(
    {
        *(f"BuilderFlag.{name}" for name in ("FP16", "BF16", "INT8", "FP8", "INT4", "FP4")),
        "BuilderFlag.OBEY_PRECISION_CONSTRAINTS",
        "BuilderFlag.PREFER_PRECISION_CONSTRAINTS",
        "BuilderFlag.REJECT_EMPTY_ALGORITHMS",
        "BuilderFlag.WEIGHTLESS",
        *(f"ILayer.{name}" for name in ("precision", "precision_is_set", "reset_precision")),
        *(f"ILayer.{name}_output_type" for name in ("set", "reset")),
        "ILayer.output_type_is_set",
        "ITensor.dynamic_range",
        "ITensor.set_dynamic_range",
        "ITensor.reset_dynamic_range",
        "IBuilderConfig.int8_calibrator",
        "IBuilderConfig.algorithm_selector",
        "IBuilderConfig.set_calibration_profile",
        "IBuilderConfig.get_calibration_profile",
        *(f"IBuilderConfig.{verb}_quantization_flag" for verb in ("set", "get", "clear")),
        "IBuilderConfig.quantization_flags",
        "Builder.platform_has_fast_fp16",
        "Builder.platform_has_fast_int8",
        "Builder.platform_has_tf32",
        "Builder.build_engine_with_config",
        "ICudaEngine.device_memory_size",
        "ICudaEngine.has_implicit_batch_dimension",
        "ICudaEngine.weight_streaming_budget",
        "INetworkDefinition.has_implicit_batch_dimension",
        "NetworkDefinitionCreationFlag.EXPLICIT_BATCH",
        *(f"TacticSource.{name}" for name in ("CUBLAS", "CUBLAS_LT", "CUDNN")),
        *("CalibrationAlgoType", "QuantizationFlag", "IAlgorithm", "IAlgorithmContext"),
        *("IAlgorithmIOInfo", "IAlgorithmSelector", "IAlgorithmVariant", "IInt8Calibrator"),
        *("IInt8EntropyCalibrator", "IInt8EntropyCalibrator2", "IInt8LegacyCalibrator"),
        "IInt8MinMaxCalibrator",
    }
)
"""What strongly typed libraries do not have: the same as in tensorrt_rtx 1.7, which is one."""


@dataclass
class Fake:
    """What the fake knows and does; tests change it."""

    version: str
    log: list[tuple[str, str]] = field(default_factory=list)
    """(severity, text) of ``trt.Logger``."""
    builds: list[tuple[Any, Any]] = field(default_factory=list)
    """(network, config) of every build."""
    calibrated: list[list[int]] = field(default_factory=list)
    """Addresses that a calibrator gave, a batch each."""
    unsupported: set[str] = field(default_factory=set)
    """Operators that no importer and no plugin has."""
    no_tactic: set[tuple[str, str]] = field(default_factory=set)
    """(layer type, data type) without an implementation, as ("CONVOLUTION", "INT8")."""
    build_fails: str = ""
    runtime_fails: str = ""
    execute_fails: str = ""
    out_of_memory: bool = False
    no_context_memory: bool = False
    compute_capability: str = "9.0"
    dla_cores: int = 0
    host_tensors: set[str] = field(default_factory=set)
    """Shape tensors: inputs whose values decide shapes."""
    values: Callable[[str, Any], Any] | None = None
    """Lets the engines that are built from now on compute their model: gets the name and the exact
    value of each output, and returns what the engine gives."""
    most_elements: int = 64
    """What outputs are taken for whose shape the data decide."""
    tactics: Any = None
    """What :func:`tests.support.fake_tensorrt_tactics.simulate` makes; None has no tactics."""
    running: Any = None
    """The plan of the engine that computes, for `values`."""
    layer_ms: dict[str, float] = field(default_factory=dict)
    """Time of a layer; 0.1 ms for those that are not named."""
    cuda: FakeCuda = field(default_factory=FakeCuda)
    registry: Any = None
    host_memory: Any = None


class IPluginRegistry:
    """Loads no library that does not exist."""

    def load_library(self: Any, plugin_path: str) -> Any:
        """Remember it."""
        self._libraries.append(plugin_path)
        return object()

    def deregister_library(self: Any, handle: Any) -> None:
        """Do nothing."""

    all_creators = property(lambda self: [])


def fake_tensorrt(version: str = "10.13.0.35", world: str = "weak") -> Any:
    """Return a module as ``import tensorrt`` would give it; skips the test without the stubs."""
    if stub_path() is None:
        pytest.skip("tensorrt-stubs is not installed")
    parts = (
        fake_tensorrt_network,
        fake_tensorrt_parser,
        fake_tensorrt_builder,
        fake_tensorrt_engine,
        fake_tensorrt_refit,
        fake_tensorrt_tactics,
    )
    behaviours: dict[str, type] = {"IPluginRegistry": IPluginRegistry}
    for part in parts:
        behaviours |= part.BEHAVIOURS
    lacks = STRONG_LACKS if world == "strong" else frozenset()
    maker = Maker(behaviours, lacks)
    module: Any = ModuleType("tensorrt")
    for name, made in maker.make().items():
        setattr(module, name, made)
    module.__version__ = version
    module.__file__ = "/opt/tensorrt/tensorrt/__init__.py"
    for short, kind in _SHORT.items():
        setattr(module, short, module.DataType[kind])
    maker.state = module.fake = Fake(version)
    module.fake.registry = maker.new("IPluginRegistry", libraries=[])
    module.fake.host_memory = _host_memory
    module.init_libnvinfer_plugins = _init_plugins
    module.get_plugin_registry = lambda: module.fake.registry
    return module


_SHORT = {
    "float32": "FLOAT",
    "float16": "HALF",
    "bfloat16": "BF16",
    "int8": "INT8",
    "int32": "INT32",
    "int64": "INT64",
    "bool": "BOOL",
    "uint8": "UINT8",
    "fp8": "FP8",
    "int4": "INT4",
}


class HostMemory(bytes):
    """``IHostMemory``: a buffer with a size."""

    @property
    def nbytes(self) -> int:
        """Bytes."""
        return len(self)


def _host_memory(data: bytes) -> HostMemory:
    return HostMemory(data)


def _init_plugins(logger: Any, namespace: str) -> bool:
    return logger is not None or namespace is not None


def install(monkeypatch: pytest.MonkeyPatch, module: Any, name: str = "tensorrt") -> None:
    """Make `import NAME` find the fake."""
    monkeypatch.setitem(sys.modules, name, module)
