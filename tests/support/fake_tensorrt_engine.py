"""The running half of the fake of TensorRT: runtime, engine, context, inspector.

See :mod:`tests.support.fake_tensorrt`.
"""

from __future__ import annotations

import json
import math
from typing import Any

from tests.support.fake_tensorrt_builder import HEADER_BYTES, plan_bytes
from tests.support.fake_tensorrt_compute import compute, inferred_shape
from tests.support.fake_tensorrt_network import log, volume


class Runtime:
    """Reads the engines that the fake built."""

    DLA_core = -1
    engine_host_code_allowed = False
    num_DLA_cores = property(lambda self: self._maker.state.dla_cores)
    logger = property(lambda self: self._logger)

    def __init__(self: Any, logger: Any) -> None:
        self._logger = logger
        state = self._maker.state
        if state.runtime_fails:
            log(self, "ERROR", state.runtime_fails)
            raise TypeError("pybind11::init(): factory function returned nullptr")

    def get_plugin_registry(self: Any) -> Any:
        return self._maker.state.registry

    def deserialize_cuda_engine(self: Any, serialized_engine: Any) -> Any:
        state, data = self._maker.state, bytes(serialized_engine)
        if data[:4] != b"ftrt":
            text = "Magic tag does not match. Note: this plan is corrupt or of another library."
            return log(self, "ERROR", text)
        version = ".".join(map(str, data[24:28]))
        try:
            found = json.loads(data[HEADER_BYTES:])
        except ValueError:
            return log(self, "ERROR", "Deserialization failed: the plan is truncated.")
        if found["version"] != state.version:
            text = (
                "The engine plan file is not compatible with this version of TensorRT, expecting"
                f" library version {state.version} got {version}, please rebuild."
            )
            return log(self, "ERROR", text)
        if found["compute_capability"] != state.compute_capability:
            text = "The engine plan file is generated on an incompatible device"
            return log(self, "ERROR", text)
        if state.out_of_memory:
            return log(self, "ERROR", "Out of memory: requested 8589934592 bytes of the device.")
        return self._maker.new("ICudaEngine", plan=found, logger=self._logger)


class ICudaEngine:
    """An engine: what :func:`fake_tensorrt_builder.plan_bytes` wrote."""

    name = property(lambda self: self._plan["name"])
    num_io_tensors = property(lambda self: len(self._plan["io"]))
    num_layers = property(lambda self: len(self._plan["layers"]))
    num_optimization_profiles = property(lambda self: len(self._plan["profiles"]))
    refittable = property(lambda self: self._plan["refittable"])
    device_memory_size = property(lambda self: self._plan["activation_bytes"])
    device_memory_size_v2 = property(lambda self: self._plan["activation_bytes"])
    profiling_verbosity = property(
        lambda self: self._maker.made["ProfilingVerbosity"][self._plan["verbosity"]]
    )
    streamable_weights_size = property(lambda self: 0)
    weight_streaming_budget_v2 = 0

    def _io(self: Any, name: str) -> dict[str, Any]:
        for one in self._plan["io"]:
            if one["name"] == name:
                return dict(one)
        return {"mode": "NONE", "dtype": "FLOAT", "shape": []}

    def get_tensor_name(self: Any, index: int) -> str:
        return str(self._plan["io"][index]["name"])

    def get_tensor_mode(self: Any, name: str) -> Any:
        return self._maker.made["TensorIOMode"][self._io(name)["mode"]]

    def get_tensor_dtype(self: Any, name: str) -> Any:
        return self._maker.made["DataType"][self._io(name)["dtype"]]

    def get_tensor_shape(self: Any, name: str) -> Any:
        return tuple(self._io(name)["shape"])

    def get_tensor_location(self: Any, name: str) -> Any:
        place = "HOST" if name in self._maker.state.host_tensors else "DEVICE"
        return self._maker.made["TensorLocation"][place]

    def get_tensor_format(self: Any, name: str, profile_index: int = 0) -> Any:
        return self._maker.made["TensorFormat"].LINEAR

    def get_tensor_components_per_element(self: Any, name: str, profile_index: int = 0) -> int:
        return -1

    def get_tensor_vectorized_dim(self: Any, name: str, profile_index: int = 0) -> int:
        return -1

    def get_tensor_profile_shape(self: Any, name: str, profile_index: int) -> list[Any]:
        found = self._plan["profiles"][profile_index].get(name)
        return [tuple(shape) for shape in found or [self._io(name)["shape"]] * 3]

    def create_execution_context(self: Any, strategy: Any = None) -> Any:
        if self._maker.state.no_context_memory:
            return log(self, "ERROR", "Out of memory while creating an execution context.")
        return self._maker.new(
            "IExecutionContext",
            engine=self,
            shapes={},
            addresses={},
            profile=0,
            due=[],
            allocators={},
        )

    def create_engine_inspector(self: Any) -> Any:
        return self._maker.new("EngineInspector", engine=self)

    def serialize(self: Any) -> Any:
        state = self._maker.state
        return state.host_memory(plan_bytes(state.version, self._plan))

    def create_serialization_config(self: Any) -> Any:
        return self._maker.new("ISerializationConfig", kept={"EXCLUDE_WEIGHTS"})

    def serialize_with_config(self: Any, arg0: Any) -> Any:
        state, plan = self._maker.state, dict(self._plan)
        if "EXCLUDE_WEIGHTS" in arg0._kept:
            plan["weights"] = dict.fromkeys(plan["weights"], "")
        return state.host_memory(plan_bytes(state.version, plan))


