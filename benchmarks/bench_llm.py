"""Tokens a second of the loop of ``dld profile llm``, beside a plain loop of ``session.run``.

Whole processes of one and the same program differ by 5 to 10 %, so the loops take turns at each
token, in one process and on one session, in an order that is drawn, and there are two plain loops:
how far these are apart is what the machine adds. What counts is the median of the ratios of a turn,
with its interval of 95 %.

With ``--genai PYTHON`` also beside onnxruntime-genai, which that interpreter must have; the model
is then a folder with its ``genai_config.json``. Its processes stay, and are told when to write a
few tokens. Both versions of ONNX Runtime are printed: where they differ, so may the programs.
"""

from __future__ import annotations

import random
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from benchmarks import harness
from dld_tui.backends.onnxruntime.generation import Generator
from dld_tui.backends.onnxruntime.session import (
    Session,
    SessionSettings,
    version,
    with_genai_options,
)
from dld_tui.core.document.document import Document
from dld_tui.core.inputs.guess import specs_for
from dld_tui.core.llm.feeds import Decoder, StepFeeds
from dld_tui.core.llm.folder import find_decoder
from dld_tui.core.report.statistics import median_ranks

DEVIATION, GENAI_DEVIATION = 0.03, 0.05
_BURST = 16
"""Tokens of a turn with another process, which has to wake up and finds cold caches."""


class Writer(Protocol):
    """One of those that take turns."""

    def begin(self) -> None:
        """Read a prompt."""

    def write(self, tokens: int) -> float:
        """Write tokens; return the seconds that it took."""


def main(argv: list[str]) -> int:
    """Print the table; return 1 when a bound is missed, or the machine is too restless to tell."""
    parser = harness.parser(__doc__)
    parser.add_argument("model", type=Path, help="a decoder, or its folder")
    parser.add_argument("--prompt", type=int, default=128)
    parser.add_argument("--decode", type=int, default=64, help="tokens after each prompt")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--provider", default="CPU")
    parser.add_argument("--rounds", type=int, default=20, help="prompts of each")
    parser.add_argument("--genai", metavar="PYTHON", help="one that has onnxruntime-genai")
    options = parser.parse_args(argv)
    sizes = (options.batch, options.prompt, options.decode)
    table = harness.Table(f"Tokens a second, {options.rounds} times {options.decode} tokens")
    with ExitStack() as stack:
        loops = Loops(options.model, sizes, options.threads, options.provider)
        stack.enter_context(closing(loops))
        # The plain loop gives new tensors at each step; genai writes into those there are.
        writers: list[Writer] = [OwnLoop(loops, shared=False), PlainLoop(loops), PlainLoop(loops)]
        seconds = take_turns(writers, options.rounds, options.decode, 1)
        add_rows(table, "the plain loop", seconds, options.batch, DEVIATION)
        if options.genai:
            others = [
                GenaiLoop(options.genai, options.model, sizes, options.threads) for _ in range(2)
            ]
            for other in others:
                stack.callback(other.close)
            print(f"ONNX Runtime {version()} here, {others[0].version} under genai")
            writers = [OwnLoop(loops, shared=loops.decoder.can_share), *others]
            seconds = take_turns(writers, options.rounds, options.decode, _BURST)
            add_rows(table, "onnxruntime-genai", seconds, options.batch * _BURST, GENAI_DEVIATION)
    return table.finish()


