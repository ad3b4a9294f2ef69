"""Another version of the ai.onnx operators for a whole model, by onnx's version converter.

The converter rebuilds a model and loses what it does not know: local functions, the metadata of
nodes, sparse initializers, references to parameters of functions. So only its decisions are used:
every node gets a label, the model is converted, and the changed, new and removed nodes, found by
their labels, are merged into the original. Each function is converted separately. Payloads may be
cut out of the model.

The converter is native code that ends the process when it fails badly: call this in a child.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, defs, helper, numpy_helper

from dld_tui.core.document.locations import Body, Labels, bodies
from dld_tui.core.errors import ActivityError
from dld_tui.core.files.proto_fields import set_items, text_of
from dld_tui.core.operators import native
from dld_tui.core.operators.inlining import inline_local_functions, inline_operators
from dld_tui.core.text import clip, visible

_OLDEST = 7
"""Older operators broadcast by attributes."""
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
class LoweredModel:
    """A model in an older version."""

    model: onnx.ModelProto
    changed: Counter[str] = field(default_factory=Counter)
    added: Counter[str] = field(default_factory=Counter)
    problem: str | None = None
    """Why the model cannot be lowered, in one line; the copy is unusable then."""


def lower_opset(model: onnx.ModelProto, version: int) -> LoweredModel:
    """Return a copy of a model in an older version of the ai.onnx operators.

    Args:
        model: The model, functions included; payloads may be cut out of it.
        version: The version to write it in.
    """
    lowered = LoweredModel(onnx.ModelProto())
    lowered.model.CopyFrom(model)
    if version < _OLDEST:
        lowered.problem = (
            f"opset {version} is too old: operators before opset {_OLDEST} work differently"
        )
        return lowered
    if any(
        _newer_parameter(node, version) for _, body in bodies(lowered.model) for node in body.node
    ):  # its value is known only where the function is called
        lowered.model.CopyFrom(inline_local_functions(lowered.model))
    problem = _without_newer(lowered, version)
    work = _Downgrade(lowered, version)
    for _, body in bodies(lowered.model):
        if problem is None:
            problem = work.body(body)
    lowered.problem = problem
    for imports in (
        lowered.model.opset_import,
        *(function.opset_import for function in lowered.model.functions),
    ):
        for entry in imports:
            if entry.domain in _DEFAULT:
                entry.version = version
    return lowered


def _schema(op_type: str, version: int) -> defs.OpSchema | None:
    try:
        return defs.get_schema(op_type, version, "")
    except defs.SchemaError:
        return None


def _newer_parameter(node: onnx.NodeProto, version: int) -> bool:
    """Return whether a node binds an attribute that a version lacks to one of its function."""
    references = [text_of(a.name) for a in node.attribute if a.ref_attr_name]
    if not references or node.domain not in _DEFAULT:
        return False
    schema = _schema(text_of(node.op_type), version)
    return schema is not None and any(name not in schema.attributes for name in references)


def _without_newer(lowered: LoweredModel, version: int) -> str | None:
    """Replace operators that are too new by their definitions; return why that is impossible."""
    newer: dict[str, str] = {}
    for _, body in bodies(lowered.model):
        for node in body.node:
            op_type = text_of(node.op_type)
            if node.domain in _DEFAULT and _schema(op_type, version) is None:
                newer.setdefault(op_type, _title(node))
    if not newer:
        return None
    before = [text_of(node.op_type) for node in lowered.model.graph.node]
    for function in lowered.model.functions:
        _expand(function, list(newer))
    if any(text_of(n.op_type) in newer for f in lowered.model.functions for n in f.node):
        # Some definitions need types, which are known only where a function is called.
        lowered.model.CopyFrom(inline_local_functions(lowered.model))
    for place, body in bodies(lowered.model):
        if place and any(text_of(node.op_type) in newer for node in body.node):
            op_type = next(text_of(n.op_type) for n in body.node if text_of(n.op_type) in newer)
            return f"{op_type} does not exist in opset {version}{newer[op_type]}"
    try:
        flat = inline_operators(_typed(lowered.model), [("", op_type) for op_type in newer])
    # The seam: the inliner is native code that refuses what is wrong in its own ways.
    except Exception as error:  # noqa: BLE001
        return f"{', '.join(newer)} cannot be replaced: {clip(visible(str(error)), 200)}"
    remaining = {text_of(node.op_type) for node in flat.graph.node} & set(newer)
    if remaining:
        op_type = sorted(remaining)[0]
        return f"{op_type} does not exist in opset {version}{newer[op_type]}"
    known = {info.name for info in lowered.model.graph.value_info}
    set_items(flat.graph.value_info, (i for i in flat.graph.value_info if i.name in known))
    after = Counter(text_of(node.op_type) for node in flat.graph.node)
    lowered.added.update(after - Counter(before))
    lowered.model.CopyFrom(flat)
    return None


def _typed(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy that declares the types of all values, which definitions of operators need."""
    try:
        typed = native.infer_shapes(model)
    # The seam: C++ errors of several classes; without types fewer operators are replaced.
    except Exception:  # noqa: BLE001
        typed = deepcopy(model)
    known = {info.name for info in (*typed.graph.value_info, *typed.graph.input)}
    for tensor in typed.graph.initializer:
        if tensor.name not in known:
            typed.graph.value_info.append(
                helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
            )
    return typed


