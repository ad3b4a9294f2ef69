"""How many would have to move."""

from __future__ import annotations

from dld_tui.core.compare.diff.matching import out_of_order


def test_out_of_order() -> None:
    assert out_of_order([]) == 0
    assert out_of_order([1, 5, 9]) == 0
    assert out_of_order([9, 1, 5]) == 1
    assert out_of_order([3, 2, 1]) == 2
