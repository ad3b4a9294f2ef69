"""The models that predictions are measured with: one-operator models, files, mutated models."""

from __future__ import annotations

import copy
import hashlib
import math
import random
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
from onnx import AttributeProto, TensorProto, helper, numpy_helper

Feeds = dict[str, npt.NDArray[np.generic]]
_LARGEST_WEIGHTS = 8 << 20
"""Bytes of a file that is mutated: two thousand mutations of a large one say no more."""
_USUAL_IR = 12
_LARGEST_INPUT = 1e8
_SIZES = (64, 16, 1, 256, 512, 512 + 64, 1024)
"""What free dimensions are tried with, until a model runs."""


@dataclass(frozen=True)
class Case:
    """A model, and what to run it with."""

    name: str
    group: str
    model: bytes
    home: Path | None = None
    """The folder of its external data."""
    feeds: Feeds | None = None
    """None where shapes are not known: the model is loaded and not run."""
    known: bool = True
    """Whether the model says all shapes, so that an error of the run can be predicted."""

    @property
    def key(self) -> str:
        """What tells its verdict: bytes and inputs."""
        digest = hashlib.sha256(self.model + str(self.home or "").encode())
        for name, array in sorted((self.feeds or {}).items()):
            digest.update(f"{name} {array.dtype} {array.shape}".encode())
            digest.update(
                str(array.tolist()).encode() if array.dtype == object else array.tobytes()
            )
        digest.update(str(self.feeds is None).encode())
        return digest.hexdigest()


