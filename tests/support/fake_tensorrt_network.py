"""The building half of the fake of TensorRT: logger, network, profiles.

See :mod:`tests.support.fake_tensorrt`.
"""

from __future__ import annotations

import math
from typing import Any

from tests.support.fake_tensorrt_classes import BoundEnum

_BITS = {"INT4": 4, "FP4": 4, "INT8": 8, "FP8": 8, "BOOL": 8, "UINT8": 8, "E8M0": 8}


def log(owner: Any, severity: str, text: str) -> Any:
    """Hand a line to the program's logger, and return None as a failed call of TensorRT does."""
    logger = owner._logger
    logger.log(owner._maker.made["ILogger"].Severity[severity], text)


class DataType(BoundEnum):
    """Sizes of the types."""

    @property
    def itemsize(self) -> int:
        if self.name in ("INT64",):
            return 8
        return 2 if self.name in ("HALF", "BF16") else _BITS.get(self.name, 32) // 8 or 1


class Logger:
    """Prints nothing; what is logged is in ``fake.log``."""

    def __init__(self, min_severity: Any = None) -> None:
        self.min_severity = min_severity or self._maker.made["ILogger"].WARNING  # type: ignore[attr-defined]

    def log(self, severity: Any, msg: str) -> None:
        self._maker.state.log.append((severity.name, msg))  # type: ignore[attr-defined]


class ITensor:
    """A tensor of the network. Setting ``dtype`` is what weakly typed libraries allow."""

    allowed_formats = 1
    is_execution_tensor = property(lambda self: not self.is_shape_tensor)
    is_shape_tensor = property(lambda self: self._shape_tensor)
    dynamic_range = None

    def set_dynamic_range(self: Any, min: float, max: float) -> bool:
        self._value_dynamic_range = (min, max)
        return True


class ILayer:
    """A layer, made of one ONNX node."""

    type = property(lambda self: self._type)
    num_inputs = property(lambda self: len(self._inputs))
    num_outputs = property(lambda self: len(self._outputs))
    precision_is_set = property(lambda self: hasattr(self, "_value_precision"))

    def get_input(self: Any, index: int) -> Any:
        return self._inputs[index] if index < len(self._inputs) else None

    def get_output(self: Any, index: int) -> Any:
        return self._outputs[index] if index < len(self._outputs) else None

    @property
    def precision(self: Any) -> Any:
        kinds = self._maker.made["DataType"]
        return getattr(self, "_value_precision", kinds.FLOAT)

    def set_output_type(self: Any, index: int, dtype: Any) -> None:
        self._types[index] = dtype

    def get_output_type(self: Any, index: int) -> Any:
        return self._types.get(index, self._outputs[index].dtype)

    def output_type_is_set(self: Any, index: int) -> bool:
        return index in self._types


class INetworkDefinition:
    """The network that the parser fills."""

    num_layers = property(lambda self: len(self._layers))
    num_inputs = property(lambda self: len(self._inputs))
    num_outputs = property(lambda self: len(self._outputs))
    flags = property(lambda self: self._flags)
    builder = property(lambda self: self._builder)
    name = "Unnamed Network 0"

    def get_layer(self: Any, index: int) -> Any:
        return self._layers[index]

    __getitem__ = get_layer

    def __len__(self: Any) -> int:
        return len(self._layers)

    def get_input(self: Any, index: int) -> Any:
        return self._inputs[index]

    def get_output(self: Any, index: int) -> Any:
        return self._outputs[index]

    def get_flag(self: Any, flag: Any) -> bool:
        return bool(self._flags >> int(flag) & 1)

    def mark_output(self: Any, tensor: Any) -> None:
        self._outputs.append(tensor)


class IOptimizationProfile:
    """Ranges of shapes."""

    def set_shape(self: Any, input: str, min: Any, opt: Any, max: Any) -> None:
        shapes = tuple(tuple(int(size) for size in shape) for shape in (min, opt, max))
        for low, middle, high in zip(*shapes, strict=True):
            if not low <= middle <= high:
                raise ValueError(f"Dimensions of {input} are not min <= opt <= max")
        self._shapes[input] = shapes

    def get_shape(self: Any, input: str) -> list[Any]:
        return list(self._shapes.get(input, ()))

    def set_shape_input(self: Any, input: str, min: Any, opt: Any, max: Any) -> None:
        self._values[input] = (list(min), list(opt), list(max))

    def __bool__(self: Any) -> bool:
        return True


def volume(dims: Any) -> int:
    """Return how many elements a shape has; a free dimension counts as 1."""
    return math.prod(max(1, int(size)) for size in dims)


BEHAVIOURS: dict[str, type] = {
    kind.__name__: kind
    for kind in (*(DataType, Logger, ITensor, ILayer, INetworkDefinition), IOptimizationProfile)
}
