"""Layers and tensors of any TensorRT version, from the inspector's JSON or from lines of text.

Both become the objects that the inspector's JSON has.

Layers that do nothing at run time are folded; generated layers are split into their operations.
"""

from __future__ import annotations

import dataclasses
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import CorruptFileError, InputError
from dld_tui.core.foreign import dims_of, first, objects_of, text_of, whole_of
from dld_tui.core.report.dla import dla_kinds
from dld_tui.core.tensorrt.plan.engine_plan import BITS, LARGEST_ELEMENTS, EngineLayer, EngineTensor
from dld_tui.core.tensorrt.plan.json_text import documents, dtype_of
from dld_tui.core.types import JSON, Foreign

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
"""The most dimensions of this size in a tensor that can exist."""


@dataclass
class Oddities:
    """What could not be read, counted."""

    not_objects: int = 0
    without_name: int = 0
    wrong_tensors: int = 0
    wrong_weights: int = 0
    too_large: int = 0

    def notes(self) -> list[str]:
        """Return a sentence for each kind of note."""
        notes = []
        if self.not_objects:
            entries = fmt.plural(self.not_objects, "entry", "entries")
            notes.append(f"{entries} of Layers are not layers and left out")
        if self.without_name:
            notes.append(f"{fmt.plural(self.without_name, 'layer')} without a name")
        if self.wrong_tensors:
            notes.append(
                f"inputs, outputs or constants of {fmt.plural(self.wrong_tensors, 'layer')}"
                " are of a wrong type and partly left out"
            )
        if self.wrong_weights:
            notes.append(
                f"the weights of {fmt.plural(self.wrong_weights, 'layer')} are not valid numbers:"
                " shown as unknown"
            )
        if self.too_large:
            notes.append(
                f"tensors of {fmt.plural(self.too_large, 'layer')} are larger than any memory:"
                " their sizes are shown as unknown"
            )
        return notes


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
    layer_list = LayerList()
    names = 0
    for raw in raw_layers:
        index = len(layer_list.layers)
        if isinstance(raw, str):
            names += 1
            layer_list.layers.append(named_layer(index, raw))
        elif isinstance(raw, dict):
            layer_list.layers.append(_layer(index, raw, layer_list.oddities))
        else:
            layer_list.oddities.not_objects += 1
    layer_list.names_only = names > 0 and names == len(layer_list.layers)
    return layer_list


def named_layer(index: int, name: str) -> EngineLayer:
    """Return a layer of which only the name is known."""
    return EngineLayer(
        index=index, name=name, type="", subtype="", inputs=(), outputs=(), constants=(),
        precision="", output_precision="", tactic="", tactic_value="", stream=None, metadata="",
        origin="", weights_bytes=0, attributes={"Name": name},
    )  # fmt: skip


def _layer(index: int, raw: Foreign, oddities: Oddities) -> EngineLayer:
    # Common keys are looked up first: there are thousands of layers.
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
    precision = ""
    for tensor in tensors:
        if tensor.dtype in _DATA:
            return tensor.dtype
        precision = precision or tensor.dtype
    return precision


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


_LINE_HEAD = re.compile(r"Name: (?P<name>.*?), LayerType: (?P<type>[^,]*)(?P<rest>.*)$", re.DOTALL)
_LIST_NAMES = ("Inputs", "Outputs", "Constants")
_LIST_END = re.compile(r"\}\s*\]")
_BETWEEN = re.compile(r"\}\s*,\s*\{")
_FORMATS = (", Format/Datatype: ", ", Format/DataType: ")
_PAIR = re.compile(r", (?=[A-Z][A-Za-z/]*:(?: |$))")
_NUMBERS = re.compile(r"-?\d+")
_COUNTED = re.compile(r'\{"Type": "([^"]*)", "Count": (\d+)\}')

_VERBOSE = re.compile(
    r"Layer\((?P<type>[^)]*)\): (?P<name>.*), Tactic: (?P<tactic>[^,]*), (?P<io>.*)$"
)
_VALUE_TYPE = re.compile(
    r" ?\((?P<new>\w{1,16})\[(?P<new_dims>[^\]]{0,400})\]\)"
    r"|\[(?P<old>\w{1,16})\((?P<old_dims>[^)]{0,400})\)\]"
)
_LONGEST = 32_000
LAYER_START = re.compile(r"(?:Name: .*, LayerType: |Layer\(\w*\): )")
"""How such a line begins."""