class ISerializationConfig:
    """What an engine is written without."""

    def clear_flag(self: Any, flag: Any) -> bool:
        self._kept.discard(flag.name)
        return True

    def set_flag(self: Any, flag: Any) -> bool:
        self._kept.add(flag.name)
        return True


class EngineInspector:
    """Describes layers, as much as the engine was built to tell."""

    def get_engine_information(self: Any, format: Any) -> str:
        plan = self._engine._plan
        layers: list[Any] = plan["layers"]
        if plan["verbosity"] != "DETAILED":
            layers = [layer["Name"] for layer in layers]
        names = [one["name"] for one in plan["io"]]
        return json.dumps({"Layers": layers, "Bindings": names})

    def get_layer_information(self: Any, layer_index: int, format: Any) -> str:
        return json.dumps(self._engine._plan["layers"][layer_index])


class IExecutionContext:
    """Runs an engine on the fake of CUDA.

    Outputs become what the model computes when ``fake.values`` is set, else the sum of the inputs'
    bytes.
    """

    profiler = None
    enqueue_emits_profile = True
    engine = property(lambda self: self._engine)

    def set_optimization_profile_async(self: Any, profile_index: int, stream_handle: int) -> bool:
        if not 0 <= profile_index < self._engine.num_optimization_profiles:
            return False
        self._profile = profile_index
        self._shapes.clear()
        return True

    def set_input_shape(self: Any, name: str, shape: Any) -> bool:
        low, _, high = self._engine.get_tensor_profile_shape(name, self._profile)
        fits = len(shape) == len(low) and all(
            a <= int(size) <= b for a, size, b in zip(low, shape, high, strict=True)
        )
        if not fits:
            text = (
                f"Set dimension {tuple(shape)} for tensor {name} does not satisfy any"
                " optimization profiles."
            )
            log(self._engine, "ERROR", text)
            return False
        self._shapes[name] = tuple(int(size) for size in shape)
        return True

    def get_tensor_shape(self: Any, name: str) -> Any:
        shape = self._shapes.get(name, self._engine.get_tensor_shape(name))
        if self._engine._plan["model"] and name not in self._shapes:
            return inferred_shape(self._engine._plan, self._shapes, name)
        known = next(iter(self._shapes.values()), ())
        return tuple(
            (known[i] if i < len(known) else 1) if size < 0 and self._shapes else size
            for i, size in enumerate(shape)
        )

    def infer_shapes(self: Any) -> list[str]:
        names = [one["name"] for one in self._engine._plan["io"] if one["mode"] == "INPUT"]
        return [
            name
            for name in names
            if (name in self._maker.state.host_tensors and not self._addresses.get(name))
            or (
                name not in self._shapes
                and any(size < 0 for size in self._engine.get_tensor_shape(name))
            )
        ]

    def set_tensor_address(self: Any, name: str, memory: int) -> bool:
        self._addresses[name] = memory
        return True

    def set_output_allocator(self: Any, name: str, output_allocator: Any) -> bool:
        self._allocators[name] = output_allocator
        return True

    def get_max_output_size(self: Any, name: str) -> int:
        kind, shape = self._engine.get_tensor_dtype(name), self.get_tensor_shape(name)
        if self._engine._plan["model"]:
            most = self._maker.state.most_elements
            shape = tuple(most if size < 0 else size for size in shape)
        return volume(shape) * int(kind.itemsize)

    def execute_async_v3(self: Any, stream_handle: int) -> bool:
        names = [one["name"] for one in self._engine._plan["io"]]
        missing = [name for name in names if not self._addresses.get(name)]
        if missing or self.infer_shapes():
            text = f"Neither address or allocator is set for tensor {(missing or names)[0]}."
            return bool(log(self._engine, "ERROR", text))
        state = self._maker.state
        if state.execute_fails:
            return bool(log(self._engine, "ERROR", state.execute_fails))
        times = [state.layer_ms.get(one["Name"], 0.1) for one in self._engine._plan["layers"]]
        route = self._engine._plan.get("route", "")
        factor = math.prod(state.knob_factors.get(word, 1.0) for word in route.split())
        state.cuda.work(stream_handle, factor * sum(times), self.profiler is not None)
        self._write_outputs(state.cuda)
        self._due = [
            (layer["Name"], ms)
            for layer, ms in zip(self._engine._plan["layers"], times, strict=True)
        ]
        if self.profiler is not None and self.enqueue_emits_profile:
            self.report_to_profiler()
        return True

    def report_to_profiler(self: Any) -> bool:
        due, self._due = self._due, []
        for name, ms in due:
            self.profiler.report_layer_time(name, ms)
        return bool(due)

    def _write_outputs(self: Any, cuda: Any) -> None:
        if self._engine._plan["model"]:
            compute(self, cuda)
            return
        total = 0
        for one in self._engine._plan["io"]:
            size = self.get_max_output_size(one["name"])
            address = self._addresses[one["name"]]
            if one["mode"] == "INPUT":
                total += sum(cuda.read(address, size))
            else:
                cuda.write(address, bytes([total % 251]) * size)


BEHAVIOURS: dict[str, type] = {
    kind.__name__: kind
    for kind in (*(Runtime, ICudaEngine, EngineInspector, IExecutionContext), ISerializationConfig)
}
