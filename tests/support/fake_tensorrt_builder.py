"""The builder and its settings, of the fake of TensorRT. See :mod:`tests.support.fake_tensorrt`."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from tests.support.fake_tensorrt_compute import model_text
from tests.support.fake_tensorrt_network import log
from tests.support.fake_tensorrt_tactics import query, taken_tactics, update

HEADER_BYTES = 32
_FLOATS = ("FLOAT", "HALF", "BF16")


def plan_bytes(version: str, engine: dict[str, Any]) -> bytes:
    """Return an engine file: TensorRT's mark, its version where trtexec reads it, and JSON."""
    numbers = bytes(int(part) for part in (*version.split("."), "0", "0")[:4])
    header = b"ftrt" + bytes(20) + numbers
    return header.ljust(HEADER_BYTES, b"\0") + json.dumps(engine).encode()


class IHostMemory:
    """Bytes of the library; the class is made a real ``bytes`` by the fake."""


class ITimingCache:
    """What was timed: the layers of networks built before."""

    def serialize(self: Any) -> Any:
        data = [*sorted(self._entries), *([self._tactics] if self._tactics else [])]
        return self._maker.state.host_memory(json.dumps(data).encode())

    def combine(self: Any, input_cache: Any, ignore_mismatch: bool) -> bool:
        self._entries |= input_cache._entries
        for text, value in input_cache._tactics.items():
            self._tactics.setdefault(text, value)
        return True

    def queryKeys(self: Any) -> list[Any]:
        texts = [*self._entries, *self._tactics]
        return [self._maker.new("TimingCacheKey", text=text) for text in texts]

    query, update = query, update


class IBuilderConfig:
    """Settings of a build."""

    avg_timing_iterations = 1
    builder_optimization_level = 3
    max_aux_streams = 0
    max_num_tactics = -1
    DLA_core = -1
    int8_calibrator = None
    progress_monitor = None
    algorithm_selector = None
    l2_limit_for_tiling = -1
    build_route = ""
    all_build_routes = property(lambda self: json.dumps(self._maker.state.knobs))
    num_optimization_profiles = property(lambda self: len(self._profiles))
    hardware_compatibility_level = property(
        lambda self: self._preset("hardware_compatibility_level", "HardwareCompatibilityLevel", 0)
    )
    profiling_verbosity = property(
        lambda self: self._preset("profiling_verbosity", "ProfilingVerbosity", 0)
    )
    default_device_type = property(
        lambda self: self._preset("default_device_type", "DeviceType", 0)
    )
    runtime_platform = property(lambda self: self._preset("runtime_platform", "RuntimePlatform", 0))
    tiling_optimization_level = property(
        lambda self: self._preset("tiling_optimization_level", "TilingOptimizationLevel", 0)
    )

    @property
    def flags(self: Any) -> int:
        return sum(1 << int(flag) for flag in self._flags)

    @flags.setter
    def flags(self: Any, mask: int) -> None:
        kinds = self._maker.made["BuilderFlag"]
        self._flags = {flag for flag in kinds if mask >> int(flag) & 1}

    def _preset(self: Any, name: str, kind: str, value: int) -> Any:
        return getattr(self, f"_value_{name}", self._maker.made[kind](value))

    def set_flag(self: Any, flag: Any) -> None:
        self._flags.add(flag)

    def clear_flag(self: Any, flag: Any) -> None:
        self._flags.discard(flag)

    def get_flag(self: Any, flag: Any) -> bool:
        return flag in self._flags

    def set_memory_pool_limit(self: Any, pool: Any, pool_size: int) -> None:
        self._pools[pool.name] = pool_size

    def get_memory_pool_limit(self: Any, pool: Any) -> int:
        return int(self._pools.get(pool.name, 16 << 30))

    def set_tactic_sources(self: Any, tactic_sources: int) -> bool:
        self._tactics = tactic_sources
        return True

    def get_tactic_sources(self: Any) -> int:
        return int(self._tactics)

    def set_preview_feature(self: Any, feature: Any, enable: bool) -> None:
        self._previews[feature.name] = enable

    def add_optimization_profile(self: Any, profile: Any) -> int:
        self._profiles.append(profile)
        return len(self._profiles) - 1

    def create_timing_cache(self: Any, serialized_timing_cache: bytes) -> Any:
        try:
            found = json.loads(bytes(serialized_timing_cache) or b"[]")
        except ValueError:
            return None
        entries = {one for one in found if isinstance(one, str)}
        tactics = next((one for one in found if isinstance(one, dict)), {})
        return self._maker.new("ITimingCache", entries=entries, tactics=tactics)

    def set_timing_cache(self: Any, cache: Any, ignore_mismatch: bool) -> bool:
        self._cache = cache
        return cache is not None

    def get_timing_cache(self: Any) -> Any:
        return getattr(self, "_cache", None)

    num_compute_capabilities = 0

    def set_compute_capability(self: Any, compute_capability: Any, index: int) -> bool:
        self._capabilities = {
            **getattr(self, "_capabilities", {}), index: compute_capability.name
        }  # fmt: skip
        return bool(index < self.num_compute_capabilities)

    def set_device_type(self: Any, layer: Any, device_type: Any) -> None:
        self._devices[layer.name] = device_type