def layer_of_line(line: str) -> dict[str, JSON] | None:
    """Return the object of a line; None when it is of no layer."""
    if len(line) > _LONGEST:
        return None
    if line.startswith("Layer("):
        return _verbose(line)
    head = _LINE_HEAD.match(line)
    if head is None:
        return None
    layer: dict[str, JSON] = {"Name": head["name"], "LayerType": head["type"]}
    rest = head["rest"]
    for name in _LIST_NAMES:
        items, rest = _cut_list(rest, name)
        if items is not None:
            layer[name] = items
    for pair in _PAIR.split(rest):
        key, colon, value = pair.removeprefix(", ").partition(":")
        if colon and key:
            layer[key] = _value(value.removeprefix(" "))
    return layer


# Untrusted text of any length goes through these, so nothing in them searches twice.
def _cut_list(text: str, name: str) -> tuple[list[JSON] | None, str]:
    """Return the tensors of a list, and the text without it; None if there is no such list."""
    before, separator, after = text.partition(f", {name}: [")
    if not separator:
        return None, text
    if after.startswith("]"):
        return [], before + after[1:]
    end = _LIST_END.search(after)
    if end is None:
        return None, text
    pieces = _BETWEEN.split(after[: end.start()].strip().removeprefix("{"))
    return [_tensor(piece.strip()) for piece in pieces], before + after[end.end() :]


def _tensor(text: str) -> JSON:
    form = ""
    for key in _FORMATS:
        head, separator, tail = text.rpartition(key)
        if separator:
            text, form = head, tail
            break
    text, _, dims = text.rpartition(", Dimensions: [")
    name, separator, location = text.rpartition(", Location: ")
    tensor: dict[str, JSON] = {"Name": (name if separator else text).removeprefix("Name: ")}
    if separator:
        tensor["Location"] = location
    tensor["Dimensions"] = _dims(dims)
    tensor["Format/Datatype"] = form.strip()
    return tensor


def _value(text: str) -> JSON:
    counted = _COUNTED.fullmatch(text)
    if counted:
        return {"Type": counted[1], "Count": int(counted[2][:18])}
    if re.fullmatch(r"-?\d{1,18}", text):
        return int(text)
    if re.fullmatch(r"\[[-\d, ]*\]", text):
        return _dims(text)
    return text


def _dims(text: str) -> list[JSON]:
    return [int(number) for number in _NUMBERS.findall(text) if len(number) < 19]


def _verbose(line: str) -> dict[str, JSON] | None:
    match = _VERBOSE.match(line)
    if match is None:
        return None
    inputs, _, outputs = match["io"].rpartition(" -> ")
    return {
        "Name": match["name"],
        "LayerType": match["type"],
        "Inputs": _verbose_tensors(inputs),
        "Outputs": _verbose_tensors(outputs),
        "TacticValue": match["tactic"],
    }


def _verbose_tensors(text: str) -> list[JSON]:
    tensors: list[JSON] = []
    begin = 0
    for match in _VALUE_TYPE.finditer(text):
        dims = match["new_dims"] if match["new_dims"] is not None else match["old_dims"]
        # ``32:8`` is 32 channels in vectors of 8.
        numbers: list[JSON] = [
            int(part.partition(":")[0])
            for part in dims.split(",")
            if re.fullmatch(r"\s*-?\d{1,18}(?::\d+)?\s*", part)
        ]
        name = text[begin : match.start()].removeprefix(",").strip()
        tensors.append(
            {
                "Name": name,
                "Dimensions": numbers,
                "Format/Datatype": match["new"] or match["old"],
            }
        )
        begin = match.end()
    return tensors


_LISTS = ("Layers", "layers", "LayerInfo", "layerInfo")
_JSON_START = re.compile(r"\s*(?:\{|\[\s*(?:[\[{\]\"]|$)|--)")
_BINDINGS = ("I/O Tensors", "IOTensors", "Bindings", "bindings")
_HEAD = 100_000
"""The number of leading characters that identify the form."""
_HINT = 'Layer information has a list under "Layers" (trtexec --exportLayerInfo)'


@dataclass
class RawPlan:
    """A document as it was found: nothing in it is checked."""

    layers: list[JSON] = field(default_factory=list)
    bindings: tuple[EngineTensor, ...] = ()
    profile_count: int = 0
    notes: list[str] = field(default_factory=list)


