"""Loads run on one session: as many at once as there are clients, each arrival answered once."""

from __future__ import annotations

import time
from array import array
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock, Semaphore, get_ident
from typing import Any

import pytest

from dld_tui.activities.load import Request, run
from dld_tui.backends.onnxruntime.clients import closed_loop, open_loop
from dld_tui.backends.onnxruntime.generation import Generator
from dld_tui.backends.onnxruntime.session import Session
from dld_tui.backends.onnxruntime.session_options import SessionSettings
from dld_tui.backends.tensorrt import library, outputs
from dld_tui.backends.tensorrt.execution import Execution
from dld_tui.backends.tensorrt.library import use
from dld_tui.core.errors import UsageError
from dld_tui.core.events import Finished
from dld_tui.core.llm.feeds import Decoder, KeptFeeds, StepFeeds
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.inputs.guess import specs_for
from dld_tui.core.report.load import LoadResult, load_lines, load_table, point_of
from tests.support import decoders
from tests.support.engines import built
from tests.support.fake_tensorrt import fake_tensorrt
from tests.support.models import PLAIN_BRANCHES, write

pytest.importorskip("onnxruntime")


class Server:
    """A session that sleeps, and counts who is inside."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.inside, self.most, self.calls = seconds, 0, 0, 0
        self.lock = Lock()

    def timer(self, first: int, durations: array[int], most: int, until: int) -> int:
        for slot in range(most):
            begin = time.perf_counter_ns()
            with self.lock:
                self.inside += 1
                self.calls += 1
                self.most = max(self.most, self.inside)
            time.sleep(self.seconds)
            with self.lock:
                self.inside -= 1
            durations[slot] = time.perf_counter_ns() - begin
            if time.perf_counter_ns() >= until:
                return slot + 1
        return most


def test_a_closed_loop_keeps_every_client_busy() -> None:
    server = Server(0.01)
    found = closed_loop([server.timer] * 3, 0.3)
    assert (server.most, len(found.ended)) == (3, server.calls)
    point = point_of(3, None, found)
    assert point.throughput is not None
    assert point.compute_ms is not None
    # Little's law: with three clients always inside, throughput times latency is three.
    assert point.throughput * point.compute_ms / 1000 == pytest.approx(3, rel=0.25)
    assert min(found.begun) >= 0


def test_an_open_loop_answers_each_arrival_once_and_tells_waiting() -> None:
    server = Server(0.02)
    found = open_loop([server.timer] * 2, 200.0, 0.3, seed=1)  # twice what two clients can do
    assert server.calls == len(found.ended) == 60
    assert server.most == 2
    assert all(a <= b < e for a, b, e in zip(found.arrived, found.begun, found.ended, strict=True))
    point = point_of(2, 200.0, found)
    assert not point.keeps_up
    assert point.queue_ms is not None
    assert point.queue_ms > 50  # thirty wait in front of the last ones, on average
    assert open_loop([server.timer], 200.0, 0.0, seed=1).arrived == (0.0,)


class Counter(Server):
    """One that computes two requests at a time, and notes when each came and went."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.free = Semaphore(2)
        self.spans: list[tuple[float, float]] = []

    def timer(self, first: int, durations: array[int], most: int, until: int) -> int:
        for slot in range(most):
            begin = time.perf_counter_ns()
            with self.free:
                time.sleep(self.seconds)
            end = time.perf_counter_ns()
            self.spans.append((begin / 1e9, end / 1e9))
            durations[slot] = end - begin
            if end >= until:
                return slot + 1
        return most


def test_throughput_and_latency_are_those_that_the_server_saw() -> None:
    server = Counter(0.01)
    point = point_of(4, None, closed_loop([server.timer] * 4, 0.3))
    begun, ended = zip(*server.spans, strict=True)
    seen = len(ended) / (max(ended) - min(begun))
    assert point.throughput == pytest.approx(seen, rel=0.1)
    spent = sum(ended) - sum(begun)
    assert point.compute_ms is not None
    assert point.compute_ms == pytest.approx(1000 * spent / len(ended), rel=0.1)
    assert point.compute_ms > 15  # two of four wait for the other two


def load(path: Path, **asked: Any) -> LoadResult:
    events = list(run(Request(path, shape=("x:3x4",), **asked)))
    assert isinstance(events[-1], Finished)
    assert isinstance(events[-1].result, LoadResult)
    return events[-1].result


def test_a_model_under_load(tmp_path: Path) -> None:
    path = write(tmp_path, PLAIN_BRANCHES)
    found = load(path, clients="1,3", duration=0.05)
    assert [(point.clients, point.offered) for point in found.points] == [(1, None), (3, None)]
    assert all(point.requests and point.throughput for point in found.points)
    found = load(path, rate="50,100", duration=0.2)
    assert [(p.clients, p.offered, p.requests) for p in found.points] == [(8, 50, 10), (8, 100, 20)]


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"clients": "0"}, "not a size"),
        ({"clients": "1,1000"}, "more than 256"),
        ({"rate": "x"}, "not a rate"),
        ({"rate": "inf"}, "not a rate"),
        ({"rate": "10", "clients": "1,2"}, "one number of clients"),
    ],
)
def test_what_does_not_fit_is_refused(asked: dict[str, Any], why: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=why):
        load(write(tmp_path, PLAIN_BRANCHES), **asked)


