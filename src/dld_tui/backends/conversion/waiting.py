"""Long calls of a job, with word of what it waits for."""

from __future__ import annotations

from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

from dld_tui.backends.onnxruntime.session import seconds_loading
from dld_tui.core.events import Event, Progress

_EVERY_S = 1.0
_T = TypeVar("_T")


def told_while(stage: str, call: Callable[[], _T]) -> Generator[Event, None, _T]:
    """Make a call on a thread; yield its stage, and each second for how long ONNX Runtime loads.

    ONNX Runtime says nothing while it makes a session, which takes a minute where it has to.

    Args:
        stage: What is done, for the progress.
        call: What does it. It is waited for even where nobody wants more events.

    Returns:
        What it returns.

    Raises:
        Exception: What it raises.
    """
    yield Progress(0, None, stage=stage)
    with ThreadPoolExecutor(1, thread_name_prefix="told-while") as pool:
        future = pool.submit(call)
        while not wait([future], _EVERY_S).done:
            if (seconds := seconds_loading()) is not None:
                yield Progress(round(seconds), None, "s", f"{stage}: ONNX Runtime loads the model")
        return future.result()
