"""Initializers and tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dld_tui.screens.workspace.controller import Controller
from dld_tui.screens.workspace.editing import Editing
from dld_tui.screens.workspace.history import History
from dld_tui.screens.workspace.panes import Panes
from dld_tui.widgets.parameters.pane import Parameters
from dld_tui.widgets.parameters.rows import ParameterRow

if TYPE_CHECKING:
    from dld_tui.screens.tensors.tensor_place import TensorPlace


@dataclass(eq=False)
class Tensors(Controller):
    """Opens the pages of initializers and tensors."""

    panes: Panes
    history: History
    editing: Editing

    # --- the editor -----------------------------------------------------------------------------

    def open_asked(self, event: Parameters.TensorAsked) -> None:
        """Open the editor on Enter."""
        self._open_row(event.row)

    def open(self) -> None:
        """Open the editor of the tensor at the cursor."""
        row = self.cursor.tensor_row
        if row is not None:
            self._open_row(row)

    def edit(self) -> None:
        """Edit a tensor that is too large for one line, or an initializer, in its own page."""
        from dld_tui.core.document import Node
        from dld_tui.widgets.parameters.literal_preview import editable_text

        row, subject = self.cursor.tensor_row, self.cursor.subject
        if row is not None and row.attribute and isinstance(subject, Node):
            attribute = subject.attribute(row.attribute)
            if attribute is not None and editable_text(attribute) is not None:
                self.editing.edit_attribute()
                return
        self.open()

    def _open_row(self, row: ParameterRow) -> None:
        place = self._place_of(self.panes.parameters.holder_of(row))
        if place is None or place.tensor is None:
            self.say("This tensor cannot be opened")
        else:
            self.open_tensor(place)

    def _place_of(self, row: ParameterRow) -> TensorPlace | None:
        from dld_tui.core.document import Node
        from dld_tui.screens.tensors.tensor_place import (
            TensorPlace,  # lazy: few sessions edit tensors
        )

        subject, scope = self.cursor.subject, self.cursor.subject_scope
        if isinstance(subject, Node) and row.attribute:
            return TensorPlace(subject.scope, node=subject, attribute=row.attribute)
        found = scope.resolve(row.copied) if scope is not None else None
        if found is None or found.kind != "initializer":
            return None
        return TensorPlace(found.scope, row.copied)

    def open_tensor(self, place: TensorPlace) -> None:
        """Show the editor of a tensor."""
        from dld_tui.screens.tensors.tensor_editor import TensorScreen

        self.ask(TensorScreen(self.history, place))

    # --- the list -------------------------------------------------------------------------------

    def show_initializers(self) -> None:
        """Show the initializers of the scope that the cursor is in."""
        from dld_tui.screens.tensors.initializers import InitializersScreen

        scope = self.cursor.subject_scope
        has_own = scope is not None and not scope.is_function
        self.ask(InitializersScreen(self.history, scope if has_own else None))
