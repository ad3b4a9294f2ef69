"""How a screen leaves: itself, once, from wherever it lies; never the one below it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textual.await_complete import AwaitComplete

if TYPE_CHECKING:
    from textual.screen import Screen

    _Base = Screen[Any]
else:
    _Base = object


class Closing(_Base):
    """A mixin for screens, put before the screen class.

    Textual's ``dismiss`` takes away whatever is on top: said twice, it takes the page below the
    dialog, too, and of the last page it ends the program.
    """

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
