"""Bodies of nodes: adding, copying, moving, deleting the subgraphs of If, Loop, Scan and others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from dld_tui.core import fmt
from dld_tui.core.text import clip, visible
from dld_tui.core.types import JSON
from dld_tui.screens.workspace.controller import Controller
from dld_tui.screens.workspace.history import History
from dld_tui.screens.workspace.navigation import Navigation
from dld_tui.widgets.dialogs.dialogs import Choice, ChoiceDialog, PromptDialog
from dld_tui.widgets.parameters.model import place_text

if TYPE_CHECKING:
    from dld_tui.core.document import Node, Scope
    from dld_tui.widgets.dialogs.search import PickItem


_OTHER = "another"
_MOST = 9


@dataclass(frozen=True)
class Slot:
    """Where a node can take a body."""

    attribute: str
    many: bool
    """Whether the attribute is a list of bodies."""
    replaces: bool = False
    """Whether it takes the place of the body that is there."""

    @property
    def label(self) -> str:
        """Return what is asked: visible text."""
        tail = ", in the place of the one there is" if self.replaces else ""
        return visible(self.attribute) + tail


@dataclass(eq=False)
class Bodies(Controller):
    """Adds, copies, moves and deletes subgraphs."""

    navigation: Navigation
    history: History

    def show_menu(self) -> None:
        """Ask what is to be done with the bodies of the node."""
        node = self.cursor.node
        if node is None:
            return
        bodies = node.subgraphs()
        does: dict[str, Callable[[], None]] = {
            "add": partial(self._ask_slot, node, partial(self._add_body, node)),
            "copy": partial(self._ask_slot, node, partial(self._ask_source, node)),
        }
        choices = [Choice("a", "add a new body", "add"), Choice("c", "copy another body", "copy")]
        if bodies:
            does["delete"] = partial(self._ask_body, "Delete", bodies, self._delete_body)
            choices.append(Choice("d", "delete a body", "delete"))
        movable = [body for body in bodies if body.position is not None]
        if len(movable) > 1:
            does["move"] = partial(self._ask_body, "Move to the front", movable, self._move_body)
            choices.append(Choice("m", "move a body to the front of its list", "move"))

        def chosen(answer: str | None) -> None:
            if answer is not None:
                does[answer]()

        name = clip(visible(node.name or node.op_type), 40, keep="middle")
        count = "one body" if len(bodies) == 1 else f"{len(bodies) or 'no'} bodies"
        message = f"{name} has {count}."
        self.ask(ChoiceDialog("Bodies", message, choices), chosen)

    # --- where to -------------------------------------------------------------------------------

    def _ask_slot(self, node: Node, then: Callable[[Slot], None]) -> None:
        """Ask for the attribute that a new body goes into, unless there is only one."""
        from dld_tui.widgets.parameters.model import node_schema

        slots = body_slots(node)
        if len(slots) == 1 and not slots[0].replaces:
            then(slots[0])
            return
        if not slots:
            self._ask_attribute(then)
            return
        choices = [
            Choice(str(at + 1), slot.label, str(at)) for at, slot in enumerate(slots[:_MOST])
        ]
        if node_schema(node) is None:
            choices.append(Choice("o", "another attribute", _OTHER))

        def chosen(answer: str | None) -> None:
            if answer == _OTHER:
                self._ask_attribute(then)
            elif answer is not None:
                then(slots[int(answer)])

        self.ask(ChoiceDialog("Body", "Which body is it to be?", choices), chosen)

    def _ask_attribute(self, then: Callable[[Slot], None]) -> None:
        def typed(text: str | None) -> None:
            if text is not None and (name := text.strip()):
                many = name.endswith("[]")
                then(Slot(name.removesuffix("[]"), many))

        message = "The attribute that is to hold the body; with [] behind it, a list of bodies."
        self.ask(PromptDialog("Body", message, placeholder="body"), typed)

    def _add_body(self, node: Node, slot: Slot) -> None:
        made = self.history.try_edit("add_subgraph", **_place(node, slot))
        self._open_new(node, slot, made)

    def _open_new(self, node: Node, slot: Slot, made: bool) -> None:
        if made:
            self.navigation.open_scope(node.children[slot.attribute][-1])

    # --- copying --------------------------------------------------------------------------------

    def _ask_source(self, node: Node, slot: Slot) -> None:
        from dld_tui.widgets.dialogs.search import PickDialog

        bodies = [scope for scope in self.document.scopes() if scope.owner is not None]
        if not bodies:
            self.say("The model has no bodies to copy")
            return

        def chosen(place: object) -> None:
            if isinstance(place, int):
                source: list[JSON] = list(bodies[place].path)
                made = self.history.try_edit("copy_subgraph", source=source, **_place(node, slot))
                self._open_new(node, slot, made)

        items = partial(_body_items, bodies)
        self.ask(PickDialog("Copy which body?", items, placeholder="place"), chosen)

    # --- deleting and moving --------------------------------------------------------------------

    def _ask_body(self, title: str, bodies: Sequence[Scope], then: Callable[[Scope], None]) -> None:
        from dld_tui.widgets.dialogs.search import PickDialog

        if len(bodies) == 1:
            then(bodies[0])
            return

        def chosen(place: object) -> None:
            if isinstance(place, int):
                then(bodies[place])

        items = partial(_body_items, bodies)
        self.ask(PickDialog(f"{title} which body?", items, placeholder="name"), chosen)

    def _delete_body(self, body: Scope) -> None:
        self.history.try_edit("delete_subgraph", index=body.position, **_place_of(body))

    def _move_body(self, body: Scope) -> None:
        self.history.try_edit("move_subgraph", index=body.position, to=0, **_place_of(body))


def body_slots(node: Node) -> list[Slot]:
    """Return the attributes that can take a body, those without one first."""
    from dld_tui.widgets.parameters.model import node_schema

    schema = node_schema(node)
    wanted = (
        [item for item in schema.attributes if item.kind in ("graph", "graphs")] if schema else []
    )
    slots = {item.name: Slot(item.name, item.kind == "graphs") for item in wanted}
    for attribute in node.attributes():
        if attribute.kind == "graphs":
            slots[attribute.name] = Slot(attribute.name, many=True)
        elif attribute.kind == "graph":
            slots[attribute.name] = Slot(attribute.name, many=False, replaces=True)
        else:
            slots.pop(attribute.name, None)
    return sorted(slots.values(), key=lambda slot: slot.replaces)


def _place(node: Node, slot: Slot) -> dict[str, JSON]:
    scope: list[JSON] = list(node.scope.path)
    place: dict[str, JSON] = {"scope": scope, "node": node.ref, "attribute": slot.attribute}
    return place | {"many": slot.many, "replace": slot.replaces}


def _place_of(body: Scope) -> dict[str, JSON]:
    assert body.owner is not None
    scope: list[JSON] = list(body.owner.scope.path)
    return {"scope": scope, "node": body.owner.ref, "attribute": body.attribute}


def _body_items(bodies: Sequence[Scope]) -> Iterable[PickItem]:
    from dld_tui.widgets.dialogs.search import PickItem

    for at, body in enumerate(bodies):
        place, size = place_text(body), fmt.plural(len(body.nodes), "node")
        captured = len(body.captured())
        note = f"{size}, {captured} captured" if captured else size
        yield PickItem(at, [(place, "name"), (f"  {note}", "dim")], place)
