"""Loads run on one session: as many at once as there are clients, each arrival answered once."""

from __future__ import annotations

import time
from array import array
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Lock, Semaphore, get_ident
from typing import Any

import pytest

from dld_tui.activities.load import Request, run
from dld_tui.backends.onnxruntime.clients import closed_loop, open_loop
from dld_tui.backends.onnxruntime.generation import Generator
from dld_tui.backends.onnxruntime.session import Session
from dld_tui.backends.onnxruntime.session_options import SessionSettings
from dld_tui.backends.tensorrt.execution import Execution
from dld_tui.core.errors import UsageError
from dld_tui.core.llm import feeds as llm_feeds
from dld_tui.core.llm.feeds import Decoder, KeptFeeds, StepFeeds
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.inputs.guess import specs_for
from dld_tui.core.report.load import LoadPoint, LoadResult, load_lines, load_table, point_of
from tests.support import decoders
from tests.support.activities import finished
from tests.support.engines import built
from tests.support.fake_machine import install
from tests.support.models import PLAIN_BRANCHES, write

pytest.importorskip("onnxruntime")


class Server:
    """A session that sleeps; it computes so many requests at a time, and notes each."""

    def __init__(self, seconds: float, at_once: int = 100) -> None:
        self.seconds, self.inside, self.most = seconds, 0, 0
        self.lock, self.free = Lock(), Semaphore(at_once)
        self.spans: list[tuple[float, float]] = []

    def timer(self, first: int, durations: array[int], most: int, until: int) -> int:
        for slot in range(most):
            begin = time.perf_counter_ns()
            with self.lock:
                self.inside += 1
                self.most = max(self.most, self.inside)
            with self.free:
                time.sleep(self.seconds)
            with self.lock:
                self.inside -= 1
            end = time.perf_counter_ns()
            self.spans.append((begin / 1e9, end / 1e9))
            durations[slot] = end - begin
            if end >= until:
                return slot + 1
        return most


def busy_clients(point: LoadPoint) -> float:
    """Return throughput times latency: by Little's law, the clients that are always inside."""
    assert point.throughput is not None
    assert point.compute_ms is not None
    return point.throughput * point.compute_ms / 1000


def test_a_closed_loop_keeps_every_client_busy() -> None:
    server = Server(0.01)
    found = closed_loop([server.timer] * 3, 0.3)
    assert (server.most, len(found.ended)) == (3, len(server.spans))
    assert busy_clients(point_of(3, None, found)) == pytest.approx(3, rel=0.25)
    assert min(found.begun) >= 0


def test_an_open_loop_answers_each_arrival_once_and_tells_waiting() -> None:
    server = Server(0.02)
    found = open_loop([server.timer] * 2, 200.0, 0.3, seed=1)  # twice what two clients can do
    assert len(server.spans) == len(found.ended) == 60
    assert server.most == 2
    assert all(a <= b < e for a, b, e in zip(found.arrived, found.begun, found.ended, strict=True))
    point = point_of(2, 200.0, found)
    assert not point.keeps_up
    assert point.queue_ms is not None
    assert point.queue_ms > 50  # thirty wait in front of the last ones, on average
    assert open_loop([server.timer], 200.0, 0.0, seed=1).arrived == (0.0,)


def test_throughput_and_latency_are_those_that_the_server_saw() -> None:
    server = Server(0.01, at_once=2)
    point = point_of(4, None, closed_loop([server.timer] * 4, 0.3))
    begun, ended = zip(*server.spans, strict=True)
    seen = len(ended) / (max(ended) - min(begun))
    assert point.throughput == pytest.approx(seen, rel=0.1)
    spent = sum(ended) - sum(begun)
    assert point.compute_ms is not None
    assert point.compute_ms == pytest.approx(1000 * spent / len(ended), rel=0.1)
    assert point.compute_ms > 15  # two of four wait for the other two


def loaded(path: Path, **asked: Any) -> LoadResult:
    result = finished(run(Request(path, **asked)))
    assert isinstance(result, LoadResult)
    return result


def test_a_model_under_load(tmp_path: Path) -> None:
    path, shape = write(tmp_path, PLAIN_BRANCHES), ("x:3x4",)
    points = loaded(path, shape=shape, clients="1,3", duration=0.05).points
    assert [(point.clients, point.offered) for point in points] == [(1, None), (3, None)]
    assert all(point.requests and point.throughput for point in points)
    points = loaded(path, shape=shape, rate="50,100", duration=0.2).points
    assert [(p.clients, p.offered, p.requests) for p in points] == [(8, 50, 10), (8, 100, 20)]


@pytest.fixture
def trt(monkeypatch: pytest.MonkeyPatch) -> Any:
    return install(monkeypatch)


@pytest.fixture
def engine(trt: Any, tmp_path: Path) -> Path:
    path = tmp_path / "small.engine"
    path.write_bytes(built(trt))
    return path


