"""Edits of initializers: create, rename, delete, convert, where the values are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from dld_tui.core import fmt
from dld_tui.core.document import Scope
from dld_tui.core.errors import DldError
from dld_tui.core.types import JSON
from dld_tui.screens.tensors.conversion import Converting, TensorPlace, external_entries_dialog
from dld_tui.screens.workspace.editing import name_editor
from dld_tui.widgets.dialogs.dialogs import Choice, ChoiceDialog, PromptDialog
from dld_tui.widgets.hints import hint
from dld_tui.widgets.parameters.edit_bar import EditBar
from dld_tui.widgets.tasks import task
from dld_tui.widgets.tensors.initializers import DENSE, SPARSE, InitializerRow, InitializersPane

if TYPE_CHECKING:

    class _Base(Converting):
        scope: Scope | None

        @property
        def pane(self) -> InitializersPane: ...
        @property
        def row(self) -> InitializerRow | None: ...
        @property
        def chosen(self) -> list[InitializerRow]: ...
        def go_to(self, key: object) -> None: ...
else:
    _Base = Converting


class InitializerChanges(_Base):
    """A mixin for the list of initializers."""

    def action_create(self) -> None:
        """Ask what to make."""
        from dld_tui.screens.tensors.create_initializer import CreateInitializer

        scope = self.scope or self.document.main

        def made(name: str | None) -> None:
            if name:
                self.go_to((scope.path, DENSE, name))

        self.app.push_screen(CreateInitializer(self.workspace, scope, made))

    def action_rename(self) -> None:
        """Rename the initializer, or the output of the Constant node."""
        row = self.row
        if row is None:
            return
        shown, read = name_editor(row.name)

        def accept(text: str) -> None:
            name = read(text)
            self.edit("rename_value", scope=list(row.scope.path), value=row.name, name=name)
            self.go_to((row.scope.path, row.kind, name))

        self.pane.mount(EditBar("name", shown, accept))

    # --- delete ---------------------------------------------------------------------------------

    @task()
    async def action_delete(self) -> None:
        """Delete the marked initializers; asks when they are used."""
        rows = self._initializers(self.chosen, "deleted here: delete the node in the layers")
        if not rows:
            return
        uses = sum(row.uses for row in rows)
        if not uses:
            self._delete(rows, disconnect=False)
            return
        count = fmt.plural(len(rows), "initializer")
        verb = "is" if len(rows) == 1 else "are"
        message = f"{count} {verb} used in {fmt.plural(uses, 'place')}."
        choices = [
            Choice("d", "delete and disconnect the users", "delete"),
            Choice("k", "keep", ""),
        ]

        if await self.tasks.ask(ChoiceDialog("Delete", message, choices)):
            self._delete(rows, disconnect=True)

    @task()
    async def action_delete_unused(self) -> None:
        """Delete every listed initializer that nothing uses."""
        rows = [row for row in self.pane.shown() if row.is_initializer and not row.uses]
        if not rows:
            self.notify("Every initializer of the list is used", timeout=3)
            return
        size = fmt.size(sum(row.nbytes or 0 for row in rows))
        message = f"Nothing uses {fmt.plural(len(rows), 'initializer')} of {size}."
        choices = [Choice("d", "delete them", "delete"), Choice("k", "keep", "")]

        if await self.tasks.ask(ChoiceDialog("Delete unused", message, choices)):
            self._delete(rows, disconnect=False)

    def _delete(self, rows: Sequence[InitializerRow], *, disconnect: bool) -> None:
        self._for_scopes("Deleting", "delete_initializers", rows, disconnect=disconnect)

    # --- type and place -------------------------------------------------------------------------

    def action_convert(self) -> None:
        """Convert the element type of the marked ones, after showing what is lost."""
        places = [
            TensorPlace(row.scope, row.name)
            if row.node is None
            else TensorPlace(row.scope, node=row.node, attribute=row.attribute)
            for row in self.chosen
            if row.kind != SPARSE
        ]
        if not places:
            self.notify(
                hint("{initializers.sparse} makes a sparse one dense: then it can be converted"),
                timeout=4,
            )
            return
        self.ask_conversion(places)

    @task()
    async def action_external(self) -> None:
        """Move the marked ones to a data file beside the model."""
        rows = self._initializers(self.chosen, "moved to a data file", dense=True)
        if not rows:
            return
        path = self.document.path
        default = f"{path.name if path is not None else 'model.onnx'}.data"

        size = fmt.size(sum(row.nbytes or 0 for row in rows))
        about = f"The data file for {fmt.plural(len(rows), 'tensor')} of {size}, beside the model."
        location = await self.tasks.ask(PromptDialog("To external data", about, default))
        if location and location.strip():
            self._for_scopes(
                "Moving to a data file", "set_external", rows, location=location.strip()
            )

    def action_data_file(self) -> None:
        """Change where the values of the initializer under the cursor are read from."""
        row = self.row
        dialog = None
        if row is not None and row.kind == DENSE:
            dialog = external_entries_dialog(TensorPlace(row.scope, row.name), self.edit)
        if dialog is None:
            self.notify(
                hint("Its values are in no data file: {initializers.external} moves them to one"),
                timeout=4,
            )
        else:
            self.app.push_screen(dialog)

    def action_inline(self) -> None:
        """Move the marked ones into the model file."""
        rows = self._initializers(self.chosen, "external", dense=True)
        rows = [row for row in rows if row.tensor.is_external]
        if rows:
            self._for_scopes("Moving into the model", "set_inline", rows)
        else:
            self.notify("It is in the model file already", timeout=3)

    def action_sparse(self) -> None:
        """Make the marked ones sparse, or dense when they are sparse."""
        rows = self._initializers(self.chosen, "sparse")
        for kind, edit in ((DENSE, "to_sparse"), (SPARSE, "to_dense")):
            chosen = [row for row in rows if row.kind == kind]
            if chosen:
                self._for_scopes("Sparse and dense", edit, chosen)
                return

    @task()
    async def edit_sparse(self, row: InitializerRow) -> None:
        """Edit type, dimensions, indices and values of a sparse initializer as text."""
        from dld_tui.core.document.sparse_lines import read_sparse_lines, sparse_lines
        from dld_tui.widgets.dialogs.dialogs import (
            TextDialog,  # lazy: a text area takes long to load
        )

        record = row.scope.named("sparse_initializer").first(row.name)
        if record is None:
            return
        try:
            text = sparse_lines(self.document, record)
        except DldError as error:
            self.complain(error)
            return

        note = "Type and dimensions, then an element a line: indices = value."
        title = f"Sparse initializer {row.name}"
        dialog = TextDialog(title, text, check=read_sparse_lines, note=note)
        typed = await self.tasks.ask(dialog)
        if typed is None or typed == text:
            return
        try:
            arguments = read_sparse_lines(typed)
            self.edit("set_sparse", scope=list(row.scope.path), name=row.name, **arguments)
        except DldError as error:
            self.complain(error)
        self.go_to(row.key)

    # --- making edits ---------------------------------------------------------------------------

    def _initializers(
        self, rows: Iterable[InitializerRow], verb: str, *, dense: bool = False
    ) -> list[InitializerRow]:
        """Return the rows that are initializers; says so when none is."""
        found = list(rows)
        fitting = [row for row in found if row.is_initializer and (row.kind == DENSE or not dense)]
        if found and not fitting:
            what = "A sparse initializer" if found[0].is_initializer else "A Constant node's tensor"
            self.notify(f"{what} cannot be {verb}", timeout=4)
        return fitting

    def _for_scopes(
        self, title: str, edit: str, rows: Sequence[InitializerRow], **arguments: JSON
    ) -> None:
        """Make one edit in each scope, on a thread."""
        by_scope: dict[Scope, list[JSON]] = {}
        for row in rows:
            by_scope.setdefault(row.scope, []).append(row.name)
        steps = [
            partial(self.document.apply, edit, scope=list(scope.path), names=names, **arguments)
            for scope, names in by_scope.items()
        ]
        self.edit_on_thread(title, steps)
