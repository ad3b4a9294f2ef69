"""What the names of a list share is left out of it, and said once."""

from __future__ import annotations

import random

import pytest

from dld_tui.core.document.types.value_types import alias_legend, dimension_aliases, with_aliases
from dld_tui.core.tables.table import SharedEnds, shared_ends


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
        (listed("~model_of_many/Conv_#  +3"), ("model_of_many/", "")),
        (listed("/model/@"), ("", "")),  # too short to be worth it
        (listed("/model/encoder/layers.#/@")[:5], ("", "")),  # few names have room
        (["same_name_everywhere"] * 9, ("", "")),
        ([], ("", "")),
    ],
)  # fmt: skip
def test_whole_parts_that_all_share(names: list[str], ends: tuple[str, str]) -> None:
    assert shared_ends(names) == ends


def test_marks_and_counts_are_no_part_of_a_name() -> None:
    ends = shared_ends(listed("~paddle_ocr.p2o.@.2  +3"))
    assert ends == ("paddle_ocr.p2o.", "")
    assert ends.without("~paddle_ocr.p2o.Conv.2  +3") == "~Conv.2  +3"
    assert ends.without("~paddle_ocr.p2o.2") == "~paddle_ocr.p2o.2"


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


def test_what_is_said() -> None:
    assert SharedEnds("/model/", ".weight").gapped == "/model/….weight"
    assert SharedEnds().gapped == ""


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


def test_what_names_of_dimensions_have_in_common_is_said_once() -> None:
    names = [f"p2o.DynamicDimension.{at}" for at in range(3)]
    assert alias_legend(dimension_aliases(names)) == "P p2o.DynamicDimension.0  P2 …1  P3 …2"
    words = ["batch_size", "sequence_length", "total_sequence_length"]
    assert alias_legend(dimension_aliases(words)) == (
        "B batch_size  S sequence_length  T total_sequence_length"
    )
    short = alias_legend({"past_a": "P", "past_b": "P2"})
    assert short == "P past_a  P2 past_b"  # nothing is gained
