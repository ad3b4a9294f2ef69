"""Runs of the two sides of a comparison, in parallel, of which only the errors of tensors are kept.

A side is a model or an engine, with its runner.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import field, replace
from functools import cached_property, partial
from pathlib import Path
from time import perf_counter
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias

import numpy as np
import onnx

from dld_tui.backends.onnxruntime.runtime import version
from dld_tui.backends.onnxruntime.session_options import SessionSettings
from dld_tui.backends.onnxruntime.tensors import TensorRunner, groups
from dld_tui.backends.onnxruntime.types import contrib_types
from dld_tui.backends.tensorrt.builder import build
from dld_tui.backends.tensorrt.execution import specs_of
from dld_tui.backends.tensorrt.library import Library
from dld_tui.backends.tensorrt.outputs import (
    EngineRun,
    array_problem,
    mark_outputs,
    reasons_against,
)
from dld_tui.core import fmt
from dld_tui.core.accuracy.engine_settings import is_low, settings_text
from dld_tui.core.accuracy.result import (
    AccuracyRow,
    RunBy,
    as_type,
    carried_over,
    in_order,
    match_names,
    merged,
)
from dld_tui.core.accuracy.tensor_errors import Tolerances, compare, lost_channels
from dld_tui.core.conversion.accuracy_criteria import packed_caches
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import ActivityError, DldError, InputError
from dld_tui.core.events import Event, Log, Progress, events_of
from dld_tui.core.files import permission
from dld_tui.core.files.proto_fields import text_of
from dld_tui.core.files.recognise import EngineHeader
from dld_tui.core.files.temporary import discard, hold_folder
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.serialise import skeleton_bytes
from dld_tui.core.model.inputs.shapes import AnyArray, InputSpec, numpy_dtype
from dld_tui.core.model.shapes.inference import infer_types, inline_small_data
from dld_tui.core.model.tensors.value_types import ValueType, value_type_of
from dld_tui.core.notes import NoteKind
from dld_tui.core.tensorrt.profiles import profiles_for, profiles_from
from dld_tui.core.tensorrt.settings import SHAPES, BuildSettings
from dld_tui.core.text import clip, visible

Feeds: TypeAlias = "Sequence[Mapping[str, Any]]"
_HALVES = (onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16)


class Runner(Protocol):
    """Runs one side."""

    @property
    def is_engine(self) -> bool:
        """Whether TensorRT runs it, which casts inputs to what the engine takes."""

    @property
    def builds(self) -> bool:
        """Whether each group of tensors takes a build."""

    @property
    def refused(self) -> Mapping[str, str]:
        """Tensors that could not be had after all, and why."""

    @property
    def types(self) -> Mapping[str, str]:
        """Types of the inputs of an engine that was built, by ONNX's names."""

    @property
    def remarks(self) -> Iterable[str]:
        """Deviations from the request. Fit for a terminal."""

    @property
    def inputs(self) -> list[InputSpec]:
        """The inputs."""

    @property
    def outputs(self) -> list[str]:
        """The names of the outputs. Untrusted text."""

    def not_given(self, names: Collection[str]) -> dict[str, str]:
        """Return the tensors that it cannot compute, each with the reason."""

    def prepare(self, names: Sequence[str], feeds: Feeds) -> Iterator[Event]:
        """Do what takes long before :meth:`each` of the same arguments."""

    def each(self, names: Sequence[str], feeds: Feeds) -> Iterator[dict[str, AnyArray | None]]:
        """Yield tensors by name, for one set of inputs after the other."""


class OutputSource(Protocol):
    """The outputs."""

    @property
    def document(self) -> Document | None:
        """The model; None for an engine that is built already."""

    @property
    def is_loose(self) -> bool:
        """Whether it may compute with fewer digits than float32 has."""

    def runner(self, tensors: bool) -> AbstractContextManager[Any]:
        """Return the runner.

        Args:
            tensors: Whether intermediate tensors will be requested.
        """

    def run_by(self) -> RunBy:
        """Return how it is run, for the result."""


