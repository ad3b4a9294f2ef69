from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.errors import InputError
from dld_tui.core.model.document import Document
from dld_tui.core.reading.first_lines import doubts
from dld_tui.core.report.formats.import_ort import add_ort_profile, report_from_ort_profile
from dld_tui.core.report.groups import time_title
from dld_tui.core.report.report import Report
from tests.support import models
from tests.support.profiles import Event, kernel, run, start_report, write_profile


def branch_runs(count: int) -> list[Event]:
    events: list[Event] = []
    for index in range(count):
        at = 1000 * index
        events += [
            kernel("pre", "Relu", at + 10, 20, index=0),
            kernel("inner", "Neg", at + 50, 30 + index, index=0),
            kernel("Add_1", "Add", at + 90, 10, index=1),
            kernel("choose", "If", at + 40, 100, index=1),
            run(at, 200),
        ]
    return events


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    return write_profile(tmp_path / "net_2026-11-21_14-02-03_123.json", branch_runs(4))


def test_layers_of_a_model_with_branches(tmp_path: Path, profile: Path) -> None:
    document = Document.open(models.write(tmp_path, models.BRANCHES))
    with start_report(tmp_path / "r.dldprof") as writer:
        summary = add_ort_profile(writer, profile, document, warm_up=1)
    assert (len(summary.layers), summary.passes, summary.version) == (4, 3, "1.22 or later")
    assert summary.providers == {"CPUExecutionProvider": 4}
    report = Report.open(tmp_path / "r.dldprof")
    assert [layer.name for layer in report.layers] == ["pre", "choose", "inner", "Add_1"]
    pre, choose, inner, add = report.layers
    assert pre.time_ms == 0.02
    assert inner.time_ms == 0.031  # of passes 1 to 3: the first is warm-up
    assert choose.time_ms == pytest.approx(0.1 - 0.033 - 0.01)
    assert [link.label for link in inner.nodes] == ["choose:then_branch › inner"]
    assert (add.confidence, inner.confidence) == ("none", "name")
    assert [p.state for p in report.passes] == ["warm-up"] + ["measured"] * 3
    assert (pre.precision, pre.output_dims) == ("float32", ((1, 4),))
    assert report.layers[1].node_index == 1


def test_a_name_in_two_subgraphs_is_that_of_the_one_that_ran(tmp_path: Path) -> None:
    branch = "yes () => (float[N, 4] t) {{ [inner] t = {}(x) }}"
    both = [
        f"[{name}] {name} = If (choice) <then_branch = {branch.format(op)}, "
        f"else_branch = {branch.format('Abs')}>"
        for name, op in (("first", "Neg"), ("second", "Neg"), ("third", "Neg"))
    ]
    text = f"""<ir_version: 10, opset_import: ["" : 18]>
        g (bool choice, float[N, 4] x) => (float[N, 4] first, float[N, 4] second, float[N, 4] third)
        {{ {" ".join(both)} }}"""
    document = Document.open(models.write(tmp_path, text))
    events = [
        kernel("inner", "Neg", 150, 30),
        kernel("second", "If", 140, 100, index=1),
        run(0, 300),
    ]
    profile = write_profile(tmp_path / "p.json", events)
    with start_report(tmp_path / "r.dldprof") as writer:
        add_ort_profile(writer, profile, document)
    (inner,) = [
        layer for layer in Report.open(tmp_path / "r.dldprof").layers if layer.name == "inner"
    ]
    assert [link.label for link in inner.nodes] == ["second:then_branch › inner"]


def test_a_run_that_failed_on_the_way_does_not_count(tmp_path: Path) -> None:
    events = branch_runs(3)
    failed = [e for e in branch_runs(4)[15:] if e["name"] != "choose_kernel_time"]
    failed = [e for e in failed if e["name"] not in ("Add_1_kernel_time", "inner_kernel_time")]
    profile = write_profile(tmp_path / "p.json", events + failed)
    report = report_from_ort_profile(profile)
    assert [p.state for p in report.passes] == ["measured"] * 3 + ["incomplete"]
    assert report.layers[0].passes == 3
    assert any("fewer kernels" in note.text for note in report.notes)


def test_nothing_is_left_in_the_temporary_folder(
    tmp_path: Path, profile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    report = report_from_ort_profile(profile)
    assert list(folder.iterdir()) == []
    assert report.pass_events(report.passes[0].index)
    profile.write_text("[]")
    with pytest.raises(InputError):
        report_from_ort_profile(profile)
    assert list(folder.iterdir()) == []


def test_gpu_launches_are_said_to_be_launches(tmp_path: Path) -> None:
    events = [kernel("a", "Conv", 10, 5, provider="CUDAExecutionProvider"), run(1, 50)]
    report = report_from_ort_profile(write_profile(tmp_path / "p.json", events))
    assert time_title(report.layers) == "launch ms"
    assert any("Launches of layers" in text for group in doubts(report) for text in group)
