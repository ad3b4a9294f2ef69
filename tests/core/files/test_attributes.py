"""What a file had, it keeps: owner, mode, access control list and extended attributes."""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from dld_tui.core.files import attributes
from dld_tui.core.files.attributes import limited, mode_of
from dld_tui.core.files.blobs import ByteCount
from dld_tui.core.files.source import Source
from dld_tui.core.files.writer import (
    StagedFile,
    put_in_place,
    write_bytes,
    write_pieces,
    write_text,
)
from dld_tui.core.report.store import ReportWriter

pytestmark = pytest.mark.usefixtures("replaces_all")

ACL = "system.posix_acl_access"
DEFAULT = "system.posix_acl_default"
NOBODY = 0xFFFFFFFF
USER_OBJ, USER, GROUP_OBJ, GROUP, MASK, OTHER = 1, 2, 4, 8, 16, 32
BOB = 12345


def acl(*entries: tuple[int, int, int]) -> bytes:
    """Return a list as the kernel stores it: tag, permissions, and a user or group."""
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


SHARED = acl(
    (USER_OBJ, 6, NOBODY), (USER, 6, BOB), (GROUP_OBJ, 0, NOBODY), (MASK, 6, NOBODY),
    (OTHER, 0, NOBODY),
)  # fmt: skip
"""With it, the mode is 0660 and the owning group may do nothing."""


@pytest.fixture(params=["unnamed", "named"], autouse=True)
def either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a test with temporary files without a name, and as on a file system that has none."""
    if request.param == "named":
        monkeypatch.setattr("dld_tui.core.files.writer._HAS_UNNAMED", False)


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A file with an access control list and an attribute."""
    path = tmp_path / "shared"
    path.write_bytes(b"old")
    give(path, ACL, SHARED)
    give(path, "user.comment", b"mine\0\xff")
    assert mode(path) == 0o660
    return path


def give(path: Path, name: str, value: bytes) -> None:
    if not hasattr(os, "setxattr"):
        pytest.skip("this platform has no extended attributes")
    try:
        os.setxattr(path, name, value)
    except OSError as error:
        pytest.skip(f"this file system keeps no {name}: {error.strerror}")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def held(path: Path) -> dict[str, bytes]:
    names = [name for name in os.listxattr(path) if not name.startswith("security.")]
    return {name: os.getxattr(path, name) for name in names}


WRITERS: list[Callable[[Path], object]] = [
    lambda path: write_bytes(path, b"new"),
    lambda path: write_text(path, "new", durable=False),
    lambda path: put_in_place(made(path.with_name("made")), path),
]


def made(path: Path) -> Path:
    path.write_bytes(b"new")
    path.chmod(0o600)
    return path


