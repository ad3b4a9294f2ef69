"""Work in a process that is killed as soon as it is done."""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable


def killed_after(work: Callable[[], object]) -> None:
    """Do this in a fork of this process, which nothing can tidy up after."""
    child = os.fork()
    if not child:
        try:
            work()
        except BaseException:  # noqa: BLE001 - told, and the exit status says so
            traceback.print_exc()
            os._exit(1)
        os.kill(os.getpid(), signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL
