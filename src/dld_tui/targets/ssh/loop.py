"""One asyncio loop on its own thread: all connections of this process use it.

The rest of the program is blocking code in threads; :func:`call` is their entry point.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_thread: threading.Thread | None = None


def call(coroutine: Coroutine[Any, Any, T], timeout: float | None = None) -> T:
    """Run a coroutine to its end on the loop and return its result.

    What interrupts the wait (Ctrl+C, the timeout) cancels the coroutine.

    Args:
        coroutine: What to run.
        timeout: Seconds to wait; None is for ever.

    Raises:
        TimeoutError: It took longer.
    """
    future = submit(coroutine)
    try:
        return future.result(timeout)
    except concurrent.futures.TimeoutError:
        future.cancel()
        raise TimeoutError from None
    except BaseException:
        future.cancel()
        raise


def submit(coroutine: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
    """Start a coroutine on the loop and return its future, which may be cancelled."""
    return asyncio.run_coroutine_threadsafe(coroutine, running())


async def within(seconds: float, work: Awaitable[T]) -> T:
    """Wait for an awaitable with a timeout; then it is cancelled.

    ``asyncio.wait_for`` of Python 3.10 and 3.11 loses a cancellation that comes at the moment when
    the work ends: a job that should stop would continue. This one never does.

    Raises:
        asyncio.TimeoutError: The time is over.
    """
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task}, timeout=seconds)
        if task.done():
            return task.result()
        raise asyncio.TimeoutError
    finally:
        if task.cancel():
            await asyncio.wait({task})
        if not task.cancelled():
            task.exception()  # told already, or nobody asks for it any more


async def in_thread(function: Callable[..., T], *arguments: Any) -> T:
    """Run a function that waits (for a user, a file) on a thread beside the loop."""
    future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    loop = asyncio.get_running_loop()

    def work() -> None:
        try:
            result = function(*arguments)
        except BaseException as error:  # noqa: BLE001 - carried over to the one who waits
            _deliver(loop, future, None, error)
        else:
            _deliver(loop, future, result, None)

    # Not an executor: an unanswered question must not keep the program from exiting.
    threading.Thread(target=work, name="dld-ssh-wait", daemon=True).start()
    return await future


def running() -> asyncio.AbstractEventLoop:
    """Return the loop, started when it is not."""
    global _loop, _thread  # noqa: PLW0603 - one loop a process is the point of this module
    with _lock:
        if _loop is None or _thread is None or not _thread.is_alive():
            _loop = asyncio.new_event_loop()
            _thread = threading.Thread(target=_run, args=(_loop,), name="dld-ssh", daemon=True)
            _thread.start()
        return _loop


def stop() -> None:
    """Cancel what still runs and end the loop; the next call starts a new one."""
    global _loop, _thread  # noqa: PLW0603 - as above
    with _lock:
        loop, thread = _loop, _thread
        _loop = _thread = None
    if loop is None or thread is None or not thread.is_alive():
        return
    loop.call_soon_threadsafe(loop.stop)
    thread.join(5.0)


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()


def _deliver(
    loop: asyncio.AbstractEventLoop,
    future: asyncio.Future[T],
    result: T | None,
    error: BaseException | None,
) -> None:
    def put() -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    try:
        loop.call_soon_threadsafe(put)
    except RuntimeError:  # the loop has ended meanwhile: nobody waits any more
        pass


atexit.register(stop)
