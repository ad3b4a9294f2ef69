"""Adding operators, and the operator sets that the model imports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dld_tui.core.errors import DldError
from dld_tui.screens.workspace.controller import Controller
from dld_tui.screens.workspace.history import History
from dld_tui.screens.workspace.inference import TypeInference
from dld_tui.screens.workspace.navigation import Navigation
from dld_tui.widgets.tasks import on_thread

if TYPE_CHECKING:
    from dld_tui.core.document import Scope
    from dld_tui.core.document.wiring import Wiring
    from dld_tui.core.operators.palette import PaletteOperator


@dataclass(eq=False)
class Operators(Controller):
    """Adds operators."""

    navigation: Navigation
    history: History
    inference: TypeInference

    async def warm_up(self) -> None:
        """Read the schemas on a thread: a tenth of a second that the first rows do not wait."""
        from dld_tui.core.operators.palette import warm_up

        await on_thread(warm_up)
        if self.page.is_attached:
            self.navigation.panes.graph.name_ports()

    def add(self) -> None:
        """Choose an operator, then what feeds it, and add it."""
        from dld_tui.core.document.wiring import Wiring
        from dld_tui.core.operators.groups import operator_palette
        from dld_tui.widgets.dialogs.wiring import AddNode

        scope = self._home
        palette = operator_palette(scope, self.model.listing.count_kinds())
        source = self._source(scope)

        def chosen(item: PaletteOperator | None) -> None:
            if item is not None:
                self.ask_wiring(Wiring(scope, item, source))

        self.ask(AddNode(palette), chosen)

    @property
    def _home(self) -> Scope:
        """The scope that new nodes go to."""
        from dld_tui.core.document import Scope

        node = self.cursor.node
        if node is not None:
            return node.scope
        subject = self.cursor.subject
        return subject if isinstance(subject, Scope) else self.model.listing.root

    def _source(self, scope: Scope) -> str:
        """Return the value that a new node most likely uses, ``""`` when there is none."""
        row = self.cursor.row
        if row is not None and row.name_of == "value" and scope.resolve(row.copied) is not None:
            return row.copied
        node = self.cursor.node
        names = node.outputs if node is not None else scope.inputs
        return next(filter(None, names), "")

    def ask_wiring(self, wiring: Wiring) -> None:
        """Ask what feeds a new node, and add it; the types of what could are known then."""
        from dld_tui.widgets.dialogs.wiring import WiringDialog

        def answered(answer: Wiring | None) -> None:
            if answer is not None:
                self.add_wired(answer)

        self.inference.when_typed(lambda: self.ask(WiringDialog(wiring), answered), always=True)

    def add_wired(self, wiring: Wiring) -> None:
        """Add a node and go to it."""
        from dld_tui.core.document import Node
        from dld_tui.core.document.edits.nodes import added_node

        try:
            transaction = self.history.edit("add_operator", **wiring.arguments())
        except DldError as error:
            self.complain(error)
            self.ask_wiring(wiring)  # nothing that was chosen is lost
            return
        node = added_node(transaction)
        if isinstance(node, Node):
            self.navigation.go_to(node)

    def show_opsets(self) -> None:
        """Show the imported operator sets; import, change or remove one."""
        from dld_tui.screens.model.opset_dialogs import OpsetDialog

        self.ask(OpsetDialog(self.document, self.history.try_edit))
