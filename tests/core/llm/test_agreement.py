"""The configuration of a folder, and its other files, against its decoder."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import onnx

from dld_tui.core.errors import DldError
from dld_tui.core.llm.agreement import folder_findings
from dld_tui.core.llm.folder import find_decoder
from dld_tui.core.model.document import Document
from tests.support import decoders
from tests.support.recorded import Recorded

KEY, VALUE = "past_key_values.{}.key", "past_key_values.{}.value"
IDS, CACHES = ["input_ids", "attention_mask"], [n.format(at) for at in (0, 1) for n in (KEY, VALUE)]
KINDS = [*decoders.MIXED_LAYERS]


def staged(*stages: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a decoder in stages."""
    named = [{f"stage{at}": stage} for at, stage in enumerate(stages)]
    return {"decoder": {"filename": None, "pipeline": named, **more}}


def own(*inputs: str) -> dict[str, Any]:
    return {"filename": "model.onnx", "inputs": [*inputs], "outputs": ["logits"]}


OTHER = {"filename": "other.onnx", "inputs": ["more_ids"], "outputs": ["embeds"]}
FURTHER = {"inputs": {"more_ids": "more_ids"}}
CASES: dict[str, tuple[dict[str, Any], ...]] = {
    "grouped": (
        {},
        *({"decoder": change} for change in (
            {"head_size": 8}, {"head_size": 16.0}, {"head_size": [16]}, {"num_key_value_heads": 4},
            {"num_attention_heads": 8}, {"num_hidden_layers": 1}, {"num_hidden_layers": 3},
            {"num_hidden_layers": 4}, {"num_hidden_layers": "2"}, {"num_hidden_layers": None},
            {"num_hidden_layers": 1, "inputs": {"past_key_names": KEY.format(0)}},
            {"inputs": {"input_ids": "ids", "further": "others"}}, {"inputs": ["input_ids"]},
            {"inputs": ["input_ids"], "outputs": 3}, {"inputs": {"input_ids": 5, "past": 6}},
            {"inputs": {"input_ids": ["long"] * 9}}, {"inputs": {"input_ids": "n" * 38}},
            {"inputs": {"cross_past_key_names": "cross.%d.key"}},
            {"outputs": {"present_key_names": "present.%d.k"}},
            {"outputs": {"present_key_names": "present.0.key"}},
            {"outputs": {"present_key_names": "present.%d.value"}},
            {"inputs": {"past_value_names": VALUE.replace("{}", "%d")},
             "outputs": {"present_value_names": "present.%d.key", "logits": "present.0.key"}},
            {"inputs": {"past_key_names": KEY.format(0), "past_value_names": "v.%d"}},
            {"inputs": {"past_key_names": KEY.replace("{}", "%d")},
             "outputs": {"present_key_names": "present.%d.value"}},
            {"outputs": {"logits": "scores"}},
        )),
        *({"model": change} for change in (
            {"vocab_size": 60}, {"vocab_size": 99, "eos_token_id": [70, 61, 60, -1]},
            {"eos_token_id": ["2"]}, {"context_length": 257}, {"context_length": 0},
            {"vision": {"filename": "../v.onnx"}, "speech": {"filename": "/s.onnx"}},
            {"vision": {"filename": "v.onnx"}, "speech": {"filename": "model.onnx"}},
        )),
        {"search": {"max_length": 257}},
        staged(OTHER, own(*IDS, *CACHES), **FURTHER),
        staged(OTHER, own(), **FURTHER, filename="model.onnx"),
        staged({"filename": "other.onnx"}, own(*IDS, *CACHES), **FURTHER),
        staged(OTHER, own(*CACHES)), staged(OTHER, {**own(*CACHES), "filename": "last.onnx"}),
        staged({**OTHER, "inputs": ["logits", "late", "more_ids"]}, own(*IDS, *CACHES, "embeds"),
               {"filename": "last.onnx", "inputs": ["logits"], "outputs": ["late", "embeds"]}),
    ),
    "mixed": tuple({"decoder": change} for change in (
        {}, {"layer_types": KINDS}, {"num_hidden_layers": 5}, {"layer_types": KINDS[:1]},
        {"layer_types": ["full_attention"] * 4}, {"layer_types": ["conv"] * 4},
        {"layer_types": ["linear_attention"] * 4}, {"layer_types": ["other", 3, "conv", "conv"]},
        {"head_size": 8}, {"num_key_value_heads": 2, "head_size": 16},
        {"inputs": {"past_conv_names": "past.%d.conv", "past_key_names": KEY.replace("{}", "%d")},
         "outputs": {"present_value_names": "v.%d"}},
        {"inputs": {"past_conv_names": "past.%d.conv", "past_key_names": "k.%d"}},
    )),
    "multi": ({}, {"decoder": {"num_attention_heads": 3, "num_key_value_heads": 4}}),
    "positioned": ({}, {"decoder": {"num_attention_heads": 3, "num_hidden_layers": 1}}),
    "packed": ({}, {"decoder": {"head_size": 32}}),
    "stacked": ({},),
}  # fmt: skip
FILES = {
    "tokenizer.json": (
        '{"model": {"vocab": {"a": 0, "b": 60}}}', '{"model": {"vocab": {"a": 61, "b": 0}}}',
        '{"model": {"vocab": {"a": "b"}}, "added_tokens": [{"id": 60}, 99, {"id": 62}, {}]}',
        json.dumps({"model": {"vocab": ["a"] * 61}}), json.dumps({"model": {"vocab": ["a"] * 62}}),
        "{", "[]", '{"model": [], "added_tokens": {}}',
    ),
    "config.json": (
        '{"num_hidden_layers": 2, "head_dim": 16, "vocab_size": 61}', '{"n_layer": 9}', "{", "[]",
        '{"n_layers": 3, "num_hidden_layers": 4}', '{"n_layers": 3, "is_encoder_decoder": true}',
        '{"n_layers": 3, "is_encoder_decoder": false}', '{"n_layer": 3, "kv_lora_rank": 1}',
        '{"n_layer": 3, "layer_types": []}', '{"num_key_value_heads": 8, "head_dim": 8}',
        '{"num_attention_heads": 8}', '{"n_heads": 5}', '{"n_head": 5}', '{"n_head": 5.0}',
        '{"vocab_size": 62}', '{"vocab_size": 60}',
    ),
}  # fmt: skip


