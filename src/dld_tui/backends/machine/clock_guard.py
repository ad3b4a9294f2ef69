"""Holds the clocks of a GPU, or of a Jetson, as long as its standard input is open.

It runs as a separate process in its own session: however the measuring process ends, killed or
not, its end of the pipe closes and the clocks are released. Prints one line of JSON:
``{"locked": true, "mhz": 1590}`` or ``{"locked": false, "reason": "…"}``.

A GPU is held at its base clock through NVML, a Jetson at the highest clocks of its power mode
through ``jetson_clocks``. A file keeps the previous clocks of the board meanwhile: should this
process be killed as well, the next one restores them first.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from dld_tui.backends.machine import nvml
from dld_tui.backends.machine.jetson import ABSENT, NO_RIGHTS, ask_tool
from dld_tui.core.errors import DldError, UnavailableError
from dld_tui.core.process.child import Child

_ANSWER_S = 40.0
_RELEASE_S = 20.0
BOARD = "jetson"
"""The device that means all clocks of a Jetson."""
STORED = Path("/run/dld-tui-jetson-clocks")
"""The previous clocks of the board; only root writes there, and a reboot empties it."""


class ClockLock:
    """Clocks that are locked until :meth:`release`.

    Args:
        device: As :class:`dld_tui.backends.machine.nvml.Nvml` takes it, or `BOARD`.
        stored: Where the clocks of a board are kept meanwhile.

    Raises:
        UnavailableError: It is not permitted or not supported; nothing is changed then.
    """

    def __init__(self, device: int | str, stored: Path = STORED) -> None:
        self.mhz: int | None = None
        """The base clock; None if unknown."""
        self._by_hand = (
            f"run sudo jetson_clocks --restore {stored}"
            if device == BOARD
            else "run nvidia-smi -rgc"
        )
        self.problem: str | None = None
        """Why the release may not have worked; None when it did."""
        self._guard = Child(
            [
                sys.executable,
                "-m",
                "dld_tui.backends.machine.clock_guard",
                str(device),
                str(stored),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            outlives=True,  # until it has released the clocks
        )
        answer = self._answer()
        if not answer.get("locked"):
            self._end()
            reason = answer.get("reason") or "the process that holds them did not answer"
            raise UnavailableError(f"the clocks could not be locked: {reason}")
        mhz = answer.get("mhz")
        self.mhz = mhz if isinstance(mhz, int) else None

    def release(self) -> None:
        """Give the clocks back to the driver; `problem` says when that may have failed."""
        if self._guard.poll() is None or self._guard.stdin is not None:
            self._end()

    def _answer(self) -> dict[str, Any]:
        timer = threading.Timer(_ANSWER_S, self._guard.kill)
        timer.start()
        try:
            assert self._guard.stdout is not None
            answer = json.loads(self._guard.stdout.readline())
        except ValueError:
            return {}
        finally:
            timer.cancel()
        return answer if isinstance(answer, dict) else {}

    def _end(self) -> None:
        guard = self._guard
        with contextlib.suppress(OSError, ValueError):
            if guard.stdin is not None:
                guard.stdin.close()
        guard.stdin = None
        try:
            status = guard.wait(_RELEASE_S)
        except subprocess.TimeoutExpired:
            self.problem = f"the driver does not answer; {self._by_hand}"
            return
        if guard.stdout is not None:
            guard.stdout.close()
        if status:
            self.problem = f"the clocks may still be locked: {self._by_hand}"


def lock_to_base(gpu: nvml.Nvml, module: Any) -> None:
    """Lock the clocks of a GPU to its base clock.

    Raises:
        UnavailableError: The driver does not do it; says why.
    """
    base = module.NVML_CLOCK_LIMIT_ID_TDP
    try:
        module.nvmlDeviceSetGpuLockedClocks(gpu.handle, base, base)
    except module.NVMLError as error:
        default = gpu.ask("nvmlDeviceGetDefaultApplicationsClock", module.NVML_CLOCK_GRAPHICS)
        permitted = "permission" not in str(error).lower()
        if not permitted or not default:
            hint = "" if permitted else ", which needs root"
            raise UnavailableError(f"{error}{hint}") from error
        try:  # an older driver, which has no name for the base clock
            module.nvmlDeviceSetGpuLockedClocks(gpu.handle, default, default)
        except module.NVMLError as second:
            raise UnavailableError(str(second)) from second


def hold_board(stored: Path) -> int:
    """Hold the clocks of a board until the end of standard input. Returns the exit status."""
    problem = "" if not stored.exists() else _board_tool("--restore", stored)
    if not problem:
        stored.unlink(missing_ok=True)  # it would ask whether to write over it
        problem = _board_tool("--store", stored)
    if problem:
        _say(locked=False, reason=problem)
        return 0
    try:
        problem = _board_tool()
        _say(locked=not problem, reason=problem)
        while not problem and os.read(0, 4096):
            pass
    finally:
        problem = _board_tool("--restore", stored)
    if problem:
        return 1
    stored.unlink(missing_ok=True)
    return 0


def _board_tool(*arguments: str | Path) -> str:
    """Run ``jetson_clocks`` and return what went wrong; empty when nothing did."""
    answer = ask_tool(["jetson_clocks", *map(str, arguments)])
    if answer.problem == ABSENT:
        return "jetson_clocks is not installed"
    if answer.problem == NO_RIGHTS:
        return "jetson_clocks needs root: run dld with sudo"
    return f"jetson_clocks: {answer.why}" if answer.problem else ""


def main(device: str, stored: str = str(STORED), module: Any = None) -> int:
    """Lock, wait for the end of standard input, release. Returns the exit status."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if device == BOARD:
        return hold_board(Path(stored))
    try:
        module = module if module is not None else nvml.load()
        gpu = nvml.Nvml(int(device) if device.isdecimal() else device, module)
    except DldError as error:
        _say(locked=False, reason=error.message)
        return 0
    with contextlib.closing(gpu):
        try:
            lock_to_base(gpu, module)
        except UnavailableError as error:
            _say(locked=False, reason=error.message)
            return 0
        try:
            _say(locked=True, mhz=gpu.base_mhz())
            while os.read(0, 4096):
                pass
        finally:
            try:
                module.nvmlDeviceResetGpuLockedClocks(gpu.handle)
            except module.NVMLError:
                return 1
    return 0


def _say(**answer: Any) -> None:
    with contextlib.suppress(OSError):
        os.write(1, json.dumps(answer).encode() + b"\n")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
