"""Pauses of the garbage collector where it would cost much and find nothing."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_EVERY = 20
_frozen = [0]
"""How many times something was frozen since the last collection of everything."""


def collect() -> None:
    """Free all garbage, frozen or not, and exclude the remaining objects from later collections.

    A collection holds the interpreter for 50 ms where a document has 50,000 nodes.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    _frozen[0] = 1


def freeze() -> None:
    """Exclude existing objects from later collections, which would find nothing in them.

    Garbage is excluded, too, such as a dialog that was closed: so that it does not accumulate,
    every twentieth call collects first.
    """
    _frozen[0] += 1
    if _frozen[0] >= _EVERY:
        collect()
    else:
        gc.freeze()


def pause() -> None:
    """Let the collector rest until :func:`resume`: while a program starts, nothing is garbage."""
    gc.disable()


def resume() -> None:
    """Resume collections if they were paused; existing objects stay excluded."""
    if not gc.isenabled():
        freeze()
        gc.enable()


@contextmanager
def collector_paused() -> Iterator[None]:
    """Keep the garbage collector from walking the many small objects that are being made.

    With 50,000 nodes it would take a third of the time and find nothing.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            if not _frozen[0]:
                # The new objects count as old: young ones would be traversed right away.
                # (`gc.get_freeze_count` walks over all that is frozen: a million take 20 ms.)
                gc.freeze()
                gc.unfreeze()
            gc.enable()
