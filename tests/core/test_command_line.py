"""The commands of the command line: what is a command, and what is a path."""

from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.command_line import are_paths, is_path


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