def folders(path: Path) -> dict[str, Path]:
    """Write decoders with a configuration each."""
    made = {name: decoders.folder(path / name) for name in CASES if name != "mixed"}
    made["mixed"] = decoders.mixed_folder(path / "mixed")
    decoders.grouped(made["multi"] / "model.onnx", grouping=False)
    decoders.positioned(made["positioned"] / "model.onnx")
    decoders.stacked(made["stacked"] / "model.onnx")
    packed = onnx.load(made["packed"] / "model.onnx")
    for node in packed.graph.node:
        if node.op_type == "GroupQueryAttention":
            node.attribute.append(onnx.helper.make_attribute("kv_cache_bit_width", 4))
    onnx.save(packed, made["packed"] / "model.onnx")
    return made


def test_whole_agreement(tmp_path: Path, recorded: Recorded) -> None:
    told = {}
    for kind, folder in folders(tmp_path).items():
        (folder / "other.onnx").touch()
        path = folder / "genai_config.json"
        plain = path.read_text()
        changed = [(json.dumps(change), change, "") for change in CASES[kind]]
        if kind == "grouped":
            changed += [(f"{file}: {text[:80]} of {len(text)}", {}, file)
                        for file, texts in FILES.items() for text in texts]  # fmt: skip
        texts = {
            f"{file}: {text[:80]} of {len(text)}": text
            for file, all_ in FILES.items()
            for text in all_
        }
        for title, change, file in changed:
            config = json.loads(plain)
            config["model"]["decoder"] |= change.get("decoder", {})
            config["model"] |= change.get("model", {})
            config["search"] |= change.get("search", {})
            path.write_text(json.dumps(config))
            if file:
                (folder / file).write_text(texts[title])
            try:
                model, read = find_decoder(folder)
                with closing(Document.open(model)) as document:
                    found = folder_findings(document, folder, read)
                lines = [f"{one.level} {one.rule}: {one.message}" for one in found]
            except DldError as error:
                lines = [f"! {error}".replace(str(folder), "FOLDER")]
            told[f"{kind} {title}"] = "\n".join(lines)
            if file:
                (folder / file).unlink()
    recorded("whole_agreement", told)