class Builder:
    """Builds an engine that :mod:`tests.support.fake_tensorrt_engine` runs."""

    num_DLA_cores = property(lambda self: self._maker.state.dla_cores)
    logger = property(lambda self: self._logger)

    def __init__(self: Any, logger: Any) -> None:
        self._logger = logger

    def create_network(self: Any, flags: int = 0) -> Any:
        return self._maker.new(
            "INetworkDefinition",
            builder=self,
            flags=flags,
            layers=[],
            inputs=[],
            outputs=[],
            weights={},
        )

    def create_builder_config(self: Any) -> Any:
        kinds = self._maker.made
        return self._maker.new(
            "IBuilderConfig",
            flags={kinds["BuilderFlag"].TF32},
            pools={},
            profiles=[],
            previews={},
            devices={},
            tactics=sum(1 << int(source) for source in kinds["TacticSource"]),
        )

    def create_optimization_profile(self: Any) -> Any:
        return self._maker.new("IOptimizationProfile", shapes={}, values={})

    def get_plugin_registry(self: Any) -> Any:
        return self._maker.state.registry

    def build_serialized_network(self: Any, network: Any, config: Any) -> Any:
        state = self._maker.state
        state.builds.append((network, config))
        state.owner = self
        problem = state.build_fails or _problem(network, config)
        if problem:
            return log(self, "ERROR", problem)
        if _has(config, "INT8") and config.int8_calibrator is not None:
            _calibrate(self, network, config)
        if not _monitored(config, network):
            return log(self, "ERROR", "Engine building was cancelled by the progress monitor.")
        log(self, "INFO", "Total Activation Memory: 1048576 bytes")
        cache = config.get_timing_cache()
        layers = [_described(layer, network, config) for layer in network._layers]
        taken = taken_tactics(self, network, config)
        if isinstance(taken, str):
            return log(self, "ERROR", taken)
        if cache is not None and state.tactics is None:
            cache._entries |= {f"{layer['LayerType']} {layer['Name']}" for layer in layers}
        engine = {**_engine(network, config, state, layers), "tactics": taken}
        return state.host_memory(plan_bytes(state.version, engine))


def _problem(network: Any, config: Any) -> str:
    state = network._maker.state
    dynamic = [one.name for one in network._inputs if any(size < 0 for size in one.shape)]
    if dynamic and not config.num_optimization_profiles:
        return "Network has dynamic or shape inputs, but no optimization profile has been defined."
    for profile in config._profiles:
        missing = [name for name in dynamic if not profile.get_shape(name)]
        if missing:
            return f"{missing[0]}: dynamic input is missing dimensions in profile 0."
    obey = _has(config, "OBEY_PRECISION_CONSTRAINTS")
    for layer in network._layers:
        wanted = getattr(layer, "_value_precision", None)
        if wanted is not None and (layer.type.name, wanted.name) in state.no_tactic and obey:
            return (
                f"Could not find any implementation for node {layer.name} due to precision"
                " constraints."
            )
    quantized = any(layer.type.name == "QUANTIZE" for layer in network._layers)
    if _has(config, "INT8") and not (
        quantized
        or config.int8_calibrator is not None
        or all(one.dynamic_range for layer in network._layers for one in layer._outputs)
    ):
        return (
            "Calibration failure occurred with no scaling factors detected. This could be due to"
            " no int8 calibrator or insufficient custom scales for network layers."
        )
    return ""


