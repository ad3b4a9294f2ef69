"""Packed varints to numbers of fixed width, in parts, so that any length fits in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from dld_tui.core.errors import InputError

_LONGEST = 10
"""Bytes of the longest varint: 64 bits in groups of seven."""


def fixed_width(parts: Iterable[bytes], width: int) -> Iterator[bytes]:
    """Yield packed varints as little-endian numbers of `width` bytes, higher bits cut off.

    That is what ``raw_data`` holds where a tensor has ``int32_data`` and the like.

    Args:
        parts: The varints in parts, cut anywhere.
        width: 1, 2, 4 or 8.

    Raises:
        InputError: The bytes are no varints.
    """
    rest = b""
    for part in parts:
        data = np.frombuffer(rest + part, np.uint8)
        ends = np.flatnonzero(data < 0x80)
        whole = int(ends[-1]) + 1 if len(ends) else 0
        if len(data) - whole > _LONGEST:
            raise InputError("the data is no list of varints")
        yield _numbers(data[:whole], ends).astype(f"<u{width}").tobytes()
        rest = data[whole:].tobytes()
    if rest:
        raise InputError("the data is no list of varints: the last one is cut short")


def _numbers(data: np.ndarray[Any, Any], ends: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    if not len(ends):
        return np.empty(0, np.uint64)
    starts = np.concatenate(([0], ends[:-1] + 1))
    lengths = ends - starts + 1
    longest = int(lengths.max())
    if longest > _LONGEST:
        raise InputError("the data is no list of varints")
    numbers = np.zeros(len(ends), np.uint64)
    # One pass for each group of seven bits: a tenth of the memory of one pass over all bytes.
    for group in range(longest):
        present = np.flatnonzero(lengths > group)
        bits = (data[starts[present] + group] & 0x7F).astype(np.uint64)
        numbers[present] |= bits << np.uint64(7 * group)
    return numbers
