"""Python classes made from the signatures of tensorrt-stubs, for the fake of TensorRT.

A class made here has the names of the stub and no others: an unknown name, attribute or argument,
an argument of another type and a value that may only be read all raise, as with the real bindings.
What a method does comes from a class of the same shape ("behaviour"); without one it raises.
"""

from __future__ import annotations

import ast
import enum
import functools
import importlib.metadata
import inspect
import operator
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_VALUE = re.compile(r"^\s+(\w+): typing\.ClassVar\[[\w.]+\]\s+# value = <\w+\.\w+: (-?\d+)>")
_KEPT = {"__init__", "__len__", "__getitem__", "__bool__"}
"""Special methods that a fake class takes from the stub; the others are Python's own."""


@dataclass
class StubClass:
    """One class of the stub file."""

    name: str
    bases: tuple[str, ...] = ()
    methods: dict[str, list[inspect.Signature]] = field(default_factory=dict)
    """Name to overloads, without self."""
    statics: dict[str, list[inspect.Signature]] = field(default_factory=dict)
    """The same of static methods, whose behaviour gets the maker in place of self."""
    properties: set[str] = field(default_factory=set)
    writable: dict[str, str] = field(default_factory=dict)
    """Attribute that may be set, to its annotation."""
    members: dict[str, int] = field(default_factory=dict)
    """Of an enumeration."""
    constants: set[str] = field(default_factory=set)
    """Names of the members of a nested enumeration that the class has, too."""


def stub_path() -> Path | None:
    """Return the stub file of TensorRT, or None where tensorrt-stubs is not installed."""
    try:
        files = importlib.metadata.files("tensorrt-stubs") or ()
    except importlib.metadata.PackageNotFoundError:
        return None
    for file in files:
        if str(file) == "tensorrt_bindings/tensorrt.pyi":
            return Path(str(file.locate()))
    return None


@functools.cache
def stub_classes() -> dict[str, StubClass]:
    """Return every class of the stub, nested ones as ``ILogger.Severity``."""
    path = stub_path()
    if path is None:
        raise FileNotFoundError("tensorrt-stubs is not installed")
    lines = path.read_text(encoding="utf-8").splitlines()
    return {found.name: found for found in _classes(_parse(lines), lines)}


def _parse(lines: list[str]) -> ast.Module:
    """Parse a stub; signatures that are no Python (some are not) take any arguments."""
    while True:
        try:
            return ast.parse("\n".join(lines))
        except SyntaxError as error:
            number = (error.lineno or 1) - 1
            head = lines[number].partition("(")[0]
            lines[number] = f"{head}(self, *args, **kwargs):"


def _classes(
    tree: ast.Module | ast.ClassDef, lines: list[str], prefix: str = ""
) -> Iterator[StubClass]:
    for node in tree.body:
        if not isinstance(node, ast.ClassDef):
            continue
        found = StubClass(prefix + node.name, tuple(ast.unparse(base) for base in node.bases))
        for item in node.body:
            if isinstance(item, ast.FunctionDef):
                _method(found, item)
            elif isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
                member = _VALUE.match(lines[item.lineno - 1])
                if member:
                    found.members[member[1]] = int(member[2])
                elif not ast.unparse(item.annotation).startswith("typing.ClassVar"):
                    found.writable[item.target.id] = ast.unparse(item.annotation)
        declared = {
            ast.unparse(item.target) for item in node.body if isinstance(item, ast.AnnAssign)
        }
        if "__members__" not in declared:
            found.constants, found.members = set(found.members), {}
        yield found
        yield from _classes(node, lines, f"{found.name}.")


def _method(found: StubClass, item: ast.FunctionDef) -> None:
    decorators = [ast.unparse(decorator) for decorator in item.decorator_list]
    if "property" in decorators:
        found.properties.add(item.name)
    elif any(name.endswith(".setter") for name in decorators):
        annotation = item.args.args[1].annotation
        found.writable[item.name] = ast.unparse(annotation) if annotation else "..."
    elif "staticmethod" in decorators:
        found.statics.setdefault(item.name, []).append(_signature(item, 0))
    else:
        found.methods.setdefault(item.name, []).append(_signature(item))


