"""Data files that nothing needs any more when a model is written in the place of another one.

A data file is never overwritten: until the model is renamed, the old one reads from it. So each
time a model is converted onto the same output, a data file of another name is written, and the
former one is removed here, after that. Only files that this program named after the model are
meant, and only where no other model of the folder refers to them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError

from dld_tui.core.errors import DldError
from dld_tui.core.files.blobs import BlobTable
from dld_tui.core.files.source import Source
from dld_tui.core.files.tensors import dense_tensors, entries_of, is_external
from dld_tui.core.files.wire import cut


def named_data_files(model: Path) -> list[Path]:
    """Return the data files that a model refers to and have its name; none on an error."""
    pattern = re.compile(rf"{re.escape(model.name)}(\.[0-9]+)?\.data")
    folder = Path(os.path.realpath(model.absolute().parent))
    try:
        locations = _locations(model)
    except (DldError, OSError):
        return []
    return [folder / name for name in sorted(locations) if pattern.fullmatch(name)]


def is_data_file(path: Path, model: Path) -> bool:
    """Return whether a file holds weights of a model; False on an error."""
    if not path.exists():
        return False
    folder = Path(os.path.realpath(model.absolute().parent))
    with suppress(DldError, OSError):
        return any(
            (folder / name).exists() and path.samefile(folder / name) for name in _locations(model)
        )
    return False


def remove_unused(files: Iterable[Path], model: Path) -> list[Path]:
    """Remove data files that neither a model nor one beside it refers to; return which.

    Args:
        files: Those that the model referred to before it was written; see
            :func:`named_data_files`.
        model: The model as it is now.
    """
    wanted = {path for path in files if path.is_file() and not path.is_symlink()}
    if not wanted:
        return []
    try:
        for other in sorted(model.absolute().parent.glob("*.onnx")):
            wanted -= {Path(os.path.realpath(other.parent)) / name for name in _locations(other)}
        wanted -= {Path(os.path.realpath(model.absolute().parent)) / n for n in _locations(model)}
    except (DldError, OSError):
        return []  # a model that cannot be read may need them
    removed = []
    for path in sorted(wanted):
        with suppress(OSError):
            path.unlink()
            removed.append(path)
    return removed


def _locations(model: Path) -> set[str]:
    source = Source.open(model)
    try:
        proto = onnx.ModelProto.FromString(cut(source, BlobTable()))
    except DecodeError as error:
        raise DldError(str(error)) from None
    finally:
        source.close()
    found = (entries_of(t).get("location", "") for t in dense_tensors(proto) if is_external(t))
    return {os.path.normpath(location) for location in found}
