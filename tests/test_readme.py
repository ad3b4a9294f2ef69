"""The commands in the README and the documentation work."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click

from dld_tui import commands
from dld_tui.cli.group import dld

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


def test_the_readme_has_the_two_commands_and_a_picture() -> None:
    text = README.read_text(encoding="utf-8")
    assert shell_lines(README)[0].split("#")[0].strip() == "make demo"
    assert "`make test`" in text
    assert len(text.splitlines()) <= 90
    assert re.search(r"!\[.*\]\(docs/images/\w+\.svg\)", text)


def readme_rows() -> list[list[str]]:
    """Return what stands in backquotes in the cells of each row of the table of the README."""
    rows = re.findall(r"^\| (.*) \|$", README.read_text(encoding="utf-8"), re.MULTILINE)[1:]
    return [re.findall(r"`([^`]+)`", row.partition("|")[2]) for row in rows]


def test_the_commands_of_the_readme_can_be_given() -> None:
    context = click.Context(dld)
    given = [shlex.split(text)[1:] for row in readme_rows() for text in row if text[:4] == "dld "]
    run = [words for words in given if len(words) > 1]
    assert len(run) >= 10
    for words in run:
        name, command, rest = dld.resolve_command(context, words)
        while isinstance(command, click.Group):
            name, command, rest = command.resolve_command(context, rest)
        assert command is not None
        command.make_context(name, rest)


def test_paths_that_developers_read_of_exist() -> None:
    """Pages name modules below ``src/dld_tui``, tests, benchmarks and scripts."""
    paths, files = set(), set()
    for page in (ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        paths |= set(re.findall(r"`([a-z_]+/[a-z_/]+\.py)\b", text))
        if page.name in ("CONTRIBUTING.md", "architecture.md"):
            paths |= set(re.findall(r"`([a-z_]+/[a-z_/]+(?:\.md)?)`", text))
            files |= set(re.findall(r"`([a-z_]+\.py)`", text))
    assert len(paths) > 30
    sources = (ROOT / "src" / "dld_tui", ROOT)
    made = {path for path in paths if path.startswith("build/")}
    assert {p for p in paths - made if not any((one / p).exists() for one in sources)} == set()
    assert files - {path.name for path in (ROOT / "src").rglob("*.py")} == set()


NAMES = {"=": "equals_sign"}


def test_keys_of_the_readme_are_bound() -> None:
    bound = {key for row in commands.all_commands() for key in row.keys.split(",")}
    keys = [text for row in readme_rows() for text in row if text[:4] != "dld "]
    assert len(keys) > 10
    for key in keys:
        assert NAMES.get(key, key) in bound or key.lower() in bound, key
