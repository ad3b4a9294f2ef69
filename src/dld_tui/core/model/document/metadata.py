"""Data of this program in ``metadata_props``: positions, layer precisions, optimization profiles.

A profile gives each input the smallest, the most usual and the largest shape that an engine is to
take: ``[{"x": {"min": [1, 3], "opt": [8, 3], "max": [32, 3]}}, …]``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import InputError
from dld_tui.core.files.proto_fields import text_of
from dld_tui.core.model.tensors.value_types import PLACEHOLDERS
from dld_tui.core.text import shortened
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document
    from dld_tui.core.model.document.node import Node
    from dld_tui.core.model.tensors.value_types import Dims

POSITION_KEY = "dld.position"
"""The entry of ``metadata_props``: ``x,y``, cells and rows of boxes from where it would be."""
MOST = 9_999
"""Cells that a node can be moved."""
_PATTERN = r"(-?[0-9]{1,4}),(-?[0-9]{1,4})"


def position_of(node: Node) -> tuple[int, int] | None:
    """Return by how many cells a node was moved to the right, and rows down; None if it was not."""
    for entry in reversed(node.metadata_entries):
        if entry.key == POSITION_KEY:
            match = re.fullmatch(_PATTERN, text_of(entry.value))
            return (int(match[1]), int(match[2])) if match is not None else None
    return None


PRECISION_KEY = "dld.precision"
"""The entry of ``metadata_props``."""
PRECISIONS = (
    "fp32", "fp16", "bf16", "fp8", "int64", "int32", "int8", "int4", "uint8", "bool",
)  # fmt: skip
"""What a layer can be set to, as TensorRT's layer information names it, in lower case."""


def precision_of(node: Node) -> str:
    """Return the precision that a layer is set to; empty when none is. Untrusted text."""
    for entry in reversed(node.metadata_entries):
        if entry.key == PRECISION_KEY:
            return text_of(entry.value)
    return ""


PROFILES_KEY = "dld.profiles"
"""The entry of ``metadata_props``."""
KINDS = ("min", "opt", "max")


@dataclass(frozen=True)
class Range:
    """The shapes of one input in one profile."""

    min: tuple[int, ...]
    opt: tuple[int, ...]
    max: tuple[int, ...]

    def shape(self, kind: str) -> tuple[int, ...]:
        """Return one of the shapes by its name in :data:`KINDS`."""
        return {"min": self.min, "opt": self.opt, "max": self.max}[kind]


Profile: TypeAlias = "Mapping[str, Range]"
"""Ranges by input name."""


def parse_profiles(value: JSON) -> list[Profile]:
    """Return the profiles that a JSON value holds.

    Raises:
        InputError: It has another form.
    """
    if not isinstance(value, list):
        raise InputError("profiles must be a list")
    return [_profile(item, at) for at, item in enumerate(value, 1)]


def _profile(value: JSON, number: int) -> Profile:
    if not isinstance(value, dict):
        raise InputError(f"profile {number} must be a table of inputs")
    return {
        name: _range(item, f"profile {number}, {shortened(name)}") for name, item in value.items()
    }


def _range(value: JSON, where: str) -> Range:
    if not isinstance(value, dict) or set(value) != set(KINDS):
        raise InputError(f"{where}: min, opt and max are needed")
    return Range(*(_shape(value[kind], f"{where}, {kind}") for kind in KINDS))


def _shape(value: JSON, where: str) -> tuple[int, ...]:
    if not isinstance(value, list):
        raise InputError(f"{where}: a shape is a list of numbers")
    dims: list[int] = []
    for dim in value:
        if isinstance(dim, bool) or not isinstance(dim, int) or not 0 <= dim < 2**31:
            raise InputError(f"{where}: {dim!r} is not a dimension")
        dims.append(dim)
    return tuple(dims)


def profiles_json(profiles: list[Profile]) -> list[JSON]:
    """Return profiles as :func:`parse_profiles` reads them."""
    return [
        {name: {kind: list(shapes.shape(kind)) for kind in KINDS} for name, shapes in item.items()}
        for item in profiles
    ]


