"""Guesses for small models that demand something; each is run by ONNX Runtime as it is guessed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from dld_tui.core.errors import DldError, UsageError
from dld_tui.core.model.document import Document
from dld_tui.core.model.inputs.guess import Guess, candidate_guesses, guess_inputs, input_specs
from dld_tui.core.model.inputs.shapes import InputSpec, parse_shapes
from tests.support import models
from tests.support.recorded import Recorded

ort = pytest.importorskip("onnxruntime")

HEAD = '<ir_version: 10, opset_import: ["" : 20, "local" : 1]>\n'


def w(name: str, *dims: int) -> str:
    """Return the nodes that make a weight of ones."""
    listed = ", ".join(map(str, dims))
    return (
        f"{name}_s = Constant <value_ints = [{listed}]> ()"
        f" {name} = ConstantOfShape <value = float[1] {{1}}> ({name}_s) "
    )


DETECTOR = f"""g (float[N, 3, H, W] images) => (float[n, c, h, v] output0) {{
    {w("k1", 4, 3, 3, 3)} {w("k2", 4, 4, 3, 3)}
    a = Conv <strides = [8, 8], pads = [1, 1, 1, 1]> (images, k1)
    b = Conv <strides = [2, 2], pads = [1, 1, 1, 1]> (a, k2)
    c = Conv <strides = [2, 2], pads = [1, 1, 1, 1]> (b, k2)
    s = Constant <value_floats = [1.0, 1.0, 2.0, 2.0]> ()
    d = Resize <mode = "nearest"> (c, , s)
    output0 = Concat <axis = 1> (d, b) }}"""
NAMELESS = (
    DETECTOR.replace("N, 3, H, W", "batch, 3, ?, ?")
    .replace("images", "x")
    .replace("output0", "features")
)
LENET = f"""g (float[N, 1, H, W] x) => (float[n, m] y) {{
    {w("k", 6, 1, 5, 5)} {w("m", 864, 10)}
    a = Conv (x, k) b = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (a)
    c = Flatten (b) y = Gemm (c, m) }}"""
SEEN = f"""g (float[N, 3, H, W] pixel_values) => (float[n, t, d] y) {{
    {w("k", 8, 3, 16, 16)} {w("p", 1, 144, 8)}
    a = Conv <strides = [16, 16]> (pixel_values, k)
    s = Constant <value_ints = [0, 8, -1]> ()
    b = Reshape (a, s) c = Transpose <perm = [0, 2, 1]> (b) y = Add (c, p) }}"""
ENCODER = f"""g (int64[batch, sequence] input_ids, int64[batch, sequence] attention_mask,
    int64[batch, sequence] token_type_ids) => (float[a, b, c] y) {{
    {w("words", 1000, 8)} {w("types", 2, 8)} {w("places", 1, 40, 8)}
    e = Gather (words, input_ids) t = Gather (types, token_type_ids) f = Add (e, t)
    zero = Constant <value_ints = [0]> () one = Constant <value_ints = [1]> ()
    n = Shape <start = 1, end = 2> (input_ids)
    p = Slice (places, zero, n, one) g1 = Add (f, p)
    m = Cast <to = 1> (attention_mask) u = Unsqueeze (m, minus) y = Mul (g1, u) }}""".replace(
    "zero = Constant", "minus = Constant <value_ints = [-1]> () zero = Constant"
)
RANGED = f"""g (int64[b, s] tokens) => (float[x, z, v] y) {{
    {w("words", 50, 8)} {w("places", 77, 8)}
    zero = Constant <value_int = 0> () one = Constant <value_int = 1> ()
    at = Constant <value_int = 1> () sh = Shape (tokens) n = Gather (sh, at)
    r = Range (zero, n, one) p = Gather (places, r) e = Gather (words, tokens) y = Add (e, p) }}"""
WHISPER = f"""g (float[batch_size, 80, feature_size] input_features) => (float[a, b, c] y) {{
    {w("k", 8, 80, 3)} {w("p", 1500, 8)}
    a = Conv <strides = [2], pads = [1, 1]> (input_features, k)
    b = Transpose <perm = [0, 2, 1]> (a) y = Add (b, p) }}"""
VAD = f"""g (float[batch, sequence] input, float[2, batch, 64] state, int64 sr)
    => (float[a, b] output, float[2, batch, 64] stateN) {{
    wide = Constant <value_int = 16000> () is_wide = Equal (sr, wide)
    y = If (is_wide) <
        then_branch = yes () => (float[a, b] t) {{
            {w("m", 512, 4)} t = MatMul (input, m) }},
        else_branch = no () => (float[a, b] e) {{
            {w("m2", 256, 4)} e = MatMul (input, m2) }}
    > output = Relu (y) stateN = Identity (state) }}"""
DECODER = f"""g (int64[batch, seq] input_ids, int64[batch, total] attention_mask,
    float[batch, 2, past, 4] past_key_values_0_key) => (float[a, b, c, d] y,
    float[batch, 2, total, 4] present_0_key) {{
    {w("words", 300, 8)} e = Gather (words, input_ids)
    s = Constant <value_ints = [0, 0, 2, 4]> () r = Reshape (e, s)
    k = Transpose <perm = [0, 2, 1, 3]> (r)
    present_0_key = Concat <axis = 2> (past_key_values_0_key, k)
    t = Transpose <perm = [0, 1, 3, 2]> (present_0_key) q = MatMul (k, t)
    m = Cast <to = 1> (attention_mask) ax = Constant <value_ints = [1, 2]> ()
    u = Unsqueeze (m, ax) y = Add (q, u) }}"""
SUMS = DECODER.replace("[batch, total]", "[batch, past_plus_seq]")
UNET = f"""g (float[batch, 4, height, width] sample, int64[steps] timestep,
    float[batch, sequence, 8] encoder_hidden_states) => (float[a, b, c, d] out_sample) {{
    {w("k", 4, 4, 3, 3)} {w("v", 8, 4)}
    a = Conv <strides = [2, 2], pads = [1, 1, 1, 1]> (sample, k)
    s = Constant <value_floats = [1.0, 1.0, 2.0, 2.0]> ()
    b = Resize <mode = "nearest"> (a, , s) c = Concat <axis = 1> (b, sample)
    t = Cast <to = 1> (timestep) h = MatMul (encoder_hidden_states, v)
    p = ReduceMean <keepdims = 0> (h) z = Add (c, p) q = ReduceMean <keepdims = 0> (t)
    out_sample = Add (z, q) }}"""
PAIR = """g (float[N, 3, ?, ?] left, float[M, 3, ?, ?] right) => (float[a, b, c, d] y) {
    y = Concat <axis = 1> (left, right) }"""
ODD_PAIR = """g (float[N, L] left, float[N, T] right) => (float[a, b] y) {
    t = Constant <value_ints = [2, 1]> () two = Constant <value_ints = [1, 2]> ()
    wide = Tile (left, two) y = Sub (wide, right) }"""
CHANNELS = f"""g (float[N, C, H, W] x) => (float[a, b, c, d] y) {{
    {w("k", 4, 5, 3, 3)} y = Conv (x, k) }}"""
REARRANGED = """g (float[N, 2, H, 33] x) => (float[a, b, c, d] y) {
    p = Constant <value_ints = [0, 0, 0, 0, 0, 0, 1, 1]> () a = Pad (x, p)
    c = Pad <mode = "reflect"> (a, p2) y = SpaceToDepth <blocksize = 2> (c) }""".replace(
    "p = Constant", "p2 = Constant <value_ints = [0, 0, 1, 0, 0, 0, 0, 0]> () p = Constant"
)
RECURRENT = f"""g (float[T, N, F] x, float[1, N, 6] h0, int32[N] x_lengths) => (float[a, b, c, d] y)
    {{ {w("k", 1, 18, 7)} {w("r", 1, 18, 6)} y = GRU <hidden_size = 6> (x, k, r, , x_lengths, h0)
    }}"""
NO_RANK = "g (float x, float z) => (float y) { y = MatMul (x, z) }"
BEST = """g (float[N, K] scores) => (float[a, b] y, int64[a, b] i) {
    k = Constant <value_ints = [300]> () y, i = TopK (scores, k) }"""
REGIONS = """g (float[1, 3, H, W] x, float[R, 4] rois, int64[R] batch_indices)
    => (float[a, b, c, d] y) {
    y = RoiAlign <output_height = 2, output_width = 2> (x, rois, batch_indices) }"""
SHAPED = "g (float[2, 6] x, int64[2] size) => (float[a, b] y) { y = Reshape (x, size) }"
SHIFTED = f"""g (int64[b, s] input_ids, int64[b, s] position_ids) => (float[x, z, v] y) {{
    {w("words", 50, 8)} {w("places", 30, 8)}
    two = Constant <value_int = 2> () o = Add (position_ids, two) p = Gather (places, o)
    e = Gather (words, input_ids) y = Add (e, p) }}"""
STRETCHED = f"""g (float[N, L] x) => (float[a, b] y, float[c] z) {{
    {w("table", 1, 40)} y = Add (x, table) ax = Constant <value_ints = [1]> () z = Squeeze (x, ax)
    }}"""
LINE = f"""g (float[N, 3, 48, W] x) => (float[a, b, c, d] y) {{
    {w("k", 4, 3, 48, 3)} y = Conv (x, k) }}"""
CALLED = """g (float[N, K] x) => (float[a, b] y) { y = local.fit <n = 24> (x) }
<domain: "local", opset_import: ["" : 20]>
fit <n> (v) => (z) { one = Constant <value_ints = [1]> () s = Constant <value_int: int = @n> ()
    zero = Constant <value_ints = [0]> () t = Unsqueeze (s, zero) u = Concat <axis = 0> (one, t)
    z = Reshape (v, u) }"""
STATES = f"""g (float[N, 1, T] waveform) => (float[a, b, c] y) {{
    {w("k", 2, 1, 400)} y = Conv <strides = [160]> (waveform, k) }}"""

SPEECH = f"""g (float[batch, sequence_length] input_values) => (float[a, b, c] y) {{
    {w("k", 2, 1, 10)} ax = Constant <value_ints = [1]> ()
    u = Unsqueeze (input_values, ax) y = Conv <strides = [5]> (u, k) }}"""
CLIP = f"""g (float[B, 3, T, H, W] x) => (float[a, b, c, d, e] y) {{
    {w("k", 2, 3, 3, 3, 3)} y = Conv (x, k) }}"""
VOICES = f"""g (int64[batch, phonemes] input, int64[batch] input_lengths, int64[batch] sid)
    => (float[a, b, c] y) {{ {w("words", 130, 8)} {w("speakers", 4, 8)}
    e = Gather (words, input) s = Gather (speakers, sid) ax = Constant <value_ints = [1]> ()
    u = Unsqueeze (s, ax) z = Add (e, u) l = Cast <to = 1> (input_lengths)
    k = ReduceMax (l) y = Mul (z, k) }}"""
BOXES = """g (float[batch, num_boxes, 4] boxes, float[batch, num_classes, num_boxes] scores,
    int64[1] max_output, float[1] threshold) => (int64[n, m] y) {
    y = NonMaxSuppression (boxes, scores, max_output, threshold) }"""
CROSSED = f"""g (int64[b, decoder_sequence_length] decoder_input_ids,
    float[b, encoder_sequence_length, 8] encoder_hidden_states,
    float[b, 2, past_decoder_sequence_length, 4] past_key_values_0_decoder_key,
    float[b, 2, encoder_sequence_length_out, 4] past_key_values_0_encoder_key)
    => (float[q, r, s, t] y, float[q, r, s, t] z) {{
    {w("words", 100, 8)} e = Gather (words, decoder_input_ids)
    s = Constant <value_ints = [0, 0, 2, 4]> () r = Reshape (e, s)
    k = Transpose <perm = [0, 2, 1, 3]> (r)
    y = Concat <axis = 2> (past_key_values_0_decoder_key, k)
    rs = Reshape (encoder_hidden_states, s) kk = Transpose <perm = [0, 2, 1, 3]> (rs)
    z = Add (kk, past_key_values_0_encoder_key) }}"""

# A single frame could be stretched over the table of positions; nobody means that.
BARE_WHISPER = f"""g (float[batch_size, feature_size, encoder_sequence_length] input_features)
    => (float[a, b, c] y) {{
    {w("k", 8, 80, 3)} {w("p", 1500, 8)}
    a = Conv <strides = [2], pads = [1, 1]> (input_features, k)
    b = Transpose <perm = [0, 2, 1]> (a) y = Add (b, p) }}"""
RENAMED_WHISPER = BARE_WHISPER.replace("input_features", "spectrum").replace(
    "feature_size, encoder_sequence_length", "s1, s2"
)
OPERANDS = f"""g (float[?, ?] a, float[?, ?] b) => (float[m, n] y) {{
    {w("bias", 96)} c = MatMul (a, b) y = Add (c, bias) }}"""
DIVISOR = "g (int64[N, 4] a, int64[N, 4] b) => (int64[x, y] z) { z = Div (a, b) }"
SEQUENCE_FIRST = f"""g (float[S, batch, 10] X, int32[batch] sequence_lens,
    float[1, batch, 6] initial_h) => (float[a, b, c, d] y) {{ {w("k", 1, 24, 10)} {w("r", 1, 24, 6)}
    y = LSTM <hidden_size = 6> (X, k, r, , sequence_lens, initial_h) }}"""
FREE_WHISPER = """g (float[batch_size, 80, encoder_sequence_length] input_features)
    => (float[a, b, c] y) { y = Relu (input_features) }"""
POINTS = "g (float[N, features, 16] x) => (float[a, b, c] y) { y = Relu (x) }"
FIXED_SIGNAL = """g (float[B, 1, T] x) => (float[a, b, c] y) {
    s = Constant <value_ints = [1, 50, 320]> () y = Reshape (x, s) }"""
FIXED_BATCH = """g (float[N, 3, 8, 8] x) => (float[a, b] y) {
    s = Constant <value_ints = [8, 192]> () y = Reshape (x, s) }"""
CASES: list[tuple[str, str, dict[str, tuple[int, ...]]]] = [
    ("detector", DETECTOR, {"images": (1, 3, 640, 640)}),
    ("nameless", NAMELESS, {"x": (1, 3, 224, 224)}),
    ("lenet", LENET, {"x": (1, 1, 28, 28)}),
    ("positions of patches", SEEN, {"pixel_values": (1, 3, 192, 192)}),
    ("encoder", ENCODER, dict.fromkeys(("input_ids", "attention_mask"), (1, 32))),
    ("table of positions", RANGED, {"tokens": (1, 64)}),
    ("whisper", WHISPER, {"input_features": (1, 80, 3000)}),
    ("whisper without sizes", BARE_WHISPER, {"input_features": (1, 80, 3000)}),
    ("whisper with other names", RENAMED_WHISPER, {"spectrum": (1, 80, 3000)}),
    ("two operands", OPERANDS, {"a": (96, 96), "b": (96, 96)}),
    ("voice", VAD, {"input": (1, 512), "state": (2, 1, 64), "sr": ()}),
    ("decoder", DECODER, {"attention_mask": (1, 128), "past_key_values_0_key": (1, 2, 0, 4)}),
    ("sums", SUMS, {"attention_mask": (1, 128), "input_ids": (1, 128)}),
    ("unet", UNET, {"sample": (1, 4, 64, 64), "timestep": (1,)}),
    ("pair", PAIR, {"left": (1, 3, 224, 224), "right": (1, 3, 224, 224)}),
    ("channels", CHANNELS, {"x": (1, 5, 224, 224)}),
    ("rearranged", REARRANGED, {}),
    ("recurrent", RECURRENT, {}),
    ("no rank", NO_RANK, {"x": (16, 16), "z": (16, 16)}),
    ("best", BEST, {"scores": (1, 320)}),
    ("regions", REGIONS, {}),
    ("shaped", SHAPED, {"size": (2,)}),
    ("shifted", SHIFTED, {"position_ids": (1, 16)}),
    ("free whisper", FREE_WHISPER, {"input_features": (1, 80, 3000)}),
    ("points", POINTS, {"x": (1, 80, 16)}),
    ("one element stretched where nothing else does", STRETCHED, {"x": (1, 1)}),
    ("line", LINE, {"x": (1, 3, 48, 320)}),
    ("odd pair", ODD_PAIR, {"left": (1, 50), "right": (1, 100)}),
    ("called", CALLED, {"x": (1, 24)}),
    ("speech", SPEECH, {"input_values": (1, 16000)}),
    ("clip", CLIP, {"x": (1, 3, 16, 224, 224)}),
    ("voices", VOICES, {"input": (1, 128), "input_lengths": (1,)}),
    ("boxes", BOXES, {"boxes": (1, 8, 4), "scores": (1, 8, 8)}),
    ("crossed", CROSSED, {"decoder_input_ids": (1, 16), "encoder_hidden_states": (1, 128, 8)}),
    ("divisor", DIVISOR, {"a": (1, 4)}),
    ("rest", DIVISOR.replace("Div", "Mod"), {"b": (1, 4)}),
    ("sequence first", SEQUENCE_FIRST, {"X": (128, 1, 10), "sequence_lens": (1,)}),
    ("fixed signal", FIXED_SIGNAL, {"x": (1, 1, 16000)}),
    ("batch in Reshape", FIXED_BATCH, {"x": (8, 3, 8, 8)}),
    ("waveform", STATES, {"waveform": (1, 1, 16000)}),
]


def opened(text: str, folder: Path) -> Document:
    return Document.open(models.write(folder, HEAD + text))


def written(text: str, folder: Path) -> Path:
    """Write a model, with what ONNX text cannot say."""
    path = models.write(folder, HEAD + text)
    model = onnx.load(path)
    for info in (*model.graph.input, *model.graph.output):
        if text is NO_RANK:
            info.type.tensor_type.ClearField("shape")
        for dim in info.type.tensor_type.shape.dim:
            if "_plus_" in dim.dim_param:
                dim.dim_param = dim.dim_param.replace("_plus_", " + ")
    path.write_bytes(model.SerializeToString())
    return path


def session(path: Path) -> Any:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def first_guess(path: Path, **more: Any) -> Guess:
    with closing(Document.open(path)) as document:
        return guess_inputs(input_specs(document), document, **more)


@pytest.mark.parametrize(
    ("text", "shapes"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
def test_the_first_guess_runs(
    text: str, shapes: dict[str, tuple[int, ...]], tmp_path: Path
) -> None:
    path = written(text, tmp_path)
    guess = first_guess(path)
    assert {name: guess.shapes[name] for name in shapes} == shapes
    outputs = session(path).run(None, guess.values(0))
    assert all(np.isfinite(one).all() for one in outputs if one.dtype.kind == "f")
    for one in guess.inputs:
        assert len(one.reasons) == len(one.shape)
        assert one.fill.reason


def told(guess: Guess) -> Iterator[str]:
    """Yield all that a guess says."""
    for one in guess.inputs:
        flags = [flag for flag in ("is_guessed", "is_count", "follows") if getattr(one, flag)]
        fill = f"{one.fill.text}, {one.fill.low} to {one.fill.high}, {one.fill.reason}"
        yield f"  {one.option} | {one.why} | {fill} | {one.free} {flags}"


@pytest.mark.broad
def test_whole_guesses(tmp_path: Path, recorded: Recorded) -> None:
    ways: dict[str, dict[str, Any]] = {
        "alone": {}, "batch of 3": {"batch": 3}, "filled": {"empty": False, "past": 7},
        "given": {"sizes": {"N": 2, "seq": 5}},
    }  # fmt: skip
    made = {}
    slow = ("whisper with other", "two operands", "one element stretched", "fixed signal")
    for name, text, _ in CASES:
        if name.startswith(slow):
            continue
        lines = []
        with closing(Document.open(written(text, tmp_path))) as document:
            specs = input_specs(document)
            for way, about in ways.items():
                try:
                    guess = next(candidate_guesses(specs, document, **about))
                except DldError as error:
                    lines.append(f"{way}: ! {error}")
                    continue
                lines += [way, *told(guess)]
        made[name] = "\n".join(lines)
    recorded("guesses", made)


def test_classes_that_are_listed_bound_an_input(tmp_path: Path) -> None:
    text = """g (int32[N, 4] codes) => (bool[a, b, c] y) {
        last = Constant <value_ints = [-1]> () u = Unsqueeze (codes, last)
        l = Constant <value = int32[1, 1, 5] {0, 1, 2, 3, 4}> () y = Equal (u, l) }"""
    (codes,) = first_guess(models.write(tmp_path, HEAD + text)).inputs
    assert (codes.fill.low, codes.fill.high) == (0, 4)


def test_ids_are_spread_over_the_table(tmp_path: Path) -> None:
    text = ENCODER.replace("[1000, 8]", "[1000, 8]")
    ids = first_guess(models.write(tmp_path, HEAD + text)).values(0)["input_ids"]
    assert 0 <= ids.min() < 200 < 800 < ids.max() < 1000


@pytest.mark.parametrize(
    ("given", "shapes"),
    [
        (["input_ids:2x16"], {"attention_mask": (2, 16), "past_key_values_0_key": (2, 2, 0, 4)}),
        (["past_key_values_0_key:1x2x7x4"], {"attention_mask": (1, 135), "input_ids": (1, 128)}),
        (["attention_mask:1x40"], {"input_ids": (1, 40), "past_key_values_0_key": (1, 2, 0, 4)}),
        (["attention_mask:3x40,input_ids:3x1"], {"past_key_values_0_key": (3, 2, 39, 4)}),
    ],
)
@pytest.mark.parametrize("text", [DECODER, SUMS], ids=["names", "sums"])
def test_a_given_length_changes_the_others(
    text: str, given: list[str], shapes: dict[str, tuple[int, ...]], tmp_path: Path
) -> None:
    path = written(text, tmp_path)
    names = ["input_ids", "attention_mask", "past_key_values_0_key"]
    guess = first_guess(path, given=parse_shapes(given, names))
    assert {name: guess.shapes[name] for name in shapes} == shapes
    session(path).run(None, guess.values(0))


def test_lengths_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    path = models.write(tmp_path, HEAD + DECODER)
    with pytest.raises(UsageError, match="does not agree with the other shapes"):
        first_guess(path, given={"attention_mask": (1, 4), "input_ids": (1, 9)})


def test_zero_is_no_size_where_none_is_wanted(tmp_path: Path) -> None:
    guess = first_guess(models.write(tmp_path, HEAD + DECODER), empty=False)
    assert guess.shapes["past_key_values_0_key"] == (1, 2, 127, 4)
    assert guess.shapes["attention_mask"] == (1, 255)


def test_sizes_and_the_batch_count(tmp_path: Path) -> None:
    path = models.write(tmp_path, HEAD + DETECTOR)
    assert first_guess(path, sizes={"H": 320}).shapes["images"] == (1, 3, 320, 640)
    assert first_guess(path, batch=8).shapes["images"] == (8, 3, 640, 640)


def test_only_what_tells_the_rest_is_to_be_given(tmp_path: Path) -> None:
    guess = first_guess(models.write(tmp_path, HEAD + DECODER))
    assert guess.options == ["input_ids:1x128", "past_key_values_0_key:1x2x0x4"]
    assert [line.split("; ")[-1] for line in guess.remarks] == [
        "--shape input_ids:1x128 sets it",
        "attention_mask → 1x128 (guessed: batch 1 by its name batch, total length 128 by past and"
        " present together)",
        "--shape past_key_values_0_key:1x2x0x4 sets it",
    ]
    again = first_guess(
        models.write(tmp_path, HEAD + DECODER), given=parse_shapes(guess.options, guess.shapes)
    )
    assert not again.guessed
    assert again.inputs[1].follows


def test_candidates_differ_and_end(tmp_path: Path) -> None:
    with closing(opened(DECODER, tmp_path)) as document:
        found = [one.shapes for one in candidate_guesses(input_specs(document), document)]
    assert len(found) == len({str(one) for one in found}) <= 10
    assert {one["input_ids"] for one in found} >= {(1, 128), (1, 1)}
    with closing(Document.open(written(NO_RANK, tmp_path))) as document:
        each = [one.shapes["x"] for one in candidate_guesses(input_specs(document), document)]
    assert len({len(shape) for shape in each}) == len(each) > 2, "of each rank the best"
    fixed = [InputSpec("x", "float32", (2, 3))]
    assert [one.shapes for one in candidate_guesses(fixed)] == [{"x": (2, 3)}]


def test_a_malformed_model_demands_nothing(tmp_path: Path) -> None:
    path = models.write(tmp_path, HEAD + LENET)
    model = onnx.load(path)
    for node in model.graph.node:
        del node.input[1:]
        node.attribute.add(name="axis", i=99, type=onnx.AttributeProto.INT)
    path.write_bytes(model.SerializeToString())
    assert first_guess(path).shapes == {"x": (1, 1, 224, 224)}


def test_shapes_given_that_the_graph_refuses_are_taken_as_given(tmp_path: Path) -> None:
    """What is wrong with them is the runtime's to say."""
    guess = first_guess(written(DETECTOR, tmp_path), given={"images": (1, 3, 100, 100)})
    assert guess.shapes == {"images": (1, 3, 100, 100)}
    assert not guess.guessed


@pytest.mark.broad
def test_a_resize_to_given_sizes_decides_what_it_is_joined_with(tmp_path: Path) -> None:
    text = f"""{HEAD} g (float[1, 3, 32, 24] x, float[1, 3, H, W] z) => (float[a, b, c, d] y) {{
        s = Constant <value_ints = [1, 3, 64, 48]> ()
        r = Resize <mode = "nearest"> (x, , , s) y = Concat <axis = 1> (r, z) }}"""
    with closing(Document.open(models.write(tmp_path, text))) as document:
        assert guess_inputs(input_specs(document), document).shapes["z"] == (1, 3, 64, 48)


def test_a_given_shape_tells_the_rank_of_an_input_without_one(tmp_path: Path) -> None:
    guess = first_guess(written(NO_RANK, tmp_path), given={"x": (4, 6)})
    assert guess.shapes["x"] == (4, 6)
    assert guess.shapes["z"][0] == 6
