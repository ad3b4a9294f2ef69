from __future__ import annotations

import getpass
from pathlib import Path

import pytest

from dld_tui.core.errors import InputError, UsageError
from dld_tui.core.settings.saved_targets import Connection, changed
from dld_tui.core.settings.secrets import Secrets, passphrase_name, password_name
from dld_tui.targets.ssh import route as route_module
from dld_tui.targets.ssh.route import route
from dld_tui.targets.ssh.target import forget_secrets
from tests.support.links import write_config


@pytest.fixture(autouse=True)
def no_system_configuration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(route_module, "SYSTEM_CONFIG", tmp_path / "none")


def write(text: str, name: str = "config") -> Path:
    folder = Path.home() / ".ssh"
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    return file


def test_without_a_configuration() -> None:
    (hop,) = route(Connection("t", "box"))
    assert (hop.host, hop.port, hop.user) == ("box", 22, getpass.getuser())
    assert [path.name for path in hop.keys][:3] == ["id_ed25519", "id_ecdsa", "id_rsa"]
    assert hop.known_hosts[0] == Path.home() / ".ssh" / "known_hosts"
    assert not hop.keys_only
    assert not hop.has_ciphers


def test_the_configuration_fills_what_is_not_said() -> None:
    file = write(
        "Host box\n  HostName 10.0.0.7\n  Port 2222\n  User me\n  IdentityFile ~/.ssh/%r_key\n"
        "  IdentitiesOnly yes\n  UserKnownHostsFile ~/known_a ~/known_b\n  HostKeyAlias alias\n"
        "  IdentityAgent ~/agent\n  ConnectTimeout 7\n  Ciphers aes256-ctr\n"
    )
    (hop,) = route(Connection("t", "box"))
    assert (hop.alias, hop.host, hop.port, hop.user) == ("box", "10.0.0.7", 2222, "me")
    assert hop.keys == (Path.home() / ".ssh" / "me_key",)
    assert hop.keys_only
    assert hop.known_hosts[:2] == (Path.home() / "known_a", Path.home() / "known_b")
    assert hop.known_name == ("alias", 22)
    assert hop.agent == str(Path.home() / "agent")
    assert hop.timeout_s == 7
    assert hop.has_ciphers
    assert hop.config == (file,)
    said = Connection("t", "box", 22, "you", key=Path("/k"), known_hosts=Path("~/k"))
    (hop,) = route(said)
    assert (hop.port, hop.user, hop.keys) == (22, "you", (Path("/k"),))
    assert hop.known_hosts == (Path.home() / "k",)
    (hop,) = route(changed(said, config=False))
    assert (hop.host, hop.config) == ("box", ())


def test_included_files_and_the_first_value_wins() -> None:
    write("Include conf.d/*\nHost *\n  User all\n  Port 1\n")
    write("Host box\n  User included\n", "conf.d/one")
    (hop,) = route(Connection("t", "box"))
    assert (hop.user, hop.port) == ("included", 1)


def test_the_way_over_jump_hosts() -> None:
    write(
        "Host gate\n  HostName gate.lan\n  ProxyJump door\nHost door\n  Port 23\n"
        "Host inner\n  ProxyJump never\n"
    )
    hops = route(Connection("t", "box", jump="gate,me@inner:24"))
    assert [(hop.host, hop.port) for hop in hops] == [
        ("door", 23), ("gate.lan", 22), ("inner", 24), ("box", 22)
    ]  # fmt: skip
    assert hops[2].user == "me"
    assert [hop.host for hop in route(Connection("t", "gate"))] == ["door", "gate.lan"]
    assert [hop.host for hop in route(Connection("t", "gate", jump="none"))] == ["gate.lan"]


def test_a_proxy_command_of_the_connection_wins_over_the_configuration() -> None:
    write("Host box\n  ProxyJump gate\nHost other\n  ProxyCommand nc %h %p\n")
    (hop,) = route(Connection("t", "box", proxy_command="mine %h"))
    assert hop.proxy_command == "mine %h"
    (hop,) = route(Connection("t", "other"))
    assert hop.proxy_command == "nc other 22"


def test_the_secrets_of_one_target_are_not_for_its_jump_hosts() -> None:
    first, last = route(
        Connection("t", "box", user="me", auth="password", key=Path("/k"), jump="gate")
    )
    assert (first.user, first.auth) == (getpass.getuser(), "auto")
    assert Path("/k") not in first.keys
    assert last.auth == "password"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("Host *\n  Port many\n", InputError),
        ("Match what\n", InputError),
        ("Host box\n  HostName $(id)\n", UsageError),
        ("Host box\n  ProxyJump a;b\n", UsageError),
        ("Host box\n  ProxyJump box\n", UsageError),
    ],
)
def test_what_is_wrong_is_named(text: str, error: type[Exception]) -> None:
    write(text)
    with pytest.raises(error):
        route(Connection("t", "box"))


def test_the_secrets_of_a_target_go_and_those_of_others_stay() -> None:
    secrets = Secrets()
    mine = [password_name("me@box:2222"), passphrase_name(Path.home() / "id")]
    others = [password_name("me@gate"), passphrase_name(Path("/other"))]
    for name in (*mine, *others):
        secrets.keep(name, "hush")
    forget_secrets(Connection("t", "box", 2222, "me", key=Path("~/id"), jump="me@gate"), secrets)
    assert [secrets.get(name) for name in mine] == [None, None]
    assert [secrets.get(name) for name in others] == ["hush", "hush"]


def test_a_broken_configuration_is_no_hindrance() -> None:
    write_config("Port many")
    secrets = Secrets()
    secrets.keep(password_name("me@box"), "hush")
    forget_secrets(Connection("t", "box", user="me"), secrets)
    assert secrets.get(password_name("me@box")) is None
