"""What of the data files of a model its tensors use."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from dld_tui.core.errors import InputError
from dld_tui.core.files import protos as onnx
from dld_tui.core.files.external import (
    PENDING,
    dense_tensors,
    entries_of,
    has_external,
    is_external,
    payload_length,
)
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.serialise import skeleton_bytes

_ALIGNMENT = 1 << 16
"""Bytes between tensors that may only be there so that the next one begins at a page."""


def unused_bytes(document: Document, tensors: Iterable[onnx.TensorProto]) -> dict[str, int]:
    """Return how many bytes of each data file no tensor uses, by location; opens no file.

    Gaps of at most 64 KiB do not count: they align tensors. Files whose use is not known for
    certain are left out.

    Args:
        document: The model.
        tensors: All of its tensors that are in data files, in any order and as often as they occur.
    """
    ranges: dict[str, list[tuple[int, int]]] = defaultdict(list)
    unknown = set()
    for tensor in tensors:
        entries = entries_of(tensor)
        location = entries.get("location", "")
        try:
            begin = int(entries.get("offset", 0))
            length = int(entries["length"]) if "length" in entries else payload_length(tensor)
        except ValueError:
            length = None
        if length is None or PENDING in entries:
            unknown.add(location)
        else:
            ranges[location].append((begin, begin + length))
    unused = {}
    for location, used in ranges.items():
        if location in unknown:
            continue
        try:
            size = document.external.resolve(location).stat().st_size
        except (InputError, OSError):
            continue  # findings on the tensors say so
        gaps, end = 0, 0
        for begin, until in sorted([*used, (size, size)]):
            gaps += begin - end if begin - end > _ALIGNMENT else 0
            end = max(end, until)
        if gaps:
            unused[location] = gaps
    return unused


def external_tensors(document: Document) -> Iterator[onnx.TensorProto]:
    """Yield all tensors that are in data files; reads the whole model."""
    skeleton = skeleton_bytes(document)
    if has_external(skeleton):
        model = onnx.ModelProto.FromString(skeleton)
        yield from filter(is_external, dense_tensors(model, sparse=True))


__all__ = ["external_tensors", "unused_bytes"]
