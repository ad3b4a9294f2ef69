"""Tokens a second that ``dld profile llm`` reports, beside a plain loop of ``session.run``."""

from __future__ import annotations

import json
import statistics
import subprocess
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import onnxruntime

from benchmarks import harness
from dld_tui.core.document.document import Document
from dld_tui.core.inputs.guess import input_specs
from dld_tui.core.llm.feeds import Decoder, StepFeeds
from dld_tui.core.llm.folder import find_decoder

DEVIATION = 0.03


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
    options = parser.parse_args(argv)
    sizes = (options.batch, options.prompt, options.decode)
    pairs = []
    with harness.work_folder() as folder:
        for attempt in range(options.rounds):
            rates = {}
            # Whoever runs second finds a warmer machine, so they take turns.
            for ours in (True, False) if attempt % 2 else (False, True):
                rates[ours] = (
                    _profiled(folder, options.model, sizes, options.threads, options.provider)
                    if ours
                    else plain_loop(options.model, sizes, options.threads, options.provider)
                )
            pairs.append((rates[True], rates[False]))
    ratio = statistics.median(ours / plain for ours, plain in pairs)
    ours, plain = (statistics.median(column) for column in zip(*pairs, strict=True))
    table = harness.Table(f"Tokens a second, {options.rounds} runs of {options.decode} tokens")
    table.add("tokens a second", ours, plain, unit="1/s")
    table.add(
        "difference from the plain loop, median of pairs",
        abs(ratio - 1) * 100,
        unit="%",
        bound=DEVIATION * 100,
        rule="3 % of the peer",
    )
    return table.finish()


def _profiled(
    folder: Path, model: Path, sizes: tuple[int, int, int], threads: int, provider: str
) -> float:
    batch, prompt, tokens = sizes
    command = [
        *harness.dld(), "profile", "llm", str(model), "--prompt", str(prompt),
        "--batch", str(batch), "--decode", str(tokens), "--threads", str(threads),
        "--provider", provider, "--layer-passes", "0", "--shared-buffer", "off",
        "-o", str(folder / "r.dldprof"), "--force", "--json",
    ]  # fmt: skip
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    [figures] = json.loads(done.stdout)["figures"]
    return 1000 * batch * tokens / float(figures["decode_ms"])


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
            begin = time.perf_counter()
            for number in range(tokens):
                cache = {pair.past: out[pair.present] for pair in decoder.pairs}
                chosen = out[decoder.logits][:, -1].argmax(-1) % feeds.vocabulary
                values = {**feeds.step(number, chosen), **cache}
                out = dict(zip(names, session.run(None, values), strict=True))
            rates.append(batch * tokens / (time.perf_counter() - begin))
    return statistics.median(rates[1:])


if __name__ == "__main__":
    import sys

    raise SystemExit(main(sys.argv[1:]))
