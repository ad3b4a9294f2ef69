from __future__ import annotations

import subprocess
from pathlib import Path

import asyncssh
import pytest

from dld_tui.targets.ssh.known_hosts import (
    host_name,
    known_keys,
    locked_keys,
    public_half,
    remember,
)

KEY = asyncssh.generate_private_key("ssh-ed25519")
OTHER = asyncssh.generate_private_key("ssh-ed25519")


def text_of(key: asyncssh.SSHKey) -> str:
    return " ".join(key.export_public_key().decode().split()[:2])


def entries(folder: Path, text: str, host: str = "box", port: int = 22) -> list[tuple[str, int]]:
    """Return marker and line of what a file says of a host."""
    file = folder / "known_hosts"
    file.write_text(text)
    found = known_keys([folder / "missing", file], host, port)
    return [(entry.marker, entry.line) for entry in (*found.entries, *found.fallback)]


@pytest.mark.parametrize(
    ("patterns", "host", "port", "found"),
    [
        ("box", "box", 22, True),
        ("BOX", "Box", 22, True),
        ("box", "box.lan", 22, False),
        ("a,box,c", "box", 22, True),
        ("*.lan", "box.lan", 22, True),
        ("*.lan,!box.lan", "box.lan", 22, False),
        ("b?x", "box", 22, True),
        ("[box]:2222", "box", 2222, True),
        ("[box]:2222", "box", 22, False),
        ("[*]:2222", "box", 2222, True),
        ("box", "box", 2222, True),
        ("[ab]ox", "box", 22, False),
        ("::1", "::1", 22, True),
    ],
)
def test_patterns(tmp_path: Path, patterns: str, host: str, port: int, found: bool) -> None:
    assert bool(entries(tmp_path, f"{patterns} {text_of(KEY)}\n", host, port)) is found


def test_hashed_names_as_openssh_writes_them(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    file.write_text(f"box {text_of(KEY)}\n[gate]:2222 {text_of(OTHER)}\n")
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(file)], check=True, capture_output=True)
    assert "box" not in file.read_text()
    assert known_keys([file], "box", 22).keys() == [KEY.convert_to_public()]
    assert known_keys([file], "gate", 2222).keys() == [OTHER.convert_to_public()]
    assert known_keys([file], "gate", 22).keys() == []


def test_bad_lines_are_skipped_and_lines_counted(tmp_path: Path) -> None:
    text = (
        f"# no\n\nbox\nbox ssh-ed25519\nbox ssh-ed25519 !!!\n@what box {text_of(KEY)}\n"
        f"|1|x|y {text_of(KEY)}\n|2|eA==|eA== {text_of(KEY)}\n \x1b\xff\n"
        f"@revoked box {text_of(OTHER)}\n@cert-authority box {text_of(OTHER)}\n"
        f"box {text_of(KEY)} a comment\n"
    )
    assert entries(tmp_path, text) == [("@revoked", 10), ("@cert-authority", 11), ("", 12)]


def test_which_line_says_otherwise(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    ecdsa = asyncssh.generate_private_key("ecdsa-sha2-nistp256")
    file.write_text(f"box {text_of(ecdsa)}\nbox {text_of(KEY)}\n")
    found = known_keys([file], "box", 22)
    same_kind = found.contradicting(OTHER.convert_to_public())
    assert same_kind is not None
    assert same_kind.line == 2
    assert known_keys([file], "gate", 22).contradicting(KEY.convert_to_public()) is None
    assert found.revoking(KEY.convert_to_public()) is None


def test_what_is_remembered_is_known_to_openssh_too(tmp_path: Path) -> None:
    file = tmp_path / "new" / "known_hosts"
    remember(file, "Box", 2222, KEY.convert_to_public())
    remember(file, "box", 22, OTHER.convert_to_public())
    assert known_keys([file], "box", 2222).keys() == [KEY.convert_to_public()]
    for name in ("[box]:2222", "box"):
        command = ["ssh-keygen", "-f", str(file), "-F", name]
        assert subprocess.run(command, capture_output=True, check=True).stdout
    assert host_name("Box", 22) == "box"


@pytest.mark.parametrize("kind", ["ssh-ed25519", "ecdsa-sha2-nistp256"])
def test_the_public_half_of_a_key_is_in_its_file_or_beside_it(kind: str, tmp_path: Path) -> None:
    key = asyncssh.generate_private_key(kind)
    path = tmp_path / "id"
    path.write_bytes(key.export_private_key("openssh"))
    inside = public_half(path)
    assert inside is not None
    assert inside.public_data == key.public_data
    path.write_text("another format")
    assert public_half(path) is None
    path.with_name("id.pub").write_bytes(key.export_public_key())
    beside = public_half(path)
    assert beside is not None
    assert beside.public_data == key.public_data


def test_a_locked_key_goes_with_its_certificate_and_without(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no certificate")
    paths = [tmp_path / name for name in ("missing", "text", "other", "own")]
    for path, key in zip(paths[2:], (OTHER, KEY), strict=True):
        OTHER.generate_user_certificate(key, "me").write_certificate(path)

    async def unlock() -> asyncssh.SSHKey:
        return KEY

    pairs = locked_keys(KEY.convert_to_public(), paths, unlock)
    assert [pair.has_cert for pair in pairs] == [True, False]
