"""Hardware counters over time (PM sampling of CUPTI), as the GPU metric rows of a timeline."""

from __future__ import annotations

import contextlib
import math
from typing import Any

from dld_tui.backends.gpu import cupti
from dld_tui.core.errors import UnavailableError
from dld_tui.core.gpu.records import HARDWARE_ROWS, CounterSpec, Series

_BUFFER_BYTES = 512 << 20
_MOST_AT_ONCE = 24_000
"""Samples that there is room for; each takes 23 kB until its values are known (H200, CUPTI 13.4).

CUPTI gives those of its buffer in one go only: what a second call returns has neither times nor
values.
"""
_LEAD_NS = 200_000_000
"""Time between the start and the first pass, measured 145 ms, which is sampled too."""
_NO_NAME = "this GPU has no such counter"
_NO_ROOM = "this GPU does not count it together with the other rows"
_NO_SAMPLES = "the GPU returned no sample"


class HardwareSampler:
    """Samples hardware counters between :meth:`start` and :meth:`stop`; use it once.

    Args:
        device: The CUDA device.
        interval_us: How often.
        expected: How many samples to make room for.
        modules: ``cupti.pm_sampling`` and ``cupti.profiler_host``, or stand-ins for them.

    Raises:
        UnavailableError: CUPTI is missing, refuses, or this GPU counts nothing of it.
    """

    def __init__(
        self,
        device: int,
        interval_us: float,
        expected: int,
        modules: tuple[Any, Any] | None = None,
    ) -> None:
        if modules is None:
            modules = cupti.load("cupti.pm_sampling"), cupti.load("cupti.profiler_host")
        self._sampling, self._host = modules
        self._device = device
        self._interval_ns = max(1, round(1000 * interval_us))
        lead = _LEAD_NS // self._interval_ns
        self._room = min(_MOST_AT_ONCE, math.ceil(1.5 * expected) + lead)
        self._collector: Any = None
        self.absent: list[Series] = []
        """Rows that are not counted, with the reason."""
        with cupti.refusals("reading hardware counters"):
            self.specs = self._configure()
        """Rows that are counted."""

    def start(self) -> None:
        """Begin.

        Raises:
            UnavailableError: CUPTI refuses.
        """
        try:
            with cupti.refusals("reading hardware counters"):
                self._collector.start()
        except UnavailableError:
            self.close()
            raise

    def stop(self) -> list[Series]:
        """Stop and return all rows; one without samples says why.

        Raises:
            UnavailableError: The samples cannot be had.
        """
        series = [Series(spec, "cupti-pm") for spec in self.specs]
        try:
            with cupti.refusals("reading hardware counters"):
                self._collector.stop()
                self._decode(series)
        except UnavailableError:
            if not any(one.samples for one in series):
                raise
        finally:
            self.close()
        for one in series:
            if not one.samples:
                one.absent = _NO_SAMPLES
        return [*series, *self.absent]

    def close(self) -> None:
        """Give the counters back."""
        if self._collector is not None:
            with contextlib.suppress(UnavailableError), cupti.refusals("stopping"):
                self._collector.disable()
            self._collector = None

    def _decode(self, series: list[Series]) -> None:
        for sample in self._collector.decode(self._room):
            if not sample.start_timestamp:
                continue  # the first sample has no start
            middle = (sample.start_timestamp + sample.end_timestamp) // 2
            for one, value in zip(series, sample.metric_values, strict=True):
                if math.isfinite(value):
                    one.samples.append((middle, float(value)))

    def _configure(self) -> list[CounterSpec]:
        """Set up as many rows as the chip counts at once and return them."""
        collector = self._fresh()
        available = self._available(collector)
        specs: list[CounterSpec] = []
        for row in HARDWARE_ROWS:
            spec = row.spec(available) if available else row.spec(row.names)
            if spec is None:
                self._give_up(CounterSpec("", row.title), _NO_NAME)
            else:
                specs.append(spec)
        problem: Exception | None = None
        while specs:
            try:
                collector.configure(
                    metrics=[spec.name for spec in specs],
                    hardware_buffer_size=_BUFFER_BYTES,
                    sampling_interval=self._interval_ns,
                )
            except ValueError as error:
                problem = error
                self._give_up(specs.pop(), _NO_ROOM)
                # One that was refused once may count nothing later: take a new one.
                collector = self._fresh()
            else:
                return specs
        self.close()
        raise UnavailableError(f"this GPU cannot sample its counters: {problem or _NO_NAME}")

    def _fresh(self) -> Any:
        self.close()
        self._collector = self._sampling.Collector(self._device)
        try:
            self._collector.enable()
        except BaseException:
            self._collector = None
            raise
        return self._collector

    def _give_up(self, spec: CounterSpec, reason: str) -> None:
        self.absent.append(Series(spec, "cupti-pm", absent=reason))

    def _available(self, collector: Any) -> frozenset[str]:
        """Return the counters of the chip; none when it does not tell."""
        chip = getattr(collector, "_chip_name", None)
        if not chip:
            return frozenset()
        names: set[str] = set()
        host = self._host.ProfilerHost(chip, self._host.ProfilerType.PM_SAMPLING)
        with contextlib.suppress(UnavailableError), cupti.refusals("listing counters"):
            host.initialize()
            for kind in self._host.MetricType:
                # The H200 refuses to list one of the kinds; the others are still worth having.
                with contextlib.suppress(UnavailableError), cupti.refusals("listing counters"):
                    names.update(host.get_base_metrics(kind))
        with contextlib.suppress(UnavailableError), cupti.refusals("listing counters"):
            host.deinitialize()
        return frozenset(names)
