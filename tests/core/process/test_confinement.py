"""What an agent directs writes and reads texts in its folders alone, and runs no code of others."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from dld_tui.activities.profile.onnxruntime import Request as Profile
from dld_tui.activities.reduce import Request as Reduce
from dld_tui.core.errors import UsageError
from dld_tui.core.files.permission import require_free
from dld_tui.core.files.writer import move, write_text
from dld_tui.core.model.document.scripting.scripts import locate_files
from dld_tui.core.model.rewrite.rule import rules_of
from dld_tui.core.params import validate
from dld_tui.core.process import plugins
from dld_tui.core.process.confinement import confined_to, is_confined, require_allowed
from dld_tui.core.types import JSON
from tests.support import toy_package


@pytest.fixture
def allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "allowed"
    folder.mkdir()
    for name, value in confined_to([folder]).items():
        monkeypatch.setenv(name, value)
    return folder


def test_without_an_agent_every_path_is_allowed(tmp_path: Path) -> None:
    assert not is_confined()
    require_allowed(tmp_path / "any")
    write_text(tmp_path / "any", "text")


def test_no_folder_means_that_nothing_is_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in confined_to([]).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UsageError, match="outside the allowed folders"):
        require_allowed(tmp_path)


def test_what_is_inside(allowed: Path) -> None:
    (allowed / "deep").mkdir()
    for path in (allowed / "a", allowed / "deep" / "b", allowed / "deep" / ".." / "c"):
        require_allowed(path)
        write_text(path, "text")
        assert path.read_text() == "text"


def test_what_is_outside(allowed: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("old")
    (allowed / "link").symlink_to(secret)
    (allowed / "away").symlink_to(tmp_path)
    (tmp_path / "allowed-too").mkdir()
    for path in (
        secret,
        allowed / ".." / "secret",
        allowed / "link",
        allowed / "away" / "new",
        tmp_path / "allowed-too" / "x",  # begins with the same letters
        Path("relative"),
    ):
        with pytest.raises(UsageError, match="outside"):
            write_text(path, "new", overwrite=True)
        with pytest.raises(UsageError, match="outside"):
            require_free([path], force=True)
    assert secret.read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == ["allowed", "allowed-too", "secret"]


def test_nothing_is_renamed_to_the_outside(allowed: Path, tmp_path: Path) -> None:
    (allowed / "a").write_text("text")
    with pytest.raises(UsageError, match="outside"):
        move(allowed / "a", tmp_path / "b", overwrite=True)
    move(allowed / "a", allowed / "b")
    assert os.listdir(allowed) == ["b"]


def test_texts_are_read_inside_alone(allowed: Path, tmp_path: Path) -> None:
    for folder in (tmp_path, allowed):
        (folder / "rules").write_text("rule gone: removes it\nIdentity(x) => x\n")
    assert [rule.name for rule in rules_of([str(allowed / "rules")])] == ["gone"]
    with pytest.raises(UsageError, match="outside"):
        rules_of([str(tmp_path / "rules")])
    payload: JSON = {"file": "data", "sha256": "0", "length": 1}
    assert locate_files({1: {"edit": "x", "at": [payload]}}, allowed)
    with pytest.raises(UsageError, match="outside"):
        locate_files({1: {"edit": "x", "at": [payload]}}, tmp_path)


def test_no_code_of_others_runs(
    allowed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Path("m.onnx")
    validate(Profile(model, threads=2))
    for flag, request in (
        ("custom-op-library", Profile(model, custom_op_library=("x.so",))),
        ("ep-library", Profile(model, ep_library=("x.so",))),
        ("provider-option", Profile(model, provider_option=("x=y",))),
        ("session-config", Profile(model, session_config=("x=y",))),
    ):
        with pytest.raises(UsageError, match=f"--{flag} runs code"):
            validate(request)
    with pytest.raises(UsageError, match="--check runs code"):
        validate(Reduce(model=model, check="true", output=allowed / "small.onnx"))
    toy_package.install(tmp_path, monkeypatch)
    assert "count_bytes" not in {one.name for one in plugins.plugins("activities", object)}
    assert "triton" in {one.name for one in plugins.plugins("commands", object)}


def test_names_that_are_no_utf8_are_kept() -> None:
    folder = Path(os.fsdecode(b"/tmp/caf\xe9"))
    (text,) = confined_to([folder]).values()
    assert text.isascii()
    assert json.loads(text) == [str(folder)]
