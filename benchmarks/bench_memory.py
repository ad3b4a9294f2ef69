"""How near the predicted peak of activations is to what ONNX Runtime's arena hands out.

    python -m benchmarks.bench_memory MODEL...

The arena is told to hand out exactly what is asked for, and the figure after each node is that of
ONNX Runtime's own profile, less what was in use before the first one. It holds for one run without
memory patterns, with one thread. The peak within nodes has their scratch memory in it, and that of
making the session where this is higher.
"""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import Any

from dld_tui.activities.memory import Request, run
from dld_tui.core.cost.memory import MemoryPlan
from dld_tui.core.document.document import Document
from dld_tui.core.events import Finished
from dld_tui.core.inputs.guess import guess_inputs, input_specs
from dld_tui.core.inputs.shapes import parse_shapes
from tests.support.arena import measured_apart

_SESSIONS = 5
_NEAR = 0.1


def predicted(path: Path) -> tuple[MemoryPlan, dict[str, Any]]:
    """Return the plan, and inputs of the shapes that it is for."""
    *_, last = run(Request(path, threads=1))
    assert isinstance(last, Finished)
    plan: MemoryPlan = last.result
    with contextlib.closing(Document.open(path)) as document:
        given = parse_shapes(plan.shapes, document.main.inputs)
        return plan, dict(guess_inputs(input_specs(document), document, given).values(0))


def main() -> None:
    """Print a line a model; ONNX Runtime itself plans some models in several ways."""
    near = whole = models = 0
    for name in sys.argv[1:]:
        path = Path(name)
        try:
            plan, inputs = predicted(path)
            runs = [measured_apart(path, inputs) for _ in range(_SESSIONS)]
        except Exception as error:  # noqa: BLE001 - what one model does is no reason to stop
            print(f"{path.name:28} {type(error).__name__}: {str(error)[:120]}")
            continue
        peaks = sorted(run.after_nodes for run in runs)
        median = peaks[_SESSIONS // 2]
        most = sorted(run.with_scratch for run in runs)[_SESSIONS // 2]
        highest = plan.peak + (plan.scratch or 0)
        whole += abs(highest / most - 1) <= _NEAR
        models += 1
        near += abs(plan.peak / median - 1) <= _NEAR
        span = f"{peaks[0]:,}" if peaks[0] == peaks[-1] else f"{peaks[0]:,} to {peaks[-1]:,}"
        print(
            f"{path.name:28} {plan.peak:>12,}  measured {span} ({plan.peak / median - 1:+.1%});"
            f" with scratch memory {highest:,}, {most:,} ({highest / most - 1:+.1%})"
        )
    print(f"{near} of {models} within {_NEAR:.0%}, with scratch memory {whole}")


if __name__ == "__main__":
    main()
