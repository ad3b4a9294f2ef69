"""Two runs of models side by side, of which only the errors of their tensors are kept."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx

from dld_tui.backends.onnxruntime_options import SessionSettings
from dld_tui.backends.onnxruntime_tensors import TensorRunner, groups
from dld_tui.core.accuracy.matching import as_type, carried_over, match_names
from dld_tui.core.accuracy.result import Row, in_order, merged
from dld_tui.core.accuracy.statistics import compare
from dld_tui.core.accuracy.tolerance import Tolerances
from dld_tui.core.document.document import Document
from dld_tui.core.document.serialise import skeleton_bytes
from dld_tui.core.document.type_inference import infer_types, take_in_small_data
from dld_tui.core.document.values import ValueType, value_type_of
from dld_tui.core.document.wiretext import text_of
from dld_tui.core.errors import DldError, InputError
from dld_tui.core.inputs.dtypes import AnyArray, numpy_dtype
from dld_tui.core.inputs.shapes import InputSpec
from dld_tui.core.text import visible

Feeds = Sequence[Mapping[str, Any]]


@dataclass
class Side:
    """A model and how it is run."""

    document: Document
    settings: SessionSettings
    folder: Path | None = None
    """Where its weights are, for a document without a path."""

    def runner(self) -> TensorRunner:
        """Return what runs it; to be closed."""
        return TensorRunner(self.document, self.settings, folder=self.folder)


@dataclass
class Progress:
    """How far a comparison is."""

    rows: list[Row] = field(default_factory=list)
    """Those that are done."""
    done: int = 0
    total: int = 0
    kept_bytes: int = 0
    """The most that was kept of values at a time."""


class Comparison:
    """Runs two sides on the same inputs.

    Use it as a context manager.

    Args:
        reference: What the other is measured by.
        other: The other one.
        tolerances: By the names of the reference's tensors.

    Raises:
        ActivityError: One of them cannot be run.
    """

    def __init__(self, reference: Side, other: Side, tolerances: Tolerances) -> None:
        self.reference, self.other = reference, other
        self._tolerances = tolerances
        self._stack = contextlib.ExitStack()
        with contextlib.ExitStack() as stack:
            self._one = stack.enter_context(reference.runner())
            self._two = stack.enter_context(other.runner())
            self.inputs: list[InputSpec] = self._one.inputs
            self._other_inputs = self._two.inputs
            self.outputs = match_names(self._one.outputs, self._two.outputs)
            if not self.outputs:
                raise InputError("the models have no output in common, by name or by place")
            self._stack = stack.pop_all()
        self.unmatched = 0
        """Tensors of the reference that the other has none of the same name for."""

    def __enter__(self) -> Comparison:
        """Return the comparison."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove what was made to run the models."""
        self._stack.close()

    def run(self, feeds: Feeds, *, tensors: bool, budget: int) -> Iterator[Progress]:
        """Compare, and yield how far it is after each group of tensors.

        Args:
            feeds: Sets of inputs; of each tensor the worst of them is told.
            tensors: Whether all tensors of the main graph are compared, and not the outputs only.
            budget: Bytes of values of both models that are kept at a time, as far as sizes are
                known before.

        Raises:
            InputError: The other model takes an input that the reference has not.
            ActivityError: A model cannot be run.
        """
        others = [self._carried(feed) for feed in feeds]
        pairs = self._pairs(tensors)
        types = _types_with(self.reference.document, feeds[0]) if tensors else {}
        state = Progress(total=len(pairs))
        limit = budget // 2 if tensors else 1 << 62
        for group in groups(types, list(pairs), limit):
            found: list[Row] = []
            both = zip(
                self._one.each(group, feeds),
                self._two.each([pairs[name] for name in group], others),
                strict=True,
            )
            for one, two in both:
                kept = _bytes(one) + _bytes(two)
                state.kept_bytes = max(state.kept_bytes, kept)
                found = merged(found, list(self._rows(one, two, pairs)))
                one.clear()
                two.clear()
            state.rows += found
            state.done += len(group)
            yield state
        state.rows = list(in_order(state.rows))

    def _pairs(self, tensors: bool) -> dict[str, str]:
        """Return what to compare, in the order of the computation: outputs come last."""
        if not tensors:
            return self.outputs
        mine = _computed(self.reference.document)
        theirs = set(_computed(self.other.document))
        found = {name: name for name in mine if name in theirs and name not in self.outputs}
        self.unmatched = len(set(mine) - theirs - set(self.outputs))
        return {**found, **self.outputs}

    def _rows(
        self,
        one: dict[str, AnyArray | None],
        two: dict[str, AnyArray | None],
        pairs: Mapping[str, str],
    ) -> Iterator[Row]:
        makers = self._makers
        for name, value in one.items():
            other = two[pairs[name]]
            if value is None or other is None:
                continue  # no tensor, such as a sequence
            tolerance = self._tolerances.of(name)
            error = compare(value, other, tolerance)
            node, op_type, order = makers.get(name, ("", "", -1))
            yield Row(
                name, pairs[name], node, op_type, order, name in self.outputs,
                tolerance.text, tolerance.problem(error) or "", error,
            )  # fmt: skip

    @property
    def _makers(self) -> dict[str, tuple[str, str, int]]:
        if not hasattr(self, "_known_makers"):
            self._known_makers = {
                name: (node.ref, node.op_type, order)
                for order, node in enumerate(self.reference.document.main.nodes)
                for name in node.outputs
                if name
            }
        return self._known_makers

    def _carried(self, feed: Mapping[str, Any]) -> dict[str, Any]:
        mine = [spec.name for spec in self.inputs]
        types = {spec.name: spec.dtype for spec in self._other_inputs}
        given, missing = carried_over(feed, mine, list(types))
        if missing:
            raise InputError(
                f"the other model's input {visible(missing[0])} is not one of the reference's",
                where=str(self.other.document.path or ""),
            )
        return {name: as_type(value, numpy_dtype(types[name])) for name, value in given.items()}


