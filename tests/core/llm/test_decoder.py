"""Folders, inputs at any length, and figures of decoders."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from dld_tui.core.errors import DldError, InputError
from dld_tui.core.llm.feeds import Decoder, StepFeeds
from dld_tui.core.llm.folder import find_decoder, model_in, read_config
from dld_tui.core.model.document import Document
from dld_tui.core.model.inputs.guess import input_specs
from tests.support import decoders


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
    assert model_in(folder) == folder
    for name in ("encoder_model.onnx", "decoder_model_merged.onnx"):
        (folder / "onnx" / name).touch()
    assert find_decoder(folder) == (folder / "onnx" / "decoder_model_merged.onnx", None)
    assert model_in(folder) == folder / "onnx" / "decoder_model_merged.onnx"
    assert model_in(tmp_path / "none") == tmp_path / "none"
    (folder / "onnx" / "decoder_model_merged.onnx").unlink()
    (folder / "onnx" / "vision.onnx").touch()
    with pytest.raises(InputError, match="has 2 models"):
        find_decoder(folder)


@pytest.mark.parametrize(
    "text", ["", "[]", '{"model": {}}', '{"model": {"decoder": {"filename": "../m.onnx"}}}',
             '{"model": {"decoder": {"filename": 3}}}', '{"model": {"decoder": {"filename": ""}}}',
             f'{{"model": {{"decoder": {{"filename": "{"m" * 256}"}}}}}}', "[" * 100_000],
)  # fmt: skip
def test_a_configuration_of_another_form_is_an_error(text: str, tmp_path: Path) -> None:
    path = tmp_path / "genai_config.json"
    path.write_text(text)
    with pytest.raises(DldError):
        read_config(path)


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


def test_the_longest_context_is_the_least_that_is_told(tmp_path: Path) -> None:
    folder = decoders.folder(tmp_path / "genai")
    model, config = find_decoder(folder)
    assert config is not None
    assert find_decoder(model) == (model, config)
    (folder / "other.onnx").touch()
    assert find_decoder(folder / "other.onnx") == (folder / "other.onnx", None)
    with closing(Document.open(model)) as document:
        found = {
            told: Decoder(
                document,
                input_specs(document),
                replace(config, numbers={**config.numbers, "context_length": told}),
            ).context_length
            for told in (0, 9, 1000)
        }
    assert found == {0: 256, 9: 9, 1000: 256}
