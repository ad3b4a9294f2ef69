"""Any tensors of a model, including intermediate ones, as ONNX Runtime computes them.

A tensor becomes accessible as an output of the graph. With all tensors as outputs, none could be
freed during a run, so they are computed in groups, each in its own session.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from dld_tui.backends.onnxruntime.runtime import errors_of, load
from dld_tui.backends.onnxruntime.session import Feed, Session, has_text
from dld_tui.backends.onnxruntime.session_options import SessionSettings
from dld_tui.core.errors import ActivityError
from dld_tui.core.files.model_set import discard_view, external_view
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.local_functions import instances, key_of
from dld_tui.core.model.document.locations import names_used
from dld_tui.core.model.document.serialise import skeleton_bytes
from dld_tui.core.model.inputs.shapes import AnyArray, InputSpec, is_extended, numpy_dtype
from dld_tui.core.model.tensors.elements import element_type, payload_bytes
from dld_tui.core.model.tensors.value_types import ValueType
from dld_tui.core.text import visible
from dld_tui.core.types import CancelCheck

MANY_NODES = 3000
"""From so many nodes on a session is made without what takes ONNX Runtime a time that grows with
their square: 25 s of 27 s for a diffusion model of 11,000 nodes, minutes for a chain of 100,000."""
_UNKNOWN_BYTES = 1 << 20
"""The assumed bytes of a tensor of unknown size."""


def settings_for_copies(settings: SessionSettings, document: Document) -> SessionSettings:
    """Return settings with which a copy with casts around its nodes runs like the original.

    ONNX Runtime (up to 1.31) infers that the present cache of GroupQueryAttention is as long as
    the past one. If the past cache is not an input of the model but cast from one, the buffer for
    the next present cache is too small, and the run fails. MatMulNBits with ``accuracy_level`` 4
    computes zeros if its scales are not constant: casts of them are folded. For very many nodes,
    memory reuse is not planned, and equal nodes are not merged: the tensors are the same without
    (see :data:`MANY_NODES`).
    """
    scopes = list(document.scopes())
    if any(scope.nodes_of_type("GroupQueryAttention") for scope in scopes):
        settings = replace(settings, reuse_memory=False)
    has_packed = any(scope.nodes_of_type("MatMulNBits") for scope in scopes)
    if has_packed and settings.optimization_level == "disabled":
        settings = replace(settings, optimization_level="basic")
    return spared(settings) if has_many_nodes(document) else settings


def spared(settings: SessionSettings) -> SessionSettings:
    """Return settings without what takes ONNX Runtime very long for very many nodes."""
    left_out = (*settings.left_out, "CommonSubexpressionElimination")
    return replace(settings, reuse_memory=False, left_out=left_out)


def has_many_nodes(document: Document, many: int | None = None) -> bool:
    """Return whether a model has very many nodes after inlining its functions.

    Args:
        document: The model.
        many: By default :data:`MANY_NODES`.
    """
    calls = instances(document)
    count = sum(len(scope.nodes) for scope in document.main.walk())
    count += sum(
        len(function.nodes) * len(calls[key_of(function)]) for function in document.functions
    )
    return count >= (MANY_NODES if many is None else many)


class TensorRunner:
    """Runs a model for its tensors. Use it as a context manager, or close it.

    Args:
        document: The model; it stays unchanged, and open until this is closed.
        settings: Of the session. Optimizations fuse nodes, whose intermediate tensors are then
            recomputed for the output only: ``disabled`` computes those of the model as written.
        cancelled: Asked while weights are copied, if needed.
        folder: The folder of the weights, for a document without a path.

    Raises:
        SaveError: The disk is full.
    """

    def __init__(
        self,
        document: Document,
        settings: SessionSettings,
        cancelled: CancelCheck | None = None,
        folder: Path | None = None,
    ) -> None:
        if document.path is not None:
            folder = document.path.parent
        self._title = document.path or Path("model")
        self._settings = settings_for_copies(settings, document)
        self._view = external_view(
            skeleton_bytes(document),
            document.blobs,
            folder,
            external=document.external,
            values=True,
            cancelled=cancelled,
        )
        self._model = onnx.ModelProto.FromString(self._view.read_bytes())
        self._inputs: list[InputSpec] | None = None
        self._kept: tuple[tuple[str, ...], TensorSession] | None = None
        """The last session, by its outputs, where it took long to make."""
        self._own_inputs = {info.name for info in self._model.graph.input}

    def close(self) -> None:
        """Remove the view."""
        self._kept = None
        discard_view(self._view)

    def __enter__(self) -> TensorRunner:
        """Return the runner."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    @property
    def outputs(self) -> list[str]:
        """The names of the model's own outputs. Untrusted text."""
        return [info.name for info in self._model.graph.output]

    @property
    def inputs(self) -> list[InputSpec]:
        """What the model takes."""
        if self._inputs is None:
            self._inputs = self.session(self.outputs).inputs
        return self._inputs

    def values(self, names: Sequence[str], feeds: Mapping[str, Any]) -> dict[str, AnyArray | None]:
        """Run once and return tensors by name; None for other values, such as sequences.

        Args:
            names: Tensors of the main graph.
            feeds: Values by input, as from :func:`dld_tui.core.model.inputs.fills.random_inputs`.

        Raises:
            ActivityError: The model cannot be run; names the node if ONNX Runtime does.
        """
        return next(self.each(names, [feeds]))

    def each(
        self, names: Sequence[str], feeds: Sequence[Mapping[str, Any]]
    ) -> Iterator[dict[str, AnyArray | None]]:
        """Yield tensors by name as :meth:`values` does, for each set of inputs.

        The first set may contain intermediate tensors: the nodes before them are then skipped.

        Raises:
            ActivityError: The model cannot be run.
        """
        given = {} if not feeds else {
            name: array for name, array in feeds[0].items() if name not in self._own_inputs
        }  # fmt: skip
        session = self.session(names, given or None)
        if not given:
            self._inputs = session.inputs
        input_names = {spec.name for spec in session.inputs}
        for feed in feeds:
            fed = {name: value for name, value in feed.items() if name in input_names}
            yield session.tensors(names, session.feed(fed))

    def still_needed(self, names: Collection[str], known: Collection[str]) -> set[str]:
        """Return those of some known tensors that others are computed from."""
        needed = _nodes_for(self._model.graph, names, known)[1]
        return needed.intersection(known)

    @property
    def graph(self) -> onnx.GraphProto:
        """The main graph, whose weights may be elsewhere. Not to be changed."""
        return self._model.graph

    def session(
        self, names: Sequence[str], given: Mapping[str, AnyArray] | None = None
    ) -> TensorSession:
        """Load the model for runs that return some tensors.

        Args:
            names: Tensors of the main graph.
            given: Intermediate tensors that will be fed, with values of the same types and shapes.
                The session then has only the needed inputs, else all inputs of the model.

        Raises:
            ActivityError: The model cannot be run.
        """
        key = None if given else (*names,)
        kept, self._kept = self._kept, None
        if kept is not None and kept[0] == key:
            session = kept[1]
        else:
            del kept  # two at a time would take twice the memory
            arguments = self._model, self._view, names, self._settings, self._title, given
            session = TensorSession(*arguments)
        if key is not None and self._settings.left_out:  # of many nodes: see MANY_NODES
            self._kept = key, session
        return session


