"""What all screens share: commands, how they leave, and that a burst of keys is painted once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from textual.await_complete import AwaitComplete

from dld_tui.commands import Command
from dld_tui.widgets.shell.command_dispatch import is_greyed, run_command
from dld_tui.widgets.tasks import Tasks

if TYPE_CHECKING:
    from textual.screen import Screen
    from textual.timer import Timer

    _Base = Screen[Any]
else:
    _Base = object


class Front(_Base):
    """A mixin for screens, put before the screen class.

    Textual's ``dismiss`` takes away whatever is on top: said twice, it takes the page below the
    dialog, too, and of the last page it ends the program.
    """

    _hold: Timer | None = None

    tasks = cached_property(Tasks)
    """Its long work and its dialogs."""

    # --- commands, as those of widgets ----------------------------------------------------------

    SCOPE: ClassVar[str] = ""

    def facts(self) -> set[str]:
        """Return the facts that hold now: keys of ``commands.FACTS``."""
        return set()

    def own_commands(self) -> Sequence[Command]:
        """Return what the palette offers here besides the commands of the table."""
        return ()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Grey a command (None) while one of its needs does not hold."""
        return (
            None
            if is_greyed(self, action, parameters)
            else super().check_action(action, parameters)
        )

    async def action_command(self, target: str, *arguments: str) -> None:
        await run_command(self, target, arguments)

    # --- painting -------------------------------------------------------------------------------

    def hold_paint(self, seconds: float) -> None:
        """Paint nothing for a while, or until :meth:`release_paint`: what was there stays.

        For a page that is filled step by step: each step would be sent to the terminal.
        """
        if self._hold is not None:
            self._hold.stop()
        self._hold = self.set_timer(seconds, self.release_paint)

    def release_paint_when_laid_out(self) -> None:
        """Paint again when what has just been filled has found its size."""
        self.call_after_refresh(self.call_after_refresh, self.release_paint)

    def release_paint(self) -> None:
        """Paint again."""
        if self._hold is not None:
            self._hold.stop()
            self._hold = None
            self.refresh()

    def _compositor_refresh(self) -> None:
        if self._hold is None:
            self._spoil_between()
            super()._compositor_refresh()

    def _spoil_between(self) -> None:
        """Have dialogs that are over this screen, and under another, paint it again.

        Each paints what is below it; Textual tells that to the one on top alone.
        """
        below, regions = self.app._background_screens, self._compositor._dirty_regions
        if regions and self in below:
            for screen in below[below.index(self) + 1 :]:
                screen._set_dirty(*regions)

    def _on_timer_update(self) -> None:
        # Keys wait for a layout, and for what waits for it, but for no paint.
        keys: Any = getattr(self.app, "keys", None)
        if self._layout_required or self._callbacks or keys is None or not keys.defers_paint():
            super()._on_timer_update()
        else:
            self._update_timer.pause()

    # --- leaving --------------------------------------------------------------------------------

    def dismiss(self, result: Any = None) -> AwaitComplete:
        """Leave with a result, also from under a dialog or in a tab that is not seen.

        A screen that has left already, or that is a tab, stays as it is.
        """
        app = self.app
        if self is app.screen and len(app.screen_stack) > 1:
            pop: AwaitComplete = super().dismiss(result)
            return pop
        stack = next((stack for stack in app._screen_stacks.values() if self in stack), [self])
        if stack[0] is self:
            return AwaitComplete()
        if self._result_callbacks:
            self._result_callbacks[-1](result)
        stack.remove(self)
        self._pop_result_callback()
        return AwaitComplete(app._replace_screen(self)).call_next(app)
