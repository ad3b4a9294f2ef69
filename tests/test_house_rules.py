"""Each rule of scripts/house_rules.py finds what breaks it; ``make check`` applies them."""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path

import pytest

from scripts import house_rules, words
from scripts.measure_structure import Source
from scripts.sentences import Place, places

HEAD = "import re\nfrom enum import Enum\nfrom dld_tui.other import TOLD\n"


def planted(folder: Path, files: dict[str, str]) -> Source:
    """Return a checkout with these files, and what every rule looks for."""
    for name, text in {"Makefile": "", "CONTRIBUTING.md": "", "docs/project/verified.md": "",
                       ".ci/run": "", **files}.items():  # fmt: skip
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Source(folder)


def found(folder: Path, code: str, module: str = "planted") -> list[Place]:
    """Return the places of a package with one module, and of one that it imports from."""
    home = f"src/dld_tui/{module.replace('.', '/')}.py"
    other = 'TOLD = "nothing was changed"\nMODE = "fast"\n'
    return places(planted(folder, {home: HEAD + code, "src/dld_tui/other.py": other}))


RING = {f"src/dld_tui/m{i}.py": f"def f(): from dld_tui import m{(i + 1) % 4}" for i in range(4)}


@pytest.mark.parametrize(
    ("rule", "files", "line"),
    [
        (house_rules.rings_are_small, RING, "4 modules import each other"),
        (
            house_rules.modules_load_in_an_order,
            {"src/dld_tui/a.py": "from dld_tui import b", "src/dld_tui/b.py": "import dld_tui.a"},
            " -> ",
        ),
        (
            house_rules.core_is_tested_room_by_room,
            {
                "src/dld_tui/core/room/a.py": "from dld_tui.core.room import c",
                "src/dld_tui/core/room/b.py": "",
                "src/dld_tui/core/room/c.py": "",
                "tests/core/room/test_a.py": "from dld_tui.core.room import a",
            },
            "reaches dld_tui.core.room.b",
        ),
        (
            house_rules.benchmarks_and_scripts_are_needed,
            {
                "Makefile": "python -m scripts.one", "scripts/one.py": "from scripts import two",
                "scripts/two.py": "", "benchmarks/old.py": "",
            },
            "nothing needs benchmarks/old.py",
        ),
        (
            house_rules.nothing_is_marked_unfinished,
            {"src/dld_tui/a.py": "# TO" + "DO"},
            "dld_tui.a",
        ),
        (
            house_rules.style_sheets_take_colours_of_the_theme,
            {"src/dld_tui/styles/a.tcss": "/* #fff; */ A { color: #fff; }"},
            "a.tcss: #fff",
        ),
    ],
)  # fmt: skip
def test_what_breaks_a_rule_is_found_once(
    tmp_path: Path, rule: house_rules.Rule, files: dict[str, str], line: str
) -> None:
    (said,) = rule(planted(tmp_path, files))
    assert line in said
    assert list(rule(planted(tmp_path / "empty", {"src/dld_tui/fine.py": "import re"}))) == []


REFERRED = """
from dld_tui.room.base import Base, LIMIT as MOST

KINDS = ("a",)

class Child(Base[int]):
    '''See %s.'''

    size: int = 0

    def __init__(self) -> None:
        self.left = 1

    def grow(self) -> None: ...
"""


@pytest.mark.parametrize("name", [
    "mod:`.base`", "mod:`~dld_tui.room.base`", "mod:`room.base`", "mod:`..top`", "func:`..top.f`",
    "class:`.base.Base`", "meth:`.base.Base.shrink`", "attr:`Base.width`", "meth:`shrink`",
    "data:`KINDS`", "data:`MOST`", "attr:`size`", "attr:`left`", "meth:`Child.grow()`",
    "func:`the top <..top.f>`", "mod:`json`", "exc:`OSError`", "func:`os.replace`",
])  # fmt: skip
def test_a_reference_names_what_an_import_or_a_name_in_its_place_would(
    tmp_path: Path, name: str
) -> None:
    assert _references(tmp_path, name) == []