@dataclass
class ModelSide:
    """A model that ONNX Runtime runs."""

    document: Document
    settings: SessionSettings
    folder: Path | None = None
    """Where its weights are, for a document without a path."""

    @property
    def is_loose(self) -> bool:
        """Whether the model is in 16 bits, or a GPU may compute with as few digits."""
        return self.may_use_tf32 or has_halves(self.document)

    @property
    def may_use_tf32(self) -> bool:
        """Whether the provider computes products of float32 in TF32, as CUDA does by default."""
        options = self.settings.provider_options.get(self.provider, {})
        return self.settings.uses_cuda and options.get("use_tf32") != "0"

    @property
    def provider(self) -> str:
        """The execution provider."""
        return self.settings.providers[0]

    def runner(self, tensors: bool) -> SessionRunner:
        """Return what runs it."""
        return SessionRunner(self.document, self.settings, folder=self.folder)

    def run_by(self) -> RunBy:
        """Return how it is run."""
        level = self.settings.optimization_level
        how = f"ONNX Runtime {version()}, {self.provider}, optimization {level}"
        return RunBy(f"ONNX Runtime {version()}", self.provider, level, how)


class SessionRunner(TensorRunner):
    """A model's tensors by ONNX Runtime, which needs no build and gives all of them."""

    is_engine = builds = False
    refused: Mapping[str, str] = MappingProxyType({})
    types: Mapping[str, str] = MappingProxyType({})
    remarks: Iterable[str] = ()

    def not_given(self, names: Collection[str]) -> dict[str, str]:
        """Return nothing: any tensor of the main graph can be had."""
        known = {name for node in self._model.graph.node for name in node.output}
        known |= {*self.outputs}
        reason = "the other model has no tensor of this name"
        return {name: reason for name in names if name not in known}

    def prepare(self, names: Sequence[str], feeds: Feeds) -> Iterator[Event]:
        """Do nothing."""
        return iter(())


def has_halves(document: Document) -> bool:
    """Return whether a model computes in float16 or bfloat16."""
    halves = ("float16", "bfloat16")
    main = document.main
    for name in main.inputs:
        kind = main.value_type(name)
        is_half = kind is not None and kind.dtype in halves
        if is_half and any(use.node.op_type != "Cast" for use in main.users(name)):
            return True
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


_NOT_BOUND = "the engine has no such output"


@dataclass
class BuiltSide:
    """A model that TensorRT builds and runs."""

    document: Document
    library: Library
    settings: BuildSettings

    @property
    def is_loose(self) -> bool:
        """Whether the build may use fewer digits than float32 has."""
        return is_low(self.settings)

    def runner(self, tensors: bool) -> BuiltRunner:
        """Return what runs it."""
        return BuiltRunner(self, tensors)

    def run_by(self) -> RunBy:
        """Return how it is run."""
        title, how = self.library.capabilities.title, settings_text(self.settings)
        return RunBy(title, "TensorRT", how, f"{title}, {how}" if how else title)


