"""Python classes made from the record of TensorRT's real bindings, for the fake of TensorRT.

A class made here has the names that the bindings of that version have and no others: an unknown
name, attribute or argument, an argument of another type and a value that may only be read all
raise, as with the real ones. scripts/tensorrt_bindings.py made the records. What a method does
comes from a class of the same shape ("behaviour"); without one it raises.
"""

from __future__ import annotations

import enum
import functools
import gzip
import inspect
import json
import keyword
import operator
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

RECORDS = Path(__file__).resolve().parents[1] / "data" / "tensorrt"
_KEPT = {"__init__", "__len__", "__getitem__", "__bool__"}
"""Special methods that a fake class takes from the record; the others are Python's own."""
_PYTHON = ("__dict__", "__weakref__", "__module__", "__doc__")


@dataclass
class BoundClass:
    """One class or enumeration of the bindings."""

    name: str
    """Nested ones as ``ILogger.Severity``."""
    bases: tuple[str, ...] = ()
    methods: dict[str, list[inspect.Signature]] = field(default_factory=dict)
    """Name to overloads, without self."""
    statics: dict[str, list[inspect.Signature]] = field(default_factory=dict)
    """The same of static methods, whose behaviour gets the maker in place of self."""
    properties: dict[str, str | None] = field(default_factory=dict)
    """Name to the type that it may be set to, or None when it is only read."""
    members: dict[str, int] = field(default_factory=dict)
    """Of an enumeration."""
    constants: tuple[str, ...] = ()
    """Names of the members of a nested enumeration that the class has, too."""

    @property
    def names(self) -> set[str]:
        return {*self.methods, *self.statics, *self.properties}


@functools.cache
def bindings(version: str) -> dict[str, Any]:
    """Return the record of a version: ``classes``, ``types`` and ``functions``."""
    data = gzip.decompress((RECORDS / f"{version}.json.gz").read_bytes())
    record: dict[str, Any] = json.loads(data)
    return record


def recorded_versions() -> list[str]:
    """Return the versions of TensorRT and TensorRT-RTX that have a record, oldest first."""
    names = [path.name.removesuffix(".json.gz") for path in RECORDS.glob("*.json.gz")]
    return sorted(names, key=lambda name: [int(part) for part in name.split(".")])


@functools.cache
def bound_classes(version: str) -> dict[str, BoundClass]:
    return {
        name: BoundClass(
            name,
            tuple(record.get("bases", ())),
            {key: _overloads(value) for key, value in record.get("methods", {}).items()},
            {key: _overloads(value) for key, value in record.get("statics", {}).items()},
            record.get("properties", {}),
            record.get("members", {}),
            tuple(record.get("constants", ())),
        )
        for name, record in bindings(version)["classes"].items()
    }


@functools.cache
def names_of_any_version(name: str) -> frozenset[str]:
    """Return the members that a class has in some recorded version; empty for an unknown class."""
    versions = (bound_classes(version).get(name) for version in recorded_versions())
    return frozenset().union(*(known.names | {""} for known in versions if known))


def _overloads(record: list[list[list[str]]]) -> list[inspect.Signature]:
    signatures = []
    for record_of_one in record:
        parameters: list[inspect.Parameter] = []
        for item in record_of_one:
            parameter = _parameter(*item)
            if parameters and parameters[-1].default is not parameter.empty is parameter.default:
                # add_scale_nd has one, which Python's own signatures cannot say.
                parameter = parameter.replace(default="required")
            parameters.append(parameter)
        signatures.append(inspect.Signature(parameters))
    return signatures


def _parameter(name: str, kind: str, default: str | None = None) -> inspect.Parameter:
    if name.startswith("*"):
        kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        return inspect.Parameter(name.lstrip("*"), kinds[name.count("*") - 1])
    name = f"{name}_" if keyword.iskeyword(name) else name
    return inspect.Parameter(
        name,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        default=inspect.Parameter.empty if default is None else default,
        annotation=kind,
    )


