"""The recipes for containers name no base image, and copy what is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
RECIPES = sorted((ROOT / "containers").glob("*.Dockerfile"))


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.name)
def test_a_recipe(recipe: Path) -> None:
    lines = re.sub(r"\\\n", " ", recipe.read_text()).splitlines()
    steps = [line.split() for line in lines if line.strip() and not line.startswith("#")]
    assert steps[:2] == [["ARG", "BASE"], ["FROM", "${BASE}"]]
    assert {step[0] for step in steps} <= {"ARG", "FROM", "RUN", "COPY", "ENV", "WORKDIR", "CMD"}
    copied = [source for step in steps if step[0] == "COPY" for source in step[1:-1]]
    kept = Path(f"{recipe}.dockerignore").read_text().split()
    assert {f"!{source}" for source in copied} == {line for line in kept if line[0] == "!"}
    assert all((ROOT / source).exists() for source in copied)


def test_there_is_one_for_each_machine() -> None:
    assert [recipe.name for recipe in RECIPES] == ["l4t.Dockerfile", "x86_64.Dockerfile"]
