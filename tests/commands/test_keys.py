from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from pathlib import Path

import pytest
from textual.binding import Binding
from textual.keys import _character_to_key

import dld_tui
from dld_tui.commands import all_commands
from dld_tui.commands.key_names import key_name, unknown_and_clashing, with_keys
from dld_tui.widgets.dialogs.dialogs import Dialog
from scripts.references import key_notes


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("ctrl+s", "^S"), ("ctrl+shift+s", "Ctrl+Shift+S"), ("f12", "F12"), ("insert", "Ins"),
        ("ctrl+pagedown", "^PgDn"), ("shift+backspace", "Shift+Backspace"), ("ctrl+@", "^Space"),
        ("ctrl+space", "^Space"), ("ctrl++", "^+"), ("ctrl+underscore", "^_"), ("ctrl+up", "^↑"),
        ("alt+enter", "Alt+Enter"), ("no_such_key", "no_such_key"), ("upper_b", "B"),
    ],
)  # fmt: skip
def test_keys_as_people_write_them(key: str, name: str) -> None:
    assert key_name(key) == name


@pytest.mark.parametrize(
    ("keys", "problems"),
    [
        ({}, []), ({"edit.undo": "f11"}, []), ({"edit.undo": ""}, []),
        ({"edit.rename": "u", "edit.undo": "f11"}, []),  # a key that another row gave up is free
        (
            {"no.such": "x", "edit.undo": "f1 , f11"},
            ["keys: no command 'no.such'", "keys: f1 is both edit.undo and app.help"],
        ),
    ],
)  # fmt: skip
def test_unknown_commands_and_clashes_are_told(keys: dict[str, str], problems: list[str]) -> None:
    assert unknown_and_clashing(keys) == problems


def test_no_key_of_the_table_is_printed_as_the_library_calls_it() -> None:
    for command in all_commands():
        for key in filter(None, command.keys.split(",")):
            name = key_name(key)
            assert "_" not in name.replace("^_", "") or name == "_", (command.id, key, name)
            assert "@" not in name or key == "at", (command.id, key, name)


def test_every_printable_key_has_its_character() -> None:
    for char in map(chr, range(33, 127)):
        assert key_name(_character_to_key(char)) == char, char


def test_hints_name_the_keys_that_the_user_has() -> None:
    text = "{job.again} again  {job.copy} copy"
    assert with_keys(text, {}) == "F5 again  y copy"
    assert with_keys(text, {"job.again": "ctrl+@,x"}) == "^Space again  y copy"
    assert with_keys("{graph.arrange} does it", {}) == '"arrange again" in the palette does it'


def test_a_letter_means_one_thing_everywhere() -> None:
    """The table of letters says what each means; a command with another meaning needs another."""
    letters = key_notes()["letters"]
    written = {letter: set(about["commands"].split(", ")) for letter, about in letters.items()}
    used: dict[str, set[str]] = {}
    for command in all_commands():
        for key in command.keys.split(","):
            if len(key) == 1 and key.isalpha():
                used.setdefault(key, set()).add(command.title)
    assert used == written
    meanings = {about["means"] for about in letters.values()}
    assert len(meanings) == len(letters), "two letters for one thing"


def test_titles_that_mean_one_thing_have_one_letter_or_one_each() -> None:
    letters: dict[str, set[str]] = {}
    for command in all_commands():
        own = {key for key in command.keys.split(",") if len(key) == 1 and key.isalpha()}
        if own:
            letters.setdefault(command.title, set()).update(own)
    assert {title: found for title, found in letters.items() if len(found) > 1} == {}


def test_dialogs_have_the_letters_of_the_pages() -> None:
    for module in pkgutil.walk_packages(dld_tui.__path__, "dld_tui."):
        if module.name.startswith(("dld_tui.widgets.", "dld_tui.screens.")):
            importlib.import_module(module.name)
    found: dict[str, set[str]] = {}
    waiting: list[type] = [Dialog]
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        for binding in Binding.make_bindings(vars(kind).get("BINDINGS", ())):
            if len(binding.key) == 1 and binding.key.isalpha():
                found.setdefault(binding.key, set()).add(binding.action)
    assert found == {
        "C": {"close"}, "a": {"declare", "import", "new"}, "d": {"clear", "remove"},
        "q": {"close"}, "u": {"undo"}, "y": {"copy"},
    }  # fmt: skip


SOURCE = Path(__file__).resolve().parents[2] / "src" / "dld_tui"
TABLES_OF_KEYS = {SOURCE / "widgets" / "commands" / name for name in ("table.py", "key_names.py")}
VIEWS = (SOURCE / "screens", SOURCE / "widgets")
PATHS = [SOURCE / "app.py", *(path for room in VIEWS for path in room.rglob("*.py"))]
PATHS = [path for path in PATHS if path not in TABLES_OF_KEYS]


def _texts(path: Path) -> list[tuple[str, str]]:
    """Return the texts of a module that are no documentation, with the classes that they are in."""
    found: list[tuple[str, str]] = []

    def visit(node: ast.AST, owner: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Constant):
                if isinstance(child.value, str):
                    found.append((owner, child.value))
            elif not (isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)):
                visit(child, child.name if isinstance(child, ast.ClassDef) else owner)

    visit(ast.parse(path.read_text(encoding="utf-8")), "")
    return found


HINT = re.compile(r"\{[a-z_]+\.")


LITERAL = re.compile(r"\bF([1-9]|1[0-2])\b|\bCtrl\+|\^([A-Z]|Pg)")
OF_DIALOGS = {  # these have keys that no command row has
    "selection.py", "nodes.py", "wiring.py", "search.py", "node_filter.py", "edit_bar.py",
    "dialogs.py",
}  # fmt: skip
KEY_WORDS = re.compile(r"(?<![\w{`.⇧^])(Esc|Enter|Space|Backspace|Del)(?!\w)")
LETTERS = re.compile(
    r"(?:^|[;:,.] |  )`?([B-Zb-z/?!=]|a(?= (?:adds|makes|declares|shows|sets|chooses|imports) ))`? "
    r"(?=[a-z]+s\b |[a-z]+(?: [a-z]+)?(?:  |$))"
)
OWN = {
    # Beside dialogs, what has keys that are no commands, so that nobody can change them.
    "AddNode", "ColumnList", "EditBar", "GridPane", "GuessedShapes", "OperatorsScreen", "Palette",
    "ParamForm", "SearchBar", "NodeSelection", "TypeList", "ValuePicker",
}  # fmt: skip
OWN_ESC = re.compile(r"\bEsc clears\b")
"""In a filter's list and in a marked range Esc is the list's own."""


@pytest.mark.broad
def test_texts_name_commands_that_there_are_and_no_keys_that_users_can_change() -> None:
    texts = [(path.name, owner, text) for path in PATHS for owner, text in _texts(path)]
    hints = [text for _, _, text in texts if HINT.search(text)]
    assert len(hints) > 50
    for text in hints:
        with_keys(text, {})  # an unknown one raises
    literal = {(name, text) for name, _, text in texts if LITERAL.search(text)}
    assert {name for name, _ in literal} <= OF_DIALOGS
    assert literal
    either = re.compile(f"{KEY_WORDS.pattern}|{LETTERS.pattern}")
    found = [
        (name, text)
        for name, owner, text in texts
        if " " in text and either.search(text) and not owner.endswith("Dialog")
        and owner not in OWN and not OWN_ESC.search(text)
    ]  # fmt: skip
    assert found == []
