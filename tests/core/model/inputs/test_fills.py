from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dld_tui.core.errors import ActivityError
from dld_tui.core.model.document import Document
from dld_tui.core.model.inputs import fills
from dld_tui.core.model.inputs.fills import Surroundings, fill_for, random_inputs
from dld_tui.core.model.inputs.guess import guess_inputs, input_specs
from dld_tui.core.model.inputs.roles import ModelTraits, named_role, placed_role
from dld_tui.core.model.inputs.shape_texts import Shape
from dld_tui.core.model.inputs.shapes import AnyArray, InputSpec
from tests.support import models

RANGES = dict.fromkeys(("int8", "uint8"), (0, 127)) | dict.fromkeys(
    ("float16", "float32", "float64", "bfloat16", "float8e4m3fn", "float8e5m2", "int16", "uint16",
     "int32", "uint32", "int64", "uint64", "bool"), (0, 1))  # fmt: skip


@pytest.mark.parametrize("dtype", RANGES)
def test_every_type_has_values_in_its_range(dtype: str) -> None:
    array = random_inputs([InputSpec("x", dtype, ("N",))], {"x": (1000,)}, 0)["x"]

    low, high = RANGES[dtype]
    assert array.dtype.name == {"float8e4m3fn": "float8_e4m3fn", "float8e5m2": "float8_e5m2"}.get(
        dtype, dtype
    )
    assert array.shape == (1000,)
    numbers = array.astype(np.float64)
    assert low <= numbers.min() < numbers.max() <= high


def test_strings_are_words() -> None:
    array = random_inputs([InputSpec("x", "string", (2, 3))], {"x": (2, 3)}, 0)["x"]

    assert array.dtype == object
    assert array.shape == (2, 3)
    assert all(isinstance(word, str) and word for word in array.flat)


def test_complex_numbers() -> None:
    array = random_inputs([InputSpec("x", "complex64", (4,))], {"x": (4,)}, 0)["x"]

    assert array.dtype == np.complex64
    assert array.imag.max() > 0


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "uint8", "bfloat16", "float64"])
def test_scalars_and_empty_arrays_keep_their_shape(dtype: str) -> None:
    specs = [InputSpec("s", dtype, ()), InputSpec("e", dtype, (0, 3))]
    arrays = random_inputs(specs, {"s": (), "e": (0, 3)}, 0)

    assert isinstance(arrays["s"], np.ndarray)
    assert (arrays["s"].shape, arrays["e"].shape) == ((), (0, 3))


def test_the_seed_decides() -> None:
    specs = [InputSpec("x", "float32", (8,)), InputSpec("y", "float32", (8,))]
    shapes = {"x": (8,), "y": (8,)}
    first, again, other = (random_inputs(specs, shapes, seed) for seed in (1, 1, 2))

    assert np.array_equal(first["x"], again["x"])
    assert not np.array_equal(first["x"], other["x"])
    assert not np.array_equal(first["x"], first["y"])


def test_a_sequence_is_asked_for_as_data() -> None:
    with pytest.raises(
        ActivityError, match=r"s sequence\(float32\[…\]\) is not a tensor.*--inputs"
    ):
        random_inputs([InputSpec("s", "float32", None, "sequence")], {"s": ()}, 0)


def test_a_type_that_cannot_be_made() -> None:
    with pytest.raises(ActivityError, match="inputs of type float4e2m1 cannot be generated"):
        random_inputs([InputSpec("x", "float4e2m1", (1,))], {"x": (1,)}, 0)


def guessed_values(folder: Path, kind: str) -> dict[str, AnyArray]:
    text = f"""<ir_version: 10, opset_import: ["" : 18]>
    g ({kind}(float[2, N]) x, float[2] z) => (float[2] y) {{ y = Neg(z) }}"""
    document = Document.open(models.write(folder, text))
    return guess_inputs(input_specs(document), document, {}).values(0)


def test_a_model_that_takes_a_sequence_asks_for_data(tmp_path: Path) -> None:
    with pytest.raises(ActivityError, match="input x sequence"):
        guessed_values(tmp_path, "seq")


def test_an_optional_tensor_is_fed_with_one(tmp_path: Path) -> None:
    values = guessed_values(tmp_path, "optional")
    assert {name: value.shape for name, value in values.items()} == {"x": (2, 1), "z": (2,)}