@pytest.mark.parametrize("write", WRITERS)
def test_a_replaced_file_keeps_its_list_and_its_attributes(
    shared: Path, write: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for those that are about its bytes, wherever the file system lists them."""
    real = os.listxattr
    with monkeypatch.context() as patched:
        patched.setattr(os, "listxattr", lambda *a, **k: ["security.ima", *real(*a, **k)])
        assert write(shared) == []
    assert shared.read_bytes() == b"new"
    assert held(shared) == {ACL: SHARED, "user.comment": b"mine\0\xff"}
    assert mode(shared) == 0o660


def test_a_report_keeps_them_and_is_never_more_open(shared: Path) -> None:
    writer = ReportWriter.create(
        shared, network="n", backend="b", execution_provider="CPU", device="d", model={},
        settings={}, environment={},
    )  # fmt: skip
    assert mode(writer.written_path) == 0o600
    writer.finish()
    assert held(shared) == {ACL: SHARED, "user.comment": b"mine\0\xff"}
    assert mode(shared) == 0o660


def test_what_a_folder_hands_down_does_not_open_a_file_that_had_no_list(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"old")
    path.chmod(0o640)
    default = SHARED.replace(
        struct.pack("<HHI", MASK, 6, NOBODY), struct.pack("<HHI", MASK, 7, NOBODY)
    )
    give(tmp_path, DEFAULT, default)
    write_bytes(path, b"new")
    assert held(path) == {}
    assert mode(path) == 0o640
    write_bytes(tmp_path / "new", b"new")
    assert ACL in held(tmp_path / "new")


def refuse(*names: str) -> Callable[..., None]:
    real = os.setxattr

    def setxattr(path: int, name: str, value: bytes) -> None:
        if name in names:
            raise OSError(95, "Operation not supported")
        real(path, name, value)

    return setxattr


def test_what_cannot_be_kept_is_said_and_opens_nothing(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "setxattr", refuse(ACL, "user.comment"))
    [remark] = write_bytes(shared, b"new")
    assert remark.endswith(
        "its attribute user.comment and its access control list could not be kept"
    )
    assert held(shared) == {}
    assert mode(shared) == 0o600


def test_a_copy_grants_no_more_than_the_list_of_its_source(shared: Path, tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        write_pieces(tmp_path / "copy", [b""], like=Source.open(shared))
    finally:
        os.umask(old)
    assert mode(tmp_path / "copy") == 0o600


@pytest.mark.parametrize(
    ("old", "entries", "alone"),
    [
        (0o664, [(USER, 6), (GROUP_OBJ, 4), (MASK, 6), (OTHER, 4)], 0o644),
        (0o674, [(USER, 7), (GROUP_OBJ, 7), (MASK, 7), (OTHER, 4)], 0o674),
        (0o654, [(USER, 7), (GROUP_OBJ, 7), (MASK, 5), (OTHER, 4)], 0o654),
        (0o644, [(USER, 0), (GROUP_OBJ, 4), (MASK, 4), (OTHER, 4)], 0o600),  # keeps somebody out
        (0o644, [(GROUP, 0), (GROUP_OBJ, 4), (MASK, 4), (OTHER, 4)], 0o600),
    ],
)
def test_a_mode_without_its_list_grants_no_more(
    old: int, entries: list[tuple[int, int]], alone: int
) -> None:
    words = acl((USER_OBJ, 6, NOBODY), *((tag, bits, BOB) for tag, bits in entries))
    assert limited(old, words) == alone


def test_a_private_file_is_the_owners_only(shared: Path, tmp_path: Path) -> None:
    assert write_text(shared, "new", private=True) == []
    assert mode(shared) == 0o600
    assert held(shared) == {"user.comment": b"mine\0\xff"}
    old = os.umask(0)
    try:
        write_text(tmp_path / "new", "new", private=True)
    finally:
        os.umask(old)
    assert mode(tmp_path / "new") == 0o600


def test_a_group_that_cannot_be_kept_gets_its_bits_not_to_another(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root has files of others")
    plain = tmp_path / "plain"
    plain.write_bytes(b"old")
    for path in (plain, shared):
        os.chown(path, 4321, 4322)
    plain.chmod(0o2664)
    group = acl(
        (USER_OBJ, 6, NOBODY), (USER, 6, BOB), (GROUP_OBJ, 6, NOBODY), (MASK, 6, NOBODY),
        (OTHER, 4, NOBODY),
    )  # fmt: skip
    give(shared, ACL, group)

    def refuse_owner(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "fchown", refuse_owner)
    for path in (plain, shared):
        [remark] = write_bytes(path, b"new")
        assert remark.endswith("its owner and its group could not be kept")
    assert mode(plain) == 0o644
    assert mode(shared) == 0o664
    assert struct.pack("<HHI", GROUP_OBJ, 4, NOBODY) in held(shared)[ACL]


def test_the_mode_is_that_of_the_moment(tmp_path: Path) -> None:
    """Somebody closes the file while it is being written."""
    path = tmp_path / "f"
    path.write_bytes(b"old")
    path.chmod(0o644)
    with StagedFile(path, 3) as file:
        assert stat.S_IMODE(os.fstat(file._descriptor).st_mode) == 0o600
        file.write([b"new"], ByteCount(3))
        path.chmod(0o600)
        file.seal()
        file.commit()
    assert mode(path) == 0o600


def test_without_attributes_the_mode_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on macOS, whose Python has no such calls."""
    monkeypatch.setattr(attributes, "_CAN", False)
    path = tmp_path / "f"
    path.write_bytes(b"old")
    path.chmod(0o604)
    assert write_bytes(path, b"new") == []
    assert mode(path) == 0o604
    assert mode_of(os.open(path, os.O_RDONLY)) == 0o604
