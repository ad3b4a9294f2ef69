"""A model with Boolean inputs that switch the quantization of each tensor on and off.

One session of it gives the results of a static quantization for any choice of nodes that stay in
floating point, except where ONNX Runtime would compute in integers.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import onnx
from onnx import helper

from dld_tui.core.conversion.copies import infer, relink, working_copy
from dld_tui.core.conversion.quantization_plan import Key, QuantizationPlan, Scale
from dld_tui.core.files.proto_fields import set_text
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.node import Node, node_proto
from dld_tui.core.model.document.transactions import Splice, Transaction
from dld_tui.core.model.edits.casting import FreshNames, SwitchedCopy, choice
from dld_tui.core.model.tensors.value_types import dtype_number

_FLOATS = ("float32", "float64")
"""Types that can be switched: those that ONNX Runtime's ``Where`` takes on a CPU."""


def quantization_switches(prepared: Document, plan: QuantizationPlan) -> SwitchedCopy:
    """Return a copy in which a switch decides for each tensor of a plan whether it is quantized.

    Runs onnx's shape inference: call it in a child process.

    Args:
        prepared: The model of the plan, with unique names of nodes.
        plan: The plan, with scales.
    """
    with working_copy(prepared) as copy:
        infer(copy, None)
        switches = _Insertion(copy).add(plan)
    named = {node.name: node for node in prepared.main.nodes}
    nodes = [named[rule.node] for rule in plan.rules if rule.node in named]

    def on(kept: Collection[Node]) -> set[str]:
        scale_keys = plan.scale_keys({node.name for node in kept}).items()
        return {switches[key] for key in scale_keys if key in switches}

    return SwitchedCopy(copy, nodes, [*switches.values()], on)


class _Insertion:
    """Adds the nodes to the main graph of a copy."""

    def __init__(self, copy: Document) -> None:
        self._scope = copy.main
        self._names = FreshNames(copy)
        self._transaction = Transaction("add_switches", {})
        self._stored: dict[tuple[Key, str], tuple[str, str]] = {}

    def add(self, plan: QuantizationPlan) -> dict[tuple[str, Key], str]:
        """Return the switch of each tensor and scale."""
        switches: dict[tuple[str, Key], str] = {}
        for tensor, keys in plan.possible_scale_keys().items():
            known = self._scope.value_type(tensor)
            if known is None or known.dtype not in _FLOATS:
                continue
            scales = [scale for key in keys if (scale := plan.scale(key)) is not None]
            names = {key: self._names.take(f"quantize_{len(switches) + at}")
                     for at, key in enumerate(keys)}  # fmt: skip
            if self._switch(tensor, known.dtype, dict(zip(names.values(), scales, strict=True))):
                switches |= {(tensor, key): name for key, name in names.items()}
        main = self._scope
        for switch in switches.values():
            info = helper.make_tensor_value_info(switch, onnx.TensorProto.BOOL, ())
            self._transaction.append(main, "input", info)
        return switches

    def _switch(self, tensor: str, dtype: str, scales: dict[str, Scale]) -> bool:
        scope, names = self._scope, self._names
        maker = scope.producer(tensor)
        is_output = tensor in scope.outputs
        if is_output and maker is None:
            return False
        users = [use.node for use in scope.users(tensor) if use.node.scope is scope]
        source, protos = tensor, list[onnx.NodeProto]()
        if is_output and maker is not None:
            source = names.take(f"{tensor}_exact")
            relink(self._transaction, maker, "output", tensor, source)
        before, last = source, len(scales) - 1
        for at, (switch, scale) in enumerate(scales.items()):
            target = tensor if is_output and at == last else names.take(f"{tensor}_chosen")
            middle, rounded = (names.take(f"{target}_{suffix}") for suffix in ("q", "dq"))
            parameters = self._parameters(scale, dtype)
            nodes = [
                node_proto("QuantizeLinear", [source, *parameters], [middle], axis=scale.axis),
                node_proto("DequantizeLinear", [middle, *parameters], [rounded], axis=scale.axis),
            ]
            if scale.dtype == "int32":  # not an output type of QuantizeLinear
                whole = names.take(f"{target}_whole")
                nodes = [
                    node_proto("Div", [source, parameters[0]], [middle]),
                    node_proto("Round", [middle], [whole]),
                    node_proto("Mul", [whole, parameters[0]], [rounded]),
                ]
            protos += choice(scope, names, switch, nodes, before, rounded, target, tensor)
            before = target
        if not is_output:
            for user in dict.fromkeys(users):
                relink(self._transaction, user, "input", tensor, before)
        place = 0 if maker is None else scope.index_of(maker) + 1
        added = [scope.new_node(proto) for proto in protos]
        self._transaction.do(Splice(scope, "node", place, [], added))
        return True

    def _parameters(self, scale: Scale, dtype: str) -> tuple[str, str]:
        """Return the names of the initializers that hold a scale and its zero points."""
        key = (f"{scale}", dtype)
        if key not in self._stored:
            shape = [] if scale.axis is None else [len(scale.scale)]
            number = dtype_number(dtype) or onnx.TensorProto.FLOAT
            values = np.asarray(scale.scale, helper.tensor_dtype_to_np_dtype(number))
            zeros = scale.zero_point * (len(scale.scale) // max(len(scale.zero_point), 1))
            protos = [
                helper.make_tensor("", number, shape, values),
                helper.make_tensor("", dtype_number(scale.dtype) or 0, shape, zeros),
            ]
            names = (self._names.take("scale"), self._names.take("zero_point"))
            for proto, name in zip(protos, names, strict=True):
                set_text(proto, "name", name)
                self._transaction.append(self._scope, "initializer", proto)
            self._stored[key] = names
        return self._stored[key]