def take_turns(
    writers: Sequence[Writer], rounds: int, tokens: int, burst: int
) -> list[list[float]]:
    """Return the seconds of each one's turns, whose order is drawn for each.

    Args:
        writers: Who takes turns.
        rounds: How many prompts each reads.
        tokens: How many tokens it writes after each.
        burst: Tokens of a turn.
    """
    draw = random.Random(0)
    seconds: list[list[float]] = [[] for _ in writers]
    for attempt in range(rounds + 1):
        for writer in writers:
            writer.begin()
        for _ in range(tokens // burst):
            for number in draw.sample(range(len(writers)), len(writers)):
                took = writers[number].write(burst)
                if attempt:  # the first prompt finds a cold machine
                    seconds[number].append(took)
    return seconds


def median_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the median, and between which values that of all turns lies in 95 of 100 runs.

    By the order of the values alone, as they are not normally distributed.
    """
    ordered = sorted(values)
    low, high = median_ranks(len(ordered))
    return statistics.median(ordered), ordered[low], ordered[high]


def verdict(low: float, high: float, deviation: float) -> str:
    """Return where the interval of a ratio lies: ``inside``, ``outside`` or ``cannot tell``."""
    if 1 - deviation <= low and high <= 1 + deviation:
        return "inside"
    return "outside" if high < 1 - deviation or low > 1 + deviation else "cannot tell"


def add_rows(
    table: harness.Table,
    peer: str,
    seconds: Sequence[Sequence[float]],
    tokens: int,
    deviation: float,
) -> None:
    """Add the rates of two programs and how far they are apart.

    Args:
        table: Where to.
        peer: The name of the other program.
        seconds: Of the turns of ours, the other one, and the other one again.
        tokens: Of a turn, in all sequences.
        deviation: How far they may be apart.
    """
    ours, other, again = seconds
    rates = [tokens / statistics.median(one) for one in (ours, other)]
    table.add(f"tokens a second, beside {peer}", *rates, unit="1/s")
    same, ratio = (
        median_interval([theirs / mine for mine, theirs in zip(one, other, strict=True)])
        for one in (again, ours)
    )
    middle, low, high = ratio
    where = verdict(low, high, deviation)
    print(f"{peer} / itself: {_shown(*same)}: what the machine adds")
    print(f"ours / {peer}: {_shown(*ratio)}: {where} {deviation:.0%}")
    table.add(
        f"difference from {peer}, median of turns, {where}",
        abs(middle - 1) * 100,
        unit="%",
        bound=deviation * 100 if where == "inside" else 0,
        rule=f"95 % of medians within {deviation:.0%} of the peer",
    )


def _shown(middle: float, low: float, high: float) -> str:
    return f"{middle:.4f}, between {low:.4f} and {high:.4f} in 95 of 100 runs"


class Loops:
    """What both loops of this process use: a session, and the inputs. Close it."""

    def __init__(
        self, path: Path, sizes: tuple[int, int, int], threads: int, provider: str
    ) -> None:
        self.batch, self.prompt, self.tokens = sizes
        self.model, config = find_decoder(path)
        settings = SessionSettings(providers=(provider,), threads=threads, quiet=True)
        settings, _ = with_genai_options(settings, config.session if config is not None else {})
        self.session = Session(self.model, settings)
        self._document = Document.open(self.model)
        specs = specs_for(self.session.inputs, self._document)
        self.decoder = Decoder(self._document, specs, config)
        self.feeds = StepFeeds(self.decoder, self.batch, self.prompt)

    def close(self) -> None:
        """Close the model."""
        self._document.close()


class OwnLoop:
    """That of ``dld profile llm``, with the times that it reports."""

    def __init__(self, loops: Loops, *, shared: bool) -> None:
        self._loops = loops
        self._generator = Generator(loops.model, loops.session, loops.decoder, shared=shared)

    def begin(self) -> None:
        """Read a prompt."""
        loops = self._loops
        self._run = self._generator.run(loops.feeds, loops.batch, loops.prompt, loops.tokens)
        next(self._run)

    def write(self, tokens: int) -> float:
        """Write tokens; return the seconds that it took."""
        return sum(next(self._run).step_ms[-1] for _ in range(tokens)) / 1000


class PlainLoop:
    """One of ``session.run``, fed with what it gave."""

    def __init__(self, loops: Loops) -> None:
        self._loops, self._session = loops, loops.session.inference
        self._names = [one.name for one in self._session.get_outputs()]

    def begin(self) -> None:
        """Read a prompt."""
        loops = self._loops
        cache = {
            name: np.zeros(loops.decoder.cache_shape(name, loops.batch, 0), spec.dtype)
            for name, spec in loops.decoder.caches.items()
        }
        self._steps = [loops.feeds.step(number) for number in range(loops.tokens)]
        self._run({**loops.feeds.prompt(), **cache})

    def _run(self, feed: Mapping[str, Any]) -> None:
        self._out = dict(zip(self._names, self._session.run(None, feed), strict=True))

    def write(self, tokens: int) -> float:
        """Write tokens; return the seconds that it took."""
        decoder, feeds = self._loops.decoder, self._loops.feeds
        begin = time.perf_counter()
        for _ in range(tokens):
            cache = {pair.past: self._out[pair.present] for pair in decoder.pairs}
            chosen = self._out[decoder.logits][:, -1].argmax(-1) % feeds.vocabulary
            feed = self._steps.pop(0)
            feeds.put_tokens(feed, chosen)
            self._run({**feed, **cache})
        del cache  # as the next token would: to free it takes time, too
        return time.perf_counter() - begin


_GENAI = """
import json, sys, time
import numpy, onnxruntime, onnxruntime_genai as genai
print(onnxruntime.__version__, flush=True)
folder, batch, prompt, tokens, threads = sys.argv[1], *map(int, sys.argv[2:])
config = genai.Config(folder)
options = {"session_options": {"intra_op_num_threads": threads}}
config.overlay(json.dumps({"model": {"decoder": options}}))
model = genai.Model(config)
ids = numpy.random.default_rng(0).integers(3, 200, (batch, prompt)).astype(numpy.int32)
generator = None
for line in sys.stdin:
    begin = time.perf_counter()
    if line.strip() == "begin":
        del generator
        parameters = genai.GeneratorParams(model)
        length = prompt + tokens + 1
        parameters.set_search_options(
            do_sample=False, max_length=length, min_length=length, batch_size=batch)
        generator = genai.Generator(model, parameters)
        generator.append_tokens(ids if batch > 1 else ids[0])
        generator.generate_next_token()
    else:
        for _ in range(int(line)):
            generator.generate_next_token()
    print(time.perf_counter() - begin, flush=True)
"""


class GenaiLoop:
    """That of onnxruntime-genai, greedily, in a process that stays. Close it."""

    def __init__(
        self, python: str, folder: Path, sizes: tuple[int, int, int], threads: int
    ) -> None:
        command = [python, "-c", _GENAI, str(folder), *map(str, sizes), str(threads)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self.version = self._process.stdout.readline().strip()
        """Of its ONNX Runtime."""

    def begin(self) -> None:
        """Read a prompt."""
        self._ask("begin")

    def write(self, tokens: int) -> float:
        """Write tokens; return the seconds that it took."""
        return self._ask(str(tokens))

    def _ask(self, what: str) -> float:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{what}\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
