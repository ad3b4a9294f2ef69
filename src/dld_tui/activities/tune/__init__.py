"""Find the fastest setup of a model whose outputs stay within the tolerance.

Converted models race first, then session options with the fastest model, then combinations of what
helped; what a report of the model advises is tried before the rest. The winner must beat the
original model again in new processes. Candidates that are left then have the time that is left, in
the same way. At last both are profiled, and the gain is attributed to ONNX nodes.
"""

from __future__ import annotations

from dld_tui.activities.tune.course import run
from dld_tui.activities.tune.request import Request
from dld_tui.core.tune.result import TuneResult

__all__ = ["Request", "Result", "run"]

Result = TuneResult
