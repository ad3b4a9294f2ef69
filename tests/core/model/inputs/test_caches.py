"""Pairs of past and present by operators, names and types; lengths that follow them."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import onnx
import pytest

from dld_tui.core.model.document import Document
from dld_tui.core.model.inputs.guess import Guess, guess_inputs, input_specs
from dld_tui.core.model.inputs.roles import CachePair, StatePair, cache_pairs, state_pairs
from tests.support import decoders, models
from tests.support.runtime import needs_onnxruntime

ODD = ("k_{}", "v_{}")
MADE = ("new_{}_a", "new_{}_b")
NAMELESS = (None, None, None, None)


def pairs(path: Path) -> list[CachePair]:
    with closing(Document.open(path)) as document:
        return cache_pairs(document)


def guess(path: Path, **given: tuple[int, ...]) -> Guess:
    with closing(Document.open(path)) as document:
        return guess_inputs(input_specs(document), document, given)


def test_pairs_are_found_by_what_attends_to_them(tmp_path: Path) -> None:
    found = pairs(decoders.grouped(tmp_path / "m.onnx", past=ODD, present=MADE, dims=NAMELESS))
    assert [(one.past, one.present, one.axis) for one in found] == [
        ("k_0", "new_0_a", 2), ("v_0", "new_0_b", 2), ("k_1", "new_1_a", 2), ("v_1", "new_1_b", 2),
    ]  # fmt: skip


def test_pairs_are_found_by_types_where_names_and_operators_say_nothing(tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["" : 20, "own" : 1]>
        g (int64[b, s] ids, float[b, 2, p, 8] k, float[b, 2, p, 4] v)
        => (float[b, s, 9] y, float[b, 2, t, 4] b_out, float[b, 2, t, 8] a_out) {
        y, a_out, b_out = own.Attend (ids, k, v) }"""
    found = pairs(models.write(tmp_path, text))
    assert [(one.past, one.present) for one in found] == [("k", "a_out"), ("v", "b_out")]


@pytest.mark.parametrize(
    "text",
    [
        """g (float[N, 3, ?, ?] left, float[M, 3, ?, ?] right) => (float[a, b, c, d] y) {
            y = Concat <axis = 1> (left, right) }""",
        """g (float[N, 3, H, W] image) => (float[N, 3, H2, W2] y) {
            y = own.Resize (image) }""",
        """g (float[b, t] x, float[2, b, 64] state) => (float[b, t] y, float[2, b, 64] stateN) {
            y = Relu (x) stateN = Relu (state) }""",
    ],
)
def test_what_is_no_cache_has_no_pair(text: str, tmp_path: Path) -> None:
    head = '<ir_version: 10, opset_import: ["" : 20, "own" : 1]>\n'
    assert pairs(models.write(tmp_path, head + text)) == []


@pytest.mark.parametrize("dims", [NAMELESS, ("b", "s", "p", "t")])
def test_one_length_changes_all_others(dims: tuple[str | None, ...], tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    path = decoders.grouped(tmp_path / "m.onnx", past=ODD, present=MADE, dims=dims)
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


def counted(path: Path) -> Path:
    """Give each size of a decoder a name of its own, as torch.onnx does where none is asked for."""
    model = onnx.load(path)
    shared = {"b": "s1", "s": "s2"}
    for number, info in enumerate((*model.graph.input, *model.graph.output)):
        for at, dim in enumerate(info.type.tensor_type.shape.dim):
            if dim.dim_param:
                dim.dim_param = shared.get(dim.dim_param, f"s{10 * number + at + 10}")
    path.write_bytes(model.SerializeToString())
    return path


def test_names_that_count_are_no_names(tmp_path: Path) -> None:
    path = counted(
        decoders.grouped(tmp_path / "m.onnx", past=ODD, present=MADE, dims=("b", "s", "p", "t"))
    )
    assert guess(path).options == ["input_ids:1x128", "k_0:1x2x0x16"]
    given = guess(path, k_0=(3, 2, 5, 16), input_ids=(3, 1))
    caches = dict.fromkeys(("k_0", "v_0", "k_1", "v_1"), (3, 2, 5, 16))
    assert given.shapes == {"input_ids": (3, 1), "attention_mask": (3, 6)} | caches
    with closing(Document.open(path)) as document:
        specs = input_specs(document)
        past = next(spec.dims[2] for spec in specs if spec.name == "v_1" and spec.dims)
        by_name = guess_inputs(specs, document, {"input_ids": (3, 1)}, {str(past): 5})
    assert by_name.shapes == given.shapes


def test_windows_and_states_are_told_from_caches_that_grow(tmp_path: Path) -> None:
    path = decoders.mixed(tmp_path / "m.onnx")
    with closing(Document.open(path)) as document:
        states = state_pairs(document)
    assert states == [
        StatePair("past.0.conv", "present.0.conv"),
        StatePair("past.3.recurrent", "present.3.recurrent"),
    ]
    assert [(one.past, one.axis, one.window) for one in pairs(path)] == [
        (f"past_key_values.{layer}.{half}", 2, window)
        for layer, window in ((1, decoders.WINDOW), (2, 0))
        for half in ("key", "value")
    ]


@pytest.mark.parametrize(
    ("rename", "count"),
    [
        ({"state": "ssm_in", "made": "ssm_out"}, 1),
        ({"state": "h", "made": "new_h"}, 1),
        ({"state": "past_state", "made": "present_state"}, 1),
        ({"state": "x1", "made": "y1"}, 0),
    ],
)
def test_states_of_single_operators_are_found_by_names(
    rename: dict[str, str], count: int, tmp_path: Path
) -> None:
    text = """<ir_version: 10, opset_import: ["" : 20]>
        g (float[b, s, 4] x, float[b, 4, 8] state) => (float[b, s, 8] y, float[b, 4, 8] made) {
        y = MatMul (x, state) made = Tanh (state) }"""
    for old, new in rename.items():
        text = text.replace(old, new)
    with closing(Document.open(models.write(tmp_path, text))) as document:
        assert len(state_pairs(document)) == count


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
