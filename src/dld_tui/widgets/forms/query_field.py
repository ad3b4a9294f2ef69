"""A text field for queries and patterns, which offers how its last word may go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.suggester import Suggester

from dld_tui.widgets.forms.text_field import TextField

if TYPE_CHECKING:
    from dld_tui.core.rewrite.query import Completion


class _Suggester(Suggester):
    def __init__(self, completion: Completion) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self._completion = completion

    async def get_suggestion(self, value: str) -> str | None:
        return self._completion.complete(value)


def query_field(value: str, placeholder: str, completion: Completion) -> TextField:
    """Return a field whose suggestion Right takes."""
    return TextField(value, placeholder, suggester=_Suggester(completion))
