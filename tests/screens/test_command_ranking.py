"""How well commands fit what is typed."""

from __future__ import annotations

import pytest

from dld_tui.commands.command import Command
from dld_tui.screens.home.palette import is_meant, rank

SAVE = Command("x.save", "save", "Save the model.", synonyms=("write", "store it"))
SAVE_AS = Command("x.as", "save as", "Save under another name.")
SEARCH = Command("x.search", "search precision", "Find the nodes that must stay in fp32.")
ALL = (SEARCH, SAVE_AS, SAVE)


def order(query: str) -> list[str]:
    found = [(points, command.title) for command in ALL if (points := rank(query, command))]
    return [title for _, title in sorted(found, key=lambda row: row[0])]


@pytest.mark.parametrize(
    ("query", "titles"),
    [
        ("save", ["save", "save as"]),
        ("Save  AS", ["save as"]),
        ("sa", ["save", "save as"]),
        ("write", ["save"]),
        ("sto", ["save"]),
        ("it store", ["save"]),
        ("precision", ["search precision"]),
        ("fp32", ["search precision"]),
        ("name", ["save as"]),
        ("srch", ["search precision"]),
        ("prcision", ["search precision"]),
        ("half", []),
        ("e", []),
    ],
)
def test_what_fits_best_comes_first(query: str, titles: list[str]) -> None:
    assert order(query) == titles


def test_the_very_name_is_meant_and_its_beginning_is_not() -> None:
    meant = {query: is_meant(found) for query in ("save", "write", "sav", "writ")
             if (found := rank(query, SAVE)) is not None}  # fmt: skip
    assert meant == {"save": True, "write": True, "sav": False, "writ": False}
