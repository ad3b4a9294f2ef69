"""Send requests of several clients to one session at once, in a closed loop or at a given rate.

A request is a pass, or a sequence of a decoder. Clients of an engine have a context each.
"""

from __future__ import annotations

import contextlib
from array import array
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from dld_tui.activities.profile.llm import require_provider, shares_cache
from dld_tui.activities.profile.onnxruntime import Request as Profile
from dld_tui.core import fmt
from dld_tui.core.accuracy.engine_settings import PAGE, is_engine
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import ActivityError, UsageError
from dld_tui.core.events import Event, Finished, Progress
from dld_tui.core.model.inputs.settings import InputSettings
from dld_tui.core.params import FIRST_PAGE, like, param
from dld_tui.core.report.load import LoadPoint, LoadResult, point_of
from dld_tui.core.report.sweep import parse_values
from dld_tui.core.tensorrt.run_settings import RunSettings
from dld_tui.core.text import visible

if TYPE_CHECKING:
    from dld_tui.backends.onnxruntime.session_options import SessionSettings
    from dld_tui.core.llm.folder import GenaiConfig
    from dld_tui.core.model.document.document import Document
    from dld_tui.core.report.latency import TimeCalls

Result = LoadResult
_NEVER = 1 << 62
"""A time of the clock that does not come."""
_FROM_FILES = "inputs from files"
_WARM = 3
_CLIENTS = 8
"""Requests that are computed at the same time at a given rate."""
_MOST_CLIENTS = 256


