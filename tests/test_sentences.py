"""No program goes by a text for people: states are enumerations, and notes have kinds."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from scripts.measure_structure import Source
from scripts.sentences import COMMANDS, READERS, WORDS, Place, places

ROOT = Path(__file__).resolve().parents[1]
HEAD = "import re\nfrom enum import Enum\nfrom dld_tui.other import TOLD\n"


def found(folder: Path, code: str, module: str = "planted") -> list[Place]:
    """Return the places of a package with one module, and of one that it imports from."""
    package = folder / "src" / "dld_tui"
    path = package.joinpath(*module.split(".")).with_suffix(".py")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(HEAD + code)
    (package / "other.py").write_text('TOLD = "nothing was changed"\nMODE = "fast"\n')
    return places(Source(folder))


@cache
def own_places() -> list[Place]:
    """Return those of this package."""
    return places(Source(ROOT))


@pytest.mark.broad
def test_no_sentence_is_compared() -> None:
    wrong = [place for place in own_places() if not place.is_allowed]
    assert [f"{place.module}:{place.line}: {place.code}" for place in wrong] == []


@pytest.mark.broad
def test_each_exception_is_needed() -> None:
    used = {place.module for place in own_places() if place.is_allowed}
    assert used == {*READERS, *WORDS, *COMMANDS}


@pytest.mark.parametrize(
    "code",
    [
        'def f(x): return x == "nothing was changed"',
        'def f(x): return "was changed" in x.message',
        'def f(x): return x.why not in ("", "it is switched off")',
        'def f(x): return x.startswith("the budget")',
        'def f(x): return x.startswith(("the budget was", "no time"))',
        'def f(x): return x.removeprefix("its name ").strip()',
        'def f(x, n): return x == f"the budget of {n} s"',
        'def f(x): return re.search(r"took over \\d+ s", x)',
        'def f(x): return re.match(r"^(\\d+)\\s+threads\\sare", x)',
        '_SAID = re.compile("loaded but not run")',
        'WHY = "there is no time"\ndef f(x): return x == WHY',
        'WHY: str = "there is no time"\ndef f(x): return x.endswith(WHY)',
        'WHYS = frozenset({"there is no time", "other"})\ndef f(x): return x in WHYS',
        'WHYS = {"there is no time": 1}\ndef f(x): return x in WHYS',
        "def f(x): return x == TOLD",
        "def f(x): return x in (TOLD, 3)",
        "from dld_tui import other\ndef f(x): return x == other.TOLD",
        "def f(x):\n    match x:\n        case 'there is no time': return 1",
        'def f(x): return {"there is no time": 1, "": 2}[x]',
    ],
)
def test_a_planted_comparison_is_found(tmp_path: Path, code: str) -> None:
    assert [place.is_allowed for place in found(tmp_path, code)] == [False]


@pytest.mark.parametrize(
    "code",
    [
        'def f(x): return x == "fast"',
        'def f(x): return " + " in x',
        'def f(x): return x.split(", ")',
        'def f(x): return re.match(r"(\\w+)\\s*=\\s*(\\w+)", x)',
        'def f(x): raise ValueError(f"the budget of {x} was spent")',
        'class State(Enum):\n    LATE = "there is no time"\ndef f(x): return x is State.LATE',
        "from dld_tui import other\ndef f(x): return x == other.MODE",
        'def f(x): return "no time" if x else "there is time"',
    ],
)
def test_states_names_and_separators_may_be_compared(tmp_path: Path, code: str) -> None:
    assert found(tmp_path, code) == []


def test_the_reader_of_another_program_needs_a_named_pattern(tmp_path: Path) -> None:
    reader = "backends.tensorrt.log"
    named = '_SAYS = "Building the engine"\ndef f(x): return x == _SAYS'
    assert [place.is_allowed for place in found(tmp_path, named, reader)] == [True]
    inline = 'def f(x): return x == "Building the engine"'
    assert [place.is_allowed for place in found(tmp_path, inline, reader)] == [False]
