"""Finding the list of layers in a document of any TensorRT version."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from dld_tui.core.errors import CorruptFileError
from dld_tui.core.plan.json_text import documents
from dld_tui.core.plan.layer_lines import LAYER_START, layer_of_line
from dld_tui.core.plan.layers import tensor_of
from dld_tui.core.plan.model import EngineTensor
from dld_tui.core.plan.values import dims_of, first, objects_of, text_of
from dld_tui.core.types import JSON

_LISTS = ("Layers", "layers", "LayerInfo", "layerInfo")
_JSON_START = re.compile(r"\s*(?:\{|\[\s*(?:[\[{\]\"]|$)|--)")
_BINDINGS = ("I/O Tensors", "IOTensors", "Bindings", "bindings")
_HEAD = 100_000
"""Characters at the beginning that tell which form it is."""
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
    found, notes = documents(text, where)
    plan = _of_documents(found, where)
    plan.notes[:0] = notes
    return plan


def _of_documents(found: Sequence[JSON], where: str) -> RawPlan:
    if len(found) > 1 or (found and _is_layer(found[0])):
        whole = [document for document in found if isinstance(document, dict)]
        whole = [document for document in whole if first(document, *_LISTS) is not None]
        if len(whole) > 1 and len(whole) == len(found):
            plan = _of_documents(whole[-1:], where)
            plan.notes.append(f"the file has the layers of {len(whole)} engines: the last is shown")
            return plan
        lists = [nested for nested in map(_list_of, found) if nested is not None]
        if len(lists) > 1 and len(lists) == len(found):
            note = f"the file has the layers of {len(lists)} engines: the last is shown"
            return RawPlan(lists[-1], notes=[note])
        layers: list[JSON] = []
        for document in found:
            nested = _list_of(document)
            layers.extend([document] if nested is None else nested)
        if not any(isinstance(layer, str) or _is_layer(layer) for layer in layers):
            raise CorruptFileError(NO_LAYERS, where=where, hint=_HINT)
        return RawPlan(layers)
    document = found[0] if found else None
    listed = _list_of(document)
    if listed is None:
        raise CorruptFileError(NO_LAYERS, where=where, hint=_HINT)
    if not isinstance(document, dict):
        return RawPlan(listed)
    bindings, profile_count, notes = read_bindings(first(document, *_BINDINGS))
    return RawPlan(listed, bindings, profile_count, notes)


NO_LAYERS = "No Layers list: not a TensorRT engine graph"


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
    found = []
    profiles = 0
    for item in value:
        if isinstance(item, str):
            found.append(EngineTensor(item, None, "", "", ""))
        elif isinstance(item, dict):
            tensor, count = _io_tensor(item)
            profiles = max(profiles, count)
            found.append(tensor)
    left = len(value) - len(found)
    return tuple(found), profiles, [f"{left} inputs or outputs left out"] if left else []


def _io_tensor(raw: dict[str, JSON]) -> tuple[EngineTensor, int]:
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
    return EngineTensor(
        tensor.name, tensor.dims, tensor.dtype, tensor.format, tensor.location, mode, tuple(ranges)
    ), len(profiles)


def _range(profile: dict[str, JSON], word: str) -> tuple[int, ...] | None:
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
    found = []
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
        found.append(
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
    return tuple(found)
