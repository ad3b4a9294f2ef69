"""How near the predicted peak of activations is to what ONNX Runtime's arena hands out.

    python -m benchmarks.bench_memory MODEL...

The arena is told to hand out exactly what is asked for, and the figure after each node is that of
ONNX Runtime's own profile, less what was in use before the first one. It holds for one run without
memory patterns, with one thread.
"""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from dld_tui.backends.onnxruntime.session import load
from dld_tui.cli.models.inference import infer
from dld_tui.core.cost.memory import MemoryPlan, memory_plan
from dld_tui.core.cost.nodes import ModelCosts
from dld_tui.core.cost.shapes import declare_inputs, follow_shapes
from dld_tui.core.document.document import Document
from dld_tui.core.errors import ActivityError
from dld_tui.core.inputs.guess import Guess, first_that_runs, input_specs
from dld_tui.core.inputs.search import candidate_guesses


def exact_arena() -> None:
    """Have sessions that ask for it share an arena that hands out what is asked for, once."""
    runtime = load()
    place = runtime.OrtMemoryInfo(
        "Cpu", runtime.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, runtime.OrtMemType.DEFAULT
    )
    exact = {
        "max_mem": 0, "arena_extend_strategy": 1, "initial_chunk_size_bytes": 256,
        "max_dead_bytes_per_chunk": 1,
    }  # fmt: skip
    runtime.create_and_register_allocator(place, runtime.OrtArenaCfg(exact))


def measured(path: Path, guess: Any, level: str = "ORT_ENABLE_ALL") -> tuple[int, str]:
    """Return the most bytes of activations in use after a node, and the node's name."""
    runtime = load()
    with tempfile.TemporaryDirectory() as folder:
        options = runtime.SessionOptions()
        options.enable_profiling, options.profile_file_prefix = True, f"{folder}/run"
        options.intra_op_num_threads, options.log_severity_level = 1, 3
        options.enable_mem_pattern = False
        options.graph_optimization_level = getattr(runtime.GraphOptimizationLevel, level)
        options.add_session_config_entry("session.use_env_allocators", "1")
        session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        session.run(None, guess)
        events = json.loads(Path(session.end_profiling()).read_text())
    rows = [
        (int(event["args"]["mem_bytes_in_use"]), int(event["args"]["mem_in_use_delta"]), event)
        for event in events
        if event["cat"] == "Node" and event["name"].endswith("_kernel_time")
    ]
    first = min(rows, key=lambda row: row[2]["ts"])
    most = max(rows, key=lambda row: row[0])
    return most[0] - (first[0] - first[1]), str(most[2]["name"]).removesuffix("_kernel_time")


def predicted(path: Path) -> tuple[MemoryPlan, dict[str, Any]]:
    """Return the plan, and inputs that the model takes."""
    with contextlib.closing(Document.open(path)) as document:
        runtime = load()
        session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        guess: Guess
        guess, _ = first_that_runs(
            candidate_guesses(input_specs(document), document, {}), 0,
            lambda values: _run(session, values),
        )  # fmt: skip
        shapes = dict(guess.shapes)
        sizes = declare_inputs(document, shapes)
        infer(document, path)
        sizes = follow_shapes(document, shapes) | sizes
        return memory_plan(ModelCosts(document, sizes)), dict(guess.values(0))


def _run(session: Any, values: Any) -> Any:
    try:
        return session.run(None, dict(values))
    except Exception as error:
        raise ActivityError(str(error)) from error


def main() -> None:
    """Print a line a model."""
    exact_arena()
    for name in sys.argv[1:]:
        path = Path(name)
        try:
            plan, inputs = predicted(path)
            peak, node = measured(path, inputs)
            plain, at = measured(path, inputs, "ORT_DISABLE_ALL")
        except Exception as error:  # noqa: BLE001 - what one model does is no reason to stop
            print(f"{path.name:28} {type(error).__name__}: {str(error)[:120]}")
            continue
        print(
            f"{path.name:28} {plan.peak:>12,} at {plan.at[-30:]:30}  measured {peak:>12,}"
            f" ({100 * (plan.peak / peak - 1):+.1f} %) at {node[-30:]}; as it is {plain:,} at"
            f" {at[-30:]} unknown {len(plan.unknown)}"
        )


if __name__ == "__main__":
    main()
