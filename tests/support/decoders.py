"""Small decoders with a cache, as exporters write them; ONNX Runtime runs them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

VOCABULARY, HIDDEN, HEADS, KV_HEADS, HEAD_SIZE, BLOCK = 61, 64, 4, 2, 16, 32
EXPERTS, INNER = 3, 32


class _Graph:
    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.random = np.random.default_rng(21)

    def add(self, op: str, inputs: Sequence[str], *outputs: str, **attributes: Any) -> str:
        own = {
            "CausalConvWithState", "DecoderMaskedMultiHeadAttention", "GroupQueryAttention",
            "LinearAttention", "MatMulNBits", "MoE", "MultiHeadAttention",
            "SkipSimplifiedLayerNormalization",
        }  # fmt: skip
        domain = "com.microsoft" if op in own else ""
        name = f"{outputs[0]}_node"
        made = helper.make_node(op, inputs, outputs, name=name, domain=domain, **attributes)
        self.nodes.append(made)
        return outputs[0]

    def weight(self, name: str, *dims: int) -> str:
        return self.keep(name, (self.random.standard_normal(dims) * 0.3).astype(np.float32))

    def keep(self, name: str, values: Any) -> str:
        self.weights.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def normed(self, name: str, x: str, heads: int) -> str:
        """Add the normalization of each head of queries or keys."""
        apart = self.keep(f"{name}.apart", np.array([0, -1, heads, HEAD_SIZE], np.int64))
        joined = self.keep(f"{name}.joined", np.array([0, -1, heads * HEAD_SIZE], np.int64))
        ones = self.keep(f"{name}.ones", np.ones(HEAD_SIZE, np.float32))
        self.add("Reshape", [x, apart], f"{name}.heads")
        self.add("SimplifiedLayerNormalization", [f"{name}.heads", ones], f"{name}.even", axis=-1)
        return self.add("Reshape", [f"{name}.even", joined], f"{name}.normed")

    def mixed(self, name: str, x: str) -> str:
        """Add experts, of which each token has two."""
        flat = self.keep(f"{name}.flat", np.array([-1, HIDDEN], np.int64))
        rows = self.add("Reshape", [x, flat], f"{name}.rows")
        routed = self.product(f"{name}.router", rows, HIDDEN, EXPERTS, int4=False)
        up = self.weight(f"{name}.up", EXPERTS, INNER, HIDDEN)
        down = self.weight(f"{name}.down", EXPERTS, HIDDEN, INNER)
        return self.add(
            "MoE", [x, routed, up, "", down], f"{name}.mixed", k=2, activation_type="silu"
        )

    def product(self, name: str, x: str, rows: int, columns: int, *, int4: bool) -> str:
        if not int4:
            return self.add("MatMul", [x, self.weight(f"{name}.weight", rows, columns)], name)
        blocks = -(-rows // BLOCK)
        packed = self.random.integers(0, 256, (columns, blocks, BLOCK // 2), dtype=np.uint8)
        scales = np.full(columns * blocks, 0.02, np.float32)
        inputs = [x, self.keep(f"{name}.q", packed), self.keep(f"{name}.scales", scales)]
        return self.add(
            "MatMulNBits", inputs, name, K=rows, N=columns, bits=4, block_size=BLOCK,
        )  # fmt: skip


def _lengths(g: _Graph) -> tuple[str, str]:
    """Add what makes the lengths of GroupQueryAttention of a mask: the last position, the total."""
    one = g.keep("one", np.array([1], np.int64))
    counted = g.add("ReduceSum", ["attention_mask", one], "counted", keepdims=0)
    last = g.add("Sub", [counted, g.keep("one0", np.int64(1))], "last")
    seqlens = g.add("Cast", [last], "seqlens", to=TensorProto.INT32)
    g.add("Shape", ["attention_mask"], "mask_shape")
    g.add("Gather", ["mask_shape", "one0"], "width", axis=0)
    return seqlens, g.add("Cast", ["width"], "width32", to=TensorProto.INT32)


def grouped(
    path: Path,
    *,
    layers: int = 2,
    int4: bool = True,
    past: Sequence[str | int] = ("past_key_values.{}.key", "past_key_values.{}.value"),
    present: Sequence[str] = ("present.{}.key", "present.{}.value"),
    dims: Sequence[str | None] = ("batch_size", "sequence_length", "past_sequence_length", "total"),
    declared: int = VOCABULARY,
    typed: bool = False,
    normed: bool = False,
    experts: bool = False,
    grouping: bool = True,
) -> Path:
    """Write a decoder as onnxruntime-genai's builder makes them: GroupQueryAttention, int4.

    Without `int4`, weights are of MatMul; without `grouping`, the operator is MultiHeadAttention.
    `past` and `present` name caches, with ``{}`` for the layer; `dims` the batch, the sequence, the
    past and the total length. `declared` is the vocabulary that the output declares, `typed`
    declares queries, keys and values, and `experts` puts a mixture of these behind attention.
    """
    g, f32, i64 = _Graph(), TensorProto.FLOAT, TensorProto.INT64
    batch, length, before, total = dims
    value = helper.make_tensor_value_info
    inputs = [
        value("input_ids", i64, [batch, length]),
        value("attention_mask", i64, [batch, total]),
    ]
    outputs = [value("logits", f32, [batch, length, declared])]
    seqlens, width = _lengths(g)
    x = g.add("Gather", [g.weight("embedding", VOCABULARY, HIDDEN), "input_ids"], "embedded")
    angles = np.outer(np.arange(256), 1 / 10_000 ** (np.arange(8) / 8)).astype(np.float32)
    cos, sin = g.keep("cos", np.cos(angles)), g.keep("sin", np.sin(angles))
    norm = g.add(
        "SimplifiedLayerNormalization", [x, g.keep("norm0", np.ones(HIDDEN, np.float32))], "norm",
        axis=-1, epsilon=1e-5, stash_type=1,
    )  # fmt: skip
    own = KV_HEADS if grouping else HEADS
    for at in range(layers):
        p = f"layers.{at}"
        q = g.product(f"{p}.q", norm, HIDDEN, HIDDEN, int4=int4)
        k = g.product(f"{p}.k", norm, HIDDEN, own * HEAD_SIZE, int4=int4)
        v = g.product(f"{p}.v", norm, HIDDEN, own * HEAD_SIZE, int4=int4)
        if normed:
            q, k = g.normed(f"{p}.q", q, HEADS), g.normed(f"{p}.k", k, own)
        old = [str(one).format(at) for one in past]
        new = [one.format(at) for one in present]
        cache = [batch, own, before, HEAD_SIZE]
        inputs += [value(name, f32, cache) for name in old]
        outputs += [value(name, f32, [batch, own, total, HEAD_SIZE]) for name in new]
        if grouping:
            attended = g.add(
                "GroupQueryAttention", [q, k, v, *old, seqlens, width, cos, sin],
                f"{p}.attention", *new, num_heads=HEADS, kv_num_heads=KV_HEADS, do_rotary=1,
            )  # fmt: skip
        else:
            attended = g.add(
                "MultiHeadAttention", [q, k, v, "", "", "", *old], f"{p}.attention", *new,
                num_heads=HEADS, unidirectional=1,
            )  # fmt: skip
        o = g.product(f"{p}.o", attended, HIDDEN, HIDDEN, int4=int4)
        ones = g.keep(f"{p}.norm", np.ones(HIDDEN, np.float32))
        g.add(
            "SkipSimplifiedLayerNormalization", [x, o, ones], f"{p}.out", "", "", f"{p}.sum",
            epsilon=1e-5,
        )  # fmt: skip
        norm, x = f"{p}.out", f"{p}.sum"
        if experts:
            more = g.mixed(p, norm)
            g.add(
                "SkipSimplifiedLayerNormalization", [x, more, ones], f"{p}.end", "", "", f"{p}.all",
                epsilon=1e-5,
            )  # fmt: skip
            norm, x = f"{p}.end", f"{p}.all"
    g.product("logits", norm, HIDDEN, VOCABULARY, int4=False)
    made = helper.make_graph(g.nodes, "main_graph", inputs, outputs, g.weights)
    for at in range(layers if typed else 0):
        for what, heads in (("q", HEADS), ("k", KV_HEADS), ("v", KV_HEADS)):
            shape = [batch, length, heads * HEAD_SIZE]
            made.value_info.append(value(f"layers.{at}.{what}", f32, shape))
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(made, opset_imports=opsets, ir_version=10)
    path.write_bytes(model.SerializeToString())
    return path


def folder(path: Path, **changed: Any) -> Path:
    """Write a folder of onnxruntime-genai: a decoder and its changed configuration."""
    path.mkdir()
    grouped(path / "model.onnx")
    decoder = {
        "filename": "model.onnx", "head_size": HEAD_SIZE, "hidden_size": HIDDEN,
        "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "num_hidden_layers": 2,
        "inputs": {
            "input_ids": "input_ids", "attention_mask": "attention_mask",
            "past_key_names": "past_key_values.%d.key",
            "past_value_names": "past_key_values.%d.value",
        },
        "outputs": {
            "logits": "logits", "present_key_names": "present.%d.key",
            "present_value_names": "present.%d.value",
        },
    }  # fmt: skip
    model = {
        "type": "llama", "context_length": 256, "vocab_size": VOCABULARY, "bos_token_id": 1,
        "eos_token_id": [2], "pad_token_id": 0, "decoder": decoder | changed,
    }  # fmt: skip
    config = {"model": model, "search": {"max_length": 256, "past_present_share_buffer": False}}
    (path / "genai_config.json").write_text(json.dumps(config))
    return path


WINDOW, TAPS = 6, 3
MIXED_LAYERS = ("conv", "sliding_attention", "full_attention", "linear_attention")


def mixed(path: Path) -> Path:
    """Write a decoder whose layers are of four kinds, as onnxruntime-genai's builder names them.

    A convolution and a recurrence keep a state, a local attention a window, a global one all. The
    size of a head is a symbol.
    """
    g, f32, i64 = _Graph(), TensorProto.FLOAT, TensorProto.INT64
    value = helper.make_tensor_value_info
    rows: list[str | int | None] = ["batch_size", "sequence_length"]
    inputs = [
        value("input_ids", i64, rows),
        value("attention_mask", i64, ["batch_size", "total_sequence_length"]),
    ]
    outputs = [value("logits", f32, [*rows, VOCABULARY])]
    last, width = _lengths(g)
    x = g.add("Gather", [g.weight("embedding", VOCABULARY, HIDDEN), "input_ids"], "embedded")

    def keep(at: int, what: str, past: Sequence[str | int], present: Sequence[str | int]) -> None:
        inputs.append(value(f"past{what.format(at)}", f32, ["batch_size", *past]))
        outputs.append(value(f"present{what.format(at).removeprefix('_key_values')}", f32,
                             ["batch_size", *present]))  # fmt: skip

    for at, kind in enumerate(MIXED_LAYERS):
        p = f"layers.{at}"
        if kind == "conv":
            taps = (HIDDEN, TAPS - 1)
            keep(at, ".{}.conv", taps, taps)
            first = g.add("Transpose", [x], f"{p}.turned", perm=[0, 2, 1])
            made = g.add(
                "CausalConvWithState",
                [first, g.weight(f"{p}.taps", HIDDEN, 1, TAPS), "", f"past.{at}.conv"],
                f"{p}.convolved", f"present.{at}.conv", ndim=1,
            )  # fmt: skip
            made = g.add("Transpose", [made], f"{p}.made", perm=[0, 2, 1])
        elif kind == "linear_attention":
            state = (KV_HEADS, HEAD_SIZE, HEAD_SIZE)
            keep(at, ".{}.recurrent", state, state)
            parts = [
                g.product(f"{p}.{one}", x, HIDDEN, KV_HEADS * HEAD_SIZE, int4=False)
                for one in ("q", "k", "v")
            ]
            made = g.add(
                "LinearAttention", [*parts, f"past.{at}.recurrent"], f"{p}.attended",
                f"present.{at}.recurrent", q_num_heads=KV_HEADS, kv_num_heads=KV_HEADS,
                update_rule="linear",
            )  # fmt: skip
            made = g.product(f"{p}.o", made, KV_HEADS * HEAD_SIZE, HIDDEN, int4=False)
        else:
            is_local = kind == "sliding_attention"
            length = "sliding_length" if is_local else "sequence_length"
            for half in ("key", "value"):
                keep(at, f"_key_values.{{}}.{half}",
                     (KV_HEADS, f"past_{length}", "kv_cache_dim"),
                     (KV_HEADS, f"total_{length}", "kv_cache_dim"))  # fmt: skip
            packed = g.product(f"{p}.qkv", x, HIDDEN, (HEADS + 2 * KV_HEADS) * HEAD_SIZE, int4=True)
            past = [f"past_key_values.{at}.{half}" for half in ("key", "value")]
            local = {"local_window_size": WINDOW, "sliding_window_cache": 1} if is_local else {}
            made = g.add(
                "GroupQueryAttention", [packed, "", "", *past, last, width], f"{p}.attended",
                f"present.{at}.key", f"present.{at}.value",
                num_heads=HEADS, kv_num_heads=KV_HEADS, **local,
            )  # fmt: skip
        x = g.add("Add", [x, made], f"{p}.out")
    g.product("logits", x, HIDDEN, VOCABULARY, int4=False)
    graph = helper.make_graph(g.nodes, "main_graph", inputs, outputs, g.weights)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    path.write_bytes(model.SerializeToString())
    return path


def mixed_folder(path: Path, **changed: Any) -> Path:
    """Write a folder of onnxruntime-genai with :func:`mixed`."""
    names = {kind: (f"past.%d.{kind}", f"present.%d.{kind}") for kind in ("conv", "recurrent")}
    names |= {
        half: (f"past_key_values.%d.{half}", f"present.%d.{half}") for half in ("key", "value")
    }
    usual: dict[str, Any] = dict(
        num_hidden_layers=len(MIXED_LAYERS),
        inputs={"input_ids": "input_ids", "attention_mask": "attention_mask"}
        | {f"past_{kind}_names": past for kind, (past, _) in names.items()},
        outputs={"logits": "logits"}
        | {f"present_{kind}_names": present for kind, (_, present) in names.items()},
    )
    folder(path, **usual | changed)
    mixed(path / "model.onnx")
    return path


def stacked(path: Path) -> Path:
    """Write a GPT-2 as ONNX Runtime's optimizer makes them: a cache of keys and values in one."""
    g, f32, i32 = _Graph(), TensorProto.FLOAT, TensorProto.INT32
    value = helper.make_tensor_value_info
    inputs = [
        value("input_ids", TensorProto.INT64, ["batch", "seq"]),
        value("attention_mask", i32, ["batch", "total"]),
    ]
    outputs = [value("logits", f32, ["batch", "seq", VOCABULARY])]
    x = g.add("Gather", [g.weight("wte", VOCABULARY, HIDDEN), "input_ids"], "embedded")
    for at in range(2):
        cache: list[str | int | None] = [2, "batch", HEADS, "past", HIDDEN // HEADS]
        inputs.append(value(f"past_{at}", f32, cache))
        outputs.append(value(f"present_{at}", f32, [*cache[:3], "total", cache[4]]))
        weights = [g.weight(f"h{at}.w", HIDDEN, 3 * HIDDEN), g.weight(f"h{at}.b", 3 * HIDDEN)]
        node = helper.make_node(
            "Attention", [x, *weights, "attention_mask", f"past_{at}"], [f"a{at}", f"present_{at}"],
            name=f"attention{at}", domain="com.microsoft", num_heads=HEADS, unidirectional=1,
        )  # fmt: skip
        g.nodes.append(node)
        made = g.product(f"h{at}.proj", f"a{at}", HIDDEN, HIDDEN, int4=False)
        x = g.add("Add", [x, made], f"x{at}")
    g.add("MatMul", [x, g.weight("head", HIDDEN, VOCABULARY)], "logits")
    graph = helper.make_graph(g.nodes, "gpt2", inputs, outputs, g.weights)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path


def positioned(path: Path) -> Path:
    """Write a layer as of opset 23: Attention and RotaryEmbedding of ai.onnx, with positions."""
    g, f32, i64 = _Graph(), TensorProto.FLOAT, TensorProto.INT64
    value = helper.make_tensor_value_info
    rows = ["batch", "seq"]
    inputs = [value("input_ids", i64, rows), value("position_ids", i64, rows)]
    inputs += [value(f"past_key_values.0.{one}", f32, ["batch", KV_HEADS, "past", HEAD_SIZE])
               for one in ("key", "value")]  # fmt: skip
    outputs = [value("logits", f32, [*rows, VOCABULARY])]
    outputs += [value(f"present.0.{one}", f32, ["batch", KV_HEADS, "total", HEAD_SIZE])
                for one in ("key", "value")]  # fmt: skip
    x = g.add("Gather", [g.weight("embedding", VOCABULARY, HIDDEN), "input_ids"], "embedded")
    tables = [g.weight("cos", 256, HEAD_SIZE // 2), g.weight("sin", 256, HEAD_SIZE // 2)]
    q = g.product("q", x, HIDDEN, HIDDEN, int4=False)
    k = g.product("k", x, HIDDEN, KV_HEADS * HEAD_SIZE, int4=False)
    v = g.product("v", x, HIDDEN, KV_HEADS * HEAD_SIZE, int4=False)
    q = g.add("RotaryEmbedding", [q, *tables, "position_ids"], "q.turned", num_heads=HEADS)
    k = g.add("RotaryEmbedding", [k, *tables, "position_ids"], "k.turned", num_heads=KV_HEADS)
    attended = g.add(
        "Attention", [q, k, v, "", "past_key_values.0.key", "past_key_values.0.value"],
        "attended", "present.0.key", "present.0.value",
        is_causal=1, q_num_heads=HEADS, kv_num_heads=KV_HEADS,
    )  # fmt: skip
    g.product("logits", attended, HIDDEN, VOCABULARY, int4=False)
    made = helper.make_graph(g.nodes, "main_graph", inputs, outputs, g.weights)
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)
    path.write_bytes(model.SerializeToString())
    return path


def in_place(path: Path, kind: str) -> Path:
    """Write a layer whose cache has the length that its caller chooses, and does not grow.

    Args:
        path: Where to.
        kind: ``masked`` (DecoderMaskedMultiHeadAttention, one token at a time), ``beams`` (the
            same with the inputs of a beam search), ``stacked`` (Attention of com.microsoft, keys
            and values in one, on a GPU only), or ``scattered`` (TensorScatter and Attention of
            ai.onnx, with a mask over the whole cache).
    """
    g, f32, i64, i32 = _Graph(), TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32
    value = helper.make_tensor_value_info
    rows = ["batch", "seq"]
    size = HIDDEN // HEADS
    inputs = [value("input_ids", i64, rows)]
    outputs = [value("logits", f32, [*rows, VOCABULARY])]
    x = g.add("Gather", [g.weight("embedding", VOCABULARY, HIDDEN), "input_ids"], "embedded")
    halves = ("key", "value")
    if kind == "stacked":
        cache: list[str | int | None] = [2, "batch", HEADS, "max_sequence_length", size]
        inputs += [value("attention_mask", i32, ["batch", "total_sequence_length"]),
                   value("past", f32, cache), value("past_sequence_length", i32, [1])]  # fmt: skip
        outputs.append(value("present", f32, cache))
        weights = [g.weight("w", HIDDEN, 3 * HIDDEN), g.weight("b", 3 * HIDDEN)]
        node = helper.make_node(
            "Attention", [x, *weights, "attention_mask", "past", "", "past_sequence_length"],
            ["attended", "present"], name="attention", domain="com.microsoft", num_heads=HEADS,
            unidirectional=1, past_present_share_buffer=1,
        )  # fmt: skip
        g.nodes.append(node)
    else:
        cache = ["batch", HEADS, "max_sequence_length", size]
        inputs += [value(f"past_key_values.0.{half}", f32, cache) for half in halves]
        outputs += [value(f"present.0.{half}", f32, cache) for half in halves]
        past, present = ([f"{name}.0.{half}" for half in halves]
                         for name in ("past_key_values", "present"))  # fmt: skip
        q, k, v = (g.product(part, x, HIDDEN, HIDDEN, int4=False) for part in "qkv")
        if kind == "scattered":
            shown: list[str | int | None] = ["batch", 1, "seq", "max_sequence_length"]
            inputs += [value("attention_mask", TensorProto.BOOL, shown),
                       value("cache_position", i64, ["batch"])]  # fmt: skip
            apart = g.keep("apart", np.array([0, -1, HEADS, size], np.int64))
            joined = g.keep("joined", np.array([0, -1, HIDDEN], np.int64))
            for part in "qkv":
                g.add("Reshape", [part, apart], f"{part}.apart")
                g.add("Transpose", [f"{part}.apart"], f"{part}.heads", perm=[0, 2, 1, 3])
            for part, before, after in zip("kv", past, present, strict=True):
                g.add("TensorScatter", [before, f"{part}.heads", "cache_position"], after)
            g.add("Attention", ["q.heads", *present, "attention_mask"], "attended.heads")
            g.add("Transpose", ["attended.heads"], "attended.rows", perm=[0, 2, 1, 3])
            g.add("Reshape", ["attended.rows", joined], "attended")
        else:
            inputs += [value("attention_mask", i32, ["batch", "total_sequence_length"]),
                       value("past_sequence_length", i32, [1])]  # fmt: skip
            beams = []
            if kind == "beams":
                beams = ["beam_width", "cache_indirection"]
                inputs += [value("beam_width", i32, [1]),
                           value("cache_indirection", i32,
                                 ["batch", "beams", "max_sequence_length"])]  # fmt: skip
            # ONNX Runtime reads a bias where there are beams, and crashes where there is none.
            bias = ["bias"] if beams else [""]
            if beams:
                one = g.keep("one", np.array([1], np.int32))
                total = g.add("Add", ["past_sequence_length", one], "total32")
                total = g.add("Cast", [total], "total", to=TensorProto.INT64)
                ones = g.keep("ones", np.array([1, 1, 1], np.int64))
                shape = g.add("Concat", [ones, total], "bias_shape", axis=0)
                g.add("ConstantOfShape", [shape], "bias")
            g.add(
                "DecoderMaskedMultiHeadAttention",
                [q, k, v, "attention_mask", *bias, *past, "past_sequence_length", *beams],
                "attended", *present, num_heads=HEADS, past_present_share_buffer=1,
            )  # fmt: skip
    x = g.add("Add", [x, "attended"], "sum")
    g.product("logits", x, HIDDEN, VOCABULARY, int4=False)
    made = helper.make_graph(g.nodes, "main_graph", inputs, outputs, g.weights)
    opsets = [helper.make_opsetid("", 24 if kind == "scattered" else 17)]
    opsets.append(helper.make_opsetid("com.microsoft", 1))
    model = helper.make_model(
        made, opset_imports=opsets, ir_version=11 if kind == "scattered" else 8
    )
    path.write_bytes(model.SerializeToString())
    return path
