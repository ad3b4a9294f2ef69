"""Rules about tensors: their data, without reading any payload."""

from __future__ import annotations

import onnx

from dld_tui.core.checks.findings import Finding, found, name_of
from dld_tui.core.checks.rules import Level
from dld_tui.core.document import Node, Scope, Tensor
from dld_tui.core.document.wiretext import text_of
from dld_tui.core.files.external import KNOWN_ENTRIES
from dld_tui.core.files.tensors import NARROW_BITS, element_bits

_EXTERNAL = onnx.TensorProto.EXTERNAL
_NARROW = frozenset(
    number for name, number in onnx.TensorProto.DataType.items() if name in NARROW_BITS
)
_BYTES: dict[int, int] = {
    number: bits // 8
    for number in onnx.TensorProto.DataType.values()
    if number not in _NARROW and (bits := element_bits(number)) is not None
}
"""Bytes of an element, for the types whose elements are whole bytes."""
_RULES = (("no data", "tensor-without-data"), ("External data", "external-data"))


def check_tensor(proto: onnx.TensorProto, scope: Scope, name: str) -> list[Finding]:
    """Return what is wrong with an initializer."""
    if is_plainly_good(proto, scope):
        return []
    return _problems(Tensor(proto, scope.document), f"Tensor {name_of(name)}", scope, None, name)


def attribute_problems(node: Node, name: str) -> list[Finding]:
    """Return what is wrong with the tensor in an attribute of a node."""
    attribute = node.attribute(name)
    value = attribute.value if attribute is not None else None
    tensors = value if isinstance(value, list) else [value]
    return [
        finding
        for tensor in tensors
        if isinstance(tensor, Tensor) and not is_plainly_good(tensor.proto, node.scope)
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


def is_plainly_good(proto: onnx.TensorProto, scope: Scope) -> bool:
    """Return True for most good tensors, fast; False when a closer look is needed."""
    if proto.data_location == _EXTERNAL or not proto.HasField("raw_data"):
        return False
    width = _BYTES.get(proto.data_type)
    if width is None:
        return False
    for dim in proto.dims:
        if dim < 0:
            return False
        width *= dim
    if (
        proto.float_data
        or proto.int32_data
        or proto.int64_data
        or proto.string_data
        or proto.double_data
        or proto.uint64_data
    ):
        return False
    data = proto.raw_data
    blob = scope.document.blobs.get(data)
    return width == (len(data) if blob is None else blob.length)


def _problems(
    tensor: Tensor, subject: str, scope: Scope, node: Node | None, value: str | None
) -> list[Finding]:
    findings = []
    if tensor.is_external:
        unknown = sorted(set(tensor.external_entries) - KNOWN_ENTRIES)
        if unknown:
            text = f"{subject}: unknown external_data key {name_of(unknown[0])} is ignored"
            findings.append(found("external-keys", text, scope, node, value=value))
    problem = tensor.problem
    if problem is not None:
        rule = next((rule for text, rule in _RULES if text in problem), "tensor-data")
        level: Level | None = "warning" if "has both" in problem else None  # readers take one
        text = f"{subject}: {problem}"
        findings.append(found(rule, text, scope, node, value=value, level=level))
    return findings


def check_sparse(proto: onnx.SparseTensorProto, scope: Scope) -> list[Finding]:
    """Return what is wrong with a sparse initializer."""
    name = text_of(proto.values.name)
    subject = f"Sparse tensor {name_of(name)}"
    findings = _problems(Tensor(proto.values, scope.document), subject, scope, None, name)
    if not findings and proto.indices.data_type != onnx.TensorProto.INT64:
        text = f"{subject}: its indices are not int64"
        findings.append(found("tensor-data", text, scope, value=name))
    return findings
