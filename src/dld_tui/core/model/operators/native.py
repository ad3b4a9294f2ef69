"""Functions of the onnx package that are native code, within limits of time and memory.

A model of 258 bytes can keep them busy for ever, one of 2 kB take all memory, and some end the
process. So each call runs in a fork (:func:`dld_tui.core.process.child.compute`). The limits
depend on the size of the model, also those of what else only tries out a model: loading and running
it once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from dld_tui.core.errors import DldError
from dld_tui.core.files import protos as onnx
from dld_tui.core.files.proto_fields import MOST_PARTS, crowd_of, operator_key, text_of
from dld_tui.core.process.child import Limits, RefusedError, compute, free_memory
from dld_tui.core.settings.config import load
from dld_tui.core.text import visible

_SECONDS, _SECONDS_PER_MB = 3.0, 2.0
_MEMORY, _MEMORY_PER_BYTE = 1 << 30, 100
"""Shapes and small constants of a model need a few times its size."""


def limits_for(size: int) -> Limits:
    """Return the limits for a model of so many bytes without its weights."""
    return _limits(_SECONDS + _SECONDS_PER_MB * size / 1e6, _MEMORY + _MEMORY_PER_BYTE * size)


_TRIAL_SECONDS, _TRIAL_SECONDS_PER_MB, _TRIAL_SECONDS_PER_WEIGHTS_GB = 6.0, 60.0, 200.0
_TRIAL_MEMORY = 2 << 30
_COPIES = 4
"""How often weights are in memory: as they are stored, loaded, packed, and as constants that were
computed from them."""
_PER_INPUT = 64
"""How much memory tensors take for each byte of inputs: feature maps of images do."""


def trial_limits(size: int, weight_bytes: int, input_bytes: int = 0) -> Limits:
    """Return the limits for loading a model, and for running it once.

    Args:
        size: Of the model without its weights, in bytes.
        weight_bytes: Of its weights.
        input_bytes: Of its inputs.
    """
    return _limits(
        _TRIAL_SECONDS
        + _TRIAL_SECONDS_PER_MB * size / 1e6
        + _TRIAL_SECONDS_PER_WEIGHTS_GB * weight_bytes / 1e9,
        _TRIAL_MEMORY + _MEMORY_PER_BYTE * size + _PER_INPUT * input_bytes,
        _COPIES * weight_bytes,
    )


def _limits(seconds: float, memory: int, needed: int = 0) -> Limits:
    """Return limits: half of the free memory at most, besides the bytes that are needed."""
    factor = _factor()
    most = int(factor * memory)
    free = free_memory()
    if free is None:
        return Limits(factor * seconds, most + needed)
    return Limits(factor * seconds, min(min(most, free // 2) + needed, free * 9 // 10))


@cache
def _factor() -> float:
    try:
        return load().inference_limit
    except DldError:  # a command tells
        return 1.0


MOST_NODES = 1_000_000
"""Nodes that the calls of functions in a model may stand for: onnx and runtimes go through each."""


def expansion(model: onnx.ModelProto) -> dict[tuple[str, str, str], int]:
    """Return for how many nodes a call of each function stands, with all calls in it replaced."""
    functions = {operator_key(function): function for function in model.functions}
    counts: dict[tuple[str, str, str], int] = {}

    def count(nodes: Iterable[onnx.NodeProto]) -> int | None:
        """Return the number of nodes; None if a function is not counted yet, which waits then."""
        number = 0
        for node in nodes:
            key = operator_key(node)
            if key in functions and key not in counts:
                waiting.append(key)
                return None
            number += counts.get(key, 1)
            for attribute in node.attribute:
                for graph in (
                    *([attribute.g] if attribute.HasField("g") else ()),
                    *attribute.graphs,
                ):
                    inner = count(graph.node)
                    if inner is None:
                        return None
                    number += inner
        return number

    for key in functions:
        waiting = [key]
        while waiting:
            known = count(functions[waiting[-1]].node) if waiting[-1] not in counts else None
            if waiting.count(waiting[-1]) > 1 and waiting[-1] not in counts:
                known = 1  # it calls itself: another rule tells
            if known is not None:
                counts[waiting[-1]] = known
            if waiting[-1] in counts:
                waiting.pop()
    return counts


def too_wide(model: onnx.ModelProto) -> str:
    """Return which function stands for more nodes than runtimes can go through; empty if none.

    Also which node has more attributes, inputs or outputs than that.
    """
    if why := _oversized_node(model):
        return why
    most = max(expansion(model).items(), key=lambda item: item[1], default=None)
    if most is None or most[1] <= MOST_NODES:
        return ""
    return f"the calls in function {most[0][1]} stand for {most[1]:.3g} nodes"


def _oversized_node(model: onnx.ModelProto) -> str:
    """Return which node has more parts than programs go through; empty if none."""
    if len(model.opset_import) > MOST_PARTS:
        return f"the model imports {len(model.opset_import):,} operator sets"
    waiting = [model.graph.node, *(function.node for function in model.functions)]
    while waiting:
        for node in waiting.pop():
            if crowd := crowd_of(node):
                name = text_of(node.name) or f">{text_of(node.output[0]) if node.output else ''}"
                return f"node {visible(name)} ({visible(text_of(node.op_type))}) has {crowd}"
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    waiting.append(attribute.g.node)
                waiting += [graph.node for graph in attribute.graphs]
    return ""


def call_size(node: onnx.NodeProto, counts: Mapping[tuple[str, str, str], int]) -> int:
    """Return for how many nodes a node stands, given what :func:`expansion` returned."""
    return counts.get(operator_key(node), 1)


def infer_shapes(
    model: onnx.ModelProto, *, strict: bool = False, limits: Limits | None = None
) -> onnx.ModelProto:
    """Return a copy of a model with the types that onnx infers; constants are computed.

    Raises:
        RefusedError: onnx refuses the model.
        LimitError: It takes too long, or too much memory.
        CrashError: It ended the process.
    """
    # Here and below: imported before the fork, or each fork would have to do it.
    from onnx.onnx_cpp2py_export import shape_inference as native

    if why := _oversized_node(model):
        raise RefusedError(why)
    return _call(model, lambda data: native.infer_shapes(data, False, strict, True), limits)


def inline_local_functions(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model in which the calls of local functions are replaced; see `infer_shapes`."""
    from onnx import inliner

    if why := too_wide(model):
        raise RefusedError(why)
    return _call(model, lambda data: _bytes(inliner.inline_local_functions(_model(data))))


