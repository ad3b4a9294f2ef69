"""Layers and tensors from the objects that TensorRT's inspector writes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dld_tui.core import fmt
from dld_tui.core.errors import InputError
from dld_tui.core.plan.formats import dtype_of
from dld_tui.core.plan.model import BITS, LARGEST_ELEMENTS, EngineLayer, EngineTensor
from dld_tui.core.plan.values import dims_of, first, objects_of, text_of, whole_of
from dld_tui.core.types import JSON

_DATA = frozenset({"fp32", "fp16", "bf16", "fp8", "fp4", "int8", "int4", "uint8"})
"""Types of data; the others are of shapes, indices and conditions."""
_WEIGHTS = frozenset(
    prefix + key
    for prefix in ("", "Conv", "Pooling")  # what fused layers write of their parts
    for key in ("Weights", "Bias", "Scale", "Shift", "Power", "weights", "bias")
)
_NAME_KEYS = ("Name", "name", "LayerName")
_TYPE_KEYS = ("LayerType", "layerType", "Type", "type")
_FORMAT_KEYS = ("Format/Datatype", "Format/DataType", "Format", "format")
_DTYPE_KEYS = ("Datatype", "DataType", "datatype", "dataType")


MOST_LAYERS = 100_000
_FEW_DIMS, _SMALL_DIM = 4, 4096
"""So many dimensions of this size make no impossible tensor."""


@dataclass
class Oddities:
    """What could not be read, counted."""

    not_objects: int = 0
    without_name: int = 0
    wrong_tensors: int = 0
    wrong_weights: int = 0
    too_large: int = 0

    def notes(self) -> list[str]:
        """Return a sentence for each kind that there was."""
        found = []
        if self.not_objects:
            found.append(f"{_entries(self.not_objects)} of Layers are no layers and left out")
        if self.without_name:
            found.append(f"{fmt.plural(self.without_name, 'layer')} without a name")
        if self.wrong_tensors:
            found.append(
                f"inputs, outputs or constants of {fmt.plural(self.wrong_tensors, 'layer')}"
                " are of a wrong type and partly left out"
            )
        if self.wrong_weights:
            found.append(
                f"the weights of {fmt.plural(self.wrong_weights, 'layer')} are no sound numbers:"
                " shown as unknown"
            )
        if self.too_large:
            found.append(
                f"tensors of {fmt.plural(self.too_large, 'layer')} are larger than any memory:"
                " their sizes are shown as unknown"
            )
        return found


def _entries(count: int) -> str:
    return "1 entry" if count == 1 else f"{count:,} entries"


@dataclass
class LayerList:
    """The layers of a file."""

    layers: list[EngineLayer] = field(default_factory=list)
    names_only: bool = False
    oddities: Oddities = field(default_factory=Oddities)


def read_layers(raw_layers: Sequence[JSON], where: str = "") -> LayerList:
    """Return the layers of a list of objects, of names, or of both.

    Raises:
        InputError: There are more than any engine has; `where` is the file.
    """
    if len(raw_layers) > MOST_LAYERS:
        raise InputError(
            f"{len(raw_layers):,} layers: no engine has more than {MOST_LAYERS:,}", where=where
        )
    found = LayerList()
    names = 0
    for raw in raw_layers:
        index = len(found.layers)
        if isinstance(raw, str):
            names += 1
            found.layers.append(named_layer(index, raw))
        elif isinstance(raw, dict):
            found.layers.append(_layer(index, raw, found.oddities))
        else:
            found.oddities.not_objects += 1
    found.names_only = names > 0 and names == len(found.layers)
    return found


def named_layer(index: int, name: str) -> EngineLayer:
    """Return a layer of which only the name is known."""
    return EngineLayer(
        index=index, name=name, type="", subtype="", inputs=(), outputs=(), constants=(),
        precision="", output_precision="", tactic="", tactic_value="", stream=None, metadata="",
        origin="", weights_bytes=0, attributes={"Name": name},
    )  # fmt: skip


def _layer(index: int, raw: dict[str, JSON], oddities: Oddities) -> EngineLayer:
    # What all files have is asked for first: there are thousands of layers.
    name = text_of(raw.get("Name") or first(raw, *_NAME_KEYS))
    if not name:
        oddities.without_name += 1
    wrong = False
    parts = []
    for key in ("Inputs", "Outputs", "Constants"):
        value = raw[key] if key in raw else raw.get(key.lower())
        tensors = tuple(map(tensor_of, objects_of(value)))
        wrong |= value is not None and (not isinstance(value, list) or len(tensors) != len(value))
        parts.append(tensors)
    oddities.wrong_tensors += wrong
    inputs, outputs, constants = parts
    oddities.too_large += any(map(_is_impossible, (*inputs, *outputs)))
    weights = _weights_bytes(raw, constants)
    oddities.wrong_weights += weights is None
    return EngineLayer(
        index=index,
        name=name,
        type=text_of(raw.get("LayerType") or first(raw, *_TYPE_KEYS)),
        subtype=text_of(raw.get("ParameterType")),
        inputs=inputs,
        outputs=outputs,
        constants=constants,
        precision=precision_of(inputs or outputs),
        output_precision=precision_of(outputs),
        tactic=text_of(raw.get("TacticName")),
        tactic_value=text_of(raw.get("TacticValue")),
        stream=whole_of(raw.get("StreamId")),
        metadata=text_of(raw.get("Metadata")),
        origin=text_of(raw.get("Origin")),
        weights_bytes=weights or 0,
        weights_from="unknown" if weights is None else "file",
        attributes=raw,
    )


def tensor_of(raw: Mapping[str, JSON], mode: str = "") -> EngineTensor:
    """Return a tensor from its object."""
    phrase = text_of(raw.get("Format/Datatype") or first(raw, *_FORMAT_KEYS))
    own = text_of(first(raw, *_DTYPE_KEYS))
    return EngineTensor(
        name=text_of(raw.get("Name") or first(raw, *_NAME_KEYS)),
        dims=dims_of(raw.get("Dimensions") or first(raw, "Dimensions", "dimensions", "Shape")),
        dtype=(dtype_of(own) if own else "") or dtype_of(phrase),
        format=phrase or own,
        location=text_of(raw.get("Location") or raw.get("location")),
        mode=mode,
    )


def precision_of(tensors: Sequence[EngineTensor]) -> str:
    """Return the type of the first tensor that carries data, else of the first of any type."""
    found = ""
    for tensor in tensors:
        if tensor.dtype in _DATA:
            return tensor.dtype
        found = found or tensor.dtype
    return found


def _is_impossible(tensor: EngineTensor) -> bool:
    dims = tensor.dims
    if dims is None or (len(dims) <= _FEW_DIMS and all(dim <= _SMALL_DIM for dim in dims)):
        return False
    return tensor.elements is None and -1 not in dims


def _weights_bytes(raw: Mapping[str, JSON], constants: Sequence[EngineTensor]) -> int | None:
    """Return the bytes of weights and biases; None where one of them is no sound number."""
    total = 0
    for key in _WEIGHTS & raw.keys():
        value = raw[key]
        if isinstance(value, dict) and "Count" in value:
            count = whole_of(value["Count"])
            bits = BITS.get(dtype_of(text_of(value.get("Type"))))
            if count is None or not 0 <= count <= LARGEST_ELEMENTS or (count and bits is None):
                return None
            total += (count * (bits or 0) + 7) // 8
    # Constants are listed besides, so they would be counted twice.
    return total or sum(tensor.bytes or 0 for tensor in constants)
