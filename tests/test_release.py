"""What a release says of itself is true and the same everywhere."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import tomlkit
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import dld_tui
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
