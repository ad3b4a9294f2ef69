"""A stand-in for CUPTI, which says what a GPU did while a CPU computed."""

from __future__ import annotations

from typing import ClassVar

from dld_tui.core.report.gpu_kernels import Activity, ActivityLog

KERNELS = 8


class FakeTracer:
    """Says that each call of the model launched kernels, in the middle of its time.

    Attributes:
        calls: Begin and end of all calls of the model so far.
        lasts_ns: How long a kernel takes, in passes with calls and in those without.
        names: Of the k-th kernel, with calls and without.
    """

    calls: ClassVar[list[tuple[int, int]]] = []
    lasts_ns: ClassVar[dict[bool, int]] = {True: 200, False: 100}
    names: ClassVar[dict[bool, str]] = {True: "k{}", False: "k{}"}

    def __init__(self, device: int, *, calls: bool, ranges: bool) -> None:
        assert device == 0
        assert not ranges
        self.with_calls = calls

    def start(self) -> None:
        self.first = len(self.calls)

    def flush(self) -> None: ...

    def stop(self) -> ActivityLog:
        log = ActivityLog()
        name, lasts = self.names[self.with_calls], self.lasts_ns[self.with_calls]
        for begin, end in self.calls[self.first :]:
            for number in range(KERNELS):
                correlation = len(log.work)
                # Well inside of the call: what Python does around it is not in the profile.
                when = begin + (end - begin) * (45 + 30 * number // KERNELS) // 100
                if self.with_calls:
                    log.launched(correlation, when - 100)
                work = (when, when + lasts, correlation, "stream 7")
                log.work.append(Activity("kernel", name.format(number), *work))
        return log