class Maker:
    """Makes the classes of one fake library.

    `behaviours` say by class name what its methods and properties do; what the version of the
    record does not have is left out.
    """

    def __init__(self, behaviours: dict[str, type], version: str) -> None:
        self._behaviours, self._classes = behaviours, bound_classes(version)
        self.made: dict[str, Any] = {}
        self.state: Any = None
        """What the behaviours share."""
        self.used: set[str] = set()
        """``Class.member`` of all that the product called, read or set."""
        for name, behaviour in behaviours.items():
            known = names_of_any_version(name)
            if not known:
                raise TypeError(f"no TensorRT has a class {name}")
            for member in vars(behaviour):
                if not member.startswith("_") and member not in known:
                    raise TypeError(f"{name} of no TensorRT has {member}")

    def note(self, name: str) -> None:
        """Remember a name if it is the product that uses it, and not the fake or a test."""
        if "dld_tui" in sys._getframe(2).f_globals.get("__name__", ""):
            self.used.add(name)

    def make(self) -> dict[str, Any]:
        for name in self._classes:
            self._make(name)
        return {name: made for name, made in self.made.items() if "." not in name}

    def _make(self, name: str) -> Any:
        if name not in self.made:
            bound = self._classes[name]
            outer, _, inner = name.rpartition(".")
            base = next((f"{base}.{inner}" for base in self._bases(outer)), "")
            if base in self._classes:  # Logger.Severity is ILogger.Severity
                self.made[name] = self._make(base)
                return self.made[name]
            made = self._enumeration(bound) if bound.members else self._class(bound)
            self.made[name] = made
            if outer in self.made:
                setattr(self.made[outer], inner, made)
                for member in made.__members__.values() if bound.members else ():
                    if member.name in self._classes[outer].constants:
                        setattr(self.made[outer], member.name, member)
        return self.made[name]

    def _bases(self, name: str) -> tuple[str, ...]:
        return self._classes[name].bases if name in self._classes else ()

    def new(self, name: str, /, **private: object) -> Any:
        """Return an object of a class, which the program may not make itself."""
        made = _Checked.__new__(self.made[name])
        for key, value in private.items():
            object.__setattr__(made, f"_{key}", value)
        object.__setattr__(made, "_initialised", True)
        return made

    def _enumeration(self, bound: BoundClass) -> Any:
        behaviour: Any = self._behaviours.get(bound.name, BoundEnum)
        return behaviour(bound.name.rpartition(".")[2], bound.members)

    def _class(self, bound: BoundClass) -> Any:
        behaviour = self._behaviours.get(bound.name)
        does = dict(vars(behaviour)) if behaviour else {}
        bases = tuple(self._make(base) for base in bound.bases if base in self._classes)
        space: dict[str, Any] = {"__module__": "tensorrt", "_bound": bound, "_maker": self}
        for name, member in does.items():
            if name.startswith("_") and name not in (*_PYTHON, *_KEPT):
                space[name] = member
        for name, overloads in bound.methods.items():
            if not name.startswith("__") or name in _KEPT:
                space[name] = _checked_method(self, bound.name, name, overloads, does.get(name))
        for name, overloads in bound.statics.items():
            call = _checked_method(self, bound.name, name, overloads, does.get(name))
            space[name] = staticmethod(functools.partial(call, self))
        for name in bound.properties:
            space[name] = _checked_property(self, bound, name, does.get(name))
        if "__init__" not in bound.methods and not bases:
            space["__init__"] = _no_constructor
        return type(bound.name, bases or (_Checked,), space)

    def fits(self, name: str, value: object) -> bool:
        """Return whether the bindings would take a value for a parameter."""
        if name.startswith("list["):
            inner = name[5:-1]
            return isinstance(value, (list, tuple)) and all(self.fits(inner, v) for v in value)
        if name in _CHECKS:
            return _CHECKS[name](value)
        made = self.made.get(name)
        if made is None:  # capsule, Callable, a C++ type without a name in Python
            return True
        if value is None:
            return not issubclass(made, enum.Enum)
        if name.startswith("Dims"):
            return isinstance(value, (list, tuple)) and all(_is_int(v) for v in value)
        if name == "Weights" and hasattr(value, "dtype"):
            return True
        return isinstance(value, made) and getattr(value, "_initialised", True)


