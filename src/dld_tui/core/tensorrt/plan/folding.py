"""Folding of layers that do nothing at run time, and the operations inside generated ones."""

from __future__ import annotations

import dataclasses
import re
from collections import defaultdict
from collections.abc import Sequence

from dld_tui.core.tensorrt.plan.engine_plan import EngineLayer, EngineTensor
from dld_tui.core.types import JSON

_CONSTANT = "Constant"
_NO_OP = "NoOp"
_MARK = re.compile(r" \[profile (\d+)\]")
_MYELIN = re.compile(r"_myl(\d+)_\d+$")


def fold(layers: Sequence[EngineLayer], binding_names: frozenset[str]) -> tuple[EngineLayer, ...]:
    """Return the layers without constants and NoOps.

    A reader of a NoOp's output reads the NoOp's input instead, and when nothing reads it its
    producer writes the NoOp's output: only the names change. Each layer keeps the dimensions,
    format and bytes with which it reads or writes, because a NoOp is a view of other dimensions. A
    constant becomes one of its readers' constants, and its bytes are counted at the first of them.
    """
    no_ops = [layer for layer in layers if _NO_OP in (layer.type, layer.subtype)]
    constants = {
        tensor.name: layer
        for layer in layers
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
        if not {_NO_OP, _CONSTANT}.isdisjoint((layer.type, layer.subtype)):
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


_KINDS = frozenset({"PointWise", "PointWiseV2", "PointWiseV3", "kgen", "ElementWise", "Unary"})
_MYELIN_NAME = re.compile(r"^__myl_([A-Za-z]+)")
_WORD = re.compile(r"[A-Z][a-z0-9]*")
_NEST = re.compile(r"PWN\(|[(),]")
_MOST = 200


def is_pointwise(layer: EngineLayer) -> bool:
    """Return whether a layer is elementwise."""
    return layer.kind in _KINDS or layer.type in _KINDS


def operations(layer: EngineLayer) -> tuple[str, ...]:
    """Return the operations inside a layer, as its attributes or its name say. Foreign text."""
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