@dataclass(frozen=True)
class Request:
    """Which load."""

    model: Path = like(
        Profile, "model", help="The ONNX model, the folder of a decoder, or a TensorRT engine."
    )
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
    tokens: int | None = param(
        None,
        label="Tokens",
        help="Of a decoder: each request is a sequence of so many new tokens, with a cache of its "
        "own.",
        minimum=1,
        maximum=1_000_000,
        spellings=("--tokens",),
        metavar="N",
        empty="each request is a pass",
    )
    prompt: int = param(
        128,
        label="Prompt",
        help="Tokens of the prompt of each sequence.",
        minimum=1,
        maximum=1_000_000,
        spellings=("--prompt",),
        metavar="N",
    )
    provider: str = like(Profile, "provider")
    threads: int = like(Profile, "threads", page=FIRST_PAGE)
    shape: tuple[str, ...] = like(InputSettings, "shape")
    inputs: Path | None = like(InputSettings, "inputs")
    seed: int = like(InputSettings, "seed")
    device_id: int = like(Profile, "device_id")
    library: str = like(RunSettings, "library", page=PAGE)
    trust: bool = like(RunSettings, "trust", page=PAGE)
    plugins: tuple[str, ...] = like(RunSettings, "plugins", page=PAGE)

    def require(self) -> None:
        """Refuse settings that do not go together, before anything is opened.

        Raises:
            UsageError: Says which.
        """
        if self.tokens and is_engine(self.model):
            raise UsageError("--tokens is for decoders that ONNX Runtime runs, not for engines")
        if self.tokens and (self.inputs is not None or self.shape):
            raise UsageError("--tokens makes the inputs: leave out --inputs and --shape")

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
        UsageError: A setting is malformed, or does not fit the model.
        InputError: The model, the engine or an input cannot be read.
        UnavailableError: ONNX Runtime, the provider, TensorRT or a GPU is missing.
        ActivityError: The model cannot be run.
    """
    request.require()
    loads = request.loads()
    if is_engine(request.model):
        yield from _with_engine(request, loads)
        return
    from dld_tui.core.llm.folder import find_decoder, open_document

    asked = Profile(
        model=request.model, provider=request.provider, threads=request.threads,
        device_id=request.device_id,
    )  # fmt: skip
    settings = replace(asked.session_settings(), quiet=True)
    if settings.cuda_graph:
        raise UsageError("clients of one session cannot share a CUDA graph")
    model, config = (request.model, None) if not request.tokens else find_decoder(request.model)
    with contextlib.closing(open_document(model)) as document:
        if request.tokens:
            yield from _with_decoder(request, loads, model, document, settings, config)
        else:
            yield from _with_session(request, loads, document, settings)


Loads: TypeAlias = "Sequence[tuple[int, float | None]]"
Clients: TypeAlias = "Callable[[int], contextlib.AbstractContextManager[list[TimeCalls]]]"
"""Returns as many clients as are asked for."""


def _measured(
    request: Request,
    loads: Loads,
    clients: Clients,
    ended: Callable[[LoadPoint], LoadPoint] = lambda point: point,
) -> Generator[Event, None, tuple[LoadPoint, ...]]:
    """Measure each load; what cannot be run is a point with its reason.

    Args:
        request: The settings.
        loads: Clients and rate of each.
        clients: Makes them.
        ended: Adds to a point what its clients know.
    """
    from dld_tui.backends.onnxruntime.clients import closed_loop, open_loop
    from dld_tui.backends.onnxruntime.limits import with_node

    points = []
    for done, (count, rate) in enumerate(loads):
        yield Progress(done, len(loads), "loads", "Measuring")
        try:
            with clients(count) as timers:
                found = (
                    closed_loop(timers, request.duration)
                    if rate is None
                    else open_loop(timers, rate, request.duration, request.seed)
                )
            points.append(ended(point_of(count, rate, found)))
        except ActivityError as error:
            points.append(LoadPoint(count, rate, problem=with_node(error)))
    return tuple(points)


def _with_session(
    request: Request, loads: Loads, document: Document, settings: SessionSettings
) -> Iterator[Event]:
    from dld_tui.backends.onnxruntime.limits import limit_trials, naming
    from dld_tui.backends.onnxruntime.runtime import errors_of, version
    from dld_tui.backends.onnxruntime.session import Session
    from dld_tui.core.model.inputs.feeds import input_feeds
    from dld_tui.core.model.inputs.guess import specs_for

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

        @contextlib.contextmanager
        def clients(count: int) -> Iterator[list[TimeCalls]]:
            with errors_of(request.model, "run"):
                yield [session.timer(fed) for _ in range(count)]

        points = yield from _measured(request, loads, clients)
    guess = feeds.guess.text if feeds.guess is not None else _FROM_FILES
    backend = f"ONNX Runtime {version()}"
    yield Finished(LoadResult(str(request.model), backend, request.threads, points, guess))


def _with_decoder(
    request: Request,
    loads: Loads,
    model: Path,
    document: Document,
    settings: SessionSettings,
    config: GenaiConfig | None,
) -> Iterator[Event]:
    """Let each client make sequences, with a cache of its own for each."""
    from dld_tui.backends.onnxruntime.generation import Generator, SequenceClient
    from dld_tui.backends.onnxruntime.limits import limit_trials, naming
    from dld_tui.backends.onnxruntime.runtime import version
    from dld_tui.backends.onnxruntime.session import Session
    from dld_tui.core.llm.feeds import Decoder, KeptFeeds
    from dld_tui.core.model.inputs.guess import specs_for
    from dld_tui.core.statistics import median

    if settings.providers == ("CPU",):
        limit_trials(document)
    prompt, tokens = request.prompt, request.tokens or 1
    with naming(document):
        yield Progress(0, None, stage="Loading the model")
        session = Session(model, settings)
        decoder = Decoder(document, specs_for(session.inputs, document), config)
        require_provider(decoder, settings)
        generator = Generator(model, session, decoder, shared=shares_cache(decoder, "auto"))
        ready: list[KeptFeeds] = []
        """Of each client, kept: making them would take longer than a small model."""
        sequence_clients: list[SequenceClient] = []

        @contextlib.contextmanager
        def clients(count: int) -> Iterator[list[TimeCalls]]:
            for number in range(len(ready), count):
                seed = request.seed + number
                ready.append(KeptFeeds(decoder, 1, prompt, seed, prompt + tokens))
                SequenceClient(generator, ready[-1], prompt, tokens)(0, array("q", [0]), 1, 0)
            sequence_clients[:] = [
                SequenceClient(generator, one, prompt, tokens) for one in ready[:count]
            ]
            yield [*sequence_clients]

        def ended(point: LoadPoint) -> LoadPoint:
            firsts = [ms for one in sequence_clients for ms in one.first_token_ms]
            others = [ms for one in sequence_clients for ms in one.token_ms]
            return replace(
                point,
                tokens_per_s=None if point.throughput is None else point.throughput * tokens,
                first_token_ms=median(firsts) if firsts else None,
                token_ms=median(others) if others else None,
            )

        points = yield from _measured(request, loads, clients, ended)
    inputs = f"each request has a prompt of {prompt:,} tokens and makes {tokens:,}"
    yield Finished(
        LoadResult(str(model), f"ONNX Runtime {version()}", request.threads, points, inputs, tokens)
    )


def _with_engine(request: Request, loads: Loads) -> Iterator[Event]:
    """Give each client a context of the engine."""
    from dld_tui.backends.tensorrt.cuda import select_device
    from dld_tui.backends.tensorrt.execution import engine_inputs, fitting_profile
    from dld_tui.backends.tensorrt.library import find_library
    from dld_tui.backends.tensorrt.outputs import EngineRun
    from dld_tui.backends.tensorrt.runtime import trusted_bytes

    data, _ = trusted_bytes(request.model, request.trust)
    yield Progress(0, None, stage="Loading the engine")
    device = str(request.device_id)
    select_device(device)  # before anything of CUDA
    library = find_library(request.library)
    run = EngineRun(library, data, device=device, plugins=request.plugins, where=str(request.model))
    with run:
        given = (run.engine.inputs, request.shape, request.inputs, (), request.seed)
        values, shapes = engine_inputs(*given)
        if profile := fitting_profile(run.engine.inputs, shapes):
            values, shapes = engine_inputs(*given, profile=profile)

        @contextlib.contextmanager
        def clients(count: int) -> Iterator[list[TimeCalls]]:
            with run.clients(count, values, shapes, profile) as timers:
                for timer in timers:
                    timer(0, array("q", [0] * _WARM), _WARM, _NEVER)
                yield timers

        points = yield from _measured(request, loads, clients)
    texts = (f"{visible(name)} {fmt.shape(shape)}" for name, shape in shapes.items())
    inputs = _FROM_FILES if request.inputs is not None else ", ".join(texts)
    title = library.capabilities.title
    yield Finished(LoadResult(str(request.model), title, 0, points, inputs, is_engine=True))