class BuiltRunner:
    """Builds an engine for each group of tensors, and runs it.

    Args:
        side: The model and its settings.
        tensors: Whether intermediate tensors will be requested; the model is parsed for that.

    Raises:
        ActivityError: The model cannot be parsed.
    """

    is_engine = builds = True

    def __init__(self, side: BuiltSide, tensors: bool) -> None:
        self._side, self._tensors = side, tensors
        self.remarks: dict[str, None] = {}
        """Deviations from the request, in order. Fit for a terminal."""
        self.refused: dict[str, str] = {}
        """Tensors with which no engine was built, and why."""
        self.types: dict[str, str] = {}
        """Of the engine's inputs and outputs, by ONNX's names."""
        self.folder = hold_folder("engine")
        """Where the engine is kept, until the end."""
        permission.agree([self.folder])
        self._engine = self.folder / "compared.engine"
        self._built: tuple[str, ...] | None = None

    def __enter__(self) -> BuiltRunner:
        """Return it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the engine."""
        discard(self.folder)

    @property
    def inputs(self) -> list[InputSpec]:
        """What the model takes."""
        main = self._side.document.main
        specs = []
        for name in main.inputs:
            if not main.is_weight(name):
                known = main.value_type(name)
                dims = None if known is None else known.dims
                specs.append(InputSpec(name, (known and known.dtype) or "?", dims))
        return specs

    @property
    def outputs(self) -> list[str]:
        """The names of the model's outputs. Untrusted text."""
        return [*self._side.document.main.outputs]

    def not_given(self, names: Collection[str]) -> dict[str, str]:
        """Return the tensors that cannot be outputs of an engine, and why."""
        side, own = self._side, {*self.outputs}
        inner = [name for name in names if name not in own]
        if not inner:
            return {}
        return reasons_against(side.library, side.document, side.settings, inner)

    def prepare(self, names: Sequence[str], feeds: Feeds) -> Iterator[Event]:
        """Build an engine with these tensors as outputs.

        Raises:
            ActivityError: The model cannot be built.
            UsageError: The inputs are outside the given ranges.
        """
        own = {*self.outputs}
        inner = tuple(name for name in names if name not in own)
        if self._built == inner:
            return
        self._built = None
        try:
            yield from self._build(inner, feeds)
        except ActivityError as error:
            if not inner:
                raise
            # An output more can be one that no kernel writes: the others count all the same.
            why = f"no engine is built with it as an output: {error.message}"
            self.refused |= dict.fromkeys(inner, why)
            yield Log(
                f"{fmt.plural(len(inner), 'tensor')} left out: {error.message}", NoteKind.WARNING
            )
            if own.intersection(names):
                yield from self._build((), feeds)
        self._built = inner

    def _build(self, inner: Sequence[str], feeds: Feeds) -> Generator[Event, None, None]:
        side = self._side
        settings = replace(side.settings, output=self._engine)
        if any(getattr(settings, name) for name in SHAPES):
            profiles = profiles_for(side.document, settings).ranges
        else:
            profiles = profiles_from(side.document, feeds)
        steps = build(
            side.library, side.document, settings, profiles, self._engine,
            prepare=lambda network: mark_outputs(network, inner),
        )  # fmt: skip
        # The library's messages for each build would be too many.
        built = yield from events_of(
            steps, lambda event: event if isinstance(event, Progress) else None
        )
        self.remarks |= dict.fromkeys(built.remarks)

    def each(self, names: Sequence[str], feeds: Feeds) -> Iterator[dict[str, AnyArray | None]]:
        """Yield tensors by name, for one set of inputs after the other.

        Raises:
            InputError: An input does not fit the engine.
            UsageError: A shape is outside the ranges that were given.
            ActivityError: The engine cannot be run.
        """
        wanted = [name for name in names if name not in self.refused]
        if not wanted:
            yield from (dict.fromkeys(names) for _ in feeds)
            return
        side, where = self._side, str(self._side.document.path or "the engine")
        options: dict[str, Any] = {
            "device": side.settings.device,
            "plugins": side.settings.plugins,
            "where": where,
        }
        with EngineRun(side.library, self._engine.read_bytes(), **options) as run:
            self.types |= {binding.name: binding.dtype for binding in run.engine.bindings}
            for feed in feeds:
                outputs = run.outputs(feed, wanted)
                yield {name: outputs.get(name) for name in names}


@dataclass
class EngineSide:
    """An engine that is built already, and trusted."""

    path: Path
    data: bytes
    header: EngineHeader
    library: Library
    device: str = "0"
    plugins: tuple[str, ...] = ()
    document: None = None
    is_loose: bool = True
    """None: an engine does not reveal its precision."""

    def runner(self, tensors: bool) -> EngineRunner:
        """Return what runs it."""
        return EngineRunner(self)

    def run_by(self) -> RunBy:
        """Return how it is run."""
        title = self.library.capabilities.title
        return RunBy(title, "TensorRT", "", f"{title}, engine of {self.header.text}")


