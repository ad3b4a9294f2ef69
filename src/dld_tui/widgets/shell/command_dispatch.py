"""Commands of :mod:`dld_tui.commands` on a widget, a screen or the app, and in hints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

from textual.binding import ActiveBinding, Binding, BindingType
from textual.css.query import NoMatches

from dld_tui import commands
from dld_tui.commands.key_names import key_name, with_keys
from dld_tui.widgets.tasks import Tasks

if TYPE_CHECKING:
    from textual.dom import DOMNode
    from textual.events import Key
    from textual.screen import Screen

    _Base = DOMNode
else:
    _Base = object


def bindings_for(*scopes: str) -> list[BindingType]:
    """Return the bindings of some scopes; each has its command's id, so users can remap it.

    A key that several scopes have is that of the last one.
    """
    bindings: list[BindingType] = []
    used_keys: set[str] = set()
    for scope in reversed(scopes):
        rows = [(row, row.keys.split(",")) for row in commands.in_scope(scope) if row.keys]
        bindings[:0] = [
            Binding(
                ",".join(key for key in keys if key not in used_keys),
                command.action_string,
                command.title,
                show=command.footer,
                key_display=key_name(keys[0]),
                priority=command.priority,
                tooltip=command.help,
                id=command.id,
            )
            for command, keys in rows
            if not used_keys.issuperset(keys)
        ]
        used_keys.update(key for _, keys in rows for key in keys)
    return bindings


def shown_too(id: str) -> list[BindingType]:
    """Return the bindings of a command of lists that the footer shows for one of them."""
    bindings = (binding for binding in bindings_for("list") if isinstance(binding, Binding))
    return [replace(binding, show=True) for binding in bindings if binding.id == id]


def holding(**conditions: object) -> set[str]:
    """Return the :data:`~dld_tui.commands.command.CONDITIONS` that are true."""
    return {name for name, holds in conditions.items() if holds}


@runtime_checkable
class HasCommands(Protocol):
    """A widget (:class:`Commands`), a page or a dialog (``CommandScreen``) with commands."""

    SCOPE: ClassVar[str]

    def conditions(self) -> set[str]:
        """Return the :data:`~dld_tui.commands.command.CONDITIONS` that hold now."""

    def own_commands(self) -> Sequence[commands.Command]:
        """Return what the palette offers here besides the commands of the table."""


def no_conditions(node: HasCommands) -> set[str]:
    """Return the conditions that hold now, of a node that says none."""
    return set()


def no_own_commands(node: HasCommands) -> Sequence[commands.Command]:
    """Return what the palette offers besides the commands of the table, of a node without any."""
    return ()


def scopes_of(node: HasCommands) -> list[str]:
    """Return the scopes whose commands a node has, its own ones first."""
    scopes = [cls.__dict__.get("SCOPE", "") for cls in type(node).__mro__]
    return [*filter(None, dict.fromkeys(scopes)), *getattr(node, "MORE_SCOPES", ())]


def why_greyed(node: HasCommands, action: str, parameters: tuple[object, ...]) -> str:
    """Return a command's title and the need of it that does not hold; nothing if all do."""
    name = str(parameters[0]) if action == "command" else action
    command = commands.for_action(node.SCOPE, name)
    if command is None or not command.needs:  # each key asks, and conditions take time
        return ""
    why = command.unavailable(conditions_of(node))
    return f"{command.title}: {hint(why)}" if why else ""


async def run_command(node: HasCommands, target: str, *arguments: str) -> None:
    """Run a command of a controller; as ``action_command``, the action of its bindings.

    Args:
        node: What has the controller.
        target: The attribute with the controller, a dot, and its method.
        arguments: What the method gets.
    """
    controller, _, method = target.partition(".")
    running = getattr(getattr(node, controller), method)(*arguments)
    if isawaitable(running):
        await running


def grey(node: HasCommands, action: str, parameters: tuple[object, ...]) -> bool | None:
    """Grey a command (None) while one of its needs does not hold; as ``check_action``."""
    return None if why_greyed(node, action, parameters) else True


def bind(cls: type[Any]) -> None:
    """Give a class with a scope of its own the bindings of its scopes, before those it names."""
    if "SCOPE" in cls.__dict__ or "MORE_SCOPES" in cls.__dict__:
        bindings = bindings_for(*reversed(getattr(cls, "MORE_SCOPES", ())), cls.SCOPE)
        cls.BINDINGS = [*bindings, *cls.__dict__.get("BINDINGS", ())]


class Commands(_Base):
    """A mixin for widgets with commands: greys the bindings by what :meth:`conditions` says.

    Set ``SCOPE = "x"`` and ``COMMAND_TABLE = table("x", …)``, write one ``action_…`` a command,
    override :meth:`conditions`, and call ``self.refresh_bindings()`` when the conditions change.
    """

    SCOPE: ClassVar[str] = ""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        bind(cls)
        super().__init_subclass__(**kwargs)

    tasks = cached_property(Tasks)
    """Its long work and its dialogs."""
    conditions = no_conditions
    own_commands = no_own_commands
    check_action = grey
    action_command = run_command


_held: dict[HasCommands, set[str]] | None = None
"""What :meth:`HasCommands.conditions` said within :func:`same_conditions`."""


def conditions_of(node: HasCommands) -> set[str]:
    """Return the conditions that hold now; of a page that is not filled, or no more, none does."""
    if _held is not None and node in _held:
        return _held[node]
    try:
        conditions = node.conditions()
    except NoMatches:
        conditions = set()
    if _held is not None:
        _held[node] = conditions
    return conditions


@contextmanager
def same_conditions() -> Iterator[None]:
    """Ask for conditions once only: to look at all bindings would ask again for each of them.

    For code that changes nothing and waits for nothing.
    """
    global _held  # noqa: PLW0603  # all of Textual's own code lies between here and the conditions
    _held = {}
    try:
        yield
    finally:
        _held = None


def binding_of(screen: Screen[Any], key: str) -> ActiveBinding | None:
    """Return what a key does on a screen, as its ``active_bindings`` do, asking of no other key."""
    bound: ActiveBinding | None = None
    with same_conditions():
        for node, bindings in screen._modal_binding_chain:
            for binding in bindings.key_to_bindings.get(key, ()):
                if bound is not None and (bound.binding.priority or not binding.priority):
                    continue
                state = screen.app._check_action_state(binding.action, node)
                if state is not False:
                    bound = ActiveBinding(node, binding, bool(state), binding.tooltip)
    return bound


_SAVE = ("model.save", "model_page.save")


def saves(screen: Screen[Any], event: Key) -> bool:
    """Return whether a key saves the model that a screen is about."""
    active = None if event.is_printable else binding_of(screen, event.key)
    return active is not None and active.binding.id in _SAVE


_keymap: dict[str, str] = {}


def use_keys(keymap: Mapping[str, str]) -> None:
    """Take the user's keys, by the ids of the commands."""
    _keymap.clear()
    _keymap.update(keymap)


def hint(text: str) -> str:
    """Return a hint of this program with the first key of each command that it names in braces.

    Raises:
        KeyError: There is No such command.
    """
    return with_keys(text, _keymap)
