from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dld_tui.core.model.document.document import Document
from dld_tui.core.report.groups import (
    GROUPINGS,
    group_layers,
    has_gpu_times,
    layer_type,
    main_node,
    name_scope,
    output_bytes,
    priced,
)
from dld_tui.core.report.layer_table import groups_of
from dld_tui.core.report.node_times import function_callers, node_times
from dld_tui.core.report.records import Cost, Layer, NodeLink
from dld_tui.widgets.charts.report_charts import precision_rows
from tests.support.models import parse

CONV = NodeLink((), "/enc/0/conv", "/enc/0/conv", "Conv", share=0.5)
RELU = NodeLink((), "/enc/0/relu", "/enc/0/relu", "Relu", share=0.5)
INNER = NodeLink(("If:then_branch",), "/dec/x", "/dec/x", "LSTM")
PLAIN = NodeLink((), ">out", "", "Conv")

LAYERS = [
    Layer("l0", "FusedConv", time_ms=4.0, nodes=(CONV, RELU), provider="CUDA", precision="float16"),
    Layer("l1", "LSTM", time_ms=3.0, nodes=(INNER,), provider="CPU", precision="float32"),
    Layer("l2", "Conv", time_ms=2.0, nodes=(PLAIN,), provider="CUDA", precision="float32"),
    Layer("l3", "ReorderInput", time_ms=1.0),
    Layer("l4", "Conv"),
]


def times(by: str) -> dict[str, float]:
    return {group.key: group.time_ms for group in group_layers(LAYERS, by)}


@pytest.mark.parametrize("by", GROUPINGS)
def test_no_time_is_lost_or_made(by: str) -> None:
    groups = group_layers(LAYERS, by)
    assert sum(group.time_ms for group in groups) == pytest.approx(10)
    assert sum(group.percent for group in groups) == pytest.approx(100)
    assert [g.time_ms for g in groups] == sorted((g.time_ms for g in groups), reverse=True)


def test_shared_time_is_an_estimate_unless_it_comes_together_again() -> None:
    by_node = {group.key: group.estimate for group in group_layers(LAYERS, "node")}
    assert by_node["/enc/0/conv"]
    assert not by_node[">out"]
    by_scope = {group.key: group.estimate for group in group_layers(LAYERS, "scope")}
    assert not by_scope["/enc/0"]


def test_scope_of_a_name() -> None:
    assert name_scope(CONV) == "/enc/0"
    assert name_scope(NodeLink(("f",), "x", "x", "Add")) == "f"


def test_a_chart_has_what_the_table_has() -> None:
    shares = [row.value for row in precision_rows(LAYERS[:3], True)]
    assert shares == ["44.4 %", "44.4 %", "33.3 %", "33.3 %", "22.2 %", "22.2 %"]
    assert sum(group.percent for group in groups_of(LAYERS, "type", "conv")) == pytest.approx(60)


@given(
    times=st.lists(st.floats(0, 100), min_size=1, max_size=9),
    on_gpu=st.sets(st.integers(0, 8)),
    by=st.sampled_from(("layer", "type", "provider")),
)
def test_figures_of_groups_are_the_sums_of_those_of_their_layers(
    times: list[float], on_gpu: set[int], by: str
) -> None:
    """The second computation adds up what is printed of the layers."""
    layers = priced([
        Layer(
            f"l{n}", "Conv" if n % 3 else "Add", index=n, time_ms=time,
            gpu_time_ms=time / 2 if n in on_gpu else None,
            provider="CPUExecutionProvider" if n % 2 else "CUDAExecutionProvider",
        )
        for n, time in enumerate(times)
    ])  # fmt: skip
    costs = [
        (time / 2 if n in on_gpu else time if n % 2 else 0.0)
        if any(n < len(times) for n in on_gpu) else time
        for n, time in enumerate(times)
    ]  # fmt: skip
    total = sum(costs)
    keys = {"layer": "name", "type": "type", "provider": "provider"}
    expected: dict[str, float] = {}
    for layer, cost in zip(layers, costs, strict=True):
        key = getattr(layer, keys[by])
        share = 100 * cost / total if total > 0 else 0.0
        assert (layer.percent or 0.0) == pytest.approx(share)
        expected[key] = expected.get(key, 0.0) + share
    found = group_layers(layers, by)
    assert {group.key: group.percent for group in found} == pytest.approx(expected)
    assert sum(group.cost_ms for group in found) == pytest.approx(total)


CUDA, CPU = "CUDAExecutionProvider", "CPUExecutionProvider"


def test_layers_cost_their_kernels_or_their_own_time_on_a_processor() -> None:
    layers = [
        Layer("kernels", "Conv", provider=CUDA, time_ms=0.01, gpu_time_ms=3.0),
        Layer("launch only", "Reshape", provider=CUDA, time_ms=0.02),
        Layer("fallback", "NonZero", provider=CPU, time_ms=1.0),
    ]
    assert has_gpu_times(layers)
    assert [(one.cost_ms, one.percent) for one in priced(layers)] == [
        (3.0, 75.0), (None, None), (1.0, 25.0),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("layer", "size"),
    [
        (Layer("told", "C", cost=Cost(output_bytes=7)), 7),
        (Layer("a", "C", output_dims=((2, 3), (4,)), output_types=("float16", "int64")), 44),
        (Layer("b", "C", output_dims=((3,),), output_types=("int4",)), 2),
        (Layer("c", "C", output_dims=((3,),), precision="float32"), 12),
        (Layer("open", "C", output_dims=(("N", 3),), output_types=("float16",)), None),
        (Layer("rank", "C", output_dims=(None,), output_types=("float16",)), None),
        (Layer("text", "C", output_dims=((3,),), output_types=("string",)), None),
        (Layer("none", "C"), None),
        (Layer("two", "C", output_dims=((1,), (1,)), precision="float32"), None),
    ],
)
def test_size_of_outputs(layer: Layer, size: int | None) -> None:
    assert output_bytes(layer) == size


