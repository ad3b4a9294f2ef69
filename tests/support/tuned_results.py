"""What tuning found, as a file."""

from __future__ import annotations

import json
from pathlib import Path

from dld_tui.core.codec import encode
from dld_tui.core.compare.gate import GateRow, Verdict
from dld_tui.core.tune.result import Candidate, CandidateState, Code, TuneResult
from tests.support import models

CANDIDATES = (
    Candidate("as it is", "original model", 12.0, 1.0, 1.0, 36, CandidateState.IN_RACE),
    Candidate("int8-dynamic", "dynamic int8", 5.0, 0.5, 0.4, 24, CandidateState.BEST, "",
              "SNR 36 dB", interval=(1.96, 2.04)),
    Candidate("threads-1", "1 thread", None, None, 1.6, 2, CandidateState.SLOWER, "", "the same",
              identical=True),
    Candidate("fp16", "fp16", state=CandidateState.NO_CHANGE, problem="there is nothing to change"),
)  # fmt: skip
CONFIRMED = GateRow("end to end", 10.0, 5.0, -50.0, -51.0, -49.0, Verdict.FASTER)


def found(folder: Path, *, model: bool = True, confirmed: GateRow | None = CONFIRMED) -> TuneResult:
    """Return a result, and write its file."""
    source = models.write(folder, models.CHAIN)
    faster = models.write(folder, models.CHAIN, "m.tune.onnx")
    path = folder / "m.tune.json"
    result = TuneResult(
        report=str(path), source=str(source), best="int8-dynamic" if confirmed else "as it is",
        title="dynamic int8", confirmed=confirmed,
        model=str(faster) if model and confirmed else None, candidates=CANDIDATES,
        why=("92 % of it is at 4 nodes, first conv (-4.600 ms).",),
        code=Code("python", "c++", "dld profile onnxruntime m.onnx"),
        reports=(), tolerance="by the precision of each", inputs="random values",
        seconds={"all": 9.0}, is_whole=True,
    )  # fmt: skip
    path.write_text(json.dumps(encode(result), indent=1), encoding="utf-8")
    return result