def find_layers(text: str, where: str) -> RawPlan:
    """Return the layers and bindings of layer information in any form.

    Raises:
        CorruptFileError: It is not whole, or has no list of layers.
    """
    head = text[:_HEAD].lstrip()
    if LAYER_START.match(head) or head.startswith("Layers:"):
        return _of_lines(text)
    if _JSON_START.match(text) is None:
        raise CorruptFileError("is neither layer information nor a log of trtexec", where=where)
    values, notes = documents(text, where)
    plan = _of_documents(values, where)
    plan.notes[:0] = notes
    return plan


def _of_documents(values: Sequence[JSON], where: str) -> RawPlan:
    if len(values) > 1 or (values and _is_layer(values[0])):
        whole = [document for document in values if isinstance(document, dict)]
        whole = [document for document in whole if first(document, *_LISTS) is not None]
        if len(whole) > 1 and len(whole) == len(values):
            plan = _of_documents(whole[-1:], where)
            plan.notes.append(f"the file has the layers of {len(whole)} engines: the last is shown")
            return plan
        lists = [nested for nested in map(_list_of, values) if nested is not None]
        if len(lists) > 1 and len(lists) == len(values):
            note = f"the file has the layers of {len(lists)} engines: the last is shown"
            return RawPlan(lists[-1], notes=[note])
        layers: list[JSON] = []
        for document in values:
            nested = _list_of(document)
            layers.extend([document] if nested is None else nested)
        if not any(isinstance(layer, str) or _is_layer(layer) for layer in layers):
            raise NoLayersError(where)
        return RawPlan(layers)
    document = values[0] if values else None
    listed = _list_of(document)
    if listed is None:
        raise NoLayersError(where)
    if not isinstance(document, dict):
        return RawPlan(listed)
    bindings, profile_count, notes = read_bindings(first(document, *_BINDINGS))
    return RawPlan(listed, bindings, profile_count, notes)


class NoLayersError(CorruptFileError):
    """A file has no list of layers."""

    def __init__(self, where: str) -> None:
        text = "No Layers list: not a TensorRT engine graph"
        super().__init__(text, where=where, hint=_HINT)


def _list_of(document: JSON) -> list[JSON] | None:
    if isinstance(document, dict):
        value = first(document, *_LISTS)
        if isinstance(value, dict):
            value = list(value.values())
        return value if isinstance(value, list) else None
    if isinstance(document, list) and any(
        isinstance(item, str) or _is_layer(item) for item in document
    ):
        return document
    return None


def _is_layer(value: JSON) -> bool:
    return isinstance(value, dict) and ("LayerType" in value or "Name" in value)


def _of_lines(text: str) -> RawPlan:
    plan = RawPlan()
    names: list[JSON] = []
    binding = False
    for line in text.splitlines():
        if line.strip() == "Bindings:":
            binding = True
        elif binding and line.strip():
            names.append(line.strip())
        elif LAYER_START.match(line):
            layer = layer_of_line(line)
            if layer is not None:
                plan.layers.append(layer)
    plan.bindings = read_bindings(names)[0]
    return plan


def read_bindings(value: JSON) -> tuple[tuple[EngineTensor, ...], int, list[str]]:
    """Return the engine's inputs and outputs, its number of optimization profiles, and notes."""
    if value is None:
        return (), 0, []
    if not isinstance(value, list):
        return (), 0, ["the list of inputs and outputs is of a wrong type and left out"]
    bindings = []
    profiles = 0
    for item in value:
        if isinstance(item, str):
            bindings.append(EngineTensor(item, None, "", "", ""))
        elif isinstance(item, dict):
            tensor, count = _io_tensor(item)
            profiles = max(profiles, count)
            bindings.append(tensor)
    skipped = len(value) - len(bindings)
    return tuple(bindings), profiles, [f"{skipped} inputs or outputs left out"] if skipped else []


def _io_tensor(raw: Foreign) -> tuple[EngineTensor, int]:
    word = text_of(first(raw, "IOMode", "Mode", "mode")).lower()
    mode = "input" if "input" in word else "output" if "output" in word else ""
    tensor = tensor_of(raw, mode)
    profiles = objects_of(first(raw, "ProfileInfo", "profileInfo", "Profiles"))
    ranges = []
    for profile in profiles:
        dims = [_range(profile, word) for word in ("Min", "Opt", "Max")]
        least, optimum, most = dims
        if least is not None and optimum is not None and most is not None:
            ranges.append((least, optimum, most))
    # TensorRT 11 lists the format for each profile; mostly these are equal.
    formats = dict.fromkeys(text_of(profile.get("Format")) for profile in profiles)
    form = " / ".join(filter(None, formats)) or tensor.format
    return EngineTensor(
        tensor.name, tensor.dims, tensor.dtype or dtype_of(form), form, tensor.location, mode,
        tuple(ranges),
    ), len(profiles)  # fmt: skip