def test_inputs_take_no_more_than_half_of_the_free_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fills, "free_memory", lambda: 16_000)
    specs = [InputSpec(name, "float32", (None,)) for name in "ab"]
    shapes = {"a": (1000,), "b": (1000,)}
    assert len(random_inputs(specs, shapes, 0)) == 2
    with pytest.raises(ActivityError, match=r"up to b float32\[\?\] take 8 kB"):
        random_inputs(specs, {**shapes, "b": (1001,)}, 0)


HIDES = -10_000.0
CACHED: dict[str, Any] = {"past": 5, "present": 2, "caches": {"past_key": "present_key"}}
"""Five tokens in the cache and two new ones."""
IMAGE: dict[str, Any] = {"shapes": {"pixel_values": (1, 3, 48, 64)}}
WORDS: dict[str, Any] = {
    "shapes": {"tokens": (2, 7), "audio_signal": (2, 80, 31)},
    "roles": {"tokens": ("batch", "sequence length"), "audio_signal": ("batch", "", "frames")},
}


@pytest.mark.parametrize(
    ("name", "dtype", "shape", "around", "expected"),
    [
        ("x", "string", (2,), {}, ("words", 0, 1)),
        ("sr", "int64", (), {"constants": {"sr": 16000}}, ("constant", 16000, 1)),
        *(("x", dtype, (3,), {}, ("uniform", 0, 1))
          for dtype in ("float32", "float16", "bfloat16", "float64", "bool", "int64")),
        ("x", "int8", (3,), {}, ("uniform", 0, 127)),
        ("x", "uint8", (1, 3, 8, 8), {}, ("uniform", 0, 255)),
        ("x", "uint8", (3, 8, 8), {}, ("uniform", 0, 127)),
        ("mask", "float32", (2, 8), {}, ("constant", 1, 1)),
        ("mask", "float32", (1, 1, 8, 8), {}, ("uniform", 0, 1)),
        ("attention_mask", "float32", (1, 1, 8, 8), {}, ("constant", 1, 1)),
        ("attention_mask", "int64", (2, 8), {}, ("constant", 1, 1)),
        ("attention_mask", "int64", (2, 7), CACHED, ("constant", 1, 1)),
        ("attention_mask", "int64", (2, 9), CACHED, ("mask", 7, 1, 0, 1)),
        ("attention_mask", "int64", (2, 6), CACHED, ("constant", 1, 1)),
        ("encoder_attention_mask", "int64", (2, 9), CACHED, ("constant", 1, 1)),
        ("attention_mask", "int64", (9,), CACHED, ("constant", 1, 1)),
        ("attention_mask", "bool", (1, 1, 2, 7), CACHED, ("mask", 7, 1, 0, 1)),
        ("attention_mask", "bool", (1, 1, 1, 7), CACHED, ("constant", 1, 1)),
        ("attention_mask", "bool", (1, 1, 3, 9), CACHED, ("constant", 1, 1)),
        ("attention_mask", "int64", (2, 9), CACHED | {"caches": {}}, ("constant", 1, 1)),
        ("padding_mask", "bool", (2, 8), {}, ("constant", 0, 1)),
        ("padding_mask", "bool", (2, 9), CACHED, ("mask", 7, 1, 1, 0)),
        ("padding_mask", "int64", (2, 8), {}, ("constant", 1, 1)),
        ("use_cache", "bool", (1,), {}, ("constant", 0, 1)),
        ("use_cache", "bool", (1,), CACHED, ("constant", 1, 1)),
        ("s", "float32", (1, 2), {"states": {"s": "t"}}, ("constant", 0, 1)),
        ("h0", "float32", (1, 2, 3), {}, ("constant", 0, 1)),
        ("h0", "float32", (3,), {}, ("uniform", 0, 1)),
        ("h0", "float32", (1, 1, 1, 2, 3), {}, ("uniform", 0, 1)),
        ("encoder_hidden_states", "float32", (1, 2, 3), {}, ("uniform", 0, 1)),
        ("past_state", "float32", (1, 2, 3), {}, ("uniform", 0, 1)),
        ("scale_factor", "float32", (1, 2), {}, ("constant", 1, 1)),
        ("scale_factor", "float32", (1, 2, 3), {}, ("uniform", 0, 1)),
        ("im_shape", "float32", (1, 2), IMAGE, ("listed", 0, 1, 48, 64)),
        ("im_shape", "float32", (1, 4), IMAGE, ("uniform", 0, 1)),
        ("im_shape", "float32", (1, 2), {}, ("uniform", 0, 1)),
        ("im_shape", "int64", (1, 3), IMAGE, ("listed", 0, 1, 48, 64)),
        ("shape", "int64", (1, 2), IMAGE, ("uniform", 0, 1)),
        ("timestep", "float32", (1,), {}, ("uniform", 0, 999)),
        ("timestep", "int64", (1,), {}, ("uniform", 0, 999)),
        ("waveform", "float32", (1, 9), {}, ("uniform", -1, 1)),
        ("samples", "float32", (1, 9), {}, ("uniform", 0, 1)),
        ("x", "float32", (1, 9), {"roles": {"x": ("batch", "samples of a chunk")}},
         ("uniform", -1, 1)),
        ("position_ids", "int64", (2, 2), CACHED, ("counting", 5, 1)),
        ("position", "int64", (2,), CACHED, ("counting", 5, 1)),
        ("position", "int64", (2,), CACHED | {"roles": {"position": ("batch",)}},
         ("constant", 5, 1)),
        ("segment_ids", "int64", (2, 2), {}, ("constant", 0, 1)),
        ("token_type_ids", "int64", (2, 2), {}, ("constant", 0, 1)),
        ("past_length", "int64", (1,), CACHED, ("constant", 5, 1)),
        ("total_length", "int64", (1,), CACHED, ("constant", 7, 1)),
        ("image_grid_thw", "int64", (1, 3), {}, ("listed", 0, 1, 1, 2, 2)),
        ("image_grid_thw", "int64", (2, 3),
         {"shapes": {"x": (24, 9)}, "roles": {"x": ("patches", "")}},
         ("listed", 0, 1, 1, 3, 4, 1, 3, 4)),
        ("cache_indirection", "int64", (1, 2), {}, ("constant", 0, 1)),
        ("num_beams", "int64", (1,), {}, ("constant", 1, 1)),
        ("num_beams", "int64", (1,), {"shapes": {"x": (3, 4)}, "roles": {"x": ("", "beams")}},
         ("constant", 4, 1)),
        ("tokens_length", "int64", (2,), WORDS, ("constant", 7, 1)),
        ("audio_lengths", "int64", (), WORDS, ("constant", 31, 1)),
        ("lengths", "int64", (2,), {"shapes": {"x": (2, 9, 80)}}, ("constant", 80, 1)),
        ("lengths", "int64", (2,), {"shapes": {"x": (9, 2)}, "roles": {"x": ("batch", "")}},
         ("constant", 9, 1)),
        ("lengths", "int64", (2,), {}, ("constant", 1, 1)),
        ("lengths", "int64", (2, 2), {}, ("uniform", 0, 1)),
    ],
)  # fmt: skip
def test_values_by_the_name_and_what_is_around(
    name: str, dtype: str, shape: Shape, around: dict[str, Any], expected: tuple[Any, ...]
) -> None:
    shapes = {name: shape} | around.get("shapes", {})
    fill = fill_for(InputSpec(name, dtype, shape), Surroundings(**around | {"shapes": shapes}))
    assert (fill.kind, fill.low, fill.high, *fill.numbers) == expected


