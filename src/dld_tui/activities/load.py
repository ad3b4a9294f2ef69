"""Send requests of several clients to one session at once, in a closed loop or at a given rate."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from dld_tui.activities.profile_onnxruntime import Request as Profile
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import ActivityError, UsageError
from dld_tui.core.events import Event, Finished, Progress
from dld_tui.core.inputs.settings import InputSettings
from dld_tui.core.params import FIRST_PAGE, like, param
from dld_tui.core.report.load import LoadPoint, LoadResult, point_of
from dld_tui.core.report.sweep import parse_values
from dld_tui.core.text import visible

Result = LoadResult
_WARM = 3
_CLIENTS = 8
"""Requests that are computed at the same time at a given rate."""
_MOST_CLIENTS = 256


@dataclass(frozen=True)
class Request:
    """Which load."""

    model: Path = like(Profile, "model", help="The ONNX model.")
    clients: str = param(
        "",
        label="Clients",
        help="Counts of clients that each wait for their answer, such as 1,2,4,8. With --rate, the "
        "requests that are computed at the same time.",
        spellings=("--clients",),
        metavar="N,…",
        empty=lambda values: "8" if values.get("rate") else "1,2,4,8",
    )
    rate: str = param(
        "",
        label="Rate",
        help="Requests a second that arrive whether or not others are answered, such as 10,20,40.",
        spellings=("--rate",),
        metavar="R,…",
        empty="each client waits for its answer",
    )
    duration: float = param(
        5.0,
        label="Duration",
        help="Measure each load for this time.",
        unit="s",
        minimum=0.0,
        maximum=3600.0,
        spellings=("--duration",),
        metavar="S",
    )
    provider: str = like(Profile, "provider")
    threads: int = like(Profile, "threads", page=FIRST_PAGE)
    shape: tuple[str, ...] = like(InputSettings, "shape")
    inputs: Path | None = like(InputSettings, "inputs")
    seed: int = like(InputSettings, "seed")
    device_id: int = like(Profile, "device_id")

    def loads(self) -> list[tuple[int, float | None]]:
        """Return clients and rate of each load.

        Raises:
            UsageError: A value is malformed.
        """
        clients = parse_values(self.clients, "--clients") if self.clients else ()
        if any(number > _MOST_CLIENTS for number in clients):
            raise UsageError(f"more than {_MOST_CLIENTS} clients")
        if not self.rate:
            return [(number, None) for number in clients or (1, 2, 4, 8)]
        if len(clients) > 1:
            raise UsageError("--rate takes one number of clients", hint="Write --clients 8")
        number = clients[0] if clients else _CLIENTS
        return [(number, rate) for rate in _rates(self.rate)]


def _rates(text: str) -> list[float]:
    rates = []
    for part in text.split(","):
        try:
            rate = float(part)
        except ValueError:
            rate = 0.0
        if not 1e-3 <= rate <= 1e6:
            raise UsageError(
                f"--rate: {visible(part.strip())!r} is not a rate", hint="Write --rate 10,20,40"
            )
        rates.append(rate)
    return rates


def run(request: Request) -> Iterator[Event]:
    """Measure.

    Raises:
        UsageError: A setting is malformed.
        InputError: The model or an input cannot be read.
        UnavailableError: ONNX Runtime or the provider is missing.
        ActivityError: The model cannot be run.
    """
    from dld_tui.backends.onnxruntime.clients import closed_loop, open_loop
    from dld_tui.backends.onnxruntime.limits import limit_trials, naming, with_node
    from dld_tui.backends.onnxruntime.runtime import errors_of, version
    from dld_tui.backends.onnxruntime.session import Session
    from dld_tui.core.document.document import Document
    from dld_tui.core.inputs.feeds import input_feeds
    from dld_tui.core.inputs.guess import specs_for

    loads = request.loads()
    asked = Profile(
        model=request.model, provider=request.provider, threads=request.threads,
        device_id=request.device_id,
    )  # fmt: skip
    settings = replace(asked.session_settings(), quiet=True)
    if settings.cuda_graph:
        raise UsageError("clients of one session cannot share a CUDA graph")
    points: list[LoadPoint] = []
    with contextlib.closing(Document.open(request.model)) as document:
        if settings.providers == ("CPU",):
            limit_trials(document, shapes=request.shape)
        with naming(document):
            yield Progress(0, None, stage="Loading the model")
            session = Session(request.model, settings)
            feeds = input_feeds(
                specs_for(session.inputs, document), request.inputs, request.shape, [request.seed],
                document, lambda values: session.try_once(session.feed(dict(values))),
            )  # fmt: skip
            fed = [session.feed(values) for values in feeds.sets]
            for _ in range(_WARM):
                session.try_once(fed[0])
            for done, (clients, rate) in enumerate(loads):
                yield Progress(done, len(loads), "loads", "Measuring")
                timers = [session.timer(fed) for _ in range(clients)]
                try:
                    with errors_of(request.model, "run"):
                        found = (
                            closed_loop(timers, request.duration)
                            if rate is None
                            else open_loop(timers, rate, request.duration, request.seed)
                        )
                    points.append(point_of(clients, rate, found))
                except ActivityError as error:
                    points.append(LoadPoint(clients, rate, problem=with_node(error)))
    guess = feeds.guess.text if feeds.guess is not None else "inputs from files"
    yield Finished(
        LoadResult(
            str(request.model), f"ONNX Runtime {version()}", request.threads, tuple(points), guess
        )
    )