def _model_of(function: onnx.FunctionProto, ir_version: int) -> onnx.ModelProto:
    """Return a model whose graph is the body of a function."""
    model = onnx.ModelProto(ir_version=ir_version, opset_import=function.opset_import)
    model.graph.name = "function"
    for name in function.input:
        model.graph.input.add(name=name)
    for name in function.output:
        model.graph.output.add(name=name)
    model.graph.node.extend(function.node)
    return model


def _expand(function: onnx.FunctionProto, newer: list[str]) -> None:
    """Replace such operators in the body of a function, where that needs no types."""
    model = _model_of(function, 10)
    names = [("", op_type) for op_type in newer]
    try:
        flat = inline_operators(model, names)
    # The seam: as below; the caller reports operators that remain.
    except Exception:  # noqa: BLE001
        return
    del function.node[:]
    function.node.extend(flat.graph.node)


def _title(node: onnx.NodeProto, more: int = 0) -> str:
    """Return ``: node NAME`` for a message, perhaps with ``and 3 more``."""
    name = text_of(node.name) or f">{text_of(next(iter(node.output), ''))}"
    others = f" and {more} more" if more else ""
    return f": node {clip(visible(name), 120, keep='middle')}{others}"


class _Downgrade:
    def __init__(self, lowered: LoweredModel, version: int) -> None:
        self._found = lowered
        self._version = version
        self._before = next(
            (int(e.version) for e in lowered.model.opset_import if e.domain in _DEFAULT), 0
        )
        self._constants: dict[str, TensorProto] = {}
        self._count = 0
        for _, body in bodies(lowered.model):
            if isinstance(body, onnx.GraphProto):
                input_names = {info.name for info in body.input}
                self._constants |= {
                    t.name: t for t in body.initializer if t.name not in input_names
                }
            for node in body.node:
                for attribute in node.attribute:
                    if node.op_type == "Constant" and attribute.name == "value":
                        self._constants[node.output[0]] = attribute.t

    def body(self, body: Body) -> str | None:
        """Lower the nodes of a graph or function; return why that is impossible, or None."""
        nodes: list[onnx.NodeProto] = []
        for node in body.node:
            if node.domain not in _DEFAULT:
                nodes.append(node)
                continue
            problem = self._node(node, nodes)
            if problem is not None:
                return problem + _title(node)
        set_items(body.node, nodes)
        return None

    def _node(self, node: onnx.NodeProto, nodes: list[onnx.NodeProto]) -> str | None:
        op_type = text_of(node.op_type)
        old, new = _schema(op_type, self._version), _schema(op_type, self._before)
        if old is None:
            return f"{op_type} does not exist in opset {self._version}"
        nodes.append(node)
        if new is None or old.since_version == new.since_version:
            return None
        for since in _MEANING.get(op_type, ()):
            if old.since_version < since <= new.since_version:
                return f"{op_type} computes something else before opset {since}"
        before = node.SerializeToString()
        rule = _RULES.get(op_type) or (_axes if op_type in _AXES else None)
        if rule is not None:
            problem = rule(self, node, nodes)
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

    def new(self, node: onnx.NodeProto, purpose: str) -> str:
        """Return a name that no value has."""
        self._count += 1
        return f"opset{self._version}_{text_of(node.output[0])}_{purpose}_{self._count}"

    @property
    def version(self) -> int:
        """The version to lower to."""
        return self._version

    def add(self, node: onnx.NodeProto, nodes: list[onnx.NodeProto], at: int) -> None:
        """Add a node before that of position `at` from the end."""
        nodes.insert(len(nodes) - at, node)
        self._found.added[text_of(node.op_type)] += 1


