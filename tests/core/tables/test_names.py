"""What the names of a list share is left out of it, and said once."""

from __future__ import annotations

import random

import pytest

from dld_tui.core.document.types.value_types import alias_legend, dimension_aliases, with_aliases
from dld_tui.core.tables.table import SharedEnds, shared_ends


@pytest.mark.parametrize(
    ("names", "ends"),
    [
        (["/model/layers.0/Add", "/model/layers.1/Mul"], ("/model/layers.", "")),
        (["/model/a/MatMul", "/model/b/MatMul", ""], ("/model/", "/MatMul")),
        (["block1.conv.weight", "block2.bn.weight"], ("", ".weight")),
        (["node_add", "node_mul"], ("node_", "")),
        (["same", "same"], ("", "")),
        (["/x/a", "/x/a/b"], ("/x/", "")),
        (["gpu_0/data", "gpu_0/"], ("gpu_0/", "")),
        (["name", "names"], ("", "")),
        ([], ("", "")),
    ],
)
def test_whole_parts_that_all_share(names: list[str], ends: tuple[str, str]) -> None:
    assert shared_ends(names) == ends


def test_marks_and_counts_are_no_part_of_a_name() -> None:
    ends = shared_ends(["p2o.Add.1", "~p2o.Conv.2  +3", "~p2o.Relu.3"])
    assert ends == ("p2o.", "")
    assert ends.without("~p2o.Conv.2  +3") == "~Conv.2  +3"


@pytest.mark.parametrize("seed", range(30))
def test_what_most_share_is_left_out_where_it_confuses_nothing(seed: int) -> None:
    numbers = random.Random(seed)
    shared = [f"model/block{numbers.randrange(3)}/{at}" for at in range(18)]
    others = [f"Reorder_{at}" for at in range(numbers.randint(0, 8))]
    if seed % 3 == 0:
        others.append(shared[0].removeprefix("model/"))
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
    names = {"/net/" * (seed % 2) + "".join(numbers.choices(parts, k=numbers.randint(1, 6)))
             + ".weight" * (seed % 3 == 0) for _ in range(12)}  # fmt: skip
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
