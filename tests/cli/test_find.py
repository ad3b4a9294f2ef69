"""``dld find`` and ``dld match``: tables, JSON, exit status."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import models
from tests.support.cli import Dld


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return models.write(tmp_path, models.PLAIN_BRANCHES)


def test_find_lists_nodes(dld: Dld, model: Path) -> None:
    done = dld("find", model, "Relu|Add|Neg where in.shape[1] = 4")
    assert done.status == 0
    lines = [line.split() for line in done.out.splitlines()]
    assert lines[0] == ["scope", "node", "operator"]
    assert ["choose:then_branch", "inner", "Neg"] in lines
    assert done.err == "3 nodes\n"


def test_find_has_columns_and_json(dld: Dld, model: Path) -> None:
    done = dld("find", model, "Relu", "--columns", "out.shape, out.dtype", "--json")
    assert done.json == {
        "count": 1,
        "nodes": [
            {
                "scope": [],
                "node": "pre",
                "op_type": "Relu",
                "domain": "",
                "outputs": ["a"],
                "columns": {"out.shape": ["N", 4], "out.dtype": "float32"},
            }
        ],
    }
    assert "['N', 4]" in dld("find", model, "Relu", "--columns", "out.shape").out


def test_find_says_that_nothing_was_found(dld: Dld, model: Path) -> None:
    assert dld("find", model, "Conv") == dld("find", model, "Relu where alpha > 0")
    assert dld("find", model, "Conv").status == 1
    assert dld("find", model, "*", "--count").out == "6\n"
    assert "a query begins" in dld.fails(2, "find", model, "'x'")
    dld.fails(3, "find", model, "@gone.txt")


def test_match_lists_hits(dld: Dld, model: Path, tmp_path: Path) -> None:
    file = tmp_path / "pattern.txt"
    file.write_text("# a comment\n(x, w) => (y) {\n  h = Neg(x)\n  y = Add(h, w)\n}\n", "utf-8")
    done = dld("match", model, f"@{file}", "--json")
    assert done.status == 0
    hit = done.json["hits"][0]
    assert hit["scope"] == ["choose:then_branch"]
    assert hit["nodes"] == ["inner", ">t"]
    assert hit["values"] == {"x": "a", "h": "h", "w": "a", "y": "t"}
    assert hit["problem"] is None
    text = dld("match", model, "Add(Neg(x), x)")
    assert "inner, >t  Neg Add" in " ".join(text.out.splitlines()[1].split("\t")).replace(
        "   ", "  "
    )
    assert text.err == "1 match\n"


def test_match_says_what_cannot_be_replaced(dld: Dld, tmp_path: Path) -> None:
    path = models.write(tmp_path, models.TRANSPOSES)
    done = dld("match", path, "Transpose(Transpose(x))")
    assert "'a' is used elsewhere, too" in done.out
    assert dld("match", path, "Relu(Conv(x, w))").status == 1
    assert dld("match", path, "Transpose(&Transpose(x))", "--count").out == "2\n"
    assert "matches everything" in dld.fails(2, "match", path, "_(x)")
