"""The tables of providers: rows copied by hand, how they were read, and what they say of nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from dld_tui.core.model.operators import provider_tables
from dld_tui.core.model.operators.provider_tables import (
    Call,
    Cause,
    Operand,
    ProviderTable,
    Support,
    fits,
    judge,
    tables,
    type_set,
)
from scripts.provider_tables import Types, entry, kernels, operators

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
    assert not fits(None, 1, None)


def test_types_versions_and_operators_decide_on_kernels() -> None:
    half = call("Conv", 11, operand("X", "float16"), operand("W", "float16"),
                outputs=(operand("Y", "float16"),))  # fmt: skip
    assert judge(table("CUDA"), half).support is Support.TAKEN
    widened = judge(table("CPU"), half)
    assert (widened.support, widened.cause) == (Support.PARTLY, Cause.TYPE)
    free = operand("of any type", "int32", variable="free")
    whole = call("Conv", 11, free, operand("X", "int32"), outputs=(operand("Y", "int32"),))
    refused = judge(table("CUDA"), whole)
    assert (refused.support, refused.cause) == (Support.NOT, Cause.TYPE)
    assert refused.reason.startswith("X is int32, not ")
    newer = judge(table("Dml"), call("Conv", 22, operand("X")))
    assert (newer.support, newer.cause, newer.versions) == (Support.NOT, Cause.VERSION, (11, 1))
    unknown = judge(table("CUDA"), call("Conv", 11, operand("X", None)))
    assert (unknown.support, unknown.cause) == (Support.PARTLY, Cause.TYPE)
    assert judge(table("CUDA"), call("acme:Conv", 1)).cause is Cause.OPERATOR


@pytest.mark.parametrize(
    ("provider", "node", "support", "cause"),
    [
        ("Tensorrt", call("MaxPool", 12, operand("X")), Support.TAKEN, Cause.NONE),
        ("Tensorrt", call("MaxPool", 12, operand("X", dims=(1, 3, 8))), Support.NOT, Cause.RANK),
        ("Tensorrt", call("MaxPool", 12, operand("X", dims=None)), Support.PARTLY, Cause.RANK),
        ("Tensorrt", call("MaxPool", 12, operand("X"), attributes={"dilations": [2, 2]}),
         Support.NOT, Cause.ATTRIBUTE),
        ("Tensorrt", call("MaxPool", 12, operand("X"), outputs=(operand("Y"), operand("Indices"))),
         Support.NOT, Cause.ATTRIBUTE),
        ("Tensorrt", call("Squeeze", 13, operand("data"), operand("axes", "int64")),
         Support.NOT, Cause.CONSTANT),
        ("Tensorrt", call("Squeeze", 13, operand("data"), operand("axes", "int64", constant=(1,))),
         Support.TAKEN, Cause.NONE),
        ("Tensorrt", call("TopK", 11, operand("X"), operand("K", "int64", constant=(4000,))),
         Support.NOT, Cause.CONSTANT),
        ("Tensorrt", call("TopK", 11, operand("X"), operand("K", "int64", constant=(10,))),
         Support.TAKEN, Cause.NONE),
        ("Tensorrt", call("TopK", 11, operand("X"), operand("K", "int64")),
         Support.PARTLY, Cause.CONDITION),
        ("Tensorrt", call("NonZero", 13, operand("X")), Support.NOT, Cause.OPTION),
        ("Tensorrt", call("LSTM", 14, operand("X"), attributes={"direction": "bidirectional"}),
         Support.PARTLY, Cause.CONDITION),
        ("Tensorrt", call("LSTM", 14, operand("X"), attributes={"direction": "forward"}),
         Support.TAKEN, Cause.NONE),
        ("Tensorrt", call("Conv", 11, operand("X", "int32")), Support.NOT, Cause.TYPE),
        ("Tensorrt", call("DequantizeLinear", 13, operand("x", "int8", variable="T1"),
                          operand("scale", variable="T2"), outputs=(operand("y", variable="T2"),)),
         Support.TAKEN, Cause.NONE),
        ("CoreML", call("Where", 16, operand("condition", "bool", variable="B"), operand("X"),
                        operand("Y")), Support.TAKEN, Cause.NONE),
        ("CoreML", call("Where", 16, operand("condition", "bool", variable="B"),
                        operand("X", "int64"), outputs=(operand("output", "int64"),)),
         Support.NOT, Cause.TYPE),
        ("QNN", call("Relu", 14, operand("X", dims=("N", 3))), Support.NOT, Cause.SHAPE),
        ("QNN", call("Relu", 14, operand("X")), Support.TAKEN, Cause.NONE),
        ("CoreML", call("Gemm", 13, operand("A"), operand("B")), Support.NOT, Cause.CONSTANT),
        ("CoreML", call("Resize", 13, operand("X")), Support.PARTLY, Cause.CONDITION),
    ],
)  # fmt: skip
def test_demands_of_lists_decide(provider: str, node: Call, support: Support, cause: Cause) -> None:
    verdict = judge(table(provider), node)
    assert (verdict.support, verdict.cause) == (support, cause)
    assert (support is Support.TAKEN) == (verdict.reason == "")


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


@pytest.mark.parametrize(
    ("demands", "support"),
    [
        ({"values": {"absent": [0, 0], "K": [0, 9]}}, Support.NOT),
        ({"values": {"K": [0, 9]}}, Support.NOT),
        ({"values": {"K": [10, 10]}}, Support.TAKEN),
        ({"values": {"open": [0, 9], "K": [0, 9]}}, Support.PARTLY),
        ({"constant": ["absent", "open"]}, Support.NOT),
        ({"constant": ["absent", "K"]}, Support.TAKEN),
        ({"attributes": {"none": [1], "way": ["b"]}}, Support.NOT),
        ({"attributes": {"none": [1], "way": ["a", "b"]}}, Support.TAKEN),
        ({"note": "n"}, Support.PARTLY),
        ({"note": "n", "note_if": {"way": None}}, Support.PARTLY),
        ({"note": "n", "note_if": {"way": ["a"]}}, Support.PARTLY),
        ({"note": "n", "note_if": {"way": ["a"], "none": None}}, Support.TAKEN),
        ({"note": "n", "note_if": {"way": ["b"]}}, Support.TAKEN),
        ({"note_if": {"way": ["a"]}}, Support.TAKEN),
        ({}, Support.TAKEN),
    ],
)
def test_each_demand_of_a_row_is_looked_at(demands: dict[str, Any], support: Support) -> None:
    inputs = operand("K", "int64", constant=(10,)), operand("open", "int64")
    asked = call("TopK", 11, *inputs, attributes={"way": "a"})
    assert provider_tables._by_demands(demands, asked).support is support