class TensorSession(Session):
    """A session of a model with other outputs."""

    def __init__(
        self,
        model: onnx.ModelProto,
        view: Path,
        names: Sequence[str],
        settings: SessionSettings,
        title: Path,
        given: Mapping[str, AnyArray] | None = None,
    ) -> None:
        path = view.with_name(f"{view.stem}-outputs.onnx")  # its weights are found beside it
        try:
            path.write_bytes(_with_outputs(model, names, given).SerializeToString())
            super().__init__(path, settings, title)
        finally:
            path.unlink(missing_ok=True)

    def tensors(self, names: Sequence[str], feed: Feed) -> dict[str, AnyArray | None]:
        """Run and return the outputs; types that NumPy lacks as those of ml_dtypes."""
        runtime = load()
        if has_text(feed):
            read = self._once(lambda options: self._session.run(list(names), feed, options))
            arrays = [tensor if isinstance(tensor, np.ndarray) else None for tensor in read]
            return dict(zip(names, arrays, strict=True))
        with errors_of(self._model, "run"):
            values = {name: _as_value(runtime, value) for name, value in feed.items()}
            results = list(
                self._once(
                    lambda options: self._session.run_with_ort_values(list(names), values, options)
                )
            )
            results.reverse()
            return {name: _array(results.pop()) for name in names}  # each is held only once

    def constants(self) -> Iterator[tuple[str, str, tuple[int, ...], bytes | list[bytes]]]:
        """Run a model without inputs; yield name, element type, dimensions and values by output.

        The values are as ``raw_data`` of a tensor has them, whatever NumPy lacks; strings are a
        list.

        Raises:
            ActivityError: The model cannot be run, or an output is no tensor.
        """
        if any(argument.type == "tensor(string)" for argument in self._session.get_outputs()):
            for name, array in zip(self.outputs, self.run({}), strict=True):
                if not isinstance(array, np.ndarray) or array.dtype != np.object_:
                    raise ActivityError(f"{visible(name)} and strings cannot be computed together")
                yield name, "string", array.shape, [str(text).encode() for text in array.flat]
            return
        results = self._once(lambda options: self._session.run_with_ort_values(None, {}, options))
        for name, value in zip(self.outputs, results, strict=True):
            if not value.is_tensor():
                raise ActivityError(f"{visible(name)} is no tensor, which no constant can hold")
            dtype = element_type(value.data_type()[len("tensor(") : -1])
            dims = tuple(value.shape())
            length = payload_bytes(dtype, math.prod(dims)) or 0
            yield name, dtype, dims, ctypes.string_at(value.data_ptr(), length) if length else b""