def _signature(item: ast.FunctionDef, first: int = 1) -> inspect.Signature:
    arguments = item.args
    defaults: list[ast.expr | None] = [*arguments.defaults]
    every = arguments.args[first:]
    defaults = [*[None] * (len(every) - len(defaults)), *defaults]
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [
        inspect.Parameter(
            one.arg,
            kind,
            default=inspect.Parameter.empty if default is None else ast.unparse(default),
            annotation="..." if one.annotation is None else ast.unparse(one.annotation),
        )
        for one, default in zip(every, defaults, strict=True)
    ]
    if arguments.vararg:
        parameters.append(inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL))
        parameters.append(inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD))
    return inspect.Signature(parameters)


class Maker:
    """Makes the classes of one fake library.

    Args:
        behaviours: Class name to the class that says what its methods and properties do.
        without: ``Class``, ``Class.name`` or ``Class.MEMBER`` that this library does not have.
    """

    def __init__(self, behaviours: dict[str, type], without: Collection[str] = ()) -> None:
        self._behaviours, self._without = behaviours, frozenset(without)
        self.made: dict[str, Any] = {}
        self.state: Any = None
        """What the behaviours share."""
        for name in behaviours:
            if name not in stub_classes():
                raise TypeError(f"TensorRT has no class {name}")

    def make(self) -> dict[str, Any]:
        """Return every class by name."""
        for name in stub_classes():
            if name not in self._without:
                self._make(name)
        return {name: made for name, made in self.made.items() if "." not in name}

    def _make(self, name: str) -> Any:
        if name not in self.made:
            stub = stub_classes()[name]
            outer, _, inner = name.rpartition(".")
            base = next((f"{base}.{inner}" for base in self._bases(outer)), "")
            if base in stub_classes():  # Logger.Severity is ILogger.Severity
                self.made[name] = self._make(base)
                return self.made[name]
            made = self._enumeration(stub) if stub.members else self._class(stub)
            self.made[name] = made
            if outer in self.made:
                setattr(self.made[outer], inner, made)
                for member in made.__members__.values() if stub.members else ():
                    if member.name in stub_classes()[outer].constants:
                        setattr(self.made[outer], member.name, member)
        return self.made[name]

    def _bases(self, name: str) -> tuple[str, ...]:
        return stub_classes()[name].bases if name in stub_classes() else ()

    def new(self, name: str, /, **private: object) -> Any:
        """Return an object of a class, which the program may not make itself."""
        made = _Checked.__new__(self.made[name])
        for key, value in private.items():
            object.__setattr__(made, f"_{key}", value)
        object.__setattr__(made, "_initialised", True)
        return made

    def _enumeration(self, stub: StubClass) -> Any:
        kept = {k: v for k, v in stub.members.items() if f"{stub.name}.{k}" not in self._without}
        behaviour: Any = self._behaviours.get(stub.name, StubEnum)
        return behaviour(stub.name.rpartition(".")[2], kept)

    def _class(self, stub: StubClass) -> Any:
        behaviour = self._behaviours.get(stub.name)
        bases = tuple(self._make(base) for base in stub.bases if base in stub_classes())
        space: dict[str, Any] = {"__module__": "tensorrt", "_stub": stub, "_maker": self}
        known = {*stub.methods, *stub.statics, *stub.properties, *stub.writable}
        for name, member in vars(behaviour).items() if behaviour else ():
            if not name.startswith("_"):
                if name not in known:
                    raise TypeError(f"{stub.name} of TensorRT has no {name}")
            elif name not in ("__dict__", "__weakref__", "__module__", "__doc__", *_KEPT):
                space[name] = member
        for name, overloads in stub.methods.items():
            if not self._lacks(stub, name) and (not name.startswith("__") or name in _KEPT):
                does = vars(behaviour).get(name) if behaviour else None
                space[name] = _checked_method(self, stub.name, name, overloads, does)
        for name, overloads in stub.statics.items():
            does = vars(behaviour).get(name) if behaviour else None
            call = _checked_method(self, stub.name, name, overloads, does)
            space[name] = staticmethod(functools.partial(call, self))
        for name in {*stub.properties, *stub.writable}:
            if not self._lacks(stub, name):
                does = vars(behaviour).get(name) if behaviour else None
                space[name] = _checked_property(self, stub, name, does)
        if "__init__" not in stub.methods and not bases:
            space["__init__"] = _no_constructor
        return type(stub.name, bases or (_Checked,), space)

    def _lacks(self, stub: StubClass, name: str) -> bool:
        return f"{stub.name}.{name}" in self._without

    def fits(self, annotation: str, value: object) -> bool:
        """Return whether the bindings would take a value for a parameter."""
        name = annotation.rpartition("tensorrt_bindings.tensorrt.")[2]
        if name in ("...", "typing.Any", "capsule") or "callable" in name.lower():
            return True
        if name.startswith("list["):
            inner = name[5:-1]
            return isinstance(value, (list, tuple)) and all(self.fits(inner, v) for v in value)
        if name in _CHECKS:
            return _CHECKS[name](value)
        made = self.made.get(name)
        if made is None:
            return name not in self._without
        if value is None:
            return not issubclass(made, enum.Enum)
        if name.startswith("Dims"):
            return isinstance(value, (list, tuple)) and all(_is_int(v) for v in value)
        if name == "Weights" and hasattr(value, "dtype"):
            return True
        return isinstance(value, made) and getattr(value, "_initialised", True)


