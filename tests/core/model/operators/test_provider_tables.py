"""The tables of providers: rows copied by hand, how they were read, and what they say of nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from dld_tui.core.model.operators.provider_tables import (
    Call,
    Operand,
    ProviderTable,
    Verdict,
    fits,
    judge,
    tables,
    type_set,
)
from scripts.provider_tables import Types, entry, kernels, operators
from tests.support.recorded import Recorded

FLOATS = frozenset({"float32", "float16"})


def table(name: str) -> ProviderTable:
    return next(one for one in tables() if one.name == name)


def operand(
    name: str, dtype: str | None = "float32", dims: tuple[Any, ...] | None = (1, 3, 8, 8),
    variable: str = "T", constant: tuple[float, ...] | None = None,
) -> Operand:  # fmt: skip
    return Operand(name, variable, dtype, dims, constant is not None, lambda: constant)


def call(
    name: str, since: int, *inputs: Operand, outputs: tuple[Operand, ...] = (operand("Y"),),
    attributes: Mapping[str, Any] | None = None,
) -> Call:  # fmt: skip
    return Call(name, since, inputs, outputs, (attributes or {}).get)


# Copied by hand from the pages: provider, operator, first and last version, constraint, types.
KERNELS = (
    ("CPU", "Abs", 13, None, "T", "double float int16 int32 int64 int8 uint16 uint32 uint64 uint8"),
    ("CPU", "Abs", 6, 12, "T", "double float int16 int32 int64 int8 uint16 uint32 uint64 uint8"),
    ("CPU", "Add", 13, 13, "T", "double float int32 int64 uint32 uint64"),
    ("CPU", "BitShift", 11, None, "T", "uint32 uint64 uint8"),
    ("CPU", "Clip", 11, 11, "T", "float"),
    ("CPU", "MatMul", 13, None, "T", "double float float16 int32 int64 uint32 uint64"),
    ("CUDA", "Conv", 22, None, "T", "bfloat16 double float float16"),
    ("CUDA", "MatMul", 13, None, "T", "bfloat16 double float float16"),
    ("Dml", "Conv", 11, None, "T", "float float16"),
    ("Dml", "MatMul", 13, None, "T", "float float16"),
    ("CUDA", "com.microsoft:FusedConv", 1, None, "T", "float"),
)


@pytest.mark.parametrize(("provider", "operator", "first", "last", "constraint", "types"), KERNELS)
def test_kernels_are_those_of_the_page(
    provider: str, operator: str, first: int, last: int | None, constraint: str, types: str
) -> None:
    rows = table(provider).kernels
    assert rows is not None
    found = [row for row in rows[operator] if list(row[:2]) == [first, last]]
    names = {"double": "float64", "float": "float32"}
    expected = {names.get(name, name) for name in types.split()}
    assert [type_set(row[2][constraint]) for row in found] == [expected]


def test_lists_are_those_of_the_pages() -> None:
    assert "BitShift" in table("OpenVINO").operators  # | BitShift | Yes | No |
    assert "BitShift" not in table("OpenVINO GPU").operators
    assert "GatherElements" not in table("OpenVINO").operators  # | GatherElements | No | No |
    assert table("QNN").operators["LpNormalization"] == {"attributes": {"p": [2]}}
    assert "Loop" not in table("QNN").operators
    assert table("CoreML").operators["Gemm"] == {"constant": ["B"]}
    assert "DFT" not in table("Tensorrt").operators  # | DFT | N |
    assert table("Tensorrt").operators["GridSample"]["rank"] == [4]
    assert all(one.version and one.date and one.url and one.licence for one in tables())


def test_a_kernel_is_for_a_version_as_onnx_runtime_says() -> None:
    """The cases are those of the comment in its kernel registry: a schema of version 5."""
    assert not fits(5, 8, None)
    assert not fits(5, 6, None)  # its own check demands the same first version
    assert fits(5, 5, None)
    assert not fits(5, 4, None)
    assert fits(5, 4, 6)
    assert fits(5, 4, 5)
    assert not fits(None, 1, None)


CONDITION = operand("condition", "bool", variable="B")
HALF, WHOLE = operand("X", "float16"), operand("X", "int32")
NODES = (
    ("CUDA", call("Conv", 11, HALF, operand("W", "float16"), outputs=(operand("Y", "float16"),))),
    ("CPU", call("Conv", 11, HALF, operand("W", "float16"), outputs=(operand("Y", "float16"),))),
    ("CPU", call("BitShift", 11, HALF)),
    ("CUDA", call("Conv", 11, operand("of any type", "int32", variable="free"), WHOLE)),
    ("Dml", call("Conv", 22, operand("X"))),
    ("CUDA", call("Conv", 11, operand("X", None), operand("W", None))),
    ("CUDA", call("acme:Conv", 1)),
    *(
        ("Tensorrt", node)
        for node in (
            call("MaxPool", 12, operand("X")),
            call("MaxPool", 12, operand("X", dims=(1, 3, 8))),
            call("MaxPool", 12, operand("X", dims=None)),
            call("MaxPool", 12, operand("X"), attributes={"dilations": [2, 2]}),
            call("MaxPool", 12, operand("X"), outputs=(operand("Y"), operand("Indices"))),
            call("Squeeze", 13, operand("data"), operand("axes", "int64")),
            call("Squeeze", 13, operand("data"), operand("axes", "int64", constant=(1,))),
            call("TopK", 11, operand("X"), operand("K", "int64", constant=(4000,))),
            call("TopK", 11, operand("X"), operand("K", "int64", constant=(10,))),
            call("TopK", 11, operand("X"), operand("K", "int64")),
            call("NonZero", 13, operand("X")),
            call("LSTM", 14, operand("X"), attributes={"direction": "bidirectional"}),
            call("LSTM", 14, operand("X"), attributes={"direction": "forward"}),
            call("Conv", 11, WHOLE),
            call("Conv", 11, WHOLE, outputs=()),
            call("DequantizeLinear", 13, operand("x", "int8", variable="T1"),
                 operand("scale", variable="T2"), outputs=(operand("y", variable="T2"),)),
        )
    ),
    ("CoreML", call("Where", 16, CONDITION, operand("X"), operand("Y"))),
    ("CoreML", call("Where", 16, CONDITION, operand("X", "int64"),
                    outputs=(operand("output", "int64"),))),
    ("CoreML", call("Gemm", 13, operand("A"), operand("B"))),
    ("CoreML", call("Resize", 13, operand("X"))),
    ("QNN", call("Relu", 14, operand("X", dims=("N", 3)))),
    ("QNN", call("Relu", 14, operand("X"))),
)  # fmt: skip
DEMANDS: tuple[dict[str, Any], ...] = (
    {"values": {"absent": [0, 0], "K": [0, 9]}},
    {"values": {"K": [10, 10]}},
    {"values": {"K": [9, 9]}},
    {"values": {"open": [0, 9], "K": [0, 9]}},
    {"values": {"open": [3, 3]}},
    {"constant": ["absent", "open"]},
    {"constant": ["absent", "K"]},
    {"attributes": {"none": [1], "way": ["b"]}},
    {"attributes": {"none": [1], "way": ["ab", "c"]}},
    {"ranks": {"absent": [1], "K": [1, 2]}},
    {"ranks": {"absent": [1], "K": [1, 4]}},
    {"rank": [2], "ranks": {"open": [1]}},
    {"without": ["absent", "way"]},
    {"without": ["K"]},
    {"one_output": True},
    {"one_output": False},
    {"fixed": True},
    {"note": "n"},
    {"note": "n", "note_if": {"way": None}},
    {"note": "n", "note_if": {"way": ["ab"]}},
    {"note": "n", "note_if": {"way": ["ab"], "none": None}},
    {"note": "n", "note_if": {"way": ["b"]}},
    {"note_if": {"way": ["ab"]}},
    {"note": "later", "values": {"open": [0, 1]}},
    {},
)


def test_what_tables_say_of_nodes(recorded: Recorded) -> None:
    def told(verdict: Verdict) -> str:
        known = (verdict.support, verdict.cause, verdict.reason, verdict.versions, verdict.dtypes)
        return "; ".join(str(one) for one in known if one)

    def text(one: Operand) -> str:
        return f"{one.name}:{one.variable} {one.dtype}{one.dims} {one.values() or ''}".rstrip()

    lists = [f"{one.name}: {one.label}" for one in tables()]
    for provider, node in NODES:
        about = ", ".join(map(text, node.inputs)) + " -> " + ", ".join(map(text, node.outputs))
        lists.append(f"{provider} {node.name} {node.since} {about}")
        lists.append(f"    {told(judge(table(provider), node))}")
    known, free = operand("K", "int64", constant=(10,)), operand("open", "int64", (1, "N"))
    whole = call("TopK", 11, known, free, attributes={"way": "ab"})
    part = call("TopK", 11, free, outputs=(known, operand("Z")))
    demands = []
    for asked in (whole, part):
        for row in DEMANDS:
            own = ProviderTable("Own", "1", "", "", "", operators={"TopK": row})
            demands.append(f"{row}: {told(judge(own, asked))}")
    recorded("verdicts", {"nodes": "\n".join(lists), "demands": "\n".join(demands)})


PAGE = """
## Operators implemented by CPUExecutionProvider

