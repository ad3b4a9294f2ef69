"""Nothing is replaced that nobody agreed to lose, whatever appears after the question."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from dld_tui.core.errors import SaveError, UsageError
from dld_tui.core.files import permission
from dld_tui.core.files.writer import (
    Output,
    StagedFile,
    move,
    write_bytes,
    write_pieces,
    write_set,
    write_text,
)


def test_an_output_that_exists_is_refused_without_force(tmp_path: Path) -> None:
    path = tmp_path / "out"
    permission.require_free([path], force=False)
    path.symlink_to(tmp_path / "nowhere")
    with pytest.raises(UsageError, match=r"the file exists\. Add --force"):
        permission.require_free([path], force=False)
    assert not permission.may_replace(path)
    permission.require_free([path], force=True)
    assert permission.may_replace(path)
    with pytest.raises(SaveError, match=r"the folder .*no does not exist\. mkdir -p .*no makes"):
        permission.require_free([tmp_path / "no" / "model.onnx"], force=True)
    with pytest.raises(UsageError, match="it is a folder"):
        permission.require_free([tmp_path], force=True)


def _file(path: Path) -> None:
    path.write_text("mine")


def _dangling(path: Path) -> None:
    path.symlink_to(path.parent / "nowhere")


def _link(path: Path) -> None:
    _file(path.with_name("other"))
    path.symlink_to("other")


def _hard_link(path: Path) -> None:
    _file(path.with_name("other"))
    os.link(path.with_name("other"), path)


@pytest.mark.parametrize("make", [_file, _dangling, _link, _hard_link, Path.mkdir])
def test_whatever_has_the_name_is_in_the_way(tmp_path: Path, make: Callable[[Path], None]) -> None:
    path = tmp_path / "out"
    make(path)
    assert permission.in_the_way([path, tmp_path / "free", path]) == [path]


@pytest.mark.parametrize("make", [_file, _link, _hard_link])
def test_the_writer_replaces_only_what_was_agreed_to(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    path = tmp_path / "out"
    make(path)
    with pytest.raises(SaveError, match="the file exists"):
        write_text(path, "new")
    assert path.read_text() == "mine"
    permission.agree([tmp_path / "sub" / ".." / "out"])  # another spelling
    write_text(path, "new")
    assert path.read_text() == "new"


def test_what_appears_meanwhile_or_is_in_the_way_stays(tmp_path: Path) -> None:
    path = tmp_path / "out"
    with StagedFile(path, 3) as staged:
        staged.seal()
        _file(path)
        with pytest.raises(SaveError, match="the file exists"):
            staged.commit()
    assert path.read_text() == "mine"
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]
    _file(tmp_path / "two")
    with pytest.raises(SaveError, match="the file exists"):
        write_set([Output(tmp_path / name, [b"new"]) for name in ("one", "two")])
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["out", "two"]


def test_moving_replaces_only_what_was_agreed_to(tmp_path: Path) -> None:
    source, target = tmp_path / "new", tmp_path / "out"
    source.write_text("new")
    _file(target)
    with pytest.raises(SaveError, match="the file exists"):
        move(source, target)
    assert (source.read_text(), target.read_text()) == ("new", "mine")
    permission.agree([target])
    move(source, target)
    assert target.read_text() == "new"
    assert not source.exists()


def test_what_took_long_gets_a_free_name(tmp_path: Path) -> None:
    path = tmp_path / "net.engine"
    assert permission.place(path) == path
    _file(path)
    assert permission.place(path) == tmp_path / "net-2.engine"
    permission.agree([path])
    assert permission.place(path) == path


@pytest.mark.parametrize("links", [True, False])
def test_a_file_made_by_somebody_meanwhile_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    if not links:
        monkeypatch.setattr("dld_tui.core.files.writer._HAS_UNNAMED", False)

        def refuse(*_: object, **__: object) -> None:
            raise PermissionError(errno.EPERM, "no hard links here")

        monkeypatch.setattr(os, "link", refuse)

    def somebody(_: Path) -> None:
        (tmp_path / "f").write_bytes(b"theirs")

    with pytest.raises(SaveError, match="the file exists"):
        write_pieces(tmp_path / "f", [b"ours"], verify=somebody)
    assert (tmp_path / "f").read_bytes() == b"theirs"
    assert sorted(os.listdir(tmp_path)) == ["f"]
    (tmp_path / "f").unlink()
    write_bytes(tmp_path / "f", b"ours")
    assert (tmp_path / "f").read_bytes() == b"ours"
