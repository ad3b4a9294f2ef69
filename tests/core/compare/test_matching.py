"""Which layers are which: by nodes, by name, in order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dld_tui.core.compare.engine_subject import plan_subject
from dld_tui.core.compare.matching import Match, match_layers
from dld_tui.core.compare.records import Subject
from tests.support.compared import subject, timed
from tests.support.plans import layer as plan_layer
from tests.support.plans import plan

DIMS = ((1, 8),)


def names(found: list[Match], *subjects: Subject) -> list[tuple[Any, ...]]:
    """Return the names of the matched layers, a tuple a report, and how they were matched."""
    return [
        (
            *(
                tuple(one.layers[index].name for index in members)
                for one, members in zip(subjects, match.members, strict=True)
            ),
            match.how,
        )
        for match in found
    ]


def test_the_same_nodes_under_other_names() -> None:
    first = subject(timed("conv", 1, ["a"]), timed("relu", 1, ["b"], "Relu"))
    second = subject(timed("b_nchwc", 1, ["b"], "Relu"), timed("a_nchwc", 1, ["a"]))
    assert names(match_layers([first, second]), first, second) == [
        (("conv",), ("a_nchwc",), "node"),
        (("relu",), ("b_nchwc",), "node"),
    ]


def test_a_fused_layer_is_matched_with_all_that_it_replaces() -> None:
    apart = subject(
        timed("conv", 1, ["c"]),
        timed("bn", 1, ["n"]),
        timed("relu", 1, ["r"]),
        timed("x", 1, ["x"]),
    )
    fused = subject(timed("all", 1, ["c", "n", "r"]), timed("x", 1, ["x"]))
    assert names(match_layers([apart, fused]), apart, fused) == [
        (("conv", "bn", "relu"), ("all",), "node"),
        (("x",), ("x",), "node"),
    ]


def test_fusions_that_overlap_make_one_row() -> None:
    first = subject(timed("ab", 1, ["a", "b"]), timed("cd", 1, ["c", "d"]))
    second = subject(timed("a", 1, ["a"]), timed("bc", 1, ["b", "c"]), timed("d", 1, ["d"]))
    assert names(match_layers([first, second]), first, second) == [
        (("ab", "cd"), ("a", "bc", "d"), "node")
    ]


def test_a_cast_of_the_model_is_no_conversion() -> None:
    first = subject(timed("cast", 1, ["k"], "Cast"))
    second = subject(timed("cast_1", 1, ["k"], "Cast"))
    assert names(match_layers([first, second]), first, second) == [(("cast",), ("cast_1",), "node")]


def test_layers_without_nodes_go_by_name_and_then_by_order() -> None:
    first = subject(
        timed("same", 1), timed("n1", 1, output_dims=DIMS), timed("n2", 1, output_dims=DIMS)
    )
    second = subject(
        timed("m1", 1, output_dims=DIMS), timed("m2", 1, output_dims=DIMS), timed("same", 1)
    )
    assert names(match_layers([first, second]), first, second) == [
        (("same",), ("same",), "name"),
        (("n1",), ("m1",), "order"),
        (("n2",), ("m2",), "order"),
    ]


def test_order_says_nothing_when_the_counts_differ() -> None:
    first = subject(timed("n1", 1, output_dims=DIMS), timed("n2", 1, output_dims=DIMS))
    second = subject(timed("m1", 1, output_dims=DIMS))
    assert [match.how for match in match_layers([first, second])] == ["", "", ""]


def test_a_profile_without_shapes_is_matched_by_type_and_order() -> None:
    bare = subject(timed("n1", 1), timed("n2", 1))
    shaped = subject(timed("m1", 1, output_dims=DIMS), timed("m2", 1, output_dims=((2, 9),)))
    assert names(match_layers([bare, shaped]), bare, shaped) == [
        (("n1",), ("m1",), "order"),
        (("n2",), ("m2",), "order"),
    ]
    assert all(not match.how for match in match_layers([bare, shaped], same_model=False))


def test_a_quantized_node_is_the_one_that_it_was() -> None:
    """As ONNX Runtime's quantizer names them, nodes without a name included."""
    plain = subject(
        timed("gemm", 3, [">m", ">a"], "Gemm"), timed("other", 3, ["fc"], "MatMul"), timed("x", 1)
    )
    quantized = subject(
        timed("all", 1, ["node_of_m_quant", "m_scales"], "MatMulInteger"),
        timed("more", 1, ["fc_quant"], "MatMulInteger"),
        timed("unlike", 1, ["x_quant"], "Add"),
    )
    assert names(match_layers([plain, quantized], same_model=False), plain, quantized) == [
        (("gemm",), ("all",), "node"),
        (("other",), ("more",), "node"),
        (("x",), (), ""),
        ((), ("unlike",), ""),
    ]


def test_branches_that_are_joined_in_another_order_are_the_same_layer() -> None:
    first = subject(timed("a/3x3 + relu || a/1x1 + relu", 1), timed("b", 1))
    second = subject(timed("a/1x1 + relu || a/3x3 + relu", 2), timed("b", 1))
    assert [match.how for match in match_layers([first, second])] == ["name", "name"]


IMAGE, HALF, QUARTER = (4, 3, 64, 64), (4, 8, 32, 32), (4, 8, 16, 16)


def shaped(title: str, *layers: tuple[str, str, tuple[int, ...], tuple[int, ...]]) -> Subject:
    made = []
    for index, (name, kind, read, written) in enumerate(layers):
        one = plan_layer(index, name, type=kind, subtype=kind, of="fp16", dims=read, time_ms=1.0)
        made.append(replace(one, outputs=(replace(one.outputs[0], dims=written),)))
    return plan_subject(plan(made, title=title), {})


def matched(*subjects: Subject) -> set[tuple[tuple[str, ...], ...]]:
    return {
        tuple(
            tuple(one.layers[index].name for index in members)
            for one, members in zip(subjects, match.members, strict=True)
        )
        for match in match_layers(subjects, same_model=False)
    }


def test_a_convolution_and_its_pooling_pair_with_both_in_one_layer() -> None:
    apart = shaped(
        "a",
        ("Conv_0 + Relu_1", "Convolution", IMAGE, HALF),
        ("MaxPool_2", "Pooling", HALF, QUARTER),
    )
    fused = shaped("b", ("conv1 + MaxPool_9", "ConvActPool", IMAGE, QUARTER))
    assert matched(apart, fused) == {(("Conv_0 + Relu_1", "MaxPool_2"), ("conv1 + MaxPool_9",))}
    assert matched(fused, apart) == {(("conv1 + MaxPool_9",), ("Conv_0 + Relu_1", "MaxPool_2"))}
    other = shaped("b", ("conv1 + MaxPool_9", "ConvActPool", IMAGE, HALF))
    assert len(matched(apart, other)) == 3