| Op Name | Parameters | OpSet Version | Types Supported |
|---------|------------|---------------|-----------------|
|**Operator Domain:** *ai.onnx*||||
|If|*in* cond:**B**<br> *out* outputs:**V**|25+|**B** = tensor(bool)<br/> **V** = seq(tensor(float)), tensor(double)|
|||[11, 12]|**B** = tensor(bool)|
|**Operator Domain:** *com.microsoft*||||
|Attention|*in* input:**T**|1+|**T** = tensor(float)|
|**Operator Domain:** *com.microsoft.nchwc*||||
|Conv|*in* X:**T**|1+|**T** = tensor(float)|

## Operators implemented by CUDAExecutionProvider

|**Operator Domain:** *ai.onnx*||||
|Abs|*in* X:**T**|13+|**T** = tensor(float)|
"""  # noqa: E501


def test_pages_are_read() -> None:
    types = Types()
    assert kernels(PAGE, "CPU", types) == {
        "If": [[25, None, {"B": 0, "V": 1}], [11, 12, {"B": 0}]],
        "com.microsoft:Attention": [[1, None, {"T": 2}]],
    }
    assert types.sets == ["bool", "float64 seq(float32)", "float32"]
    rows = (
        "| Abs | Y | FP32, INT64 |\n| DFT | N          |\n| TopK | Y | FP32 | `sorted` must be 1."
    )
    assert operators(rows, 1, types) == {
        "Abs": {"types": 3}, "TopK": {"attributes": {"sorted": [1]}, "types": 2},
    }  # fmt: skip
    rows = "|Operator|Note|\n|--|--|\n|ai.onnx:Argmax||\n|com.microsoft:Gelu||"
    assert operators(rows, 1, types) == {"ArgMax": {}, "com.microsoft:Gelu": {}}
    assert entry("Only 1D/2D Conv is supported.<br/>Bias if provided must be constant.", types) == {
        "rank": [3, 4], "constant": ["B"],
    }  # fmt: skip
    assert entry("Something else must hold.", types) == {"note": "Something else must hold"}