def test_clients_of_an_engine_have_a_context_each(
    trt: Any, engine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: dict[int, set[int]] = {}
    honest = Execution.enqueue

    def enqueue(self: Execution) -> None:
        used.setdefault(id(self), set()).add(get_ident())
        time.sleep(0.002)
        honest(self)

    monkeypatch.setattr(Execution, "enqueue", enqueue)
    found = loaded(engine, clients="3", duration=0.2, trust=True)
    (point,) = found.points
    assert point.problem == ""
    ran = [threads - {get_ident()} for threads in used.values()]  # the warm-up is in this one
    # A context is never used by two threads.
    assert [len(threads) for threads in ran] == [1, 1, 1]
    assert len(set.union(*ran)) == 3
    assert set.union(*ran) <= trt.fake.cuda.threads
    assert busy_clients(point) == pytest.approx(3, rel=0.25)
    assert trt.fake.cuda.live == 0
    assert "context and a stream for each client, TensorRT 10.13" in load_lines(found)[-1]
    assert "image [1, 3, 4, 4]" in load_lines(found)[-1]


def test_an_engine_whose_contexts_need_too_much_memory_is_a_row_with_the_reason(
    trt: Any, engine: Path
) -> None:
    trt.fake.cuda.limit = 2000
    found = loaded(engine, clients="1,64", duration=0.0, trust=True)
    assert [bool(point.problem) for point in found.points] == [False, True]
    assert "no memory left" in found.points[1].problem
    assert trt.fake.cuda.live == 0


def test_an_engine_has_to_be_trusted_and_makes_no_tokens(engine: Path) -> None:
    with pytest.raises(UsageError, match="load it only if you trust"):
        loaded(engine)
    with pytest.raises(UsageError, match="is for decoders"):
        loaded(engine, tokens=3, trust=True)


@contextmanager
def opened(folder: Path) -> Iterator[tuple[Generator, Decoder]]:
    path = decoders.grouped(folder / "m.onnx")
    with closing(Document.open(path)) as document:
        session = Session(path, SessionSettings(threads=1, quiet=True))
        decoder = Decoder(document, specs_for(session.inputs, document), None)
        yield Generator(path, session, decoder), decoder


def tokens_of(generator: Generator, feeds: Any, count: int) -> list[list[int]]:
    *_, timed = generator.run(feeds, 1, 5, count)
    return [token.tolist() for token in timed.tokens]


def test_sequences_at_the_same_time_are_those_made_one_after_the_other(tmp_path: Path) -> None:
    with opened(tmp_path) as (generator, decoder):

        def tokens(seed: int) -> list[list[int]]:
            return tokens_of(generator, StepFeeds(decoder, 1, 5, seed, 20), 8)

        alone = [tokens(seed) for seed in range(4)]
        assert len({str(one) for one in alone}) > 1
        with ThreadPoolExecutor(4) as pool:
            assert [*pool.map(tokens, range(4))] == alone


def test_inputs_that_are_kept_give_the_same_sequence_each_time(tmp_path: Path) -> None:
    with opened(tmp_path) as (generator, decoder):
        kept = KeptFeeds(decoder, 1, 5, 3, 30)
        every = (StepFeeds(decoder, 1, 5, 3, 30), kept, kept)
        first, *others = (tokens_of(generator, feeds, 20) for feeds in every)
    assert others == [first, first]


def test_a_decoder_makes_sequences_for_each_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    honest = Generator.run

    def counted(self: Any, feeds: Any, batch: int, prompt: int, tokens: int) -> Any:
        for timed in honest(self, feeds, batch, prompt, tokens):
            made.append(prompt)
            yield timed

    fed: list[tuple[Any, ...]] = []

    class Noted(llm_feeds.KeptFeeds):
        def __init__(self, decoder: Any, *given: Any) -> None:
            fed.append(given)
            super().__init__(decoder, *given)

    monkeypatch.setattr(llm_feeds, "KeptFeeds", Noted)
    monkeypatch.setattr(Generator, "run", counted)
    path = decoders.grouped(tmp_path / "m.onnx")
    found = loaded(path, clients="1,2", tokens=4, prompt=6, duration=0.05)
    assert found.tokens == 4
    assert set(made) == {6}
    assert fed == [(1, 6, seed, 6 + 4) for seed in (0, 1)], "room for the prompt and the tokens"
    requests = sum(point.requests for point in found.points)
    assert len(made) == 4 * (2 + requests)  # the first sequence of each client is warm-up
    for point in found.points:
        assert point.throughput is not None
        assert point.tokens_per_s == pytest.approx(4 * point.requests / point.seconds)
        assert point.first_token_ms is not None
        assert point.token_ms is not None
        assert point.compute_ms is not None
        assert 0 < point.first_token_ms < point.compute_ms * 2
    titles = [column.title for column in load_table(found).columns]
    assert {"tokens/s", "first token ms", "token ms"} < {*titles}
    assert "a prompt of 6 tokens and makes 4" in load_lines(found)[-1]
