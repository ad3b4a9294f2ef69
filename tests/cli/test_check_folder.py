"""``dld check FOLDER``."""

from __future__ import annotations

from pathlib import Path

from tests.support import decoders
from tests.support.cli import Dld


def test_a_folder_is_checked_with_its_configuration(dld: Dld, tmp_path: Path) -> None:
    good = dld("check", decoders.folder(tmp_path / "good"), "--level", "error")
    assert (good.status, good.out) == (0, "")
    bad = dld("check", decoders.folder(tmp_path / "bad", head_size=8), "--rule", "decoder:config")
    assert bad.status == 1
    assert "genai_config.json: head_size is 8" in bad.out
