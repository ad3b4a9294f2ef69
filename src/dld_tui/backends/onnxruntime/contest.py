"""Sessions of several set-ups that are timed by turns, and whose outputs are compared."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dld_tui.backends.onnxruntime.session import BoundFeed, Feed, Session
from dld_tui.backends.onnxruntime.session_options import SessionSettings
from dld_tui.core import fmt
from dld_tui.core.accuracy.result import AccuracyRow
from dld_tui.core.accuracy.tensor_errors import (
    TensorError,
    Tolerances,
    compare_element,
    elements_of,
)
from dld_tui.core.compare.gate import RunFigures
from dld_tui.core.conversion.accuracy_criteria import AccuracyCriteria
from dld_tui.core.errors import ActivityError
from dld_tui.core.report.latency import StopCondition, TimeCalls, measure, settle
from dld_tui.core.tune.result import Closeness

_WARM = 1
_LEAST_CALLS, _LEAST_UP_TO_S = 3, 2.0
"""How many passes a turn times, unless it takes longer than this."""

Values = Mapping[str, Any]


def least_turn_s(pass_s: float) -> float:
    """Return how long :meth:`Contestant.time` takes at least with passes of so many seconds."""
    return min((_WARM + _LEAST_CALLS) * pass_s, _LEAST_UP_TO_S + pass_s)


class Contestant:
    """One set-up with its session, or without one between two turns.

    Args:
        settings: Of the session.
        sets: Inputs by name.
        items: How many a pass computes; times are of one.
        io_binding: Keep inputs and outputs on the device.

    Raises:
        DldError: The model cannot be loaded.
    """

    def __init__(
        self,
        model: Path,
        settings: SessionSettings,
        sets: Sequence[Values],
        *,
        items: int = 1,
        io_binding: bool = False,
    ) -> None:
        self._model, self._settings = model, settings
        self._sets, self._binds = sets, io_binding
        self.items = items
        self.opening_s = 0.0
        """Seconds that it took to make the session last."""
        self._session: Session | None = None
        self._captured: list[BoundFeed] = []
        """What a CUDA graph reads and writes wherever else inputs are bound."""

    def open(self) -> None:
        """Make the session, where there is none.

        Raises:
            DldError: The model cannot be loaded.
        """
        if self._session is None:
            begin = time.monotonic()
            self._session = Session(self._model, self._settings)
            self.opening_s = time.monotonic() - begin

    def use(self, session: Session, opening_s: float) -> None:
        """Take a session of the same model and settings.

        Args:
            session: It must not be used by others.
            opening_s: The seconds that it took to create.
        """
        self._session, self.opening_s = session, opening_s

    @property
    def is_open(self) -> bool:
        """Whether there is a session."""
        return self._session is not None

    def close(self) -> None:
        """Give the session back."""
        self._captured.clear()
        self._session = None

    def outputs(self) -> list[dict[str, Any]]:
        """Return the outputs for each set of inputs.

        Raises:
            DldError: It cannot be run, or NumPy has no type for an output.
        """
        self.open()
        session = self._session
        assert session is not None
        if not session.is_readable:
            raise ActivityError("an output is of a type that cannot be compared")
        feeds = [session.feed(values) for values in self._sets]
        runs = self._bound_runs(session, feeds) if self._binds else map(session.run, feeds)
        return [dict(zip(session.outputs, run, strict=True)) for run in runs]

    def _bound_runs(self, session: Session, feeds: Sequence[Feed]) -> Iterator[list[Any]]:
        """Run as it is timed.

        A CUDA graph reads its inputs where they were when it was captured, and gives no outputs
        without binding.
        """
        bound = None
        for feed in feeds:
            if bound is None or not self._settings.cuda_graph:
                (bound,) = session.bind([feed])
                runs = self._settings.least_warm_up
                self._captured = [bound] if self._settings.cuda_graph else []
            else:
                bound.fill(feed)
                runs = 1
            for _ in range(runs):
                session.run_bound(bound)
            yield bound.outputs()

    def timer(self) -> TimeCalls:
        """Return what makes and times passes, with the session open and inputs bound.

        Raises:
            DldError: It cannot be loaded or run.
        """
        self.open()
        session = self._session
        assert session is not None
        feeds = [session.feed(values) for values in self._sets[:1]]
        if not self._binds:
            return session.timer(feeds)
        bound = self._captured or session.bind(feeds)
        for _ in range(self._settings.least_warm_up):
            session.run_bound(bound[0])
        return session.bound_timer(bound)

    def time(self, seconds: float, *, wait_for_idle_threads: bool = True) -> float:
        """Return the median ms of an item of a :meth:`measure_slice`."""
        return self.measure_slice(seconds, wait_for_idle_threads=wait_for_idle_threads).ms

    def measure_slice(self, seconds: float, *, wait_for_idle_threads: bool = True) -> RunFigures:
        """Run for so long, and at least three times, and return medians of an item.

        With passes of seconds it times fewer, down to the first one, for which a cold cache matters
        little.

        Args:
            seconds: How long.
            wait_for_idle_threads: Wait until threads of another session sleep.

        Raises:
            DldError: It cannot be run.
        """
        limit_s = max(seconds, _LEAST_UP_TO_S)
        stop, timer = StopCondition(_WARM + _LEAST_CALLS, seconds, limit_s=limit_s), self.timer()
        if wait_for_idle_threads:
            settle()
        with contextlib.closing(measure(timer, stop)) as bursts:
            timed = [*bursts]
        times = [one for burst in timed for one in burst.milliseconds]
        processor_ms = statistics.median(burst.processor_ms for burst in timed)
        return RunFigures(
            statistics.median(times[_WARM:] or times) / self.items,
            processor_ms=processor_ms / self.items,
        )


def accuracy(
    reference: Sequence[Values],
    outputs: Sequence[Values],
    tolerances: Tolerances,
    criteria: AccuracyCriteria | None,
) -> tuple[str, Closeness]:
    """Compare outputs with those of a reference.

    Args:
        reference: By name, for each set of inputs.
        outputs: The same of another set-up; names may differ where there are as many.
        tolerances: What elements may be off.
        criteria: What counts beside them; None where somebody gave tolerances.

    Returns:
        What is wrong, empty where nothing is, and the worst figure.
    """  # fmt: skip
    worst: TensorError | None = None
    for mine, theirs in zip(reference, outputs, strict=True):
        if len(mine) != len(theirs):
            return f"it has {fmt.plural(len(theirs), 'output')}, not {len(mine)}", Closeness()
        for (name, expected), actual in zip(mine.items(), theirs.values(), strict=True):
            first, second = dict(elements_of(name, expected)), dict(elements_of(name, actual))
            tolerance = tolerances.of(name)
            for element in {**first, **second}:
                error = compare_element(first.get(element), second.get(element), tolerance)
                problem = tolerance.problem(error) or ""
                if criteria is not None:
                    row = AccuracyRow(
                        element, element, "", "", -1, True, tolerance.text, problem, error
                    )
                    problem = criteria.judged(row).problem
                if problem:
                    return f"output {element}: {problem}", Closeness()
                if worst is None or error.noise > worst.noise:
                    worst = error
    if worst is None or worst.is_equal:
        return "", Closeness("the same", identical=True)
    if worst.snr_db is None:
        return "", Closeness("" if worst.max_abs is None else f"off by {worst.max_abs:.2g}")
    return "", Closeness(f"SNR {worst.snr_db:.0f} dB")


def repeated(values: Values, grown: Mapping[str, tuple[int, ...]], times: int) -> dict[str, Any]:
    """Return inputs with so many items each the same, along the axis where shapes differ.

    Args:
        values: Of one item.
        grown: Shapes of so many items by name.
        times: How many.
    """
    batches = {}
    for name, value in values.items():
        axis = _grown_axis(np.shape(value), grown.get(name, np.shape(value)))
        batches[name] = value if axis is None else np.concatenate([value] * times, axis)
    return batches


def first_item(values: Values, single: Values) -> dict[str, Any]:
    """Return outputs of several items cut to those of the first, in the shapes of `single`."""
    return {
        name: _first(value, expected)
        for (name, value), expected in zip(values.items(), single.values(), strict=True)
    }


def _first(value: Any, expected: Any) -> Any:
    if isinstance(value, list) and isinstance(expected, list):  # maps, one for each item, or parts
        return [_first(mine, other) for mine, other in zip(value, expected, strict=False)]
    shape = np.shape(expected)
    axis = _grown_axis(shape, np.shape(value))
    return value if axis is None else np.take(value, range(shape[axis]), axis)


def _grown_axis(before: Sequence[int], after: Sequence[int]) -> int | None:
    if len(before) != len(after):
        return None
    return next((at for at, (old, new) in enumerate(zip(before, after, strict=True))
                 if old != new), None)  # fmt: skip
