"""The sides of a comparison that TensorRT runs: a model that it builds, an engine that is there."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dld_tui.backends.accuracy_sides import Feeds
from dld_tui.backends.tensorrt_builder import build
from dld_tui.backends.tensorrt_inputs import specs_of
from dld_tui.backends.tensorrt_library import Library
from dld_tui.backends.tensorrt_marking import mark, reasons_against
from dld_tui.backends.tensorrt_outputs import EngineRun, refusal
from dld_tui.core import fmt
from dld_tui.core.accuracy.engine_settings import is_low, settings_text
from dld_tui.core.document.document import Document
from dld_tui.core.errors import ActivityError
from dld_tui.core.events import Event, Log, Progress
from dld_tui.core.files.engine_header import EngineHeader
from dld_tui.core.inputs.dtypes import AnyArray
from dld_tui.core.inputs.shapes import InputSpec
from dld_tui.core.tensorrt.profiles import profiles_for, profiles_from
from dld_tui.core.tensorrt.settings import SHAPES, BuildSettings
from dld_tui.core.types import JSON

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

    def told(self) -> dict[str, JSON]:
        """Return how it is run."""
        title, how = self.library.facts.title, settings_text(self.settings)
        return {
            "library": title,
            "provider": "TensorRT",
            "optimization": how,
            "how": f"{title}, {how}" if how else title,
        }


class BuiltRunner:
    """Builds an engine for each group of tensors, and runs it.

    Args:
        side: What to build.
        tensors: Whether inner tensors will be asked for; the model is parsed for that.

    Raises:
        ActivityError: The model cannot be parsed.
    """

    is_engine = builds = True

    def __init__(self, side: BuiltSide, tensors: bool) -> None:
        self._side, self._tensors = side, tensors
        self.remarks: dict[str, None] = {}
        """What was built otherwise than asked, in order. Fit for a terminal."""
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
        found = []
        for name in main.inputs:
            if name not in stored:
                known = main.value_type(name)
                dims = None if known is None else known.dims
                found.append(InputSpec(name, (known and known.dtype) or "?", dims))
        return found

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
        """Build the engine that has these tensors as outputs.

        Raises:
            ActivityError: There is no engine of the model.
            UsageError: The inputs do not fit the ranges that were given.
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
            prepare=lambda made: mark(made, inner),
        )  # fmt: skip
        try:
            while True:
                step = next(steps)
                if isinstance(step, Progress):  # what the library says of each build is too much
                    yield step
        except StopIteration as stop:
            self.remarks |= dict.fromkeys(stop.value.remarks)
        finally:
            steps.close()

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
            self.types |= {one.name: one.dtype for one in run.engine.bindings}
            for feed in feeds:
                found = run.outputs(feed, wanted)
                yield {name: found.get(name) for name in names}


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
    """Nobody knows: an engine does not tell its precision."""

    def runner(self, tensors: bool) -> EngineRunner:
        """Return what runs it."""
        return EngineRunner(self)

    def told(self) -> dict[str, JSON]:
        """Return how it is run."""
        title = self.library.facts.title
        return {
            "library": title,
            "provider": "TensorRT",
            "optimization": "",
            "how": f"{title}, engine of {self.header.text}",
        }


class EngineRunner:
    """Runs an engine that is there.

    Raises:
        InputError: It cannot be loaded.
        UnavailableError: There is no GPU that it runs on.
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
            self.types = {one.name: one.dtype for one in self._run.engine.bindings}
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
        return [one.name for one in self._run.engine.outputs]

    def not_given(self, names: Collection[str]) -> dict[str, str]:
        """Return all but its outputs, and those that cannot be read."""
        bound = {one.name: refusal(one) for one in self._run.engine.outputs}
        return {name: bound.get(name, _NOT_BOUND) for name in names if bound.get(name, _NOT_BOUND)}

    def prepare(self, names: Sequence[str], feeds: Feeds) -> Iterator[Event]:
        """Do nothing: it is built."""
        return iter(())

    def each(self, names: Sequence[str], feeds: Feeds) -> Iterator[dict[str, AnyArray | None]]:
        """Yield outputs by name, for one set of inputs after the other."""
        for feed in feeds:
            found: Mapping[str, AnyArray] = self._run.outputs(feed, names)
            yield {name: found[name] for name in names}
