"""In no list are two different names shown equal where there is room to tell them apart."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from dld_tui.core.checks.findings import Finding
from dld_tui.core.model.document import Document
from dld_tui.core.tensorrt.plan.lint import PlanFinding
from dld_tui.core.text import cell_width
from dld_tui.core.text.names import ListedNames
from dld_tui.widgets.explorer.branches import ExplorerEntry
from dld_tui.widgets.explorer.findings import FindingLines
from dld_tui.widgets.explorer.rows import ExplorerRows
from dld_tui.widgets.explorer.state import ExplorerModel
from dld_tui.widgets.lists.styled import Piece
from dld_tui.widgets.results.plan import FindingRows
from tests.support import models
from tests.support.graph_panes import graph_model, rows_of

ROOM = 12
"""Cells in which different names stay different."""
WIDTHS = (48, 61, 80, 100, 121, 160, 200)


def names_of(seed: int) -> list[str]:
    """Return different names of nodes: long, deep, and some that differ only in the middle."""
    dice = random.Random(seed)
    scopes = ["model/encoder/layers", "h.transformer_blocks_of_the_decoder", "节点", "p2o"]
    parts = ["self_attn/q_proj/MatMul", "Conv_output_cast", "LayerNorm/Add_1", "Relu"]
    names = {
        f"/{dice.choice(scopes)}.{dice.randrange(30)}/{dice.choice(parts)}{dice.choice('_ab')}"
        f"{dice.choice(['', '/x' * 30])}"
        for _ in range(60)
    }
    size = dice.randint(20, 90)
    return [*names, *(f"{'a' * at}b{'a' * (size - at)}" for at in range(0, size, 4))]


def disambiguated(lines: Sequence[tuple[str, Sequence[Piece]]], style: str) -> None:
    """Compare the names of rows: the first pieces with a style that are not blank."""
    shown: dict[str, str] = {}
    for name, pieces in lines:
        text = next(text.strip() for text, kind in pieces if kind == style and text.strip())
        if cell_width(text) >= ROOM or text == name:
            assert shown.setdefault(text, name) == name, text


def check(line: Callable[[int, int], Sequence[Piece]], names: list[str], style: str = "") -> None:
    for width in WIDTHS:
        disambiguated([(name, line(at, width)) for at, name in enumerate(names)], style)


def model_text(names: list[str]) -> str:
    nodes = "\n".join(f'["{name}"] t{n + 1} = Relu(t{n})' for n, name in enumerate(names))
    outputs = f"float[4] t{len(names)}"
    return f'<ir_version: 8, opset_import: ["": 17]> m (float[4] t0) => ({outputs}) {{ {nodes} }}'


@pytest.mark.parametrize("seed", range(4))
def test_nodes_in_the_graph(seed: int, tmp_path: Path) -> None:
    names = names_of(seed)
    model = graph_model(tmp_path, model_text(names))
    rows = rows_of(model)
    at = {model.drawn.graph.names[rows._vertex(n)]: n
          for n, row in enumerate(rows.rows) if row.fold is None}  # fmt: skip
    told = [name for name in names if name in at]
    check(lambda place, width: rows.line(at[told[place]], width), told)


@pytest.mark.parametrize("seed", range(4))
def test_findings_of_models_and_engines(seed: int, tmp_path: Path) -> None:
    names = names_of(seed)
    document = Document.open(models.write(tmp_path, model_text(names)))
    nodes = [document.main.find(name) for name in names]
    found = [Finding("warning", "rule", "bad", document.main, node) for node in nodes]
    check(FindingLines(found).line, names)
    plans = [PlanFinding(at, "r", "note", "short", "do", 1.0) for at in range(len(names))]
    check(FindingRows(plans, dict(enumerate(names))).line, names, "link")


@pytest.mark.parametrize("seed", range(4))
def test_nodes_in_the_list(seed: int, tmp_path: Path) -> None:
    names = names_of(seed)
    explorer = ExplorerModel(Document.open(models.write(tmp_path, model_text(names))))
    shown = explorer.rows()
    rows = ExplorerRows(shown, lambda item: None, explorer, lambda entry: False)
    told = [
        (at, item.label) for at, item in enumerate(shown.items) if isinstance(item, ExplorerEntry)
    ]
    for width in WIDTHS:
        disambiguated([(name, rows.line(at, width)[3:]) for at, name in told], "")


@pytest.mark.parametrize("seed", range(8))
def test_rows_with_different_room(seed: int) -> None:
    dice, names = random.Random(seed), names_of(seed)
    listed = ListedNames(names, 8)
    disambiguated([(name, [(listed.cut(name, dice.randint(12, 60)), "")]) for name in names], "")
    assert all(cell_width(listed.cut(name, 5)) <= 5 for name in names)
    # A very long list is not looked at as a whole.
    alone = ListedNames((f"{'a' * 40}{n}" for n in range(10**6)), 8)
    assert alone.cut(f"{'a' * 40}77", 12) == "…aaaaaaaaa77"