def _drop_defaults(node: onnx.NodeProto, old: defs.OpSchema, new: defs.OpSchema) -> None:
    """Drop attributes that the older version lacks, where they have the default value."""
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
    """Return why the older version does not accept a call."""
    op_type = text_of(node.op_type)
    for attribute in node.attribute:
        if text_of(attribute.name) not in old.attributes:
            return (
                f"{op_type} has no attribute {visible(text_of(attribute.name))} in opset {version}"
            )
    for side, names, least, most in (
        ("inputs", node.input, old.min_input, old.max_input),
        ("outputs", node.output, old.min_output, old.max_output),
    ):
        count = len(names)
        while count and not names[count - 1]:
            count -= 1
        if not least <= count <= most:
            return f"{op_type} does not take {count} {side} in opset {version}"
    return None


# --- adapters -----------------------------------------------------------------------------------


def _shape(work: _Downgrade, node: onnx.NodeProto, nodes: list[onnx.NodeProto]) -> str | None:
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
    for bound, value in (("start", start), ("end", end)):
        tensor = numpy_helper.from_array(np.array([value], np.int64))
        names.append(work.new(node, bound))
        work.add(helper.make_node("Constant", [], [names[-1]], value=tensor), nodes, 1)
    part = helper.make_node("Slice", [whole, *names], [node.output[0]])
    node.output[0] = whole
    work.add(part, nodes, 0)
    return None


def _axes(work: _Downgrade, node: onnx.NodeProto, nodes: list[onnx.NodeProto]) -> str | None:
    """Write axes that are a constant input as an attribute."""
    del nodes
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
        return f"the axes of {op_type} must be constant: before opset {since} they are an attribute"
    if axes.size == 0 and keep_all:
        return f"{op_type} that reduces nothing cannot be written before opset {since}"
    del node.input[1:]
    if axes.size:
        node.attribute.append(helper.make_attribute("axes", [int(axis) for axis in axes.ravel()]))
    return None


def _reshape(work: _Downgrade, node: onnx.NodeProto, nodes: list[onnx.NodeProto]) -> str | None:
    """Drop allowzero where the shape has no constant 0: computed sizes are those of real data."""
    flag = next((a for a in node.attribute if a.name == "allowzero"), None)
    if flag is None or work.version >= 14:
        return None
    shape = text_of(node.input[1]) if len(node.input) > 1 else ""
    parts = [shape]
    for other in nodes:
        if other.op_type == "Concat" and shape in other.output:
            parts = [text_of(name) for name in other.input]
    values = [value for name in parts if (value := work.constant(name)) is not None]
    if flag.i and (
        (not values and parts == [shape]) or any((value == 0).any() for value in values)
    ):
        return "Reshape to a size of 0 (allowzero) cannot be written before opset 14"
    node.attribute.remove(flag)
    return None