def profiles_of(document: Document) -> list[Profile]:
    """Return the profiles of a model; empty when it has none.

    Raises:
        InputError: The entry is damaged.
    """
    texts = [
        text_of(e.value) for e in document.model.metadata_props if text_of(e.key) == PROFILES_KEY
    ]
    if not texts:
        return []
    try:
        return parse_profiles(json.loads(texts[-1]))
    except ValueError:
        raise InputError(f"the metadata entry {PROFILES_KEY} is not JSON") from None


def declared_inputs(document: Document) -> dict[str, Dims]:
    """Return the inputs of a model that are fed with tensors, with their declared dimensions.

    Inputs with an initializer keep that as their value, and unknown ranks have no range.
    """
    main = document.main
    inputs = {}
    for name in main.inputs:
        known = main.value_type(name)
        if not main.is_weight(name) and known is not None and known.dims is not None:
            inputs[name] = tuple(map(_free_or_known, known.dims))
    return inputs


def _free_or_known(dim: int | str | None) -> int | str | None:
    """Return a dimension, None for the -1 or ``?`` that some exporters write for a free one."""
    free = dim < 0 if isinstance(dim, int) else dim in PLACEHOLDERS
    return None if free else dim


def is_dynamic(dims: Dims) -> bool:
    """Return whether a declared shape has a dimension that a profile must fix."""
    return any(not isinstance(dim, int) for dim in dims)


def default_range(dims: Dims) -> Range:
    """Return a range to begin with: 1 for every dimension that is not fixed."""
    shape = tuple(dim if isinstance(dim, int) else 1 for dim in dims)
    return Range(shape, shape, shape)


def new_profile(document: Document) -> Profile:
    """Return a profile with the default range of each dynamic input."""
    inputs = declared_inputs(document)
    return {name: default_range(dims) for name, dims in inputs.items() if is_dynamic(dims)}


def problem_of(dims: Dims | None, shapes: Range) -> str | None:
    """Return why a range does not fit an input of a declared shape, or None."""
    rank = len(shapes.min)
    if not len(shapes.opt) == len(shapes.max) == rank:
        return "min, opt and max have different numbers of dimensions"
    if dims is not None and len(dims) != rank:
        return f"the input has {fmt.plural(len(dims), 'dimension')}, not {rank}"
    for at in range(rank):
        low, middle, high = shapes.min[at], shapes.opt[at], shapes.max[at]
        if not low <= middle <= high:
            return f"dimension {at}: {low} ≤ {middle} ≤ {high} does not hold"
        fixed = dims[at] if dims is not None else None
        if isinstance(fixed, int) and not low == middle == high == fixed:
            return f"dimension {at} is fixed to {fixed}"
    return _named_problem(dims, shapes) if dims is not None else None


def _named_problem(dims: Dims, shapes: Range) -> str | None:
    """Return where one symbolic dimension is given two sizes in the same shape."""
    for kind in KINDS:
        sizes: dict[str, int] = {}
        for name, size in zip(dims, shapes.shape(kind), strict=True):
            if isinstance(name, str) and sizes.setdefault(name, size) != size:
                return f"{kind}: {shortened(name)} is both {sizes[name]} and {size}"
    return None


def validate(
    document: Document, profiles: list[Profile], known: Iterable[Profile] = ()
) -> list[str]:
    """Return the problems of profiles for this model, one sentence each.

    Args:
        known: Profiles whose ranges are not looked at again: those from before an edit of others.
    """
    inputs = declared_inputs(document)
    known = list(known)
    same = {(name, shapes) for profile in known for name, shapes in profile.items()}
    problems = []
    for number, profile in enumerate(profiles, 1):
        for name, shapes in profile.items():
            where = f"profile {number}, {shortened(name)}"
            if (name, shapes) in same:
                continue
            if name not in document.main.inputs:
                problems.append(f"{where}: the model has no such input")
            elif problem := problem_of(inputs.get(name), shapes):
                problems.append(f"{where}: {problem}")
        if any(profile.keys() >= other.keys() for other in known):
            continue
        missing = [n for n, dims in inputs.items() if is_dynamic(dims) and n not in profile]
        problems += [f"profile {number}: {shortened(name)} has no range" for name in missing]
    return problems
