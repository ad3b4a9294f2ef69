from __future__ import annotations

from pathlib import Path

from dld_tui.core.settings.saved_targets import Connection
from dld_tui.core.settings.secrets import Secrets, passphrase_name, password_name
from dld_tui.targets.ssh.target import forget_secrets


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
    folder = Path.home() / ".ssh"
    folder.mkdir()
    (folder / "config").write_text("Port many")
    secrets = Secrets()
    secrets.keep(password_name("me@box"), "hush")
    forget_secrets(Connection("t", "box", user="me"), secrets)
    assert secrets.get(password_name("me@box")) is None
