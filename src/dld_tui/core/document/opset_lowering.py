"""An older version of the ai.onnx operators, for what onnx's version converter has no adapter for.

Most operators of a newer version take what an older one took, and only more types or another
attribute with a default. So a call that the older version takes as it is stays; what it does not
know is written in other operators, or its constants as attributes; operators that are not there yet
are replaced by the operators that define them. Everything is lowered, or nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import onnx
import onnx.inliner
from onnx import AttributeProto, TensorProto, defs, helper, numpy_helper

from dld_tui.core.document.locations import Body, bodies
from dld_tui.core.document.proto_text import text_of
from dld_tui.core.text import clip, visible

_DEFAULT = ("", "ai.onnx")
_OLDEST = 7
"""Before it, operators broadcast by attributes."""
_MEANING: dict[str, tuple[int, ...]] = {
    "Softmax": (13,), "LogSoftmax": (13,), "Hardmax": (13,), "Resize": (11,), "Upsample": (9,),
    "QuantizeLinear": (13, 21), "DequantizeLinear": (13, 21), "BatchNormalization": (9,),
    "Dropout": (12,), "AveragePool": (19,), "GroupNormalization": (21,), "RoiAlign": (16,),
    "NonMaxSuppression": (11,), "Attention": (24,), "Pad": (11,), "GridSample": (20,),
    "Loop": (11,), "Scan": (9,), "TopK": (10,), "OneHot": (11,), "Gemm": (7,), "LSTM": (7,),
}  # fmt: skip
"""Versions in which the same call began to mean something else."""
_AXES = {
    "Squeeze": 13, "Unsqueeze": 13, "ReduceSum": 13,
    **{
        f"Reduce{name}": 18
        for name in (
            "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare"
        )
    },
}  # fmt: skip
"""The version in which axes became an input."""


@dataclass
class Lowered:
    """A model in an older version."""

    model: onnx.ModelProto
    changed: Counter[str] = field(default_factory=Counter)
    added: Counter[str] = field(default_factory=Counter)
    problem: str | None = None
    """What stands in the way, in one line; the model is of no use then."""


def lower(model: onnx.ModelProto, version: int) -> Lowered:
    """Return a copy of a model in an older version of the ai.onnx operators.

    Args:
        model: The model, functions included; payloads may be cut out of it.
        version: The version to write it in.
    """
    found = Lowered(onnx.ModelProto())
    found.model.CopyFrom(model)
    if version < _OLDEST:
        found.problem = f"operators of opset {version} work in another way"
        return found
    problem = _without_newer(found, version)
    work = _Lowering(found, version)
    for _, body in bodies(found.model):
        if problem is None:
            problem = work.body(body)
    found.problem = problem
    for imports in (
        found.model.opset_import,
        *(function.opset_import for function in found.model.functions),
    ):
        for entry in imports:
            if entry.domain in _DEFAULT:
                entry.version = version
    return found


def _schema(op_type: str, version: int) -> defs.OpSchema | None:
    try:
        return defs.get_schema(op_type, version, "")
    except defs.SchemaError:
        return None


def _without_newer(found: Lowered, version: int) -> str | None:
    """Replace operators that are not there yet by what defines them; return what cannot be."""
    newer: dict[str, str] = {}
    for _, body in bodies(found.model):
        for node in body.node:
            op_type = text_of(node.op_type)
            if node.domain in _DEFAULT and _schema(op_type, version) is None:
                newer.setdefault(op_type, _title(node))
    if not newer:
        return None
    before = [text_of(node.op_type) for node in found.model.graph.node]
    for function in found.model.functions:
        _expand(function, list(newer))
    if any(text_of(n.op_type) in newer for f in found.model.functions for n in f.node):
        # Types are known in the place of the calls only, and some operators need them.
        found.model.CopyFrom(onnx.inliner.inline_local_functions(found.model))
    for place, body in bodies(found.model):
        if place and any(text_of(node.op_type) in newer for node in body.node):
            op_type = next(text_of(n.op_type) for n in body.node if text_of(n.op_type) in newer)
            return f"{op_type} does not exist in opset {version}{newer[op_type]}"
    try:
        flat = onnx.inliner.inline_selected_functions(
            _typed(found.model), [("", op_type) for op_type in newer], inline_schema_functions=True
        )
    # The seam: the inliner is native code that refuses what is wrong in its own ways.
    except Exception as error:  # noqa: BLE001
        return f"{', '.join(newer)} cannot be replaced: {clip(visible(str(error)), 200)}"
    left = {text_of(node.op_type) for node in flat.graph.node} & set(newer)
    if left:
        op_type = sorted(left)[0]
        return f"{op_type} does not exist in opset {version}{newer[op_type]}"
    known = {info.name for info in found.model.graph.value_info}
    kept = [info for info in flat.graph.value_info if info.name in known]
    copies = [onnx.ValueInfoProto.FromString(info.SerializeToString()) for info in kept]
    del flat.graph.value_info[:]
    flat.graph.value_info.extend(copies)
    after = Counter(text_of(node.op_type) for node in flat.graph.node)
    found.added.update(after - Counter(before))
    found.model.CopyFrom(flat)
    return None


def _typed(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy that says the types of all values, as definitions of operators need."""
    try:
        typed = onnx.shape_inference.infer_shapes(model, data_prop=True)
    # The seam: C++ errors of several classes; without types fewer operators are replaced.
    except Exception:  # noqa: BLE001
        typed = onnx.ModelProto()
        typed.CopyFrom(model)
    known = {info.name for info in (*typed.graph.value_info, *typed.graph.input)}
    for tensor in typed.graph.initializer:
        if tensor.name not in known:
            typed.graph.value_info.append(
                helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
            )
    return typed


