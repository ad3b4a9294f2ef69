"""What layers are told to be, and the links between them: layer_kinds.txt."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from dld_tui.core.tensorrt.plan import layer_kinds
from dld_tui.core.tensorrt.plan.engine_plan import EngineLayer, EngineTensor
from dld_tui.core.tensorrt.plan.layer_kinds import Links
from dld_tui.core.tensorrt.plan.mapping import LayerNodes, NodeRef
from tests.support.plans import layer, plan
from tests.support.recorded import Recorded

ATTRIBUTES: tuple[dict[str, int], ...] = (
    {},
    {"Groups": 16, "OutMaps": 16},
    {"Groups": 2, "OutMaps": 16},
    {"Groups": 1, "OutMaps": 1},
)
LAYERS = [
    *(layer(0, "conv", attributes=one) for one in ATTRIBUTES),
    layer(0, "dw", "CaskDepthwiseConvolution"), layer(0, "k", "kgen"),
    layer(0, "r", "Reformat"),
    layer(0, "Reformatting CopyNode for Input Tensor 0 to x", "Reformat"),
    layer(0, "s", "Slice"),
    layer(0, "s", "Other", subtype="Slice"), layer(0, "s", "Shape"), layer(0, "c", "Cast"),
    layer(0, "c", "Other", subtype="Cast"), layer(0, "d", "ShapeDeviceToHost"),
    layer(0, "__mye_CastCast_x", "kgen"), layer(0, "__myl_Shape_x", "kgen"),
    layer(0, "__myl_Shape_x", "Other"), layer(0, "__myl_Add_x", "kgen"),
    layer(0, "soft", "Other", subtype="SoftMax"), layer(0, "soft", "CudaSoftMax"),
    layer(0, "a softmax", "kgen"), layer(0, "b", "kgen", metadata="MaxSubExpSum"),
    layer(0, "softmax", "MatrixMultiply"), layer(0, "soft_max", "kgen", tactic="fmha_v2"),
    layer(0, "__myl_fmha_0", "kgen"), layer(0, "my_attention", "Other"),
    layer(0, "empty", "Other", inputs=(), outputs=()), layer(0, "flat", dims=(1, 16)),
    layer(0, "unknown", dims=None), layer(0, "dynamic", dims=(1, -1, 8)),
]  # fmt: skip
QUANTIZING = [
    layer(0, "q", kind, of=of, to=to, **more)
    for (kind, more), (of, to) in product(
        (("Quantize", {}), ("Scale", {}), ("Other", {"subtype": "Dequantize"}), ("Other", {}),
         ("Reformat", {"origin": "qdq"}), ("Reformat", {"origin": "REFORMAT"}), ("Reformat", {}),
         ("kgen", {})),
        (("fp32", "int8"), ("int8", "fp16"), ("fp32", "fp16"), ("int8", "int8"), ("", "int8")),
    )
] + [
    layer(0, name, "Reformat", of="fp32", to="int8")
    for name in ("a/QuantizeLinear", "Reformatting CopyNode for Input Tensor 0 to a/QuantizeLinear")
]  # fmt: skip


def nodes(*kinds: str) -> LayerNodes:
    refs = tuple(NodeRef(f"n_{kind}", (), kind, kind, ()) for kind in kinds)
    return LayerNodes(refs, "name", "likely", False, False)


def told(one: EngineLayer) -> str:
    names = ("is_depthwise", "is_kernel_generated", "is_reformat", "is_copy", "is_slice",
             "is_shape_work", "is_fused_attention", "is_heavy")  # fmt: skip
    true = [name for name in names if getattr(layer_kinds, name)(one)]
    soft = [
        layer_kinds.is_softmax(one, given) for given in (None, nodes("Add", "Softmax"), nodes())
    ]
    ends = (layer_kinds.in_dtype(one), layer_kinds.out_dtype(one), layer_kinds.channels(one))
    return f"{one.name} {one.type} {one.subtype}: {' '.join(true)} softmax {soft} {ends}"


def quantizing(one: EngineLayer) -> str:
    given = (
        None,
        nodes("QuantizeLinear", "DequantizeLinear"),
        nodes("QuantizeLinear", "Add"),
        nodes(),
    )
    found = [layer_kinds.quantizing(one, those) for those in given]
    return f"{one.name} {one.type} {one.subtype} {one.origin}: {found}"


def linked(index: int, kind: str, of: str, to: str) -> EngineLayer:
    def tensors(names: str) -> tuple[EngineTensor, ...]:
        base = layer().inputs[0]
        return tuple(replace(base, name=name) for name in names.split())

    return replace(layer(index, f"{kind}{index}", kind), inputs=tensors(of), outputs=tensors(to))


CHAIN = [
    linked(0, "Reformat", "in", "a"), linked(1, "Convolution", "a", "b"),
    linked(2, "PointWise", "b c", "d"), linked(3, "MatrixMultiply", "d", "e"),
    linked(4, "PointWise", "e", "out"), linked(5, "Reformat", "in", "c"),
    linked(6, "PointWise", "d", "lost"), linked(7, "SoftMax", "out", "out2"),
]  # fmt: skip


def links() -> str:
    lines = []
    bindings = tuple(
        replace(layer().inputs[0], name=name, mode=mode)
        for name, mode in (("in", "input"), ("out", "output"), ("out2", "output"))
    )
    for ends in ((), bindings):
        found = Links(plan(CHAIN, bindings=ends))
        for place, one in enumerate(CHAIN):
            ways = [
                found.way_to_product(place, step, most)
                for step in (found.before, found.after)
                for most in (0, 1, 2, 5)
            ]
            lines.append(
                f"{one.name}: {found.before(place)} {found.after(place)}"
                f" {found.is_at_input(place)} {found.is_at_output(place)} {ways}"
            )
    return "\n".join(lines)


def test_what_layers_are_told_to_be(recorded: Recorded) -> None:
    recorded("layer_kinds", {
        "kinds": "\n".join(map(told, LAYERS)),
        "quantizing": "\n".join(map(quantizing, QUANTIZING)),
        "links": links(),
    })  # fmt: skip
