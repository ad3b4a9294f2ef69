"""Build the documentation as a site with search, into ``build/site``. Run it with ``make site``.

The pages are those of ``docs``, in the order of ``docs/README.md``, and those in the root that they
link to. A link to a page or heading that is not there fails the build.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build"
PAGES = BUILD / "pages"
OF_ROOT = ("CHANGELOG.md", "CONTRIBUTING.md", "NOTICE.md", "SECURITY.md")
"""Pages of the root, which the site has below ``project``."""

CONFIG = """\
[project]
site_name = "dld"
site_description = "Look inside, speed up and check ONNX models in a terminal"
docs_dir = "pages"
site_dir = "site"
use_directory_urls = false
nav = [{nav}]

[project.theme]
font = false  # no request to another host
features = ["navigation.sections", "search.highlight", "content.code.copy"]

[[project.theme.palette]]
media = "(prefers-color-scheme: light)"
scheme = "default"

[[project.theme.palette]]
media = "(prefers-color-scheme: dark)"
scheme = "slate"
"""


def nav() -> Iterator[tuple[str, list[str]]]:
    """Yield the sections of ``docs/README.md`` with their pages."""
    text = (ROOT / "docs/README.md").read_text(encoding="utf-8")
    for title, rows in re.findall(r"^\*\*([^*\n]+)\*\*$(.*?)(?=^\*\*|\Z)", text, re.M | re.S):
        yield title, re.findall(r"^\| \[[^\]]+\]\(([^)#]+\.md)\)", rows, re.M)


def staged(text: str, folder: Path) -> str:
    """Return the text of a page with links as the site has its pages, and Markdown in details.

    Args:
        text: Markdown.
        folder: Where the page lies in the repository, relative to its root.
    """

    def moved(found: re.Match[str]) -> str:
        path, anchor = found[1], found[2]
        to = (ROOT / folder / path).resolve()
        if re.match(r"[a-z]+:", path) or not to.is_relative_to(ROOT):
            return found[0]
        inside = to.relative_to(ROOT)
        if str(inside) in OF_ROOT:
            inside = Path("docs/project") / inside
        if not inside.is_relative_to("docs"):
            return found[0]  # not there: the build says so
        here = ROOT / ("docs/project" if str(folder) == "." else folder)
        up = Path(*[".."] * len(here.relative_to(ROOT / "docs").parts))
        return f"]({(up / inside.relative_to('docs')).as_posix()}{anchor})"

    text = text.replace("<details>", '<details markdown="1">')
    return re.sub(r"\]\(([^)#\s]+)((?:#[^)\s]*)?)\)", moved, text)


def main() -> int:
    """Build the site, and return the exit status of the builder."""
    shutil.rmtree(PAGES, ignore_errors=True)
    shutil.copytree(ROOT / "docs", PAGES)
    for path in (ROOT / "docs").rglob("*.md"):
        inside = path.relative_to(ROOT / "docs")
        text = staged(path.read_text(encoding="utf-8"), path.parent.relative_to(ROOT))
        (PAGES / inside).write_text(text, encoding="utf-8")
    for name in OF_ROOT:
        text = staged((ROOT / name).read_text(encoding="utf-8"), Path())
        (PAGES / "project" / name).write_text(text, encoding="utf-8")
    sections = dict(nav())
    sections["Project"] += [f"project/{name}" for name in OF_ROOT]
    tables = [
        f"{{ {json.dumps(title)} = {json.dumps(pages)} }}" for title, pages in sections.items()
    ]
    inline = ", ".join((json.dumps("README.md"), *tables))
    config = BUILD / "zensical.toml"
    config.write_text(CONFIG.format(nav=inline), encoding="utf-8")
    program = Path(sys.executable).with_name("zensical")
    return subprocess.run([program, "build", "--strict", "-f", str(config)]).returncode


if __name__ == "__main__":
    sys.exit(main())