def _expand(function: onnx.FunctionProto, newer: list[str]) -> None:
    """Replace such operators in the body of a function, where that needs no types."""
    model = onnx.ModelProto(ir_version=10, opset_import=function.opset_import)
    model.graph.name = "function"
    for name in function.input:
        model.graph.input.add(name=name)
    for name in function.output:
        model.graph.output.add(name=name)
    model.graph.node.extend(function.node)
    names = [("", op_type) for op_type in newer]
    try:
        flat = onnx.inliner.inline_selected_functions(model, names, inline_schema_functions=True)
    # The seam: as below; what is left is told.
    except Exception:  # noqa: BLE001
        return
    del function.node[:]
    function.node.extend(flat.graph.node)


def _title(node: onnx.NodeProto) -> str:
    name = text_of(node.name) or f">{text_of(next(iter(node.output), ''))}"
    return f": node {clip(visible(name), 120, keep='middle')}"


class _Lowering:
    def __init__(self, found: Lowered, version: int) -> None:
        self._found = found
        self._version = version
        self._before = next(
            (int(e.version) for e in found.model.opset_import if e.domain in _DEFAULT), 0
        )
        self._constants: dict[str, TensorProto] = {}
        self._count = 0
        for _, body in bodies(found.model):
            if isinstance(body, onnx.GraphProto):
                given = {info.name for info in body.input}
                self._constants |= {t.name: t for t in body.initializer if t.name not in given}
            for node in body.node:
                for attribute in node.attribute:
                    if node.op_type == "Constant" and attribute.name == "value":
                        self._constants[node.output[0]] = attribute.t

    def body(self, body: Body) -> str | None:
        """Lower the nodes of a graph or function; return what stands in the way."""
        made: list[onnx.NodeProto] = []
        for node in body.node:
            if node.domain not in _DEFAULT:
                made.append(node)
                continue
            problem = self._node(node, made)
            if problem is not None:
                return problem + _title(node)
        copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in made]
        del body.node[:]
        body.node.extend(copies)
        return None

    def _node(self, node: onnx.NodeProto, made: list[onnx.NodeProto]) -> str | None:
        op_type = text_of(node.op_type)
        old, new = _schema(op_type, self._version), _schema(op_type, self._before)
        if old is None:
            return f"{op_type} does not exist in opset {self._version}"
        made.append(node)
        if new is None or old.since_version == new.since_version:
            return None
        for since in _MEANING.get(op_type, ()):
            if old.since_version < since <= new.since_version:
                return f"{op_type} means something else before opset {since}"
        before = node.SerializeToString()
        rule = _RULES.get(op_type) or (_axes if op_type in _AXES else None)
        if rule is not None:
            problem = rule(self, node, made)
            if problem is not None:
                return problem
        _drop_defaults(node, old, new)
        if node.SerializeToString() != before:
            self._found.changed[op_type] += 1
        return _refused(node, old, self._version)

    def constant(self, name: str) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]] | None:
        """Return the elements of a constant, None for other values."""
        tensor = self._constants.get(name)
        if tensor is None:
            return None
        try:
            return np.asarray(numpy_helper.to_array(tensor))
        except (ValueError, TypeError):
            return None

    def new(self, node: onnx.NodeProto, what: str) -> str:
        """Return a name that no value has."""
        self._count += 1
        return f"opset{self._version}_{text_of(node.output[0])}_{what}_{self._count}"

    @property
    def version(self) -> int:
        """The version to lower to."""
        return self._version

    def add(self, node: onnx.NodeProto, made: list[onnx.NodeProto], at: int) -> None:
        """Add a node before that of position `at` from the end."""
        made.insert(len(made) - at, node)
        self._found.added[text_of(node.op_type)] += 1


