"""The types of values as lists show them: what is painted is no longer being edited."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dld_tui.core.document.scope import Scope
    from dld_tui.core.document.value_types import ValueType


class ShownTypes:
    """What is known of values, read when it is first asked for and kept until the next edit.

    While a thread is making edits (``is_held``) nothing is read: indexes of the scopes are made
    when somebody looks, and two threads must not make them at once.
    """

    def __init__(self) -> None:
        self.is_held = False
        self._known: dict[tuple[Scope, str], tuple[ValueType | None, bool]] = {}

    def of(self, scope: Scope, name: str) -> tuple[ValueType | None, bool]:
        """Return the type of a value, and whether it may be wrong since an edit.

        Args:
            scope: Where the value is seen.
            name: The value.
        """
        known = self._known.get((scope, name))
        if known is None:
            if self.is_held:
                return None, False
            known = self._known[scope, name] = scope.value_type(name), scope.is_stale(name)
        return known

    def clear(self) -> None:
        """Read all anew: the model was edited, or inference knows more."""
        self._known.clear()
