"""What ONNX Runtime takes: versions, operators, and the types that its CPU provider computes.

The facts are of its newest version, in a data file that scripts/onnxruntime_facts.py writes, so
that they are there where ONNX Runtime is not.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any

import onnx
from onnx import TensorProto

from dld_tui.core.checks.calls import Call
from dld_tui.core.checks.findings import name_of
from dld_tui.core.document.proto_text import text_of

_OWN = "dld_tui.core.operators"
_HALF = (TensorProto.FLOAT16,)


@dataclass(frozen=True)
class Facts:
    """What the newest known version of ONNX Runtime takes."""

    version: str
    ir: int
    """The newest IR version."""
    opsets: dict[str, int]
    """The newest released version of each operator set."""
    operators: dict[str, dict[str, dict[str, list[str]]]]
    """Attributes by domain, operator and the version since which they hold."""
    kernels: dict[str, dict[str, list[Any]]]
    types: list[str]

    def since(self, domain: str, op_type: str, version: int) -> int | None:
        """Return since which version an operator is as it is in `version`, None when unknown."""
        known = self.operators.get(domain, {}).get(op_type)
        if known is None:
            return None
        return max((int(since) for since in known if int(since) <= version), default=None)


@lru_cache(maxsize=1)
def facts() -> Facts:
    """Return the facts of the data file."""
    text = resources.files(_OWN).joinpath("data/onnxruntime.json").read_text("utf-8")
    data = json.loads(text)
    data.pop("notice", None)
    return Facts(**data)


def title() -> str:
    """Return what the facts are of, for messages."""
    return f"ONNX Runtime {facts().version}"


def unknown_to_runtime(call: Call) -> str | None:
    """Return what ONNX Runtime does not know of a call, None when it knows it.

    It is None for operators that nothing knows, too, if their operator set is known: that is a
    finding of its own.
    """
    known = facts()
    if call.op_type == "Constant":
        return None  # is taken for a constant, whatever its operator set
    if call.domain not in known.kernels:
        name = name_of(call.domain)
        return f"{title()} has no operator set {name}: it needs a library of custom operators"
    if call.domain not in known.operators or not call.version:
        return None
    from dld_tui.core.operators.registry import schema_for

    ours = schema_for(call.op_type, call.domain, call.version)
    if ours is None:
        return None
    since = known.since(call.domain, call.op_type, call.version)
    if since is None:
        return f"{title()} does not know it"
    attributes = known.operators[call.domain][call.op_type][str(since)]
    mine = {attribute.name for attribute in ours.attributes}
    for proto in call.node.attribute:
        name = text_of(proto.name)
        if name in mine and name not in attributes:
            return f"{title()} does not know its attribute {name_of(name)}"
    return None


def has_kernel(call: Call) -> bool | None:
    """Return whether the CPU provider computes a call; None when that is not known.

    Unknown types are taken to fit. Where there is no kernel for float16, ONNX Runtime casts to
    float32 and back.
    """
    known = facts()
    rows = known.kernels.get(call.domain, {}).get(call.op_type)
    if call.domain not in known.kernels or call.op_type == "Constant":
        return None
    since = known.since(call.domain, call.op_type, call.version)
    if call.domain == "com.microsoft":
        since = 1
    if since is None:
        return None
    if rows is None:
        return False
    fitting = [row for row in rows if _fits_version(since, row[0], row[1])]
    types = _types_by_name(call)
    if types is None:
        return bool(fitting)
    if any(_fits(row[2], types, known.types) for row in fitting):
        return True
    as_single = {
        name: [TensorProto.FLOAT if kind in _HALF else kind for kind in kinds]
        for name, kinds in types.items()
    }
    return as_single != types and any(_fits(row[2], as_single, known.types) for row in fitting)


def _fits_version(since: int, first: int, last: int | None) -> bool:
    """As KernelRegistry::VerifyKernelDef of ONNX Runtime compares them."""
    return first == since or (last is not None and first < since <= last)


def _types_by_name(call: Call) -> dict[str, list[int]] | None:
    """Return element types of operands by type variable and by formal name; 0 for unknown ones."""
    from dld_tui.core.operators.registry import schema_for

    schema = schema_for(call.op_type, call.domain, call.version)
    if schema is None:
        return None
    found: dict[str, list[int]] = {}
    for formals, names in ((schema.inputs, call.node.input), (schema.outputs, call.node.output)):
        for index, name in enumerate(names):
            if not formals or not name:
                continue
            formal = formals[min(index, len(formals) - 1)]
            operand = call.names.operand(text_of(name))
            kind = operand.dtype if operand.kind == "tensor_type" else 0
            found.setdefault(formal.type_name, []).append(kind)
            if formal.name != formal.type_name:
                found.setdefault(formal.name, []).append(kind)
    return found


def _fits(taken: dict[str, list[int]], types: dict[str, list[int]], texts: list[str]) -> bool:
    for name, numbers in taken.items():
        accepted = {texts[number] for number in numbers}
        for kind in types.get(name, ()):
            if kind and f"tensor({_type_text(kind)})" not in accepted:
                return False
    return True


def _type_text(kind: int) -> str:
    from dld_tui.core.document.value_types import tensor_type

    full = tensor_type(kind) or ""
    return full.removeprefix("tensor(").removesuffix(")")


def types_text(call: Call) -> str:
    """Return the element types of the inputs of a call, for a message."""
    kinds = [call.input(index).dtype for index in range(len(call.node.input))]
    named = dict.fromkeys(_type_text(kind) for kind in kinds if kind)
    return ", ".join(named)


def is_function(call: Call) -> bool:
    """Return whether the operator is defined by others, so that no kernel of its own is needed."""
    try:
        schema = onnx.defs.get_schema(call.op_type, call.version, call.domain)
    except onnx.defs.SchemaError:
        return False
    # The stubs of onnx do not know them.
    return bool(
        getattr(schema, "has_function", False)
        or getattr(schema, "has_context_dependent_function", False)
    )