@pytest.mark.parametrize("name", [
    "mod:`.top`", "mod:`..base`", "mod:`dld_tui.base`", "func:`f`", "func:`.base.f`",
    "data:`LIMIT`", "attr:`height`", "meth:`Child.sink`", "attr:`.base.Base.left`", "class:`Other`",
    "data:`KINDS.a`", "attr:`MOST.a`",
])  # fmt: skip
def test_a_reference_to_nothing_is_found(tmp_path: Path, name: str) -> None:
    target = name.split("`")[1]
    assert _references(tmp_path, name) == [f"dld_tui.room.child:7: nothing is named {target}"]


def test_an_argument_that_nothing_takes_is_found(tmp_path: Path) -> None:
    code = """
class Pair:
    '''Two.

    Args:
        first: One.
        third: Another.
    '''

    first: int

def joined(pair, *more, sep, **rest):
    '''Join.

    Args:
        pair: Which.
        gone, more: Several,
            continued: so.
        **rest: Others.

    Raises:
        ValueError: Never.
    '''
"""
    said = house_rules.references_name_something(planted(tmp_path, {"src/dld_tui/a.py": code}))
    assert list(said) == ["dld_tui.a:2: nothing takes third", "dld_tui.a:12: nothing takes gone"]


def _references(folder: Path, name: str) -> list[str]:
    base = "LIMIT = 1\nclass Base(Generic[T]):\n    width: int\n    def shrink(self): ..."
    files = {"room/__init__": "", "room/base": base, "room/child": REFERRED % f":{name}",
             "top": "def f(): ..."}  # fmt: skip
    source = planted(folder, {f"src/dld_tui/{at}.py": code for at, code in files.items()})
    return list(house_rules.references_name_something(source))


def test_a_named_machine_is_found(tmp_path: Path) -> None:
    source = planted(tmp_path, {"src/dld_tui/a.py": "x = '/ro" + "ot/x'", "b.md": "a/ro" + "ot/x"})
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    assert list(house_rules.no_machine_is_named(source)) == [
        "b.md names a machine", "src/dld_tui/a.py names a machine"
    ]  # fmt: skip


def test_a_file_is_written_by_the_writer_only(tmp_path: Path) -> None:
    writers = {
        "a": "open(p, 'wb')", "b": "p.write_text(t)", "c": "import os; os.replace(a, b)",
        "d": "open(p); p.read_text(); x.replace(a, b)", "core/files/writer": "open(p, 'w')",
    }  # fmt: skip
    source = planted(tmp_path, {f"src/dld_tui/{name}.py": code for name, code in writers.items()})
    lines = list(house_rules.files_are_written_by_the_writer(source))
    assert [line for line in lines if "by itself" in line] == [
        "a writes by itself: open", "b writes by itself: write_text",
        "c writes by itself: replace",
    ]  # fmt: skip
    assert len(lines) == 3 + len(house_rules.WRITERS), "exceptions that nothing needs"


def test_csv_is_made_in_one_place(tmp_path: Path) -> None:
    made = "csv.writer(f)"
    files = {"src/dld_tui/core/tables/rendering.py": made, "src/dld_tui/a.py": made}
    (said,) = house_rules.csv_is_made_in_one_place(planted(tmp_path, files))
    assert said.startswith("dld_tui.a:")


def test_a_word_of_the_workshop_is_found(tmp_path: Path) -> None:
    code = '"""Its race."""\nx = "in its race"\ny = "the op is here"'
    rule = house_rules.texts_have_the_words_of_contributing
    said = list(rule(planted(tmp_path, {"src/dld_tui/a.py": code})))
    assert [line for line in said if line.startswith("dld_tui.a:")] == [
        "dld_tui.a: 'in its race' has a word of the workshop",
        "dld_tui.a: 'the op is here': 'op': say operator or node (CONTRIBUTING.md, Words)",
    ]
    assert len(said) == 2 + len(words.NO_TEXTS), "exceptions that nothing needs"


def test_docstrings_are_no_texts_of_the_program() -> None:
    tree = ast.parse('"""A."""\nclass A:\n    """B."""\n    x = 1\n    """C."""\ny = "D"')
    assert list(words.texts(ast.walk(tree))) == ["D"]


def test_a_word_that_contributing_replaces_is_found() -> None:
    text = "The op has a free dimension and two blobs"
    assert len(list(words.wrong(text))) == 3
    assert not list(words.wrong("op_type, intra-op threads, {op}, `blob.onnx` and tops"))
    assert not words.is_sentence("remarks")
    assert not words.is_sentence(r"No Op (\\w+) registered")


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
