"""Editing in the workspace, by keys alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.widgets.parameters.edit_bar import name_editor
from tests.support import models

CONVOLUTION = """
<ir_version: 10, opset_import: ["" : 18]>
convolution (float[1, 4, 8, 8] x) => (int64[M] y)
<float[8, 4, 3, 3] w>
{
    [conv] a = Conv <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (x, w)
    [value] c = Constant <value = float[2] {1.5, 2.0}> ()
    [mode] b = Resize <mode = "linear"> (a, c, c)
    [out] y = Cast <to = 7> (b)
}
"""


@pytest.fixture
def convolution(tmp_path: Path) -> Path:
    return models.write(tmp_path, CONVOLUTION)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("plain/name", "plain/name"),
        ("it's", "it's"),
        ("back\\slash", "back\\slash"),
        ("esc\x1b[2J", "esc\\x1b[2J"),
        ("odd \udcff 'quoted'", "odd \\xff \\'quoted\\'"),
    ],
)
def test_names_are_edited_as_they_can_be_shown(name: str, shown: str) -> None:
    text, read = name_editor(name)
    assert text == shown
    assert read(text) == name
