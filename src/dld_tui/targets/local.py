"""Jobs on this machine: the worker in a child process of the same Python."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from dld_tui.core.types import JSON
from dld_tui.targets.process import Delays, ProcessJob

# Not `-m`: that would put the current folder first on the module path, and a stray numpy.py beside
# a model would be run. The child gets the path of this process, as multiprocessing does it.
_BOOTSTRAP = (
    "import sys; sys.path[:] = sys.argv.pop().split('\\n'); from {module} import main; main()"
)
WORKER_MODULE = "dld_tui.activities.worker"


def worker_command(module: str = WORKER_MODULE) -> list[str]:
    """Return the command line of a worker of this Python with this module path."""
    return [sys.executable, "-c", _BOOTSTRAP.format(module=module), "\n".join(sys.path)]


class LocalTarget:
    """This machine."""

    name = "local"

    def __init__(self, command: Sequence[str] = (), delays: Delays | None = None) -> None:
        self._command = list(command)
        self._delays = delays or Delays()

    def start(self, activity_id: str, request: dict[str, JSON]) -> ProcessJob:
        """Start the worker.

        Raises:
            UnavailableError: No process can be started.
        """
        command = self._command or worker_command()
        return ProcessJob(command, {"activity": activity_id, "request": request}, self._delays)
