"""Where a gain comes from, and what became of each set-up."""

from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.compare.comparison import Comparison
from dld_tui.core.compare.subject import open_subject
from dld_tui.core.tune.changes import CHANGES, Setup
from dld_tui.core.tune.race import Race
from dld_tui.core.tune.result import candidates, gain_lines
from tests.support.report_files import layer, writer

_BY_ID = {change.id: change for change in CHANGES}


def report(path: Path, latency_ms: float, layers: dict[int, float]) -> Path:
    """Write a report of five passes; layers take milliseconds by their number."""
    made = writer(path)
    made.add_latencies([latency_ms] * 20)
    for index in layers:
        made.add_layer(layer(index))
    for number in range(5):
        start = at = number * 1e6
        rows: list[tuple[int, float, float, float, int | str]] = []
        for row, ms in enumerate(layers.values()):
            rows.append((row, at, 1000 * ms, 1000 * ms, 1))
            at += 1000 * ms
        made.add_pass(number, start, at - start)
        made.add_samples(number, rows)
    made.finish()
    return path


def test_the_gain_is_told_by_node_and_operator(tmp_path: Path) -> None:
    before = report(tmp_path / "a.dldprof", 10.0, {0: 6.0, 1: 1.0, 2: 3.0})
    after = report(tmp_path / "b.dldprof", 6.0, {0: 3.0, 1: 1.0, 2: 2.5, 3: 0.5})
    comparison = Comparison([open_subject(before), open_subject(after)])
    lines, share = gain_lines(comparison)
    # Of -4 ms: the convolution -3, the product -0.5, the sum that is new +0.5.
    assert share == pytest.approx(75.0)
    assert lines[0] == (
        "75 % of -4.000 ms is in 3 named nodes, most in /block.0/conv_0 (-3.000 ms),"
        " /block.0/matmul_2 (-0.500 ms), /block.0/add_3 (+0.500 ms)."
    )
    assert "Conv takes 3.000 ms where it took 6.000" in lines[1]
    assert "Add is new with 0.500 ms" in lines[1]


def test_what_is_saved_between_nodes_is_called_so(tmp_path: Path) -> None:
    """As by a CUDA graph: launches go, kernels take their time."""
    before = report(tmp_path / "a.dldprof", 10.0, {0: 3.0, 1: 1.0})
    after = report(tmp_path / "b.dldprof", 6.0, {0: 2.9, 1: 1.05})
    lines, share = gain_lines(Comparison([open_subject(before), open_subject(after)]))
    assert share == pytest.approx(1.25)
    assert lines == [
        "The nodes take as long as before: what is saved is between them, in launches and copies."
    ]


def test_without_layers_nothing_is_attributed(tmp_path: Path) -> None:
    pair = [open_subject(report(tmp_path / name, 2.0, {0: 1.0})) for name in ("a", "b")]
    assert gain_lines(Comparison(pair)) == (["No layer was measured in both profiles."], None)


def test_ratios_of_later_races_are_those_of_the_model_as_it_is() -> None:
    base = Setup(Path("m.onnx"))
    fp16 = base.with_change(_BY_ID["fp16"])
    both = fp16.with_change(_BY_ID["blocks"])
    lost = base.with_change(_BY_ID["int8-dynamic"])
    first = Race([base.key, fp16.key])
    first.add_round({base.key: 4.0, fp16.key: 2.0})
    second = Race([fp16.key, both.key])
    second.add_round({fp16.key: 3.0, both.key: 1.5})  # the machine is slower now
    setups = {one.key: one for one in (base, fp16, both, lost)}
    found = candidates(
        setups, [first, second], {lost.key: "wrong"}, {fp16.key: "SNR 60 dB"}, both.key
    )
    assert [(one.ratio, one.state) for one in found] == [
        (1.0, "in the race"), (0.5, "in the race"), (0.25, "best"), (None, "failed"),
    ]  # fmt: skip
    assert [one.rounds for one in found] == [1, 2, 1, 0]
    late = candidates(setups, [], {lost.key: "the time was up before it was tried"}, {}, base.key)
    assert late[3].state == "not tried"
    assert (found[1].accuracy, found[3].problem) == ("SNR 60 dB", "wrong")
