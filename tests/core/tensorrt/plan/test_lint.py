"""What in an engine plan probably costs time."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dld_tui.core.machine.kernel_names import on_tensor_cores
from dld_tui.core.model.rewrite.rule import own_rules
from dld_tui.core.report.dla import dla_kinds
from dld_tui.core.tensorrt.plan.engine_plan import EngineLayer, TimeStatistics, TimingSummary
from dld_tui.core.tensorrt.plan.export import finding_json
from dld_tui.core.tensorrt.plan.gains import GainRange, gain_text
from dld_tui.core.tensorrt.plan.layer_work import macs, peaks_of
from dld_tui.core.tensorrt.plan.layers import with_dla_kinds
from dld_tui.core.tensorrt.plan.lint import LEVELS, PlanFinding, findings, grouped
from dld_tui.core.tensorrt.plan.mapping import LayerNodes, NodeRef
from tests.support.known import known
from tests.support.plans import layer, plan, tensor
from tests.support.work import steps_in

DOCS = Path(__file__).parents[4] / "docs/reference/engine-lint.md"
FAST = "sm80_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tensor16x8x16"
SLOW = "ampere_int8x4_icudnn_int8x4_128x32_relu_interior_c32_nn_v1"


def said(*layers: EngineLayer, **fields: Any) -> dict[str, PlanFinding]:
    """Return the findings by rule; each rule speaks at most once here."""
    found = findings(plan(layers, **fields))
    assert len({one.rule for one in found}) == len(found)
    return {one.rule: one for one in found}


def test_a_plain_engine_has_no_findings() -> None:
    assert not said(
        layer(0, of="fp16", tactic=FAST, percent=2.0, time_ms=1.0),
        layer(1, type="Pooling", of="fp16", percent=1.0, time_ms=1.0),
    )


@pytest.mark.parametrize("of", ["fp16", "bf16", "int8", "fp8", "int4", "fp4"])
def test_convolutions_off_tensor_cores(of: str) -> None:
    found = said(layer(7, of=of, dims=(1, 64, 8, 8), tactic=SLOW, percent=3.0))
    finding = found["conv-off-tensor-cores"]
    assert (finding.layer, finding.level, finding.percent) == (7, "warning", 3.0)
    assert of in finding.hazard
    assert finding.mitigation
    assert "conv-off-tensor-cores" not in said(layer(0, of=of, dims=(1, 64, 8, 8), tactic=FAST))


def test_convolutions_in_fp32_are_not_expected_on_tensor_cores() -> None:
    assert "conv-off-tensor-cores" not in said(layer(0, of="fp32", tactic="ampere_scudnn_128x64"))


def test_why_a_convolution_may_be_off_tensor_cores() -> None:
    few = said(layer(0, of="int8", dims=(1, 16, 8, 8), tactic=SLOW))["conv-off-tensor-cores"]
    assert "16 input channels" in few.mitigation
    deep = layer(
        0, type="CudaDepthwiseConvolution", of="int8", dims=(1, 64, 8, 8), tactic="simt_depthwise"
    )
    assert "depthwise" in said(deep)["conv-off-tensor-cores"].mitigation
    odd = layer(0, of="int8", dims=(1, 72, 8, 8), tactic=SLOW)
    assert "multiples of 16" in said(odd)["conv-off-tensor-cores"].mitigation
    # That is the one finding: its channels are no second cause.
    assert "conv-channels-unaligned" not in said(odd)


@pytest.mark.parametrize(
    "tactic", ["", "sm80_xmma_fprop_implicit_gemm_f16f16", "cudnn_convolution"]
)
def test_only_the_name_of_a_tactic_proves_that_it_does_without_tensor_cores(tactic: str) -> None:
    assert not said(layer(0, of="fp16", dims=(1, 64, 8, 8), tactic=tactic))


def test_no_advice_on_the_product_of_a_vector() -> None:
    """A classifier of one image waits for its weights, whatever computes it."""
    one = layer(
        0, of="int8", dims=(1, 1280, 1, 1), tactic="sm70_xmma_i8f32_simt", percent=9.0,
        time_ms=1.0, attributes={"Kernel": [1, 1], "OutMaps": 1000},
    )  # fmt: skip
    assert set(said(one)) == {"long-layer"}
    vector = layer(
        0, type="gemm", subtype="", of="fp16", dims=(1, 512), tactic="cublas_gemvx", percent=9.0,
        time_ms=1.0,
    )  # fmt: skip
    assert set(said(vector)) == {"long-layer"}


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


def linked(name: str, dtype: str = "fp32", dims: tuple[int, ...] = (1, 64, 8, 8)) -> Any:
    return (replace(tensor(dtype, dims), name=name),)


ENDS = (
    replace(tensor(), name="x", mode="input"),
    replace(tensor(), name="y", mode="output"),
)


def test_the_last_convolution_of_a_quantized_engine_may_write_floats() -> None:
    first = layer(0, inputs=linked("x", "int8"), outputs=linked("t", "fp32"), tactic=FAST)
    last = layer(1, inputs=linked("t", "int8"), outputs=linked("u", "fp32"), tactic=FAST)
    softmax = layer(2, type="SoftMax", inputs=linked("u"), outputs=linked("y"))
    found = findings(plan([first, last, softmax], bindings=ENDS))
    assert [(one.rule, one.layer) for one in found] == [("quantized-conv-float-output", 0)]


def test_a_convolution_whose_floats_are_quantized_again_is_one_finding() -> None:
    conv = layer(0, inputs=linked("x", "int8"), outputs=linked("t", "fp32"), tactic=FAST,
                 percent=4.0, time_ms=1.0)  # fmt: skip
    back = layer(1, type="Reformat", origin="QDQ", inputs=linked("t"), outputs=linked("u", "int8"),
                 percent=3.0, time_ms=1.0)  # fmt: skip
    next_one = layer(2, inputs=linked("u", "int8"), outputs=linked("y", "int8"), tactic=FAST)
    (found,) = findings(plan([conv, back, next_one], bindings=ENDS))
    assert (found.rule, found.layer, found.layers) == ("quantized-conv-float-output", 0, (0, 1))
    assert found.percent == 7.0
    assert "1 Quantize layer reads it" in found.hazard


def test_conversions_at_the_ends_of_the_network_are_notes() -> None:
    quantize = layer(
        0, type="Reformat", origin="QDQ", inputs=linked("x"), outputs=linked("t", "int8")
    )
    conv = layer(1, inputs=linked("t", "int8"), outputs=linked("u", "int8"), tactic=FAST)
    dequantize = layer(2, type="Scale", inputs=linked("u", "int8"), outputs=linked("y"))
    (found,) = findings(plan([quantize, conv, dequantize], bindings=ENDS))
    assert (found.rule, found.level) == ("unfused-quantize", "note")
    assert "An input of the network" in found.hazard
    to_half = layer(0, type="Reformat", inputs=linked("x"), outputs=linked("t", "fp16"))
    half = layer(1, inputs=linked("t", "fp16"), outputs=linked("y", "fp16"), tactic=FAST)
    (found,) = findings(plan([to_half, half], bindings=ENDS))
    assert (found.rule, found.level) == ("reformat-converts-type", "note")
    assert "--inputIOFormats" in found.mitigation


def test_an_image_and_a_classifier_have_the_channels_that_they_have() -> None:
    first = layer(0, inputs=linked("x", "fp16", (1, 3, 8, 8)), outputs=linked("t", "fp16"),
                  tactic=FAST)  # fmt: skip
    last = layer(1, inputs=linked("t", "fp16"), outputs=linked("y", "fp16", (1, 10, 8, 8)),
                 tactic=FAST)  # fmt: skip
    assert not findings(plan([first, last], bindings=ENDS))
    # Nine channels in the middle are padded to sixteen.
    nine = layer(0, inputs=linked("x", "fp16"), outputs=linked("t", "fp16", (1, 9, 8, 8)),
                 tactic=FAST)  # fmt: skip
    after = layer(1, inputs=linked("t", "fp16", (1, 9, 8, 8)), outputs=linked("y", "fp16"),
                  tactic=FAST)  # fmt: skip
    found = findings(plan([nine, after], bindings=ENDS))
    assert {one.rule for one in found} == {"conv-channels-unaligned"}
    assert "78 % more work" in found[0].hazard


def test_all_conversions_of_the_memory_format_together() -> None:
    copies = [layer(i, type="Reformat", percent=2.0, time_ms=1.0) for i in range(3)]
    found = said(*copies)["layout-conversions"]
    assert (found.layer, found.layers, found.percent) == (None, (0, 1, 2), 6.0)
    assert "layout-conversions" not in said(*copies[:2])
    types = [replace(one, outputs=linked("t", "fp16")) for one in copies]
    assert "layout-conversions" not in {one.rule for one in findings(plan(types))}


def test_means_far_above_the_medians() -> None:
    slow = layer(0, type="Pooling", time_ms=3.0, median_ms=1.0, percent=60.0)
    steady = layer(1, type="Pooling", time_ms=1.0, median_ms=1.0, percent=20.0)
    found = {one.rule: one for one in findings(plan([slow, steady]))}["mean-above-median"]
    assert (found.layers, found.percent) == ((0,), 60.0)
    assert "4.000 ms, their medians to 2.000 ms" in found.hazard
    assert not any(one.rule == "mean-above-median" for one in findings(plan([steady, steady])))


def test_dynamic_shapes_without_values() -> None:
    open_ = layer(0, type="Pooling", dims=(-1, 64, 8, 8))
    found = said(open_)["dynamic-shapes"]
    assert (found.level, found.layers) == ("note", (0,))
    assert "--shapes" in found.mitigation
    closed = [layer(i, type="Pooling") for i in (1, 2)]
    assert "dynamic-shapes" not in said(open_, *closed)


def test_attention_in_a_plan_of_names() -> None:
    names = ("/q/MatMul", "/scale/Mul", "/Softmax", "/v/MatMul")
    layers = [layer(i, name, type="", inputs=(), outputs=()) for i, name in enumerate(names)]
    found = findings(replace(plan(layers), names_only=True))
    assert [one.layer for one in found if one.rule == "attention-not-fused"] == [2]
    head = findings(replace(plan(layers[:3]), names_only=True))
    assert "attention-not-fused" not in {one.rule for one in head}


def test_how_long_layers_are() -> None:
    """Of ten layers each has a tenth: that is no finding."""
    even = [layer(i, type="Pooling", percent=10.0, time_ms=1.0) for i in range(10)]
    assert not findings(plan(even))
    found = findings(plan([*even[:9], layer(9, type="Pooling", percent=25.0, time_ms=2.5)]))
    assert [(one.rule, one.layer) for one in found] == [("long-layer", 9)]
    found = findings(
        plan([
            layer(0, type="Pooling", percent=6.0, time_ms=1.0),
            layer(1, type="Reformat", of="fp32", to="fp16", percent=1.0, time_ms=1.0),
            layer(2, type="Pooling", percent=30.0, time_ms=1.0),
        ])
    )  # fmt: skip
    assert [(one.layer, one.level) for one in found] == [
        (2, "warning"), (1, "warning"), (0, "note"),
    ]  # fmt: skip
    assert {one.level for one in found} <= set(LEVELS)


@pytest.mark.parametrize(
    "names",
    [
        ("data to nvm", "{a,b}", "data copy finish", "b from nvm", "c input reformatter 0"),
        ("{a,b} input reformatter 0", "{a,b}", "{a,b} reformatted input 0 finish",
         "{a,b} output reformatter 0", "c"),
        ("a copy", "{a,b}", "b finish", "c input reformatter 0", "c"),
    ],
)  # fmt: skip
def test_what_first_reads_a_part_of_a_dla_waits_for_it(names: tuple[str, ...]) -> None:
    """Whatever it is called: nothing is saved by another format, and no file knows what would be.

    TensorRT 7 wrote the first two on a Jetson Xavier.
    """
    layers = with_dla_kinds(tuple(
        layer(at, name, type="", percent=percent, time_ms=percent)
        for at, (name, percent) in enumerate(zip(names, (1.0, 2.0, 2.0, 92.0, 3.0), strict=True))
    ))  # fmt: skip
    found = findings(plan(layers))
    assert [(one.rule, one.layers, one.percent, one.gain) for one in found] == [
        ("dla-wait", (3, 2), 94.0, None)
    ]
    assert [one.dla for one in layers[-1:]] == [None]


def test_a_range_of_nodes_is_of_a_dla_if_its_type_says_so() -> None:
    name = "{ForeignNode[a...b]}"
    copies = [
        f"Reformatting CopyNode for {side} Tensor 0 to {name}" for side in ("Input", "Output")
    ]
    for kind, roles in (("DLA", ["DLA transfer", "DLA", "DLA wait"]), ("Myelin", [None] * 3)):
        assert dla_kinds([(copies[0], "Reformat"), (name, kind), (copies[1], "Reformat")]) == roles


def test_an_engine_that_could_have_been_smaller_and_was_not() -> None:
    layers = [layer(0, of="fp32", tactic="sm80_xmma_gemm_f32f32_tf32f32_f32")]
    options = {"build_options": {"Precision": "FP32+FP16"}}
    found = said(*layers, metadata=options)["runs-in-fp32"]
    assert "1 of them on Tensor Cores as TF32" in found.hazard
    assert "The build allowed FP16" in found.mitigation
    assert "Allow a lower precision" in said(*layers)["runs-in-fp32"].mitigation


@pytest.mark.parametrize("of", ["int8", "fp8", "fp4", "int4"])
@pytest.mark.parametrize("to", ["fp32", "fp16", "bf16"])
def test_quantized_convolutions_that_write_floats(of: str, to: str) -> None:
    found = said(layer(0, of=of, to=to, dims=(1, 64, 8, 8), tactic=FAST))
    assert of in found["quantized-conv-float-output"].hazard
    assert to in found["quantized-conv-float-output"].hazard


@pytest.mark.parametrize(
    ("of", "channels", "odd"),
    [
        ("int8", 8, True), ("int8", 16, False), ("fp16", 8, False), ("fp16", 12, True),
        ("fp8", 24, True), ("int4", 48, True), ("fp32", 3, False), ("bf16", 3, True),
    ],
)  # fmt: skip
def test_channels_of_convolutions(of: str, channels: int, odd: bool) -> None:
    found = said(layer(0, of=of, dims=(1, channels, 8, 8), tactic=FAST))
    assert ("conv-channels-unaligned" in found) is odd


def test_channels_count_in_any_number_of_dimensions() -> None:
    assert "conv-channels-unaligned" in said(layer(0, of="fp16", dims=(1, 3, 8), tactic=FAST))
    assert "conv-channels-unaligned" in said(layer(0, of="fp16", dims=(1, 3, 8, 8, 8), tactic=FAST))
    assert "conv-channels-unaligned" not in said(layer(0, of="fp16", dims=(1, -1, 8), tactic=FAST))


@pytest.mark.parametrize(
    ("of", "to"), [("fp32", "fp16"), ("bf16", "fp32"), ("fp16", "int8"), ("fp8", "fp16")]
)
@pytest.mark.parametrize("kind", ["Reformat", "Slice"])
def test_reformats_and_slices_that_convert(of: str, to: str, kind: str) -> None:
    found = said(layer(0, type=kind, of=of, to=to, origin="REFORMAT", percent=4.0))
    finding = found[f"{kind.lower()}-converts-type"]
    assert f"{of} to {to}" in finding.hazard
    assert "REFORMAT" in finding.hazard
    assert ("Quantize" in finding.mitigation) is (to == "int8" or of == "fp8")
    assert not said(layer(0, type=kind, of=of, to=of))


@pytest.mark.parametrize(
    ("kind", "origin"),
    [("Scale", ""), ("Reformat", "QDQ"), ("Quantize", ""), ("DynamicQuantize", "")],
)
def test_quantizing_and_dequantizing_layers(kind: str, origin: str) -> None:
    assert "unfused-quantize" in said(layer(0, type=kind, of="fp16", to="fp8", origin=origin))
    dequantizing = layer(0, type=kind, of="int8", to="fp32", origin=origin)
    finding = said(dequantizing)["unfused-dequantize"]
    assert "(dld rewrite MODEL qdq-weights -o OUT)" in finding.mitigation
    assert {rule.name for rule in own_rules()}.issuperset(finding.rules)
    assert "unfused-quantize" not in said(layer(0, type=kind, of="fp16", to="fp32", origin=origin))


def test_generated_kernels_that_only_quantize_are_seen_by_their_nodes() -> None:
    made = plan([layer(3, "__myl_RounCast_myl0_1", type="kgen", of="fp32", to="int8")])
    nodes = LayerNodes((NodeRef("/in/QuantizeLinear"),), "metadata", "exact")
    assert [one.rule for one in findings(made, {3: nodes})] == ["unfused-quantize"]
    assert not findings(made)


def test_layers_without_outputs_or_inputs() -> None:
    found = said(
        layer(0, type="TrainStation", inputs=(), outputs=()),
        layer(1, type="Convolution", inputs=(), outputs=(tensor(),)),
        layer(2, type="Reformat", outputs=()),
        layer(3, type="Scale", inputs=(), outputs=()),
    )
    assert set(found) == {"runs-in-fp32"}


@pytest.mark.parametrize(("percent", "level"), [(10.0, "warning"), (5.0, "note"), (4.9, None)])
def test_long_layers(percent: float, level: str | None) -> None:
    found = said(layer(0, type="Pooling", percent=percent, time_ms=1.0))
    assert (found["long-layer"].level if found else None) == level


def test_matrix_products_off_tensor_cores() -> None:
    def product(**fields: Any) -> dict[str, PlanFinding]:
        return said(layer(0, type="gemm", subtype="", of="fp16", time_ms=1.0, **fields))

    slow = "sm50_xmma_cublas_gemvx_f16f16"
    assert "gemm-off-tensor-cores" in product(tactic=slow, percent=5.0)
    assert "gemm-off-tensor-cores" not in product(tactic=slow, percent=4.0)
    assert "gemm-off-tensor-cores" not in product(tactic=FAST, percent=9.0)


def test_generated_kernels_and_shape_work_together() -> None:
    layers = [layer(i, type="kgen", subtype="", percent=4.9, time_ms=1.0) for i in range(6)]
    layers.append(layer(6, type="shape_call", subtype="", percent=3.0, time_ms=1.0))
    found = said(*layers)
    assert found["generated-kernels"].percent == pytest.approx(29.4)
    assert found["generated-kernels"].layers == (0, 1, 2, 3, 4, 5)
    assert (found["shape-and-cast"].layer, found["shape-and-cast"].percent) == (None, 3.0)
    assert "generated-kernels" not in said(*layers[:5])


def test_many_short_layers() -> None:
    layers = [layer(i, type="PointWise", percent=1.0, time_ms=0.0049) for i in range(20)]
    assert said(*layers)["many-short-layers"].percent == pytest.approx(20.0)
    assert not said(*layers[:19])
    assert not said(*(replace(one, time_ms=0.0) for one in layers))
    layers = [layer(i, type="kgen", subtype="") for i in range(40)]
    assert not said(*layers, layer(40, type="gemm", subtype="", of="fp16", tactic="simt"))


def test_attention_that_is_not_fused() -> None:
    def link(name: str) -> tuple[Any, ...]:
        return (replace(tensor("fp16"), name=name),)

    qk = layer(0, type="gemm", subtype="", inputs=link("q"), outputs=link("s"), tactic=FAST)
    scale = layer(1, type="kgen", subtype="", inputs=link("s"), outputs=link("t"))
    soft = layer(
        2, "__myl_MaxrSubExpSum_myl0_2", type="kgen", subtype="", inputs=link("t"),
        outputs=link("p"), percent=2.0, time_ms=1.0,
    )  # fmt: skip
    pv = layer(3, type="gemm", subtype="", inputs=link("p"), outputs=link("o"), tactic=FAST)
    found = said(qk, scale, soft, pv)
    assert (found["attention-not-fused"].layer, found["attention-not-fused"].percent) == (2, 2.0)
    assert "attention-not-fused" not in said(qk, scale, soft)
    fused = replace(soft, tactic="sm80_fused_mha_v2")
    assert "attention-not-fused" not in said(qk, scale, fused, pv)


def test_an_engine_in_fp32() -> None:
    layers = [layer(i, of="fp32", percent=1.0, time_ms=1.0) for i in range(20)]
    found = said(*layers)["runs-in-fp32"]
    assert (found.level, found.percent, len(found.layers)) == ("note", 20.0, 20)
    assert "runs-in-fp32" not in said(*layers[:18], *(
        layer(i, of="fp16", tactic=FAST) for i in (18, 19)
    ))  # fmt: skip


def statistics(median: float, cov: float | None = 0.5) -> TimeStatistics:
    return TimeStatistics(median, median, median, median, cov_percent=cov)


def timing(**times: TimeStatistics) -> TimingSummary:
    return TimingSummary(
        times.get("latency"), times.get("compute"), times.get("h2d"), times.get("d2h"),
        times.get("enqueue"), throughput=None,
    )  # fmt: skip


def test_launches_and_copies_that_take_longer_than_the_work() -> None:
    slow = timing(compute=statistics(1.0), enqueue=statistics(0.81))
    assert "launch-bound" in said(timing=slow)
    assert not said(timing=timing(compute=statistics(1.0), enqueue=statistics(0.8)))
    assert not said(timing=timing(enqueue=statistics(9.0)))
    found = said(timing=timing(compute=statistics(1.0), h2d=statistics(1.0), d2h=statistics(0.9)))
    assert list(found) == ["h2d-bound"]
    assert list(said(timing=timing(compute=statistics(1.0), d2h=statistics(2.0)))) == ["d2h-bound"]


def test_times_that_vary() -> None:
    assert "unsteady-times" in said(timing=timing(compute=statistics(1.0, 2.6)))
    assert not said(timing=timing(compute=statistics(1.0, 2.5)))
    assert not said(timing=timing(compute=statistics(1.0, None)))
    few = TimeStatistics(1.0, 4.0, 1.1, 1.0, p90=1.01, cov_percent=30.0)
    found = said(timing=timing(compute=few))["unsteady-times"]
    assert "nine of ten" in found.hazard
    assert "clocks" not in found.mitigation


def test_a_plan_of_names_says_how_to_get_more() -> None:
    made = replace(plan([layer(0, "a", type="", inputs=(), outputs=())]), names_only=True)
    (found,) = findings(made)
    assert (found.rule, found.layer) == ("names-only", None)
    assert "detailed" in found.mitigation


def test_every_rule_is_documented() -> None:
    text = DOCS.read_text()
    source = Path(__file__).parents[4] / "src/dld_tui/core/tensorrt/plan/lint.py"
    rewrites = {rule.name for rule in own_rules()}
    rules = _rule_names(source.read_text()) - rewrites
    assert len(rules) > 12
    assert not {rule for rule in rules if f"`{rule}`" not in text}


def _rule_names(text: str) -> set[str]:
    import re

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


SHARE = "the share of these layers"
A100 = {"Name": "NVIDIA A100-SXM4-80GB"}


def test_a_layer_that_becomes_free_saves_its_share() -> None:
    found = said(
        layer(0, of="int8", dims=(1, 64, 8, 8), tactic=SLOW, percent=30.0, time_ms=0.3),
        layer(1, type="Pooling", of="fp16", percent=70.0, time_ms=0.7),
    )
    assert found["conv-off-tensor-cores"].gain == GainRange(
        (0.0, 30.0), "the share of these layers"
    )
    assert found["long-layer"].gain == GainRange((0.0, 70.0), "the share of these layers")


def test_without_times_there_is_no_range() -> None:
    found = said(layer(0, of="int8", dims=(1, 64, 8, 8), tactic=SLOW))
    assert found["conv-off-tensor-cores"].gain is None
    data = finding_json(found["conv-off-tensor-cores"])
    assert isinstance(data, dict)
    assert (data["gain_percent"], data["gain_from"]) == (None, None)


def test_a_layer_that_stays_saves_what_it_takes_beyond_its_roofline() -> None:
    odd = layer(
        0, of="fp16", dims=(1, 36, 56, 56), tactic=FAST, percent=40.0, time_ms=0.4,
        attributes={"Kernel": [3, 3], "OutMaps": 36, "Groups": 1},
    )  # fmt: skip
    rest = layer(1, type="Pooling", of="fp16", percent=60.0, time_ms=0.6)
    other = layer(2, type="Pooling", of="fp16", percent=1.0, time_ms=0.01)
    gain = known(said(rest, odd, other, device=A100)["conv-channels-unaligned"].gain)
    peaks, count = peaks_of(A100), macs(odd)
    assert peaks is not None
    assert count is not None
    assert odd.footprint is not None
    ideal_s = max(2 * count / 312e12, odd.footprint / peaks.bandwidth)
    expected = 40.0 * (1 - 1000 * ideal_s / 0.4)
    assert gain.percent == pytest.approx((0.0, expected))
    assert "roofline" in gain.source
    # Of an unknown device no roofline is known: the share bounds it.
    share = said(rest, odd, other)["conv-channels-unaligned"].gain
    assert share == GainRange((0.0, 40.0), SHARE)


def test_layers_in_fp32_are_bounded_by_their_roofline_in_half_of_the_bytes() -> None:
    full = layer(
        0, of="fp32", dims=(1, 64, 56, 56), percent=90.0, time_ms=0.9,
        attributes={"Kernel": [3, 3], "OutMaps": 64, "Groups": 1},
    )  # fmt: skip
    gain = known(said(full, device=A100, total_ms=1.0)["runs-in-fp32"].gain)
    peaks, count = peaks_of(A100), macs(full)
    assert peaks is not None
    assert count is not None
    assert full.footprint is not None
    ideal_s = max(2 * count / 312e12, full.footprint / 2 / peaks.bandwidth)
    assert gain.percent == pytest.approx((0.0, 90.0 * (1 - 1000 * ideal_s / 0.9)))
    assert gain.source.endswith("roofline in fp16")


def test_what_only_concerns_the_measurement_saves_nothing() -> None:
    layers = [layer(at, type="Pooling", of="fp16", percent=1.0, time_ms=2.0, median_ms=1.0)
              for at in range(3)]  # fmt: skip
    assert said(*layers)["mean-above-median"].gain is None


def test_launches_and_copies_are_bounded_by_the_times_of_inferences() -> None:
    times = timing(compute=statistics(1.0), enqueue=statistics(4.0))
    found = known(said(timing=times)["launch-bound"].gain)
    assert found.percent == (0.0, 75.0)
    assert found.source == "the time on the GPU against that of an inference"
    half = layer(0, type="Pooling", of="fp16", percent=4.0, time_ms=0.5)
    with_layers = known(said(half, timing=times, total_ms=0.5)["launch-bound"].gain)
    assert with_layers.percent == (0.0, 87.5)
    copies = timing(compute=statistics(1.0), h2d=statistics(2.0), d2h=statistics(1.0))
    ranges = {rule: finding.gain for rule, finding in said(timing=copies).items()}
    assert {rule: gain.percent for rule, gain in ranges.items() if gain} == {
        "h2d-bound": (0.0, 50.0), "d2h-bound": (0.0, 25.0)
    }  # fmt: skip


def test_a_group_counts_each_layer_once_and_says_from_what() -> None:
    layers = [layer(at, of="int8", dims=(1, 64, 8, 8), tactic=SLOW, percent=3.0, time_ms=0.03)
              for at in range(3)]  # fmt: skip
    whole = plan(layers)
    (group,) = (one for one in grouped(whole, findings(whole)) if one.rule.startswith("conv-off"))
    assert group.gain is not None
    assert gain_text(group.gain) == "saves 0 to 9.0 % of the time (the share of these layers)"
    assert json.dumps([finding_json(finding) for finding in group.findings])
