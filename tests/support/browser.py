"""A page in a real browser without a window, where there is one."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from dld_tui.core.tables.html_page import digest

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
)


def browser() -> str:
    """Return the browser's path; skip the test where there is none."""
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None:
        pytest.skip("no Chromium here: install it to test pages in a browser")
    return found


def dom_after(page: str, script: str, folder: Path) -> str:
    """Return a page's document after a script of the test ran on it.

    The script is put last into the page and its hash into the page's policy, which else stays.
    """
    browser()
    assert "script-src '" in page
    page = page.replace("script-src '", f"script-src '{digest(script)}' '", 1)
    page = page.replace("</body>", f"<script>{script}</script></body>")
    target = folder / "page.html"
    target.write_text(page, encoding="utf-8")
    return dom_of(target, folder)


def dom_of(target: Path, folder: Path) -> str:
    """Return the document that a browser makes of a file, after its scripts; it may take 2 min."""
    program = browser()
    done = subprocess.run(
        [program, *_FLAGS, f"--user-data-dir={folder / 'profile'}", "--dump-dom", target.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout
