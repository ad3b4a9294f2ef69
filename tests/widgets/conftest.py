"""Widget tests draw with the Unicode glyphs, whatever an app in an earlier test has chosen."""

from __future__ import annotations

import pytest

from dld_tui.widgets.shell import glyphs
from tests.support import style_sheets

style_sheets.share()


@pytest.fixture(autouse=True)
def unicode_glyphs() -> None:
    glyphs.use("unicode")
