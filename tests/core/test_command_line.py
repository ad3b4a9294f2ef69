"""The commands of the command line: what is a command, and what is a path."""

from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.command_line import are_paths, help_text, is_path
from dld_tui.core.command_line import commands as shell_commands


def test_names_are_given_once_and_help_lists_all_of_them_in_groups() -> None:
    names = [row.name for row in shell_commands()]
    assert len(set(names)) == len(names)
    text = help_text()
    rows = [
        line.split()[0] for line in text.splitlines() if line.startswith("  ") and line[2] != " "
    ]
    assert sorted(row.name for row in shell_commands() if not row.hidden) == sorted(
        row for row in rows if row in names
    )
    titles = [line for line in text.splitlines() if line.endswith(":") and line[0] != " "]
    assert titles == [
        "Options:",
        "Look:",
        "Change:",
        "Measure:",
        "Compare:",
        "TensorRT:",
        "Machines:",
    ]


@pytest.mark.parametrize(
    ("words", "are"),
    [
        ([], True),
        (["m.onnx"], True),
        (["a/b", "c.onnx"], True),
        (["inspect"], False),
        (["inspect", "m.onnx"], False),
        (["./inspect"], True),
        (["m.onnx", "--json"], False),
        (["unknown"], False),
    ],
)
def test_a_command_line_of_paths(words: list[str], are: bool) -> None:
    assert are_paths(words) is are


def test_the_name_of_a_file_is_a_path_but_not_that_of_a_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("plain", "check"):
        (tmp_path / name).touch()
    assert is_path("plain")
    assert not is_path("check")
