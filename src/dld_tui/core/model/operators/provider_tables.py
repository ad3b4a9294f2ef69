"""What execution providers support by their published tables, and what a table says of one node.

ONNX Runtime publishes the kernels of CPU, CUDA and DirectML with their versions and types; other
providers list operators, some with conditions. scripts/provider_tables.py writes the data file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from typing import Any, NamedTuple

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.types import TextEnum


class Support(TextEnum):
    """Whether a provider takes a node."""

    TAKEN = "taken"
    PARTLY = "partly"
    """Under a condition that is not known to hold, after a change of types, or without parts."""
    NOT = "not"


_ORDER = {support: place for place, support in enumerate(Support)}


class Cause(TextEnum):
    """Why a provider does not take a node, or not all of it."""

    NONE = ""
    OPERATOR = "operator"
    VERSION = "version"
    TYPE = "type"
    RANK = "rank"
    ATTRIBUTE = "attribute"
    CONSTANT = "constant"
    SHAPE = "shape"
    BODY = "subgraph"
    CONDITION = "condition"
    OPTION = "option"
    HOST = "host"
    """It computes shapes, which ONNX Runtime leaves to the CPU."""
    RUNTIME = "runtime"


class Operand(NamedTuple):
    """An input or output that a node has."""

    name: str
    """As the operator calls it."""
    variable: str
    """Its type variable."""
    dtype: str | None
    """Such as ``float32`` or ``seq(int64)``; None if unknown."""
    dims: Sequence[int | str | None] | None
    is_constant: bool
    values: Callable[[], Sequence[float] | None]
    """Returns the elements of a small constant."""


@dataclass(frozen=True)
class Call:
    """A node as tables see it."""

    name: str
    """``Conv``, or ``com.microsoft:Attention``."""
    since: int | None
    """The version of its operator set in which the operator became what the node is; None for
    unknown operators."""
    inputs: Sequence[Operand]
    outputs: Sequence[Operand]
    attribute: Callable[[str], Any]
    """Returns the value of an attribute; None where the node has none."""


class Verdict(NamedTuple):
    """What a table says of a node."""

    support: Support
    cause: Cause = Cause.NONE
    reason: str = ""
    """May contain untrusted text."""
    versions: tuple[int, ...] = ()
    """Versions of the operator that would be taken, the newest first."""
    dtypes: tuple[str, ...] = ()
    """Types that would be taken."""


@dataclass(frozen=True)
class ProviderTable:
    """The published table of a provider."""

    name: str
    """The provider's short name, perhaps with a device: ``OpenVINO GPU``."""
    version: str
    """What the table is of, such as ``ONNX Runtime 1.30.0``."""
    date: str
    url: str
    licence: str
    title: str = ""
    kernels: Mapping[str, Sequence[tuple[int, int | None, Mapping[str, int]]]] | None = None
    """First and last version, and sets of types by constraint, of each kernel of an operator."""
    operators: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What each operator demands."""
    host: Mapping[str, Sequence[Sequence[int]]] = field(default_factory=dict)
    """Numbers of the inputs and outputs of kernels that are in host memory."""
    widens: Sequence[str] = ()
    """Types without a kernel that ONNX Runtime casts to float32."""
    fixed_shapes: bool = False
    bodies: bool = True
    """Whether nodes of subgraphs are taken."""
    whole_bodies: bool = False
    """Whether a node with subgraphs is taken only with all nodes in them."""
    excluded: Sequence[str] = ()
    """Operators that a default option excludes."""
    include: str = ""
    """The option with which they are taken."""

    @property
    def label(self) -> str:
        """For people."""
        return self.title or self.name


@lru_cache(maxsize=1)
def tables() -> tuple[ProviderTable, ...]:
    """Return all tables."""
    rows: list[dict[str, Any]] = _data()["providers"]
    return tuple(ProviderTable(**row) for row in rows)


@lru_cache(maxsize=1)
def _data() -> dict[str, Any]:
    from importlib import resources  # lazy: it imports zipfile

    text = resources.files(__package__).joinpath("data/provider_tables.json").read_text("utf-8")
    data: dict[str, Any] = json.loads(text)
    data["types"] = [frozenset(names.split()) for names in data["types"]]
    return data


def type_set(number: int) -> frozenset[str]:
    """Return a set of types by its number in kernels."""
    names: frozenset[str] = _data()["types"][number]
    return names


def judge(table: ProviderTable, call: Call) -> Verdict:
    """Return what a table says of a node, subgraphs aside."""
    if call.name in table.excluded:
        return Verdict(
            Support.NOT, Cause.OPTION, f"excluded by default; include it with {table.include}"
        )
    rows = table.operators if table.kernels is None else table.kernels
    if call.name not in rows:
        return Verdict(Support.NOT, Cause.OPERATOR, "not in the table")
    if table.fixed_shapes and _is_dynamic([*call.inputs, *call.outputs]):
        return Verdict(Support.NOT, Cause.SHAPE, _DYNAMIC)
    if table.kernels is None:
        return _by_demands(table.operators[call.name], call)
    return _by_kernels(table, call)


_DYNAMIC = "dynamic shape; only fixed shapes are taken"


def _is_dynamic(operands: Sequence[Operand]) -> bool:
    return any(
        operand.dims is None or not all(isinstance(dim, int) for dim in operand.dims)
        for operand in operands
    )


def _by_kernels(table: ProviderTable, call: Call) -> Verdict:
    assert table.kernels is not None
    rows = table.kernels[call.name]
    fitting = [types for start, end, types in rows if fits(call.since, start, end)]
    if not fitting:
        starts = tuple(sorted({start for start, _, _ in rows}, reverse=True))
        reason = f"no kernel for version {call.since} (has {', '.join(map(str, starts))})"
        return Verdict(Support.NOT, Cause.VERSION, reason, versions=starts)
    verdicts = [_by_types(types, call) for types in fitting]
    best = min(verdicts, key=lambda verdict: _ORDER[verdict.support])
    if best.cause is Cause.TYPE and best.support is Support.NOT and "float32" in best.dtypes:
        typed = [o for o in (*call.inputs, *call.outputs) if o.dtype in table.widens]
        if typed:
            reason = f"no {typed[0].dtype} kernel: ONNX Runtime casts to float32 and back"
            return best._replace(support=Support.PARTLY, reason=reason)
    return best


def fits(since: int | None, start: int, end: int | None) -> bool:
    """Return whether a kernel is for a version of an operator, as ONNX Runtime decides.

    A kernel without a last version is for the version that it starts with alone: the next one may
    differ.
    """
    return since is not None and (since == start or (end is not None and start < since <= end))


def _by_types(constraints: Mapping[str, int], call: Call) -> Verdict:
    unknown = ""
    for operand in (*call.inputs, *call.outputs):
        number = constraints.get(operand.variable, constraints.get(operand.name))
        if number is None:
            continue
        allowed = type_set(number)
        if operand.dtype is None:
            unknown = unknown or operand.name
        elif operand.dtype not in allowed:
            return _wrong_type(operand, allowed)
    if unknown:
        return Verdict(Support.PARTLY, Cause.TYPE, f"the type of {unknown} is unknown")
    return Verdict(Support.TAKEN)


def _wrong_type(operand: Operand, allowed: frozenset[str]) -> Verdict:
    names = tuple(sorted(allowed))
    reason = f"{operand.name} is {operand.dtype}, not {fmt.listed(names, 6)}"
    return Verdict(Support.NOT, Cause.TYPE, reason, dtypes=names)


def _by_demands(demands: Mapping[str, Any], call: Call) -> Verdict:
    """Return the first demand that is not met, else those of which that is not known."""
    operands = {operand.name: operand for operand in (*call.inputs, *call.outputs)}
    checks = (_types, _ranks, _attributes, _absent, _constants, _values, _fixed, _note)
    doubts = []
    for check in checks:
        verdict = check(demands, call, operands)
        if verdict.support is Support.NOT:
            return verdict
        if verdict.support is Support.PARTLY:
            doubts.append(verdict)
    return doubts[0] if doubts else Verdict(Support.TAKEN)


_Operands = Mapping[str, Operand]


def _types(demands: Mapping[str, Any], call: Call, operands: _Operands) -> Verdict:
    if "types" not in demands or not (call.inputs or call.outputs):
        return Verdict(Support.TAKEN)
    first = (*call.inputs, *call.outputs)[0]
    produced = {operand.variable for operand in call.outputs}
    if first.dtype == "bool" and first.variable not in produced:  # the condition of a choice
        first = next((o for o in call.inputs if o.variable in produced), first)
    constraint = first.variable
    asked = [o for o in (*call.inputs, *call.outputs) if o.variable == constraint]
    return _by_types(
        {constraint: demands["types"]}, Call(call.name, None, asked, (), call.attribute)
    )


def _ranks(demands: Mapping[str, Any], call: Call, operands: _Operands) -> Verdict:
    wanted = dict(demands.get("ranks", {}))
    if "rank" in demands and call.inputs:
        wanted[call.inputs[0].name] = demands["rank"]
    for name, ranks in wanted.items():
        operand = operands.get(name)
        if operand is None:
            continue
        text = f"rank {' or '.join(map(str, ranks))}"
        if operand.dims is None:
            return Verdict(Support.PARTLY, Cause.RANK, f"if {name} has {text}")
        if len(operand.dims) not in ranks:
            return Verdict(
                Support.NOT, Cause.RANK, f"{name} has rank {len(operand.dims)}, not {text}"
            )
    return Verdict(Support.TAKEN)


def _attributes(demands: Mapping[str, Any], call: Call, operands: _Operands) -> Verdict:
    for name, allowed in demands.get("attributes", {}).items():
        value = call.attribute(name)
        values = value if isinstance(value, list | tuple) else [value]
        if value is not None and not all(item in allowed for item in values):
            text = " or ".join(map(str, allowed))
            return Verdict(Support.NOT, Cause.ATTRIBUTE, f"{name} is {value}, not {text}")
    return Verdict(Support.TAKEN)


def _absent(demands: Mapping[str, Any], call: Call, operands: _Operands) -> Verdict:
    for name in demands.get("without", ()):
        if name in operands or call.attribute(name):
            return Verdict(Support.NOT, Cause.ATTRIBUTE, f"{name} is not supported")
    if demands.get("one_output") and len(call.outputs) > 1:
        reason = f"{call.outputs[1].name} is not supported"
        return Verdict(Support.NOT, Cause.ATTRIBUTE, reason)
    return Verdict(Support.TAKEN)


def _constants(demands: Mapping[str, Any], call: Call, operands: _Operands) -> Verdict:
    for name in demands.get("constant", ()):
        if name in operands and not operands[name].is_constant:
            return Verdict(Support.NOT, Cause.CONSTANT, f"{name} is not constant")
    return Verdict(Support.TAKEN)


def _values(demands: Mapping[str, Any], call: Call, operands: _Operands) -> Verdict:
    for name, (least, most) in demands.get("values", {}).items():
        if name not in operands:
            continue
        text = str(least) if least == most else f"{least} to {most}"
        values = operands[name].values()
        if values is None:
            return Verdict(Support.PARTLY, Cause.CONDITION, f"if {name} is {text}")
        if not all(least <= value <= most for value in values):
            return Verdict(Support.NOT, Cause.CONSTANT, f"{name} is not {text}")
    return Verdict(Support.TAKEN)


def _fixed(demands: Mapping[str, Any], call: Call, operands: _Operands) -> Verdict:
    if demands.get("fixed") and _is_dynamic(call.inputs[:1]):
        return Verdict(Support.NOT, Cause.SHAPE, _DYNAMIC)
    return Verdict(Support.TAKEN)


def _note(demands: Mapping[str, Any], call: Call, operands: _Operands) -> Verdict:
    holds = all(
        (value := call.attribute(name)) is not None and (wanted is None or value in wanted)
        for name, wanted in demands.get("note_if", {}).items()
    )
    if "note" in demands and holds:
        return Verdict(Support.PARTLY, Cause.CONDITION, demands["note"])
    return Verdict(Support.TAKEN)
