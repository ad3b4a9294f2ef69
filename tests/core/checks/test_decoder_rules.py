"""Rules on decoders fire on what ONNX Runtime refuses, and on nothing that exporters write.

What each says is in ``tests/core/model/transcripts/decoders.txt``.
"""

from __future__ import annotations

import importlib
import re
from contextlib import closing
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from dld_tui.core.checks.decoders import decoder_findings
from dld_tui.core.checks.findings import DECODER_RULES
from dld_tui.core.model.document import Document
from tests.support import decoders, model_transcripts
from tests.support.runtime import needs_onnxruntime

Feeds: TypeAlias = "dict[str, np.ndarray[Any, Any]]"
Call: TypeAlias = "tuple[onnx.NodeProto, Feeds]"


def rules_of(path: Path) -> list[str]:
    with closing(Document.open(path)) as document:
        return [one.rule for one in decoder_findings(document)]


@pytest.mark.parametrize("layers", [1, 4])
@pytest.mark.parametrize("int4", [True, False])
def test_what_exporters_write_has_no_fault(layers: int, int4: bool, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    assert rules_of(decoders.grouped(path, layers=layers, int4=int4, typed=True)) == []
    assert rules_of(decoders.grouped(path, past=("k{}", "v{}"), present=("a{}", "b{}"))) == []
    assert rules_of(decoders.positioned(path)) == []


MICROSOFT = "com.microsoft"


def floats(*dims: int) -> np.ndarray[Any, Any]:
    return np.full(dims, 0.1, np.float32)


def grouped_call(size: int, *, packed: bool, tables: bool, turned: bool, cache: int = 32) -> Call:
    """Return a node with 4 heads that share 2 of keys and values, and what it takes."""
    feeds: Feeds = {"q": floats(1, 3, 8 * size if packed else 4 * size)}
    feeds |= {} if packed else {"k": floats(1, 3, 2 * size), "v": floats(1, 3, 2 * size)}
    kind = {4: np.uint8, 8: np.int8, 32: np.float32}[cache]
    past = np.zeros((1, 2, 2, size // 2 if cache == 4 else size), kind)
    feeds |= {"pk": past, "pv": past, "lengths": np.array([4], np.int32)}
    feeds["total"] = np.array(5, np.int32)
    names = ["q", *(["", ""] if packed else ["k", "v"]), "pk", "pv", "lengths", "total"]
    if tables:
        feeds |= {"cos": floats(8, size // 2), "sin": floats(8, size // 2)}
    more: dict[str, Any] = {}
    if cache != 32:
        feeds |= {"ks": floats(1), "vs": floats(1)}
        kinds = dict.fromkeys(("k_quant_type", "v_quant_type"), "PER_TENSOR")
        more = {"kv_cache_bit_width": cache, **kinds}
    names += ["cos", "sin"] if tables else ["", ""]
    names += ["", "", "", "ks", "vs"] if cache != 32 else []
    return helper.make_node(
        "GroupQueryAttention", names, ["y", "new_k", "new_v"], domain=MICROSOFT,
        num_heads=4, kv_num_heads=2, do_rotary=int(turned), **more,
    ), feeds  # fmt: skip


def multi_head_call(query: int, value: int) -> Call:
    feeds = {"q": floats(1, 3, query), "k": floats(1, 3, query), "v": floats(1, 3, value)}
    return helper.make_node(
        "MultiHeadAttention", [*feeds], ["y"], domain=MICROSOFT, num_heads=3
    ), feeds


def projected_call(*sizes: int, listed: bool) -> Call:
    feeds = {"x": floats(1, 3, 8), "w": floats(8, sum(sizes)), "b": floats(sum(sizes))}
    more: dict[str, Any] = {"qkv_hidden_sizes": sizes} if listed else {}
    return helper.make_node(
        "Attention", [*feeds], ["y"], domain=MICROSOFT, num_heads=3, **more
    ), feeds


def standard_call(size: int) -> Call:
    feeds = {"q": floats(1, 3, 4 * size), "k": floats(1, 3, 2 * size), "v": floats(1, 3, 2 * size)}
    return helper.make_node("Attention", [*feeds], ["y"], q_num_heads=4, kv_num_heads=2), feeds


HEAD_SIZES = (2, 4, 8, 12, 16, 24, 32, 40, 64, 72, 80)
CALLS = {
    "plain": [grouped_call(n, packed=False, tables=False, turned=False) for n in HEAD_SIZES],
    "packed": [grouped_call(n, packed=True, tables=False, turned=False) for n in HEAD_SIZES],
    "rotary": [grouped_call(n, packed=False, tables=True, turned=True) for n in HEAD_SIZES],
    "rotary-packed": [grouped_call(n, packed=True, tables=True, turned=True) for n in HEAD_SIZES],
    "tables": [grouped_call(n, packed=False, tables=True, turned=False) for n in HEAD_SIZES],
    "cache": [grouped_call(32, packed=False, tables=False, turned=False, cache=n) for n in (4, 8)],
    "multi-head": [multi_head_call(q, v) for q in (9, 10, 12, 21) for v in (9, 11, 12)],
    "projected": [projected_call(n, n, n, listed=False) for n in (9, 10, 11, 12, 21)],
    "listed": [projected_call(n, n, v, listed=True) for n in (9, 10) for v in (9, 10, 12)],
    "standard": [standard_call(n) for n in (1, 3, 8, 12, 33)],
}


@needs_onnxruntime(31)
@pytest.mark.parametrize("kind", CALLS)
def test_heads_are_refused_where_onnxruntime_refuses_them(kind: str, tmp_path: Path) -> None:
    for node, feeds in CALLS[kind]:
        path = write_call(tmp_path / "m.onnx", node, feeds)
        told = rules_of(path)
        assert set(told) <= {"decoder:heads", "decoder:head-size"}
        assert bool(told) == (results(path, feeds) is None), (node, told)


def write_call(path: Path, node: onnx.NodeProto, feeds: Feeds) -> Path:
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(one.dtype), one.shape)
        for name, one in feeds.items()
    ]
    made = [onnx.ValueInfoProto(name=name) for name in node.output]
    graph = helper.make_graph([node], "g", infos, made)
    opsets = [helper.make_opsetid("", 23), helper.make_opsetid(MICROSOFT, 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)
    return path


def results(path: Path, feeds: Feeds) -> list[np.ndarray[Any, Any]] | None:
    """Return what ONNX Runtime computes, None where it refuses the sizes."""
    ort = pytest.importorskip("onnxruntime")
    errors = importlib.import_module("onnxruntime.capi.onnxruntime_pybind11_state")
    options = ort.SessionOptions()
    options.log_severity_level = 4
    refusals = (errors.InvalidArgument, errors.Fail, errors.RuntimeException)
    try:
        session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        found: list[np.ndarray[Any, Any]] = session.run(None, feeds)
    except refusals as error:
        if not re.search("head_size|hidden_size|Reshape|cos_cache|num_heads|rotary", str(error)):
            raise
        return None
    return found


def turned(feeds: Feeds, size: int, part: int) -> np.ndarray[Any, Any]:
    """Return the input of a RotaryEmbedding, turned as its tables say, in heads of a size.

    Of heads with four dimensions and with three alike: the last two sizes are of one row each.
    """
    x, half = feeds["x"], part // 2
    cos, sin = (np.asarray(feeds[name][feeds["ids"][0], :half]) for name in ("cos", "sin"))
    heads = x if x.ndim == 4 else x.reshape(*x.shape[:2], -1, size).swapaxes(1, 2)
    one, other, rest = heads[..., :half], heads[..., half : 2 * half], heads[..., 2 * half :]
    made = np.concatenate([one * cos - other * sin, other * cos + one * sin, rest], -1)
    return made if x.ndim == 4 else made.swapaxes(1, 2).reshape(x.shape)


TABLES = (1, 4, 7, 8, 12, 15, 16, 17, 24, 32)


def grouped_tables(size: int, cos: int, sin: int, *, packed: bool, turned: bool) -> Call:
    node, feeds = grouped_call(size, packed=packed, tables=True, turned=turned)
    return node, {**feeds, "cos": floats(8, cos), "sin": floats(8, sin)}


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("size", [16, 32, 64])
def test_tables_of_attention_are_told_where_onnxruntime_refuses_them(
    size: int, packed: bool, tmp_path: Path
) -> None:
    calls = [
        grouped_tables(size, cos, sin, packed=packed, turned=turned)
        for turned in (True, False)
        for cos in (1, 4, 8, 12, 16, 24, 32, 40)
        for sin in sorted({cos, 8})
    ]
    for node, feeds in calls:
        path = write_call(tmp_path / "m.onnx", node, feeds)
        told = rules_of(path)
        assert set(told) <= {"decoder:rotary-table"}
        assert bool(told) == (results(path, feeds) is None), (node, told)


OF_FOLDERS = {("error", "decoder:config")}


def test_every_rule_is_tried_and_documented() -> None:
    transcript = (model_transcripts.FOLDER / "decoders.txt").read_text("utf-8")
    tried = set(re.findall("^(\\w+) (decoder:[a-z-]+) at ", transcript, re.MULTILINE))
    assert tried == {(level, rule) for rule, level in DECODER_RULES.items()} - OF_FOLDERS
    docs = (
        Path(__file__).parents[3].joinpath("docs/reference/checks.md").read_text(encoding="utf-8")
    )
    assert set(re.findall(r"^### `(decoder:[a-z-]+)`", docs, re.MULTILINE)) == set(DECODER_RULES)


@needs_onnxruntime(31)
@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("zeros", [None, np.uint8, np.float32])
@pytest.mark.parametrize("has_index", [False, True])
def test_the_kernel_of_blocks_is_as_the_check_says(
    bits: int, zeros: Any, has_index: bool, tmp_path: Path
) -> None:
    rows, columns, block = 64, 8, 16
    blocks, random = rows // block, np.random.default_rng(1)
    packed = random.integers(0, 256, (columns, blocks, block * bits // 8), dtype=np.uint8)
    scales = random.random((columns, blocks), dtype=np.float32)
    low = np.full((columns, blocks), 2 ** (bits - 1), np.float32)
    weights: dict[str, Any] = {"w": packed, "s": scales.reshape(-1)}
    per, mask = 8 // bits, 2**bits - 1

    def unpacked(values: Any) -> Any:
        parts = [(values >> (bits * at)) & mask for at in range(per)]
        return np.stack(parts, -1).reshape(columns, -1).astype(np.float32)

    inputs = ["x", "w", "s", "z" if zeros is not None else ""]
    if zeros is np.uint8:
        size = columns * blocks * bits // 8
        weights["z"] = random.integers(0, 256, size, dtype=np.uint8)
        low = unpacked(weights["z"].reshape(columns, -1))
    elif zeros is np.float32:
        weights["z"] = low = random.random((columns, blocks), dtype=np.float32)
    if has_index:
        inputs.append("g")
        weights["g"] = (np.arange(rows) // block).astype(np.int32)
    node = helper.make_node(
        "MatMulNBits", inputs, ["y"], domain="com.microsoft",
        K=rows, N=columns, bits=bits, block_size=block,
    )  # fmt: skip
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [node], "g", [value("x", 1, ["m", rows])], [value("y", 1, ["m", columns])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    ort = importlib.import_module("onnxruntime")
    try:
        [made] = ort.InferenceSession(path).run(None, {"x": np.eye(rows, dtype=np.float32)})
        spread = np.repeat(scales, block, 1), np.repeat(low, block, 1)
        is_right = np.allclose(made, ((unpacked(packed) - spread[1]) * spread[0]).T, atol=1e-4)
    except importlib.import_module("onnxruntime.capi.onnxruntime_pybind11_state").Fail:
        is_right = False
    assert (rules_of(path) == ["decoder:block-kernel"]) == (not is_right)


@pytest.mark.parametrize("activation", ["silu", "swiglu"])
@pytest.mark.parametrize("normalized", [0, 1])
@pytest.mark.parametrize("use", ["none", "after", "output"])
def test_a_mixture_that_overwrites_its_input_is_named(
    activation: str, normalized: int, use: str, tmp_path: Path
) -> None:
    """ONNX Runtime says by its own numbers whether the experts are left out."""
    ort = importlib.import_module("onnxruntime")
    random = np.random.default_rng(0)
    sizes = {"up": (3, 64 if activation == "swiglu" else 32, 64), "down": (3, 64, 32),
             "router": (64, 3)}  # fmt: skip
    weights = [
        numpy_helper.from_array((random.standard_normal(size) * 0.3).astype(np.float32), name)
        for name, size in sizes.items()
    ]
    weights.append(numpy_helper.from_array(np.array([-1, 3]), "rows"))
    fused = int(activation == "swiglu")
    nodes = [
        helper.make_node("Add", ["x", "x"], ["sum"]), helper.make_node("Neg", ["x"], ["a"]),
        helper.make_node("MatMul", ["a", "router"], ["b"]),
        helper.make_node("Reshape", ["b", "rows"], ["scores"]),
        helper.make_node("MoE", ["a", "scores", "up", "", "down"], ["experts"], k=2, name="mix",
                         domain="com.microsoft", activation_type=activation, swiglu_fusion=fused,
                         normalize_routing_weights=normalized),
        helper.make_node("Add", ["sum", "experts"], ["c"]),
    ]  # fmt: skip
    last = ["c", "a"] if use == "after" else ["c", "x"]
    nodes.append(helper.make_node("Add", last, ["y"]))
    value = helper.make_tensor_value_info
    dims: list[str | int | None] = ["b", "s", 64]
    outputs = [value("y", 1, dims)] + ([value("a", 1, dims)] if use == "output" else [])
    graph = helper.make_graph(nodes, "g", [value("x", 1, dims)], outputs, weights)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    rows = random.standard_normal((1, 8, 64)).astype(np.float32)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    [result, *_] = ort.InferenceSession(path, options).run(None, {"x": rows})
    model.graph.output.append(onnx.ValueInfoProto(name="experts"))
    session = ort.InferenceSession(model.SerializeToString(), options)
    sound = session.run(["y"], {"x": rows})[0]
    is_right = np.allclose(result, sound, atol=1e-4)
    assert (rules_of(path) == ["decoder:moe-kernel"]) == (not is_right)
    assert is_right == bool(normalized or use != "none")