def _calibrate(builder: Any, network: Any, config: Any) -> None:
    """Ask for batches as TensorRT does: the cache first, then until there is none left."""
    calibrator, state = config.int8_calibrator, builder._maker.state
    calibrator.get_batch_size()
    if calibrator.read_calibration_cache():
        return
    names = sorted(one.name for one in network._inputs)  # in an order of its own
    while True:
        pointers = calibrator.get_batch(names)
        if not pointers:
            break
        if len(pointers) != len(names):
            raise TypeError("get_batch returned another number of pointers than there are inputs")
        state.calibrated.append(list(pointers))
    major, minor, patch, *_ = state.version.split(".")
    number = 10000 * int(major) + 100 * int(minor) + int(patch)
    lines = [f"TRT-{number}-EntropyCalibration2"]
    lines += [f"{one.name}: 3c010a14" for one in network._inputs]
    calibrator.write_calibration_cache("\n".join(lines).encode())


def _monitored(config: Any, network: Any) -> bool:
    """Tell the progress monitor of two phases; False when it asks to stop."""
    monitor = getattr(config, "progress_monitor", None)
    if monitor is None:
        return True
    count = network.num_layers
    monitor.phase_start("Building Engine", None, 2)
    monitor.phase_start("Tactic Timing", "Building Engine", count)
    going = all(monitor.step_complete("Tactic Timing", step) for step in range(count))
    monitor.phase_finish("Tactic Timing")
    going = going and monitor.step_complete("Building Engine", 1)
    monitor.phase_finish("Building Engine")
    return bool(going)


def _described(layer: Any, network: Any, config: Any) -> dict[str, Any]:
    """Return what the inspector says of a layer."""
    precision = _precision(layer, config)

    def tensor(one: Any) -> dict[str, Any]:
        kind = precision if one.dtype.name in _FLOATS else one.dtype.name
        name = {"FLOAT": "Float", "HALF": "Half"}.get(kind, kind.capitalize())
        return {
            "Name": one.name,
            "Location": "Device",
            "Dimensions": list(one.shape),
            "Format/Datatype": name,
        }

    return {
        "Name": layer.name,
        "LayerType": layer.type.name.capitalize(),
        "Inputs": [tensor(one) for one in layer._inputs if one is not None],
        "Outputs": [tensor(one) for one in layer._outputs],
        "ParameterType": layer.type.name.capitalize(),
        "TacticName": f"sm90_{precision.lower()}_{layer.type.name.lower()}",
        "StreamId": 0,
        "Metadata": layer.metadata,
    }


def _precision(layer: Any, config: Any) -> str:
    """Return what the layer runs in: a wish where constraints count, else what flags allow."""
    wanted = getattr(layer, "_value_precision", None)
    bound = ("OBEY_PRECISION_CONSTRAINTS", "PREFER_PRECISION_CONSTRAINTS")
    if wanted is not None and any(_has(config, name) for name in bound):
        return str(wanted.name)
    own = next((one.dtype.name for one in (*layer._inputs, *layer._outputs) if one), "FLOAT")
    if own not in _FLOATS:
        return str(own)
    return "HALF" if _has(config, "FP16") else str(own)


def _engine(network: Any, config: Any, state: Any, layers: list[Any]) -> dict[str, Any]:
    def tensor(one: Any, mode: str) -> dict[str, Any]:
        return {"name": one.name, "mode": mode, "dtype": one.dtype.name, "shape": list(one.shape)}

    refit = any(_has(config, name) for name in ("REFIT", "STRIP_PLAN", "REFIT_IDENTICAL"))
    stripped = _has(config, "STRIP_PLAN")
    weights = {k: hashlib.sha256(v).hexdigest() for k, v in network._weights.items()}
    return {
        "name": network.name,
        "version": state.version,
        "compute_capability": state.compute_capability,
        "verbosity": config.profiling_verbosity.name,
        "io": [
            *(tensor(one, "INPUT") for one in network._inputs),
            *(tensor(one, "OUTPUT") for one in network._outputs),
        ],
        "profiles": [profile._shapes for profile in config._profiles] or [{}],
        "layers": layers,
        "refittable": refit,
        "weights": dict.fromkeys(weights, "") if stripped else weights,
        "activation_bytes": 1 << 20,
        "route": getattr(config, "build_route", ""),
        "model": "" if state.values is None else model_text(network),
    }


def _has(config: Any, name: str) -> bool:
    return any(name in (flag.name, *_aliases(flag)) for flag in config._flags)


def _aliases(flag: Any) -> list[str]:
    return [name for name, member in type(flag).__members__.items() if member is flag]


BEHAVIOURS: dict[str, type] = {
    kind.__name__: kind for kind in (ITimingCache, IBuilderConfig, Builder)
}
