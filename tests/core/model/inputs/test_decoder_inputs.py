"""Inputs of decoders, encoders of images and voices as exporters name them: what they hold."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from dld_tui.core.model.document import Document
from dld_tui.core.model.inputs.guess import Guess, guess_inputs, input_specs
from tests.support import models
from tests.support.runtime import needs_onnxruntime

CACHE = "float[b, 4, past, 8] past_key, float[b, 4, past, 8] past_value"
PRESENT = "float[b, 4, total, 8] present_key, float[b, 4, total, 8] present_value"


def attention(inputs: str, *nodes: str, cache: str = CACHE, rows: str = "b, s") -> str:
    """Return a layer with a cache; the nodes make `mask` of the other inputs, if any."""
    added = "scores" if not nodes else "masked"
    return f"""<ir_version: 10, opset_import: ["" : 20]>
        g (int64[{rows}] input_ids, {inputs} {cache}) => (float[b, s, 9] logits, {PRESENT})
        <int64[4] apart = {{0, -1, 4, 8}}, int64[3] joined = {{0, -1, 32}},
         float[9, 32] table, float[32, 9] head> {{
        x = Gather (table, input_ids)
        y = Reshape (x, apart)
        z = Transpose <perm = [0, 2, 1, 3]> (y)
        present_key = Concat <axis = 2> (past_key, z)
        present_value = Concat <axis = 2> (past_value, z)
        turned = Transpose <perm = [0, 1, 3, 2]> (present_key)
        scores = MatMul (z, turned)
        {" ".join(nodes)}
        p = Softmax ({added})
        o = MatMul (p, present_value)
        back = Transpose <perm = [0, 2, 1, 3]> (o)
        flat = Reshape (back, joined)
        logits = MatMul (flat, head) }}"""


def guess(path: Path) -> Guess:
    with closing(Document.open(path)) as document:
        return guess_inputs(input_specs(document), document, {})


def run(path: Path, first: Guess) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    session.run(None, first.values(0))


def test_a_mask_that_is_added_hides_later_tokens_alone(tmp_path: Path) -> None:
    mask = "float[b, 1, s, t] attention_mask,"
    text = attention(mask, "masked = Add (scores, attention_mask)")
    path = models.write_weighted(tmp_path, text)
    first = guess(path)
    assert first.shapes["attention_mask"] == (1, 1, 128, 128)
    mask_values = first.values(0)["attention_mask"][0, 0]
    assert np.array_equal(mask_values == 0, np.tri(128, dtype=bool))
    assert mask_values.max() == 0
    assert mask_values.min() < -1000
    run(path, first)


def test_a_mask_of_one_token_after_the_other_has_a_column_more_than_the_cache(
    tmp_path: Path,
) -> None:
    mask = "float[b, 1, 1, kv_length] attention_mask,"
    text = attention(mask, "masked = Add (scores, attention_mask)", rows="b, 1")
    path = models.write_weighted(tmp_path, text)
    first = guess(path)
    past = first.shapes["past_key"][2]
    assert past > 1
    assert first.shapes["attention_mask"] == (1, 1, 1, past + 1)
    run(path, first)


def test_a_mask_as_long_as_the_keys_follows_the_lengths(tmp_path: Path) -> None:
    text = attention(
        "bool[b, 1, s, kv_length] attention_mask,",
        "low = Constant <value = float {-9.0}> ()",
        "masked = Where (attention_mask, scores, low)",
    )
    path = models.write_weighted(tmp_path, text)
    with closing(Document.open(path)) as document:
        given = {"input_ids": (2, 3), "past_key": (2, 4, 5, 8)}
        made = guess_inputs(input_specs(document), document, given)
    assert made.shapes["attention_mask"] == (2, 1, 3, 8)
    shown = made.values(0)["attention_mask"]
    # Each of three new tokens sees the five that are cached, those before it, and itself.
    assert all(np.array_equal(row, np.tri(3, 8, 5, dtype=bool)) for row in shown[:, 0])
    run(path, made)


FILLED = {
    "a mask of ids": ("int64[b, 20] attention_mask", (2, 20), [[1] * 8 + [0] * 12] * 2),
    "a mask by the length of the cache": (
        "int64[b, max_length] attention_mask", (2, 20), [[1] * 8 + [0] * 12] * 2,
    ),
    "a mask of booleans for each query": (
        "bool[b, 1, s, 20] attention_mask", (2, 1, 3, 20), [[np.tri(3, 20, 5)]] * 2,
    ),
    "a mask of what to leave out": (
        "bool[b, 20] key_padding_mask", (2, 20), [[0] * 8 + [1] * 12] * 2,
    ),
    "a mask of past and present": ("int64[b, total_length] attention_mask", (2, 8), [[1] * 8] * 2),
}  # fmt: skip


@needs_onnxruntime(31)
@pytest.mark.parametrize("kind", FILLED)
@pytest.mark.parametrize("length", ["20", "max_length"])
def test_a_mask_shows_what_is_in_a_cache_of_a_fixed_length(
    kind: str, length: str, tmp_path: Path
) -> None:
    mask, shape, numbers = FILLED[kind]
    text = f"""<ir_version: 11, opset_import: ["" : 24]>
        g (int64[b, s] input_ids, {mask}, int64[b] cache_position,
           float[b, 4, {length}, 8] past_key) =>
          (float[b, s, 9] logits, float[b, 4, {length}, 8] present_key, m)
        <int64[4] apart = {{0, -1, 4, 8}}, int64[3] joined = {{0, -1, 32}}, int64[1] rows = {{2}},
         float[9, 32] table, float[32, 9] head> {{
        x = Gather (table, input_ids) y = Reshape (x, apart)
        turned = Transpose <perm = [0, 2, 1, 3]> (y)
        present_key = TensorScatter <axis = 2> (past_key, turned, cache_position)
        mean = ReduceMean <keepdims = 1> (present_key, rows) z = Add (turned, mean)
        back = Transpose <perm = [0, 2, 1, 3]> (z) flat = Reshape (back, joined)
        logits = MatMul (flat, head) m = Identity ({mask.split()[-1]}) }}"""
    path = models.write_weighted(tmp_path, text)
    with closing(Document.open(path)) as document:
        given = {"input_ids": (2, 3), "past_key": (2, 4, 20, 8)}
        guessed = guess_inputs(input_specs(document), document, given, past=5)
        empty = guess_inputs(input_specs(document), document, given)
    values = guessed.values(0)
    assert guessed.shapes[mask.split()[-1]] == shape
    assert np.array_equal(values[mask.split()[-1]], np.asarray(numbers))
    assert values["cache_position"].tolist() == [5, 5]
    run(path, guessed)
    assert empty.values(0)["cache_position"].tolist() == [0, 0]
    shown = (
        np.asarray(numbers)[..., 5:] if kind != "a mask of past and present" else np.ones((2, 3))
    )
    own = empty.values(0)[mask.split()[-1]]
    assert np.array_equal(own[..., : shown.shape[-1]], shown)


def test_letters_of_lengths_are_those_of_tokens(tmp_path: Path) -> None:
    first = guess(models.write_weighted(tmp_path, attention("", rows="B, T")))
    assert first.shapes["input_ids"] == (1, 128)
    assert first.shapes["past_key"] == (1, 4, 0, 8)


def test_tables_in_branches_bound_the_ids(tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["" : 20]>
        g (int64[b, s] input_ids, bool[1] use_cache_branch) => (float[b, s, 2] y)
        <float[50, 2] table, float[40, 2] other> {
        y = If (use_cache_branch) <
            then_branch = a () => (float[b, s, 2] one) { one = Gather (table, input_ids) },
            else_branch = c () => (float[b, s, 2] two) { two = Gather (other, input_ids) }> }"""
    ids = guess(models.write_weighted(tmp_path, text)).inputs[0]
    assert (ids.fill.low, ids.fill.high) == (0, 39)


