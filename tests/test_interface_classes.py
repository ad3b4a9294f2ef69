"""Classes of the interface stand on few others, and controllers are small."""

from __future__ import annotations

import importlib
from pathlib import Path

import dld_tui
from dld_tui.screens.workspace.controller import Controller

SRC = Path(dld_tui.__file__).parent
MODULES = [
    ".".join(path.relative_to(SRC.parent).with_suffix("").parts)
    for path in sorted(SRC.rglob("*.py"))
    if path.name != "__init__.py"
]

MOST_ANCESTORS = 3
REDEFINED: set[str] = set()
"""Classes among whose ancestors an action is still defined twice."""


def interface_classes() -> list[type]:
    """Return the classes of screens and widgets, and of the app."""
    found: list[type] = []
    for name in MODULES:
        if name.startswith(("dld_tui.screens", "dld_tui.widgets", "dld_tui.app")):
            module = importlib.import_module(name)
            found += [c for c in vars(module).values() if isinstance(c, type)
                      and c.__module__ == name]  # fmt: skip
    return found


def own_ancestors(cls: type) -> list[type]:
    return [base for base in cls.__mro__[1:] if base.__module__.startswith("dld_tui.")]


def test_no_class_stands_on_a_tower() -> None:
    heights = {cls.__name__: len(own_ancestors(cls)) for cls in interface_classes()}
    assert {name for name, height in heights.items() if height > MOST_ANCESTORS} == set()
    assert heights["WorkspaceScreen"] > 0


def test_no_action_is_defined_twice_among_the_ancestors_of_a_class() -> None:
    found = set()
    for cls in interface_classes():
        actions = [name for base in own_ancestors(cls) for name in vars(base)
                   if name.startswith("action_")]  # fmt: skip
        if len(actions) != len(set(actions)):
            found.add(cls.__name__)
    assert found - REDEFINED == set()


def test_a_controller_stands_on_one_class_and_is_small() -> None:
    controllers = [
        c for c in interface_classes() if Controller in c.__mro__ and c is not Controller
    ]
    assert len(controllers) > 10
    for cls in controllers:
        assert own_ancestors(cls) == [Controller], cls
        own = [name for name, value in vars(cls).items() if callable(value) or
               isinstance(value, (property, staticmethod))]  # fmt: skip
        assert len(own) <= 40, (cls, len(own))
