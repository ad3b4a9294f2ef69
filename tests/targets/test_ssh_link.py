from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dld_tui.core.errors import CancelledError
from dld_tui.core.settings.saved_targets import Connection, changed
from dld_tui.core.settings.secrets import Secrets
from dld_tui.targets.ssh import loop
from dld_tui.targets.ssh.errors import AUTHENTICATION
from tests.support.asker import Answers
from tests.support.jobs import wait_until
from tests.support.links import refused, says, write_config
from tests.support.ssh_jobs import Links, Servers, at
from tests.support.sshd import Sshd, make_key


def test_every_argument_arrives_as_it_is(link: Links, connection: Connection) -> None:
    hostile = [
        "a b", "$(touch /tmp/no)", "`id`", "'", '"', "new\nline", "-rf", "\x1b[31m", "*", "~", "",
        "a;b|c&d>e", "\\", "!!", "ünï", "{a,b}", "#no", "$HOME", "%s",
    ]  # fmt: skip
    script = "import os,sys; os.write(1, os.fsencode(chr(0).join(sys.argv[1:])))"
    made = link(connection)
    done = loop.call(made.run(["/usr/bin/env", "python3", "-c", script, *hostile]), 60)
    assert done.text.split("\0") == hostile
    ends = [loop.call(made.run(["sh", "-c", text]), 60) for text in ("exit 7", "kill -9 $$", "")]
    assert [end.code for end in ends] == [7, -9, 0]


def test_a_passphrase_is_asked_for_once(
    link: Links, connection: Connection, own_sshd: Servers
) -> None:
    server = own_sshd()
    key = make_key(server.folder / "closed", "open sesame")
    server.allow(key)
    there = at(server, connection, key=key)
    person = Answers()
    with pytest.raises(CancelledError, match="no answer was given"):
        loop.call(link(there, person).open(), 60)
    assert len(person.questions) == 1
    secrets = Secrets()
    person = Answers(["wrong", "open sesame"])
    first = link(there, person, secrets=secrets)
    assert says(first) == "here"
    assert [question.startswith("Wrong") for question in person.questions] == [False, True]
    again = Answers()
    assert says(link(there, again, secrets=secrets)) == "here"
    assert again.questions == []
    assert "sesame" not in repr(secrets) + repr(first) + repr(first.__dict__)


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
def test_a_closed_key_in_the_old_format_has_its_public_half_beside(
    link: Links, connection: Connection, own_sshd: Servers, kind: str
) -> None:
    server = own_sshd()
    key = make_key(server.folder / "closed", "open sesame", kind)
    server.allow(key)
    if kind != "ed25519":
        command = ["ssh-keygen", "-q", "-p", "-m", "PEM", "-P", "open sesame", "-N", "sesame"]
        subprocess.run([*command, "-f", str(key)], check=True)
    passphrase = "open sesame" if kind == "ed25519" else "sesame"
    there = at(server, connection, key=key)
    assert says(link(there, Answers([passphrase]))) == "here"
    key.with_name("closed.pub").unlink()
    assert says(link(there, Answers([passphrase]))) == "here"


def test_a_certificate_of_the_configuration_opens_it(
    link: Links, connection: Connection, own_sshd: Servers, tmp_path: Path
) -> None:
    authority = make_key(tmp_path / "authority")
    server = own_sshd(TrustedUserCAKeys=f"{authority}.pub")
    for name, passphrase in (("plain", ""), ("closed", "open sesame")):
        key = make_key(tmp_path / name, passphrase)
        command = ["ssh-keygen", "-q", "-s", str(authority), "-I", "me", "-n", server.user]
        subprocess.run([*command, f"{key}.pub"], check=True)
        certificate = key.with_name(f"{name}-cert.pub").rename(tmp_path / f"{name}.elsewhere")
        write_config(f"Host *\n  CertificateFile {certificate}\n")
        there = at(server, connection, key=key, config=True)
        assert says(link(there, Answers([passphrase]))) == "here"
        assert "ssh-copy-id" in str(refused(link(changed(there, config=False))))


def test_a_foreign_key_is_refused_with_what_was_tried(
    link: Links, connection: Connection, tmp_path: Path
) -> None:
    error = refused(link(changed(connection, key=make_key(tmp_path / "foreign"))))
    assert error.stage == AUTHENTICATION
    assert "foreign" in str(error)
    assert "publickey" in str(error)
    key = tmp_path / "foreign"
    assert error.hint == (
        f"Let the key in: ssh-copy-id -i {key} -p {connection.port}"
        f" {connection.user}@{connection.host}; or use another one: dld target edit box --key FILE"
    )
    missing = refused(link(changed(connection, key=tmp_path / "missing")))
    assert "missing does not exist" in str(missing)
    assert "Name a key file that can be used" in str(missing.hint)


