"""What is in a model, in numbers. Reads no payload and opens no external data file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.files import protos as onnx
from dld_tui.core.files.proto_fields import text_of
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.node import texts_of_nodes
from dld_tui.core.model.document.scope import Scope
from dld_tui.core.model.tensors.tensor import Tensor
from dld_tui.core.model.tensors.value_types import ValueType
from dld_tui.core.types import JSON, plain_domain

_EXTERNAL = onnx.TensorProto.EXTERNAL


@dataclass(frozen=True)
class GraphTensor:
    """An input or output of the model. Untrusted text."""

    name: str
    type: ValueType | None
    has_default: bool = False
    """An initializer has the same name: it need not be given."""

    def to_json(self) -> dict[str, JSON]:
        """Return the entry of ``inspect --json``."""
        dims = self.type.dims if self.type else None
        return {
            "name": self.name,
            "dtype": self.type.dtype if self.type else None,
            "shape": list(dims) if dims is not None else None,
            "type": self.type.text if self.type else None,
            "has_default": self.has_default,
        }


@dataclass(frozen=True)
class FunctionSummary:
    """A local function. Untrusted text."""

    domain: str
    name: str
    nodes: int


@dataclass(frozen=True)
class ConstantWeights:
    """The tensors of `Constant` nodes, in which Paddle and old exports of torch keep weights."""

    nodes: int = 0
    parameters: int = 0
    bytes: int = 0
    """By element type and shape; strings count nothing."""

    @property
    def text(self) -> str:
        """One line about them."""
        where = f"in {fmt.plural(self.nodes, 'Constant node')}"
        count = fmt.short_plural(self.parameters, "parameter")
        return f"{fmt.size(self.bytes)}, {count} {where}"


@dataclass(frozen=True)
class ModelSummary:
    """The figures of ``dld inspect``. Names are untrusted text."""

    path: str
    ir_version: int
    producer: str
    opsets: dict[str, int]
    inputs: list[GraphTensor]
    outputs: list[GraphTensor]
    nodes: int
    """In the main graph."""
    nodes_total: int
    """In all graphs and functions."""
    op_types: dict[str, int]
    """How often each operator occurs, in all graphs and functions; the most frequent first."""
    initializers: int
    parameters: int
    """Elements of all initializers, exact at any size."""
    initializer_bytes: int
    """By element type and shape; without those of `unsized`."""
    subgraphs: int
    functions: list[FunctionSummary]
    external_files: list[str]
    external_bytes: int
    external_unused: int = 0
    """Bytes of the data files that no tensor uses, apart from gaps that align tensors."""
    unsized: int = 0
    """Initializers whose type does not tell how many bytes they take, such as strings."""
    constants: ConstantWeights | None = None
    """Not read where that would take too long."""

    @property
    def weight_parameters(self) -> int:
        """Elements of all weights, in initializers and in `Constant` nodes."""
        return self.parameters + (self.constants.parameters if self.constants else 0)

    @property
    def weight_bytes(self) -> int:
        """Bytes of all weights, in initializers and in `Constant` nodes."""
        return self.initializer_bytes + (self.constants.bytes if self.constants else 0)

    @property
    def weights_text(self) -> str:
        """How many bytes the weights take, as far as types tell."""
        if self.unsized and not self.initializer_bytes:
            return "size not known"
        return f"{'at least ' * bool(self.unsized)}{fmt.size(self.initializer_bytes)}"

    @property
    def parameters_text(self) -> str:
        """How many parameters there are, and their size; else where the weights are."""
        if self.parameters:
            return f"{fmt.short_plural(self.parameters, 'parameter')}, {self.weights_text}"
        if self.constants is not None and self.constants.bytes:
            return self.constants.text
        constants = self.op_types.get("Constant", 0)
        return f"in {fmt.plural(constants, 'Constant node')}" if constants else "none"

    def to_json(self) -> dict[str, JSON]:
        """Return the document of ``dld inspect --json``. Fields may be added, never renamed."""
        return {
            "path": self.path,
            "ir_version": self.ir_version,
            "producer": self.producer,
            "opsets": dict(self.opsets),
            "inputs": [tensor.to_json() for tensor in self.inputs],
            "outputs": [tensor.to_json() for tensor in self.outputs],
            "nodes": self.nodes,
            "nodes_total": self.nodes_total,
            "op_types": dict(self.op_types),
            "initializers": {
                "count": self.initializers,
                "bytes": self.initializer_bytes,
                "parameters": self.parameters,
                "unsized": self.unsized,
            },
            **({"constants": asdict(self.constants)} if self.constants is not None else {}),
            "subgraphs": self.subgraphs,
            "functions": [
                {"domain": function.domain, "name": function.name, "nodes": function.nodes}
                for function in self.functions
            ],
            "external_data": {
                "files": len(self.external_files),
                "bytes": self.external_bytes,
                "locations": list(self.external_files),
                "unused": self.external_unused,
            },
        }


def summarise(
    document: Document, op_types: Mapping[str, int] | None = None, *, constants: bool = True
) -> ModelSummary:
    """Return the counts of a document.

    Args:
        document: What is open.
        op_types: How often each operator occurs in all scopes, if that is known already.
        constants: Read the tensors of `Constant` nodes too; a screen does not wait for that.
    """
    scopes = list(document.scopes())
    if op_types is None:
        op_types = Counter()
        for scope in scopes:
            op_types.update(texts_of_nodes(scope.nodes, "op_type"))
    weights = _Weights(document, scopes)
    model = document.model
    producer = f"{text_of(model.producer_name)} {text_of(model.producer_version)}"
    return ModelSummary(
        path=str(document.path or ""),
        ir_version=int(model.ir_version),
        producer=producer.strip(),
        opsets=document.opset_imports,
        inputs=[_graph_tensor(document.main, name) for name in document.main.inputs],
        outputs=[_graph_tensor(document.main, name) for name in document.main.outputs],
        nodes=len(document.main.nodes),
        nodes_total=sum(op_types.values()),
        op_types=dict(sorted(op_types.items(), key=lambda item: (-item[1], item[0]))),
        initializers=weights.count,
        parameters=weights.elements,
        initializer_bytes=weights.bytes,
        subgraphs=sum(scope.kind == "subgraph" for scope in scopes),
        functions=[_function(function) for function in document.functions],
        external_files=sorted(weights.external_files),
        external_bytes=weights.external_bytes,
        external_unused=_unused(document) if weights.external_files else 0,
        unsized=weights.unsized,
        constants=_constant_weights(scopes if op_types.get("Constant") else ())
        if constants
        else None,
    )


def _unused(document: Document) -> int:
    from dld_tui.core.model.document.data_files import external_tensors, unused_bytes

    return sum(unused_bytes(document, external_tensors(document)).values())


def _constant_weights(scopes: Iterable[Scope]) -> ConstantWeights:
    """Return the sums over all `Constant` nodes, whose messages are read for it."""
    tensors = [
        tensor
        for scope in scopes
        for node in scope.nodes_of_type("Constant")
        if (tensor := node.tensor("value")) is not None
    ]
    return ConstantWeights(
        nodes=len(tensors),
        parameters=sum(tensor.element_count for tensor in tensors),
        bytes=sum(tensor.nbytes or 0 for tensor in tensors),
    )


class _Weights:
    """The sums over all initializers."""

    def __init__(self, document: Document, scopes: Iterable[Scope]) -> None:
        self.count = self.elements = self.bytes = self.external_bytes = self.unsized = 0
        self.external_files: set[str] = set()
        sizes: dict[tuple[int, tuple[int, ...]], tuple[int, int | None]] = {}
        """Elements and bytes by type and shape, of which a model has few."""
        for scope in scopes:
            sparse = [record.values for record in scope.records.get("sparse_initializer", ())]
            for proto in (*scope.records.get("initializer", ()), *sparse):
                key = (proto.data_type, tuple(proto.dims[:]))
                size = sizes.get(key)
                if size is None:
                    tensor = Tensor(proto, document)
                    size = sizes[key] = (tensor.element_count, tensor.nbytes)
                self.count += 1
                self.elements += size[0]
                self.bytes += size[1] or 0
                self.unsized += size[1] is None
                if proto.data_location == _EXTERNAL:
                    tensor = Tensor(proto, document)
                    self.external_files.add(tensor.external_entries.get("location", ""))
                    self.external_bytes += size[1] or 0


def _graph_tensor(scope: Scope, name: str) -> GraphTensor:
    return GraphTensor(name, scope.value_type(name), scope.is_weight(name))


def _function(scope: Scope) -> FunctionSummary:
    nodes = sum(len(inner.nodes) for inner in scope.walk())
    domain, name = text_of(scope.proto.domain), text_of(scope.proto.name)  # type: ignore[union-attr]
    return FunctionSummary(domain, name, nodes)


@dataclass(frozen=True)
class OpsetImport:
    """One imported operator set. The domain is untrusted text."""

    domain: str
    """``""`` for ai.onnx."""
    version: int | None
    """None when nodes use it and the model does not import it."""
    newest: int | None
    """The newest version that is known here; None for an unknown set."""
    used_by: int
    """Nodes that use it, in all graphs and functions."""


def opset_imports(document: Document) -> list[OpsetImport]:
    """Return the imported operator sets in the order of the file, then those only used."""
    from dld_tui.core.model.operators.registry import newest_opset  # lazy: it loads many schemas

    counts: dict[str, int] = {}
    for scope in document.scopes():
        for node in scope.nodes:
            domain = node.domain
            counts[domain] = counts.get(domain, 0) + 1
    imports = document.opset_imports
    in_functions = {
        plain_domain(text_of(entry.domain))
        for function in document.functions
        for entry in function.proto.opset_import  # type: ignore[union-attr]
    }
    missing = [domain for domain in counts if domain not in imports and domain not in in_functions]
    return [
        OpsetImport(domain, imports.get(domain), newest_opset(domain), counts.get(domain, 0))
        for domain in (*imports, *missing)
    ]
