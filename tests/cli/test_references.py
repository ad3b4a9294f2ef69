"""The generated references are those of the program, and what they say of JSON is true."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import click
import pytest

from dld_tui.cli.command import Command
from dld_tui.commands import all_commands
from scripts import references
from scripts.command_tree import Row, document, entries, record
from tests.support import page_files
from tests.support.cli import Dld

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.broad
def test_generated_files_are_current() -> None:
    old = [
        str(path.relative_to(ROOT))
        for path, text in references.written().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    assert old == [], "run python -m scripts.references"


def test_each_note_is_of_a_command() -> None:
    assert set(references.notes()) <= {entry.name for entry in entries()}


def test_each_key_has_its_place_on_the_page() -> None:
    assert set(references.key_notes()["scopes"]) == {row.scope for row in all_commands()}
    page = references.keys_page()
    assert [row.id for row in all_commands() if f"`{row.id}`" not in page] == []
    assert "| `^S` | Save the model. | `model.save` |" in page


def test_an_option_in_a_text_is_not_broken() -> None:
    @click.command(cls=Command)
    @click.option("--a", help="word " * 8 + "such as --keep-io-types, or well-known-words-too.")
    def command(a: str) -> None:
        """Do."""

    widths = range(30, 80)
    helps = [command.get_help(command.context_class(command, terminal_width=w)) for w in widths]
    assert all("--keep-io-types" in text for text in helps)
    assert not all("well-known-words-too" in text for text in helps)


RUN = {
    "dld inspect": "model.onnx",
    "dld check": "model.onnx",
    "dld find": "model.onnx Conv",
    "dld match": "model.onnx Relu(x)",
    "dld draw": "model.onnx -o out.svg",
    "dld operators": "Conv",
    "dld new": "new.onnx",
    "dld rewrite": "model.onnx Relu(x)=>Tanh(x) -o rewritten.onnx",
    "dld rename": "model.onnx --prefix a. -o renamed.onnx",
    "dld extract": "model.onnx --nodes /stem/conv/Conv -o part.onnx",
    "dld triton": "model.onnx -o models",
    "dld report": "before.dldprof",
    "dld compare": "before.dldprof after.dldprof",
    "dld plan": "tiny.engine.graph.json",
    "dld target list": "",
    "dld tool list": "",
    "dld doctor": "",
    "dld memory": "model.onnx --no-measure",
}
"""Commands that end soon, and their arguments."""


def said_of(command: str) -> set[str]:
    """Return the words that the note on the JSON document of a command has."""
    return set(re.findall(r"\w+", references.notes()[command]["json"]))


@pytest.mark.broad
@pytest.mark.skipif(importlib.util.find_spec("onnxruntime") is None, reason="no onnxruntime here")
def test_the_fields_of_a_document_are_those_that_the_page_names(
    dld: Dld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("model.onnx", "before.dldprof", "after.dldprof", "tiny.engine.graph.json"):
        page_files.FILES[name](tmp_path / name)
    for command, arguments in RUN.items():
        done = dld(*command.split()[1:], *arguments.split(), "--json")
        assert done.status in (0, 1), done.err
        unsaid = set(done.json) - said_of(command)
        assert unsaid == set(), f"{command}: not in {references.NOTES.name}"


def test_the_form_of_a_document_comes_from_its_type() -> None:
    from dld_tui.core.report.sweep import Sweep, SweepPoint

    assert record(Sweep).startswith(
        "{model, backend, axes: [{name, values: […]}], points: [{at: […]"
    )
    assert document(tuple[SweepPoint, ...], {SweepPoint}) == "[SweepPoint]"
    assert document(dict[str, int]) == "{NAME: …}"
    assert document(str | None) == ""


def test_an_option_of_an_earlier_command_is_only_named() -> None:
    rows = tuple(Row(f"--option-{i} N", "Does.") for i in range(9))
    one, *_ = [entry for entry in entries() if entry.name == "dld new"]
    shown: dict[str, list[Row]] = {}
    assert "| `--option-3 N` | Does. |" in list(references._options(one._replace(rows=rows), shown))
    other = one._replace(words=("dld", "other"), rows=(*rows, Row("--own", "Is.")))
    lines = list(references._options(other, shown))
    assert "| `--own` | Is. |" in lines
    assert lines[-2].startswith("As in [`dld new`](#dld-new): `--option-0`, `--option-1`")


def test_texts_of_a_man_page_are_no_requests() -> None:
    assert references._roff(".TH a\\b --c") == "\\&.TH a\\eb \\-\\-c"