@pytest.mark.parametrize(
    ("use", "dtype", "shape", "expected"),
    [
        (("Reshape", 1), "int64", (3,), ("listed", 0, -1, 1, 1)),
        (("Reshape", 1), "int64", (), ("listed", 0, -1)),
        (("Expand", 1), "int64", (3,), ("constant", 1)),
        (("OneHot", 1), "int64", (), ("constant", 10)),
        (("Mod", 1), "int64", (), ("uniform", 1)),
        (("GroupQueryAttention", 5), "int32", (1,), ("constant", 6)),
        (("GroupQueryAttention", 6), "int32", (), ("constant", 7)),
        (("LSTM", 4), "int32", (2,), ("constant", 11)),
        (("Resize", 3), "int64", (4,), ("listed", 0, 2, 3, 10, 11)),
        (("Resize", 3), "int64", (5,), ("uniform", 0)),
        (("GRU", 5), "float32", (2, 2), ("constant", 0)),
        (("NonMaxSuppression", 3), "float32", (), ("constant", 0.5)),
        (("NonMaxSuppression", 4), "float32", (1,), ("constant", 0.5)),
    ],
)  # fmt: skip
def test_values_by_the_operator_that_takes_them(
    use: tuple[str, int], dtype: str, shape: Shape, expected: tuple[Any, ...]
) -> None:
    shapes = {"x": shape, "data": (2, 3, 10, 11)}
    node = SimpleNamespace(name="n", op_type=use[0], outputs=("y",))
    graph: Any = SimpleNamespace(
        uses={"x": [(*use, node)]}, factors={}, demands=SimpleNamespace(bounds={}), compared={}
    )
    around = Surroundings(shapes, **CACHED)
    fill = fill_for(InputSpec("x", dtype, shape), around, graph)
    assert (fill.kind, fill.low, *fill.numbers) == expected


