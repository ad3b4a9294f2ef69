"""Dataclasses that are quick to define: the decorator of the standard library, less its compiling.

``dataclasses.dataclass`` writes up to six methods of each class as text and compiles them: a
millisecond for a frozen class, and so a tenth of the time to the first rows of a model. Here all
classes share the methods that compare, hash, print and protect; only ``__init__`` is compiled.
``fields``, ``replace``, ``asdict`` and inheritance are as ever.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    from operator import attrgetter
    from reprlib import recursive_repr

    def dataclass(cls=None, /, *, eq=True, frozen=False, slots=False, **options):
        """Make a class a dataclass. There is no `order`, and fields are no ``InitVar``."""
        if cls is None:
            return lambda cls: dataclass(cls, eq=eq, frozen=frozen, slots=slots, **options)
        cls.__doc__ = cls.__doc__ or cls.__name__  # else it would be made of the signature
        bases = [vars(base).get("__dataclass_params__") for base in cls.__mro__[1:]]
        cls = dataclasses.dataclass(
            cls,
            init=False,
            repr=False,
            eq=False,
            frozen=frozen and any(base is not None and base.frozen for base in bases),
            slots=slots,
            **options,
        )
        cls.__dataclass_params__.frozen = frozen
        fields = dataclasses.fields(cls)
        methods = {"__init__": _init(cls, fields, frozen), "__repr__": _repr}
        if eq:
            compared = _getter(field.name for field in fields if field.compare)
            methods["__eq__"] = _eq(compared)
            has_hash = vars(cls).get("__hash__") is not None
            if not has_hash:
                hashed = [field.name for field in fields if _is_hashed(field)]
                cls.__hash__ = _hash(_getter(hashed)) if frozen else None
        if frozen:
            methods |= {"__setattr__": _refuse, "__delattr__": _refuse}
        if frozen and slots:  # else copies and pickles would be set attribute by attribute
            methods |= {"__getstate__": _state, "__setstate__": _set_state}
        for name, method in methods.items():
            if name not in vars(cls):
                setattr(cls, name, method)
        return cls

    def _is_hashed(field):
        return field.compare if field.hash is None else field.hash

    def _getter(names):
        """Return a function that returns a tuple of the attributes of an object."""
        names = tuple(names)
        if len(names) > 1:
            return attrgetter(*names)
        return lambda self: tuple(getattr(self, name) for name in names)

    def _eq(values):
        def __eq__(self, other):
            if other.__class__ is self.__class__:
                return values(self) == values(other)
            return NotImplemented

        return __eq__

    def _hash(values):
        def __hash__(self):
            return hash(values(self))

        return __hash__

    @recursive_repr()
    def _repr(self):
        shown = (field for field in dataclasses.fields(self) if field.repr)
        values = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in shown)
        return f"{self.__class__.__qualname__}({values})"

    def _refuse(self, name, *value):
        if "__dataclass_fields__" in vars(type(self)) or name in self.__dataclass_fields__:
            verb = "assign to" if value else "delete"
            raise dataclasses.FrozenInstanceError(f"cannot {verb} field {name!r}")
        if value:
            object.__setattr__(self, name, *value)
        else:
            object.__delattr__(self, name)

    def _state(self):
        return [getattr(self, field.name) for field in dataclasses.fields(self)]

    def _set_state(self, state):
        for field, value in zip(dataclasses.fields(self), state, strict=True):
            object.__setattr__(self, field.name, value)

    def _init(cls, fields, frozen):
        """Return ``__init__``, the only method that is compiled: no two classes have the same."""
        names = {"_SET": object.__setattr__, "_NEW": object()}
        taken, by_name, body = ["self"], [], []
        for field in fields:
            value = name = field.name
            default = ""
            if field.default_factory is not dataclasses.MISSING:
                names[f"_MAKE_{name}"] = field.default_factory
                default, value = "=_NEW", f"_MAKE_{name}()"
                if field.init:
                    value += f" if {name} is _NEW else {name}"
            elif field.default is not dataclasses.MISSING:
                names[f"_DEFAULT_{name}"] = field.default
                default = f"=_DEFAULT_{name}"
            if field.init:
                (by_name if field.kw_only else taken).append(name + default)
            elif value == name:  # a method sets it, or the class has it
                continue
            body.append(f"_SET(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
        if by_name:
            taken += ["*", *by_name]
        if hasattr(cls, "__post_init__"):
            body.append("self.__post_init__()")
        lines = "\n ".join(body or ["pass"])
        exec(f"def __init__({', '.join(taken)}):\n {lines}", names)
        init = names["__init__"]
        init.__qualname__ = f"{cls.__qualname__}.__init__"
        return init
