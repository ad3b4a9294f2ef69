"""What in an engine plan probably costs time."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dld_tui.core.machine.kernel_names import on_tensor_cores
from dld_tui.core.model.rewrite.rule import own_rules
from dld_tui.core.report.dla import dla_kinds
from dld_tui.core.tensorrt.plan.engine_plan import (
    EngineLayer,
    EnginePlan,
    TimeStatistics,
    TimingSummary,
)
from dld_tui.core.tensorrt.plan.export import finding_json
from dld_tui.core.tensorrt.plan.gains import GainRange, gain_text
from dld_tui.core.tensorrt.plan.layer_work import macs, peaks_of
from dld_tui.core.tensorrt.plan.layers import with_dla_kinds
from dld_tui.core.tensorrt.plan.lint import LEVELS, findings, grouped
from dld_tui.core.tensorrt.plan.mapping import LayerNodes, NodeRef
from tests.support.known import known
from tests.support.plans import layer, plan, tensor
from tests.support.recorded import Recorded, settled
from tests.support.work import steps_in

DOCS = Path(__file__).parents[4] / "docs/reference/engine-lint.md"
FAST = "sm80_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tensor16x8x16"
SLOW = "ampere_int8x4_icudnn_int8x4_128x32_relu_interior_c32_nn_v1"
SIMT = "sm50_xmma_cublas_gemvx_f16f16"
A100 = {"Name": "NVIDIA A100-SXM4-80GB"}
WIDE = (1, 64, 8, 8)


def linked(name: str, dtype: str = "fp32", dims: tuple[int, ...] = WIDE) -> Any:
    return (replace(tensor(dtype, dims), name=name),)


def statistics(median: float, cov: float | None = 0.5) -> TimeStatistics:
    return TimeStatistics(median, median, median, median, cov_percent=cov)


def timing(**times: TimeStatistics) -> TimingSummary:
    return TimingSummary(
        times.get("latency"), times.get("compute"), times.get("h2d"), times.get("d2h"),
        times.get("enqueue"), throughput=None,
    )  # fmt: skip


ENDS = (replace(tensor(), name="x", mode="input"), replace(tensor(), name="y", mode="output"))


def convolutions() -> Iterator[tuple[str, EngineLayer]]:
    """Yield convolutions, each an engine of its own."""
    for of in ("fp16", "bf16", "int8", "fp8", "int4", "fp4", "fp32"):
        yield f"{of} off Tensor Cores", layer(7, of=of, dims=WIDE, tactic=SLOW, percent=3.0)
        yield f"{of} on Tensor Cores", layer(0, of=of, dims=WIDE, tactic=FAST)
    for of, to in (("int8", "fp32"), ("fp8", "fp16"), ("fp4", "bf16"), ("int4", "fp16")):
        yield f"{of} that writes {to}", layer(0, of=of, to=to, dims=WIDE, tactic=FAST)
    yield "few channels", layer(0, of="int8", dims=(1, 16, 8, 8), tactic=SLOW)
    yield "depthwise", layer(0, type="CudaDepthwiseConvolution", of="int8", dims=WIDE,
                             tactic="simt_depthwise")  # fmt: skip
    yield "odd channels off Tensor Cores", layer(0, of="int8", dims=(1, 72, 8, 8), tactic=SLOW)
    for tactic in ("", "sm80_xmma_fprop_implicit_gemm_f16f16", "cudnn_convolution"):
        yield f"a tactic {tactic!r}", layer(0, of="fp16", dims=WIDE, tactic=tactic)
    yield "of a vector", layer(
        0, of="int8", dims=(1, 1280, 1, 1), tactic="sm70_xmma_i8f32_simt", percent=9.0,
        time_ms=1.0, attributes={"Kernel": [1, 1], "OutMaps": 1000},
    )  # fmt: skip
    for of, count in (("int8", 8), ("int8", 16), ("fp16", 8), ("fp16", 12), ("fp8", 24),
                      ("int4", 48), ("fp32", 3), ("bf16", 3), ("fp16", 36),
                      ("fp16", 65)):  # fmt: skip
        yield f"{count} channels of {of}", layer(0, of=of, dims=(1, count, 8, 8), tactic=FAST)
    yield "3 channels, tactic unknown", layer(0, of="fp16", dims=(1, 3, 8, 8))
    for dims in ((1, 3, 8), (1, 3, 8, 8, 8), (1, -1, 8)):
        yield f"dims {dims}", layer(0, of="fp16", dims=dims, tactic=FAST)


def others() -> Iterator[tuple[str, EngineLayer]]:
    """Yield other layers, each an engine of its own."""
    for kind in ("Reformat", "Slice"):
        for of, to in (("fp32", "fp16"), ("bf16", "fp32"), ("fp16", "int8"), ("fp8", "fp16"),
                       ("fp16", "fp16"), ("int8", "fp8"), ("fp32", "int64")):  # fmt: skip
            yield f"{kind} of {of} to {to}", layer(
                0, type=kind, of=of, to=to, origin="REFORMAT", percent=4.0
            )  # fmt: skip
    for kind, origin in (("Scale", ""), ("Reformat", "QDQ"), ("Quantize", ""),
                         ("DynamicQuantize", "")):  # fmt: skip
        for of, to in (("fp16", "fp8"), ("int8", "fp32"), ("fp16", "fp32")):
            yield f"{kind} {origin} of {of} to {to}", layer(0, type=kind, of=of, to=to,
                                                            origin=origin)  # fmt: skip
    for percent in (10.0, 5.0, 4.9):
        yield f"long, {percent}", layer(0, type="Pooling", percent=percent, time_ms=1.0)
    yield "a long Reformat", layer(0, type="Reformat", percent=30.0, time_ms=1.0)
    yield "long nodes", layer(0, "{ForeignNode[a...b]}", type="", percent=30.0, time_ms=1.0)
    for tactic, percent in ((SIMT, 5.0), (SIMT, 4.0), (FAST, 9.0)):
        for of in ("fp16", "fp32"):
            yield f"a product in {of}, {percent} of {tactic}", layer(
                0, type="gemm", subtype="", of=of, time_ms=1.0, tactic=tactic, percent=percent
            )  # fmt: skip
    yield "a product of an unknown type", layer(
        0, type="gemm", subtype="", inputs=(), outputs=(), time_ms=1.0, tactic=SIMT, percent=9.0,
    )  # fmt: skip
    yield "a product of a vector", layer(
        0, type="gemm", subtype="", of="fp16", dims=(1, 512), tactic="cublas_gemvx", percent=9.0,
        time_ms=1.0,
    )  # fmt: skip


def pooled(count: int, **more: Any) -> list[EngineLayer]:
    return [layer(at, type="Pooling", **more) for at in range(count)]


def attention(tactic: str = "", products: int = 2) -> EnginePlan:
    """Return an engine of the layers of an attention."""
    made = [
        layer(0, type="gemm", subtype="", inputs=linked("q", "fp16"), outputs=linked("s", "fp16"),
              tactic=FAST, percent=30.0, time_ms=3.0),
        layer(1, type="kgen", subtype="", inputs=linked("s", "fp16"), outputs=linked("t", "fp16")),
        layer(2, "__myl_MaxrSubExpSum_myl0_2", type="kgen", subtype="", inputs=linked("t", "fp16"),
              outputs=linked("p", "fp16"), percent=2.0, time_ms=1.0, tactic=tactic),
        layer(3, type="gemm", subtype="", inputs=linked("p", "fp16"), outputs=linked("o", "fp16"),
              tactic=FAST, percent=20.0, time_ms=2.0),
    ]  # fmt: skip
    return plan(made[: products + 2])


def dla(*names: str) -> EnginePlan:
    layers = (
        layer(at, name, type="", percent=percent, time_ms=percent)
        for at, (name, percent) in enumerate(zip(names, (1.0, 2.0, 2.0, 92.0, 3.0), strict=True))
    )
    return plan(with_dla_kinds(tuple(layers)))


def names_only(*names: str) -> EnginePlan:
    layers = [layer(at, name, type="", inputs=(), outputs=()) for at, name in enumerate(names)]
    return replace(plan(layers), names_only=True)


def whole() -> Iterator[tuple[str, EnginePlan]]:
    """Yield engines of several layers, and with times of inferences."""
    yield "plain", plan([
        layer(0, of="fp16", tactic=FAST, percent=2.0, time_ms=1.0),
        layer(1, type="Pooling", of="fp16", percent=1.0, time_ms=1.0),
    ])  # fmt: skip
    first = layer(0, inputs=linked("x", "int8"), outputs=linked("t", "fp32"), tactic=FAST,
                  percent=4.0, time_ms=1.0)  # fmt: skip
    last = layer(1, inputs=linked("t", "int8"), outputs=linked("u", "fp32"), tactic=FAST)
    softmax = layer(2, type="SoftMax", inputs=linked("u"), outputs=linked("y"))
    yield "the last writes floats", plan([first, last, softmax], bindings=ENDS)
    back = layer(1, type="Reformat", origin="QDQ", inputs=linked("t"), outputs=linked("u", "int8"),
                 percent=30.0, time_ms=1.0)  # fmt: skip
    after = layer(2, inputs=linked("u", "int8"), outputs=linked("y", "int8"), tactic=FAST)
    yield "floats that are quantized again", plan([first, back, after], bindings=ENDS)
    twice = replace(back, index=3, outputs=linked("w", "int8"))
    yield "floats that are quantized twice", plan([first, back, twice, after], bindings=ENDS)
    quantize = layer(0, type="Reformat", origin="QDQ", inputs=linked("x"),
                     outputs=linked("t", "int8"))  # fmt: skip
    conv = layer(1, inputs=linked("t", "int8"), outputs=linked("u", "int8"), tactic=FAST)
    dequantize = layer(2, type="Scale", inputs=linked("u", "int8"), outputs=linked("y"))
    yield "quantized at the ends", plan([quantize, conv, dequantize], bindings=ENDS)
    to_half = layer(0, type="Reformat", inputs=linked("x"), outputs=linked("t", "fp16"))
    half = layer(1, inputs=linked("t", "fp16"), outputs=linked("u", "fp16"), tactic=FAST)
    to_float = layer(2, type="Reformat", inputs=linked("u", "fp16"), outputs=linked("y"))
    yield "converted at the ends", plan([to_half, half, to_float], bindings=ENDS)
    image = layer(0, inputs=linked("x", "fp16", (1, 3, 8, 8)), outputs=linked("t", "fp16"),
                  tactic=FAST)  # fmt: skip
    classes = layer(1, inputs=linked("t", "fp16"), outputs=linked("y", "fp16", (1, 10, 8, 8)),
                    tactic=FAST)  # fmt: skip
    yield "an image and classes", plan([image, classes], bindings=ENDS)
    nine = layer(0, inputs=linked("x", "fp16"), outputs=linked("t", "fp16", (1, 9, 8, 8)),
                 tactic=FAST)  # fmt: skip
    more = layer(1, inputs=linked("t", "fp16", (1, 9, 8, 8)), outputs=linked("y", "fp16"),
                 tactic=FAST)  # fmt: skip
    yield "nine channels in the middle", plan([nine, more], bindings=ENDS)
    copies = [layer(at, type="Reformat", percent=2.0 + at, time_ms=1.0) for at in range(3)]
    yield "three copies", plan(copies)
    yield "two copies", plan(copies[:2])
    yield "one long copy", plan([replace(copies[0], percent=9.0)])
    rows = tuple(replace(one, format="Row major") for one in copies[0].outputs)
    yield "copies to other formats", plan([replace(one, outputs=rows) for one in copies])
    yield "copies to other types", plan([replace(one, outputs=linked("t", "fp16"))
                                         for one in copies])  # fmt: skip
    yield "copies by names", replace(plan(copies), names_only=True)
    steady = layer(1, type="Pooling", time_ms=1.0, median_ms=1.0, percent=20.0)
    slow = layer(0, type="Pooling", time_ms=3.0, median_ms=1.0, percent=60.0)
    slower = layer(2, type="Pooling", time_ms=9.0, median_ms=2.0, percent=70.0)
    yield "means above medians", plan([slow, steady, slower])
    yield "means at medians", plan([steady, replace(steady, time_ms=1.39)])
    yield "no medians", plan([replace(steady, median_ms=None)])
    dynamic = layer(0, type="Pooling", dims=(-1, 64, 8, 8))
    yield "dynamic", plan([dynamic, layer(1, type="Pooling")])
    yield "hardly dynamic", plan([dynamic, layer(1, type="Pooling"), layer(2, type="Pooling")])
    yield "fixed and unknown", plan([layer(0, type="Pooling", dims=(0, 64)),
                                     layer(1, type="Pooling", dims=None)])  # fmt: skip
    yield "names of an attention", names_only("/q/MatMul", "/scale/Mul", "/Softmax", "/v/MatMul")
    yield "names of half of one", names_only("/q/MatMul", "/scale/Mul", "/Softmax")
    far = ("MatMul_0", "Mul_1", "Mul_2", "Mul_3", "Mul_4", "Softmax_5", "Einsum_6")
    yield "names that are far apart", names_only(*far)
    yield "names that are not", names_only(*far[:1], *far[2:])
    yield "ten alike", plan(pooled(10, percent=10.0, time_ms=1.0))
    yield "one of ten", plan([*pooled(9, percent=8.0, time_ms=1.0),
                              layer(9, type="Pooling", percent=25.0, time_ms=2.5)])  # fmt: skip
    yield "in order", plan([
        layer(0, type="Pooling", percent=6.0, time_ms=1.0),
        layer(1, type="Reformat", of="fp32", to="fp16", percent=1.0, time_ms=1.0),
        layer(2, type="Pooling", percent=30.0, time_ms=1.0),
        layer(3, type="Reformat", of="fp32", to="fp16"),
    ])  # fmt: skip
    # Whatever it is called: nothing is saved by another format, and no file knows what would be.
    # TensorRT 7 wrote the first two on a Jetson Xavier.
    yield "a DLA", dla("data to nvm", "{a,b}", "data copy finish", "b from nvm",
                       "c input reformatter 0")  # fmt: skip
    yield "a DLA of old names", dla(
        "{a,b} input reformatter 0", "{a,b}", "{a,b} reformatted input 0 finish",
        "{a,b} output reformatter 0", "c",
    )  # fmt: skip
    yield "a DLA and the next", dla("a copy", "{a,b}", "b finish", "c input reformatter 0", "c")
    parts = dla("data to nvm", "{a,b}", "data copy finish", "b from nvm", "c")
    long = [replace(one, percent=percent) for one, percent in
            zip(parts.layers, (20.0, 30.0, 1.0, 4.0, 45.0), strict=True)]  # fmt: skip
    yield "a long part of a DLA", replace(parts, layers=tuple(long))
    tf32 = layer(0, of="fp32", tactic="sm80_xmma_gemm_f32f32_tf32f32_f32", percent=9.0, time_ms=1.0)
    yield "fp32", plan([tf32])
    for allowed in ("FP32+FP16", "fp16, int8", "FP32"):
        yield f"fp32 of {allowed}", plan([tf32], metadata={"build_options": {"Precision": allowed}})
    heavy = [layer(at, of="fp32", percent=1.0, time_ms=1.0) for at in range(20)]
    fast = [layer(at, of="fp16", tactic=FAST) for at in (18, 19)]
    yield "all in fp32", plan(heavy)
    yield "but for one", plan([*heavy[:19], fast[1]])
    yield "but for two", plan([*heavy[:18], *fast])
    yield "without inputs or outputs", plan([
        layer(0, type="TrainStation", inputs=(), outputs=()),
        layer(1, type="Convolution", inputs=(), outputs=(tensor(),)),
        layer(2, type="Reformat", outputs=()), layer(3, type="Scale", inputs=(), outputs=()),
    ])  # fmt: skip
    generated = [layer(at, type="kgen", subtype="", percent=4.9, time_ms=1.0) for at in range(6)]
    shape = layer(6, type="shape_call", subtype="", percent=3.0, time_ms=1.0)
    yield "generated and of shapes", plan([*generated, shape])
    yield "fewer", plan([*generated[:5], replace(shape, percent=2.9)])
    short = [layer(at, type="PointWise", percent=1.0, time_ms=0.0049) for at in range(20)]
    yield "short", plan(short)
    graph = {"inference_options": {"CUDA Graph": "Enabled", "Duration": "3s"}}
    yield "short, in a CUDA graph", plan(short, metadata=graph)
    yield "fewer short ones", plan(short[:19])
    yield "short ones of little time", plan([replace(one, percent=0.9) for one in short])
    yield "of no time", plan([replace(one, time_ms=0.0) for one in short])
    yield "an attention", attention()
    yield "a fused attention", attention("sm80_fused_mha_v2")
    yield "half of an attention", attention(products=1)
    compute = statistics(1.0)
    for title, times in {
        "launch-bound": timing(compute=compute, enqueue=statistics(0.81)),
        "not launch-bound": timing(compute=compute, enqueue=statistics(0.8)),
        "far launch-bound": timing(compute=compute, enqueue=statistics(4.0)),
        "no time of the work": timing(enqueue=statistics(9.0), h2d=statistics(9.0)),
        "no work": timing(compute=statistics(0.0), enqueue=statistics(9.0), h2d=statistics(0.0)),
        "copies": timing(compute=compute, h2d=statistics(1.0), d2h=statistics(0.9)),
        "copies back": timing(compute=compute, h2d=statistics(2.0), d2h=statistics(1.0)),
        "unsteady": timing(compute=statistics(1.0, 2.6)),
        "steady": timing(compute=statistics(1.0, 2.5)),
        "unknown": timing(compute=statistics(1.0, None)),
        "unsteady latencies": timing(latency=statistics(1.0, 2.6)),
        "few held up": timing(compute=TimeStatistics(1.0, 4.0, 1.1, 1.0, 1.05, cov_percent=30.0)),
        "many held up": timing(compute=TimeStatistics(1.0, 4.0, 1.1, 1.0, 1.06, cov_percent=30.0)),
        "none held up": timing(compute=TimeStatistics(1.0, 1.5, 1.1, 1.0, 1.05, cov_percent=30.0)),
    }.items():  # fmt: skip
        yield title, plan([], timing=times)
        if "launch" in title:
            half_ms = layer(0, type="Pooling", of="fp16", percent=4.0, time_ms=0.5)
            yield f"{title}, with layers", plan([half_ms], timing=times, metadata=graph,
                                                total_ms=0.5)  # fmt: skip
    saved = [layer(0, of="int8", dims=WIDE, tactic=SLOW, percent=30.0, time_ms=0.3),
             layer(1, type="Pooling", of="fp16", percent=70.0, time_ms=0.7)]  # fmt: skip
    yield "what is saved", plan(saved)
    yield "three alike", plan([layer(at, of="int8", dims=WIDE, tactic=SLOW, percent=3.0 + at,
                                     time_ms=0.03) for at in range(3)])  # fmt: skip


def told(made: EnginePlan, nodes: dict[int, LayerNodes] | None = None) -> str:
    found = findings(made, nodes)
    assert {one.level for one in found} <= set(LEVELS)
    lines = []
    for one in found:
        place = "–" if one.layer is None else one.layer
        gain = gain_text(one.gain) if one.gain else ""
        lines.append(f"{one.level} {one.rule} of {place} {one.layers}, {one.percent} % {gain}")
        lines.append(f"  {one.hazard} | {one.mitigation} {one.rules}")
    for group in grouped(made, found):
        layers = [one.index for one in group.layers]
        gain = gain_text(group.gain) if group.gain else ""
        lines.append(f"{group.rule} {group.level} {layers} {group.percent} {gain}")
        lines += [f"  {text}" for text in (*group.hazards, *group.mitigations)]
    json.dumps([finding_json(one) for one in found])
    return settled("\n".join(lines))


def test_whole_findings(recorded: Recorded) -> None:
    texts = {title: told(plan([one])) for title, one in (*convolutions(), *others())}
    texts |= {title: told(made) for title, made in whole()}
    generated = plan([layer(3, "__myl_RounCast_myl0_1", type="kgen", of="fp32", to="int8")])
    nodes = {3: LayerNodes((NodeRef("/in/QuantizeLinear"),), "metadata", "exact")}
    texts["a kernel that only quantizes, by its node"] = told(generated, nodes)
    texts["a kernel that only quantizes"] = told(generated)
    recorded("whole_findings", texts)


@pytest.mark.parametrize(
    ("tactic", "uses"),
    [
        (FAST, True),
        ("turing_fp32_i8816cudnn_int8_128x128_ldg16_relu_small_nt_v1", True),
        ("ampere_h1688cudnn_128x128_ldg8_relu_exp_medium", True),
        ("sm90_xmma_gemm_e4m3e4m3_gmma", True),
        ("sm50_xmma_pooling_tiled_FP32NCHW", False),
        ("sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_g1_ffma_t1r5s5", False),
        ("ampere_scudnn_128x64_relu_medium_nn_v1", False),
        ("volta_fp32_icudnn_int8x4_128x32_relu_xregs_small_nn_v1", False),
        ("sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize32x32", True),
        ("sm80_xmma_fprop_implicit_gemm_f16f16_f16f16_f16_nhwckrsc_nhwc", None),
        ("sm50_xmma_cublas_gemvx_f32f32_f32_f32_tn_n", False),
        (SLOW, False),
        ("", None),
    ],
)
def test_tactics_that_use_tensor_cores(tactic: str, uses: bool | None) -> None:
    assert on_tensor_cores(tactic) is uses


def test_a_range_of_nodes_is_of_a_dla_if_its_type_says_so() -> None:
    name = "{ForeignNode[a...b]}"
    copies = [
        f"Reformatting CopyNode for {side} Tensor 0 to {name}" for side in ("Input", "Output")
    ]
    for kind, roles in (("DLA", ["DLA transfer", "DLA", "DLA wait"]), ("Myelin", [None] * 3)):
        assert dla_kinds([(copies[0], "Reformat"), (name, kind), (copies[1], "Reformat")]) == roles


def test_every_rule_is_documented() -> None:
    text = DOCS.read_text()
    source = Path(__file__).parents[4] / "src/dld_tui/core/tensorrt/plan/lint.py"
    rewrites = {rule.name for rule in own_rules()}
    rules = _rule_names(source.read_text()) - rewrites
    assert len(rules) > 12
    assert not {rule for rule in rules if f"`{rule}`" not in text}


def _rule_names(text: str) -> set[str]:
    return set(re.findall(r'"([a-z0-9]+(?:-[a-z0-9]+)+)"', text))


@pytest.mark.broad
def test_the_work_grows_with_the_layers_and_no_faster() -> None:
    kinds = ("Convolution", "Reformat", "kgen", "gemm", "Scale")
    plans = [
        plan([
            layer(i, f"softmax{i}", type=kinds[i % 5], of="int8", to="fp16", tactic=SLOW,
                  percent=0.02, time_ms=0.004)
            for i in range(count)
        ])
        for count in (150, 300)
    ]  # fmt: skip
    few, many = (steps_in(findings, made) for made in plans)
    assert many < 2.5 * few
    assert len(findings(plans[1])) > 300


def gain_of(rule: str, made: EnginePlan) -> GainRange:
    return known(next(one.gain for one in findings(made) if one.rule == rule))


def test_layers_in_fp32_are_bounded_by_their_roofline_in_half_of_the_bytes() -> None:
    full = layer(
        0, of="fp32", dims=(1, 64, 56, 56), percent=90.0, time_ms=0.9,
        attributes={"Kernel": [3, 3], "OutMaps": 64, "Groups": 1},
    )  # fmt: skip
    gain = gain_of("runs-in-fp32", plan([full], device=A100, total_ms=1.0))
    peaks, count = peaks_of(A100), macs(full)
    assert peaks is not None
    assert count is not None
    assert full.footprint is not None
    ideal_s = max(2 * count / 312e12, full.footprint / 2 / peaks.bandwidth)
    assert gain.percent == pytest.approx((0.0, 90.0 * (1 - 1000 * ideal_s / 0.9)))
    assert gain.source.endswith("roofline in fp16")