def test_what_a_branch_refuses_is_no_refusal(tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["" : 20]>
        g (float[n, 4] x, bool c) => (float[n, 4] y)
        <float[3, 4] small> {
        y = If (c) <
            then_branch = a () => (float[n, 4] one) { one = Add (x, small) },
            else_branch = d () => (float[n, 4] two) { two = Relu (x) }> }"""
    assert guess(models.write_weighted(tmp_path, text)).shapes["x"] == (1, 4)


@pytest.mark.parametrize(
    ("inputs", "body", "shapes", "values"),
    [
        (  # Qwen-VL: the grid of an image has as many patches as there are
            "float[num_patches, 6] pixel_values, int64[num_images, 3] image_grid_thw",
            "y = Relu (pixel_values) z = Neg (image_grid_thw)",
            {"pixel_values": (256, 6), "image_grid_thw": (1, 3)},
            {"image_grid_thw": [[1, 16, 16]]},
        ),
        (  # a voice
            "float[1, n] style, float[1] speed",
            "y = Div (style, speed) z = Relu (speed)",
            {},
            {"speed": [1.0]},
        ),
        (  # Flux: places of patches and of words, as many as there are of both
            "float[b, p, 4] hidden_states, float[s1, 3] img_ids",
            "y = Relu (img_ids) z = Neg (hidden_states)",
            {"img_ids": (128, 3)},
            {},
        ),
        (  # beams
            "int32[batch, beam, max_seq] cache_indirection, int32[1] beam_width",
            "y = Relu (cache_indirection) z = Relu (beam_width)",
            {"cache_indirection": (1, 1, 128)},
            {"beam_width": [1]},
        ),
        (  # an adapter
            "float[8, lora_r] lora_A, float[lora_r, 8] lora_B",
            "y = MatMul (lora_A, lora_B) z = Relu (y)",
            {"lora_A": (8, 16), "lora_B": (16, 8)},
            {},
        ),
    ],
)
def test_names_say_what_inputs_hold(
    inputs: str,
    body: str,
    shapes: dict[str, tuple[int, ...]],
    values: dict[str, list[object]],
    tmp_path: Path,
) -> None:
    text = f"""<ir_version: 10, opset_import: ["" : 20]>
        g ({inputs}) => (float[p, q] y, float[r] z) {{ {body} }}"""
    first = guess(models.write_weighted(tmp_path, text))
    assert first.shapes | shapes == first.shapes
    made = first.values(0)
    assert {name: made[name].tolist() for name in values} == values


@pytest.mark.parametrize(("factor", "most"), [(1000.0, 1.0), (0.5, 999.0)])
def test_a_step_that_is_multiplied_is_a_part_of_all(
    factor: float, most: float, tmp_path: Path
) -> None:
    text = f"""<ir_version: 10, opset_import: ["" : 20]>
        g (float[b] timestep) => (float[b] y) {{
        factor = Constant <value = float {{{factor}}}> ()
        y = Mul (timestep, factor) }}"""
    assert guess(models.write_weighted(tmp_path, text)).inputs[0].fill.high == most


def test_a_cache_of_a_fixed_size_limits_what_is_written(tmp_path: Path) -> None:
    text = """<ir_version: 11, opset_import: ["" : 24]>
        g (int64[b, s] input_ids, int64[b] cache_position, int64[b] nonpad_kv_seqlen,
           float[b, 4, 32, 8] past_key) => (float[b, 4, 32, 8] present_key, int64[b] n)
        <float[9, 32] table, int64[4] apart = {0, -1, 4, 8}> {
        x = Gather (table, input_ids)
        y = Reshape (x, apart)
        z = Transpose <perm = [0, 2, 1, 3]> (y)
        present_key = TensorScatter <axis = 2> (past_key, z, cache_position)
        n = Neg (nonpad_kv_seqlen) }"""
    first = guess(models.write_weighted(tmp_path, text))
    assert first.shapes["input_ids"] == (1, 32)
    made = first.values(0)
    assert np.array_equal(made["nonpad_kv_seqlen"], [32])
    assert np.array_equal(made["cache_position"], [0])