def test_through_a_jump_host(
    link: Links, connection: Connection, sshd: Sshd, jump: Sshd, tmp_path: Path
) -> None:
    jump.allow(sshd.user_key)
    known = tmp_path / "both"
    known.write_text(sshd.known_line + jump.known_line)
    steps: list[tuple[str, str]] = []
    over = changed(
        connection, jump=f"{jump.user}@{jump.host}:{jump.port}", known_hosts=known, config=True
    )
    write_config(f"Host *\n  IdentityFile {sshd.user_key}\n")
    made = link(over, on_step=lambda *step: steps.append(step))
    assert says(made, "sh", "-c", "echo $SSH_CONNECTION").endswith(f" {sshd.port}")
    assert len({address for address, _ in steps}) == 2
    nowhere = changed(over, port=1)
    assert "cannot reach it" in str(refused(link(nowhere)))


@pytest.mark.parametrize("where", ["connection", "configuration"])
def test_through_a_proxy_command(
    link: Links, connection: Connection, sshd: Sshd, tmp_path: Path, where: str
) -> None:
    relay = tmp_path / "re lay.py"
    relay.write_text(_RELAY)
    log = tmp_path / "log"
    command = f"{sys.executable} '{relay}' %h %p 2>>{log}"
    if where == "connection":
        there = changed(connection, proxy_command=command)
    else:
        write_config(f"Host {sshd.host}\n  ProxyCommand {command}\n")
        there = changed(connection, config=True)
    assert says(link(there)) == "here"
    assert log.read_text().strip() == f"{sshd.host} {sshd.port}", "it went another way"


_RELAY = """
import os, socket, sys, threading
print(*sys.argv[1:], file=sys.stderr, flush=True)
line = socket.create_connection((sys.argv[1], int(sys.argv[2])))
def up():
    while data := os.read(0, 65536):
        line.sendall(data)
    line.shutdown(socket.SHUT_WR)
threading.Thread(target=up, daemon=True).start()
while data := line.recv(65536):
    os.write(1, data)
"""


def test_a_passphrase_that_is_not_given(
    link: Links, connection: Connection, own_sshd: Servers
) -> None:
    server = own_sshd()
    key = make_key(server.folder / "closed", "open sesame")
    there, person = at(server, connection, key=key), Answers(["open sesame"])
    assert "closed" in str(refused(link(there, person)))
    assert person.questions == [], "the server does not take the key: nobody is asked in vain"
    server.allow(key)
    with pytest.raises(CancelledError):
        loop.call(link(there).open(), 60)
    person = Answers(["a", "b", "c", "d"])
    wrong = refused(link(there, person))
    question = f"Passphrase of the key {key}"
    assert person.questions == [question, f"Wrong. {question}", f"Wrong. {question}"]
    assert wrong.stage == AUTHENTICATION
    assert "cannot be used without its passphrase" in str(wrong)


@contextlib.contextmanager
def ssh_agent(socket: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let an agent run that holds no key."""
    process = subprocess.Popen(["ssh-agent", "-D", "-a", str(socket)], stdout=subprocess.DEVNULL)
    try:
        monkeypatch.setenv("SSH_AUTH_SOCK", str(socket))
        wait_until(socket.exists, "the agent listens")
        yield
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("kind", ["ed25519", "rsa"])
def test_a_refused_key_is_tried_once(
    link: Links, connection: Connection, own_sshd: Servers, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, kind: str,
) -> None:  # fmt: skip
    server = own_sshd(LogLevel="VERBOSE", MaxAuthTries="1")
    key = make_key(tmp_path / "foreign", kind=kind)
    with ssh_agent(tmp_path / "agent", monkeypatch):
        subprocess.run(["ssh-add", "-q", str(key)], check=True)
        error = refused(link(at(server, connection, key=key)))
    assert server.log.read_text().count("Failed publickey") == 1
    assert error.message.count("foreign") == 1
    assert "of the agent" not in error.message
    assert f"ssh-copy-id -i {key}" in str(error.hint)


def test_an_agent_holds_the_key(
    link: Links, connection: Connection, sshd: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = changed(connection, auth="agent", key=None)
    monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "none"))
    assert "no SSH agent answers" in str(refused(link(agent)))
    with ssh_agent(tmp_path / "agent", monkeypatch):
        assert "the agent holds no key" in str(refused(link(agent)))
        subprocess.run(["ssh-add", "-q", str(sshd.user_key)], check=True)
        assert says(link(agent)) == "here"
        passed_on = 'echo "${SSH_AUTH_SOCK-none}"'
        assert says(link(agent), "sh", "-c", passed_on) == "none", "keys are for this machine alone"
        # A key that the agent holds needs no passphrase, even when its file wants one.
        closed = make_key(tmp_path / "closed", "secret")
        sshd.allow(closed)
        ask = tmp_path / "askpass"
        ask.write_text("#!/bin/sh\necho secret\n")
        ask.chmod(0o700)
        environment = {
            "SSH_AUTH_SOCK": str(tmp_path / "agent"), "SSH_ASKPASS": str(ask),
            "SSH_ASKPASS_REQUIRE": "force", "PATH": "/usr/bin:/bin",
        }  # fmt: skip
        subprocess.run(["ssh-add", "-q", str(closed)], check=True, env=environment)
        assert says(link(changed(connection, key=closed))) == "here"
