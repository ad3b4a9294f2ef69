from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.errors import InputError, SaveError, UsageError
from dld_tui.core.settings import saved_targets
from dld_tui.core.settings.saved_targets import Connection

FULL = Connection(
    "orin", "orin.lan", 2222, "me", "key", Path("/k y"), Path("~/known"), "gate", "", False,
    "/data/dld", "python3.12", {"A": "b 'c'\n\x1b"}, ("srun", "--gres=gpu:1"), "keyring",
)  # fmt: skip


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config" / "targets.toml"


def test_what_was_saved_is_loaded(file: Path) -> None:
    saved_targets.save(FULL, file)
    saved_targets.save(Connection("box", "10.0.0.7"), file)
    assert saved_targets.load(file) == {"orin": FULL, "box": Connection("box", "10.0.0.7")}
    assert saved_targets.find("orin", file) == FULL
    assert file.parent.stat().st_mode & 0o777 == 0o700


def test_only_its_owner_may_read_the_file(file: Path) -> None:
    saved_targets.save(FULL, file)
    assert file.stat().st_mode & 0o777 == 0o600
    file.chmod(0o664)  # as earlier versions wrote it
    saved_targets.save(Connection("box", "a"), file)
    assert file.stat().st_mode & 0o777 == 0o600
    file.chmod(0o664)
    saved_targets.remove("orin", file)
    assert file.stat().st_mode & 0o777 == 0o600


def test_only_what_differs_is_written_and_comments_stay(file: Path) -> None:
    file.parent.mkdir()
    file.write_text('# mine\n[box]\nhost = "a"  # near the window\nuser = "me"\n')
    saved_targets.save(Connection("box", "b"), file)
    assert file.read_text() == '# mine\n[box]\nhost = "b"\n' or "# mine" in file.read_text()
    assert "user" not in file.read_text()
    assert saved_targets.load(file) == {"box": Connection("box", "b")}


def test_nothing_is_there_at_first(file: Path) -> None:
    assert saved_targets.load(file) == {}
    with pytest.raises(UsageError, match="dld target add"):
        saved_targets.find("box", file)
    with pytest.raises(UsageError, match="'box'"):
        saved_targets.remove("box", file)
    assert saved_targets.store_path().name == "targets.toml"


def test_a_target_is_forgotten(file: Path) -> None:
    saved_targets.save(FULL, file)
    saved_targets.save(Connection("box", "a"), file)
    saved_targets.remove("orin", file)
    assert list(saved_targets.load(file)) == ["box"]
    with pytest.raises(UsageError, match="Known targets: box"):
        saved_targets.find("orin", file)


def test_what_cannot_be_used_is_not_saved(file: Path) -> None:
    with pytest.raises(UsageError):
        saved_targets.save(Connection("a b", "c"), file)
    assert not file.exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[box", "not valid TOML"),
        ("\udcff", "cannot be read"),
        ("box = 1", "expected a table"),
        ("[box]\nport = 22", "no host"),
        ('[box]\nhost = "a"\nport = "22"', "port is '22', not a int"),
        ('[box]\nhost = "a"\nport = true', "not a int"),
        ('[box]\nhost = "a"\npassword = "x"', "unknown setting 'password'"),
        ('[box]\nhost = "a"\nlauncher = [1]', "text only"),
        ('[box]\nhost = "a"\n[box.environment]\nA = 1', "text only"),
        ('["a b"]\nhost = "a"', "the name 'a b'"),
        ('[box]\nhost = "-oProxyCommand=id"', "not a host name"),
    ],
)
def test_a_wrong_file_is_named(file: Path, text: str, words: str) -> None:
    file.parent.mkdir()
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(InputError, match=words) as caught:
        saved_targets.load(file)
    assert str(file) in str(caught.value)


def test_a_folder_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SaveError):
        saved_targets.save(FULL, tmp_path / "file" / "targets.toml")