@pytest.fixture
def trt(monkeypatch: pytest.MonkeyPatch) -> Any:
    fake = fake_tensorrt()
    monkeypatch.setattr(library, "find_library", lambda choice: use(fake))
    monkeypatch.setattr(outputs, "Cuda", lambda device: fake.fake.cuda)
    return fake


def loaded(path: Path, **asked: Any) -> LoadResult:
    *_, last = run(Request(path, **asked))
    assert isinstance(last, Finished)
    assert isinstance(last.result, LoadResult)
    return last.result


def test_clients_of_an_engine_have_a_context_each(
    trt: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "small.engine"
    path.write_bytes(built(trt))
    used: dict[int, set[int]] = {}
    honest = Execution.enqueue

    def enqueue(self: Execution) -> None:
        used.setdefault(id(self), set()).add(get_ident())
        time.sleep(0.002)
        honest(self)

    monkeypatch.setattr(Execution, "enqueue", enqueue)
    found = loaded(path, clients="3", duration=0.2, trust=True)
    (point,) = found.points
    assert point.problem == ""
    assert len(used) == 3
    ran = [threads - {get_ident()} for threads in used.values()]  # the warm-up is in this one
    assert all(len(threads) == 1 for threads in ran)  # a context is never used by two threads
    assert set.union(*ran) <= trt.fake.cuda.threads
    assert len(set.union(*ran)) == 3
    assert point.throughput is not None
    assert point.compute_ms is not None
    # Little's law: all clients are busy all the time.
    assert point.throughput * point.compute_ms / 1000 == pytest.approx(3, rel=0.25)
    assert trt.fake.cuda.live == 0
    assert "context and a stream for each client, TensorRT 10.13" in load_lines(found)[-1]
    assert "image [1, 3, 4, 4]" in load_lines(found)[-1]


def test_an_engine_whose_contexts_need_too_much_memory_is_a_row_with_the_reason(
    trt: Any, tmp_path: Path
) -> None:
    path = tmp_path / "small.engine"
    path.write_bytes(built(trt))
    trt.fake.cuda.limit = 2000
    found = loaded(path, clients="1,64", duration=0.0, trust=True)
    assert [bool(point.problem) for point in found.points] == [False, True]
    assert "no memory left" in found.points[1].problem
    assert trt.fake.cuda.live == 0


def test_an_engine_has_to_be_trusted(trt: Any, tmp_path: Path) -> None:
    path = tmp_path / "small.engine"
    path.write_bytes(built(trt))
    with pytest.raises(UsageError, match="load it only if you trust"):
        loaded(path)
    with pytest.raises(UsageError, match="is for decoders"):
        loaded(path, tokens=3, trust=True)


def test_sequences_at_the_same_time_are_those_made_one_after_the_other(tmp_path: Path) -> None:
    path = decoders.grouped(tmp_path / "m.onnx")
    document = Document.open(path)
    session = Session(path, SessionSettings(threads=1, quiet=True))
    decoder = Decoder(document, specs_for(session.inputs, document), None)
    generator = Generator(path, session, decoder)

    def tokens(seed: int) -> list[list[int]]:
        feeds = StepFeeds(decoder, 1, 5, seed, 20)
        *_, timed = generator.run(feeds, 1, 5, 8)
        return [token.tolist() for token in timed.tokens]

    alone = [tokens(seed) for seed in range(4)]
    assert len({str(one) for one in alone}) > 1
    with ThreadPoolExecutor(4) as pool:
        assert [*pool.map(tokens, range(4))] == alone
    document.close()


def test_inputs_that_are_kept_give_the_same_sequence_each_time(tmp_path: Path) -> None:
    path = decoders.grouped(tmp_path / "m.onnx")
    document = Document.open(path)
    session = Session(path, SessionSettings(threads=1, quiet=True))
    decoder = Decoder(document, specs_for(session.inputs, document), None)
    generator = Generator(path, session, decoder)
    kept = KeptFeeds(decoder, 1, 5, 3, 30)
    found = []
    for feeds in (StepFeeds(decoder, 1, 5, 3, 30), kept, kept):
        *_, timed = generator.run(feeds, 1, 5, 20)
        found.append([token.tolist() for token in timed.tokens])
    assert found[0] == found[1] == found[2]
    document.close()


def test_a_decoder_makes_sequences_for_each_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = decoders.grouped(tmp_path / "m.onnx")
    made: list[int] = []
    honest = Generator.run

    def counted(self: Any, feeds: Any, batch: int, prompt: int, tokens: int) -> Any:
        for timed in honest(self, feeds, batch, prompt, tokens):
            made.append(prompt)
            yield timed

    monkeypatch.setattr(Generator, "run", counted)
    found = loaded(path, clients="1,2", tokens=4, prompt=6, duration=0.05)
    assert found.tokens == 4
    assert set(made) == {6}
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
    with pytest.raises(UsageError, match="leave out --inputs and --shape"):
        loaded(path, tokens=4, shape=("x:1",))