class EngineRunner:
    """Runs an existing engine.

    Raises:
        InputError: It cannot be loaded.
        UnavailableError: There is no suitable GPU.
    """

    is_engine, builds = True, False

    def __init__(self, side: EngineSide) -> None:
        self.remarks: dict[str, None] = {}
        self.refused: dict[str, str] = {}
        with contextlib.ExitStack() as stack:
            self._run = stack.enter_context(
                EngineRun(
                    side.library, side.data, device=side.device, plugins=side.plugins,
                    where=str(side.path),
                )
            )  # fmt: skip
            self.types = {binding.name: binding.dtype for binding in self._run.engine.bindings}
            self._stack = stack.pop_all()

    def __enter__(self) -> EngineRunner:
        """Return it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Give the engine back."""
        self._stack.close()

    @property
    def inputs(self) -> list[InputSpec]:
        """What the engine takes."""
        return specs_of(self._run.engine.inputs)

    @property
    def outputs(self) -> list[str]:
        """The names of its outputs. Untrusted text."""
        return [binding.name for binding in self._run.engine.outputs]

    def not_given(self, names: Collection[str]) -> dict[str, str]:
        """Return all but its outputs, and those that cannot be read."""
        bound = {binding.name: array_problem(binding) for binding in self._run.engine.outputs}
        return {name: bound.get(name, _NOT_BOUND) for name in names if bound.get(name, _NOT_BOUND)}

    def prepare(self, names: Sequence[str], feeds: Feeds) -> Iterator[Event]:
        """Do nothing: it is built."""
        return iter(())

    def each(self, names: Sequence[str], feeds: Feeds) -> Iterator[dict[str, AnyArray | None]]:
        """Yield outputs by name, for one set of inputs after the other."""
        for feed in feeds:
            outputs: Mapping[str, AnyArray] = self._run.outputs(feed, names)
            yield {name: outputs[name] for name in names}


_MOST_NAMED = 3
_MARKED = (
    "inner tensors are outputs of the engines here, so TensorRT does not fuse across them: without"
    " --tensors it may take other kernels, with other errors"
)


def comparison_notes(comparison: Comparison, *, tensors: bool) -> Iterator[str]:
    """Yield what to say of two runs, fit for a terminal.

    Args:
        comparison: One that has run.
        tensors: Whether inner tensors were compared.
    """
    reference, other = comparison.one, comparison.two
    if tensors and comparison.document is not None:
        yield from _inner(comparison.document)
        if reference.builds or other.builds:
            yield _MARKED
    yield from _outputs(comparison)
    yield from _inputs(comparison)
    yield from reference.remarks
    yield from other.remarks
    for reason, names in grouped(comparison.not_compared).items():
        shown = fmt.listed([clip(visible(name), 40, keep="middle") for name in names], _MOST_NAMED)
        yield f"not compared: {fmt.plural(len(names), 'tensor')}, {visible(reason)} ({shown})"


