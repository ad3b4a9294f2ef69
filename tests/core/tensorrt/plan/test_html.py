from __future__ import annotations

import re
from pathlib import Path

import pytest

from dld_tui.core.tables.html_page import digest
from dld_tui.core.tensorrt.plan.engine_plan import missing
from dld_tui.core.tensorrt.plan.html import plan_page, write_page
from dld_tui.core.tensorrt.plan.lint import findings
from dld_tui.core.tensorrt.plan.mapping import map_plan
from dld_tui.core.tensorrt.plan.reader import open_plan
from tests.support.engine_files import HOSTILE, write_engine


def page_of(path: Path) -> str:
    plan = open_plan(path)
    mapping = map_plan(plan)
    return plan_page(plan, findings(plan, mapping), mapping)


def test_the_page_has_all_tables_and_asks_nothing_of_anybody(tmp_path: Path) -> None:
    path = write_engine(tmp_path, timing=True)
    page = page_of(path)
    for anchor in ("findings", "types", "layers", "convolutions", "reformats", "memory", "graph"):
        assert f'<section id="{anchor}">' in page
    assert all(text in page for text in ("NVIDIA A100", "sm80_xmma_fprop_int8", "50.0"))
    assert not re.search(r"(?:src|href)=\"(?!#)", page.replace("http://www.w3.org/2000/svg", ""))
    assert "style=" not in page.replace("style-src", "")
    styles = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    assert len(styles) == 2
    assert all(digest(style) in page for style in styles)
    rules = [rule.partition("{")[0] for rule in styles[1].split("}") if rule]
    assert rules
    parts = [part.strip() for rule in rules for part in rule.split(",")]
    assert all(part.startswith("#engine-graph ") for part in parts)
    assert page_of(path) == page


def test_foreign_names_are_text(tmp_path: Path) -> None:
    page = page_of(write_engine(tmp_path, hostile=True))
    assert HOSTILE not in page
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert "\\x1b[31m" in page


def test_names_alone_make_a_page_without_graph(tmp_path: Path) -> None:
    page = page_of(write_engine(tmp_path, names_only=True, profile=False))
    assert '<section id="graph">' not in page
    assert "--profilingVerbosity=detailed" in page
    assert "--exportProfile" in page


@pytest.mark.broad
def test_a_large_engine_is_not_drawn(tmp_path: Path) -> None:
    page = page_of(write_engine(tmp_path, count=130))
    assert '<section id="graph">' not in page
    assert "Layers (650)" in page


def test_write_page(tmp_path: Path) -> None:
    plan = open_plan(write_engine(tmp_path))
    assert write_page(plan, [], {}, tmp_path / "out.html") == []
    assert (tmp_path / "out.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_what_is_missing_is_said_with_how_to_get_it(tmp_path: Path) -> None:
    texts = missing(open_plan(write_engine(tmp_path, profile=False)))
    assert any("--exportProfile" in text for text in texts)
    assert any("--exportTimes" in text for text in texts)
    assert missing(open_plan(write_engine(tmp_path, timing=True))) == []
