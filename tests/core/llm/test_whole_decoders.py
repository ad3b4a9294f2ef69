"""Facts, inputs and budgets of whole decoders, and their folders, with what is recorded beside."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from dld_tui.backends.onnxruntime.types import contrib_types
from dld_tui.core.errors import DldError
from dld_tui.core.llm.budget import (
    Device,
    LeastTime,
    Phase,
    PhaseBudget,
    budget_of,
    device_of,
    fit_table,
    kv_bytes,
    run_bytes,
    time_table,
)
from dld_tui.core.llm.feeds import Decoder, KeptFeeds, StepFeeds
from dld_tui.core.llm.folder import read_config
from dld_tui.core.model.document import Document
from dld_tui.core.model.inputs.guess import Guess, input_specs
from dld_tui.core.model.inputs.shapes import AnyArray
from dld_tui.core.model.shapes.inference import infer_types, store_types
from dld_tui.core.tables.rendering import text_lines
from tests.support import decoders, models
from tests.support.recorded import Recorded

STATEFUL = """<ir_version: 10, opset_import: ["" : 20]>
    g (int64[4, 1] input_ids, float[4, 32] past_state) =>
        (float[4, 1, 9] logits, float[4, 32] present_state)
    <float[9, 32] table, float[32, 9] head, int64[1] rows = {1}> {
    x = Gather (table, input_ids) y = Squeeze (x, rows)
    mixed = Add (past_state, y) present_state = Tanh (mixed)
    z = Unsqueeze (present_state, rows) logits = MatMul (z, head) }"""
NO_BATCH = """<ir_version: 10, opset_import: ["" : 20]>
    g (int64[s] input_ids, float[past, 1, 32] past_key) =>
        (float[total, 1, 32] present_key, float[s, 9] scores)
    <float[9, 32] table, float[32, 9] head, int64[1] rows = {1}> {
    x = Gather (table, input_ids) y = Unsqueeze (x, rows)
    present_key = Concat <axis = 0> (past_key, y) scores = MatMul (x, head) }"""
CROSSED = """<ir_version: 10, opset_import: ["" : 20, "com.microsoft" : 1]>
    g (int64[b, s] input_ids, float[b, 4, past, 8] past_key_self_0, float[b, 4, past, 8]
       past_value_self_0, float[b, 4, 50, 8] past_key_cross_0, float[2, 4, 50, 8]
       past_value_cross_0) => (float[b, s, 9] logits, float[b, 4, total, 8] present_key_self_0,
       float[b, 4, total, 8] present_value_self_0)
    <float[9, 32] table, float[32, 9] head> {
    x = Gather (table, input_ids)
    y, present_key_self_0, present_value_self_0 = com.microsoft.MultiHeadAttention
        <num_heads = 4> (x, x, x, , , , past_key_self_0, past_value_self_0)
    z = com.microsoft.MultiHeadAttention <num_heads = 4>
        (y, past_key_cross_0, past_value_cross_0)
    logits = MatMul (z, head) }"""
EMBEDDED = """<ir_version: 10, opset_import: ["" : 20, "com.microsoft" : 1]>
    g (float16[b, s, 32] inputs_embeds, int64[b, t] mask, float16[b, 4, 64, 8] past_key_0,
       float16[b, 4, 64, 8] past_value_0) => (float16[b, s, 9] logits,
       float16[b, 4, total, 8] present_key_0, float16[b, 4, total, 8] present_value_0)
    <float16[32, 9] head> {
    y, present_key_0, present_value_0 = com.microsoft.MultiHeadAttention
        <num_heads = 4> (inputs_embeds, inputs_embeds, inputs_embeds, , , , past_key_0,
         past_value_0)
    logits = MatMul (y, head) }"""

TYPED = """<ir_version: 10, opset_import: ["" : 20]>
    g (int64[b, s] token_type_ids, int64[b, s] position_ids, int64[b, total] ids_mask,
       float[b, s, 32] features, int64[b, s] input_ids, float[b, 4, past, 8] past_key) =>
       (float[b, s, 32] hidden, float[b, s, 9] logits, float[b, 4, total, 8] present_key)
    <float[9, 32] table, float[32, 9] head, int64[4] apart = {0, -1, 4, 8}> {
    embedded = Gather (table, input_ids) hidden = Add (embedded, features)
    logits = MatMul (hidden, head) x = Reshape (hidden, apart)
    y = Transpose <perm = [0, 2, 1, 3]> (x) present_key = Concat <axis = 2> (past_key, y) }"""


def models_of(folder: Path) -> dict[str, Path]:
    """Return files of decoders of all kinds."""
    made = {
        "grouped": decoders.grouped(folder / "grouped.onnx"),
        "int4": decoders.grouped(folder / "int4.onnx", layers=1, int4=True),
        "experts": decoders.grouped(folder / "experts.onnx", normed=True, experts=True),
        "mixed": decoders.mixed(folder / "mixed.onnx"),
        "stacked": decoders.stacked(folder / "stacked.onnx"),
        "positioned": decoders.positioned(folder / "positioned.onnx"),
        "masked": decoders.in_place(folder / "masked.onnx", "masked"),
        "scattered": decoders.in_place(folder / "scatter.onnx", "scattered"),
    }
    texts = {
        "stateful": STATEFUL, "no_batch": NO_BATCH, "crossed": CROSSED, "embedded": EMBEDDED,
        "typed": TYPED,
    }  # fmt: skip
    for name, text in texts.items():
        (folder / name).mkdir()
        made[name] = models.write_weighted(folder / name, text)
    return made


def facts(decoder: Decoder) -> list[str]:
    names = (
        "length_axis", "takes_one", "takes_ids", "least_batch", "logits", "wants_sharing",
        "chooses_capacity", "fixed_length", "context_length", "fed_back",
    )  # fmt: skip
    lines = [f"{name}: {getattr(decoder, name)}" for name in names]
    lines += [f"tokens: {decoder.tokens.text}", f"shareable: {sorted(decoder.shareable)}"]
    lines += [f"crossed: {decoder.crossed_shapes(3)}"]
    for name in decoder.caches:
        shapes = [decoder.cache_shape(name, batch, length) for batch, length in ((1, 0), (3, 7))]
        lines.append(f"cache {name}: {shapes}")
    return lines


def shown(guess: Guess) -> str:
    return "; ".join(
        f"{one.name}{list(one.shape)} {one.fill.low:g}..{one.fill.high:g}" for one in guess.inputs
    )


def values(feeds: dict[str, AnyArray]) -> str:
    texts = []
    for name, array in feeds.items():
        some = array.ravel()[:6].tolist() if array.dtype.kind in "iub" else ""
        texts.append(f"{name} {array.dtype}{list(array.shape)} {some}")
    return "; ".join(texts)


def feeds(decoder: Decoder) -> list[str]:
    """Return the inputs of prompts and of the tokens after them."""
    lines = []
    for batch, past, length in ((1, 0, 1), (1, 0, 5), (2, 4, 1), (2, 3, 2), (4, 3, 1)):
        try:
            lines.append(f"{batch} {past}+{length}: {shown(decoder.guess(batch, past, length))}")
        except DldError as error:
            lines.append(f"{batch} {past}+{length}: {error}")
    batch = max(decoder.least_batch, 1 if decoder.length_axis == 0 else 2)
    for kind, context, capacity in ((StepFeeds, 0, None), (KeptFeeds, 3, 40)):
        made = kind(decoder, batch, 5, 1, capacity, context)
        lines += [f"{made.context} {made.capacity} {made.vocabulary}", values(made.prompt())]
        for number in (-1, 0, 1, 5):
            step = made.step(number)
            if decoder.takes_ids:
                made.put_tokens(step, np.arange(batch) + 7)
            lines.append(f"{number}: {values(step)}")
        assert (made.step(0) is made.step(0)) == (kind is KeptFeeds)
    return lines


def budgets(decoder: Decoder) -> list[str]:
    batches = [decoder.least_batch, 4] if decoder.length_axis else [1]
    lines = [f"least {kv_bytes(decoder, batches[0], 9)} {run_bytes(decoder, batches[0], 5, 4)}"]
    try:
        found = budget_of(decoder, batches, [1, 40])
    except DldError as error:
        return [*lines, str(error)]
    lines.append(
        f"{found.weight_bytes} {found.kv_token_bytes} {found.kv_fixed_bytes} {found.precision}"
        f" {found.types} {found.unknown_nodes}"
    )
    small = found.fits[0].total_bytes
    own = Device("own", small, None)
    devices = [device_of("NVIDIA H200"), device_of("mine=0.001,0.1,0.0001"), own]
    devices += [Device("unknown", None, None)]
    lines += text_lines(fit_table(found, devices))
    return lines + text_lines(time_table(found, devices[:3])) + text_lines(time_table(found, []))


@pytest.mark.broad
def test_whole_decoders(tmp_path: Path, recorded: Recorded) -> None:
    pytest.importorskip("onnxruntime")
    told: dict[str, dict[str, str]] = {"facts": {}, "feeds": {}, "budgets": {}}
    for name, path in models_of(tmp_path).items():
        for what in (facts, feeds, budgets):
            with closing(Document.open(path)) as document:
                if what is budgets:
                    kinds, *_ = infer_types(onnx.load(path), path, contrib_types)
                    store_types(document, kinds)
                decoder = Decoder(document, input_specs(document))
                told[what.__name__][name] = "\n".join(what(decoder))
    for title, texts in told.items():
        recorded(f"whole_{title}", texts)


PHASES: dict[Phase, int] = {"prefill": 8, "decode": 1}


def test_tokens_a_second_are_of_all_sequences() -> None:
    for phase, tokens in PHASES.items():
        budget = PhaseBudget(phase, 3, 8, 1, 1, 1, 1, 1)
        rates = [LeastTime(budget, "d", ms, "").tokens_per_s for ms in (None, 0.0, 2.0)]
        assert rates == [None, None, 1500 * tokens]


CONFIGURATION: dict[str, Any] = {
    "model": {
        "type": "llama", "context_length": 256.0, "vocab_size": 64, "bos_token_id": 1,
        "eos_token_id": [2, 3], "pad_token_id": None, "image_token_id": "x",
        "embedding": {"filename": "embedding.onnx"}, "vision": {"filename": 3}, "speech": "none",
        "decoder": {
            "filename": "model.onnx", "head_size": 8, "hidden_size": 1 << 31,
            "num_attention_heads": -1, "num_key_value_heads": 0, "num_hidden_layers": 2,
            "inputs": {"input_ids": "ids", "odd": 3, "past_key_names": "past.%d"},
            "outputs": {"logits": "scores"}, "layer_types": ["conv", 3],
            "session_options": {"threads": 4, "log": True, "id": "a", "more": {}, "none": None},
        },
    },
    "search": {"max_length": 257, "past_present_share_buffer": True},
}  # fmt: skip
PIPELINE: dict[str, Any] = {
    "model": {
        "type": "lfm2", "context_length": 0, "eos_token_id": 7,
        "decoder": {
            "num_hidden_layers": 3, "outputs": [],
            "pipeline": [
                {"embed": {"filename": "embed.onnx", "inputs": ["a"], "outputs": ["b", 3]}},
                {"run": {"filename": "run.onnx", "inputs": ["b", "k"], "outputs": "c"}, "no": 3},
                {"named": {"filename": 3}}, "none",
            ],
        },
    },
    "search": [],
}  # fmt: skip
CHANGES: dict[str, dict[str, Any]] = {
    "all": {}, "elsewhere": {"filename": "../model.onnx"}, "long": {"filename": "m" * 256},
    "inside": {"filename": "a/model.onnx"}, "layers": {"num_hidden_layers": 3},
    "unlisted": {"layer_types": None}, "true": {"head_size": True, "inputs": "none"},
}  # fmt: skip


def test_whole_configurations(tmp_path: Path, recorded: Recorded) -> None:
    texts = {}
    cases: dict[str, object] = {"pipeline": PIPELINE, "empty": {}, "list": [], "no": {"model": {}}}
    for name, change in CHANGES.items():
        data = json.loads(json.dumps(CONFIGURATION))
        data["model"]["decoder"] |= change
        cases[name] = data
    for name, content in cases.items():
        path = tmp_path / "genai_config.json"
        path.write_text(json.dumps(content))
        try:
            config = read_config(path)
        except DldError as error:
            texts[name] = str(error)
        else:
            fields = {**vars(config), "special_tokens": sorted(config.special_tokens)}
            texts[name] = "\n".join(f"{field}: {value}" for field, value in fields.items())
        texts[name] = texts[name].replace(str(tmp_path), "FOLDER")
    recorded("whole_configurations", texts)
