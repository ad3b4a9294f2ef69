"""The memory that a run will need, and what ONNX Runtime's allocator hands out in one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from dld_tui.activities.memory import Request, run
from dld_tui.activities.profile.onnxruntime import Request as Profile
from dld_tui.activities.profile.onnxruntime import run as profile
from dld_tui.backends.onnxruntime.arena import measured_memory, peaks_of_runs
from dld_tui.backends.onnxruntime.session_options import SessionSettings
from dld_tui.core.model.cost.memory import MeasuredMemory, MemoryPlan, memory_lines
from dld_tui.core.report.measured_figures import measured_figures
from dld_tui.core.report.report import Report
from dld_tui.widgets.timeline.lanes import memory_rows
from tests.support.activities import finished
from tests.support.models import write, write_weighted
from tests.support.runtime import needs_onnxruntime
from tests.support.tiers import first

pytest.importorskip("onnxruntime")
told = needs_onnxruntime(31)
"""Profiles of 1.23 do not have what is in use."""
LIGHT = Path(onnx.__file__).parent / "backend/test/data/light"
HEAD = '<ir_version: 9, opset_import: ["" : 18]>\n'
MEBIBYTE = 1 << 20
CHAIN = f"""{HEAD} m (float[N, 1024] x) => (float[N, 1024] y)
{{ [a] a = Exp(x) [b] b = Sin(a) [c] c = Cos(a) [sum] d = Add(b, c) [y] y = Cos(d) }}"""


def planned(path: Path, *shapes: str) -> tuple[MemoryPlan, MeasuredMemory]:
    plan: MemoryPlan = finished(run(Request(path, shape=shapes, threads=1)))
    assert plan.measured is not None, plan.not_measured
    return plan, plan.measured


@told
def test_runs_of_one_session_need_what_each_needs_alone(tmp_path: Path) -> None:
    path, settings = write(tmp_path, CHAIN), SessionSettings(providers=("CPU",), threads=1)
    inputs = [{"x": np.ones((rows, 1024), np.float32)} for rows in (512, 256, 1024)]
    alone = [measured_memory(path, settings, values).peak for values in inputs]
    assert peaks_of_runs(path, settings, inputs) == alone
    assert alone == [rows // 256 * alone[1] for rows in (512, 256, 1024)]
    assert peaks_of_runs(path, settings, []) == []


@told
@pytest.mark.parametrize("rows", [256, 1024])
def test_a_run_has_in_use_what_can_be_counted_by_hand(tmp_path: Path, rows: int) -> None:
    path = write(tmp_path, CHAIN)
    plan, measured = planned(path, f"x:{rows}x1024")
    tensor = rows // 256 * MEBIBYTE
    # While c or the sum runs, there are a, b and c, or b, c and d; y takes a buffer that is free.
    assert plan.peak == measured.peak == 3 * tensor
    assert measured.in_use >= measured.peak
    assert measured.held >= measured.in_use
    assert plan.shapes == (f"x:{rows}x1024",)


@told
def test_what_kernels_ask_for_is_in_use(tmp_path: Path) -> None:
    """An LSTM first multiplies its whole input by the weights of its four gates."""
    length, batch, size, hidden = 64, 32, 16, 64
    text = f"""m (float[{length}, {batch}, {size}] x) => (float[{length}, 1, {batch}, {hidden}] y)
    <float[1, {4 * hidden}, {size}] w, float[1, {4 * hidden}, {hidden}] r>
    {{ y = LSTM <hidden_size = {hidden}> (x, w, r) }}"""
    path = write_weighted(tmp_path, HEAD + text)
    plan, measured = planned(path)
    assert measured.peak == plan.peak == 4 * length * batch * hidden
    assert measured.in_use >= measured.peak + 4 * (4 * length * batch * hidden)


@told
def test_the_setting_that_lowers_the_peak_is_measured(tmp_path: Path) -> None:
    text = """m (float[256, 1024] x) => (float[256, 1024] y) {
    a = Exp(x) r = ReduceSum<keepdims = 0>(a) c = Concat<axis = 0>(x, x) d = Exp(c)
    e = ReduceSum<keepdims = 0>(d) f = Add(e, r) g = Mul(x, f) y = Add(g, f) }"""
    path = write(tmp_path, HEAD + text)
    _, measured = planned(path)
    feed = {"x": np.ones((256, 1024), np.float32)}
    again = measured_memory(path, SessionSettings(threads=1, reuse_memory=False), feed)
    assert measured.without_reuse == again.in_use


@told
def test_what_cannot_be_measured_is_said(tmp_path: Path) -> None:
    text = "m (float[4] x) => (float[1] y) <int64[1] i = {9}> { [pick] y = Gather(x, i) }"
    path = write(tmp_path, HEAD + text)
    plan: MemoryPlan = finished(run(Request(path)))
    assert plan.measured is None
    assert "pick" in plan.not_measured
    assert any(line.startswith("measured     not: ") for line in memory_lines(plan))
    plan = finished(run(Request(path, measure=False)))
    assert (plan.measured, plan.not_measured) == (None, "")


@told
@pytest.mark.parametrize("name", first(1, ["squeezenet", "shufflenet", "inception_v1"]))
def test_lifetimes_are_near_a_run_of_networks(name: str) -> None:
    """A kernel may write into its input, and a free buffer may be kept for a later tensor."""
    plan, measured = planned(LIGHT / f"light_{name}.onnx")
    assert 0.6 < plan.peak / measured.peak < 1.5


@pytest.mark.broad
@told
def test_a_profile_has_in_use_what_a_run_has(tmp_path: Path) -> None:
    path = write(tmp_path, CHAIN)
    _, measured = planned(path, "x:256x1024")
    report = tmp_path / "a.dldprof"
    for _ in profile(Profile(path, report, shape=("x:256x1024",), duration=0.02)):
        pass
    with Report.open(report) as found:
        in_use = {one.name: one.cost and one.cost.in_use_bytes for one in found.layers}
        assert max(filter(None, in_use.values())) == measured.peak
        events = found.pass_events(found.passes[-1].index)
        (row,) = memory_rows(found, events)
        last = events[-1].start_us + events[-1].duration_us
        assert max(one.maximum for one in row.series(0, last, 50) if one) == row.top
        assert row.top == pytest.approx(measured.peak / {"kB": 1e3, "MB": 1e6}[row.unit])
        assert any("at the peak" in one.text for one in measured_figures(found))
