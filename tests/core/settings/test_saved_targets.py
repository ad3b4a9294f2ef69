from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.errors import SaveError, UsageError
from dld_tui.core.params import from_json
from dld_tui.core.settings import saved_targets
from dld_tui.core.settings.saved_targets import (
    Connection,
    ConnectionForm,
    changed,
    changed_by,
    connection_of,
    form_values,
    hops,
    problems,
    split_hop,
    validate,
)

GOOD = Connection("orin", "orin.lan")


def test_the_defaults_can_be_used() -> None:
    assert problems(GOOD) == []
    assert validate(GOOD) is GOOD
    assert GOOD.address == "orin.lan"
    assert changed(GOOD, user="me", port=2222).address == "me@orin.lan:2222"
    assert hash(GOOD) == hash(Connection("orin", "orin.lan"))


@pytest.mark.parametrize("host", ["10.0.0.7", "fe80::1%eth0", "::1", "[::1]", "a_b", "box-1.lan"])
def test_hosts_that_can_be_used(host: str) -> None:
    assert problems(changed(GOOD, host=host)) == []


def test_jump_hosts() -> None:
    assert "exclude" in problems(changed(GOOD, jump="a", proxy_command="b"))[0]
    assert hops("a, b:22 ,c") == ("a", "b:22", "c")
    assert hops("none") == hops("") == ()


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("gate", ("", "gate", None)),
        ("me@gate:2222", ("me", "gate", 2222)),
        ("ssh://me@gate:2222/", ("me", "gate", 2222)),
        ("me@corp@gate", ("me@corp", "gate", None)),
        ("[fe80::1]:22", ("", "fe80::1", 22)),
        ("fe80::1", ("", "fe80::1", None)),
    ],
)
def test_the_parts_of_a_jump_host(text: str, parts: tuple[str, str, int | None]) -> None:
    assert split_hop(text) == parts


@pytest.mark.parametrize("text", ["", "me@", "gate:0", "gate:x", "-x", "$(id)@gate"])
def test_what_is_no_jump_host(text: str) -> None:
    with pytest.raises(UsageError):
        split_hop(text)


FULL = Connection(
    "orin", "orin.lan", 2222, "me", "key", Path("/k"), Path("~/known"), "gate", "", False,
    "/data/dld", "python3.12", {"A": "b=c d"}, ("docker", "exec", "a b"), "keyring",
)  # fmt: skip


@pytest.mark.parametrize("connection", [FULL, Connection("box", "a")])
def test_a_connection_survives_its_form(connection: Connection) -> None:
    assert connection_of(from_json(ConnectionForm, form_values(connection))) == connection


def test_files_are_found_from_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = connection_of(ConnectionForm("a", "b", key=Path("id"), known_hosts=Path("~/known")))
    assert (made.key, made.known_hosts) == (tmp_path / "id", Path("~/known"))


@pytest.mark.parametrize(
    ("field", "value"),
    [("environment", ("A",)), ("launcher", "srun 'x"), ("host", ""), ("directory", "")],
)
def test_what_cannot_be_used_is_refused(field: str, value: object) -> None:
    values = {"name": "a", "host": "b", field: value}
    with pytest.raises(UsageError):
        connection_of(ConnectionForm(**values))  # type: ignore[arg-type]


def test_some_settings_change_and_the_others_stay() -> None:
    made = changed_by(FULL, {"port": 22, "user": None, "environment": ("B=1",), "key": Path()})
    assert (made.port, made.user, made.key) == (22, "me", None)
    assert made.environment == {"A": "b=c d", "B": "1"}
    assert changed_by(made, {"user": "", "launcher": ""}).launcher == ()


FULL_of_store = Connection(
    "orin", "orin.lan", 2222, "me", "key", Path("/k y"), Path("~/known"), "gate", "", False,
    "/data/dld", "python3.12", {"A": "b 'c'\n\x1b"}, ("srun", "--gres=gpu:1"), "keyring",
)  # fmt: skip


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config" / "targets.toml"


def test_what_was_saved_is_loaded(file: Path, tmp_path: Path) -> None:
    saved_targets.save(FULL_of_store, file)
    saved_targets.save(Connection("box", "10.0.0.7"), file)
    assert saved_targets.load(file) == {"orin": FULL_of_store, "box": Connection("box", "10.0.0.7")}
    assert saved_targets.find("orin", file) == FULL_of_store
    assert file.parent.stat().st_mode & 0o777 == 0o700
    (tmp_path / "file").touch()
    with pytest.raises(SaveError):
        saved_targets.save(FULL_of_store, tmp_path / "file" / "targets.toml")


def test_only_its_owner_may_read_the_file(file: Path) -> None:
    saved_targets.save(FULL_of_store, file)
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
    assert "# mine" in file.read_text()
    assert "user" not in file.read_text()
    assert saved_targets.load(file) == {"box": Connection("box", "b")}


def test_a_target_is_found_and_forgotten(file: Path) -> None:
    assert saved_targets.load(file) == {}
    with pytest.raises(UsageError, match="dld target add"):
        saved_targets.find("box", file)
    with pytest.raises(UsageError, match="'box'"):
        saved_targets.remove("box", file)
    with pytest.raises(UsageError):
        saved_targets.save(Connection("a b", "c"), file)
    assert not file.exists()
    assert saved_targets.store_path().name == "targets.toml"
    saved_targets.save(FULL_of_store, file)
    saved_targets.save(Connection("box", "a"), file)
    saved_targets.remove("orin", file)
    assert list(saved_targets.load(file)) == ["box"]
    with pytest.raises(UsageError, match="Known targets: box"):
        saved_targets.find("orin", file)