def definitions(
    calls: Sequence[tuple[onnx.NodeProto, int, Sequence[onnx.TypeProto]]],
) -> list[onnx.FunctionProto | None]:
    """Return the definitions that onnx has of operators of ai.onnx; see `infer_shapes`.

    Args:
        calls: Nodes, the versions that they are written in, and the types of their inputs.

    Returns:
        The definition for each call, written in that version or an older one; None where there is
        none.
    """
    from onnx import defs

    response = _call(
        onnx.ModelProto(graph=onnx.GraphProto(node=[node for node, _, _ in calls])),
        lambda _: _bytes(
            onnx.ModelProto(functions=[_definition(defs.get_schema, *call) for call in calls])
        ),
    )
    return [function if len(function.node) else None for function in response.functions]


def _definition(
    get_schema: Callable[..., Any],
    node: onnx.NodeProto,
    version: int,
    types: Sequence[onnx.TypeProto],
) -> onnx.FunctionProto:
    empty = onnx.FunctionProto()
    try:
        schema = get_schema(text_of(node.op_type), version, "")
        plain = [one for one in schema.function_opset_versions if one <= version]
        typed = [one for one in schema.context_dependent_function_opset_versions if one <= version]
        if plain:
            data = schema.get_function_with_opset_version(max(plain))
        elif typed and all(one.WhichOneof("value") for one in types[: schema.min_input]):
            data = schema.get_context_dependent_function_with_opset_version(
                max(typed), node.SerializeToString(), [one.SerializeToString() for one in types]
            )
        else:
            return empty
        return onnx.FunctionProto.FromString(data)
    # The seam: C++ errors of several classes; such an operator has no definition.
    except Exception:  # noqa: BLE001
        return empty


def _model(data: bytes) -> onnx.ModelProto:
    return onnx.ModelProto.FromString(data)


def _bytes(model: onnx.ModelProto) -> bytes:
    return model.SerializeToString()


def _call(
    model: onnx.ModelProto, function: Callable[[bytes], bytes], limits: Limits | None = None
) -> onnx.ModelProto:
    data = _bytes(model)
    return _model(compute(lambda: function(data), limits or limits_for(len(data))))