class StubEnum(enum.Enum):
    """As pybind11 makes enumerations: not integers, but convertible."""

    def __int__(self) -> int:
        return int(self.value)

    def __index__(self) -> int:
        return int(self.value)


class _Checked:
    """Base of all classes made of the stub."""

    _stub: StubClass
    _maker: Maker

    def __new__(cls, *_args: object, **_kwargs: object) -> Any:
        made = object.__new__(cls)
        object.__setattr__(made, "_initialised", "_stub" in vars(cls))
        return made

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "_stub" in vars(cls):
            return
        for stub in _stubs_of(cls):  # a class of the program: what TensorRT calls must fit
            for name, overloads in stub.methods.items():
                if name in vars(cls) and not name.startswith("__"):
                    own = inspect.signature(vars(cls)[name])
                    own.bind(object(), *overloads[0].parameters)

    def __setattr__(self, name: str, value: object) -> None:
        known = any(name in vars(kind) for kind in type(self).__mro__)
        if "_stub" in vars(type(self)) and not name.startswith("_") and not known:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        object.__setattr__(self, name, value)


def _no_constructor(self: object, *_args: object, **_kwargs: object) -> None:
    raise TypeError(f"{type(self).__name__}: No constructor defined!")


def _stubs_of(kind: type) -> Iterator[StubClass]:
    for base in kind.__mro__:
        if "_stub" in vars(base):
            yield vars(base)["_stub"]


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


def _checked_property(maker: Maker, stub: StubClass, name: str, does: Any) -> property:
    slot = f"_value_{name}"

    def read(self: Any) -> Any:
        if isinstance(does, property) and does.fget is not None:
            return does.fget(self)
        if callable(does):
            return does(self)
        if not hasattr(self, slot) and name not in stub.writable:
            raise NotImplementedError(f"the fake of TensorRT does not do {stub.name}.{name}")
        return getattr(self, slot, does)

    def write(self: Any, value: object) -> None:
        if not maker.fits(stub.writable[name], value):
            raise TypeError(f"{stub.name}.{name} is a {stub.writable[name]}, not {value!r}")
        object.__setattr__(self, slot, value)
        if isinstance(does, property) and does.fset is not None:
            does.fset(self, value)

    return property(read, write if name in stub.writable else None)


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
    "typing_extensions.Buffer": lambda value: isinstance(value, (bytes, bytearray, memoryview)),
    "numpy.ndarray": lambda value: hasattr(value, "dtype"),
}
