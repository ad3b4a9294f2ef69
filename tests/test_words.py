"""Words that say nothing to a reader are in no text of the program."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import dld_tui
from scripts.command_tree import entries
from tests.support import words

SOURCE = Path(dld_tui.__file__).parent
WORDS = re.compile(
    r"\b(prec(?!-)|roof|arena|joined to ONNX|races?|claimed gain|by its place|focus 2)\b"
    r"|^Way$|^own$|node_…"
)
KEYS = {("activities/registry.py", "arena"), ("backends/onnxruntime/arena.py", "arena"),
        ("core/tune/journal.py", "race"), ("activities/convert/fp16.py", "own")}  # fmt: skip
"""What is no text: a word of a search, names in files, and another spelling of an option."""


def texts(tree: ast.AST) -> Iterator[str]:
    """Yield the strings of a module that are no docstrings."""
    documented = {
        id(statement.value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        for statement in node.body
        if isinstance(statement, ast.Expr)
    }
    for node in ast.walk(tree):
        if id(node) in documented or not isinstance(node, ast.Constant):
            continue
        if isinstance(node.value, str):
            yield node.value


def test_no_text_has_a_word_of_the_workshop() -> None:
    found = {
        (str(path.relative_to(SOURCE)), text)
        for path in SOURCE.rglob("*.py")
        for text in texts(ast.parse(path.read_text()))
        if WORDS.search(text)
    }
    assert found == KEYS


def test_a_planted_word_is_found() -> None:
    assert [text for text in texts(ast.parse("x = 'in its race'")) if WORDS.search(text)]


OF_OTHERS = ("backends/onnxruntime/runtime.py",)
"""Modules that look for words in what ONNX Runtime says."""
SEARCHED = {("screens/results/report.py", "what may help, recommendations, hints, make faster")}
"""What people may type to find a command."""


def test_texts_and_help_have_the_words_of_contributing() -> None:
    found = [
        (name, text, said)
        for path in SOURCE.rglob("*.py")
        if (name := str(path.relative_to(SOURCE))) not in OF_OTHERS
        for text in texts(ast.parse(path.read_text()))
        if words.is_sentence(text) and (name, text) not in SEARCHED
        for said in words.wrong(text)
    ]
    found += [
        (entry.name, text, said)
        for entry in entries()
        for text in (*entry.about, *(row.meaning for row in entry.rows))
        for said in words.wrong(text)
    ]
    assert found == []


def test_a_word_that_contributing_replaces_is_found() -> None:
    text = "The op has a free dimension and two blobs"
    assert len(list(words.wrong(text))) == 3
    assert not list(words.wrong("op_type, intra-op threads, {op}, `blob.onnx` and tops"))
    assert not words.is_sentence("remarks")
    assert not words.is_sentence(r"No Op (\\w+) registered")