def _nodes_for(
    graph: onnx.GraphProto, names: Collection[str], known: Collection[str]
) -> tuple[list[onnx.NodeProto], set[str]]:
    """Return the nodes that make values when others are known, and all that these take.

    The nodes need not be sorted, as those of libraries are not.
    """
    makers = {name: at for at, node in enumerate(graph.node) for name in node.output if name}
    needed = set(names)
    waiting = [*needed]
    needed_nodes: set[int] = set()
    while waiting:
        name = waiting.pop()
        at = None if name in known else makers.get(name)
        if at is None or at in needed_nodes:
            continue
        needed_nodes.add(at)
        more = names_used([graph.node[at]]) - needed
        needed |= more
        waiting += more
    return [graph.node[at] for at in sorted(needed_nodes)], needed


def _with_outputs(
    model: onnx.ModelProto, names: Sequence[str], only: Mapping[str, AnyArray] | None
) -> onnx.ModelProto:
    """Return a copy with other outputs and more inputs, and only the nodes that are needed."""
    graph, given = model.graph, only or {}
    types = {info.name: info for info in (*graph.value_info, *graph.output)}
    nodes, needed = _nodes_for(graph, names, given)
    produced = {name for node in nodes for name in node.output}  # also what is known, by several
    inputs = [
        onnx.helper.make_tensor_value_info(
            name, onnx.helper.np_dtype_to_tensor_dtype(value.dtype), value.shape
        )
        for name, value in given.items()
        if name in needed and name not in produced
    ]
    copy = onnx.ModelProto(ir_version=model.ir_version)
    copy.opset_import.extend(model.opset_import)
    copy.functions.extend(model.functions)
    copy.graph.name = graph.name
    copy.graph.node.extend(nodes)
    stored = {tensor.name for tensor in graph.initializer}
    copy.graph.input.extend(
        info
        for info in graph.input
        if info.name in needed or (only is None and info.name not in stored)
    )
    copy.graph.input.extend(inputs)
    copy.graph.initializer.extend(t for t in graph.initializer if t.name in needed)
    copy.graph.sparse_initializer.extend(
        t for t in graph.sparse_initializer if t.values.name in needed
    )
    left_out = {*names, *given}
    copy.graph.value_info.extend(info for info in graph.value_info if info.name not in left_out)
    copy.graph.output.extend(types.get(name) or onnx.ValueInfoProto(name=name) for name in names)
    return copy


def _as_value(runtime: Any, value: Any) -> Any:
    is_value = isinstance(value, runtime.OrtValue)
    return value if is_value else runtime.OrtValue.ortvalue_from_numpy(np.asarray(value, order="C"))


def _array(value: Any) -> AnyArray | None:
    """Return a tensor, None for anything else; memory on a device is copied."""
    if not value.is_tensor():
        return None
    dtype = value.data_type()[len("tensor(") : -1]
    if not is_extended(dtype):
        return np.asarray(value.numpy())
    kind = numpy_dtype(dtype)
    shape = tuple(value.shape())
    count = int(np.prod(shape, dtype=np.int64))
    if value.device_name() != "cpu" or not count:
        return np.zeros(shape, kind) if not count else None
    # ONNX Runtime has no NumPy type for it, and gives the address only.
    data = ctypes.string_at(value.data_ptr(), count * kind.itemsize)
    return np.frombuffer(data, kind).reshape(shape)


def groups(
    types: Mapping[str, ValueType | None], names: Collection[str], budget: int
) -> Iterator[list[str]]:
    """Yield groups of names within a budget of bytes, of at least one name.

    Args:
        types: The known types of the tensors.
        names: The tensors, in the requested order.
        budget: Bytes.
    """
    group: list[str] = []
    group_bytes = 0
    for name in names:
        size = _size(types.get(name))
        if group and group_bytes + size > budget:
            yield group
            group, group_bytes = [], 0
        group.append(name)
        group_bytes += size
    if group:
        yield group


def _size(known: ValueType | None) -> int:
    from dld_tui.core.files.external import element_bits
    from dld_tui.core.model.tensors.value_types import dtype_number

    if known is None or known.dims is None or not known.dtype:
        return _UNKNOWN_BYTES
    count = 1
    for dim in known.dims:
        if not isinstance(dim, int) or dim < 0:
            return _UNKNOWN_BYTES
        count *= dim
    number = dtype_number(known.dtype)
    return count * ((element_bits(number) or 64) if number else 64) // 8