def _split(work: _Downgrade, node: onnx.NodeProto, nodes: list[onnx.NodeProto]) -> str | None:
    """Write the sizes of parts as an attribute; equal parts need none."""
    del nodes
    for attribute in [a for a in node.attribute if a.name == "num_outputs"]:
        if work.version < 18:  # the last part may be smaller than the others
            return "the sizes of a Split into num_outputs parts are unknown"
        del attribute
    if work.version >= 13 or len(node.input) < 2 or not node.input[1]:
        return None
    sizes = work.constant(text_of(node.input[1]))
    if sizes is None:
        return "the sizes of Split must be constant: before opset 13 they are an attribute"
    del node.input[1:]
    node.attribute.append(helper.make_attribute("split", [int(size) for size in sizes.ravel()]))
    return None


def _constant(work: _Downgrade, node: onnx.NodeProto, nodes: list[onnx.NodeProto]) -> str | None:
    """Write a number, or a list of numbers, as a tensor."""
    del nodes
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


_RULES: dict[str, Callable[[_Downgrade, onnx.NodeProto, list[onnx.NodeProto]], str | None]] = {
    "Shape": _shape,
    "Split": _split,
    "Reshape": _reshape,
    "Constant": _constant,
}

_NO_ADAPTER = re.compile(r"No Adapter (From|To) Version \$(\d+) for (\w+)")
_NO_PREVIOUS = re.compile(r"No Previous Version of (\w+) exists")
_UNKNOWN = re.compile(r"has no registered schema.* to %lld\.?(.+)$", re.DOTALL)
"""The operator follows, with the digits of two versions behind it."""
_SOURCE = re.compile(r"^\S+\.(?:h|cc|cpp):\d+: \w+: ")
_ASSERTION = re.compile(r"Assertion `.*?` failed: ")


class ConversionError(ActivityError):
    """A model, or a function of it, cannot be converted; the message says why in one line."""


def refusal(text: str, labels: Labels, model: onnx.ModelProto, version: int) -> ConversionError:
    """Return the error for a message of the converter.

    Args:
        text: Its message.
        labels: The labels in the model that it was given.
        model: The model with its real names.
        version: The requested version.
    """
    if match := _NO_ADAPTER.search(text):
        end, step, op_type = match.groups()
        steps = f"from opset {step}" if end == "From" else f"to opset {step}"
        why = f"the converter cannot take {op_type} {steps} on the way to opset {version}"
        return ConversionError(why + _nodes(model, op_type))
    if match := _NO_PREVIOUS.search(text):
        op_type = match.group(1)
        return ConversionError(
            f"{op_type} does not exist in opset {version}" + _nodes(model, op_type)
        )
    if match := _UNKNOWN.search(text):
        known = {text_of(node.op_type) for _, body in bodies(model) for node in body.node}
        operator_and_versions = match.group(1)
        fitting = (name for name in known if operator_and_versions.removeprefix(name).isdigit())
        op_type = max(fitting, key=len, default=operator_and_versions)
        why = f"{visible(op_type)} is not an operator of ai.onnx"
        return ConversionError(why + _nodes(model, op_type))
    remark = labels.messages(_ASSERTION.sub("", _SOURCE.sub("", text)))[0]
    return ConversionError(f"the converter stopped: {remark.message}")


def _nodes(model: onnx.ModelProto, op_type: str) -> str:
    """Return the title of the nodes of an operator; empty where there are none."""
    nodes = [
        node
        for _, body in bodies(model)
        for node in body.node
        if text_of(node.op_type) == op_type and node.domain in _DEFAULT
    ]
    return _title(nodes[0], len(nodes) - 1) if nodes else ""


def is_same(old: onnx.NodeProto, new: onnx.NodeProto) -> bool:
    """Return whether the converter left a node unchanged, apart from what it does not know."""
    if (old.op_type, _stripped(old.input), _stripped(old.output)) != (
        new.op_type, _stripped(new.input), _stripped(new.output)
    ):  # fmt: skip
        return False
    before = {attribute.name: attribute for attribute in old.attribute}
    after = {attribute.name: attribute for attribute in new.attribute}
    return before.keys() == after.keys() and all(
        _is_same_value(before[name], after[name]) for name in before
    )