def grouped(reasons: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the names by reason."""
    groups: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        groups.setdefault(reason, []).append(name)
    return groups


def _inner(document: Document) -> Iterator[str]:
    """Say how many tensors are where this does not look."""
    counts = {"subgraph": 0, "function": 0}
    for scope in document.scopes():
        if scope is not document.main:
            kind = "function" if _in_function(scope.path) else "subgraph"
            counts[kind] += sum(bool(name) for node in scope.nodes for name in node.outputs)
    places = {"subgraph": "bodies of If, Loop and Scan", "function": "local functions"}
    for kind, count in counts.items():
        if count:
            verb = "is" if count == 1 else "are"
            yield f"not compared: {fmt.plural(count, 'tensor')} that {verb} in {places[kind]}"


def _in_function(path: tuple[str, ...]) -> bool:
    return bool(path) and path[0].startswith("function ")


def _outputs(comparison: Comparison) -> Iterator[str]:
    both = comparison.one.is_engine and comparison.two.is_engine
    other = "the engine" if comparison.two.is_engine and not both else "the other"
    for mine, theirs in comparison.outputs.items():
        if mine != theirs:
            yield f"output {visible(mine)} is compared with {visible(theirs)}, by position"
    for name in sorted(set(comparison.reference_outputs) - set(comparison.outputs)):
        yield f"output {visible(name)} is not in {other}"
    for name in sorted(set(comparison.two.outputs) - set(comparison.outputs.values())):
        yield f"output {visible(name)} of {other} is not in the reference"
    if comparison.one.is_engine or comparison.two.is_engine:
        for name, (mine, theirs) in comparison.retyped.items():
            yield f"output {visible(name)} is {mine} in the reference and {theirs} in {other}"


def _inputs(comparison: Comparison) -> Iterator[str]:
    """Report which value is fed to which input, where that is not obvious."""
    for runner in (comparison.one, comparison.two):
        types = dict(runner.types)
        for spec in comparison.inputs if runner is comparison.one else comparison.other_inputs:
            dtype = types.get(spec.name, spec.dtype)
            yield from _retyped(runner, spec, dtype)
    mine = {spec.name: spec.dtype for spec in comparison.inputs}
    for name, source in comparison.sources.items():
        if name != source:
            yield f"input {visible(name)} is fed with {visible(source)}, by position"
        theirs = next(
            other_spec.dtype for other_spec in comparison.other_inputs if other_spec.name == name
        )
        if comparison.two.is_engine and theirs != mine[source]:
            yield (
                f"input {visible(name)} of the engine is {theirs}, not {mine[source]}: it is cast"
            )


def _retyped(runner: Runner, spec: InputSpec, dtype: str) -> Iterator[str]:
    if dtype != spec.dtype:
        yield f"input {visible(spec.name)} of the engine is {dtype}, not {spec.dtype}: it is cast"


@dataclass
class State:
    """How far a comparison is."""

    rows: list[AccuracyRow] = field(default_factory=list)
    """Those that are done."""
    done: int = 0
    total: int = 0
    kept_bytes: int = 0
    """The peak of the tensors held in memory."""


class _ValueCache:
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
        """The remaining budget."""
        return self._budget - self.bytes

    def added(self, feeds: Feeds, side: int) -> Feeds:
        """Return the inputs of a run with the tensors that are known."""
        return [{**feed, **self._values[side]} for feed in feeds]

    def take(
        self, *runs: tuple[SessionRunner, Mapping[str, AnyArray | None], Collection[str]]
    ) -> None:
        """Keep those computed tensors that others need; none if they exceed the budget.

        Args:
            runs: Of each side: the runner, the computed tensors, and the names still to come.
        """
        for values, (runner, computed, names) in zip(self._values, runs, strict=True):
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
        reference: What the other is measured by; a model.
        other: The other one.
        tolerances: By the names of the reference's tensors.
        tensors: Whether all tensors of the main graph are compared, and not the outputs only.
        channels: Whether lost channels are looked for in all of them, and not in the outputs only.

    Raises:
        ActivityError: One of them cannot be run.
    """

    def __init__(
        self,
        reference: OutputSource,
        other: OutputSource,
        tolerances: Tolerances,
        tensors: bool = False,
        channels: bool = False,
    ) -> None:
        self.document = reference.document
        """The reference; None for an engine, of which only outputs can be compared."""
        self._other_document = other.document
        self._tolerances, self._tensors, self._channels = tolerances, tensors, channels
        self._stack = contextlib.ExitStack()
        with contextlib.ExitStack() as stack:
            self.one: Runner = stack.enter_context(reference.runner(tensors))
            self.two: Runner = stack.enter_context(other.runner(tensors))
            self.inputs: list[InputSpec] = self.one.inputs
            self.other_inputs: list[InputSpec] = self.two.inputs
            self.reference_outputs = self.one.outputs
            self.outputs = match_names(self.reference_outputs, self.two.outputs)
            if not self.outputs:
                raise InputError("the models have no output in common, by name or by position")
            inner = [] if self.document is None or not tensors else _computed(self.document)
            tolerances.require_names(
                {*self.reference_outputs, *inner}, None if tensors else "--tensors compares others"
            )
            self._stack = stack.pop_all()
        self.not_compared: dict[str, str] = {}
        """Tensors of the reference without a counterpart, with the reason. Untrusted text."""
        self.retyped: dict[str, tuple[str, str]] = {}
        """Types of outputs that differ, as the reference and the other have them."""
        self.sources = carried_over(
            {spec.name: spec.name for spec in self.inputs},
            [spec.name for spec in self.inputs],
            [spec.name for spec in self.other_inputs],
        )[0]
        """The reference's input by each input of the other that has one."""

    def __enter__(self) -> Comparison:
        """Return the comparison."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the files of the runs."""
        self._stack.close()

    @property
    def trial_run(self) -> Callable[[Mapping[str, Any]], object] | None:
        """What runs the reference, or else the other, with a set of its inputs; None for engines.

        Raises:
            ActivityError: The set does not fit.
        """
        reference, other = self.one, self.two
        if isinstance(reference, SessionRunner):
            return partial(_run_once, reference, self.reference_outputs)
        if isinstance(other, SessionRunner):
            return lambda feed: _run_once(other, other.outputs, self._carried(feed))
        return None

    def run(self, feeds: Feeds, *, budget: int) -> Iterator[Event | State]:
        """Compare; yields progress after each group of tensors, and the messages of builds.

        Args:
            feeds: Sets of inputs; the worst result of each tensor counts.
            budget: Bytes of tensors of both models held in memory, as far as sizes are
                known in advance.

        Raises:
            InputError: The other model has an input that the reference lacks.
            ActivityError: A model cannot be run.
        """
        others = [self._carried(feed) for feed in feeds]
        pairs = self._pairs()
        inner = self.document if self._tensors else None
        types = {} if inner is None else types_with(inner, feeds[0])
        state = State(total=len(pairs))
        remaining = list(pairs)
        kept = _ValueCache(budget if self._tensors else 1 << 62)
        rounds = len([*groups(types, remaining, kept.room // 2)])
        builds = _Builds(rounds, self.one.builds + self.two.builds)
        yield from builds.said(len(pairs))
        while remaining:
            group = next(groups(types, remaining, kept.room // 2))
            remaining = remaining[len(group) :]
            partners = [pairs[name] for name in group]
            begin = perf_counter()
            yield from self.one.prepare(group, feeds)
            yield from self.two.prepare(partners, others)
            yield from builds.took(perf_counter() - begin)
            rows: list[AccuracyRow] = []
            both = zip(
                self.one.each(group, kept.added(feeds, 0)),
                self.two.each(partners, kept.added(others, 1)),
                strict=True,
            )
            for reference, other in both:
                state.kept_bytes = max(
                    state.kept_bytes, kept.bytes + _bytes(reference) + _bytes(other)
                )
                rows = merged(rows, list(self._rows(reference, other, pairs)))
                if len(feeds) == 1:
                    self._keep(kept, reference, other, {name: pairs[name] for name in remaining})
                reference.clear()
                other.clear()
            state.rows += rows
            state.done += len(group)
            yield state
        for runner in (self.one, self.two):
            names = {pairs[name]: name for name in pairs} if runner is self.two else {}
            for name, why in runner.refused.items():
                self.not_compared[names.get(name, name)] = why
        state.rows = list(in_order(state.rows))

    def _keep(
        self,
        kept: _ValueCache,
        reference: Mapping[str, AnyArray | None],
        other: Mapping[str, AnyArray | None],
        left: Mapping[str, str],
    ) -> None:
        """Keep what later tensors are computed from, where both sides can go on from there."""
        if isinstance(self.one, SessionRunner) and isinstance(self.two, SessionRunner):
            kept.take((self.one, reference, [*left]), (self.two, other, [*left.values()]))

    def _pairs(self) -> dict[str, str]:
        """Return what to compare, in the order of the computation."""
        if not self._tensors or self.document is None:
            return self.outputs
        mine = _computed(self.document)
        inner = [name for name in mine if name not in self.outputs]
        self.not_compared = self.two.not_given(inner) | self.one.not_given(inner)
        missing = [name for name in self.reference_outputs if name not in self.outputs]
        self.not_compared |= dict.fromkeys(missing, "the other has no such output")
        pairs = {
            name: self.outputs.get(name, name) for name in mine if name not in self.not_compared
        }
        return {**pairs, **{n: other for n, other in self.outputs.items() if n not in pairs}}

    def _rows(
        self,
        references: dict[str, AnyArray | None],
        others: dict[str, AnyArray | None],
        pairs: Mapping[str, str],
    ) -> Iterator[AccuracyRow]:
        for name, value in references.items():
            other = others[pairs[name]]
            if value is None or other is None:
                continue  # no tensor, such as a sequence
            if name in self._packed and value.dtype == other.dtype == np.uint8:
                value, other = _nibbles(value), _nibbles(other)
            tolerance = self._tolerances.of(name)
            error = compare(value, other, tolerance)
            if (self._channels or name in self.outputs) and not error.mismatch:
                error = replace(error, lost=lost_channels(value, other))
            if name in self.outputs and value.dtype != other.dtype:
                self.retyped[name] = (value.dtype.name, other.dtype.name)
            node, op_type, order = self._makers.get(name, ("", "", -1))
            yield AccuracyRow(
                name, pairs[name], node, op_type, order, name in self.outputs,
                tolerance.text, tolerance.problem(error) or "", error,
            )  # fmt: skip

    @cached_property
    def _packed(self) -> frozenset[str]:
        return frozenset() if self.document is None else packed_caches(self.document)

    @cached_property
    def _makers(self) -> dict[str, tuple[str, str, int]]:
        """Node, operator and place by the reference's names; an engine has those of the other."""
        document, names = self.document, dict[str, str]()
        if document is None:
            document, names = self._other_document, {n: mine for mine, n in self.outputs.items()}
        if document is None:
            return {}
        return {
            names.get(name, name): (node.ref, node.op_type, order)
            for order, node in enumerate(document.main.nodes)
            for name in node.outputs
            if name
        }

    def _carried(self, feed: Mapping[str, Any]) -> dict[str, Any]:
        types = {spec.name: spec.dtype for spec in self.other_inputs}
        values, missing = carried_over(feed, [spec.name for spec in self.inputs], list(types))
        if missing:
            path = self._other_document.path if self._other_document is not None else None
            raise InputError(
                f"the other model's input {visible(missing[0])} is not one of the reference's",
                where=str(path or ""),
            )
        if self.two.is_engine:
            return values  # it knows best what its inputs can hold
        return {name: as_type(value, numpy_dtype(types[name])) for name, value in values.items()}


class _Builds:
    """The cost of building engines, reported before and after the first build."""

    def __init__(self, rounds: int, sides: int) -> None:
        self._rounds, self._sides = rounds, sides
        self._done = 0

    def said(self, tensors: int) -> Iterator[Event]:
        """Report the number of builds, if there are several."""
        if self._sides and self._rounds > 1:
            count = fmt.plural(self._rounds * self._sides, "engine")
            yield Log(
                f"{tensors:,} tensors are compared in {self._rounds:,} groups: {count} are built"
                " (a larger --memory-budget needs fewer)"
            )

    def took(self, seconds: float) -> Iterator[Event]:
        """Say after the first group how long the others will take."""
        self._done += 1
        if self._sides and self._rounds > 1 and self._done == 1:
            remaining = fmt.duration(seconds * (self._rounds - 1))
            yield Log(f"Built in {fmt.duration(seconds)}: the others take about {remaining}")


def _computed(document: Document) -> list[str]:
    return list(
        dict.fromkeys(name for node in document.main.nodes for name in node.outputs if name)
    )


def _bytes(values: Mapping[str, AnyArray | None]) -> int:
    return sum(value.nbytes for value in values.values() if value is not None)


def _nibbles(value: AnyArray) -> AnyArray:
    """Return the integers from -8 to 7 of a packed cache, two for each byte."""
    stored: Any = value
    pairs = np.stack([stored & 15, stored >> 4], -1).astype(np.int8) - 8
    return pairs.reshape(*value.shape[:-1], -1)


def _run_once(runner: SessionRunner, names: list[str], feed: Mapping[str, Any]) -> None:
    next(runner.each(names, [feed]))


def inferred_with(document: Document, feed: Mapping[str, Any]) -> onnx.ModelProto | None:
    """Return the model with the types of tensors when it is fed with these inputs.

    None where they cannot be inferred. Weights are not in it.
    """
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
        inline_small_data(model, document.path)
    try:
        return infer_types(model, document.path, contrib_types)[0]
    except DldError:
        return None


def types_with(document: Document, feed: Mapping[str, Any]) -> dict[str, ValueType | None]:
    """Return the types of tensors when the model is fed with these inputs, as far as is known."""
    inferred = inferred_with(document, feed)
    return {} if inferred is None else types_of(inferred)


def types_of(inferred: onnx.ModelProto) -> dict[str, ValueType | None]:
    """Return the types of the tensors of the main graph that were inferred."""
    graph = inferred.graph
    known = (*graph.input, *graph.value_info, *graph.output)
    return {text_of(info.name): value_type_of(info.type) for info in known}
