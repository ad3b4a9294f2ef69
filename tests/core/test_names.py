"""What the names of a list share is left out of it, and said once."""

from __future__ import annotations

import random

import pytest

from dld_tui.core.model.tensors.value_types import dimension_aliases, with_aliases
from dld_tui.core.text import cell_width
from dld_tui.core.text.names import SharedEnds, cut_names, disambiguated, shared_ends


def listed(*patterns: str) -> list[str]:
    """Return six names of each pattern, numbered for ``#`` and with another word for ``@``."""
    words = ("Add", "Mul", "conv", "bn", "relu", "fc")
    return [
        pattern.replace("#", str(at)).replace("@", word)
        for pattern in patterns for at, word in enumerate(words)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("names", "ends"),
    [
        (listed("/model/encoder/layers.#/@"), ("/model/encoder/layers.", "")),
        ([*listed("/model/encoder/@/MatMul_of_query"), ""],
         ("/model/encoder/", "/MatMul_of_query")),
        (listed("@.convolution.weight"), ("", ".convolution.weight")),
        (listed("/model/decoder/QuantizeLinear_#"), ("/model/decoder/", "")),
        (listed("QuantizeLinear_#"), ("", "")),  # a number says nothing
        (listed("/model/@"), ("", "")),  # too short to be worth it
        (listed("/model/encoder/layers.#/@")[:5], ("", "")),  # few names have room
        (["same_name_everywhere"] * 9, ("", "")),
        ([], ("", "")),
    ],
)  # fmt: skip
def test_whole_parts_that_all_share(names: list[str], ends: tuple[str, str]) -> None:
    assert shared_ends(names) == ends


@pytest.mark.parametrize("seed", range(30))
def test_what_most_share_is_left_out_where_it_confuses_nothing(seed: int) -> None:
    numbers = random.Random(seed)
    shared = [f"model/of/many/block{numbers.randrange(3)}/{at}" for at in range(18)]
    others = [f"Reorder_{at}" for at in range(numbers.randint(0, 8))]
    if seed % 3 == 0:
        others.append(shared[0].removeprefix("model/of/many/"))
    names = [*shared, *others]
    numbers.shuffle(names)
    ends = shared_ends(names, 0.8)
    fits = len(shared) >= 0.8 * len(names) and seed % 3
    assert bool(ends.front) == bool(fits)
    assert len({*map(ends.without, names)}) == len({*names})
    for name in others:
        assert ends.without(name) == name


@pytest.mark.parametrize("seed", range(20))
def test_different_names_stay_different_and_nothing_is_lost(seed: int) -> None:
    numbers = random.Random(seed)
    parts = ["a", "b", "conv", "/", ".", "_", "0"]
    front, back = "/a/net/of/many/" * (seed % 2), ".of/conv.weight" * (seed % 3 == 0)
    names = {
        f"{front}{''.join(numbers.choices(parts, k=numbers.randint(1, 6)))}{back}"
        for _ in range(12)
    }
    ends = shared_ends(names)
    short = {ends.without(name) for name in names}
    assert len(short) == len(names)
    assert "" not in short
    for name in names:
        assert name in (ends.without(name), f"{ends.front}{ends.without(name)}{ends.back}")


def drawn_names(numbers: random.Random) -> list[str]:
    """Return different names: of a model's nodes, or of few letters that repeat."""
    scopes = [
        "/model/layers",
        "encoder.layer",
        "p2o",
        "features",
        "节点",
        "/h/transformer_blocks_of",
    ]
    ends = [
        "MatMul",
        "Add_1",
        "self_attn/q_proj/MatMul",
        "Conv_output_cast_0",
        "LayerNormalization",
    ]
    names = {
        f"{numbers.choice(scopes)}.{numbers.randrange(40)}/{numbers.choice(ends)}"
        f"{numbers.choice(['', '_', '/x' * 20])}{numbers.randrange(3)}"
        for _ in range(80)
    }
    size = numbers.randint(13, 90)
    place = numbers.randrange(size)
    names |= {f"{'a' * at}b{'a' * (size - at)}" for at in range(0, size, 3)}
    names |= {f"{'a' * place}{letter}{'a' * (size - place)}" for letter in "cdefgh"}
    names |= {"".join(numbers.choices("ab…", k=numbers.randint(1, 70))) for _ in range(40)}
    drawn = sorted(names)
    numbers.shuffle(drawn)
    return drawn


