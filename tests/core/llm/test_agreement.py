"""The configuration of a folder against its decoder."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dld_tui.core.document import Document
from dld_tui.core.llm.agreement import disagreements
from dld_tui.core.llm.folder import find_decoder
from tests.support import decoders


def found_in(folder: Path) -> list[str]:
    model, config = find_decoder(folder)
    assert config is not None
    with closing(Document.open(model)) as document:
        return [one.message for one in disagreements(document, config)]


def test_a_folder_that_agrees_has_no_finding(tmp_path: Path) -> None:
    assert found_in(decoders.folder(tmp_path / "genai")) == []


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"head_size": 8}, "head_size is 8, the cache past_key_values.0.key has 16"),
        ({"num_key_value_heads": 4}, "num_key_value_heads is 4"),
        ({"num_attention_heads": 8}, "num_attention_heads is 8, the model has 4"),
        ({"num_hidden_layers": 3}, "num_hidden_layers is 3, the model has 4 caches"),
        ({"inputs": {"input_ids": "ids"}}, "the model has no input ids"),
        (
            {"outputs": {"present_key_names": "present.%d.k"}},
            "the model has no output present.0.k and 1 more (present_key_names)",
        ),
    ],
)
def test_what_does_not_hold_is_named(changed: dict[str, Any], message: str, tmp_path: Path) -> None:
    found = found_in(decoders.folder(tmp_path / "genai", **changed))
    assert any(message in one for one in found), found


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
