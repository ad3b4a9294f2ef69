"""Initializers and tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on

from dld_tui.core.document import Node, Scope
from dld_tui.screens.workspace_edit import Editing
from dld_tui.widgets.literal_preview import editable_text
from dld_tui.widgets.parameter_rows import ParameterRow
from dld_tui.widgets.parameters import Parameters

if TYPE_CHECKING:
    from dld_tui.screens.tensor_place import TensorPlace


class Tensors(Editing):
    """The part of the workspace for initializers and tensors."""

    def facts(self) -> set[str]:
        """Return what holds for its commands, too."""
        row = self._tensor_row
        return super().facts() | ({"tensor", "attribute"} if row is not None else set())

    @property
    def _tensor_row(self) -> ParameterRow | None:
        row = self.parameters.row if self.in_parameters else None
        return row if row is not None and row.tensor is not None else None

    # --- the editor -----------------------------------------------------------------------------

    @on(Parameters.TensorAsked)
    def tensor_asked(self, event: Parameters.TensorAsked) -> None:
        """Open the editor on Enter."""
        event.stop()
        self._open_row(event.row)

    def action_edit_tensor(self) -> None:
        """Open the editor of the tensor at the cursor."""
        row = self._tensor_row
        if row is not None:
            self._open_row(row)

    def action_edit(self) -> None:
        """Edit a tensor that is too large for one line, or an initializer, in its own page."""
        row, subject = self._tensor_row, self.subject
        if row is None:
            super().action_edit()
            return
        if row.attribute and isinstance(subject, Node):
            attribute = subject.attribute(row.attribute)
            if attribute is not None and editable_text(attribute) is not None:
                super().action_edit()
                return
        self._open_row(row)

    def _open_row(self, row: ParameterRow) -> None:
        place = self._place_of(self.parameters.holder_of(row))
        if place is None or place.tensor is None:
            self.notify("This tensor cannot be opened", timeout=3)
        else:
            self.open_tensor(place)

    def _place_of(self, row: ParameterRow) -> TensorPlace | None:
        from dld_tui.screens.tensor_place import TensorPlace  # lazy: few sessions edit tensors

        subject = self.subject
        if isinstance(subject, Node) and row.attribute:
            return TensorPlace(subject.scope, node=subject, attribute=row.attribute)
        scope = subject.scope if isinstance(subject, Node) else subject
        found = scope.resolve(row.copied) if scope is not None else None
        if found is None or found.kind != "initializer":
            return None
        return TensorPlace(found.scope, row.copied)

    def open_tensor(self, place: TensorPlace) -> None:
        """Show the editor of a tensor."""
        from dld_tui.screens.tensor_editor import TensorScreen

        self.app.push_screen(TensorScreen(self, place))

    # --- the list -------------------------------------------------------------------------------

    def action_initializers(self) -> None:
        """Show the initializers of the scope that the cursor is in."""
        from dld_tui.screens.initializers import InitializersScreen

        subject = self.subject
        scope = subject.scope if isinstance(subject, Node) else subject
        self.app.push_screen(InitializersScreen(self, _with_initializers(scope)))


def _with_initializers(scope: Scope | None) -> Scope | None:
    """Return the scope whose initializers to list: functions have none of their own."""
    return None if scope is None or scope.is_function else scope
