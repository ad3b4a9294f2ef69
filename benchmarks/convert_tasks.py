"""Tasks of the conversion benchmark: float16 and sanitizing of a large model."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterable
from pathlib import Path


def own_fp16(path: str, output: str) -> dict[str, float]:
    """Convert to float16 with the activity, the trial of the result included."""
    from dld_tui.activities.convert.fp16 import Request, run

    return _timed(run(Request(Path(path), Path(output))))


def onnxruntime_fp16(path: str, output: str) -> dict[str, float]:
    """Convert to float16 as ONNX Runtime's documentation does."""
    import onnx
    from onnxruntime.transformers.float16 import convert_float_to_float16

    start = time.perf_counter()
    onnx.save(convert_float_to_float16(onnx.load(path)), output)
    return {"ms": (time.perf_counter() - start) * 1000}


def own_sanitize(path: str, output: str) -> dict[str, float]:
    """Sanitize with the activity; the library works in a child process, whose peak counts too."""
    from dld_tui.activities.convert.sanitize import Request, run

    return _timed(run(Request(Path(path), Path(output))))


def polygraphy_sanitize(path: str, output: str) -> dict[str, float]:
    """Sanitize with Polygraphy's command."""
    from polygraphy.tools import main

    start = time.perf_counter()
    main(["surgeon", "sanitize", path, "-o", output, "--fold-constants", "--cleanup"])
    return {"ms": (time.perf_counter() - start) * 1000}


def _timed(events: Iterable[object]) -> dict[str, float]:
    start = time.perf_counter()
    for _ in events:
        pass
    child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 / 1e6
    return {"ms": (time.perf_counter() - start) * 1000, "child_mb": child}