@pytest.mark.parametrize(
    ("name", "shape", "bounds", "factors", "expected"),
    [
        ("x", (2,), [9, 4], [], ("uniform", 0, 3)),
        ("x", (2,), [0, None], [], ("uniform", 0, 1)),
        ("positions", (1, 4), [9], [], ("counting", 5, 1)),
        ("positions", (1, 5), [9], [], ("counting", 0, 1)),
        ("timestep", (1,), None, [1000.0], ("uniform", 0, 1)),
        ("timestep", (1,), None, [2.0], ("uniform", 0, 999)),
        ("mask", (1, 9), None, "Add", ("mask", 7, 1, HIDES, 0)),
        ("mask", (1, 7), None, "Add", ("constant", 0, 1)),
    ],
)
def test_values_by_the_tables_and_factors_of_the_graph(
    name: str, shape: Shape, bounds: Any, factors: Any, expected: tuple[Any, ...]
) -> None:
    node = SimpleNamespace(name="", op_type="Gather", outputs=("y",))
    uses = [(factors, 1, node)] if isinstance(factors, str) else []
    demands = SimpleNamespace(bounds={name: [(size, node) for size in bounds or ()]})
    graph: Any = SimpleNamespace(
        uses={name: uses}, factors={name: factors}, demands=demands, compared={}
    )
    spec = InputSpec(name, "float32" if bounds is None else "int64", shape)
    fill = fill_for(spec, Surroundings({name: shape}, **CACHED), graph)
    assert (fill.kind, fill.low, fill.high, *fill.numbers) == expected


PLAIN = ModelTraits(frozenset(), frozenset(), frozenset())
STREAMED = ModelTraits(frozenset({"sr"}), frozenset(), frozenset())
LATENT = ModelTraits(frozenset({"timestep"}), frozenset(), frozenset())
BOXES = ModelTraits(frozenset(), frozenset({"boxes"}), frozenset())


@pytest.mark.parametrize(
    ("name", "traits", "role", "size"),
    [
        ("past_seq", PLAIN, "past length", 0),
        ("total", PLAIN, "total length", 128),
        ("batch", PLAIN, "batch", 1),
        ("dynamic_axes_batch", PLAIN, "batch", 1),
        ("unk__12", PLAIN, None, 0),
        ("s0", PLAIN, None, 0),
        ("dim_3", PLAIN, None, 0),
        ("?", PLAIN, None, 0),
        ("encoder_sequence", PLAIN, "length of the encoder's result", 128),
        ("encoder_dim", PLAIN, "features", 80),
        ("decoder_sequence", PLAIN, "target sequence length", 16),
        ("past_decoder_sequence", PLAIN, "past length", 0),
        ("height", PLAIN, "height and width", 224),
        ("height", BOXES, "height and width", 640),
        ("height", LATENT, "height and width", 64),
        ("imagewidth", LATENT, "height and width", 64),
        ("samples", PLAIN, "samples", 16000),
        ("samples", STREAMED, "samples of a chunk", 512),
        ("sequence", PLAIN, "sequence length", 128),
        ("sequence", LATENT, "sequence length", 77),
        ("zzz", PLAIN, None, 0),
    ],
)
def test_roles_by_the_name_of_a_dimension(
    name: str, traits: ModelTraits, role: str | None, size: int
) -> None:
    found = named_role(name, traits)
    assert (None if found is None else found.name) == role
    assert found is None or found.sizes[0] == size


