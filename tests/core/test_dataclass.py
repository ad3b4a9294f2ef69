"""Our dataclasses behave as those of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import dataclass as standard
from dataclasses import field
from functools import cached_property, partial
from typing import Any, ClassVar

import pytest

from dld_tui.core.dataclass import dataclass as ours


def make(decorator: Any) -> dict[str, Any]:
    """Return classes of all kinds that the program has."""

    @decorator(frozen=True)
    class Point:
        """A value."""

        x: int
        y: float = 1.5
        names: tuple[str, ...] = ()
        note: str = field(default="", compare=False)
        hidden: list[int] = field(default_factory=list, repr=False, hash=False)
        KIND: ClassVar[str] = "point"

        @cached_property
        def double(self) -> int:
            return 2 * self.x

    @decorator(frozen=True)
    class Named(Point):
        name: str = "origin"

    @decorator
    class Tally:
        """State."""

        total: int
        seen: list[int] = field(default_factory=list)
        limit: int = field(default=7, init=False)
        cache: dict[str, int] = field(default_factory=dict, init=False)
        doubled: int = field(init=False)

        def __post_init__(self) -> None:
            self.doubled = 2 * self.total

    @decorator(eq=False)
    class Controller:
        """A thing with an identity."""

        page: str

    @decorator(eq=False)
    class Pane(Controller):
        wide: bool = False

    @decorator(frozen=True, kw_only=True)
    class Request:
        """Arguments by name."""

        model: str
        rounds: int = 3

    @decorator(frozen=True)
    class Own:
        """Has methods of its own."""

        x: int

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Own) and abs(self.x) == abs(other.x)

        def __hash__(self) -> int:
            return hash(abs(self.x))

        def __repr__(self) -> str:
            return "own"

    @decorator(frozen=True, slots=True)
    class Small:
        """Without a dictionary."""

        x: int

    @decorator(frozen=True)
    class Empty:
        """No fields."""

    return {name: kind for name, kind in locals().items() if isinstance(kind, type)}


OURS, STANDARD = make(ours), make(standard)
CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("Point", (1,), {}),
    ("Point", (1, 1.5, ("a",)), {"note": "n", "hidden": [3]}),
    ("Point", (float("nan"),), {}),
    ("Named", (1, 2.0), {"name": "top"}),
    ("Tally", (4,), {}),
    ("Tally", (4, [5]), {}),
    ("Controller", ("p",), {}),
    ("Pane", ("p",), {"wide": True}),
    ("Request", (), {"model": "m"}),
    ("Own", (-2,), {}),
    ("Small", (3,), {}),
    ("Empty", (), {}),
    # What a call lacks, or has too much.
    ("Point", (), {}),
    ("Request", ("m",), {}),
    ("Tally", (1, [], 3), {}),
    ("Empty", (), {"x": 1}),
]


def tried(action: Callable[[], Any]) -> Any:
    """Return what an action gives, or the kind and the text of its error."""
    try:
        return action()
    except (TypeError, AttributeError) as error:
        return type(error), str(error)


@pytest.mark.parametrize(("name", "args", "named"), CALLS)
def test_objects_behave_as_those_of_the_standard_library(
    name: str, args: tuple[Any, ...], named: dict[str, Any]
) -> None:
    mine, theirs = (tried(partial(k[name], *args, **named)) for k in (OURS, STANDARD))
    if isinstance(theirs, tuple):
        assert mine == theirs
        return
    twin = OURS[name](*args, **copy.deepcopy(named))
    assert repr(mine) == repr(theirs)
    assert (mine == twin) is (theirs == STANDARD[name](*args, **copy.deepcopy(named)))
    assert (mine == theirs) is False
    if isinstance(tried(lambda: hash(mine)), int) and mine == twin:
        assert hash(mine) == hash(twin)
    assert isinstance(tried(lambda: hash(mine)), tuple) is isinstance(
        tried(lambda: hash(theirs)), tuple
    )
    assert tried(lambda: dataclasses.asdict(mine)) == tried(lambda: dataclasses.asdict(theirs))
    assert vars(type(mine))["__match_args__"] == vars(type(theirs))["__match_args__"]
    for action in (set_attribute, delete_attribute):
        # The standard library's classes with slots fail otherwise on names that are no field.
        for attribute in ("x",) if name == "Small" else ("x", "y", "other"):
            was = tried(partial(action, mine, attribute))
            assert was == tried(partial(action, theirs, attribute))


def set_attribute(thing: Any, name: str) -> str:
    setattr(thing, name, "set")
    return repr(thing)


def delete_attribute(thing: Any, name: str) -> str:
    delattr(thing, name)
    return repr(thing)


@pytest.mark.parametrize("name", OURS)
def test_signatures_and_fields_are_those_of_the_standard_library(name: str) -> None:
    def parameters(kind: type) -> list[tuple[str, Any]]:
        found = inspect.signature(kind).parameters.values()
        return [(p.name, p.kind, p.default is not inspect.Parameter.empty) for p in found]  # type: ignore[misc]

    assert parameters(OURS[name]) == parameters(STANDARD[name])
    mine, theirs = (
        [
            (f.name, f.type, f.init, f.repr, f.compare, f.kw_only)
            for f in dataclasses.fields(k[name])
        ]
        for k in (OURS, STANDARD)
    )
    assert mine == theirs


def test_hash_follows_the_compared_fields() -> None:
    point = OURS["Point"]
    assert hash(point(1, note="a", hidden=[1])) == hash(point(1, note="b", hidden=[2]))
    assert point(1, note="a") == point(1, note="b")
    assert point(1, hidden=[1]) != point(1, hidden=[2])
    assert len({point(1), point(1), point(2)}) == 2


def test_frozen_objects() -> None:
    assert OURS["Point"](4).double == 8
    one = Kept(1, [])
    one.names.append(one)
    assert repr(one) == "Kept(x=1, names=[...])"


@pytest.mark.parametrize("name", ["Kept", "Lean"])
def test_objects_are_replaced_copied_and_pickled(name: str) -> None:
    kind: Any = globals()[name]
    one = kind(1, ["a"])
    assert dataclasses.replace(one, x=2) == kind(2, ["a"])
    assert copy.deepcopy(one) == copy.copy(one) == one
    assert pickle.loads(pickle.dumps(one)) == one
    assert hasattr(one, "__dict__") is (name == "Kept")


def test_a_class_of_another_package_may_be_a_frozen_one_of_ours() -> None:
    @standard(frozen=True)
    class Further(Kept):
        more: int = 5

    assert repr(Further(1, [])).endswith("Further(x=1, names=[], more=5)")


def test_frozen_and_not_frozen_do_not_mix() -> None:
    with pytest.raises(TypeError, match="non-frozen"):

        @ours
        class Further(Kept):  # type: ignore[misc]
            more: int = 5


@ours(frozen=True)
class Kept:
    """Found by its name."""

    x: int
    names: list[Any]


@ours(frozen=True, slots=True)
class Lean:
    """Without a dictionary."""

    x: int
    names: list[Any]
