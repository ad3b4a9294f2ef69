"""Decoders run with the lengths that follow from others; the transcript has all pairs."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from dld_tui.core.model.document import Document
from dld_tui.core.model.inputs.guess import Guess, guess_inputs, input_specs
from tests.support import decoders
from tests.support.runtime import needs_onnxruntime


def guess(path: Path, **given: tuple[int, ...]) -> Guess:
    with closing(Document.open(path)) as document:
        return guess_inputs(input_specs(document), document, given)


@needs_onnxruntime(31)
def test_a_head_is_as_wide_as_the_attention_asks(tmp_path: Path) -> None:
    import onnxruntime

    path = decoders.mixed(tmp_path / "m.onnx")
    first = guess(path)
    cache = (1, decoders.KV_HEADS, 0, decoders.HEAD_SIZE)
    assert first.shapes["past_key_values.2.key"] == cache
    assert first.shapes["past_key_values.1.value"] == (*cache[:2], decoders.WINDOW, cache[3])
    values = first.values(0)
    assert not values["past.0.conv"].any()
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    session.run(None, values)
