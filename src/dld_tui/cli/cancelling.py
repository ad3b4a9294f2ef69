"""What a cancelled job was, and what it left, for people."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dld_tui.activities import registry as activities
from dld_tui.core import fmt
from dld_tui.core.errors import CancelledError
from dld_tui.core.params import settings_of
from dld_tui.core.text import visible


@contextmanager
def naming_cancels(activity_id: str, request: Any, targets: Sequence[str] = ()) -> Iterator[None]:
    """Let a cancel inside the block say which work it ended, after how long, and what is left.

    Args:
        activity_id: As in :data:`dld_tui.activities.registry.ACTIVITIES`.
        request: What the job was asked.
        targets: Where it ran, where that is not here.

    Raises:
        CancelledError: As ``cancelled: convert to float16 of m.onnx after 3.2 s; nothing was
            written``.
    """
    begin, before = time.monotonic(), _outputs(request)
    try:
        yield
    except CancelledError as error:
        title = activities.find(activity_id).title
        title = title if title[:2].isupper() else title[:1].lower() + title[1:]
        model = getattr(request, "model", None)
        of = f" of {visible(model.name)}" if isinstance(model, Path) else ""
        on = f" on {', '.join(map(visible, targets))}" if targets else ""
        text = f"cancelled: {title}{of}{on} after {fmt.duration(time.monotonic() - begin)}"
        if error.hint:
            raise CancelledError(text, hint=error.hint) from None
        after = _outputs(request)
        written = [path for path in after if after[path] != before.get(path)]
        left = "nothing was written"
        if written:
            left = f"{', '.join(visible(str(path)) for path in sorted(written))} was written"
        raise CancelledError(f"{text}; {left}") from None


def _outputs(request: Any) -> dict[Path, tuple[int, int, int]]:
    """Return the files that a job may write, of those that are there, with what tells a change.

    Where an output has no name yet it gets one in the working folder, by its suffix.
    """
    paths: list[Path] = []
    for setting in settings_of(type(request)):
        if setting.param.kind != "output":
            continue
        given = getattr(request, setting.name)
        if given is not None:
            paths.append(given)
        elif setting.param.suffix:
            paths += Path().glob(f"*{setting.param.suffix}")
    known = {}
    for path in paths:
        try:
            status = os.stat(path)
        except OSError:
            continue
        known[path] = (status.st_ino, status.st_size, status.st_mtime_ns)
    return known
