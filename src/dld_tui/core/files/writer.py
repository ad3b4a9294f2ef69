"""Write files so that a reader sees the old file or the new one, never half of it.

Everything that this program writes for the user goes through here: a temporary file in the same
folder, flushed to the disk, checked, and renamed over the target.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from dld_tui.core.errors import SaveError
from dld_tui.core.files.blobs import Blob
from dld_tui.core.files.source import Source
from dld_tui.core.files.splice import pieces_length
from dld_tui.core.files.staged import StagedFile
from dld_tui.core.files.streaming import ByteCount
from dld_tui.core.text import visible
from dld_tui.core.types import CancelCheck, ProgressCallback

_OTHER_SURROGATES = re.compile("[\ud800-\udc7f\udd00-\udfff]")
"""Those that stand for no byte, as JSON with half a pair of escapes has them."""


@dataclass(frozen=True)
class Output:
    """One file to write."""

    path: Path
    pieces: Sequence[bytes | Blob]
    overwrite: bool = True
    """False raises an error when the file exists."""
    like: Source | None = None
    """See :func:`write_pieces`."""
    verify: Callable[[Path], None] | None = None
    """See :func:`write_pieces`."""
    durable: bool = True
    """False for what may be lost when the machine fails; it is never half there."""


def write_pieces(
    path: str | os.PathLike[str],
    pieces: Sequence[bytes | Blob],
    *,
    overwrite: bool = True,
    like: Source | None = None,
    progress: ProgressCallback | None = None,
    cancelled: CancelCheck | None = None,
    verify: Callable[[Path], None] | None = None,
) -> list[str]:
    """Write a file in one atomic step and return remarks for the user, mostly none.

    A symbolic link stays and its target is replaced. The mode of a file that was there is kept;
    other hard links of it keep the old content, which a remark says.

    Args:
        path: The file to make or replace; may be one that `pieces` are read from.
        pieces: Its content.
        overwrite: False raises an error when the file exists.
        like: The file that the content was made from. A new file grants no more than it does; when
            it is the file at `path`, the write is refused if another program changed it. None
            replaces whatever is there.
        progress: Called with bytes done and bytes in all.
        cancelled: Asked at least every 16 MiB.
        verify: Called with the finished temporary file; what it raises ends the write.

    Raises:
        SaveError: The file could not be written; what was there is untouched.
        FileChangedError: The target, or a file that payloads are read from, was changed by another
            program.
        CancelledError: `cancelled` said so; what was there is untouched.
    """
    output = Output(Path(path), pieces, overwrite, like, verify)
    return write_set([output], progress=progress, cancelled=cancelled)


def write_set(
    outputs: Sequence[Output],
    *,
    progress: ProgressCallback | None = None,
    cancelled: CancelCheck | None = None,
) -> list[str]:
    """Write files that belong together and return remarks for the user.

    All are complete on the disk before the first is renamed, and they are renamed in the order
    given: put data files under new names first and the file that refers to them last.

    Raises:
        SaveError: One could not be written.
        FileChangedError: See :func:`write_pieces`.
        CancelledError: `cancelled` said so; nothing was replaced.
    """
    if len(outputs) > 1:
        require_distinct([output.path for output in outputs])
    total = sum(pieces_length(output.pieces) for output in outputs)
    count = ByteCount(total, progress, cancelled)
    remarks: list[str] = []
    with ExitStack() as stack:
        # Each asks for the room of all: they are nearly always on one disk.
        staged = [
            stack.enter_context(
                StagedFile(
                    output.path,
                    total,
                    overwrite=output.overwrite,
                    like=output.like,
                    durable=output.durable,
                )
            )
            for output in outputs
        ]
        for file, output in zip(staged, outputs, strict=True):
            file.write(output.pieces, count)
            file.seal(output.verify)
        for place, file in enumerate(staged):
            try:
                remarks += file.commit()
            except BaseException:
                for done in staged[:place]:
                    done.retract()
                raise
    return remarks


def require_distinct(paths: Sequence[Path]) -> None:
    """Refuse outputs that are one file: the one that is written last would be all that is left.

    They are one where their resolved paths are the same, where what is there is the same (device
    and inode: hard links), and where the file system takes two spellings for the same name.

    Raises:
        SaveError: Names both.
    """
    seen: list[tuple[str, tuple[int, int] | None, Path]] = []
    for path in paths:
        real = os.path.realpath(path)
        identity: tuple[int, int] | None = None
        with suppress(OSError):
            status = os.stat(real)
            identity = (status.st_dev, status.st_ino)
        for other_real, other_identity, other in seen:
            same = real == other_real or (identity is not None and identity == other_identity)
            if same or (real.casefold() == other_real.casefold() and _ignores_case(real)):
                raise SaveError(
                    f"{visible(str(other))} is the same file: one would overwrite the other",
                    where=str(path),
                    hint="Choose another name for one of them",
                )
        seen.append((real, identity, path))


def _ignores_case(path: str) -> bool:
    """Return whether the file system of a file that may not be there yet ignores the case."""
    folder = os.path.dirname(path)
    other = os.path.join(os.path.dirname(folder), os.path.basename(folder).swapcase())
    try:
        return other != folder and os.path.samefile(folder, other)
    except OSError:
        return False


def write_bytes(
    path: str | os.PathLike[str],
    data: bytes,
    *,
    overwrite: bool = True,
    like: Source | None = None,
    verify: Callable[[Path], None] | None = None,
) -> list[str]:
    """Write a small file in one atomic step; see :func:`write_pieces`."""
    return write_pieces(path, [data], overwrite=overwrite, like=like, verify=verify)


def write_text(
    path: str | os.PathLike[str], text: str, *, overwrite: bool = True, durable: bool = True
) -> list[str]:
    """Write text as UTF-8 in one atomic step; see :func:`write_pieces`.

    Bytes that are no UTF-8 are written as they were read; other lone surrogates become ``?``.
    """
    try:
        data = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        data = _OTHER_SURROGATES.sub("?", text).encode("utf-8", "surrogateescape")
    return write_set([Output(Path(path), [data], overwrite, durable=durable)])
