"""A node that is about to be added: its inputs, attributes and consumers."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import UsageError
from dld_tui.core.model.document.operator_listing import Origin, PaletteOperator
from dld_tui.core.model.document.operator_matching import bound_types, formal_mismatch, weight_dims
from dld_tui.core.model.document.scope import Scope, unused_name
from dld_tui.core.model.document.transactions import Edit
from dld_tui.core.model.edits.renaming import is_taken
from dld_tui.core.model.operators.registry import importable_version
from dld_tui.core.model.operators.schema import AttributeSchema, Formal
from dld_tui.core.model.tensors.elements import is_float
from dld_tui.core.model.tensors.generate import uniform_range
from dld_tui.core.model.tensors.value_types import ValueType, dtype_of, parse_type, type_of_value
from dld_tui.core.types import JSON

SETTABLE = frozenset({"int", "float", "string", "ints", "floats", "strings", "tensor"})
"""Kinds of attribute that can be typed."""
_INITIALIZER_HINT = "a type, then zeros, normal, uniform or numbers: float32[64, 3] normal"
_BODIES = ("graph",)
_FLOAT = "tensor(float)"
_MOST_SHOWN = 64
"""Formal outputs of an operator without a limit."""


@dataclass(frozen=True)
class Setting:
    """The value of an attribute, as the edit takes it and as it was typed."""

    kind: str
    value: JSON
    text: str


@dataclass(frozen=True)
class NewInitializer:
    """An initializer that is made with the node."""

    dtype: str
    dims: tuple[int, ...]
    fill: dict[str, JSON]
    """As ``add_initializer`` takes it."""


def parse_initializer(text: str) -> NewInitializer:
    """Parse a text such as ``float32[64, 3] normal`` or ``int64[2] 1 -1``.

    Behind the type stands ``zeros`` (also when nothing does), ``normal``, ``uniform``, or numbers.

    Raises:
        DldError: It means nothing.
    """
    head, bracket, tail = text.strip().partition("]")
    if not bracket:
        head, _, tail = text.strip().partition(" ")
    known = parse_type(head + bracket)
    dims = known.dims if known is not None else None
    if known is None or known.dtype is None or dims is None:
        raise UsageError(_INITIALIZER_HINT)
    sizes = [size for size in dims if isinstance(size, int)]
    if len(sizes) != len(dims):
        raise UsageError("an initializer has numbers for dimensions")
    return NewInitializer(known.dtype, tuple(sizes), _fill(tail.split(), known.dtype))


def _fill(words: list[str], dtype: str) -> dict[str, JSON]:
    if not words or words == ["zeros"]:
        return {"kind": "zeros"}
    if words == ["normal"]:
        return {"kind": "normal", "mean": 0.0, "deviation": 1.0, "seed": 0}
    if words == ["uniform"]:
        low, high = uniform_range(dtype, 1)
        return {"kind": "uniform", "low": low, "high": high, "seed": 0}
    try:
        values: list[JSON] = [
            float(word) if is_float(dtype) else int(word)
            for word in " ".join(words).replace(",", " ").split()
        ]
    except ValueError:
        raise UsageError(_INITIALIZER_HINT) from None
    return {"kind": "values", "values": values}


@dataclass
class NodeWiring:
    """Choices for one new node. The first input that takes it gets the `source`."""

    scope: Scope
    operator: PaletteOperator
    source: str = ""
    """A value near the cursor; untrusted text."""
    name: str = ""
    inserts: bool = False
    """Whether users of the source get the node's first output."""
    users_of: list[JSON] | None = None
    """``[[NODE, INPUT], …]``: the links that get the first output; None for all of the source."""
    inputs: list[str] = field(init=False)
    """Values by input, ``""`` for none."""
    attributes: dict[str, Setting] = field(default_factory=dict)
    created: dict[str, NewInitializer] = field(default_factory=dict)
    """Initializers that are made with the node, by name."""
    outputs: int = field(init=False)

    def __post_init__(self) -> None:
        schema = self.operator.schema
        self.outputs = self.output_limits[0]
        if self.operator.origin is Origin.CUSTOM:
            self.outputs = max(1, len(schema.outputs))
        self.inputs = [""] * len(schema.inputs)
        if self.source and self.inputs:
            fitting = [
                at for at in range(len(self.inputs)) if self.why_not(at, self.source) is None
            ]
            self.inputs[fitting[0] if fitting else 0] = self.source

    @property
    def slots(self) -> int:
        """How many inputs are offered: one more than are filled where there is no limit."""
        formals = self.operator.schema.inputs
        most = self.operator.schema.max_inputs
        if formals and (formals[-1].option == "variadic" or most is None):
            filled = max((at + 1 for at, value in enumerate(self.inputs) if value), default=0)
            return max(len(formals), filled + 1)
        return len(formals)

    def formal(self, at: int) -> Formal | None:
        """Return the formal of an input, None beyond those that are known."""
        return self.operator.schema.input(at)

    def value(self, at: int) -> str:
        """Return the value that is chosen for an input, ``""`` for none."""
        return self.inputs[at] if at < len(self.inputs) else ""

    def connect(self, at: int, value: str) -> None:
        """Choose a value for an input; ``""`` takes it away."""
        self.inputs += [""] * (at + 1 - len(self.inputs))
        self.created.pop(self.inputs[at], None)
        self.inputs[at] = value
        if value != self.source and self.source not in self.inputs:
            self.inserts = False

    def is_required(self, at: int) -> bool:
        """Return whether the operator cannot do without an input."""
        formal = self.formal(at)
        return formal is not None and (
            formal.option == "single"
            or (formal.option == "variadic" and at < self.operator.schema.min_inputs)
        )

    def why_not(self, at: int, value: str) -> str | None:
        """Return why a value does not fit an input, None when it does or its type is unknown."""
        return self.why_not_type(at, self.value_type(value))

    def why_not_type(self, at: int, known: ValueType | None) -> str | None:
        """Return why a type does not fit an input beside the other inputs, or None."""
        others = [place for place in range(len(self.inputs)) if place != at]
        bound = bound_types(
            [self.formal(place) for place in others],
            [type_of_value(self.value_type(self.inputs[place])) for place in others],
        )
        return formal_mismatch(self.formal(at), type_of_value(known), bound)

    def value_type(self, value: str) -> ValueType | None:
        """Return the known type of a value, or of a new initializer."""
        created = self.created.get(value)
        if created is not None:
            return ValueType(created.dtype, created.dims)
        return self.scope.value_type(value) if value else None

    def likely_type(self, at: int) -> str:
        """Return the element type that an input most likely takes."""
        formal = self.formal(at)
        if formal is None or not formal.types:
            return "float32"
        others = [place for place in range(len(self.inputs)) if place != at]
        bound = bound_types(
            [self.formal(place) for place in others],
            [type_of_value(self.value_type(self.inputs[place])) for place in others],
        )
        name = bound.get(formal.type_name)
        if name is None:
            name = _FLOAT if _FLOAT in formal.types else formal.types[0]
        return dtype_of(name) or "float32"

    def likely_initializer(self, at: int) -> str:
        """Return the text of a new initializer for an input, shaped as its neighbours tell."""
        shapes = [
            known.dims if (known := self.value_type(value)) is not None else None
            for value in self.inputs
        ]
        shapes += [None] * (at + 1 - len(shapes))
        settings = {name: setting.value for name, setting in self.attributes.items()}
        plain = not self.operator.domain
        dims = weight_dims(self.operator.name, at, shapes, settings) if plain else None
        dtype = self.likely_type(at)
        if dims is None:
            return f"{dtype}[1] zeros"
        fill = "normal" if len(dims) > 1 and is_float(dtype) else "zeros"
        return f"{dtype}[{', '.join(map(str, dims))}] {fill}"

    def create(self, at: int, initializer: NewInitializer) -> None:
        """Choose an initializer that is made with the node for an input."""
        self.connect(at, "")
        formal = self.formal(at)
        wanted = f"{self.operator.name}_{formal.name if formal is not None else at}"
        name = unused_name(wanted, lambda name: name in self.created or is_taken(self.scope, name))
        self.created[name] = initializer
        self.connect(at, name)

    @property
    def settable(self) -> list[AttributeSchema]:
        """The attributes that can be typed, the required ones first."""
        return [item for item in self.operator.schema.attributes if item.kind in SETTABLE]

    @property
    def bodies(self) -> list[str]:
        """The graph attributes that the node gets with new bodies in them."""
        attributes = self.operator.schema.attributes
        return [item.name for item in attributes if item.required and item.kind in _BODIES]

    @property
    def output_limits(self) -> tuple[int, int]:
        """The least and the most outputs."""
        schema = self.operator.schema
        least = max(1, schema.min_outputs, sum(f.option == "single" for f in schema.outputs))
        if schema.max_outputs is None:
            return least, _MOST_SHOWN
        return least, max(least, schema.max_outputs)

    @property
    def users(self) -> int:
        """How many inputs use the source now."""
        return len(self.scope.users(self.source)) if self.source else 0

    @property
    def opset(self) -> int | None:
        """The version to import with the node; None when its operator set is imported."""
        if self.operator.imported:
            return None
        return importable_version(self.operator.domain, int(self.scope.document.model.ir_version))

    def missing(self) -> list[str]:
        """Return what must still be chosen. Untrusted text."""
        missing_inputs = []
        for at in range(self.slots):
            formal = self.formal(at)
            if formal is not None and self.is_required(at) and not self.value(at):
                missing_inputs.append(f"input {formal.name}")
        is_loop = self.operator.name == "Loop" and not self.operator.domain
        if is_loop and not self.value(0) and not self.value(1):  # it would never end
            missing_inputs.append("input M or cond")
        missing_inputs += [
            f"attribute {item.name}"
            for item in self.settable
            if item.required and item.name not in self.attributes
        ]
        return missing_inputs

    def edit(self) -> Edit:
        """Return the edit that adds the node."""
        from dld_tui.core.model.edits.nodes import add_operator

        inputs = list(self.inputs)
        while inputs and not inputs[-1]:
            inputs.pop()
        wanted: dict[str, Any] = {
            "domain": self.operator.domain,
            "name": self.name,
            "inputs": inputs,
            "outputs": self.outputs if self.outputs != 1 else None,
            "attributes": {
                name: {"kind": setting.kind, "value": setting.value}
                for name, setting in self.attributes.items()
            },
            "bodies": list(self.bodies),
            "initializers": [
                {
                    "name": name,
                    "dtype": initializer.dtype,
                    "dims": list(initializer.dims),
                    "fill": initializer.fill,
                }
                for name, initializer in self.created.items()
            ],
            "behind": self.source if self.inserts else "",
            "users": self.users_of if self.inserts else None,
            "opset": self.opset,
        }
        given = {name: value for name, value in wanted.items() if value}
        return add_operator(scope=self.scope.path, op_type=self.operator.name, **given)
