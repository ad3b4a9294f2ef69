"""Finds what keeps a model from running fast on a GPU, from its structure, without running it.

What it fuses is described in NVIDIA's TensorRT Developer Guide, "Working with Quantized Types":
layers are quantized when all their inputs come from DequantizeLinear.

These are not faults, so they are looked for on request only. The ids of their rules begin with
``speed:``; docs/reference/checks.md explains each. Types and shapes should have been inferred
before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from dld_tui.core.checks import repairs
from dld_tui.core.checks.decoders import decoder_findings
from dld_tui.core.checks.findings import SPEED_RULES, Finding, Repair, name_of, speed_finding
from dld_tui.core.checks.rewrites import rewrite_steps, rules_at
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.node import Node, permutation
from dld_tui.core.model.document.scope import Scope
from dld_tui.core.model.operators.categories import REARRANGING, WEIGHTED
from dld_tui.core.model.tensors.value_types import ValueType

_PASSING = REARRANGING | {"MaxPool"}
"""Operators whose results are elements of their first input."""


def quantization_gaps(node: Node) -> Iterator[Finding]:
    """Find what keeps a layer beside quantized ones in floating point."""
    if node.op_type in WEIGHTED:
        yield from _half_quantized(node)
    elif node.op_type == "Add":
        yield from _float_residual(node)
    elif node.op_type == "QuantizeLinear":
        yield from _requantized(node)


def _half_quantized(node: Node) -> Iterator[Finding]:
    if len(node.inputs) < 2:
        return
    quantized = [_is_dequantized(node, index) for index in (0, 1)]
    if quantized[0] == quantized[1]:
        return
    missing = ("data", "weight")[quantized.index(False)]
    other = ("weight", "data")[quantized.index(False)]
    yield speed_finding(
        "speed:half-quantized",
        f"its {other} is dequantized, its {missing} is not: it runs in floating point; add"
        f" QuantizeLinear and DequantizeLinear to the {missing}, too",
        node,
        rules=rules_at(node, "qdq-weights"),
    )


def _float_residual(node: Node) -> Iterator[Finding]:
    """Find sums of a quantized layer and a branch that is not: the sum is not fused then."""
    if len(node.inputs) != 2:
        return
    for index in (0, 1):
        layer = node.scope.producer(node.inputs[index])
        other = node.inputs[1 - index]
        if (
            layer is not None
            and layer.op_type in WEIGHTED
            and _is_dequantized(layer, 0)
            and not _is_dequantized(node, 1 - index)
            and not _is_weight(node, other)
        ):
            yield speed_finding(
                "speed:float-residual",
                f"it adds {name_of(other)}, which is not dequantized, to what"
                f" {name_of(layer.ref)} computes: quantize that branch so that the sum is fused",
                node,
                rules=rules_at(node, "qdq-residual"),
            )
            return


def _requantized(node: Node) -> Iterator[Finding]:
    """Find a DequantizeLinear that is quantized again at once."""
    before = node.scope.producer(node.inputs[0]) if node.inputs else None
    if before is not None and before.op_type == "DequantizeLinear":
        yield speed_finding(
            "speed:requantized",
            f"it quantizes again what {name_of(before.ref)} dequantizes: a copy that only changes"
            " the scale",
            node,
        )


def _is_dequantized(node: Node, index: int) -> bool:
    name = node.inputs[index] if index < len(node.inputs) else ""
    producer = node.scope.producer(name) if name else None
    while producer is not None and producer.op_type in _PASSING:
        producer = node.scope.producer(producer.inputs[0]) if producer.inputs else None
    return producer is not None and producer.op_type == "DequantizeLinear"


def _is_weight(node: Node, name: str) -> bool:
    definition = node.scope.resolve(name)
    if definition is None:
        return False
    return definition.kind == "initializer" or (
        definition.node is not None and definition.node.op_type == "Constant"
    )


# Multiples of dimensions with which Tensor Cores are used fully, by element type: NVIDIA, Deep
# Learning Performance, Matrix Multiplication Background, table 1 (cuBLAS 11, cuDNN 7.6.3 and later
# take others too, at less speed).
_MULTIPLES = {"float32": 4, "float16": 8, "bfloat16": 8, "int8": 16, "uint8": 16}
_FEW_CHANNELS = 4
"""Channels of images: there are special kernels for the first convolution."""
_SMALL_WEIGHT = 4096
"""Elements of a weight below which the layer takes no time worth speaking of."""
_MANY = 4096
"""Elements of an integer tensor from which on its layer is more than arithmetic with shapes."""
_DATA_DEPENDENT = frozenset({"NonZero", "NonMaxSuppression", "Unique", "Compress", "StringSplit"})
"""Operators of ai.onnx whose output shape depends on values."""
_HEAVY = frozenset({
    "Conv", "ConvTranspose", "MatMul", "Gemm", "Add", "Sub", "Mul", "Div", "Pow", "Sqrt", "Exp",
    "Softmax", "ReduceSum", "ReduceMean", "LSTM", "GRU", "RNN", "Einsum", "BatchNormalization",
    "LayerNormalization", "Sigmoid", "Tanh", "Erf", "Attention",
})  # fmt: skip
_WIDER = {
    "float16": ("float32", "float64"), "bfloat16": ("float32", "float64"), "float32": ("float64",),
    "int8": ("int16", "int32", "int64"), "uint8": ("int16", "int32", "int64"),
    "int16": ("int32", "int64"), "int32": ("int64",), "bool": ("int32", "int64", "float32"),
}  # fmt: skip
"""Types that hold every value of a type: a cast to one of these and back changes nothing."""

_Rule = Callable[[Node], Iterator[Finding]]


def speed_findings(document: Document) -> list[Finding]:
    """Return all findings about speed, by scope and node."""
    return [finding for part in speed_steps(document) for finding in part]


def speed_steps(document: Document) -> Iterator[Sequence[Finding]]:
    """Yield findings, none for most nodes, so that an event loop can go on in between."""
    yield list(_inputs(document))
    about_decoders = decoder_findings(document)
    yield about_decoders
    advised: set[tuple[Node | None, str]] = set()
    for scope in document.scopes():
        in_loop = _loop_around(scope)
        for node in scope.nodes:
            rules = _BY_OPERATOR.get(node.op_type, ()) if not node.domain else ()
            findings = [finding for rule in rules for finding in rule(node)]
            if not node.domain and node.op_type in _HEAVY:
                findings += _wide_types(node)
            if in_loop is not None and node.op_type == "Cast" and not node.domain:
                findings += _cast_in_loop(node, in_loop)
            advised.update((found.node, name) for found in findings for name in found.rules)
            yield findings
    named = {name for finding in about_decoders for name in finding.rules}
    yield from rewrite_steps(document, named, advised)


def _alignment(node: Node) -> Iterator[Finding]:
    """Find weights whose channels leave a part of the Tensor Cores idle."""
    weight = _stored_type(node) if _is_stored(node, 1) else None
    if weight is None or weight.dims is None or not weight.dtype:
        return
    multiple = _MULTIPLES.get(weight.dtype)
    sizes = [dim for dim in weight.dims if isinstance(dim, int)]
    if multiple is None or len(sizes) < len(weight.dims) or _product(sizes) < _SMALL_WEIGHT:
        return
    odd = [
        (label, size)
        for label, size in _channels(node, sizes)
        if size % multiple and size > _FEW_CHANNELS
    ]
    rules = rules_at(node, "channels") if odd and node.op_type == "Conv" else ()
    for label, size in odd:
        padded = -(-size // multiple) * multiple
        yield speed_finding(
            "speed:alignment",
            f"{label} {size} is not a multiple of {multiple} ({weight.dtype}): Tensor Cores"
            f" compute {padded} of them",
            node,
            rules=rules,
        )


def _channels(node: Node, sizes: Sequence[int]) -> Iterator[tuple[str, int]]:
    """Yield the labels and sizes of the dimensions of a weight that should be aligned."""
    if node.op_type in ("Conv", "ConvTranspose"):
        if node.integer("group", 1) != 1 or len(sizes) < 3:
            return
        inputs, outputs = sizes[1], sizes[0]
        if node.op_type == "ConvTranspose":
            inputs, outputs = outputs, inputs
    else:
        inputs, outputs = sizes[-2:] if len(sizes) > 1 else (0, 0)
        if node.op_type == "Gemm" and node.integer("transB", 0) != 0:
            inputs, outputs = outputs, inputs
    yield "the number of input channels", inputs
    yield "the number of output channels", outputs


def _inputs(document: Document) -> Iterator[Finding]:
    """Find inputs of which more than two dimensions are free."""
    main = document.main
    for name in main.inputs:
        known = main.value_type(name)
        dims = known.dims if known is not None and known.dims is not None else ()
        free = sum(not isinstance(dim, int) for dim in dims)
        if free > 2 and not main.is_weight(name):
            message = (
                f"{free} of the {len(dims)} dimensions of input {name_of(name)} are free: fix those"
                " that never change, kernels are chosen for the shapes that are known"
            )
            rule = "speed:dynamic-input"
            yield Finding(SPEED_RULES[rule], rule, message, main, None, name)


def _dynamic_channels(node: Node) -> Iterator[Finding]:
    """Find convolutions and products whose weights are not stored: channels are not known."""
    known = _type(node, 1)
    if known is None or known.dims is None or _is_stored(node, 1):
        return
    dims = known.dims[:2] if node.op_type.startswith("Conv") else known.dims[-2:]
    if node.op_type.startswith("Conv") and any(not isinstance(dim, int) for dim in dims):
        yield speed_finding(
            "speed:dynamic-channels",
            "the shape of its weight is not known before it runs: few kernels take that",
            node,
        )


def _data_dependent(node: Node) -> Iterator[Finding]:
    yield speed_finding(
        "speed:data-dependent",
        f"the shape of what {node.op_type} makes depends on values: the GPU waits for the CPU, and"
        " nothing behind it is planned ahead",
        node,
    )


def _transposes(node: Node) -> Iterator[Finding]:
    """Find a Transpose of a Transpose."""
    before = _same_before(node)
    if before is None:
        return
    inner, outer = permutation(before), permutation(node)
    if inner is None or outer is None or len(inner) != len(outer):
        return
    together = [inner[at] for at in outer]
    rules = rules_at(node, "transposes")
    if together != sorted(together):
        message = f"it follows {name_of(before.ref)}, a Transpose too: one could do both"
        yield speed_finding(
            "speed:transposes",
            message,
            node,
            repairs.MERGE_TRANSPOSES,
            rules,
        )
        return
    yield speed_finding(
        "speed:transposes",
        f"it undoes {name_of(before.ref)}, the Transpose before it",
        node,
        _bypass(node, before.inputs[0]),
        rules,
    )


def _casts(node: Node) -> Iterator[Finding]:
    """Find a Cast that undoes the one before it."""
    before = _same_before(node)
    if before is None:
        return
    source, middle = _type(before, 0), _type(node, 0)
    output_type = node.scope.value_type(node.outputs[0]) if node.outputs else None
    if source is None or middle is None or output_type is None or source.dtype != output_type.dtype:
        return
    exact = middle.dtype in _WIDER.get(source.dtype or "", ())
    loses = "" if exact else f"; what {middle.dtype} does not hold is lost on the way"
    yield speed_finding(
        "speed:casts",
        f"it casts back to {output_type.dtype} what {name_of(before.ref)} has cast to"
        f" {middle.dtype}{loses}",
        node,
        _bypass(node, before.inputs[0]) if exact else None,
        ("cast-chains", "casts") if rules_at(node, "cast-chains") else (),
    )


def _same_before(node: Node) -> Node | None:
    """Return the node of the same operator whose value a node takes, if anybody uses its own."""
    before = node.scope.producer(node.inputs[0]) if node.inputs else None
    if before is None or before.op_type != node.op_type or before.domain or not before.inputs:
        return None
    output = node.outputs[0] if node.outputs else ""
    used = output in node.scope.outputs or any(
        output in scope.links.consumers or output in scope.outputs
        for scope in node.scope.reach(output)
    )
    return before if output and used else None


def _bypass(node: Node, source: str) -> Repair | None:
    """Return what gives the users of a node another value; None when it is an output itself."""
    value = node.outputs[0] if node.outputs else ""
    if not value or any(value in scope.outputs for scope in node.scope.reach(value)):
        return None
    return repairs.replace_uses(value, source)


def _loop_around(scope: Scope) -> Node | None:
    """Return the innermost Loop or Scan that a scope is in."""
    inner: Scope | None = scope
    while inner is not None and inner.owner is not None:
        if inner.owner.op_type in ("Loop", "Scan"):
            return inner.owner
        inner = inner.parent
    return None


def _cast_in_loop(node: Node, loop: Node) -> Iterator[Finding]:
    """Find casts in a loop of values that every iteration casts again."""
    name = node.inputs[0] if node.inputs else ""
    definition = node.scope.resolve(name) if name else None
    if definition is None or _is_inside(definition.scope, loop):
        return
    yield speed_finding(
        "speed:cast-in-loop",
        f"{name_of(name)} comes from outside of {name_of(loop.ref)} and is cast in every turn: cast"
        " it before the loop",
        node,
    )


def _is_inside(scope: Scope | None, owner: Node) -> bool:
    while scope is not None and scope.owner is not None:
        if scope.owner is owner:
            return True
        scope = scope.parent
    return False


def _wide_types(node: Node) -> Iterator[Finding]:
    """Find computing in float64, and in int64 where it is more than arithmetic with shapes."""
    known = node.scope.value_type(node.outputs[0]) if node.outputs and node.outputs[0] else None
    if known is None or known.dtype not in ("float64", "int64"):
        return
    if known.dtype == "float64":
        yield speed_finding(
            "speed:float64",
            f"{node.op_type} computes in float64: most GPUs do that 1/32 or 1/64 as fast, and"
            " TensorRT not at all",
            node,
        )
    elif _is_large(known):
        yield speed_finding(
            "speed:int64",
            f"{node.op_type} computes on int64: int32 takes half of the memory traffic",
            node,
        )


def _is_large(known: ValueType) -> bool:
    if known.dims is None or not known.dims:
        return False
    sizes = [dim for dim in known.dims if isinstance(dim, int)]
    return _product(sizes) >= _MANY


def _type(node: Node, index: int) -> ValueType | None:
    names = node.inputs
    return node.scope.value_type(names[index]) if index < len(names) and names[index] else None


def _stored_type(node: Node) -> ValueType | None:
    """Return the type in which a layer's weight is stored: that before it is dequantized."""
    producer = node.scope.producer(node.inputs[1])
    if producer is not None and producer.op_type == "DequantizeLinear":
        return _type(producer, 0)
    return _type(node, 1)


def _is_stored(node: Node, index: int) -> bool:
    """Return whether an input is an initializer, or one that was dequantized."""
    names = node.inputs
    definition = node.scope.resolve(names[index]) if index < len(names) else None
    while definition is not None and definition.node is not None:
        if definition.node.op_type not in ("DequantizeLinear", "QuantizeLinear", "Cast"):
            return definition.node.op_type == "Constant"
        definition = (
            definition.scope.resolve(definition.node.inputs[0]) if definition.node.inputs else None
        )
    return definition is not None and definition.kind == "initializer"


def _product(sizes: Sequence[int]) -> int:
    product = 1
    for size in sizes:
        product *= size
    return product


_BY_OPERATOR: dict[str, tuple[_Rule, ...]] = {
    "Conv": (_alignment, _dynamic_channels, quantization_gaps),
    "ConvTranspose": (_alignment, _dynamic_channels, quantization_gaps),
    "MatMul": (_alignment, quantization_gaps),
    "Gemm": (_alignment, quantization_gaps),
    "Add": (quantization_gaps,),
    "QuantizeLinear": (quantization_gaps,),
    "Transpose": (_transposes,),
    "Cast": (_casts,),
    **dict.fromkeys(_DATA_DEPENDENT, (_data_dependent,)),
}
