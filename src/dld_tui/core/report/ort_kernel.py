"""What an ONNX Runtime profile says of one kernel."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType

from dld_tui.core.report.records import Dims
from dld_tui.core.types import JSON

_HOLDERS = frozenset({"If", "Loop", "Scan", "SequenceMap"})
"""Operators whose kernels run other kernels."""

_CONTRIB_HOLDERS = ("BeamSearch", "GreedySearch", "Sampling")

_TYPE_NAMES = MappingProxyType({"float": "float32", "double": "float64"})
"""ONNX Runtime's C++ names where they differ from ONNX's."""

_BYTES = MappingProxyType(
    {
        "activation_size": "activation_bytes",
        "parameter_size": "parameter_bytes",
        "output_size": "output_bytes",
        "mem_in_use_peak": "arena_peak_bytes",
    }
)


@dataclass(frozen=True)
class Kernel:
    """A node of the optimised graph, as it was run."""

    name: str
    """Of the optimised graph, without ``_kernel_time``."""
    op_type: str
    provider: str | None = None
    """None when the profile does not say."""
    node_index: int | None = None
    """The node's number in its (sub)graph; None before 1.8."""
    input_types: tuple[str, ...] = ()
    input_dims: tuple[Dims, ...] = ()
    output_types: tuple[str, ...] = ()
    output_dims: tuple[Dims, ...] = ()
    details: dict[str, JSON] = field(default_factory=dict, hash=False)
    """What else is known: ``node_index``, ``activation_bytes``, ``parameter_bytes``, …"""

    @property
    def precision(self) -> str | None:
        """The type of the first output, else of the first input; None before 1.12."""
        return next(iter(self.output_types + self.input_types), None)


def may_hold_others(op_type: str) -> bool:
    """Return True for an operator with subgraphs."""
    return op_type in _HOLDERS or op_type.endswith(_CONTRIB_HOLDERS)


def kernel_from(name: str, arguments: dict[str, JSON]) -> Kernel:
    """Return the kernel of a ``_kernel_time`` event; what has a wrong type is left out."""
    input_types, input_dims = _tensors(arguments.get("input_type_shape"))
    output_types, output_dims = _tensors(arguments.get("output_type_shape"))
    details: dict[str, JSON] = {}
    for key, ours in _BYTES.items():
        value = whole(arguments.get(key))
        if value is not None:
            details[ours] = value
    node_index = whole(index_text(arguments))
    if node_index is not None:
        details["node_index"] = node_index
    provider = arguments.get("provider")
    return Kernel(
        name=name,
        op_type=op_type_of(name, arguments),
        provider=provider if isinstance(provider, str) and provider else None,
        node_index=node_index,
        input_types=input_types,
        input_dims=input_dims,
        output_types=output_types,
        output_dims=output_dims,
        details=details,
    )


def op_type_of(name: str, arguments: dict[str, JSON]) -> str:
    """Return the operator's type; the kernel's name when the event does not tell."""
    op_type = arguments.get("op_name")
    return op_type if isinstance(op_type, str) and op_type else name


def index_text(arguments: dict[str, JSON]) -> JSON:
    """Return the node's number in its graph as the profile has it: ``graph_index`` before 1.16."""
    return arguments.get("node_index", arguments.get("graph_index"))


def whole(value: JSON) -> int | None:
    """Return a number that may be written as a string; None when it is not one."""
    if isinstance(value, str) and len(value) <= 20:
        try:
            return int(value)
        except ValueError:
            return None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _tensors(value: JSON) -> tuple[tuple[str, ...], tuple[Dims, ...]]:
    """Return types and shapes of ``[{"float": [1, 3]}, {}, …]``; ``{}`` is an omitted input."""
    types: list[str] = []
    shapes: list[Dims] = []
    for item in value if isinstance(value, list) else []:
        if not isinstance(item, dict):
            continue
        for name, dims in item.items():
            types.append(_TYPE_NAMES.get(name, name))
            shapes.append(tuple(whole(dim) for dim in dims) if isinstance(dims, list) else None)
    return tuple(types), tuple(shapes)
