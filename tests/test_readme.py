"""The commands in the README and the documentation work."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from dld_tui import commands
from dld_tui.cli.group import dld
from dld_tui.core.command_line import COMMANDS
from tests.support import models

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
PAGES = [README, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")]


def shell_lines(page: Path) -> list[str]:
    """Return the commands of the ``sh`` blocks of a page."""
    blocks = re.findall(r"```sh\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line.strip()]


def make_targets() -> set[str]:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z0-9-]+):", text, re.MULTILINE))


def test_every_make_target_that_is_named_exists() -> None:
    named = set()
    for page in PAGES:
        named |= set(re.findall(r"(?:`|^)make ([a-z0-9-]+)", page.read_text(), re.MULTILINE))
    assert {"demo", "test", "check", "bench", "wheels"} <= named
    assert named <= make_targets()


def test_the_readme_has_the_two_commands_and_the_picture() -> None:
    lines = shell_lines(README)
    assert lines[:2] == ["make demo", "make test"]
    assert "docs/images/workspace.svg" in README.read_text()


@pytest.mark.skipif(importlib.util.find_spec("onnxruntime") is None, reason="no onnxruntime here")
def test_the_commands_of_the_readme_run(tmp_path: Path) -> None:
    run = [line for line in shell_lines(README) if line.startswith("dld ")]
    assert len(run) >= 6
    text = models.CHAIN.replace(", float[2] unused = {5, 6}", "")
    models.write(tmp_path, text, "model.onnx")  # the reader's own
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    for line in run:
        command = [sys.executable, "-m", "dld_tui", *shlex.split(line)[1:]]
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, (line, done.stderr)
        assert done.stderr in ("", "no findings\n"), line


def test_every_command_is_documented() -> None:
    page = (ROOT / "docs/reference/commands.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"^## `dld (\w+)", page, re.MULTILINE))
    assert documented == {row.name for row in COMMANDS if not row.hidden}


TRTEXEC = {"--exportProfile", "--exportTimes"}
"""Options of another program that the reference of our commands names."""


def options_of(command: click.Command, context: click.Context) -> set[str]:
    """Return all options of a command and of the commands below it."""
    options = {
        option
        for parameter in command.params
        if isinstance(parameter, click.Option)
        for option in (*parameter.opts, *parameter.secondary_opts)
    }
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            options |= options_of(below, click.Context(below, parent=context))
    return options


def test_options_of_the_command_reference_exist() -> None:
    page = (ROOT / "docs/reference/commands.md").read_text(encoding="utf-8")
    named = set(re.findall(r"(?<![\w-])--[a-zA-Z][\w-]*", page))
    assert len(named) > 150
    assert named - options_of(dld, click.Context(dld)) - {"--help"} - TRTEXEC == set()


def test_paths_that_developers_read_of_exist() -> None:
    """Pages name modules below ``src/dld_tui``, tests, benchmarks and scripts."""
    paths, files = set(), set()
    for page in (ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        paths |= set(re.findall(r"`([a-z_]+/[a-z_/]+\.py)\b", text))
        if page.name in ("CONTRIBUTING.md", "architecture.md"):
            paths |= set(re.findall(r"`([a-z_]+/[a-z_/]+(?:\.md)?)`", text))
            files |= set(re.findall(r"`([a-z_]+\.py)`", text))
    assert len(paths) > 40
    sources = (ROOT / "src" / "dld_tui", ROOT)
    assert {path for path in paths if not any((one / path).exists() for one in sources)} == set()
    assert files - {path.name for path in (ROOT / "src").rglob("*.py")} == set()


NAMES = {
    "←": "left", "Enter": "enter", "Backspace": "backspace", "Space": "space", "Tab": "tab",
    "/": "slash", "?": "question_mark", ".": "full_stop",
    "[": "left_square_bracket", "]": "right_square_bracket",
}  # fmt: skip


def test_keys_of_the_readme_are_bound() -> None:
    bound = {key for row in commands.COMMANDS for key in row.keys.split(",")} | {"tab"}
    table = re.findall(r"^\| .* \|$", README.read_text(encoding="utf-8"), re.MULTILINE)[2:]
    keys = [
        key
        for row in table
        for cell in row.strip("|").split("|")[::2]
        for key in re.findall(r"`([^`]+)`", cell)
    ]
    assert len(keys) > 30
    for key in keys:
        for part in key.split() if key == "h j k l" else [key]:
            name = NAMES.get(part, part.replace("Ctrl", "ctrl").replace("Shift", "shift"))
            if name.startswith("ctrl+"):
                name = name.lower()
            assert name in bound or name.lower() in bound, key
