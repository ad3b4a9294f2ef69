"""Measure engines in processes of their own: some models and settings crash TensorRT."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

from dld_tui.activities.separate_process import run_in_process
from dld_tui.core.events import Progress
from dld_tui.core.types import JSON


def engine_ms(folder: Path, limit: float, **settings: JSON) -> Generator[Progress, None, float]:
    """Build or load an engine, run it, and return the median GPU time of a pass in milliseconds.

    Args:
        folder: For the files of the process.
        limit: The time limit in seconds.
        settings: Of ``profile_tensorrt``.

    Raises:
        DldError: As ``profile_tensorrt`` does; the process crashed, or took too long.
    """
    report = folder / "trial.dldprof"
    measuring: dict[str, JSON] = {
        "report": str(report), "layer_passes": 0, "gpu_timeline": False, "gpu_counters": "off",
    }  # fmt: skip
    result = yield from run_in_process("profile_tensorrt", {**measuring, **settings}, folder, limit)
    report.unlink(missing_ok=True)
    return float(result.phases_ms["compute"]["median"])
