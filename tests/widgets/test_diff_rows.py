"""The rows of a comparison, side by side."""

from __future__ import annotations

import onnx

from dld_tui.core.compare.diff import diff_documents
from dld_tui.core.compare.diff.tensors import WeightNoise
from dld_tui.core.model.document import Document
from dld_tui.core.text import cell_width
from dld_tui.screens.results.diff import DiffLines, diff_rows, row_status, sides
from tests.support import models
from tests.support.diff_models import copy_of
from tests.support.tui import ESCAPE, HOSTILE


def lines(old: onnx.ModelProto, new: onnx.ModelProto, **options: bool | str) -> DiffLines:
    found = diff_documents(Document(copy_of(old)), Document(copy_of(new)))
    return DiffLines(diff_rows(found, **options))  # type: ignore[arg-type]


def edited() -> onnx.ModelProto:
    new = models.parse(models.CHAIN.replace("float[N, 4] y", "float[N, 5] y"))
    new.graph.node[0].name = HOSTILE + ESCAPE
    new.graph.initializer[0].float_data[0] = 9
    new.graph.value_info.append(onnx.helper.make_tensor_value_info("a", 1, [4]))
    new.opset_import.add(domain="extra", version=2)
    new.graph.name = "other"
    return new


def test_every_kind_of_item() -> None:
    rows = lines(models.parse(models.CHAIN), edited()).rows
    assert [(row_status(row), *sides(row)) for row in rows] == [
        ("", "model", ""),
        ("added", "", "opset extra: 2"),
        ("", "main  5 differences", ""),
        ("changed", "name: chain", "name: other"),
        ("changed", "output y", "output y"),
        ("changed", "    type: float32[N, 4]", "    type: float32[N, 5]"),
        ("renamed", "first  Relu(x) -> a", f"{HOSTILE}{ESCAPE}  Relu(x) -> a"),
        ("changed", "initializer w  float32[4]", "initializer w  float32[4]"),
        ("changed", "", "    values: 1 of 4 elements differ, max |Δ| 8, mean |Δ| 2"),
        ("added", "", "type of a  float32[4]"),
    ]


def test_weights_in_few_bits_come_last_the_noisiest_first() -> None:
    found = diff_documents(
        Document(models.parse(models.CHAIN)), Document(models.parse(models.CHAIN))
    )
    node = found.scopes[0].new.nodes[0] if found.scopes else None
    for name, snr in (("quiet", 40.0), ("exact", None), ("loud", 12.5)):
        ref = node.ref if node is not None else "gone"
        found.weights.append(WeightNoise((), ref, name, (4, 8), "4 bits", snr, 0.5))
    noise = [row for row in diff_rows(found) if row.kind in ("scope", "noise")][-4:]
    assert [sides(row)[0] for row in noise] == [
        "weights in few bits  3, signal to noise, most noise first",
        "  12.5 dB  loud [4, 8]  max |Δ| 0.5, 4 bits",
        "  40.0 dB  quiet [4, 8]  max |Δ| 0.5, 4 bits",
        "     same  exact [4, 8]  4 bits",
    ]
    assert [row.new_node for row in noise[1:]] == [node] * 3
    assert not any(row.kind == "noise" for row in diff_rows(found, status="added"))


def test_a_status_leaves_the_others_out() -> None:
    found = lines(models.parse(models.CHAIN), edited(), status="renamed")
    assert found.text(0) == "main  2 differences"
    assert len(found) == 3
    whole = lines(models.parse(models.CHAIN), edited(), with_same=True)
    for at in range(1, 3):  # the cursor stays on what it was on
        place = whole.index_of(found.key(at))
        assert place is not None
        assert whole.text(place) == found.text(at)


def test_rows_fit_and_are_safe() -> None:
    found = lines(models.parse(models.CHAIN), edited(), with_same=True)
    for width in (0, 1, 7, 20, 81):
        for index in range(len(found)):
            pieces = found.line(index, width)
            text = "".join(part for part, _ in pieces)
            assert "\x1b" not in text
            assert cell_width(text) <= max(width, 6)
    keys = [found.key(index) for index in range(len(found))]
    assert len(set(keys)) == len(keys)
    assert [found.index_of(key) for key in keys] == list(range(len(keys)))
    assert found.index_of("none") is None


def test_nodes_that_are_the_same_stand_where_the_file_has_them() -> None:
    old = models.parse(models.CHAIN)
    new = models.parse(models.CHAIN.replace("[third] c = Mul(b, b)", "[third] c = Mul(a, b)"))
    found = lines(old, new, with_same=True)
    assert [found.text(index).split()[0] for index in range(1, len(found))] == [
        "first", "second", "third", "input", "last",
    ]  # fmt: skip
    front = onnx.helper.make_node("Tanh", ["x"], ["q"], "front")
    back = onnx.helper.make_node("Tanh", ["b"], ["p"], "back")
    gone = copy_of(old)
    gone.graph.node.insert(0, front)
    gone.graph.node.insert(3, back)
    shown = lines(gone, old, with_same=True)
    names = ["front", "first", "second", "back", "third", "last"]
    assert [shown.text(index).split()[0] for index in range(1, len(shown))] == names
    added = lines(old, gone, with_same=True)
    texts = [added.text(index).replace("| ", "").split()[0] for index in range(1, len(added))]
    assert texts == names
