"""Tokens a second that ``dld profile llm`` reports, beside a plain loop of ``session.run``.

With ``--genai PYTHON`` also beside onnxruntime-genai, which that interpreter must have; the model
is then a folder with its ``genai_config.json``.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import onnxruntime

from benchmarks import harness
from dld_tui.core.document.document import Document
from dld_tui.core.inputs.guess import input_specs
from dld_tui.core.llm.feeds import Decoder, StepFeeds
from dld_tui.core.llm.folder import find_decoder

DEVIATION, GENAI_DEVIATION = 0.03, 0.05


def main(argv: list[str]) -> int:
    """Print the table; return 1 when the bound is missed."""
    parser = harness.parser(__doc__)
    parser.add_argument("model", type=Path, help="a decoder, or its folder")
    parser.add_argument("--prompt", type=int, default=128)
    parser.add_argument("--decode", type=int, default=64)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--provider", default="CPU")
    parser.add_argument("--rounds", type=int, default=7, help="runs of each, in turn")
    parser.add_argument("--genai", metavar="PYTHON", help="one that has onnxruntime-genai")
    options = parser.parse_args(argv)
    sizes = (options.batch, options.prompt, options.decode)
    table = harness.Table(f"Tokens a second, {options.rounds} runs of {options.decode} tokens")
    with harness.work_folder() as folder:

        def profiled(*more: str) -> float:
            return _profiled(folder, options.model, sizes, options.threads, options.provider, *more)

        # The plain loop gives new tensors at each step; genai writes into those there are.
        _compare(
            table, "the plain loop", options.rounds, DEVIATION,
            lambda: profiled("--shared-buffer", "off"),
            lambda: plain_loop(options.model, sizes, options.threads, options.provider),
        )  # fmt: skip
        if options.genai:
            _compare(
                table, "onnxruntime-genai", options.rounds, GENAI_DEVIATION, profiled,
                lambda: genai(options.genai, options.model, sizes, options.threads),
            )  # fmt: skip
    return table.finish()


def _compare(
    table: harness.Table,
    peer: str,
    rounds: int,
    deviation: float,
    ours: Callable[[], float],
    theirs: Callable[[], float],
) -> None:
    """Add the rates of two programs that take turns, and how far they are apart."""
    pairs = []
    for attempt in range(rounds):
        # Whoever runs second finds a warmer machine.
        if attempt % 2:
            rate = ours()
            pairs.append((rate, theirs()))
        else:
            rate = theirs()
            pairs.append((ours(), rate))
    ratio = statistics.median(rate / other for rate, other in pairs)
    rates = [statistics.median(column) for column in zip(*pairs, strict=True)]
    table.add(f"tokens a second, beside {peer}", rates[0], rates[1], unit="1/s")
    table.add("  the most of all runs", *(max(column) for column in zip(*pairs, strict=True)))
    table.add(
        f"difference from {peer}, median of pairs",
        abs(ratio - 1) * 100,
        unit="%",
        bound=deviation * 100,
        rule=f"{deviation:.0%} of the peer",
    )


def _profiled(
    folder: Path,
    model: Path,
    sizes: tuple[int, int, int],
    threads: int,
    provider: str,
    *more: str,
) -> float:
    batch, prompt, tokens = sizes
    command = [
        *harness.dld(), "profile", "llm", str(model), "--prompt", str(prompt),
        "--batch", str(batch), "--decode", str(tokens), "--threads", str(threads),
        "--provider", provider, "--layer-passes", "0", "-o", str(folder / "r.dldprof"),
        "--force", "--json", *more,
    ]  # fmt: skip
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    [figures] = json.loads(done.stdout)["figures"]
    return 1000 * batch * tokens / float(figures["decode_ms"])


_GENAI = """
import json, statistics, sys, time
import numpy, onnxruntime_genai as genai
folder, batch, prompt, tokens, threads = sys.argv[1], *map(int, sys.argv[2:])
config = genai.Config(folder)
options = {"session_options": {"intra_op_num_threads": threads}}
config.overlay(json.dumps({"model": {"decoder": options}}))
model = genai.Model(config)
ids = numpy.random.default_rng(0).integers(3, 200, (batch, prompt)).astype(numpy.int32)
rates = []
for _ in range(4):
    parameters = genai.GeneratorParams(model)
    length = prompt + tokens + 1
    parameters.set_search_options(
        do_sample=False, max_length=length, min_length=length, batch_size=batch)
    generator = genai.Generator(model, parameters)
    generator.append_tokens(ids if batch > 1 else ids[0])
    generator.generate_next_token()
    begin = time.perf_counter()
    for _ in range(tokens):
        generator.generate_next_token()
    rates.append(batch * tokens / (time.perf_counter() - begin))
    del generator
print(statistics.median(rates[1:]))
"""


def genai(python: str, folder: Path, sizes: tuple[int, int, int], threads: int) -> float:
    """Return tokens a second of onnxruntime-genai's own loop, greedily; median of 3."""
    command = [python, "-c", _GENAI, str(folder), *map(str, sizes), str(threads)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(done.stdout.split()[-1])


def plain_loop(path: Path, sizes: tuple[int, int, int], threads: int, provider: str) -> float:
    """Return tokens a second of a loop of ``session.run``, fed with what it gave; median of 3."""
    batch, prompt, tokens = sizes
    model, config = find_decoder(path)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(
        model, options, providers=[f"{provider}ExecutionProvider"]
    )
    names = [one.name for one in session.get_outputs()]
    rates = []
    with closing(Document.open(model)) as document:
        decoder = Decoder(document, input_specs(document), config)
        feeds = StepFeeds(decoder, batch, prompt)
        for _ in range(4):
            cache = {
                name: np.zeros(decoder.cache_shape(name, batch, 0), np.float32)
                if spec.dtype == "float32"
                else np.zeros(decoder.cache_shape(name, batch, 0), np.float16)
                for name, spec in decoder.caches.items()
            }
            out = dict(zip(names, session.run(None, {**feeds.prompt(), **cache}), strict=True))
            steps = [feeds.step(number) for number in range(tokens)]
            begin = time.perf_counter()
            for values in steps:
                cache = {pair.past: out[pair.present] for pair in decoder.pairs}
                chosen = out[decoder.logits][:, -1].argmax(-1) % feeds.vocabulary
                fed = {**feeds.with_tokens(values, chosen), **cache}
                out = dict(zip(names, session.run(None, fed), strict=True))
            rates.append(batch * tokens / (time.perf_counter() - begin))
    return statistics.median(rates[1:])


if __name__ == "__main__":
    import sys

    raise SystemExit(main(sys.argv[1:]))
