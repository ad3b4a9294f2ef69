"""Parts of the work on targets that need no server: known hosts, answers, hashes, wheels."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import asyncssh
import pytest

from dld_tui.core.errors import UnavailableError
from dld_tui.core.settings.state import State
from dld_tui.targets.ssh import channel
from dld_tui.targets.ssh.channel import AgentError, Stream
from dld_tui.targets.ssh.deploy import platform_tags
from dld_tui.targets.ssh.errors import ConnectionLostError
from dld_tui.targets.ssh.known_hosts import KnownKeys, host_name, known_keys, remember
from dld_tui.targets.ssh.transfer import KnownHashes, LocalFile
from tests.support.recorded import Recorded
from tests.targets.test_ssh_deployments import machine

KEYS = [asyncssh.generate_private_key("ssh-ed25519").convert_to_public() for _ in range(3)]
RSA = asyncssh.generate_private_key("ssh-rsa", key_size=1024).convert_to_public()


def text_of(key: asyncssh.SSHKey) -> str:
    return " ".join(key.export_public_key("openssh").decode().split()[:2])


def hashed(name: str, magic: str = "1", salt: bytes = b"salt") -> str:
    digest = hmac.new(salt, name.encode(), hashlib.sha1).digest()
    return f"|{magic}|{base64.b64encode(salt).decode()}|{base64.b64encode(digest).decode()}"


@pytest.mark.parametrize(
    ("patterns", "host", "port", "found"),
    [
        ("box", "box", 22, "exact"), ("box", "BOX", 22, "exact"), ("BOX", "box", 22, "exact"),
        ("box", "other", 22, ""), ("a,box,b", "box", 22, "exact"), ("*.lan", "x.lan", 22, "exact"),
        ("*.lan,!x.lan", "x.lan", 22, ""), ("!x.lan,*.lan", "y.lan", 22, "exact"),
        ("b?x", "box", 22, "exact"), ("[box]:2222", "box", 2222, "exact"),
        ("[box]:2222", "box", 22, ""), ("box", "box", 2222, "plain"), ("[b]ox", "box", 22, ""),
        (hashed("box"), "box", 22, "exact"), (hashed("box"), "bix", 22, ""),
        (hashed("box", "2"), "box", 22, ""), (hashed("[box]:2222"), "box", 2222, "exact"),
        (hashed("box"), "box", 2222, "plain"), ("|1|no", "box", 22, ""),
        ("|1|?|?", "box", 22, ""), ("# box", "box", 22, ""),
    ],
)  # fmt: skip
def test_lines_about_a_host(
    patterns: str, host: str, port: int, found: str, tmp_path: Path
) -> None:
    file = tmp_path / "known_hosts"
    file.write_text(
        f"\nbad line\n{patterns} {text_of(KEYS[0])} comment\n{patterns} ssh-ed25519 x\n"
    )
    known = known_keys([tmp_path / "none", file], host, port)
    lines = [(entry.line, entry.marker, entry.key) for entry in known.entries]
    others = [(entry.line, entry.marker, entry.key) for entry in known.fallback]
    one = [(3, "", KEYS[0])]
    assert (lines, others) == (one if found == "exact" else [], one if found == "plain" else [])


def test_which_lines_count(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    rows = [
        ("", "[box]:2222", KEYS[0]), ("", "[box]:2222", RSA), ("@revoked", "box", KEYS[1]),
        ("@cert-authority", "[box]:2222", KEYS[2]), ("", "box", KEYS[2]), ("@odd", "box", RSA),
    ]  # fmt: skip
    file.write_text("".join(f"{mark} {name} {text_of(key)}\n" for mark, name, key in rows))
    known = known_keys([file], "box", 2222)
    assert known.keys() == [KEYS[0], RSA], "with the port; the line without it is not asked"
    assert known.keys("@cert-authority") == [KEYS[2]]
    assert [entry.line for entry in (known.revoking(KEYS[1]),) if entry] == [3]
    assert known.revoking(KEYS[0]) is None
    assert [known.contradicting(key) for key in (KEYS[2], RSA)] == [
        known.entries[0],
        known.entries[1],
    ]
    ecdsa = asyncssh.generate_private_key("ecdsa-sha2-nistp256").convert_to_public()
    assert known.contradicting(ecdsa) == known.entries[0]
    assert KnownKeys(known.entries[2:]).contradicting(RSA) is None
    at_22 = known_keys([file], "box", 22)
    assert (at_22.keys(), at_22.fallback) == ([KEYS[2]], ())
    only_plain = known_keys([file], "box", 3333)
    assert [entry.line for entry in only_plain.fallback] == [5]
    assert [entry.line for entry in only_plain.entries] == [3]


def test_a_key_is_remembered_on_a_line_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "new" / "known_hosts"
    remember(file, "Box", 22, KEYS[0])
    file.write_text(file.read_text() + "last without an end")
    remember(file, "box", 2222, RSA)
    assert file.read_text() == (
        f"box {text_of(KEYS[0])}\nlast without an end\n[box]:2222 {text_of(RSA)}\n"
    )
    assert file.stat().st_mode & 0o777 == 0o600
    assert known_keys([file], "box", 2222).keys() == [RSA]
    assert host_name("A.b", 23) == "[a.b]:23"


class Process:
    """A command that prints these parts."""

    def __init__(self, *parts: bytes) -> None:
        self.parts = [*parts]
        self.stdout = self

    async def read(self, size: int) -> bytes:
        return self.parts.pop(0) if self.parts else b""


def stream(*parts: bytes) -> Stream:
    made: Any = Process(*parts)
    return Stream(made, "box", "@dld:")


def line(**values: object) -> bytes:
    return b"@dld:" + json.dumps(values).encode() + b"\n"


def test_answers_are_found_between_other_output(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = line(a=1)
    talk = stream(
        b"hello\nnoise " + whole[:4], whole[4:9], whole[9:] + line(b=2) + b"data", b"more"
    )

    async def both() -> list[object]:
        return [
            await talk.next_answer(),
            await talk.next_answer(),
            await talk.read(),
            await talk.read(),
        ]

    assert asyncio.run(both()) == [{"a": 1}, {"b": 2}, b"data", b"more"]
    with pytest.raises(ConnectionLostError):
        asyncio.run(stream(b"noise\n").next_answer())
    monkeypatch.setattr(channel, "_MOST_NOISE", 10)
    with pytest.raises(UnavailableError, match="prints endless output"):
        asyncio.run(stream(b"noise\n" * 3, line(a=1)).next_answer())
    assert asyncio.run(stream(b"noise\n", line(a=1)).next_answer()) == {"a": 1}
    refusal = line(error="no\x1b", kind="running", hint="wait")
    with pytest.raises(AgentError) as caught:
        asyncio.run(stream(refusal).next_answer())
    refused = caught.value
    assert (refused.message, refused.kind, refused.hint, refused.where) == (
        "no\\x1b", "running", "wait", "box",
    )  # fmt: skip


def test_wheels_of_machines(recorded: Recorded) -> None:
    machines = {
        "glibc 2.17": machine(libc=("glibc", "2.17")), "glibc 2.5": machine(libc=("glibc", "2.5")),
        "glibc 2.4": machine(libc=("glibc", "2.4")), "glibc 3.1": machine(libc=("glibc", "3.1")),
        "no version": machine(libc=("glibc", "x")), "musl": machine(libc=("", "")),
    }  # fmt: skip
    made = [*machines.items(), ("x86_64", replace(machines["glibc 2.17"], machine="x86_64"))]
    recorded("ssh_parts", {name: "\n".join(platform_tags(one)) for name, one in made})
    assert len(platform_tags(machine(libc=("glibc", "2.1000")))) < 120


def test_a_state_of_another_shape_is_no_hash(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"x")
    state = State(tmp_path)
    hashes = KnownHashes(state)
    file: Any = LocalFile(path, 1, 5, 6, 7)
    shas: tuple[tuple[Any, bool], ...] = (
        ("0" * 64, True), ("0" * 63, False), (["0"] * 64, False), (None, True),
    )  # fmt: skip
    for sha256, is_known in shas:
        hashes._entries[str(path)] = {"stamp": file.stamp, "sha256": sha256}
        assert (hashes.get(file) == sha256) is is_known
    hashes._entries[str(path)] = {"stamp": "other", "sha256": "0" * 64}
    assert hashes.get(file) is None
