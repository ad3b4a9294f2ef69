"""The table of edits, and how their arguments find scopes and nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from typing import Any, Concatenate, Generic, ParamSpec, TypeAlias

from dld_tui.core import fmt
from dld_tui.core.errors import EditError
from dld_tui.core.model.document.node import Node
from dld_tui.core.model.document.scope import ScopeOwner
from dld_tui.core.model.document.scripting.arguments import Entry, check_arguments, completed
from dld_tui.core.model.document.transactions import Edit, Transaction, plain
from dld_tui.core.text import quoted

EditFunction: TypeAlias = "Callable[..., str]"
"""Called with (document, transaction, **arguments); returns a title for people."""

_PACKAGES = ("dld_tui.core.model.edits", "dld_tui.core.conversion.edits")
"""The packages whose modules enter their edits here. They stand above documents, which know edits
by this table alone; and a look at a model loads none."""

_EDITS: dict[str, EditFunction] = {}

INVERSES: dict[str, Callable[[Any, Transaction], Entry]] = {}
"""By the edit that does the inverse of another one: takes a transaction of a document back, and
returns the arguments for that edit to do the same. Filled by :func:`known_edits`."""

P = ParamSpec("P")


class EditKind(Generic[P]):
    """What one edit is: called with its arguments it is the edit itself, which is data.

    Attributes:
        name: What journals and scripts call it.
        run: Makes the edit: takes a document, a transaction and the arguments, and returns a title.
    """

    def __init__(self, run: Callable[Concatenate[Any, Transaction, P], str]) -> None:
        self.name = run.__name__
        self.run = run
        self.__doc__ = run.__doc__

    def __call__(self, *args: P.args, **arguments: P.kwargs) -> Edit:
        """Return the edit with these arguments, none of which is positional."""
        return Edit(self.name, {name: plain(value) for name, value in arguments.items()})


def edit(function: Callable[Concatenate[Any, Transaction, P], str]) -> EditKind[P]:
    """Enter a function into the table under its own name."""
    _EDITS[function.__name__] = function
    return EditKind(function)


@cache
def known_edits() -> Mapping[str, EditFunction]:
    """Return all edits by name; loads the modules that have them."""
    for package in _PACKAGES:
        for name in import_module(package).__all__:
            import_module(f"{package}.{name}")
    return _EDITS


def run_edit(document: ScopeOwner, transaction: Transaction) -> None:
    """Run the edit that a transaction names; on any error the document is as it was.

    Raises:
        EditError: There is no such edit, its arguments are wrong, or it does not fit the model.
    """
    name, arguments = transaction.edit, transaction.arguments
    edits = known_edits()
    function = edits.get(name)
    if function is None:
        matches = get_close_matches(name, edits, n=3, cutoff=0.4) or sorted(edits)
        raise EditError(f"there is no edit {name!r}", hint=f"Known: {', '.join(matches)}")
    check_arguments(name, function, arguments)
    transaction.arguments = completed(function, arguments)
    try:
        transaction.title = function(document, transaction, **transaction.arguments)
    except BaseException:
        transaction.roll_back()
        raise


def node_at(document: ScopeOwner, scope: Sequence[str], node: str) -> Node:
    """Return a node by the path of its scope and its ref.

    Raises:
        EditError: There is no such scope or node.
    """
    home = document.scope_at(scope)
    target = home.find(node)
    if target is None:
        why, hint = home.why_missing(node)
        raise EditError(why, where=" › ".join(scope) or "main", hint=hint)
    return target


def targets_of(
    document: ScopeOwner, scope: Sequence[str], refs: object, purpose: str
) -> list[Node]:
    """Return the nodes of one scope that an edit is about.

    Args:
        document: The document.
        scope: The path of the scope.
        refs: The argument "nodes" of the edit.
        purpose: What they are wanted for, after "nodes to".

    Raises:
        EditError: There is no such scope or node, or there are none.
    """
    targets = [node_at(document, scope, ref) for ref in strings(refs, "nodes")]
    if not targets:
        raise EditError(f"there are no nodes to {purpose}")
    return targets


def subject(names: Sequence[str], noun: str) -> str:
    """Return what an edit is about, for its title: one name in quotes, or how many there are."""
    return quoted(names[0]) if len(names) == 1 else fmt.plural(len(names), noun)


def strings(value: object, label: str) -> list[str]:
    """Return a JSON value that must be a list of strings.

    Raises:
        EditError: It is not.
    """
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, str) for item in value):
        raise EditError(f"{label} must be a list of strings")
    return [str(item) for item in value]


def nodes_at(document: ScopeOwner, pairs: object) -> list[Node]:
    """Return the nodes of refs in the main graph, or of pairs of a scope's path and a ref."""
    nodes = []
    for pair in pairs if isinstance(pairs, (list, tuple)) else ():
        if isinstance(pair, str):
            nodes.append(node_at(document, [], pair))
            continue
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise EditError("nodes must be a list of names or [scope, node]")
        path, ref = pair
        if not isinstance(path, (list, tuple)) or not isinstance(ref, str):
            raise EditError("nodes must be a list of names or [scope, node]")
        nodes.append(node_at(document, [str(step) for step in path], ref))
    if not nodes:
        raise EditError("there are no nodes")
    return nodes
