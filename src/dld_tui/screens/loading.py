"""What a tab shows is read on a thread; where that fails the tab closes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from dld_tui.core.types import CancelCheck, ProgressCallback
from dld_tui.widgets.shell.host import host
from dld_tui.widgets.tasks import with_progress

if TYPE_CHECKING:
    from dld_tui.widgets.shell.page import Page

T = TypeVar("T")


async def read_or_close(
    page: Page,
    read: Callable[[ProgressCallback, CancelCheck], T],
    report: ProgressCallback = lambda done, total: None,
) -> T:
    """Return what is read on a thread; a page that has nothing to show closes its tab.

    Args:
        page: Its file cannot be shown when this fails or is stopped; the app shows why.
        read: Called on the thread with what tells its progress, and whether to stop.
        report: Told the progress, on the event loop.
    """
    try:
        return await with_progress(read, report)
    except (Exception, asyncio.CancelledError):
        host(page).close_page(page)
        raise