def _computed(document: Document) -> list[str]:
    return list(
        dict.fromkeys(name for node in document.main.nodes for name in node.outputs if name)
    )


def _bytes(values: Mapping[str, AnyArray | None]) -> int:
    return sum(value.nbytes for value in values.values() if value is not None)


def _types_with(document: Document, feed: Mapping[str, Any]) -> dict[str, ValueType | None]:
    """Return the types of tensors when the model is fed with these inputs, as far as is known."""
    model = onnx.ModelProto.FromString(skeleton_bytes(document))
    del model.graph.value_info[:]  # with free dimensions, which are known now
    for info in model.graph.input:
        value = feed.get(text_of(info.name))
        if value is not None and info.type.HasField("tensor_type") and not isinstance(value, list):
            shape = info.type.tensor_type.shape
            del shape.dim[:]
            for size in value.shape:
                shape.dim.add(dim_value=size)
    for info in model.graph.output:
        info.type.tensor_type.ClearField("shape")
    if document.path is not None:
        take_in_small_data(model, document.path)
    try:
        inferred, _ = infer_types(model, document.path)
    except DldError:
        return {}
    known = (*inferred.graph.value_info, *inferred.graph.output)
    return {text_of(info.name): value_type_of(info.type) for info in known}


def has_halves(document: Document) -> bool:
    """Return whether a model computes in float16 or bfloat16."""
    halves = ("float16", "bfloat16")
    for scope in document.scopes():
        if any(tensor.dtype in halves for tensor in scope.initializers):
            return True
        for node in scope.nodes:
            if node.op_type == "Cast" and any(
                attribute.name == "to" and attribute.value in _HALVES
                for attribute in node.attributes()
            ):
                return True
    return False


_HALVES = (onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16)
