"""Folders, inputs at any length, and figures of decoders."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dld_tui.core.document import Document
from dld_tui.core.errors import DldError, InputError
from dld_tui.core.inputs.guess import input_specs
from dld_tui.core.llm.feeds import Decoder, StepFeeds
from dld_tui.core.llm.figures import GenerationFigures, generation_story, llm_json
from dld_tui.core.llm.folder import find_decoder, read_config
from tests.support import decoders


def test_special_tokens_are_not_in_a_prompt(tmp_path: Path) -> None:
    folder = decoders.folder(tmp_path / "genai")
    model, config = find_decoder(folder)
    assert config is not None
    with closing(Document.open(model)) as document:
        feeds = StepFeeds(Decoder(document, input_specs(document), config), 4, 200)
    ids = feeds.prompt()["input_ids"]
    assert config.special_tokens == {0, 1, 2}
    assert ids.min() == 3
    assert ids.max() == decoders.VOCABULARY - 1
    assert feeds.step(7)["attention_mask"].shape == (4, 208)


def test_inputs_grow_with_the_past(tmp_path: Path) -> None:
    path = decoders.grouped(tmp_path / "m.onnx")
    with closing(Document.open(path)) as document:
        feeds = StepFeeds(Decoder(document, input_specs(document)), 2, 5)
    assert set(feeds.prompt()) == {"input_ids", "attention_mask"}
    for number in range(4):
        values = feeds.step(number)
        feeds.put_tokens(values, np.array([7, 8]))
        assert values["attention_mask"].shape == (2, 5 + number + 1)
        assert values["input_ids"].tolist() == [[7], [8]]


def test_positions_go_on_after_the_prompt(tmp_path: Path) -> None:
    path = decoders.positioned(tmp_path / "m.onnx")
    with closing(Document.open(path)) as document:
        feeds = StepFeeds(Decoder(document, input_specs(document)), 1, 5)
    assert feeds.prompt()["position_ids"].tolist() == [[0, 1, 2, 3, 4]]
    assert [feeds.step(at)["position_ids"].tolist() for at in (0, 3)] == [[[5]], [[8]]]


def test_the_decoder_of_a_folder_is_found(tmp_path: Path) -> None:
    folder = tmp_path / "optimum"
    (folder / "onnx").mkdir(parents=True)
    with pytest.raises(InputError, match="has no model"):
        find_decoder(folder)
    for name in ("encoder_model.onnx", "decoder_model_merged.onnx"):
        (folder / "onnx" / name).touch()
    assert find_decoder(folder) == (folder / "onnx" / "decoder_model_merged.onnx", None)
    (folder / "onnx" / "decoder_model_merged.onnx").unlink()
    (folder / "onnx" / "vision.onnx").touch()
    with pytest.raises(InputError, match="has 2 models"):
        find_decoder(folder)


@pytest.mark.parametrize(
    "text", ["", "[]", '{"model": {}}', '{"model": {"decoder": {"filename": "../m.onnx"}}}',
             '{"model": {"decoder": {"filename": 3}}}', "[" * 100_000],
)  # fmt: skip
def test_a_configuration_of_another_form_is_an_error(text: str, tmp_path: Path) -> None:
    path = tmp_path / "genai_config.json"
    path.write_text(text)
    with pytest.raises(DldError):
        read_config(path)


def test_figures_by_phase() -> None:
    row = GenerationFigures(2, 8, 3, 10.0, 12.0, 6.0, (1.0, 2.0, 3.0), 64)
    assert llm_json([row, replace(row, batch=1, prompt=16)]) == {
        "prefill": [
            {"prompt": 8, "batch": 2, "ms": 10.0, "tokens_s": 1600.0},
            {"prompt": 16, "batch": 1, "ms": 10.0, "tokens_s": 1600.0},
        ],
        "decode": [
            {"context": 10, "batch": 2, "ms_token": 2.0, "tokens_s": 1000.0},
            {"context": 18, "batch": 1, "ms_token": 2.0, "tokens_s": 500.0},
        ],
        "ttft_ms": 12.0,
        "tokens_s": 1000.0,
        "new_shape_ms": None,
        "kv_bytes": 64,
    }
    assert llm_json([]) is None


def test_the_story_compares_prompts_and_batches() -> None:
    def figures(batch: int, prompt: int, ms: float) -> GenerationFigures:
        return GenerationFigures(batch, prompt, 2, 10.0, 12.0, 2 * ms, (ms, ms), 64)

    uneven = GenerationFigures(1, 8, 4, 10.0, 12.0, 16.0, (1.0, 1.0, 1.0, 13.0), 64)
    assert [*generation_story([uneven])] == ["Half of the tokens take at most 1.00 ms, some 13.0."]
    said = [*generation_story([figures(1, 8, 1.0), figures(1, 64, 1.5), figures(4, 8, 2.0)])]
    assert said == [
        "At a prompt of 64 a token takes 1.50× as long.",
        "A batch of 4 makes 2.0× as many tokens a second.",
    ]
