"""Trials of a precision search with TensorRT: each one builds an engine and runs it."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dld_tui.backends.precision_trials import Trial, judged
from dld_tui.backends.tensorrt_builder import build
from dld_tui.backends.tensorrt_library import Library
from dld_tui.backends.tensorrt_network import is_strong
from dld_tui.backends.tensorrt_outputs import engine_outputs
from dld_tui.core.accuracy.tolerance import Tolerances
from dld_tui.core.document.document import Document
from dld_tui.core.document.node import Node
from dld_tui.core.errors import ActivityError
from dld_tui.core.events import Event, Progress
from dld_tui.core.inputs.dtypes import AnyArray
from dld_tui.core.tensorrt.profiles import profiles_for, profiles_from
from dld_tui.core.tensorrt.settings import SHAPES, BuildSettings
from dld_tui.core.tensorrt.switching import assigned


@dataclass(frozen=True)
class Expectation:
    """What an engine has to compute."""

    feeds: Sequence[Mapping[str, Any]]
    """Sets of inputs."""
    outputs: Sequence[Mapping[str, AnyArray | None]]
    """The right values by name, of each set."""
    tolerances: Tolerances


class EngineTrials:
    """Builds engines of a model some of whose nodes stay in fp32. Close it when done.

    A weakly typed network has the precisions as constraints of its layers; the model of a strongly
    typed one gets casts.

    Args:
        library: What builds and runs them.
        document: The model; it stays open and as it is.
        precision: The lower one, e.g. ``fp16``.
        nodes: Those that can be lowered.
        settings: Of the builds.
        expected: What they have to compute.

    Raises:
        UsageError: The shapes of the settings do not fit the model.
    """

    def __init__(
        self,
        library: Library,
        document: Document,
        precision: str,
        nodes: Collection[Node],
        settings: BuildSettings,
        expected: Expectation,
    ) -> None:
        self._library = library
        self._document = document
        self._precision = precision
        self._nodes = frozenset(nodes)
        self._settings = trial_settings(settings, precision, library)
        self._expected = expected
        if any(getattr(settings, name) for name in SHAPES):
            self._profiles = profiles_for(document, settings).ranges
        else:
            self._profiles = profiles_from(document, expected.feeds)
        self._folder = tempfile.TemporaryDirectory(prefix="precision-")
        self._engine = Path(self._folder.name) / "trial.engine"

    def close(self) -> None:
        """Remove the last engine."""
        self._folder.cleanup()

    def run(self, kept: Collection[Node], number: int) -> Generator[Event, None, Trial]:
        """Build, run and compare. An engine that cannot be built is a trial that is not good.

        Args:
            kept: The nodes that stay in fp32.
            number: Of the build, from 1 on.

        Raises:
            DldError: As building and running engines does.
        """
        began = time.perf_counter()
        stay = self._nodes.intersection(kept)
        stage = f"Build {number}, {len(stay):,} nodes kept in fp32"
        yield Progress(number - 1, None, "builds", stage)
        model = assigned(self._document, self._precision, self._nodes, stay)
        with contextlib.closing(model):
            try:
                yield from self._build(model, number, stage)
                yield Progress(number - 1, None, "builds", f"{stage}: running the engine")
                found = self._compared()
            except ActivityError as error:
                found = Trial(f"there is no such engine: {error.message}")
        count = len(self._nodes) - len(stay)
        return replace(found, lowered_nodes=count, seconds=time.perf_counter() - began)

    def _build(self, model: Document, number: int, stage: str) -> Iterator[Event]:
        steps = build(self._library, model, self._settings, self._profiles, self._engine)
        for event in steps:  # its lines would drown those of the search
            if isinstance(event, Progress):
                yield Progress(number - 1, None, "builds", f"{stage}: {event.stage}")

    def _compared(self) -> Trial:
        expected, settings = self._expected, self._settings
        outputs = engine_outputs(
            self._library,
            self._engine,
            expected.feeds,
            device=settings.device,
            plugins=settings.plugins,
        )
        with contextlib.closing(outputs):
            return judged(expected.outputs, outputs, expected.tolerances)


def trial_settings(settings: BuildSettings, precision: str, library: Library) -> BuildSettings:
    """Return the settings of a trial: layers of a weakly typed network get their precisions."""
    if is_strong(settings, library.facts):
        return settings
    typing = "prefer" if settings.typing == "default" else settings.typing
    lower: dict[str, Any] = {precision: True}
    return replace(settings, typing=typing, **lower)
