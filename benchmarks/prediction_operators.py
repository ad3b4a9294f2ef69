"""Mutations of the one-operator models of the onnx package: attributes, values, shapes, types."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks.prediction_models import MUTATIONS, Case, Feeds, backend_cases, wanted_inputs

_MOST_PARAMETERS = {"i": 16, "u": 16, "f": 1, "b": 1}
"""Elements of inputs that may become weights, by their kind: shapes, axes, indices, thresholds."""
_SHARE_OF_WEIGHTS = 0.9
_MOST_ELEMENTS = 10_000_000
_TYPES = (np.float32, np.float64, np.float16, np.int32, np.int64, np.bool_, np.uint8, np.int8)
_VALUES = (-1, 0, 1, 2, 3, 7, -2, -100, 1000)
_LARGE_VALUE: dict[int, int] = {TensorProto.INT32: 1 << 20, TensorProto.INT64: 1 << 40}


def operator_mutations(runs: Callable[[Case], bool], count: int, seed: int) -> Iterator[Case]:
    """Yield mutated one-operator models: each operator equally often, the same for the same seed.

    Only models that run are mutated. Parameters, such as axes and thresholds, are made weights in
    most, so that it can be foreseen what depends on them; where they are left as inputs no error
    is.
    """
    bases: dict[str, list[Case]] = {}
    for case in backend_cases():
        if case.group == "onnx backend" and case.feeds is not None:
            model = onnx.ModelProto.FromString(case.model)
            if model.graph.node and "training" not in model.graph.node[0].domain:
                bases.setdefault(model.graph.node[0].op_type, []).append(case)
    operators = sorted(bases)
    usable: dict[str, bool] = {}
    done = attempt = 0
    while done < count:
        attempt += 1
        generator = random.Random(f"{seed} {attempt}")
        base = _with_weights(
            generator.choice(bases[operators[attempt % len(operators)]]), generator
        )
        if base.key not in usable:
            usable[base.key] = runs(base)
        mutated = _mutated(base, generator, attempt) if usable[base.key] else None
        if mutated is not None:
            yield mutated
            done += 1


def _with_weights(case: Case, generator: random.Random) -> Case:
    """Return a model whose parameters are weights, of an IR version that ONNX Runtime takes."""
    model = onnx.ModelProto.FromString(case.model)
    model.ir_version = min(model.ir_version, 12)
    feeds = dict(case.feeds or {})
    for info in list(model.graph.input)[1:]:
        array = feeds.get(info.name)
        if (
            array is not None
            and array.ndim <= 1
            and array.size <= _MOST_PARAMETERS.get(array.dtype.kind, -1)
            and generator.random() < _SHARE_OF_WEIGHTS
        ):
            model.graph.initializer.append(numpy_helper.from_array(array, info.name))
            model.graph.input.remove(info)
            del feeds[info.name]
    return replace(case, model=model.SerializeToString(), feeds=feeds)


def _mutated(base: Case, generator: random.Random, attempt: int) -> Case | None:
    model = onnx.ModelProto.FromString(base.model)
    feeds: Feeds = dict(base.feeds or {})
    kind = generator.choice(sorted(_KINDS))
    try:
        what = _KINDS[kind](model, generator, feeds)
    except (IndexError, ValueError):
        return None  # nothing of the kind is in the model
    data = model.SerializeToString()
    if what is None or data == base.model:
        return None
    wanted = {info.name for info in wanted_inputs(model)}
    given = {name: array for name, array in feeds.items() if name in wanted}
    first = list(onnx.ModelProto.FromString(base.model).graph.node[0].input)[:1]
    known = all(
        name in first or (array.dtype.kind not in "iu" and array.size > 1)
        for name, array in given.items()
    )
    return Case(
        f"{base.name}#{attempt} {kind}: {what}", f"operator {kind}", data,
        feeds=given if given.keys() == wanted else None, known=known,
    )  # fmt: skip


def _value(model: onnx.ModelProto, generator: random.Random, feeds: Feeds) -> str | None:
    """Change the values of an integer weight, or how many there are."""
    del feeds
    tensor = generator.choice([t for t in model.graph.initializer if t.data_type in _LARGE_VALUE])
    array = numpy_helper.to_array(tensor).copy()
    way = generator.randrange(4)
    if way == 0 and array.ndim:
        array = array[:-1]
    elif way == 1 and array.ndim:
        array = np.concatenate([array, array[-1:] if array.size else np.ones(1, array.dtype)])
    elif array.size:
        flat = array.reshape(-1)
        place = generator.randrange(flat.size)
        flat[place] = generator.choice([*_VALUES, _LARGE_VALUE[tensor.data_type]])
        array = flat.reshape(array.shape)
    else:
        return None
    tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(array), tensor.name))
    return f"{tensor.name} = {array.tolist()}"


def _fed_input(
    model: onnx.ModelProto, generator: random.Random, feeds: Feeds
) -> tuple[onnx.ValueInfoProto, npt.NDArray[np.generic]]:
    info = generator.choice([info for info in wanted_inputs(model) if info.name in feeds])
    return info, feeds[info.name]


def _shape(model: onnx.ModelProto, generator: random.Random, feeds: Feeds) -> str | None:
    """Change the shape of an input; in half of them nothing is declared of outputs."""
    info, array = _fed_input(model, generator, feeds)
    shape = list(array.shape)
    way = generator.randrange(5)
    if way == 0:
        shape.insert(generator.randrange(len(shape) + 1), generator.choice([1, 2]))
    elif way == 1 and shape:
        del shape[generator.randrange(len(shape))]
    elif shape:
        axis = generator.randrange(len(shape))
        size = shape[axis]
        shape[axis] = generator.choice([0, 1, size + 1, max(size - 1, 0), size * 2])
    count = math.prod(shape)
    if count > _MOST_ELEMENTS:
        return None
    given = np.resize(array, shape) if array.size and count else np.zeros(shape, array.dtype)
    feeds[info.name] = given.astype(array.dtype)
    del info.type.tensor_type.shape.dim[:]
    for size in shape:
        info.type.tensor_type.shape.dim.add().dim_value = size
    if generator.random() < 0.5:
        for output in model.graph.output:
            if output.type.HasField("tensor_type"):
                output.type.tensor_type.ClearField("shape")
    return f"{info.name} {array.shape} -> {tuple(shape)}"


def _type(model: onnx.ModelProto, generator: random.Random, feeds: Feeds) -> str | None:
    """Change the type of an input; in half of them that of an output, too."""
    info, array = _fed_input(model, generator, feeds)
    new: np.dtype[np.generic] = np.dtype(generator.choice(_TYPES))
    if array.dtype.kind not in "fiub" or array.dtype == new:
        return None
    with np.errstate(all="ignore"):
        feeds[info.name] = array.astype(new)
    info.type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(new)
    output = generator.choice(model.graph.output)
    if generator.random() < 0.5 and output.type.HasField("tensor_type"):
        output.type.tensor_type.elem_type = info.type.tensor_type.elem_type
    return f"{info.name} {array.dtype} -> {new}"


def _of_models(kind: str) -> Callable[[onnx.ModelProto, random.Random, Feeds], str | None]:
    return lambda model, generator, feeds: MUTATIONS[kind](model, generator)


_KINDS: dict[str, Callable[[onnx.ModelProto, random.Random, Feeds], str | None]] = {
    "value": _value,
    "shape": _shape,
    "type": _type,
    **{kind: _of_models(kind) for kind in ("attribute", "missing", "opset", "rank")},
}
