"""Tokens a second of the loop of ``dld profile llm``, beside a plain loop of ``session.run``.

Whole processes of one and the same program differ by 5 to 10 %, so the loops take turns at each
token, in one process and on one session, in an order that is drawn, and there are two plain loops:
how far these are apart is what the machine adds. What counts is the median of the ratios of a turn,
with its interval of 95 %.

With ``--genai PYTHON`` also beside onnxruntime-genai, which that interpreter must have; the model
is then a folder with its ``genai_config.json``. At times a process of either is a sixth slower as a
whole, so there are several of each. They stay, and take turns at writing a few tokens. What counts
is the median of the ratios of one of ours to one of theirs (Hodges and Lehmann), with its interval
of 95 % over processes; the ratio of each process to the median one of genai is printed. Both
versions of ONNX Runtime are printed: where they differ, so may the programs.
"""

from __future__ import annotations

import math
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from operator import truediv
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from benchmarks import harness
from dld_tui.backends.onnxruntime.generation import Generator
from dld_tui.backends.onnxruntime.runtime import version
from dld_tui.backends.onnxruntime.session import Session
from dld_tui.backends.onnxruntime.session_options import SessionSettings, with_genai_options
from dld_tui.core.llm.feeds import Decoder, StepFeeds
from dld_tui.core.llm.folder import find_decoder
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.inputs.guess import specs_for
from dld_tui.core.statistics import median_ranks

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
    parser.add_argument(
        "--processes", type=int, default=6, help="of ours and of genai; 4 or more for an interval"
    )
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
            arguments = (*sizes, options.threads)
            pairs = [
                stack.enter_context(closing(Process(python, code, options.model, arguments)))
                for _ in range(options.processes)
                for python, code in ((sys.executable, _OURS), (options.genai, _GENAI))
            ]
            print(f"ONNX Runtime {pairs[0].version} here, {pairs[1].version} under genai")
            seconds = take_turns(pairs, options.rounds, options.decode, _BURST)
            add_processes(table, seconds[::2], seconds[1::2], options.batch * _BURST)
    return table.finish()


def serve(arguments: Sequence[str]) -> None:
    """Be one of the processes of ours: write tokens as standard input says.

    Args:
        arguments: The folder, batch, prompt, tokens after each prompt, and threads.
    """
    batch, prompt, tokens, threads = map(int, arguments[1:])
    with closing(Loops(Path(arguments[0]), (batch, prompt, tokens), threads, "CPU")) as loops:
        own = OwnLoop(loops, shared=bool(loops.decoder.shareable))
        print(version(), flush=True)
        for line in sys.stdin:
            if line.strip() == "begin":
                own.begin()
                print(0.0, flush=True)
            else:
                print(own.write(int(line)), flush=True)


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


def ratio_interval(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float, float]:
    """Return the median ratio of one of theirs to one of ours, and its interval of 95 %.

    The interval is that of Mann and Whitney, by ranks alone; all numbers are in it where even the
    least and the greatest ratio are not sure enough, which is so of fewer than four each.

    Args:
        ours: A positive number of each process.
        theirs: Likewise.
    """
    ratios = sorted(their / our for our in ours for their in theirs)
    # In how many orders of all processes so many pairs have theirs before ours.
    orders = [1]
    for place in range(1, len(ours) + 1):
        orders = _times(orders, len(theirs) + place, place)
    limit = 0.025 * math.comb(len(ours) + len(theirs), len(ours))
    out = below = 0
    while below + orders[out] <= limit:
        below += orders[out]
        out += 1
    middle = statistics.median(ratios)
    return (middle, ratios[out - 1], ratios[-out]) if out else (middle, 0.0, math.inf)


def _times(counts: list[int], longer: int, shorter: int) -> list[int]:
    """Return the coefficients of a polynomial times ``(1 - x^longer) / (1 - x^shorter)``."""
    product = counts + [0] * (longer - shorter)
    for power in range(len(product) - 1, longer - 1, -1):
        product[power] -= product[power - longer]
    for power in range(shorter, len(product)):
        product[power] += product[power - shorter]
    return product


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


def add_processes(
    table: harness.Table,
    ours: Sequence[Sequence[float]],
    theirs: Sequence[Sequence[float]],
    tokens: int,
) -> None:
    """Add the rates of processes of ours and of genai, and how far they are apart.

    Args:
        table: Where to.
        ours: Seconds of the turns of each process.
        theirs: Likewise.
        tokens: Of a turn, in all sequences.
    """
    peer = "onnxruntime-genai"
    # Within a turn of all the machine is nearly the same: what a process took of its median.
    middles = [statistics.median(turn) for turn in zip(*ours, *theirs, strict=True)]
    usual = statistics.median(middles)
    mine, others = (
        [usual * statistics.median(map(truediv, one, middles)) for one in side]
        for side in (ours, theirs)
    )
    table.add(
        f"tokens a second, beside {peer}, median process",
        *(tokens / statistics.median(side) for side in (mine, others)),
        unit="1/s",
    )
    base = statistics.median(others)
    for name, side in (("ours", mine), (peer, others)):
        print(f"{name}, each process: {', '.join(f'{base / one:.3f}' for one in sorted(side))}")
    middle, low, high = ratio_interval(mine, others)
    where = verdict(low, high, GENAI_DEVIATION)
    print(f"ours / {peer}: {_shown(middle, low, high)}: {where} {GENAI_DEVIATION:.0%}")
    table.add(
        f"difference from {peer}, median of pairs of processes, {where}",
        abs(middle - 1) * 100,
        unit="%",
        bound=GENAI_DEVIATION * 100 if where == "inside" else 0,
        rule=f"95 % of medians within {GENAI_DEVIATION:.0%} of the peer",
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


_OURS = "import sys; from benchmarks.bench_llm import serve; serve(sys.argv[1:])"
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


class Process:
    """One that stays and writes tokens, greedily. Close it.

    Args:
        python: Its interpreter.
        code: What it runs, see :func:`serve`.
        folder: The model.
        arguments: Batch, prompt, tokens after each prompt, and threads.
    """

    def __init__(self, python: str, code: str, folder: Path, arguments: Sequence[int]) -> None:
        command = [python, "-c", code, str(folder), *map(str, arguments)]
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