def _drop_defaults(node: onnx.NodeProto, old: defs.OpSchema, new: defs.OpSchema) -> None:
    """Drop attributes that the older version lacks, where they say what holds without them."""
    for attribute in list(node.attribute):
        name = text_of(attribute.name)
        if name in old.attributes or name not in new.attributes:
            continue
        default = new.attributes[name].default_value
        same = helper.get_attribute_value(attribute) == helper.get_attribute_value(default) if (
            default.type != AttributeProto.UNDEFINED
        ) else False  # fmt: skip
        if same:
            node.attribute.remove(attribute)


def _refused(node: onnx.NodeProto, old: defs.OpSchema, version: int) -> str | None:
    """Return why the older version does not take a call."""
    op_type = text_of(node.op_type)
    for attribute in node.attribute:
        if text_of(attribute.name) not in old.attributes:
            return (
                f"{op_type} has no attribute {visible(text_of(attribute.name))} in opset {version}"
            )
    for what, names, least, most in (
        ("inputs", node.input, old.min_input, old.max_input),
        ("outputs", node.output, old.min_output, old.max_output),
    ):
        count = len(names)
        while count and not names[count - 1]:
            count -= 1
        if not least <= count <= most:
            return f"{op_type} takes no {count} {what} in opset {version}"
    return None


# --- adapters -----------------------------------------------------------------------------------


def _shape(work: _Lowering, node: onnx.NodeProto, made: list[onnx.NodeProto]) -> str | None:
    """Write a part of a shape as the whole shape and a Slice of it."""
    bounds = {text_of(a.name): int(a.i) for a in node.attribute}
    if not bounds or work.version >= 15:
        return None
    start, end = bounds.get("start", 0), bounds.get("end", 2**63 - 1)
    del node.attribute[:]
    if start == 0 and "end" not in bounds:
        return None
    if work.version < 10:
        return "Shape with start and end needs Slice of opset 10"
    whole = work.new(node, "shape")
    names = []
    for what, value in (("start", start), ("end", end)):
        tensor = numpy_helper.from_array(np.array([value], np.int64))
        names.append(work.new(node, what))
        work.add(helper.make_node("Constant", [], [names[-1]], value=tensor), made, 1)
    part = helper.make_node("Slice", [whole, *names], [node.output[0]])
    node.output[0] = whole
    work.add(part, made, 0)
    return None


