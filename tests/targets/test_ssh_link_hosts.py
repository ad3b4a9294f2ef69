from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.errors import SaveError
from dld_tui.core.settings.saved_targets import Connection, changed
from dld_tui.targets.ssh import loop
from tests.support.asker import Answers
from tests.support.links import refused, says, write_config
from tests.support.ssh_jobs import Links, Servers, at
from tests.support.sshd import Sshd


def test_a_new_host_is_trusted_once_a_person_says_so(
    link: Links, connection: Connection, sshd: Sshd, tmp_path: Path
) -> None:
    known = tmp_path / "new" / "known_hosts"
    there = changed(connection, known_hosts=known)
    no = Answers()
    error = refused(link(there, no))
    assert error.stage == "host key"
    assert sshd.fingerprint in str(error)
    assert not known.exists()
    yes = Answers(trusts=True)
    assert says(link(there, yes)) == "here"
    assert sshd.fingerprint in yes.details[0]
    assert str(sshd.port) in yes.questions[0]
    assert known.read_text() == sshd.known_line
    assert known.stat().st_mode & 0o777 == 0o600
    assert says(link(there)) == "here", "it asks no second time"


def test_the_line_is_added_to_a_file_that_does_not_end_in_one(
    link: Links, connection: Connection, sshd: Sshd, tmp_path: Path
) -> None:
    known = tmp_path / "known"
    known.write_text("# mine\nnonsense\nother ssh-ed25519 AAAA")
    assert says(link(changed(connection, known_hosts=known), Answers(trusts=True))) == "here"
    assert known.read_text().endswith(f"other ssh-ed25519 AAAA\n{sshd.known_line}")


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa"])
def test_a_changed_key_is_refused_with_file_and_line(
    link: Links, connection: Connection, own_sshd: Servers, tmp_path: Path, kind: str
) -> None:
    server = own_sshd()
    known = tmp_path / "known"
    known.write_text(f"# first\n\n{server.known_line}")
    before = server.fingerprint
    there = at(server, connection, known_hosts=known)
    assert says(link(there)) == "here"
    server.stop()
    server.renew_host_key(kind)
    server.start()
    person = Answers(trusts=True)
    error = refused(link(there, person))
    assert person.questions == [], "a changed key is never a question"
    assert f"{known} line 3" in str(error)
    assert before in str(error)
    assert server.fingerprint in str(error)
    assert f"ssh-keygen -f {known} -R '[{server.host}]:{server.port}'" in str(error)


def test_a_revoked_key_is_refused(
    link: Links, connection: Connection, sshd: Sshd, tmp_path: Path
) -> None:
    known = tmp_path / "known"
    known.write_text(f"{sshd.known_line}@revoked * {' '.join(sshd.known_line.split()[1:])}\n")
    error = refused(link(changed(connection, known_hosts=known), Answers(trusts=True)))
    assert "revoked" in str(error)


def test_each_host_on_the_way_is_checked(
    link: Links, connection: Connection, sshd: Sshd, jump: Sshd, tmp_path: Path
) -> None:
    jump.allow(sshd.user_key)
    write_config(f"Host *\n  IdentityFile {sshd.user_key}\n")
    known = tmp_path / "known"
    over = changed(
        connection, jump=f"{jump.host}:{jump.port}", known_hosts=known, config=True, key=None
    )
    person = Answers(trusts=True)
    assert says(link(over, person)) == "here"
    assert [f"port {server.port}" in question for server, question in
            zip((jump, sshd), person.questions, strict=True)] == [True, True]  # fmt: skip
    assert known.read_text() == jump.known_line + sshd.known_line


def test_a_file_that_cannot_be_written_is_said(
    link: Links, connection: Connection, tmp_path: Path
) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.touch()
    there = changed(connection, known_hosts=in_the_way / "known_hosts")
    with pytest.raises(SaveError, match="host key is not saved"):
        loop.call(link(there, Answers(trusts=True)).open(), 60)
