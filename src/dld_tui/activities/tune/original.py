"""The model that is tuned: its inputs and outputs, and sessions of its set-ups."""

from __future__ import annotations

import functools
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dld_tui.activities.profile.onnxruntime import Request as Profile
from dld_tui.activities.tune.budget import Budget
from dld_tui.activities.tune.request import Request
from dld_tui.core.params import from_json
from dld_tui.core.tune.changes import Setup
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.backends.onnxruntime.contest import Contestant
    from dld_tui.backends.onnxruntime.session import Session
    from dld_tui.core.compare.gate import RunFigures
    from dld_tui.core.model.document.document import Document
    from dld_tui.core.model.inputs.feeds import Feeds


_SETS = 3
HELD_BYTES = 2 << 30
"""Weights of sessions that are held at once; with more, sessions are made for each turn."""


class OriginalModel:
    """The original model.

    Args:
        request: What is tuned.
        document: The model.
        budget: Notes how long loading and a pass take.
    """

    def __init__(self, request: Request, document: Document, budget: Budget) -> None:
        self.request, self.document, self.budget = request, document, budget
        self.base = Setup(request.model.absolute())
        self.first: Session | None = None
        """The session that the inputs were made with, until it races as the original model."""
        self.feeds: Feeds | None = None
        self.reference: list[dict[str, Any]] = []
        """The outputs of each set of inputs."""
        budget.is_on_cpu = self.is_on_cpu

    @functools.cached_property
    def is_on_cpu(self) -> bool:
        """Whether it runs on the CPU."""
        memory: str = self.settings(self.base).memory
        return memory == "cpu"

    @functools.cached_property
    def is_busy(self) -> bool:
        """Whether other programs took the processors when the first session was to be made.

        Sessions that race then sleep between passes, as those of a confirmation do: a thread that
        has no processor while it spins seems to sleep, and spins on in the turn of another session.
        """
        from dld_tui.core.compare.gate import WAITED_PERCENT
        from dld_tui.core.machine.environment import waited_percent

        return self.is_on_cpu and waited_percent() > WAITED_PERCENT

    def racing_settings(self, setup: Setup) -> Any:
        """Return the settings of sessions that race."""
        settings = self.settings(setup)
        return settings.sleeping_between_passes() if self.is_busy else settings

    def ratio(self, base: Setup, new: Setup, base_run: RunFigures, new_run: RunFigures) -> float:
        """Return how many times as long a set-up takes, by what a confirmation would compare."""
        from dld_tui.backends.onnxruntime.session_options import processor_times_compare
        from dld_tui.core.compare.gate import Pair, compared_times

        ratio, processor_ratio = new_run.ms / base_run.ms, None
        are_alike = processor_times_compare(self.settings(base), self.settings(new))
        if are_alike and base_run.processor_ms and new_run.processor_ms:
            processor_ratio = new_run.processor_ms / base_run.processor_ms
        return compared_times([Pair(base_run, new_run, ratio, processor_ratio)]).ratios[0]

    @functools.cached_property
    def weight_bytes(self) -> int:
        """The bytes of its weights."""
        from dld_tui.core.model.document.summary import summarise

        return summarise(self.document).weight_bytes

    def holds(self, count: int) -> bool:
        """Return whether so many sessions may be held at once."""
        return self.weight_bytes * count <= HELD_BYTES

    def profile_request(self, setup: Setup, **more: JSON) -> Any:
        """Return the request that profiles a set-up."""
        asked = self.request
        values: dict[str, JSON] = {
            "model": str(setup.model), "provider": asked.provider, "device_id": asked.device_id,
            "shape": self._shapes(setup), "seed": asked.seed,
            "inputs": None if asked.inputs is None else str(asked.inputs),
            **setup.session, **more,
        }  # fmt: skip
        values.pop("batch", None)
        return from_json(Profile, values)

    def _shapes(self, setup: Setup) -> list[JSON]:
        if setup.batch > 1:
            grown = self._grown(setup.batch)
            return [f"{name}:{'x'.join(map(str, shape))}" for name, shape in grown.items()]
        return [*self.request.shape]

    def settings(self, setup: Setup) -> Any:
        """Return the settings of sessions of a set-up."""
        return replace(self.profile_request(setup).session_settings(), quiet=True)

    def make_inputs(self) -> None:
        """Load and run the model: make inputs and their outputs, and note the times."""
        from dld_tui.backends.onnxruntime.session import Session
        from dld_tui.core.model.inputs.feeds import input_feeds
        from dld_tui.core.model.inputs.guess import specs_for

        asked = self.request
        with self.budget.doing("loading"):
            self.feeds = None
            begin = time.monotonic()
            session = Session(self.base.model, self._first_settings())
            self.budget.first_s = time.monotonic() - begin
            self.first = session
            self.feeds = input_feeds(
                specs_for(session.inputs, self.document),
                asked.inputs,
                asked.shape,
                range(asked.seed, asked.seed + _SETS),
                self.document,
                lambda values: session.try_once(session.feed(dict(values))),
            )
            self._specs = specs_for(session.inputs, self.document)
        with self.budget.doing("checking"):
            if not session.is_readable:
                return
            for values in self.feeds.sets:
                begin = time.monotonic()
                outputs = session.run(session.feed(values))
                self.budget.pass_s = max(self.budget.pass_s, time.monotonic() - begin)
                self.reference.append(dict(zip(session.outputs, outputs, strict=True)))

    def _first_settings(self) -> Any:
        asked = self.request
        first = Profile(model=asked.model, provider=asked.provider, device_id=asked.device_id)
        settings = replace(first.session_settings(), quiet=True)
        return settings.sleeping_between_passes() if self.is_busy else settings

    def _grown(self, times: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes of inputs of so many items."""
        from dld_tui.core.model.inputs.guess import guess_inputs

        guess = guess_inputs(self._specs, self.document, None, batch=times)
        return {name: tuple(shape) for name, shape in guess.shapes.items()}

    def free_sizes(self) -> dict[str, int]:
        """Return the sizes that free dimensions have in the inputs, by name."""
        assert self.feeds is not None
        free_sizes: dict[str, int] = {}
        for spec in self._specs:
            value = self.feeds.sets[0].get(spec.name)
            for dim, size in zip(spec.dims or (), getattr(value, "shape", ()), strict=False):
                if isinstance(dim, str):
                    free_sizes[dim] = int(size)
        return free_sizes

    def contestant(self, setup: Setup) -> Contestant:
        """Return a set-up as it races."""
        from dld_tui.backends.onnxruntime.contest import Contestant, repeated

        assert self.feeds is not None
        sets = self.feeds.sets
        if setup.batch > 1:
            grown = self._grown(setup.batch)
            sets = [repeated(values, grown, setup.batch) for values in sets]
        binds = bool(setup.session.get("io_binding"))
        contestant = Contestant(
            setup.model, self.racing_settings(setup), sets, items=setup.batch, io_binding=binds
        )
        if not setup.changes and self.first is not None:  # it need not be loaded twice
            contestant.use(self.first, self.budget.first_s)
            self.first = None
        return contestant
