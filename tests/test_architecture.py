from __future__ import annotations

import re

import pytest

from scripts.architecture import PAGE, ROOT, reduced

SRC = ROOT / "src" / "dld_tui"
TEXT = PAGE.read_text(encoding="utf-8")


def test_an_arrow_that_follows_from_others_is_left_out() -> None:
    graph = {"a": {"b", "c", "d"}, "b": {"c"}, "c": {"d"}, "d": set[str](), "e": {"d"}}
    assert reduced(graph) == {"a": {"b"}, "b": {"c"}, "c": {"d"}, "d": set(), "e": {"d"}}


@pytest.mark.parametrize("heading", ["Where is …", "One place for each concept"])
def test_the_places_that_the_page_names_exist(heading: str) -> None:
    section = TEXT.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    places = re.findall(r"`([a-z_]+/[\w/.]*)`", section)
    assert len(places) > 10
    assert [
        place for place in places if not (SRC / place).exists() and not (ROOT / place).exists()
    ] == []
