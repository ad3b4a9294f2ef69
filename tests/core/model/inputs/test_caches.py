"""Decoders run with the lengths that follow from others; the transcript has all pairs."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from dld_tui.core.model.document import Document
from dld_tui.core.model.inputs.guess import Guess, guess_inputs, input_specs
from tests.support import decoders
from tests.support.runtime import needs_onnxruntime


def guess(path: Path, **given: tuple[int, ...]) -> Guess:
    with closing(Document.open(path)) as document:
        return guess_inputs(input_specs(document), document, given)


@pytest.mark.parametrize("dims", [(None,) * 4, ("b", "s", "p", "t")])
def test_one_length_changes_all_others(dims: tuple[str | None, ...], tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    path = decoders.grouped(tmp_path / "m.onnx", past=("k_{}", "v_{}"), dims=dims)
    first = guess(path)
    assert first.options == ["input_ids:1x128", "k_0:1x2x0x16"]
    assert {one.name for one in first.bound_to(first.inputs[0])} == {
        "attention_mask", "k_0", "v_0", "k_1", "v_1"
    }  # fmt: skip
    given = guess(path, k_0=(3, 2, 5, 16), input_ids=(3, 1))
    shapes = {"input_ids": (3, 1), "attention_mask": (3, 6)}
    assert given.shapes == shapes | dict.fromkeys(("k_0", "v_0", "k_1", "v_1"), (3, 2, 5, 16))
    values = given.values(0)
    assert (values["attention_mask"] == 1).all()
    assert values["input_ids"].max() < 61
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    assert [out.shape[2] for out in session.run(None, values)[1:]] == [6, 6, 6, 6]


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
