"""What a decoder needs, against sums made by hand."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import onnx
import pytest
from onnx import numpy_helper

from dld_tui.backends.onnxruntime.types import contrib_types
from dld_tui.core.errors import UsageError
from dld_tui.core.llm.budget import Budget, PhaseBudget, budget_of, device_of
from dld_tui.core.llm.feeds import Decoder
from dld_tui.core.machine.peaks import FP16_SUMS, MemoryLevel, Peaks
from dld_tui.core.model.document import Document
from dld_tui.core.model.inputs.guess import input_specs
from dld_tui.core.model.shapes.inference import infer_types, store_types
from dld_tui.core.model.tensors.value_types import ValueType
from tests.support import decoders, models
from tests.support.recorded import Recorded

LAYERS = 2
PROJECTED = decoders.HIDDEN * (2 * decoders.HIDDEN + 2 * decoders.KV_HEADS * decoders.HEAD_SIZE)
"""Multiply-accumulates of a token in the projections of a layer."""


def budget(path: Path, batches: list[int], contexts: list[int]) -> Budget:
    with closing(Document.open(path)) as document:
        main = document.main
        for node in main.nodes:  # as inference would find
            for name in node.outputs:
                if name and main.value_type(name) is None:
                    main.inferred[name] = ValueType("float32", None)
        return budget_of(Decoder(document, input_specs(document)), batches, contexts)


@pytest.mark.parametrize("int4", [True, False])
def test_memory_and_work_are_those_by_hand(int4: bool, tmp_path: Path) -> None:
    path = decoders.grouped(tmp_path / "m.onnx", layers=LAYERS, int4=int4)
    found = budget(path, [3], [40])
    stored = onnx.load(path).graph.initializer
    weights = {one.name: numpy_helper.to_array(one).nbytes for one in stored}
    assert found.weight_bytes == sum(weights.values())
    assert found.kv_token_bytes == LAYERS * 2 * decoders.KV_HEADS * decoders.HEAD_SIZE * 4
    [fit] = found.fits
    assert fit.kv_bytes == 3 * 40 * found.kv_token_bytes
    assert fit.logits_bytes == 3 * decoders.VOCABULARY * 4
    prefill, decode = found.phases
    assert (prefill.phase, decode.phase) == ("prefill", "decode")
    assert prefill.logits_bytes == 40 * fit.logits_bytes
    beside = prefill.activation_bytes + prefill.logits_bytes
    assert fit.prompt_bytes == fit.weight_bytes + fit.kv_bytes + beside > fit.total_bytes
    # Of the table of embeddings three rows are read, and only they.
    table = weights["embedding"]
    row = decoders.HIDDEN * 4
    assert decode.weight_bytes == found.weight_bytes - table + 3 * row
    assert prefill.weight_bytes == found.weight_bytes - table + min(table, 120 * row)
    assert decode.cache_bytes == 3 * 40 * found.kv_token_bytes
    head = decoders.HIDDEN * decoders.VOCABULARY
    for phase, tokens in ((prefill, 120), (decode, 3)):
        attended = LAYERS * tokens * 40 * decoders.HEADS * 2 * decoders.HEAD_SIZE
        macs = tokens * (LAYERS * PROJECTED + head) + attended
        assert phase.flops is not None
        assert 2 * macs <= phase.flops < 2.35 * macs, phase.phase  # norms, softmax, rotation
    assert decode.activation_bytes >= 2 * 3 * decoders.HIDDEN * 4


@pytest.mark.parametrize("experts", [True, False])
@pytest.mark.parametrize("grouping", [True, False])
def test_work_is_known_without_declared_types(
    experts: bool, grouping: bool, tmp_path: Path
) -> None:
    """Heads that are normalized: their Reshape has sizes only where those before it have."""
    pytest.importorskip("onnxruntime")
    path = decoders.grouped(
        tmp_path / "m.onnx", layers=3, normed=True, experts=experts, grouping=grouping
    )
    batch, context = 2, 12
    with closing(Document.open(path)) as document:
        store_types(document, infer_types(onnx.load(path), path, contrib_types)[0])
        decoder = Decoder(document, input_specs(document))
        phases = budget_of(decoder, [batch], [context]).phases
    own = decoders.KV_HEADS if grouping else decoders.HEADS
    layer = decoders.HIDDEN * (2 * decoders.HIDDEN + 2 * own * decoders.HEAD_SIZE)
    if experts:  # a router, and two experts of two products
        layer += decoders.HIDDEN * (decoders.EXPERTS + 4 * decoders.INNER)
    for phase, tokens in zip(phases, (batch * context, batch), strict=True):
        attended = tokens * context * decoders.HEADS * 2 * decoders.HEAD_SIZE
        head = tokens * decoders.HIDDEN * decoders.VOCABULARY
        macs = 3 * (tokens * layer + attended) + head
        assert phase.flops is not None, phase.phase
        assert 2 * macs <= phase.flops < 2.35 * macs, phase.phase


def test_windows_and_states_do_not_grow(tmp_path: Path) -> None:
    found = budget(decoders.mixed(tmp_path / "m.onnx"), [3], [40, 80])
    token = 2 * decoders.KV_HEADS * decoders.HEAD_SIZE * 4  # keys and values of one layer
    states = (decoders.HIDDEN * (decoders.TAPS - 1) + decoders.KV_HEADS * decoders.HEAD_SIZE**2) * 4
    assert found.kv_token_bytes == token
    assert found.kv_fixed_bytes == token * decoders.WINDOW + states
    assert [fit.kv_bytes for fit in found.fits] == [
        3 * (token * (context + decoders.WINDOW) + states) for context in (40, 80)
    ]


@pytest.mark.parametrize(
    ("product", "integers"),
    [
        ("MatMul", False),
        ("MatMulInteger", True),
        ("com.microsoft.DynamicQuantizeMatMul", True),
        ("com.microsoft.MatMulIntegerToFloat", True),
        ("com.microsoft.MatMulNBits <K = 32, N = 9, bits = 4, accuracy_level = 4>", True),
        ("com.microsoft.MatMulNBits <K = 32, N = 9, bits = 4, accuracy_level = 1>", False),
    ],
)
def test_products_of_integers_are_known(product: str, integers: bool, tmp_path: Path) -> None:
    text = f"""<ir_version: 10, opset_import: ["" : 20, "com.microsoft" : 1]>
        g (int64[b, s] input_ids, float[b, 1, past, 32] past_key_0, float[b, 1, past, 32]
           past_value_0) => (float[b, s, 9] logits, float[b, 1, total, 32] present_key_0,
           float[b, 1, total, 32] present_value_0)
        <float[9, 32] table, float[32, 9] head> {{
        x = Gather (table, input_ids)
        y, present_key_0, present_value_0 = com.microsoft.MultiHeadAttention
            <num_heads = 1> (x, x, x, , , , past_key_0, past_value_0)
        logits = {product} (y, head) }}"""
    found = budget(models.write_weighted(tmp_path, text), [1], [4])
    assert found.types == ("fp32", "int8")[: 1 + integers]


FP16 = {"fp16": 1e12}
MIXED = {"fp16": 1e12, FP16_SUMS: 2e12, "fp32": 1e11, "tf32": 5e11}
NARROW = {"fp32": 1e9, "int8": 4e9}
LEVELS = (MemoryLevel(1 << 19, 4e9),)
PEAKS = {
    "fp16": Peaks("a", FP16, 1e12), "slow memory": Peaks("a", FP16, 1e9),
    "fp32 alone": Peaks("a", {"fp32": 1e15}, 1e12), "nothing": Peaks("a", {}, 1e12),
    "no memory": Peaks("a", FP16, 0.0), "sums in fp16": Peaks("a", MIXED, 1e15),
    "caches": Peaks("a", NARROW, 1e9, LEVELS, 1 << 24),
    "fast, caches": Peaks("a", {"fp32": 1e12}, 1e9, LEVELS, 1 << 24),
    "busy": Peaks("a", NARROW, 1e9, LEVELS, 1 << 24, busy=True),
}  # fmt: skip


def test_whole_least_times(recorded: Recorded) -> None:
    """What limits phases: work, or weights and cache that no cache of the device keeps."""
    large = PhaseBudget("decode", 1, 8, 2_000_000_000, 900_000_000, 100_000_000, 0, 0)
    phases = {
        "large": large, "in a cache": replace(large, weight_bytes=20_000_000, cache_bytes=9),
        "just in": replace(large, weight_bytes=(128 << 20) - 9, cache_bytes=9),
        "just out": replace(large, weight_bytes=(128 << 20) - 9, cache_bytes=10),
        "small": PhaseBudget("decode", 1, 8, 2_000_000, 900_000, 100_000, 0, 0),
        "as long": replace(large, flops=10**9), "unknown": replace(large, flops=None),
    }  # fmt: skip
    recorded("whole_least_times", {
        name: "\n".join(f"{title}, {' '.join(kinds)}: {phase.least_ms(peaks, kinds)}"
                        for title, peaks in PEAKS.items()
                        for kinds in (["fp16"], ["fp32"], ["fp32", "int8"]))
        for name, phase in phases.items()
    })  # fmt: skip


def test_whole_devices(recorded: Recorded) -> None:
    texts = (
        "NVIDIA H200", "H200", "mine=10,100,8", "a\x1b=1,2,3", "=1,2,3", "Abacus", "a\x1b",
        "mine=1,2", "mine=1,2,3,4", "mine=a,b,c", "mine=0,1,1", "mine=1,0,1", "mine=1,1,0",
        "mine=nan,1,1", "mine=999999,999999,999999", "mine=1e6,1,1", "mine=1,1e6,1", "mine=1,1,1e6",
        "",
    )  # fmt: skip
    lines = []
    for text in texts:
        try:
            lines.append(f"{text!r}: {device_of(text)}")
        except UsageError as error:
            lines.append(f"{text!r}: {error}")
    recorded("whole_devices", {"devices": "\n".join(lines)})
