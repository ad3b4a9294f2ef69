from __future__ import annotations

import importlib.metadata

import pytest

from scripts.type_stubs import PACKAGE, mended


def test_the_known_mistakes_are_mended() -> None:
    text = (
        "from __future__ import annotations\nclass A:\n"
        "    def size(self, in: list[int], out: list[int]) -> bool: ...\n"
        "    def add_scale_nd(self, a: int = 0, channel_axis: int) -> int: ...\n"
        "bool: int\n"
    )
    found = mended(text)
    assert "in_: list[int]" in found
    assert "-> builtins.bool" in found
    assert "channel_axis: int = ..." in found
    assert "\nbool: int" in found


def test_other_mistakes_are_told() -> None:
    with pytest.raises(SyntaxError):
        mended("def f(:\n")


def test_the_stubs_as_they_are() -> None:
    try:
        files = importlib.metadata.files(PACKAGE) or []
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"{PACKAGE} is not installed")
    stubs = [file for file in files if file.suffix == ".pyi"]
    assert stubs
    for file in stubs:
        assert mended(file.read_text(encoding="utf-8"))
