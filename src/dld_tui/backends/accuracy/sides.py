"""The two sides of a comparison: a model or an engine, and its runner."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias

import onnx

from dld_tui.backends.onnxruntime.runtime import version
from dld_tui.backends.onnxruntime.session import SessionSettings
from dld_tui.backends.onnxruntime.tensors import TensorRunner
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
from dld_tui.core.accuracy.result import RunBy
from dld_tui.core.document.document import Document
from dld_tui.core.errors import ActivityError
from dld_tui.core.events import Event, Log, Progress, events_of
from dld_tui.core.files.recognise import EngineHeader
from dld_tui.core.inputs.shapes import AnyArray, InputSpec
from dld_tui.core.tensorrt.profiles import profiles_for, profiles_from
from dld_tui.core.tensorrt.settings import SHAPES, BuildSettings

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
        """The names of the outputs. Foreign text."""

    def not_given(self, names: Collection[str]) -> dict[str, str]:
        """Return the tensors that it cannot compute, each with the reason."""

    def prepare(self, names: Sequence[str], feeds: Feeds) -> Iterator[Event]:
        """Do what takes long before :meth:`each` of the same arguments."""

    def each(self, names: Sequence[str], feeds: Feeds) -> Iterator[dict[str, AnyArray | None]]:
        """Yield tensors by name, for one set of inputs after the other."""


class Side(Protocol):
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

    def told(self) -> RunBy:
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
        """Whether the model is in 16 bits."""
        return has_halves(self.document)

    @property
    def provider(self) -> str:
        """The execution provider."""
        return self.settings.providers[0]

    def runner(self, tensors: bool) -> SessionRunner:
        """Return what runs it."""
        return SessionRunner(self.document, self.settings, folder=self.folder)

    def told(self) -> RunBy:
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

    def told(self) -> RunBy:
        """Return how it is run."""
        title, how = self.library.facts.title, settings_text(self.settings)
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
        self._temporary = tempfile.TemporaryDirectory(prefix="engine-")
        self.folder = Path(self._temporary.name)
        """Where the engine is kept, until the end."""
        self._engine = self.folder / "compared.engine"
        self._built: tuple[str, ...] | None = None

    def __enter__(self) -> BuiltRunner:
        """Return it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the engine."""
        self._temporary.cleanup()

    @property
    def inputs(self) -> list[InputSpec]:
        """What the model takes."""
        main = self._side.document.main
        stored = main.named("initializer")
        specs = []
        for name in main.inputs:
            if name not in stored:
                known = main.value_type(name)
                dims = None if known is None else known.dims
                specs.append(InputSpec(name, (known and known.dtype) or "?", dims))
        return specs

    @property
    def outputs(self) -> list[str]:
        """The names of the model's outputs. Foreign text."""
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
            yield Log(f"{fmt.plural(len(inner), 'tensor')} left out: {error.message}", "warning")
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

    def told(self) -> RunBy:
        """Return how it is run."""
        title = self.library.facts.title
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
        """The names of its outputs. Foreign text."""
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
