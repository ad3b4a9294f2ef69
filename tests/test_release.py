"""What a release and its README say is true and the same everywhere."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import click
import pytest
import tomlkit
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import dld_tui
from dld_tui import commands
from dld_tui.cli.group import dld
from scripts import runtimes, site

ROOT = Path(__file__).resolve().parents[1]
PROJECT: dict[str, Any] = tomlkit.parse((ROOT / "pyproject.toml").read_text("utf-8")).unwrap()


def test_the_version_is_the_same_everywhere() -> None:
    version = dld_tui.__version__
    assert str(Version(version)) == version
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^version: (.+)$", citation, re.MULTILINE) == [version]
    headings = re.findall(
        r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE
    )
    assert headings[0] == version


def test_the_changelog_is_by_kind() -> None:
    kinds = re.findall(r"^### (.+)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert set(kinds) <= {"Added", "Changed", "Deprecated", "Fixed", "Removed", "Security"}
    assert kinds == sorted(set(kinds))


def test_each_dependency_has_a_notice() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    wanted = {
        canonicalize_name(Requirement(one).name)
        for one in (*PROJECT["project"]["dependencies"],
                    *(r for name, rows in extras.items() if name != "dev" for r in rows))
    }  # fmt: skip
    noticed = re.findall(r"^\| ([\w-]+) \|", (ROOT / "NOTICE.md").read_text("utf-8"), re.MULTILINE)
    assert set(noticed) - {"package"} - {""} - {"---"} == wanted


def test_the_description_on_an_index_links_to_nothing_that_is_not_there() -> None:
    hook = PROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for one in hook["substitutions"]:
        text = re.sub(one["pattern"], one["replacement"], text)
    assert re.findall(r"\]\((?!https?:).*?\)", text) == []
    assert "![" not in text
    assert "<!--" not in text
    assert "What corresponds to what" in text
    assert "make demo" in text


def test_classifiers_name_the_pythons_that_are_supported() -> None:
    named = {line.rpartition(" ")[2] for line in PROJECT["project"]["classifiers"]
             if re.search(r":: 3\.\d+$", line)}  # fmt: skip
    assert min(named, key=Version) == PROJECT["project"]["requires-python"].removeprefix(">=")


def test_tests_that_other_runtimes_are_tried_with_exist() -> None:
    assert [name for name in runtimes.TESTED if not (ROOT / name).exists()] == []
    assert runtimes.oldest() == "1.23.0"


def test_each_page_is_in_the_contents_of_the_site() -> None:
    listed = {page for _, pages in site.nav() for page in pages}
    there = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    assert listed == there - {"README.md"}


@pytest.mark.parametrize(
    ("folder", "link", "moved"),
    [
        ("docs/guides", "](../start/install.md#extras)", "](../start/install.md#extras)"),
        ("docs/project", "](../../CONTRIBUTING.md#words)", "](../project/CONTRIBUTING.md#words)"),
        (".", "](docs/reference/plugins.md)", "](../reference/plugins.md)"),
        (".", "](CHANGELOG.md)", "](../project/CHANGELOG.md)"),
        ("docs", "](https://onnx.ai/a.md)", "](https://onnx.ai/a.md)"),
    ],
)
def test_links_of_the_site_lead_to_its_pages(folder: str, link: str, moved: str) -> None:
    assert site.staged(f"[a{link}", Path(folder)) == f"[a{moved}"


@pytest.mark.skipif(shutil.which("man") is None, reason="no man here")
def test_the_man_page_is_read_without_a_warning() -> None:
    page = ROOT / "share/man/man1/dld.1"
    done = subprocess.run(
        ["man", "--warnings", "-l", str(page)], capture_output=True, text=True,
        env={"PATH": "/usr/bin:/bin", "MANWIDTH": "100", "MANPAGER": "cat", "LC_ALL": "C.UTF-8"},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert "dld convert fp16" in done.stdout


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
