"""Rules about tensors: initializers, attributes and sparse tensors."""

from __future__ import annotations

import math
from collections.abc import Mapping

from dld_tui.core import fmt
from dld_tui.core.checks.findings import Finding, Level, make_finding, name_of
from dld_tui.core.errors import DldError
from dld_tui.core.files import protos as onnx
from dld_tui.core.files.external import (
    KNOWN_ENTRIES,
    ExternalDataError,
    element_bits,
)
from dld_tui.core.files.proto_fields import (
    text_of,
)
from dld_tui.core.model.document import Node, Scope
from dld_tui.core.model.tensors.tensor import (
    AmbiguousDataError,
    NoDataError,
    Tensor,
)
from dld_tui.core.model.tensors.value_types import (
    Dims,
)
from dld_tui.core.types import ELEMENT_BITS

_EXTERNAL = onnx.TensorProto.EXTERNAL
_NARROW = frozenset(
    number
    for name, number in onnx.TensorProto.DataType.items()
    if ELEMENT_BITS.get(name.lower(), 8) < 8
)
_BYTES: dict[int, int] = {
    number: bits // 8
    for number in onnx.TensorProto.DataType.values()
    if number not in _NARROW and (bits := element_bits(number)) is not None
}
"""Bytes of an element, for the types whose elements are whole bytes."""
_DATA = "tensor-data"
_RULES: Mapping[type[DldError], str] = {
    NoDataError: "tensor-without-data",
    ExternalDataError: "external-data",
}
"""Rules about data of tensors, by error; ``tensor-data`` for others."""


def check_tensor(proto: onnx.TensorProto, scope: Scope, name: str) -> list[Finding]:
    """Return the problems of an initializer."""
    if size_if_plain(proto, scope) is not None:
        return []
    return _problems(Tensor(proto, scope.document), f"Tensor {name_of(name)}", scope, None, name)


def attribute_problems(node: Node, name: str) -> list[Finding]:
    """Return the problems of the tensor in an attribute of a node."""
    attribute = node.attribute(name)
    value = attribute.value if attribute is not None else None
    if isinstance(value, onnx.SparseTensorProto):
        return check_sparse(value, node.scope, node)
    tensors = value if isinstance(value, list) else [value]
    return [
        finding
        for tensor in tensors
        if isinstance(tensor, Tensor) and size_if_plain(tensor.proto, node.scope) is None
        for finding in _problems(tensor, f"Attribute {name_of(name)}", node.scope, node, None)
    ]


def inline_bytes(proto: onnx.TensorProto) -> int:
    """Return about how many bytes a tensor takes in the model's own file."""
    if proto.data_location == _EXTERNAL:
        return 0
    size = _BYTES.get(proto.data_type, 1)
    for dim in proto.dims:
        size *= max(dim, 0)
    return size


def size_if_plain(proto: onnx.TensorProto, scope: Scope) -> int | None:
    """Return the bytes of most good tensors, fast; None when a closer look is needed."""
    if proto.data_location == _EXTERNAL or not proto.HasField("raw_data"):
        return None
    size = _BYTES.get(proto.data_type)
    if size is None:
        return None
    for dim in proto.dims[:]:
        if dim < 0:
            return None
        size *= dim
    if (
        proto.float_data
        or proto.int32_data
        or proto.int64_data
        or proto.string_data
        or proto.double_data
        or proto.uint64_data
    ):
        return None
    data = proto.raw_data
    blob = scope.document.blobs.get(data)
    return size if size == (len(data) if blob is None else blob.length) else None


def _problems(
    tensor: Tensor, subject: str, scope: Scope, node: Node | None, value: str | None
) -> list[Finding]:
    findings = []
    if tensor.is_external:
        unknown = sorted(set(tensor.external_entries) - KNOWN_ENTRIES)
        if unknown:
            text = f"{subject}: unknown external_data key {name_of(unknown[0])} is ignored"
            findings.append(make_finding("external-keys", text, scope, node, value=value))
    error = tensor.error
    if error is not None:
        rule = next((rule for kind, rule in _RULES.items() if isinstance(error, kind)), _DATA)
        is_readable = isinstance(error, AmbiguousDataError)  # readers take one
        level: Level | None = "warning" if is_readable else None
        text = f"{subject}: {error.message}"
        findings.append(make_finding(rule, text, scope, node, value=value, level=level))
    return findings


def check_sparse(
    proto: onnx.SparseTensorProto, scope: Scope, node: Node | None = None
) -> list[Finding]:
    """Return the problems of a sparse initializer, or of a sparse tensor in an attribute."""
    name = None if node is not None else text_of(proto.values.name)
    subject = "Sparse tensor" if name is None else f"Sparse tensor {name_of(name)}"
    findings = _problems(Tensor(proto.values, scope.document), subject, scope, node, name)
    if not findings:
        findings = _problems(
            Tensor(proto.indices, scope.document), f"{subject}: indices", scope, node, name
        )
    if findings:
        return findings
    problem, level = _sparse_problem(proto, scope)
    if not problem and name is not None and name in scope.outputs:
        problem = "it is an output of the graph: ONNX Runtime returns it sparse, or fails"
        level = "warning"
    if problem:
        text = f"{subject}: {problem}"
        findings.append(make_finding("tensor-data", text, scope, node, value=name, level=level))
    return findings


MOST_INDICES = 1 << 16
"""Indices of a sparse tensor that are read for a check."""


def _sparse_problem(proto: onnx.SparseTensorProto, scope: Scope) -> tuple[str, Level | None]:
    """Return what is wrong with a sparse tensor; the tensors in it are readable."""
    dims, values, indices = list(proto.dims), list(proto.values.dims), list(proto.indices.dims)
    if proto.indices.data_type != onnx.TensorProto.INT64:
        return "its indices are not int64", None
    if any(dim < 0 for dim in dims):
        return f"{dims_text(tuple(dims))} has a negative dimension", None
    if len(values) != 1:
        return f"its values are {dims_text(tuple(values))}, they must have one dimension", None
    if indices not in (values, [*values, len(dims)]):
        return (
            f"its indices are {dims_text(tuple(indices))} for {fmt.plural(values[0], 'value')}",
            None,
        )
    if not dims or 0 in dims:
        return f"onnx's checker rejects dimensions {dims_text(tuple(dims))}", "warning"
    tensor = Tensor(proto.indices, scope.document)
    if tensor.is_external or tensor.element_count > MOST_INDICES:
        return "", None
    sizes = dims if len(indices) == 2 else [math.prod(dims)]
    places = tensor.read().reshape(values[0], len(sizes))
    if ((places < 0) | (places >= sizes)).any():
        return f"an index is outside of {dims_text(tuple(dims))}", None
    order = [tuple(place) for place in places.tolist()]
    if order != sorted(set(order)):
        return "its indices are not in ascending order, which onnx's checker rejects", "warning"
    return "", None


def dims_text(dims: Dims) -> str:
    """Return dimensions for a message: ``[2, N, ?]``."""
    return name_of("[" + ", ".join("?" if dim is None else str(dim) for dim in dims) + "]")