def _range(profile: Foreign, word: str) -> tuple[int, ...] | None:
    for key, value in profile.items():
        if key.lower().startswith(word.lower()) or key.lower().endswith(word.lower()):
            return dims_of(value)
    return None


def modes_of(
    bindings: Iterable[EngineTensor],
    inputs: dict[str, EngineTensor],
    outputs: dict[str, EngineTensor],
) -> tuple[EngineTensor, ...]:
    """Return bindings with what the layers know of them, where the file has only their names.

    Args:
        bindings: As the file has them.
        inputs: What layers read, by name.
        outputs: What layers write, by name.
    """
    modes = []
    bindings = tuple(bindings)
    for place, binding in enumerate(bindings):
        mode = binding.mode
        if not mode:
            written, read = binding.name in outputs, binding.name in inputs
            mode = "output" if written else "input" if read else ""
        if not mode and not inputs and not outputs:
            # TensorRT lists inputs first, so of mere names the first and the last are certain.
            is_last = place == len(bindings) - 1 and place > 0
            mode = "input" if place == 0 else "output" if is_last else ""
        known = outputs.get(binding.name) or inputs.get(binding.name)
        if known is None:
            known = binding
        modes.append(
            EngineTensor(
                binding.name,
                binding.dims if binding.dims is not None else known.dims,
                binding.dtype or known.dtype,
                binding.format or known.format,
                binding.location or known.location,
                mode,
                binding.profile_dims,
            )
        )
    return tuple(modes)


_CONSTANT = "Constant"
_NO_OP = "NoOp"
_MARK = re.compile(r" \[profile (\d+)\]")
_MYELIN = re.compile(r"_myl(\d+)_\d+$")


def fold(layers: Sequence[EngineLayer], binding_names: frozenset[str]) -> tuple[EngineLayer, ...]:
    """Return the layers without constants and NoOps, except those that took time.

    A reader of a NoOp's output reads the NoOp's input instead, and when nothing reads it its
    producer writes the NoOp's output: only the names change. Each layer keeps the dimensions,
    format and bytes with which it reads or writes, because a NoOp is a view of other dimensions. A
    constant becomes one of its readers' constants, and its bytes are counted at the first of them.
    """
    idle = [layer for layer in layers if not layer.time_ms]
    no_ops = [layer for layer in idle if _NO_OP in (layer.type, layer.subtype)]
    constants = {
        tensor.name: layer
        for layer in idle
        if _CONSTANT in (layer.type, layer.subtype)
        for tensor in layer.outputs
    }
    if not no_ops and not constants:
        return tuple(layers)
    sources = {
        layer.outputs[0].name: layer.inputs for layer in no_ops if layer.outputs and layer.inputs
    }
    renamed = _moved_outputs(layers, no_ops, binding_names)
    counted: set[int] = set()
    kept = []
    for layer in layers:
        is_view = not {_NO_OP, _CONSTANT}.isdisjoint((layer.type, layer.subtype))
        if is_view and not layer.time_ms:
            continue
        kept.append(_folded(layer, sources, constants, renamed, counted))
    return tuple(kept)


def _moved_outputs(
    layers: Sequence[EngineLayer], no_ops: Sequence[EngineLayer], binding_names: frozenset[str]
) -> dict[str, EngineTensor]:
    """Return what producers write instead, for NoOps that end in an output of the engine."""
    readers: dict[str, int] = defaultdict(int)
    for layer in layers:
        for tensor in layer.inputs:
            readers[tensor.name] += 1
    return {
        layer.inputs[0].name: layer.outputs[0]
        for layer in no_ops
        if len(layer.inputs) == 1
        and layer.outputs
        and layer.outputs[0].name in binding_names
        and not readers[layer.outputs[0].name]
        and readers[layer.inputs[0].name] == 1
    }


