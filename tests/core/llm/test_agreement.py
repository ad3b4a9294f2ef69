"""The configuration of a folder against its decoder."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import onnx
import pytest

from dld_tui.core.llm.agreement import folder_findings
from dld_tui.core.llm.folder import find_decoder
from dld_tui.core.model.document import Document
from tests.support import decoders


def found_in(folder: Path) -> list[str]:
    model, config = find_decoder(folder)
    assert config is not None
    with closing(Document.open(model)) as document:
        return [one.message for one in folder_findings(document, folder, config)]


def test_a_folder_that_agrees_has_no_finding(tmp_path: Path) -> None:
    folder = decoders.folder(tmp_path / "genai")
    assert found_in(folder) == []
    single = decoders.folder(
        tmp_path / "single", num_hidden_layers=1,
        inputs={"past_key_names": "past_key_values.0.key"},
    )  # fmt: skip
    decoders.grouped(single / "model.onnx", layers=1)
    assert found_in(single) == [], "one layer needs no %d"


NO_LAYER_2 = [
    f"the model has no {kind} {name.format(half)} ({role}_{half}_names)"
    for kind, role, name in (
        ("input", "past", "past_key_values.2.{}"), ("output", "present", "present.2.{}"),
    )
    for half in ("key", "value")
]  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "messages"),
    [
        ({"head_size": 8}, ["head_size is 8, the cache past_key_values.0.key has 16"]),
        (
            {"num_key_value_heads": 4},
            ["num_key_value_heads is 4, the cache past_key_values.0.key has 2"],
        ),
        ({"num_attention_heads": 8}, ["num_attention_heads is 8, the model has 4"]),
        (
            {"num_hidden_layers": 3},
            [*NO_LAYER_2, "num_hidden_layers is 3, the model has 4 caches"],
        ),
        ({"inputs": {"input_ids": "ids"}}, ["the model has no input ids (input_ids)"]),
        (
            {"outputs": {"present_key_names": "present.%d.k"}},
            ["the model has no output present.0.k and 1 more (present_key_names)"],
        ),
        ({"num_hidden_layers": "2"}, ['num_hidden_layers is "2", which is not a valid number']),
        ({"num_hidden_layers": None}, ["num_hidden_layers is null, which is not a valid number"]),
        ({"head_size": [16]}, ["head_size is [16], which is not a valid number"]),
        ({"inputs": ["input_ids"]}, ["its inputs are not an object of names"]),
        ({"inputs": {"input_ids": 5}}, ["input_ids of its inputs is 5, which is not a name"]),
        (
            {"outputs": {"present_key_names": "present.0.key"}},
            [
                "present_key_names is present.0.key, without %d for the layer",
                "present.0.key goes back into past_key_values.1.key, whose own is present.1.key"
                " (present_key_names)",
            ],
        ),
        (
            {"inputs": {"past_key_names": "past_key_values.0.key", "past_value_names": "v.%d"}},
            [
                "past_key_names is past_key_values.0.key, without %d for the layer",
                "the model has no input v.0 and 1 more (past_value_names)",
                "present.1.key goes back into past_key_values.0.key, whose own is present.0.key"
                " (present_key_names)",
            ],
        ),
        (
            {
                "inputs": {"past_key_names": "past_key_values.%d.key"},
                "outputs": {"present_key_names": "present.%d.value"},
            },
            [
                "present.0.value goes back into past_key_values.0.key, whose own is present.0.key"
                " (present_key_names)"
            ],
        ),
    ],
)
def test_what_does_not_hold_is_named_once(
    changed: dict[str, Any], messages: list[str], tmp_path: Path
) -> None:
    found = found_in(decoders.folder(tmp_path / "genai", **changed))
    assert found == [f"genai_config.json: {message}" for message in messages]


@pytest.mark.parametrize("types", [None, [*decoders.MIXED_LAYERS]])
def test_layers_keep_what_they_are(types: list[str] | None, tmp_path: Path) -> None:
    changed = {} if types is None else {"layer_types": types}
    assert found_in(decoders.mixed_folder(tmp_path / "genai", **changed)) == []


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"num_hidden_layers": 5}, "has no input past_key_values.4.key (past_key_names)"),
        (
            {"layer_types": ["full_attention"] * 4},
            "has no input past_key_values.0.key and 1 more (past_key_names)",
        ),
        ({"layer_types": ["conv"] * 4}, "has no input past.1.conv and 2 more (past_conv_names)"),
        ({"layer_types": ["conv"]}, "layer_types lists 1, num_hidden_layers is 4"),
        ({"head_size": 8}, "head_size is 8, the cache past_key_values.1.key has 16"),
    ],
)
def test_layers_that_keep_something_else_are_named(
    changed: dict[str, Any], message: str, tmp_path: Path
) -> None:
    found = found_in(decoders.mixed_folder(tmp_path / "genai", **changed))
    assert any(message in one for one in found), found


def pipeline(path: Path, stage: dict[str, Any]) -> Path:
    """Write a folder whose decoder takes embeddings, which another model makes."""
    folder = decoders.folder(path)
    config_path = folder / "genai_config.json"
    config = json.loads(config_path.read_text())
    decoder = config["model"]["decoder"]
    name = decoder.pop("filename")
    past = [f"past_key_values.{at}.{half}" for at in range(2) for half in ("key", "value")]
    inputs = ["input_ids", "attention_mask", *past]
    decoder["inputs"]["further_ids"] = "ids_of_the_other"
    decoder["pipeline"] = [
        {"embedding": {"filename": "embedding.onnx"} | stage},
        {"decoder": {"filename": name, "inputs": inputs, "outputs": ["logits"]}},
    ]
    (folder / "embedding.onnx").touch()
    config_path.write_text(json.dumps(config))
    return folder


def test_a_decoder_may_be_a_pipeline_of_models(tmp_path: Path) -> None:
    folder = pipeline(tmp_path / "a", {"inputs": ["ids_of_the_other"], "outputs": ["embeds"]})
    model, config = find_decoder(folder)
    assert config is not None
    assert (model.name, config.others) == ("model.onnx", ("embedding.onnx",))
    assert found_in(folder) == []
    unsaid = found_in(pipeline(tmp_path / "b", {}))
    assert unsaid == ["genai_config.json: the model has no input ids_of_the_other (further_ids)"]
    lost = pipeline(tmp_path / "c", {"inputs": ["ids_of_the_other"]})
    (lost / "embedding.onnx").unlink()
    assert found_in(lost) == ["genai_config.json: the file embedding.onnx is not there"]


def test_stages_that_hand_nothing_over_are_named(tmp_path: Path) -> None:
    stage = {"inputs": ["ids_of_the_other", "logits"]}
    assert found_in(pipeline(tmp_path / "a", stage)) == [
        "genai_config.json: the stage embedding.onnx takes logits, which model.onnx makes after it"
    ]
    folder = pipeline(tmp_path / "b", {"inputs": ["ids_of_the_other"]})
    path = folder / "genai_config.json"
    config = json.loads(path.read_text())
    config["model"]["decoder"]["pipeline"][1]["decoder"]["inputs"].remove("attention_mask")
    path.write_text(json.dumps(config))
    assert found_in(folder) == [
        "genai_config.json: its stage model.onnx lists no input attention_mask"
    ]


def test_two_elements_of_a_cache_may_be_one_byte(tmp_path: Path) -> None:
    folder = decoders.folder(tmp_path / "genai", head_size=2 * decoders.HEAD_SIZE)
    assert found_in(folder)
    model = onnx.load(folder / "model.onnx")
    for node in model.graph.node:
        if node.op_type == "GroupQueryAttention":
            node.attribute.append(onnx.helper.make_attribute("kv_cache_bit_width", 4))
    onnx.save(model, folder / "model.onnx")
    assert found_in(folder) == []


def test_a_size_may_be_written_as_16_0(tmp_path: Path) -> None:
    assert found_in(decoders.folder(tmp_path / "genai", head_size=16.0)) == []


@pytest.mark.parametrize(
    ("part", "changed", "message"),
    [
        ("model", {"vocab_size": 60}, "vocab_size is 60, the logits have 61"),
        ("model", {"eos_token_id": ["2"]}, 'eos_token_id is ["2"], which is not a token'),
        ("model", {"context_length": 300}, "context_length is 300, the table cos has 256 rows"),
        ("model", {"context_length": 0}, "it has no context_length"),
        ("model", {"vision": {"filename": "../v.onnx"}}, "the file ../v.onnx is not in the folder"),
        ("search", {"max_length": 257}, "max_length is 257, more than the context_length 256"),
    ],
)
def test_what_onnxruntime_genai_refuses_is_named(
    part: str, changed: dict[str, Any], message: str, tmp_path: Path
) -> None:
    folder = decoders.folder(tmp_path / "genai")
    path = folder / "genai_config.json"
    config = json.loads(path.read_text())
    config["model"]["context_length"] = 256
    config.setdefault(part, {}).update(changed)
    path.write_text(json.dumps(config))
    assert [one.partition(": ")[2] for one in found_in(folder)] == [message]


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("tokenizer.json", '{"model": {"vocab": {"a": 0, "b": 60}}}', None),
        ("tokenizer.json", '{"model": {"vocab": {"a": 0, "b": 61}}}', "the token 61 is beyond"),
        ("tokenizer.json", '{"added_tokens": [{"id": 99}]}', "the token 99 is beyond the logits"),
        ("tokenizer.json", "{", "cannot be read"),
        ("tokenizer.json", "[]", None),
        ("config.json", '{"num_hidden_layers": 2, "head_dim": 16, "vocab_size": 61}', None),
        ("config.json", '{"n_layer": 9}', "n_layer is 9, the model has 4 caches"),
        ("config.json", '{"n_layer": 9, "is_encoder_decoder": true}', None),
        ("config.json", '{"num_key_value_heads": 8}', "num_key_value_heads is 8, the cache"),
        ("config.json", '{"num_attention_heads": 8}', "num_attention_heads is 8, the model has 4"),
    ],
)
def test_other_files_of_the_folder_are_held_against_the_decoder(
    file: str, text: str, message: str | None, tmp_path: Path
) -> None:
    folder = decoders.folder(tmp_path / "genai")
    (folder / file).write_text(text)
    model, config = find_decoder(folder)
    with closing(Document.open(model)) as document:
        found = [one.message for one in folder_findings(document, folder, config)]
    assert len(found) == (message is not None)
    assert all(one.startswith(f"{file}: {message}") for one in found)


def test_tokens_vocabulary_and_files_are_looked_at(tmp_path: Path) -> None:
    folder = decoders.folder(tmp_path / "genai")
    path = folder / "genai_config.json"
    config = json.loads(path.read_text())
    config["model"] |= {"vocab_size": 99, "eos_token_id": 70, "vision": {"filename": "v.onnx"}}
    path.write_text(json.dumps(config))
    said = [one.partition(": ")[2] for one in found_in(folder)]
    assert said == [
        "vocab_size is 99, the logits have 61",
        "the special token 70 is beyond the logits, which have 61",
        "the file v.onnx is not there",
    ]