def test_times_of_bodies_count_for_the_node_that_has_them() -> None:
    def layer(ms: float, *links: NodeLink) -> Layer:
        return Layer("l", "t", nodes=links, time_ms=ms)

    layers = [
        layer(
            4.0,
            NodeLink((), "a", "a", "Conv", share=0.75),
            NodeLink((), "b", "b", "Add", share=0.25),
        ),
        layer(2.0, NodeLink(("if:then_branch",), "c", "c", "Abs")),
        layer(1.0, NodeLink((), "if", "if", "If")),
        layer(5.0, NodeLink(("f",), "d", "d", "Abs", calls=("call",))),
    ]
    assert node_times(layers) == {"a": 3.0, "b": 1.0, "if": 3.0, "call": 5.0}


def test_functions_that_call_each_other_end() -> None:
    text = """
    <ir_version: 10, opset_import: ["" : 18, "local" : 1]>
    net (float[2] x) => (float[2] y) { [n] y = local.a (x) }
    <domain: "local", opset_import: ["" : 18, "local" : 1]>
    a (u) => (v) { v = local.b (u) }
    <domain: "local", opset_import: ["" : 18, "local" : 1]>
    b (u) => (v) { v = local.a (u) }
    """
    callers = function_callers(Document(parse(text)))
    assert callers == {"function local:a": {"n": 1.0}, "function local:b": {"n": 1.0}}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Conv_0 + Relu_1", "Conv + Relu"),
        ("features.0.0.weight + QuantizeLinear_8 + Conv_12 + PWN(Clip_15)",
         "QuantizeLinear + Conv + Clip"),
        ("/layer1/layer1.0/conv1/Conv || /layer1/layer1.0/conv2/Conv", "Conv"),
        ("PWN(PWN(/model.0/act/Sigmoid), PWN(/model.0/act/Mul))", "Sigmoid + Mul"),
        ("Reformatting CopyNode for Input Tensor 0 to Conv_0 + Relu_1", "Reformat"),
        ("conv1/7x7_s2 + conv1/relu_7x7 input reformatter 0", "Reformat"),
        ("{ForeignNode[/head/Constant_2_output_0.../Unsqueeze_2]}", "ForeignNode"),
        ("[trainStation1]", "TrainStation"),
        ("__myl_MulSum_myl3_5", "Myelin"),
        ("node_linear_1_2_myl5_3", "Gemm"),
        ("/fc1/MatMul_myl0_2", "MatMul"),
        ("strange_myl0_2", "Myelin"),
        ("resnet50/conv1_conv/Conv2D__6", "Conv"),
        ("Conv-1 + ReLU-2", "Conv + Relu"),
        ("node_max_pool2d_1", "MaxPool"),
        ("Softmax-14 + ArgMax-15", "Softmax + ArgMax"),
        ("copied_squeeze_after_y_3", "Squeeze"),
        ("(Unnamed Layer* 32) [Shuffle]", "Shuffle"),
        ("inception_3a/pool_proj", "(unknown)"),
        ("data to nvm", "DLA transfer"),
        ("(Unnamed Layer* 67) [Convolution]_output from nvm", "DLA wait"),
        ("data copy finish", "DLA wait"),
        ("loss3/classifier finish", "DLA wait"),
        ("{conv1/7x7_s2,conv1/relu_7x7,pool1/3x3_s2}", "DLA"),
        ("{" + "node," * 2000 + "last}", "DLA"),
        ("{conv1/7x7_s2,pool1} input reformatter 0", "DLA transfer"),
        ("{conv1/7x7_s2,pool1} output reformatter 0", "DLA wait"),
        ("", "(unknown)"),
        ("Add_1 + Mul_2 + Sub_3 + Div_4 + Exp_5", "Add + Mul + Sub + Div + …"),
    ],
)  # fmt: skip
def test_types_are_told_from_names(name: str, kind: str) -> None:
    assert layer_type(name) == kind


@pytest.mark.parametrize("part", ["_1", "(", "_", "/a_1 + "])
def test_hostile_names_come_to_an_end(part: str) -> None:
    """A pattern that tries every way to split the name would not, at this length."""
    assert layer_type(part * 100_000) == "(unknown)"
    assert layer_type(part * 100_000 + "/Conv") == "(unknown)", "its beginning is looked at"


@pytest.mark.parametrize(
    ("nodes", "main"),
    [
        (("QuantizeLinear_282", "Conv_284", "Add_292", "Relu_293"), "Conv_284"),
        (("DequantizeLinear_1", "QLinearConv_2", "Relu_3"), "QLinearConv_2"),
        (("Cast_1", "Mul_2", "Softmax_3", "Add_4"), "Softmax_3"),
        (("Reshape_1", "Add_2", "Mul_3"), "Add_2"),
        (("conv2/3x3", "conv2/relu_3x3"), "conv2/3x3"),  # no operators are known
        (("Transpose_1",), "Transpose_1"),
        (("QuantLinearNode__622", "resnet50/conv1_conv/BiasAdd"), "resnet50/conv1_conv/BiasAdd"),
    ],
)
def test_a_fused_layer_is_called_by_its_main_operator(nodes: tuple[str, ...], main: str) -> None:
    assert main_node([NodeLink((), name, name, "") for name in nodes]).name == main
