"""The garbage collector, where it would cost much and find nothing."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_EVERY = 20
_frozen = [0]
"""How many times something was frozen since the last collection of everything."""


def collect() -> None:
    """Free what nobody refers to, frozen or not, and leave the rest out of later collections.

    A collection holds the interpreter for 50 ms where a document has 50,000 nodes.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    _frozen[0] = 1


def freeze() -> None:
    """Leave what has been made out of later collections, which would find nothing in it.

    What nobody refers to is left out, too, such as a dialog that was closed: so that it does not
    add up, each twentieth call collects first.
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
    """Let the collector work again, if it was told to rest; what there is by now stays."""
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
                # What was made is old at once; as young it would be walked over right away.
                # (`gc.get_freeze_count` walks over all that is frozen: a million take 20 ms.)
                gc.freeze()
                gc.unfreeze()
            gc.enable()
