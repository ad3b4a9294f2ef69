"""Passwords and questions; the server is asyncssh's, see tests/support/ssh_server.py."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from dld_tui.core.errors import CancelledError, UnavailableError
from dld_tui.core.settings import secrets as secret_store
from dld_tui.core.settings.saved_targets import Connection, changed
from dld_tui.core.settings.secrets import Nobody, Secrets
from dld_tui.targets.ssh import loop
from dld_tui.targets.ssh.link import Link
from tests.support.asker import Answers
from tests.support.links import refused, says
from tests.support.ssh_jobs import Links
from tests.support.ssh_server import PasswordServer
from tests.support.sshd import make_key

PASSWORD = "corrëct horse"


@pytest.fixture
def server() -> Iterator[PasswordServer]:
    """Return a server that takes the password."""
    with PasswordServer(PASSWORD) as running:
        yield running


def to(server: PasswordServer, folder: Path, auth: str = "password") -> Connection:
    """Return a connection to a server."""
    known = folder / "known"
    known.write_text(server.known_line)
    return Connection("box", "127.0.0.1", server.port, "me", auth, known_hosts=known, config=False)


@pytest.mark.parametrize("auth", ["password", "auto"])
def test_a_password_is_asked_for_once_a_process(
    link: Links, server: PasswordServer, tmp_path: Path, auth: str
) -> None:
    secrets = Secrets()
    person = Answers(["wrong", PASSWORD])
    assert says(link(to(server, tmp_path, auth), person, secrets)) == "echo here"
    assert person.questions == [
        f"Password for me@127.0.0.1:{server.port}",
        f"Wrong. Password for me@127.0.0.1:{server.port}",
    ]
    again = Answers()
    assert says(link(to(server, tmp_path, auth), again, secrets)) == "echo here"
    assert again.questions == []


def test_a_changed_password_is_asked_for_again(
    link: Links, server: PasswordServer, tmp_path: Path
) -> None:
    secrets = Secrets()
    secrets.keep(f"password me@127.0.0.1:{server.port}", "the old one")
    person = Answers([PASSWORD])
    assert says(link(to(server, tmp_path), person, secrets)) == "echo here"
    assert server.passwords == ["the old one", PASSWORD]


def test_three_wrong_passwords_are_enough(
    link: Links,
    server: PasswordServer,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    guesses = ["guess one", "guess two", "guess three", "guess four"]
    secrets = Secrets()
    made = link(to(server, tmp_path), Answers(guesses), secrets)
    error = refused(made)
    assert error.stage == "authentication"
    assert server.passwords == guesses[:3]
    assert "refused: the password" in str(error)
    everything = str(error) + repr(error.__dict__) + caplog.text + repr(made.__dict__)
    assert "guess" not in everything
    assert repr(secrets) == "<Secrets: 0>"


def test_no_person_is_there_to_ask(link: Links, server: PasswordServer, tmp_path: Path) -> None:
    made = Link(to(server, tmp_path), Nobody(), Secrets())
    assert "no answer was given" in str(refused(made))
    with pytest.raises(CancelledError):
        loop.call(link(to(server, tmp_path), Answers()).open(), 60)


def test_a_key_that_is_not_taken_is_no_reason_to_ask_in_vain(
    link: Links, server: PasswordServer, tmp_path: Path
) -> None:
    folder = Path.home() / ".ssh"
    folder.mkdir()
    make_key(folder / "id_ed25519", "open sesame")
    person = Answers([PASSWORD])
    assert says(link(to(server, tmp_path, "auto"), person)) == "echo here"
    assert len(person.questions) == 1


@pytest.mark.parametrize("auth", ["key", "agent"])
def test_a_password_is_not_asked_for_where_a_key_is_wanted(
    link: Links, server: PasswordServer, tmp_path: Path, auth: str
) -> None:
    person = Answers([PASSWORD])
    refused(link(to(server, tmp_path, auth), person))
    with PasswordServer(prompts=[("Code: ", True)], answers=["1"]) as other:
        refused(link(to(other, tmp_path, auth), person))
    assert person.questions == []


def test_questions_that_nobody_answers_are_asked_once(link: Links, tmp_path: Path) -> None:
    with PasswordServer(prompts=[("Code: ", True)], answers=["1"]) as server:
        person = Answers()
        with pytest.raises(CancelledError):
            loop.call(link(to(server, tmp_path), person).open(), 60)
        assert len(person.questions) == 1
        person = Answers(["a", "b", "c", "d", "e"])
        refused(link(to(server, tmp_path), person))
        assert len(person.questions) == 3


def test_questions_are_refused_where_nobody_is_there(link: Links, tmp_path: Path) -> None:
    with PasswordServer(prompts=[("Code: ", True)], answers=["1"]) as server:
        error = refused(link(to(server, tmp_path), Nobody()))
    assert "no answer was given" in str(error)
    assert "refused" not in str(error)


@pytest.mark.parametrize("auth", ["password", "auto"])
def test_the_server_asks_questions(link: Links, tmp_path: Path, auth: str) -> None:
    prompts = [("Password: ", False), ("\x1b[2JCode:", True)]
    with PasswordServer(prompts=prompts, answers=["p", "123"]) as server:
        person = Answers(["p", "0", "p", "123"])
        assert says(link(to(server, tmp_path, auth), person)) == "echo here"
        assert person.questions[:2] == [
            f"me@127.0.0.1:{server.port} asks: Password:",
            f"me@127.0.0.1:{server.port} asks: \\x1b[2JCode:",
        ]


def test_a_lone_question_for_a_password_is_the_password(link: Links, tmp_path: Path) -> None:
    with PasswordServer(prompts=[("Password: ", False)], answers=["p"]) as server:
        secrets = Secrets()
        assert says(link(to(server, tmp_path), Answers(["x", "p"]), secrets)) == "echo here"
        assert says(link(to(server, tmp_path), Answers(), secrets)) == "echo here"
        assert server.passwords == ["x", "p", "p"]


class Keyring:
    """A keyring in memory, with the names of the real one."""

    priority = 5

    def __init__(self) -> None:
        self.held: dict[tuple[str, str], str] = {}

    def get_keyring(self) -> Keyring:
        return self

    def get_password(self, service: str, name: str) -> str | None:
        return self.held.get((service, name))

    def set_password(self, service: str, name: str, secret: str) -> None:
        self.held[service, name] = secret

    def delete_password(self, service: str, name: str) -> None:
        del self.held[service, name]


def test_without_a_keyring_it_is_kept_in_memory(
    link: Links,
    server: PasswordServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def none() -> None:
        raise UnavailableError("no keyring")

    monkeypatch.setattr(secret_store, "_keyring", none)
    secrets = Secrets()
    there = changed(to(server, tmp_path), remember="keyring")
    assert says(link(there, Answers([PASSWORD]), secrets)) == "echo here"
    assert says(link(there, Answers(), secrets)) == "echo here"
