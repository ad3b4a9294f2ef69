"""Progress and log of a running job on standard error."""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
import types
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from dld_tui.activities import registry as activities
from dld_tui.cli.output import narrate
from dld_tui.core import fmt
from dld_tui.core.errors import CancelledError
from dld_tui.core.events import Event, Log, Progress, RateMeter, event_to_line
from dld_tui.core.notes import NoteKind
from dld_tui.core.params import settings_of
from dld_tui.core.process.terminal import is_terminal
from dld_tui.core.text import clip, visible

AS_EVENTS = "DLD_PROGRESS_EVENTS"
"""The environment variable of a command whose caller reads standard error by
:func:`~dld_tui.core.events.event_from_line`."""
_RATE_S = 0.5
"""Seconds before a rate is meaningful."""
_LOUD = (NoteKind.WARNING, NoteKind.ERROR)
_RAW = re.compile(r".{0,40}\[[VIWEF]:onnxruntime:[^,\]]*, (?P<place>[^\]]+)\] (?P<text>.*)")
"""A line of ONNX Runtime's log: time, level, logger, source location, text."""
_RAW_WIDTH = 200


class ProgressReporter:
    """Shows progress in one line of a terminal, and log lines above it.

    Where standard error is no terminal there is no progress, and of the log only warnings and
    errors. A program that wants progress sets :data:`AS_EVENTS` and gets it as lines of events. Use
    it as a context manager, so that the progress line is gone at the end.
    """

    def __init__(self) -> None:
        self.live = is_terminal(sys.stderr)
        self._as_events = AS_EVENTS in os.environ
        self._shown = ""
        self._raw: dict[str, list[str]] = {}
        self._reading_since: float | None = None
        self._meter = RateMeter()

    def event(self, event: Event) -> None:
        """Show an event."""
        if isinstance(event, Progress) and self._as_events:
            click.echo(event_to_line(event), err=True)
        elif isinstance(event, Progress) and self.live:
            self._meter.add(event)
            self._show(progress_text(event) + self._rate_text(event))
        elif isinstance(event, Log) and (raw := _RAW.match(event.text)):
            if event.level in _LOUD:
                self._raw.setdefault(raw["place"], []).append(raw["text"])
        elif isinstance(event, Log) and self._is_wanted(event):
            shown = self._shown
            self._show("")
            narrate(event.text)
            self._show(shown)

    def bytes_read(self, done: int, total: int) -> None:
        """Show progress and rate of reading: a :data:`~dld_tui.core.types.ProgressCallback`."""
        now = time.monotonic()
        if self._reading_since is None:
            self._reading_since = now
        took = now - self._reading_since
        if self.live:
            text = progress_text(Progress(done, total, "bytes", "reading"))
            self._show(text if took < _RATE_S else f"{text}  {fmt.size(int(done / took))}/s")

    def _rate_text(self, event: Progress) -> str:
        """Return the byte rate and the time left; empty for other work."""
        rate, left = self._meter.rate, self._meter.left(event)
        if event.unit != "bytes" or rate is None or left is None:
            return ""
        return f"  {fmt.size(int(rate))}/s  {left:.0f} s left"

    def _is_wanted(self, log: Log) -> bool:
        return log.level in _LOUD or (self.live and log.level is not NoteKind.DEBUG)

    def _show(self, text: str) -> None:
        if text == self._shown:
            return
        room = shutil.get_terminal_size().columns - 1
        click.echo("\r\x1b[K" + clip(text, room), err=True, nl=False, color=True)
        self._shown = text

    def __enter__(self) -> ProgressReporter:
        """Return the reporter."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: types.TracebackType | None,
    ) -> None:
        """Clear the progress line, and print repeated messages of a runtime once."""
        self._show("")
        for texts in self._raw.values():
            more = f" (and {fmt.plural(len(texts) - 1, 'line')} like it)" if len(texts) > 1 else ""
            narrate(f"ONNX Runtime: {clip(visible(texts[0]), _RAW_WIDTH)}{more}")
        self._raw.clear()


def progress_text(event: Progress) -> str:
    """Return for example ``latency  40 of 100 passes  40 %``."""
    in_bytes = event.unit == "bytes"
    amount = _amount(event.done, in_bytes)
    if event.total:
        amount += f" of {_amount(event.total, in_bytes)}"
    unit = "" if in_bytes else visible(event.unit)
    share = fmt.progress(event.done, event.total) if event.total else ""
    inner = event.phases[-1] if event.phases else None
    phase = visible(inner.name) if inner is not None else ""
    parts = (visible(event.stage), f"{amount} {unit}".strip(), share, phase)
    return "  ".join(part for part in parts if part)


def _amount(value: float, in_bytes: bool) -> str:
    return fmt.size(int(value)) if in_bytes else f"{value:g}"


@contextmanager
def naming_cancels(activity_id: str, request: Any, targets: Sequence[str] = ()) -> Iterator[None]:
    """Extend a CancelledError in the block with the activity, duration and written files.

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
    """Return the existing files that a job may write, with a key that detects changes.

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
