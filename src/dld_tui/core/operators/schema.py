"""The signature and the documentation of one operator version."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from dld_tui.core.operators import plain_text
from dld_tui.core.operators.categories import category_of

if TYPE_CHECKING:
    from typing import Any

    import numpy as np

AttributeValue: TypeAlias = (
    "int | float | bytes | list[int] | list[float] | list[bytes] | np.ndarray[Any, Any] | None"
)


@dataclass(frozen=True)
class Formal:
    """One formal input or output."""

    name: str
    description: str
    """Markdown, as the operator's authors wrote it."""
    types: tuple[str, ...]
    """Accepted types in ONNX notation, e.g. ``tensor(float)``, sorted."""
    type_name: str
    """The type constraint's name, e.g. ``T``; the type itself where there is only one."""
    option: str = "single"
    """``single``, ``optional`` or ``variadic``."""
    min_arity: int = 1
    """How many values a variadic one needs at least."""
    homogeneous: bool = True
    """True when all values of a variadic one have the same type."""


@dataclass(frozen=True)
class AttributeSchema:
    """One attribute that an operator knows."""

    name: str
    kind: str
    """``int``, ``floats``, ``graph`` …: the names of :attr:`Attribute.kind`."""
    required: bool
    default: AttributeValue
    """The value when the attribute is left out, None when there is no fixed one."""
    description: str
    """Markdown, as the operator's authors wrote it."""


@dataclass(frozen=True)
class TypeConstraint:
    """The types that one name of a signature stands for."""

    name: str
    types: tuple[str, ...]
    description: str


@dataclass(frozen=True)
class OperatorSchema:
    """What an operator takes, gives and does, in one version of its operator set."""

    name: str
    domain: str
    """The operator set, ``""`` for ai.onnx."""
    since_version: int
    """The first opset version with this signature."""
    deprecated: bool
    inputs: tuple[Formal, ...]
    outputs: tuple[Formal, ...]
    attributes: tuple[AttributeSchema, ...]
    """Required ones first, then by name."""
    type_constraints: tuple[TypeConstraint, ...]
    markdown: str = field(repr=False)
    """The documentation as its authors wrote it."""
    min_inputs: int = 0
    max_inputs: int | None = None
    """None when there is no limit."""
    min_outputs: int = 0
    max_outputs: int | None = None
    """None when there is no limit."""

    @property
    def category(self) -> str:
        """One of :data:`~dld_tui.core.operators.categories.CATEGORIES`."""
        return category_of(self.name, self.domain)

    @cached_property
    def summary(self) -> str:
        """The first sentence of the documentation; empty where there is none."""
        return plain_text.first_sentence(self.markdown)

    @cached_property
    def doc(self) -> str:
        """The documentation as plain text, one line a paragraph."""
        return plain_text.plain(self.markdown)

    def attribute(self, name: str) -> AttributeSchema | None:
        """Return one attribute by name, or None."""
        return next((item for item in self.attributes if item.name == name), None)

    def input(self, index: int) -> Formal | None:
        """Return the formal of the actual input at `index`, None beyond the last one."""
        return _at(self.inputs, index)

    def output(self, index: int) -> Formal | None:
        """Return the formal of the actual output at `index`, None beyond the last one."""
        return _at(self.outputs, index)

    def doc_lines(self, width: int) -> list[str]:
        """Return the documentation wrapped to `width` columns; code is left as it is."""
        return plain_text.wrapped(self.markdown, width)


def _at(formals: tuple[Formal, ...], index: int) -> Formal | None:
    if index < len(formals):
        return formals[index]
    return formals[-1] if formals and formals[-1].option == "variadic" else None