def _is_same_value(old: onnx.AttributeProto, new: onnx.AttributeProto) -> bool:
    if old.ref_attr_name or old.HasField("g") or len(old.graphs):
        return True  # the converter loses references; graphs are merged separately
    plain: list[bytes] = []
    for attribute in (old, new):
        copied = deepcopy(attribute)
        copied.ClearField("doc_string")
        copied.ClearField("type")
        tensors = [*copied.tensors, *([copied.t] if copied.HasField("t") else [])]
        for tensor in tensors:
            tensor.ClearField("doc_string")
            tensor.ClearField("name")
        plain.append(copied.SerializeToString())
    return plain[0] == plain[1]


def take_over(old: onnx.NodeProto, new: onnx.NodeProto) -> None:
    """Give a changed node what the converter dropped.

    Raises:
        ConversionError: A parameter of the function has become an input, which it cannot be.
    """
    for attribute in old.attribute:
        if not attribute.ref_attr_name:
            continue
        theirs = next((a for a in new.attribute if a.name == attribute.name), None)
        if theirs is None:
            raise ConversionError(
                f"attribute {text_of(attribute.name)} of {text_of(old.op_type)} is a parameter of"
                " the function and would become an input"
            )
        theirs.CopyFrom(attribute)
    for name in ("name", "doc_string", "domain", "overload"):
        if old.HasField(name):
            setattr(new, name, getattr(old, name))
        else:
            new.ClearField(name)
    del new.metadata_props[:]
    new.metadata_props.extend(old.metadata_props)
    del new.device_configurations[:]
    new.device_configurations.extend(old.device_configurations)


def _stripped(names: Iterable[str]) -> list[str]:
    stripped = list(names)
    while stripped and not stripped[-1]:
        stripped.pop()
    return stripped


def rename(node: onnx.NodeProto, names: dict[str, str]) -> None:
    """Rename inputs and outputs of a node."""
    for field_names in (node.input, node.output):
        if any(name in names for name in field_names):
            new = [names.get(name, name) for name in field_names]
            del field_names[:]
            field_names.extend(new)


_DEFAULT = ("", "ai.onnx")


@dataclass(kw_only=True)
class OpsetChanges:
    """What a conversion did. Counts are of nodes, by operator."""

    from_: int
    to: int
    changed: Counter[str] = field(default_factory=Counter)
    added: Counter[str] = field(default_factory=Counter)
    removed: Counter[str] = field(default_factory=Counter)
    initializers: int = 0
    """Added initializers."""
    unconverted: list[str] = field(default_factory=list)
    """What could not be converted, one sentence each. Untrusted text."""


def known_versions() -> range:
    """Return the versions of the ai.onnx operators that the installed onnx package knows."""
    return range(1, int(onnx.defs.onnx_opset_version()) + 1)


def convert_opset(model: onnx.ModelProto, version: int) -> OpsetChanges:
    """Convert a model in place; it is unchanged when this fails.

    Args:
        model: The model; payloads may be cut out of it.
        version: The version of the ai.onnx operators to convert to.

    Raises:
        ConversionError: It cannot be converted; the message names the operator and node.
    """
    known = known_versions()
    if version not in known:
        raise ConversionError(f"opset {version} is not known: choose 1 to {known[-1]}")
    before = _version_of(model.opset_import)
    if before is None:
        raise ConversionError("the model imports no ai.onnx operators: there is nothing to convert")
    report = OpsetChanges(from_=before, to=version)
    if before == version:
        return report
    if version < before:
        lowered = lower_opset(model, version)
        if lowered.problem is None:
            model.CopyFrom(lowered.model)
            report.changed, report.added = lowered.changed, lowered.added
            report.initializers = 0
            return report
    names = _Names(model, version)
    merge = _Merge(report, names)
    try:
        merge.model(model, _converted(model, version))
    except ConversionError:
        if version < before and lowered.problem is not None:
            raise ConversionError(lowered.problem) from None
        raise
    for function in model.functions:
        _convert_function(function, version, report, names)
    _set_version(model.opset_import, version)
    needed = onnx.helper.find_min_ir_version_for(list(model.opset_import), ignore_unknown=True)
    model.ir_version = max(model.ir_version, needed)
    return report


