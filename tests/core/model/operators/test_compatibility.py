"""Operators that read the same in another version of their set, and those that do not."""

from __future__ import annotations

import pytest

from dld_tui.core.model.operators.registry import same_meaning


@pytest.mark.parametrize(
    ("op_type", "there", "here", "same"),
    [
        ("Relu", 13, 18, True),
        ("Relu", 14, 13, False),  # 14 takes integers, 13 does not
        ("LeakyRelu", 12, 18, True),
        ("Hardmax", 12, 13, False),  # the default axis
        ("ReduceMax", 13, 18, False),  # axes became an input
        ("Reshape", 13, 14, False),  # a new attribute
        ("Upsample", 9, 18, True),  # deprecated later, with the same signature
        ("GroupNormalization", 17, 18, False),
        ("MyOwn", 1, 9, True),
    ],
)
def test_same_meaning(op_type: str, there: int, here: int, same: bool) -> None:
    assert same_meaning(op_type, "", there, here) is same
