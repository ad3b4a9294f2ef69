from __future__ import annotations

import json
import sys
from operator import itemgetter

import pytest

from dld_tui.cli import output
from dld_tui.cli.output import write_json, write_table
from dld_tui.core.process import terminal
from dld_tui.core.tables.rendering import fitted_lines
from dld_tui.core.tables.table import Column, Table, Unit

COLUMNS: list[Column[tuple[str, float]]] = [
    Column("name", "name", itemgetter(0), keep="end"),
    Column("ms", "ms", itemgetter(1), Unit("ms", str)),
]
ROWS = [("/encoder/layers.0/attention/MatMul", 1.5), ("宽", 12.25)]


def test_json_has_no_nan(capsys: pytest.CaptureFixture[str]) -> None:
    write_json({"a": float("nan"), "b": [float("inf"), 1.5], "c": "\udcff\x1b"})
    text = capsys.readouterr().out
    assert json.loads(text) == {"a": None, "b": [None, 1.5], "c": "\udcff\x1b"}
    assert "\x1b" not in text


def test_table_is_whole_in_a_pipe(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    write_table(Table(COLUMNS, ROWS))
    assert capsys.readouterr().out.splitlines() == [
        "name                                   ms",
        "/encoder/layers.0/attention/MatMul    1.5",
        "宽                                  12.25",
    ]


def test_table_fits_a_terminal_and_keeps_the_end_of_names(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "24")
    monkeypatch.setattr(output, "is_terminal", lambda stream: stream is sys.stdout)
    write_table(Table(COLUMNS, ROWS))
    assert capsys.readouterr().out.splitlines() == [
        "name                  ms",
        "/encoder…n/MatMul    1.5",
        "宽                 12.25",
    ]


def test_table_without_rows_is_its_titles(capsys: pytest.CaptureFixture[str]) -> None:
    write_table(Table(COLUMNS, []))
    assert capsys.readouterr().out == "name  ms\n"


def test_dumb_terminal_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal:
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    assert terminal.is_terminal(stream)  # type: ignore[arg-type]
    monkeypatch.setenv("TERM", "dumb")
    assert not terminal.is_terminal(stream)  # type: ignore[arg-type]
    assert not terminal.is_terminal(None)


def test_texts_give_way_evenly_and_columns_by_their_priority() -> None:
    columns: list[Column[str]] = [
        Column("name", "name", lambda row: f"/layers.0/attention/{row}", keep="end"),
        Column("from", "from", lambda row: f"a format of {row}, which is long", priority=2),
        Column("cause", "cause", lambda row: f"a long choice of {row} by a builder"),
    ]
    assert fitted_lines(Table(columns, ["MatMul", "Add"]), 42) == (
        [
            "name                  cause",
            "….0/attention/MatMul  a long choice of Ma…",
            "…ers.0/attention/Add  a long choice of Ad…",
        ],
        ["from"],
    )