class BoundEnum(enum.Enum):
    """As pybind11 makes enumerations: not integers, but convertible."""

    def __int__(self) -> int:
        return int(self.value)

    def __index__(self) -> int:
        return int(self.value)


class _Checked:
    """Base of all classes made of the record."""

    _bound: BoundClass
    _maker: Maker

    def __new__(cls, *_args: object, **_kwargs: object) -> Any:
        made = object.__new__(cls)
        object.__setattr__(made, "_initialised", "_bound" in vars(cls))
        return made

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "_bound" in vars(cls):
            return
        for bound in _bound_of(cls):  # a class of the program: what TensorRT calls must fit
            for name, overloads in bound.methods.items():
                if name in vars(cls) and not name.startswith("__"):
                    own = inspect.signature(vars(cls)[name])
                    own.bind(object(), *overloads[0].parameters)

    def __setattr__(self, name: str, value: object) -> None:
        known = any(name in vars(kind) for kind in type(self).__mro__)
        if "_bound" in vars(type(self)) and not name.startswith("_") and not known:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        object.__setattr__(self, name, value)


def _no_constructor(self: object, *_args: object, **_kwargs: object) -> None:
    raise TypeError(f"{type(self).__name__}: No constructor defined!")


def _bound_of(kind: type) -> Iterator[BoundClass]:
    for base in kind.__mro__:
        if "_bound" in vars(base):
            yield vars(base)["_bound"]


def _checked_method(
    maker: Maker,
    owner: str,
    name: str,
    overloads: list[inspect.Signature],
    does: Callable[..., Any] | None,
) -> Callable[..., Any]:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if name == "__init__":
            object.__setattr__(self, "_initialised", True)
        maker.note(f"{owner}.{name}")
        for signature in overloads:
            try:
                bound = signature.bind(*args, **kwargs)
            except TypeError:
                continue
            parameters = signature.parameters
            if all(maker.fits(str(parameters[k].annotation), v) for k, v in _bound(bound)):
                if does is not None:
                    return does(self, *bound.args, **bound.kwargs)
                if name == "__init__":
                    return None
                raise NotImplementedError(f"the fake of TensorRT does not do {owner}.{name}")
        given = ", ".join([*map(repr, args), *(f"{k}={v!r}" for k, v in kwargs.items())])
        raise TypeError(
            f"{name}(): incompatible function arguments. Supported: "
            + "; ".join(f"{owner}.{name}{signature}" for signature in overloads)
            + f". Invoked with: {given}"
        )

    call.__name__ = name
    return call


def _bound(bound: inspect.BoundArguments) -> Iterator[tuple[str, object]]:
    for name, value in bound.arguments.items():
        if name not in ("args", "kwargs"):
            yield name, value


def _checked_property(maker: Maker, bound: BoundClass, name: str, does: Any) -> property:
    slot, writable = f"_value_{name}", bound.properties[name]

    def read(self: Any) -> Any:
        if isinstance(does, property) and does.fget is not None:
            return does.fget(self)
        if callable(does):
            return does(self)
        maker.note(f"{bound.name}.{name}")
        if not hasattr(self, slot) and writable is None:
            raise NotImplementedError(f"the fake of TensorRT does not do {bound.name}.{name}")
        return getattr(self, slot, does)

    def write(self: Any, value: object) -> None:
        maker.note(f"{bound.name}.{name}")
        if not maker.fits(writable or "", value):
            raise TypeError(f"{bound.name}.{name} is a {writable}, not {value!r}")
        object.__setattr__(self, slot, value)
        if isinstance(does, property) and does.fset is not None:
            does.fset(self, value)

    return property(read, None if writable is None else write)


def _is_int(value: object) -> bool:
    try:
        operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return False
    return True


_CHECKS: dict[str, Callable[[object], bool]] = {
    "int": _is_int,
    "bool": lambda value: isinstance(value, bool),
    "float": lambda value: isinstance(value, (int, float)),
    "str": lambda value: value is None or isinstance(value, str),
    "list": lambda value: isinstance(value, list),
    "tuple": lambda value: isinstance(value, tuple),
    "buffer": lambda value: isinstance(value, (bytes, bytearray, memoryview)),
    "numpy.ndarray": lambda value: hasattr(value, "dtype"),
}
