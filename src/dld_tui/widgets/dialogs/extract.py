"""What a part of a model is written to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from textual.widget import Widget

from dld_tui.core import fmt
from dld_tui.core.text import clip, visible
from dld_tui.widgets.dialogs.dialogs import Dialog
from dld_tui.widgets.forms.path_input import PathInput
from dld_tui.widgets.lists.line_source import Piece
from dld_tui.widgets.lists.styled import Rows

if TYPE_CHECKING:
    from dld_tui.core.document import Scope
    from dld_tui.core.document.parts.extraction import Extraction

_MOST = 4
"""Inputs, and outputs, that are listed."""
_OTHER_ROWS = 18
"""Rows of a dialog beside those that list inputs and outputs."""


class ExtractDialog(Dialog[Path]):
    """Gives the path to write to, or None.

    Args:
        extraction: What would be written.
        start: The path to begin with.
    """

    TITLE_TEXT = "Extract to a model"
    KEYS = "Tab complete  Enter write  Esc close"

    def __init__(self, extraction: Extraction, start: str) -> None:
        super().__init__()
        self._found = extraction
        self._start = start

    def body(self) -> Iterable[Widget]:
        main = self._found.document.main
        stored = main.initializers
        size = fmt.size(sum(tensor.nbytes or 0 for tensor in stored))
        weights = f", {fmt.plural(len(stored), 'initializer')} of {size}" if stored else ""
        rows: list[list[Piece]] = [[(f"{fmt.plural(len(main.nodes), 'node')}{weights}", "strong")]]
        most = max(1, min(_MOST, (self.app.size.height - _OTHER_ROWS) // 2))
        rows += self._listed("input", main, main.inputs, most)
        rows += self._listed("output", main, main.outputs, most)
        if self._found.untyped:
            what = fmt.plural(len(self._found.untyped), "type")
            rows.append([(f"{what} not known: declare them after, or run shape inference", "warn")])
        rows += [[(visible(remark), "warn")] for remark in self._found.remarks[:2]]
        yield Rows([*rows, []])
        yield PathInput(self._start, "path of the model", rows=4)

    def _listed(
        self, title: str, scope: Scope, names: Sequence[str], most: int
    ) -> list[list[Piece]]:
        rows: list[list[Piece]] = []
        for name in names[:most]:
            known = scope.value_type(name)
            kind = visible(known.short) if known is not None else "?"
            room = max(8, self.text_width - len(kind) - 12)
            shown = clip(visible(name), room, keep="middle")
            rows.append([(f"{title:<8}", "dim"), (shown, "io"), (f"  {kind}", "type")])
        if len(names) > most:
            rows.append([(f"{'':<8}and {fmt.plural(len(names) - most, f'more {title}')}", "dim")])
        if not names:
            rows.append([(f"no {title}s", "dim")])
        return rows

    def on_path_input_chosen(self, event: PathInput.Chosen) -> None:
        """Give the path."""
        event.stop()
        self.dismiss(event.path)
