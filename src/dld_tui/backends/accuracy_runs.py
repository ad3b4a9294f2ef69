"""Two runs of models side by side, of which only the errors of their tensors are kept."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

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

Feeds: TypeAlias = "Sequence[Mapping[str, Any]]"
_HALVES = (onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16)


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


class _Kept:
    """What later groups of tensors are computed from, so that no node is run twice."""

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._values: tuple[dict[str, AnyArray], dict[str, AnyArray]] = {}, {}

    @property
    def bytes(self) -> int:
        """How much it is."""
        return sum(map(_bytes, self._values))

    @property
    def room(self) -> int:
        """What is left of the budget."""
        return self._budget - self.bytes

    def added(self, feeds: Feeds, side: int) -> Feeds:
        """Return the inputs of a run with the tensors that are known."""
        return [{**feed, **self._values[side]} for feed in feeds]

    def take(
        self, *found: tuple[TensorRunner, Mapping[str, AnyArray | None], Collection[str]]
    ) -> None:
        """Keep of what was computed what others need; nothing where that is too much.

        Args:
            found: Of both sides the runner, tensors that were computed, and those to come.
        """
        for values, (runner, computed, names) in zip(self._values, found, strict=True):
            values.update({name: array for name, array in computed.items() if array is not None})
            needed = runner.still_needed(names, values)
            for name in [name for name in values if name not in needed]:
                del values[name]
        if self.bytes > self._budget // 2:
            for values in self._values:
                values.clear()


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
            self.reference_outputs = self._one.outputs
            self.outputs = match_names(self.reference_outputs, self._two.outputs)
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
        types = types_with(self.reference.document, feeds[0]) if tensors else {}
        state = Progress(total=len(pairs))
        left = list(pairs)
        kept = _Kept(budget if tensors else 1 << 62)
        while left:
            group = next(groups(types, left, kept.room // 2))
            left = left[len(group) :]
            found: list[Row] = []
            both = zip(
                self._one.each(group, kept.added(feeds, 0)),
                self._two.each([pairs[name] for name in group], kept.added(others, 1)),
                strict=True,
            )
            for one, two in both:
                state.kept_bytes = max(state.kept_bytes, kept.bytes + _bytes(one) + _bytes(two))
                found = merged(found, list(self._rows(one, two, pairs)))
                if len(feeds) == 1:
                    kept.take(
                        (self._one, one, left),
                        (self._two, two, [pairs[name] for name in left]),
                    )
                one.clear()
                two.clear()
            state.rows += found
            state.done += len(group)
            yield state
        state.rows = list(in_order(state.rows))

    def _pairs(self, tensors: bool) -> dict[str, str]:
        """Return what to compare, in the order of the computation."""
        if not tensors:
            return self.outputs
        mine = _computed(self.reference.document)
        theirs = {name: name for name in _computed(self.other.document)}
        theirs |= self.outputs
        self.unmatched = sum(name not in theirs for name in mine)
        found = {name: theirs[name] for name in mine if name in theirs}
        return {**found, **{n: other for n, other in self.outputs.items() if n not in found}}

    def _rows(
        self,
        one: dict[str, AnyArray | None],
        two: dict[str, AnyArray | None],
        pairs: Mapping[str, str],
    ) -> Iterator[Row]:
        for name, value in one.items():
            other = two[pairs[name]]
            if value is None or other is None:
                continue  # no tensor, such as a sequence
            tolerance = self._tolerances.of(name)
            error = compare(value, other, tolerance)
            node, op_type, order = self._makers.get(name, ("", "", -1))
            yield Row(
                name, pairs[name], node, op_type, order, name in self.outputs,
                tolerance.text, tolerance.problem(error) or "", error,
            )  # fmt: skip

    @cached_property
    def _makers(self) -> dict[str, tuple[str, str, int]]:
        return {
            name: (node.ref, node.op_type, order)
            for order, node in enumerate(self.reference.document.main.nodes)
            for name in node.outputs
            if name
        }

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


def types_with(document: Document, feed: Mapping[str, Any]) -> dict[str, ValueType | None]:
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