def backend_cases() -> Iterator[Case]:
    """Yield the one-operator models of the onnx package, with the inputs that come with them."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tests = collect_testcases(None)
    for test in tests:
        model = test.model
        assert model is not None
        feeds: Feeds | None = {}
        names = [info.name for info in model.graph.input]
        values = test.data_sets[0][0] if test.data_sets else []
        for name, given in zip(names, values, strict=False):
            value: object = given
            if not isinstance(value, np.ndarray | np.generic):
                feeds = None  # sequences, optionals and maps
                break
            assert feeds is not None
            feeds[name] = np.asarray(value)
        yield Case(test.name, "onnx backend", model.SerializeToString(), feeds=feeds)
        if model.ir_version > _USUAL_IR:  # which ONNX Runtime refuses, whatever is in the model
            model.ir_version = _USUAL_IR
            yield Case(test.name, "backend, older IR", model.SerializeToString(), feeds=feeds)


def file_cases(folder: Path, group: str) -> Iterator[Case]:
    """Yield the models of a folder; they are run where all shapes are known."""
    for path in sorted(folder.rglob("[!.]*.onnx")):
        try:
            data = path.read_bytes()
            proto = onnx.ModelProto.FromString(data)
        except (OSError, ValueError, Exception):  # noqa: BLE001 - hostile files are cases too
            proto = onnx.ModelProto()
            if not path.is_file():
                continue
            data = path.read_bytes()
        name = str(path.relative_to(folder))
        yield Case(name, group, data, path.parent, static_feeds(proto))


def static_feeds(model: onnx.ModelProto) -> Feeds | None:
    """Return random inputs, None where a shape or a type is not known."""
    feeds: Feeds = {}
    for info in wanted_inputs(model):
        dims = _dims(info)
        if (
            dims is None
            or any(dim is None for dim in dims)
            or math.prod(map(float, (dim or 0 for dim in dims))) > _LARGEST_INPUT
        ):
            return None
        array = random_array(info, [int(dim or 0) for dim in dims])
        if array is None:
            return None
        feeds[info.name] = array
    return feeds


def wanted_inputs(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    """Return the inputs that must be given."""
    weights = {tensor.name for tensor in model.graph.initializer}
    return [info for info in model.graph.input if info.name not in weights]


def _dims(info: onnx.ValueInfoProto) -> list[int | None] | None:
    kind = info.type.tensor_type
    if info.type.WhichOneof("value") != "tensor_type" or not kind.HasField("shape"):
        return None
    return [
        d.dim_value if d.HasField("dim_value") and d.dim_value >= 0 else None
        for d in kind.shape.dim
    ]


def random_array(info: onnx.ValueInfoProto, shape: list[int]) -> npt.NDArray[np.generic] | None:
    """Return an array for an input that depends on its name, type and shape only."""
    seed = hashlib.sha256(f"{info.name} {shape}".encode()).digest()
    generator = np.random.default_rng(int.from_bytes(seed[:4], "little"))
    try:
        dtype = helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
    except (KeyError, ValueError):
        return None
    if dtype.kind == "O":
        return np.full(shape, "a", dtype=object)
    if dtype.kind in "iub":
        return generator.integers(0, 2, size=shape).astype(dtype)
    return generator.random(shape).astype(dtype)


@dataclass
class Base:
    """A model that runs, and the sizes of its free dimensions that it runs with."""

    name: str
    model: onnx.ModelProto
    size: int

    @property
    def is_static(self) -> bool:
        """Whether it says all its shapes."""
        return all(
            dims is not None and None not in dims for dims in map(_dims, wanted_inputs(self.model))
        )

    def feeds(self, model: onnx.ModelProto) -> Feeds | None:
        """Return inputs for a mutation of it."""
        feeds: Feeds = {}
        usual = {info.name: _dims(info) for info in self.model.graph.input}
        for info in wanted_inputs(model):
            dims = _dims(info)
            known = usual.get(info.name) or dims
            if dims is None or known is None or len(dims) != len(known):
                if dims is None or None in dims:
                    return None
                known = dims
            dims = [a if a is not None else b for a, b in zip(dims, known, strict=True)]
            shape = [
                dim if dim is not None else 1 if index == 0 else self.size
                for index, dim in enumerate(dims)
            ]
            if math.prod(map(float, shape)) > _LARGEST_INPUT:
                return None
            array = random_array(info, shape)
            if array is None:
                return None
            feeds[info.name] = array
        return feeds


def fix_dimensions(base: Base, model: onnx.ModelProto) -> None:
    """Give a copy of a model the sizes that it runs with."""
    for info in wanted_inputs(model):
        for index, dim in enumerate(info.type.tensor_type.shape.dim):
            if not dim.HasField("dim_value") or dim.dim_value < 0:
                dim.dim_value = 1 if index == 0 else base.size


def bases(folders: list[Path], runs: Callable[[Case], bool]) -> list[Base]:
    """Return the models of folders that run, with the sizes that they run with."""
    found = []
    for folder in folders:
        for path in sorted(folder.glob("[!.]*.onnx")):
            if path.stat().st_size > _LARGEST_WEIGHTS:
                continue
            model = onnx.load(path)
            for size in _SIZES:
                base = Base(path.stem, model, size)
                feeds = base.feeds(model)
                data = model.SerializeToString()
                if feeds is not None and runs(Case(path.stem, "base", data, feeds=feeds)):
                    found.append(base)
                    break
    return found


def mutations(models: list[Base], count: int, seed: int) -> Iterator[Case]:
    """Yield mutated models: each kind and each model equally often, the same for the same seed.

    Free dimensions get sizes in every other one; of the rest no error of a run can be foreseen.
    """
    kinds = list(MUTATIONS)
    done = 0
    attempt = 0
    while done < count and models:
        generator = random.Random(f"{seed} {attempt}")
        base = models[attempt % len(models)]
        kind = kinds[attempt // len(models) % len(kinds)]
        attempt += 1
        model = copy.deepcopy(base.model)
        known = attempt // len(models) // len(kinds) % 2 == 0
        if known:
            fix_dimensions(base, model)
        before = model.SerializeToString()
        what = MUTATIONS[kind](model, generator)
        data = model.SerializeToString()
        if what is None or data == before:
            continue
        yield Case(
            f"{base.name}#{attempt} {kind}: {what}", f"mutation {kind}", data,
            feeds=base.feeds(model), known=known or base.is_static,
        )  # fmt: skip
        done += 1


def _all_nodes(graph: onnx.GraphProto) -> list[onnx.NodeProto]:
    nodes = []
    for node in graph.node:
        nodes.append(node)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                nodes += _all_nodes(attribute.g)
    return nodes


def _attribute(model: onnx.ModelProto, random: random.Random) -> str | None:
    plain = (AttributeProto.INT, AttributeProto.INTS, AttributeProto.FLOAT, AttributeProto.STRING)
    places = [
        (node, attribute)
        for node in _all_nodes(model.graph)
        for attribute in node.attribute
        if attribute.type in plain
    ]
    # Each pair of operator and attribute equally often.
    kinds = sorted({(node.op_type, attribute.name) for node, attribute in places})
    if not kinds:
        return None
    kind = random.choice(kinds)
    node, attribute = random.choice([p for p in places if (p[0].op_type, p[1].name) == kind])
    way = random.randrange(8)
    text = f"{node.op_type}.{attribute.name}"
    if way == 0:
        node.attribute.remove(attribute)
        return f"{text} removed"
    if way == 1:
        attribute.CopyFrom(helper.make_attribute(attribute.name, "FOO"))
        return f"{text} = 'FOO'"
    if way == 2:
        node.attribute.append(helper.make_attribute("foo", 1))
        return f"{node.op_type}.foo added"
    if attribute.type == AttributeProto.INT:
        attribute.i = random.choice([-1, 0, attribute.i + 1, 2, 7, -100, 1 << 40])
    elif attribute.type == AttributeProto.FLOAT:
        attribute.f = random.choice([-1.0, 0.0, float("nan"), 1e30])
    elif attribute.type == AttributeProto.STRING:
        attribute.s = random.choice([b"FOO", b"", attribute.s.lower(), attribute.s + b"X"])
    else:
        values = list(attribute.ints)
        change = random.randrange(4)
        if change == 0 and values:
            values.pop()
        elif change == 1:
            values.append(1)
        elif values:
            values[random.randrange(len(values))] = random.choice([-1, 0, 2, 3, 100, -5])
        attribute.CopyFrom(helper.make_attribute(attribute.name, values, attr_type=attribute.type))
    return f"{text} = {onnx.helper.get_attribute_value(attribute)!r}"[:80]


def _weight(model: onnx.ModelProto, random: random.Random, least: int = 1) -> TensorProto | None:
    tensors = list(model.graph.initializer)
    for node in model.graph.node:
        tensors += [a.t for a in node.attribute if node.op_type == "Constant" and a.HasField("t")]
    tensors = [t for t in tensors if len(t.dims) >= least and t.data_type != TensorProto.STRING]
    return random.choice(tensors) if tensors else None


def _set(tensor: TensorProto, array: npt.NDArray[np.generic]) -> None:
    name = tensor.name
    tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(array), name))


def _dims_changed(model: onnx.ModelProto, random: random.Random) -> str | None:
    tensor = _weight(model, random)
    if tensor is None:
        return None
    array = numpy_helper.to_array(tensor)
    way = random.randrange(3)
    if way == 0 and array.ndim >= 2:
        order = list(range(array.ndim))
        first, second = random.sample(order, 2)
        shape = list(array.shape)
        shape[first], shape[second] = shape[second], shape[first]
        _set(tensor, array.reshape(shape))
    elif way == 1:
        tensor.dims[random.randrange(len(tensor.dims))] += random.choice([-1, 1])
        return f"{tensor.name[:40]} dims {list(tensor.dims)}, data kept"
    else:
        axis = random.randrange(array.ndim)
        _set(tensor, np.concatenate([array, array], axis))
    return f"{tensor.name[:40]} {array.shape} -> {tuple(tensor.dims)}"


def _channels(model: onnx.ModelProto, random: random.Random) -> str | None:
    tensor = _weight(model, random)
    if tensor is None:
        return None
    array = numpy_helper.to_array(tensor)
    axis = random.choice([0, min(1, array.ndim - 1), array.ndim - 1])
    if array.shape[axis] < 2 or random.random() < 0.5:
        changed = np.concatenate([array, np.take(array, [0], axis)], axis) if array.size else array
    else:
        changed = np.take(array, range(array.shape[axis] - 1), axis)
    _set(tensor, changed)
    return f"{tensor.name[:40]} {array.shape} -> {changed.shape}"


def _rank(model: onnx.ModelProto, random: random.Random) -> str | None:
    tensor = _weight(model, random, 0)
    if tensor is None:
        return None
    array = numpy_helper.to_array(tensor)
    way = random.randrange(3)
    if way == 0:
        changed = np.expand_dims(array, random.randrange(array.ndim + 1))
    elif way == 1:
        changed = array.reshape(-1)
    else:
        changed = array.reshape((-1, *array.shape[2:])) if array.ndim >= 2 else array[None]
    _set(tensor, changed)
    return f"{tensor.name[:40]} {array.shape} -> {changed.shape}"


def _declared(model: onnx.ModelProto, random: random.Random) -> str | None:
    lists = [("input", list(model.graph.input)), ("output", list(model.graph.output))]
    lists.append(("value_info", list(model.graph.value_info)))
    which, infos = random.choice([entry for entry in lists if entry[1]])
    info = random.choice(infos)
    kind = info.type.tensor_type
    if info.type.WhichOneof("value") != "tensor_type":
        return None
    dims = kind.shape.dim
    way = random.randrange(4)
    if way == 0 and dims:
        dim = random.choice(dims)
        dim.dim_value = max(dim.dim_value, 1) + random.choice([1, -1, 5])
    elif way == 1:
        dims.add().dim_value = 1
    elif way == 2 and dims:
        del dims[-1]
    elif dims:
        random.choice(dims).dim_param = "free"
    return f"{which} {info.name[:40]} declared {str(_dims(info))[:60]}"


def _types(model: onnx.ModelProto, random: random.Random) -> str | None:
    kinds = [TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.INT32]
    kinds += [TensorProto.INT64, TensorProto.BOOL, TensorProto.UINT8, TensorProto.BFLOAT16]
    way = random.randrange(3)
    wanted = random.choice(kinds)
    shown = TensorProto.DataType.Name(wanted)
    if way == 0:
        tensor = _weight(model, random, 0)
        if tensor is None:
            return None
        array = numpy_helper.to_array(tensor)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _set(tensor, array.astype(helper.tensor_dtype_to_np_dtype(wanted)))
        return f"weight {tensor.name[:40]} {shown}"
    if way == 1:
        info = random.choice(
            [*model.graph.input, *model.graph.output, *model.graph.value_info[:50]]
        )
        if info.type.WhichOneof("value") != "tensor_type":
            return None
        info.type.tensor_type.elem_type = wanted
        return f"declared {info.name[:40]} {shown}"
    casts = [node for node in _all_nodes(model.graph) if node.op_type == "Cast"]
    if not casts:
        return None
    node = random.choice(casts)
    node.attribute[0].i = wanted
    return f"Cast {node.name[:40]} to {shown}"


def _missing(model: onnx.ModelProto, random: random.Random) -> str | None:
    graph = model.graph
    way = random.randrange(6)
    if way == 0 and graph.initializer:
        index = random.randrange(len(graph.initializer))
        name = graph.initializer[index].name
        del graph.initializer[index]
        for info in [info for info in graph.input if info.name == name]:
            graph.input.remove(info)  # as an input its values would have to be known
        return f"initializer {name[:40]} removed"
    if way == 1 and graph.input:
        index = random.randrange(len(graph.input))
        name = graph.input[index].name
        del graph.input[index]
        return f"input {name[:40]} removed"
    nodes = [node for node in _all_nodes(graph) if node.input]
    ops = sorted({node.op_type for node in nodes})
    op_type = random.choice(ops)
    node = random.choice([node for node in nodes if node.op_type == op_type])
    if way == 2:
        del node.input[-1]
        return f"{op_type}: last input removed"
    if way == 3:
        node.input[random.randrange(len(node.input))] = ""
        return f"{op_type}: an input left out"
    if way == 4:
        node.input.append(random.choice(list(node.input)) or "x")
        return f"{op_type}: an input too many"
    node.input[random.randrange(len(node.input))] = "nowhere"
    return f"{op_type}: an input from nowhere"


def _wiring(model: onnx.ModelProto, random: random.Random) -> str | None:
    nodes = list(model.graph.node)
    way = random.randrange(5)
    takers = [node for node in nodes if node.input]
    if not takers:
        return None
    op_type = random.choice(sorted({node.op_type for node in takers}))
    node = random.choice([node for node in takers if node.op_type == op_type])
    if way == 0:
        at = nodes.index(node)
        values = [name for other in nodes[:at] for name in other.output if name]
        values += [tensor.name for tensor in model.graph.initializer]
        if not values:
            return None
        node.input[random.randrange(len(node.input))] = random.choice(values)
        return f"{op_type}: an input is another value"
    if way == 1 and len(node.input) > 1:
        names = list(node.input)
        names.reverse()
        del node.input[:]
        node.input.extend(names)
        return f"{op_type}: inputs turned round"
    if way == 2:
        model.graph.node.remove(node)
        return f"{op_type} removed"
    if way == 3:
        copied = copy.deepcopy(node)
        model.graph.node.remove(node)
        model.graph.node.append(copied)
        return f"{op_type} moved to the end"
    values = [name for other in nodes for name in other.output if name]
    node.input[random.randrange(len(node.input))] = random.choice(values)
    return f"{op_type}: an input is any value"


def _opsets(model: onnx.ModelProto, random: random.Random) -> str | None:
    way = random.randrange(6)
    entry = random.choice(list(model.opset_import))
    if way == 0:
        model.opset_import.remove(entry)
        return f"import {entry.domain!r} removed"
    if way == 1:
        model.ir_version = random.choice([0, 1, 2, 3, 4, 10, 12, 13, 14, 99])
        return f"IR {model.ir_version}"
    entry.version = random.choice([1, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 17, 18, 19, 21, 23])
    return f"opset {entry.domain!r} {entry.version}"


def _names(model: onnx.ModelProto, random: random.Random) -> str | None:
    nodes = list(model.graph.node)
    way = random.randrange(7)
    node = random.choice(nodes)
    if way == 0:
        other = random.choice(nodes)
        if not node.name or other is node:
            return None
        other.name = node.name
        return "two nodes with one name"
    if way == 1:
        node.output[0] = node.output[0] + "_renamed"
        return f"{node.op_type}: output renamed"
    if way == 2:
        other = random.choice(nodes)
        if other is node:
            return None
        other.output[0] = node.output[0]
        return "two producers"
    if way == 3:
        node.op_type = random.choice([node.op_type.lower(), "Foo", node.op_type + "2"])
        return f"operator {node.op_type}"
    if way == 4:
        node.domain = random.choice(["foo", "ai.onnx.ml", "com.microsoft", "ai.onnx"])
        return f"{node.op_type} of {node.domain}"
    if way == 5:
        random.choice(list(model.graph.output)).name = "nowhere"
        return "output renamed"
    info = random.choice(list(model.graph.input))
    info.name += "_renamed"
    return "input renamed"


MUTATIONS: dict[str, Callable[[onnx.ModelProto, random.Random], str | None]] = {
    "attribute": _attribute,
    "dims": _dims_changed,
    "dtype": _types,
    "missing": _missing,
    "rank": _rank,
    "channels": _channels,
    "declared": _declared,
    "opset": _opsets,
    "names": _names,
    "wiring": _wiring,
}