def _folded(
    layer: EngineLayer,
    sources: dict[str, tuple[EngineTensor, ...]],
    constants: dict[str, EngineLayer],
    renamed: dict[str, EngineTensor],
    counted: set[int],
) -> EngineLayer:
    inputs: list[EngineTensor] = []
    added: list[EngineTensor] = []
    weights = 0
    for tensor in layer.inputs:
        made_at_run: list[EngineTensor] = []
        resolved = _resolved(tensor, sources)
        for source in resolved:
            constant = constants.get(source.name)
            if constant is None:
                made_at_run.append(source)
                continue
            added.append(source)
            if constant.index not in counted:
                counted.add(constant.index)
                weights += constant.weights_bytes or source.bytes or 0
        if made_at_run == [tensor]:
            inputs.append(tensor)
        elif made_at_run:
            inputs.append(_view(tensor, made_at_run))
    outputs = tuple(
        _view(tensor, [renamed[tensor.name]]) if tensor.name in renamed else tensor
        for tensor in layer.outputs
    )
    if tuple(inputs) == layer.inputs and outputs == layer.outputs:
        return layer
    return dataclasses.replace(
        layer,
        inputs=tuple(inputs),
        outputs=outputs,
        constants=(*layer.constants, *added),
        weights_bytes=layer.weights_bytes + weights,
    )


def _view(tensor: EngineTensor, others: Sequence[EngineTensor]) -> EngineTensor:
    """Return a tensor under the name of the one that it is a view of; other fields stay."""
    view = dataclasses.replace(
        tensor,
        dims=others[0].dims if tensor.dims is None else tensor.dims,
        dtype=tensor.dtype or others[0].dtype,
    )
    if len(others) == 1:
        return dataclasses.replace(view, name=others[0].name)
    return dataclasses.replace(view, sources=tuple(other.name for other in others))


def _resolved(
    tensor: EngineTensor, sources: dict[str, tuple[EngineTensor, ...]]
) -> tuple[EngineTensor, ...]:
    """Follow a chain of NoOps to its source; a cycle ends where it began."""
    seen = set()
    tensors: tuple[EngineTensor, ...] = (tensor,)
    while len(tensors) == 1 and tensors[0].name in sources and tensors[0].name not in seen:
        seen.add(tensors[0].name)
        tensors = sources[tensors[0].name]
    return tensors


def profile_indices(layers: Sequence[EngineLayer]) -> list[int]:
    """Return the optimization profile of each layer.

    The name of the layer or of a tensor says so; layers of Myelin follow the others of their group;
    a layer without a mark belongs to profile 0.
    """
    groups: dict[str, int] = {}
    marks: list[int | None] = []
    for layer in layers:
        mark = _mark(layer)
        marks.append(mark)
        group = _MYELIN.search(layer.name)
        if group and mark is not None:
            groups[group[1]] = mark
    indices = []
    for layer, mark in zip(layers, marks, strict=True):
        group = _MYELIN.search(layer.name)
        inherited = groups.get(group[1], 0) if group else 0
        indices.append(mark if mark is not None else inherited)
    return indices


def _mark(layer: EngineLayer) -> int | None:
    names = [layer.name, *(tensor.name for tensor in (*layer.inputs, *layer.outputs))]
    for name in names:
        match = _MARK.search(name)
        if match:
            return int(match[1][:6])
    return None


def with_dla_kinds(layers: tuple[EngineLayer, ...]) -> tuple[EngineLayer, ...]:
    """Return layers in the order of execution, with what they have to do with a DLA."""
    kinds = dla_kinds((layer.name, layer.type) for layer in layers)
    if not any(kinds):
        return layers
    return tuple(
        dataclasses.replace(layer, dla=kind) for layer, kind in zip(layers, kinds, strict=True)
    )


_KINDS = frozenset({"PointWise", "PointWiseV2", "PointWiseV3", "kgen", "ElementWise", "Unary"})
_MYELIN_NAME = re.compile(r"^__myl_([A-Za-z]+)")
_WORD = re.compile(r"[A-Z][a-z0-9]*")
_NEST = re.compile(r"PWN\(|[(),]")
_MOST = 200


def is_pointwise(layer: EngineLayer) -> bool:
    """Return whether a layer is elementwise."""
    return layer.kind in _KINDS or layer.type in _KINDS


def operations(layer: EngineLayer) -> tuple[str, ...]:
    """Return the operations inside a layer, as its attributes or its name say. Untrusted text."""
    for key in ("Operations", "Instructions"):
        listed = layer.attributes.get(key)
        if isinstance(listed, list):
            return tuple(_text(item) for item in listed[:_MOST])
    for name in (layer.tactic, layer.name):
        myelin = _MYELIN_NAME.match(name)
        if myelin:
            return tuple(_WORD.findall(myelin[1])[:_MOST])
    _, listed, nested = layer.name.partition("PWN(")
    parts = [part.strip() for part in _NEST.split(nested)] if listed else []
    return tuple(part for part in parts if part)[:_MOST]


def _text(item: JSON) -> str:
    if isinstance(item, str):
        return item
    if isinstance(item, list):
        return " ".join(map(_text, item[:20]))
    return str(item)