# --- the converter ------------------------------------------------------------------------------


def _converted(model: onnx.ModelProto, version: int) -> onnx.ModelProto:
    """Return the output of the converter for a model, whose nodes are named by their labels."""
    labelled = deepcopy(model)
    del labelled.functions[:]
    for entry in labelled.opset_import:
        if entry.domain in _DEFAULT:
            entry.domain = ""
    labels = Labels(labelled)
    for _, body in bodies(labelled):
        for node in body.node:
            if node.domain in _DEFAULT:
                node.ClearField("domain")
    try:
        return native.convert_version(labelled, version)
    # The seam: C++ errors of several classes without a common base.
    except Exception as error:  # noqa: BLE001
        raise refusal(str(error), labels, model, version) from None


def _version_of(imports: Iterable[onnx.OperatorSetIdProto]) -> int | None:
    return next((int(entry.version) for entry in imports if entry.domain in _DEFAULT), None)


def _set_version(imports: Iterable[onnx.OperatorSetIdProto], version: int) -> None:
    for entry in imports:
        if entry.domain in _DEFAULT:
            entry.version = version


def _convert_function(
    function: onnx.FunctionProto, version: int, report: OpsetChanges, names: _Names
) -> None:
    """Convert the body of a function like a graph; leave it unchanged when that fails."""
    before = _version_of(function.opset_import)
    if before is None or before == version:
        return
    model = _model_of(function, onnx.IR_VERSION)
    whole = deepcopy(function)
    mine = OpsetChanges(from_=before, to=version)
    try:
        _Merge(mine, names).function(function, _converted(model, version).graph)
    except ConversionError as error:
        function.CopyFrom(whole)
        title = f"{text_of(function.domain)}:{text_of(function.name)}"
        report.unconverted.append(f"function {title} stays at opset {before}: {error.message}")
        return
    _set_version(function.opset_import, version)
    for name in ("changed", "added", "removed"):
        getattr(report, name).update(getattr(mine, name))


# --- merging its decisions ----------------------------------------------------------------------


class _Names:
    """Makes names for new nodes and values that the model does not have."""

    def __init__(self, model: onnx.ModelProto, version: int) -> None:
        self._prefix = f"opset{version}_"
        self._taken: set[str] = set()
        for _, body in bodies(model):
            for node in body.node:
                self._taken.update((text_of(node.name), *map(text_of, node.output)))
            if isinstance(body, onnx.FunctionProto):
                self._taken.update(map(text_of, body.input))
            else:
                self._taken.update(text_of(record.name) for record in body.input)
                self._taken.update(text_of(record.name) for record in body.initializer)
        self._next = 0

    def new(self, like: str) -> str:
        """Return a new name."""
        while True:
            name = f"{self._prefix}{like}_{self._next}"
            self._next += 1
            if name not in self._taken:
                return name


