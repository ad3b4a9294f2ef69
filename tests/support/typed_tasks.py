"""The twelve editing tasks: what is typed for each, and what may differ in the file after it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, shape_inference

from tests.oracles.edited_models import difference, loads
from tests.support.typist import Programs, keys_of

MARK_TWENTY = "<space>" * 20
KEYS = {
    "open": "",
    "find": "/{operator}<enter>r<^u>found<enter>",
    "attribute": "/{attributed}<enter>3/{attribute}<enter>e<^u>{setting}<enter>",
    "rename": "/{node}<enter>r<^u>a new name<enter>",
    "insert": "/{node}<enter>Irelu<enter>",
    "delete": "/{unary}<enter>dr",
    "dtype": "i/{tensor}<enter>T{narrow}<enter><enter>s"
             "3/{tensor}<enter>Icast<enter><enter>{wide}<enter><f5>",
    "weight": "i/{tensor}<enter><enter><right>e<^u>{number}<enter><esc><esc><esc>",
    "extract": "/{node}<enter>x<^u>part.onnx<enter>s",
    "function": "/{first}<enter>{twenty}O<^u>Twenty<enter>",
    "output": "/{node}<enter><^p>make graph output<enter>",
    "save as": "/{node}<enter>r<^u>saved<enter>S<^u>first.onnx<enter>r<^u>saved again<enter>",
}  # fmt: skip
"""What is typed between opening the model and saving it under another name."""


@dataclass(frozen=True)
class Aims:
    """What the tasks are done to in one model: names as a person reads and types them."""

    operator: str
    """What the first node of in the list of layers is found and renamed."""
    node: str
    """A node with one float output, which other nodes use."""
    unary: str
    """A node whose users can take its input instead."""
    attributed: str
    attribute: str
    setting: str
    tensor: str
    """An initializer that one node uses."""
    narrow: str
    """The type that it gets; a Cast gives its user the former one."""
    wide: int
    number: str
    """What its element [1], in rows [.., 0, 1], becomes."""
    first: str
    """Where marking begins."""
    twenty: str = "<esc>" + MARK_TWENTY


def small_model() -> onnx.ModelProto:
    """Return 26 nodes: blocks of matrix products, an attribute to change, a branch with bodies."""
    numbers = np.random.default_rng(0)
    nodes, stored, last = [], [], "x"
    for block in range(6):
        weight, bias = f"block{block}.weight", f"block{block}.bias"
        stored.append(numpy_helper.from_array(numbers.standard_normal((4, 4), np.float32), weight))
        stored.append(numpy_helper.from_array(numbers.standard_normal(4, np.float32), bias))
        act = f"/block.{block}/act"
        names = [f"{part}_{block}" for part in ("product", "shifted", "active", "sum")]
        nodes += [
            helper.make_node("MatMul", [last, weight], names[:1], f"/block.{block}/matmul"),
            helper.make_node("Add", [names[0], bias], names[1:2], f"/block.{block}/add"),
            helper.make_node("LeakyRelu", names[1:2], names[2:3], act, alpha=0.25),
            helper.make_node("Add", [names[2], last], names[3:], f"/block.{block}/residual"),
        ]
        last = names[3]
    stored.append(numpy_helper.from_array(np.array([1.5], np.float32), "threshold"))
    branches: dict[str, Any] = {
        f"{side}_branch": helper.make_graph(
            [helper.make_node(operator, [last], [side], f"in_{side}")],
            side, [], [helper.make_tensor_value_info(side, TensorProto.FLOAT, [1, 4])],
        )
        for side, operator in (("then", "Relu"), ("else", "Neg"))
    }  # fmt: skip
    nodes.append(helper.make_node("If", ["choice"], ["chosen"], "choose", **branches))
    nodes.append(helper.make_node("Sigmoid", ["chosen"], ["y"], "last"))
    graph = helper.make_graph(
        nodes, "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4]),
         helper.make_tensor_value_info("choice", TensorProto.BOOL, [])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4])], stored,
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    model.ir_version = 10
    return model


def aims_at_small_model() -> Aims:
    """Return what is edited in the small model."""
    return Aims(
        operator="LeakyRelu", node="/block.2/add", unary="/block.4/act", attributed="/block.1/act",
        attribute="alpha", setting="0.5", tensor="block3.bias", narrow="float16", wide=1,
        number="7", first="block", twenty="k" + "z<space>" * 5,
    )  # fmt: skip


_SAFE = {
    "LRN": ("alpha", "0.125"), "BatchNormalization": ("epsilon", "0.125"),
    "Dropout": ("ratio", "0.125"), "LayerNormalization": ("epsilon", "0.125"),
    "LeakyRelu": ("alpha", "0.125"), "Gemm": ("alpha", "0.125"),
    "AveragePool": ("count_include_pad", "1"), "Reshape": ("allowzero", "1"),
}  # fmt: skip
"""An attribute of some operators, and a number that is right for any node of theirs."""
_FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16)
_COMPUTED = ("Conv", "Add", "MatMul", "Gemm", "Concat", "Mul")
_UNARY = ("Relu", "Sigmoid", "Dropout", "Softmax", "Tanh", "Neg", "Sqrt")


def aims_at(model: onnx.ModelProto) -> Aims:
    """Choose what to edit in a model: what the name of a node finds first is that node.

    Raises:
        StopIteration: The model has nothing that a task can be done to.
    """
    graph = model.graph
    opset = next(entry.version for entry in model.opset_import if entry.domain == "")
    texts = [_said_of(node) for node in graph.node]
    ends = {info.name for info in graph.output}
    floats = {info.name for info in shape_inference.infer_shapes(model).graph.value_info
              if info.type.tensor_type.elem_type in _FLOATS}  # fmt: skip
    uses: dict[str, list[onnx.NodeProto]] = {}
    for node in graph.node:
        for name in node.input:
            uses.setdefault(name, []).append(node)
    nodes = [
        node for place, node in enumerate(graph.node) if node.name
        and next(i for i, text in enumerate(texts) if node.name.lower() in text) == place
    ]  # fmt: skip
    inner = [
        node for node in nodes
        if len(node.output) == 1 and uses.get(node.output[0]) and node.output[0] not in ends
    ]  # fmt: skip
    computed = [n for n in inner if n.op_type in _COMPUTED and n.output[0] in floats]
    unary = next(n for n in inner if n.op_type in _UNARY)
    attributed = next(
        n for n in nodes
        if n.op_type in _SAFE and (n.op_type != "Reshape" or opset >= 14)
    )  # fmt: skip
    attribute, setting = _SAFE[attributed.op_type]
    operator = next(
        n.op_type for n in nodes
        if 2 < sum(n.op_type == other.op_type for other in graph.node)
        == sum(n.op_type.lower() in text for text in texts)
    )  # fmt: skip
    stored = [tensor.name for tensor in graph.initializer]
    tensor = next(
        t for t in sorted(graph.initializer, key=lambda t: t.data_type != TensorProto.FLOAT)
        if len(t.dims) == 1 and t.dims[0] > 1 and len(uses.get(t.name, ())) == 1
        and sum(t.name.lower() in name.lower() for name in stored) == 1
        and (t.data_type == TensorProto.FLOAT or uses[t.name][0].op_type == "Reshape")
    )  # fmt: skip
    is_float = tensor.data_type == TensorProto.FLOAT
    first = next(i for i, n in enumerate(graph.node) if n.name)
    return Aims(
        operator=operator, node=computed[len(computed) // 2].name, unary=unary.name,
        attributed=attributed.name, attribute=attribute, setting=setting, tensor=tensor.name,
        narrow="float16" if is_float else "int32", wide=tensor.data_type,
        number="7" if is_float else "-1", first=graph.node[first].name,
    )  # fmt: skip


def _said_of(node: onnx.NodeProto) -> str:
    """Return all that the filter of the explorer finds a node by, its bodies included."""
    words = [node.name, node.op_type, *node.input, *node.output]
    for attribute in node.attribute:
        words += map(_said_of, attribute.g.node)
    return "\n".join(words).lower()


def keys_for(task: str, aims: Aims) -> str:
    """Return all that is typed for a task, from opening the model to closing its tab."""
    keys = KEYS[task].format(**asdict(aims))
    return f"<^o>model.onnx<enter>1{keys}S<^u>{task}.out.onnx<enter><^w>"


def do(
    programs: Programs,
    folder: Path,
    model: bytes,
    aims: Aims,
    tasks: list[str],
    size: tuple[int, int] = (80, 24),
) -> None:
    """Do some tasks, one after the other, by what is sent in one write to the start page."""
    (folder / "model.onnx").write_bytes(model)
    with programs.start(folder, size=size) as typist:
        typist.settle()
        typist.write("".join(keys_of("".join(keys_for(task, aims) for task in tasks))))
        typist.settle(0.7, limit_s=200)
        state = typist.state()
        left = [rows[0] for rows in state.get("screens", ())][1:]
        assert not state["faults"], state["faults"]
        assert not left, state["screens"][-1]


def all_faults(folder: Path, model: bytes, aims: Aims) -> dict[str, str]:
    """Return what is wrong with the files that the tasks left, by onnx and ONNX Runtime alone."""
    found = {}
    for task in KEYS:
        try:
            _check(folder, model, aims, task)
        except (AssertionError, OSError, ValueError) as error:
            found[task] = f"{type(error).__name__}: {str(error)[:600]}"
    if (folder / "model.onnx").read_bytes() != model:
        found["all"] = "the model that was opened is another one now"
    return found


def _check(folder: Path, model: bytes, aims: Aims, task: str) -> None:
    before, data = onnx.ModelProto.FromString(model), (folder / f"{task}.out.onnx").read_bytes()
    refused = loads(data)
    assert not refused, refused
    _CHECKS[task](Edit(before, onnx.ModelProto.FromString(data), aims, folder))


@dataclass(frozen=True)
class Edit:
    """A model before and after a task."""

    before: onnx.ModelProto
    after: onnx.ModelProto
    aims: Aims
    folder: Path

    def expect(self, change: Callable[[onnx.ModelProto], None]) -> None:
        """Make the change by hand, and compare every record of the two models."""
        wanted = onnx.ModelProto.FromString(self.before.SerializeToString())
        change(wanted)
        gone, come = difference(wanted, self.after)
        assert not gone | come, f"{sorted(gone)[:3]} went, {sorted(come)[:3]} came"

    def new_node(self) -> onnx.NodeProto:
        """Return the node that the model had not, which there must be one of."""
        known = {tuple(node.output) for node in self.before.graph.node}
        (node,) = [n for n in self.after.graph.node if tuple(n.output) not in known]
        return node


def _node(model: onnx.ModelProto, name: str) -> onnx.NodeProto:
    return next(node for node in model.graph.node if node.name == name)


def _tensor(model: onnx.ModelProto, name: str) -> onnx.TensorProto:
    return next(tensor for tensor in model.graph.initializer if tensor.name == name)


def _redirect(model: onnx.ModelProto, old: str, new: str) -> None:
    for node in model.graph.node:
        node.input[:] = [new if name == old else name for name in node.input]


def _opened(edit: Edit) -> None:
    assert edit.after == edit.before


def _found(edit: Edit) -> None:
    found = _node(edit.after, "found")
    assert found.op_type == edit.aims.operator

    def change(model: onnx.ModelProto) -> None:
        next(node for node in model.graph.node if node.output == found.output).name = "found"

    edit.expect(change)


def _attribute(edit: Edit) -> None:
    def change(model: onnx.ModelProto) -> None:
        node, name = _node(model, edit.aims.attributed), edit.aims.attribute
        number = float(edit.aims.setting)
        setting = helper.make_attribute(name, int(number) if number.is_integer() else number)
        for place, attribute in enumerate(node.attribute):
            if attribute.name == name:
                node.attribute[place].CopyFrom(setting)
                return
        node.attribute.append(setting)

    edit.expect(change)


def _renamed(edit: Edit, name: str = "a new name") -> None:
    def change(model: onnx.ModelProto) -> None:
        _node(model, edit.aims.node).name = name

    edit.expect(change)


def _inserted(edit: Edit) -> None:
    node = edit.new_node()

    def change(model: onnx.ModelProto) -> None:
        source = _node(model, edit.aims.node).output[0]
        _redirect(model, source, node.output[0])
        relu = helper.make_node("Relu", [source], list(node.output), node.name)
        model.graph.node.append(relu)

    edit.expect(change)


def _deleted(edit: Edit) -> None:
    def change(model: onnx.ModelProto) -> None:
        node = _node(model, edit.aims.unary)
        gone, source = node.output[0], node.input[0]
        model.graph.node.remove(node)
        _redirect(model, gone, source)
        for info in list(model.graph.value_info):
            if info.name == gone:
                model.graph.value_info.remove(info)

    edit.expect(change)


def _retyped(edit: Edit) -> None:
    node = edit.new_node()

    def change(model: onnx.ModelProto) -> None:
        tensor, aims = _tensor(model, edit.aims.tensor), edit.aims
        array = numpy_helper.to_array(tensor).astype(aims.narrow)
        tensor.CopyFrom(numpy_helper.from_array(array, aims.tensor))
        for info in (*model.graph.input, *model.graph.value_info):
            if info.name == aims.tensor:
                info.type.tensor_type.elem_type = tensor.data_type
        _redirect(model, aims.tensor, node.output[0])
        names = list(node.output)
        cast = helper.make_node("Cast", [aims.tensor], names, node.name, to=aims.wide)
        model.graph.node.append(cast)

    edit.expect(change)


def _weighed(edit: Edit) -> None:
    def change(model: onnx.ModelProto) -> None:
        tensor = _tensor(model, edit.aims.tensor)
        array = numpy_helper.to_array(tensor).copy()
        array[1] = float(edit.aims.number)
        tensor.CopyFrom(numpy_helper.from_array(array, edit.aims.tensor))

    edit.expect(change)


def _extracted(edit: Edit) -> None:
    assert edit.after == edit.before
    data = (edit.folder / "part.onnx").read_bytes()
    part, node = onnx.ModelProto.FromString(data), _node(edit.before, edit.aims.node)
    assert not loads(data), loads(data)
    assert list(part.graph.node) == [node]
    assert [info.name for info in part.graph.output] == list(node.output)
    given = {info.name for info in part.graph.input}
    given |= {tensor.name for tensor in part.graph.initializer}
    assert given == set(filter(None, node.input))


def _outlined(edit: Edit) -> None:
    (function,) = set(f.name for f in edit.after.functions) - set(
        f.name for f in edit.before.functions
    )
    assert function == "Twenty"
    body = next(f for f in edit.after.functions if f.name == function).node
    whole, rest = list(edit.before.graph.node), list(edit.after.graph.node)
    (call,) = [node for node in rest if node.op_type == "Twenty"]
    rest.remove(call)
    assert len(body) >= 20  # a folded group is marked with all that is in it
    assert sorted(n.SerializeToString() for n in (*body, *rest)) == sorted(
        n.SerializeToString() for n in whole
    )
    assert [t.SerializeToString() for t in edit.after.graph.initializer] == [
        t.SerializeToString() for t in edit.before.graph.initializer
    ]
    assert list(edit.after.graph.output) == list(edit.before.graph.output)


def _given_out(edit: Edit) -> None:
    *others, new = edit.after.graph.output
    assert others == list(edit.before.graph.output)
    assert new.name == _node(edit.before, edit.aims.node).output[0]
    assert new.type.tensor_type.elem_type in _FLOATS
    assert new.type.tensor_type.HasField("shape")

    def change(model: onnx.ModelProto) -> None:
        model.graph.output.append(new)
        for info in list(model.graph.value_info):
            if info.name == new.name:
                model.graph.value_info.remove(info)

    edit.expect(change)


def _saved_as(edit: Edit) -> None:
    first = onnx.load(edit.folder / "first.onnx")
    _renamed(Edit(edit.before, first, edit.aims, edit.folder), "saved")
    _renamed(edit, "saved again")


_CHECKS: dict[str, Callable[[Edit], None]] = {
    "open": _opened, "find": _found, "attribute": _attribute, "rename": _renamed,
    "insert": _inserted, "delete": _deleted, "dtype": _retyped, "weight": _weighed,
    "extract": _extracted, "function": _outlined, "output": _given_out, "save as": _saved_as,
}  # fmt: skip
