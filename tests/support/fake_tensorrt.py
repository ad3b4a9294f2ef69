"""A small fake of TensorRT, whose names and arguments are those of the real bindings.

A name, attribute or argument that the bindings of its version do not have raises, so code that
runs against it calls what exists. It parses real ONNX models (one layer a node), records what is
asked of it, "builds" engines that it can read, inspect, refit and "run" on
:mod:`tests.support.fake_cuda`.

Use::

    trt = fake_tensorrt()                    # 10.13, weakly typed
    trt = fake_tensorrt(STRONGLY_TYPED)      # 11.4
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
from tests.support.fake_tensorrt_classes import Maker, bindings

WEAKLY_TYPED = "10.13.0.35"
STRONGLY_TYPED = "11.4.0.106"

KNOBS = {
    "tuner_version": "2.19.45",
    "tuner_options": [
        {
            "option": f"-{name}", "allowed_values": f"-{name}={values}", "default_value": default,
            "help": f"about {name}",
        }
        for name, values, default in (
            ("copy_ppg", "[on|off]", "on"),
            ("kgen:tiling", "[0|1|2]", "0"),
            ("peep:max", "int32_t", "1"),
        )
    ],
}  # fmt: skip


@dataclass
class Fake:
    """What the fake knows and does; tests change it."""

    version: str
    used: set[str]
    """``Class.member`` of all that was called, read or set."""
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
    knobs: dict[str, Any] = field(default_factory=lambda: KNOBS)
    """What ``IBuilderConfig.all_build_routes`` says, in the form that trtexec reads."""
    knob_factors: dict[str, float] = field(default_factory=dict)
    """How much longer an engine takes with a word of its build route, such as ``-copy_ppg=off``."""
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
        self._libraries.append(plugin_path)
        return object()


def fake_tensorrt(version: str = WEAKLY_TYPED) -> Any:
    """Return a module as ``import tensorrt`` would give it: what the bindings of a version have."""
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
    maker = Maker(behaviours, version)
    module: Any = ModuleType("tensorrt_rtx" if version.startswith("1.") else "tensorrt")
    for name, made in maker.make().items():
        setattr(module, name, made)
    module.__version__ = version
    module.__file__ = "/opt/tensorrt/tensorrt/__init__.py"
    for short, kind in bindings(version)["types"].items():
        setattr(module, short, module.DataType[kind])
    maker.state = module.fake = Fake(version, maker.used)
    module.fake.registry = maker.new("IPluginRegistry", libraries=[])
    module.fake.host_memory = _host_memory
    module.init_libnvinfer_plugins = _init_plugins
    module.get_plugin_registry = lambda: module.fake.registry
    return module


class HostMemory(bytes):
    """``IHostMemory``: a buffer with a size."""

    @property
    def nbytes(self) -> int:
        return len(self)


def _host_memory(data: bytes) -> HostMemory:
    return HostMemory(data)


def _init_plugins(logger: Any, namespace: str) -> bool:
    return logger is not None or namespace is not None


def install(monkeypatch: pytest.MonkeyPatch, module: Any, name: str = "tensorrt") -> None:
    monkeypatch.setitem(sys.modules, name, module)