def _axes(work: _Lowering, node: onnx.NodeProto, made: list[onnx.NodeProto]) -> str | None:
    """Write axes that are a constant input as an attribute."""
    del made
    op_type = text_of(node.op_type)
    since = _AXES[op_type]
    if work.version >= since:
        return None
    keep_all = next((a.i for a in node.attribute if a.name == "noop_with_empty_axes"), 0)
    for attribute in [a for a in node.attribute if a.name == "noop_with_empty_axes"]:
        node.attribute.remove(attribute)
    if len(node.input) < 2 or not node.input[1]:
        if keep_all:
            return f"{op_type} that reduces nothing cannot be written before opset {since}"
        del node.input[1:]
        return None
    axes = work.constant(text_of(node.input[1]))
    if axes is None:
        return f"the axes of {op_type} are no constant: before opset {since} they are an attribute"
    if axes.size == 0 and keep_all:
        return f"{op_type} that reduces nothing cannot be written before opset {since}"
    del node.input[1:]
    if axes.size:
        node.attribute.append(helper.make_attribute("axes", [int(axis) for axis in axes.ravel()]))
    return None


def _reshape(work: _Lowering, node: onnx.NodeProto, made: list[onnx.NodeProto]) -> str | None:
    """Leave out allowzero where no 0 is written in the shape: computed sizes are of real data."""
    flag = next((a for a in node.attribute if a.name == "allowzero"), None)
    if flag is None or work.version >= 14:
        return None
    shape = text_of(node.input[1]) if len(node.input) > 1 else ""
    parts = [shape]
    for other in made:
        if other.op_type == "Concat" and shape in other.output:
            parts = [text_of(name) for name in other.input]
    values = [value for name in parts if (value := work.constant(name)) is not None]
    if flag.i and (
        (not values and parts == [shape]) or any((value == 0).any() for value in values)
    ):
        return "Reshape to a size of 0 (allowzero) cannot be written before opset 14"
    node.attribute.remove(flag)
    return None


def _split(work: _Lowering, node: onnx.NodeProto, made: list[onnx.NodeProto]) -> str | None:
    """Write the sizes of parts as an attribute; equal parts need none."""
    del made
    for attribute in [a for a in node.attribute if a.name == "num_outputs"]:
        if work.version < 18:  # equal parts, the last one smaller: as far as can be told, equal
            return "Split into a number of parts has sizes that are not known here"
        del attribute
    if work.version >= 13 or len(node.input) < 2 or not node.input[1]:
        return None
    sizes = work.constant(text_of(node.input[1]))
    if sizes is None:
        return "the sizes of Split are no constant: before opset 13 they are an attribute"
    del node.input[1:]
    node.attribute.append(helper.make_attribute("split", [int(size) for size in sizes.ravel()]))
    return None


def _constant(work: _Lowering, node: onnx.NodeProto, made: list[onnx.NodeProto]) -> str | None:
    """Write a number, or a list of numbers, as a tensor."""
    del made
    if work.version >= 12 or len(node.attribute) != 1 or node.attribute[0].name == "value":
        return None
    name = text_of(node.attribute[0].name)
    value = helper.get_attribute_value(node.attribute[0])
    if "string" in name or name == "sparse_value":
        return f"Constant has no {name} before opset 12"
    kind = np.float32 if "float" in name else np.int64
    tensor = numpy_helper.from_array(np.asarray(value, kind))
    node.attribute[0].CopyFrom(helper.make_attribute("value", tensor))
    return None


_RULES: dict[str, Callable[[_Lowering, onnx.NodeProto, list[onnx.NodeProto]], str | None]] = {
    "Shape": _shape,
    "Split": _split,
    "Reshape": _reshape,
    "Constant": _constant,
}
