"""How the program ends when nobody quits it: by an error in any thread, or by a signal.

Journals of unsaved edits stay, the terminal gets back what it was, and one line says what happened.
What an error leaves may be too broken to close: then the process is ended all the same.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, cast

from textual.app import App

from dld_tui.core.errors import ActivityError, CancelledError, DldError
from dld_tui.core.process import terminal
from dld_tui.core.process.paths import short
from dld_tui.core.text import visible
from dld_tui.widgets.shell.page import AppServices
from dld_tui.widgets.tasks import begin_thread

_GRACE_S = 10.0
"""So long the app may take to close after an error."""
_SIGNALS = {
    signal.SIGHUP: ActivityError("the terminal has gone"),
    signal.SIGINT: CancelledError("interrupted (SIGINT)"),
    signal.SIGQUIT: CancelledError("asked to end (SIGQUIT)"),
    signal.SIGTERM: CancelledError("asked to end (SIGTERM)"),
}
"""What a signal that ends the program means. Its default would leave the terminal in raw mode."""


class Ending:
    """The end of one app; only the first reason for it counts.

    Args:
        app: What ends.
    """

    def __init__(self, app: App[Any]) -> None:
        self.error: DldError | None = None
        """Why, for the one line and the exit status; None while nothing happened."""
        self._app = app
        self._host = cast("AppServices", app)
        self._lock = threading.RLock()
        self._restore: Callable[[], None] | None = None
        """Gives the streams of the process back; set while the app has the terminal."""

    def by_error(self, error: BaseException) -> None:
        """End because of an error; may be called in any thread."""
        try:
            reason = self._reason(error)
        except Exception:  # noqa: BLE001 - no memory is left to say more
            reason = ActivityError(f"internal error: {type(error).__name__}")
        self._end(reason)

    def listen(self) -> None:
        """Show errors of the running event loop that nobody handles, as those of tasks are."""
        if self.error is not None:  # a signal came while the app started
            self._app._close_messages_no_wait()
        if self._restore is not None:
            asyncio.get_running_loop().set_exception_handler(self._loop_failed)

    @contextmanager
    def watched(self, restore: Callable[[], None]) -> Iterator[None]:
        """Handle signals, and errors that nobody handles, while the app has the terminal.

        Args:
            restore: Gives the streams of the process back; may be called in any thread, and twice.
        """
        self._restore = restore
        hooks = threading.excepthook, sys.unraisablehook
        handlers = {
            number: signal.signal(number, self._signalled)
            for number in _SIGNALS
            if signal.getsignal(number) is not signal.SIG_IGN
        }
        threading.excepthook, sys.unraisablehook = self._thread_failed, _log_unraisable
        try:
            yield
        except BaseException as error:  # noqa: BLE001 - it ends the program, whatever it is
            self.by_error(error)
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
            threading.excepthook, sys.unraisablehook = hooks
            self._leave_terminal()
            self._restore = None

    def _reason(self, error: BaseException) -> DldError:
        kept = self._kept()
        if isinstance(error, DldError):
            return type(error)(error.message, where=error.where, hint=kept)
        path = terminal.log("".join(traceback.format_exception(error)))
        text = f"internal error: {type(error).__name__}"
        text += f": {error}" if str(error) else ""
        return ActivityError(text + (f"; details in {short(path)}" if path else ""), hint=kept)

    def _kept(self) -> str | None:
        """Say where unsaved edits are."""
        unsaved = [(page.path, line) for page in self._host.pages for line in page.unsaved()]
        kept = [line for path, line in unsaved if path is not None]
        if not kept:
            return None
        return f"Unsaved edits are kept ({'; '.join(kept)}): open the file again to restore them"

    def _signalled(self, number: int, frame: FrameType | None) -> None:
        self._end(self._reason(_SIGNALS[signal.Signals(number)]))

    def _thread_failed(self, args: Any) -> None:
        if not issubclass(args.exc_type, SystemExit):
            self._show(args.exc_value or args.exc_type())

    def _loop_failed(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if error is None:
            terminal.log(str(context.get("message")))
        else:
            self._show(error)

    def _show(self, error: BaseException) -> None:
        """Show an error that leaves the app as it is, in a dialog."""
        loop = self._app._loop
        if self._app.is_running and loop is not None:
            with suppress(RuntimeError):  # the loop has closed meanwhile
                loop.call_soon_threadsafe(self._app.call_later, self._host.show_error, error)
                return
        terminal.log("".join(traceback.format_exception(error)))

    def _end(self, error: DldError) -> None:
        with self._lock:  # a signal may come while this thread is here
            if self.error is not None:
                return
            self.error = error
        if self._restore is not None:
            begin_thread(self._give_up, self._restore)
        loop = self._app._loop
        if loop is not None:
            with suppress(RuntimeError):  # the loop has closed meanwhile
                loop.call_soon_threadsafe(self._app._close_messages_no_wait)

    def _give_up(self, restore: Callable[[], None]) -> None:
        """Let the app end, and end the process when it, or a thread, does not."""
        time.sleep(_GRACE_S)
        self._leave_terminal()
        if self._restore is not None:  # else the line has been printed
            restore()
            with suppress(OSError):
                os.write(2, f"dld: {visible(str(self.error))}\n".encode(errors="replace"))
        os._exit(int(self.error.status) if self.error is not None else 0)

    def _leave_terminal(self) -> None:
        """Give the terminal back where the app has not done so."""
        driver: Any = self._app._driver
        if driver is not None:
            driver.leave_at_once()


def _log_unraisable(args: Any) -> None:
    """Keep what cannot be raised away from the screen."""
    terminal.log("".join(traceback.format_exception(args.exc_value)) if args.exc_value else "")
