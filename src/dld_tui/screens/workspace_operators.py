"""Adding operators, and the operator sets that the model imports."""

from __future__ import annotations

from dld_tui.core.document import Node, Scope
from dld_tui.core.document.edits.operators import added_node
from dld_tui.core.document.operator_palette import operator_palette
from dld_tui.core.document.wiring import Wiring
from dld_tui.core.errors import DldError
from dld_tui.core.operators.palette import PaletteOperator, warm_up
from dld_tui.screens.workspace_edit import Editing
from dld_tui.widgets.add_node import AddNode
from dld_tui.widgets.opset_dialog import OpsetDialog
from dld_tui.widgets.wiring_dialog import WiringDialog


class Operating(Editing):
    """The part of the workspace that adds operators."""

    def on_mount(self) -> None:
        """Read the schemas on a thread: a tenth of a second that the first key must not wait."""
        self.run_worker(warm_up, thread=True, group="schemas", name="operator schemas")

    def action_add_node(self) -> None:
        """Choose an operator, then what feeds it, and add it."""
        scope = self._home
        palette = operator_palette(scope, self.explorer.model.count_kinds())
        source = self._source(scope)

        def chosen(item: PaletteOperator | None) -> None:
            if item is not None:
                self.ask_wiring(Wiring(scope, item, source))

        self.app.push_screen(AddNode(palette), chosen)

    @property
    def _home(self) -> Scope:
        """The scope that new nodes go to."""
        node = self.node
        if node is not None:
            return node.scope
        subject = self.subject
        return subject if isinstance(subject, Scope) else self.explorer.model.root

    def _source(self, scope: Scope) -> str:
        """Return the value that a new node most likely uses, ``""`` when there is none."""
        row = self.parameters.row if self.in_parameters else None
        if row is not None and row.name_of == "value" and scope.resolve(row.copied) is not None:
            return row.copied
        node = self.node
        names = node.outputs if node is not None else scope.inputs
        return next(filter(None, names), "")

    def ask_wiring(self, wiring: Wiring) -> None:
        """Ask what feeds a new node, and add it."""

        def answered(answer: Wiring | None) -> None:
            if answer is not None:
                self.add_wired(answer)

        self.app.push_screen(WiringDialog(wiring), answered)

    def add_wired(self, wiring: Wiring) -> None:
        """Add a node and go to it."""
        try:
            transaction = self.edit("add_operator", **wiring.arguments())
        except DldError as error:
            self.complain(error)
            self.ask_wiring(wiring)  # nothing that was chosen is lost
            return
        node = added_node(transaction)
        if isinstance(node, Node):
            self.go_to(node)

    def action_opsets(self) -> None:
        """Show the imported operator sets; import, change or remove one."""
        self.app.push_screen(OpsetDialog(self.document, self.try_edit))
