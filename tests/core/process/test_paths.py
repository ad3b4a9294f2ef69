from __future__ import annotations

import stat
from pathlib import Path

import pytest

from dld_tui.core.process import paths


def test_folders_follow_xdg(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "c"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "s"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "k"))
    assert paths.config_dir() == tmp_path / "c" / "dld-tui"
    assert paths.state_dir() == tmp_path / "s" / "dld-tui"
    assert paths.cache_dir() == tmp_path / "k" / "dld-tui"
    monkeypatch.setenv("NV_DLD_CACHE_DIR", str(tmp_path / "nv"))
    assert paths.unsaved_folder() == tmp_path / "nv" / "unsaved"


def test_a_folder_is_made_for_its_owner_only(tmp_path: Path) -> None:
    folder = paths.ensure(tmp_path / "a" / "b")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert paths.ensure(folder) == folder


def test_journals_of_new_models(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert not paths.has_new_journals()
    (paths.ensure(paths.journal_dir()) / "old-1.jsonl").touch()
    assert not paths.has_new_journals()
    (paths.journal_dir() / "new-1.jsonl").touch()
    assert paths.has_new_journals()


def test_short_paths() -> None:
    home = str(Path.home())
    assert paths.short(home + "/models/a.onnx") == "~/models/a.onnx"
    assert paths.short(home) == "~"
    assert paths.short(home + "-other/a") == home + "-other/a"


@pytest.mark.parametrize(
    ("names", "files", "told"),
    [
        (["a.json", "b.json"], ["/x/a.json", "/y/b.json"], ["a.json", "b.json"]),
        (["a.json", "a.json"], ["/x/a.json", "/y/a.json"], ["x/a.json", "y/a.json"]),
        (["a.json", "a.json"], ["/x/r/a.json", "/y/r/a.json"], ["x/r/a.json", "y/r/a.json"]),
        (["net", "net"], ["/x/a.json", "/x/b.json"], ["net (a.json)", "net (b.json)"]),
        (["net", "net", "c"], ["/x/a", "/y/a", "/c"], ["net (x/a)", "net (y/a)", "c"]),
        (["a", "a", "a"], ["/x/a", "/x/a", "/y/a"], ["x/a", "x/a", "y/a"]),
        (["a", "a"], ["/x/a", "/x/a"], ["a", "a"]),
        (["a", "a"], ["/a", "/x/a"], ["/a", "x/a"]),
    ],
)
def test_names_that_tell_apart(names: list[str], files: list[str], told: list[str]) -> None:
    assert paths.distinct_names(names, files) == told
