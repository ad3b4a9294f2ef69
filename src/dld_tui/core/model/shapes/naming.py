"""What the rules of operators know of values after onnx has inferred a model.

onnx computes with numbers only, and gives a dimension that it cannot compute a name of its own:
``[batch, seq, 64]`` reshaped to ``[0, -1, 4, 16]`` is ``[batch, unk__0, 4, 16]`` to it. Of some
results, as those of Einsum with ``...``, it has no shape.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress

import numpy as np

from dld_tui.core.files import protos as onnx
from dld_tui.core.files.proto_fields import imported_versions, set_text, text_of
from dld_tui.core.model.shapes.call import Call
from dld_tui.core.model.shapes.evaluation import MALFORMED, MOST_NODES
from dld_tui.core.model.shapes.inference import is_generated
from dld_tui.core.model.shapes.rules import rule_of
from dld_tui.core.model.shapes.size import UNKNOWN, Atom, Size, name_of, size_of
from dld_tui.core.model.shapes.value import Dims, Value
from dld_tui.core.model.tensors.tensor import Tensor
from dld_tui.core.model.tensors.value_types import PLACEHOLDERS
from dld_tui.core.types import plain_domain

_KEEPS_NAMES = 10
"""The opset whose Slice keeps names of dimensions in onnx's inference (1.23)."""


def name_dimensions(model: onnx.ModelProto, own_names: Collection[str]) -> None:
    """Give dimensions of the main graph that onnx has named the sizes that rules know.

    Args:
        model: With the types that were inferred, its nodes in an order that runs.
        own_names: Of dimensions of its inputs and outputs, which may look like those of onnx.
            Those of values in between are onnx's: tools leave in a file what they inferred.
    """
    main = model.graph
    infos = [*main.value_info, *main.output]
    if not any(is_generated(dim) for info in infos for dim in _dims(info)):
        return
    left_alone = set(own_names)
    while True:
        sizes: dict[str, Size] = {}
        before = len(left_alone)
        for info, known in _followed(model, sizes):
            for dim, size in zip(_dims(info), known, strict=False):
                generated = text_of(dim.dim_param)
                if not is_generated(dim) or generated in left_alone or not _is_plain(size):
                    continue
                # One name for dimensions that are not the same: nothing can follow from it.
                if sizes.setdefault(generated, size) != size:
                    left_alone.add(generated)
        if len(left_alone) == before:
            break
    for info in infos:
        for dim in _dims(info):
            size = sizes.get(text_of(dim.dim_param))
            if size is not None:
                _set(dim, size)


def forget_cut_dimensions(model: onnx.ModelProto) -> None:
    """Take names from dimensions of the main graph behind a Slice of opset 10.

    onnx keeps the name of a dimension there, whatever is cut from it: ``[N, 4]`` cut to its first
    row is ``[N, 4]`` to it. What rules know is declared in its place.

    Args:
        model: As in :func:`name_dimensions`.
    """
    main = model.graph
    versions = imported_versions(model)
    if versions.get("") != _KEEPS_NAMES:
        return
    behind: set[str] = set()
    for node in main.node:
        if text_of(node.op_type) == "Slice" or not behind.isdisjoint(node.input):
            behind.update(node.output)
    for info in main.value_info:
        for dim in _dims(info) if text_of(info.name) in behind else ():
            if dim.dim_param:
                dim.Clear()
    for info, known in _followed(model, {}):
        if text_of(info.name) in behind:
            for dim, size in zip(_dims(info), known, strict=False):
                if dim.WhichOneof("value") is None:
                    _set(dim, size)


def shapes_of_others(model: onnx.ModelProto) -> dict[str, onnx.ValueInfoProto]:
    """Return types with shapes for values of the main graph of which only the type is known.

    Args:
        model: As in :func:`name_dimensions`.
    """
    found: dict[str, onnx.ValueInfoProto] = {}
    if not any(map(_lacks_shape, (*model.graph.value_info, *model.graph.output))):
        return found  # as most often: the rules need not be asked
    for info, known in _followed(model, {}):
        if _lacks_shape(info):
            new = onnx.ValueInfoProto.FromString(info.SerializeToString())
            shape = new.type.tensor_type.shape
            shape.SetInParent()
            for size in known:
                _set(shape.dim.add(), size)
            found[text_of(info.name)] = new
    return found


def _followed(
    model: onnx.ModelProto, sizes: Mapping[str, Size]
) -> Iterator[tuple[onnx.ValueInfoProto, Dims]]:
    """Yield the declared types of results in the main graph, and the sizes that rules know.

    Args:
        model: The model.
        sizes: Of dimensions by the names that onnx has given them; it may grow meanwhile.
    """
    main = model.graph
    infos = {info.name: info for info in (*main.input, *main.value_info, *main.output)}
    versions = imported_versions(model)
    values = {tensor.name: _constant(tensor) for tensor in main.initializer}

    def value(name: str) -> Value:
        if name not in values:
            values[name] = Value(_declared(infos.get(name), sizes))
        return values[name]

    for node in main.node[:MOST_NODES]:
        domain = plain_domain(text_of(node.domain))
        rule = rule_of(domain, text_of(node.op_type))
        if rule is None:
            continue
        call = Call(node, list(map(value, node.input)), version=versions.get(domain, 0))
        with suppress(*MALFORMED), np.errstate(all="ignore"):
            for name, result in zip(node.output, rule(call), strict=False):
                info = infos.get(name)
                if info is not None and result.dims is not None:
                    yield info, result.dims
                declared = _declared(info, sizes)
                dims = result.dims if declared is None else declared
                values[name] = Value(dims, result.elements, tensor=result.tensor)


def _constant(tensor: onnx.TensorProto) -> Value:
    known = Tensor(tensor, None)
    return Value(known.shape, tensor=known)


def _declared(info: onnx.ValueInfoProto | None, sizes: Mapping[str, Size]) -> Dims | None:
    if info is None or not info.type.tensor_type.HasField("shape"):
        return None
    return tuple(
        UNKNOWN if text_of(dim.dim_param) in PLACEHOLDERS - {""}
        else sizes.get(text_of(dim.dim_param), size_of(dim))
        for dim in _dims(info)
    )  # fmt: skip


def _lacks_shape(info: onnx.ValueInfoProto) -> bool:
    tensor = info.type.tensor_type
    return bool(tensor.elem_type) and not tensor.HasField("shape")


def _dims(info: onnx.ValueInfoProto) -> Sequence[onnx.TensorShapeProto.Dimension]:
    return info.type.tensor_type.shape.dim


def _is_plain(size: Size) -> bool:
    """Return whether a dimension can be declared as that: a number, or a name of the model."""
    return isinstance(size, int) or _name(size) is not None


def _name(size: Size) -> str | None:
    name = name_of(size)
    return None if isinstance(name, Atom) else name


def _set(dim: onnx.TensorShapeProto.Dimension, size: Size) -> None:
    name = _name(size)
    if isinstance(size, int):
        dim.dim_value = size
    elif name is not None:
        set_text(dim, "dim_param", name)


__all__ = ["forget_cut_dimensions", "name_dimensions", "shapes_of_others"]
