"""A share of one processor core for what is started in it, as on a small or a busy board."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_PERIOD_US = 100_000
_MOUNT = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Quota:
    """How a share is kept."""

    how: str
    """In words, for the table."""
    share: float
    prefix: tuple[str, ...] = ()
    """What to put before a command so that the kernel holds it and all that it starts."""

    @contextmanager
    def holding(self, group: int) -> Iterator[None]:
        """Hold a process group by stopping it, where the kernel does not hold it by itself."""
        if self.prefix:
            yield
            return
        over = threading.Event()
        thread = threading.Thread(target=self._stop_and_go, args=(group, over), daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _stop_and_go(self, group: int, over: threading.Event) -> None:
        period = _PERIOD_US / 1e6
        with contextlib.suppress(ProcessLookupError):
            while not over.is_set():
                os.killpg(group, signal.SIGCONT)
                over.wait(self.share * period)
                os.killpg(group, signal.SIGSTOP)
                over.wait((1 - self.share) * period)


@contextmanager
def quota(share: float) -> Iterator[Quota]:
    """Make a group of processes that gets a share of one core.

    It is the kernel's (cgroup v2, or v1) where this process may make one; else the processes are
    stopped and let go ten times a second, which does not hold what leaves their process group.
    """
    made = _v2(share) or _v1(share)
    if made is None:
        yield Quota("stopped and let go 10 times a second: no cgroup may be made here", share)
        return
    folder, how = made
    join = 'echo $$ > "$0" && exec "$@"'
    try:
        yield Quota(how, share, ("sh", "-c", join, str(folder / "cgroup.procs")))
    finally:
        _remove(folder)


def _v2(share: float) -> tuple[Path, str] | None:
    value = f"{int(share * _PERIOD_US)} {_PERIOD_US}"
    return _group(_MOUNT, "cpu.max", value) if (_MOUNT / "cgroup.controllers").exists() else None


def _v1(share: float) -> tuple[Path, str] | None:
    return _group(_MOUNT / "cpu", "cpu.cfs_quota_us", str(int(share * _PERIOD_US)))


def _group(parent: Path, name: str, value: str) -> tuple[Path, str] | None:
    folder = parent / f"dld-bench-{os.getpid()}"
    try:
        folder.mkdir()
        if not (folder / name).exists():  # the controller is not there
            raise FileNotFoundError(name)
        (folder / name).write_text(value)
    except OSError:
        _remove(folder)
        return None
    return folder, f"held by {name} of its cgroup"


def _remove(folder: Path) -> None:
    for _ in range(50):  # until the kernel has seen that the last process of it has ended
        if not folder.exists():
            return
        with contextlib.suppress(OSError):
            folder.rmdir()
        time.sleep(0.1)
