"""Attention block by block, layers by device, and why formats change."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dld_tui.core.tables.table import Table
from dld_tui.core.tensorrt.plan.engine_plan import EnginePlan, EngineTensor, TrtexecLog
from dld_tui.core.tensorrt.plan.layers import with_dla_kinds
from dld_tui.core.tensorrt.plan.lint import findings
from dld_tui.core.tensorrt.plan.reader import open_plan
from dld_tui.core.tensorrt.plan.summary import (
    accelerator_line,
    device_table,
    fallback_reasons,
    layer_devices,
    summary_lines,
)
from dld_tui.core.tensorrt.plan.tables import (
    attention_blocks,
    attention_table,
    reformat_table,
    reformats,
)
from tests.support.plans import layer, plan, tensor
from tests.support.recorded import Recorded, table_text


def flow(name: str, dtype: str = "fp16", form: str = "Row major linear") -> EngineTensor:
    found = tensor(dtype, (1, 64, 8, 8))
    return replace(found, name=name, format=f"{form} {dtype.upper()}")


def chain(*layers: tuple[str, str, EngineTensor, EngineTensor], **fields: Any) -> EnginePlan:
    """Return an engine of layers (name, type, what it reads, what it makes), a millisecond each."""
    made = [
        layer(at, name, kind, inputs=(reads,), outputs=(makes,), time_ms=1.0, percent=10.0,
              tactic=f"tactic of {name}")
        for at, (name, kind, reads, makes) in enumerate(layers)
    ]  # fmt: skip
    ends = (
        replace(layers[0][2], mode="input"), replace(layers[-1][3], mode="output")
    )  # fmt: skip
    return plan(made, bindings=ends, **fields)


def test_attention_that_is_not_fused_costs_all_its_layers() -> None:
    x, scores, scaled, weights, y, z = (flow(name) for name in ("x", "s", "c", "w", "y", "z"))
    engine = chain(
        ("q_k", "MatrixMultiply", x, scores),
        ("scale", "PointWise", scores, replace(scaled, dtype="fp32")),
        ("soft", "SoftMax", replace(scaled, dtype="fp32"), weights),
        ("by_v", "MatrixMultiply", weights, y),
        ("other", "PointWise", y, z),
    )
    (block,) = attention_blocks(engine)
    assert (block.name, block.fused) == ("soft", False)
    assert [one.name for one in block.layers] == ["q_k", "scale", "soft", "by_v"]
    assert (block.time_ms, block.percent, block.precisions) == (4.0, 40.0, "fp16, fp32")
    assert [one.rule for one in findings(engine, {})].count("attention-not-fused") == 1


def test_attention_has_the_onnx_nodes_of_its_layers() -> None:
    x, scores, weights, y = (flow(name) for name in ("x", "s", "w", "y"))
    engine = chain(
        ("/attn/MatMul", "MatrixMultiply", x, scores),
        ("/attn/Softmax", "SoftMax", scores, weights),
        ("/attn/MatMul_1 + /attn/Reshape", "MatrixMultiply", weights, y),
    )
    assert _column(attention_table(engine), "nodes") == [
        "/attn/MatMul, /attn/Softmax, /attn/MatMul_1, /attn/Reshape"
    ]
    unnamed = chain(("_gemm_mha_v2_myl0_1", "gemm", flow("x"), flow("y")))
    assert _column(attention_table(unnamed), "nodes") == [None]


def _column(table: Table[Any], key: str) -> list[Any]:
    (column,) = (one for one in table.columns if one.key == key)
    return [column.value(row) for row in table.rows]


def test_fused_attention_and_a_softmax_of_a_classifier() -> None:
    engine = chain(
        ("_gemm_mha_v2_myl0_1", "gemm", flow("x"), flow("y")),
        ("dense", "MatrixMultiply", flow("y"), flow("z")),
        ("soft", "SoftMax", flow("z"), flow("out")),
    )
    (block,) = attention_blocks(engine)
    assert (block.fused, block.precisions, block.time_ms) == (True, "fp16", 1.0)
    rows = attention_table(engine)
    assert [column.value(rows.rows[0]) for column in rows.columns][1:3] == ["yes", "fp16"]


SAID = {
    # From public logs of TensorRT 5, 8 and 10.
    "[TRT] Layer '/m/Constant_1_output_0' (CONSTANT): Unsupported on DLA. Switching this layer's"
    " device type to GPU.": ("/m/Constant_1_output_0", "CONSTANT is not supported"),
    "leaky_1: ActivationLayer (with ActivationType = LEAKY_RELU) not supported for DLA.": (
        "leaky_1", "ActivationLayer (with ActivationType = LEAKY_RELU) not supported for DLA"
    ),
    "Default DLA is enabled but layer leaky_1 is not supported on DLA, falling back to GPU.": (
        "leaky_1", "the log gives no reason"
    ),
    "layer84-route: Concatenation on DLA requires at least two inputs.": (
        "layer84-route", "Concatenation on DLA requires at least two inputs"
    ),
    "Default DLA is enabled but layer layer85-act is not running on DLA, falling back to GPU.": (
        "layer85-act", "the log gives no reason"
    ),
    "Validation failed for DLA layer: /model.23/Mod. Switching to GPU fallback.": (
        "/model.23/Mod", "the log gives no reason"
    ),
    "Input tensor has less than 4 dimensions for /model.23/Mod. At least one shuffle layer will be"
    " inserted which cannot run on DLA.": (
        "/model.23/Mod", "Input tensor has less than 4 dimensions"
    ),
}  # fmt: skip


@pytest.mark.parametrize(("message", "told"), SAID.items())
def test_why_a_layer_fell_back(message: str, told: tuple[str, str]) -> None:
    assert fallback_reasons(["Using TF32 where it is faster", message]) == dict([told])


def test_the_most_telling_reason_counts() -> None:
    found = fallback_reasons(SAID)
    assert found["leaky_1"].startswith("ActivationLayer")
    assert found["/model.23/Mod"] == "Input tensor has less than 4 dimensions"
    between = [line for message in SAID for line in ("Timing cache is on", "DLA", message)]
    assert fallback_reasons(between) == found
    hostile = [f"{': ' * 50_000} on DLA", "x" * 100_000]
    assert fallback_reasons(["Using DLA core 0", *hostile]) == {}


def test_an_engine_with_an_accelerator(recorded: Recorded) -> None:
    names = ["data to nvm", "{conv1,relu1,conv2}", "conv2 from nvm", "leaky_1 + add", "end finish"]
    flows = [flow(name) for name in "abcdef"]
    layers = [
        replace(layer(at, name, "", inputs=(flows[at],), outputs=(flows[at + 1],), time_ms=at + 1),
                type="", subtype="", percent=6.0 + at)
        for at, name in enumerate(names)
    ]  # fmt: skip
    log = TrtexecLog(warnings=[*SAID])
    engine = plan(with_dla_kinds(tuple(layers)), log=log)
    recorded("accelerator", {"layers, and four of the log": table_text(device_table(engine))})
    line = "1 part 2.000 ms, 1 transfer 1.000 ms, 2 waits 8.000 ms, 5 fell back 4.000 ms"
    assert accelerator_line(engine) == line
    assert f"DLA          {line}" in list(summary_lines(engine))
    assert layer_devices(chain(("a", "Convolution", flow("x"), flow("y")))) == []


def conv(name: str, reads: EngineTensor, makes: EngineTensor) -> tuple[Any, ...]:
    return (name, "Convolution", reads, makes)


HWC = "Channel major FP16 format where channel % 8 == 0"


def test_formats_of_inputs_channels_and_quantization() -> None:
    odd = replace(flow("a"), dims=(1, 3, 8, 8))
    engine = chain(
        ("at input", "Reformat", flow("x"), flow("x'", form=HWC)),
        conv("one", flow("x'", form=HWC), odd),
        ("padded", "Reformat", odd, flow("b", form=HWC)),
        conv("two", flow("b", form=HWC), flow("c", "int8")),
        ("dequantize", "Reformat", flow("c", "int8"), flow("d", "fp32")),
        conv("three", flow("d", "fp32"), flow("y", "fp32")),
    )
    layers = [
        replace(one, origin="QDQ") if one.name == "dequantize" else one for one in engine.layers
    ]
    engine = replace(engine, layers=tuple(layers))
    found = {one.layer.name: (one.cause, one.edit) for one in reformats(engine)}
    assert found["at input"][0] == "input format"
    assert found["at input"][1].startswith("Build with --input-formats fp16:hwc8")
    assert found["padded"] == ("channels", "Make its channels a multiple of 8 (16 for int8)")
    assert found["dequantize"][0] == "quantization"


@pytest.mark.broad
def test_every_reformat_of_real_engines_is_explained(real_files: Path) -> None:
    seen = 0
    for path in sorted((real_files / "engines").rglob("*.graph.json")):
        engine = open_plan(path)
        found = reformats(engine)
        kinds = [one for one in engine.layers if "Reformat" in (one.type, one.kind)]
        assert {one.layer.index for one in found} == {one.index for one in kinds}
        assert all(one.cause and one.about and one.edit for one in found)
        assert len(reformat_table(engine).rows) == len(kinds)
        seen += len(found)
    assert seen > 10