@pytest.mark.parametrize(
    ("name", "dtype", "dims", "axis", "traits", "role", "size"),
    [
        ("x", "float32", ("?", 3, "?", "?"), 0, PLAIN, "batch", 1),
        ("past_key", "float32", ("?", 8, "?", 64), 2, PLAIN, "past length", 0),
        ("past_key", "float32", ("?", "?"), 1, PLAIN, "features", 80),
        ("x", "float32", ("?", 1, 9), 0, PLAIN, "samples", 16000),
        ("x", "float32", ("?", "batch", 9), 0, PLAIN, "sequence length", 128),
        ("ids", "float32", ("?", 3), 0, PLAIN, "sequence length", 128),
        ("x", "int64", (1, "?"), 1, PLAIN, "sequence length", 128),
        ("x", "int64", (1, 2, "?"), 1, PLAIN, "count", 8),
        ("mel", "float32", (1, 80, "?"), 2, PLAIN, "frames", 100),
        ("features", "float32", (1, 80, "?"), 2, PLAIN, "frames", 3000),
        ("features", "float32", (1, 40, "?"), 2, PLAIN, "frames", 100),
        ("encoder_hidden", "float32", (1, "?", 64), 1, PLAIN, "length of the encoder's result",
         128),
        ("encoder_hidden", "float32", (1, 8, "?"), 2, PLAIN, "features", 80),
        ("x", "float32", (1, "?", "?"), 2, PLAIN, "features", 80),
        ("x", "float32", (1, "?", 5), 1, PLAIN, "sequence length", 128),
        ("x", "float32", (1, 7, "?"), 2, PLAIN, "frames", 100),
        ("x", "float32", (1, 2, "?"), 2, PLAIN, "samples", 16000),
        ("points", "float32", (1, 2, "?"), 2, PLAIN, "frames", 100),
        ("audio", "float32", (1, "?", 1), 1, PLAIN, "samples", 16000),
        ("x", "float32", (1, "?"), 1, PLAIN, "features", 80),
        ("x", "float32", (1, "?"), 1, STREAMED, "samples of a chunk", 512),
        ("input_values", "float32", (1, "?"), 1, PLAIN, "samples", 16000),
        ("x", "float32", (1, "?", "?", "?"), 1, PLAIN, "channels", 3),
        ("x", "float32", (1, "?", "?", 3), 1, PLAIN, "height and width", 224),
        ("x", "float32", (1, 3, "?", "?"), 3, PLAIN, "height and width", 224),
        ("x", "float32", (1, 3, "?", "?"), 3, BOXES, "height and width", 640),
        ("images", "float32", (1, 3, "?", "?"), 3, PLAIN, "height and width", 640),
        ("x", "float32", (1, 4, "?", "?"), 3, LATENT, "height and width", 64),
        ("x", "float32", (1, 3, 64, "?"), 3, PLAIN, "width of a line of text", 320),
        ("x", "float32", (1, 3, 65, "?"), 3, PLAIN, "height and width", 224),
        ("x", "float32", (1, 4, 64, "?"), 3, PLAIN, "height and width", 224),
        ("x", "float32", (1, 3, "?", "?", "?"), 2, PLAIN, "depth", 32),
        ("video", "float32", (1, 3, "?", "?", "?"), 2, PLAIN, "frames of a video", 16),
        ("x", "float32", (1, 3, "?", "?", "?"), 3, PLAIN, "height and width", 112),
    ],
)  # fmt: skip
def test_roles_by_the_place_of_a_dimension(
    name: str, dtype: str, dims: Any, axis: int, traits: ModelTraits, role: str, size: int
) -> None:
    found, _ = placed_role(InputSpec(name, dtype, dims), axis, traits)
    assert (found.name, found.sizes[0]) == (role, size)


@pytest.mark.parametrize(("shape", "is_image"), [((1, 3, 8, 8), True), ((3, 8, 8), False)])
def test_an_image_is_known_by_its_four_dimensions(shape: Shape, is_image: bool) -> None:
    fill = fill_for(InputSpec("x", "float32", shape), Surroundings({"x": shape}))
    assert ("image" in fill.reason) is is_image
