"""The page of a search of Q/DQ places: the outcome, and what quantizing each region changes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dld_tui.core.compare.gate import GateRow, Verdict
from dld_tui.core.tune.placement import Decision, PlacementResult
from dld_tui.core.tune.regions import Scheme
from dld_tui.screens.results.table import of_placement
from tests.support import models
from tests.support.workspace import SIZES, WIDE, opened

FASTER = GateRow("end to end", 10.0, 8.0, -20.0, -21.0, -19.0, Verdict.FASTER)
SLOWER = GateRow("end to end", 8.0, 9.0, 12.5, 11.0, 14.0, Verdict.SLOWER)
RESULT = PlacementResult(
    "net.onnx", "ONNX Runtime 1.31", (
        Decision("Conv, Relu", 16, ("c0", "r0"), Scheme.ALL, 0.9, FASTER),
        Decision("MatMul, Add", 1, ("m0", "a0"), Scheme.FLOAT, 0.1, SLOWER),
        Decision("MatMul", 1, ("m1",), Scheme.FLOAT, 0.0, None, "output y: off"),
    ),
    ("m0", "a0", "m1"), FASTER, "", FASTER, "SNR 40 dB", "snr=30", "net.placed.onnx", True, 9, 60.0,
)  # fmt: skip


@SIZES
async def test_the_page_says_what_was_decided(tmp_path: Path, size: tuple[int, int]) -> None:
    async with opened(models.write(tmp_path, models.CHAIN), size) as session:
        session.app.add_page(of_placement(RESULT, {}))
        await session.settle()
        assert "1.25× faster (1.23 to 1.27) with 16 of 18 regions quantized" in session.text
        assert "Conv, Relu" in session.text
        assert "quantized" in session.text


@pytest.mark.broad
async def test_what_is_no_faster_is_said_first(tmp_path: Path) -> None:
    async with opened(models.write(tmp_path, models.CHAIN), WIDE) as session:
        lost = replace(RESULT, confirmed=None, output=None, is_whole=False)
        session.app.add_page(of_placement(lost, {}))
        await session.settle()
        assert "No faster: none of 17 regions timed is faster quantized." in session.text
        assert "the same command resumes it" in session.text
        assert "output y: off" in session.text