class _Merge:
    """Merges the decisions of the converter into the original."""

    def __init__(self, report: OpsetChanges, names: _Names) -> None:
        self._report = report
        self._names = names
        self._old: dict[str, onnx.NodeProto] = {}

    def model(self, model: onnx.ModelProto, converted: onnx.ModelProto) -> None:
        """Merge the main graph and those below it."""
        self._know(model)
        nodes = self._nodes(converted.graph, self._old_names(model.graph))
        self._graph(model.graph, converted.graph, nodes)
        self._count_removed()

    def function(self, function: onnx.FunctionProto, converted: onnx.GraphProto) -> None:
        """Merge the body of a function, which has no initializers."""
        model = onnx.ModelProto()
        model.graph.node.extend(function.node)
        self._know(model)
        known = self._old_names(function)
        constants = []
        for tensor in converted.initializer:
            constants.append(onnx.helper.make_node("Constant", [], [tensor.name], value=tensor))
        nodes = self._nodes(converted, known, constants)
        self._count_removed()
        del function.node[:]
        function.node.extend(nodes)

    def _know(self, model: onnx.ModelProto) -> None:
        """Remember the nodes by their labels: the same walk gives the same labels."""
        labelled = deepcopy(model)
        del labelled.functions[:]
        Labels(labelled)
        originals = (node for _, body in bodies(model) for node in body.node)
        labels = (node.name for _, body in bodies(labelled) for node in body.node)
        self._old = dict(zip(labels, originals, strict=False))
        self._left = dict(self._old)

    def _old_names(self, body: Body) -> set[str]:
        names = {text_of(name) for node in body.node for name in node.output}
        if isinstance(body, onnx.GraphProto):
            names.update(text_of(tensor.name) for tensor in body.initializer)
            names.update(text_of(record.name) for record in body.input)
        return names

    def _graph(
        self, graph: onnx.GraphProto, converted: onnx.GraphProto, nodes: list[onnx.NodeProto]
    ) -> None:
        """Give a graph its new nodes and the initializers that they need."""
        known = {tensor.name for tensor in graph.initializer}
        known |= {tensor.values.name for tensor in graph.sparse_initializer}
        for tensor in converted.initializer:
            if tensor.name not in known:
                graph.initializer.append(tensor)
                self._report.initializers += 1
        set_items(graph.node, nodes)
        outputs = {name for node in graph.node for name in node.output}
        gone = [info for info in graph.value_info if info.name not in outputs | _inputs(graph)]
        for info in gone:
            graph.value_info.remove(info)

    def _nodes(
        self,
        converted: onnx.GraphProto,
        known: set[str],
        first: Iterable[onnx.NodeProto] = (),
    ) -> list[onnx.NodeProto]:
        """Return the new nodes of a graph."""
        all_nodes = [*first, *converted.node]
        renamed = {
            name: self._names.new(node.op_type)
            for node in all_nodes
            for name in node.output
            if name and name not in known and node.name not in self._old
        }
        renamed |= {
            name: self._names.new(node.op_type)
            for node in converted.node
            for name in node.output
            if name and name not in known and name not in renamed
        }
        nodes = [self._node(node) for node in all_nodes]
        if renamed:
            for node in nodes:
                rename(node, renamed)
        return nodes

    def _node(self, new: onnx.NodeProto) -> onnx.NodeProto:
        old = self._old.get(new.name)
        if old is None:
            self._report.added[text_of(new.op_type)] += 1
            new.name = self._names.new(text_of(new.op_type))
            return new
        self._left.pop(new.name, None)
        node = old
        if not is_same(old, new):
            self._report.changed[text_of(new.op_type)] += 1
            node = new
            take_over(old, new)
        for old_attribute in old.attribute:
            mine = next((a for a in node.attribute if a.name == old_attribute.name), None)
            theirs = next((a for a in new.attribute if a.name == old_attribute.name), None)
            if mine is not None and theirs is not None:
                self._bodies(old_attribute, mine, theirs)
        return node

    def _bodies(
        self,
        old: onnx.AttributeProto,
        mine: onnx.AttributeProto,
        theirs: onnx.AttributeProto,
    ) -> None:
        """Merge the graphs of an attribute: the header and records of the old ones stay."""
        pairs = [(old.g, theirs.g)] if old.HasField("g") else []
        pairs += list(zip(old.graphs, theirs.graphs, strict=True))
        merged = []
        for graph, converted in pairs:
            nodes = self._nodes(converted, self._old_names(graph))
            whole = deepcopy(graph)
            self._graph(whole, converted, nodes)
            merged.append(whole)
        if old.HasField("g"):
            mine.g.CopyFrom(merged[0])
        elif merged:
            del mine.graphs[:]
            mine.graphs.extend(merged)

    def _count_removed(self) -> None:
        self._report.removed.update(text_of(node.op_type) for node in self._left.values())


def _inputs(graph: onnx.GraphProto) -> set[str]:
    return {record.name for record in graph.input} | {tensor.name for tensor in graph.initializer}


__all__ = ["ConversionError", "OpsetChanges", "convert_opset", "known_versions"]
