from __future__ import annotations

from dld_tui.widgets.charts.bars import Block, beside, block, fitted, flow, width_of


def text(line: list[tuple[str, str]]) -> str:
    return "".join(part for part, _ in line)


def test_a_line_is_cut_and_padded_in_cells() -> None:
    assert text(fitted([("ab", ""), ("cdef", "dim")], 4)) == "abc…"
    assert text(fitted([("ab", "")], 4)) == "ab  "
    assert width_of(fitted([("畳み込み", "")], 5)) == 5


def test_blocks_beside_each_other_are_padded_below() -> None:
    left = block([[("one", "")], [("two", "")]])
    right = Block(2, [[("x", "")]])
    assert [text(line) for line in beside([left, right], gap=1)] == ["one x ", "two   "]


def test_blocks_flow_into_rows_when_there_is_no_room() -> None:
    blocks = [Block(4, [[("aaaa", "")]]), Block(4, [[("bbbb", "")]]), Block(4, [[("cccc", "")]])]
    assert [text(line) for line in flow(blocks, 9, gap=1)] == ["aaaa bbbb", "", "cccc"]
    assert [text(line) for line in flow(blocks, 3, gap=1)] == ["aaaa", "", "bbbb", "", "cccc"]
    assert flow([], 10) == []