@pytest.mark.parametrize("seed", range(8))
def test_cut_names_stay_different(seed: int) -> None:
    numbers = random.Random(seed)
    names = drawn_names(numbers)
    for cells in (12, 13, 20, 33, 60, numbers.randint(12, 60)):
        shown = cut_names(names, cells)
        assert len({*shown}) == len(names)
        assert max(map(cell_width, shown)) <= cells
        for name, text in zip(names, shown, strict=True):
            assert text == name or "…" in text
            assert text == name or cell_width(name) > cells


LAYERS = [f"/model/layers.{at}/self_attn/{part}/MatMul" for at in (3, 13) for part in "qk"]
BETWEEN = [f"{'a' * 20}{letter}{'a' * 20}" for letter in "bcd"]


@pytest.mark.parametrize(
    ("names", "cells", "shown"),
    [
        (["stem/conv_1", "stem/conv_22"], 12, ["stem/conv_1", "stem/conv_22"]),
        (["stem/conv_1", "stem/conv_22"], 11, ["stem/conv_1", "stem/…nv_22"]),
        (["stem/block/conv_1", "stem/block/add"], 8, ["…/conv_1", "…ock/add"]),
        (LAYERS, 20, [
            "…3/self_at…/q/MatMul", "…3/self_at…/k/MatMul",
            "…13/self_a…/q/MatMul", "…13/self_a…/k/MatMul",
        ]),
        (["a" * 30, "a" * 30, "b"], 5, ["aa…aa", "aa…aa", "b"]),
        (BETWEEN, 12, ["…baaaa…aaaaa", "…caaaa…aaaaa", "…daaaa…aaaaa"]),
        (["x" * 9 + "卷积", "y"], 8, ["xxxx…积", "y"]),
        (["卷积层", "卷积层"], 6, ["卷积层", "卷积层"]),
        (["卷积层"], 5, ["卷…层"]),
        (["abcdefghijkl", "abcde…ijkl"], 10, ["…defghijkl", "abcde…ijkl"]),
    ],
)  # fmt: skip
def test_names_are_cut_where_they_are_equal(names: list[str], cells: int, shown: list[str]) -> None:
    assert cut_names(names, cells) == shown


def test_names_that_no_part_tells_apart_get_a_number() -> None:
    names = [f"{'a' * at}b{'a' * (60 - at)}" for at in range(3, 57, 6)]
    assert cut_names(names, 12) == [
        "…baaaa…aaaaa", "…aaaaaaaaaaa", "aaaaaaaaaaa…", "aaaaaa…aaaaa", "aaaaaaaaa…2",
        "aaaaaaaaa…3", "aaaaaaaaa…4", "aaaaaaaaa…5", "…aaaaa…aaaaa",
    ]  # fmt: skip
    assert cut_names(names[5:9], 3) == ["…b…", "…aa", "aa…", "…a…"]
    few = [f"{'a' * at}b{'a' * (9 - at)}" for at in range(1, 9)]
    assert cut_names(few, 3) == ["…aa", "aa…", "a…a", "…2", "…3", "…4", "…5", "…ba"]


def test_layers_of_one_node_keep_their_own_names() -> None:
    assert disambiguated(["a", "b", "b"], ["x", "y", "z"]) == ["a", "y", "z"]
    assert disambiguated(["a", "b", "b"], ["x", "a", "z"]) == ["x", "a", "z"]
    assert disambiguated(["b", "b"], ["b", "copy of b"]) == ["b", "copy of b"]
    assert disambiguated(["b", "b"], ["c", "c"]) == ["c", "c"]


def test_ends_leave_out_what_all_have_and_are_told() -> None:
    ends = [SharedEnds("/model/", ".weight"), SharedEnds("/model/"), SharedEnds("", "/x")]
    assert [one.gapped for one in ends] == ["/model/….weight", "/model/…", "…/x"]
    assert SharedEnds().gapped == ""
    names = ["/model/a.weight", "/model/a.bias", "b.weight", "/model/12.weight", "/model/.weight"]
    assert [ends[0].without(name) for name in names] == ["a", *names[1:]]
    assert ends[1].without("/model/a/model/") == "a/model/"


def test_long_dimensions_have_aliases() -> None:
    dims = [
        "batch",
        "sequence_length",
        "N",
        "past_sequence_length + sequence_length",
        "size",
        "sum_1",
    ]
    aliases = dimension_aliases([*dims, "S2"])
    assert aliases == {
        "batch": "B", "sequence_length": "S", "past_sequence_length": "P", "sum_1": "S3",
    }  # fmt: skip
    assert with_aliases("f32[batch,past_sequence_length + sequence_length,4,N]", aliases) == (
        "f32[B,P + S,4,N]"
    )
    assert with_aliases("batch", aliases) == "batch"
    assert with_aliases("f32[unk__12,unk__x,3]", {}) == "f32[?,unk__x,3]"
