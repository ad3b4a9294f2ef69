"""What the benchmark of the precision search measures, each run in a process of its own."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path


def precision_trials(path: str, count: str, way: str) -> dict[str, float]:
    """Run trials with every other node kept, one after the other shifted.

    Args:
        path: The model.
        count: How many.
        way: ``switched`` as ``dld accuracy --search`` does them, or ``copied``: each with a
            converted model of its own.
    """
    from dld_tui.backends.accuracy.precision_trials import PrecisionTrials
    from dld_tui.backends.onnxruntime.session_options import SessionSettings
    from dld_tui.backends.onnxruntime.tensors import TensorRunner
    from dld_tui.core.accuracy.statistics import Tolerances
    from dld_tui.core.document import Document
    from dld_tui.core.inputs.feeds import input_feeds

    settings = SessionSettings(optimization_level="disabled", quiet=True)
    with contextlib.closing(Document.open(Path(path))) as document:
        with TensorRunner(document, settings) as runner:
            feeds = input_feeds(runner.inputs, None, (), [0], document).sets
        begin = time.perf_counter()
        made = PrecisionTrials(document, "fp16", feeds, Tolerances(), settings)
        with contextlib.closing(made) as trials:
            nodes = trials.candidates()
            trial = trials.run if way == "switched" else trials.convert
            ready = time.perf_counter()
            for number in range(int(count)):
                trial(nodes[number % 7 :: 2])
            done = time.perf_counter()
    return {
        "ms": (done - ready) * 1000 / int(count),
        "ready_ms": (ready - begin) * 1000,
        "nodes": len(nodes),
    }
